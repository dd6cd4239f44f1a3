//! The keys, and the letters of the bars.

use super::marks::letter;
use super::words::{self, padded};
use fullpipe_flow::Language;
use fullpipe_model::limit::Limit;
use ratatui_core::text::Line;

/// The page.
pub fn lines<'a>(language: Language) -> Vec<Line<'a>> {
    let words = words::of(language);
    let mut lines: Vec<Line> = words
        .keys
        .iter()
        .map(|(key, does)| Line::raw(format!("{}{does}", padded(key, 16))))
        .collect();
    lines.push(Line::raw(""));
    lines.push(Line::raw(words.bar_means));
    for pair in Limit::ALL.chunks(2) {
        let mut text = String::new();
        for &limit in pair {
            let name = words::with_loss(language, limit);
            text += &format!("{}  {}", letter(limit), padded(&name, 39));
        }
        lines.push(Line::raw(text.trim_end().to_string()));
    }
    lines.push(Line::raw(""));
    lines.extend(words.lost_means.map(Line::raw));
    lines
}
