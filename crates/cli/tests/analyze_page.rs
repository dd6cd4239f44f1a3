//! The guide's page about `analyze` matches the program: its samples are run, and its keys and
//! options are looked up.

use fullpipe_flow::connection::Label;
use fullpipe_flow::limit::Limit;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A page of the guide with samples of `analyze`.
struct Page {
    name: &'static str,
    /// The folder in which its commands run, from this crate's.
    captures: &'static str,
    /// The fewest samples that it may have.
    samples: usize,
}

const ANALYZE: Page =
    Page { name: "analyze.md", captures: "../flow/tests/lab/captures", samples: 3 };
const CHINESE: Page = Page { name: "chinese.md", captures: "../../docs/src/cases", samples: 3 };
const ANALYZE_CHINESE: Page =
    Page { name: "analyze-zh.md", captures: "../flow/tests/lab/captures", samples: 3 };
const CASES_CHINESE: Page =
    Page { name: "cases-zh.md", captures: "../../docs/src/cases", samples: 14 };
const CASES: Page = Page { name: "cases.md", captures: "../../docs/src/cases", samples: 14 };

impl Page {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src").join(self.name)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }

    fn captures(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.captures)
    }

    /// What the program prints.
    fn printed(&self, arguments: &[&str]) -> String {
        let mut program = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
        program.args(arguments).current_dir(self.captures()).env("LC_ALL", "C.UTF-8");
        let ended = program.output().unwrap();
        let complaint = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && complaint.is_empty(), "{arguments:?}: {complaint}");
        String::from_utf8(ended.stdout).unwrap()
    }
}

/// The contents of fenced blocks, but for commands to type.
fn blocks(page: &str) -> Vec<&str> {
    page.split("\n```")
        .skip(1)
        .step_by(2)
        .map(|block| block.split_once('\n').unwrap_or_default())
        .filter_map(|(language, text)| (language != "sh").then_some(text))
        .collect()
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
    for page in [ANALYZE, CASES, CHINESE, ANALYZE_CHINESE, CASES_CHINESE] {
        hold(&page);
    }
}

fn hold(page: &Page) {
    let text = page.text();
    let (mut samples, mut blessed) = (0, text.clone());
    for block in blocks(&text) {
        let Some((command, sample)) =
            block.strip_prefix("$ fullpipe ").and_then(|block| block.split_once('\n'))
        else {
            assert!(block.starts_with('{'), "a sample without its command: {block}");
            continue;
        };
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let printed = page.printed(&arguments);
        samples += 1;
        let (sample, lines): (Vec<_>, Vec<_>) =
            (sample.lines().collect(), printed.lines().collect());
        assert!(sample.iter().any(|line| *line != "..."), "{command}: shows nothing");
        if std::env::var_os("FULLPIPE_BLESS").is_some() && !sample.contains(&"...") {
            let anew = format!("$ fullpipe {command}\n{}", printed.trim_end());
            blessed = blessed.replace(block, &anew);
            continue;
        }
        let again = "FULLPIPE_BLESS=1 writes those without `...` anew";
        let name = page.name;
        assert!(
            is_shown(&sample, &lines),
            "docs/src/{name}: `fullpipe {command}` prints\n{printed}\n{again}"
        );
    }
    if blessed != text {
        std::fs::write(page.path(), blessed).unwrap();
        return;
    }
    assert!(samples >= page.samples, "{}: {samples} samples", page.name);
}

/// Every capture of the stories is one of theirs.
#[test]
fn every_capture_of_the_stories_is_told() {
    let text = CASES.text();
    for file in std::fs::read_dir(CASES.captures()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let mut commands = text.lines().filter(|line| line.starts_with("$ fullpipe analyze "));
        assert!(commands.any(|line| line.split(' ').any(|word| word == name)), "{name}");
    }
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
    let page = ANALYZE.text();
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
            &serde_json::from_str(&ANALYZE.printed(&[
                "analyze",
                file,
                "--json",
                "--connection",
                "0",
            ]))
            .unwrap(),
            &mut found,
        );
    }
    let missing: Vec<&str> = named.filter(|name| !found.contains(*name)).collect();
    assert_eq!(missing, [""; 0], "named by docs/src/analyze.md, and not printed");
}

#[test]
fn options_labels_and_limits_are_those_of_the_program() {
    let page = ANALYZE.text();
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
    let mut own = options(&ANALYZE.printed(&["analyze", "--help"]));
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
