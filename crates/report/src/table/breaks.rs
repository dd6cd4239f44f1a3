//! Where a line may break inside of what blanks do not part: Chinese has none.

use unicode_linebreak::linebreaks;
use unicode_width::UnicodeWidthChar;

/// The parts of a word, between which a line may break: beside characters that take two cells, as
/// Unicode allows it (UAX 14: a full stop begins no line, an opening bracket ends none). A word
/// without such characters is one part, so that names and commands stay whole.
pub(super) fn parts(word: &str) -> Vec<&str> {
    if word.chars().all(|letter| !is_wide(letter)) {
        return vec![word];
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for (end, _) in linebreaks(word) {
        let is_beside_wide =
            [word[..end].chars().next_back(), word[end..].chars().next()].into_iter().flatten();
        if end == word.len() || is_beside_wide.into_iter().any(is_wide) {
            parts.push(&word[start..end]);
            start = end;
        }
    }
    parts
}

/// Whether a character takes two cells.
pub(super) fn is_wide(letter: char) -> bool {
    letter.width() == Some(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn chinese_breaks_between_characters_and_never_before_a_full_stop() {
        assert_eq!(parts("接收窗口，已满"), ["接", "收", "窗", "口，", "已", "满"]);
        assert_eq!(parts("（tc-fq_codel、bbr）可"), ["（tc-fq_codel、", "bbr）", "可"]);
        assert_eq!(parts("tc-fq_codel/x"), ["tc-fq_codel/x"], "a name stays whole");
    }

    proptest! {
        #[test]
        fn nothing_is_lost(word in "\\PC{0,40}") {
            prop_assert_eq!(parts(&word).concat(), word);
        }
    }
}
