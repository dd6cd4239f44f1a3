//! What a socket shows where packets overtake each other: its shortest round trip is that of one
//! which did, and a sender that takes the others for lost has a small congestion window.

use crate::limit::judge::{Case, Possible};
use crate::limit::{Interval, Limit};
use fullpipe_model::observe::{Sample, TcpInfo};

/// The least fraction of what was delivered at which the kernel saw another order, and the fewest
/// times.
const SEEN_PART: f64 = 0.01;
const SEEN_LEAST: u32 = 5;

/// Whether packets overtook each other while the socket was looked at, again and again.
pub(crate) fn is_overtaken(sender: &[Sample]) -> bool {
    let mut infos = sender.iter().filter_map(|sample| sample.info.as_ref());
    let (Some(first), Some(last)) = (infos.next(), infos.next_back()) else { return false };
    let grown = |of: fn(&TcpInfo) -> Option<u32>| Some(of(last)?.wrapping_sub(of(first)?));
    let (Some(seen), Some(delivered)) =
        (grown(|info| info.reord_seen), grown(|info| info.delivered))
    else {
        return false;
    };
    seen >= SEEN_LEAST && f64::from(seen) >= SEEN_PART * f64::from(delivered)
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
