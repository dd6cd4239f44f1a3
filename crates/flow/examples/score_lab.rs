//! Scores what the analysis says of the lab's captures: `score_lab DIR..`, each DIR what `fullpipe lab run
//! --keep-captures --out DIR` made. Prints tables in Markdown, as they stand in the guide.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

#[path = "../tests/lab/fates.rs"]
mod fates;
#[path = "../tests/lab/score.rs"]
mod score;

use fates::{Fates, log_in};
use score::{Scores, capture_in, edge, expected, steady_share};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if folders.is_empty() {
        eprintln!("usage: score_lab DIR..");
        std::process::exit(2);
    }
    let mut runs: Vec<(String, PathBuf)> = folders.iter().flat_map(|folder| runs_in(folder)).collect();
    runs.sort();
    let (mut by_edges, mut by_log) = (Scores::default(), BTreeMap::<String, Scores>::new());
    let (mut sum, mut count) = (0.0, 0);
    println!("| run | known limit | by the sender's capture | by the receiver's |\n|---|---|---|---|");
    for (name, folder) in &runs {
        let (sender, receiver) = (edge(&capture_in(folder, "server")), edge(&capture_in(folder, "client")));
        match expected(name) {
            Some(limit) => {
                let shown = [&sender, &receiver].map(|edge| {
                    let (share, most) = steady_share(edge, limit);
                    (sum, count) = (sum + share, count + 1);
                    let other = if most == limit { String::new() } else { format!(" ({most})") };
                    format!("{:.1} %{other}", share * 100.0)
                });
                println!("| {name} | {limit} | {} | {} |", shown[0], shown[1]);
            }
            None => match log_in(folder) {
                Some(log) => {
                    let case = name.split('/').nth(1).unwrap_or_default().to_string();
                    by_log.entry(case).or_default().add(&sender, &receiver, &Fates::of_log(&log, &sender, &receiver));
                }
                None => by_edges.add(&sender, &receiver, &Fates::of_edges(&sender, &receiver)),
            },
        }
    }
    println!("\n{count} captures: {:.2} % of the steady time has the known limit.\n", sum / f64::from(count) * 100.0);
    println!("Where netem carried the packets (`bench/losses.toml`), by both captures:\n");
    print([("", &by_edges)]);
    println!("\nWhere our own link did (`bench/path.toml`), by its log:\n");
    print(by_log.iter().map(|(case, scores)| (case.as_str(), scores)));
}

fn print<'a>(cases: impl IntoIterator<Item = (&'a str, &'a Scores)>) {
    println!("| path | event | found | true | precision | recall |\n|---|---|--:|--:|--:|--:|");
    for (case, scores) in cases {
        for (what, score, _) in scores.named() {
            let (precision, recall) = (score.precision() * 100.0, score.recall() * 100.0);
            println!("| {case} | {what} | {} | {} | {precision:.2} % | {recall:.2} % |", score.found, score.truth);
        }
    }
}

/// The runs of a results folder by their names.
fn runs_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.join("scenario.json").exists());
    folders
        .map(|path| {
            let scenario = std::fs::read_to_string(path.join("scenario.json")).expect("a finished run can be read");
            let scenario: serde_json::Value = serde_json::from_str(&scenario).expect("the lab writes JSON");
            (scenario["name"].as_str().unwrap_or_default().to_string(), path)
        })
        .collect()
}
