//! Places in the time-sequence graph: packets that mean something.
//!
//! Where there are more than the bound, every second is listed, then every fourth, and so on, so
//! that what is listed stays evenly spread over the connection. All are counted.

use super::differences::{Differences, Plain, number};
use fullpipe_model::units::Duration;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// One place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// When, in µs from the connection's first packet.
    pub at: u64,
    /// The first byte, or the acknowledged number of an ACK.
    pub sequence: i64,
    /// In bytes.
    pub length: u32,
    /// The packet's number in the capture.
    pub packet: u64,
}

/// A listed place in the sequence numbers of its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkedPlace {
    /// When, from the connection's first packet.
    pub at: Duration,
    /// The first byte, or the acknowledged number of an ACK.
    pub sequence: i64,
    /// The byte after the last.
    pub end: i64,
}

/// The places of one label.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    count: u64,
    /// Every 2^`skip`-th is listed, from the first.
    skip: u32,
    listed: Vec<Mark>,
}

impl Marks {
    /// How many there are, listed or not.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The listed places, in order of time.
    pub fn places(&self) -> impl Iterator<Item = MarkedPlace> {
        self.listed.iter().map(|mark| MarkedPlace {
            at: Duration::from_micros(mark.at),
            sequence: mark.sequence,
            end: mark.sequence.saturating_add(mark.length.into()),
        })
    }

    pub(super) fn len(&self) -> usize {
        self.listed.len()
    }

    /// Adds a place. At most `most` are listed.
    pub(super) fn add(&mut self, mark: Mark, most: usize) {
        if self.count.trailing_zeros() >= self.skip {
            self.listed.push(mark);
            self.thin(most);
        }
        self.count += 1;
    }

    /// Lists fewer until at most `most` are left.
    pub(super) fn thin(&mut self, most: usize) {
        while self.listed.len() > most.max(1) {
            self.skip += 1;
            let mut number = 0;
            self.listed.retain(|_| {
                number += 1;
                number % 2 == 1
            });
        }
    }
}

impl Serialize for Marks {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let listed = &self.listed;
        let mut map = s.serialize_map(Some(5))?;
        map.serialize_entry("count", &self.count)?;
        map.serialize_entry("time_us", &Differences(listed.iter().map(|m| number(m.at))))?;
        map.serialize_entry("sequence", &Differences(listed.iter().map(|m| m.sequence)))?;
        map.serialize_entry("length", &Plain(listed.iter().map(|m| m.length.into())))?;
        map.serialize_entry("packet", &Differences(listed.iter().map(|m| number(m.packet))))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn those_listed_are_evenly_spread(count in 1_u64..2000, most in 1_usize..70) {
            let mut marks = Marks::default();
            for number in 0..count {
                let mark = Mark { at: number, sequence: 0, length: 1, packet: number };
                marks.add(mark, most);
            }
            prop_assert_eq!(marks.count(), count);
            let listed: Vec<u64> = marks.listed.iter().map(|mark| mark.at).collect();
            prop_assert!(listed.len() <= most && listed.len() as u64 >= count.min(most as u64) / 2);
            let step = 1 << marks.skip;
            let expected: Vec<u64> = (0..count).step_by(step).collect();
            prop_assert_eq!(listed, expected);
        }
    }
}
