//! Samples of some known connections of this host, taken by a thread while they carry data.
//!
//! [`SocketSampler::start`] begins, [`SocketSampler::latest`] shows how far they are, and
//! [`SocketSampler::stop`] takes a last sample and gives all. The thread asks `sock_diag` by
//! address: no privilege is needed, and it belongs to the network namespace of the caller.

use fullpipe_kernel::socket::sock_diag::SockDiag;
use fullpipe_kernel::{Refused, host::clock, process::wait};
use fullpipe_model::observe::Sample;
use fullpipe_model::units::Duration;
use std::io::{PipeReader, PipeWriter};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The time between two samples at first: what the trained judge learnt from.
const STEP: Duration = Duration::from_millis(10);
/// How many samples are kept at most, of all connections together. When there are more, every other
/// one goes and sampling is half as often: a long test has an even grid in bounded memory.
const SAMPLES_MAX: usize = 60_000;

/// Samples of each connection, in order of time.
type Samples = Vec<Vec<Sample>>;

/// A thread that samples connections.
#[derive(Debug)]
pub struct SocketSampler {
    /// Closed, it ends.
    stop: PipeWriter,
    samples: Arc<Mutex<Samples>>,
    thread: JoinHandle<()>,
}

impl SocketSampler {
    /// Samples the connections with these local and remote addresses every 10 ms.
    ///
    /// # Errors
    /// This kernel has no `sock_diag`, or the thread cannot be started.
    pub fn start(connections: Vec<(SocketAddr, SocketAddr)>) -> Result<SocketSampler, Refused> {
        let mut diag = SockDiag::open()?;
        let failed = |cause| Refused::new("start", "socket sampler", cause);
        let (stopped, stop) = std::io::pipe().map_err(failed)?;
        let samples = Arc::new(Mutex::new(vec![Vec::new(); connections.len()]));
        // The first sample is from before the data.
        look(&mut diag, &connections, &samples)?;
        let kept = Arc::clone(&samples);
        let thread = std::thread::Builder::new()
            .name("sample".into())
            .spawn(move || sample(&mut diag, &connections, &kept, &stopped))
            .map_err(failed)?;
        Ok(SocketSampler { stop, samples, thread })
    }

    /// The last sample of each connection.
    pub fn latest(&self) -> Vec<Option<Sample>> {
        locked(&self.samples).iter().map(|samples| samples.last().cloned()).collect()
    }

    /// Takes a last sample, ends, and gives all samples of each connection.
    pub fn stop(self) -> Samples {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        std::mem::take(&mut locked(&self.samples))
    }
}

fn locked(samples: &Mutex<Samples>) -> MutexGuard<'_, Samples> {
    samples.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread's work, until `stopped` has an end.
fn sample(
    diag: &mut SockDiag,
    connections: &[(SocketAddr, SocketAddr)],
    samples: &Mutex<Samples>,
    stopped: &PipeReader,
) {
    let (mut step, mut due) = (STEP, clock::now());
    loop {
        let now = clock::now();
        while due <= now {
            due = due + step;
        }
        let is_over = wait::readable(stopped, Some(due.since(now))).unwrap_or(true);
        // A kernel that answered once does so again; if not, what there is has to do.
        if look(diag, connections, samples).is_err() || is_over {
            return;
        }
        if thin(&mut locked(samples)) {
            step = step.saturating_mul(2);
        }
    }
}

/// Takes a sample of each connection that still exists.
fn look(
    diag: &mut SockDiag,
    connections: &[(SocketAddr, SocketAddr)],
    samples: &Mutex<Samples>,
) -> Result<(), Refused> {
    for (at, (local, remote)) in connections.iter().enumerate() {
        if let Some(sample) = diag.sample(*local, *remote)?
            && let Some(kept) = locked(samples).get_mut(at)
        {
            kept.push(sample);
        }
    }
    Ok(())
}

/// Drops every other sample if there are too many; whether it did.
fn thin(samples: &mut Samples) -> bool {
    let is_full = samples.iter().map(Vec::len).sum::<usize>() >= SAMPLES_MAX;
    if is_full {
        for one in samples.iter_mut() {
            let mut keep = false;
            one.retain(|_| {
                keep = !keep;
                keep
            });
        }
    }
    is_full
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_a_connection_are_sampled_until_the_last_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let ends = |stream: &TcpStream| (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let sampler = SocketSampler::start(vec![ends(&sender), ends(&receiver)]).unwrap();
        assert!(sampler.latest().iter().all(Option::is_some), "one sample is from before the data");
        let mut block = [7; 4000];
        sender.write_all(&block).unwrap();
        receiver.read_exact(&mut block).unwrap();
        let [sent, received] = <[Vec<Sample>; 2]>::try_from(sampler.stop()).unwrap();
        let last = |samples: &[Sample]| samples.last().unwrap().info.clone().unwrap();
        assert_eq!(last(&sent).bytes_sent.map(|bytes| bytes.get()), Some(4000));
        assert_eq!(last(&received).bytes_received.map(|bytes| bytes.get()), Some(4000));
        assert!(sent.windows(2).all(|pair| pair[0].at < pair[1].at));
    }
}
