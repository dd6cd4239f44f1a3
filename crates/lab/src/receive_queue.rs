//! What the receiving sockets of a transfer hold: data that came and was not read.

use fullpipe_model::observe::Sample;
use fullpipe_model::scenario::{Client, Scenario};
use fullpipe_model::units::Bytes;

/// What sockets hold at one moment, together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Payload that was received and not read.
    pub queue: Bytes,
    /// The memory that it takes, with the kernel's overhead.
    pub memory: Bytes,
}

impl Held {
    /// By `samples`, one of each socket, at one moment.
    pub fn of<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Held {
        samples.into_iter().fold(Held::default(), |held, sample| Held {
            queue: held.queue + sample.rqueue,
            memory: held.memory + sample.memory.map_or(Bytes::ZERO, |memory| memory.rmem_alloc),
        })
    }
}

/// The same over a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveQueue {
    /// Over the time of the samples, which have an even grid.
    pub mean: Held,
    /// Each by itself.
    pub most: Held,
}

impl ReceiveQueue {
    /// `None` where nothing was sampled.
    pub fn of(looks: &[Held]) -> Option<ReceiveQueue> {
        let queues = looks.iter().map(|held| held.queue);
        let memories = looks.iter().map(|held| held.memory);
        Some(ReceiveQueue {
            most: Held { queue: queues.clone().max()?, memory: memories.clone().max()? },
            mean: Held { queue: mean(queues)?, memory: mean(memories)? },
        })
    }
}

/// `None` where there is nothing.
fn mean(amounts: impl ExactSizeIterator<Item = Bytes>) -> Option<Bytes> {
    let count = u128::try_from(amounts.len()).ok()?;
    let sum: u128 = amounts.map(|amount| u128::from(amount.get())).sum();
    Some(Bytes::new(u64::try_from(sum.checked_div(count)?).unwrap_or(u64::MAX)))
}

/// Whether the data comes on several connections.
pub fn has_many_connections(scenario: &Scenario) -> bool {
    let transfer = &scenario.transfer;
    let shares = matches!(transfer.client, Client::Get | Client::Relay);
    shares || transfer.connections.is_some() || !transfer.readers.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_most_are_of_all_looks() {
        assert_eq!(ReceiveQueue::of(&[]), None);
        let held = |queue, memory| Held { queue: Bytes::new(queue), memory: Bytes::new(memory) };
        let looks = [held(0, 10), held(300, 20), held(90, 600)];
        let queue = ReceiveQueue::of(&looks).unwrap();
        assert_eq!((queue.mean, queue.most), (held(130, 210), held(300, 600)));
    }
}
