//! A window of HTTP/2 that its frames show, with whoever waited for it: proof, where messages
//! beside the data are evidence.

use super::DataSeen;
use crate::frames::{FlowControl, FlowWindow};
use crate::limit::Verdict;
use fullpipe_model::units::{Bytes, Duration, Rate};

/// While less is held than this part of the time, what was sent otherwise shows a pace.
const PACE_MOST: f64 = 0.95;

/// Who waited for a window, and how large it would have to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitedWindow {
    /// The stream; 0 is the connection, whose window all streams share.
    pub stream: u32,
    /// For which fraction of its own time, 0 to 1.
    pub part: f64,
    /// What the path needs in its place, if that is known.
    pub needed: Option<NeededWindow>,
}

/// A window that fills a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededWindow {
    /// The rate by the round trip.
    pub window: Bytes,
    /// What passed while nothing was waited for.
    pub rate: Rate,
    /// The path's own round trip.
    pub rtt: Duration,
}

impl WaitedWindow {
    /// Who waited for this window.
    pub(super) fn of(seen: DataSeen<'_>, control: &FlowControl, most: &FlowWindow) -> Self {
        let needed = seen.verdict.and_then(|verdict| needed(seen, verdict, control));
        WaitedWindow {
            stream: most.stream,
            part: most.part(),
            needed: needed.filter(|one| one.window > most.window),
        }
    }
}

/// What the path needs: the rate at which bytes pass when they pass, by its round trip.
fn needed(seen: DataSeen<'_>, verdict: &Verdict, control: &FlowControl) -> Option<NeededWindow> {
    let least = verdict.intervals.iter().filter_map(|one| one.evidence.rtt).min();
    let rtt = seen.connection.handshake_rtt.or(least)?;
    let mean = control.data.per(control.time)?;
    let free = control.time.saturating_sub(control.held);
    let is_paced = control.held.as_secs_f64() < PACE_MOST * control.time.as_secs_f64();
    let rate = verdict.trains.filter(|rate| *rate > mean);
    let rate = rate.or_else(|| control.data.per(free).filter(|_| is_paced))?;
    Some(NeededWindow { window: rate.over(rtt), rate, rtt })
}
