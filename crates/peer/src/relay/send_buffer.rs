//! One direction of a stream, as sent: what waits, what is on a carrier, what has to go again.
//!
//! A chunk is cut once, and keeps its offset and length however often it is sent. It is forgotten
//! when any of its copies was acknowledged. It is *lost* when the carriers of all its copies died.

use super::frame::CHUNK;
use bytes::{Bytes as Buffer, BytesMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How much a stream may have waiting before its writer has to wait: a few chunks for each of some
/// carriers, so that none runs dry between two reads of the user's connection.
pub(crate) const WAITING_MAX: u64 = 512 * 1024;

/// A chunk is overtaken when chunks so far behind it have arrived: carriers take turns at a few
/// chunks, so less says nothing.
const OVERTAKEN_BY: u64 = 8 * CHUNK as u64;

/// A chunk that is on carriers.
#[derive(Debug)]
struct Chunk {
    data: Buffer,
    /// On how many carriers that live.
    copies: u32,
}

/// The sending half of a stream.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    waiting: VecDeque<Buffer>,
    waiting_bytes: u64,
    /// The offset of the first byte that waits.
    next: u64,
    /// The first offset that the peer does not accept yet.
    credit: u64,
    sent: BTreeMap<u64, Chunk>,
    sent_bytes: u64,
    lost: BTreeSet<u64>,
    /// The furthest chunk that was acknowledged begins here.
    furthest: u64,
    is_finished: bool,
}

impl SendBuffer {
    /// Adds to the end of the stream.
    pub fn write(&mut self, data: Buffer) {
        if !data.is_empty() && !self.is_finished {
            self.waiting_bytes += data.len() as u64;
            self.waiting.push_back(data);
        }
    }

    /// Nothing follows.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// The peer accepts what is below `limit`.
    pub fn grant(&mut self, limit: u64) {
        self.credit = self.credit.max(limit);
    }

    /// How much may be written now.
    pub fn room(&self) -> u64 {
        WAITING_MAX.saturating_sub(self.waiting_bytes)
    }

    /// Bytes that wait, whether the peer accepts them or not.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Bytes on carriers, or lost with them.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Whether the peer's credit alone keeps the stream from sending.
    pub fn is_out_of_credit(&self) -> bool {
        self.waiting_bytes > 0 && self.credit <= self.next
    }

    /// Whether there is a chunk to send: one that was lost, or, if `may_send_new`, a new one.
    pub fn has_chunk(&self, may_send_new: bool) -> bool {
        !self.lost.is_empty() || may_send_new && self.waiting_bytes > 0 && self.credit > self.next
    }

    /// The length of the stream, once it was finished and everything has been sent.
    pub fn length(&self) -> Option<u64> {
        (self.is_finished && self.waiting_bytes == 0).then_some(self.next)
    }

    /// Whether the peer has everything that was written.
    pub fn is_delivered(&self) -> bool {
        self.waiting_bytes == 0 && self.sent.is_empty()
    }

    /// The next chunk, of at most [`CHUNK`] bytes, with its offset.
    pub fn take(&mut self, may_send_new: bool) -> Option<(u64, Buffer)> {
        if let Some(offset) = self.lost.pop_first() {
            return self.again(offset).map(|data| (offset, data));
        }
        let room = self.credit.saturating_sub(self.next).min(CHUNK as u64) as usize;
        if !may_send_new || room == 0 {
            return None;
        }
        let data = self.cut(room)?;
        let offset = self.next;
        self.next += data.len() as u64;
        self.waiting_bytes -= data.len() as u64;
        self.sent_bytes += data.len() as u64;
        self.sent.insert(offset, Chunk { data: data.clone(), copies: 1 });
        Some((offset, data))
    }

    /// One more copy of a chunk; `None` if the peer has it.
    pub fn again(&mut self, offset: u64) -> Option<Buffer> {
        let chunk = self.sent.get_mut(&offset)?;
        chunk.copies += 1;
        Some(chunk.data.clone())
    }

    /// Whether chunks behind this one have arrived and it has not.
    pub fn is_overtaken(&self, offset: u64) -> bool {
        self.furthest > offset + OVERTAKEN_BY && self.sent.contains_key(&offset)
    }

    /// A copy was acknowledged. Returns the bytes that are new to the peer.
    pub fn acknowledge(&mut self, offset: u64) -> u64 {
        self.lost.remove(&offset);
        self.furthest = self.furthest.max(offset);
        let Some(chunk) = self.sent.remove(&offset) else { return 0 };
        self.sent_bytes -= chunk.data.len() as u64;
        chunk.data.len() as u64
    }

    /// The carrier of a copy died.
    pub fn lose(&mut self, offset: u64) {
        let Some(chunk) = self.sent.get_mut(&offset) else { return };
        chunk.copies = chunk.copies.saturating_sub(1);
        if chunk.copies == 0 {
            self.lost.insert(offset);
        }
    }

    /// Cuts up to `most` bytes off the front. Small writes become one chunk.
    fn cut(&mut self, most: usize) -> Option<Buffer> {
        let first = self.waiting.front_mut()?;
        if first.len() >= most {
            let data = first.split_to(most);
            if first.is_empty() {
                self.waiting.pop_front();
            }
            return Some(data);
        }
        if self.waiting.len() == 1 {
            return self.waiting.pop_front();
        }
        let mut data = BytesMut::with_capacity(most.min(self.waiting_bytes as usize));
        while let Some(first) = self.waiting.front_mut() {
            let part = first.split_to(first.len().min(most - data.len()));
            data.extend_from_slice(&part);
            if !first.is_empty() {
                break;
            }
            self.waiting.pop_front();
        }
        Some(data.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_lost_with_its_last_copy_and_goes_again_as_it_was() {
        let mut buffer = SendBuffer::default();
        buffer.grant(1000);
        buffer.write(Buffer::from_static(b"hello "));
        buffer.write(Buffer::from_static(b"world"));
        let (offset, data) = buffer.take(true).unwrap();
        assert_eq!((offset, &data[..]), (0, &b"hello world"[..]));
        assert_eq!(buffer.again(0).unwrap(), data);
        buffer.lose(0);
        assert!(!buffer.has_chunk(true));
        buffer.lose(0);
        assert_eq!(buffer.take(false), Some((0, data)));
        assert_eq!(buffer.acknowledge(0), 11);
        assert_eq!(buffer.acknowledge(0), 0);
        assert!(buffer.is_delivered());
    }

    #[test]
    fn credit_cuts_a_chunk_and_then_holds_it_back() {
        let mut buffer = SendBuffer::default();
        buffer.grant(3);
        buffer.grant(2);
        buffer.write(Buffer::from_static(b"abcdef"));
        buffer.finish();
        assert_eq!(buffer.take(true).unwrap().1, "abc");
        assert!(buffer.is_out_of_credit() && buffer.take(true).is_none());
        assert_eq!(buffer.length(), None);
        buffer.grant(100);
        assert_eq!(buffer.take(true), Some((3, Buffer::from_static(b"def"))));
        assert_eq!(buffer.length(), Some(6));
    }
}
