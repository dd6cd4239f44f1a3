//! Sentences wrapped to the width of the output.

use super::breaks::parts;
use crate::table::escape;
use unicode_width::UnicodeWidthStr;

/// `text` after `first`, wrapped between words to at most `width` cells, with later lines indented
/// by the width of `first`. A word longer than the line is on a line of its own. Without
/// a width it is one line. Control characters are shown, not obeyed.
///
/// ```
/// use fullpipe_report::table::paragraph::fill;
/// assert_eq!(fill("why: ", "the window is small", Some(18)), "why: the window is\n     small");
/// ```
pub fn fill(first: &str, text: &str, width: Option<u16>) -> String {
    let first = escape::in_line(first);
    let indent = first.width();
    let width = width.map_or(usize::MAX, usize::from);
    let mut filled = String::from(&*first);
    let mut column = indent;
    for word in text.split_whitespace().map(escape::in_line) {
        for (at, part) in parts(&word).into_iter().enumerate() {
            let (length, blank) = (part.width(), usize::from(at == 0));
            if column > indent {
                if column.saturating_add(blank + length) > width {
                    filled.push('\n');
                    filled.extend(std::iter::repeat_n(' ', indent));
                    column = indent;
                } else if at == 0 {
                    filled.push(' ');
                    column += 1;
                }
            }
            filled.push_str(part);
            column += length;
        }
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

    #[test]
    fn a_chinese_sentence_keeps_its_width_in_cells() {
        let text =
            "发送缓冲区：在 97 % 的时间里，发送缓冲区装满了等待确认的数据（在途最多 2.9 MB）";
        for width in 24..90u16 {
            let filled = fill("  如何改进：", text, Some(width));
            assert!(filled.lines().all(|line| line.width() <= usize::from(width)), "{filled}");
            assert!(filled.lines().all(|line| !line.trim().starts_with(['，', '）'])), "{filled}");
        }
    }
}
