//! A path MTU black hole: segments above a size never arrive, smaller ones do, and nobody tells the
//! sender (RFC 2923, section 2.1). A tunnel's MTU is smaller than the ends believe, and the ICMP
//! messages that would say so are dropped.

use super::DataSeen;
use fullpipe_model::units::{Bytes, Duration};

/// So many of the largest segments were sent, and none arrived.
const LOST_LEAST: u32 = 4;
/// The sender's timer ran out so often. Where the path says what fits, it never does.
const TIMEOUTS_LEAST: u32 = 2;
/// The timestamps option with its padding takes this much from each segment (RFC 7323, appendix A).
const STAMPS_OPTION: u64 = 12;
/// So many full segments are missing at a receiver, and nothing else.
const MISSING_LEAST: u64 = 2;

/// Segments above a size that the path lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMtu {
    /// The largest segments: none of this size arrived.
    pub lost: Bytes,
    /// How many were sent, or are missing.
    pub count: u64,
    /// The largest segment that arrived.
    pub passed: Bytes,
    /// How long the sender waited for its timer; zero where only the receiver's side was seen.
    pub time: Duration,
    /// The receiver's side was seen: the large segments are missing there.
    pub is_missing: bool,
}

impl PathMtu {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        PathMtu::lost(seen).or_else(|| PathMtu::missing(seen))
    }

    /// By what was sent: none of the largest segments arrived, and smaller ones did although they
    /// were sent later.
    fn lost(seen: DataSeen<'_>) -> Option<Self> {
        let (passage, stalls) = (seen.facts().passage, seen.facts().stalls);
        let is_by_size = passage.passed > Bytes::ZERO && passage.passed < passage.largest;
        let passes_later = passage.was_split || passage.is_overtaken;
        let is_so = is_by_size
            && passes_later
            && passage.largest_sent >= LOST_LEAST
            && stalls.timeouts >= TIMEOUTS_LEAST;
        is_so.then(|| PathMtu {
            lost: passage.largest,
            count: passage.largest_sent.into(),
            passed: passage.passed,
            time: stalls.timeout_wait,
            is_missing: false,
        })
    }

    /// By what arrived: segments smaller than both ends allow, and before one of them exactly some
    /// full ones are missing until the end.
    fn missing(seen: DataSeen<'_>) -> Option<Self> {
        let passage = seen.facts().passage;
        let manners = [seen.facts().manner, seen.receiver_facts().manner];
        let [Some(one), Some(other)] = manners.map(|manner| manner.mss) else { return None };
        let has_stamps = manners.iter().all(|manner| manner.timestamps);
        let options = if has_stamps { STAMPS_OPTION } else { 0 };
        let full = u64::from(one.min(other)).saturating_sub(options).max(1);
        let count = passage.hole.get() / full;
        let is_so = passage.largest > Bytes::ZERO
            && passage.largest.get() < full
            && passage.hole.get().is_multiple_of(full)
            && count >= MISSING_LEAST;
        is_so.then(|| PathMtu {
            lost: Bytes::new(full),
            count,
            passed: passage.largest,
            time: Duration::ZERO,
            is_missing: true,
        })
    }
}
