//! The keys, and the letters of the bars.

use super::marks::letter;
use fullpipe_model::limit::Limit;
use ratatui::text::Line;

const KEYS: [(&str, &str); 8] = [
    ("up, down, j, k", "select a connection; PgUp, PgDn, Home, End go further"),
    ("Enter", "show the graphs of the selected one; Esc goes back"),
    ("l r t n a", "order by lost time, rate, retransmitted, process name, address"),
    ("/", "filter: 443, 10.0.0.2, nginx; and, or, not, port N, pid N"),
    ("Esc", "remove the filter"),
    ("p, blank", "hold the picture; sampling goes on"),
    ("q, Ctrl-C", "end"),
    ("Ctrl-Z", "stop; the shell's fg goes on"),
];

/// The page.
pub fn lines<'a>() -> Vec<Line<'a>> {
    let mut lines: Vec<Line> =
        KEYS.iter().map(|(key, does)| Line::raw(format!("{key:<16}{does}"))).collect();
    lines.push(Line::raw(""));
    lines.push(Line::raw("A bar has a letter for each share of the time:"));
    for pair in Limit::ALL.chunks(2) {
        let cells: Vec<String> =
            pair.iter().map(|&limit| format!("{}  {:<39}", letter(limit), words(limit))).collect();
        lines.push(Line::raw(cells.concat().trim_end().to_string()));
    }
    lines.push(Line::raw(""));
    lines.push(Line::raw("LOST is the time that something other than the path and the sending"));
    lines.push(Line::raw("application held the data, over the time that the connection was busy."));
    lines
}

fn words(limit: Limit) -> String {
    if limit.loses_time() { format!("{limit} (lost)") } else { limit.words().into() }
}
