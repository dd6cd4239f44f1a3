//! `fullpipe export`: what it counts of a real connection, and Debian's Prometheus that scrapes it.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, until};
use crate::top::StalledConnection;
use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::path::Path;

pub const CASES: &[Case] = &[
    ("time_is_counted_by_limit", &[], time_is_counted_by_limit),
    ("series_are_bounded", &[], series_are_bounded),
    ("addresses_that_others_reach_are_refused", &[], addresses_that_others_reach_are_refused),
    ("prometheus_scrapes_it", &[Need::Program("prometheus"), CURL], prometheus_scrapes_it),
    (
        "alerts_and_dashboard_use_what_is_served",
        &[PROMTOOL],
        alerts_and_dashboard_use_what_is_served,
    ),
];

const CURL: Need = Need::Program("curl");
const PROMTOOL: Need = Need::Program("promtool");

/// A stalled connection on a port that no client is given by the kernel.
fn on_a_low_port() -> (StalledConnection, u16) {
    let stalled = (20_000..21_000).find_map(|port| StalledConnection::to_port(port).ok());
    let stalled = stalled.expect("one of a thousand ports is free");
    let port = stalled.writer.peer_addr().unwrap().port();
    (stalled, port)
}

/// The value of the first line that contains all of `parts`.
fn value(text: &str, parts: &[&str]) -> Option<f64> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let line = lines.find(|line| parts.iter().all(|part| line.contains(part)))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

fn once(program: &Program, arguments: &[&str]) -> Finished {
    let finished = program.run(&[&["export", "--once", "--interval", "400ms"], arguments].concat());
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
    finished
}

/// Its reader takes nothing: all of the time is the window's or the reader's, and nothing moves.
fn time_is_counted_by_limit() {
    let (_stalled, port) = on_a_low_port();
    let text = once(&Program::new(), &[]).out;
    let port = format!("server_port=\"{port}\"");
    let held = value(&text, &["fullpipe_tcp_limited_seconds_total", "limit=\"receive", &port])
        .unwrap_or_else(|| panic!("no time of {port}: {text}"));
    // Between two looks at least the interval passes, on a busy machine more.
    assert!((0.35..20.0).contains(&held), "{held}: {text}");
    let lost = value(&text, &["fullpipe_tcp_connection_lost_ratio_count"]).unwrap();
    assert!(lost >= 1.0, "{text}");
    let all = value(&text, &["fullpipe_tcp_connections "]).unwrap();
    let busy = value(&text, &["fullpipe_tcp_busy_connections "]).unwrap();
    assert!(1.0 <= busy && busy <= all, "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

fn series_are_bounded() {
    let connections: Vec<_> = (0..40).map(|_| on_a_low_port()).collect();
    let program = Program::new();
    let count = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    let (few, many) = (once(&program, &["--series-max", "70"]).out, once(&program, &[]).out);
    assert!(count(&few) <= 70 && count(&many) <= 200, "{few}\n{many}");
    assert!(few.contains("server_port=\"other\""), "{few}");
    // What does not fit is in the sum.
    let sum: f64 = few
        .lines()
        .filter(|line| line.starts_with("fullpipe_tcp_limited_seconds_total{"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum();
    assert!(sum >= 0.35 * connections.len() as f64, "{sum} s: {few}");
}

fn addresses_that_others_reach_are_refused() {
    let program = Program::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9090"] {
        let refused = program.run(&["export", "--listen", address]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("--expose"), "{refused:?}");
    }
    let few = program.run(&["export", "--once", "--series-max", "3"]);
    assert_eq!(few.code, Some(2), "{few:?}");
}

/// An exporter on a free port, and its address.
fn exporter(program: &Program) -> (Running, String) {
    let arguments = ["export", "--listen", "127.0.0.1:0", "--interval", "200ms"];
    let exporter = program.start(&mut program.command(&arguments));
    let mut address = None;
    until("the exporter says where it listens", Duration::from_secs(30), || {
        let told = exporter.err();
        address = told
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split_once("/metrics"))
            .map(|(address, _)| address.to_string());
        address.is_some()
    });
    (exporter, address.unwrap())
}

fn prometheus_scrapes_it() {
    let (_stalled, port) = on_a_low_port();
    let program = Program::new();
    let (exporter, address) = exporter(&program);
    let curl = |url: &str| program.start(&mut program.command_by(&["curl", "-si", url])).end().out;
    assert!(curl(&format!("http://{address}/metrics")).contains("openmetrics-text"));
    assert!(curl(&format!("http://{address}/other")).contains("404 Not Found"));
    program.file(
        "prometheus.yml",
        format!(
            "scrape_configs:\n  - job_name: fullpipe\n    scrape_interval: 1s\n    \
             static_configs:\n      - targets: [\"{address}\"]\n"
        ),
    );
    // A port that is free now: nobody else on loopback takes one by number.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listen = format!("--web.listen-address={free}");
    let prometheus = program.start(&mut program.command_by(&[
        "prometheus",
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        &listen,
    ]));
    let query = format!(
        "http://{free}/api/v1/query?query=sum(fullpipe_tcp_limited_seconds_total%7Bserver_port%3D%22{port}%22%7D)"
    );
    // The time grows by what passes: two different values are two scrapes.
    let mut values = BTreeSet::new();
    until("Prometheus has two values", Duration::from_secs(120), || {
        let answer = curl(&query);
        let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
        let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        if let Some(value) = json["data"]["result"][0]["value"][1].as_str() {
            values.insert(value.to_string());
        }
        values.len() >= 2
    });
    prometheus.signal(Signal::SIGTERM);
    prometheus.end();
    exporter.signal(Signal::SIGTERM);
    assert_eq!(exporter.end().code, Some(130));
}

/// Each metric that a rule or a panel names is served, so a new name cannot silence an alert.
fn alerts_and_dashboard_use_what_is_served() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
    let rules = root.join("prometheus/fullpipe-rules.yml");
    let program = Program::new();
    let (_stalled, _) = on_a_low_port();
    let served = once(&program, &[]).out;
    let words = ["promtool", "check", "rules", rules.to_str().unwrap()];
    let checked = program.start(&mut program.command_by(&words)).end();
    assert_eq!(checked.code, Some(0), "{checked:?}");
    for file in [rules, root.join("grafana/fullpipe-dashboard.json")] {
        let text = std::fs::read_to_string(&file).unwrap();
        let names = text
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .filter(|word| word.starts_with("fullpipe_"));
        let names: BTreeSet<&str> = names.collect();
        assert!(!names.is_empty(), "{}", file.display());
        for name in names {
            let is_served = served.lines().any(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            });
            assert!(is_served, "{}: {name} is not served:\n{served}", file.display());
        }
    }
}
