//! What a measurement leaves open, and a change may meet.
//!
//! A window that limits hides the path's queue, and a capture hides the sender's congestion
//! control. Neither matters while the window limits; once it is larger, both may. So the changes
//! are tried on these paths too, and where their gains differ a promise is a span and no figure.

use super::assume::Assumed;
use super::{Experiment, Lab, RebuildError};
use crate::law::bdp;
use crate::limit::Limit;
use crate::units::{Bytes, Probability};

/// The short queue of a path, as a part of its bandwidth-delay product: the least of the generated
/// scenarios, which publish the figures of `prove`.
const SHORT_QUEUE: u64 = 10;
/// A queue shorter than this many packets drops what hosts send in one piece.
const QUEUE_PACKETS_LEAST: u64 = 44;
/// The commonest congestion control that does not slow down for a loss.
const OTHER_CONTROL: &str = "bbr";

/// What nobody saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// How much the bottleneck's queue holds.
    Queue,
    /// The sender's congestion control.
    CongestionControl,
}

impl Unseen {
    /// A text for people.
    pub const fn words(self) -> &'static str {
        match self {
            Unseen::Queue => "how much the path's queue holds",
            Unseen::CongestionControl => "which congestion control the sender has",
        }
    }
}

/// The same transfer and changes on another path that the measurement allows.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// What is otherwise there.
    pub unseen: Unseen,
    /// The experiment on that path.
    pub experiment: Experiment,
}

/// The other paths on which the changes of `experiment` are worth a trial. Whoever runs them counts
/// only those whose first transfer repeats the measurement, too.
///
/// # Errors
/// As of [`Experiment::new`].
pub fn doubts(experiment: &Experiment, lab: Lab) -> Result<Vec<Doubt>, RebuildError> {
    let measured = &experiment.measured;
    let is_seen = matches!(measured.limited_by, Limit::Link | Limit::CongestionWindow(_));
    if experiment.remedies.is_empty() || is_seen {
        return Ok(Vec::new());
    }
    let mut doubts = Vec::new();
    let mut push = |unseen, made: Experiment| {
        let remedies = experiment.remedies.clone();
        doubts.push(Doubt { unseen, experiment: Experiment { remedies, ..made } });
    };
    let overflowed = measured.overflow.is_some_and(|share| share > Probability::ZERO);
    if !overflowed && measured.policer.is_none() && measured.discipline.is_none() {
        let stood = measured.queue.unwrap_or(Bytes::ZERO);
        let shorten = |assumed: &mut Assumed| assumed.queue = short_queue(assumed, stood);
        push(Unseen::Queue, Experiment::build(measured.clone(), lab, shorten)?);
    }
    if measured.sender.congestion_control.is_none() {
        let mut other = measured.clone();
        other.sender.congestion_control = Some(OTHER_CONTROL.into());
        push(Unseen::CongestionControl, Experiment::new(other, lab)?);
    }
    Ok(doubts)
}

/// At least what stood in it was room.
fn short_queue(assumed: &Assumed, stood: Bytes) -> Bytes {
    let part = Bytes::new(bdp::bdp(assumed.rate, assumed.rtt).get() / SHORT_QUEUE);
    let least = Bytes::new(assumed.framing.mtu.get().saturating_mul(QUEUE_PACKETS_LEAST));
    part.max(least).max(stood).min(assumed.queue)
}
