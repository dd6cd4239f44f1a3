//! The output: one document for programs, plain text in a pipe, help with examples, man pages,
//! completions.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::Case;
use crate::need::{Need, installed};
use crate::program::{Finished, Program};

pub const CASES: &[Case] = &[
    ("calc_agrees_with_its_laws", &[], calc_agrees_with_its_laws),
    ("calc_of_lists_has_a_row_for_each", &[], calc_of_lists_has_a_row_for_each),
    ("calc_of_connections_multiplies_the_plan", &[], calc_of_connections_multiplies_the_plan),
    ("calc_of_this_host_reads_its_settings", &[], calc_of_this_host_reads_its_settings),
    ("presets_are_listed", &[], presets_are_listed),
    ("text_in_a_pipe_is_plain", &[], text_in_a_pipe_is_plain),
    ("a_reader_that_has_seen_enough_is_no_error", &[], a_reader_that_has_seen_enough_is_no_error),
    ("help_has_examples", &[], help_has_examples),
    ("the_version_says_what_was_built", &[], the_version_says_what_was_built),
    ("the_manual_renders", &[Need::Program("man")], the_manual_renders),
    ("bash_takes_its_completions", &[Need::Program("bash")], bash_takes_its_completions),
    ("zsh_and_fish_have_completions", &[], zsh_and_fish_have_completions),
];

fn good(arguments: &[&str]) -> Finished {
    let finished = Program::new().run(arguments);
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
    finished
}

/// One line to compare, and what a report of a fault begins with.
fn the_version_says_what_was_built() {
    let short = good(&["-V"]).out;
    assert_eq!(short, format!("fullpipe {}\n", env!("CARGO_PKG_VERSION")));
    let long = good(&["--version"]).out;
    assert!(long.starts_with(short.trim_end()), "{long}");
    for told in ["commit: ", "target: ", "schema: "] {
        assert!(long.contains(told), "{long}");
    }
}

/// 1 Gbit/s over 146 ms holds 18.25 MB: the one number that everything in the sheet is about.
fn calc_agrees_with_its_laws() {
    let sheet = good(&["calc", "--rate", "1gbit", "--rtt", "146ms", "--json"]).json();
    let text = sheet.to_string();
    assert!(text.contains("18250000"), "no BDP of 18.25 MB in {sheet:#}");
    let again = good(&["calc", "--rate", "125MB/s", "--rtt", "146ms", "--json"]).json();
    assert_eq!(again, sheet, "125 MB/s is 1 Gbit/s");
    assert!(good(&["calc", "--rate", "1gbit", "--rtt", "146ms"]).out.contains("18.25 MB"));
}

/// A row for each round trip and loss, as text and as JSON; one alone is the sheet of that path.
fn calc_of_lists_has_a_row_for_each() {
    let lists = ["calc", "--rate", "1gbit", "--rtt", "1ms,20ms,146ms", "--loss", "0.01%,0.1%"];
    let grid = good(&[&lists[..], &["--file", "1GB", "--json"]].concat()).json();
    let rows = grid["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6, "{grid}");
    let text = good(&lists).out;
    assert_eq!(text.lines().count(), 4 + rows.len(), "{text}");
    for row in rows {
        let rtt = format!("{}us", row["rtt_us"]);
        let loss = row["loss"]["loss"].to_string();
        let one =
            good(&["calc", "--rate", "1gbit", "--rtt", &rtt, "--loss", &loss, "--json"]).json();
        assert_eq!((&one["loss"], &one["bdp_bytes"]), (&row["loss"], &row["bdp_bytes"]));
    }
}

/// What connections may take is their number times the buffer of the plan.
fn calc_of_connections_multiplies_the_plan() {
    let arguments = ["calc", "--rate", "1gbit", "--rtt", "146ms", "--kernel", "6.1", "--json"];
    let more = ["--connections", "500", "--memory", "16GiB", "--file", "1GB"];
    let sheet = good(&[&arguments[..], &more].concat()).json();
    let plan = sheet["kernels"][0]["plan"]["changes"].as_array().unwrap();
    for (setting, direction) in [("net.ipv4.tcp_wmem", "send"), ("net.ipv4.tcp_rmem", "receive")] {
        let change = plan.iter().find(|change| change["setting"] == setting).unwrap();
        let triple = change["to"].as_str().unwrap();
        let each: u64 = triple.split(' ').next_back().unwrap().parse().unwrap();
        let memory = &sheet["memory"]["kernels"][0][direction];
        assert_eq!(memory["together_bytes"], 500 * each, "{memory}");
        let pages = memory["tcp_mem"]["pressure_pages"].as_u64().unwrap();
        assert!(pages * 4096 >= 500 * each, "{memory}");
        assert_eq!(memory["fit"]["verdict"], "no", "20 GB into 16 GiB");
    }
    assert_eq!(sheet["file"]["amount_bytes"], 1_000_000_000);
}

/// This host's settings are those that /proc shows.
fn calc_of_this_host_reads_its_settings() {
    let host = good(&["calc", "--this-host", "--json"]).json();
    for name in ["tcp_rmem", "tcp_wmem"] {
        let shown = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        let words: Vec<&str> = shown.split_whitespace().collect();
        assert_eq!(host["settings"][format!("net.ipv4.{name}")], words.join(" ").as_str());
    }
    let fills = host["fills"].as_array().unwrap();
    assert_eq!(fills.len(), 4 * 8, "usual rates and round trips");
    assert!(fills.iter().all(|fill| fill["send"]["goodput_bps"].as_u64() > Some(0)), "{host}");
    let text = good(&["calc", "--this-host"]).out;
    assert!(text.contains("100 Gbit/s") && text.contains("net.ipv4.tcp_rmem"), "{text}");
    let path = ["calc", "--this-host", "--rate", "1gbit", "--rtt", "146ms", "--connections", "9"];
    let one = good(&[&path[..], &["--json"]].concat()).json();
    assert_eq!(one["this_host"]["settings"], host["settings"]);
    let total = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kibibytes: u64 = total.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert_eq!(one["memory"]["memory_bytes"], kibibytes * 1024, "the machine's own memory");
    assert!(good(&path).out.contains("What this host fills of 1 Gbit/s and 146 ms"));
}

fn presets_are_listed() {
    let listed = good(&["lab", "list", "--json"]).json();
    let names: Vec<_> =
        listed.as_array().unwrap().iter().map(|preset| preset["name"].as_str().unwrap()).collect();
    for name in [
        "quick",
        "articles/a1-rtt",
        "articles/a2-loss",
        "articles/a3-rmem-or-wmem",
        "articles/b-buffers",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
    for name in ["b0", "b1", "b2", "b3", "b4", "b5", "b5a", "b5b", "b6-starved-client"] {
        assert!(names.contains(&format!("articles/{name}").as_str()), "{name} is not in {names:?}");
    }
    let text = good(&["lab", "list"]).out;
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
}

/// A table of rows too: the columns that the issue names, with units, and no escape code.
fn text_in_a_pipe_is_plain() {
    let program = Program::new();
    program.file(
        "s.toml",
        "[link]\nrate = \"20mbit\"\nrtt = \"5ms\"\n[transfer]\nduration = \"500ms\"\n",
    );
    let row = program.run(&["lab", "run", "./s.toml", "--out", "results"]);
    assert_eq!(row.code, Some(0), "{row:?}");
    assert!(row.out.contains("Mbit/s") && row.out.contains("ms"), "units: {row:?}");
    let calc = program.run(&["calc", "--rate", "1gbit", "--rtt", "50ms"]);
    let list = program.run(&["lab", "list"]);
    for finished in [row, calc, list, program.run(&["--help"])] {
        for text in [&finished.out, &finished.err] {
            assert!(!text.contains('\u{1b}'), "an escape code: {text}");
            assert!(
                text.lines().all(|line| line == line.trim_end()),
                "blanks at the end of a line: {text}"
            );
        }
    }
}

/// As `fullpipe ... | head -1` does: reads a line and closes.
fn a_reader_that_has_seen_enough_is_no_error() {
    let program = Program::new();
    for arguments in [
        &["lab", "list"][..],
        &["completions", "zsh"],
        &["man"],
        &["--help"],
        &["lab", "run", "--help"],
    ] {
        let mut command = program.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), output.stderr.as_slice()),
            (Some(0), &b""[..]),
            "{arguments:?}"
        );
    }
}

fn help_has_examples() {
    for command in [
        &[][..],
        &["demo"],
        &["calc"],
        &["calc", "convert"],
        &["lab", "run"],
        &["lab", "list"],
        &["lab", "clean"],
        &["top"],
        &["export"],
        &["report"],
        &["view"],
        &["man"],
        &["completions"],
    ] {
        let help = good(&[command, &["--help"]].concat()).out;
        assert!(help.contains("Example") && help.contains("fullpipe "), "{command:?}: {help}");
        assert!(help.contains("Usage: fullpipe"), "{command:?}: {help}");
    }
}

/// Every page, by man itself, with its complaints as errors.
fn the_manual_renders() {
    let program = Program::new();
    assert_eq!(program.run(&["man", "--out", "pages"]).code, Some(0));
    let pages: Vec<_> = std::fs::read_dir(program.work().join("pages"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert!(pages.len() >= 6, "{pages:?}");
    for page in pages {
        let mut man = Command::new("man");
        let output = man
            .args(["--warnings", "-P", "cat", "-l"])
            .arg(&page)
            .env("MANWIDTH", "100")
            .output()
            .unwrap();
        let (text, complaints) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success() && complaints.is_empty(),
            "{}: {complaints}",
            page.display()
        );
        assert!(text.contains("SYNOPSIS"), "{}: {text}", page.display());
    }
}

fn bash_takes_its_completions() {
    let script = good(&["completions", "bash"]).out;
    let program = Program::new();
    program.file("completions.bash", script);
    let checked = program.start(&mut program.command_by(&["bash", "-n", "completions.bash"])).end();
    assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{checked:?}");
    // What bash itself offers after `fullpipe lab r`.
    let ask = "source completions.bash; COMP_WORDS=(fullpipe lab r); COMP_CWORD=2; \
               _fullpipe fullpipe r lab; echo \"${COMPREPLY[@]}\"";
    let offered = program.start(&mut program.command_by(&["bash", "--norc", "-c", ask])).end();
    assert_eq!(offered.out.trim(), "run", "{offered:?}");
}

/// Checked by the shells' own parsers where they are; what must stand in them is checked
/// everywhere. Neither shell is needed to run anything of ours, so that their absence is no skip.
fn zsh_and_fish_have_completions() {
    for shell in ["zsh", "fish"] {
        let script = good(&["completions", shell]).out;
        assert!(
            script.contains("fullpipe") && script.contains("keep-captures"),
            "{shell}: {script}"
        );
        if !installed(shell) {
            eprintln!("{shell} is not installed: its completions are not parsed");
            continue;
        }
        let program = Program::new();
        program.file("completions", &script);
        let checked = program.start(&mut program.command_by(&[shell, "-n", "completions"])).end();
        assert_eq!((checked.code, checked.err.as_str()), (Some(0), ""), "{checked:?}");
    }
}
