//! `cargo xtask articles-table FILE.json`: compares the lab's rows of the articles' experiments
//! with the articles' figures.
//!
//! FILE.json is the output of `fullpipe lab run articles --json`. The table replaces everything
//! between two markers in [`PAGE`]; people write the text around it, with the reasons for the
//! differences.

use anyhow::Context;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// The page with the table, relative to the workspace's root.
const PAGE: &str = "docs/src/articles.md";
const BEGIN: &str = "<!-- articles-table: begin; written by `cargo xtask articles-table` -->";
const END: &str = "<!-- articles-table: end -->";

/// Reads the rows and rewrites the table in the page.
pub fn run(file: &Path) -> anyhow::Result<()> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("read rows {shown}"))?;
    let rows: Value = serde_json::from_str(&text).with_context(|| format!("read rows {shown}"))?;
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("find the workspace")?.join(PAGE);
    let before =
        std::fs::read_to_string(&page).with_context(|| format!("read page {}", page.display()))?;
    let after = replaced(&before, &table(&rows).with_context(|| format!("read rows {shown}"))?)?;
    std::fs::write(&page, after).with_context(|| format!("write page {}", page.display()))
}

/// The page with `table` between the markers.
fn replaced(page: &str, table: &str) -> anyhow::Result<String> {
    let (head, rest) =
        page.split_once(BEGIN).with_context(|| format!("{PAGE} has no line '{BEGIN}'"))?;
    let (_, tail) = rest.split_once(END).with_context(|| format!("{PAGE} has no line '{END}'"))?;
    Ok(format!("{head}{BEGIN}\n{table}{END}{tail}"))
}

/// The largest relative difference at which a figure counts as the same as the article's.
const AGREES: f64 = 0.05;

fn table(results: &Value) -> anyhow::Result<String> {
    let rows = results["rows"].as_array().filter(|rows| !rows.is_empty());
    let rows = rows.context("no rows: give what `fullpipe lab run articles --json` printed")?;
    let mut text = String::new();
    let mut engines: Vec<&str> = rows.iter().filter_map(|row| row["engine"].as_str()).collect();
    engines.sort_unstable();
    engines.dedup();
    writeln!(
        text,
        "Engine: {}; MB/s are 10^6 bytes of payload a second, of a transfer that its duration cut short those over \
         the second half of its bytes; where it says frames, the article counted whole frames of both directions, and so \
         do we. A row with ↳ repeats the one above it with what its last column names changed.\n",
        engines.join(" and ")
    )?;
    text += "| experiment | kernel | link | RTT ms | ours MB/s | prediction | article | ours / article | limited by, capture | \
             by sockets | retrans | window full | zero window | the difference |\n";
    text += "|---|---|---|--:|--:|--:|--:|--:|---|---|--:|--:|--:|---|\n";
    for (index, row) in rows.iter().enumerate() {
        anyhow::ensure!(
            row["name"].is_string() && row["goodput_bps"].is_number(),
            "a row without name or goodput_bps"
        );
        let further = rows[index + 1..].iter().take_while(|row| row["reference_cause"].is_string());
        text += &line(row, &difference(row, &further.collect::<Vec<_>>()))?;
    }
    text += &format!("\n{}\n", sum(rows));
    Ok(text)
}

fn agrees(row: &Value) -> Option<bool> {
    row["reference_ratio"].as_f64().map(|ratio| (ratio - 1.0).abs() <= AGREES)
}

/// Why `row` differs from its article. Only a further run that agrees counts as an explanation.
fn difference(row: &Value, further: &[&Value]) -> String {
    if let Some(changed) = row["reference_cause"].as_str() {
        return format!("changed: {changed}");
    }
    let told = |row: &&&Value| {
        let ratio = row["reference_ratio"].as_f64().unwrap_or_default();
        format!("{}: {ratio:.2}", row["reference_cause"].as_str().unwrap_or_default())
    };
    match agrees(row) {
        None => "-".into(),
        Some(true) => "none".into(),
        Some(false) => {
            let explain: Vec<_> = further.iter().filter(|row| agrees(row) == Some(true)).collect();
            if explain.is_empty() {
                let tried: Vec<_> = further.iter().collect();
                let tried: Vec<String> = tried.iter().map(told).collect();
                let tried = if tried.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", tried.join("; "))
                };
                format!("not explained{tried}")
            } else {
                format!("explained by {}", explain.iter().map(told).collect::<Vec<_>>().join("; "))
            }
        }
    }
}

/// How many of the rows with an article's figure agree with it.
fn sum(rows: &[Value]) -> String {
    let mut own = Vec::new();
    let mut explained = 0;
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row["reference_cause"].is_null())
    {
        let further = rows[index + 1..].iter().take_while(|row| row["reference_cause"].is_string());
        own.extend(agrees(row));
        explained += usize::from(
            agrees(row) == Some(false) && further.into_iter().any(|row| agrees(row) == Some(true)),
        );
    }
    let same = own.iter().filter(|same| **same).count();
    format!(
        "Of {} experiments with a figure in their article, {same} are within {:.0} % of it as they are, {explained} more \
         where a further run changes what it names, and {} are not explained.",
        own.len(),
        AGREES * 100.0,
        own.len() - same - explained
    )
}

fn line(row: &Value, difference: &str) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let quiet = if row["quiet"] == Value::Bool(false) { " (not quiet)" } else { "" };
    let number = |column: &str| row[column].as_f64();
    let word = |column: &str| row[column].as_str().unwrap_or_default();
    let further = if row["reference_cause"].is_string() { "↳ " } else { "" };
    write!(
        text,
        "| {further}{}{quiet} | {} | {} ",
        word("name"),
        word("kernel"),
        word("link_engine")
    )?;
    write!(
        text,
        "| {} ",
        number("rtt_nominal_us").map_or("-".into(), |rtt| format!("{}", rtt / 1e3))
    )?;
    let whole = row["complete"] == Value::Bool(true);
    let goodput = if whole { None } else { number("steady_goodput_bps") }.or(number("goodput_bps"));
    let shown = |rate: Option<f64>| rate.map_or("-".into(), megabytes);
    let (ours, theirs) = match number("reference_frames_bps") {
        Some(theirs) => (
            format!("{}; frames {}", shown(goodput), shown(number("frames_bps"))),
            format!("frames {}", megabytes(theirs)),
        ),
        None => (shown(goodput), shown(number("reference_goodput_bps"))),
    };
    write!(text, "| {ours} | {} | {theirs} ", shown(number("law_bps")))?;
    write!(
        text,
        "| {} ",
        number("reference_ratio").map_or("-".into(), |ratio| format!("{ratio:.2}"))
    )?;
    for (name, share) in
        [("limited_by", "limit_share"), ("limited_by_sockets", "limit_share_sockets")]
    {
        write!(text, "| {} ", limit(row, name, share))?;
    }
    for column in ["retransmission", "window_full", "zero_window"] {
        write!(text, "| {} ", row[column])?;
    }
    writeln!(text, "| {difference} |")?;
    Ok(text)
}

/// Bits per second as MB/s with three digits.
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

    fn row(name: &str, ratio: f64, cause: Option<&str>) -> Value {
        json!({"name": name, "engine": "virtual", "kernel": "6.18.0", "link_engine": "netem", "rtt_nominal_us": 50000,
            "goodput_bps": 800_000_000u64, "steady_goodput_bps": 880_000_000u64, "complete": false, "law_bps": null,
            "reference_goodput_bps": 400_000_000u64, "reference_ratio": ratio, "limited_by": "send_buffer",
            "limit_share": 0.964, "retransmission": 0, "window_full": 3, "zero_window": 0, "reference_cause": cause,
            "quiet": false})
    }

    #[test]
    fn a_row_is_in_megabytes_beside_the_article() {
        let text = table(&json!({ "rows": [row("b2", 2.2, None)] })).unwrap();
        let line = text.lines().find(|line| line.starts_with("| b2")).unwrap();
        assert_eq!(
            line,
            "| b2 (not quiet) | 6.18.0 | netem | 50 | 110 | - | 50.0 | 2.20 | send buffer 96 % | - | 0 | 3 | 0 | not explained |"
        );
        let columns = |line: &str| line.matches('|').count();
        assert!(
            text.lines()
                .filter(|text| text.starts_with('|'))
                .all(|text| columns(text) == columns(line)),
            "{text}"
        );
    }

    #[test]
    fn only_a_further_run_that_agrees_explains() {
        let rows = [
            row("a", 1.3, None),
            row("a/old", 1.04, Some("Linux 6.1")),
            row("b", 1.3, None),
            row("b/old", 1.2, Some("Linux 6.1")),
            row("c", 0.96, None),
        ];
        let text = table(&json!({ "rows": rows })).unwrap();
        let last = |name: &str| {
            let line =
                text.lines().find(|line| line.contains(&format!("{name} (not quiet)"))).unwrap();
            line.trim_end_matches(" |").rsplit("| ").next().unwrap().to_string()
        };
        assert_eq!(last("| a"), "explained by Linux 6.1: 1.04");
        assert_eq!(last("| ↳ a/old"), "changed: Linux 6.1");
        assert_eq!(last("| b"), "not explained (Linux 6.1: 1.20)");
        assert_eq!(last("| c"), "none");
        assert!(
            text.contains("Of 3 experiments with a figure in their article, 1 are within 5 %"),
            "{text}"
        );
        assert!(
            text.contains(
                "1 more where a further run changes what it names, and 1 are not explained."
            ),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for foreign in
            [json!({}), json!({"rows": []}), json!({"rows": [{"name": "b2"}]}), json!([1])]
        {
            assert!(table(&foreign).is_err(), "{foreign}");
        }
    }
}
