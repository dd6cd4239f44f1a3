//! From a kernel's reason to a limit, where that is certain.

use crate::limit::{Cause, Limit};
use crate::sample::{Phase, Reason, Wait};

/// A link that is busy for at least this part of a round trip carries all that it can: what is
/// missing is less than a packet in fifty.
const LINK_FULL: f64 = 0.98;
/// One that is idle for a tenth of it is not what the sender waits for; in between, both may be.
const LINK_FREE: f64 = 0.9;
/// Data that waits for most of the time has a slow reader.
const READER_SLOW: f64 = 0.5;
/// Data that hardly waits has a reader that is fast enough.
const READER_FAST: f64 = 0.1;

/// What is known of an interval besides the sender's reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Facts {
    /// Whether the last data has been sent: its application is done, not slow.
    pub is_over: bool,
    /// For what part of it the link was sending.
    pub link_busy: Option<f64>,
    /// For what part of it data waited for its reader.
    pub unread: Option<f64>,
    /// Whether a policer is all that drops packets.
    pub is_policed: bool,
    /// Whether congestion control follows a model of the path (BBR), not its losses.
    pub has_model: bool,
}

/// What held the sender while it waited so.
pub(super) fn limit(wait: &Wait, facts: &Facts) -> Limit {
    use Reason as R;
    let is_full = facts.link_busy.is_some_and(|busy| busy >= LINK_FULL);
    match wait.reason {
        R::Other | R::Tail => Limit::Unknown,
        R::Application | R::PacedApplication if facts.is_over => Limit::Unknown,
        // A full link and an idle application: a burst that is still on its way, or a tie.
        R::Application | R::PacedApplication if is_full => Limit::Unknown,
        R::Application | R::PacedApplication => Limit::SenderApplication,
        _ if is_full => Limit::Link,
        _ if facts.link_busy.is_none_or(|busy| busy > LINK_FREE) => Limit::Unknown,
        R::SmallQueue => Limit::Unknown,
        R::CongestionWindow => congestion_window(wait.phase, facts),
        R::Pacing if wait.phase == Phase::Growing => Limit::CongestionWindow(Cause::SlowStart),
        R::Pacing => Limit::Unknown,
        // During a repair the buffers hold what cannot leave them: loss, or the buffer's size?
        _ if wait.phase == Phase::Repair => Limit::Unknown,
        R::SendBuffer | R::PacedSendBuffer => Limit::SendBuffer,
        R::ReceiveWindow | R::PacedReceiveWindow => receive_window(facts.unread),
    }
}

fn congestion_window(phase: Phase, facts: &Facts) -> Limit {
    match phase {
        // A slow reader also delays acknowledgements, on which the window waits.
        _ if facts.unread.is_some_and(|unread| unread >= READER_SLOW) => Limit::Unknown,
        Phase::Growing => Limit::CongestionWindow(Cause::SlowStart),
        _ if facts.has_model => Limit::Unknown,
        // HyStart (RFC 9406) has ended slow start; the window grows for the first time still.
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
