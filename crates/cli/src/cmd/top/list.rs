//! The list of connections.

use super::marks::{bar, columns, fitting, style};
use super::row::Row;
use super::screen::Screen;
use super::words::{self, cells, padded};
use fullpipe_flow::Language;
use fullpipe_flow::account::Cause;
use fullpipe_model::limit::End;
use fullpipe_report::connection::account;
use fullpipe_report::{Charset, table::escape};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

/// Cells of the bar of limits, of the longest limit's name and of the rate.
const BAR: usize = 16;
const NAME: usize = 14;
const RATE: usize = 11;
/// What stands before the sparkline: the mark, the share lost, bar, name and rate.
const BEFORE_HISTORY: usize = 2 + 5 + 1 + BAR + 1 + NAME + 1 + RATE + 2;
/// Below it there is neither a bar nor a sparkline.
const NARROW: u16 = 60;

/// How many connections there are, and what is shown of them.
pub fn title<'a>(screen: &Screen, width: u16) -> Line<'a> {
    let (snapshot, view) = (screen.snapshot, screen.view);
    let language = screen.language;
    // Of which time it is, is never left out.
    let then =
        snapshot.then.map_or_else(String::new, |(from, span)| words::then(language, from, span));
    let mut text = format!("fullpipe top  {then}{}", words::counted(language, snapshot));
    let pace = match (snapshot.then, view.is_paused) {
        (Some(_), _) => String::new(),
        (None, true) => words::of(language).paused.into(),
        (None, false) => words::every(language, screen.interval),
    };
    let order = words::ordered(language, view.sort);
    let mut only = String::new();
    if !view.filter.is_any() {
        only = words::only(language, &escape::in_line(&view.filter.to_string()));
    }
    // Where there is no room for all, what hides connections is said first.
    let room = usize::from(width).saturating_sub(cells(&text));
    let choices: [&[&String]; 3] = [&[&pace, &order, &only], &[&order, &only], &[&only]];
    for parts in choices {
        if parts.iter().map(|part| cells(part)).sum::<usize>() <= room {
            parts.iter().for_each(|part| text += part);
            return Line::raw(text);
        }
    }
    Line::raw(text + &only)
}

/// The headings of the columns, as wide as the screen.
pub fn heading<'a>(language: Language, width: u16) -> Line<'a> {
    let [lost, limits, longest, rate, history] = words::of(language).headings;
    let (lost, longest) = (padded(lost, 5), padded(longest, NAME));
    let rate = format!("{}{rate}", " ".repeat(RATE.saturating_sub(cells(rate))));
    let text = if width < NARROW {
        format!("  {lost} {longest} {rate}")
    } else {
        format!("  {lost} {} {longest} {rate}  {history}", padded(limits, BAR))
    };
    Line::raw(padded(&text, width.into()))
}

/// As many connections as fit into `room` lines, the selected one among them.
pub fn lines<'a>(screen: &Screen, width: u16, room: usize) -> Vec<Line<'a>> {
    let rows = screen.view.rows(screen.snapshot);
    if rows.is_empty() {
        return vec![Line::raw(nothing(screen))];
    }
    let selected = screen.view.place(&rows);
    let mut lines = Vec::new();
    if let Some(hidden) = words::hidden(screen.language, screen.snapshot.hidden) {
        lines.push(Line::raw(format!("  {hidden}")));
    }
    let from = first_shown(screen, &rows, width, room.saturating_sub(lines.len()));
    for (index, row) in rows.iter().enumerate().skip(from) {
        if lines.len() >= room {
            break;
        }
        lines.extend(block(screen, row, width, screen.has_keys && index == selected));
    }
    lines
}

/// The first row that is shown so that the selected one is, whole if there is room.
fn first_shown(screen: &Screen, rows: &[&Row], width: u16, room: usize) -> usize {
    let selected = screen.view.place(rows);
    let mut lines = 0;
    for at in (0..=selected).rev() {
        lines += 1 + address_lines(screen, rows[at], width).len();
        if lines > room {
            return (at + 1).min(selected);
        }
    }
    0
}

fn nothing(screen: &Screen) -> String {
    match screen.snapshot.rows.len() {
        0 => words::of(screen.language).nothing_busy.into(),
        busy => words::none_fits(screen.language, busy),
    }
}

/// The lines of one connection.
fn block<'a>(screen: &Screen, row: &Row, width: u16, is_selected: bool) -> Vec<Line<'a>> {
    let mut lines = vec![figures(screen, row, width, is_selected)];
    lines.extend(address_lines(screen, row, width).into_iter().map(Line::raw));
    lines
}

fn figures<'a>(screen: &Screen, row: &Row, width: u16, is_selected: bool) -> Line<'a> {
    let (mark, reversed) =
        if is_selected { ("> ", Style::new().reversed()) } else { ("  ", Style::new()) };
    let name = longest(screen.language, row);
    let limit_style = row.limit().map_or_else(Style::new, |limit| style(limit, screen.has_colour));
    let rate = format!("{:>RATE$}", format!("{:#}", row.rate));
    let mut spans =
        vec![Span::styled(format!("{mark}{:>3.0} % ", row.lost_share() * 100.0), reversed)];
    if width >= NARROW {
        spans.extend(bar(&row.times, BAR, screen.has_colour).spans);
        spans.push(Span::raw(" "));
    }
    spans.push(Span::styled(padded(name, NAME) + " ", limit_style));
    spans.push(Span::raw(rate));
    let room = usize::from(width).saturating_sub(BEFORE_HISTORY);
    if width >= NARROW && room > 0 {
        let rates: Vec<_> = row.history.iter().map(|moment| moment.rate).collect();
        let drawn = columns(&rates, room, 1, screen.charset).pop().unwrap_or_default();
        spans.push(Span::raw(format!("  {drawn}")));
    }
    Line::from(spans)
}

/// What held the connection longest: a limit of its data, or what it waited for.
fn longest(language: Language, row: &Row) -> &'static str {
    let waits = row.waits.first().filter(|wait| wait.cause != Cause::Idle);
    match waits.filter(|wait| wait.time > row.busy()) {
        Some(wait) => account::in_words(wait, language).1,
        None => row.limit().map_or("", |limit| words::short_name(language, limit)),
    }
}

/// `local → remote` for a sender, `local ← remote` for a receiver, then site and process: one
/// line, or two where it does not fit.
fn address_lines(screen: &Screen, row: &Row, width: u16) -> Vec<String> {
    let width = usize::from(width);
    let indent = if width < usize::from(NARROW) { 2 } else { 6 };
    let room = width.saturating_sub(indent);
    let pad = " ".repeat(indent);
    let arrow = arrow(row.role, screen.charset);
    let (local, remote) = (row.local.to_string(), row.remote.to_string());
    let both = format!("{local} {arrow} {remote}");
    let names = names(row);
    let with_process = |address: &str| {
        let left = room.saturating_sub(address.chars().count() + 2);
        let names = fitting(&names, left, screen.charset);
        format!("{pad}{address}  {names}").trim_end().to_string()
    };
    if both.chars().count() + 2 + names.chars().count() <= room {
        return vec![with_process(&both)];
    }
    let remote = fitting(&remote, room.saturating_sub(arrow.chars().count() + 1), screen.charset);
    let first = format!("{pad}{}", fitting(&local, room, screen.charset));
    vec![first, with_process(&format!("{arrow} {remote}"))]
}

/// The way of the data.
pub fn arrow(role: End, charset: Charset) -> &'static str {
    match (role, charset) {
        (End::Sender, Charset::Utf8) => "→",
        (End::Receiver, Charset::Utf8) => "←",
        (End::Sender, Charset::Ascii) => "->",
        (End::Receiver, Charset::Ascii) => "<-",
    }
}

/// The peer's site and the process, as far as they are known: `fra1  curl 4711`.
pub fn names(row: &Row) -> String {
    let site = row.site.iter().map(|place| escape::in_line(&place.site).into_owned());
    let process = row.process.iter();
    let process =
        process.map(|process| format!("{} {}", escape::in_line(&process.name), process.pid));
    site.chain(process).collect::<Vec<String>>().join("  ")
}
