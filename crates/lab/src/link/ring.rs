//! The memory of a direction: frames one after another in a ring that was taken, and touched, before the run.
//!
//! A packet stays where it was read until its last segment has been written or dropped; nothing is copied. Pages are
//! touched up front because a fresh page costs more than the packet in it. When the ring is full, reading stops and the
//! host's own device queue holds the packets: that is counted, for it is a queue that the model does not know.

use super::super_packet::Layout;
use std::collections::VecDeque;

/// Room for the largest frame: virtio and link headers and 64 KB.
pub const FRAME_MAX: usize = 66_000;

/// One frame in the ring.
#[derive(Debug)]
pub struct Frame {
    start: u64,
    len: usize,
    /// Its cuts; `None` only for frames that were refused.
    pub layout: Layout,
    /// Segments still to be delivered.
    left: u32,
}

/// A ring of frames, addressed by a serial number that never repeats within a run.
#[derive(Debug)]
pub struct Ring {
    memory: Vec<u8>,
    frames: VecDeque<Frame>,
    first: u64,
    head: u64,
    tail: u64,
}

impl Ring {
    /// A ring of `size` bytes (at least a few frames), every page touched.
    pub fn new(size: usize) -> Self {
        let size = size.max(4 * FRAME_MAX);
        let mut memory = vec![0u8; size];
        for page in memory.chunks_mut(4096) {
            page[0] = 1;
        }
        Ring { memory, frames: VecDeque::with_capacity(4096), first: 0, head: 0, tail: 0 }
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.memory.len()
    }

    /// Where the next frame may be read to, [`FRAME_MAX`] bytes; `None` while the ring is full.
    pub fn space(&mut self) -> Option<&mut [u8]> {
        let start = self.next_start()?;
        let size = self.memory.len() as u64;
        let offset = (start % size) as usize;
        Some(&mut self.memory[offset..offset + FRAME_MAX])
    }

    /// Where the next frame starts: contiguous, so at the beginning of memory where the end is too near.
    fn next_start(&self) -> Option<u64> {
        let size = self.memory.len() as u64;
        let position = self.tail % size;
        let start = if position + FRAME_MAX as u64 > size { self.tail + (size - position) } else { self.tail };
        (start + FRAME_MAX as u64 - self.head <= size).then_some(start)
    }

    /// The bytes just read into [`Ring::space`].
    pub fn fresh(&self, len: usize) -> &[u8] {
        let start = self.next_start().unwrap_or(self.tail);
        let offset = (start % self.memory.len() as u64) as usize;
        &self.memory[offset..offset + len]
    }

    /// Keeps the frame of `len` bytes just read, of which `left` segments are to be delivered; returns its serial.
    pub fn keep(&mut self, len: usize, layout: Layout, left: u32) -> u64 {
        debug_assert!(left > 0 && len <= FRAME_MAX);
        let start = self.next_start().unwrap_or(self.tail);
        if self.frames.is_empty() {
            self.head = start;
        }
        // Aligned to cache lines: two frames never share one.
        self.tail = start + (len as u64).next_multiple_of(64);
        self.frames.push_back(Frame { start, len, layout, left });
        self.first + self.frames.len() as u64 - 1
    }

    /// The serial that the next kept frame gets.
    pub fn next_serial(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// Bytes and cuts of a kept frame.
    pub fn get(&self, serial: u64) -> Option<(&[u8], Layout)> {
        let frame = self.frames.get(usize::try_from(serial.checked_sub(self.first)?).ok()?)?;
        let offset = (frame.start % self.memory.len() as u64) as usize;
        Some((&self.memory[offset..offset + frame.len], frame.layout))
    }

    /// `segments` of a frame have been delivered: with its last, its room is free once those before it are.
    pub fn release(&mut self, serial: u64, segments: u32) {
        if let Some(frame) = self.frames.get_mut((serial - self.first) as usize) {
            frame.left = frame.left.saturating_sub(segments);
        }
        while self.frames.front().is_some_and(|frame| frame.left == 0) {
            self.frames.pop_front();
            self.first += 1;
            self.head = self.frames.front().map_or(self.tail, |frame| frame.start);
        }
        if self.frames.is_empty() {
            // Start over at the beginning: an idle link stays in the cache.
            (self.head, self.tail) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the order of delivery, a frame's bytes stay its own until its last segment is out.
        #[test]
        fn frames_never_overlap(steps in prop::collection::vec((21usize..FRAME_MAX, any::<prop::sample::Index>(), any::<bool>()), 1..300)) {
            let mut ring = Ring::new(10 * FRAME_MAX);
            let mut kept: Vec<(u64, u8, usize)> = Vec::new();
            for (number, (len, which, deliver)) in steps.into_iter().enumerate() {
                let mark = number as u8;
                if let Some(space) = ring.space() {
                    space[..len].fill(mark);
                    space[0] = 0;
                    let layout = Layout::parse(ring.fresh(len), 0);
                    if let Some(layout) = layout {
                        kept.push((ring.keep(len, layout, 1), mark, len));
                    }
                } else {
                    prop_assert!(!kept.is_empty(), "an empty ring is never full");
                }
                if deliver && !kept.is_empty() {
                    let (serial, _, _) = kept.remove(which.index(kept.len()));
                    ring.release(serial, 1);
                }
                for (serial, mark, len) in &kept {
                    let (bytes, _) = ring.get(*serial).unwrap();
                    prop_assert_eq!(bytes.len(), *len);
                    prop_assert!(bytes[1..].iter().all(|byte| byte == mark));
                }
            }
        }
    }
}
