//! How much memory a link needs, and when joining writes pays off.

use fullpipe_model::link::Config;
use fullpipe_model::units::{Bytes, Duration, Rate};

/// Assumed rate for the ring of a link without one.
pub(super) const UNSHAPED_RATE: Rate = Rate::from_bits_per_sec(10_000_000_000);
const UNSHAPED_QUEUE: Bytes = Bytes::new(16 << 20);

/// Joining writes pays off on fast links: a tenth of a millisecond and more from a gigabit on,
/// nothing if a single packet takes that long. `rate` is the faster of both directions.
pub(super) fn coalescing_time(rate: Option<Rate>) -> Duration {
    match rate.map_or(0, Rate::bits_per_sec) {
        0..200_000_000 => Duration::ZERO,
        200_000_000..1_000_000_000 => Duration::from_micros(100),
        _ => Duration::from_micros(150),
    }
}

/// The most that a link can hold at once by its model, plus a quarter.
pub(super) fn ring_size(config: &Config, rtt: Duration) -> Bytes {
    let unshaped = UNSHAPED_RATE.over(config.delay_max()).saturating_add(UNSHAPED_QUEUE);
    let held = config.bytes_in_flight(rtt).unwrap_or(unshaped);
    // Small packets take a cache line more than their bytes, and a few frames are always being
    // read.
    held.saturating_add(Bytes::new(held.get() / 4)).saturating_add(Bytes::new(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_links_join_nothing() {
        let mbit = |count: u64| Some(Rate::from_bits_per_sec(count * 1_000_000));
        assert_eq!(coalescing_time(mbit(100)), Duration::ZERO);
        assert_eq!(coalescing_time(None), Duration::ZERO);
        assert!(coalescing_time(mbit(1000)) >= Duration::from_micros(100));
    }
}
