//! An answer is made in `flow`, whole: whatever only a host knows is an input of it. A shell that
//! changes the answer afterwards would let its parts contradict each other.

use super::source::{blanked, without_tests};
use std::path::Path;

/// Fields of `flow`'s answers.
const FIELDS: [&str; 7] =
    ["acts", "causes", "confidence", "doubt", "findings", "headline", "remedy"];
/// What changes a list.
const METHODS: [&str; 6] = ["clear", "extend", "insert", "push", "remove", "retain"];

/// The lines of a file outside of `flow` that change a field of an answer.
pub fn breaches(file: &Path, text: &str) -> Vec<String> {
    let is_shell = file.starts_with("crates") && !file.starts_with("crates/flow");
    let is_test =
        file.ends_with("tests.rs") || file.components().any(|part| part.as_os_str() == "tests");
    if !is_shell || is_test {
        return Vec::new();
    }
    let code = blanked(without_tests(text));
    let lines = code.lines().enumerate().filter(|(_, line)| changes_an_answer(line));
    let breach = |(at, _): (usize, &str)| {
        format!(
            "{}: line {} changes an answer of flow: give flow what it lacks",
            file.display(),
            at + 1
        )
    };
    lines.map(breach).collect()
}

fn changes_an_answer(line: &str) -> bool {
    let is_changed = |(at, field): (usize, &str)| {
        let rest = &line[at + field.len()..];
        let is_assigned = rest.trim_start().trim_start_matches(['+', '-']).starts_with('=')
            && !rest.trim_start().starts_with("==")
            && !rest.trim_start().starts_with("=>");
        let is_edited = METHODS.iter().any(|method| {
            rest.strip_prefix('.')
                .and_then(|rest| rest.strip_prefix(method))
                .is_some_and(|rest| rest.starts_with('('))
        });
        // Only a field: `answer.causes`, not a variable of that name.
        line[..at].ends_with('.') && (is_assigned || is_edited)
    };
    FIELDS.iter().flat_map(|field| line.match_indices(field)).any(is_changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_edits_an_answer_is_found_and_one_that_reads_it_is_not() {
        let of = |line: &str| breaches(Path::new("crates/host/src/why.rs"), line).len();
        assert_eq!(of("answer.acts = Acts::Here;"), 1);
        assert_eq!(of("one.connection.answer.causes.insert(0, found);"), 1);
        assert_eq!(of("if answer.acts == Acts::Here {"), 0);
        assert_eq!(of("let causes = answer.causes.iter();"), 0);
        assert_eq!(of("causes.extend(more);"), 0);
        assert!(
            breaches(Path::new("crates/flow/src/diagnosis/live/mod.rs"), "answer.acts = x;")
                .is_empty()
        );
    }
}
