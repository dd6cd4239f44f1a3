//! Evidence in, findings out: captures and socket samples become facts about connections, and facts
//! become an answer to what held each transfer, for which share of its time, and what would change
//! it.
//!
//! Everything here is pure: no files, sockets, clocks or threads. Bytes and times are arguments.
//!
//! * [`capture`]: packets from the bytes of pcap and pcapng files, and such files from packets; the
//!   TCP segment in a packet ([`capture::segment`]); a capture as another place would have taken it
//!   ([`capture::recapture`]).
//! * [`Analyzer`]: packets in, [`diagnosis::DiagnosedConnection`]s out, streaming. [`Intake`] is
//!   its first half, for several threads.
//! * [`connection`]: the facts of a connection, and which connections are meant; what two captures
//!   of it say together ([`connection::pair`]).
//! * [`limit`]: what held the sender, interval by interval, from a capture or from samples; and as
//!   its own kernel knew it, which verdicts are held to ([`limit::truth`]).
//! * [`account`]: where all the time of a connection went.
//! * [`diagnosis`]: the subject, the evidence, what held it: from a capture, from samples, or of a
//!   live connection as its host sees it ([`diagnosis::live`]).
//! * [`finding`]: what that means, with numbers: of a transfer, of a test between two hosts, of
//!   what the lab says of a measured path; and the sentences ([`finding::words`]).
//! * [`schema`]: the columns of everything that is printed or stored.
//! * [`trace`]: the points of a connection's graphs.
// The example of the crate's page compiles.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![forbid(unsafe_code)]

pub mod account;
mod analyzer;
pub mod capture;
mod config;
pub mod connection;
pub mod diagnosis;
pub mod finding;
mod frames;
mod intake;
mod language;
pub mod limit;
pub mod schema;
pub mod trace;
mod version;
mod windows;

pub use analyzer::{Analysis, Analyzer, Ended, OpenAtEnd, PacketFacts};
pub use config::{Config, Counts};
pub use frames::{FlowControl, FlowWindow, GrantedLines, HeldSpan, KeyLog, KeyLogError};
pub use intake::{Arrival, Headers, HostPairSum, Intake, Sorted, length_behind_link};
pub use language::Language;
pub use windows::{KNOWN_WINDOWS, KnownWindow, OwnWindows, WindowsError};
