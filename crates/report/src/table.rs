//! Tables: columns with their unit in the heading, figures right-aligned, texts left-aligned.
//!
//! The type of a [`Table`] fixes its number of columns, so a row with a cell too many does not
//! compile. comfy-table draws it: it knows the width of characters and wraps long texts if the
//! width is bounded.
//!
//! ```
//! use fullpipe_report::{Column, Layout, Table};
//! let mut table = Table::new([Column::text("host"), Column::figure("window", "MB")]);
//! table.row(["receiver".into(), "3.146".into()]);
//! table.row(["sender".into(), "12.500".into()]);
//! assert_eq!(
//!     table.render(Layout::default()),
//!     "\
//! host      window
//!               MB
//! ────────────────
//! receiver   3.146
//! sender    12.500
//! "
//! );
//! ```

use crate::{Charset, Layout, Tone, escape};
use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

/// The kind of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    heading: String,
    unit: Option<String>,
    align: CellAlignment,
}

impl Column {
    /// Text: left-aligned, without a unit.
    pub fn text(heading: impl Into<String>) -> Self {
        Column { heading: heading.into(), unit: None, align: CellAlignment::Left }
    }

    /// Figures in one unit, given in the heading: right-aligned.
    pub fn figure(heading: impl Into<String>, unit: impl Into<String>) -> Self {
        Column { heading: heading.into(), unit: Some(unit.into()), align: CellAlignment::Right }
    }

    /// Counts: right-aligned, without a unit.
    pub fn count(heading: impl Into<String>) -> Self {
        Column { heading: heading.into(), unit: None, align: CellAlignment::Right }
    }
}

/// Rows of `N` cells under headings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

/// Blanks between columns, in addition to the one where comfy-table could draw a vertical line.
const PADDING: u16 = 1;

impl<const N: usize> Table<N> {
    /// A table without rows.
    pub fn new(columns: [Column; N]) -> Self {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row. Control characters and line breaks in a cell are shown, not obeyed.
    pub fn row(&mut self, cells: [String; N]) -> &mut Self {
        self.rows.push(cells.map(|cell| escape::in_line(&cell).into_owned()));
        self
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines, each with its line break and without trailing blanks. If no column has a
    /// heading, there is no heading line.
    pub fn render(&self, layout: Layout) -> String {
        let units = self.columns.iter().any(|column| column.unit.is_some());
        let mut drawn = comfy_table::Table::new();
        let line = match layout.charset {
            Charset::Utf8 => '─',
            Charset::Ascii => '-',
        };
        drawn.load_style(
            TableStyle::new().header_separator(LineStyle::none().fill(line).junction(line)),
        );
        if let Some(width) = layout.width {
            drawn.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        let headed =
            self.columns.iter().any(|column| !column.heading.is_empty() || column.unit.is_some());
        if headed {
            drawn.set_header(self.columns.iter().map(|column| match &column.unit {
                Some(unit) => format!("{}\n{unit}", column.heading),
                None if units => format!("{}\n", column.heading),
                None => column.heading.clone(),
            }));
        }
        drawn.add_rows(&self.rows);
        for (index, column) in drawn.column_iter_mut().enumerate() {
            column.set_padding((0, if index + 1 == N { 0 } else { PADDING }));
            column.set_cell_alignment(self.columns[index].align);
        }
        let mut text = String::new();
        let mut heading = headed;
        for drawn_line in drawn.lines() {
            let trimmed = drawn_line.trim_end();
            heading &= !trimmed.starts_with(line);
            text += &if heading { layout.paint(Tone::Heading, trimmed) } else { trimmed.into() };
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure;
    use fullpipe_model::law::window::{Windows, rate};
    use fullpipe_model::units::{Bytes, Duration, Rate, Window};

    /// Article A1 by its law: a window of 1040 bytes at five RTTs.
    fn article_a1() -> Table<3> {
        let mut table = Table::new([
            Column::text("step"),
            Column::figure("RTT", "ms"),
            Column::figure("goodput", "Mbit/s"),
        ]);
        for rtt in [10, 20, 40, 80, 100].map(Duration::from_millis) {
            let windows = Windows { receive: Window::new(Bytes::new(1040)), ..Windows::UNLIMITED };
            let (goodput, _) = rate(windows, rtt, "1gbit".parse().unwrap());
            table.row([format!("a1 {rtt}"), figure::ms(rtt), figure::mbit_per_s(goodput)]);
        }
        table
    }

    const DRAWN: &str = "\
step          RTT  goodput
               ms   Mbit/s
--------------------------
a1 10 ms    10.00      0.8
a1 20 ms    20.00      0.4
a1 40 ms    40.00      0.2
a1 80 ms    80.00      0.1
a1 100 ms  100.00      0.1
";

    #[test]
    fn a_cell_cannot_steer_the_terminal() {
        let mut table = Table::new([Column::text("run"), Column::count("n")]);
        table.row(["a\u{1b}[2J\nb".into(), "1".into()]);
        let text = table.render(Layout::default());
        assert!(text.contains("a\\u{1b}[2J\\nb") && text.lines().count() == 3, "{text:?}");
    }

    #[test]
    fn columns_line_up_and_the_figures_obey_the_law() {
        let ascii = Layout { charset: Charset::Ascii, ..Layout::default() };
        assert_eq!(article_a1().render(ascii), DRAWN);
        // Read back from the drawing: goodput x RTT is the window, within the decimals shown.
        for row in DRAWN.lines().skip(3) {
            let figures: Vec<&str> = row.split_whitespace().collect();
            let rtt: Duration = format!("{} ms", figures[3]).parse().unwrap();
            let goodput: Rate = format!("{} Mbit/s", figures[4]).parse().unwrap();
            let (shown, window) = (goodput.over(rtt).as_f64(), 1040.0);
            let half_a_decimal = Rate::from_bits_per_sec(50_000).over(rtt).as_f64() + 1.0;
            assert!((shown - window).abs() <= half_a_decimal, "{row}: {shown}");
        }
    }

    #[test]
    fn utf8_differs_from_ascii_in_lines_alone() {
        assert_eq!(article_a1().render(Layout::default()), DRAWN.replace('-', "─"));
    }

    #[test]
    fn colour_differs_from_plain_in_escapes_alone() {
        let coloured = article_a1().render(Layout {
            colour: true,
            charset: Charset::Ascii,
            ..Layout::default()
        });
        assert!(coloured.starts_with("\x1b[1mstep"));
        assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), DRAWN);
    }

    #[test]
    fn a_narrow_terminal_breaks_texts() {
        let mut table = Table::new([Column::text("what"), Column::text("why"), Column::count("n")]);
        table.row([
            "window".into(),
            "the receive buffer advertises half of itself".into(),
            "12".into(),
        ]);
        let narrow =
            table.render(Layout { width: Some(32), charset: Charset::Ascii, colour: false });
        assert_eq!(
            narrow,
            "\
what    why                    n
--------------------------------
window  the receive buffer    12
        advertises half of
        itself
"
        );
    }

    #[test]
    fn without_headings_rows_stand_alone() {
        let mut table = Table::new([Column::text(""), Column::count("")]);
        table.row(["packets".into(), "12".into()]).row(["bytes".into(), "17376".into()]);
        let coloured = Layout { colour: true, ..Layout::default() };
        assert_eq!(table.render(coloured), "packets     12\nbytes    17376\n");
    }

    #[test]
    fn no_rows_are_a_heading() {
        let table = Table::new([Column::text("name"), Column::count("packets")]);
        assert!(table.is_empty());
        assert_eq!(
            table.render(Layout { charset: Charset::Ascii, ..Layout::default() }),
            "name  packets\n-------------\n"
        );
    }
}
