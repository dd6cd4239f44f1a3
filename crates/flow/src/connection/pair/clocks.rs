//! What the clock of one place shows when that of the other shows something else.
//!
//! No packet arrives before it was sent. A packet from A to B says that B's clock is ahead by at
//! most its own two times' difference, one from B to A that it is ahead by at least that. The
//! fastest packets of both directions leave an interval whose width is the shortest round trip
//! between the places; its middle is taken, and half its width is the error. Clocks drift apart by
//! a steady rate: of all rates, the true one leaves the widest interval (V. Paxson, "On Calibrating
//! Measurements of Packet Transit Times", 1998). Where no rate leaves any, a clock was set in
//! between.

use fullpipe_model::units::{Duration, Instant, column};
use serde::Serialize;

/// A packet that passed both places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crossing {
    /// The two clocks' times, in nanoseconds.
    pub a: i64,
    pub b: i64,
    /// It went from A to B.
    pub is_forward: bool,
}

/// How the two clocks are related.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Clocks {
    /// Spans of time between steps of a clock, in order.
    pub pieces: Vec<ClockPiece>,
}

/// A span of time in which both clocks ran steadily.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockPiece {
    /// It begins at this time of A's clock, in nanoseconds.
    #[serde(rename = "from_ns", with = "column::instant")]
    pub from: Instant,
    /// Nanoseconds that B's clock is ahead of A's at that time.
    pub ahead_ns: i64,
    /// Seconds that it gains in each second.
    pub drift: f64,
    /// The most that `ahead_ns` is wrong by; unknown where packets of one direction only passed
    /// both places.
    #[serde(rename = "error_us", with = "column::micros_optional")]
    pub error: Option<Duration>,
    /// The shortest round trip between the places, for the same packets.
    #[serde(rename = "round_trip_us", with = "column::micros_optional")]
    pub round_trip: Option<Duration>,
}

/// Clocks drift by less: a thousandth, where 20 to 100 millionths are usual.
const MOST_DRIFT: f64 = 1e-3;
/// Times are read, and written, to about this.
const RESOLUTION: f64 = 5_000.0;
/// The longest spans of the capture's time of which only the fastest packets are kept.
const BUCKETS: usize = 128;
/// A clock was set where both parts of the time leave an interval wider than the whole does by
/// this factor, and by this time.
const STEP_WIDENS: f64 = 1.2;
const STEP_WIDENS_BY: f64 = 1e6;

/// What a drift is worth at least over the whole capture, or it is none, in nanoseconds, for
/// places with this round trip between them.
fn worth(round_trip: f64) -> f64 {
    round_trip * 5e-3 + 5.0 * RESOLUTION
}

impl ClockPiece {
    /// What B's clock is ahead by when A's shows `a`.
    fn ahead_at(&self, a: i64) -> i64 {
        self.ahead_ns + (self.drift * (a - nanos(self.from)) as f64) as i64
    }
}

impl Clocks {
    /// From packets that passed both places, in the order of A's clock.
    pub(super) fn of(crossings: &[Crossing]) -> Clocks {
        let mut pieces = Vec::new();
        let mut rest = crossings;
        while !rest.is_empty() {
            let (steady, others) = rest.split_at(steady_start(rest));
            pieces.push(fitted(steady));
            rest = others;
        }
        Clocks { pieces }
    }

    /// What A's clock shows when B's shows `b`. Neither goes back: see
    /// [`TapView`](super::TapView).
    pub(super) fn a_of_b(&self, b: i64) -> i64 {
        let begun = |piece: &&ClockPiece| b >= nanos(piece.from) + piece.ahead_ns;
        let piece = self.pieces.iter().rev().find(begun).or(self.pieces.first());
        piece.map_or(b, |piece| b - piece.ahead_at(b - piece.ahead_ns))
    }

    /// The shortest round trip between the places.
    pub fn round_trip(&self) -> Option<Duration> {
        self.pieces.iter().filter_map(|piece| piece.round_trip).min()
    }

    /// What a drift that was taken for none moves a time by at most, in nanoseconds.
    pub(super) fn unsettled(&self) -> i64 {
        worth(self.round_trip().map_or(0.0, |rtt| rtt.as_nanos() as f64)) as i64
    }
}

/// Nanoseconds that can be added to others: until 2116.
pub(super) fn nanos(at: Instant) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX).min(i64::MAX / 2)
}

/// Clocks that are further apart are none: 20 years.
pub(super) const FARTHEST: i64 = 20 * 365 * 86_400 * 1_000_000_000;

/// Bounds for what B's clock is ahead by: nanoseconds after the first packet, and above the
/// difference that the first packet shows, so that a double holds them exactly.
#[derive(Debug, Clone, Default)]
struct Bounds {
    /// By packets from A to B: at most.
    above: Vec<(f64, f64)>,
    /// By packets from B to A: at least.
    below: Vec<(f64, f64)>,
}

impl Bounds {
    /// Of each span of time, only the fastest packets of both directions.
    fn of(crossings: &[Crossing]) -> Bounds {
        let mut bounds = Bounds::default();
        let Some(first) = crossings.first() else { return bounds };
        let (start, difference) = (first.a, first.b - first.a);
        for bucket in crossings.chunks(crossings.len().div_ceil(BUCKETS)) {
            let at = |one: &Crossing| ((one.a - start) as f64, (one.b - one.a - difference) as f64);
            let (forward, back): (Vec<&Crossing>, Vec<&Crossing>) =
                bucket.iter().partition(|one| one.is_forward);
            bounds.above.extend(forward.into_iter().min_by_key(|one| one.b - one.a).map(at));
            bounds.below.extend(back.into_iter().max_by_key(|one| one.b - one.a).map(at));
        }
        bounds
    }

    /// The interval that is left at the first packet's time if B's clock gains `drift`.
    fn interval(&self, drift: f64) -> (f64, f64) {
        let least = self.below.iter().map(|(t, bound)| bound - drift * t);
        let most = self.above.iter().map(|(t, bound)| bound - drift * t);
        (least.fold(f64::NEG_INFINITY, f64::max), most.fold(f64::INFINITY, f64::min))
    }

    fn width(&self, drift: f64) -> f64 {
        let (least, most) = self.interval(drift);
        most - least
    }

    /// The drift that leaves the widest interval; of several, the smallest: a queue that grows
    /// steadily looks like one.
    fn drift(&self) -> f64 {
        if self.above.is_empty() || self.below.is_empty() {
            return 0.0;
        }
        // The width is concave in the drift, so thirds narrow it down.
        let (mut low, mut high) = (-MOST_DRIFT, MOST_DRIFT);
        for _ in 0..60 {
            let third = (high - low) / 3.0;
            if self.width(low + third) < self.width(high - third) {
                low += third;
            } else {
                high -= third;
            }
        }
        let best = f64::midpoint(low, high);
        let widest = self.width(best);
        // A queue that stands in one direction leaves drift free there, and little in the other
        // would decide it: what is not worth half a hundredth of the round trip is none.
        let enough = widest - worth(widest.abs());
        if self.width(0.0) >= enough {
            return 0.0;
        }
        let (mut narrow, mut wide) = (0.0, best);
        for _ in 0..50 {
            let middle = f64::midpoint(narrow, wide);
            if self.width(middle) >= enough { wide = middle } else { narrow = middle }
        }
        wide
    }

    fn widest(&self) -> f64 {
        self.width(self.drift())
    }
}

/// How many of `crossings`, from the first on, passed before a clock was set.
fn steady_start(crossings: &[Crossing]) -> usize {
    let count = crossings.len();
    let whole = Bounds::of(crossings).widest();
    if whole >= -RESOLUTION {
        let (width, at) = widest_parts(crossings);
        let is_set = width > whole * STEP_WIDENS + STEP_WIDENS_BY;
        return if is_set { steady_start(&crossings[..at]) } else { count };
    }
    // No drift explains all of them: how many, from the first on, does one explain?
    let (mut explained, mut too_many) = (1, count);
    while too_many - explained > 1 {
        let middle = usize::midpoint(explained, too_many);
        let is_explained = Bounds::of(&crossings[..middle]).widest() >= -RESOLUTION;
        if is_explained { explained = middle } else { too_many = middle }
    }
    let reach = (explained + explained / 2 + 16).min(count);
    let (width, at) = widest_parts(&crossings[..reach]);
    if width >= -RESOLUTION { at.min(explained) } else { explained }
}

/// Where to part `crossings` so that each part leaves as wide an interval as possible, and the
/// narrower one's width.
fn widest_parts(crossings: &[Crossing]) -> (f64, usize) {
    let count = crossings.len();
    let mut best = (f64::NEG_INFINITY, count);
    let (mut from, mut to) = (0, count);
    // Coarse first, then between the neighbours of the best.
    loop {
        let step = (to - from).div_ceil(32).max(1);
        for at in (from + step..to).step_by(step) {
            let parts = [&crossings[..at], &crossings[at..]];
            let [left, right] = parts.map(|part| Bounds::of(part).widest());
            // A part with one direction only bounds nothing.
            if left.max(right).is_finite() && left.min(right) > best.0 {
                best = (left.min(right), at);
            }
        }
        if step == 1 {
            return best;
        }
        (from, to) = (best.1.saturating_sub(step), (best.1 + step).min(count));
    }
}

fn fitted(crossings: &[Crossing]) -> ClockPiece {
    let bounds = Bounds::of(crossings);
    let drift = bounds.drift();
    let (least, most) = bounds.interval(drift);
    let is_known = least.is_finite() && most.is_finite();
    let ahead = match (least.is_finite(), most.is_finite()) {
        (true, true) => f64::midpoint(least, most),
        (true, false) => least,
        (false, true) => most,
        (false, false) => 0.0,
    };
    let first = crossings.first();
    let start = first.map_or(0, |first| first.a);
    let width = (most - least).max(0.0);
    ClockPiece {
        from: Instant::from_nanos(u64::try_from(start).unwrap_or_default()),
        ahead_ns: first.map_or(0, |first| first.b - first.a) + ahead as i64,
        drift,
        error: is_known.then(|| Duration::from_nanos((width / 2.0) as u64)),
        round_trip: is_known.then(|| Duration::from_nanos(width as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    /// Packets every 5 ms in each direction over a path of `there` and `back` nanoseconds, some of
    /// which queue for up to 30 ms, with B's clock ahead by `ahead` of A's time.
    fn crossings(
        seconds: i64,
        (there, back): (i64, i64),
        ahead: impl Fn(i64) -> i64,
    ) -> Vec<Crossing> {
        let start = 1_700_000_000 * SECOND;
        let of = |number: i64| {
            let queue = if number % 7 == 0 { 0 } else { number * 37 % 11 * 3_000_000 };
            let sent = number * 5_000_000;
            let is_forward = number % 2 == 0;
            let arrived = sent + queue + if is_forward { there } else { back };
            let (a, b) = if is_forward { (sent, arrived) } else { (arrived, sent) };
            Crossing { a: start + a, b: start + b + ahead(b), is_forward }
        };
        (0..seconds * 200).map(of).collect()
    }

    fn clocks(mut crossings: Vec<Crossing>) -> Clocks {
        crossings.sort_by_key(|one| one.a);
        Clocks::of(&crossings)
    }

    #[test]
    fn a_clock_that_was_set_is_found() {
        for (rtt, step) in
            [(40_000_000, 200_000_000), (300_000_000, 200_000_000), (2_000_000, 5 * SECOND)]
        {
            let ahead = |b: i64| if b < 4 * SECOND { 7_000_000 } else { 7_000_000 + step };
            let clocks = clocks(crossings(10, (rtt / 2, rtt / 2), ahead));
            let [first, second] = clocks.pieces[..] else { panic!("{clocks:?}") };
            assert!((first.ahead_ns - 7_000_000).abs() < rtt / 100 + 50_000, "{first:?}");
            assert!((second.ahead_ns - 7_000_000 - step).abs() < rtt / 100 + 50_000, "{second:?}");
            let at = nanos(second.from) - 1_700_000_000 * SECOND - 4 * SECOND;
            assert!(at.abs() < 50_000_000 + rtt, "{at}");
        }
    }

    #[test]
    fn packets_of_one_direction_leave_the_error_unknown() {
        let all = crossings(2, (10_000_000, 10_000_000), |_| 0);
        let clocks = clocks(all.into_iter().filter(|one| one.is_forward).collect());
        let [piece] = clocks.pieces[..] else { panic!("{clocks:?}") };
        assert_eq!((piece.error, piece.ahead_ns), (None, 10_000_000));
        assert!(Clocks::of(&[]).pieces.is_empty());
    }

    proptest! {
        // The law: the error printed is never less than the true one, and half a round trip.
        #[test]
        fn offset_and_drift_are_found(
            ahead in -5 * SECOND..5 * SECOND,
            ppm in -100_i64..100,
            there in 100_000..150_000_000_i64,
            back in 100_000..150_000_000_i64,
        ) {
            let of = |b: i64| ahead + b / 1_000_000 * ppm;
            let clocks = clocks(crossings(20, (there, back), of));
            prop_assert_eq!(clocks.pieces.len(), 1, "{:?}", clocks);
            let piece = clocks.pieces[0];
            let rtt = Duration::from_nanos((there + back) as u64);
            let error = piece.error.unwrap();
            let slack = (there + back) / 100 + 50_000;
            for at in [0, 10 * SECOND, 19 * SECOND] {
                let a = nanos(piece.from) + at;
                let found = piece.ahead_at(a);
                let wrong = (found - of(at)).unsigned_abs();
                prop_assert!(wrong <= error.as_nanos() + slack as u64, "{wrong} {piece:?}");
                prop_assert!((found - of(at) - (there - back) / 2).abs() <= slack, "{piece:?}");
                prop_assert!((clocks.a_of_b(a + found) - a).abs() < 1000);
            }
            let off = piece.round_trip.unwrap().abs_diff(rtt);
            prop_assert!(off.as_nanos() <= slack as u64, "{off} of {rtt}");
        }
    }
}
