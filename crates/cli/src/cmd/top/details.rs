//! One connection: its rate and limits over time, the time of each limit, and its figures.

use super::list::{arrow, process};
use super::marks::{columns, fitting, letter, style};
use super::row::{Row, share};
use super::screen::Screen;
use fullpipe_model::limit::Limit;
use fullpipe_model::units::Rate;
use fullpipe_report::{Charset, table::escape};
use ratatui::text::{Line, Span};

/// Lines of the graph of the rate.
const GRAPH: usize = 5;
/// Cells of a limit's bar.
const BAR: usize = 20;

/// The title, and the lines below it.
pub fn page<'a>(screen: &Screen, width: u16, room: usize) -> (Line<'a>, Vec<Line<'a>>) {
    let found = screen.snapshot.rows.iter().find(|row| Some(row.id) == screen.view.selected);
    let Some(row) = found else {
        let text = "This connection is closed or idle; Esc goes back to the list.";
        return (Line::raw("fullpipe top"), vec![Line::raw(text)]);
    };
    let width = usize::from(width);
    let (title, mut lines) = addresses(row, width, screen.charset);
    if let Some(process) = &row.process {
        let command = escape::in_line(&process.command).into_owned();
        lines.push(Line::raw(fitting(&command, width, screen.charset)));
    }
    let graph = if room > 18 { GRAPH } else { 2 };
    lines.extend(rate_graph(screen, row, width, graph));
    lines.push(Line::raw(""));
    lines.extend(row.times.iter().map(|&time| limit_line(screen, row, time)));
    lines.push(Line::raw(""));
    lines.extend(facts(row, width));
    (title, lines)
}

fn addresses<'a>(row: &Row, width: usize, charset: Charset) -> (Line<'a>, Vec<Line<'a>>) {
    let (arrow, process) = (arrow(row.role, charset), process(row));
    let both = format!("{} {arrow} {}", row.local, row.remote);
    let title = format!("{both}  {}  {process}", row.role);
    if title.chars().count() <= width {
        return (Line::raw(title), Vec::new());
    }
    let below = vec![
        Line::raw(fitting(&format!("{arrow} {}", row.remote), width, charset)),
        Line::raw(format!("{}  {process}", row.role)),
    ];
    (Line::raw(fitting(&row.local.to_string(), width, charset)), below)
}

/// The rate over the last moments, and below it the letter of the limit of each.
fn rate_graph<'a>(screen: &Screen, row: &Row, width: usize, height: usize) -> Vec<Line<'a>> {
    let rates: Vec<Rate> = row.history.iter().map(|moment| moment.rate).collect();
    let most = rates.iter().max().copied().unwrap_or(Rate::ZERO);
    let heading = format!(
        "{:#} now, {most:#} at most in {} moments of {}",
        row.rate,
        rates.len(),
        screen.interval
    );
    let mut lines = vec![Line::raw(heading)];
    lines.extend(columns(&rates, width, height, screen.charset).into_iter().map(Line::raw));
    let shown = &row.history[row.history.len().saturating_sub(width)..];
    let mut strip = vec![Span::raw(" ".repeat(width - shown.len()))];
    strip.extend(shown.iter().map(|moment| match moment.limit {
        Some(limit) => Span::styled(letter(limit).to_string(), style(limit, screen.has_colour)),
        None => Span::raw(" "),
    }));
    lines.push(Line::from(strip));
    lines
}

fn limit_line<'a>(
    screen: &Screen,
    row: &Row,
    (limit, time): (Limit, fullpipe_model::units::Duration),
) -> Line<'a> {
    let part = share(time, row.busy());
    let cells = ((part * BAR as f64).round() as usize).min(BAR);
    let filled = letter(limit).to_string().repeat(cells);
    Line::from(vec![
        Span::raw(format!("{:<30}", limit.words())),
        Span::styled(format!("{filled:<BAR$}"), style(limit, screen.has_colour)),
        Span::raw(format!("{:>6.1} %  {time}", part * 100.0)),
    ])
}

/// Names and values, two of them in a line where there is room.
fn facts<'a>(row: &Row, width: usize) -> Vec<Line<'a>> {
    const CELL: usize = 39;
    let cells: Vec<String> =
        row.facts.iter().map(|(name, value)| format!("{name:<20} {value}")).collect();
    if width < 2 * CELL {
        return cells.into_iter().map(Line::raw).collect();
    }
    cells
        .chunks(2)
        .map(|pair| match pair {
            [left, right] => Line::raw(format!("{left:<CELL$} {right}")),
            _ => Line::raw(pair.concat()),
        })
        .collect()
}
