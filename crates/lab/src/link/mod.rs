//! The emulated link between two hosts: real packets of real kernels through [`fullpipe_model::link`], in real time.
//!
//! Each host's side is a [`Port`]; one thread a direction reads super-packets from one, lets the model decide the fate of
//! every MTU segment in them, and writes the survivors to the other when they are due. Segments of one super-packet that
//! leave close together are written as one super-packet again (a header rewritten, the payload untouched), because a
//! write for each segment would cap the link at a fraction of a gigabit a core.
//!
//! * [`super_packet`]: where a super-packet can be cut, and the headers of its parts (pure).
//! * [`ring`]: the packets' memory, taken up front.
//! * [`direction`]: fate and delivery, told the time (pure but for its memory).
//! * [`driver`]: the thread: ports, clock, waiting.
//! * [`virtual_time`]: the same thread where time is virtual.
//! * [`tap`]: every packet on its way in and out, to capture files.
//! * [`lateness`]: how late the emulator itself was. No result is without it.
//!
//! [`Port`]: fullpipe_kernel::port::Port

pub mod direction;
pub mod driver;
pub mod lateness;
pub mod ring;
pub mod super_packet;
pub mod tap;
pub mod virtual_time;

pub use driver::{Emulator, EmulatorError, LinkReport, Options};
pub use lateness::Lateness;
