//! Fixed phrases that come from below: of errors, what was tried, and what to try; of the lab's
//! presets, what each shows.
//!
//! There they are constants (`Refused::operation`, `Refused::hint`), which are their own names
//! here. A phrase that has no other words stays: a test compares the list with the sources.

mod advice;
mod operations;
mod presets;

use super::Sentence;
use advice::ADVICE;
use operations::OPERATIONS;
use presets::PRESETS;

/// A phrase in Chinese.
pub fn chinese(english: &str) -> &str {
    let known =
        OPERATIONS.iter().chain(&ADVICE).chain(&PRESETS).find(|(known, _)| *known == english);
    known.map_or(english, |(_, chinese)| chinese)
}

/// A phrase in each language.
pub fn sentence(english: &str) -> Sentence {
    Sentence::new(english, chinese(english))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Where errors come from.
    const ROOMS: [&str; 7] = ["agent", "host", "kernel", "lab", "link", "peer", "transfer"];

    /// The sources of a room, each string in one line.
    fn source(folder: &Path) -> String {
        let mut text = String::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                text += &source(&path);
            } else {
                text += &std::fs::read_to_string(&path).unwrap_or_default();
            }
        }
        text.split("\\\n").map(str::trim_start).collect()
    }

    fn sources() -> String {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        ROOMS.map(|room| source(&crates.join(room).join("src"))).concat()
    }

    /// The strings behind `before`.
    fn strings<'a>(source: &'a str, before: &str) -> Vec<&'a str> {
        let behind = source.split(before).skip(1);
        behind.filter_map(|text| text.trim_start().strip_prefix('"')?.split('"').next()).collect()
    }

    #[test]
    fn each_phrase_of_an_error_is_translated_and_none_is_left_over() {
        let source = sources();
        let all: Vec<&str> =
            OPERATIONS.iter().chain(&ADVICE).map(|(english, _)| *english).collect();
        let known: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(known.len(), all.len(), "a phrase has one translation");
        for english in &known {
            assert!(source.contains(&format!("\"{english}\"")), "nothing says `{english}`");
        }
        for before in [
            "Refused::new(",
            "Refused::last(",
            "JournalError::io(",
            ".hint(",
            "ResultsError::file(",
        ] {
            for english in strings(&source, before) {
                assert!(english.is_empty() || known.contains(english), "{before}\"{english}\"");
            }
        }
    }

    #[test]
    fn each_preset_is_described_in_chinese_and_none_is_left_over() {
        let listed = fullpipe_lab::list_presets().unwrap();
        let described: BTreeSet<&str> = listed.iter().map(|it| it.description.as_str()).collect();
        let known: BTreeSet<&str> = PRESETS.iter().map(|(english, _)| *english).collect();
        assert_eq!(known, described);
    }
}
