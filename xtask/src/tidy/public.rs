//! Public functions and constants that nothing outside their crate uses.
//!
//! The compiler looks for dead code only among private items, so every needless `pub` hides code
//! that nobody calls. This check searches the other crates, tests, benches and fuzz targets for
//! each name instead. It misses unused items whose name is common, but it never reports one that is
//! used. Only modules that are public all the way up are checked, because in a private one the
//! compiler finds dead code itself. Types are left out, since a public signature may need a type
//! that nobody names. A doctest is compiled as a crate of its own, so the names in its lines count
//! as used from outside.

use super::source::{blanked, without_tests};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The items that nothing outside their crate uses. `files` are the workspace's Rust files with
/// their texts.
pub fn breaches(files: &[(PathBuf, String)]) -> Vec<String> {
    let users: Vec<(Option<String>, BTreeSet<&str>)> =
        files.iter().map(|(file, text)| (library_of(file), words(text))).collect();
    let mut found = Vec::new();
    for (file, text) in files {
        let Some(own) = library_of(file).filter(|_| !file.ends_with("main.rs")) else { continue };
        // What a macro or a binary makes public is not meant for other crates.
        if own == "cli" {
            continue;
        }
        let code = blanked(without_tests(text));
        if !is_reachable(file, files) {
            continue;
        }
        let doctests = doctests(text);
        let in_doctests = words(&doctests);
        for name in public_names(&code) {
            let outside = users
                .iter()
                .any(|(library, words)| library.as_ref() != Some(&own) && words.contains(name));
            if !outside && !in_doctests.contains(name) {
                let shown = file.display();
                found
                    .push(format!("{shown}: pub {name} is used by nothing outside {own}: pub(crate), or away with it"));
            }
        }
    }
    found
}

/// Whether every module on the way from the crate's root to `file` is declared `pub mod`.
fn is_reachable(file: &Path, files: &[(PathBuf, String)]) -> bool {
    let mut path = file.with_extension("");
    loop {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(folder) = path.parent().map(Path::to_path_buf) else { return false };
        match name.as_str() {
            "lib" => return true,
            "mod" => path = folder,
            _ => {
                let parents =
                    [folder.join("mod.rs"), folder.join("lib.rs"), folder.with_extension("rs")];
                let Some((parent, text)) = files.iter().find(|(file, _)| parents.contains(file))
                else {
                    return false;
                };
                if !text.contains(&format!("pub mod {name};")) {
                    return false;
                }
                path = parent.with_extension("");
            }
        }
    }
}

/// The crate whose library contains `file`. Tests, benches and examples are outside of it.
fn library_of(file: &Path) -> Option<String> {
    let parts: Vec<_> = file.iter().map(|part| part.to_string_lossy()).collect();
    match parts.as_slice() {
        [crates, room, source, ..] if crates == "crates" && source == "src" => {
            Some(room.to_string())
        }
        _ => None,
    }
}

/// The lines of a file's doctests, without those that rustdoc does not compile.
fn doctests(text: &str) -> String {
    let mut is_inside = false;
    let mut is_compiled = false;
    let mut lines = String::new();
    for line in text.lines() {
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(comment) = comment.map(str::trim_start) else {
            is_inside = false;
            continue;
        };
        if let Some(language) = comment.strip_prefix("```") {
            is_inside = !is_inside;
            is_compiled = matches!(language, "" | "no_run");
        } else if is_inside && is_compiled {
            lines += comment;
            lines.push('\n');
        }
    }
    lines
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .collect()
}

/// Names after `pub fn`, `pub const fn`, `pub const` and `pub static`.
fn public_names(code: &str) -> Vec<&str> {
    code.match_indices("pub ")
        .filter_map(|(at, _)| {
            let mut rest = code[at + 4..].trim_start();
            let mut is_item = false;
            for word in ["const ", "async ", "unsafe ", "static ", "fn "] {
                if let Some(after) = rest.strip_prefix(word) {
                    is_item |= matches!(word, "const " | "static " | "fn ");
                    rest = after.trim_start();
                }
            }
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            (is_item && end > 0).then(|| &rest[..end])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_outside_may_be_public() {
        let file = |name: &str, text: &str| (PathBuf::from(name), text.to_string());
        let files = [
            file(
                "crates/model/src/a.rs",
                "pub fn used() {} pub const fn alone() {} pub const MAX: u8 = 1; pub(crate) fn x() {}",
            ),
            file("crates/model/src/lib.rs", "pub mod a; mod b;"),
            file("crates/model/src/b.rs", "pub fn f() { alone(); MAX; }"),
            file("crates/model/tests/t.rs", "MAX"),
            file("crates/cli/src/c.rs", "model::used(); pub fn y() {}"),
        ];
        let found = breaches(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("pub alone"), "{found:?}");
    }

    #[test]
    fn a_doctest_is_a_user_and_a_sample_of_output_is_none() {
        let text = "/// ```\n/// f(1);\n/// ```\npub fn f() {}\n/// ```text\n/// g\n/// ```\npub fn g() {}";
        let files = [
            (PathBuf::from("crates/model/src/a.rs"), text.to_string()),
            (PathBuf::from("crates/model/src/lib.rs"), "pub mod a;".to_string()),
        ];
        let found = breaches(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("pub g "), "{found:?}");
    }
}
