//! The memory of a direction: frames one after another in a ring that was allocated, and touched,
//! before the run.
//!
//! A packet stays where it was read until its last reference has ended: each segment on the link is
//! one, each duplicate of a segment another, and they end in any order. Nothing is copied. Pages
//! are touched in advance because a fresh page costs more than the packet in it. When the ring is
//! full, reading stops and the host's own device queue holds the packets. That is counted, because
//! the model does not know that queue.

use super::super_packet::Layout;
use fullpipe_model::units::Instant;
use std::collections::VecDeque;

/// Room for the largest frame: virtio and link headers and 64 KB.
pub const FRAME_MAX: usize = 66_000;

/// When and as which packet a frame arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// When it arrived.
    pub arrival: Instant,
    /// The number of its first segment.
    pub number: u64,
}

/// One frame in the ring.
#[derive(Debug)]
struct Frame {
    start: u64,
    len: usize,
    layout: Layout,
    origin: Origin,
    /// Segments and duplicates that are still on the link.
    references: u32,
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
    #[cfg(test)]
    pub fn size(&self) -> usize {
        self.memory.len()
    }

    /// Where to read the next frame to, [`FRAME_MAX`] bytes; `None` while the ring is full.
    pub fn space(&mut self) -> Option<&mut [u8]> {
        let start = self.next_start()?;
        let size = self.memory.len() as u64;
        let offset = (start % size) as usize;
        Some(&mut self.memory[offset..offset + FRAME_MAX])
    }

    /// Where the next frame starts. Frames are contiguous, so it is at the beginning of memory if
    /// the end is too near.
    fn next_start(&self) -> Option<u64> {
        let size = self.memory.len() as u64;
        let position = self.tail % size;
        let start = if position + FRAME_MAX as u64 > size {
            self.tail + (size - position)
        } else {
            self.tail
        };
        (start + FRAME_MAX as u64 - self.head <= size).then_some(start)
    }

    /// The bytes just read into [`Ring::space`].
    pub fn fresh(&self, len: usize) -> &[u8] {
        let start = self.next_start().unwrap_or(self.tail);
        let offset = (start % self.memory.len() as u64) as usize;
        &self.memory[offset..offset + len]
    }

    /// Keeps the frame of `len` bytes just read, with this number of `references`; returns its
    /// serial.
    pub fn keep(&mut self, len: usize, layout: Layout, origin: Origin, references: u32) -> u64 {
        debug_assert!(references > 0 && len <= FRAME_MAX);
        let start = self.next_start().unwrap_or(self.tail);
        if self.frames.is_empty() {
            self.head = start;
        }
        // Aligned to cache lines: two frames never share one.
        self.tail = start + (len as u64).next_multiple_of(64);
        self.frames.push_back(Frame { start, len, layout, origin, references });
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

    /// When and as which packet a kept frame arrived.
    pub fn origin(&self, serial: u64) -> Option<Origin> {
        let at = usize::try_from(serial.checked_sub(self.first)?).ok()?;
        self.frames.get(at).map(|frame| frame.origin)
    }

    /// Whether it holds a frame with this serial.
    pub fn has(&self, serial: u64) -> bool {
        (self.first..self.next_serial()).contains(&serial)
    }

    /// Whether it holds no frame.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Makes the first frame of this ring, which must be new, get the number `serial`.
    pub(super) fn continue_from(&mut self, serial: u64) {
        debug_assert!(self.is_empty());
        self.first = serial;
    }

    /// Ends `references` references to a frame. With the last one its room is free, once the frames
    /// before it are.
    pub fn release(&mut self, serial: u64, references: u32) {
        let frame = serial
            .checked_sub(self.first)
            .and_then(|at| self.frames.get_mut(usize::try_from(at).ok()?));
        if let Some(frame) = frame {
            debug_assert!(frame.references >= references, "more references end than there were");
            frame.references = frame.references.saturating_sub(references);
        }
        while self.frames.front().is_some_and(|frame| frame.references == 0) {
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
        /// Whatever the order in which references end, a frame's bytes stay its own until its last
        /// one does.
        #[test]
        fn frames_never_overlap(steps in prop::collection::vec((21usize..FRAME_MAX, 1u32..4, any::<prop::sample::Index>(), any::<bool>()), 1..300)) {
            let mut ring = Ring::new(10 * FRAME_MAX);
            let mut kept: Vec<(u64, u8, usize, u32)> = Vec::new();
            for (number, (len, references, which, deliver)) in steps.into_iter().enumerate() {
                let mark = number as u8;
                if let Some(space) = ring.space() {
                    space[..len].fill(mark);
                    space[0] = 0;
                    let layout = Layout::parse(ring.fresh(len), 0);
                    if let Some(layout) = layout {
                        kept.push((ring.keep(len, layout, Origin::default(), references), mark, len, references));
                    }
                } else {
                    prop_assert!(!kept.is_empty(), "an empty ring is never full");
                }
                if deliver && !kept.is_empty() {
                    let at = which.index(kept.len());
                    ring.release(kept[at].0, 1);
                    kept[at].3 -= 1;
                    if kept[at].3 == 0 {
                        kept.remove(at);
                    }
                }
                for (serial, mark, len, _) in &kept {
                    let (bytes, _) = ring.get(*serial).unwrap();
                    prop_assert_eq!(bytes.len(), *len);
                    prop_assert!(bytes[1..].iter().all(|byte| byte == mark));
                }
            }
            for (serial, _, _, references) in kept.drain(..).rev() {
                ring.release(serial, references);
            }
            prop_assert!(ring.is_empty() && ring.space().is_some());
        }
    }
}
