//! The emulated link: real packets of real kernels through [`fullpipe_model::link`], in real time;
//! between two hosts, around a command, or on a device of this machine.
//!
//! Each host's side is a [`Port`]; a thread reads super-packets from one, lets the model decide the
//! fate of every MTU segment in them, and writes the survivors to the other when they are due.
//! Segments of one super-packet that leave close together are written as one super-packet again (a
//! header rewritten, the payload untouched), because a write for each segment would cap the link at
//! a fraction of a gigabit a core.
//!
//! * `super_packet`: where a super-packet can be cut, and the headers of its parts (pure).
//! * `ring`, `memory`: the packets' memory, taken up front. `sizing`, `memory_bound`: how much, and
//!   whether it is there.
//! * `headers`: whose a packet is (pure).
//! * `outgoing`: what leaves: parts of a frame, marked or corrupted (pure).
//! * `lane`, `lanes`: a link, its packets and what is about to leave it; one link for each rule
//!   (pure but for memory).
//! * `direction`: fate and delivery, told the time (pure but for its memory).
//! * `driver`: the threads: clock, waiting, one of them or two. `virtual_time`: the same where time
//!   is virtual.
//! * `driven_direction`: a direction with its ports and orders, as a thread drives it. `control`:
//!   the orders.
//! * `pace`: how busy a thread is (pure). `foresight`: how early to wake, learned (pure).
//! * `tap`: every packet on its way in and out, to capture files. `truth`: every packet and its
//!   fate, to the truth log.
//! * `log_file`: a truth log read back, and in other forms.
//! * `netem`: the kernel's own emulator in place of all this.
//! * `lateness`: how late the emulator itself was. No result is without it. `statistics`, `report`:
//!   all that it did.
//! * `emulator`: both directions together: start, look, change, stop. `options`: how. `error`: why
//!   not.
//! * `words`: a path as a command line and the control socket say it.
//! * `command_link`: any command behind a link, with a gateway, a server or this machine at the
//!   other end.
//!
//! [`Port`]: fullpipe_kernel::port::Port
#![forbid(unsafe_code)]

mod command_link;
mod control;
mod direction;
mod driven_direction;
mod driver;
mod emulator;
mod error;
mod foresight;
mod headers;
mod lane;
mod lanes;
mod lateness;
mod log_file;
mod memory;
mod memory_bound;
mod netem;
mod options;
mod outgoing;
mod pace;
mod report;
mod ring;
mod sizing;
mod statistics;
mod super_packet;
mod tap;
mod truth;
mod virtual_time;
mod words;

pub use command_link::{
    Before, CommandLinkError, Delivery, FarEnd, GatewayCounters, GatewayCounts, NatError, Owed,
    Place, Program, ProgramEvent, RunError, make_folder,
};
pub use direction::Direction;
pub use emulator::Emulator;
pub use error::EmulatorError;
pub use lanes::{OneWay, Towards};
pub use lateness::Lateness;
pub use log_file::{Fates, JsonRecord, LogFile, LogFileError};
pub use netem::{EDGES, NetemLink, NetemLinkError, gso_max_segs, lacks};
pub use options::{CaptureOptions, LogOptions, Options, STREAMS};
pub use report::{DirectionReport, LinkReport};
pub use statistics::{DirectionStatistics, DriverCounters, RuleStatistics, Statistics};
pub use tap::Tap;
pub use words::{Directions, Request, What, Words, WordsError};
