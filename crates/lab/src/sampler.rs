//! Observes the two sockets of a transfer while it runs, at both ends, by `sock_diag`.
//!
//! Four system calls a sample: in virtual time each is two stops of the program by its kernel, and
//! with eight, samples were more than a quarter of what a second at 100 Mbit/s costs.

use crate::receive_queue::Held;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::socket::sock_diag::{Filter, SockDiag};
use fullpipe_kernel::{Refused, host::clock, process::wait};
use fullpipe_model::observe::Sample;
use fullpipe_model::units::{Duration, Instant};
use std::io::PipeWriter;
use std::thread::JoinHandle;

/// Samples of one end that are kept at most. When there are more, every other one goes and sampling
/// is half as often: a run of any length has an even grid of samples in bounded memory.
const SAMPLES_MAX: usize = 120_000;

/// A thread that follows one host's end of a connection.
#[derive(Debug)]
pub struct Sampler {
    /// Closed, it ends.
    stop: PipeWriter,
    thread: JoinHandle<Result<Sampled, Refused>>,
}

/// What a sampler saw.
#[derive(Debug, Default)]
pub struct Sampled {
    /// In order of time.
    pub samples: Vec<Sample>,
    /// What the sockets held at each moment.
    pub held: Vec<Held>,
    /// The time between two of them: longer than asked where the run was long.
    pub interval: Duration,
}

/// Which connections are counted in [`Sampled::held`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// The one that is followed.
    Followed,
    /// All that the filter finds, which takes a dump for each moment.
    All,
}

impl Sampler {
    /// Follows the first connection in `ns` that `filter` finds, every `interval`, until
    /// [`Sampler::stop`].
    pub fn start(
        ns: &NetNs,
        filter: Filter,
        interval: Duration,
        counts: Counts,
    ) -> Result<Sampler, Refused> {
        let mut diag = SockDiag::open_in(ns)?;
        let (stopped, stop) = std::io::pipe().map_err(failed_wait)?;
        let thread = std::thread::Builder::new()
            .name(format!("sample-{}", ns.label()))
            .spawn(move || {
                let mut sampled = Sampled { interval, ..Sampled::default() };
                let mut due = clock::now();
                loop {
                    let now = follow(&mut diag, &filter, counts, &mut sampled)?;
                    sampled.thin(SAMPLES_MAX);
                    let interval = sampled.interval;
                    due = due + interval;
                    if due < now {
                        // Late: skip to the next point of the grid rather than sample twice in a
                        // row.
                        let missed = now.since(due).as_nanos() / interval.as_nanos().max(1) + 1;
                        due = due + interval.saturating_mul(missed);
                    }
                    if wait::readable(&stopped, Some(due.since(now))).map_err(failed_wait)? {
                        return Ok(sampled);
                    }
                }
            })
            .map_err(|cause| Refused::new("start thread", "socket sampler", cause))?;
        Ok(Sampler { stop, thread })
    }

    /// Ends it and gives what it saw.
    pub fn stop(self) -> Result<Sampled, Refused> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Sampled {
    /// Keeps to `most` samples.
    fn thin(&mut self, most: usize) {
        if self.samples.len() >= most {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            keep = false;
            self.held.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval = self.interval.saturating_mul(2);
        }
    }
}

fn failed_wait(cause: std::io::Error) -> Refused {
    Refused::new("stop and wait for", "socket sampler", cause)
}

/// Takes a sample, and gives the time at which it was taken.
fn follow(
    diag: &mut SockDiag,
    filter: &Filter,
    counts: Counts,
    sampled: &mut Sampled,
) -> Result<Instant, Refused> {
    let samples = &mut sampled.samples;
    let before = samples.len();
    let followed = samples.last().map(|last: &Sample| (last.local, last.remote));
    match (followed, counts) {
        (Some((local, remote)), Counts::Followed) => samples.extend(diag.sample(local, remote)?),
        (followed, _) => {
            let mut found = Vec::new();
            diag.dump(filter, &mut found)?;
            // A program may look at its own door: that connection never leaves the host.
            found.retain(|sample| sample.local.ip() != sample.remote.ip());
            if counts == Counts::All && !found.is_empty() {
                sampled.held.push(Held::of(&found));
            }
            let mut found = found.into_iter();
            samples.extend(
                found.find(|one| followed.is_none_or(|ends| (one.local, one.remote) == ends)),
            );
        }
    }
    let now = samples[before..].last();
    if counts == Counts::Followed {
        sampled.held.extend(now.map(|sample| Held::of([sample])));
    }
    Ok(now.map_or_else(clock::now, |sample| sample.at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::observe::TcpState;
    use fullpipe_model::units::Instant;

    #[test]
    fn long_runs_keep_an_even_grid_in_bounded_memory() {
        let (local, remote) = ("10.0.0.1:80".parse().unwrap(), "10.0.0.2:4000".parse().unwrap());
        let sample =
            |nanos| Sample::new(Instant::from_nanos(nanos), local, remote, TcpState::Established);
        let mut sampled = Sampled { interval: Duration::from_nanos(1), ..Sampled::default() };
        let mut at = 0;
        for _ in 0..1000 {
            sampled.samples.push(sample(at));
            sampled.thin(64);
            at = sampled.samples.last().unwrap().at.as_nanos() + sampled.interval.as_nanos();
            assert!(sampled.samples.len() < 64);
        }
        let step = |pair: &[Sample]| pair[1].at.since(pair[0].at);
        assert!(
            sampled.samples.windows(2).all(|pair| step(pair) == sampled.interval),
            "{:?}",
            sampled.interval
        );
    }
}
