//! Evidence in, findings out: captures and socket samples become facts about connections, and facts
//! become an answer to what held each transfer, for which share of its time, and what would change
//! it.
//!
//! Everything here is pure: no files, sockets, clocks or threads. Bytes and times are arguments.
//!
//! * [`capture`]: packets from the bytes of pcap and pcapng files, and the bytes of pcap files from
//!   packets.
//! * [`recapture`]: a capture as a host, a mirror port or a short snap length would have taken it.
//! * [`filter`]: which connections are meant.
//! * [`segment`]: the TCP segment in a packet.
//! * [`Analyzer`]: packets in, [`diagnosis::DiagnosedConnection`]s out, streaming. [`Intake`] is
//!   its first half, for several threads.
//! * [`limit`]: what held the sender, interval by interval, from a capture or from samples.
//! * [`account`]: where all the time of a connection went.
//! * [`diagnosis`]: the subject, the evidence, what held it: from a capture or from samples.
//! * [`live`]: a live connection as its host sees it.
//! * [`schema`]: the columns of everything that is printed or stored.
//! * [`finding`]: what that means, with numbers.
//! * [`words`]: the sentences of what is found.
//! * [`path_test`]: a test between two hosts that both run this program.
//! * [`proof`]: what the lab says of a measured path.
//! * [`trace`]: the points of a connection's graphs.
//! * [`truth`]: what limited it as its own kernel knew it, which verdicts are held to.
#![forbid(unsafe_code)]

pub mod account;
mod analyzer;
pub mod capture;
mod config;
pub mod connection;
pub mod diagnosis;
pub mod filter;
pub mod finding;
mod intake;
pub mod limit;
pub mod live;
pub mod path_test;
pub mod proof;
pub mod recapture;
pub mod schema;
pub mod segment;
pub mod trace;
pub mod truth;
mod version;
pub mod words;

pub use analyzer::{Analysis, Analyzer, Ended, OpenAtEnd, PacketFacts};
pub use config::{Config, Counts};
pub use intake::{Arrival, Headers, Intake, Sorted, length_behind_link};
