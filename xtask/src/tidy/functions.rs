//! Functions that are too long to read at once.

use super::source::{blanked, without_tests};
use std::path::Path;

/// Most lines from `fn` to the closing brace. This is TigerBeetle's rule, and 97 % of good Rust
/// code follows it.
const LINES_MAX: usize = 70;

/// The functions of one file that are longer, without its tests.
pub fn breaches(file: &Path, text: &str) -> Vec<String> {
    let code = blanked(without_tests(text));
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts_word =
            !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let name: String =
            code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !starts_word || name.is_empty() {
            continue;
        }
        let lines = body_lines(&code[at..]).unwrap_or(0);
        if lines > LINES_MAX {
            found.push(format!(
                "{}: fn {name} has more than {LINES_MAX} lines: take a step out of it",
                file.display()
            ));
        }
    }
    found
}

/// Number of lines of the function that `code` begins with; `None` if it has no body.
fn body_lines(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    // A `;` inside brackets belongs to an array's type.
    let mut brackets = 0_i32;
    for (at, character) in code.char_indices() {
        match character {
            '[' | '(' => brackets += 1,
            ']' | ')' => brackets -= 1,
            '{' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(code[..=at].lines().count());
                }
            }
            ';' if depth == 0 && brackets == 0 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seventy_lines_are_fine_and_one_more_is_not() {
        let function =
            |lines: usize| format!("fn f(x: [u8; 3]) {{\n{}}}\n", "x; // }\n".repeat(lines - 2));
        let file = Path::new("a.rs");
        assert!(breaches(file, &function(LINES_MAX)).is_empty());
        assert_eq!(breaches(file, &function(LINES_MAX + 1)).len(), 1);
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(90));
        assert!(breaches(file, &in_tests).is_empty());
        assert!(breaches(file, "trait T { fn f(&self); }\nfn g() {}\n").is_empty());
    }
}
