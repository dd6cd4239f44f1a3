//! Converts each thread's numbers of its connections to those of the whole capture.

use std::collections::HashMap;

/// Numbers connections by first packet, as a single analyzer would, whatever the number of threads,
/// if all rounds are combined in order.
pub struct Numbers {
    parts: Vec<ThreadPart>,
    next: u64,
}

/// One thread's connections.
#[derive(Default)]
struct ThreadPart {
    opened: u64,
    /// From its own numbers to the capture's, for open connections.
    numbers: HashMap<u64, u64>,
}

impl Numbers {
    pub fn new(parts: usize) -> Self {
        Numbers { parts: (0..parts).map(|_| ThreadPart::default()).collect(), next: 0 }
    }

    /// Numbers the connections that opened in a round: for each part, their first packets.
    pub fn open<'a>(&mut self, parts: impl IntoIterator<Item = (usize, &'a [u64])>) {
        let mut opened: Vec<(u64, usize)> = Vec::new();
        for (part, first_packets) in parts {
            opened.extend(first_packets.iter().map(|first| (*first, part)));
        }
        opened.sort_unstable();
        for (_, part) in opened {
            let part = &mut self.parts[part];
            part.numbers.insert(part.opened, self.next);
            part.opened += 1;
            self.next += 1;
        }
    }

    /// The capture's number of a part's connection.
    pub fn of(&self, part: usize, own: u64) -> u64 {
        self.parts[part].numbers.get(&own).copied().unwrap_or(own)
    }

    /// The same, and forgets the connection.
    pub fn close(&mut self, part: usize, own: u64) -> u64 {
        self.parts[part].numbers.remove(&own).unwrap_or(own)
    }
}
