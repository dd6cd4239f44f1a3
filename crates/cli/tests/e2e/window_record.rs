//! A recording of the sockets that the window agent follows, and what reads it.

use crate::Case;
use crate::need::Need;
use crate::program::Program;
use crate::window::READER;
use serde_json::Value;

const NEEDS: &[Need] = &[Need::WindowAgent, Need::Program("python3")];

pub const CASES: &[Case] = &[
    ("a_slow_reader_is_recorded", NEEDS, a_slow_reader_is_recorded),
    ("a_recording_needs_a_place", &[Need::WindowAgent], a_recording_needs_a_place),
];

/// What the reader takes, and how fast it does: 4 s.
const READ: usize = 8_000_000;
const RATE: f64 = 2e6;

/// The samples and the notes of a recording.
fn lines(program: &Program, name: &str) -> (Vec<Value>, Vec<Value>) {
    let text = std::fs::read_to_string(program.work().join(name)).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.partition(|line| line["note"].is_null())
}

fn number(sample: &Value, path: &str) -> f64 {
    sample.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}: {sample}"))
}

fn a_slow_reader_is_recorded() {
    let program = Program::new();
    program.file("zeros", vec![0; READ]);
    program.file("reader.py", READER);
    let agent = format!("{} window", program.binary().display());
    for (mode, name) in [("watch", "watched.jsonl"), ("run", "followed.jsonl")] {
        let client = format!("{agent} {mode} --record {name} -- python3 reader.py {{server}}");
        let path = ["link", "--quiet", "--rtt", "20ms", "--rate", "100mbit"];
        let server = ["--server", "python3 -m http.server 8000", "--", "sh", "-c", &client];
        let finished = program.run(&[&path[..], &server[..]].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let (samples, notes) = lines(&program, name);
        // One each 10 ms for most of 4 s, on a machine that is busy.
        assert!(samples.len() > 100, "{mode}: {}", samples.len());
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert_eq!(notes[0]["note"]["asked"]["sets_rcvbuf"], false, "{notes:?}");
        // What was read is what was received, less what waits.
        let read = |one: &Value| number(one, "/info/bytes_received") - number(one, "/rqueue_bytes");
        let pairs = || samples.windows(2).map(|pair| (read(&pair[0]), read(&pair[1])));
        // The kernel's counter and its queue are not read in one step: some segments.
        assert!(pairs().all(|(before, after)| after >= before - 65_536.0), "{mode}");
        let (first, last) = (&samples[0], &samples[samples.len() - 1]);
        let time = (number(last, "/at_ns") - number(first, "/at_ns")) / 1e9;
        let drain = (read(last) - read(first)) / time;
        eprintln!("{mode}: {} samples, {drain:.0} bytes/s", samples.len());
        assert!((0.8 * RATE..=1.2 * RATE).contains(&drain), "{mode}: {drain}");
        for sample in &samples {
            assert!(number(sample, "/memory/rcvbuf_bytes") > 0.0, "{sample}");
            assert!(number(sample, "/info/rcv_wnd_bytes") >= 0.0, "{sample}");
        }
    }
    // Under the kernel alone the queue stands, and whatever reads recordings says whose fault it is.
    let analyzed = program.run(&["analyze", "watched.jsonl", "--json"]);
    assert_eq!(analyzed.code, Some(0), "{analyzed:?}");
    let told: Value = serde_json::from_str(&analyzed.out).unwrap();
    let one = &told["connections"][0];
    assert_eq!(one["limits"][0]["limit"], "receiver_application", "{one}");
    let data = program.run(&["report", "followed.jsonl", "--data"]);
    let data: Value = serde_json::from_str(&data.out).unwrap();
    let series = &data["connections"][0]["sockets"][0]["columns"];
    for column in ["receive_queue_bytes", "receive_buffer_bytes", "read_bytes"] {
        let values = series[column].as_array().unwrap_or_else(|| panic!("{column}: {series}"));
        assert!(values.len() > 100, "{column}: {}", values.len());
    }
    for words in [&["-o", "followed.html"], &["--svg", "pictures"]] {
        let drawn = program.run(&[&["report", "followed.jsonl"], &words[..]].concat());
        assert_eq!(drawn.code, Some(0), "{drawn:?}");
    }
    let pictures = std::fs::read_dir(program.work().join("pictures")).unwrap().count();
    assert!(program.work().join("followed.html").exists() && pictures >= 3, "{pictures}");
}

fn a_recording_needs_a_place() {
    let program = Program::new();
    let finished =
        program.run(&["window", "watch", "--record", "nowhere/x.jsonl", "--", "touch", "started"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(finished.err.contains("write samples: nowhere/x.jsonl"), "{finished:?}");
    assert!(!program.work().join("started").exists(), "it is told before anything runs");
    // What is empty is said, and complete.
    let empty = program.run(&["window", "watch", "--record", "empty.jsonl", "--", "true"]);
    assert_eq!(empty.code, Some(0), "{empty:?}");
    assert!(empty.err.contains("The recording is empty"), "{empty:?}");
    assert_eq!(std::fs::read(program.work().join("empty.jsonl")).unwrap(), b"");
}
