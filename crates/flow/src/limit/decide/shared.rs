//! What holds one of several connections that share a path.

use super::{Features, Path, decide_by};
use crate::limit::thresholds::SURELY_THE_RECEIVER;
use crate::limit::{Clocked, Limit, Verdict};

/// The verdict, unless it names a link for what passes beside this connection while the
/// connection's own window is full or closed: it has its part of the link by that, and a larger
/// window or a faster reader would have a larger one.
pub(super) fn or_its_receiver(
    verdict: Verdict,
    features: &[Features],
    path: Path,
    clocked: Clocked,
) -> Verdict {
    let is_shared = features.iter().any(|f| f.beside > 0);
    if !is_shared || verdict.limited_by().limit != Limit::Link {
        return verdict;
    }
    let mut own = features.to_vec();
    own.iter_mut().for_each(|f| f.beside = 0);
    let mut alone = decide_by(&own, path, clocked);
    let named = alone.limited_by().limit;
    let is_receiver = matches!(named, Limit::ReceiveWindow | Limit::ReceiverApplication);
    if !is_receiver || alone.confidence < SURELY_THE_RECEIVER {
        return verdict;
    }
    for (interval, seen) in alone.intervals.iter_mut().zip(verdict.intervals) {
        interval.evidence.beside = seen.evidence.beside;
    }
    alone
}
