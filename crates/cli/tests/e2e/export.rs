//! `fullpipe export`: what it counts of a real connection, and Debian's Prometheus that scrapes it.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, until};
use crate::top::StalledConnection;
use crate::window::cgroup_mounts;
use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

pub const CASES: &[Case] = &[
    ("time_is_counted_by_limit", &[], time_is_counted_by_limit),
    ("a_pod_is_told_by_its_control_group", IN_GROUPS, a_pod_is_told_by_its_control_group),
    ("series_are_bounded", &[], series_are_bounded),
    ("a_peer_is_told_by_its_prefix", &[], a_peer_is_told_by_its_prefix),
    ("addresses_that_others_reach_are_refused", &[], addresses_that_others_reach_are_refused),
    ("otlp_is_pushed_again_after_a_refusal", &[], otlp_is_pushed_again_after_a_refusal),
    ("prometheus_scrapes_it", &[Need::Program("prometheus"), CURL], prometheus_scrapes_it),
    (
        "alerts_and_dashboard_use_what_is_served",
        &[PROMTOOL],
        alerts_and_dashboard_use_what_is_served,
    ),
];

/// Control groups of version 2 can be made.
const IN_GROUPS: &[Need] = &[Need::WindowAgent, Need::Program("python3")];
const CURL: Need = Need::Program("curl");
const PROMTOOL: Need = Need::Program("promtool");

/// A stalled connection on a port that no client is given by the kernel.
pub fn on_a_low_port() -> (StalledConnection, u16) {
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

/// The metrics after three looks.
pub fn once(program: &Program, arguments: &[&str]) -> Finished {
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

/// A process in control groups of its own. Both end with this.
pub struct Grouped(pub std::process::Child, pub Vec<PathBuf>);

impl Drop for Grouped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        for group in self.1.iter().rev() {
            // The kernel may need a moment to see that it is empty.
            until("the group is empty", Duration::from_secs(10), || {
                std::fs::remove_dir(group).is_ok()
            });
        }
    }
}

/// A process in groups as CRI-O lays them out with the driver `cgroupfs`: its pod is its workload.
fn a_pod_is_told_by_its_control_group() {
    const UID: &str = "214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9";
    const SENDER: &str = "import socket, sys, time\n\
        sys.stdin.readline(); l = socket.create_server(('127.0.0.1', 0))\n\
        n = socket.create_connection(l.getsockname()); n.setblocking(False)\n\
        try:\n while True: n.send(b'x' * 65536)\n\
        except BlockingIOError: print('ready', flush=True); time.sleep(60)";
    let root = cgroup_mounts().remove(0).join(format!("fullpipe-pod-{}", std::process::id()));
    let id = "4c01db0b339c8a2f".repeat(4);
    let groups = ["kubepods", "burstable", &format!("pod{UID}"), &format!("crio-{id}")];
    let mut made = vec![root.clone()];
    for name in groups {
        made.push(made[made.len() - 1].join(name));
    }
    std::fs::create_dir_all(&made[made.len() - 1]).unwrap();
    let mut command = std::process::Command::new("python3");
    command.args(["-c", SENDER]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Grouped(sender, made) = &mut Grouped(command.spawn().unwrap(), made);
    std::fs::write(made[made.len() - 1].join("cgroup.procs"), sender.id().to_string()).unwrap();
    sender.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut ready = String::new();
    BufReader::new(sender.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let labels = "workload,runtime,pod,qos,container,pod";
    let text = once(&Program::new(), &["--labels", labels]).out;
    let told = format!(
        "workload=\"{UID}\",container_runtime=\"crio\",k8s_pod_uid=\"{UID}\",\
         k8s_pod_qos_class=\"burstable\",container_id=\"{id}\""
    );
    let held = value(&text, &["fullpipe_tcp_limited_seconds_total", "limit=\"receive", &told]);
    assert!(held.is_some_and(|held| held >= 0.35), "{text}");
    assert!(!text.contains("process_executable_name"), "{text}");
}

/// By the longest prefix, by `export`, `why` and `top`; a file that is wrong is refused with its
/// place.
fn a_peer_is_told_by_its_prefix() {
    let (_stalled, port) = on_a_low_port();
    let program = Program::new();
    let file = |text: &str| std::fs::write(program.work().join("sites.csv"), text).unwrap();
    file("prefix,region,site\n127.0.0.0/8,eu,\"here, or\"\n127.0.0.1,,\"this one\"\n::/0,,all\n");
    let given = ["--prefixes", "sites.csv"];
    let labels = "site,provider,region";
    let text = once(&program, &[&["--labels", labels], &given[..]].concat()).out;
    let told = "peer_site=\"this one\",peer_provider=\"\",peer_region=\"\"";
    let held = value(&text, &["fullpipe_tcp_limited_seconds_total", "limit=\"receive", told]);
    assert!(held.is_some_and(|held| held >= 0.35), "{text}");
    let port = port.to_string();
    let asked = [&["why", "--port", &port, "--for", "1s"], &given[..]].concat();
    let shown = program.run(&asked);
    assert!(shown.out.contains(&format!("127.0.0.1:{port} this one")), "{shown:?}");
    let json = program.run(&[&asked[..], &["--json"]].concat()).json();
    let sites: BTreeSet<String> = json["connections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["peer_site"].to_string())
        .collect();
    assert_eq!(sites, BTreeSet::from([json!({ "site": "this one" }).to_string()]), "{json:#}");
    let top = program.run(&[&["top", "--once", "--interval", "300ms"], &given[..]].concat());
    assert!(top.out.contains("this one"), "{top:?}");
    for (text, expected) in [
        ("127.0.0.0/8,a\n127.0.0.1/8,b\n", "line 2, column 1: 127.0.0.1/8 has bits behind"),
        ("127.0.0.0/8,a\n127.0.0.0/8,a\n", "line 2, column 1: 127.0.0.0/8 stands in line 1, too"),
    ] {
        file(text);
        for command in ["export", "why", "top"] {
            let refused = program.run(&[&[command], &given[..]].concat());
            assert_eq!(refused.code, Some(2), "{refused:?}");
            assert!(refused.err.contains(expected), "{refused:?}");
        }
    }
    let refused = program.run(&["export", "--once", "--labels", "site"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("name it with --prefixes FILE"), "{refused:?}");
}

fn series_are_bounded() {
    let connections: Vec<_> = (0..40).map(|_| on_a_low_port()).collect();
    let program = Program::new();
    let count = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    let (few, many) = (once(&program, &["--series-max", "90"]).out, once(&program, &[]).out);
    assert!(count(&few) <= 90 && count(&many) <= 200, "{few}\n{many}");
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
    for url in ["https://127.0.0.1:4318", "127.0.0.1:4318", "http://user:word@127.0.0.1:4318"] {
        let refused = program.run(&["export", "--otlp", url]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
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
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
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
        let json: Value = serde_json::from_str(body).unwrap_or_default();
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

/// Takes one request by HTTP, answers it, and returns its first line, headers and body.
fn take_request(sink: &TcpListener, answer: &str) -> (String, Value) {
    let (stream, _) = sink.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60).into())).unwrap();
    let mut reader = BufReader::new(&stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "the request ends early: {head}");
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().unwrap())
    });
    let mut body = vec![0; length.expect("a length")];
    reader.read_exact(&mut body).unwrap();
    let end = "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    (&stream).write_all(format!("HTTP/1.1 {answer}\r\n{end}").as_bytes()).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

/// The names and types are those of opentelemetry-proto's metrics.proto in the JSON encoding of
/// Protocol Buffers: lowerCamelCase, integers of 64 bits as strings, enumerations as numbers.
fn otlp_is_pushed_again_after_a_refusal() {
    let (_stalled, port) = on_a_low_port();
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", sink.local_addr().unwrap());
    let program = Program::new();
    let exporter =
        program.start(&mut program.command(&["export", "--otlp", &url, "--interval", "200ms"]));
    let (head, _) = take_request(&sink, "503 Service Unavailable\r\nRetry-After: 1");
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{head}");
    let mut held = BTreeSet::new();
    for _ in 0..50 {
        let (_, document) = take_request(&sink, "200 OK");
        let resource = &document["resourceMetrics"][0];
        let attributes = resource["resource"]["attributes"].to_string();
        assert!(
            attributes.contains(r#"{"key":"service.name","value":{"stringValue":"fullpipe"}}"#)
        );
        let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let find = |name: &str| metrics.iter().find(|metric| metric["name"] == name);
        assert!(
            find("fullpipe_tcp_connections").unwrap()["gauge"]["dataPoints"][0]["asInt"]
                .is_string()
        );
        let histogram = &find("fullpipe_tcp_connection_lost_ratio").unwrap()["histogram"];
        assert_eq!(histogram["aggregationTemporality"], 2);
        let point = &histogram["dataPoints"][0];
        let lengths = ["explicitBounds", "bucketCounts"]
            .map(|list| point[list].as_array().map_or(0, Vec::len));
        assert_eq!(lengths, [6, 7], "{point}");
        assert!(point["count"].is_string() && point["sum"].is_f64(), "{point}");
        let Some(limited) = find("fullpipe_tcp_limited_seconds") else { continue };
        let sum = &limited["sum"];
        assert_eq!((&limited["unit"], &sum["isMonotonic"]), (&json!("s"), &json!(true)));
        assert_eq!(sum["aggregationTemporality"], 2);
        let port = json!({ "key": "server.port", "value": { "intValue": port.to_string() } });
        let points = sum["dataPoints"].as_array().unwrap();
        let of_port = |point: &&Value| point["attributes"].as_array().unwrap().contains(&port);
        let Some(point) = points.iter().find(of_port) else { continue };
        let time = |name: &str| point[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") < time("timeUnixNano"), "{point}");
        held.insert(point["asDouble"].as_f64().unwrap().to_bits());
        if held.len() >= 2 {
            break;
        }
    }
    assert!(held.len() >= 2, "the time grows: {held:?}");
    let told = exporter.err();
    assert!(told.contains("503") && told.contains("takes metrics again"), "{told}");
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
    let dashboards = ["fullpipe-dashboard", "fullpipe-fleet-dashboard"];
    let dashboards = dashboards.map(|name| root.join(format!("grafana/{name}.json")));
    for file in dashboards.into_iter().chain([rules]) {
        let text = std::fs::read_to_string(&file).unwrap();
        let names = text
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            // The label that says where the guide is.
            .filter(|word| word.starts_with("fullpipe_") && *word != "fullpipe_guide");
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
