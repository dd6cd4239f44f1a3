//! The program in real time: a smoke test, because a clock that other programs share cannot assert
//! figures.
//!
//! [`crate::virtual_laws`] and [`crate::virtual_figures`] assert figures in virtual time. This file
//! asserts what must hold on any machine, however busy: the columns, the laws as upper bounds, the
//! named limit where one outweighs all others, and that the demo's plan helps.

use fullpipe_model::units::Duration;
use serde_json::Value;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Row, User, row};

pub const CASES: &[Case] = &[
    ("quick_runs_in_real_time", &[], || assert_quick(&Program::new().rows(&["quick"]))),
    ("quick_is_the_same_for_an_ordinary_user", &[Need::OrdinaryUser], quick_of_a_user),
    ("a_starved_client_is_the_limit", &[Need::Root], a_starved_client_is_the_limit),
    ("the_demo_helps", &[], the_demo_helps),
];

type IsKind = fn(&Value) -> bool;

/// The columns that every row must have, with the kinds of their values.
const KEYS: [(&str, IsKind); 14] = [
    ("name", Value::is_string),
    ("rtt_nominal_us", Value::is_u64),
    ("rtt_p50_us", Value::is_u64),
    ("window_max_bytes", Value::is_u64),
    ("goodput_bps", Value::is_u64),
    ("packets", Value::is_u64),
    ("retransmission", Value::is_u64),
    ("duplicate_ack", Value::is_u64),
    ("out_of_order", Value::is_u64),
    ("window_full", Value::is_u64),
    ("zero_window", Value::is_u64),
    ("limited_by", Value::is_string),
    ("limit_share", Value::is_f64),
    ("link_late_p99_us", Value::is_u64),
];

/// Checks the keys and their types, and two rules for any row: goodput is not far above the law, and
/// a row that is not quiet has a note.
pub fn assert_row(row: &Row) {
    for (key, fits) in KEYS {
        assert!(fits(&row.0[key]), "{key} of {:#}", row.0);
    }
    let share = row.number("limit_share");
    assert!((0.0..=1.0).contains(&share), "limit_share {share}");
    assert_within_law(row);
    if !row.quiet() {
        assert!(!row.notes().is_empty(), "not quiet, and no word why: {:#}", row.0);
        eprintln!("not quiet: {}: {:?}", row.name(), row.notes());
    }
}

fn assert_within_law(row: &Row) {
    let (goodput, law) = (row.number("goodput_bps"), row.number("law_bps"));
    // The law is what to expect, not a bound: where its buffers sit between two patterns of whole
    // writes, a transfer may be a quarter faster.
    assert!(goodput <= law * 1.25, "{}: {goodput} bit/s are above the law's {law}", row.name());
}

/// The capture's verdict; the sockets' must be the same.
pub fn assert_limited_by(row: &Row, limit: &str) {
    let verdicts = (row.text("limited_by"), row.text("limited_by_sockets"));
    let shares = (&row.0["limits"], &row.0["limit_share_sockets"]);
    assert_eq!(
        verdicts,
        (limit, limit),
        "{}: by capture and by sockets; {shares:?}; {:?}",
        row.name(),
        row.notes()
    );
}

/// The three cases of `quick` in real time: the limit, and at least half of the prediction.
pub fn assert_quick(rows: &[Row]) {
    assert_eq!(rows.len(), 3);
    rows.iter().for_each(assert_row);
    for (case, limit) in
        [("small-receive-buffer", "receive_window"), ("small-send-buffer", "send_buffer")]
    {
        assert_eq!(
            row(rows, case).text("limited_by"),
            limit,
            "{case}: {:?}",
            row(rows, case).notes()
        );
    }
    let held = row(rows, "small-receive-buffer");
    let ratio = held.number("goodput_bps") / held.number("law_bps");
    assert!(
        ratio > 0.5,
        "held by its window, it carries {ratio} of window / RTT; {:?}",
        held.notes()
    );
}

fn quick_of_a_user() {
    let program = Program::of(User::Ordinary);
    let rows = program.rows(&["quick"]);
    assert_quick(&rows);
    for row in &rows {
        eprintln!(
            "{}: late by {} us (p99); {:?}",
            row.name(),
            row.number("link_late_p99_us"),
            row.notes()
        );
    }
}

/// Needs root: only then may the hog be less nice than the client whatever the limits are.
fn a_starved_client_is_the_limit() {
    let rows = Program::new().rows(&["articles/b6-starved-client"]);
    for row in &rows {
        assert_row(row);
        eprintln!(
            "{}: {} ({})",
            row.name(),
            row.text("limited_by"),
            row.text("limited_by_sockets")
        );
        assert_limited_by(row, "receiver_application");
    }
}

/// Its own figures, 47 % before and 93 % after, are asserted in virtual time.
fn the_demo_helps() {
    let program = Program::new();
    let finished = program.run(&["demo", "--json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    // It ends with a report on both runs, and nothing else of them stays.
    let report = finished.err.lines().find_map(|line| line.strip_prefix("Report: "));
    let report = program.work().join(report.unwrap_or_else(|| panic!("no report: {finished:?}")));
    let html = std::fs::read_to_string(&report).unwrap();
    for part in ["before", "after"] {
        assert!(html.contains(&format!("\"part\":\"{part}\"")), "{part} is not in the report");
    }
    assert!(html.len() < 10_000_000, "{} bytes", html.len());
    assert_eq!(std::fs::read_dir(report.parent().unwrap()).unwrap().count(), 1);
    assert!(
        finished.took < Duration::from_secs(90),
        "the tour of half a minute took {}",
        finished.took
    );
    let document = finished.json();
    assert!(!document["plan"].as_array().unwrap().is_empty(), "no plan");
    let (before, after) = (Row(document["before"].clone()), Row(document["after"].clone()));
    for row in [&before, &after] {
        assert_row(row);
    }
    let share = |row: &Row| row.number("goodput_bps") / 1e9;
    eprintln!(
        "demo: {:.3} before, {:.3} after, in {}",
        share(&before),
        share(&after),
        finished.took
    );
    // A send buffer of 4 MiB over 50 ms is a bound whatever the machine does.
    assert!(share(&before) <= 0.6, "before: {}", share(&before));
    assert!(share(&after) > 1.25 * share(&before), "after: {}; {:?}", share(&after), after.notes());
    let held = before.text("limited_by");
    assert!(["receive_window", "send_buffer"].contains(&held), "before: {held}");
}
