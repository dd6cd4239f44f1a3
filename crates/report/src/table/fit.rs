//! A table made to fit a terminal: which columns stay, how wide each is, and where a text breaks.
//!
//! No word is ever broken. While texts would be squeezed, columns that may leave do so, in the
//! order that the table gives them. The room that is left over goes to the columns that need least
//! of it, and the longest text gets the rest. Where not even the words of the remaining columns fit
//! beside each other, the caller lists each row instead.

use super::breaks::{is_wide, parts};
use crate::Charset;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Blanks between two columns.
const GAP: usize = 2;
/// A text of up to this length stays on one line while another column can leave instead.
const COMFORTABLE: usize = 24;

/// A Chinese word of up to this width is a term, which stays whole beside others.
const TERM: usize = 18;

/// How much room a column needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// For its longest word.
    pub(super) word: usize,
    /// For its longest cell.
    pub(super) cell: usize,
    /// For its longest line, the heading included.
    pub(super) line: usize,
    /// Its place in the order in which columns leave; `None`: it stays.
    pub(super) leaves: Option<u8>,
}

impl Extent {
    fn comfortable(&self) -> usize {
        self.word.max(self.cell.min(COMFORTABLE))
    }
}

/// The columns that stay.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fitted {
    /// Their places in the table.
    pub(super) shown: Vec<usize>,
    /// How wide each is; `None`: their words do not fit beside each other.
    pub(super) widths: Option<Vec<usize>>,
}

/// Fits `columns` into `width`.
pub(super) fn fit(columns: &[Extent], width: usize) -> Fitted {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    while taken(&shown, columns, Extent::comfortable) > width {
        let first = shown.iter().filter_map(|&at| Some((columns[at].leaves?, at))).min();
        let Some((_, leaving)) = first else { break };
        shown.retain(|&at| at != leaving);
    }
    let Some(mut left) = width.checked_sub(taken(&shown, columns, |column| column.word)) else {
        return Fitted { shown, widths: None };
    };
    let mut widths: Vec<usize> = shown.iter().map(|&at| columns[at].word).collect();
    // Cells before headings.
    let rooms: [fn(&Extent) -> usize; 2] = [Extent::comfortable, |column| column.line];
    for room in rooms {
        let wants = |place: usize, has: usize| room(&columns[shown[place]]).saturating_sub(has);
        let mut order: Vec<usize> = (0..shown.len()).collect();
        order.sort_by_key(|&place| wants(place, widths[place]));
        for place in order {
            let more = wants(place, widths[place]).min(left);
            widths[place] += more;
            left -= more;
        }
    }
    Fitted { shown, widths: Some(widths) }
}

fn taken(shown: &[usize], columns: &[Extent], room: fn(&Extent) -> usize) -> usize {
    let cells: usize = shown.iter().map(|&at| room(&columns[at])).sum();
    cells + GAP * shown.len().saturating_sub(1)
}

/// The width of the longest word of `text`.
pub(super) fn longest_word(text: &str) -> usize {
    let words = text.split('\n').flat_map(words);
    let parts = words.flat_map(|word| if word.width() > TERM { parts(word) } else { vec![word] });
    parts.map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// The words of a line. A percent sign belongs to its figure.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let first = rest.find(' ').unwrap_or(rest.len());
        let glued = rest[first..]
            .strip_prefix(" %")
            .filter(|after| !after.starts_with(|next: char| next != ' ' && !is_wide(next)));
        let end = glued.map_or(first, |after| {
            rest.len() - after.len() + after.find(' ').unwrap_or(after.len())
        });
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
}

/// The width of the longest line of `text`.
pub(super) fn longest_line(text: &str) -> usize {
    text.split('\n').map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// `text` with line breaks between words, so that each line fits `width`; a longer word is a line.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        if line.width() <= width {
            lines.push(line.into());
            continue;
        }
        let mut last = String::new();
        for word in words(line) {
            let parts = if word.width() > width { parts(word) } else { vec![word] };
            for (at, part) in parts.into_iter().enumerate() {
                let blank = usize::from(at == 0);
                if !last.is_empty() && last.width() + blank + part.width() > width {
                    lines.push(std::mem::take(&mut last));
                } else if !last.is_empty() && at == 0 {
                    last.push(' ');
                }
                last += part;
            }
        }
        lines.push(last);
    }
    lines.join("\n")
}

/// `text` in at most `width` cells, with a mark where its middle is left out: both ends of a path
/// or an address say more than its middle.
pub(super) fn shortened(text: &str, width: usize, charset: Charset) -> String {
    if text.width() <= width {
        return text.into();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let mark = if charset == Charset::Utf8 { '…' } else { '~' };
    let head = of_width(text.chars(), room - room / 2);
    let tail: Vec<char> = of_width(text.chars().rev(), room / 2);
    head.into_iter().chain([mark]).chain(tail.into_iter().rev()).collect()
}

/// As many of the first characters as fit into `room` cells.
fn of_width(text: impl Iterator<Item = char>, room: usize) -> Vec<char> {
    let mut used = 0;
    text.take_while(|letter| {
        used += letter.width().unwrap_or(0);
        used <= room
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(word: usize, cell: usize, leaves: Option<u8>) -> Extent {
        Extent { word, cell, line: cell.max(word), leaves }
    }

    #[test]
    fn columns_leave_in_their_order_and_only_as_many_as_must() {
        let columns =
            [column(8, 8, None), column(6, 6, Some(2)), column(7, 7, Some(1)), column(9, 20, None)];
        // All of them with the gaps: 8 + 6 + 7 + 20 + 3 * 2.
        assert_eq!(fit(&columns, 47).shown, [0, 1, 2, 3]);
        assert_eq!(fit(&columns, 46).shown, [0, 1, 3], "the first in the order");
        assert_eq!(fit(&columns, 37).shown, [0, 3]);
        // Nothing may leave any more, so the long text breaks between its words.
        assert_eq!(fit(&columns, 19), Fitted { shown: vec![0, 3], widths: Some(vec![8, 9]) });
        assert_eq!(fit(&columns, 18), Fitted { shown: vec![0, 3], widths: None });
    }

    #[test]
    fn what_is_left_completes_the_short_ones_first() {
        let columns = [column(5, 60, None), column(4, 7, None)];
        assert_eq!(fit(&columns, 40).widths, Some(vec![31, 7]));
        // No wider than its content.
        assert_eq!(fit(&columns, 100).widths, Some(vec![60, 7]));
        // A heading breaks before a cell does.
        let columns = [Extent { line: 9, ..column(4, 4, None) }, column(6, 19, None)];
        assert_eq!(fit(&columns, 26).widths, Some(vec![5, 19]));
    }

    #[test]
    fn a_text_breaks_between_words_and_not_before_a_percent_sign() {
        assert_eq!(wrapped("receive window 97 %", 17), "receive window\n97 %");
        assert_eq!(wrapped("receive window 97 %", 19), "receive window 97 %");
        assert_eq!(wrapped("of 5 %, and %x", 6), "of 5\n%, and\n%x", "signs of other words");
        assert_eq!(
            wrapped("接收窗口 97 %，已满", 8),
            "接收窗口\n97 %，已\n满",
            "as Chinese breaks"
        );
        assert_eq!(wrapped("接收窗口 97 %，已满", 11), "接收窗口\n97 %，已满");
        assert_eq!(wrapped("接收窗口", 6), "接收窗\n口", "as Chinese breaks where it must");
        assert_eq!((longest_word("lost 100 %"), longest_word("a 1 %")), (5, 3));
    }

    #[test]
    fn what_is_shortened_keeps_both_ends() {
        assert_eq!(shortened("/var/lib/fullpipe", 9, Charset::Utf8), "/var…pipe");
        assert_eq!(shortened("短い名前です", 6, Charset::Ascii), "短~す");
        assert_eq!(shortened("as it is", 8, Charset::Utf8), "as it is");
    }
}
