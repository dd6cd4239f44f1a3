//! The packet memory of a direction: a ring, and during a change of path also the previous rings.
//!
//! A new path can need more room than the one before. The thread that asked for the change
//! allocates and touches the new ring. Here it only takes over: new arrivals go into it, and frames
//! in the old ring stay there until they have left. Serial numbers continue, so a segment's frame
//! is found in whichever ring holds it.

use super::ring::{Origin, Ring};
use super::super_packet::Layout;

/// The rings; frames are read into the last one.
#[derive(Debug)]
pub struct Memory {
    current: Ring,
    /// Oldest first; each is unused when its last frame has left.
    before: Vec<Ring>,
    /// Freeing them takes time, so another thread does it.
    superfluous: Vec<Ring>,
}

impl Memory {
    /// Memory of one ring.
    pub fn new(ring: Ring) -> Self {
        Memory { current: ring, before: Vec::new(), superfluous: Vec::new() }
    }

    /// Its size in bytes, including rings that still drain.
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.before.iter().chain([&self.current]).map(Ring::size).sum()
    }

    /// Where to read the next frame to; `None` if there is no room.
    pub fn space(&mut self) -> Option<&mut [u8]> {
        self.current.space()
    }

    /// The bytes just read into [`Memory::space`].
    pub fn fresh(&self, len: usize) -> &[u8] {
        self.current.fresh(len)
    }

    /// See [`Ring::keep`].
    pub fn keep(&mut self, len: usize, layout: Layout, origin: Origin, references: u32) -> u64 {
        self.current.keep(len, layout, origin, references)
    }

    /// The serial that the next kept frame gets.
    pub fn next_serial(&self) -> u64 {
        self.current.next_serial()
    }

    /// Bytes and cuts of a kept frame.
    pub fn get(&self, serial: u64) -> Option<(&[u8], Layout)> {
        self.current.get(serial).or_else(|| self.before.iter().find_map(|ring| ring.get(serial)))
    }

    /// When and as which packet a kept frame arrived.
    pub fn origin(&self, serial: u64) -> Option<Origin> {
        self.current
            .origin(serial)
            .or_else(|| self.before.iter().find_map(|ring| ring.origin(serial)))
    }

    /// Ends `references` references to a frame.
    pub fn release(&mut self, serial: u64, references: u32) {
        if self.before.is_empty() || self.current.has(serial) {
            return self.current.release(serial, references);
        }
        let Some(old) = self.before.iter().position(|ring| ring.has(serial)) else { return };
        self.before[old].release(serial, references);
        if self.before[old].is_empty() {
            self.superfluous.push(self.before.remove(old));
        }
    }

    /// Makes `ring`, which must be new, take over.
    pub fn grow(&mut self, mut ring: Ring) {
        ring.continue_from(self.current.next_serial());
        let old = std::mem::replace(&mut self.current, ring);
        let rings = if old.is_empty() { &mut self.superfluous } else { &mut self.before };
        rings.push(old);
    }

    /// An unused ring.
    pub fn superfluous(&mut self) -> Option<Ring> {
        self.superfluous.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::FRAME_MAX;
    use super::*;

    fn keep(memory: &mut Memory, mark: u8) -> u64 {
        memory.space().unwrap()[..40].fill(mark);
        let layout = Layout::parse(memory.fresh(40), 0).unwrap();
        memory.keep(40, layout, Origin::default(), 1)
    }

    #[test]
    fn a_larger_ring_takes_over_and_the_old_one_drains() {
        let mut memory = Memory::new(Ring::new(4 * FRAME_MAX));
        let first = keep(&mut memory, 1);
        memory.grow(Ring::new(8 * FRAME_MAX));
        let second = keep(&mut memory, 2);
        assert_ne!(first, second);
        assert_eq!(memory.size(), 12 * FRAME_MAX);
        assert!(memory.get(first).unwrap().0.iter().all(|byte| *byte == 1));
        assert!(memory.get(second).unwrap().0.iter().all(|byte| *byte == 2));
        memory.release(second, 1);
        assert!(memory.superfluous().is_none());
        memory.release(first, 1);
        assert_eq!(memory.superfluous().unwrap().size(), 4 * FRAME_MAX);
        assert_eq!(memory.size(), 8 * FRAME_MAX);
        assert!(memory.get(first).is_none());
        let third = keep(&mut memory, 3);
        assert!(third > second && memory.get(third).is_some());
        memory.release(third, 1);
        memory.grow(Ring::new(4 * FRAME_MAX));
        assert!(memory.superfluous().is_some(), "an empty ring is given up at once");
    }
}
