//! The laws: what a path and its hosts allow, as formulas.
//!
//! How to think about it: a TCP sender may have SWND bytes in flight, the least of the receiver's
//! window, the congestion window, and what the send buffer can keep until it is acknowledged. One
//! SWND passes in each round trip, so the rate is SWND / RTT, and the path is full when SWND
//! reaches its bandwidth-delay product. Each file here is one formula of that chain, with the RFC,
//! paper or kernel source it comes from, and says where it no longer holds.
//!
//! Everything is a pure function of typed quantities and total over its whole range: no law panics
//! or overflows.

pub mod bdp;
pub(crate) mod burst;
pub mod cubic;
mod granted;
pub mod kernel_version;
pub mod mathis;
pub mod pftk;
pub mod receive_buffer;
mod refill;
pub mod rfc6349;
pub mod send_buffer;
pub mod slow_start;
pub(crate) mod steady;
pub mod transfer_time;
pub mod window;
pub mod window_scale;
pub mod wire;

pub use granted::GrantedWindow;
pub use kernel_version::KernelVersion;
pub use receive_buffer::{AdvWinScale, ScalingRatio, WindowLaw};
pub use wire::{ETHERNET_HEADER, Framing, IpVersion};
