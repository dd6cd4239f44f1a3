//! A crate's `lib.rs` is its table of contents: it has modules and re-exports only, and no more
//! public modules than a reader takes in at once.
//!
//! The files below `lib.rs` import what it defines, while it imports them. That circle takes in the
//! whole crate.

use super::source::{blanked, without_tests};
use std::path::Path;

const DEFINITIONS: [&str; 6] = ["fn ", "struct ", "enum ", "trait ", "impl ", "impl<"];

/// As many chapters as a reader takes in at once.
const PUBLIC_MODULES_MAX: usize = 8;

/// The items that a `lib.rs` defines itself, and whether it has too many public modules.
pub fn breaches(file: &Path, text: &str) -> Vec<String> {
    if !file.ends_with("src/lib.rs") {
        return Vec::new();
    }
    let code = blanked(without_tests(text));
    let definitions = code
        .lines()
        .filter(|line| {
            let item = line.trim_start_matches("pub ").trim_start_matches("const ");
            DEFINITIONS.iter().any(|definition| item.starts_with(definition))
        })
        .map(|line| {
            let item = line.split(['(', '{', '<', ';']).next().unwrap_or(line).trim();
            format!("{}: `{item}` is defined in lib.rs: give it a module", file.display())
        });
    let modules = code.lines().filter(|line| line.starts_with("pub mod ")).count();
    let too_many = (modules > PUBLIC_MODULES_MAX).then(|| {
        format!(
            "{}: {modules} public modules: group them, so that there are at most {PUBLIC_MODULES_MAX}",
            file.display()
        )
    });
    definitions.chain(too_many).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_re_exports_are_contents_and_definitions_are_not() {
        let file = Path::new("crates/x/src/lib.rs");
        assert!(breaches(file, "//! fn f\nmod a;\npub use a::{A, fnord};\n").is_empty());
        assert_eq!(breaches(file, "pub struct A {\n    fn_like: u8,\n}\nimpl A {\n}\n").len(), 2);
        assert!(breaches(Path::new("crates/x/src/a.rs"), "fn f() {}").is_empty());
        let chapters = |count: usize| "pub mod a;\n".repeat(count) + "mod b;\n";
        assert!(breaches(file, &chapters(8)).is_empty());
        assert_eq!(breaches(file, &chapters(9)).len(), 1);
    }
}
