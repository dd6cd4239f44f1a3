//! What a sentence says in any language, for tests of translations.

use std::collections::BTreeSet;

/// The numbers of a sentence, and the names of settings in it.
pub fn facts(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| {
        !letter.is_ascii_alphanumeric() && !matches!(letter, '.' | '_' | '/' | '-')
    });
    let words = words.map(|word| word.trim_matches(['.', '-']));
    words
        .filter(|word| word.chars().any(|letter| letter.is_ascii_digit() || letter == '_'))
        .collect()
}
