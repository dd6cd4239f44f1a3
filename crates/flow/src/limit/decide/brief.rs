//! Short transfers: a page, a picture, an answer.
//!
//! A few flights have no shape that rules or statistics could judge, and their last segment, which
//! is rarely full, would decide. What they show is counted: how many flights there were, each of
//! which waited a round trip for the one before it, and for how long the bytes of flights passed
//! one after the other. Whichever took longer is what a remedy would shorten.

use super::{Features, Path, Transfer, window_of};
use crate::limit::slow_start::SlowStart;
use crate::limit::thresholds::{HALF_OF_RATE, MOST, PAUSED, SAVES};
use crate::limit::{Cause, Coverage, Interval, Limit, Source, Verdict};
use fullpipe_model::units::{Duration, Rate};

/// The limit of congestion control that has not grown yet.
const START: Limit = Limit::CongestionWindow(Cause::SlowStart);
/// Bytes that followed others tell how long a segment takes where they are at least this part of
/// one; headers are not counted.
const LAST_LEAST: f64 = 0.25;
/// A byte that waits for more segments than this stood in a queue, and not in its own burst of two.
const QUEUED: f64 = 2.0;

/// A short transfer, by its flights.
pub(super) struct Brief<'a> {
    features: &'a [Features],
    /// How many flights it took.
    flights: u32,
    /// How many of them answered data of the other end.
    turns: u32,
    /// How many segments do not fill the MSS.
    pieces: u32,
    is_at_sender: bool,
    rtt: Option<Duration>,
    /// Bits a second that the path is known to carry.
    rate: Option<f64>,
}

impl<'a> Brief<'a> {
    pub(super) fn new(transfer: &Transfer<'a>, path: Path) -> Self {
        let features = transfer.features;
        let flights = features.iter().map(|f| u32::from(f.flights)).sum::<u32>();
        // What came at once is one flight, whatever it answered.
        let turns = path.turns.min(flights.saturating_sub(1));
        let Path { pieces, is_at_sender, .. } = path;
        let (rtt, rate) = (transfer.rtt, transfer.hint);
        Brief { features, flights, turns, pieces, is_at_sender, rtt, rate }
    }

    /// The verdict, with the rate at which the path passes what its queue had no room for.
    pub(super) fn verdict(&self, intervals: Vec<Interval>, coverage: Coverage) -> Verdict {
        let mut verdict = Verdict::new(Source::Capture, self.judge(intervals));
        let limit = verdict.limited_by().limit;
        verdict.flights = (limit == Limit::Unknown).then_some(self.flights);
        let verdict = verdict.with_coverage(coverage).of_brief();
        match self.overflows().filter(|_| limit == Limit::Link && !self.is_busy()) {
            Some(rate) => verdict.after_drops(rate),
            None => verdict,
        }
    }

    /// How fast bytes passed one after the other before anything was repaired.
    fn rate_before_drops(&self) -> Option<Rate> {
        let before = self.features.iter().take_while(|f| f.retransmissions == 0 && !f.recovered);
        let (passing, followed) = before.fold((0.0, 0.0), |(passing, bytes), f| {
            let of_first = f64::from(f.segment) * f64::from(f.flights);
            let followed = (f.delivered as f64 - of_first).max(0.0);
            (passing + f64::from(f.passing), bytes + followed)
        });
        (passing > 0.0 && followed > 0.0)
            .then(|| Rate::from_bits_per_sec_f64(followed * 8.0 / passing))
    }

    /// The intervals with the answer of the whole, where no direct evidence speaks for another.
    fn judge(&self, intervals: Vec<Interval>) -> Vec<Interval> {
        let answer = self.answer();
        let window_grows = self.window_grows();
        let is_own = self.is_busy() || self.overflows().is_some();
        let told = intervals.into_iter().enumerate().map(|(at, mut interval)| {
            let limit = interval.limit();
            let is_seen = match limit {
                Limit::CongestionWindow(Cause::Loss) => !is_own,
                Limit::ReceiverApplication => true,
                Limit::ReceiveWindow => !window_grows,
                _ => false,
            };
            if !is_seen {
                let is_pause = self.is_pause(at);
                interval.turn(limit, if is_pause { Limit::SenderApplication } else { answer });
            }
            // Where nothing held it, nothing else may have either.
            if interval.limit() == Limit::Unknown {
                interval.candidates.truncate(1);
            }
            interval
        });
        told.collect()
    }

    /// What held most of the transfer; unknown where all of it left at once and passed at once.
    fn answer(&self) -> Limit {
        let all = self.time();
        let rtt = self.rtt.map_or(0.0, Duration::as_secs_f64);
        let (passing, own) = (self.time_of_bytes(), self.own_pace());
        // The ACK of a flight comes a round trip after it; meanwhile its bytes pass.
        let waits = f64::from(self.flights.saturating_sub(1 + self.turns));
        let of_flights = passing / f64::from(self.flights.max(1));
        let waiting = (waits * (rtt - of_flights)).max(0.0);
        let turns = f64::from(self.turns) * rtt;
        // Twice the rate saves half of the time that the bytes take, as far as the next flight does
        // not wait for its ACK then; a window of the transfer's size saves each wait for an ACK.
        let segments = self.features.iter().map(|f| f.segments).sum();
        let start = SlowStart::new(segments, passing, rtt);
        let is_start = self.turns == 0 && start.waits + 1 == self.flights;
        let (by_rate, waiting) = if is_start {
            (start.by_rate(), start.by_window())
        } else {
            (HALF_OF_RATE * passing, waiting)
        };
        // The connection began a round trip before.
        let whole = all + rtt;
        // What neither flights nor their bytes explain, the applications took between two flights.
        // Nobody waits for the ACK of the last one, which may be delayed, and what was repaired
        // waited for that.
        let explained = rtt + waiting + self.passed();
        let is_plain = !self.has_repairs();
        let rest = if self.flights > 1 && is_plain {
            (self.until_last() - explained).max(0.0)
        } else {
            0.0
        };
        let by_application = turns.max(own).max(rest);
        let by_path = by_rate.max(waiting);
        match () {
            () if by_path.max(by_application) < SAVES * whole => Limit::Unknown,
            () if by_application > by_path => Limit::SenderApplication,
            () if self.is_written_in_pieces() => Limit::SenderApplication,
            () if by_rate >= waiting || self.overflows().is_some() => Limit::Link,
            () => START,
        }
    }

    /// Whether nothing was in flight for a while, although more was to come. Where a segment takes
    /// longer to pass than a round trip, the next of its flight seems to come after a pause.
    fn is_pause(&self, at: usize) -> bool {
        let f = &self.features[at];
        let next = self.features[at + 1..].iter().find(|later| later.sent > 0);
        f.part(f.idle) > PAUSED && next.is_some_and(|next| next.flights > 0 || next.recovered)
    }

    fn has_repairs(&self) -> bool {
        self.features.iter().any(|f| f.retransmissions > 0 || f.recovered)
    }

    /// Whether the path is busy most of the time. What it drops then, its queue had no room for.
    fn is_busy(&self) -> bool {
        self.time_of_bytes() > MOST * self.time()
    }

    /// The rate at which a flight took its time to pass, where what dropped was a queue that had no
    /// room for it. More at once would only drop more.
    fn overflows(&self) -> Option<Rate> {
        let rtt = self.rtt.map_or(f64::INFINITY, Duration::as_secs_f64);
        let most = self.features.iter().map(|f| f.in_flight_max).max().unwrap_or_default();
        let rate = self.rate_before_drops().filter(|_| self.has_repairs())?;
        (rate.time_for(most)?.as_secs_f64() >= SAVES * rtt).then_some(rate)
    }

    /// The seconds from the first data to the end of the last.
    fn until_last(&self) -> f64 {
        let last = self.features.iter().rposition(|f| f.sent > 0).unwrap_or(0);
        let seconds = self.features.iter().enumerate().map(|(at, f)| {
            let idle = if at >= last { f.part(f.idle) } else { 0.0 };
            f.length.as_secs_f64() * (1.0 - idle)
        });
        seconds.sum()
    }

    /// The seconds in which something was in flight.
    fn time(&self) -> f64 {
        self.features.iter().map(|f| f.length.as_secs_f64() * (1.0 - f.part(f.idle))).sum()
    }

    /// How long the path took for the bytes, one after the other.
    fn time_of_bytes(&self) -> f64 {
        if let Some(rate) = self.rate {
            return self.delivered() * 8.0 / rate;
        }
        let passed = self.passed() - self.own_pace();
        // What was sent again came a round trip after what it followed.
        let before = self.rate_before_drops().filter(|_| self.has_repairs());
        before.map_or(passed, |rate| passed.min(self.delivered() * 8.0 / rate.as_f64()))
    }

    /// For how long the sender itself spaced what passed evenly. What waited for others on the way,
    /// the path spaced: later segments left when an ACK came back through the same queue.
    fn own_pace(&self) -> f64 {
        if self.queue().is_some_and(|queued| queued > QUEUED) {
            return 0.0;
        }
        (self.passed() - self.delayed()).max(0.0)
    }

    /// How many segments a byte waited for on its way, on average.
    fn queue(&self) -> Option<f64> {
        let segments: u32 = self.features.iter().map(|f| f.segments).sum();
        let each = self.passed() / f64::from(segments.max(1));
        self.delay().filter(|_| each > 0.0).map(|delay| delay / each)
    }

    fn delivered(&self) -> f64 {
        self.features.iter().map(|f| f.delivered).sum::<u64>() as f64
    }

    /// At most how long flights can have taken to pass, by how much later than the first their
    /// bytes were acknowledged: half of it on average, if they left at once. Only the sender's own
    /// capture shows when they left.
    fn delayed(&self) -> f64 {
        self.delay().map_or(f64::INFINITY, |delay| 2.0 * f64::from(self.flights) * delay)
    }

    /// How much longer than a round trip a byte was under way, on average.
    fn delay(&self) -> Option<f64> {
        let rtt = self.rtt.filter(|_| self.is_at_sender)?;
        let in_flight: f64 = self.features.iter().map(|f| f.in_flight_time).sum();
        let each = in_flight / self.delivered().max(1.0) / 1e9;
        Some((each - rtt.as_secs_f64()).max(0.0))
    }

    /// How long it took for bytes to pass one after the other, whoever spaced them.
    fn passed(&self) -> f64 {
        let passed: f64 = self.features.iter().map(|f| f64::from(f.passing)).sum();
        // The first segment of a flight takes its time, too, and follows none. The last of all may
        // be a small one.
        let segment = self.features.iter().map(|f| f.segment).max().unwrap_or(0);
        let first = f64::from(segment) * f64::from(self.flights);
        let followed = (self.delivered() - first).max(LAST_LEAST * f64::from(segment));
        passed * (1.0 + first.min(self.delivered()) / followed)
    }

    /// Whether the application wrote it bit by bit: most segments are not full, or there are
    /// more flights than a congestion window needs that grows with each.
    fn is_written_in_pieces(&self) -> bool {
        let segments: u32 = self.features.iter().map(|f| f.segments).sum();
        2 * self.pieces > segments
            || f64::from(segments) < fewest_segments(self.flights - self.turns)
    }

    /// Whether the receiver's window only had not grown yet.
    fn window_grows(&self) -> bool {
        let mut windows = self.features.iter().map(window_of).filter(|window| *window > 0.0);
        windows.next().zip(windows.next_back()).is_some_and(|(first, last)| last > first)
    }
}

/// How many segments so many flights carry at least while the congestion window grows. It begins
/// with one segment, and an ACK for each second one lets each flight be half again as large as the
/// one before (RFC 5681 section 3.1): the sum of a geometric series.
fn fewest_segments(flights: u32) -> f64 {
    const GROWTH: f64 = 1.5;
    (GROWTH.powi(flights.min(100) as i32) - 1.0) / (GROWTH - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{Clocked, Path, decide};
    use fullpipe_model::units::Bytes;
    use proptest::prelude::*;

    const SEGMENT: u16 = 1448;

    /// Flights of so many segments, one a round trip, that passed at `rate` bits a second.
    fn flights(sizes: &[u32], rtt: Duration, rate: f64) -> Vec<Features> {
        let flight = |(at, &size): (usize, &u32)| {
            let bytes = u64::from(size * u32::from(SEGMENT));
            // What takes longer than a round trip to pass holds the next flight back.
            let passes = Duration::from_secs_f64(bytes as f64 * 8.0 / rate);
            let is_last = at + 1 == sizes.len();
            Features {
                length: if is_last { rtt.saturating_add(passes) } else { rtt.max(passes) },
                sent: bytes,
                delivered: bytes,
                segments: size,
                segment: SEGMENT,
                in_flight_max: Bytes::new(bytes),
                in_flight_time: bytes as f64
                    * (rtt.as_nanos() as f64 + passes.as_nanos() as f64 / 2.0),
                passing: (passes.as_secs_f64() * f64::from(size - 1) / f64::from(size)) as f32,
                flights: 1,
                ..<_>::default()
            }
        };
        sizes.iter().enumerate().map(flight).collect()
    }

    fn judged(features: &[Features], rtt: Duration, is_at_sender: bool) -> Limit {
        decide(features, Path::whole(Some(rtt), is_at_sender), Clocked::default())
            .limited_by()
            .limit
    }

    proptest! {
        /// A shape has one answer, however fast and far it is.
        #[test]
        fn the_answer_depends_on_no_scale(
            rtt_us in 1_000_u64..300_000,
            bdp in 0.5_f64..1000.0,
            sizes in prop::sample::select(vec![vec![10], vec![10, 20], vec![3, 6, 7], vec![2, 3, 5, 8, 12]]),
            is_at_sender: bool,
        ) {
            let rtt = Duration::from_micros(rtt_us);
            // `bdp` segments pass in a round trip.
            let rate = bdp * f64::from(SEGMENT) * 8.0 / rtt.as_secs_f64();
            let limit = judged(&flights(&sizes, rtt, rate), rtt, is_at_sender);
            let again = judged(
                &flights(&sizes, rtt.saturating_mul(7), rate / 7.0), rtt.saturating_mul(7), is_at_sender,
            );
            prop_assert_eq!(limit, again);
            let all: u32 = sizes.iter().sum();
            let passing = f64::from(all) / bdp;
            if passing < 0.1 {
                let is_one = sizes.len() == 1;
                prop_assert_eq!(limit, if is_one { Limit::Unknown } else { START });
            } else if passing > 2.0 * sizes.len() as f64 {
                prop_assert_eq!(limit, Limit::Link);
            }
        }
    }

    #[test]
    fn writes_that_fill_no_segments_and_flights_that_do_not_grow_are_the_applications() {
        let rtt = Duration::from_millis(40);
        let growing = flights(&[3, 6, 7], rtt, 1e9);
        let with = |pieces| {
            decide(&growing, Path { pieces, ..Path::whole(Some(rtt), true) }, Clocked::default())
                .limited_by()
                .limit
        };
        assert_eq!(with(3), START, "the end of each write");
        assert_eq!(with(9), Limit::SenderApplication);
        assert_eq!(judged(&flights(&[1; 8], rtt, 1e9), rtt, false), Limit::SenderApplication);
        assert_eq!(judged(&flights(&[1, 1], rtt, 1e9), rtt, false), Limit::SenderApplication);
        assert_eq!(judged(&flights(&[1, 2, 3, 4], rtt, 1e9), rtt, false), START);
    }

    #[test]
    fn a_conversation_is_no_slow_start() {
        let rtt = Duration::from_millis(40);
        let with = |turns, sizes: &[u32]| {
            let features = flights(sizes, rtt, 1e9);
            decide(&features, Path { turns, ..Path::whole(Some(rtt), true) }, Clocked::default())
                .limited_by()
                .limit
        };
        assert_eq!(with(3, &[2, 2, 2, 2]), Limit::SenderApplication);
        assert_eq!(with(0, &[2, 10, 20]), START);
        assert_eq!(with(3, &[4]), Limit::Unknown, "at once");
    }

    /// A drop costs a round trip, and more at once would drop more. On a path that passes flights at
    /// once, it says nothing of the link.
    #[test]
    fn what_a_short_queue_drops_from_a_flight_is_the_links() {
        let rtt = Duration::from_millis(150);
        let with_repairs = |rate: f64, repairs| {
            let mut features = flights(&[10, 11], rtt, rate);
            features[1].retransmissions = repairs;
            judged(&features, rtt, true)
        };
        assert_eq!(with_repairs(4.6e6, 0), START);
        assert_eq!(with_repairs(4.6e6, 3), Limit::Link);
        assert_ne!(with_repairs(1e9, 3), Limit::Link);
    }

    /// Full segments that leave evenly, and of which none is delayed: no link spaced them.
    #[test]
    fn what_the_sender_spaced_itself_is_no_links() {
        let (rtt, rate) = (Duration::from_millis(20), 3e6);
        let mut paced = flights(&[40], rtt, rate);
        paced[0].in_flight_time = paced[0].delivered as f64 * rtt.as_nanos() as f64;
        assert_eq!(judged(&paced, rtt, true), Limit::SenderApplication);
        assert_eq!(judged(&flights(&[40], rtt, rate), rtt, true), Limit::Link, "sent at once");
        // Ten at once, and one or two for each ACK: a queue of ten stands to the end.
        let mut clocked = flights(&[40], rtt, rate);
        let each = clocked[0].passing / 39.0;
        let delayed = rtt.saturating_add(Duration::from_secs_f64(f64::from(each) * 8.0));
        clocked[0].in_flight_time = clocked[0].delivered as f64 * delayed.as_nanos() as f64;
        assert_eq!(judged(&clocked, rtt, true), Limit::Link, "sent as ACKs came");
    }

    /// Jumbo frames on a slow link, seen at the receiver: each seems to be acknowledged before the
    /// next leaves.
    #[test]
    fn segments_that_take_longer_than_a_round_trip_are_no_pauses() {
        let each = Features {
            length: Duration::from_millis(10),
            idle: Duration::from_millis(6).as_nanos(),
            sent: 8948,
            delivered: 8948,
            segments: 1,
            segment: 8948,
            in_flight_max: Bytes::new(8948),
            passing: 0.01,
            ..<_>::default()
        };
        let rtt = Duration::from_millis(4);
        let first = Features { flights: 1, passing: 0.0, ..each };
        let one_flight = [first, each, each, each];
        assert_eq!(judged(&one_flight, rtt, false), Limit::Link);
        let four = [first, first, first, first];
        assert_eq!(judged(&four, rtt, false), Limit::SenderApplication);
    }

    #[test]
    fn what_is_seen_directly_stays() {
        let rtt = Duration::from_millis(40);
        let pause = Duration::from_millis(400);
        let mut paused = flights(&[3, 6], rtt, 1e9);
        paused[0].length = pause;
        paused[0].idle = pause.as_nanos() * 9 / 10;
        assert_eq!(judged(&paused, rtt, true), Limit::SenderApplication);
        let mut lost = flights(&[3, 6], rtt, 1e9);
        lost[1].retransmissions = 1;
        lost[1].length = pause;
        assert_eq!(judged(&lost, rtt, true), Limit::CongestionWindow(Cause::Loss));
    }
}
