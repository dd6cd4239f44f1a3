//! Sentences wrapped to the width of the output.

use crate::table::escape;

/// `text` after `first`, wrapped between words to at most `width` characters, with later lines
/// indented by the length of `first`. A word longer than the line is on a line of its own. Without
/// a width it is one line. Control characters are shown, not obeyed.
///
/// ```
/// use fullpipe_report::table::paragraph::fill;
/// assert_eq!(fill("why: ", "the window is small", Some(18)), "why: the window is\n     small");
/// ```
pub fn fill(first: &str, text: &str, width: Option<u16>) -> String {
    let first = escape::in_line(first);
    let indent = first.chars().count();
    let width = width.map_or(usize::MAX, usize::from);
    let mut filled = String::from(&*first);
    let mut column = indent;
    for word in text.split_whitespace().map(escape::in_line) {
        let length = word.chars().count();
        if column > indent {
            if column.saturating_add(1 + length) > width {
                filled.push('\n');
                filled.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            } else {
                filled.push(' ');
                column += 1;
            }
        }
        filled.push_str(&word);
        column += length;
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_keeps_the_words_and_its_bound() {
        let text = "a receive buffer of 6 MiB advertises 3.146 MB (50 % of it, tcp_adv_win_scale 1), at most 503.3 Mbit/s";
        let longest = text.split(' ').map(str::len).max().unwrap();
        for width in 0..200u16 {
            let filled = fill("  ", text, Some(width));
            assert_eq!(
                filled.split_whitespace().collect::<Vec<_>>(),
                text.split(' ').collect::<Vec<_>>()
            );
            let bound = usize::from(width).max(2 + longest);
            assert!(filled.lines().all(|line| line.len() <= bound), "{width}: {filled}");
        }
        assert_eq!(fill("  ", text, None), format!("  {text}"));
    }
}
