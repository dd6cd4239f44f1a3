//! The guide's page about `analyze` matches the program: its samples are run, and its keys and
//! options are looked up.

use fullpipe_flow::connection::Label;
use fullpipe_flow::limit::Limit;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder in which the page's commands run.
fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../flow/tests/lab/captures")
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/analyze.md")
}

fn page() -> String {
    std::fs::read_to_string(file()).unwrap()
}

/// The contents of fenced blocks.
fn blocks(page: &str) -> Vec<&str> {
    page.split("\n```")
        .skip(1)
        .step_by(2)
        .map(|block| block.split_once('\n').map_or("", |(_, text)| text))
        .collect()
}

fn printed(arguments: &[&str]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    let ended =
        program.args(arguments).current_dir(captures()).env("LC_ALL", "C.UTF-8").output().unwrap();
    let complaint = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && complaint.is_empty(), "{arguments:?}: {complaint}");
    String::from_utf8(ended.stdout).unwrap()
}

/// Whether `text` matches the sample, in which a line `...` stands for any number of lines.
fn is_shown(sample: &[&str], text: &[&str]) -> bool {
    match sample {
        [] => text.is_empty(),
        ["...", rest @ ..] => (0..=text.len()).any(|from| is_shown(rest, &text[from..])),
        [line, rest @ ..] => text.first() == Some(line) && is_shown(rest, &text[1..]),
    }
}

#[test]
fn every_sample_is_what_the_program_prints() {
    let page = page();
    let (mut samples, mut blessed) = (0, page.clone());
    for block in blocks(&page) {
        let Some((command, sample)) =
            block.strip_prefix("$ fullpipe ").and_then(|block| block.split_once('\n'))
        else {
            assert!(block.starts_with('{'), "a sample without its command: {block}");
            continue;
        };
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let text = printed(&arguments);
        samples += 1;
        let (sample, lines): (Vec<_>, Vec<_>) = (sample.lines().collect(), text.lines().collect());
        assert!(
            sample.iter().filter(|line| **line != "...").count() > 0,
            "{command}: shows nothing"
        );
        if std::env::var_os("FULLPIPE_BLESS").is_some() && !sample.contains(&"...") {
            blessed = blessed.replace(block, &format!("$ fullpipe {command}\n{}", text.trim_end()));
            continue;
        }
        let again = "FULLPIPE_BLESS=1 writes those without `...` anew";
        assert!(
            is_shown(&sample, &lines),
            "docs/src/analyze.md: `fullpipe {command}` prints\n{text}\n{again}"
        );
    }
    if blessed != page {
        std::fs::write(file(), blessed).unwrap();
        return;
    }
    assert!(samples >= 3, "{samples} samples");
}

#[test]
fn a_sample_may_leave_lines_out_and_nothing_else() {
    let text = ["a", "b", "c"];
    assert!(
        is_shown(&["a", "...", "c"], &text)
            && is_shown(&["...", "b", "..."], &text)
            && is_shown(&text, &text)
    );
    assert!(
        !is_shown(&["a", "c"], &text)
            && !is_shown(&["...", "b"], &text)
            && !is_shown(&["c", "..."], &text)
    );
}

/// Every key in a JSON value, however deep.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_key_that_the_page_names_is_in_the_json() {
    let page = page();
    let schema = blocks(&page).into_iter().find(|block| block.starts_with('{')).unwrap();
    let named: Vec<&str> = schema.split('"').skip(1).step_by(2).collect();
    let named = named.into_iter().filter(|name| schema.contains(&format!("\"{name}\":")));
    let mut found = BTreeSet::new();
    for file in [
        "limits/send_buffer/server.pcap.gz",
        "plan/server.pcap.gz",
        "losses/congestion_control=cubic-loss=0.01/server.pcap.gz",
    ] {
        keys(
            &serde_json::from_str(&printed(&["analyze", file, "--json", "--connection", "0"]))
                .unwrap(),
            &mut found,
        );
    }
    let missing: Vec<&str> = named.filter(|name| !found.contains(*name)).collect();
    assert_eq!(missing, [""; 0], "named by docs/src/analyze.md, and not printed");
}

#[test]
fn options_labels_and_limits_are_those_of_the_program() {
    let page = page();
    let options = |text: &str| -> BTreeSet<String> {
        let starts = text.match_indices("--").map(|(at, _)| &text[at + 2..]);
        let names = starts.map(|rest| {
            rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next().unwrap()
        });
        names
            .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
            .map(String::from)
            .collect()
    };
    let mut own = options(&printed(&["analyze", "--help"]));
    own.retain(|option| option != "help" && option != "version");
    assert_eq!(options(&page), own, "the page's options, and the program's");
    for label in Label::ALL {
        assert!(page.contains(&format!("`{}`", label.name())), "{} is not explained", label.name());
    }
    let (_, limits) = page.split_once("## The limits").unwrap();
    for limit in Limit::ALL {
        assert!(limits.contains(&format!("\n| {}", limit.words())), "{limit} has no row");
    }
}
