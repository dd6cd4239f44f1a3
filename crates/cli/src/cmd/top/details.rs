//! One connection: its rate and limits over time, the time of each limit, and its figures.

use super::list::{arrow, names};
use super::marks::{columns, fitting, letter, style};
use super::row::{Row, share};
use super::screen::Screen;
use super::words::{self, cells, padded};
use fullpipe_flow::account::AccountPart;
use fullpipe_model::limit::Limit;
use fullpipe_model::units::Rate;
use fullpipe_report::connection::account;
use fullpipe_report::table::escape;
use ratatui_core::text::{Line, Span};

/// Lines of the graph of the rate.
const GRAPH: usize = 5;
/// Cells of a limit's bar.
const BAR: usize = 20;
/// The share of the time from which on a wait is shown.
const WORTH_A_LINE: f64 = 0.01;

/// The title, and the lines below it.
pub fn page<'a>(screen: &Screen, width: u16, room: usize) -> (Line<'a>, Vec<Line<'a>>) {
    let found = screen.snapshot.rows.iter().find(|row| Some(row.id) == screen.view.selected);
    let Some(row) = found else {
        return (Line::raw("fullpipe top"), vec![Line::raw(words::of(screen.language).is_gone)]);
    };
    let width = usize::from(width);
    let (title, mut lines) = addresses(screen, row, width);
    if let Some(process) = &row.process {
        let command = escape::in_line(&process.command).into_owned();
        lines.push(Line::raw(fitting(&command, width, screen.charset)));
    }
    let graph = if room > 18 { GRAPH } else { 2 };
    lines.extend(rate_graph(screen, row, width, graph));
    lines.push(Line::raw(""));
    lines.extend(row.times.iter().map(|&time| limit_line(screen, row, time)));
    lines.push(Line::raw(""));
    let waits = row.waits.iter().filter(|part| share(part.time, row.watched) >= WORTH_A_LINE);
    let waits: Vec<Line> = waits.map(|part| wait_line(screen, row, part)).collect();
    if !waits.is_empty() {
        lines.extend(waits);
        lines.push(Line::raw(""));
    }
    lines.extend(facts(screen, row, width));
    (title, lines)
}

fn addresses<'a>(screen: &Screen, row: &Row, width: usize) -> (Line<'a>, Vec<Line<'a>>) {
    let (charset, role) = (screen.charset, words::role(screen.language, row.role));
    let (arrow, names) = (arrow(row.role, charset), names(row));
    let both = format!("{} {arrow} {}", row.local, row.remote);
    let title = format!("{both}  {role}  {names}");
    if cells(&title) <= width {
        return (Line::raw(title), Vec::new());
    }
    let below = vec![
        Line::raw(fitting(&format!("{arrow} {}", row.remote), width, charset)),
        Line::raw(format!("{role}  {names}")),
    ];
    (Line::raw(fitting(&row.local.to_string(), width, charset)), below)
}

/// The rate over the last moments, and below it the letter of the limit of each.
fn rate_graph<'a>(screen: &Screen, row: &Row, width: usize, height: usize) -> Vec<Line<'a>> {
    let rates: Vec<Rate> = row.history.iter().map(|moment| moment.rate).collect();
    let most = rates.iter().max().copied().unwrap_or(Rate::ZERO);
    let heading = words::rates(screen.language, row.rate, most, rates.len(), screen.interval);
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
    let count = ((part * BAR as f64).round() as usize).min(BAR);
    let filled = letter(limit).to_string().repeat(count);
    Line::from(vec![
        Span::raw(padded(screen.language.limit(limit), 30)),
        Span::styled(format!("{filled:<BAR$}"), style(limit, screen.has_colour)),
        Span::raw(format!("{:>6.1} %  {time}", part * 100.0)),
    ])
}

/// What the connection waited for, and whose that time was.
fn wait_line<'a>(screen: &Screen, row: &Row, part: &AccountPart) -> Line<'a> {
    let (owner, what) = account::in_words(part, screen.language);
    let share = share(part.time, row.watched) * 100.0;
    let (owner, what) = (padded(owner, 30), padded(what, BAR));
    Line::raw(format!("{owner}{what}{share:>6.1} %  {}", part.time))
}

/// Names and values, two of them in a line where there is room.
fn facts<'a>(screen: &Screen, row: &Row, width: usize) -> Vec<Line<'a>> {
    const CELL: usize = 39;
    let all: Vec<String> = row
        .facts
        .iter()
        .map(|(name, value)| format!("{} {value}", padded(words::fact(screen.language, name), 20)))
        .collect();
    if width < 2 * CELL {
        return all.into_iter().map(Line::raw).collect();
    }
    all.chunks(2)
        .map(|pair| match pair {
            [left, right] => Line::raw(format!("{} {right}", padded(left, CELL))),
            _ => Line::raw(pair.concat()),
        })
        .collect()
}
