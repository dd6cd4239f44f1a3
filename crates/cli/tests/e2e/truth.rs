//! Kernels that count why their sockets do not send: they change nothing, and what they count is
//! what each scenario was built to be limited by.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Row, files, result_folder, scenario};

pub const CASES: &[Case] = &[
    (
        "counting_changes_no_row_and_names_the_limit",
        &[Need::GuestKernel, Need::TruthKernel],
        counting_changes_no_row_and_names_the_limit,
    ),
    (
        "without_such_a_kernel_it_says_how_to_get_one",
        &[],
        without_such_a_kernel_it_says_how_to_get_one,
    ),
];

/// Each case is held by what it is called.
const LIMITS: &str = r#"
[[cases]]
name = "link"
[[cases]]
name = "receive_window"
hosts.client.sysctl = { "net.ipv4.tcp_rmem" = "4096 32768 32768" }
[[cases]]
name = "send_buffer"
hosts.server.sysctl = { "net.ipv4.tcp_wmem" = "4096 32768 32768" }
[[cases]]
name = "sender_application"
transfer.write_rate = "2MB/s"
[[cases]]
name = "receiver_application"
transfer.read_rate = "2MB/s"
[[cases]]
name = "congestion_window"
link.to_client.loss = "2%"
"#;

fn counting_changes_no_row_and_names_the_limit() {
    let program = Program::new();
    let text = scenario("held", ["100mbit", "30ms"], "size = \"6MB\"", LIMITS);
    let file = program.file("held.toml", text);
    let run = |out: &str, more: &[&str]| {
        let plain = [file, "--engine", "virtual", "--out", out];
        program.rows(&[&plain[..], more].concat())
    };
    let (plain, counted) = (run("plain", &[]), run("counted", &["--truth"]));
    assert_eq!(plain.len(), 6);
    for (plain, counted) in plain.iter().zip(&counted) {
        assert_eq!(plain.0, counted.0);
        let limits = limits(&program.work().join("counted"), counted);
        eprintln!("{}: {limits:.3?}", counted.name());
        let built = counted.name().rsplit('/').next().unwrap();
        let first = limits.iter().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        assert_eq!(first.0, built, "{limits:?}");
    }
    let [plain, mut counted] = ["plain", "counted"].map(|out| files(&program.work().join(out)));
    counted.retain(|path, _| !path.ends_with("truth.jsonl"));
    assert!(plain == counted, "another file than truth.jsonl differs");
}

/// The part of the time that each limit has by `truth.jsonl`.
fn limits(results: &Path, row: &Row) -> BTreeMap<String, f64> {
    let path = result_folder(results, row).join("truth.jsonl");
    let (mut times, mut all) = (BTreeMap::new(), 0.0);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let length = line["length_us"].as_f64().unwrap();
        all += length;
        for limit in line["limits"].as_array().unwrap() {
            let name = limit["limit"].as_str().unwrap().to_owned();
            *times.entry(name).or_default() += length * limit["share"].as_f64().unwrap();
        }
    }
    times.values_mut().for_each(|time| *time /= all);
    times
}

fn without_such_a_kernel_it_says_how_to_get_one() {
    let program = Program::new();
    for (engine, code, says) in
        [("virtual", 3, "lab kernel build --truth"), ("real", 2, "--engine virtual only")]
    {
        let mut command = program.command(&["lab", "run", "quick", "--engine", engine, "--truth"]);
        let empty = program.work().join("cache");
        let finished = program.start(command.env("XDG_CACHE_HOME", empty)).end();
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.err.contains(says), "{finished:?}");
    }
}
