//! A reader that never waits for data, and leaves more and more of it.

use crate::limit::{Limit, Verdict};
use fullpipe_model::observe::Sample;
use fullpipe_model::units::Bytes;

/// Data waits for its reader in this part of the samples or more.
const WAITS: f64 = 0.8;
/// In the end this part of what came is unread: a reader that takes what comes would have been done
/// a tenth sooner.
const UNREAD_IN_THE_END: f64 = 1.0 / 11.0;
/// The window was shut for this part of the time or more: before that the buffer takes all that
/// comes, and nobody on the wire waits.
const SHUT: f64 = UNREAD_IN_THE_END;
/// And it is so many times what the reader takes at once. One that waits for whole blocks leaves no
/// more than one.
const READS_LEFT: f64 = 2.0;
/// Fewer samples say little.
const SAMPLES_LEAST: usize = 24;
/// A sample may find so many segments that the reader is about to take.
const SEGMENTS_ON_THE_WAY: u64 = 2;

/// The verdict, unless the receiving application always has data that it has not read, and reads
/// slower than it comes: then the path keeps nobody waiting, even while it is full.
pub(super) fn overrule(verdict: Verdict, receiver: &[Sample]) -> Verdict {
    let shut = verdict.shares.iter().find(|one| one.limit == Limit::ReceiverApplication);
    let is_shut = shut.is_some_and(|one| one.share >= SHUT);
    let is_named = verdict.limited_by().limit == Limit::ReceiverApplication;
    if is_named || !is_shut || !falls_behind(receiver) {
        return verdict;
    }
    verdict.proven_to_be(Limit::ReceiverApplication)
}

/// Whether the receiver's application has data to read and falls behind, by the samples of its
/// socket from the first data to the last.
fn falls_behind(receiver: &[Sample]) -> bool {
    let came: Vec<(&Sample, Bytes)> = receiver
        .iter()
        .filter_map(|sample| Some((sample, sample.info.as_ref()?.bytes_received?)))
        .collect();
    let all = came.last().map_or(Bytes::ZERO, |(_, bytes)| *bytes);
    let from = came.iter().position(|(_, bytes)| *bytes > Bytes::ZERO).unwrap_or(came.len());
    let until = came.iter().position(|(_, bytes)| *bytes == all).unwrap_or(0);
    let Some(coming) = came.get(from..=until).filter(|coming| coming.len() >= SAMPLES_LEAST) else {
        return false;
    };
    // At first the reader waits for data, however slow it is.
    let coming = &coming[coming.len() / 4..];
    let waits = coming.iter().filter(|(sample, _)| {
        let segment = sample.info.as_ref().map_or(Bytes::ZERO, |info| info.rcv_mss);
        sample.rqueue.get() > SEGMENTS_ON_THE_WAY * segment.get()
    });
    let left = coming.last().map_or(0.0, |(sample, _)| sample.rqueue.as_f64());
    let taken = coming.windows(2).map(|pair| pair[0].0.rqueue.saturating_sub(pair[1].0.rqueue));
    let taken = taken.max().unwrap_or(Bytes::ZERO);
    waits.count() as f64 >= WAITS * coming.len() as f64
        && left >= UNREAD_IN_THE_END * all.as_f64()
        && left >= READS_LEFT * taken.as_f64()
}
