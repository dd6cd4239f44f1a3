//! A graph in a terminal: dots of Braille characters, two columns and four rows in each cell, or
//! letters where the terminal has ASCII alone.

use super::axis::{axis, time_axis};
use super::line::{Graph, Shape};
use crate::{Charset, Layout, Tone};

/// Rows of the drawing.
const ROWS: usize = 14;
/// Columns without a terminal, and the least and the most that are of use.
const WIDTHS: (usize, usize, usize) = (80, 40, 160);
/// Columns for the texts of the values.
const MARGIN: usize = 9;
/// The letters of the lines in ASCII, from the first line.
const LETTERS: [char; 4] = ['.', '-', 'o', 'x'];
/// Colours of the lines by ANSI, from the first line.
const COLOURS: [&str; 4] = ["36", "32", "34", "31"];

/// The cells of a drawing.
struct Canvas {
    width: usize,
    /// Dots of each cell and the line that drew last in it.
    cells: Vec<(u8, usize)>,
}

/// The graph with its heading, axes and legend, each line ended.
pub fn plot(graph: &Graph, layout: Layout) -> String {
    let (usual, least, most) = WIDTHS;
    let width = layout.width.map_or(usual, usize::from).clamp(least, most) - MARGIN - 1;
    let mut canvas = Canvas { width, cells: vec![(0, 0); width * ROWS] };
    let (min, max) = (graph.min(), graph.max());
    for (number, line) in graph.lines.iter().enumerate() {
        let columns = line.columns(graph.seconds, width * 2);
        for (column, span) in columns.iter().enumerate() {
            let Some(span) = span else { continue };
            let [top, bottom] = [span.max, span.min]
                .map(|value| row_of(value, (min, max), ROWS * 4).clamp(0.0, (ROWS * 4 - 1) as f64));
            for dot in top as usize..=bottom as usize {
                canvas.dot(column, dot, number);
            }
        }
    }
    let values = axis(graph.quantity, min, max, 4);
    let mut text = format!("{} [{}]\n", layout.paint(Tone::Heading, graph.title), values.unit);
    for row in 0..ROWS {
        // The value whose row this is.
        let mut ticks = values.ticks.iter();
        let label = ticks.find(|(value, _)| row_of(*value, (min, max), ROWS) as usize == row);
        let label = label.map_or("", |(_, text)| text);
        text += &format!(
            "{label:>MARGIN$}{}",
            if label.is_empty() { edge(layout).0 } else { edge(layout).1 }
        );
        text += canvas.row(row, layout).trim_end();
        text.push('\n');
    }
    text += &times(graph.seconds, width, layout);
    text + &legend(graph, layout)
}

/// How far down a value is, in rows, where `rows` reach from `max` to `min`.
fn row_of(value: f64, (min, max): (f64, f64), rows: usize) -> f64 {
    let share = if max > min { (value - min) / (max - min) } else { 0.0 };
    ((1.0 - share) * (rows - 1) as f64).round()
}

/// The left edge: beside no value, and beside one.
fn edge(layout: Layout) -> (char, char) {
    match layout.charset {
        Charset::Utf8 => ('│', '┤'),
        Charset::Ascii => ('|', '+'),
    }
}

impl Canvas {
    fn dot(&mut self, column: usize, row: usize, line: usize) {
        let cell = row / 4 * self.width + column / 2;
        if let Some((dots, drawn)) = self.cells.get_mut(cell) {
            *dots |= BRAILLE[column % 2][row % 4];
            *drawn = (*drawn).max(line);
        }
    }

    fn row(&self, row: usize, layout: Layout) -> String {
        let mut text = String::new();
        let cells = &self.cells[row * self.width..(row + 1) * self.width];
        for run in cells.chunk_by(|a, b| (a.0 == 0) == (b.0 == 0) && a.1 == b.1) {
            let line = run[0].1;
            let drawn: String = run.iter().map(|(dots, _)| cell(*dots, line, layout)).collect();
            if layout.colour && run[0].0 != 0 {
                text += &format!("\x1b[{}m{drawn}\x1b[0m", COLOURS[line % COLOURS.len()]);
            } else {
                text += &drawn;
            }
        }
        text
    }
}

/// The bits of a Braille character's dots, by column and row (Unicode Standard, chapter 21.1).
const BRAILLE: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

fn cell(dots: u8, line: usize, layout: Layout) -> char {
    match layout.charset {
        _ if dots == 0 => ' ',
        Charset::Utf8 => char::from_u32(0x2800 + u32::from(dots)).unwrap_or('*'),
        Charset::Ascii => LETTERS[line % LETTERS.len()],
    }
}

/// The axis of time.
fn times(seconds: f64, width: usize, layout: Layout) -> String {
    let axis = time_axis(seconds, (width / 14).max(2));
    let (line, corner) = match layout.charset {
        Charset::Utf8 => ('─', '└'),
        Charset::Ascii => ('-', '+'),
    };
    let mut labels = " ".repeat(MARGIN + 1);
    for (value, text) in &axis.ticks {
        let at = MARGIN + 1 + ((value / seconds) * (width - 1) as f64) as usize;
        let text = format!("{text} {}", axis.unit);
        if labels.len() <= at && at + text.len() <= MARGIN + 1 + width {
            labels += &" ".repeat(at - labels.len());
            labels += &text;
        } else if labels.trim().is_empty() {
            labels += &text;
        }
    }
    let rule: String = std::iter::repeat_n(line, width).collect();
    format!("{}{corner}{rule}\n{labels}\n", " ".repeat(MARGIN))
}

fn legend(graph: &Graph, layout: Layout) -> String {
    let mut parts = Vec::new();
    for (number, line) in graph.lines.iter().enumerate().filter(|(_, line)| !line.spans.is_empty())
    {
        let sample = match (layout.charset, line.shape) {
            (Charset::Ascii, _) => LETTERS[number % LETTERS.len()].to_string(),
            (Charset::Utf8, Shape::Stair) => "⠒⠒".into(),
            (Charset::Utf8, _) => "⠶".into(),
        };
        let sample = if layout.colour {
            format!("\x1b[{}m{sample}\x1b[0m", COLOURS[number % COLOURS.len()])
        } else {
            sample
        };
        parts.push(format!("{sample} {}", line.name));
    }
    format!("{}{}\n", " ".repeat(MARGIN + 1), parts.join("   "))
}
