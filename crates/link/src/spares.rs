//! Empty buffers for a thread that must not wait for a disk.
//!
//! The link's thread fills a buffer and passes it to a writer, which gives it back. Some buffers
//! exist from the start. While the disk is slow, more are made, up to a bound; then there is none,
//! and the caller counts what it could not keep.

use std::sync::mpsc::{Receiver, Sender, channel};

/// The empty buffers of one producer.
#[derive(Debug)]
pub struct Spares<T> {
    back: Receiver<Vec<T>>,
    capacity: usize,
    may_be_made: usize,
}

impl<T> Spares<T> {
    /// `ready` buffers with room for `capacity` items, and up to `most` in all. The sender gives
    /// them back.
    pub fn new(capacity: usize, ready: usize, most: usize) -> (Spares<T>, Sender<Vec<T>>) {
        let (give_back, back) = channel();
        for _ in 0..ready {
            let _ = give_back.send(Vec::with_capacity(capacity));
        }
        (Spares { back, capacity, may_be_made: most.saturating_sub(ready) }, give_back)
    }

    /// An empty buffer, if there is one or one more may be made.
    pub fn take(&mut self) -> Option<Vec<T>> {
        self.back.try_recv().ok().or_else(|| {
            self.may_be_made = self.may_be_made.checked_sub(1)?;
            Some(Vec::with_capacity(self.capacity))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_are_made_up_to_the_bound_and_what_comes_back_is_used_again() {
        let (mut spares, give_back) = Spares::<u8>::new(10, 2, 3);
        let taken: Vec<_> = std::iter::from_fn(|| spares.take()).collect();
        assert_eq!(taken.len(), 3);
        assert!(taken.iter().all(|buffer| buffer.capacity() >= 10));
        for buffer in taken {
            give_back.send(buffer).unwrap();
        }
        assert_eq!(std::iter::from_fn(|| spares.take()).count(), 3);
    }
}
