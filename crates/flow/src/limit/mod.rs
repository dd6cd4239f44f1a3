//! What held a transfer, interval by interval.
//!
//! A sender is always waiting for something. Which of six things it is decides what would make the
//! transfer faster:
//!
//! * [`Limit::ReceiveWindow`]: the peer allows no more in flight (RFC 9293 SND.WND), and reads as
//!   fast as data comes;
//! * [`Limit::ReceiverApplication`]: the window closed because the receiving application does not
//!   read;
//! * [`Limit::SendBuffer`]: the kernel may hold no more unacknowledged data (`SO_SNDBUF`), the
//!   application waits;
//! * [`Limit::SenderApplication`]: the application gives nothing to send;
//! * [`Limit::CongestionWindow`]: congestion control allows no more, because it has not grown yet
//!   or because of loss;
//! * [`Limit::Link`]: the path carries no more: more in flight would only stand in a queue.
//!
//! The answer, a [`Verdict`], has the same type whether it comes from a capture
//! ([`crate::Analyzer`]) or from samples of sockets ([`from_samples`]). If the two disagree about
//! one transfer, one of them is wrong. Each [`Interval`] keeps the numbers that decided it and
//! lists what else it could have been.
//!
//! Ideas are from T-RAT (Zhang, Breslau, Paxson, Shenker, SIGCOMM 2002), Siekkinen, Urvoy-Keller,
//! Biersack and En-Najjary (Computer Networks 52, 2008) and the chronographs of the Linux kernel
//! (commit efd901741675).

mod confidence;
mod decide;
mod judge;
mod least;
mod pace;
mod percentiles;
mod policed;
mod proof;
mod receiver;
mod recut;
mod regular;
mod samples;
mod slow_start;
mod thresholds;
pub mod truth;
mod verdict;
mod waited;

pub use confidence::{Coverage, SURE_FROM, Source};
pub use judge::{
    BoostedTrees, CLASSES, LEAF, LIMITS, NODE, POLICER, Reason, Traits, half, pack, softmax,
};
pub use pace::Pace;
pub use policed::Policed;
pub use receiver::from_receiver;
pub(crate) use samples::is_overtaken;
pub use samples::{from_looks, from_means, from_receiver_looks, from_samples};
pub use verdict::{Candidate, Evidence, Interval, Verdict};

pub(crate) use decide::{Features, Path, decide, queue_least};
pub(crate) use least::Least;
pub(crate) use policed::{DropRun, DropRuns, Offered, policed};
pub(crate) use recut::recut;
pub(crate) use regular::{DropPattern, regular};
pub(crate) use waited::{BlockPauses, Clocked, Pause};

pub use fullpipe_model::limit::{Cause, Limit};

use fullpipe_model::limit::Cause as CongestionCause;
use fullpipe_model::units::{Duration, Rate};

/// Where the capture was taken. This decides what "in flight" means: near the receiver, data on its
/// way has not been seen yet, and ACKs are seen before the sender knows of them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CapturePoint {
    /// At the sender of the data: data is stamped as it leaves, ACKs as they arrive.
    SenderEdge,
    /// At the receiver of the data.
    ReceiverEdge,
    /// Not known: derived from the handshake's timing where there is one.
    #[default]
    Unknown,
}

/// What is known of the path from another source. It is used as evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathHint {
    /// Rate of the bottleneck, headers included.
    pub rate: Option<Rate>,
    /// Round-trip time without queues.
    pub rtt: Option<Duration>,
}
