//! The data connections of a run at one end: their threads, and the sampling beside them.
//!
//! Order of ending: a run by time ends by its senders' clocks. They stop, the sockets are sampled a
//! last time, and closing them drops what is unsent; that ends the receivers of the other end. If a
//! sender waited for its own end's receivers first, both ends would wait for each other.

use super::data::{self, Moved, Shared};
use super::{Amount, Sampler, Sampling, Spec, TestDirection, TestError};
use fullpipe_model::observe::Sample;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// What one end saw of a connection.
#[derive(Debug)]
pub(super) struct Collected {
    pub moved: Moved,
    pub samples: Vec<Sample>,
}

/// A run that goes on at one end.
pub(super) struct Running {
    pub shared: Arc<Shared>,
    sampling: Arc<Mutex<Option<Box<dyn Sampling>>>>,
    /// Gets what was collected, in the order of the connections.
    pub collected: Receiver<Vec<Collected>>,
}

/// A connection's thread.
struct Mover {
    sends: bool,
    thread: JoinHandle<Moved>,
}

impl Running {
    /// Starts to move data. `own` is the direction in which this end sends.
    pub fn start(
        streams: Vec<TcpStream>,
        spec: &Spec,
        own: TestDirection,
        sampler: &dyn Sampler,
    ) -> Result<Running, TestError> {
        let sockets = streams.iter().map(data::ends).collect::<Result<Vec<_>, _>>();
        let sampling = sampler.start(sockets.map_err(failed)?).map_err(TestError::Sample)?;
        let sampling = Arc::new(Mutex::new(Some(sampling)));
        let shared = Arc::new(Shared::default());
        let mut movers = Vec::new();
        for (index, stream) in streams.into_iter().enumerate() {
            let (told, amount) = (Arc::clone(&shared), spec.amount);
            let sends = spec.direction_of(index as u16) == own;
            let name = if sends { "send" } else { "receive" };
            let thread = Builder::new().name(name.into()).spawn(move || {
                let mover = if sends { data::send } else { data::receive };
                mover(stream, amount, &told)
            });
            match thread {
                Ok(thread) => movers.push(Mover { sends, thread }),
                Err(error) => {
                    shared.end();
                    return Err(failed(error));
                }
            }
        }
        let (sender, collected) = channel();
        let (at_end, amount) = (Arc::clone(&sampling), spec.amount);
        let thread = Builder::new().name("collect".into()).spawn(move || {
            // Nobody may wait for it any more.
            let _ = sender.send(collect(movers, &at_end, amount));
        });
        thread.map_err(|error| {
            shared.end();
            failed(error)
        })?;
        Ok(Running { shared, sampling, collected })
    }

    /// The last sample of each socket; `None` when sampling has ended, as it does just before the
    /// run does.
    pub fn latest(&self) -> Option<Vec<Option<Sample>>> {
        let sampling = self.sampling.lock().unwrap_or_else(PoisonError::into_inner);
        sampling.as_ref().map(|sampling| sampling.latest())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// Waits for the threads in the order in which they end.
fn collect(
    movers: Vec<Mover>,
    sampling: &Mutex<Option<Box<dyn Sampling>>>,
    amount: Amount,
) -> Vec<Collected> {
    let by_time = matches!(amount, Amount::Time(_));
    let count = movers.len();
    let (mut done, mut waiting) = (Vec::new(), Vec::new());
    for (index, mover) in movers.into_iter().enumerate() {
        if mover.sends {
            done.push((index, join(mover)));
        } else {
            waiting.push((index, mover));
        }
    }
    let mut samples = Vec::new();
    if by_time && !done.is_empty() {
        samples = stop(sampling);
        // Shutting down would send what is left; only closing drops it.
        for (_, moved) in &mut done {
            moved.close_unsent();
        }
    }
    done.extend(waiting.into_iter().map(|(index, mover)| (index, join(mover))));
    if samples.is_empty() {
        samples = stop(sampling);
    }
    samples.resize_with(count, Vec::new);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter()
        .zip(samples)
        .map(|((_, moved), samples)| Collected { moved, samples })
        .collect()
}

/// Ends the sampling, and gives the samples; none where it has ended already.
fn stop(sampling: &Mutex<Option<Box<dyn Sampling>>>) -> Vec<Vec<Sample>> {
    let taken = sampling.lock().unwrap_or_else(PoisonError::into_inner).take();
    taken.map_or_else(Vec::new, |sampling| sampling.stop())
}

fn failed(error: std::io::Error) -> TestError {
    TestError::Sample(error.to_string())
}

fn join(mover: Mover) -> Moved {
    mover.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
