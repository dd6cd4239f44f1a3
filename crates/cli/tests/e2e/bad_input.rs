//! Bad input gives a one-line message and the exit code for whose fault it is, and leaves nothing
//! behind.
//!
//! A port in use cannot be tested: each server listens in a network namespace that was just made
//! for it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, User};
use crate::remains::{Machine, assert_nothing_left};

pub const CASES: &[Case] = &[
    ("command_lines", &[], command_lines),
    ("scenarios", &[], scenarios),
    ("names_cannot_steer_the_terminal", &[], names_cannot_steer_the_terminal),
    ("results_are_never_written_over", &[], results_are_never_written_over),
    ("missing_programs", &[], missing_programs),
    (
        "nginx_is_missed_where_it_is_hidden",
        &[Need::Root, Need::Program("unshare")],
        nginx_is_missed_where_it_is_hidden,
    ),
    ("full_disks", &[Need::Root, Need::Program("unshare")], full_disks),
    (
        "a_key_on_a_full_disk_is_no_file",
        &[Need::Root, Need::Program("unshare")],
        a_key_on_a_full_disk_is_no_file,
    ),
    ("a_file_that_may_not_be_read", &[Need::OrdinaryUser], a_file_that_may_not_be_read),
    (
        "neither_privilege_nor_user_namespaces",
        &[Need::OrdinaryUser],
        neither_privilege_nor_user_namespaces,
    ),
];

const USAGE: i32 = 2;
const MISSING: i32 = 3;
const INPUT: i32 = 4;
const FAILED: i32 = 1;

/// Checks for one line on standard error with all `words`, nothing on standard output, and this
/// exit code.
fn assert_told(finished: &Finished, code: i32, words: &[&str]) {
    assert_eq!(finished.code, Some(code), "{finished:?}");
    assert_eq!(finished.out, "", "{finished:?}");
    let lines: Vec<_> = finished.err.lines().collect();
    assert_eq!(lines.len(), 1, "one line: {finished:?}");
    assert!(lines[0].starts_with("fullpipe: "), "{finished:?}");
    for word in words {
        assert!(lines[0].contains(word), "no '{word}' in {finished:?}");
    }
}

fn command_lines() {
    let program = Program::new();
    fs::create_dir(program.work().join("folder")).unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["nothing"], &["unrecognized subcommand 'nothing'", "--help"]),
        (&["lab", "run"], &["required", "<FILE|PRESET>"]),
        (
            &["lab", "run", "nothing"],
            &["run scenario 'nothing'", "neither a file nor a preset", "fullpipe lab list"],
        ),
        (&["lab", "run", "./folder"], &["./folder", "neither a file nor a preset"]),
        (&["lab", "run", "quick", "--repeat", "0"], &["--repeat", "0 is not in 1..=1000"]),
        (&["lab", "run", "quick", "--repeat", "-3"], &["'-3'"]),
        (&["lab", "run", "quick", "--nothing"], &["unexpected argument '--nothing'"]),
        (
            &["calc", "--rate", "1gb", "--rtt", "50ms"],
            &["'1gb'", "does not say bit or byte", "1gbit"],
        ),
        (&["calc", "--rate=-1gbit", "--rtt", "50ms"], &["'-1gbit'", "1gbit"]),
        (&["calc", "--rate", "0gbit", "--rtt", "50ms"], &["must be between 1 kbit/s and 1 Tbit/s"]),
        (&["calc", "--rate", "99tbit", "--rtt", "50ms"], &["99 Tbit/s must be between"]),
        (&["calc", "--rate", "1gbit", "--rtt", "50"], &["no unit", "146ms"]),
        (
            &["calc", "--rate", "1gbit", "--rtt", "50ms", "--buffer", "6xb"],
            &["unknown unit 'xb'", "6.25MB"],
        ),
        (
            &["calc", "--rate", "1gbit", "--rtt", "50ms", "--kernel", "new"],
            &["kernel version 'new'", "6.1"],
        ),
        (&["calc", "--rate", "1gbit"], &["--rtt"]),
        (&["calc", "--rate", "1gbit", "--rtt", "1ms,"], &["--rtt", "no number"]),
        (
            &["calc", "--rate", "1gbit", "--rtt", "1ms,2ms", "--connections", "5"],
            &["--connections needs one path", "one --rtt"],
        ),
        (
            &["calc", "--rate", "1gbit", "--rtt", "1ms", "--connections", "0"],
            &["--connections", "0 is not in 1..="],
        ),
        (
            &["calc", "--rate", "1gbit", "--rtt", "1ms", "--memory", "16GX"],
            &["--memory", "unknown unit"],
        ),
        (&["calc", "--this-host", "--kernel", "6.1"], &["--this-host", "cannot be used"]),
        (&["demo", "--keep-captures"], &["--out"]),
        (&["completions", "tcsh"], &["'tcsh'", "bash"]),
    ];
    for (arguments, words) in cases {
        assert_told(&program.run(arguments), USAGE, words);
    }
}

fn scenarios() {
    let machine = Machine::look();
    let program = Program::new();
    let cases: &[(&str, &[&str])] = &[
        ("nothing = 1", &["line 1, column 1", "unknown field `nothing`", "`transfer`"]),
        ("[link]\nrat = \"1gbit\"", &["line 2", "unknown field `rat`"]),
        ("[link]\nrate = \"1gb\"", &["line 2, column 8", "does not say bit or byte", "1gbit"]),
        ("[link]\nrate = \"-1gbit\"", &["line 2", "'-1gbit'"]),
        ("[link]\nrate = \"0gbit\"", &["link rate 0 carries nothing", "leave `rate` out"]),
        ("[link]\nrate = \"99tbit\"\nrtt = \"60s\"", &["99 Tbit/s is above 1 Tbit/s"]),
        (
            "[link]\nrate = \"900gbit\"\nrtt = \"60s\"",
            &["needs 23.02 TiB of packet memory", "may be used", "lower the"],
        ),
        ("[link]\nrtt = \"5000s\"", &["delay 2500 s is above 60 s"]),
        ("[link]\nloss = \"120%\"", &["'120%'", "between 0% and 100%"]),
        ("[link]\nmtu = 100", &["100 B must be between 576 B"]),
        ("[link]\nmtu = \"100B\"", &["between 576 B"]),
        ("[link]\nqueue = \"0packets\"\nrate = \"1mbit\"", &["less than one packet"]),
        ("[transfer]\nserver = \"apache\"", &["unknown variant `apache`", "`nginx`"]),
        ("[transfer]\nserver = \"nginx\"", &["transfer.size is needed"]),
        ("[transfer]\nduration = \"99h\"", &["between 100 ms and 1 h"]),
        ("[transfer]\nsize = \"0B\"", &["transfer.size"]),
        ("repeat = 0", &["repeat 0 must be between 1 and 1000"]),
        ("[matrix]\n\"link.rtt\" = [\"1ms\", \"x\"]", &["rtt=x", "time 'x'"]),
        ("[matrix]\n\"link.rtt\" = []", &["has no values"]),
        ("name = \"../../etc\"", &["name '../../etc'"]),
        ("this is no TOML", &["line 1", "key with no value"]),
        ("include = [\"./s.toml\"]", &["includes itself"]),
        ("include = [\"nothing\"]", &["'nothing'"]),
        ("[hosts.server.sysctl]\n\"kernel.panic\" = 1", &["kernel.panic", "only names below net."]),
        (
            "[hosts.server.sysctl]\n\"net.ipv4.tcp_nothing\" = 1",
            &["net.ipv4.tcp_nothing", "no such setting"],
        ),
        (
            "[hosts.server.sysctl]\n\"net.ipv4.tcp_rmem\" = \"many\"",
            &["tcp_rmem", "does not take this value"],
        ),
        ("[hosts.server.sysctl]\n\"net.../../kernel/panic\" = 1", &["only names below net."]),
        (
            "[hosts.server]\ncongestion_control = \"nothing\"",
            &["server's congestion control nothing", "available"],
        ),
        ("[hosts.client]\ncpu = 999", &["client's application to CPU 999", "choose one"]),
    ];
    for (text, words) in cases {
        program.file("s.toml", text);
        let running = program
            .start(&mut program.command(&["lab", "run", "./s.toml", "--json", "--out", "results"]));
        let id = running.id();
        let finished = running.end();
        // A name that leads nowhere is a matter of the command line, wherever it stands.
        let code = if text.contains("include = [\"nothing\"]") { USAGE } else { INPUT };
        assert_told(&finished, code, words);
        assert_nothing_left(&program, &BTreeSet::new(), &[id], &machine);
        let _ = fs::remove_dir_all(program.work().join("results"));
    }
    program.file("s.toml", b"name = \"\xff\xfe\"");
    assert_told(&program.run(&["lab", "run", "./s.toml"]), INPUT, &["./s.toml", "UTF-8"]);
}

/// Names of files and rows with an escape sequence, a line break, and right-to-left text.
fn names_cannot_steer_the_terminal() {
    let program = Program::new();
    let name = "x\u{1b}[2J\n\u{202e}y";
    program.file(&format!("{name}.toml"), "nothing = 1");
    program.file(&format!("{name}.pcap"), "no capture");
    let row = |name: &str, goodput: u64| {
        let row = serde_json::json!({"name": name, "engine": "virtual", "kernel": name, "goodput_bps": goodput});
        format!("{row}\n")
    };
    program.file("a.jsonl", row(name, 1_000_000));
    program.file("b.jsonl", row(name, 2_000_000));
    let (scenario, capture) = (format!("./{name}.toml"), format!("./{name}.pcap"));
    for arguments in [
        &["lab", "run", &scenario][..],
        &["lab", "run", name],
        &["analyze", &capture],
        &["lab", "compare", "a.jsonl", "b.jsonl", "--fail-on", "goodput:-1%"],
        &["lab", "compare", &capture, "b.jsonl"],
    ] {
        let finished = program.run(arguments);
        for text in [&finished.out, &finished.err] {
            let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.chars().any(steers), "{arguments:?}: {finished:?}");
        }
        let told = format!("{}{}", finished.out, finished.err);
        assert!(told.contains("x\\u{1b}[2J"), "{arguments:?}: {finished:?}");
    }
}

fn results_are_never_written_over() {
    let program = Program::new();
    fs::create_dir(program.work().join("results")).unwrap();
    let kept = program.work().join("results/kept");
    fs::write(&kept, "of an earlier run").unwrap();
    for command in [&["lab", "run", "quick"][..], &["demo"]] {
        let finished = program.run(&[command, &["--out", "results"]].concat());
        assert_told(&finished, USAGE, &["results", "something in it already", "--out"]);
    }
    assert_eq!(fs::read_to_string(kept).unwrap(), "of an earlier run");
    assert_eq!(fs::read_dir(program.work().join("results")).unwrap().count(), 1);
}

/// A scenario in which one end is a real program.
fn with(end: &str, program: &str) -> String {
    format!("[link]\nrate = \"100mbit\"\n[transfer]\n{end} = \"{program}\"\nsize = \"1MB\"\n")
}

fn missing_programs() {
    let program = Program::new();
    for (end, name, package) in [("server", "python", "python3"), ("client", "curl", "curl")] {
        program.file("s.toml", with(end, name));
        let mut command = program.command(&["lab", "run", "./s.toml", "--json", "--out", name]);
        let finished = program.start(command.env("PATH", "/nonexistent")).end();
        let advice = format!("apt-get install {package}");
        assert_told(&finished, MISSING, &["not installed", &advice, "\"builtin\""]);
        assert!(program.scratch().is_empty());
    }
}

/// nginx is found where Debian puts it even if the path does not say so: an empty folder is mounted
/// over that place, in a mount namespace of our own.
fn nginx_is_missed_where_it_is_hidden() {
    let program = Program::new();
    program.file("s.toml", with("server", "nginx"));
    let script = "mount -t tmpfs none /usr/sbin && PATH=/nonexistent exec \"$0\" lab run ./s.toml --out results";
    let binary = program.binary().to_str().unwrap();
    let mut command = program.command_by(&["unshare", "-m", "sh", "-c", script, binary]);
    let finished = program.start(&mut command).end();
    assert_told(&finished, MISSING, &["start nginx", "apt-get install nginx-light", "\"builtin\""]);
}

/// Every place that is written to, on a file system of 64 kB in a mount namespace.
fn full_disks() {
    let machine = Machine::look();
    let scenario = "[link]\nrate = \"100mbit\"\nrtt = \"10ms\"\n[transfer]\nduration = \"1s\"\n";
    let cases = [
        (
            "results",
            "\"$0\" lab run ./s.toml --keep-captures --json --out tiny/results",
            "tiny/results",
        ),
        ("scratch", "TMPDIR=$PWD/tiny \"$0\" lab run ./s.toml --json --out results", "write "),
        (
            "journal",
            "mount --bind tiny /run && head -c 70000 /dev/zero > /run/x 2>/dev/null; \
             \"$0\" lab run ./s.toml --json --out results",
            "write journal",
        ),
    ];
    for (place, run, message) in cases {
        let program = Program::new();
        program.file("s.toml", scenario);
        fs::create_dir(program.work().join("tiny")).unwrap();
        // What is left there is listed before the mount namespace takes it along.
        let script = format!(
            "mount -t tmpfs -o size=64k none tiny && {{ {run}; }}; code=$?; find tiny /run/fullpipe -name '*.part' -o \
             -name 'part-*' -o -name '*.journal' -o -name 'fullpipe-scratch-*' > left; exit $code"
        );
        // Journals of other runs on this machine must not be in the list.
        let script = format!("mount -t tmpfs -o size=64k none /run && {script}");
        let binary = program.binary().to_str().unwrap();
        let running =
            program.start(&mut program.command_by(&["unshare", "-m", "sh", "-c", &script, binary]));
        let finished = running.end();
        assert_told(
            &finished,
            FAILED,
            &[message, "No space left on device", "room"].map(|word| {
                // Two wordings of the same advice.
                if word == "room" && message != "write journal" { "free some space" } else { word }
            }),
        );
        assert_eq!(
            fs::read_to_string(program.work().join("left")).unwrap(),
            "",
            "{place}: left behind"
        );
        assert_nothing_left(&program, &BTreeSet::new(), &[], &machine);
    }
}

fn a_file_that_may_not_be_read() {
    let program = Program::of(User::Ordinary);
    program.file("s.toml", "[link]\n");
    fs::set_permissions(program.work().join("s.toml"), fs::Permissions::from_mode(0o000)).unwrap();
    assert_told(
        &program.run(&["lab", "run", "./s.toml"]),
        INPUT,
        &["read scenario ./s.toml", "Permission denied"],
    );
    // A place where that user may not write.
    let finished = program.run(&["lab", "run", "quick", "--out", "/proc/results"]);
    assert_told(&finished, FAILED, &["make results directory /proc/results", "--out"]);
}

/// A user namespace that forbids further ones (limit 0) and whose root has no capabilities; nothing
/// of the machine changes.
fn neither_privilege_nor_user_namespaces() {
    let program = Program::of(User::Ordinary);
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --securebits=+noroot \"$0\" lab run quick --out results";
    let binary = program.binary().to_str().unwrap();
    let mut command = program.command_by(&["unshare", "-Ur", "sh", "-c", script, binary]);
    // Of this root's own: what it would take by default is of the user id that it seems to have.
    let finished = program.start(command.env("XDG_RUNTIME_DIR", program.tmp())).end();
    assert_told(
        &finished,
        MISSING,
        &["make namespaces", "run as root", "sudo sysctl -w user.max_user_namespaces=10000"],
    );
    assert!(!program.work().join("results").exists());
}

/// An empty key file would stand in the way of the next try: a key is never replaced.
fn a_key_on_a_full_disk_is_no_file() {
    let program = Program::new();
    fs::create_dir(program.work().join("tiny")).unwrap();
    let script = "mount -t tmpfs -o size=64k none tiny && head -c 70000 /dev/zero > tiny/x 2>/dev/null; \
                  \"$0\" keygen tiny/k; code=$?; ls -A tiny > left; rm tiny/x; \"$0\" keygen tiny/k && exit $code";
    let binary = program.binary().to_str().unwrap();
    let running =
        program.start(&mut program.command_by(&["unshare", "-m", "sh", "-c", script, binary]));
    let finished = running.end();
    assert_eq!(finished.code, Some(INPUT), "{finished:?}");
    assert!(finished.err.contains("free some space"), "{finished:?}");
    assert_eq!(fs::read_to_string(program.work().join("left")).unwrap(), "x\n");
    assert!(finished.out.contains("The private key is in tiny/k"), "{finished:?}");
}
