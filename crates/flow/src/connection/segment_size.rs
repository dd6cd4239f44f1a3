//! The size of a full segment on the wire, where a capture shows larger packets than the wire
//! carried.
//!
//! Segmentation offload (TSO, GSO) passes many segments to the card as one packet, and receive
//! offload (GRO) passes many up as one. A capture then shows packets of up to 64 KB. Three uses
//! need the segments of the wire instead: to count segments, to ask whether one more fits into a
//! window, and to ask whether a write was smaller than a segment.

/// The timestamps option with its padding takes this much from each segment (RFC 7323, appendix A).
const STAMPS_OPTION: u32 = 12;
/// The most that a segment carries on Ethernet without jumbo frames, over IPv4 without options.
const ETHERNET: u32 = 1460;
/// Likely segment sizes on Ethernet where the handshake was not captured: for IPv4 and IPv6, with
/// timestamps and without.
const LIKELY: [u32; 4] = [1448, 1460, 1428, 1440];
/// The most that a segment carries in jumbo frames of 9000 bytes.
const JUMBO: u32 = 8960;

/// The largest segment of one direction so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SegmentSize {
    largest: u16,
    /// How many segments of that size were sent, up to 255.
    times: u8,
}

impl SegmentSize {
    /// Notes a packet with `payload` bytes. `mss` is the payload that the ends' SYNs allow in a
    /// segment, options included (RFC 9293, section 3.7.1), where a SYN was captured. Returns how
    /// many segments the packet was on the wire.
    pub fn sees(&mut self, payload: u32, mss: Option<u16>, has_timestamps: bool) -> u32 {
        let options = if has_timestamps { STAMPS_OPTION } else { 0 };
        let bound = mss.map_or_else(
            || self.guess(payload),
            |mss| u32::from(mss).saturating_sub(options).max(1),
        );
        let size = u16::try_from(payload.min(bound)).unwrap_or(u16::MAX);
        if size > self.largest {
            (self.largest, self.times) = (size, 0);
        }
        let full = payload / self.get();
        self.times = self.times.saturating_add(full.try_into().unwrap_or(u8::MAX));
        payload.div_ceil(self.get())
    }

    /// The largest segment: at least one byte.
    pub fn get(self) -> u32 {
        u32::from(self.largest).max(1)
    }

    /// How many segments of that size were sent, up to 255.
    pub fn times(self) -> u32 {
        self.times.into()
    }

    /// The most that a segment carries, judging only by the packets.
    fn guess(self, payload: u32) -> u32 {
        if payload <= ETHERNET || (self.get() > ETHERNET && payload <= self.get()) {
            return payload;
        }
        let usual = LIKELY.iter().find(|size| payload.is_multiple_of(**size)).copied();
        match usual {
            // A full segment was seen alone.
            _ if LIKELY.contains(&self.get()) => self.get(),
            Some(size) => size,
            None if payload <= JUMBO => payload,
            None => self.get().max(LIKELY[0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of(packets: &[u32], mss: Option<u16>, has_timestamps: bool) -> (u32, u32) {
        let mut size = SegmentSize::default();
        let count = packets.iter().map(|payload| size.sees(*payload, mss, has_timestamps)).sum();
        (size.get(), count)
    }

    #[test]
    fn merged_packets_count_as_the_segments_on_the_wire() {
        assert_eq!(size_of(&[14_480, 1448, 2896, 100], Some(1460), true), (1448, 14));
        assert_eq!(size_of(&[14_600, 100], Some(1460), false), (1460, 11));
        assert_eq!(size_of(&[14_480, 65_160], None, true), (1448, 55), "no handshake");
        assert_eq!(size_of(&[1428, 9999], None, true), (1428, 9), "a single one was seen");
    }

    #[test]
    fn near_miss_packets_that_were_on_the_wire_as_they_are() {
        assert_eq!(size_of(&[8948, 8948, 8948], Some(8960), true), (8948, 3), "jumbo frames");
        assert_eq!(
            size_of(&[8948, 8948, 500], None, true),
            (8948, 3),
            "jumbo frames without a handshake"
        );
        assert_eq!(size_of(&[65_483, 65_483], Some(65_495), true), (65_483, 2), "loopback");
        assert_eq!(size_of(&[524, 524], Some(1460), true), (524, 2), "a path with a smaller MTU");
        assert_eq!(size_of(&[0], None, false), (1, 0));
    }
}
