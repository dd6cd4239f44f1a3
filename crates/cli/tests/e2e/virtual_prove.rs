//! `prove` from outside: it gets what a user has, a capture or the JSON of another command, and its
//! promise is held to the same change made in the path that it never saw.

use serde_json::{Value, json};

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, result_file};

pub const CASES: &[Case] = &[
    (
        "a_captures_window_is_rebuilt_and_its_change_keeps_the_promise",
        &[Need::GuestKernel],
        a_captures_window_is_rebuilt_and_its_change_keeps_the_promise,
    ),
    (
        "an_application_that_froze_its_buffer_is_told_to_let_it_go",
        &[Need::GuestKernel],
        an_application_that_froze_its_buffer_is_told_to_let_it_go,
    ),
    (
        "congestion_control_that_nobody_saw_is_found",
        &[Need::GuestKernel],
        congestion_control_that_nobody_saw_is_found,
    ),
    (
        "what_the_lab_does_not_repeat_is_not_promised",
        &[Need::GuestKernel],
        what_the_lab_does_not_repeat_is_not_promised,
    ),
    (
        "a_window_above_tcp_is_rebuilt_and_a_larger_one_keeps_the_promise",
        &[Need::GuestKernel],
        a_window_above_tcp_is_rebuilt_and_a_larger_one_keeps_the_promise,
    ),
    ("bad_input_is_refused", &[], bad_input_is_refused),
    ("without_a_kernel_it_says_how_to_get_one", &[], without_a_kernel_it_says_how_to_get_one),
];

/// The lab's goodput and the measured one, a gain and the true one.
const AGREES: f64 = 0.10;
const PREDICTS: f64 = 0.15;

/// A proof from `arguments`, whose exit code is `code`.
fn proof(program: &Program, arguments: &[&str], code: i32) -> Value {
    let finished = program.run(&[&["prove", "--json", "--no-cache"], arguments].concat());
    assert_eq!(finished.code, Some(code), "{finished:?}");
    finished.json()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn is_near(a: f64, b: f64, within: f64) -> bool {
    (a / b - 1.0).abs() <= within
}

/// A receive buffer of 400 kB over 200 Mbit/s and 40 ms.
const WINDOW: &str = r#"
name = "window"
[link]
rate = "200mbit"
rtt = "40ms"
[hosts.client]
sysctl = { "net.ipv4.tcp_rmem" = "4096 131072 400000" }
[transfer]
duration = "3s"
"#;

fn a_captures_window_is_rebuilt_and_its_change_keeps_the_promise() {
    let program = Program::new();
    let file = program.file("window.toml", WINDOW);
    let rows = program.rows(&[file, "--engine", "virtual", "--keep-captures", "--out", "measured"]);
    let truth = &rows[0];
    let proof = proof(&program, &["measured/001-window/server.pcap"], 0);
    let rate = number(&proof["measured"]["rate_bps"]);
    assert!(is_near(rate, 200e6, 0.05), "the link shows in trains of segments: {rate}");
    assert!(is_near(number(&proof["agreement"]["ratio"]), 1.0, AGREES), "{proof:#}");
    let [trial] = &proof["trials"].as_array().unwrap()[..] else { panic!("{proof:#}") };
    let change = &trial["changes"][0];
    assert_eq!(
        (&change["host"], &change["setting"]),
        (&json!("receiver"), &json!("net.ipv4.tcp_rmem"))
    );
    // The same change in the path that prove never saw.
    let after = WINDOW.replace("4096 131072 400000", change["to"].as_str().unwrap());
    let rows = program.rows(&[program.file("after.toml", after), "--engine", "virtual"]);
    let true_gain = rows[0].number("steady_goodput_bps") / truth.number("steady_goodput_bps");
    let gain = number(&trial["gain"]);
    eprintln!("gain {gain:.2}, true {true_gain:.2}");
    assert!(true_gain > 2.0 && is_near(gain, true_gain, PREDICTS), "{gain} of {true_gain}");
    let kept = result_file(&program.work().join("measured"), truth, "row.json");
    assert_eq!(kept["limited_by"], "receive_window");
}

/// A program that grants 192 KiB, a third at a time, over 100 Mbit/s and 60 ms.
const GRANTED: &str = r#"
name = "granted"
[link]
rate = "100mbit"
rtt = "60ms"
[transfer]
upload = true
size = "12MB"
application_window = "192KiB"
application_window_step = "64KiB"
"#;

fn a_window_above_tcp_is_rebuilt_and_a_larger_one_keeps_the_promise() {
    let program = Program::new();
    let file = program.file("granted.toml", GRANTED);
    let rows = program.rows(&[file, "--engine", "virtual", "--keep-captures", "--out", "measured"]);
    let truth = &rows[0];
    for end in ["server", "client"] {
        let capture = format!("measured/001-granted/{end}.pcap");
        let proof = proof(&program, &[&capture, "--rate", "100mbit"], 0);
        let seen = &proof["measured"]["application_window"];
        assert!(is_near(number(&seen["window_bytes"]), 196_608.0, 0.1), "{end}: {proof:#}");
        assert_eq!(seen["host"], "receiver", "{end}");
        let [trial] = &proof["trials"].as_array().unwrap()[..] else { panic!("{proof:#}") };
        let change = &trial["changes"][0];
        assert_eq!(
            (&change["kind"], &change["host"]),
            (&json!("application_window"), &seen["host"])
        );
        // The same change in the path that prove never saw.
        let window = number(&change["window_bytes"]).to_string();
        let after = GRANTED.replace("192KiB", &window);
        let rows = program.rows(&[program.file("after.toml", after), "--engine", "virtual"]);
        let true_gain = rows[0].number("goodput_bps") / truth.number("goodput_bps");
        let gain = number(&trial["gain"]);
        eprintln!("{end}: gain {gain:.2}, true {true_gain:.2}");
        assert!(true_gain > 2.0 && is_near(gain, true_gain, PREDICTS), "{gain} of {true_gain}");
    }
}

/// Article B5: 22 MB over 100 Mbit/s and 20 ms with SO_SNDBUF 16 KiB, by an application that writes
/// 16 KiB at a time. What its socket shows goes into JSON, as `why` writes it.
const B5: &str = r#"
name = "b5"
[link]
rate = "100mbit"
rtt = "20ms"
[transfer]
size = "22MB"
send_buffer = "16KiB"
write_rate = "100gbit"
write_block = "16KiB"
"#;

fn an_application_that_froze_its_buffer_is_told_to_let_it_go() {
    let program = Program::new();
    let rows = program.rows(&[program.file("b5.toml", B5), "--engine", "virtual"]);
    let truth = &rows[0];
    let path = json!([{"pid": 7, "path": {
        "rate_bps": 100_000_000, "rtt_us": 20_000, "goodput_bps": truth.number("goodput_bps"),
        "limit": truth.text("limited_by_sockets"), "loss": 0.0,
        "sender": {"kernel": "6.12", "congestion_control": "cubic", "buffer_bytes": 32_768,
                   "largest_bytes": 4_194_304, "frozen_by_application": true},
        "receiver": {"largest_bytes": 6_291_456},
    }}]);
    let file = program.file("why.json", path.to_string().replace(".0,", ","));
    let proof = proof(&program, &["--from", file], 0);
    assert_eq!(proof["before"]["limit"], "send_buffer", "{proof:#}");
    let trials = proof["trials"].as_array().unwrap();
    let alone = trials.iter().find(|trial| trial["changes"][0]["kind"] == "autotuning").unwrap();
    assert_eq!(alone["changes"].as_array().unwrap().len(), 1);
    let freed = B5.replace("send_buffer = \"16KiB\"\n", "");
    let rows = program.rows(&[program.file("freed.toml", freed), "--engine", "virtual"]);
    let true_gain = rows[0].number("goodput_bps") / truth.number("goodput_bps");
    let gain = number(&alone["gain"]);
    eprintln!("gain {gain:.2}, true {true_gain:.2}");
    assert!(true_gain > 4.0 && is_near(gain, true_gain, PREDICTS), "{gain} of {true_gain}");
}

/// Loss of 1 % holds cubic and reno far below the link; bbr fills it.
fn congestion_control_that_nobody_saw_is_found() {
    let program = Program::new();
    let text = "name = \"lossy\"\n[link]\nrate = \"30mbit\"\nrtt = \"40ms\"\nto_client.loss = \"1%\"\n\
                [hosts.server]\ncongestion_control = \"bbr\"\n[transfer]\nduration = \"8s\"\n";
    let file = program.file("lossy.toml", text);
    program.rows(&[file, "--engine", "virtual", "--keep-captures", "--out", "measured"]);
    let proof = proof(&program, &["measured/001-lossy/server.pcap"], 0);
    assert_eq!(proof["measured"]["sender"]["congestion_control"], "bbr", "{proof:#}");
    let said = proof["assumptions"].to_string();
    assert!(said.contains("bbr repeats the measurement best"), "{said}");
}

fn what_the_lab_does_not_repeat_is_not_promised() {
    let program = Program::new();
    // A window of 1 MB at 40 ms carries 200 Mbit/s, not 20.
    let path = json!({
        "rate_bps": 500_000_000, "rtt_us": 40_000, "goodput_bps": 20_000_000,
        "limit": "receive_window", "receiver": {"window_bytes": 1_000_000},
    });
    let file = program.file("path.json", path.to_string());
    let proof = proof(&program, &["--from", file], 1);
    assert_eq!(proof["agreement"]["agrees"], false);
    let trials = proof["trials"].as_array().unwrap();
    assert!(!trials.is_empty() && trials.iter().all(|trial| trial.get("expected_bps").is_none()));
    let finished = program.run(&["prove", "--from", file]);
    assert_eq!(finished.code, Some(1));
    for part in ["does not agree with the measurement", "no promise"] {
        assert!(finished.out.contains(part), "{finished:?}");
    }
}

fn bad_input_is_refused() {
    let program = Program::new();
    let refused = |arguments: &[&str], code, says: &str| {
        let finished: Finished = program.run(&[&["prove"], arguments].concat());
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.err.contains(says), "{says}: {finished:?}");
        assert_eq!(finished.out, "");
    };
    let junk = program.file("junk.json", "{\"rtt_us\": ");
    let none = program.file("none.json", "[{\"pid\": 1}]");
    let long = program.file("long.json", r#"{"rtt_us": 999000000, "goodput_bps": 1000000}"#);
    refused(&[], 2, "<FILE>");
    refused(&["capture.pcap", "--from", none], 2, "cannot be used with");
    refused(&["missing.pcap"], 4, "missing.pcap");
    refused(&["--from", "missing.json"], 4, "missing.json");
    refused(&["--from", junk], 4, "no JSON");
    refused(&["--from", none], 4, "fullpipe why --json");
    refused(&["--from", long, "--engine", "real"], 4, "rebuild the measured path");
    refused(&[junk], 4, "junk.json");
}

fn without_a_kernel_it_says_how_to_get_one() {
    let program = Program::new();
    let file = program.file("path.json", r#"{"rtt_us": 10000, "goodput_bps": 1000000}"#);
    let mut command = program.command(&["prove", "--from", file]);
    let finished = program.start(command.env("XDG_CACHE_HOME", program.work())).end();
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.err.contains("fullpipe lab kernel build"), "{finished:?}");
}
