//! Worlds that nobody drew for a cause. What limits one is found by intervention: each limit that
//! it may have is lifted alone, and the transfer runs again.

use super::Truth;
use super::runs::{FoundRuns, PAYLOAD, TruthRun, Wanted, is_of, place, read, right, run_missing};
use fullpipe_model::scenario::{Cause, World, world};
use std::path::Path;

/// Lifting a limit gives something if the transfer is faster by at least this fraction.
const GAIN_MIN: f64 = 0.1;
/// What gives at least this fraction of the best gain is a right answer, too.
const OF_THE_BEST: f64 = 0.5;
/// A link that carries this fraction of what it can is the limit where nothing gives. What carries
/// more than it can is no link: the transfer passed from a policer's bucket.
const BUSY: std::ops::RangeInclusive<f64> = 0.8..=1.05;

/// Runs what is missing of the set, and returns it. What has no answer is in
/// [`FoundRuns::unbound`].
pub fn all(options: &Truth) -> anyhow::Result<FoundRuns> {
    let set = options.runs.join(format!("worlds-{}", options.seed));
    let worlds: Vec<World> = options.numbers().map(|index| world(options.seed, index)).collect();
    let mut failed = Vec::new();
    if !options.no_run {
        let wanted: Vec<Wanted> = worlds.iter().flat_map(wanted).collect();
        failed = run_missing(options, &set, &wanted)?;
    }
    let mut found = FoundRuns { failed, ..FoundRuns::default() };
    for world in &worlds {
        let runs: Option<Vec<TruthRun>> =
            wanted(world).map(|one| there(options, &set, one)).collect();
        let Some((mut run, lifted)) = runs.and_then(split) else { continue };
        let gains: Vec<(Cause, f64)> =
            lifted.iter().map(|other| (other.cause, gain(&run, other))).collect();
        let Some((cause, causes)) = answers(&gains, is_busy(&run)) else {
            found.unbound.push(run.name);
            continue;
        };
        run.right = causes.iter().copied().map(right).collect();
        run.right.dedup();
        (run.cause, run.causes, run.gains) = (cause, causes, gains);
        found.done.push(run);
    }
    Ok(found)
}

/// The world as it is, then with each of its limits lifted.
fn wanted(world: &World) -> impl Iterator<Item = Wanted> + '_ {
    let own = Wanted {
        name: world.name.clone(),
        cause: Cause::Link,
        also: None,
        text: world.text.clone(),
        is_relaxed: false,
    };
    let lifted = world.lifted.iter().map(|(cause, text)| Wanted {
        name: world.lifted_name(*cause),
        cause: *cause,
        also: None,
        text: text.clone(),
        is_relaxed: true,
    });
    std::iter::once(own).chain(lifted)
}

/// The run, if there is one.
fn there(options: &Truth, set: &Path, one: Wanted) -> Option<TruthRun> {
    let place = place(set, &one);
    is_of(&place, &one, options).then(|| read(one, &place).ok())?
}

fn split(mut runs: Vec<TruthRun>) -> Option<(TruthRun, Vec<TruthRun>)> {
    if runs.is_empty() {
        return None;
    }
    let lifted = runs.split_off(1);
    runs.pop().map(|own| (own, lifted))
}

/// The fraction by which the transfer is faster, for who waits for it and on the wire, whichever is
/// less: an application that reads slowly limits nothing while its buffer takes all that comes, and
/// of a small file the round trips before its first byte are the larger part.
fn gain(run: &TruthRun, lifted: &TruthRun) -> f64 {
    let more = |rate: fn(&TruthRun) -> f64| {
        let gain = rate(lifted) / rate(run) - 1.0;
        if gain.is_finite() { gain } else { 0.0 }
    };
    more(waited_for).min(more(on_the_wire))
}

fn number(run: &TruthRun, key: &str) -> f64 {
    run.row[key].as_f64().unwrap_or_default()
}

/// Bits a second of payload, over the time from the first packet on.
fn waited_for(run: &TruthRun) -> f64 {
    number(run, "body_bytes") * 8e6 / number(run, "total_us")
}

/// Bits a second of whole frames, over the connection's time.
fn on_the_wire(run: &TruthRun) -> f64 {
    number(run, "frames_bps")
}

fn is_busy(run: &TruthRun) -> bool {
    BUSY.contains(&(waited_for(run) / (PAYLOAD * number(run, "rate_nominal_bps"))))
}

/// The cause whose removal gives most, and every cause that is a right answer: what gives a tenth,
/// and half of the best gain. Where nothing does, a busy link is the answer.
fn answers(gains: &[(Cause, f64)], is_busy: bool) -> Option<(Cause, Vec<Cause>)> {
    let (cause, best) = gains.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1))?;
    if best < GAIN_MIN {
        return is_busy.then(|| (Cause::Link, vec![Cause::Link]));
    }
    let enough = (OF_THE_BEST * best).max(GAIN_MIN);
    let give = gains.iter().filter(|(_, gain)| *gain >= enough);
    Some((cause, give.map(|(cause, _)| *cause).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_half_of_the_best_is_right_and_a_busy_link_where_nothing_gives() {
        let gains = [(Cause::Link, 0.2), (Cause::SendBuffer, 0.5), (Cause::ReceiveWindow, 0.3)];
        let (cause, causes) = answers(&gains, false).unwrap();
        assert_eq!(cause, Cause::SendBuffer);
        assert_eq!(causes, [Cause::SendBuffer, Cause::ReceiveWindow]);
        let nothing = [(Cause::Link, 0.05), (Cause::SendBuffer, 0.0)];
        assert_eq!(answers(&nothing, false), None);
        assert_eq!(answers(&nothing, true), Some((Cause::Link, vec![Cause::Link])));
    }
}
