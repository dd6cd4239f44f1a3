//! Packets that overtake each other on the path: what is late looks lost, is sent again for
//! nothing, and the congestion window is made smaller for it.

use super::DataSeen;
use crate::limit::{Cause, Limit};

/// Retransmissions that were not needed, because the path reorders packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reordering {
    /// How many segments were sent again although the first copy had arrived.
    pub needless: u64,
    /// How many were sent again in all.
    pub again: u64,
}

impl Reordering {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        let loss = seen.facts().loss;
        let needless = loss.spurious_retransmissions;
        let again = needless.saturating_add(loss.lost_segments);
        let shares = &seen.verdict?.shares;
        let is_held = shares.iter().any(|held| held.limit == Limit::CongestionWindow(Cause::Loss));
        (loss.is_reordering() && is_held).then_some(Reordering { needless, again })
    }
}
