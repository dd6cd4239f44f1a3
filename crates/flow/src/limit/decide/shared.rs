//! What holds one of several connections that share a path.

use super::{Features, Path, decide_by};
use crate::limit::thresholds::SURELY_A_READER;
use crate::limit::{Limit, Verdict};

/// The verdict, unless it names a link for what passes beside this connection while the
/// connection's own window shows a reader that is slow: it is slow whatever passes beside it.
pub(super) fn or_a_reader(verdict: Verdict, features: &[Features], path: Path) -> Verdict {
    let is_shared = features.iter().any(|f| f.beside > 0);
    if !is_shared || verdict.limited_by().limit != Limit::Link {
        return verdict;
    }
    let mut own = features.to_vec();
    own.iter_mut().for_each(|f| f.beside = 0);
    let mut alone = decide_by(&own, path);
    let is_reader = alone.limited_by().limit == Limit::ReceiverApplication;
    if !is_reader || alone.confidence < SURELY_A_READER {
        return verdict;
    }
    for (interval, seen) in alone.intervals.iter_mut().zip(verdict.intervals) {
        interval.evidence.beside = seen.evidence.beside;
    }
    alone
}
