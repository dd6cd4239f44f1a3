//! Seeded randomness: a stream for each impairment, so that the draws of one never affect those of
//! another.

use crate::units::Probability;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Loss = 0,
    Duplicate,
    Corrupt,
    Reorder,
    Delay,
    Slot,
    /// All draws for duplicates, which must not affect the draws of their originals.
    Copies,
    Handover,
    Discipline,
}

/// A stream of random bits.
#[derive(Debug)]
pub(super) struct RandomStream(Pcg64Mcg);

impl RandomStream {
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        RandomStream(Pcg64Mcg::seed_from_u64(
            seed ^ (purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// A stream with correlated draws, as in netem: each is a mean of a fresh draw and the previous
/// one, weighted by the correlation. `x(n) = rho x(n-1) + (1 - rho) u(n)`.
///
/// The series has the requested correlation, and less spread than its parts: its standard deviation
/// is that of a uniform draw times `sqrt((1 - rho) / (1 + rho))`. So a rare event with a
/// correlation is rarer than its probability, and jitter is smaller. This is netem's known
/// behaviour, kept because figures are compared with netem's.
#[derive(Debug)]
pub(super) struct Correlated {
    stream: RandomStream,
    /// In 2^-32.
    last: u64,
}

impl Correlated {
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        // The draw before the first comes from another stream, so that the fresh draws are the same
        // with and without correlation.
        let last = RandomStream::new(!seed, purpose).next() >> 32;
        Correlated { stream: RandomStream::new(seed, purpose), last }
    }

    /// 64 random bits, uniform without a correlation.
    pub fn next(&mut self, correlation: Probability) -> u64 {
        let fresh = self.stream.next();
        if correlation == Probability::ZERO {
            return fresh;
        }
        let rho = (correlation.get() * 4_294_967_296.0) as u64;
        self.last = ((fresh >> 32) * (4_294_967_296 - rho) + self.last * rho) >> 32;
        // The recurrence does not keep the lower half; fresh bits there make the smallest
        // probabilities exact.
        (self.last << 32) | (fresh & 0xffff_ffff)
    }

    pub fn happens(&mut self, chance: super::Chance) -> bool {
        !chance.is_never() && chance.probability.happens(self.next(chance.correlation))
    }
}
