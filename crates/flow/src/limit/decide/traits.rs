//! What the trained judge looks at in a capture: numbers of a transfer, none of which depends on
//! how fast, how far or how long it was.

use super::{Features, Transfer, WIDE, mean_rate, window_of};
use crate::limit::Limit;
use crate::limit::judge::{
    NONE, Sorted, Traits, part_by_limit, ratio, variation, variation_between_losses,
};

/// A transfer's intervals, and how long each was, in seconds.
struct Intervals<'a> {
    all: &'a [Features],
    lengths: Vec<f64>,
    time: f64,
}

impl<'a> Intervals<'a> {
    fn new(all: &'a [Features]) -> Self {
        let lengths: Vec<f64> = all.iter().map(|f| f.length.as_secs_f64()).collect();
        let time = lengths.iter().sum();
        Intervals { all, lengths, time }
    }

    fn count(&self) -> f64 {
        self.all.len().max(1) as f64
    }

    fn sum(&self, of: fn(&Features) -> u64) -> f64 {
        self.all.iter().map(of).sum::<u64>() as f64
    }

    fn each(&self, of: impl Fn(&Features) -> f64) -> Vec<f64> {
        self.all.iter().map(of).collect()
    }

    /// The mean over time.
    fn mean(&self, of: impl Fn(&Features) -> f64) -> f64 {
        let parts = self.all.iter().zip(&self.lengths).map(|(f, length)| of(f) * length);
        parts.sum::<f64>() / self.time.max(1e-9)
    }

    /// The part of the intervals that are so.
    fn part(&self, is_so: impl Fn(&Features) -> bool) -> f64 {
        self.all.iter().filter(|f| is_so(f)).count() as f64 / self.count()
    }

    fn rate(&self) -> f64 {
        ratio(8.0 * self.sum(|f| f.delivered), self.time)
    }
}

impl Transfer<'_> {
    /// Of all intervals, whose limits by the rules are `limits`.
    pub(super) fn traits(&self, limits: &[Limit]) -> Traits {
        let intervals = Intervals::new(self.features);
        let times = limits.iter().copied().zip(intervals.lengths.iter().copied());
        let mut traits = Traits::default();
        traits.extend(part_by_limit(times));
        traits.extend(self.of_path(&intervals));
        traits.extend(self.of_loss(&intervals));
        traits.extend(self.of_window(&intervals));
        traits.extend(self.of_writer(&intervals));
        traits.extend(self.of_course(&intervals));
        traits
    }

    /// The median of the round trips over the path's, [`NONE`] where none was measured.
    pub(super) fn inflation_median(&self) -> f64 {
        self.inflation(self.features).percentile(50)
    }

    /// What the path carried, and how long it took.
    fn of_path(&self, intervals: &Intervals<'_>) -> [f64; 10] {
        let rate = intervals.rate();
        let wide: Vec<f64> =
            (0..self.features.len()).map(|at| mean_rate(self.features, at, WIDE)).collect();
        let varies = variation(&wide);
        let (rates, wide) = (Sorted::new(self.rates.clone()), Sorted::new(wide));
        let mut trains = intervals.each(|f| f.train_max.into());
        trains.retain(|train| *train > 0.0);
        let trains = Sorted::new(trains);
        let train = trains.percentile(50);
        let inflation = self.inflation(self.features);
        [
            self.capacity.map_or(NONE, |capacity| rate / capacity),
            ratio(rate, rates.percentile(95)),
            ratio(rates.percentile(98), rate),
            ratio(rate, train),
            ratio(trains.percentile(90), train),
            inflation.percentile(50),
            inflation.percentile(10),
            inflation.percentile(90),
            varies,
            ratio(wide.percentile(10), wide.percentile(90)),
        ]
    }

    /// What was sent again, and when.
    fn of_loss(&self, intervals: &Intervals<'_>) -> [f64; 7] {
        let again = intervals.sum(|f| f.retransmissions.into());
        let loss = ratio(again, intervals.sum(|f| f.segments.into()));
        let segment = intervals.all.iter().map(|f| f64::from(f.segment)).fold(1.0, f64::max);
        let before_loss: Vec<Features> = (1..self.features.len())
            .filter(|at| self.features[*at].retransmissions > 0)
            .map(|at| self.features[at - 1])
            .collect();
        let at_loss = self.inflation(&before_loss).percentile(50);
        let passed = intervals.all.iter().zip(&intervals.lengths);
        [
            loss,
            intervals.part(|f| f.retransmissions > 0),
            variation(&intervals.each(|f| f.retransmissions.into())),
            intervals.part(|f| f.recovered),
            ratio(at_loss, self.inflation_median()),
            // Constant where random loss alone holds congestion control (Mathis et al.: The
            // macroscopic behavior of the TCP congestion avoidance algorithm, CCR 27, 1997).
            loss.max(0.0).sqrt() * intervals.mean(Features::in_flight_mean) / segment,
            variation_between_losses(
                passed.map(|(f, length)| (f.retransmissions > 0, f.sent as f64, *length)),
            ),
        ]
    }

    /// What was in flight, beside what the receiver allowed.
    fn of_window(&self, intervals: &Intervals<'_>) -> [f64; 8] {
        let mut windows = intervals.each(window_of);
        windows.retain(|window| *window > 0.0);
        let widest = self.window_peak.last().copied().unwrap_or(0.0);
        let windows = Sorted::new(windows);
        let flights = Sorted::new(intervals.each(|f| f.in_flight_max.as_f64()));
        let part_of_window = |f: &Features| match f.window_max {
            Some(_) => f.in_flight_mean() / window_of(f).max(1.0),
            None => NONE,
        };
        let mean_flight = intervals.mean(Features::in_flight_mean);
        let base = self.rtt.map_or(0.0, |rtt| rtt.as_secs_f64());
        [
            intervals.mean(part_of_window),
            ratio(flights.percentile(90), windows.percentile(50)),
            intervals.mean(|f| f.part(f.full)),
            ratio(windows.percentile(50), widest),
            ratio(windows.percentile(10), windows.percentile(50)),
            ratio(intervals.sum(|f| f.unread.into()), intervals.sum(|f| f.delivered)),
            ratio(mean_flight, intervals.rate() * base / 8.0),
            ratio(mean_flight, self.plateau),
        ]
    }

    /// When data left, and in which pieces.
    fn of_writer(&self, intervals: &Intervals<'_>) -> [f64; 6] {
        let segments = intervals.sum(|f| f.segments.into());
        let fresh = segments - intervals.sum(|f| f.retransmissions.into());
        [
            intervals.mean(|f| f.part(f.idle)),
            intervals.part(|f| f.part(f.idle) > 0.1),
            ratio(intervals.sum(|f| f.unprompted), intervals.sum(|f| f.sent)),
            ratio(intervals.sum(|f| f.short.into()), fresh),
            ratio(intervals.sum(|f| f.acks.into()), segments),
            intervals.sum(|f| f.train_events.into()) / intervals.count(),
        ]
    }

    /// How what was in flight went on over time.
    fn of_course(&self, intervals: &Intervals<'_>) -> [f64; 8] {
        let flights = Sorted::new(intervals.each(|f| f.in_flight_max.as_f64()));
        let means = Sorted::new(intervals.each(Features::in_flight_mean));
        let top = flights.percentile(100).max(0.0);
        let segment = intervals.all.iter().map(|f| f64::from(f.segment)).fold(1.0, f64::max);
        let (early, late) = self.features.split_at(self.features.len() / 2);
        let [early, late] = [early, late].map(Intervals::new);
        let flight = |half: &Intervals<'_>| half.mean(|f| f.in_flight_max.as_f64());
        [
            ratio(means.percentile(20), means.percentile(80)),
            ratio(flights.percentile(50), flights.percentile(95)),
            intervals.part(|f| f.in_flight_max.as_f64() >= 0.95 * top),
            (flights.percentile(90) / segment).max(0.25).log2(),
            intervals.count().log2(),
            ratio(late.rate(), early.rate()),
            ratio(flight(&late), flight(&early)),
            f64::from(u8::from(self.saw_start)),
        ]
    }

    /// Round trips of intervals over the path's.
    fn inflation(&self, of: &[Features]) -> Sorted {
        let base = self.rtt.map_or(0.0, |rtt| rtt.as_secs_f64().max(1e-9));
        let seen = of.iter().filter(|_| base > 0.0).filter_map(|f| f.rtt.get());
        Sorted::new(seen.map(|rtt| rtt.as_secs_f64() / base).collect())
    }
}
