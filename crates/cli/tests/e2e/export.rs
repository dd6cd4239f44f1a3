//! `fullpipe export`: what it counts of a real connection, and Debian's Prometheus that scrapes it.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, until};
use crate::top::StalledConnection;
use crate::window::cgroup_mounts;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant};
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
    ("otlp_is_protocol_buffers", &[Need::Program("protoc")], otlp_is_protocol_buffers),
    ("prometheus_scrapes_it", SCRAPED, prometheus_scrapes_it),
    ("lost_time_is_told_with_its_recording", SCRAPED, lost_time_is_told_with_its_recording),
    ("each_scraper_gets_its_format", &[PROMTOOL, CURL], each_scraper_gets_its_format),
    (
        "alerts_and_dashboard_use_what_is_served",
        &[PROMTOOL],
        alerts_and_dashboard_use_what_is_served,
    ),
];

/// Control groups of version 2 can be made.
const IN_GROUPS: &[Need] = &[Need::WindowAgent, Need::Program("python3")];
const CURL: Need = Need::Program("curl");
const SCRAPED: &[Need] = &[Need::Program("prometheus"), CURL];
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
fn exporter(program: &Program, more: &[&str]) -> (Running, String) {
    let arguments = ["export", "--listen", "127.0.0.1:0", "--interval", "200ms"];
    let exporter = program.start(&mut program.command(&[&arguments[..], more].concat()));
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

/// Debian's Prometheus with a store of its own that scrapes an exporter, and its address.
fn prometheus(program: &Program, exporter: &str) -> (Running, String) {
    program.file(
        "prometheus.yml",
        format!(
            "scrape_configs:\n  - job_name: fullpipe\n    scrape_interval: 1s\n    \
             static_configs:\n      - targets: [\"{exporter}\"]\n"
        ),
    );
    // A port that is free now: nobody else on loopback takes one by number.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let prometheus = program.start(&mut program.command_by(&[
        "prometheus",
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        "--enable-feature=exemplar-storage",
        &format!("--web.listen-address={free}"),
    ]));
    (prometheus, free.to_string())
}

/// The answer to a request, with its head.
fn curl(program: &Program, words: &[&str]) -> String {
    program.start(&mut program.command_by(&[&["curl", "-si"], words].concat())).end().out
}

/// The body of an answer.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// What Prometheus answers.
fn asked(program: &Program, url: &str) -> Value {
    serde_json::from_str(body(&curl(program, &[url]))).unwrap_or_default()
}

fn prometheus_scrapes_it() {
    let (_stalled, port) = on_a_low_port();
    let program = Program::new();
    let (exporter, address) = exporter(&program, &[]);
    assert!(curl(&program, &[&format!("http://{address}/other")]).contains("404 Not Found"));
    let (prometheus, place) = prometheus(&program, &address);
    let query = format!(
        "http://{place}/api/v1/query?query=sum(fullpipe_tcp_limited_seconds_total%7Bserver_port%3D%22{port}%22%7D)"
    );
    // The time grows by what passes: two different values are two scrapes.
    let mut values = BTreeSet::new();
    until("Prometheus has two values", Duration::from_secs(120), || {
        let json = asked(&program, &query);
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

/// A bucket of lost time leads to the part of the recording that has such a connection, and `why`
/// finds it there; Prometheus keeps the exemplar.
fn lost_time_is_told_with_its_recording() {
    let (stalled, port) = on_a_low_port();
    let program = Program::new();
    let (exporter, address) = exporter(&program, &["--ring", "ring"]);
    assert!(exporter.err().contains("nothing is recorded there yet"), "{}", exporter.err());
    let (prometheus, place) = prometheus(&program, &address);
    let url = format!(
        "http://{place}/api/v1/query_exemplars?query=fullpipe_tcp_connection_lost_ratio_bucket&\
         start=2020-01-01T00:00:00Z&end=2100-01-01T00:00:00Z"
    );
    let ends = [stalled.writer.peer_addr().unwrap(), stalled.writer.local_addr().unwrap()];
    let ports = ends.map(|end| end.port().to_string());
    let mut found = Value::Null;
    until("Prometheus has the exemplar", Duration::from_secs(240), || {
        let record = ["record", "--sockets", "--ring", "ring", "--size", "5MB", "--for", "3s"];
        assert_eq!(program.run(&record).code, Some(0));
        let told = asked(&program, &url);
        let all = told["data"].as_array().into_iter().flatten();
        let all = all.flat_map(|series| series["exemplars"].as_array().into_iter().flatten());
        let labels = ["network_local_port", "network_peer_port"];
        let mut ours = all.filter(|one| {
            let told = labels.map(|label| one["labels"][label].as_str().unwrap().to_owned());
            ports.iter().all(|port| told.contains(port))
        });
        found = ours.next_back().cloned().unwrap_or_default();
        found.is_object()
    });
    let part = found["labels"]["recording"].as_str().unwrap();
    assert!(program.work().join("ring").join(part).exists(), "{found}");
    // Its time is one of the recording's, and the share that was lost is what `why` finds then.
    let seconds = found["timestamp"].as_f64().unwrap();
    let now = clock::now() + clock::realtime_offset();
    let ago = now.since(Instant::ZERO).as_secs_f64() - seconds + 3.0;
    let ago = format!("-{}ms", (ago * 1e3) as u64);
    let port = port.to_string();
    let at = ["why", "--at", &ago, "--for", "6s", "--ring", "ring", "--port", &port, "--json"];
    let then = program.run(&[&at[..], &["--loopback"]].concat());
    let then = then.json();
    assert!(!then["connections"].as_array().unwrap().is_empty(), "{then:#}");
    let lost: f64 = found["value"].as_str().unwrap().parse().unwrap();
    assert!((0.0..=1.0).contains(&lost), "{found}");
    for running in [prometheus, exporter] {
        running.signal(Signal::SIGTERM);
        running.end();
    }
}

/// OpenMetrics for whoever asks for it; for others the format before it, which `promtool` reads.
fn each_scraper_gets_its_format() {
    let (_stalled, port) = on_a_low_port();
    let program = Program::new();
    let (exporter, address) = exporter(&program, &[]);
    let url = format!("http://{address}/metrics");
    let new = curl(&program, &["-H", "Accept: application/openmetrics-text", &url]);
    assert!(new.contains("application/openmetrics-text") && new.ends_with("# EOF\n"), "{new}");
    let mut old = String::new();
    until("there is time of the stalled one", Duration::from_secs(60), || {
        old = curl(&program, &[&url]);
        old.contains(&format!("server_port=\"{port}\""))
    });
    assert!(old.contains("content-type: text/plain; version=0.0.4"), "{old}");
    program.file("metrics.txt", body(&old));
    let mut promtool = program.command_by(&["promtool", "check", "metrics"]);
    promtool.stdin(std::fs::File::open(program.work().join("metrics.txt")).unwrap());
    let checked = program.start(&mut promtool).end();
    assert!(!checked.err.contains("error while linting"), "{checked:?}");
    assert!(matches!(checked.code, Some(0 | 3)), "{checked:?}");
    exporter.signal(Signal::SIGTERM);
    exporter.end();
}

/// What a collector answers: a status with headers, and a body of a type.
type Answer<'a> = (&'a str, &'a str, &'a [u8]);

/// Takes one request by HTTP, answers it, and returns its first line, headers and body.
fn take_request(sink: &TcpListener, (status, kind, told): Answer<'_>) -> (String, Vec<u8>) {
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
    let length = told.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    (&stream).write_all(&[answer.as_bytes(), told].concat()).unwrap();
    (head, body)
}

/// Takes one request in JSON.
fn take_json(sink: &TcpListener, status: &str) -> (String, Value) {
    let (head, body) = take_request(sink, (status, "application/json", b"{}"));
    (head, serde_json::from_slice(&body).unwrap())
}

/// By default a push is Protocol Buffers, and so are a collector's answers. `protoc` reads it, by
/// the fields of opentelemetry-proto.
fn otlp_is_protocol_buffers() {
    const KIND: &str = "application/x-protobuf";
    const REQUEST: &str = "otlp.ExportMetricsServiceRequest";
    // As protoc encodes a `google.rpc.Status`, and an `ExportMetricsServiceResponse`.
    const BUSY: &[u8] = b"\x08\x0e\x12\x04full";
    const DROPPED: &[u8] = b"\n\x0b\x08\x03\x12\x07too old";
    let (_stalled, port) = on_a_low_port();
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", sink.local_addr().unwrap());
    let program = Program::new();
    let exporter =
        program.start(&mut program.command(&["export", "--otlp", &url, "--interval", "200ms"]));
    let (head, _) = take_request(&sink, ("503 Busy\r\nRetry-After: 1", KIND, BUSY));
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains(&format!("content-type: {KIND}\r\n")), "{head}");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otlp");
    let (folder, mut told) = (folder.to_str().unwrap(), String::new());
    let port = format!("int_value: {port}\n");
    let is_there = (0..50).any(|_| {
        let (_, body) = take_request(&sink, ("200 OK", KIND, DROPPED));
        let name = program.file("pushed", body);
        let mut protoc =
            program.command_by(&["protoc", "-I", folder, "--decode", REQUEST, "metrics.proto"]);
        protoc.stdin(std::fs::File::open(program.work().join(name)).unwrap());
        let decoded = program.start(&mut protoc).end();
        assert_eq!(decoded.code, Some(0), "{decoded:?}");
        told = decoded.out;
        told.contains(&port)
    });
    assert!(is_there, "{told}");
    for part in [
        "key: \"service.name\"\n      value {\n        string_value: \"fullpipe\"",
        "name: \"fullpipe_tcp_limited_seconds\"",
        "is_monotonic: true",
        "aggregation_temporality: AGGREGATION_TEMPORALITY_CUMULATIVE",
        "name: \"fullpipe_tcp_connection_lost_ratio\"",
        "explicit_bounds: 0.25",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let remarks = exporter.err();
    assert!(remarks.contains("503") && remarks.contains("(full)"), "{remarks}");
    assert!(remarks.contains("3 were rejected. too old"), "{remarks}");
    exporter.signal(Signal::SIGTERM);
    assert_eq!(exporter.end().code, Some(130));
}

/// The names and types are those of opentelemetry-proto's metrics.proto in the JSON encoding of
/// Protocol Buffers: lowerCamelCase, integers of 64 bits as strings, enumerations as numbers.
fn otlp_is_pushed_again_after_a_refusal() {
    let (_stalled, port) = on_a_low_port();
    let sink = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", sink.local_addr().unwrap());
    let program = Program::new();
    let words = ["--otlp", &url, "--otlp-protocol", "http/json", "--interval", "200ms"];
    let exporter = program.start(&mut program.command(&[&["export"], &words[..]].concat()));
    let (head, _) = take_json(&sink, "503 Service Unavailable\r\nRetry-After: 1");
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{head}");
    let mut held = BTreeSet::new();
    for _ in 0..50 {
        let (_, document) = take_json(&sink, "200 OK");
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
