use super::line::Span;
use super::*;
use crate::{Charset, Layout};

fn graph() -> Graph {
    let span = |at: f64, value: f64| Span { at, min: value, max: value, last: value };
    let ramp = (0..100).map(|step| span(f64::from(step) / 50.0, f64::from(step) * 1e6));
    let flat = Line {
        name: "receive window",
        shape: Shape::Stair,
        spans: vec![span(0.0, 50e6), span(1.9, 50e6)],
    };
    let ramp = Line { name: "sent", shape: Shape::Dots, spans: ramp.collect() };
    Graph {
        name: "sequence",
        title: "Sequence numbers",
        quantity: Quantity::Bytes,
        lines: vec![flat, ramp],
        seconds: 2.0,
    }
}

#[test]
fn a_plot_fits_the_terminal_and_shows_where_the_lines_are() {
    for (width, charset) in [(80, Charset::Utf8), (60, Charset::Ascii), (200, Charset::Utf8)] {
        let layout = Layout { width: Some(width), charset, ..Layout::default() };
        let text = plot(&graph(), layout);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(width), "{widest} of {width}:\n{text}");
        assert!(text.starts_with("Sequence numbers [MB]\n"), "{text}");
        assert!(text.contains("receive window") && text.contains("sent"), "{text}");
        // The ramp ends at the top right and begins at the bottom left.
        let rows: Vec<&str> = text.lines().skip(1).take(14).collect();
        let last = |row: &str| row.trim_end().chars().count();
        assert!(last(rows[0]) > usize::from(width.min(160)) - 5, "{text}");
        assert!(last(rows[13]) < usize::from(width.min(160)) / 2, "{text}");
        assert_eq!(charset == Charset::Ascii, text.is_ascii(), "{text}");
    }
}

#[test]
fn a_plot_has_colours_only_where_the_terminal_has() {
    let layout = Layout { width: Some(80), colour: true, ..Layout::default() };
    assert!(plot(&graph(), layout).contains("\x1b[32m"));
    assert!(!plot(&graph(), Layout { colour: false, ..layout }).contains('\x1b'));
}

#[test]
fn a_picture_is_small_and_holds_foreign_text_as_text() {
    let picture = svg(&graph(), "</text><script>alert(1)</script>\u{1}", Theme::Dark);
    assert!(picture.len() < 40_000, "{}", picture.len());
    assert!(!picture.contains("<script") && !picture.contains('\u{1}'), "{picture}");
    assert_eq!(picture.matches("<path").count(), 2);
    assert!(picture.ends_with("</svg>\n"));
}

#[test]
fn a_graph_without_points_or_time_can_be_drawn() {
    let empty = Graph { lines: Vec::new(), seconds: 0.0, ..graph() };
    assert!(empty.is_empty());
    assert!(plot(&empty, Layout::default()).lines().count() > 10);
    assert!(svg(&empty, "", Theme::Light).contains("</svg>"));
}
