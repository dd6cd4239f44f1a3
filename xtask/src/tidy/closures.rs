//! Named closures: `let name = |argument| ..`. A reader must keep each in mind until its last use,
//! where a function could be read when it is called. They only become fewer.

use super::source::{blanked, without_tests};
use std::path::{Path, PathBuf};

/// As many as there are in the product. It is lowered when some go.
const NAMED_CLOSURES: usize = 225;

/// Whether the product has more named closures than before, or fewer than this file says.
pub fn breaches(sources: &[(PathBuf, String)]) -> Vec<String> {
    let of_product = sources.iter().filter(|(file, _)| super::homes::is_of_the_product(file));
    let found: usize = of_product.map(|(_, text)| count(text)).sum();
    breach(found, NAMED_CLOSURES).into_iter().collect()
}

fn breach(found: usize, known: usize) -> Option<String> {
    let this = Path::new("xtask/src/tidy/closures.rs").display();
    match found {
        more if more > known => Some(format!(
            "{more} named closures, {known} before: make a function of the new one, or write it where \
             it is used"
        )),
        fewer if fewer < known => {
            Some(format!("{fewer} named closures: well done; lower NAMED_CLOSURES of {this} to it"))
        }
        _ => None,
    }
}

/// The named closures of a file, without its tests.
fn count(text: &str) -> usize {
    let blanked = blanked(without_tests(text));
    let next = blanked.lines().skip(1).chain([""]);
    blanked.lines().zip(next).filter(|(line, next)| names_a_closure(line, next)).count()
}

/// A long one stands on the line after its name.
fn names_a_closure(line: &str, next: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("let ") else { return false };
    let value = match rest.split_once(" = ") {
        Some((_, value)) => value,
        None if rest.ends_with(" =") => next.trim_start(),
        None => return false,
    };
    value.strip_prefix("move ").unwrap_or(value).starts_with('|')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closure_with_a_name_is_one_and_an_argument_is_none() {
        let text =
            "let a = |x| x;\n    let mut b = move || 1;\n// let c = |x| x;\nlet d = f(|x| x);\n";
        assert_eq!(count(text), 2);
        assert_eq!(count("let a =\n    |x| x;\nlet b =\n    f(|x| x);\n"), 1);
        assert_eq!(count("fn f() {}\n#[cfg(test)]\nmod tests {\nlet a = |x| x;\n}\n"), 0);
    }

    #[test]
    fn more_are_refused_and_fewer_must_be_written_down() {
        assert!(breach(3, 3).is_none());
        assert!(breach(4, 3).unwrap().contains("make a function"));
        assert!(breach(2, 3).unwrap().contains("lower"));
    }
}
