//! What several rules ask of the intervals around each one. It is computed once for all intervals,
//! and only if a rule asks for it.

use super::{Features, nth};
use crate::limit::percentiles::{around, value};
use crate::limit::thresholds::{AROUND, NEAR, PLATEAU_SHARE, PLATEAU_WIDTH, WIDE};
use std::cell::OnceCell;
use std::ops::Range;

/// What intervals count, summed up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// New payload in bytes, and that part of it that no ACK prompted.
    pub sent: u64,
    pub unprompted: u64,
    /// Segments that were not full.
    pub short: u64,
    /// Segments of new payload.
    pub fresh: u64,
}

/// The intervals of a transfer, and what was asked about their surroundings so far.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    features: &'a [Features],
    /// The length of each interval in seconds.
    pub lengths: Vec<f64>,
    /// The bytes that the path carried in each, for all connections of the two hosts.
    pub carried: Vec<f64>,
    /// The counts of all intervals before each one, and last of all intervals.
    before: OnceCell<Vec<Counts>>,
    wide: OnceCell<Vec<f64>>,
    flatness: OnceCell<Vec<f64>>,
    trains: OnceCell<Vec<f64>>,
}

impl<'a> Surroundings<'a> {
    pub fn new(features: &'a [Features]) -> Self {
        Surroundings {
            features,
            carried: features.iter().map(|f| (f.delivered + f.beside) as f64).collect(),
            lengths: features.iter().map(|f| f.length.as_secs_f64()).collect(),
            before: OnceCell::new(),
            wide: OnceCell::new(),
            flatness: OnceCell::new(),
            trains: OnceCell::new(),
        }
    }

    /// The rate at which the path carried, in bits per second, over an interval and `around`
    /// intervals before and after it.
    pub fn mean_rate(&self, at: usize, around: usize) -> f64 {
        let range = self.around(at, around);
        self.rate(self.carried[range.clone()].iter().sum(), range)
    }

    /// The rate of this connection alone.
    pub fn own_rate(&self, at: usize, around: usize) -> f64 {
        let range = self.around(at, around);
        let bytes: u64 = self.features[range.clone()].iter().map(|f| f.delivered).sum();
        self.rate(bytes as f64, range)
    }

    fn rate(&self, bytes: f64, range: Range<usize>) -> f64 {
        let time: f64 = self.lengths[range].iter().sum();
        if time > 0.0 { bytes * 8.0 / time } else { 0.0 }
    }

    fn around(&self, at: usize, around: usize) -> Range<usize> {
        at.saturating_sub(around)..(at + around + 1).min(self.features.len())
    }

    /// The rate around each interval, to see it through the noise of repairs.
    pub fn wide_rates(&self) -> &[f64] {
        self.wide
            .get_or_init(|| (0..self.features.len()).map(|at| self.mean_rate(at, WIDE)).collect())
    }

    /// The rate to which most intervals return, in a transfer that lost something in most of them.
    pub fn rate_plateau(&self) -> Option<f64> {
        let features = self.features;
        let lossy = (0..features.len()).filter(|at| {
            let near = &features[at.saturating_sub(WIDE)..(at + WIDE + 1).min(features.len())];
            near.iter().any(|f| f.retransmissions > 0)
        });
        if features.len() < 8 * WIDE || lossy.count() * 4 < features.len() * 3 {
            return None;
        }
        let rates = self.wide_rates();
        let middle = nth(&mut rates.to_vec(), rates.len() * 6 / 10);
        let within =
            rates.iter().filter(|rate| (**rate - middle).abs() <= PLATEAU_WIDTH * middle).count();
        (within as f64 >= PLATEAU_SHARE * rates.len() as f64).then_some(middle)
    }

    /// The counts of the [`NEAR`] intervals before and after this one, and of itself.
    pub fn counts(&self, at: usize) -> Counts {
        let before = self.before.get_or_init(|| {
            let mut sum = Counts::default();
            let mut before = vec![sum];
            before.extend(self.features.iter().map(|f| {
                sum.sent += f.sent;
                sum.unprompted += f.unprompted;
                sum.short += u64::from(f.short);
                sum.fresh += u64::from(f.segments.saturating_sub(f.retransmissions));
                sum
            }));
            before
        });
        let Range { start, end } = self.near(at);
        let (before, all) = (before[start], before[end]);
        Counts {
            sent: all.sent - before.sent,
            unprompted: all.unprompted - before.unprompted,
            short: all.short - before.short,
            fresh: all.fresh - before.fresh,
        }
    }

    /// The intervals from [`NEAR`] before this one to [`NEAR`] after it.
    pub fn near(&self, at: usize) -> Range<usize> {
        at.saturating_sub(NEAR)..(at + NEAR + 1).min(self.features.len())
    }

    /// How steady the amount in flight is in the [`AROUND`] intervals before and after this one:
    /// the 20th percentile of its means, divided by the 80th.
    pub fn flatness(&self, at: usize) -> f64 {
        let all = self.flatness.get_or_init(|| {
            let means: Vec<f64> = self.features.iter().map(Features::in_flight_mean).collect();
            around(&means, AROUND, |means| {
                let (low, high) = (means[means.len() / 5], means[means.len() * 4 / 5]);
                let (low, high) = (value(low), value(high));
                if high > 0.0 { low / high } else { 0.0 }
            })
        });
        all[at]
    }

    /// The median rate of the trains in the [`AROUND`] intervals before and after this one.
    pub fn train_rate(&self, at: usize) -> f64 {
        let all = self.trains.get_or_init(|| {
            let rates: Vec<f64> = self.features.iter().map(|f| f.train_max.into()).collect();
            around(&rates, AROUND, |rates| value(rates[rates.len() / 2]))
        });
        all[at]
    }
}
