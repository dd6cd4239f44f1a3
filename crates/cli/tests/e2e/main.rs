//! The program from outside: the real binary, real kernels, a real clock, and a law beside each
//! figure.
//!
//! One file a subject. Trials that measure time run one at a time: two links at once on a small
//! machine would measure each other. Those in virtual time alone run first, two at a time: what a
//! guest measures does not depend on its neighbours. Then come those that measure nothing, four at
//! a time. A trial that lacks a tool or a privilege is shown as ignored, with
//! `SKIPPED: name: why` on standard error; with `FULLPIPE_NO_SKIP=1`, as in CI, it fails instead.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stderr,
    reason = "skips, seeds and figures are told to whoever reads the test's output"
)]

mod anonymize;
mod archive;
mod attach;
mod bad_input;
mod captures;
mod cleanup;
mod doctor;
mod export;
mod figures;
mod get;
mod guest;
mod guest_kernels;
mod hangup;
mod impairments;
mod link;
mod link_bounds;
mod link_delivery;
mod link_engines;
mod link_faults;
mod link_refusals;
mod need;
mod noise;
mod output;
mod path_test;
mod privilege;
mod program;
mod real_programs;
mod record;
mod record_both;
mod relay;
mod relay_carriers;
mod relay_killed;
mod relay_multipath;
mod relay_operations;
mod relay_postgres;
mod relay_programs;
mod remains;
mod shards;
mod sweeps;
mod top;
mod truth;
mod tune;
mod tune_container;
mod unprivileged;
mod virtual_figures;
mod virtual_laws;
mod virtual_prove;
mod virtual_time;
mod why;
mod why_causes;
mod why_url;
mod window;
mod window_figures;
mod window_pin;
mod window_record;

use fullpipe_kernel::host::clock;
use fullpipe_model::units::Duration;
use libtest_mimic::{Arguments, Failed, Trial};
use need::Need;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard};

/// Subjects whose trials measure in guests alone, and look at nothing that others leave behind.
const IN_VIRTUAL_TIME: [&str; 4] = ["virtual_figures", "virtual_laws", "virtual_prove", "truth"];
/// Subjects whose trials measure no time: they compare output, files and exit codes, and mark what
/// they start, so neighbours do not matter to them.
const BESIDE_OTHERS: [&str; 16] = [
    "anonymize",
    "output",
    "bad_input",
    "archive",
    "captures",
    "doctor",
    "guest_kernels",
    "privilege",
    "shards",
    "sweeps",
    "link_refusals",
    "unprivileged",
    "tune",
    "tune_container",
    "relay_postgres",
    "relay_programs",
];
/// How many of the slowest trials are named.
const SLOWEST: usize = 25;

/// A trial: its name, what it cannot do without, and what it does.
type Case = (&'static str, &'static [Need], fn());

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let strict = std::env::var_os("FULLPIPE_NO_SKIP").is_some_and(|value| value == "1");
    let subjects: &[(&str, &[Case])] = &[
        ("output", output::CASES),
        ("bad_input", bad_input::CASES),
        ("figures", figures::CASES),
        ("captures", captures::CASES),
        ("real_programs", real_programs::CASES),
        ("cleanup", cleanup::CASES),
        ("link", link::CASES),
        ("link_faults", link_faults::CASES),
        ("link_delivery", link_delivery::CASES),
        ("link_bounds", link_bounds::CASES),
        ("link_refusals", link_refusals::CASES),
        ("anonymize", anonymize::CASES),
        ("archive", archive::CASES),
        ("attach", attach::CASES),
        ("unprivileged", unprivileged::CASES),
        ("virtual_time", virtual_time::CASES),
        ("virtual_figures", virtual_figures::CASES),
        ("virtual_laws", virtual_laws::CASES),
        ("virtual_prove", virtual_prove::CASES),
        ("sweeps", sweeps::CASES),
        ("shards", shards::CASES),
        ("privilege", privilege::CASES),
        ("link_engines", link_engines::CASES),
        ("impairments", impairments::CASES),
        ("truth", truth::CASES),
        ("top", top::CASES),
        ("hangup", hangup::CASES),
        ("doctor", doctor::CASES),
        ("guest_kernels", guest_kernels::CASES),
        ("export", export::CASES),
        ("get", get::CASES),
        ("tune", tune::CASES),
        ("tune_container", tune_container::CASES),
        ("why", why::CASES),
        ("record", record::CASES),
        ("record_both", record_both::CASES),
        ("why_url", why_url::CASES),
        ("path_test", path_test::CASES),
        ("relay", relay::CASES),
        ("relay_carriers", relay_carriers::CASES),
        ("relay_operations", relay_operations::CASES),
        ("relay_postgres", relay_postgres::CASES),
        ("relay_killed", relay_killed::CASES),
        ("relay_multipath", relay_multipath::CASES),
        ("relay_programs", relay_programs::CASES),
        ("window", window::CASES),
        ("window_figures", window_figures::CASES),
        ("window_pin", window_pin::CASES),
        ("window_record", window_record::CASES),
    ];
    let (mut virtual_trials, mut beside, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for &(subject, cases) in subjects {
        let trials = if IN_VIRTUAL_TIME.contains(&subject) {
            &mut virtual_trials
        } else if BESIDE_OTHERS.contains(&subject) {
            &mut beside
        } else {
            &mut alone
        };
        for &(name, needs, run) in cases {
            let name = format!("{subject}::{name}");
            let strict =
                strict && !needs.iter().any(|need| need.is_optional() && need.absent().is_some());
            let absent =
                Need::Sandbox.absent().or_else(|| needs.iter().find_map(|need| need.absent()));
            trials.push(match absent {
                None => Trial::test(name.clone(), move || {
                    let began = clock::now();
                    noise::run(&name, run);
                    times().push((clock::now().since(began), name.clone()));
                    Ok(())
                }),
                Some(why) => {
                    if !strict && !arguments.list {
                        eprintln!("SKIPPED: {name}: {why}");
                    }
                    let failed = Failed::from(format!("not to be skipped here, but {why}"));
                    Trial::test(name, move || Err(failed)).with_ignored_flag(!strict)
                }
            });
        }
    }
    let run = |threads: usize, trials: Vec<Trial>| {
        let arguments = Arguments { test_threads: Some(threads), ..arguments.clone() };
        libtest_mimic::run(&arguments, trials).has_failed()
    };
    let has_failed = run(2, virtual_trials) | run(4, beside) | run(1, alone);
    say_slowest();
    let is_noisy = noise::is_too_noisy();
    if has_failed || is_noisy { ExitCode::from(101) } else { ExitCode::SUCCESS }
}

/// How long each trial took that passed.
fn times() -> MutexGuard<'static, Vec<(Duration, String)>> {
    static TIMES: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());
    TIMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Where the time of a whole run goes: the tests are to stay fast.
fn say_slowest() {
    let mut times = std::mem::take(&mut *times());
    times.sort();
    let whole: f64 = times.iter().map(|(time, _)| time.as_secs_f64()).sum();
    let slowest: Vec<String> = times
        .iter()
        .rev()
        .take(SLOWEST)
        .map(|(time, name)| format!("{name} {:.0}", time.as_secs_f64()))
        .collect();
    eprintln!("trials took {whole:.0} s, the slowest of them: {}", slowest.join(", "));
}
