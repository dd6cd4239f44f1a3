//! The length that is asked for intervals changes which intervals are shown, and nothing else: not
//! the verdict, nor what follows from it.
#![allow(clippy::print_stdout, reason = "what was compared is shown")]

mod skip;

use fullpipe_flow::capture::{self, Unpack};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{DiagnosedConnection, Diagnosis};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Duration;
use skip::skip;
use std::path::{Path, PathBuf};

const ASKED: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(100), Duration::from_secs(1)];

fn connections(file: &Path, interval: Option<Duration>) -> Vec<DiagnosedConnection> {
    let mut analyzer = Analyzer::new(Config { interval, ..Config::default() });
    if let Ok(bytes) = Unpack::new(std::fs::File::open(file).unwrap()) {
        // A broken capture is read to where it breaks.
        let _ = capture::read(bytes, |packet| {
            analyzer.push_packet(&packet);
        });
    }
    analyzer.finish().connections
}

fn diagnoses(all: &[DiagnosedConnection]) -> impl Iterator<Item = &Diagnosis> {
    const BOTH: [Direction; 2] = [Direction::ClientToServer, Direction::ServerToClient];
    all.iter().flat_map(|one| BOTH.into_iter().filter_map(|direction| one.diagnosis(direction)))
}

/// Every capture below `folder`.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(captures(&path));
        } else if path.to_string_lossy().contains("cap") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Compares every capture below `folder`, and gives how many verdicts were the same.
fn compare(folder: &Path) -> usize {
    let mut same = 0;
    let mut changed = Vec::new();
    for file in captures(folder) {
        let before = connections(&file, None);
        for asked in ASKED {
            let after = connections(&file, Some(asked));
            let pairs = diagnoses(&before).zip(diagnoses(&after));
            let other = pairs.filter(|(a, b)| a.limited_by().limit != b.limited_by().limit).count();
            let text = |all: &[DiagnosedConnection]| serde_json::to_string(all).unwrap();
            if text(&before) != text(&after) {
                changed.push(format!("{}: {asked}: {other} first limits", file.display()));
            } else {
                same += diagnoses(&before).count();
            }
        }
    }
    assert!(changed.is_empty(), "{} changed:\n{}", changed.len(), changed.join("\n"));
    same
}

#[test]
fn it_changes_no_verdict_of_the_lab() {
    let same = compare(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures"));
    println!("{same} verdicts are the same");
    assert!(same >= 60, "{same}");
}

#[test]
fn it_changes_no_verdict_of_public_captures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures/files");
    if !folder.exists() {
        let why = format!("no {}", folder.display());
        return skip("it_changes_no_verdict_of_public_captures", &why);
    }
    println!("{} verdicts are the same", compare(&folder));
}

/// The verdict's shares are those of the intervals shown, whatever their length.
#[test]
fn the_intervals_shown_have_the_length_asked_for_and_the_shares_of_the_verdict() {
    for file in captures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures/limits")) {
        for asked in ASKED {
            for diagnosis in diagnoses(&connections(&file, Some(asked))) {
                let verdict = &diagnosis.verdict;
                let shown = verdict.shown();
                // Silence is one interval, however long, and so is what a long transfer merges.
                assert!(shown.iter().rev().skip(1).all(|one| one.length >= asked));
                let first = verdict.limited_by();
                let candidates = shown.iter().flat_map(|one| {
                    let time = one.length.as_secs_f64();
                    one.candidates.iter().map(move |each| (each.limit, each.share * time))
                });
                let all: f64 = shown.iter().map(|one| one.length.as_secs_f64()).sum();
                let of_first = candidates.filter(|(limit, _)| *limit == first.limit);
                let share = of_first.map(|(_, time)| time).sum::<f64>() / all;
                // The last interval may end later than the last of the verdict.
                let most = asked.as_secs_f64() / all + 0.02;
                assert!((share - first.share).abs() <= most, "{}: {share}", file.display());
            }
        }
    }
}
