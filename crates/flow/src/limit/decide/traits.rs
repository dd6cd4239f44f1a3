//! What the trained judge looks at in a capture. No number of these depends on how fast, how far or
//! how long the transfer was.

use super::surroundings::Surroundings;
use super::{Features, Transfer, window_of};
use crate::limit::Limit;
use crate::limit::judge::{
    NONE, Traits, part_by_limit, ratio, variation, variation_between_losses,
};
use crate::limit::percentiles::Sorted;

/// A transfer's intervals, with their lengths in seconds.
struct TimedIntervals<'a> {
    all: &'a [Features],
    lengths: &'a [f64],
    carried: &'a [f64],
    time: f64,
}

impl<'a> TimedIntervals<'a> {
    fn new(all: &'a [Features], lengths: &'a [f64], carried: &'a [f64]) -> Self {
        TimedIntervals { all, lengths, carried, time: lengths.iter().sum() }
    }

    fn count(&self) -> f64 {
        self.all.len().max(1) as f64
    }

    fn sum(&self, of: fn(&Features) -> u64) -> f64 {
        self.all.iter().map(of).sum::<u64>() as f64
    }

    fn each(&self, of: impl Fn(&Features) -> f64) -> impl Iterator<Item = f64> {
        self.all.iter().map(of)
    }

    /// The mean, weighted by time.
    fn mean(&self, of: impl Fn(&Features) -> f64) -> f64 {
        let parts = self.all.iter().zip(self.lengths).map(|(f, length)| of(f) * length);
        parts.sum::<f64>() / self.time.max(1e-9)
    }

    /// The fraction of the intervals for which `is_so` holds.
    fn part(&self, is_so: impl Fn(&Features) -> bool) -> f64 {
        self.all.iter().filter(|f| is_so(f)).count() as f64 / self.count()
    }

    /// The transfer's own rate.
    fn rate(&self) -> f64 {
        ratio(8.0 * self.sum(|f| f.delivered), self.time)
    }

    /// The rate that the path carried.
    fn path_rate(&self) -> f64 {
        ratio(8.0 * self.carried.iter().sum::<f64>(), self.time)
    }
}

impl Transfer<'_> {
    /// The traits of all intervals. `limits` are what the rules decided for each, `inflation` are
    /// their round trips.
    pub(super) fn traits(&self, limits: &[Limit], inflation: &Sorted) -> Traits {
        let Surroundings { lengths, carried, .. } = &self.surroundings;
        let intervals = TimedIntervals::new(self.features, lengths, carried);
        let flights = Sorted::new(intervals.each(|f| f.in_flight_max.as_f64()));
        let times = limits.iter().copied().zip(intervals.lengths.iter().copied());
        let mut traits = Traits::default();
        traits.extend(part_by_limit(times));
        traits.extend(self.of_path(&intervals, inflation));
        traits.extend(self.of_loss(&intervals, inflation));
        traits.extend(self.of_window(&intervals, &flights));
        traits.extend(self.of_writer(&intervals));
        traits.extend(self.of_course(&intervals, &flights));
        traits
    }

    /// The rate that the path carried, and its round trips.
    fn of_path(&self, intervals: &TimedIntervals<'_>, inflation: &Sorted) -> [f64; 10] {
        let rate = intervals.path_rate();
        let wide = self.surroundings.wide_rates();
        let varies = variation(wide);
        let rates = Sorted::new(self.rates.iter().copied());
        let wide = Sorted::new(wide.iter().copied());
        let trains = intervals.each(|f| f.train_max.into());
        let trains = Sorted::new(trains.filter(|train| *train > 0.0));
        let train = trains.percentile(50);
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

    /// What was retransmitted, and when.
    fn of_loss(&self, intervals: &TimedIntervals<'_>, inflation: &Sorted) -> [f64; 7] {
        let again = intervals.sum(|f| f.retransmissions.into());
        let loss = ratio(again, intervals.sum(|f| f.segments.into()));
        let again_in_each: Vec<f64> = intervals.each(|f| f.retransmissions.into()).collect();
        let segment = intervals.all.iter().map(|f| f64::from(f.segment)).fold(1.0, f64::max);
        let before_loss: Vec<Features> = (1..self.features.len())
            .filter(|at| self.features[*at].retransmissions > 0)
            .map(|at| self.features[at - 1])
            .collect();
        let at_loss = self.inflation(&before_loss).percentile(50);
        let passed = intervals.all.iter().zip(intervals.lengths);
        [
            loss,
            intervals.part(|f| f.retransmissions > 0),
            variation(&again_in_each),
            intervals.part(|f| f.recovered),
            ratio(at_loss, inflation.percentile(50)),
            // Constant where random loss alone holds congestion control (Mathis et al.: The
            // macroscopic behavior of the TCP congestion avoidance algorithm, CCR 27, 1997).
            loss.max(0.0).sqrt() * intervals.mean(Features::in_flight_mean) / segment,
            variation_between_losses(
                passed.map(|(f, length)| (f.retransmissions > 0, f.sent as f64, *length)),
            ),
        ]
    }

    /// What was in flight, compared with what the receiver allowed.
    fn of_window(&self, intervals: &TimedIntervals<'_>, flights: &Sorted) -> [f64; 8] {
        let windows = Sorted::new(intervals.each(window_of).filter(|window| *window > 0.0));
        let widest = self.window_peak.last().copied().unwrap_or(0.0);
        let mean_flight = intervals.mean(Features::in_flight_mean);
        let base = self.rtt.map_or(0.0, |rtt| rtt.as_secs_f64());
        [
            intervals.mean(|f| match f.window_max.get() {
                Some(_) => f.in_flight_mean() / window_of(f).max(1.0),
                None => NONE,
            }),
            ratio(flights.percentile(90), windows.percentile(50)),
            intervals.mean(|f| f.part(f.full)),
            ratio(windows.percentile(50), widest),
            ratio(windows.percentile(10), windows.percentile(50)),
            ratio(intervals.sum(|f| f.unread.into()), intervals.sum(|f| f.delivered)),
            ratio(mean_flight, intervals.rate() * base / 8.0),
            ratio(mean_flight, self.plateau),
        ]
    }

    /// When data left, and in segments of which size.
    fn of_writer(&self, intervals: &TimedIntervals<'_>) -> [f64; 6] {
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

    /// How the amount in flight developed over time.
    fn of_course(&self, intervals: &TimedIntervals<'_>, flights: &Sorted) -> [f64; 8] {
        let means = Sorted::new(intervals.each(Features::in_flight_mean));
        let top = flights.percentile(100).max(0.0);
        let segment = intervals.all.iter().map(|f| f64::from(f.segment)).fold(1.0, f64::max);
        let middle = self.features.len() / 2;
        let (early, late) = self.features.split_at(middle);
        let (early_lengths, late_lengths) = intervals.lengths.split_at(middle);
        let (early_carried, late_carried) = intervals.carried.split_at(middle);
        let early = TimedIntervals::new(early, early_lengths, early_carried);
        let late = TimedIntervals::new(late, late_lengths, late_carried);
        let [early_flight, late_flight] =
            [&early, &late].map(|half| half.mean(|f| f.in_flight_max.as_f64()));
        [
            ratio(means.percentile(20), means.percentile(80)),
            ratio(flights.percentile(50), flights.percentile(95)),
            intervals.part(|f| f.in_flight_max.as_f64() >= 0.95 * top),
            (flights.percentile(90) / segment).max(0.25).log2(),
            intervals.count().log2(),
            ratio(late.path_rate(), early.path_rate()),
            ratio(late_flight, early_flight),
            f64::from(u8::from(self.saw_start)),
        ]
    }

    /// Round trips of intervals as multiples of the path's.
    pub(super) fn inflation(&self, of: &[Features]) -> Sorted {
        let base = self.rtt.map_or(0.0, |rtt| rtt.as_secs_f64().max(1e-9));
        let seen = of.iter().filter(|_| base > 0.0).filter_map(|f| f.rtt.get());
        Sorted::new(seen.map(|rtt| rtt.as_secs_f64() / base))
    }
}
