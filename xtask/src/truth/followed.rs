//! What `fullpipe why` says of a run: three seconds of one socket, which knows nothing of the
//! other.

use super::Run;
use super::judge::{Answer, INTERVAL, Sequence, Vantage, answer};
use fullpipe_flow::limit::{PathHint, from_receiver, from_samples};
use fullpipe_flow::live::Observed;
use fullpipe_flow::sample::Sample;
use fullpipe_model::limit::End;
use fullpipe_model::scenario::Cause;
use fullpipe_model::units::{Bytes, Duration, Instant};

/// How long `why` follows a connection unless told otherwise.
const FOLLOWED: Duration = Duration::from_secs(3);

/// The answers of both ends, each alone. `sequence` is the run's, if it is one of two causes.
pub fn answers(
    run: &Run,
    sequence: Option<&Sequence>,
    [sender, receiver]: [&[Sample]; 2],
) -> Vec<Answer> {
    let split = sequence.map(|sequence| sequence.at.since(sequence.start));
    let Some((from, to)) = moment(run.cause, receiver, split) else { return Vec::new() };
    let followed = |samples: &[Sample]| -> Vec<Sample> {
        let is_in = |sample: &&Sample| sample.at >= from && sample.at <= to;
        samples.iter().filter(is_in).cloned().collect()
    };
    let ends = [
        (Vantage::SenderFollowed, End::Sender, followed(sender)),
        (Vantage::ReceiverFollowed, End::Receiver, followed(receiver)),
    ];
    let of_end = |(vantage, role, samples): (Vantage, End, Vec<Sample>)| {
        // The verdict tells the time that is right; the answer is what `why` prints.
        let verdict = match role {
            End::Sender => from_samples(&samples, &[], INTERVAL, PathHint::default()),
            End::Receiver => from_receiver(&samples, INTERVAL, PathHint::default()),
        };
        let seen = Observed { role, samples: &samples, other: &[], asked: None, settings: None };
        let said = seen.answer()?;
        let answer = answer(run, None, vantage, Some(verdict))?;
        Some(Answer { limit: said.limit, confidence: said.confidence, ..answer })
    };
    ends.into_iter().filter_map(of_end).collect()
}

/// Three seconds in the middle of what the run's cause holds, or all of a shorter transfer, or the
/// beginning of one in slow start. `split` is the time at which the second of two causes begins.
fn moment(
    cause: Cause,
    receiver: &[Sample],
    split: Option<Duration>,
) -> Option<(Instant, Instant)> {
    let bytes = |sample: &Sample| sample.info.as_ref().and_then(|info| info.bytes_received);
    let first = receiver.iter().find(|one| bytes(one).is_some_and(|bytes| bytes > Bytes::ZERO))?;
    let all = bytes(receiver.iter().rfind(|one| bytes(one).is_some())?)?;
    let last = receiver.iter().find(|one| bytes(one) == Some(all))?;
    let (mut from, mut to) = (first.at, last.at);
    let turns = split.map(|split| from + split);
    match (cause, turns) {
        (_, None) => {}
        (Cause::Link, Some(turns)) => to = to.min(turns),
        (_, Some(turns)) => from = turns.min(to),
    }
    let left = to.since(from).saturating_sub(FOLLOWED);
    let skipped = if cause == Cause::SlowStart { Duration::ZERO } else { left };
    let from = from + Duration::from_nanos(skipped.as_nanos() / 2);
    Some((from, to.min(from + FOLLOWED)))
}
