//! What samples of a socket say about the seconds of a run.

use fullpipe_model::law::rfc6349::average_rtt;
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Instant, Rate};

const SECOND: Duration = Duration::from_secs(1);

/// The mean round trip of each second in which the socket had data in flight (RFC 6349 section
/// 4.1.3 takes one value a second).
pub(super) fn rtts(samples: &[Sample]) -> Vec<Duration> {
    let Some(first) = samples.first().map(|sample| sample.at) else { return Vec::new() };
    let mut seconds: Vec<Vec<Duration>> = Vec::new();
    for sample in samples {
        let Some(info) = sample.info.as_ref().filter(|info| info.unacked > 0) else { continue };
        let second = (sample.at.since(first).as_nanos() / SECOND.as_nanos()) as usize;
        // A clock that jumps makes no million of seconds.
        if second > seconds.len() + samples.len() {
            continue;
        }
        if seconds.len() <= second {
            seconds.resize(second + 1, Vec::new());
        }
        seconds[second].push(info.rtt);
    }
    seconds.iter().filter_map(|second| average_rtt(second)).collect()
}

/// The rate of the second half of the time in which `count` grew, all sockets together. They end
/// at about the same time, so what counts is the time in which the last of them grew.
pub(super) fn second_half_rate(
    sockets: &[&[Sample]],
    count: fn(&TcpInfo) -> Option<Bytes>,
) -> Option<Rate> {
    let moments: Vec<Vec<(Instant, Bytes)>> =
        sockets.iter().map(|samples| growing(samples, count)).collect();
    let start = moments.iter().filter_map(|one| one.first()).map(|one| one.0).min()?;
    let end = moments.iter().filter_map(|one| one.last()).map(|one| one.0).max()?;
    let middle = start + Duration::from_nanos(end.since(start).as_nanos() / 2);
    let carried = moments.iter().map(|one| at(one, end).saturating_sub(at(one, middle)));
    let sum = carried.fold(Bytes::ZERO, Bytes::saturating_add);
    sum.per(end.since(middle)).filter(|rate| *rate > Rate::ZERO)
}

/// The moments at which a count was seen, from the last before it grew to the first at its end.
fn growing(samples: &[Sample], count: fn(&TcpInfo) -> Option<Bytes>) -> Vec<(Instant, Bytes)> {
    let seen = samples.iter().filter_map(|sample| Some((sample.at, count(sample.info.as_ref()?)?)));
    let mut moments: Vec<(Instant, Bytes)> = seen.collect();
    let last = moments.last().map_or(Bytes::ZERO, |one| one.1);
    let whole = moments.iter().position(|one| one.1 >= last).map_or(0, |at| at + 1);
    moments.truncate(whole);
    let first = moments.first().map_or(Bytes::ZERO, |one| one.1);
    let still = moments.iter().rposition(|one| one.1 <= first).unwrap_or(0);
    moments.split_off(still)
}

/// The count at a moment, on a straight line between the two around it.
fn at(moments: &[(Instant, Bytes)], moment: Instant) -> Bytes {
    let after = moments.partition_point(|one| one.0 <= moment);
    match (after.checked_sub(1).and_then(|before| moments.get(before)), moments.get(after)) {
        (Some(before), Some(next)) => {
            let whole = next.0.since(before.0).as_secs_f64().max(1e-9);
            let part = moment.since(before.0).as_secs_f64() / whole;
            let grown = next.1.saturating_sub(before.1).as_f64();
            before.1.saturating_add(Bytes::from_f64(grown * part))
        }
        (Some(last), None) => last.1,
        (None, first) => first.map_or(Bytes::ZERO, |one| one.1),
    }
}
