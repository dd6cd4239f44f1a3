//! The emulated link: carries real packets of real kernels through [`fullpipe_model::link`], in
//! real time; between two hosts, around a command, or on a device of this machine.
//!
//! Each host's side is a [`Port`]. A thread reads super-packets from one, lets the model decide the
//! fate of every MTU segment in them, and writes the survivors to the other when they are due.
//! Segments of one super-packet that leave close together are written as one super-packet again
//! (with a rewritten header and an untouched payload), because a write for each segment would limit
//! the link to a fraction of a gigabit per core.
//!
//! * `super_packet`: where a super-packet can be cut, and the headers of its parts (pure).
//! * `ring`, `memory`: the memory of the packets, allocated up front. `sizing`, `memory_bound`: how
//!   much it takes, and whether there is enough.
//! * `headers`: the flow of a packet (pure).
//! * `outgoing`: outgoing packets: parts of a frame, marked or corrupted (pure).
//! * `lane`, `lanes`: a link with its packets and next departures; one link for each rule (pure
//!   except for memory).
//! * `direction`: fate and delivery in one direction, with the time as an argument (pure except for
//!   memory).
//! * `driver`: the threads: clock, waiting, one of them or two. `virtual_time`: the same in virtual
//!   time.
//! * `driven_direction`: a direction with its ports and orders, as a thread drives it. `control`:
//!   the orders.
//! * `pace`: how busy a thread is (pure). `foresight`: how early to wake up, learned (pure).
//! * `tap`: writes every packet on its way in and out to capture files. `truth`: writes every
//!   packet and its fate to the truth log.
//! * `log_file`: reads a truth log and converts it.
//! * `netem`: the kernel's own emulator instead of all this. `ends`: the two namespaces that a link
//!   joins. `carrier`: either of the two kinds of link between them.
//! * `lateness`: how late the emulator was; part of every result. `statistics`, `report`:
//!   everything that it did.
//! * `emulator`: both directions together: start, statistics, change, stop. `options`: its options.
//!   `error`: its errors.
//! * `words`: a path as the command line and the control socket write it.
//! * `command_link`: any command behind a link, with a gateway, a server or this machine at the
//!   other end.
//!
//! [`Port`]: fullpipe_kernel::network::port::Port
#![forbid(unsafe_code)]

mod carrier;
mod command_link;
mod control;
mod direction;
mod driven_direction;
mod driver;
mod emulator;
mod ends;
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
mod spares;
mod statistics;
mod super_packet;
mod tap;
mod truth;
mod virtual_time;
mod words;

pub use carrier::{Carrier, Edges};
pub use command_link::{
    CommandLink, CommandLinkError, Delivery, FarEnd, GatewayCounters, GatewayCounts,
    MachineNetwork, NatError, PendingData, Program, ProgramEvent, READY_WITHIN, RunError,
    make_folder,
};
pub use direction::Direction;
pub use emulator::Emulator;
pub use ends::{Junction, LinkEnd, LinkEnds};
pub use error::{CarrierError, EmulatorError};
pub use lanes::{OneWay, Towards};
pub use lateness::Lateness;
pub use log_file::{Fates, JsonRecord, LogFile, LogFileError};
pub use netem::{EDGES, NetemLink, NetemLinkError, lacks};
pub use options::{CaptureOptions, EDGE_STREAMS, LinkOptions, LogOptions};
pub use report::{DirectionReport, LinkReport};
pub use statistics::{DirectionStatistics, DriverCounters, RuleStatistics, Statistics};
pub use tap::Tap;
pub use words::{Directions, Request, Scope, Words, WordsError};
