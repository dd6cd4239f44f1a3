//! Serialisation: one packet after another at a rate, exact to the bit over any number of packets.

use crate::units::{Bytes, Duration, Instant, Rate};

/// Computes when the transmitter is free again. Times are whole nanoseconds; the remainder of a
/// division is carried to the next packet, so that a million packets take exactly as long as their
/// sum.
#[derive(Debug)]
pub(super) struct Serialiser {
    rate: Option<Rate>,
    busy_until: Instant,
    /// Remainder of the last division: nanoseconds x rate not yet spent, less than `rate`.
    carry: u64,
}

impl Serialiser {
    pub fn new(rate: Option<Rate>, busy_until: Instant) -> Self {
        Serialiser { rate, busy_until, carry: 0 }
    }

    /// When it is free.
    pub fn busy_until(&self) -> Instant {
        self.busy_until
    }

    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Bytes not serialised at `now`.
    pub fn backlog(&self, now: Instant) -> Bytes {
        self.rate.map_or(Bytes::ZERO, |rate| rate.over(self.busy_until.since(now)))
    }

    /// Accepts a packet of `size` and returns when its last bit is sent.
    pub fn accept(&mut self, size: Bytes, now: Instant) -> Instant {
        let Some(rate) = self.rate else {
            return now;
        };
        // Exactly at the end of the previous packet the transmitter was never idle, so its
        // remainder still counts.
        if self.busy_until < now {
            self.busy_until = now;
            self.carry = 0;
        }
        let work = u128::from(size.get()) * 8_000_000_000 + u128::from(self.carry);
        let bits_per_sec = u128::from(rate.bits_per_sec().max(1));
        // The usual packet fits u64, where a division is ten times faster.
        let (nanos, carry) = match u64::try_from(work) {
            Ok(work) => {
                let divisor = rate.bits_per_sec().max(1);
                (work / divisor, work % divisor)
            }
            Err(_) => (
                u64::try_from(work / bits_per_sec).unwrap_or(u64::MAX),
                u64::try_from(work % bits_per_sec).unwrap_or(0),
            ),
        };
        self.carry = carry;
        self.busy_until = self.busy_until + Duration::from_nanos(nanos);
        self.busy_until
    }
}
