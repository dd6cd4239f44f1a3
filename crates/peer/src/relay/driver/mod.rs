//! The relay's two ends as programs: sockets and a clock around [`super::Session`].
//!
//! [`Relay`] is the near end: it listens for users, and keeps carriers to the far end. [`FarEnd`]
//! takes the carriers that a [`crate::Daemon`] has authenticated, and connects to what its
//! [`AllowList`] has. Both run on one thread with tokio, and call `engine` for everything that
//! carriers and users have in common.

mod allow;
mod auto;
mod backoff;
mod engine;
mod far;
mod hello;
mod lookups;
mod near;
mod own_addresses;
mod proxy;
mod status;
mod unsent;
mod wire;

pub use allow::{AllowList, ParseAllowError};
pub use far::{FarEnd, FarEndOptions};
pub use near::{Carriers, Entry, Relay, RelayError, RelayOptions};
pub use proxy::{ProxyHandshake, ProxyKind, ProxyStep};
pub use status::{CarrierStatus, Moved, Observer, Over, RelayStatus, SessionStatus};
pub use wire::CarrierSockets;

use super::frame::CloseReason;

/// Why a carrier is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Closed {
    /// The other end said so.
    Refused(CloseReason, String),
    /// Its connection ended.
    Broken(String),
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Closed::Refused(_, text) => write!(f, "the other end says: {}", text.escape_debug()),
            Closed::Broken(why) => f.write_str(why),
        }
    }
}

/// Where a relay's events go, a line each. No payload is in them.
type Log = std::rc::Rc<dyn Fn(&str)>;
