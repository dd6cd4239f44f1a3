//! Whose turn it is: deficit round robin over the streams that have something to send.
//!
//! Every turn adds [`QUANTUM`] to a stream's deficit, and its chunks are paid from that, so streams
//! with small chunks get as many bytes as those with large ones. Source: M. Shreedhar and
//! G. Varghese, "Efficient Fair Queueing using Deficit Round Robin", SIGCOMM 1995.

use super::frame::{CHUNK, StreamId};
use std::collections::{HashMap, VecDeque};

/// What a turn is worth: a full chunk, so that every turn sends something.
const QUANTUM: i64 = CHUNK as i64;

/// The streams in order.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    order: VecDeque<StreamId>,
    /// What each may still send in its turn. What it sent beyond that is taken from the next turn.
    deficit: HashMap<StreamId, i64>,
}

impl Turns {
    /// A stream has something to send; it may be known already.
    pub fn join(&mut self, stream: StreamId) {
        self.deficit.entry(stream).or_insert_with(|| {
            self.order.push_back(stream);
            QUANTUM
        });
    }

    /// The stream whose turn it is.
    pub fn first(&self) -> Option<StreamId> {
        self.order.front().copied()
    }

    /// The first stream sent a chunk of `length`.
    pub fn pay(&mut self, length: u64) {
        let Some(deficit) = self.order.front().and_then(|first| self.deficit.get_mut(first)) else {
            return;
        };
        *deficit -= length as i64;
        if *deficit <= 0 {
            *deficit += QUANTUM;
            self.order.rotate_left(1);
        }
    }

    /// Gives the turn to the next stream that `suits`. Returns whether there is one.
    pub fn rotate_to(&mut self, suits: impl Fn(StreamId) -> bool) -> bool {
        let at = self.order.iter().position(|stream| suits(*stream));
        self.order.rotate_left(at.unwrap_or(0));
        at.is_some()
    }

    /// The first stream has nothing to send.
    pub fn leave(&mut self) {
        if let Some(stream) = self.order.pop_front() {
            self.deficit.remove(&stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With chunks of any size, streams are never apart by more than a quantum and a chunk.
    #[test]
    fn streams_get_the_same_bytes_whatever_their_chunks() {
        let sizes = [CHUNK as u64, 1000, 16, 9000];
        let mut turns = Turns::default();
        (0..4).for_each(|stream| turns.join(StreamId(stream)));
        let mut sent = [0u64; 4];
        for _ in 0..200_000 {
            let stream = turns.first().unwrap().0 as usize;
            sent[stream] += sizes[stream];
            turns.pay(sizes[stream]);
        }
        let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
        assert!(most - least <= 2 * CHUNK as u64, "{sent:?}");
    }

    #[test]
    fn a_stream_joins_once_and_leaves() {
        let mut turns = Turns::default();
        turns.join(StreamId(1));
        turns.join(StreamId(1));
        turns.leave();
        assert_eq!(turns.first(), None);
    }
}
