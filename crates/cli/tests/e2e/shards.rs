//! A sweep in shards from outside: put together, they are what one machine makes; anything else is
//! refused, and nothing is written.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, scenario};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub const CASES: &[Case] = &[
    ("put_together_they_are_the_whole", &[Need::GuestKernel], put_together_they_are_the_whole),
    ("what_is_not_one_whole_sweep_is_refused", &[], what_is_not_one_whole_sweep_is_refused),
    ("what_names_no_shard_is_refused", &[], what_names_no_shard_is_refused),
    ("a_dry_run_lists_and_runs_nothing", &[], a_dry_run_lists_and_runs_nothing),
];

const SHARDS: usize = 4;

/// Six short runs, of which the first two fail.
fn six() -> String {
    let matrix = r#"
[matrix]
"hosts.server.congestion_control" = ["nothing", "cubic", "reno"]
"link.loss" = ["0%", "1%"]
"#;
    scenario("six", ["100mbit", "10ms"], "size = \"200kB\"", matrix)
}

/// Three that need nothing but this kernel.
fn three(size: &str) -> String {
    let matrix = "[matrix]\n\"link.queue\" = [\"10packets\", \"50packets\", \"1bdp\"]\n";
    scenario("three", ["50mbit", "5ms"], &format!("size = \"{size}\""), matrix)
}

/// Every file below `folder` but the one that names machines.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path != folder.join("environment.json") {
            files.insert(path.strip_prefix(folder).unwrap().into(), fs::read(&path).unwrap());
        }
    }
    files
}

fn put_together_they_are_the_whole() {
    let program = Program::new();
    let scenario = program.file("six.toml", six());
    let run = |more: &[&str]| {
        let common = ["lab", "run", scenario, "--engine", "virtual", "--no-cache", "--jsonl"];
        program.run(&[&common[..], more].concat())
    };
    let whole = run(&["--out", "whole"]);
    assert_eq!(whole.code, Some(1), "two of them fail: {whole:?}");
    let (mut folders, mut lines) = (Vec::new(), 0);
    for number in 1..=SHARDS {
        let (shard, out) = (format!("{number}/{SHARDS}"), format!("shards/{number}"));
        let table = format!("{number}.parquet");
        let made = run(&["--shard", &shard, "--out", &out, "--parquet", &table]);
        let fails = made.out.contains("\"error\":\"");
        assert_eq!(made.code, Some(u8::from(fails).into()), "{made:?}");
        lines += made.out.lines().count();
        assert!(program.work().join(table).exists());
        folders.push(out);
    }
    assert_eq!(lines, 6);
    // What is done is not done again, and another shard's folder is not gone on with.
    let resumed = run(&["--shard", "4/4", "--out", "shards/4", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let other = run(&["--shard", "3/4", "--out", "shards/4", "--resume"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.err.contains("shard 4/4 is there, not shard 3/4"), "{other:?}");

    folders.reverse();
    let words: Vec<&str> = folders.iter().map(String::as_str).collect();
    let merged =
        program.run(&[&["lab", "merge", "--json", "--out", "merged"], &words[..]].concat());
    assert_eq!(merged.code, Some(0), "{merged:?}");
    let told = merged.json();
    assert_eq!(
        (&told["shards"], &told["rows"], &told["failed"]),
        (&4.into(), &6.into(), &2.into())
    );
    let [one, other] = ["whole", "merged"].map(|out| tree(&program.work().join(out)));
    assert!(one.contains_key(Path::new("rows.jsonl")) && one.len() > 20, "{:?}", one.keys());
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (path, bytes) in &one {
        assert!(other.get(path) == Some(bytes), "{} differs", path.display());
    }
    // It can be gone on with like any sweep: what failed fails again.
    let again = run(&["--out", "merged", "--resume"]);
    assert_eq!((again.code, again.out), (whole.code, whole.out));
}

fn what_is_not_one_whole_sweep_is_refused() {
    let program = Program::new();
    program.file("three.toml", three("100kB"));
    program.file("other.toml", three("101kB"));
    let run = |scenario: &str, shard: &[&str], out: &str| {
        let made =
            program.run(&[&["lab", "run", scenario, "--out", out, "--json"], shard].concat());
        assert_eq!(made.code, Some(0), "{made:?}");
    };
    run("three.toml", &["--shard", "1/2"], "one");
    run("three.toml", &["--shard", "2/2"], "two");
    run("three.toml", &["--shard", "2/3"], "third");
    run("other.toml", &["--shard", "2/2"], "other");
    run("three.toml", &[], "whole");
    run("three.toml", &["--shard", "1/2"], "half");
    fs::remove_dir_all(program.work().join("half/001-three-queue=10packets")).unwrap();
    fs::create_dir(program.work().join("empty")).unwrap();
    let refused = |shards: &[&str], out: &str| -> Finished {
        let refused = program.run(&[&["lab", "merge", "--out", out], shards].concat());
        assert!(refused.out.is_empty(), "{refused:?}");
        refused
    };
    for (shards, why) in [
        (&["one"][..], "2/2 is missing"),
        (&["one", "two", "one"], "both are shard 1/2"),
        (&["one", "third"], "the former is shard 1/2, the latter 2/3"),
        (&["one", "other"], "run 1, three/queue=10packets, was another one there"),
        (&["one", "whole"], "it has a whole sweep"),
        (&["half", "two"], "0 of its 1 runs are done"),
        (&["one", "empty"], "lab run --shard"),
        (&["one", "nowhere"], "read shard nowhere"),
    ] {
        let refused = refused(shards, "merged");
        assert_eq!(refused.code, Some(4), "{refused:?}");
        assert!(refused.err.contains(why), "{why}: {refused:?}");
    }
    let full = refused(&["one", "two"], "whole");
    assert!(full.code == Some(2) && full.err.contains("something in it"), "{full:?}");
    let names = |folder: PathBuf| -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    };
    assert!(!names(program.work()).iter().any(|name| name.contains("merged")), "half is left");
    // An empty folder is as good as none.
    let merged = program.run(&["lab", "merge", "two", "one", "--out", "empty"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    let rows = fs::read_to_string(program.work().join("empty/rows.jsonl")).unwrap();
    let told: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let queues = told.iter().map(|row| row["name"].as_str().unwrap().to_string());
    assert_eq!(
        queues.collect::<Vec<_>>(),
        ["three/queue=10packets", "three/queue=50packets", "three/queue=1bdp"]
    );
}

fn what_names_no_shard_is_refused() {
    let program = Program::new();
    for shard in ["0/16", "17/16", "0/0", "3", "a/b", "-1/3", "1/10001", ""] {
        let option = format!("--shard={shard}");
        let refused = program.run(&["lab", "run", "quick", &option]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("3/16, the third of sixteen"), "{refused:?}");
    }
    assert_eq!(fs::read_dir(program.work()).unwrap().count(), 0, "nothing is written");
}

fn a_dry_run_lists_and_runs_nothing() {
    let program = Program::new();
    let scenario = program.file("three.toml", three("100kB"));
    let listed = program.run(&["lab", "run", scenario, "--dry-run", "--json", "--repeat", "2"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let listed = listed.json();
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &listed["total"]), (6, &6.into()));
    assert_eq!((&runs[5]["name"], &runs[5]["repetition"]), (&"three/queue=1bdp".into(), &2.into()));
    assert_eq!(listed["files"], serde_json::json!(["three.toml"]));
    let ran = program.run(&["lab", "run", scenario, "--repeat", "2", "--out", "out", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let plan = fs::read(program.work().join("out/sweep.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&plan).unwrap()["runs"], listed["runs"]);
    let shard = program.run(&["lab", "run", scenario, "--dry-run", "--shard", "2/3"]);
    assert!(shard.out.contains("queue=50packets") && !shard.out.contains("1bdp"), "{shard:?}");
    assert!(shard.err.contains("Shard 2/3: 1 of 3 runs"), "{shard:?}");
}
