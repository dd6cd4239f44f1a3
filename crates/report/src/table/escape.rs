//! Makes foreign texts, such as names of files and scenarios, safe to print.
//!
//! A terminal obeys the control characters that it receives: a name could clear the screen,
//! overwrite a figure, or reverse the order of a line. Everything printed for people passes through
//! here. JSON escapes them itself, and CSV and Parquet are data, where names stay unchanged.

use std::borrow::Cow;

/// Marks, embeddings, overrides and isolates that change the direction of the text around them
/// (Unicode Standard Annex 9, 2), and the separators of lines and paragraphs. Unicode's categories
/// do not count them as control characters.
const FORMATS: [std::ops::RangeInclusive<char>; 4] = [
    '\u{200e}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2066}'..='\u{2069}',
    '\u{61c}'..='\u{61c}',
];

/// `text` in one line, with control characters as Rust writes them: `\n`, `\u{1b}`.
///
/// ```
/// use fullpipe_report::table::escape::in_line;
/// assert_eq!(in_line("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
/// assert_eq!(in_line("größer"), "größer");
/// ```
pub fn in_line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// `text` with its line breaks; other control characters are escaped as by [`in_line`].
pub fn in_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n')
}

fn escaped(text: &str, keeps: fn(char) -> bool) -> Cow<'_, str> {
    let is_plain = |c: char| keeps(c) || !is_obeyed(c);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_plain(c) {
            safe.push(c);
        } else {
            safe.extend(c.escape_default());
        }
    }
    Cow::Owned(safe)
}

/// Whether a terminal obeys `c` rather than shows it.
fn is_obeyed(c: char) -> bool {
    c.is_control() || FORMATS.iter().any(|range| range.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_obeys_is_shown() {
        assert_eq!(in_line("a\tb\r\u{7f}\u{9b}2J\u{202e}"), "a\\tb\\r\\u{7f}\\u{9b}2J\\u{202e}");
        assert_eq!(in_lines("a\n\u{1b}]0;x\u{7}"), "a\n\\u{1b}]0;x\\u{7}");
    }

    proptest! {
        #[test]
        fn nothing_that_is_obeyed_stays_and_plain_text_does(text in any::<String>()) {
            prop_assert!(!in_line(&text).chars().any(is_obeyed));
            prop_assert!(!in_lines(&text).chars().any(|c| c != '\n' && is_obeyed(c)));
            prop_assert_eq!(in_line(&text) == text, !text.chars().any(is_obeyed));
            // Escaping what is escaped changes nothing.
            let once = in_line(&text);
            prop_assert_eq!(in_line(&once), &*once);
        }
    }
}
