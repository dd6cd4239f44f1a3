//! Generated content: each byte depends only on its offset.
//!
//! `/bytes/<size>` serves it without a file. Byte *n* is the same in every response, so ranges from
//! different requests fit together, and a client can verify what it received without the original.
//!
//! Byte *n* is the top byte of SplitMix64's output number *n mod p* ([Steele et al. 2014], the
//! generator of Java's `SplittableRandom`), with the prime *p* = 262147. So the content does not
//! compress, and a block shifted by a power of two is detected. One period (256 KiB) is generated
//! once and shared by all responses. It fits into a core's L2 cache, so the server's cost is the
//! kernel's copy.
//!
//! [Steele et al. 2014]: https://doi.org/10.1145/2660193.2660195

use bytes::Bytes as Buffer;
use fullpipe_model::units::Bytes;
use std::sync::LazyLock;

/// Bytes after which the content repeats; the smallest prime above 2^18.
const PERIOD: usize = 262_147;

/// What the server writes at once where nothing holds it: one period.
pub const WRITE: Bytes = Bytes::new(PERIOD as u64);

static PATTERN: LazyLock<Buffer> =
    LazyLock::new(|| (0..PERIOD as u64).map(byte).collect::<Vec<u8>>().into());

/// SplitMix64's output number `index` (from zero) for seed 0: its top byte.
fn byte(index: u64) -> u8 {
    let mut z = (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 56) as u8
}

/// Content from `offset` on, at least one and at most `most` bytes (none only if `most` is zero): a
/// view of the shared period, without a copy.
pub fn at(offset: Bytes, most: Bytes) -> Buffer {
    let start = (offset.get() % PERIOD as u64) as usize;
    let length = usize::try_from(most.get()).unwrap_or(usize::MAX).min(PERIOD - start);
    PATTERN.slice(start..start + length)
}

/// Where `data`, received for `offset`, first differs from the content: the offset, the expected
/// byte, the received byte. `None` if it is correct.
pub(crate) fn first_difference(offset: Bytes, data: &[u8]) -> Option<(Bytes, u8, u8)> {
    let mut done = 0;
    while done < data.len() {
        let here = Bytes::new(offset.get() + done as u64);
        let expected = at(here, Bytes::new((data.len() - done) as u64));
        let found = &data[done..done + expected.len()];
        if expected != found {
            let index = expected.iter().zip(found).position(|(e, f)| e != f)?;
            return Some((Bytes::new(here.get() + index as u64), expected[index], found[index]));
        }
        done += expected.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn follows_the_published_generator() {
        // First outputs of SplitMix64 with seed 0, as in the reference implementation
        // (prng.di.unimi.it/splitmix64.c).
        let outputs = [
            0xe220_a839_7b1d_cdaf_u64,
            0x6e78_9e6a_a1b9_65f4,
            0x06c4_5d18_8009_454f,
            0xf88b_b8a8_724c_81ec,
        ];
        let expected: Vec<u8> = outputs.iter().map(|output| (output >> 56) as u8).collect();
        assert_eq!(at(Bytes::ZERO, Bytes::new(4)), expected);
    }

    proptest! {
        #[test]
        fn every_byte_depends_on_its_offset_only(offset in 0..u64::MAX - 10_000_000, length in 1..10_000u64) {
            let mut data = Vec::new();
            while (data.len() as u64) < length {
                let done = data.len() as u64;
                data.extend_from_slice(&at(Bytes::new(offset + done), Bytes::new(length - done)));
            }
            for (i, found) in data.iter().enumerate() {
                prop_assert_eq!(*found, byte((offset + i as u64) % PERIOD as u64));
            }
            prop_assert_eq!(first_difference(Bytes::new(offset), &data), None);
        }

        #[test]
        fn one_wrong_byte_is_found(offset in 0..1u64 << 40, length in 1..400_000usize, at_fraction in 0.0..1.0f64) {
            let mut data: Vec<u8> = (0..length).map(|i| byte((offset + i as u64) % PERIOD as u64)).collect();
            let wrong = (length as f64 * at_fraction) as usize;
            data[wrong] ^= 1;
            let (found_at, expected, found) = first_difference(Bytes::new(offset), &data).unwrap();
            prop_assert_eq!((found_at.get(), found), (offset + wrong as u64, expected ^ 1));
        }

        #[test]
        fn a_shift_by_a_power_of_two_is_seen(shift in 0..40u32) {
            let moved = at(Bytes::new(1 << shift), Bytes::new(64));
            prop_assert!(first_difference(Bytes::ZERO, &moved).is_some());
        }
    }
}
