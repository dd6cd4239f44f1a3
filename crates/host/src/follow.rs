//! Some connections, followed closely: a sample of each every few milliseconds, from which a
//! verdict can tell what a look once a second cannot.

use crate::watch::{SocketKey, Watch};
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::observe::{Sample, SocketEnds, canonical_ends};
use fullpipe_model::units::Duration;
use std::collections::HashMap;
use std::net::SocketAddr;

/// The time between two samples of a connection: what the trained judge learnt from.
pub(crate) const STEP: Duration = Duration::from_millis(10);

/// A connection to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// What identifies it.
    pub key: SocketKey,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
}

impl Target {
    /// Its ends as packets have them.
    pub(crate) fn ends(&self) -> SocketEnds {
        canonical_ends((self.local, self.remote))
    }
}

/// Takes samples of `targets` every [`STEP`] for `span`, or until `interrupt` is set. A connection
/// that ends has fewer. `tick` is called after each round with the time that has passed.
pub fn follow(
    watch: &mut Watch,
    targets: &[Target],
    span: Duration,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<HashMap<SocketKey, Vec<Sample>>, Refused> {
    let mut samples: HashMap<SocketKey, Vec<Sample>> = HashMap::new();
    let start = clock::now();
    let mut due = start;
    loop {
        for target in targets {
            let Some(diag) = watch.diag(target.key) else { continue };
            if let Some(sample) = diag.sample(target.local, target.remote)? {
                samples.entry(target.key).or_default().push(sample);
            }
        }
        let now = clock::now();
        tick(now.since(start));
        if now.since(start) >= span {
            return Ok(samples);
        }
        // Late, it skips to the next point of the grid rather than sample twice in a row.
        while due <= now {
            due = due + STEP;
        }
        let is_interrupted = interrupt
            .wait(Some(due.since(now)))
            .map_err(|cause| Refused::new("wait for the next sample", "timer", cause))?;
        if is_interrupted {
            return Ok(samples);
        }
    }
}
