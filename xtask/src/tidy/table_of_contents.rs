//! A crate's `lib.rs` is its table of contents: it has modules and re-exports only.
//!
//! The files below `lib.rs` import what it defines, while it imports them. That circle takes in the
//! whole crate.

use super::source::{blanked, without_tests};
use std::path::Path;

const DEFINITIONS: [&str; 6] = ["fn ", "struct ", "enum ", "trait ", "impl ", "impl<"];

/// The items that a `lib.rs` defines itself.
pub fn breaches(file: &Path, text: &str) -> Vec<String> {
    if !file.ends_with("src/lib.rs") {
        return Vec::new();
    }
    let code = blanked(without_tests(text));
    code.lines()
        .filter(|line| {
            let item = line.trim_start_matches("pub ").trim_start_matches("const ");
            DEFINITIONS.iter().any(|definition| item.starts_with(definition))
        })
        .map(|line| {
            let item = line.split(['(', '{', '<', ';']).next().unwrap_or(line).trim();
            format!("{}: `{item}` is defined in lib.rs: give it a module", file.display())
        })
        .collect()
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
    }
}
