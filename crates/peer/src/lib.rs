//! Two fullpipes that talk to each other: the connection between them, the daemon that accepts it,
//! and what they do with it: [`path_test`], [`record`] and [`relay`].
//!
//! How to think about it: a **control connection** carries short messages, one question and one
//! answer at a time ([`Channel`]). Over loopback it is plain TCP. To any other host it is TLS 1.3
//! with both ends authenticated by Ed25519 keys that the users exchanged before (raw public keys,
//! RFC 7250): there is no certificate and no authority. **Data connections** are separate sockets
//! to the same port. Each begins with a [`Ticket`], which only who holds the control connection
//! can write. Their data is plain: a test measures the kernel and the path, not a cipher.
//!
//! [`Daemon`] accepts, authenticates and bounds what peers may take, and hands each authenticated
//! control connection to a [`Service`]. A peer that cannot authenticate gets no answer, costs one
//! thread and a few kilobytes, and for [`Limits::authentication`] at most.
//!
//! A **carrier** of the relay is a third kind: a connection that is authenticated like a control
//! connection, and then belongs to the relay's own protocol ([`crate::relay`]).
//!
//! Everything blocks, with deadlines: a session has little to say, and a thread for each data
//! connection moves bytes with the fewest wake-ups.

#![forbid(unsafe_code)]

mod channel;
mod client;
mod connection;
mod daemon;
mod error;
mod frame;
mod key;
mod keyring;
mod log_bound;
pub mod path_test;
pub mod record;
pub mod relay;
mod rendezvous;
mod services;
mod ticket;
mod timed;
mod tls;
mod transport;

pub use channel::Channel;
pub use client::{Client, Keys};
pub use connection::CarrierSink;
pub(crate) use connection::{Connection, ConnectionSlot};
pub use daemon::{Daemon, Limits, Service, Session};
pub use error::{AcceptError, PeerError};
pub use frame::{Frame, FrameError, FrameReader, Kind};
pub(crate) use key::random;
pub use key::{ParseKeyError, PrivateKey, PublicKey};
pub use keyring::Keyring;
pub use rendezvous::Expected;
pub use services::Services;
pub use ticket::Ticket;
pub use transport::Transport;

/// The port that a daemon listens on by default.
pub const DEFAULT_PORT: u16 = 5606;
