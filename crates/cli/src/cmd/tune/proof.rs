//! `tune apply --prove`: the plan's changes are tried in the lab before this machine is touched.
//!
//! The lab runs as a process of its own (`fullpipe prove`), because it makes namespaces and guests,
//! and whoever sets the machine afterwards must not be inside of them. It gets the measured path
//! that the plan is for on its standard input, so both speak of the same measurement.
//!
//! A proof is about one path and both of its ends. [`promise`] asks what of it this plan
//! keeps: only trials count whose every change the plan makes, at the end that this machine is.

use crate::failure::{Failure, Kind};
use fullpipe_flow::finding::proof::{Proof, TrialResult, WORTH};
use fullpipe_model::change::{Change, Knob, RouteMetric, Sysctl, Value};
use fullpipe_model::tune::prove::Remedy;
use fullpipe_model::tune::{HostPlan, MeasuredPath};
use fullpipe_model::units::Rate;
use std::io::Write;
use std::process::{Command, Stdio};

/// What a proof says of a plan's changes.
pub struct Promise {
    /// The goodput to expect.
    expected: Rate,
    /// The goodput that was measured.
    measured: Rate,
    /// By how much the lab's goodput differed from the measured one, in percent.
    off: f64,
    /// The changes that give it.
    changes: String,
}

/// Runs `fullpipe prove` on a measured path.
///
/// # Errors
/// It cannot be started, or it has no proof: the failure has its exit code and its message.
pub fn prove(measured: &MeasuredPath) -> Result<Proof, Failure> {
    let refused =
        |cause| Failure::new(Kind::Run, format!("prove the plan: start the lab: {cause}"));
    let mut child = Command::new(std::env::current_exe().map_err(refused)?)
        .args(["prove", "--from", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(refused)?;
    let text = serde_json::to_vec(measured).map_err(std::io::Error::from)?;
    if let Some(mut stdin) = child.stdin.take() {
        // Where it has ended already, its exit code says why.
        let _ = stdin.write_all(&text);
    }
    let output = child.wait_with_output().map_err(refused)?;
    let code = output.status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    // 1 is either "the lab does not agree", with a proof, or a run that failed, without.
    if code > 1 || output.stdout.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().last().unwrap_or("it ended without a word");
        let why = why.strip_prefix("fullpipe: ").unwrap_or(why);
        return Err(Failure::with_code(
            code.max(1),
            format!(
                "prove the plan: {why}; nothing is changed; without --prove it is applied unproven"
            ),
        ));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|cause| unproven(&format!("what `fullpipe prove` said is no proof: {cause}")))
}

/// What to expect of `plan` by `proof`.
///
/// # Errors
/// The lab does not repeat what was measured, or what this plan changes gains nothing there.
pub fn promise(proof: &Proof, plan: &HostPlan) -> Result<Promise, Failure> {
    let agreement = proof.agreement;
    let off = (agreement.ratio - 1.0) * 100.0;
    if !agreement.agrees {
        let limit = if agreement.same_limit { "" } else { " with another limit" };
        return Err(unproven(&format!(
            "the lab does not repeat the measurement (its goodput is {off:+.1} % off{limit}), so it promises nothing"
        )));
    }
    // Of the trials that this plan makes, the one with the most changes is nearest to it.
    let made = proof.trials.iter().filter(|trial| {
        let changes = &trial.changes;
        !changes.is_empty() && changes.iter().all(|change| makes(plan, change))
    });
    let nearest = made.max_by(|a, b| {
        let count = a.changes.len().cmp(&b.changes.len());
        count.then(a.gain.total_cmp(&b.gain))
    });
    let promised = nearest.filter(|trial| trial.gain >= WORTH);
    match promised.and_then(|trial| Some((trial, trial.expected?))) {
        Some((trial, expected)) => {
            let measured = proof.measured.goodput;
            Ok(Promise { expected, measured, off, changes: words(trial) })
        }
        None => Err(unproven(&without_gain(&proof.trials, nearest))),
    }
}

impl Promise {
    /// The promise as a sentence.
    pub fn words(&self) -> String {
        let Promise { expected, measured, off, changes } = self;
        format!(
            "The lab repeats the measurement ({off:+.1} % off). Expect about {expected} instead of {measured} with: {changes}."
        )
    }
}

/// Why nothing is promised though the lab repeats the measurement.
fn without_gain(trials: &[TrialResult], nearest: Option<&TrialResult>) -> String {
    let why = match nearest {
        Some(trial) => {
            format!("in the lab, {} gives {:.2} times the goodput", words(trial), trial.gain)
        }
        None => "no change that the lab tried is one of this plan".into(),
    };
    let other = trials.iter().filter(|trial| trial.expected.is_some());
    let other = other.max_by(|a, b| a.gain.total_cmp(&b.gain));
    match other.filter(|trial| trial.gain >= WORTH) {
        Some(trial) => {
            format!("{why}; what gains most there is {} ({:.2} times)", words(trial), trial.gain)
        }
        None => why,
    }
}

fn unproven(why: &str) -> Failure {
    let message = format!(
        "prove the plan: {why}; nothing is changed; `fullpipe prove --from FILE` shows all of it, and without --prove \
         the plan is applied unproven"
    );
    Failure::new(Kind::Run, message)
}

/// Whether applying `plan` makes this change of a trial, or a larger one of its kind.
fn makes(plan: &HostPlan, change: &Remedy) -> bool {
    plan.role.is(change.end()) && plan.changes.iter().any(|planned| is_made_by(change, planned))
}

/// Whether `planned` is the trial's change, or a larger one of its kind.
fn is_made_by(change: &Remedy, planned: &Change) -> bool {
    match (&planned.knob, change) {
        (knob, Remedy::Sysctl(change)) if *knob == change.knob => match (&planned.to, &change.to) {
            (Value::Triple([.., made]), Value::Triple([.., wanted])) => made >= wanted,
            (Value::Number(made), Value::Number(wanted)) if knob.is_size() => made >= wanted,
            (made, wanted) => made == wanted,
        },
        (Knob::Sysctl(Sysctl::TcpCongestionControl), Remedy::CongestionControl(name)) => {
            matches!(&planned.to, Value::Name(made) if made == name)
        }
        (Knob::Route(_, RouteMetric::InitCwnd), Remedy::InitialWindow(segments)) => {
            planned.to.number().is_some_and(|made| made >= i64::from(*segments))
        }
        _ => false,
    }
}

/// The changes of a trial: `receiver: net.ipv4.tcp_rmem at least 4096 131072 2359296`.
fn words(trial: &TrialResult) -> String {
    let each: Vec<String> = trial.changes.iter().map(ToString::to_string).collect();
    each.join("; ")
}
