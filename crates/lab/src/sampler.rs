//! Observes the two sockets of a transfer while it runs, at both ends, by `sock_diag`.

use fullpipe_flow::sample::Sample;
use fullpipe_kernel::netns::NetNs;
use fullpipe_kernel::sock_diag::{Filter, SockDiag};
use fullpipe_kernel::{Refused, clock};
use fullpipe_model::units::Duration;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

/// Samples of one end that are kept; a run that is longer than this allows is sampled less often, and says so.
const SAMPLES_MAX: u64 = 120_000;

/// A thread that follows one host's end of a connection.
#[derive(Debug)]
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Result<Vec<Sample>, Refused>>,
}

/// How often to sample a run of at most `length`: as asked, or as rarely as memory needs.
pub fn cadence(asked: Duration, length: Duration) -> Duration {
    asked.max(Duration::from_nanos(length.as_nanos() / SAMPLES_MAX))
}

impl Sampler {
    /// Follows the first connection in `ns` that `filter` finds, every `interval`, until [`Sampler::stop`].
    pub fn start(ns: &NetNs, filter: Filter, interval: Duration) -> Result<Sampler, Refused> {
        let mut diag = SockDiag::open_in(ns)?;
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name(format!("sample-{}", ns.label()))
            .spawn(move || {
                let mut samples = Vec::new();
                let mut due = clock::now();
                loop {
                    follow(&mut diag, &filter, &mut samples)?;
                    due = due + interval;
                    let now = clock::now();
                    if due < now {
                        // Late: skip to the next point of the grid rather than sample twice in a row.
                        let missed = now.since(due).as_nanos() / interval.as_nanos().max(1) + 1;
                        due = due + interval.saturating_mul(missed);
                    }
                    match stopped.recv_timeout(due.since(now).into()) {
                        Err(RecvTimeoutError::Timeout) => {}
                        _ => return Ok(samples),
                    }
                }
            })
            .map_err(|cause| Refused::new("start thread", "socket sampler", cause))?;
        Ok(Sampler { stop, thread })
    }

    /// Ends it and gives what it saw, in order of time.
    pub fn stop(self) -> Result<Vec<Sample>, Refused> {
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn follow(diag: &mut SockDiag, filter: &Filter, samples: &mut Vec<Sample>) -> Result<(), Refused> {
    match samples.last().map(|last: &Sample| (last.local, last.remote)) {
        Some((local, remote)) => samples.extend(diag.sample(local, remote)?),
        None => {
            let mut found = Vec::new();
            diag.dump(filter, &mut found)?;
            // A listening program may look at its own door (our readiness probe does): that one never leaves the host.
            samples.extend(found.into_iter().find(|sample| sample.local.ip() != sample.remote.ip()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_sampled_less_often_rather_than_without_bound() {
        let ten = Duration::from_millis(10);
        assert_eq!(cadence(ten, Duration::from_secs(60)), ten);
        assert_eq!(cadence(ten, Duration::from_secs(3600)), Duration::from_millis(30));
    }
}
