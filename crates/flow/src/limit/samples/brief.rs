//! Short transfers, by what their socket says when they are over.
//!
//! The counters of time run in jiffies, so intervals of a few of them say little. The last samples
//! have the size, the least round trip and the rate of delivery, which are all that a slow start
//! depends on.

use super::{SampleSpan, receiver_at};
use crate::limit::judge::SEGMENTS_LEAST;
use crate::limit::slow_start::{FIRST_FLIGHT, SlowStart};
use crate::limit::thresholds::SAVES;
use crate::limit::{Candidate, Cause, Interval, Limit, PathHint};
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// A transfer that takes this much longer than a slow start would waited for something else.
const LONGER: f64 = 2.0;
/// A rate of more than this part of a flight a round trip is the window's.
const A_FLIGHT: f64 = 0.85;
/// A mean round trip of more than so many of the shortest has waited in a queue.
const QUEUED: f64 = 1.5;
/// What one delayed ACK (40 ms) adds to the mean, of which each round trip is an eighth.
const ONE_LATE: Duration = Duration::from_millis(5);
/// Fewer segments do not tell how long one takes.
const FLIGHT_LEAST: f64 = 4.0;
/// Segments of data that one request has.
const REQUEST: u32 = 2;

/// The one interval of a short transfer whose last data was on its way in the last sample, and of
/// which no data was lost. `None` of any other, and where the transfer was over before.
pub(super) fn interval(sender: &[Sample], receiver: &[Sample], hint: PathHint) -> Option<Interval> {
    let from = sender.iter().position(|sample| sent(sample).is_some_and(|sent| sent > 0))?;
    let last = sender.iter().rev().find_map(|sample| sample.info.as_ref())?;
    let done = from
        + sender[from..].iter().position(|sample| {
            sample.info.as_ref().is_some_and(|info| info.bytes_acked == last.bytes_acked)
        })?;
    // What the first sample has sent already, it sent after its request.
    let before = match (from, &sender[from].info) {
        (0, Some(info)) => info.last_data_recv,
        _ => Duration::ZERO,
    };
    let seen = before.saturating_add(sender[done].at.since(sender[from].at));
    let first = sender[from..].iter().filter_map(|sample| sample.info.as_ref());
    let first = first.filter_map(seconds_a_segment_of_first_flight).next_back();
    let Shortening { limit, least } = told(last, first, seen, hint)?;
    let samples = &sender[from.saturating_sub(1)..=done];
    let mut infos = samples.iter().filter_map(|sample| sample.info.as_ref());
    let span = SampleSpan { samples, first: infos.clone().next()?, last: infos.next_back()? };
    Some(Interval {
        start: span.start(),
        // Between two samples it may have begun and ended.
        length: span.length().max(least),
        candidates: vec![Candidate { limit, share: 1.0 }],
        evidence: span.evidence(receiver_at(receiver, &span)),
    })
}

fn sent(sample: &Sample) -> Option<u32> {
    sample.info.as_ref()?.data_segs_out
}

/// What would shorten a transfer most, and how long it takes at least.
struct Shortening {
    limit: Limit,
    least: Duration,
}

/// `first` is how long a segment of the first flight took, `seen` about how long it all took.
fn told(last: &TcpInfo, first: Option<f64>, seen: Duration, hint: PathHint) -> Option<Shortening> {
    let segments = last.data_segs_out?;
    let is_brief = (1..SEGMENTS_LEAST).contains(&u64::from(segments));
    let is_sent = last.notsent_bytes.is_none_or(|left| left == Bytes::ZERO);
    // What a queue had no room for is the link's, too.
    let is_plain = last.total_retrans == 0 || is_queued(last);
    if !(is_brief && is_sent && is_plain && last.data_segs_in? <= REQUEST) {
        return None;
    }
    let rtt = last.min_rtt?.as_secs_f64();
    let each = seconds_a_segment(last, segments, rtt, hint)?;
    // A later flight waits for its sender, too: its window, or its pace.
    let each = first.filter(|_| hint.rate.is_none()).map_or(each, |first| first.min(each));
    let start = SlowStart::new(segments, each * f64::from(segments), rtt);
    let least = start.time + rtt;
    if seen.as_secs_f64() > LONGER * least + super::MIN_INTERVAL_SHORT.as_secs_f64() {
        return None;
    }
    let (by_rate, by_window) = (start.by_rate(), start.by_window());
    let limit = match () {
        // The connection began a round trip before.
        () if by_rate.max(by_window) < SAVES * (least + rtt) => Limit::Unknown,
        () if by_rate >= by_window => Limit::Link,
        () => Limit::CongestionWindow(Cause::SlowStart),
    };
    Some(Shortening { limit, least: Duration::from_secs_f64(least) })
}

/// How long a segment takes to pass, from the rate of delivery. A rate is measured over a round
/// trip at least. Of a single flight that is the one before its first segment arrived; of several,
/// as much as a flight each round trip is no link's, unless a queue stood before it.
fn seconds_a_segment(last: &TcpInfo, segments: u32, rtt: f64, hint: PathHint) -> Option<f64> {
    let arrived = f64::from(segments.checked_sub(last.unacked).filter(|arrived| *arrived > 0)?);
    let rate = hint.rate.or(last.delivery_rate).filter(|rate| *rate > Rate::ZERO)?;
    let measured = last.bytes_acked?.as_f64() * 8.0 / rate.as_f64();
    let a_round_trip = arrived * rtt / measured;
    let passing = match () {
        () if hint.rate.is_some() => measured,
        () if segments <= FIRST_FLIGHT => (measured - rtt).max(0.0),
        () if a_round_trip > A_FLIGHT * f64::from(FIRST_FLIGHT) && !is_queued(last) => 0.0,
        () => measured,
    };
    Some(passing / arrived)
}

/// Whether the mean round trip of its end is so much longer than the shortest that a queue stood
/// before its link.
fn is_queued(last: &TcpInfo) -> bool {
    last.min_rtt.is_some_and(|least| {
        let most = Duration::from_secs_f64(QUEUED * least.as_secs_f64()).saturating_add(ONE_LATE);
        last.rtt > most
    })
}

/// The same of the first flight alone, from when its last acknowledged segment arrived. The rate of
/// delivery then is that of what was acknowledged over a round trip and the time that it took to
/// pass behind the first segment.
fn seconds_a_segment_of_first_flight(info: &TcpInfo) -> Option<f64> {
    let arrived = info.bytes_acked?.as_f64() / info.snd_mss.as_f64().max(1.0);
    if !(FLIGHT_LEAST..=f64::from(FIRST_FLIGHT)).contains(&arrived) {
        return None;
    }
    let rate = info.delivery_rate.filter(|rate| *rate > Rate::ZERO)?;
    let measured = info.bytes_acked?.as_f64() * 8.0 / rate.as_f64();
    Some((measured - info.min_rtt?.as_secs_f64()).max(0.0) / (arrived - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that sent so many segments at once, as its last sample shows it.
    fn over(segments: u32, rtt: Duration, delivery: Rate) -> TcpInfo {
        TcpInfo {
            data_segs_out: Some(segments),
            data_segs_in: Some(1),
            snd_mss: Bytes::new(1448),
            bytes_acked: Some(Bytes::new(u64::from(segments) * 1448)),
            notsent_bytes: Some(Bytes::ZERO),
            min_rtt: Some(rtt),
            delivery_rate: Some(delivery),
            ..TcpInfo::default()
        }
    }

    fn limit(info: &TcpInfo, seen: Duration) -> Option<Limit> {
        told(info, None, seen, PathHint::default()).map(|told| told.limit)
    }

    const START: Option<Limit> = Some(Limit::CongestionWindow(Cause::SlowStart));

    /// By the path's own rate: ten segments take 0.1 to 10 round trips.
    #[test]
    fn a_short_transfer_is_the_links_where_its_bytes_take_long_and_the_starts_where_they_do_not() {
        let rtt = Duration::from_millis(40);
        let mss = 1448;
        let bdp = |segments: u64| Bytes::new(mss * segments).per(rtt).unwrap();
        let at = |segments, rate| limit(&over(segments, rtt, rate), rtt);
        assert_eq!(at(40, bdp(20)), START, "a flight a round trip");
        assert_eq!(at(40, bdp(2)), Some(Limit::Link));
        // All at once: the rate of delivery is that of a flight over a round trip and its passing.
        assert_eq!(at(8, bdp(8)), Some(Limit::Unknown));
        assert_eq!(at(8, bdp(2)), Some(Limit::Link));
    }

    /// A link may happen to carry about a flight each round trip. Then its queue tells.
    #[test]
    fn a_queue_tells_a_link_from_a_window() {
        let rtt = Duration::from_millis(15);
        let rate = Bytes::new(1448 * 9).per(rtt).unwrap();
        let mean = |millis| {
            let mean = Duration::from_millis(millis);
            TcpInfo { rtt: mean, ..over(40, rtt, rate) }
        };
        let told = |millis| limit(&mean(millis), Duration::from_millis(70));
        assert_eq!(told(34), Some(Limit::Link));
        assert_eq!(told(20), START, "one ACK was late");
        let repaired = |millis| TcpInfo { total_retrans: 2, ..mean(millis) };
        assert_eq!(limit(&repaired(34), Duration::from_millis(70)), Some(Limit::Link));
        assert_eq!(limit(&repaired(20), Duration::from_millis(70)), None);
    }

    /// Of two flights the second is paced, or waits for the window; the first tells the path's rate.
    #[test]
    fn the_first_flight_tells_how_fast_the_path_is() {
        let rtt = Duration::from_millis(20);
        let after = Duration::from_millis(21);
        let first = |segments, passed| {
            let info = over(segments, rtt, Bytes::new(u64::from(segments) * 1448).per(passed)?);
            seconds_a_segment_of_first_flight(&info)
        };
        let each = first(10, after).unwrap();
        assert!((each - 1e-3 / 9.0).abs() < 1e-6, "{each}");
        assert_eq!(first(3, after), None, "too few");
        assert_eq!(first(11, after), None, "more than the first flight");
        let paced = over(20, rtt, Bytes::new(1448 * 8).per(rtt).unwrap());
        let told = |first| told(&paced, first, rtt, PathHint::default()).map(|told| told.limit);
        assert_eq!(told(None), Some(Limit::Link));
        assert_eq!(told(Some(each)), START);
    }

    #[test]
    fn what_waited_was_lost_or_is_a_conversation_has_no_such_answer() {
        let rtt = Duration::from_millis(40);
        let rate = Bytes::new(1448 * 20).per(rtt).unwrap();
        let plain = over(40, rtt, rate);
        assert_eq!(limit(&plain, rtt), START);
        assert_eq!(limit(&plain, Duration::from_secs(2)), None, "it paused");
        assert_eq!(limit(&TcpInfo { total_retrans: 1, ..plain }, rtt), None);
        assert_eq!(limit(&TcpInfo { data_segs_in: Some(9), ..plain }, rtt), None);
        assert_eq!(limit(&TcpInfo { notsent_bytes: Some(Bytes::new(9000)), ..plain }, rtt), None);
        assert_eq!(limit(&TcpInfo { unacked: 40, ..plain }, rtt), None, "nothing arrived");
        assert_eq!(limit(&over(0, rtt, rate), rtt), None);
        assert_eq!(limit(&over(5000, rtt, rate), rtt), None);
    }
}
