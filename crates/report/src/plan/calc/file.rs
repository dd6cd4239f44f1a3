//! How long a file takes.

use super::heading;
use crate::table::{Column, Table};
use crate::{Layout, table::figure};
use fullpipe_flow::Language;
use fullpipe_model::tune::{FileSheet, FileTime, SteadyBy};

/// The times of a file as lines, each with its line break.
pub fn render_file(sheet: &FileSheet, layout: Layout) -> String {
    let amount = sheet.amount;
    let title = match layout.language {
        Language::English => format!("A file of {amount} ({amount:#}) takes at least"),
        Language::Chinese => format!("{amount}（{amount:#}）的文件至少需要"),
    };
    let mut table = Table::new([
        Column::text(""),
        Column::figure("time", "s"),
        Column::figure("mean", "Mbit/s"),
        Column::figure("", "MB/s"),
        Column::figure("connecting, slow start", "%"),
    ]);
    for time in &sheet.times {
        let mean = sheet.amount.per(time.transfer.total);
        table.row([
            by(time, layout.language),
            figure::s(time.transfer.total),
            mean.map_or_else(String::new, figure::mbit_per_s),
            mean.map_or_else(String::new, figure::megabytes_per_s),
            figure::percent(time.transfer.share_lost),
        ]);
    }
    heading(&title, layout) + &table.render(layout)
}

fn by(time: &FileTime, language: Language) -> String {
    let comma = if language == Language::English { ", " } else { "，" };
    let linux = time.kernel.map_or_else(String::new, |kernel| format!("{comma}Linux {kernel}"));
    match (language, time.steady_by) {
        (Language::English, SteadyBy::Path) => "on the full path".into(),
        (Language::English, SteadyBy::Settings) => {
            format!("with the settings before the plan{linux}")
        }
        (Language::English, SteadyBy::Plan) => format!("with the plan{linux}"),
        (Language::English, SteadyBy::Cubic) => "cubic under the loss".into(),
        (Language::English, SteadyBy::Reno) => "reno under the loss, with timeouts".into(),
        (Language::Chinese, SteadyBy::Path) => "路径已满时".into(),
        (Language::Chinese, SteadyBy::Settings) => format!("按方案之前的设置{linux}"),
        (Language::Chinese, SteadyBy::Plan) => format!("按方案{linux}"),
        (Language::Chinese, SteadyBy::Cubic) => "此丢包下的 cubic".into(),
        (Language::Chinese, SteadyBy::Reno) => "此丢包下的 reno，含超时".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::tune::{Path, Question, sheet};
    use fullpipe_model::units::Bytes;

    #[test]
    fn the_mean_and_the_time_are_the_file() {
        let path = Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap());
        let loss = Some("0.1%".parse().unwrap());
        let question = Question { path, buffer: None, kernel: None, loss };
        let amount: Bytes = "2GiB".parse().unwrap();
        let text = render_file(&FileSheet::new(&sheet(&question), amount), Layout::default());
        assert!(text.starts_with("A file of 2.147 GB (2 GiB) takes at least\n"), "{text}");
        let rows: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(rows.len(), 7, "{text}");
        for row in rows {
            let cells: Vec<f64> =
                row.split_whitespace().rev().take(4).map(|cell| cell.parse().unwrap()).collect();
            let [_, megabytes, mbit, seconds] = cells[..] else { panic!("{text}") };
            assert!((seconds * mbit * 1e6 / 8.0 / amount.as_f64() - 1.0).abs() < 0.01, "{row}");
            assert!((mbit / megabytes / 8.0 - 1.0).abs() < 0.01, "{row}");
        }
    }
}
