//! Tables: columns with their unit in the heading, figures right-aligned, texts left-aligned.
//!
//! The type of a [`Table`] fixes its number of columns, so a row with a cell too many does not
//! compile. comfy-table draws it: it knows the width of characters. Where the width is bounded,
//! `fit` decides which columns stay and where texts break: between words only, and a line below the
//! table says which columns left.
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

mod breaks;
pub mod escape;
pub mod figure;
mod fit;
pub mod paragraph;

use crate::{Charset, Layout, Tone};
use comfy_table::{CellAlignment, LineStyle, TableStyle};
use fit::{Extent, Fitted, longest_line, longest_word, shortened, wrapped};

/// The kind of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    heading: String,
    unit: Option<String>,
    align: CellAlignment,
    leaves: Option<u8>,
}

impl Column {
    /// Text: left-aligned, without a unit.
    pub fn text(heading: impl Into<String>) -> Self {
        Column { heading: heading.into(), unit: None, align: CellAlignment::Left, leaves: None }
    }

    /// Figures in one unit, given in the heading: right-aligned.
    pub fn figure(heading: impl Into<String>, unit: impl Into<String>) -> Self {
        Column { unit: Some(unit.into()), ..Column::count(heading) }
    }

    /// Counts: right-aligned, without a unit.
    pub fn count(heading: impl Into<String>) -> Self {
        Column { align: CellAlignment::Right, ..Column::text(heading) }
    }

    /// The same column, which leaves the table where the terminal is too narrow: those with the
    /// lowest `order` first. Every other column stays.
    pub fn leaves(self, order: u8) -> Self {
        Column { leaves: Some(order), ..self }
    }

    /// The heading with its unit in one line.
    fn name(&self, layout: Layout) -> String {
        let heading = layout.term(&self.heading);
        match self.unit.as_deref() {
            None | Some("") => heading.into(),
            Some(unit) if heading.is_empty() => unit.into(),
            Some(unit) => format!("{heading} ({unit})"),
        }
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
    /// heading, there is no heading line. No line is longer than the layout's width, and no word is
    /// broken: columns leave, and a line below the table names them.
    pub fn render(&self, layout: Layout) -> String {
        let Some(width) = layout.width.map(usize::from) else {
            return self.drawn(&std::array::from_fn::<usize, N, _>(|at| at), None, layout);
        };
        let Fitted { shown, widths } = fit::fit(&self.extents(layout), width);
        let text = match widths {
            Some(widths) => self.drawn(&shown, Some(&widths), layout),
            None => self.listed(&shown, width, layout),
        };
        text + &self.left_out(&shown, layout)
    }

    fn extents(&self, layout: Layout) -> [Extent; N] {
        std::array::from_fn(|at| {
            let column = &self.columns[at];
            let cells = self.rows.iter().map(|row| row[at].as_str());
            let heading = column.unit.as_deref().into_iter().chain([layout.term(&column.heading)]);
            let cell = cells.clone().map(longest_line).max().unwrap_or(0);
            Extent {
                word: cells.chain(heading.clone()).map(longest_word).max().unwrap_or(0),
                cell,
                line: heading.map(longest_line).max().unwrap_or(0).max(cell),
                leaves: column.leaves,
            }
        })
    }

    /// The columns `shown` beside each other, with texts broken where `widths` asks for it.
    fn drawn(&self, shown: &[usize], widths: Option<&[usize]>, layout: Layout) -> String {
        let columns = shown.iter().map(|&at| &self.columns[at]);
        let fitting = |place: usize, text: &str| match widths {
            Some(widths) => wrapped(text, widths[place]),
            None => text.into(),
        };
        let units = columns.clone().any(|column| column.unit.is_some());
        let mut drawn = comfy_table::Table::new();
        let line = match layout.charset {
            Charset::Utf8 => '─',
            Charset::Ascii => '-',
        };
        drawn.load_style(
            TableStyle::new().header_separator(LineStyle::none().fill(line).junction(line)),
        );
        let headed =
            columns.clone().any(|column| !column.heading.is_empty() || column.unit.is_some());
        if headed {
            drawn.set_header(columns.enumerate().map(|(place, column)| {
                let heading = layout.term(&column.heading);
                let heading = match &column.unit {
                    Some(unit) => format!("{heading}\n{unit}"),
                    None if units && widths.is_none() => format!("{heading}\n"),
                    None => heading.into(),
                };
                fitting(place, &heading)
            }));
        }
        for row in &self.rows {
            let cells = shown.iter().enumerate();
            drawn.add_row(cells.map(|(place, &at)| fitting(place, &row[at])).collect::<Vec<_>>());
        }
        for (place, column) in drawn.column_iter_mut().enumerate() {
            column.set_padding((0, if place + 1 == shown.len() { 0 } else { PADDING }));
            column.set_cell_alignment(self.columns[shown[place]].align);
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

    /// The columns `shown` below each other, a paragraph for each row.
    fn listed(&self, shown: &[usize], width: usize, layout: Layout) -> String {
        let names: Vec<String> = shown.iter().map(|&at| self.columns[at].name(layout)).collect();
        let indent = 2 + names.iter().map(|name| longest_line(name)).max().unwrap_or(0);
        let room = width.saturating_sub(indent);
        let mut paragraphs = Vec::new();
        for row in &self.rows {
            let mut paragraph = String::new();
            for (name, &at) in names.iter().zip(shown) {
                let mut first = name.as_str();
                for line in wrapped(&row[at], room).lines() {
                    let line = shortened(line, room, layout.charset);
                    let blanks = " ".repeat(indent.saturating_sub(longest_line(first)));
                    paragraph += format!("{first}{blanks}{line}").trim_end();
                    paragraph.push('\n');
                    first = "";
                }
            }
            paragraphs.push(paragraph);
        }
        paragraphs.join("\n")
    }

    /// The columns that are not shown, and how to see them.
    fn left_out(&self, shown: &[usize], layout: Layout) -> String {
        let names: Vec<String> = (0..N)
            .filter(|at| !shown.contains(at))
            .map(|at| self.columns[at].name(layout))
            .filter(|name| !name.is_empty())
            .collect();
        if names.is_empty() || self.rows.is_empty() {
            return String::new();
        }
        let labels = layout.labels();
        let words = format!("{}{}", names.join(labels.joins), labels.see_hidden);
        let text = paragraph::fill(labels.not_shown, &words, layout.width);
        layout.paint(Tone::Faint, &text) + "\n"
    }
}

#[cfg(test)]
mod tests;
