//! Rows of results as a table: what each transfer achieved, what the laws predict, what limited it,
//! and how good the emulation was.

use crate::cells::{NONE, failed, marked_name, optional, remarks, small, sure};
use crate::{Column, Layout, Table, runs::reference, table::figure};

pub use crate::cells::{limited_by, limited_by_in};

use fullpipe_flow::Language;
use fullpipe_flow::schema::RunRow;
use fullpipe_model::units::Bytes;

/// The rows as a table, then the notes of each; with published figures if there are any.
pub fn render(rows: &[RunRow], layout: Layout) -> String {
    if reference::is_in(rows) {
        return reference::render(rows, layout);
    }
    let mut text = table(rows, layout).render(layout);
    for row in rows {
        text += &remarks(row, layout);
    }
    text
}

fn table(rows: &[RunRow], layout: Layout) -> Table<14> {
    let mut table = Table::new([
        Column::text(layout.either("run", "运行")),
        Column::figure(layout.either("RTT asked", "设定 RTT"), "ms").leaves(6),
        Column::figure("RTT p50", "ms").leaves(9),
        Column::figure("window", "kB").leaves(8),
        Column::figure("goodput", "Mbit/s").leaves(5),
        Column::figure("goodput", "MB/s"),
        Column::figure(layout.either("prediction", "预测"), "MB/s"),
        Column::count("retrans").leaves(7),
        Column::count(layout.either("dup ACK", "重复 ACK")).leaves(1),
        Column::count("window full").leaves(4),
        Column::count("zero window").leaves(3),
        Column::text("limited by"),
        Column::figure("sure", "%"),
        Column::figure(layout.either("late p99", "延后 p99"), "us").leaves(2),
    ]);
    for row in rows {
        if row.is_failed() {
            let mut cells: [String; 14] = std::array::from_fn(|_| NONE.into());
            cells[0] = marked_name(row, rows);
            cells[1] = figure::ms(row.rtt_nominal);
            cells[11] = failed(layout);
            table.row(cells);
            continue;
        }
        table.row([
            marked_name(row, rows),
            figure::ms(row.rtt_nominal),
            optional(row.rtt_p50, figure::ms),
            optional(row.window_max.map(|window| window.bytes()), kilobytes),
            figure::mbit_per_s(row.goodput),
            small(row.goodput),
            optional(row.law, small),
            row.retransmission.to_string(),
            row.duplicate_ack.to_string(),
            row.window_full.to_string(),
            row.zero_window.to_string(),
            limited_by_in(row, layout.language),
            sure(row.limit_confidence),
            row.link_late_p99.as_micros().to_string(),
        ]);
    }
    table
}

fn kilobytes(amount: Bytes) -> String {
    format!("{:.1}", amount.as_f64() / 1e3)
}

/// A line of the comparison: its name, and how to show it for a row.
type RowLine<'a> = (&'a str, &'a dyn Fn(&RunRow) -> String);

/// Two rows side by side, figure by figure: what changed.
pub fn before_and_after(before: &RunRow, after: &RunRow, layout: Layout) -> String {
    compared(before, after, layout, usize::MAX)
}

/// The first lines of [`before_and_after`]: what was gained, and what limits it now.
pub fn gained(before: &RunRow, after: &RunRow, layout: Layout) -> String {
    const FIRST: usize = 4;
    compared(before, after, layout, FIRST)
}

fn compared(before: &RunRow, after: &RunRow, layout: Layout, most: usize) -> String {
    let mut table = Table::new([Column::text(""), Column::count("before"), Column::count("after")]);
    let lines: [RowLine<'_>; 12] = [
        ("goodput", &|row| format!("{0} ({0:#})", row.goodput)),
        ("share of the link's rate", &|row| {
            let share = row.rate_nominal.map(|rate| row.goodput.fraction_of(rate));
            optional(share, |share| format!("{} %", figure::percent(share)))
        }),
        ("limited by", &|row| limited_by_in(row, layout.language)),
        ("the prediction", &|row| optional(row.law, |rate| format!("{rate} ({rate:#})"))),
        ("largest receive window", &|row| optional(row.window_max, |window| window.to_string())),
        ("most in flight", &|row| row.in_flight_max.to_string()),
        ("round-trip time, median", &|row| optional(row.rtt_p50, |time| time.to_string())),
        ("transferred", &|row| match layout.language {
            Language::English => format!("{} in {}", row.body, row.duration),
            Language::Chinese => format!("{} 内 {}", row.duration, row.body),
        }),
        ("retransmissions", &|row| row.retransmission.to_string()),
        ("window full", &|row| row.window_full.to_string()),
        ("dropped at the link's queue", &|row| row.queue_dropped.to_string()),
        ("link late, p50 / p99 / max", &|row| {
            format!("{} / {} / {}", row.link_late_p50, row.link_late_p99, row.link_late_max)
        }),
    ];
    for (what, show) in lines.into_iter().take(most) {
        table.row([layout.term(what).into(), show(before), show(after)]);
    }
    table.render(layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::limit::{Cause, Limit};
    use fullpipe_model::units::{Duration, Rate, Window};

    fn row() -> RunRow {
        RunRow {
            name: "b2".into(),
            repetition: 1,
            rtt_nominal: Duration::from_millis(50),
            rate_nominal: Some("1gbit".parse().unwrap()),
            rtt_p50: Some(Duration::from_micros(50_120)),
            window_max: Some(Window::new(Bytes::new(3_145_728))),
            goodput: "55.2MB/s".parse().unwrap(),
            law: Some("55.4MB/s".parse().unwrap()),
            limited_by: Limit::SendBuffer,
            limit_share: 0.97,
            quiet: true,
            ..RunRow::default()
        }
    }

    #[test]
    fn a_row_says_what_it_got_and_what_held_it() {
        let text = render(&[row()], Layout::default());
        let line = text.lines().last().unwrap();
        let cells: Vec<_> =
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert!(
            cells.starts_with(&["b2", "50.00", "50.12", "3145.7", "441.6", "55.2", "55.4"]),
            "{cells:?}"
        );
        assert!(line.contains("send buffer 97 %"), "{text}");
    }

    #[test]
    fn a_noisy_row_is_marked_and_says_why() {
        let noisy = RunRow { quiet: false, notes: vec!["not quiet: late".into()], ..row() };
        let text = render(&[noisy.clone(), RunRow { repetition: 2, ..row() }], Layout::default());
        assert!(
            text.contains("b2 #1 !")
                && text.contains("b2: not quiet: late")
                && text.contains("b2 #2 "),
            "{text}"
        );
    }

    #[test]
    fn a_failed_run_has_no_figures_and_says_why() {
        let failed = RunRow { goodput: Rate::default(), error: Some("no room".into()), ..row() };
        let text = render(&[row(), failed], Layout::default());
        let line = text.lines().find(|line| line.contains("failed")).unwrap();
        assert!(
            !line.contains("441.6") && line.contains(" - ") && !line.contains("0.0 "),
            "{text}"
        );
        assert!(text.ends_with("b2: failed: no room\n"), "{text}");
    }

    #[test]
    fn on_a_narrow_terminal_the_answer_stays_and_the_rest_is_named() {
        let limited_by = Limit::CongestionWindow(Cause::Loss);
        let row = RunRow { name: "articles/b2/linux-6.1".into(), limited_by, ..row() };
        let mut columns = Vec::new();
        for width in [60, 80, 100, 120, 160] {
            let layout = Layout { width: Some(width), ..Layout::default() };
            let text = render(std::slice::from_ref(&row), layout);
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= usize::from(width), "{width}: {longest}\n{text}");
            for kept in ["articles/b2/linux-6.1", "55.2", "55.4", "congestion"] {
                assert!(text.contains(kept), "{width}: {kept}\n{text}");
            }
            assert_eq!(text.contains("not shown"), width < 160, "{text}");
            let heading = text.split('─').next().unwrap();
            columns.push(heading.split_whitespace().count());
        }
        assert!(columns.is_sorted() && columns[0] < columns[4], "{columns:?}");
    }

    #[test]
    fn before_and_after_stand_side_by_side() {
        let after =
            RunRow { goodput: "116MB/s".parse().unwrap(), limited_by: Limit::Link, ..row() };
        let text = before_and_after(&row(), &after, Layout::default());
        assert!(
            text.contains("441.6 Mbit/s (55.2 MB/s)") && text.contains("928 Mbit/s (116 MB/s)"),
            "{text}"
        );
        assert!(text.contains("44.2 %") && text.contains("92.8 %"), "{text}");
    }
}
