//! A measured path as an experiment: the scenario that rebuilds it, and the changes to try on it.
//!
//! [`Experiment::new`] is pure: it gets a [`MeasuredPath`] and the [`Lab`] in which it shall be
//! rebuilt. The caller runs every trial of [`Experiment::trials`]: first the transfer as it was
//! measured, then the same with each change alone, then with all of them. Whether the first one
//! repeats the measurement decides whether the others say anything about the user's path.
//!
//! What was measured is kept; what was not is assumed, and each [`Assumption`] stands in
//! [`Experiment::assumptions`]. Three rules hold throughout:
//!
//! * What was not seen and did not limit the transfer must not limit it in the lab either. So a
//!   buffer that nobody saw is as large as path and queue together, several times over.
//! * What limited the transfer has the size that was seen. Where only its effect was seen, its size
//!   is the one that has this effect by the laws of [`crate::law`].
//! * Nothing is known of a path beyond what it carried. Where a window held the sender throughout,
//!   the lab's link has twice the rate, as in the plans of `analyze`, and the report says so.

mod assume;
mod assumption;
mod ends;
mod refit;
mod remedy;

pub use assumption::Assumption;
pub use refit::refit;
pub use remedy::Remedy;

use crate::law::KernelVersion;
use crate::limit::{Cause, End, Limit};
use crate::scenario::{File, LinkEngine, Scenario, ScenarioError};
use crate::tune::{MeasuredPath, plan};
use crate::units::{Bytes, Duration};
use assume::Assumed;
use ends::LabHosts;

/// Where a path shall be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lab {
    /// The kernel of both hosts.
    pub kernel: KernelVersion,
    /// What carries the packets.
    pub link_engine: LinkEngine,
}

/// Why a path cannot be rebuilt.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RebuildError {
    /// It is not a path of this lab.
    #[error("rebuild the measured path: {0}")]
    Scenario(#[from] ScenarioError),
}

/// A measured path as scenarios.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// What was measured.
    pub measured: MeasuredPath,
    /// The transfer as it was measured.
    pub before: Scenario,
    /// The changes to try, the sender's first.
    pub remedies: Vec<Remedy>,
    /// What was not measured and is assumed instead.
    pub assumptions: Vec<Assumption>,
    /// The transfer is compared as a whole, from its first byte to its last; otherwise by its
    /// second half, without the start-up.
    pub is_whole: bool,
}

/// One transfer of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// What is changed; nothing in the first trial.
    pub remedies: Vec<Remedy>,
    /// The transfer.
    pub scenario: Scenario,
}

/// Congestion controls that a sender may have where none was seen: the usual ones, the commonest
/// first.
const CONTROLS: [&str; 3] = ["cubic", "bbr", "reno"];

/// A policer's bucket shows only as far as it was used up; it may hold this much more.
const BUCKETS: [u64; 2] = [1, 3];

/// The same measurement with each congestion control that it may have had, and with each
/// discipline of its queue or size of its policer's bucket. There is more than one where none was
/// seen and it matters. The caller rebuilds each, runs their first transfers, and goes on with the
/// one that repeats the measurement best.
pub fn hypotheses(measured: &MeasuredPath) -> Vec<MeasuredPath> {
    let matters = matches!(measured.limited_by, Limit::Link | Limit::CongestionWindow(_));
    if !matters {
        return vec![measured.clone()];
    }
    let controls: Vec<Option<String>> = match &measured.sender.congestion_control {
        Some(name) => vec![Some(name.clone())],
        None => CONTROLS.map(|name| Some(name.into())).into(),
    };
    let mut disciplines = vec![measured.discipline.clone()];
    if measured.drops_early == Some(true) && measured.discipline.is_none() {
        disciplines.push(Some(codel(measured.rtt)));
    }
    let mut queues = Vec::new();
    match measured.policer {
        Some(bucket) => queues.extend(BUCKETS.map(|times| {
            let bucket = Bytes::new(bucket.get().saturating_mul(times));
            MeasuredPath { policer: Some(bucket), ..measured.clone() }
        })),
        None => queues.extend(
            disciplines
                .into_iter()
                .map(|discipline| MeasuredPath { discipline, ..measured.clone() }),
        ),
    }
    let paths = queues.into_iter().flat_map(|queue| {
        controls.iter().map(move |control| {
            let mut path = queue.clone();
            path.sender.congestion_control = control.clone();
            path
        })
    });
    paths.collect()
}

/// CoDel as RFC 8289 section 4.4 advises: an interval of about the longest round trip, usually
/// 100 ms, and a target of 5 % of it.
fn codel(rtt: Duration) -> String {
    let interval = rtt.max(Duration::from_millis(100)).min(Duration::from_secs(1));
    let interval = interval.as_micros().div_ceil(1000);
    format!("codel target {}ms interval {interval}ms", interval.div_ceil(20))
}

/// Draws of the path's losses, where losses decide: the fewer a draw has, the more of them, as
/// their mean varies less than one of them.
const REPEAT_UNDER_LOSS: std::ops::RangeInclusive<u32> = 3..=5;

impl Experiment {
    /// Plans to rebuild `measured`.
    ///
    /// # Errors
    /// It is out of the lab's bounds, such as a round trip of minutes.
    ///
    /// ```
    /// use fullpipe_model::limit::Limit;
    /// use fullpipe_model::tune::prove::{Experiment, Lab};
    /// use fullpipe_model::scenario::LinkEngine;
    /// use fullpipe_model::tune::MeasuredPath;
    /// use fullpipe_model::units::{Bytes, Window};
    ///
    /// let (rtt, goodput) = ("50ms".parse().unwrap(), "80mbit".parse().unwrap());
    /// let mut measured = MeasuredPath::new(rtt, goodput, Limit::ReceiveWindow);
    /// measured.rate = Some("1gbit".parse().unwrap());
    /// measured.receiver.window = Some(Window::new(Bytes::new(500_000)));
    /// let lab = Lab { kernel: "6.12".parse().unwrap(), link_engine: LinkEngine::Netem };
    /// let experiment = Experiment::new(measured, lab).unwrap();
    /// let remedy = experiment.remedies[0].to_string();
    /// assert!(remedy.starts_with("receiver: net.ipv4.tcp_rmem at least 4096 131072 "));
    /// ```
    pub fn new(measured: MeasuredPath, lab: Lab) -> Result<Self, RebuildError> {
        let mut assumptions = Vec::new();
        let assumed = Assumed::of(&measured, &mut assumptions);
        let ends = LabHosts::of(&measured, &assumed, lab, &mut assumptions);
        let span = RunSpan::of(&measured, &assumed);
        let before = scenario(&measured, &assumed, &ends, &span)?;
        let remedies = remedies(&measured, &assumed, &ends, &mut assumptions);
        let is_whole = span.size.is_some();
        Ok(Experiment { measured, before, remedies, assumptions, is_whole })
    }

    /// The transfers to run: as measured, with each change alone, and with all of them if there is
    /// more than one.
    pub fn trials(&self) -> Vec<Trial> {
        let alone = self.remedies.iter().map(|remedy| self.with(std::slice::from_ref(remedy)));
        let all = (self.remedies.len() > 1).then(|| self.with(&self.remedies));
        let mut trials: Vec<Trial> =
            std::iter::once(self.with(&[])).chain(alone).chain(all).collect();
        for (number, trial) in trials.iter_mut().enumerate() {
            trial.scenario.name = match trial.remedies.len() {
                0 => "prove/before".into(),
                1 => format!("prove/change-{number}"),
                _ => "prove/all".into(),
            };
        }
        trials
    }

    /// The transfer with these changes.
    fn with(&self, remedies: &[Remedy]) -> Trial {
        let mut scenario = self.before.clone();
        remedies.iter().for_each(|remedy| remedy.apply(&mut scenario));
        Trial { remedies: remedies.to_vec(), scenario }
    }
}

/// How much of a transfer is run.
struct RunSpan {
    /// The whole transfer has this size; `None`: it runs for a time.
    size: Option<Bytes>,
    duration: Duration,
}

/// The most that a trial carries, if its path does not hold more: virtual time costs some 0.1 s for
/// 10^6 bytes.
const CARRIED_MAX: Bytes = Bytes::new(80_000_000);
/// The length of a trial in round trips, at least and usually: its second half must be steady.
const ROUND_TRIPS_LEAST: u64 = 30;
const ROUND_TRIPS: u64 = 80;
const SECONDS_LEAST: Duration = Duration::from_secs(2);
/// A transfer that was watched for less shows nothing steady.
const SHORTEST: Duration = Duration::from_millis(200);
/// Losses that a trial under loss should see, and those of all its draws together.
const LOSSES: f64 = 300.0;

impl RunSpan {
    fn of(measured: &MeasuredPath, assumed: &Assumed) -> RunSpan {
        let hour = Duration::from_secs(3600);
        if let Some(payload) = measured.payload.filter(|payload| *payload <= CARRIED_MAX) {
            // It ends by its size; a much slower one is stopped.
            let expected = measured.goodput.time_for(payload).unwrap_or(hour);
            let duration = expected.saturating_mul(4).saturating_add(Duration::from_secs(10));
            return RunSpan { size: Some(payload), duration: duration.min(hour) };
        }
        let affordable = assumed.rate.time_for(CARRIED_MAX).unwrap_or(hour);
        // Start-up and first losses decide much of a short transfer: it is repeated as it was.
        let watched = measured.watched.filter(|time| *time <= affordable.min(hour));
        if let Some(duration) = watched.filter(|time| *time >= SHORTEST) {
            return RunSpan { size: None, duration };
        }
        let mut wanted = measured.rtt.saturating_mul(ROUND_TRIPS).max(SECONDS_LEAST);
        let least = measured.rtt.saturating_mul(ROUND_TRIPS_LEAST).max(Duration::from_millis(200));
        if assumed.loss.get() > 0.0 {
            let segments = LOSSES / assumed.loss.get();
            let bytes = Bytes::from_f64(segments * measured.framing.mss().as_f64());
            wanted = wanted.max(measured.goodput.time_for(bytes).unwrap_or(hour));
        }
        RunSpan { size: None, duration: wanted.min(affordable).max(least).min(hour) }
    }
}

/// The scenario, through the checks of every scenario file.
fn scenario(
    measured: &MeasuredPath,
    assumed: &Assumed,
    ends: &LabHosts,
    span: &RunSpan,
) -> Result<Scenario, ScenarioError> {
    let file = File::parse(&assumed.toml(measured, span.size, span.duration))?;
    let mut scenario = file.scenarios("prove")?.remove(0);
    ends.apply(&mut scenario);
    scenario.repeat = if assumed.loss.get() > 0.0 { draws(measured, assumed, span) } else { 1 };
    Ok(scenario)
}

/// How often a transfer under loss is repeated.
fn draws(measured: &MeasuredPath, assumed: &Assumed, span: &RunSpan) -> u32 {
    let carried = span.size.unwrap_or_else(|| measured.goodput.over(span.duration));
    let losses = carried.as_f64() / measured.framing.mss().as_f64() * assumed.loss.get();
    let wanted = (LOSSES / losses.max(1.0)).ceil().min(f64::from(*REPEAT_UNDER_LOSS.end()));
    (wanted as u32).max(*REPEAT_UNDER_LOSS.start())
}

/// The initial congestion window to try, in segments: with the kernel's 10, what many servers use.
const INITIAL_WINDOW: u32 = 32;

/// Every change worth a trial: the entries of the tuning plan, and what no sysctl does.
fn remedies(
    measured: &MeasuredPath,
    assumed: &Assumed,
    ends: &LabHosts,
    assumptions: &mut Vec<Assumption>,
) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    for end in [End::Sender, End::Receiver] {
        // Our ends of an upload leave their buffers to the kernel.
        if ends.is_frozen(end) && assumed.granted.is_none() {
            remedies.push(Remedy::Autotuning { end, largest: ends.autotuned(end) });
        }
    }
    let planned = plan(assumed.path(measured), &ends.sender, &ends.receiver);
    for change in planned.changes {
        if !change.knob.is_machine_wide() {
            remedies.push(Remedy::Sysctl(change));
        } else if let Some(end) = change.end {
            assumptions.push(Assumption::OfTheMachine(change.knob, end));
        }
    }
    match measured.limited_by {
        Limit::CongestionWindow(Cause::Loss) if !assumed.congestion_control.starts_with("bbr") => {
            remedies.push(Remedy::CongestionControl("bbr".into()));
        }
        Limit::CongestionWindow(Cause::SlowStart) => {
            remedies.push(Remedy::InitialWindow(INITIAL_WINDOW));
        }
        Limit::ApplicationWindow => {
            if let Some(larger) = larger_window(measured, assumed) {
                remedies.push(larger);
                assumptions.push(Assumption::ProgramWindow);
            }
        }
        _ => {}
    }
    remedies.sort_by_key(Remedy::end);
    remedies
}

/// A larger window has this much to spare, so that it is not the limit any more: whether the path
/// carries as much as the lab's link is then as open as for any other change.
const TO_SPARE: u64 = 4;

/// A window above TCP's that fills the path: the next power of two, as programs have them.
fn larger_window(measured: &MeasuredPath, assumed: &Assumed) -> Option<Remedy> {
    let (granted, seen) = assumed.granted.zip(measured.application_window)?;
    let filling = granted.filling(assumed.framing.goodput(assumed.rate), assumed.rtt).window;
    let filling = filling.get().saturating_add(filling.get() / TO_SPARE);
    let window = Bytes::new(filling.checked_next_power_of_two()?);
    (window > granted.window).then_some(Remedy::ApplicationWindow { end: seen.host, window })
}

#[cfg(test)]
mod tests;
