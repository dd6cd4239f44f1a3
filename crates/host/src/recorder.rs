//! Samples of connections that come and go, for a recording.
//!
//! **Order of calls.** [`Recorder::open`]; [`Recorder::choose`] from time to time, with the
//! connections that are of interest by then; [`Recorder::sample`] again and again, each time after
//! [`Recorder::step`].

use crate::follow::{STEP, Target};
use crate::watch::{Namespaces, SocketKey, Watch};
use fullpipe_kernel::Refused;
use fullpipe_model::observe::{Sample, SocketEnds, canonical_ends};
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::Duration;
use std::collections::HashSet;
use std::net::SocketAddr;

/// The most connections that are sampled at a time.
const MOST: usize = 1000;
/// The most samples of all connections in 10 ms: some 2 us each.
const IN_A_STEP: u64 = 100;

/// Samples connections of every network namespace that may be entered.
pub struct Recorder {
    watch: Watch,
    targets: Vec<Target>,
    /// Connections that were looked for and not found.
    missed: HashSet<SocketEnds>,
}

impl Recorder {
    /// Opens the network namespaces that there are now.
    ///
    /// # Errors
    /// This kernel has no `sock_diag`.
    pub fn open() -> Result<Recorder, Refused> {
        let watch = Watch::open(Namespaces::All)?;
        Ok(Recorder { watch, targets: Vec::new(), missed: HashSet::new() })
    }

    /// Samples the connections with these local and remote addresses from now on, and no others: at
    /// most a thousand at a time, and those that were found first stay.
    pub fn choose(&mut self, ends: &[(SocketAddr, SocketAddr)]) -> Result<(), Refused> {
        let wanted: HashSet<SocketEnds> = ends.iter().copied().map(canonical_ends).collect();
        self.targets.retain(|target| wanted.contains(&target.ends()));
        self.missed.retain(|ends| wanted.contains(ends));
        let known: HashSet<SocketEnds> = self.targets.iter().map(Target::ends).collect();
        let mut new: HashSet<SocketEnds> = wanted
            .into_iter()
            .filter(|ends| !known.contains(ends) && !self.missed.contains(ends))
            .collect();
        if new.is_empty() || self.targets.len() >= MOST {
            return Ok(());
        }
        self.watch.look()?;
        for socket in self.watch.all() {
            let (key, local, remote) = (socket.key, socket.local, socket.remote);
            if self.targets.len() < MOST && new.remove(&canonical_ends((local, remote))) {
                self.targets.push(Target { key, local, remote });
            }
        }
        // They have ended, or are in a namespace that may not be entered.
        if self.targets.len() < MOST {
            self.missed.extend(new);
        }
        Ok(())
    }

    /// Takes a sample of each; one that has ended has none.
    pub fn sample(&mut self) -> Result<Vec<Sample>, Refused> {
        let mut samples = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            let Some(diag) = self.watch.diag(target.key) else { continue };
            samples.extend(diag.sample(target.local, target.remote)?);
        }
        Ok(samples)
    }

    /// The time between two samples of a connection: 10 ms, and more where there are more than a
    /// hundred, so that it costs little whatever their number.
    pub fn step(&self) -> Duration {
        let steps = (self.targets.len() as u64).div_ceil(IN_A_STEP).max(1);
        STEP.saturating_mul(steps)
    }

    /// The settings of the network namespace that a connection is in, which is sampled.
    pub fn settings(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<HostSettings> {
        let ends = canonical_ends((local, remote));
        let key: SocketKey = self.targets.iter().find(|target| target.ends() == ends)?.key;
        self.watch.settings(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn connections_come_and_go() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ends = |stream: &TcpStream| (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let mut recorder = Recorder::open().unwrap();
        let locals = |recorder: &mut Recorder| {
            let samples = recorder.sample().unwrap();
            let mut found: Vec<SocketAddr> = samples.iter().map(|sample| sample.local).collect();
            found.sort_unstable();
            found
        };
        let (first, second) = (connect(), connect());
        let [one, two] = [&first, &second].map(ends);
        recorder.choose(&[one]).unwrap();
        assert_eq!(locals(&mut recorder), [one.0]);
        recorder.choose(&[one, two]).unwrap();
        let mut both = [one.0, two.0];
        both.sort_unstable();
        assert_eq!(locals(&mut recorder), both);
        assert!(recorder.settings(one.0, one.1).is_some());
        recorder.choose(&[two]).unwrap();
        assert_eq!((locals(&mut recorder), recorder.step()), (vec![two.0], STEP));
    }
}
