//! Dashboards and alerts over a fleet: Debian's Prometheus has a day of 50 simulated hosts, whose
//! exports are the program's own, host by host with a limit and a loss that are known.

use crate::Case;
use crate::export::{on_a_low_port, once};
use crate::need::Need;
use crate::program::{Finished, Program, Running, until};
use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

pub const CASES: &[Case] = &[
    ("every_query_answers_for_fifty_hosts", SERVED, every_query_answers_for_fifty_hosts),
    ("alerts_fire_as_they_say", &[PROMTOOL], alerts_fire_as_they_say),
    ("runbooks_are_in_the_guide", &[], runbooks_are_in_the_guide),
];

const PROMTOOL: Need = Need::Program("promtool");
const SERVED: &[Need] = &[PROMTOOL, Need::Program("prometheus"), Need::Program("curl")];

const HOSTS: usize = 50;
/// Of these, the last ten lose more in the last two hours.
const WORSE: std::ops::Range<usize> = 40..HOSTS;
/// It does not answer at the end.
const SILENT: usize = 7;
/// When the dashboards are looked at, in seconds since 1970; a boundary of Prometheus' blocks.
const NOW: u64 = 1_793_491_200;
const STEP: u64 = 600;
const SPAN: u64 = 26 * 3600;
const LIMITS: [(&str, &str); 4] = [
    ("send_buffer", ""),
    ("receive_window", ""),
    ("receiver_application", ""),
    ("congestion_window", "loss"),
];

fn contrib() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib")
}

/// How many of a host's connections are held at a time.
fn held(host: usize) -> f64 {
    0.1 + 0.01 * host as f64
}

/// For how long a host's connections were held until `at`, in seconds.
fn lost(host: usize, at: u64) -> f64 {
    let elapsed = at - (NOW - SPAN);
    let late = at.saturating_sub(NOW - 2 * 3600);
    let more = if WORSE.contains(&host) { 1.5 } else { 0.0 };
    held(host) * elapsed as f64 + more * late as f64
}

/// What the hosts' exporters said in that day, as `promtool tsdb create-blocks-from` reads it.
/// `text` is one export of this program; its lines of `port` are each host's.
fn simulated(text: &str, port: u16) -> String {
    let port = format!("server_port=\"{port}\"");
    let mut out = String::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if line.starts_with('#') {
            out += line;
            out.push('\n');
            continue;
        }
        if line.contains("server_port=") && !line.contains(&port) {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) =
            series.split_once('{').map_or((series, ""), |(a, b)| (a, b.trim_end_matches('}')));
        let value: f64 = value.parse().unwrap();
        let is_counted =
            ["_total", "_sum", "_count", "_bucket"].iter().any(|end| name.ends_with(end));
        let part = if labels.contains("le=\"0") && !labels.contains("0.75") { 0.4 } else { 1.0 };
        for host in 0..HOSTS {
            let (limit, cause) = LIMITS[host % LIMITS.len()];
            let mut labels = labels.to_owned();
            if let Some(at) = labels.find("limit=") {
                labels.truncate(at);
                write!(labels, "limit=\"{limit}\",cause=\"{cause}\"").unwrap();
            }
            let comma = if labels.is_empty() { "" } else { "," };
            for at in times() {
                let value = if is_counted { part * lost(host, at) } else { value };
                writeln!(
                    out,
                    "{name}{{instance=\"host-{host}\",job=\"fullpipe\"{comma}{labels}}} {value} {at}"
                )
                .unwrap();
            }
        }
    }
    out += "# TYPE up gauge\n";
    for host in 0..HOSTS {
        for at in times() {
            let up = u8::from(host != SILENT || at + 3600 < NOW);
            writeln!(out, "up{{instance=\"host-{host}\",job=\"fullpipe\"}} {up} {at}").unwrap();
        }
    }
    out + "# EOF\n"
}

fn times() -> impl Iterator<Item = u64> {
    (NOW - SPAN..=NOW).step_by(STEP as usize)
}

/// Prometheus with those days.
struct Store<'p> {
    program: &'p Program,
    prometheus: Running,
    address: String,
}

impl<'p> Store<'p> {
    fn of(program: &'p Program, text: &str) -> Store<'p> {
        program.file("fleet.txt", text);
        program.file("prometheus.yml", "scrape_configs: []\n");
        let made = program
            .start(&mut program.command_by(&[
                "promtool",
                "tsdb",
                "create-blocks-from",
                "openmetrics",
                "fleet.txt",
                "data",
            ]))
            .end();
        assert_eq!(made.code, Some(0), "{made:?}");
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let prometheus = program.start(&mut program.command_by(&[
            "prometheus",
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            "--storage.tsdb.retention.time=10y",
            &format!("--web.listen-address={free}"),
        ]));
        let store = Store { program, prometheus, address: free.to_string() };
        until("Prometheus is ready", Duration::from_secs(120), || {
            store.get("/-/ready", &[]).out.contains("Ready")
        });
        store
    }

    fn get(&self, path: &str, fields: &[String]) -> Finished {
        let url = format!("http://{}{path}", self.address);
        let mut words = vec!["curl", "-s", "-G", url.as_str()];
        for field in fields {
            words.extend(["--data-urlencode", field]);
        }
        self.program.start(&mut self.program.command_by(&words)).end()
    }

    /// What a query gives at the end of the day, as a dashboard with everything chosen asks it.
    fn query(&self, expression: &str) -> Vec<Value> {
        let asked = expression
            .replace("$__rate_interval", "30m")
            .replace("$instance", ".*")
            .replace("$workload", ".*")
            // Points are ten minutes apart here.
            .replace("[5m]", "[30m]");
        assert!(!asked.contains('$'), "a variable is not known here: {asked}");
        let answer = self.get("/api/v1/query", &[format!("query={asked}"), format!("time={NOW}")]);
        let answer = answer.json();
        assert_eq!(answer["status"], "success", "{asked}: {answer:#}");
        answer["data"]["result"].as_array().unwrap().clone()
    }
}

fn number(result: &Value) -> f64 {
    result["value"][1].as_str().unwrap().parse().unwrap()
}

/// The hosts that results are about.
fn hosts(results: &[Value]) -> BTreeSet<String> {
    let hosts = results.iter().map(|one| one["metric"]["instance"].as_str().unwrap().to_owned());
    hosts.collect()
}

fn named(hosts: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
    hosts.into_iter().map(|host| format!("host-{host}")).collect()
}

/// What a dashboard asks.
struct Dashboard {
    /// Panels' titles and queries.
    queries: Vec<(String, String)>,
    /// The metric and the label of each list to choose from.
    lists: Vec<(String, String)>,
}

impl Dashboard {
    fn read(name: &str) -> Dashboard {
        let text = std::fs::read_to_string(contrib().join("grafana").join(name)).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let mut queries = Vec::new();
        for panel in document["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            for target in panel["targets"].as_array().unwrap() {
                queries.push((title.to_owned(), target["expr"].as_str().unwrap().to_owned()));
            }
        }
        let mut lists = Vec::new();
        for variable in document["templating"]["list"].as_array().unwrap() {
            let Some(query) = variable["query"]["query"].as_str() else { continue };
            let inner = query.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap();
            let (metric, label) = inner.split_once(", ").unwrap();
            lists.push((metric.to_owned(), label.to_owned()));
        }
        Dashboard { queries, lists }
    }
}

/// Each query of both dashboards and of the alerts gives data, and what was simulated.
fn every_query_answers_for_fifty_hosts() {
    let (_stalled, port) = on_a_low_port();
    let program = Program::new();
    program.file("sites.csv", "127.0.0.0/8,fra1\n");
    let labels = "workload,process,port,site";
    let export = once(&program, &["--labels", labels, "--prefixes", "sites.csv"]).out;
    let store = Store::of(&program, &simulated(&export, port));
    for dashboard in ["fullpipe-dashboard.json", "fullpipe-fleet-dashboard.json"] {
        let Dashboard { queries, lists } = Dashboard::read(dashboard);
        assert!(queries.len() >= 8, "{dashboard}");
        for (title, query) in queries {
            assert!(!store.query(&query).is_empty(), "{dashboard}, {title}: no data: {query}");
        }
        for (metric, label) in lists {
            let found = store.query(&format!("count by ({label}) ({metric})"));
            assert!(
                found.iter().all(|one| one["metric"][&label].is_string()),
                "{label}: {found:?}"
            );
            assert!(!found.is_empty(), "{label}");
        }
    }
    let panels = Dashboard::read("fullpipe-fleet-dashboard.json").queries;
    let of = |title: &str| {
        let (_, query) = panels.iter().find(|(name, _)| name == title).unwrap();
        store.query(query)
    };
    let near = |title: &str, expected: f64| {
        let found = number(&of(title)[0]);
        assert!((found / expected - 1.0).abs() < 0.02, "{title}: {found}, not {expected}");
    };
    near("Hosts", HOSTS as f64);
    near("Hosts that do not answer", 1.0);
    let now: f64 = (0..HOSTS).map(held).sum::<f64>() + 1.5 * WORSE.len() as f64;
    near("Connections held now", now);
    let day = |host| lost(host, NOW) - lost(host, NOW - 24 * 3600);
    near("Hours lost in a day", (0..HOSTS).map(day).sum());
    assert_eq!(hosts(&of("Hosts that got worse")), named(WORSE));
    let most = of("Hosts that lose most");
    let lost_by = |one: &Value| number(one);
    let worst = most.iter().max_by(|a, b| lost_by(a).total_cmp(&lost_by(b))).unwrap();
    assert_eq!(worst["metric"]["instance"], "host-49", "{most:?}");
    let limits: BTreeSet<_> = of("Workloads that lose most, by limit")
        .iter()
        .map(|one| one["metric"]["limit"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(limits, LIMITS.map(|(limit, _)| limit.to_owned()).into());
    assert_eq!(of("Towards which sites")[0]["metric"]["peer_site"], "fra1");
    alerts_are_of_those(&store);
    store.prometheus.signal(Signal::SIGTERM);
    store.prometheus.end();
}

/// The alerts' own expressions name the hosts that they are about.
fn alerts_are_of_those(store: &Store<'_>) {
    let rules = std::fs::read_to_string(contrib().join("prometheus/fullpipe-rules.yml")).unwrap();
    // Each expression ends where `for:` begins, and may go over several lines.
    let expressions = rules.split("        expr: ").skip(1).map(|rest| {
        let whole = rest.split("        for: ").next().unwrap().trim_start_matches(">-");
        whole.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    let names = rules.split("- alert: ").skip(1).map(|rest| rest.lines().next().unwrap());
    let mut told = 0;
    for (name, expression) in names.zip(expressions) {
        let limited = |limit: usize| {
            named((0..HOSTS).filter(move |host| {
                let more = if WORSE.contains(host) { 1.5 } else { 0.0 };
                host % LIMITS.len() == limit && held(*host) + more > 0.5
            }))
        };
        let expected = match name {
            "TcpSendBufferLimits" => limited(0),
            "TcpReceiveWindowLimits" => limited(1),
            "TcpReceiverReadsSlowly" => limited(2),
            "TcpLossLimits" => limited(3),
            "TcpHostLosesMore" => named(WORSE),
            "FullpipeExportDown" => named([SILENT]),
            other => panic!("no host was simulated for {other}"),
        };
        assert_eq!(hosts(&store.query(&expression)), expected, "{name}");
        told += 1;
    }
    assert_eq!(told, 6);
}

/// The rules' own tests have for each alert when it fires, and what is too little; a threshold
/// that is moved fails them.
fn alerts_fire_as_they_say() {
    let program = Program::new();
    let rules = std::fs::read_to_string(contrib().join("prometheus/fullpipe-rules.yml")).unwrap();
    let tests = contrib().join("prometheus/fullpipe-rules-test.yml");
    let tests = program.file("tests.yml", std::fs::read(tests).unwrap());
    let tried = |rules: &str| {
        program.file("fullpipe-rules.yml", rules);
        program.start(&mut program.command_by(&["promtool", "test", "rules", tests])).end()
    };
    let right = tried(&rules);
    assert_eq!(right.code, Some(0), "{right:?}");
    assert!(rules.matches("> 0.5\n").count() == 4 && rules.contains("for: 10m"));
    for (from, to) in [("> 0.5\n", "> 0.4\n"), ("for: 10m", "for: 2m"), ("offset 1d", "offset 2d")]
    {
        assert_eq!(tried(&rules.replace(from, to)).code, Some(1), "{to} is not noticed");
    }
}

/// Each alert leads to a heading of the guide that is there.
fn runbooks_are_in_the_guide() {
    let rules = std::fs::read_to_string(contrib().join("prometheus/fullpipe-rules.yml")).unwrap();
    let links: Vec<&str> =
        rules.split("runbook_url: \"{{ $externalLabels.fullpipe_guide }}/").skip(1).collect();
    assert_eq!(links.len(), rules.matches("- alert: ").count());
    for link in links {
        let (page, anchor) = link.split('"').next().unwrap().split_once(".html#").unwrap();
        let file = contrib().join(format!("../docs/src/{page}.md"));
        let text = std::fs::read_to_string(&file).unwrap();
        let headings = text.lines().filter_map(|line| line.strip_prefix("### "));
        let mut anchors = headings.map(str::to_lowercase);
        assert!(anchors.any(|heading| heading == anchor), "{}: no {anchor}", file.display());
    }
}
