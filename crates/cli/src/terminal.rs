//! Properties of the terminal. Reports take them as an argument.

use fullpipe_flow::Language;
use fullpipe_kernel::process::wait::has_hung_up;
use fullpipe_report::table::{escape, paragraph};
use fullpipe_report::{Charset, Layout};
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

/// Below this width a table of rows is unreadable, so the terminal may wrap its lines.
const WIDTH_MIN: u16 = 60;

/// Layout for standard output: as wide as the terminal, or plain and unbounded if it is none.
pub fn layout() -> Layout {
    let width = console::Term::stdout().size_checked().map(|(_, columns)| columns.max(WIDTH_MIN));
    let colour = width.is_some() && console::colors_enabled();
    Layout { width, charset: charset(), colour, language: Language::English }
}

/// The same for an answer, in the user's language.
pub fn answer_layout() -> Layout {
    Layout { language: language(), ..layout() }
}

/// The language that the user asked for by option.
static ASKED: OnceLock<Language> = OnceLock::new();

/// Answers in `language`, whatever the locale is.
pub fn speak(language: Language) {
    // Asked once, by the only command line that there is.
    let _ = ASKED.set(language);
}

/// The language of answers: as asked for, or else the locale's (locale(7)), where the terminal can
/// show it.
pub fn language() -> Language {
    if let Some(asked) = ASKED.get() {
        return *asked;
    }
    let named = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find_map(locale);
    let named = named.and_then(|name| Language::of(&name)).unwrap_or_default();
    if charset() == Charset::Utf8 { named } else { Language::English }
}

/// A variable of the locale that is set.
fn locale(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The terminal that the program was started in, if any: to see later whether it was closed.
#[derive(Debug, Clone, Copy)]
pub struct OwnTerminal {
    input: bool,
    error: bool,
}

impl OwnTerminal {
    /// As it is at the start. A closed terminal does not look like one any more.
    pub fn find() -> OwnTerminal {
        let input = std::io::stdin().is_terminal();
        OwnTerminal { input, error: std::io::stderr().is_terminal() }
    }

    /// Whether it is gone. False if there was none.
    pub fn is_closed(self) -> bool {
        // Only a descriptor that is not open any more cannot be asked.
        self.input && has_hung_up(std::io::stdin()).unwrap_or(true)
            || self.error && has_hung_up(std::io::stderr()).unwrap_or(true)
    }
}

/// The character set that the locale names.
pub fn charset() -> Charset {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(locale);
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    if locale.contains("utf-8") || locale.contains("utf8") { Charset::Utf8 } else { Charset::Ascii }
}

/// Writes to standard output; a closed pipe is an error of its own kind.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a value as one JSON document, and nothing else, to standard output.
pub fn print_json(value: &impl serde::Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Width of the terminal on standard error, in columns; `None` if it is none.
pub fn error_width() -> Option<usize> {
    console::Term::stderr().size_checked().map(|(_, columns)| usize::from(columns))
}

/// Breaks `text` at spaces so that no line is longer than `width`. A longer word, such as a command
/// or a path, stays whole.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for word in text.split(' ') {
        let length = console::measure_text_width(word);
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// `text` wrapped to the terminal on standard error; unchanged if it is none.
pub fn fitting(text: &str) -> String {
    let Some(width) = error_width() else { return text.into() };
    text.lines().map(|line| fitting_line(line, width)).collect::<Vec<_>>().join("\n")
}

fn fitting_line(line: &str, width: usize) -> String {
    if language() == Language::English {
        return wrapped(line, width);
    }
    // Chinese has no spaces to break at.
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    paragraph::fill(indent, text, u16::try_from(width).ok())
}

/// Tells the user something beside the result, on standard error. Control characters other than
/// line breaks are shown, not obeyed.
pub fn remark(text: &str) {
    // A remark that nobody can read is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{}", fitting(&escape::in_lines(text)));
}

/// Writes a JSON document as a line of standard error, as it is.
pub fn remark_json(document: &str) {
    let _ = writeln!(std::io::stderr(), "{document}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wrapped_text_has_the_same_words_and_fits(text in "[a-z`]{1,30}( [a-z`]{1,30}){0,20}", width in 1usize..100) {
            let wrapped = wrapped(&text, width);
            prop_assert_eq!(wrapped.replace('\n', " "), text);
            prop_assert!(wrapped.lines().all(|line| line.len() <= width || !line.contains(' ')), "{}", wrapped);
        }
    }
}
