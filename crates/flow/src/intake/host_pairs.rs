//! How much one host has sent to another, over all of their connections.
//!
//! Connections between the same two hosts share their path. What one of them carries is no measure
//! of a link that carries the others, too; what passes in all of them together is.

use fullpipe_model::units::{Duration, Instant};
use std::collections::HashMap;
use std::net::IpAddr;

/// So many directions are remembered. Beyond it all are forgotten: a connection then has nothing
/// beside it until its next segment.
const MOST: usize = 1 << 14;
/// A longer silence counts as this much.
const SILENCE_MOST: Duration = Duration::from_secs(1);

/// What has passed from one host to another, in all of their connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostPairSum {
    /// Its payload; 0 where nothing is known.
    pub bytes: u64,
    /// The squares of the times from one of its segments to the next, in square microseconds. The
    /// part of a sum that lies between two moments, divided by the time between them, is how long
    /// nothing passed, at a moment of that time on average.
    pub gaps: u64,
}

/// The data of each direction between two hosts.
#[derive(Debug)]
pub(super) struct HostPairs {
    all: HashMap<Way, Passed, foldhash::fast::RandomState>,
    /// The last one, which is the next one most of the time.
    last: (Way, Passed),
}

#[derive(Debug, Clone, Copy, Default)]
struct Passed {
    carried: HostPairSum,
    /// When the last of it did.
    at: Option<Instant>,
}

/// From which host to which.
type Way = (IpAddr, IpAddr);

const NOWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

impl Default for HostPairs {
    fn default() -> Self {
        HostPairs { all: HashMap::default(), last: ((NOWHERE, NOWHERE), Passed::default()) }
    }
}

impl HostPairs {
    /// Adds a segment's payload. Returns what was carried that way, with it.
    #[inline]
    pub fn add(&mut self, at: Instant, way: Way, payload: u32) -> HostPairSum {
        if self.last.0 != way {
            self.turn_to(way);
        }
        let Passed { carried, at: before } = &mut self.last.1;
        let gap = before.replace(at).map_or(Duration::ZERO, |before| at.since(before));
        let gap = gap.min(SILENCE_MOST).as_micros();
        carried.bytes += u64::from(payload);
        carried.gaps = carried.gaps.wrapping_add(gap * gap);
        *carried
    }

    fn turn_to(&mut self, way: Way) {
        if self.all.len() >= MOST {
            self.all.clear();
        }
        let now = self.all.get(&way).copied().unwrap_or_default();
        let (before, passed) = std::mem::replace(&mut self.last, (way, now));
        self.all.insert(before, passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn host(number: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(number))
    }

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    #[test]
    fn each_way_between_two_hosts_has_a_sum_of_its_own() {
        let mut pairs = HostPairs::default();
        let (to, back, other) = ((host(1), host(2)), (host(2), host(1)), (host(1), host(3)));
        let bytes = |carried: HostPairSum| carried.bytes;
        let sums = [(to, 10), (to, 5), (back, 7), (other, 1), (to, 5), (back, 0)]
            .map(|(way, payload)| bytes(pairs.add(at(0), way, payload)));
        assert_eq!(sums, [10, 15, 7, 1, 20, 7]);
    }

    #[test]
    fn the_sum_of_squares_tells_an_even_stream_from_a_pause() {
        let mut pairs = HostPairs::default();
        let way = (host(1), host(2));
        let mut silence = |gaps: &[u64]| {
            let mut now = 0;
            let begin = pairs.add(at(now), way, 1).gaps;
            let mut end = begin;
            for gap in gaps {
                now += gap;
                end = pairs.add(at(now), way, 1).gaps;
            }
            pairs.last.1.at = None;
            (end - begin) / now
        };
        assert_eq!(silence(&[100; 10]), 100);
        assert_eq!(silence(&[1000]), 1000);
        // Of a second in which nothing passes for the half: a quarter at a random moment.
        assert_eq!(silence(&[vec![1; 500_000], vec![500_000]].concat()), 250_000);
    }

    #[test]
    fn a_scan_of_many_hosts_takes_bounded_memory() {
        let mut pairs = HostPairs::default();
        for number in 0..200_000 {
            pairs.add(at(0), (host(number), host(1)), 1);
        }
        assert!(pairs.all.len() <= MOST);
    }
}
