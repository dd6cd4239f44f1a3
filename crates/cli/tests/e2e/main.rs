//! The program from outside: the real binary, real kernels, a real clock, and a law beside each
//! figure.
//!
//! One file a subject, which says what its trials may run beside ([`Beside`]). A trial that lacks a
//! tool or a privilege is shown as ignored, with `SKIPPED: name: why` on standard error; with
//! `FULLPIPE_NO_SKIP=1`, as in CI, it fails instead.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stderr,
    reason = "skips, seeds and figures are told to whoever reads the test's output"
)]

mod annotate;
mod anonymize;
mod archive;
mod attach;
mod bad_input;
mod captures;
mod cleanup;
mod doctor;
mod export;
mod export_fleet;
mod figures;
mod get;
mod guest;
mod guest_kernels;
mod hangup;
mod impairments;
mod keys;
mod kubernetes;
mod link;
mod link_bounds;
mod link_delivery;
mod link_engines;
mod link_faults;
mod link_refusals;
mod mcp;
mod need;
mod noise;
mod open_benchmark;
mod output;
mod path_test;
mod privilege;
mod program;
mod real_programs;
mod record;
mod record_both;
mod record_sockets;
mod record_upload;
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
mod why_ss;
mod why_ssh;
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

/// What the trials of a subject may run beside: others of the same kind. The kinds run in this
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// They measure in guests alone, in virtual time, and look at nothing that others leave
    /// behind: what a guest measures does not depend on its neighbours.
    Guests,
    /// They measure no time: they compare output, files and exit codes, and mark what they start,
    /// so neighbours do not matter to them.
    Unmeasured,
    /// They run in real time, and need less than half of a processor for it: most of their time is
    /// a path's delay, a pause or somebody's patience.
    Waiting,
    /// They measure what takes all of a processor, or how long something took to the millisecond.
    Nothing,
}

impl Beside {
    const ALL: [Beside; 4] = [Beside::Guests, Beside::Unmeasured, Beside::Waiting, Beside::Nothing];

    /// How many run at a time, on two processors.
    fn at_a_time(self) -> usize {
        match self {
            Beside::Guests => 2,
            Beside::Unmeasured | Beside::Waiting => 4,
            Beside::Nothing => 1,
        }
    }
}

/// How many of the slowest trials are named.
const SLOWEST: usize = 25;

/// A trial: its name, what it cannot do without, and what it does.
type Case = (&'static str, &'static [Need], fn());

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let subjects: &[(&str, Beside, &[Case])] = &[
        ("output", Beside::Unmeasured, output::CASES),
        ("annotate", Beside::Unmeasured, annotate::CASES),
        ("open_benchmark", Beside::Unmeasured, open_benchmark::CASES),
        ("anonymize", Beside::Unmeasured, anonymize::CASES),
        ("mcp", Beside::Unmeasured, mcp::CASES),
        ("bad_input", Beside::Unmeasured, bad_input::CASES),
        ("figures", Beside::Nothing, figures::CASES),
        ("captures", Beside::Unmeasured, captures::CASES),
        ("real_programs", Beside::Guests, real_programs::CASES),
        ("cleanup", Beside::Waiting, cleanup::CASES),
        ("link", Beside::Waiting, link::CASES),
        ("link_faults", Beside::Waiting, link_faults::CASES),
        ("link_delivery", Beside::Waiting, link_delivery::CASES),
        ("link_bounds", Beside::Waiting, link_bounds::CASES),
        ("keys", Beside::Waiting, keys::CASES),
        ("link_refusals", Beside::Unmeasured, link_refusals::CASES),
        ("archive", Beside::Unmeasured, archive::CASES),
        ("attach", Beside::Waiting, attach::CASES),
        ("unprivileged", Beside::Unmeasured, unprivileged::CASES),
        ("virtual_time", Beside::Guests, virtual_time::CASES),
        ("virtual_figures", Beside::Guests, virtual_figures::CASES),
        ("virtual_laws", Beside::Guests, virtual_laws::CASES),
        ("virtual_prove", Beside::Guests, virtual_prove::CASES),
        ("sweeps", Beside::Unmeasured, sweeps::CASES),
        ("shards", Beside::Unmeasured, shards::CASES),
        ("privilege", Beside::Unmeasured, privilege::CASES),
        ("link_engines", Beside::Guests, link_engines::CASES),
        ("impairments", Beside::Nothing, impairments::CASES),
        ("truth", Beside::Guests, truth::CASES),
        ("top", Beside::Waiting, top::CASES),
        ("hangup", Beside::Waiting, hangup::CASES),
        ("doctor", Beside::Unmeasured, doctor::CASES),
        ("guest_kernels", Beside::Unmeasured, guest_kernels::CASES),
        ("export", Beside::Waiting, export::CASES),
        ("export_fleet", Beside::Waiting, export_fleet::CASES),
        ("kubernetes", Beside::Waiting, kubernetes::CASES),
        ("get", Beside::Waiting, get::CASES),
        ("tune", Beside::Unmeasured, tune::CASES),
        ("tune_container", Beside::Unmeasured, tune_container::CASES),
        ("why", Beside::Nothing, why::CASES),
        ("why_ss", Beside::Nothing, why_ss::CASES),
        ("why_ssh", Beside::Nothing, why_ssh::CASES),
        ("record", Beside::Waiting, record::CASES),
        ("record_both", Beside::Waiting, record_both::CASES),
        ("record_sockets", Beside::Waiting, record_sockets::CASES),
        ("record_upload", Beside::Waiting, record_upload::CASES),
        ("why_url", Beside::Waiting, why_url::CASES),
        ("path_test", Beside::Waiting, path_test::CASES),
        ("relay", Beside::Waiting, relay::CASES),
        ("relay_carriers", Beside::Waiting, relay_carriers::CASES),
        ("relay_operations", Beside::Waiting, relay_operations::CASES),
        ("relay_postgres", Beside::Unmeasured, relay_postgres::CASES),
        ("relay_killed", Beside::Waiting, relay_killed::CASES),
        ("relay_multipath", Beside::Waiting, relay_multipath::CASES),
        ("relay_programs", Beside::Unmeasured, relay_programs::CASES),
        ("window", Beside::Waiting, window::CASES),
        ("window_figures", Beside::Nothing, window_figures::CASES),
        ("window_pin", Beside::Waiting, window_pin::CASES),
        ("window_record", Beside::Waiting, window_record::CASES),
    ];
    let mut has_failed = false;
    for beside in Beside::ALL {
        let subjects = subjects.iter().filter(|(_, kind, _)| *kind == beside);
        let cases = subjects.flat_map(|(subject, _, cases)| {
            cases.iter().map(move |case| (format!("{subject}::{}", case.0), case))
        });
        let trials = cases.map(|(name, case)| trial(name, case, beside, &arguments)).collect();
        let threads = Some(beside.at_a_time());
        let arguments = Arguments { test_threads: threads, ..arguments.clone() };
        has_failed |= libtest_mimic::run(&arguments, trials).has_failed();
    }
    say_slowest();
    let is_noisy = noise::is_too_noisy();
    if has_failed || is_noisy { ExitCode::from(101) } else { ExitCode::SUCCESS }
}

/// A case as a trial of this name, or why it cannot be tried here.
fn trial(name: String, case: &Case, beside: Beside, arguments: &Arguments) -> Trial {
    let (_, needs, run) = *case;
    let strict = std::env::var_os("FULLPIPE_NO_SKIP").is_some_and(|value| value == "1")
        && !needs.iter().any(|need| need.is_optional() && need.absent().is_some());
    let absent = Need::Sandbox.absent().or_else(|| needs.iter().find_map(|need| need.absent()));
    match absent {
        None => Trial::test(name.clone(), move || {
            let began = clock::now();
            noise::run(&name, run, beside == Beside::Waiting);
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
    }
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
