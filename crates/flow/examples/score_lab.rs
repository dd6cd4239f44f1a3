//! Scores what the analysis says of the lab's captures: `score_lab limits|log DIR..`, each DIR what
//! `fullpipe lab run --keep-captures --out DIR` made. Prints tables in Markdown, as they stand in
//! the guide: `limits` of the runs whose limit is known and of losses by both edges' captures,
//! `log` of those whose link wrote down what it did. Nothing where DIR has no such runs.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

#[path = "../tests/lab/fates.rs"]
mod fates;
#[path = "../tests/lab/score.rs"]
mod score;

use fates::{Fates, log_in};
use score::{Edge, Scores, capture_in, edge, expected, steady_share};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() {
    let mut arguments = std::env::args_os().skip(1);
    let what = arguments.next();
    let folders: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    match what.as_deref().and_then(|what| what.to_str()) {
        Some("limits") if !folders.is_empty() => limits(&folders),
        Some("log") if !folders.is_empty() => log(&folders),
        _ => {
            eprintln!("usage: score_lab limits|log DIR..");
            std::process::exit(2);
        }
    }
}

/// A finished run: its scenario's name, and its folder.
type Run = (String, PathBuf);

fn edges((_, folder): &Run) -> (Edge, Edge) {
    (edge(&capture_in(folder, "server")), edge(&capture_in(folder, "client")))
}

/// Runs whose name promises a limit, and below them how many of the steady time has it, by folder;
/// then losses.
fn limits(folders: &[PathBuf]) {
    let mut sums = Vec::new();
    let mut losses = None;
    let mut rows = Vec::new();
    for folder in folders {
        let (mut sum, mut count) = (0.0, 0_u32);
        for run in runs_in(folder).into_iter().filter(|(_, folder)| log_in(folder).is_none()) {
            let (sender, receiver) = edges(&run);
            let Some(limit) = expected(&run.0) else {
                let scores = losses.get_or_insert_with(Scores::default);
                scores.add(&sender, &receiver, &Fates::of_edges(&sender, &receiver));
                continue;
            };
            let shown = [&sender, &receiver].map(|edge| {
                let (share, most) = steady_share(edge, limit);
                (sum, count) = (sum + share, count + 1);
                let other = if most == limit { String::new() } else { format!(" ({most})") };
                format!("{:.1} %{other}", share * 100.0)
            });
            rows.push(format!("| {} | {limit} | {} | {} |", run.0, shown[0], shown[1]));
        }
        if count > 0 {
            let part = sum / f64::from(count) * 100.0;
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            sums.push(format!(
                "* `bench/{name}.toml`: {count} captures, {part:.2} % of the steady time has the known limit."
            ));
        }
    }
    if !sums.is_empty() {
        println!("{}\n", sums.join("\n"));
        println!(
            "| run | known limit | by the sender's capture | by the receiver's |\n|---|---|---|---|"
        );
        rows.sort();
        rows.iter().for_each(|row| println!("{row}"));
    }
    if let Some(losses) = losses {
        println!("\nLosses of `bench/losses.toml`, by both captures together:\n");
        print([("losses", &losses)]);
    }
}

/// Runs whose link wrote a log, by suite and case.
fn log(folders: &[PathBuf]) {
    let mut cases = BTreeMap::<String, Scores>::new();
    for run in folders.iter().flat_map(|folder| runs_in(folder)) {
        let Some(log) = log_in(&run.1).filter(|_| expected(&run.0).is_none()) else { continue };
        let (sender, receiver) = edges(&run);
        let case: Vec<&str> = run.0.split('/').take(2).collect();
        let scores = cases.entry(case.join("/")).or_default();
        scores.add(&sender, &receiver, &Fates::of_log(&log, &sender, &receiver));
    }
    if !cases.is_empty() {
        print(cases.iter().map(|(case, scores)| (case.as_str(), scores)));
    }
}

fn print<'a>(cases: impl IntoIterator<Item = (&'a str, &'a Scores)>) {
    println!("| path | event | found | true | precision | recall |\n|---|---|--:|--:|--:|--:|");
    for (case, scores) in cases {
        for (what, score, _) in scores.named() {
            let (precision, recall) = (score.precision() * 100.0, score.recall() * 100.0);
            println!(
                "| {case} | {what} | {} | {} | {precision:.2} % | {recall:.2} % |",
                score.found, score.truth
            );
        }
    }
}

/// The runs of a results folder.
fn runs_in(folder: &Path) -> Vec<Run> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let folders = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("scenario.json").exists());
    let mut runs: Vec<Run> = folders
        .map(|path| {
            let scenario = std::fs::read_to_string(path.join("scenario.json"))
                .expect("a finished run can be read");
            let scenario: serde_json::Value =
                serde_json::from_str(&scenario).expect("the lab writes JSON");
            (scenario["name"].as_str().unwrap_or_default().to_string(), path)
        })
        .collect();
    runs.sort();
    runs
}
