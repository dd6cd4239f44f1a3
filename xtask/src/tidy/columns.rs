//! Lines of code or comment with more than a hundred columns: they do not fit next to another file.
//!
//! The contents of string literals do not count, because a sample of output or a script cannot be
//! wrapped.

use super::source::{blanked, without_tests};
use std::path::Path;

const COLUMNS_MAX: usize = 100;

/// Whether one file has a wider line.
pub fn breach(file: &Path, text: &str) -> Option<String> {
    let code = blanked(text);
    let lines = without_tests(text).lines().zip(code.lines());
    let mut in_fence = false;
    let is_wide = |(line, code): (&str, &str)| {
        // Samples and diagrams in fences cannot be wrapped.
        let comment = line.trim_start().trim_start_matches(['/', '!']);
        in_fence ^= comment.trim_start().starts_with("```");
        if in_fence {
            return false;
        }
        let in_literals =
            line.bytes().zip(code.bytes()).filter(|(byte, left)| byte != left).count();
        let is_comment = line.trim_start().starts_with("//");
        let counted = line.chars().count()
            - if is_comment { 0 } else { in_literals.min(line.chars().count()) };
        counted > COLUMNS_MAX
    };
    let number = lines.map(is_wide).position(|is_wide| is_wide)? + 1;
    Some(format!("{}: more than {COLUMNS_MAX} columns: break the line {number}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_comment_or_expression_is_found_and_a_wide_string_is_not() {
        let file = Path::new("a.rs");
        let words = "word ".repeat(30);
        assert!(breach(file, &format!("/// {words}\nfn f() {{}}\n")).is_some());
        assert!(breach(file, &format!("f({});\n", "x, ".repeat(50))).is_some());
        assert!(breach(file, &format!("f(\"{words}\n{words}\n\");\n")).is_none());
    }
}
