//! The analysis against captures of our own lab, made by stacks of Linux, whose truth is known: see
//! `captures/README.md`. The suites beside it need the lab; this one has teeth wherever the
//! repository is.
#![allow(clippy::print_stdout, reason = "the scores are the test's result, and are shown")]

mod applications;
mod fates;
mod measured;
mod score;
mod subcauses;

use fates::{Fates, log_in};
use score::{Scores, capture_in, edge, expected, steady_share};
use std::path::{Path, PathBuf};

fn runs(suite: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures").join(suite);
    let mut runs: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    runs
}

#[test]
fn the_limit_is_the_one_that_was_built_in() {
    let (mut sum, mut count) = (0.0, 0);
    for run in runs("limits") {
        let name = format!("limits/{}", run.file_name().unwrap().to_string_lossy());
        let limit = expected(&name).unwrap();
        for end in ["server", "client"] {
            let (share, most) = steady_share(&edge(&capture_in(&run, end)), limit);
            println!("{name:40} {end:8} {:.1} % {limit}", share * 100.0);
            assert_eq!(most, limit, "{name} at the {end}");
            (sum, count) = (sum + share, count + 1);
        }
    }
    assert_eq!(count, 14);
    assert!(sum / f64::from(count) >= 0.95, "{sum} of {count}");
}

#[test]
fn losses_are_those_of_the_link() {
    let mut scores = Scores::default();
    for run in runs("losses") {
        let (sender, receiver) =
            (edge(&capture_in(&run, "server")), edge(&capture_in(&run, "client")));
        scores.add(&sender, &receiver, &Fates::of_edges(&sender, &receiver));
    }
    assert!(scores.sender_loss.truth >= 15, "the captures have losses: {scores:?}");
    hold(&scores);
}

#[test]
fn losses_reorderings_and_copies_are_those_that_the_link_wrote_down() {
    let mut scores = Scores::default();
    for run in runs("path") {
        let (sender, receiver) =
            (edge(&capture_in(&run, "server")), edge(&capture_in(&run, "client")));
        let log = log_in(&run).unwrap_or_else(|| panic!("{}: no log", run.display()));
        scores.add(&sender, &receiver, &Fates::of_log(&log, &sender, &receiver));
    }
    assert!(scores.sender_loss.truth > 0 && scores.receiver_duplicate.truth > 0, "{scores:?}");
    assert!(scores.sender_reordering.truth >= 20, "{scores:?}");
    hold(&scores);
}

fn hold(scores: &Scores) {
    for (what, score, least) in scores.named() {
        println!(
            "{what:24} precision {:.4} recall {:.4} {score:?}",
            score.precision(),
            score.recall()
        );
        assert!(score.precision() >= least && score.recall() >= least, "{what}: {score:?}");
    }
}
