//! The emulated link between two hosts: real packets of real kernels through [`fullpipe_model::link`], in real time.
//!
//! Each host's side is a [`Port`]; a thread reads super-packets from one, lets the model decide the fate of
//! every MTU segment in them, and writes the survivors to the other when they are due. Segments of one super-packet that
//! leave close together are written as one super-packet again (a header rewritten, the payload untouched), because a
//! write for each segment would cap the link at a fraction of a gigabit a core.
//!
//! * [`super_packet`]: where a super-packet can be cut, and the headers of its parts (pure).
//! * [`ring`], [`memory`]: the packets' memory, taken up front.
//! * [`headers`]: whose a packet is (pure).
//! * [`outgoing`]: what leaves: parts of a frame, marked or corrupted (pure).
//! * [`lane`], [`lanes`]: a link, its packets and what is about to leave it; one link for each rule (pure but for memory).
//! * [`direction`]: fate and delivery, told the time (pure but for its memory).
//! * [`driver`]: the threads: clock, waiting, one of them or two.
//! * `way`: a direction with its ports and orders, as a thread drives it.
//! * `pace`: how busy a thread is (pure).
//! * `foresight`: how early to wake, learned (pure).
//! * [`virtual_time`]: the same thread where time is virtual.
//! * [`tap`]: every packet on its way in and out, to capture files.
//! * [`truth`]: every packet and its fate, to the truth log.
//! * [`log_file`]: a truth log read back, and in other forms.
//! * [`netem`]: the kernel's own emulator in place of all this.
//! * [`lateness`]: how late the emulator itself was. No result is without it.
//! * [`emulator`]: both directions together: start, look, change, stop.
//! * [`words`]: a path as a command line and the control socket say it.
//!
//! [`Port`]: fullpipe_kernel::port::Port

mod control;
pub mod direction;
pub mod driver;
pub mod emulator;
mod foresight;
pub mod headers;
pub mod lane;
pub mod lanes;
pub mod lateness;
pub mod log_file;
pub mod memory;
pub mod netem;
pub mod outgoing;
mod pace;
pub mod ring;
mod sizing;
pub mod statistics;
pub mod super_packet;
pub mod tap;
pub mod truth;
pub mod virtual_time;
mod way;
pub mod words;

pub use emulator::{
    CaptureOptions, DirectionReport, Emulator, EmulatorError, LinkReport, LogOptions, Options, STREAMS,
};
pub use lateness::Lateness;
pub use statistics::{DirectionStatistics, RuleStatistics, Statistics};
