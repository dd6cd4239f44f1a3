//! What `fullpipe why` says of a run: three seconds of one socket, which knows nothing of the
//! other.

use super::{INTERVAL, RunVerdict, Sequence, TruthRun, Vantage, answer};
use fullpipe_flow::diagnosis::live::{HostFacts, Observed};
use fullpipe_flow::limit::{PathHint, from_receiver, from_samples};
use fullpipe_model::limit::End;
use fullpipe_model::observe::Sample;
use fullpipe_model::scenario::Cause;
use fullpipe_model::units::{Bytes, Duration, Instant};

/// How long `why` follows a connection unless told otherwise.
const FOLLOWED: Duration = Duration::from_secs(3);

/// Where in a transfer its answers are scored.
const MIDDLE: f64 = 0.5;
/// Where in a transfer lessons are taken.
const FOR_LESSONS: [f64; 3] = [0.25, MIDDLE, 0.75];

/// The answers of both ends, each alone. `sequence` is the run's, if it is one of two causes.
pub fn answers(
    run: &TruthRun,
    sequence: Option<&Sequence>,
    ends: [&[Sample]; 2],
) -> Vec<RunVerdict> {
    let held = held(run.cause, ends[1], sequence);
    held.map_or(Vec::new(), |held| held.answers(run, ends, MIDDLE))
}

/// The answers from which to learn, of several moments of a transfer. A transfer that is over in
/// three seconds teaches as a whole.
pub fn lessons(
    run: &TruthRun,
    sequence: Option<&Sequence>,
    ends: [&[Sample]; 2],
) -> Vec<RunVerdict> {
    let held = held(run.cause, ends[1], sequence).filter(CauseTime::is_long);
    let at =
        |held: CauseTime| FOR_LESSONS.into_iter().flat_map(move |at| held.answers(run, ends, at));
    held.map_or(Vec::new(), |held| at(held).collect())
}

/// The time that the run's cause holds.
#[derive(Clone, Copy)]
struct CauseTime {
    from: Instant,
    to: Instant,
    is_start: bool,
}

impl CauseTime {
    fn is_long(&self) -> bool {
        self.to.since(self.from) > FOLLOWED && !self.is_start
    }

    /// What both ends say at `part` of the time.
    fn answers(self, run: &TruthRun, ends: [&[Sample]; 2], part: f64) -> Vec<RunVerdict> {
        let left = self.to.since(self.from).saturating_sub(FOLLOWED);
        let part = if self.is_start { 0.0 } else { part };
        let from = self.from + Duration::from_secs_f64(left.as_secs_f64() * part);
        between(run, ends, from, self.to.min(from + FOLLOWED))
    }
}

/// What both ends say, followed from `from` to `to`.
fn between(
    run: &TruthRun,
    [sender, receiver]: [&[Sample]; 2],
    from: Instant,
    to: Instant,
) -> Vec<RunVerdict> {
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
        let seen = Observed {
            role,
            samples: &samples,
            other: &[],
            asked: None,
            settings: None,
            host: HostFacts::default(),
        };
        let said = seen.answer()?;
        let answer = answer(run, None, vantage, Some(verdict))?;
        Some(RunVerdict { limit: said.limit, confidence: said.confidence, ..answer })
    };
    ends.into_iter().filter_map(of_end).collect()
}

/// The time that the run's cause holds, or all of a transfer in slow start, whose beginning counts.
fn held(cause: Cause, receiver: &[Sample], sequence: Option<&Sequence>) -> Option<CauseTime> {
    let bytes = |sample: &Sample| sample.info.as_ref().and_then(|info| info.bytes_received);
    let first = receiver.iter().find(|one| bytes(one).is_some_and(|bytes| bytes > Bytes::ZERO))?;
    let all = bytes(receiver.iter().rfind(|one| bytes(one).is_some())?)?;
    let last = receiver.iter().find(|one| bytes(one) == Some(all))?;
    let (mut from, mut to) = (first.at, last.at);
    let turns = sequence.map(|sequence| from + sequence.at.since(sequence.start));
    match (cause, turns) {
        (_, None) => {}
        (Cause::Link, Some(turns)) => to = to.min(turns),
        (_, Some(turns)) => from = turns.min(to),
    }
    Some(CauseTime { from, to, is_start: cause == Cause::SlowStart })
}
