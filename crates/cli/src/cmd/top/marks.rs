//! The parts of the picture: letters and colours of limits, bars, sparklines, shortened texts.
//!
//! Colour only repeats what letters say, so that a screen without colours says the same.

use super::row::share;
use fullpipe_model::limit::{Cause, Limit};
use fullpipe_model::units::{Duration, Rate};
use fullpipe_report::Charset;
use ratatui_core::style::{Color, Style};
use ratatui_core::text::{Line, Span};

/// The letter of a limit in bars.
pub fn letter(limit: Limit) -> char {
    match limit {
        Limit::ReceiveWindow => 'W',
        Limit::ReceiverApplication => 'R',
        Limit::SendBuffer => 'B',
        Limit::SenderApplication => 'A',
        Limit::CongestionWindow(Cause::SlowStart) => 'S',
        Limit::CongestionWindow(Cause::Loss) => 'L',
        Limit::Link => '=',
        Limit::ApplicationWindow => 'P',
        Limit::Unknown => '?',
    }
}

/// Red loses, green is a full path; the application and the unknown have no colour.
pub fn style(limit: Limit, has_colour: bool) -> Style {
    match limit {
        _ if !has_colour => Style::new(),
        Limit::Link => Style::new().fg(Color::Green),
        losing if losing.loses_time() => Style::new().fg(Color::Red),
        _ => Style::new(),
    }
}

/// How `width` cells are divided among the limits, by largest remainders; empty without time.
fn cells(times: &[(Limit, Duration)], width: usize) -> Vec<(Limit, usize)> {
    let whole = times.iter().fold(Duration::ZERO, |sum, (_, time)| sum.saturating_add(*time));
    if whole == Duration::ZERO {
        return Vec::new();
    }
    let exact = |time: Duration| share(time, whole) * width as f64;
    let mut cells: Vec<(Limit, usize)> =
        times.iter().map(|&(limit, time)| (limit, exact(time) as usize)).collect();
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by(|&a, &b| exact(times[b].1).fract().total_cmp(&exact(times[a].1).fract()));
    let missing = width.saturating_sub(cells.iter().map(|(_, count)| count).sum());
    for index in order.into_iter().take(missing) {
        cells[index].1 += 1;
    }
    cells
}

/// The shares of the limits as a bar of letters, always `width` cells.
pub fn bar(times: &[(Limit, Duration)], width: usize, has_colour: bool) -> Line<'static> {
    let cells = cells(times, width);
    let filled: usize = cells.iter().map(|(_, count)| count).sum();
    let mut spans: Vec<Span> = cells
        .into_iter()
        .map(|(limit, count)| {
            Span::styled(letter(limit).to_string().repeat(count), style(limit, has_colour))
        })
        .collect();
    spans.push(Span::raw(" ".repeat(width.saturating_sub(filled))));
    Line::from(spans)
}

/// Eighths of a cell, from none to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII.
const ASCII: [char; 9] = [' ', '.', '.', ':', ':', '-', '=', '+', '#'];

/// The last `width` rates as columns `height` cells high, top line first; the highest fills them.
pub fn columns(rates: &[Rate], width: usize, height: usize, charset: Charset) -> Vec<String> {
    let marks = if charset == Charset::Utf8 { EIGHTHS } else { ASCII };
    let shown = &rates[rates.len().saturating_sub(width)..];
    let most = shown.iter().max().copied().unwrap_or(Rate::ZERO);
    let steps = 8 * height;
    let levels = shown.iter().map(|rate| match most {
        Rate::ZERO => 0,
        // What moves is never nothing.
        _ => ((rate.fraction_of(most) * steps as f64).round() as usize)
            .max(usize::from(*rate > Rate::ZERO)),
    });
    let lines = (0..height).map(|line| {
        let below = 8 * (height - 1 - line);
        let drawn: String =
            levels.clone().map(|level| marks[level.saturating_sub(below).min(8)]).collect();
        format!("{}{drawn}", " ".repeat(width - shown.len()))
    });
    lines.collect()
}

/// `text` in at most `width` cells, with a mark where something is left out in its middle: both
/// ends of an address say more than its beginning. Addresses and numbers are ASCII.
pub fn fitting(text: &str, width: usize, charset: Charset) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.into();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let (head, tail) = (room - room / 2, room / 2);
    let mark = if charset == Charset::Utf8 { '…' } else { '~' };
    let end = &letters[letters.len() - tail..];
    letters[..head].iter().chain([&mark]).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_limit_has_its_own_letter() {
        let mut letters: Vec<char> = Limit::ALL.map(letter).to_vec();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), Limit::ALL.len());
        assert!(Limit::ALL.into_iter().all(|limit| style(limit, false) == Style::new()));
    }

    #[test]
    fn a_bar_shows_shares() {
        let seconds = Duration::from_secs;
        let times = [(Limit::SendBuffer, seconds(3)), (Limit::Link, seconds(1))];
        assert_eq!(bar(&times, 8, true).to_string(), "BBBBBB==");
        assert_eq!(bar(&[], 4, true).to_string(), "    ");
    }

    #[test]
    fn columns_rise_to_the_highest() {
        let rates = [0, 1, 4, 8].map(Rate::from_bits_per_sec);
        assert_eq!(columns(&rates, 5, 1, Charset::Utf8), ["  ▁▄█"]);
        assert_eq!(columns(&rates, 3, 2, Charset::Utf8), ["  █", "▂██"]);
        assert_eq!(columns(&rates, 4, 1, Charset::Ascii), [" .:#"]);
        assert_eq!(columns(&[Rate::ZERO; 2], 2, 1, Charset::Utf8), ["  "]);
    }

    proptest! {
        #[test]
        fn bars_columns_and_texts_keep_their_width(
            times in proptest::collection::vec(0_u64..1 << 40, 0..8),
            rates in proptest::collection::vec(any::<u64>(), 0..200),
            width in 0_usize..130, height in 0_usize..9, text in "[a-z:]{0,60}",
        ) {
            let times: Vec<(Limit, Duration)> = Limit::ALL
                .into_iter()
                .zip(times.iter().map(|nanos| Duration::from_nanos(*nanos)))
                .collect();
            prop_assert_eq!(bar(&times, width, true).width(), width);
            let rates: Vec<Rate> = rates.into_iter().map(Rate::from_bits_per_sec).collect();
            let lines = columns(&rates, width, height, Charset::Utf8);
            prop_assert_eq!(lines.len(), height);
            prop_assert!(lines.iter().all(|line| line.chars().count() == width));
            prop_assert!(fitting(&text, width, Charset::Utf8).chars().count() <= width);
        }
    }
}
