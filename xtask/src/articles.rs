//! `cargo xtask articles-table FILE.json`: the lab's rows of the articles' experiments, beside the articles' figures.
//!
//! FILE.json is what `fullpipe lab run articles --json` prints. The table replaces what stands between two markers in
//! [`PAGE`]; the sentences around it, with the reasons for the differences, are written by people and stay.

use anyhow::Context;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// The page that holds the table, from the workspace's root.
const PAGE: &str = "docs/src/articles.md";
const BEGIN: &str = "<!-- articles-table: begin; written by `cargo xtask articles-table` -->";
const END: &str = "<!-- articles-table: end -->";

/// Reads the rows and rewrites the table in the page.
pub fn run(file: &Path) -> anyhow::Result<()> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("read rows {shown}"))?;
    let rows: Value = serde_json::from_str(&text).with_context(|| format!("read rows {shown}"))?;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("find the workspace")?.join(PAGE);
    let before = std::fs::read_to_string(&page).with_context(|| format!("read page {}", page.display()))?;
    let after = replaced(&before, &table(&rows).with_context(|| format!("read rows {shown}"))?)?;
    std::fs::write(&page, after).with_context(|| format!("write page {}", page.display()))
}

/// The page with `table` between the markers.
fn replaced(page: &str, table: &str) -> anyhow::Result<String> {
    let (head, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE} has no line '{BEGIN}'"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{PAGE} has no line '{END}'"))?;
    Ok(format!("{head}{BEGIN}\n{table}{END}{tail}"))
}

fn table(results: &Value) -> anyhow::Result<String> {
    let rows = results["rows"].as_array().filter(|rows| !rows.is_empty());
    let rows = rows.context("no rows: give what `fullpipe lab run articles --json` printed")?;
    let mut text = String::new();
    let engine = rows[0]["engine"].as_str().unwrap_or("unknown");
    writeln!(
        text,
        "Engine: {engine}; MB/s are 10^6 bytes of payload a second, of a transfer that its duration cut short those over \
         the second half of its bytes. Rows with a cause repeat the one above with that changed.\n"
    )?;
    text += "| experiment | kernel | RTT ms | ours MB/s | law allows | article | ours / article | limited by, capture | \
             by sockets | retrans | window full | zero window | cause |\n";
    text += "|---|---|--:|--:|--:|--:|--:|---|---|--:|--:|--:|---|\n";
    for row in rows {
        anyhow::ensure!(row["name"].is_string() && row["goodput_bps"].is_number(), "a row without name or goodput_bps");
        text += &line(row)?;
    }
    Ok(text)
}

fn line(row: &Value) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let quiet = if row["quiet"] == Value::Bool(false) { " (not quiet)" } else { "" };
    let number = |column: &str| row[column].as_f64();
    let word = |column: &str| row[column].as_str().unwrap_or_default();
    write!(text, "| {}{quiet} | {} ", word("name"), word("kernel"))?;
    write!(text, "| {} ", number("rtt_nominal_us").map_or("-".into(), |rtt| format!("{}", rtt / 1e3)))?;
    let whole = row["complete"] == Value::Bool(true);
    let ours = if whole { None } else { number("steady_goodput_bps") }.or(number("goodput_bps"));
    for rate in [ours, number("law_bps"), number("reference_goodput_bps")] {
        write!(text, "| {} ", rate.map_or("-".into(), megabytes))?;
    }
    write!(text, "| {} ", number("reference_ratio").map_or("-".into(), |ratio| format!("{ratio:.2}")))?;
    for (name, share) in [("limited_by", "limit_share"), ("limited_by_sockets", "limit_share_sockets")] {
        write!(text, "| {} ", limit(row, name, share))?;
    }
    for column in ["retransmission", "window_full", "zero_window"] {
        write!(text, "| {} ", row[column])?;
    }
    writeln!(text, "| {} |", word("reference_cause"))?;
    Ok(text)
}

/// Bits a second as MB/s with three figures.
fn megabytes(bps: f64) -> String {
    let rate = bps / 8e6;
    let decimals = if rate >= 100.0 {
        0
    } else if rate >= 10.0 {
        1
    } else if rate >= 1.0 {
        2
    } else {
        3
    };
    format!("{rate:.decimals$}")
}

fn limit(row: &Value, name: &str, share: &str) -> String {
    match (row[name].as_str(), row[share].as_f64()) {
        (Some(name), Some(share)) => format!("{} {:.0} %", name.replace('_', " "), share * 100.0),
        _ => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_table_takes_the_place_between_the_markers_and_nothing_else() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let new = replaced(&page, "new\n").unwrap();
        assert_eq!(new, format!("before\n{BEGIN}\nnew\n{END}\nafter\n"));
        assert_eq!(replaced(&new, "new\n").unwrap(), new, "again changes nothing");
        assert!(replaced("no markers", "new\n").is_err());
    }

    #[test]
    fn a_row_is_in_megabytes_beside_the_article() {
        let row = json!({"name": "b2", "kernel": "6.18.0", "rtt_nominal_us": 50000, "goodput_bps": 800_000_000u64,
            "steady_goodput_bps": 880_000_000u64, "complete": false, "law_bps": null, "reference_goodput_bps": 400_000_000u64,
            "reference_ratio": 2.2, "limited_by": "send_buffer", "limit_share": 0.964, "retransmission": 0,
            "window_full": 3, "zero_window": 0, "reference_cause": "kernel", "quiet": false});
        let text = table(&json!({ "rows": [row] })).unwrap();
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            "| b2 (not quiet) | 6.18.0 | 50 | 110 | - | 50.0 | 2.20 | send buffer 96 % | - | 0 | 3 | 0 | kernel |"
        );
        let columns = |line: &str| line.matches('|').count();
        assert!(text.lines().skip(2).all(|line| columns(line) == columns(last)), "{text}");
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for foreign in [json!({}), json!({"rows": []}), json!({"rows": [{"name": "b2"}]}), json!([1])] {
            assert!(table(&foreign).is_err(), "{foreign}");
        }
    }
}
