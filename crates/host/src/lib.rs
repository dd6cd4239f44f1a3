//! The machine in front of the user: its sockets and its settings.
//!
//! * [`watch`]: the host's connections, looked at again and again.
//! * [`why()`]: what limits the busiest of them, each followed for some seconds.
//! * [`Packets`]: what the packets of one of them say, as a second kind of evidence.
//! * [`recording`]: packets, kept in a file while they pass.
//! * [`trigger`]: a condition on connections that ends a recording soon after it held.
//! * [`SocketSampler`]: samples of connections that the caller has itself.
//! * [`Recorder`]: samples of connections that come and go.
//! * [`history`]: what sockets did in the last days, kept within a bound.
//! * [`totals`]: time and bytes by limit, summed by process, control group and port.
//! * [`settings`]: what this machine's settings are, as the laws need them.
//! * [`tune`]: changes settings as a transaction, and puts them back.
//! * [`verify`](mod@verify): shows on live sockets which settings are in force.
//!
//! This room reads the machine; it changes nothing unless it was asked to.
#![forbid(unsafe_code)]

mod follow;
pub mod history;
mod machine;
mod packets;
mod recorder;
pub mod recording;
mod sampler;
pub mod settings;
pub mod totals;
pub mod trigger;
pub mod tune;
pub mod verify;
pub mod watch;
mod why;

pub use packets::{Captured, Packets};
pub use recorder::Recorder;
pub use sampler::SocketSampler;
pub use why::{Followed, Following, Found, WhyOptions, why, why_one};
