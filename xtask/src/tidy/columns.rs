//! Lines that do not fit beside another file: more than a hundred columns of code or comment.
//!
//! What stands inside a string literal is left out: a sample of output or a script is as wide as it is.

use super::source::blanked;
use std::path::Path;

const COLUMNS_MAX: usize = 100;

/// The lines of one file that are wider.
pub fn breaches(file: &Path, text: &str) -> Vec<String> {
    let code = blanked(text);
    text.lines()
        .zip(code.lines())
        .enumerate()
        .filter(|(_, (line, code))| {
            let is_comment = line.trim_start().starts_with("//");
            let shown = if is_comment { line } else { code.trim_end() };
            shown.chars().count() > COLUMNS_MAX && line.chars().count() > COLUMNS_MAX
        })
        .map(|(number, _)| {
            let (shown, number) = (file.display(), number + 1);
            format!("{shown}:{number}: more than {COLUMNS_MAX} columns: break the line")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_comment_or_expression_is_found_and_a_wide_string_is_not() {
        let file = Path::new("a.rs");
        let words = "word ".repeat(30);
        assert_eq!(breaches(file, &format!("/// {words}\nfn f() {{}}\n")).len(), 1);
        assert_eq!(breaches(file, &format!("f({});\n", "x, ".repeat(50))).len(), 1);
        assert!(breaches(file, &format!("f(\"{words}\n{words}\n\");\n")).is_empty());
    }
}
