//! Maps a kernel's reason to a limit, where that is certain.

use crate::limit::{Cause, Limit};
use fullpipe_model::observe::{Phase, Reason, Wait};

/// A link that is busy for at least this fraction of a round trip carries all that it can: less
/// than one packet in fifty is missing.
const LINK_FULL: f64 = 0.98;
/// The sender does not wait for a link that is idle for at least a tenth of it. In between, it may
/// or may not.
const LINK_FREE: f64 = 0.9;
/// If data waits for at least this fraction of the time, its reader is slow.
const READER_SLOW: f64 = 0.5;
/// If data waits for at most this fraction of the time, its reader is fast enough.
const READER_FAST: f64 = 0.1;

/// What is known of an interval besides the sender's reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Facts {
    /// Whether the last data has been sent: its application is done, not slow.
    pub is_over: bool,
    /// The fraction of it in which the link was sending.
    pub link_busy: Option<f64>,
    /// The fraction of it in which data waited for its reader.
    pub unread: Option<f64>,
    /// Whether only a policer drops packets.
    pub is_policed: bool,
    /// Whether congestion control follows a model of the path (BBR), not its losses.
    pub has_model: bool,
}

/// What held the sender during this wait.
pub(super) fn limit(wait: &Wait, facts: &Facts) -> Limit {
    use Reason as R;
    let is_full = facts.link_busy.is_some_and(|busy| busy >= LINK_FULL);
    match wait.reason {
        R::Other | R::Tail => Limit::Unknown,
        R::Application | R::PacedApplication if facts.is_over => Limit::Unknown,
        // The link is full and the application idle: either a burst is still on its way, or it is a
        // tie.
        R::Application | R::PacedApplication if is_full => Limit::Unknown,
        R::Application | R::PacedApplication => Limit::SenderApplication,
        _ if is_full => Limit::Link,
        _ if facts.link_busy.is_none_or(|busy| busy > LINK_FREE) => Limit::Unknown,
        R::SmallQueue => Limit::Unknown,
        R::CongestionWindow => congestion_window(wait.phase, facts),
        R::Pacing if wait.phase == Phase::Growing => Limit::CongestionWindow(Cause::SlowStart),
        R::Pacing => Limit::Unknown,
        // During a repair the buffers hold data that cannot leave them. The limit may be the loss
        // or the buffer's size.
        _ if wait.phase == Phase::Repair => Limit::Unknown,
        R::SendBuffer | R::PacedSendBuffer => Limit::SendBuffer,
        R::ReceiveWindow | R::PacedReceiveWindow => receive_window(facts.unread),
    }
}

fn congestion_window(phase: Phase, facts: &Facts) -> Limit {
    match phase {
        // A slow reader also delays the acknowledgements for which the window waits.
        _ if facts.unread.is_some_and(|unread| unread >= READER_SLOW) => Limit::Unknown,
        Phase::Growing => Limit::CongestionWindow(Cause::SlowStart),
        _ if facts.has_model => Limit::Unknown,
        // HyStart (RFC 9406) has ended slow start, but the window still grows for the first time.
        Phase::Settled => Limit::CongestionWindow(Cause::SlowStart),
        Phase::AfterLoss | Phase::Repair if facts.is_policed => Limit::Link,
        Phase::AfterLoss | Phase::Repair => Limit::CongestionWindow(Cause::Loss),
    }
}

fn receive_window(unread: Option<f64>) -> Limit {
    match unread {
        Some(unread) if unread >= READER_SLOW => Limit::ReceiverApplication,
        Some(unread) if unread <= READER_FAST => Limit::ReceiveWindow,
        _ => Limit::Unknown,
    }
}
