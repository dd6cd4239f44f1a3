//! The trained judge: it weighs what the rules said against everything else that a transfer
//! showed.
//!
//! The rules decide interval by interval. What they say of all intervals together, and numbers that
//! only the whole shows, are the [`Traits`] of a transfer. A [`Forest`] that was trained on
//! transfers whose limit was built in (`cargo xtask judge`) tells from them how likely each limit
//! is. Where it disagrees with what the rules say most, and is sure enough, the intervals in
//! dispute get its answer.

mod forest;

pub use forest::{CLASSES, Forest, LEAF, NODE};

use super::Limit;
use super::confidence::Source;
use fullpipe_model::limit::Cause;

/// Stands for what a source cannot tell.
pub(super) const NONE: f64 = -1.0;

/// The limits that a judge can name, in the order of its tables: all but `Unknown`.
pub const LIMITS: [Limit; 7] = {
    let [a, b, c, d, e, f, g, _] = Limit::ALL;
    [a, b, c, d, e, f, g]
};

/// Numbers of a transfer, in an order that the table it is judged by was trained with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traits(Vec<f32>);

impl Traits {
    pub(super) fn extend(&mut self, values: impl IntoIterator<Item = f64>) {
        self.0.extend(values.into_iter().map(|value| value.clamp(-1e6, 1e6) as f32));
    }

    /// All of them.
    pub fn values(&self) -> &[f32] {
        &self.0
    }
}

/// The part of the time that the rules give to each of [`LIMITS`].
pub(super) fn part_by_limit(times: impl Iterator<Item = (Limit, f64)>) -> [f64; LIMITS.len()] {
    let mut parts = [0.0; LIMITS.len()];
    let mut all = 0.0;
    for (limit, time) in times {
        all += time;
        if let Some(at) = LIMITS.iter().position(|known| *known == limit) {
            parts[at] += time;
        }
    }
    parts.map(|part| if all > 0.0 { part / all } else { 0.0 })
}

/// Values in order.
pub(super) struct Sorted(Vec<f64>);

impl Sorted {
    pub fn new(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Sorted(values)
    }

    /// The value below which so many of a hundred are; [`NONE`] of nothing.
    pub fn percentile(&self, percent: usize) -> f64 {
        self.0.get(self.0.len().saturating_sub(1) * percent / 100).copied().unwrap_or(NONE)
    }
}

/// One by the other, [`NONE`] where there is no other.
pub(super) fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { NONE }
}

/// How much the rate from one episode of loss to the next varies, of intervals with whether
/// something was lost, what passed and how long it took. A token bucket is empty at each loss: what
/// it let pass in between is its rate, however long that was.
pub(super) fn variation_between_losses(intervals: impl Iterator<Item = (bool, f64, f64)>) -> f64 {
    /// Loss within so many intervals belongs to one episode.
    const EPISODE: usize = 3;
    let (mut rates, mut passed, mut time, mut since_loss) = (Vec::new(), 0.0, 0.0, 0);
    for (is_lossy, bytes, length) in intervals {
        if is_lossy {
            if since_loss >= EPISODE && time > 0.0 {
                rates.push(passed / time);
                (passed, time) = (0.0, 0.0);
            }
            since_loss = 0;
        } else {
            since_loss += 1;
        }
        passed += bytes;
        time += length;
    }
    // The first one begins with a full bucket.
    if rates.len() < 3 { NONE } else { variation(&rates[1..]) }
}

/// Standard deviation by mean; [`NONE`] where the mean is zero.
pub(super) fn variation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    if mean <= 0.0 {
        return NONE;
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() / mean
}

/// What a trained judge found in a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opinion {
    /// How likely each of [`LIMITS`] is; they sum to 1.
    pub likely: [f64; LIMITS.len()],
    /// How likely a policer is: a part of the link's.
    pub policer: f64,
}

/// How sure the judge must be to turn what the rules say; `None` where it may not.
///
/// Where a window was full, or a queue stood before a busy link (`has_queue`), the rules rest on
/// what no statistics outweigh: a bound just above what the path holds looks like the path's own,
/// and the judge was not trained with such. Loss that a timer repairs comes at an even rate, as
/// behind a policer: there the judge has to be surer.
pub(super) const fn turns_from(rules: Limit, to: Limit, has_queue: bool) -> Option<f64> {
    use Limit::{Link, ReceiveWindow, ReceiverApplication, SendBuffer, SenderApplication, Unknown};
    let may = match rules {
        Link => !has_queue || matches!(to, SenderApplication | ReceiverApplication),
        ReceiveWindow => matches!(to, ReceiverApplication),
        ReceiverApplication => false,
        SendBuffer => matches!(to, Link | SenderApplication | ReceiverApplication),
        Limit::CongestionWindow(_) => {
            matches!(to, Link | SendBuffer | SenderApplication | ReceiverApplication)
        }
        SenderApplication | Unknown => true,
    };
    match (may, rules, to) {
        (false, ..) => None,
        (_, Limit::CongestionWindow(Cause::Loss), Link) => Some(0.7),
        _ => Some(0.5),
    }
}

/// The class of a policer.
pub const POLICER: usize = LIMITS.len();
const LINK: usize = LIMITS.len() - 1;
/// Shorter transfers have no shape to go by, and the rules stand.
pub(super) const INTERVALS_LEAST: usize = 8;
/// And with fewer segments there is no more than a request: the judge was trained with downloads.
pub(super) const SEGMENTS_LEAST: u64 = 50;

static OF_CAPTURES: &[u8] = include_bytes!("captures.forest");
static OF_SAMPLES: &[u8] = include_bytes!("samples.forest");

impl Opinion {
    /// Of a transfer with these traits; `possible` says which limits the evidence allows at all.
    /// `None` where the judge was not trained for such traits.
    pub(super) fn of(
        source: Source,
        traits: &Traits,
        possible: impl Fn(Limit) -> bool,
    ) -> Option<Self> {
        let table = match source {
            Source::Capture => OF_CAPTURES,
            Source::Samples => OF_SAMPLES,
        };
        let mut likely = Forest::read(table)?.weigh(traits.values())?;
        for (part, limit) in likely.iter_mut().zip(LIMITS.into_iter().chain([Limit::Link])) {
            if !possible(limit) {
                *part = 0.0;
            }
        }
        let all: f64 = likely.iter().sum();
        if all <= 0.0 {
            return None;
        }
        let policer = likely[POLICER] / all;
        let mut limits = [0.0; LIMITS.len()];
        limits.copy_from_slice(&likely[..POLICER]);
        limits = limits.map(|part| part / all);
        limits[LINK] += policer;
        Some(Opinion { likely: limits, policer })
    }

    /// The likeliest limit, and how likely it is.
    pub(super) fn first(&self) -> (Limit, f64) {
        let all = LIMITS.into_iter().zip(self.likely);
        all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((Limit::Unknown, 0.0))
    }

    /// How likely `limit` is.
    pub fn likely(&self, limit: Limit) -> f64 {
        LIMITS.iter().position(|known| *known == limit).map_or(0.0, |at| self.likely[at])
    }
}
