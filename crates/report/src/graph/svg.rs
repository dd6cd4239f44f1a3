//! A graph as an SVG picture, for papers and READMEs: it needs nothing but a viewer's own font.

use super::axis::{axis, time_axis};
use super::line::{ColumnSpan, Graph, Line, Shape};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Dark lines on white.
    #[default]
    Light,
    /// Light lines on black.
    Dark,
}

/// Width and height of the picture.
const SIZE: (f64, f64) = (960.0, 360.0);
/// Left, top, right and bottom of the drawing, from the picture's edges.
const MARGINS: (f64, f64, f64, f64) = (84.0, 64.0, 24.0, 44.0);

/// The colours of a theme.
struct Colours {
    paper: &'static str,
    ink: &'static str,
    faint: &'static str,
    lines: [&'static str; 4],
}

impl Theme {
    fn colours(self) -> Colours {
        match self {
            Theme::Light => Colours {
                paper: "#ffffff",
                ink: "#1f2430",
                faint: "#d9dde5",
                lines: ["#0f766e", "#b45309", "#1d4ed8", "#be123c"],
            },
            Theme::Dark => Colours {
                paper: "#12151c",
                ink: "#e8ebf2",
                faint: "#343a48",
                lines: ["#2dd4bf", "#fbbf24", "#7aa2ff", "#fb7185"],
            },
        }
    }
}

/// Places in the picture.
struct PlotFrame {
    min: f64,
    max: f64,
    seconds: f64,
}

impl PlotFrame {
    fn x(&self, seconds: f64) -> f64 {
        let share = if self.seconds > 0.0 { seconds / self.seconds } else { 0.0 };
        MARGINS.0 + share * width()
    }

    fn y(&self, value: f64) -> f64 {
        let share =
            if self.max > self.min { (value - self.min) / (self.max - self.min) } else { 0.0 };
        SIZE.1 - MARGINS.3 - share * (SIZE.1 - MARGINS.1 - MARGINS.3)
    }
}

fn width() -> f64 {
    SIZE.0 - MARGINS.0 - MARGINS.2
}

/// The graph as a picture. `subtitle` is a line below the heading; it may be any text.
pub fn svg(graph: &Graph, subtitle: &str, theme: Theme) -> String {
    let colours = theme.colours();
    let frame = PlotFrame { min: graph.min(), max: graph.max() * 1.04, seconds: graph.seconds };
    let (w, h) = SIZE;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\" role=\"img\">\n<title>{0}</title>\n\
         <rect width=\"{w}\" height=\"{h}\" fill=\"{1}\"/>\n",
        graph.title, colours.paper
    );
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"24\" fill=\"{ink}\" font-size=\"15\" font-weight=\"600\">{}</text>\n\
         <text x=\"{0}\" y=\"42\" fill=\"{ink}\" opacity=\"0.75\">{}</text>",
        MARGINS.0,
        graph.title,
        escaped(subtitle),
        ink = colours.ink,
    );
    axes(&mut out, graph, &frame, &colours);
    for (number, line) in graph.lines.iter().enumerate() {
        let colour = colours.lines[number % colours.lines.len()];
        draw(&mut out, line, &frame, colour);
    }
    legend(&mut out, graph, &colours);
    out + "</svg>\n"
}

fn axes(out: &mut String, graph: &Graph, frame: &PlotFrame, colours: &Colours) {
    let (ink, faint) = (colours.ink, colours.faint);
    let values = axis(graph.quantity, frame.min, frame.max, 5);
    for (value, text) in &values.ticks {
        let y = frame.y(*value);
        let _ = writeln!(
            out,
            "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{faint}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"{ink}\">{text} {}</text>",
            MARGINS.0,
            SIZE.0 - MARGINS.2,
            MARGINS.0 - 8.0,
            y + 4.0,
            values.unit,
        );
    }
    let times = time_axis(graph.seconds, 8);
    for (value, text) in &times.ticks {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{ink}\">{text} {}</text>",
            frame.x(*value),
            SIZE.1 - MARGINS.3 + 20.0,
            times.unit,
        );
    }
}

fn draw(out: &mut String, line: &Line, frame: &PlotFrame, colour: &str) {
    let columns = line.columns(frame.seconds, width() as usize);
    let mut path = String::new();
    let mut previous: Option<usize> = None;
    for (at, span) in columns.iter().enumerate() {
        let Some(ColumnSpan { min, max }) = *span else { continue };
        let x = MARGINS.0 + at as f64 + 0.5;
        let joined = line.shape == Shape::Stair && previous.is_some_and(|last| last + 1 == at);
        let letter = if joined { 'L' } else { 'M' };
        let (low, high) = (frame.y(min), frame.y(max));
        // A dot has some height, or it could not be seen.
        let high = if line.shape != Shape::Stair && low - high < 2.0 { low - 2.0 } else { high };
        let _ = write!(path, "{letter}{x:.1} {low:.1}");
        if low - high > 0.05 {
            let _ = write!(path, "V{high:.1}");
        }
        previous = Some(at);
    }
    if !path.is_empty() {
        let stroke = if line.shape == Shape::Stair { 1.4 } else { 2.0 };
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{stroke}\"/>"
        );
    }
}

fn legend(out: &mut String, graph: &Graph, colours: &Colours) {
    let mut right = SIZE.0 - MARGINS.2;
    for (number, line) in graph.lines.iter().enumerate().rev() {
        if line.spans.is_empty() {
            continue;
        }
        let colour = colours.lines[number % colours.lines.len()];
        let _ = writeln!(
            out,
            "<text x=\"{right:.0}\" y=\"24\" text-anchor=\"end\" fill=\"{}\"><tspan fill=\"{colour}\">&#9632;</tspan> \
             {}</text>",
            colours.ink, line.name,
        );
        // A character of East Asian scripts is twice as wide.
        right -= 7.0 * line.name.width() as f64 + 28.0;
    }
}

/// A foreign text within XML; control characters, which XML cannot hold, are left out.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            '"' => safe += "&quot;",
            c => safe.push(c),
        }
    }
    safe
}
