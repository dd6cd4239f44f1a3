//! Archives from outside: whatever ended a run, in the end the rows are those of a run that nothing
//! ended, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant};
use nix::sys::signal::Signal;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program};

pub const CASES: &[Case] = &[
    ("the_rows_are_those_of_one_file", &[], the_rows_are_those_of_one_file),
    ("killed_runs_lose_nothing_and_repeat_nothing", &[], killed_runs),
    ("a_full_disk_is_told_and_gone_on_from", &[Need::Root, Need::Program("unshare")], full_disk),
    ("bad_captures_are_rows", &[], bad_captures_are_rows),
    ("rows_of_two_kinds_do_not_mix", &[], rows_of_two_kinds_do_not_mix),
];

/// Some forty groups.
const CAPTURES: u32 = 10_000;
/// Noon of 1 March 2026.
const NOON: u64 = 1_772_366_400_000_000_000;
const DAY: u64 = 86_400_000_000_000;

/// A capture of one SYN, on one of three days. No other capture has its client.
fn capture(number: u32) -> Vec<u8> {
    let [_, _, high, low] = number.to_be_bytes();
    let ip = [0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 1, high, low, 10, 0, 0, 2];
    let tcp = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
    let at = Instant::from_nanos(NOON + u64::from(number % 3) * DAY);
    [&file_header(65_535)[..], &record_header(at, 40, 40), &ip, &tcp].concat()
}

/// A folder `caps` of captures.
fn archive(program: &Program, captures: u32) {
    for folder in ["caps", "caps/more"] {
        fs::create_dir(program.work().join(folder)).unwrap();
    }
    for number in 0..captures {
        let folder = if number % 2 == 0 { "caps" } else { "caps/more" };
        program.file(&format!("{folder}/{number:05}.pcap"), capture(number));
    }
}

/// Every file of a folder of rows but the manifest, by its name.
fn tree(rows: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in fs::read_dir(rows).unwrap().map(|entry| entry.unwrap().path()) {
        for file in fs::read_dir(&folder).into_iter().flatten() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(rows).unwrap().display().to_string();
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}

/// The rows of Parquet files as lines, sorted.
fn lines<'a>(files: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
    let mut lines = Vec::new();
    for file in files {
        let reader = SerializedFileReader::new(fs::File::open(file).unwrap()).unwrap();
        lines.extend(reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()));
    }
    lines.sort();
    lines
}

/// The rows of a folder, sorted.
fn rows(folder: &Path) -> Vec<String> {
    let paths: Vec<_> = tree(folder).into_keys().map(|name| folder.join(name)).collect();
    lines(paths.iter().map(|path| path.as_path()))
}

fn done(finished: &Finished) {
    assert_eq!((finished.code, finished.out.as_str()), (Some(0), ""), "{finished:?}");
}

fn the_rows_are_those_of_one_file() {
    let program = Program::new();
    archive(&program, 600);
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../flow/tests/lab/captures");
    fs::copy(lab.join("three.pcap.gz"), program.work().join("caps/three")).unwrap();
    done(&program.run(&["analyze", "caps", "--parquet", "one/"]));
    done(&program.run(&["analyze", "caps", "--parquet", "three/", "--threads", "3"]));
    let work = program.work();
    let one = tree(&work.join("one"));
    assert!(one == tree(&work.join("three")), "the rows depend on the number of threads");
    let days: BTreeSet<_> = one.keys().map(|name| name.split('/').next().unwrap()).collect();
    assert!(days.is_superset(&["day=2026-03-01", "day=2026-03-02", "day=2026-03-03"].into()));
    // A list on standard input, with a name that is in it twice; and all in one file.
    let mut names: Vec<_> = (0..600)
        .map(|number| {
            let folder = if number % 2 == 0 { "caps" } else { "caps/more" };
            format!("{folder}/{number:05}.pcap")
        })
        .collect();
    names.push("caps/three".into());
    names.push(names[0].clone());
    program.file("list", names.join("\n"));
    let mut command = program.command(&["analyze", "--files-from", "-", "--parquet", "listed"]);
    command.stdin(fs::File::open(work.join("list")).unwrap());
    done(&program.start(&mut command).end());
    names.pop();
    let named: Vec<&str> = names.iter().map(String::as_str).collect();
    done(&program.run(&[&["analyze", "--parquet", "file.parquet"], &named[..]].concat()));
    let file = lines([work.join("file.parquet").as_path()]);
    // 600 SYNs, and three connections of two directions.
    assert_eq!(file.len(), 606);
    assert_eq!(rows(&work.join("one")), file);
    assert_eq!(rows(&work.join("listed")), file);
    // Packets go the same way.
    done(&program.run(&["analyze", "caps", "--packets", "--parquet", "packets/"]));
    done(&program.run(&["analyze", "--packets", "--parquet", "p.parquet", "caps/three"]));
    let packets = lines([work.join("p.parquet").as_path()]);
    assert_eq!(rows(&work.join("packets")).len(), 600 + packets.len());
}

fn killed_runs() {
    let program = Program::new();
    archive(&program, CAPTURES);
    let clean = program.run(&["analyze", "caps", "--parquet", "clean/", "--threads", "2"]);
    done(&clean);
    let work = program.work();
    let expected = tree(&work.join("clean"));
    // Seeded, so that a failure can be looked at again, as far as time allows.
    let (mut random, mut hits) = (17_u64, 0);
    for round in 0..20 {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (random >> 33) as f64 / (1_u64 << 31) as f64;
        let lives = clean.took.as_secs_f64() * share * 0.5;
        let arguments = ["analyze", "caps", "--parquet", "killed/", "--threads", "2", "--resume"];
        let mut running = program.start(&mut program.command(&arguments));
        let until = clock::now() + Duration::from_secs_f64(lives);
        while clock::now() < until && !running.has_ended() {
            std::thread::park_timeout(Duration::from_millis(1).into());
        }
        let is_hit = !running.has_ended();
        if round % 4 == 3 {
            if is_hit {
                running.signal(Signal::SIGINT);
            }
            let ended = running.end();
            // It may be interrupted before it listens, or after its last group.
            assert!(matches!(ended.code, Some(0 | 130) | None), "{ended:?}");
        } else {
            running.kill_9();
            running.end();
        }
        hits += u32::from(is_hit);
    }
    eprintln!("{hits} of 20 runs were ended; a whole one takes {}", clean.took);
    assert!(hits >= 4, "nearly all runs ended by themselves");
    done(&program.run(&["analyze", "caps", "--parquet", "killed/", "--resume"]));
    let killed = tree(&work.join("killed"));
    assert_eq!(killed.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert!(killed == expected, "the same names, but other bytes");
    assert_eq!(rows(&work.join("killed")).len(), CAPTURES as usize);
}

fn full_disk() {
    let program = Program::new();
    archive(&program, CAPTURES);
    done(&program.run(&["analyze", "caps", "--parquet", "clean/"]));
    let work = program.work();
    let expected = tree(&work.join("clean"));
    let needed: usize = expected.values().map(|part| part.len().next_multiple_of(4096)).sum();
    fs::create_dir(work.join("tiny")).unwrap();
    // Room for the half of it, and then for all.
    let script = format!(
        "mount -t tmpfs -o size={} none tiny && \"$0\" analyze caps --parquet tiny/rows/; echo $? > code; \
         ls tiny/rows/_tmp > left; mount -o remount,size={} none tiny && \
         \"$0\" analyze caps --parquet tiny/rows/ --resume; code=$?; cp -r tiny/rows whole; exit $code",
        needed / 2,
        needed * 8,
    );
    let binary = program.binary().to_str().unwrap();
    let words = ["unshare", "-m", "sh", "-c", &script, binary];
    let finished = program.start(&mut program.command_by(&words)).end();
    done(&finished);
    assert_eq!(fs::read_to_string(work.join("code")).unwrap(), "1\n", "{finished:?}");
    let told = finished.err.lines().next().unwrap();
    assert!(told.contains("No space left on device") && told.contains("--resume"), "{told}");
    assert_eq!(fs::read_to_string(work.join("left")).unwrap(), "", "incomplete parts are left");
    assert!(tree(&work.join("whole")) == expected, "other rows than with enough room");
}

fn bad_captures_are_rows() {
    let program = Program::new();
    archive(&program, 8);
    let work = program.work();
    let cut = capture(9);
    let whole = [&cut[..], &cut[24..60]].concat();
    program.file("caps/cut.pcap", &whole);
    program.file("caps/text.txt", "this is no capture, and long enough to see that");
    program.file("caps/empty", "");
    std::os::unix::fs::symlink("nowhere", work.join("caps/dangling")).unwrap();
    let analyze = |more: &[&str]| {
        program.run(&[&["analyze", "caps", "--parquet", "rows/", "--problems", "p"], more].concat())
    };
    let finished = analyze(&[]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(finished.err.contains("9 rows of 12 captures; 4 of them"), "{finished:?}");
    let problems = lines([work.join("p").as_path()]);
    assert_eq!(problems.len(), 4, "{problems:?}");
    let of = |name: &str| problems.iter().find(|row| row.contains(name)).unwrap().clone();
    assert!(of("cut.pcap").contains("middle of a packet"), "{problems:?}");
    assert!(of("cut.pcap").contains("stored_rows: 1"), "{problems:?}");
    assert!(of("dangling").contains("No such file"), "{problems:?}");
    // What gave no rows is tried again, what gave some is not, and what changed is told.
    program.file("caps/empty", capture(10));
    program.file("caps/cut.pcap", capture(9));
    fs::remove_file(work.join("caps/dangling")).unwrap();
    program.file("caps/dangling", capture(11));
    let finished = analyze(&["--resume"]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let problems = lines([work.join("p").as_path()]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("cut.pcap") && problems[0].contains("changed"), "{problems:?}");
    assert!(problems[1].contains("text.txt"), "{problems:?}");
    assert_eq!(rows(&work.join("rows")).len(), 11);
    assert_eq!(tree(&work.join("rows")).keys().filter(|name| name.contains("_tmp")).count(), 0);
}

fn rows_of_two_kinds_do_not_mix() {
    let program = Program::new();
    archive(&program, 3);
    done(&program.run(&["analyze", "caps", "--parquet", "rows/"]));
    let before = tree(&program.work().join("rows"));
    fs::create_dir(program.work().join("other")).unwrap();
    program.file("other/notes", "x");
    let refused: &[(&[&str], i32, &str)] = &[
        (&["--parquet", "rows"], 2, "earlier run; --resume goes on"),
        (&["--parquet", "rows", "--resume", "--packets"], 2, "of connections with --labels sack"),
        (&["--parquet", "rows", "--resume", "--filter", "port 80"], 2, "made by fullpipe"),
        (&["--parquet", "other/"], 2, "something else"),
        (&["--parquet", "other/notes", "--resume"], 2, "it is a file"),
        (&["--parquet", "new/", "--as-one"], 2, "--as-one"),
        (&["--resume"], 2, "--parquet"),
        (&["--parquet", "new/", "--files-from", "nowhere"], 4, "read the list of --files-from"),
    ];
    for (options, code, words) in refused {
        let finished = program.run(&[&["analyze", "caps"], *options].concat());
        assert_eq!(finished.code, Some(*code), "{finished:?}");
        assert!(finished.err.contains(words), "no '{words}': {finished:?}");
        assert!(!program.work().join("new").exists(), "a refused run made its folder: {options:?}");
    }
    assert!(tree(&program.work().join("rows")) == before, "a refused run wrote rows");
    done(&program.run(&["analyze", "caps", "--parquet", "rows", "--resume"]));
    assert!(tree(&program.work().join("rows")) == before, "nothing was left to do");
}
