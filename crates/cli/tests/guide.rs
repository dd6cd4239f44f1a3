//! The guide's pasted outputs and commands: their headings, their keys and their options are those
//! of the program. Their figures are not compared.

use fullpipe_flow::schema::RunRow;
use fullpipe_report::{Layout, runs::rows};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// README.md and every page of the guide.
fn pages() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("docs/src")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/src/{name}"));
    let names = names.chain(["README.md".to_string()]);
    names.map(|name| (page(&name), name)).map(|(text, name)| (name, text)).collect()
}

/// The words of a line between two spaces or more: the cells of a table.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn tables_of_runs_have_the_columns_that_are_printed() {
    let printed = rows::render(&[RunRow::default()], Layout::default());
    let columns = cells(printed.lines().next().unwrap());
    let mut found = 0;
    for (name, text) in pages() {
        for line in text.lines().filter(|line| line.starts_with("run ") && line.contains("RTT")) {
            assert_eq!(cells(line), columns, "{name}: {line}");
            found += 1;
        }
    }
    assert!(found >= 3, "only {found} tables of runs were found");
}

#[test]
fn the_demo_before_and_after_has_the_lines_that_are_printed() {
    let row = RunRow::default();
    let all = rows::before_and_after(&row, &row, Layout::default());
    let short = rows::gained(&row, &row, Layout::default());
    for (name, printed) in [("docs/src/demo.md", all), ("README.md", short)] {
        let text = page(name);
        let (_, table) = text.split_once("The same transfer with these settings:").unwrap();
        let table = table.split("```").next().unwrap();
        let labels = printed.lines().skip(2).filter_map(|line| cells(line).first().copied());
        for label in labels {
            assert!(
                table.lines().any(|line| line.starts_with(label)),
                "{name} has no line `{label}`"
            );
        }
    }
}

/// The long options in a text.
fn options(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let long =
        words.filter(|word| word.len() > 2 && word.starts_with("--") && !word.starts_with("---"));
    long.map(str::to_string).collect()
}

/// The options and subcommands of a command, by its `--help`.
fn help(command: &[&str]) -> (BTreeSet<String>, Vec<String>) {
    let shown = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(command).arg("--help").output();
    let text = String::from_utf8(shown.unwrap().stdout).unwrap();
    let commands = text.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).map(str::to_string);
    (options(&text), names.filter(|name| name != "help").collect())
}

#[test]
fn commands_have_options_that_the_program_has() {
    let mut known = BTreeMap::new();
    let (_, commands) = help(&[]);
    for command in commands {
        let (own, inner) = help(&[&command]);
        for subcommand in inner {
            let (mut options, deeper) = help(&[&command, &subcommand]);
            for deepest in deeper {
                options.extend(help(&[&command, &subcommand, &deepest]).0);
            }
            known.insert(format!("{command} {subcommand}"), options);
        }
        known.insert(command, own);
    }
    let mut tried = 0;
    for (name, text) in pages() {
        for line in text.lines() {
            let line = line.trim_start().trim_start_matches("$ ");
            let Some(line) = line.strip_prefix("fullpipe ") else { continue };
            // Behind `--` is another program's command, behind `|`, `;` and `&&` another command.
            let own = line.split(" -- ").next().unwrap_or(line);
            let own = own.split(['|', ';', '#', '&']).next().unwrap_or(own);
            let words: Vec<&str> = own.split_whitespace().take(2).collect();
            let Some(options_of) = known
                .get(&words.join(" "))
                .or_else(|| words.first().and_then(|word| known.get(*word)))
            else {
                continue;
            };
            for option in options(own) {
                assert!(options_of.contains(&option), "{name}: `{line}`: no option {option}");
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "only {tried} options were found");
}

/// What a page says whose English has changed since.
const OLDER: &str = "> 本页译自较早的英文版";

/// A translated page begins with the page that it was made of, and that page's hash then.
#[test]
fn translations_are_of_the_english_that_is_there_or_say_that_they_are_older() {
    let mut found = 0;
    for (name, text) in pages() {
        let Some(of) = text.strip_prefix("<!-- of ") else { continue };
        let (english, rest) = of.split_once(' ').unwrap();
        let now = format!("{:016x}", fnv_1a(page(&format!("docs/src/{english}")).as_bytes()));
        let is_current = rest.split_whitespace().next() == Some(&*now);
        assert_eq!(
            !is_current,
            text.contains(OLDER),
            "{name}: {english} has changed: translate what did and write {now}, or say `{OLDER}`"
        );
        found += 1;
    }
    assert!(found >= 1, "no page is a translation");
}

/// FNV-1a of 64 bits: enough to see a change.
fn fnv_1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
