//! Seeded draws.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A stream of draws for one scenario.
#[derive(Debug)]
pub(super) struct Dice(Pcg64Mcg);

impl Dice {
    pub fn new(seed: u64, index: u32) -> Dice {
        // Each scenario of a seed has its own stream: the odd constant is 2^64 over the golden
        // ratio.
        Dice(Pcg64Mcg::seed_from_u64(
            seed ^ (u64::from(index) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        ))
    }

    /// Between 0 and 1, without 1.
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform between two numbers.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + self.unit() * (high - low)
    }

    /// Log-uniform between two numbers.
    pub fn log(&mut self, low: f64, high: f64) -> f64 {
        self.uniform(low.ln(), high.ln()).exp()
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[(self.0.next_u64() % from.len() as u64) as usize]
    }

    pub fn seed(&mut self) -> u32 {
        (self.0.next_u64() >> 33) as u32
    }
}
