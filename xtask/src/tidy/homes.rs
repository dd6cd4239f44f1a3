//! Names of types: one that many places define says nothing where it is read.

use super::source::without_tests;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// In so many places a name may be defined, tests and what impls define left out.
const HOMES_MAX: usize = 3;

/// Names of types with more homes than [`HOMES_MAX`].
pub fn breaches(sources: &[(PathBuf, String)]) -> Vec<String> {
    let mut homes: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for (file, text) in sources.iter().filter(|(file, _)| is_of_the_product(file)) {
        for name in without_tests(text).lines().filter_map(defined) {
            homes.entry(name).or_default().push(file);
        }
    }
    let shared = homes.into_iter().filter(|(_, files)| files.len() > HOMES_MAX);
    shared
        .map(|(name, files)| {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            format!(
                "type {name} has {} homes: name each by its role: {}",
                files.len(),
                files.join(" ")
            )
        })
        .collect()
}

/// Whether a file is product code, not a test.
pub fn is_of_the_product(file: &Path) -> bool {
    let is_test = file.iter().any(|part| part == "tests") || file.ends_with("tests.rs");
    file.iter().any(|part| part == "src") && !is_test
}

/// The name of the type that a line begins to define. What `type` defines within an impl is its
/// trait's name; one letter is a local abbreviation.
fn defined(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let keyword = words.find(|word| !word.starts_with("pub"))?;
    let is_alias = keyword == "type" && !line.starts_with(' ');
    if !is_alias && !["struct", "enum", "trait"].contains(&keyword) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(name.len());
    let is_type = name.starts_with(|first: char| first.is_ascii_uppercase());
    (is_type && end > 1).then_some(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_four_places_is_a_breach_and_in_three_is_none() {
        let source = |file: &str, text: &str| (PathBuf::from(file), text.to_owned());
        let mut sources = vec![
            source("crates/a/src/lib.rs", "pub struct Row;\n"),
            source("crates/b/src/lib.rs", "pub(crate) enum Row {\n"),
            source("crates/c/src/lib.rs", "type Row<'a> = &'a str;\n"),
            source("crates/d/src/tests.rs", "struct Row;\n"),
            source("crates/e/src/lib.rs", "    type Row = u8;\ntype C = u8;\n"),
        ];
        assert!(breaches(&sources).is_empty());
        sources.push(source("crates/f/src/lib.rs", "trait Row: Sized {\n"));
        assert_eq!(breaches(&sources).len(), 1);
    }
}
