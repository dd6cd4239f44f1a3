//! What is right for each capture of a set, as JSON lines for `bench/limits-open`: nothing here
//! asks the analysis.

use super::conversations::{self, ConversationLabel};
use super::runs::FoundRuns;
use super::{Truth, TruthRun, runs, worlds};
use fullpipe_model::scenario::Hindrance;
use serde_json::json;

/// The ends of a transfer, each with a capture.
const ENDS: [&str; 2] = ["server", "client"];

/// Runs what is missing of the set, and prints a line for each capture. What is left out has no
/// right answer, and says why.
pub fn print(options: &Truth) -> anyhow::Result<()> {
    if options.conversations {
        for label in conversations::labels(options)? {
            println!("{}", of_conversation(&label));
        }
        return Ok(());
    }
    let FoundRuns { done, unbound, failed } =
        if options.worlds { worlds::all(options)? } else { runs::all(options)? };
    for run in &done {
        for end in ENDS {
            println!("{}", of_run(options, run, end));
        }
    }
    let reason = if options.worlds {
        "nothing that was lifted gives, and the link is not busy"
    } else {
        "something else binds"
    };
    for name in unbound {
        println!("{}", json!({"transfer": name, "kind": kind(options), "left_out": reason}));
    }
    for (name, why) in failed {
        println!("{}", json!({"transfer": name, "kind": kind(options), "left_out": why}));
    }
    Ok(())
}

fn kind(options: &Truth) -> &'static str {
    if options.worlds { "world" } else { "drawn" }
}

fn of_run(options: &Truth, run: &TruthRun, end: &str) -> serde_json::Value {
    let right = run.right.iter().map(|limit| limit.cause().unwrap_or_else(|| limit.name()));
    let gains = run.gains.iter().map(|(cause, gain)| (cause.name().to_owned(), json!(gain)));
    let found_by = match (options.worlds, run.gains.is_empty()) {
        (true, _) => "intervention",
        (false, false) => "construction, intervention",
        (false, true) => "construction",
    };
    json!({
        "transfer": run.name,
        "kind": kind(options),
        "question": "limit",
        "end": end,
        "capture": run.folder.join(format!("{end}.pcap")),
        "cause": run.cause.name(),
        "right": right.collect::<Vec<_>>(),
        "also": run.also.map(|also| also.name()),
        "found_by": found_by,
        "gains": gains.collect::<serde_json::Map<_, _>>(),
        "folder": run.folder,
    })
}

fn of_conversation(label: &ConversationLabel) -> serde_json::Value {
    let ConversationLabel { name, end, capture, cause, hindrance } = label;
    let Some(cause) = cause else {
        let reason = "nothing took more than half of the time";
        return json!({"transfer": name, "kind": "conversation", "end": end, "left_out": reason});
    };
    json!({
        "transfer": name,
        "kind": "conversation",
        "question": "time",
        "end": end,
        "capture": capture,
        "cause": cause.name(),
        "right": [cause.name()],
        "also": null,
        "found_by": "moments on both ends' own wires",
        "gains": {},
        "hindrance": hindrance_name(*hindrance),
        "folder": capture.parent(),
    })
}

fn hindrance_name(hindrance: Hindrance) -> &'static str {
    match hindrance {
        Hindrance::None => "none",
        Hindrance::Loss => "loss",
        Hindrance::Outage => "outage",
        Hindrance::PathEnds => "path_ends",
        Hindrance::ReaderStops => "reader_stops",
    }
}
