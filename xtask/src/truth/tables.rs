//! Prints scores as Markdown and answers as JSON lines.

use super::TruthRun;
use super::judge::RunVerdict;
use super::runs::FoundRuns;
use super::score::{Score, Scores};
use fullpipe_model::scenario::Cause;
use std::collections::BTreeSet;

/// Prints all tables.
pub fn print(seed: u64, found: &FoundRuns, scores: &Scores) {
    let FoundRuns { done, unbound, failed } = found;
    println!(
        "Seed {seed}: {} runs scored, {} left out, {} failed.\n",
        done.len(),
        unbound.len(),
        failed.len()
    );
    println!(
        "| evidence | runs | first limit right | 90 % sure, and right | steady time right | \
         calibration error | runs of which it saw no data |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (vantage, score) in &scores.of {
        let (hits, sure) = score.sure();
        println!(
            "| {} | {} | {} ({:.1} %) | {hits} of {sure} | {:.1} % | {:.1} % | {} |",
            vantage.name(),
            score.asked,
            score.right,
            score.headline() * 100.0,
            score.time() * 100.0,
            score.calibration_error() * 100.0,
            score.unseen
        );
    }
    for (vantage, score) in &scores.of {
        println!("\n{}: what was said (columns) where the cause was (rows)\n", vantage.name());
        confusion(score);
        let bins = score.bins().map(|(from, count, hits)| format!("{from:.1}+: {hits} of {count}"));
        println!("\nright by confidence: {}", bins.collect::<Vec<_>>().join(", "));
    }
    println!("\nMisses:\n");
    for miss in &scores.misses {
        let RunVerdict { vantage, limit, confidence, time, .. } = &miss.answer;
        println!(
            "* {}: {} says {limit} ({confidence:.2}); right limit for {time:.2} of steady time",
            miss.run,
            vantage.name()
        );
    }
    let others = unbound
        .iter()
        .map(|name| (name, "left out: something else binds, or nothing that was lifted gives"));
    let others = others.chain(failed.iter().map(|(name, why)| (name, why.as_str())));
    for (name, why) in others {
        println!("* {name}: {why}");
    }
}

fn confusion(score: &Score) {
    let said: BTreeSet<&str> = score.confusion.keys().map(|(_, said)| *said).collect();
    println!("| | {} |", said.iter().copied().collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(said.len()));
    for cause in Cause::ALL {
        let count = |said: &&str| score.confusion.get(&(cause, *said)).copied();
        let cells =
            said.iter().map(|said| count(said).map_or(String::new(), |count| count.to_string()));
        println!("| {} | {} |", cause.name(), cells.collect::<Vec<_>>().join(" | "));
    }
}

/// One answer as JSON, for other programs.
pub fn line(run: &TruthRun, answer: &RunVerdict) -> serde_json::Value {
    serde_json::json!({
        "name": run.name,
        "truth": run.cause.name(),
        "vantage": answer.vantage.name(),
        "limit": answer.limit,
        "confidence": answer.confidence,
        "steady_time_share": answer.time,
        "is_right": run.right.contains(&answer.limit),
        "saw_data": answer.saw_data,
        "folder": run.folder,
        "traits": answer.traits,
    })
}
