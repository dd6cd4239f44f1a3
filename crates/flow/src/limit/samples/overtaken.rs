//! What a socket shows where packets overtake each other: its shortest round trip is that of one
//! which did, and a sender that takes the others for lost has a small congestion window.

use crate::limit::judge::{Case, Possible};
use crate::limit::verdict::Interval;
use fullpipe_model::limit::Limit;
use fullpipe_model::observe::Sample;

/// The least fraction of what was delivered at which the kernel saw another order, and the fewest
/// times.
const SEEN_PART: f64 = 0.01;
const SEEN_LEAST: u32 = 5;

/// Whether packets overtook each other while the socket was looked at, again and again.
pub(crate) fn is_overtaken(sender: &[Sample]) -> bool {
    let mut infos = sender.iter().filter_map(|sample| sample.info.as_ref());
    let (Some(first), Some(last)) = (infos.next(), infos.next_back()) else { return false };
    let seen = grown(last.reord_seen, first.reord_seen);
    let delivered = grown(last.delivered, first.delivered);
    seen.zip(delivered).is_some_and(|(seen, delivered)| {
        seen >= SEEN_LEAST && f64::from(seen) >= SEEN_PART * f64::from(delivered)
    })
}

/// What a counter of the kernel's gained.
fn grown(last: Option<u32>, first: Option<u32>) -> Option<u32> {
    Some(last?.wrapping_sub(first?))
}

/// The same samples, with the least smoothed round trip in place of the shortest.
pub(super) fn in_order(sender: &[Sample]) -> Vec<Sample> {
    let infos = sender.iter().filter_map(|sample| sample.info.as_ref());
    let least = infos.map(|info| info.rtt).min();
    let mut all = sender.to_vec();
    for info in all.iter_mut().filter_map(|sample| sample.info.as_mut()) {
        info.min_rtt = info.min_rtt.max(least);
    }
    all
}

/// The question for the judge, to whom such a transfer looks like that of a full link: it is one
/// only where a queue stood for half of the intervals.
pub(super) fn needs_queue(case: Case, intervals: &[Interval]) -> Case {
    let queued = intervals.iter().filter(|one| one.limit() == Limit::Link).count();
    let link = 2 * queued >= intervals.len();
    Case { possible: Possible { link, ..case.possible }, ..case }
}
