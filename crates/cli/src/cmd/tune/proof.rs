//! `tune apply --prove`: the plan's changes are tried in the lab before this machine is touched.
//!
//! The lab runs as a process of its own (`fullpipe prove`), because it makes namespaces and guests,
//! and whoever sets the machine afterwards must not be inside of them. It gets the measured path
//! that the plan is for on its standard input, so both speak of the same measurement.
//!
//! A proof is about one path and both of its ends. [`Proof::promise`] asks what of it this plan
//! keeps: only trials count whose every change the plan makes, at the end that this machine is.

use crate::failure::{Failure, Kind};
use fullpipe_model::tune::{HostChange, HostPlan, Knob, MeasuredPath, Role, RouteMetric};
use fullpipe_model::units::Rate;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// Less than this times the goodput is no gain, as in [`fullpipe_flow::proof::Proof::best`].
const WORTH: f64 = 1.05;

/// What `fullpipe prove` said.
pub struct Proof {
    document: Value,
}

/// What the proof says of a plan's changes.
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

impl Proof {
    /// Runs `fullpipe prove` on a measured path.
    ///
    /// # Errors
    /// It cannot be started, or it has no proof: the failure has its exit code and its message.
    pub fn run(measured: &MeasuredPath) -> Result<Proof, Failure> {
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
        // 1 is either "the lab does not agree", with a document, or a run that failed.
        match serde_json::from_slice(&output.stdout) {
            Ok(document) if code <= 1 => Ok(Proof { document }),
            _ => {
                let said = String::from_utf8_lossy(&output.stderr);
                let why = said.lines().last().unwrap_or("it ended without a word");
                let why = why.strip_prefix("fullpipe: ").unwrap_or(why);
                Err(Failure::with_code(
                    code,
                    format!(
                        "prove the plan: {why}; nothing is changed; without --prove it is applied unproven"
                    ),
                ))
            }
        }
    }

    /// The whole of it, as `fullpipe prove --json` prints it.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// What to expect of `plan`.
    ///
    /// # Errors
    /// The lab does not repeat what was measured, or what this plan changes gains nothing there.
    pub fn promise(&self, plan: &HostPlan) -> Result<Promise, Failure> {
        let agreement = &self.document["agreement"];
        let off = (agreement["ratio"].as_f64().unwrap_or(0.0) - 1.0) * 100.0;
        if agreement["agrees"] != true {
            let limit = if agreement["same_limit"] == true { "" } else { " with another limit" };
            return Err(unproven(&format!(
                "the lab does not repeat the measurement (its goodput is {off:+.1} % off{limit}), so it promises nothing"
            )));
        }
        let trials = self.document["trials"].as_array().map(Vec::as_slice).unwrap_or_default();
        // Of the trials that this plan makes, the one with the most changes is nearest to it.
        let made = trials.iter().filter(|trial| {
            let changes = changes(trial);
            !changes.is_empty() && changes.iter().all(|change| makes(plan, change))
        });
        let nearest = made.max_by(|a, b| {
            let count = changes(a).len().cmp(&changes(b).len());
            count.then(gain(a).total_cmp(&gain(b)))
        });
        let rate = |value: &Value| value.as_u64().map(Rate::from_bits_per_sec);
        let measured = rate(&self.document["measured"]["goodput_bps"]).unwrap_or_default();
        let promised = nearest.filter(|trial| gain(trial) >= WORTH);
        match promised.and_then(|trial| Some((trial, rate(&trial["expected_bps"])?))) {
            Some((trial, expected)) => {
                Ok(Promise { expected, measured, off, changes: words(trial) })
            }
            None => Err(unproven(&without_gain(trials, nearest))),
        }
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
fn without_gain(trials: &[Value], nearest: Option<&Value>) -> String {
    let why = match nearest {
        Some(trial) => {
            format!("in the lab, {} gives {:.2} times the goodput", words(trial), gain(trial))
        }
        None => "no change that the lab tried is one of this plan".into(),
    };
    let other = trials.iter().filter(|trial| trial.get("expected_bps").is_some());
    let other = other.max_by(|a, b| gain(a).total_cmp(&gain(b)));
    match other.filter(|trial| gain(trial) >= WORTH) {
        Some(trial) => {
            format!("{why}; what gains most there is {} ({:.2} times)", words(trial), gain(trial))
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

fn changes(trial: &Value) -> &[Value] {
    trial["changes"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn gain(trial: &Value) -> f64 {
    trial["gain"].as_f64().unwrap_or(0.0)
}

/// Whether applying `plan` makes this change of a trial, or a larger one of its kind.
fn makes(plan: &HostPlan, change: &Value) -> bool {
    let is_here = match (plan.role, change["host"].as_str()) {
        (Role::Both, _) => true,
        (Role::Sender, host) => host == Some("sender"),
        (Role::Receiver, host) => host == Some("receiver"),
    };
    is_here && plan.changes.iter().any(|planned| is_made_by(change, planned))
}

/// Whether `planned` is the trial's change, or a larger one of its kind.
fn is_made_by(change: &Value, planned: &HostChange) -> bool {
    let text = |key: &str| change[key].as_str().unwrap_or_default();
    match (&planned.setting, text("kind")) {
        (Knob::Sysctl(row), "sysctl") if row.name == text("setting") => {
            let last = |value: &str| value.split_whitespace().next_back()?.parse::<u64>().ok();
            let (wanted, made) = (last(text("to")), last(&planned.to));
            if row.is_size { made.is_some() && made >= wanted } else { planned.to == text("to") }
        }
        (Knob::Sysctl(row), "congestion_control") => {
            row.name == "net.ipv4.tcp_congestion_control" && planned.to == text("name")
        }
        (Knob::Route(_, RouteMetric::InitCwnd), "initial_window") => {
            planned.to.parse::<u64>().is_ok_and(|made| Some(made) >= change["segments"].as_u64())
        }
        _ => false,
    }
}

/// The changes of a trial: `receiver: net.ipv4.tcp_rmem at least 4096 131072 2359296`.
fn words(trial: &Value) -> String {
    let each = changes(trial).iter().map(|change| {
        let text = |key: &str| change[key].as_str().unwrap_or_default();
        let what = match text("kind") {
            "sysctl" => format!("{} at least {}", text("setting"), text("to")),
            "congestion_control" => format!("congestion control {}", text("name")),
            "initial_window" => format!("initcwnd {}", change["segments"]),
            _ => "the application leaves its buffer to the kernel".into(),
        };
        format!("{}: {what}", text("host"))
    });
    each.collect::<Vec<_>>().join("; ")
}
