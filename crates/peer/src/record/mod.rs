//! The packets between two hosts, recorded at both ends at the same time.
//!
//! The near end ([`FarRecording::begin`]) asks the daemon at the far end to record, records itself
//! meanwhile, and fetches what the far end has ([`FarRecording::finish`]). The far end is
//! [`RecordService`]. It records headers alone, of TCP between the address that the peer has
//! connected from and the one that it has connected to, and of nobody else's packets; time and size
//! are bounded, and it keeps what it recorded in memory, for as long as the peer is connected.
//!
//! How packets are recorded is the caller's: it passes a [`PacketSource`].

mod far;
mod message;
mod near;

pub use far::{PacketSource, RecordLimits, RecordService, RecordedPackets, RunningRecording};
pub use message::{RecordRequest, RecordResponse, WantedPackets};
pub use near::{FarRecordError, FarRecording};
