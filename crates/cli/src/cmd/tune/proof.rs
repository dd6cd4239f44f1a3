//! `tune apply --prove`: the plan's changes are tried in the lab before this machine is touched.
//!
//! The lab runs as a process of its own (`fullpipe prove`), because it makes namespaces and guests,
//! and whoever sets the machine afterwards must not be inside of them. It gets the measured path
//! that the plan is for on its standard input, so both speak of the same measurement.
//!
//! A proof is about one path and both of its ends. [`promise`] asks what of it this plan
//! keeps: only trials count whose every change the plan makes, at the end that this machine is.

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal;
use fullpipe_flow::Language;
use fullpipe_flow::finding::proof::{Proof, TrialResult, WORTH};
use fullpipe_model::change::{Change, Knob, RouteMetric, Sysctl, Value};
use fullpipe_model::tune::prove::Remedy;
use fullpipe_model::tune::{HostPlan, MeasuredPath};
use fullpipe_model::units::Rate;
use fullpipe_report::runs::proof::remedy;
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
    changes: Sentence,
}

/// Runs `fullpipe prove` on a measured path.
///
/// # Errors
/// It cannot be started, or it has no proof: the failure has its exit code and its message.
pub fn prove(measured: &MeasuredPath) -> Result<Proof, Failure> {
    let refused = |cause: std::io::Error| {
        let told = Sentence::new("prove the plan: start the lab", "验证方案：启动实验室");
        Failure::new(Kind::Run, told.with(cause))
    };
    let mut child = Command::new(std::env::current_exe().map_err(refused)?)
        .args(["prove", "--from", "-", "--json", "--language", terminal::language().name()])
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
        let why = said.lines().last().map_or_else(
            || Sentence::new("it ended without a word", "它没有输出就结束了"),
            |line| Sentence::as_is(line.strip_prefix("fullpipe: ").unwrap_or(line)),
        );
        return Err(Failure::with_code(
            code.max(1),
            Sentence::new(
                format!(
                    "prove the plan: {}; nothing is changed; without --prove it is applied unproven",
                    why.english()
                ),
                format!(
                    "验证方案：{}；没有改变任何东西；不带 --prove 则未经验证即应用",
                    why.chinese()
                ),
            ),
        ));
    }
    serde_json::from_slice(&output.stdout).map_err(|cause| {
        let what = "what `fullpipe prove` said is no proof";
        unproven(&Sentence::new(what, "`fullpipe prove` 的输出不是证明").with(cause))
    })
}

/// What to expect of `plan` by `proof`.
///
/// # Errors
/// The lab does not repeat what was measured, or what this plan changes gains nothing there.
pub fn promise(proof: &Proof, plan: &HostPlan) -> Result<Promise, Failure> {
    let agreement = proof.agreement;
    let off = (agreement.ratio - 1.0) * 100.0;
    if !agreement.agrees {
        let [limit, limit_zh] = match agreement.same_limit {
            true => ["", ""],
            false => [" with another limit", "，限制也不同"],
        };
        return Err(unproven(&Sentence::new(
            format!(
                "the lab does not repeat the measurement (its goodput is {off:+.1} % off{limit}), so it promises nothing"
            ),
            format!("实验室没有重现测量（有效吞吐相差 {off:+.1} %{limit_zh}），因此不作任何承诺"),
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
    pub fn words(&self) -> Sentence {
        let Promise { expected, measured, off, changes } = self;
        Sentence::new(
            format!(
                "The lab repeats the measurement ({off:+.1} % off). Expect about {expected} instead of {measured} with: {}.",
                changes.english()
            ),
            format!(
                "实验室重现了测量（相差 {off:+.1} %）。预期约 {expected}，而不是 {measured}，更改为：{}。",
                changes.chinese()
            ),
        )
    }
}

/// Why nothing is promised though the lab repeats the measurement.
fn without_gain(trials: &[TrialResult], nearest: Option<&TrialResult>) -> Sentence {
    let why = match nearest {
        Some(trial) => {
            let (changes, gain) = (words(trial), trial.gain);
            Sentence::new(
                format!("in the lab, {} gives {gain:.2} times the goodput", changes.english()),
                format!("在实验室中，{} 使有效吞吐成为 {gain:.2} 倍", changes.chinese()),
            )
        }
        None => Sentence::new(
            "no change that the lab tried is one of this plan",
            "实验室尝试过的更改都不在这个方案中",
        ),
    };
    let other = trials.iter().filter(|trial| trial.expected.is_some());
    let other = other.max_by(|a, b| a.gain.total_cmp(&b.gain));
    match other.filter(|trial| trial.gain >= WORTH) {
        Some(trial) => {
            let (changes, gain) = (words(trial), trial.gain);
            let most = Sentence::new(
                format!("what gains most there is {} ({gain:.2} times)", changes.english()),
                format!("其中增益最大的是 {}（{gain:.2} 倍）", changes.chinese()),
            );
            Sentence::joined(&[why, most])
        }
        None => why,
    }
}

fn unproven(why: &Sentence) -> Failure {
    let message = Sentence::new(
        format!(
            "prove the plan: {}; nothing is changed; `fullpipe prove --from FILE` shows all of it, and without --prove \
             the plan is applied unproven",
            why.english()
        ),
        format!(
            "验证方案：{}；没有改变任何东西；`fullpipe prove --from FILE` 显示全部，不带 --prove 则未经验证即应用方案",
            why.chinese()
        ),
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
fn words(trial: &TrialResult) -> Sentence {
    let each: Vec<Sentence> = trial
        .changes
        .iter()
        .map(|change| {
            let [english, chinese] = Language::ALL.map(|language| remedy(language, change));
            Sentence::new(english, chinese)
        })
        .collect();
    Sentence::joined(&each)
}
