//! Rows beside published figures: ours, theirs, and why they differ.

use crate::cells::{NONE, failed, limited_by_in, marked_name, optional, remarks, small};
use crate::{
    Column, Layout, Table,
    table::{figure, paragraph},
};
use fullpipe_flow::schema::RunRow;
use fullpipe_model::units::Rate;

/// Whether any row has a published figure or note.
pub fn is_in(rows: &[RunRow]) -> bool {
    rows.iter().any(|row| {
        row.reference_goodput.is_some()
            || row.reference_frames.is_some()
            || row.reference_note.is_some()
    })
}

/// Ours and theirs in one table, with the rows that explain a difference after the row that they
/// explain; below it the notes of both sides.
pub fn render(rows: &[RunRow], layout: Layout) -> String {
    let mut table = Table::new([
        Column::text(layout.either("run", "运行")),
        Column::text(layout.either("kernel", "内核")).leaves(3),
        Column::figure("RTT", "ms").leaves(5),
        Column::figure("window", "kB").leaves(4),
        Column::figure(layout.either("ours", "本次"), "MB/s"),
        Column::figure(layout.either("prediction", "预测"), "MB/s").leaves(6),
        Column::figure(layout.either("article", "文章"), "MB/s"),
        Column::count(layout.either("ours / article", "本次 / 文章")),
        Column::text("limited by"),
        Column::count("retrans").leaves(2),
        Column::count("window full").leaves(1),
        Column::text(layout.either("changed, to show the cause", "为显示原因所作的改动")),
    ]);
    for row in rows {
        if row.is_failed() {
            let mut cells: [String; 12] = std::array::from_fn(|_| NONE.into());
            cells[0] = marked_name(row, rows);
            cells[1] = row.kernel.clone();
            cells[2] = figure::ms(row.rtt_nominal);
            cells[8] = failed(layout);
            table.row(cells);
            continue;
        }
        table.row([
            marked_name(row, rows),
            row.kernel.clone(),
            figure::ms(row.rtt_nominal),
            optional(row.window_max, |window| format!("{:.1}", window.bytes().as_f64() / 1e3)),
            small(ours(row)),
            optional(row.law, small),
            optional(row.reference_frames.or(row.reference_goodput), small),
            optional(row.reference_ratio, |ratio| format!("{ratio:.2}")),
            limited_by_in(row, layout.language),
            row.retransmission.to_string(),
            row.window_full.to_string(),
            row.reference_cause.clone().unwrap_or_default(),
        ]);
    }
    let mut text = table.render(layout);
    for row in rows {
        if let Some(note) = &row.reference_note {
            let lead = format!("{}{} ", row.name, layout.either(", the article:", "，文章："));
            text += &paragraph::fill(&lead, note, layout.width);
            text.push('\n');
        }
        text += &remarks(row, layout);
    }
    let (lead, ours) = layout.either(("ours: ", OURS), ("本次：", OURS_ZH));
    text += &paragraph::fill(lead, ours, layout.width);
    text.push('\n');
    text
}

const OURS: &str = "goodput of the whole transfer; of one that its duration cut short, over the second half of its bytes; \
                    whole frames, both ways, where the article counted those";

const OURS_ZH: &str =
    "整个传输的有效吞吐；因时长而截短的，取其字节的后一半；文章按整帧计的，取双向的整帧";

/// Our figure that compares with theirs.
fn ours(row: &RunRow) -> Rate {
    match (row.reference_frames.and(row.frames), row.complete, row.steady_goodput) {
        (Some(frames), ..) => frames,
        (None, false, Some(steady)) => steady,
        _ => row.goodput,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::Duration;

    fn row(name: &str) -> RunRow {
        RunRow {
            name: name.into(),
            kernel: "6.12.117".into(),
            rtt_nominal: Duration::from_millis(50),
            goodput: "50MB/s".parse().unwrap(),
            steady_goodput: "55.2MB/s".parse().ok(),
            quiet: true,
            ..RunRow::default()
        }
    }

    #[test]
    fn a_transfer_cut_short_stands_with_its_steady_goodput() {
        let cut = RunRow {
            reference_goodput: "60MB/s".parse().ok(),
            reference_ratio: Some(0.92),
            ..row("b2")
        };
        let whole = RunRow {
            complete: true,
            reference_cause: Some("kernel".into()),
            ..row("b2/linux-6.1")
        };
        let counted = RunRow {
            frames: "12.9kB/s".parse().ok(),
            reference_frames: "12.3kB/s".parse().ok(),
            goodput: "11kB/s".parse().unwrap(),
            ..row("a1")
        };
        let silent = RunRow { reference_note: Some("very slow".into()), ..row("b5") };
        let text = render(&[cut.clone(), whole, counted, silent], Layout::default());
        let line =
            |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_string();
        assert!(
            line("b2 ").contains("55.2")
                && line("b2 ").contains("60.0")
                && line("b2 ").contains("0.92"),
            "{text}"
        );
        assert!(
            line("a1 ").contains("0.013") && line("a1 ").contains("0.012"),
            "frames beside frames: {text}"
        );
        assert!(
            line("b2/linux-6.1").contains("50.0") && line("b2/linux-6.1").ends_with("kernel"),
            "{text}"
        );
        assert!(text.contains("b5, the article: very slow\n"), "{text}");
        assert!(is_in(&[cut]) && !is_in(&[row("quick")]));
    }
}
