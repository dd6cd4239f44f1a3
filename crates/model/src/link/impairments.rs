//! The draws for a packet on arrival: everything random about it, except what the discipline of its
//! queue draws.

use super::loss::LossState;
use super::random::{Correlated, Purpose, RandomStream};
use super::{Bit, Config, Delay, LossModel, Reorder};
use crate::units::{Bytes, Probability};

/// The draws for one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Draw {
    pub lost: bool,
    pub duplicated: bool,
    pub corrupt: Option<Bit>,
    /// Skips the delay, if the gap allows it.
    pub overtakes: bool,
    /// Random bits for the delay's distribution.
    pub random: u64,
}

/// The random impairments of a direction and their streams.
#[derive(Debug)]
pub(super) struct Impairments {
    /// Only random loss without correlation is configured.
    plain: bool,
    config: ImpairmentConfig,
    loss: LossState,
    duplicate: Correlated,
    corrupt: Correlated,
    bits: RandomStream,
    reorder: Correlated,
    delay: Correlated,
    copies: RandomStream,
    /// Packets since the last one that overtook.
    since_overtaking: u32,
}

/// The part of the configuration that matters here.
#[derive(Debug)]
struct ImpairmentConfig {
    loss: super::Loss,
    duplicate: super::Chance,
    corrupt: super::Chance,
    reorder: Option<Reorder>,
    jitter: bool,
    jitter_correlation: Probability,
}

impl ImpairmentConfig {
    fn new(config: &Config) -> Self {
        let Delay { correlation, .. } = config.delay;
        ImpairmentConfig {
            loss: config.loss,
            duplicate: config.duplicate,
            corrupt: config.corrupt,
            reorder: config.reorder,
            jitter: !config.delay.is_constant(),
            jitter_correlation: correlation,
        }
    }

    fn is_plain(&self) -> bool {
        let has_plain_loss = match &self.loss.model {
            LossModel::Random(chance) => chance.correlation == Probability::ZERO,
            _ => false,
        };
        has_plain_loss
            && self.duplicate.is_never()
            && self.corrupt.is_never()
            && self.reorder.is_none()
            && !self.jitter
    }
}

impl Impairments {
    pub fn new(config: &Config, seed: u64) -> Self {
        let config = ImpairmentConfig::new(config);
        Impairments {
            plain: config.is_plain(),
            config,
            loss: LossState::new(seed),
            duplicate: Correlated::new(seed, Purpose::Duplicate),
            corrupt: Correlated::new(seed, Purpose::Corrupt),
            bits: RandomStream::new(!seed, Purpose::Corrupt),
            reorder: Correlated::new(seed, Purpose::Reorder),
            delay: Correlated::new(seed, Purpose::Delay),
            copies: RandomStream::new(seed, Purpose::Copies),
            since_overtaking: 0,
        }
    }

    /// Changes the impairments; the random streams continue.
    pub fn set(&mut self, config: &Config) {
        self.config = ImpairmentConfig::new(config);
        self.plain = self.config.is_plain();
    }

    /// Draws for a packet of `size`: once for each packet from each stream, whatever happens to it.
    pub fn draw(&mut self, size: Bytes) -> Draw {
        let lost = !self.config.loss.is_never() && self.loss.next(&self.config.loss.model);
        if self.plain {
            return Draw { lost, ..Draw::default() };
        }
        let corrupt = self.corrupt.happens(self.config.corrupt);
        let bit = if self.config.corrupt.is_never() { 0 } else { self.bits.next() };
        Draw {
            lost,
            duplicated: self.duplicate.happens(self.config.duplicate),
            corrupt: corrupt.then(|| bit_of(size, bit)).flatten(),
            overtakes: self
                .config
                .reorder
                .is_some_and(|reorder| self.reorder.happens(reorder.chance)),
            random: if self.config.jitter {
                self.delay.next(self.config.jitter_correlation)
            } else {
                0
            },
        }
    }

    /// Draws for a duplicate, which is not lost or corrupted and is not duplicated again.
    pub fn draw_copy(&mut self) -> Draw {
        let (random, overtakes) = (self.copies.next(), self.copies.next());
        let overtakes = self
            .config
            .reorder
            .is_some_and(|reorder| reorder.chance.probability.happens(overtakes));
        Draw { random, overtakes, ..Draw::default() }
    }

    /// Whether the next packet that reaches the delay skips it: it was drawn to, and the gap is
    /// over.
    pub fn overtakes(&mut self, drawn: bool) -> bool {
        let Some(reorder) = self.config.reorder else { return false };
        let overtakes = drawn && self.since_overtaking >= reorder.gap.get() - 1;
        self.since_overtaking = if overtakes { 0 } else { self.since_overtaking.saturating_add(1) };
        overtakes
    }

    /// Whether ECN-capable packets are marked instead of lost.
    pub fn loss_marks(&self) -> bool {
        self.config.loss.ecn
    }
}

/// A bit of a packet of `size`; `None` for an empty packet.
fn bit_of(size: Bytes, random: u64) -> Option<Bit> {
    let bits = u128::from(size.get().min(u64::from(u32::MAX))) * 8;
    let index = (u128::from(random) * bits) >> 64;
    (bits > 0).then_some(Bit { byte: (index / 8) as u32, bit: (index % 8) as u8 })
}
