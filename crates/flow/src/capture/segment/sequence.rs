//! Sequence numbers: modulo 2^32 (RFC 9293 section 3.4).

/// A TCP sequence number. Not ordered: which of two is earlier is only defined within half of the
/// number space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SequenceNumber(pub u32);

impl SequenceNumber {
    /// How far `self` is after `earlier`; negative if it is before.
    pub const fn after(self, earlier: SequenceNumber) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    /// Whether `self` is before `other`.
    pub const fn is_before(self, other: SequenceNumber) -> bool {
        self.after(other) < 0
    }

    /// The later of the two.
    pub const fn max(self, other: SequenceNumber) -> SequenceNumber {
        if self.is_before(other) { other } else { self }
    }

    /// The earlier of the two.
    pub const fn min(self, other: SequenceNumber) -> SequenceNumber {
        if self.is_before(other) { self } else { other }
    }

    /// The distance from `earlier` up to `self`, zero if `self` is not after it.
    pub const fn distance(self, earlier: SequenceNumber) -> u32 {
        let distance = self.after(earlier);
        if distance > 0 { distance as u32 } else { 0 }
    }
}

impl std::ops::Add<u32> for SequenceNumber {
    type Output = SequenceNumber;
    fn add(self, count: u32) -> SequenceNumber {
        SequenceNumber(self.0.wrapping_add(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_survives_the_wrap(start: u32, step in 1..(1_u32 << 31)) {
            let (a, b) = (SequenceNumber(start), SequenceNumber(start) + step);
            prop_assert!(a.is_before(b) && !b.is_before(a));
            prop_assert_eq!(a.max(b), b);
            prop_assert_eq!((b.distance(a), a.distance(b)), (step, 0));
        }
    }
}
