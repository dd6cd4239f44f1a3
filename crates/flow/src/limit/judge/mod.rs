//! The trained judge: it weighs what the rules decided against everything else that a transfer
//! showed.
//!
//! The rules decide interval by interval. The [`Traits`] of a transfer are what the rules decided
//! over all intervals, and numbers that only the whole transfer shows. From them [`BoostedTrees`]
//! estimate how likely each limit is; `cargo xtask judge` trained it on transfers whose limit was
//! built in. Where it disagrees with the limit that the rules name first, and is sure enough, the
//! intervals in dispute get its answer. A long transfer is also judged in parts, because several
//! limits may hold it one after another.

mod boosted_trees;
mod packed;
mod parts;
mod reasons;

pub use boosted_trees::{BoostedTrees, CLASSES, LEAF, NODE, half, softmax};
pub use packed::pack;
pub(super) use parts::{Part, Stretch, agreed, course, overrules, parts};
pub use reasons::Reason;
pub(super) use reasons::{Judged, reasons};

use super::Limit;
use super::confidence::{SURE_FROM, Source};
use super::thresholds::QUEUED_MOSTLY;
use fullpipe_model::limit::Cause;
use packed::unpack;
use std::sync::LazyLock;

/// Stands for a number that a source does not have.
pub(super) const NONE: f64 = -1.0;

/// The limits that the judge can name, in the order of its tables: all but `Unknown`.
pub const LIMITS: [Limit; 7] = {
    let [a, b, c, d, e, f, g, ..] = Limit::ALL;
    [a, b, c, d, e, f, g]
};

/// Numbers of a transfer, in the order with which the table that judges it was trained.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Traits(Vec<f32>);

impl Traits {
    pub(super) fn extend(&mut self, values: impl IntoIterator<Item = f64>) {
        self.0.extend(values.into_iter().map(|value| value.clamp(-1e6, 1e6) as f32));
    }

    /// All values.
    pub fn values(&self) -> &[f32] {
        &self.0
    }
}

/// The fraction of the time that the rules give to each of [`LIMITS`].
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

/// The mean; [`NONE`] if there are no values.
pub(super) fn mean(values: &[f64]) -> f64 {
    ratio(values.iter().sum(), values.len() as f64)
}

/// `a` divided by `b`; [`NONE`] if `b` is not positive.
pub(super) fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { NONE }
}

/// How much the rate between episodes of loss varies. Each interval is given as whether something
/// was lost, the bytes that passed and its length. A token bucket is empty at each loss, so what it
/// lets pass in between is its rate, however long that lasts.
pub(super) fn variation_between_losses(intervals: impl Iterator<Item = (bool, f64, f64)>) -> f64 {
    /// Losses with fewer than this many intervals between them belong to one episode.
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
    // The first episode begins with a full bucket.
    if rates.len() < 3 { NONE } else { variation(&rates[1..]) }
}

/// Standard deviation divided by the mean; [`NONE`] where the mean is zero.
pub(super) fn variation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    if mean <= 0.0 {
        return NONE;
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() / mean
}

/// The tables for samples of sockets. A page in a browser has no sockets, and the tables would be a
/// tenth of it.
#[cfg(not(target_os = "wasi"))]
const SAMPLES: [&[u8]; 2] =
    [include_bytes!("samples.trees.gz"), include_bytes!("receiver.trees.gz")];
#[cfg(target_os = "wasi")]
const SAMPLES: [&[u8]; 2] = [&[]; 2];

/// The table for evidence of this kind.
fn table(source: Source) -> Option<&'static BoostedTrees<'static>> {
    static BYTES_OF_CAPTURES: LazyLock<Option<Vec<u8>>> =
        LazyLock::new(|| unpack(include_bytes!("captures.trees.gz")));
    static OF_CAPTURES: LazyLock<Option<BoostedTrees<'_>>> =
        LazyLock::new(|| BoostedTrees::read(BYTES_OF_CAPTURES.as_deref()?));
    static BYTES_OF_SAMPLES: LazyLock<[Option<Vec<u8>>; 2]> = LazyLock::new(|| SAMPLES.map(unpack));
    static OF_SAMPLES: LazyLock<[Option<BoostedTrees<'_>>; 2]> = LazyLock::new(|| {
        BYTES_OF_SAMPLES.each_ref().map(|bytes| BoostedTrees::read(bytes.as_deref()?))
    });
    match source {
        Source::Capture => OF_CAPTURES.as_ref(),
        Source::Samples => OF_SAMPLES[0].as_ref(),
        Source::ReceiverSamples => OF_SAMPLES[1].as_ref(),
    }
}

/// What a trained judge found in a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opinion {
    /// The probability of each of [`LIMITS`]; they sum to 1.
    pub likely: [f64; LIMITS.len()],
    /// The probability of a policer, which is part of the link's.
    pub policer: f64,
    /// The probability of what the statistics found and the evidence rules out.
    pub ruled_out: f64,
}

/// Which limits the evidence allows at all. The judge's statistics cannot outweigh this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Possible {
    /// Whether something was retransmitted.
    pub loss: bool,
    /// Whether the receive window's size is known.
    pub is_window_known: bool,
    /// Whether the sender came near the receive window.
    pub receive_window: bool,
    /// Whether it came near a window that closed.
    pub reader: bool,
    /// Whether the amount in flight has a bound of its own, and is not what drops made it.
    pub send_buffer: bool,
    /// Whether the path delayed or dropped anything.
    pub link: bool,
    /// Whether a queue may have kept the link busy. A policer needs none.
    pub queue: bool,
    pub sender_application: bool,
}

impl Possible {
    /// Nothing is ruled out.
    pub const ALL: Possible = Possible {
        loss: true,
        is_window_known: true,
        receive_window: true,
        reader: true,
        send_buffer: true,
        link: true,
        queue: true,
        sender_application: true,
    };

    fn allows(self, limit: Limit, likely: f64) -> bool {
        match limit {
            Limit::CongestionWindow(Cause::Loss) => self.loss,
            Limit::ReceiveWindow => self.receive_window,
            // A reader that does not keep up shows in when it lets the sender go on, too.
            Limit::ReceiverApplication => {
                self.reader || (!self.is_window_known && likely >= SURE_UNSEEN)
            }
            Limit::SendBuffer => self.send_buffer,
            Limit::Link => self.link,
            Limit::SenderApplication => self.sender_application,
            _ => true,
        }
    }
}

/// What the judge weighs: a transfer, or a part of one.
#[derive(Debug, Clone)]
pub struct Case {
    pub traits: Traits,
    pub possible: Possible,
    /// The evidence of the rules for a busy link, apart from statistics.
    pub link: LinkEvidence,
    /// Whether parts of the transfer can be judged alone. Timers make pauses of any length, and
    /// some of these fill a whole part.
    pub judges_parts: bool,
}

/// The evidence that a link is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEvidence {
    /// Everything came in order and without a wait, so no link was full: one that is makes what
    /// passes wait, or drops it.
    Against,
    None,
    /// A queue stood before it.
    Queue,
    /// Its rate was given.
    GivenRate,
    /// A queue stood before it for nearly all of the time, which proves that it was full.
    Full,
}

impl LinkEvidence {
    /// `is_given`: whether the rate is known. `inflation`: the median round trip as a multiple of
    /// the path's.
    pub(super) fn new(is_given: bool, inflation: f64) -> Self {
        match is_given {
            true => LinkEvidence::GivenRate,
            false if inflation > QUEUED_MOSTLY => LinkEvidence::Queue,
            false => LinkEvidence::None,
        }
    }
}

/// How sure the judge must be to overrule the rules. Where the rules rest on no more than the judge
/// does, any certainty is enough.
///
/// Where a window was full, a queue stood before a busy link, or something was lost again and
/// again, the rules rest on direct evidence. The judge may not overrule a rate that was given. The
/// numbers were chosen on seeds 5 and 12 and with `tests/limits`: a bound just above what the path
/// holds is not the limit while a queue stands.
fn least_to_turn(rules: Limit, to: Limit, link: LinkEvidence) -> f64 {
    use Limit::{Link, ReceiveWindow, ReceiverApplication, SendBuffer, SenderApplication};
    match (rules, to) {
        (Link, SenderApplication) => 0.0,
        (Link, ReceiverApplication) if link == LinkEvidence::Queue => SURE_OF_READER,
        (Link, ReceiverApplication) => 0.0,
        (Link, _) if link == LinkEvidence::GivenRate => f64::INFINITY,
        (Link, _) if link == LinkEvidence::Queue => SURE_AGAINST_QUEUE,
        (Limit::CongestionWindow(Cause::Loss), Link) if link == LinkEvidence::None => {
            SURE_OF_POLICER
        }
        (Limit::CongestionWindow(Cause::Loss), Link) => SURE_AGAINST_LOSS,
        (Limit::CongestionWindow(Cause::Loss), _) => SURE,
        (ReceiveWindow | SendBuffer, Link) if link == LinkEvidence::None => SURE_WITHOUT_QUEUE,
        (ReceiveWindow | ReceiverApplication, _) => SURE,
        _ => 0.0,
    }
}

/// How sure the judge must be to overrule the rules of the receiver's socket alone.
///
/// A full window, unread data, and bursts a round trip apart are direct evidence. Where the rules
/// found no queue, a link needs more than a likeness, and where nothing waited or came late, no
/// likeness is enough: a sender that paces its data looks the same. The numbers were chosen with
/// the planted causes of `crates/cli/tests/e2e/why.rs`: without them, real connections that a send
/// buffer, pauses or pacing held were called a full link.
fn least_to_turn_receiver(rules: Limit, to: Limit, link: LinkEvidence) -> f64 {
    use Limit::{Link, ReceiveWindow, ReceiverApplication, SendBuffer, SenderApplication, Unknown};
    match (rules, to) {
        (Link, _) if link == LinkEvidence::GivenRate => f64::INFINITY,
        (_, Link) if link == LinkEvidence::Against => f64::INFINITY,
        (ReceiveWindow | ReceiverApplication | SendBuffer, _) => SURE_AT_RECEIVER,
        (SenderApplication | Unknown, Link) => SURE_AT_RECEIVER,
        (SenderApplication, _) => SURE,
        _ => 0.0,
    }
}

/// How sure the judge must be against what the receiver's socket shows directly.
const SURE_AT_RECEIVER: f64 = 0.9;
/// How sure the judge must be that a link with a queue before it is not the limit.
const SURE_AGAINST_QUEUE: f64 = 0.97;
/// How sure the judge must be that a link is the limit before which no queue stood while a window
/// or a buffer was full.
const SURE_WITHOUT_QUEUE: f64 = 0.97;
/// How sure the judge must be of a reader that does not keep up where a queue stood before a link.
/// Of the transfers of seeds 5 and 12 it is right about those; it took a fast reader for a slow one
/// where Linux's own window was just above what the path holds (`window/fast-reader`, 32 MB).
const SURE_OF_READER: f64 = 0.9;
/// How sure the judge must be that losses are a link's, where a queue stood, and of a policer,
/// where none did. Losses that a timer repairs come at an even rate, as they do behind a policer.
const SURE_AGAINST_LOSS: f64 = 0.85;
const SURE_OF_POLICER: f64 = 0.9;

/// The confidence in what is left, at most, once evidence has ruled out what the statistics found.
/// One half claims nothing: such an answer is neither sure nor called a guess.
pub(super) const OVERRULED: f64 = SURE_FROM;
/// How sure the judge must be to give intervals to the limit that it finds.
pub(super) const SURE: f64 = 0.5;
/// How sure the judge must be of a whole transfer to leave aside what it finds in the parts.
pub(super) const SURE_OF_WHOLE: f64 = 0.85;
/// How sure the judge must be of a reader that does not keep up where the window's size is unknown.
const SURE_UNSEEN: f64 = 0.85;
/// A limit that is less likely then keeps no interval, except for the transfer's start.
pub(super) const UNLIKELY: f64 = 0.05;

/// The class of a policer.
pub const POLICER: usize = LIMITS.len();
const LINK: usize = LIMITS.len() - 1;
/// Transfers with fewer intervals have no shape to judge, and the rules stand.
pub(super) const INTERVALS_LEAST: usize = 8;
/// As few as that have a shape where a judge was trained with such transfers.
const INTERVALS_LEAST_RECEIVER: usize = 4;

/// A transfer with fewer intervals is left to the rules.
pub(super) fn intervals_least(source: Source) -> usize {
    match source {
        Source::ReceiverSamples => INTERVALS_LEAST_RECEIVER,
        Source::Capture | Source::Samples => INTERVALS_LEAST,
    }
}

/// A transfer with fewer segments is no more than a request, and the judge was trained with
/// downloads.
pub(super) const SEGMENTS_LEAST: u64 = 50;

impl Opinion {
    /// The opinion of a transfer or of a part. `None` where the judge was not trained for such
    /// traits.
    pub(super) fn of(source: Source, traits: &Traits, possible: Possible) -> Option<Self> {
        Self::of_classes(table(source)?.weigh(traits.values())?, possible)
    }

    /// The opinion from the probabilities of the classes.
    fn of_classes(mut likely: [f64; CLASSES], possible: Possible) -> Option<Self> {
        let mut ruled_out = 0.0;
        let classes = LIMITS.into_iter().chain([Limit::Link]).enumerate();
        for (part, (class, limit)) in likely.iter_mut().zip(classes) {
            let is_policer = class == POLICER && *part >= SURE;
            let needs_queue = limit == Limit::Link && !is_policer;
            if !possible.allows(limit, *part) || (needs_queue && !possible.queue) {
                ruled_out += std::mem::take(part);
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
        Some(Opinion { likely: limits, policer, ruled_out })
    }

    /// The likeliest limit, and how likely it is.
    pub(super) fn first(&self) -> (Limit, f64) {
        let all = LIMITS.into_iter().zip(self.likely);
        all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((Limit::Unknown, 0.0))
    }

    /// The limit after weighing the opinion against the limit that the rules name first, with the
    /// confidence in it.
    pub(super) fn beside(&self, source: Source, rules: Limit, link: LinkEvidence) -> (Limit, f64) {
        let (limit, likely) = self.first();
        let least = match source {
            Source::ReceiverSamples => least_to_turn_receiver(rules, limit, link),
            Source::Capture | Source::Samples => least_to_turn(rules, limit, link),
        };
        let limit = if limit == rules || likely >= least { limit } else { rules };
        (limit, self.confidence(limit))
    }

    /// How sure one may be of `limit`. What is left once the likeliest is ruled out was not weighed
    /// by itself, so it is no surer than before, or than one half.
    pub(super) fn confidence(&self, limit: Limit) -> f64 {
        let likely = self.likely(limit);
        likely.min((likely * (1.0 - self.ruled_out)).max(OVERRULED))
    }

    /// The probability of `limit`.
    pub fn likely(&self, limit: Limit) -> f64 {
        LIMITS.iter().position(|known| *known == limit).map_or(0.0, |at| self.likely[at])
    }
}
