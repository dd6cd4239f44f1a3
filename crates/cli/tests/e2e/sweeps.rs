//! Sweeps from outside: whatever ran side by side, was interrupted and gone on with, or came from
//! the cache is the same as if it had been run once, one after another.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, files, scenario, until};
use crate::remains;
use fullpipe_model::units::Duration;

pub const CASES: &[Case] = &[
    ("side_by_side_is_one_after_another", &[Need::GuestKernel], side_by_side_is_one_after_another),
    ("an_interrupted_sweep_is_gone_on_with", &[Need::GuestKernel], interrupted_in_virtual_time),
    ("an_interrupted_sweep_in_real_time_too", &[], interrupted_in_real_time),
    (
        "a_run_that_fails_is_a_row_and_is_tried_again",
        &[Need::Program("curl")],
        a_run_that_fails_is_a_row,
    ),
    (
        "a_run_that_fails_in_a_guest_is_a_row_too",
        &[Need::GuestKernel],
        a_run_that_fails_in_a_guest_is_a_row_too,
    ),
    ("no_name_makes_results_look_half_done", &[], no_name_makes_results_look_half_done),
    (
        "runs_at_the_same_moment_have_folders_of_their_own",
        &[],
        runs_at_the_same_moment_have_folders_of_their_own,
    ),
    ("another_sweep_is_not_gone_on_with", &[], another_sweep_is_not_gone_on_with),
    (
        "what_was_run_before_comes_from_the_cache",
        &[Need::GuestKernel],
        what_was_run_before_comes_from_the_cache,
    ),
    ("in_real_time_one_run_is_made_at_a_time", &[], in_real_time_one_run_is_made_at_a_time),
    ("rows_are_printed_as_they_come", &[], rows_are_printed_as_they_come),
    (
        "parquet_holds_the_rows_and_what_was_asked_for",
        &[],
        parquet_holds_the_rows_and_what_was_asked_for,
    ),
    ("results_are_compared_and_judged", &[], results_are_compared_and_judged),
    ("what_cannot_be_compared_says_why", &[], what_cannot_be_compared_says_why),
    ("a_setting_is_compared_with_none", &[], a_setting_is_compared_with_none),
];

/// Twelve short runs, no two of them the same.
fn twelve() -> String {
    let matrix = r#"
[matrix]
"link.loss" = ["0%", "0.5%", "1%"]
"link.seed" = [1, 2]
"hosts.server.congestion_control" = ["cubic", "reno"]
"#;
    scenario("twelve", ["100mbit", "10ms"], "size = \"500kB\"", matrix)
}

/// Three that need nothing but this kernel.
fn three() -> String {
    let matrix = "[matrix]\n\"link.queue\" = [\"10packets\", \"50packets\", \"1bdp\"]\n";
    scenario("three", ["50mbit", "5ms"], "size = \"1MB\"", matrix)
}

fn run(program: &Program, arguments: &[&str]) -> Finished {
    let finished = program.run(&[&["lab", "run", "--json"], arguments].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
}

fn side_by_side_is_one_after_another() {
    let program = Program::new();
    let scenario = program.file("twelve.toml", twelve());
    let common = [scenario, "--engine", "virtual", "--no-cache", "--keep-captures"];
    let serial = run(&program, &[&common[..], &["--jobs", "1", "--out", "serial"]].concat());
    let parallel = run(&program, &[&common[..], &["--jobs", "4", "--out", "parallel"]].concat());
    assert_eq!(serial.out, parallel.out);
    assert_eq!(serial.json()["rows"].as_array().unwrap().len(), 12);
    let [one, other] = ["serial", "parallel"].map(|out| files(&program.work().join(out)));
    assert_eq!(one.len(), other.len());
    for (path, bytes) in &one {
        assert!(other.get(path) == Some(bytes), "{} differs", path.display());
    }
    let lines = ["serial", "parallel"]
        .map(|out| fs::read(program.work().join(out).join("rows.jsonl")).unwrap());
    assert_eq!(lines[0], lines[1]);
    eprintln!("twelve runs: {} with one guest at once, {} with four", serial.took, parallel.took);
}

/// Interrupts the sweep when `first` is done; what stands then is what a later one goes on from.
fn interrupt_after(program: &Program, arguments: &[&str], first: &str) -> usize {
    let running = program.start(&mut program.command(&[&["lab", "run"], arguments].concat()));
    let out = program.work().join("out");
    until("the first run is done", Duration::from_secs(60), || out.join(first).exists());
    running.signal(Signal::SIGINT);
    let finished = running.end();
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(finished.err.contains("--output out --resume"), "{finished:?}");
    assert_eq!((remains::processes(program), program.scratch()), (Vec::new(), Vec::new()));
    let rows = fs::read_to_string(out.join("rows.jsonl")).unwrap();
    assert!(rows.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{rows}");
    rows.lines().count()
}

/// Which file a name stands for: another one has another number.
fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

fn interrupted_in_virtual_time() {
    let program = Program::new();
    let scenario = program.file("twelve.toml", twelve());
    let common = [scenario, "--engine", "virtual", "--no-cache"];
    let whole = run(&program, &[&common[..], &["--out", "whole"]].concat());
    let first = "001-twelve-congestion_control=cubic-loss=0-seed=1";
    let done =
        interrupt_after(&program, &[&common[..], &["--out", "out", "--jobs", "1"]].concat(), first);
    assert!((1..12).contains(&done), "{done} runs");
    let out = program.work().join("out");
    // What a machine that went down leaves: half a run.
    fs::create_dir(out.join("part-012-half")).unwrap();
    let again = program.run(&[&["lab", "run"], &common[..], &["--out", "out"]].concat());
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(
        again.err.contains(&format!("{done} of 12")) && again.err.contains("--resume"),
        "{again:?}"
    );
    let before = inode(&out.join(first).join("row.json"));
    let resumed = run(&program, &[&common[..], &["--out", "out", "--resume"]].concat());
    assert_eq!(inode(&out.join(first).join("row.json")), before, "what is done is not run again");
    assert_eq!(resumed.out, whole.out);
    assert_eq!(files(&out), files(&program.work().join("whole")));
    assert!(!out.join("part-012-half").exists());
}

fn interrupted_in_real_time() {
    let program = Program::new();
    let scenario = program.file("three.toml", three());
    let arguments = [scenario, "--repeat", "4", "--out", "out"];
    let done = interrupt_after(&program, &arguments, "001-three-queue=10packets");
    assert!((1..12).contains(&done), "{done} runs");
    let first = program.work().join("out/001-three-queue=10packets/row.json");
    let before = (inode(&first), fs::read(&first).unwrap());
    let resumed = run(&program, &[&arguments[..], &["--resume"]].concat()).json();
    assert_eq!((inode(&first), fs::read(&first).unwrap()), before);
    let told: Vec<_> = resumed["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (&row["name"], &row["repetition"]))
        .collect();
    let names =
        ["10packets", "50packets", "1bdp"].map(|queue| Value::from(format!("three/queue={queue}")));
    let numbers = [1, 2, 3, 4].map(Value::from);
    let expected: Vec<_> =
        names.iter().flat_map(|name| numbers.iter().map(move |number| (name, number))).collect();
    assert_eq!(told, expected);
    // Nothing is left to do: nothing is done.
    let finished = run(&program, &[&arguments[..], &["--resume"]].concat());
    assert_eq!(finished.json(), resumed);
}

/// Its second scenario of two takes curl, which `PATH` has or has not.
fn with_curl() -> String {
    let matrix = "[matrix]\n\"transfer.client\" = [\"builtin\", \"curl\"]\n";
    scenario("mixed", ["50mbit", "5ms"], "size = \"100kB\"\nserver = \"builtin\"", matrix)
}

fn a_run_that_fails_is_a_row() {
    let program = Program::new();
    let scenario = program.file("mixed.toml", with_curl());
    let without_curl = |arguments: &[&str]| {
        let mut command = program.command(&[&["lab", "run", scenario], arguments].concat());
        program.start(command.env("PATH", "/nonexistent")).end()
    };
    let finished =
        without_curl(&["--repeat", "2", "--out", "out", "--json", "--parquet", "rows.parquet"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("2 of 4 runs failed") && finished.err.contains("--resume"),
        "{finished:?}"
    );
    let rows = finished.json()["rows"].as_array().unwrap().clone();
    let failed = |row: &Value| row["error"].is_string();
    assert_eq!(rows.iter().map(failed).collect::<Vec<_>>(), [false, false, true, true], "{rows:?}");
    assert!(
        rows[2]["error"].as_str().unwrap().contains("not installed")
            && rows[2].get("goodput_bps").is_none()
    );
    let kept = |name: &str| fs::read_to_string(program.work().join("out").join(name)).unwrap();
    assert_eq!(kept("rows.jsonl").lines().count(), 4);
    assert!(program.work().join("rows.parquet").exists());
    let folder = format!("out/001-{}", rows[0]["name"].as_str().unwrap().replace('/', "-"));
    let first = program.work().join(folder).join("row.json");
    let before = inode(&first);
    // As CSV, where what failed before fails again.
    let again = without_curl(&["--repeat", "2", "--out", "out", "--resume", "--csv"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert_eq!(again.out.lines().count(), 5, "{again:?}");
    // As a table.
    let table = without_curl(&["--repeat", "2", "--out", "out", "--resume"]);
    assert!(table.out.contains("failed") && table.out.contains("not installed"), "{table:?}");
    let compared = program.run(&["lab", "compare", "out", "out"]);
    assert_eq!(compared.code, Some(0), "{compared:?}");
    assert!(compared.out.contains("Failed in A: mixed"), "{compared:?}");
    // With curl, only what failed is run.
    let resumed = run(&program, &[scenario, "--repeat", "2", "--out", "out", "--resume"]).json();
    assert!(
        resumed["rows"].as_array().unwrap().iter().all(|row| row["goodput_bps"].is_number()),
        "{resumed}"
    );
    assert_eq!(inode(&first), before, "what is done is not run again");
    assert_eq!(kept("rows.jsonl").lines().filter(|line| line.contains("not installed")).count(), 0);
}

fn a_run_that_fails_in_a_guest_is_a_row_too() {
    let program = Program::new();
    let matrix = "[matrix]\n\"hosts.server.congestion_control\" = [\"nothing\", \"cubic\"]\n";
    let scenario =
        program.file("x.toml", scenario("x", ["50mbit", "5ms"], "size = \"100kB\"", matrix));
    let arguments =
        ["lab", "run", scenario, "--engine", "virtual", "--no-cache", "--jobs", "1", "--jsonl"];
    let finished = program.run(&arguments);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let rows: Vec<Value> =
        finished.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert!(rows[0]["error"].as_str().unwrap().contains("congestion control nothing"), "{rows:?}");
    assert_eq!(rows[0]["engine"], "virtual");
    assert!(rows[1]["error"].is_null() && rows[1]["goodput_bps"].is_number(), "{rows:?}");
}

fn no_name_makes_results_look_half_done() {
    let program = Program::new();
    let scenario =
        program.file("x.toml", scenario("x.part", ["50mbit", "5ms"], "size = \"100kB\"", ""));
    let first = run(&program, &[scenario, "--out", "out"]).json();
    let kept = program.work().join("out/001-x.part/row.json");
    let before = inode(&kept);
    let resumed = run(&program, &[scenario, "--out", "out", "--resume"]).json();
    assert_eq!((inode(&kept), resumed), (before, first));
}

fn runs_at_the_same_moment_have_folders_of_their_own() {
    let program = Program::new();
    let scenario = program.file("x.toml", scenario("x", ["50mbit", "5ms"], "size = \"100kB\"", ""));
    let start = || program.start(&mut program.command(&["lab", "run", "--json", scenario]));
    for running in [start(), start(), start()] {
        let finished = running.end();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    let folders = fs::read_dir(program.work().join("fullpipe-results")).unwrap();
    let rows = folders
        .map(|folder| fs::read_to_string(folder.unwrap().path().join("rows.jsonl")).unwrap());
    assert_eq!(rows.map(|rows| rows.lines().count()).collect::<Vec<_>>(), [1, 1, 1]);
}

fn another_sweep_is_not_gone_on_with() {
    let program = Program::new();
    let scenario = program.file("three.toml", three());
    run(&program, &[scenario, "--out", "out"]);
    let before = files(&program.work().join("out"));
    let scenario = program.file("three.toml", three().replace("1MB", "2MB"));
    let refused = program.run(&["lab", "run", scenario, "--out", "out", "--resume"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("run 1, three/queue=10packets, was another one there"),
        "{refused:?}"
    );
    let refused = program.run(&["lab", "run", scenario, "--out", "out"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("something in it already"), "{refused:?}");
    fs::create_dir(program.work().join("foreign")).unwrap();
    fs::write(program.work().join("foreign/sweep.json"), "no JSON").unwrap();
    let refused = program.run(&["lab", "run", scenario, "--out", "foreign", "--resume"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(files(&program.work().join("out")), before, "nothing was touched");
}

fn what_was_run_before_comes_from_the_cache() {
    let program = Program::new();
    // A cache of its own, with the kernels of whoever runs the tests.
    let cache = program.work().join("cache/fullpipe");
    fs::create_dir_all(&cache).unwrap();
    let kernels = fullpipe_lab::Kernel::cache_folder().unwrap();
    let here = cache.join("kernels");
    fs::create_dir(&here).unwrap();
    // Not what is being built there: the sources of a kernel are 80,000 files.
    let built = fs::read_dir(kernels).unwrap().flatten().map(|entry| entry.path());
    let built = built.filter(|path| !path.ends_with("building"));
    assert!(Command::new("cp").arg("-r").args(built).arg(&here).status().unwrap().success());
    let ask = |arguments: &[&str]| {
        let mut command = program.command(arguments);
        let finished =
            program.start(command.env("XDG_CACHE_HOME", program.work().join("cache"))).end();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished
    };
    let scenario = program.file("three.toml", three());
    let three = |more: &[&str]| {
        let mut rows =
            ask(&[&["lab", "run", scenario, "--engine", "virtual", "--json"], more].concat())
                .json();
        let rows = rows["rows"].as_array_mut().unwrap();
        let cached: Vec<_> = rows
            .iter_mut()
            .map(|row| row.as_object_mut().unwrap().remove("cached").unwrap())
            .collect();
        (std::mem::take(rows), cached)
    };
    let (first, cached) = three(&["--out", "first"]);
    assert_eq!(cached, [false, false, false]);
    let (second, cached) = three(&["--out", "second"]);
    assert_eq!((second, cached), (first.clone(), vec![Value::from(true); 3]));
    let [one, other] = ["first", "second"].map(|out| files(&program.work().join(out)));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (path, bytes) in one.iter().filter(|(path, _)| !path.ends_with("row.json")) {
        assert!(other[path] == *bytes, "{} differs", path.display());
    }
    let (again, cached) = three(&["--out", "third", "--no-cache"]);
    assert_eq!((again, cached), (first, vec![Value::from(false); 3]));
    // Another seed is another run.
    assert_eq!(
        three(&["--out", "fourth", "--repeat", "2"]).1,
        [true, false, true, false, true, false]
    );
    let listed = ask(&["lab", "cache", "list", "--json"]).json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 6);
    assert_eq!(ask(&["lab", "cache", "clean", "--json"]).json()["removed"], 6);
    assert_eq!(three(&["--out", "fifth"]).1, [false, false, false]);
}

fn in_real_time_one_run_is_made_at_a_time() {
    let program = Program::new();
    let finished =
        run(&program, &[program.file("three.toml", three()), "--jobs", "3", "--out", "out"]);
    assert!(finished.err.contains("--jobs is ignored in real time"), "{finished:?}");
    assert_eq!(finished.json()["rows"].as_array().unwrap().len(), 3);
}

fn rows_are_printed_as_they_come() {
    let program = Program::new();
    let finished = program.run(&[
        "lab",
        "run",
        program.file("three.toml", three()),
        "--jsonl",
        "--out",
        "out",
    ]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.out, fs::read_to_string(program.work().join("out/rows.jsonl")).unwrap());
    let names: Vec<_> = finished
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone())
        .collect();
    assert_eq!(names, ["three/queue=10packets", "three/queue=50packets", "three/queue=1bdp"]);
}

fn parquet_holds_the_rows_and_what_was_asked_for() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let program = Program::new();
    let scenario = program.file("three.toml", three());
    let finished = program.run(&[
        "lab",
        "run",
        scenario,
        "--csv",
        "--parquet",
        "rows.parquet",
        "--out",
        "out",
    ]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let names = fs::read_dir(program.work()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(
        !names.into_iter().any(|name| name.to_str().unwrap().ends_with(".part")),
        "half a file is left"
    );
    let reader =
        SerializedFileReader::new(fs::File::open(program.work().join("rows.parquet")).unwrap())
            .unwrap();
    let schema = reader.metadata().file_metadata().schema();
    let names: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
    assert_eq!(Some(names.join(",").as_str()), finished.out.lines().next(), "the columns of --csv");
    assert_eq!(finished.out.lines().count(), 4);
    let kept = fs::read_to_string(program.work().join("out/rows.jsonl")).unwrap();
    let kept: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!((rows.len(), kept.len()), (3, 3));
    for (row, kept) in rows.iter().zip(&kept) {
        let fields: Vec<(&String, &Field)> = row.get_column_iter().collect();
        let field =
            |name: &str| fields.iter().find(|(column, _)| *column == name).unwrap().1.clone();
        let number = |name: &str| Field::ULong(kept[name].as_u64().unwrap());
        for name in ["goodput_bps", "rtt_p50_us", "retransmission", "link_late_p99_us"] {
            assert_eq!(field(name), number(name), "{name}");
        }
        assert_eq!(field("name"), Field::Str(kept["name"].as_str().unwrap().into()));
        assert_eq!(field("limit_share"), Field::Double(kept["limit_share"].as_f64().unwrap()));
        assert_eq!(
            (field("seed"), field("size_bytes")),
            (Field::ULong(1), Field::ULong(1_000_000))
        );
        assert_eq!(field("write_rate_bps"), Field::Null);
        let Field::Str(queue) = field("path.to_client.queue") else {
            panic!("no queue in {fields:?}")
        };
        assert!(kept["name"].as_str().unwrap().ends_with(&format!("queue={queue}")), "{queue}");
    }
    let refused = program.run(&[
        "lab",
        "run",
        scenario,
        "--parquet",
        "nowhere/rows.parquet",
        "--out",
        "other",
    ]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("write Parquet file nowhere/rows.parquet"), "{refused:?}");
}

/// A row as another program may write it: what it does not have is not known.
fn row(name: &str, engine: &str, goodput: u64) -> String {
    format!(
        "{{\"name\":\"{name}\",\"engine\":\"{engine}\",\"kernel\":\"6.12\",\"goodput_bps\":{goodput}}}\n"
    )
}

fn results_are_compared_and_judged() {
    let program = Program::new();
    let real = |values: [u64; 3]| values.map(|value| row("x", "real", value * 1_000_000)).concat();
    program.file("a.jsonl", real([99, 100, 101]));
    program.file("slower.jsonl", real([89, 90, 91]));
    program.file("noisy.jsonl", real([60, 95, 130]));
    program.file(
        "virtual.jsonl",
        [row("x", "virtual", 100_000_000), row("gone", "virtual", 1)].concat(),
    );
    program.file("document.json", format!("{{\"rows\":[{}]}}", row("x", "virtual", 99_000_000)));
    let judged = |a: &str, b: &str, bounds: &[&str]| {
        let finished = program.run(&[&["lab", "compare", a, b], bounds].concat());
        (finished.code, finished.out)
    };
    assert_eq!(judged("a.jsonl", "a.jsonl", &["--fail-on", "goodput:0%"]).0, Some(0));
    let (code, text) = judged("a.jsonl", "slower.jsonl", &["--fail-on", "goodput:-2%"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("Worse than goodput:-2%: x") && text.contains("-10.0"), "{text}");
    assert_eq!(
        judged("a.jsonl", "slower.jsonl", &[]).0,
        Some(0),
        "without a bound nothing is asked"
    );
    assert_eq!(
        judged("a.jsonl", "slower.jsonl", &["--fail-on", "goodput:-15%,rtt_p99:+1ms"]).0,
        Some(0)
    );
    assert_eq!(
        judged("slower.jsonl", "a.jsonl", &["--fail-on", "goodput:-2%"]).0,
        Some(0),
        "faster is not worse"
    );
    assert_eq!(
        judged("a.jsonl", "noisy.jsonl", &["--fail-on", "goodput:-2%"]).0,
        Some(0),
        "noise is not worse"
    );
    let (code, text) = judged("virtual.jsonl", "document.json", &["--fail-on", "goodput:-0.5mbit"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("Only in A: gone"), "{text}");
    let finished = program.run(&[
        "lab",
        "compare",
        "a.jsonl",
        "slower.jsonl",
        "--json",
        "--fail-on",
        "goodput:-2%",
    ]);
    let document = finished.json();
    let change = &document["changes"][0];
    assert_eq!(
        (finished.code, &change["figure"], &change["noise"]),
        (Some(1), &"goodput_bps".into(), &"beyond".into())
    );
    assert_eq!(
        (&change["change"], &document["exceeded"][0]["name"]),
        (&(-1e7).into(), &"x".into())
    );
}

fn what_cannot_be_compared_says_why() {
    let program = Program::new();
    program.file("a.jsonl", row("x", "real", 1));
    program.file("other.jsonl", row("y", "real", 1));
    program.file("foreign.json", "{\"name\": \"x\"}");
    fs::create_dir(program.work().join("empty")).unwrap();
    for (arguments, code, why) in [
        (&["a.jsonl", "nothing.jsonl"][..], 4, "read results nothing.jsonl"),
        (&["a.jsonl", "foreign.json"], 4, "no row of `lab run`"),
        (&["a.jsonl", "empty"], 4, "read results empty"),
        (&["a.jsonl", "other.jsonl"], 4, "they have no row name in common"),
        (&["a.jsonl"], 2, "need two"),
        (&["a.jsonl", "a.jsonl", "--fail-on", "goodput:+2%"], 2, "less is worse"),
        (&["a.jsonl", "a.jsonl", "--fail-on", "speed:-2%"], 2, "no figure 'speed'"),
        (&["quick", "--with", "link.rtt"], 2, "KEY=VALUE"),
        (&["quick", "--with", "link.rat=1gbit"], 4, "rat"),
    ] {
        let finished = program.run(&[&["lab", "compare"], arguments].concat());
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.err.contains(why) && finished.out.is_empty(), "{finished:?}");
    }
}

fn a_setting_is_compared_with_none() {
    let program = Program::new();
    let scenario = program
        .file("one.toml", "[link]\nrate = \"50mbit\"\nrtt = \"5ms\"\n[transfer]\nsize = \"1MB\"\n");
    let arguments = [
        "--with",
        "transfer.write_rate=1MB/s",
        "--fail-on",
        "goodput:-50%",
        "--json",
        "--out",
        "out",
    ];
    let finished = program.run(&[&["lab", "compare", scenario], &arguments[..]].concat());
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let document = finished.json();
    assert_eq!(document["compared"], 1);
    let goodput = document["changes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|change| change["figure"] == "goodput_bps");
    assert!(
        goodput.is_some_and(|change| change["worse"] == true && change["noise"] == "unknown"),
        "{document:#}"
    );
    // What was run can be compared again as it lies there.
    let again = program.run(&["lab", "compare", "out/a", "out/b", "--fail-on", "goodput:-50%"]);
    assert_eq!(again.code, Some(1), "{again:?}");
}
