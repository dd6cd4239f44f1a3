//! Bytes by time: bins of equal width from the connection's first packet, whose width doubles when
//! they become too many. No byte is lost by that.

use super::differences::{Plain, number};
use fullpipe_model::units::{Bytes, Duration};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Width of the first bins in µs. A transfer of 1 ms has ten.
const WIDTH: u64 = 100;

/// What passed in each bin.
#[derive(Debug, Clone)]
pub struct RateBins {
    /// In µs.
    width: u64,
    /// Payload and bytes on the wire.
    bins: Vec<(u64, u64)>,
}

impl Default for RateBins {
    fn default() -> Self {
        RateBins { width: WIDTH, bins: Vec::new() }
    }
}

impl RateBins {
    /// The width of a bin.
    pub fn width(&self) -> Duration {
        Duration::from_micros(self.width)
    }

    /// Payload, retransmissions included, and bytes on the wire, headers and packets without data
    /// included, of each bin.
    pub fn iter(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        self.bins.iter().map(|(payload, wire)| (Bytes::new(*payload), Bytes::new(*wire)))
    }

    pub(super) fn len(&self) -> usize {
        self.bins.len()
    }

    /// Adds a packet at `at` µs. There are at most `most` bins.
    pub(super) fn add(&mut self, at: u64, payload: u64, wire: u64, most: usize) {
        let (at, most) = (at.min(u64::MAX - 1), most.max(1) as u64);
        while at / self.width >= most {
            self.double();
        }
        let bin = (at / self.width) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, (0, 0));
        }
        self.bins[bin].0 += payload;
        self.bins[bin].1 += wire;
    }

    /// Merges until at most `most` bins are left.
    pub(super) fn thin(&mut self, most: usize) {
        while self.bins.len() > most.max(1) {
            self.double();
        }
    }

    fn double(&mut self) {
        // A time has 64 bits, so a width of this many is never exceeded.
        self.width = self.width.saturating_mul(2);
        let pairs = self.bins.chunks(2);
        self.bins = pairs
            .map(|pair| pair.iter().fold((0, 0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1)))
            .collect();
    }
}

impl Serialize for RateBins {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(3))?;
        map.serialize_entry("width_us", &self.width)?;
        map.serialize_entry("payload_bytes", &Plain(self.bins.iter().map(|bin| number(bin.0))))?;
        map.serialize_entry("wire_bytes", &Plain(self.bins.iter().map(|bin| number(bin.1))))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_byte_is_lost_and_bins_are_few(
            packets in prop::collection::vec((any::<u64>(), 0_u64..9000), 1..100),
            shift in 0_u32..64,
            most in 1_usize..50,
        ) {
            let mut bins = RateBins::default();
            for (at, payload) in &packets {
                bins.add(at >> shift, *payload, payload + 40, most);
            }
            prop_assert!(bins.len() <= most);
            let sum = bins.iter().fold((0, 0), |sum, (payload, wire)| {
                (sum.0 + payload.get(), sum.1 + wire.get())
            });
            let payload: u64 = packets.iter().map(|(_, payload)| payload).sum();
            prop_assert_eq!(sum, (payload, payload + 40 * packets.len() as u64));
        }
    }

    #[test]
    fn a_byte_is_in_the_bin_of_its_time() {
        let mut bins = RateBins::default();
        [0, 99, 100, 799].into_iter().for_each(|at| bins.add(at, 1, 1, 4));
        let payload: Vec<u64> = bins.iter().map(|(payload, _)| payload.get()).collect();
        assert_eq!((bins.width().as_micros(), payload), (200, vec![3, 0, 0, 1]));
    }
}
