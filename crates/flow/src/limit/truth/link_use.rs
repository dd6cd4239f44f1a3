//! How much of the time a link was sending.

use fullpipe_model::units::{Duration, Instant};

/// The packets that left a link, with the time that it spent on them.
///
/// A link without a rate spends no time. The times are exact if the receiver's edge sees a packet
/// when its last bit has left the transmitter (netem, whose delay comes first). If the link's delay
/// comes after the transmitter, they are late by that delay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkUse {
    /// When each packet had left, with the nanoseconds spent on it and all packets before it.
    packets: Vec<(Instant, u64)>,
}

impl LinkUse {
    /// Adds the next packet in order of time. It had left at `at`, and sending it took `time`.
    pub fn push(&mut self, at: Instant, time: Duration) {
        let (last, before) = self.packets.last().copied().unwrap_or_default();
        self.packets.push((at.max(last), before.saturating_add(time.as_nanos())));
    }

    /// The fraction of the time from `since` to `until` in which the link was sending, 0 to 1.
    pub fn busy(&self, since: Instant, until: Instant) -> f64 {
        let span = until.since(since).as_nanos();
        let busy = self.until(until).saturating_sub(self.until(since));
        if span == 0 { 0.0 } else { (busy as f64 / span as f64).min(1.0) }
    }

    /// Nanoseconds of sending up to `at`, including the part of the current packet that was sent by
    /// then.
    fn until(&self, at: Instant) -> u64 {
        let next = self.packets.partition_point(|(left, _)| *left <= at);
        let before = next.checked_sub(1).map_or(0, |last| self.packets[last].1);
        // By the next departure all of `sum` was spent. Right before it, the link was sending
        // without a pause.
        let begun = self
            .packets
            .get(next)
            .map_or(0, |(left, sum)| sum.saturating_sub(left.since(at).as_nanos()));
        before.max(begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_packet_keeps_the_link_busy_until_it_has_left() {
        let mut link = LinkUse::default();
        link.push(ms(30), Duration::from_millis(20));
        link.push(ms(50), Duration::from_millis(20));
        assert_eq!(link.busy(ms(0), ms(10)), 0.0);
        assert_eq!(link.busy(ms(0), ms(20)), 0.5);
        assert_eq!(link.busy(ms(10), ms(50)), 1.0);
        assert_eq!(link.busy(ms(40), ms(60)), 0.5);
        assert_eq!(LinkUse::default().busy(ms(0), ms(10)), 0.0);
    }

    proptest! {
        /// Packets follow one another with pauses. The busy time, split anywhere, adds up to the
        /// time that the packets took.
        #[test]
        fn parts_of_the_time_add_up(packets in prop::collection::vec((0..50_u64, 1..50_u64), 1..40), cut in 0..4000_u64) {
            let (mut link, mut at, mut took) = (LinkUse::default(), 0, 0);
            for (pause, time) in packets {
                at += pause + time;
                took += time;
                link.push(ms(at), Duration::from_millis(time));
            }
            let cut = cut.min(at);
            let parts = link.busy(ms(0), ms(cut)) * cut as f64 + link.busy(ms(cut), ms(at)) * (at - cut) as f64;
            prop_assert!((parts - took as f64).abs() < 1e-6, "{parts} of {took}");
        }
    }
}
