//! `cargo xtask prediction DIR..`: how near the laws came to what was measured.
//!
//! Each DIR is a folder of results of `fullpipe lab run bench/prediction/SET.toml --engine virtual`
//! (or of `bench/prediction-held-out`). In a row of virtual time the law is computed from the
//! scenario alone, as `fullpipe calc` does, so `law_bps` is a prediction. The table replaces what
//! is between two markers in [`PAGE`].

#![allow(clippy::print_stdout, reason = "a table is what it was called for")]

use anyhow::Context;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The page with the table, relative to the workspace's root.
const PAGE: &str = "docs/src/calc.md";
const BEGIN: &str = "<!-- prediction-table: begin; written by `cargo xtask prediction` -->";
const END: &str = "<!-- prediction-table: end -->";

/// Options of the chore.
#[derive(clap::Args)]
pub struct Prediction {
    /// Folders of results.
    #[arg(value_name = "DIR", required = true)]
    results: Vec<PathBuf>,
    /// Write the table into the guide, too.
    #[arg(long)]
    publish: bool,
}

/// One run beside its prediction.
#[derive(Debug)]
struct Case {
    set: String,
    name: String,
    predicted: f64,
    measured: f64,
    term: String,
    limited_by: String,
}

impl Case {
    /// `None` for a row that failed or that no law bounds.
    fn of(row: &Value) -> Option<Case> {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let name = text("name");
        Some(Case {
            set: name.split('/').next().unwrap_or_default().into(),
            predicted: row["law_bps"].as_f64()?,
            measured: row["steady_goodput_bps"].as_f64()?,
            term: text("law_term"),
            limited_by: text("limited_by"),
            name,
        })
    }

    /// By what part more was measured than predicted.
    fn error(&self) -> f64 {
        self.measured / self.predicted - 1.0
    }
}

impl Prediction {
    /// Reads the rows and prints the table.
    pub fn run(&self) -> anyhow::Result<()> {
        let mut cases = Vec::new();
        for folder in &self.results {
            let file = folder.join("rows.jsonl");
            let text = std::fs::read_to_string(&file)
                .with_context(|| format!("read rows {}", file.display()))?;
            for line in text.lines() {
                let row: Value = serde_json::from_str(line)
                    .with_context(|| format!("read rows {}", file.display()))?;
                let case = Case::of(&row);
                cases.push(case.with_context(|| format!("{} has no prediction", row["name"]))?);
            }
        }
        let table = table(&cases);
        print!("{table}");
        if self.publish { publish(&table) } else { Ok(()) }
    }
}

fn publish(table: &str) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("find the workspace")?;
    let page = root.join(PAGE);
    let text =
        std::fs::read_to_string(&page).with_context(|| format!("read page {}", page.display()))?;
    let parts = text.split_once(BEGIN).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(END)?;
        Some(format!("{head}{BEGIN}\n{table}{END}{tail}"))
    });
    let text = parts.with_context(|| format!("{PAGE} has no lines '{BEGIN}' and '{END}'"))?;
    std::fs::write(&page, text).with_context(|| format!("write page {}", page.display()))
}

/// A prediction beyond this is listed by name.
const FAR: f64 = 0.1;

fn table(cases: &[Case]) -> String {
    let mut sets: Vec<&str> = cases.iter().map(|case| case.set.as_str()).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut text = String::from(
        "| runs | of them | median error | 90 % are within | worst | beyond 10 % | \
         term as in the verdict |\n|---|--:|--:|--:|--:|--:|--:|\n",
    );
    let line = |name: &str, chosen: &[&Case]| {
        let mut errors: Vec<f64> = chosen.iter().map(|case| case.error()).collect();
        errors.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
        let at = |part: f64| errors[((errors.len() - 1) as f64 * part).round() as usize] * 100.0;
        let far = errors.iter().filter(|error| error.abs() > FAR).count();
        let agree = chosen.iter().filter(|case| case.term == case.limited_by).count();
        format!(
            "| {name} | {} | {:.1} % | {:.1} % | {:+.1} % | {far} | {agree} |\n",
            chosen.len(),
            at(0.5).abs(),
            at(0.9).abs(),
            at(1.0),
        )
    };
    for set in sets {
        let chosen: Vec<&Case> = cases.iter().filter(|case| case.set == set).collect();
        text += &line(&format!("`{set}`"), &chosen);
    }
    text += &line("all", &cases.iter().collect::<Vec<_>>());
    let mut far: Vec<&Case> = cases.iter().filter(|case| case.error().abs() > FAR).collect();
    far.sort_by(|a, b| b.error().abs().total_cmp(&a.error().abs()));
    if !far.is_empty() {
        text += "\n| beyond 10 % | predicted Mbit/s | measured | error | term | verdict |\n\
                 |---|--:|--:|--:|---|---|\n";
    }
    for case in far {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.1} | {:+.1} % | {} | {} |",
            case.name,
            case.predicted / 1e6,
            case.measured / 1e6,
            case.error() * 100.0,
            case.term.replace('_', " "),
            case.limited_by.replace('_', " ")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_of_the_prediction_and_the_far_ones_are_named() {
        let row = |name: &str, law: u64, measured: u64| {
            serde_json::json!({
                "name": name, "law_bps": law, "steady_goodput_bps": measured,
                "law_term": "link", "limited_by": "link",
            })
        };
        let rows = [row("a/1", 100, 98), row("a/2", 100, 80), row("b/1", 100, 101)];
        let cases: Vec<Case> = rows.iter().filter_map(Case::of).collect();
        let table = table(&cases);
        assert!(table.contains("| `b` | 1 | 1.0 % | 1.0 % | +1.0 % | 0 | 1 |"), "{table}");
        assert!(table.contains("| all | 3 | 2.0 % | 20.0 % | -20.0 % | 1 | 3 |"), "{table}");
        assert!(table.contains("| a/2 | 0.0 | 0.0 | -20.0 % | link | link |"), "{table}");
        assert!(Case::of(&serde_json::json!({"error": "x"})).is_none());
    }
}
