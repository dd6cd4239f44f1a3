//! Circles: files of one crate that import each other, directly or through others.
//!
//! Two files in a circle can only be read, tested and moved together. An import is any path that
//! begins with `crate`, `super` or `self`, or with a child module's name in a `use`. It leads to
//! the file that defines the item, through re-exports. A module's file and its direct children form
//! one module, so they may import each other.

use super::source::{blanked, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module's path below its crate: empty for `lib.rs`.
type ModulePath = Vec<String>;

/// Every circle among the files of one crate's `src`, one sentence for each. `files` are paths and
/// texts.
pub fn breaches(source: &Path, files: &[(PathBuf, String)]) -> Vec<String> {
    let modules = Modules::read(source, files);
    let arrows = modules.arrows();
    strongly_connected(&arrows)
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .map(|circle| {
            let names: Vec<String> = circle.iter().map(|path| modules.file_name(path)).collect();
            format!("{}: a circle of files: {}", source.display(), names.join(", "))
        })
        .collect()
}

struct Module {
    file: PathBuf,
    code: String,
    /// Names that a `use` brings into this module, with the path of each.
    imports: BTreeMap<String, Vec<String>>,
}

struct Modules(BTreeMap<ModulePath, Module>);

impl Modules {
    fn read(source: &Path, files: &[(PathBuf, String)]) -> Modules {
        let mut modules = BTreeMap::new();
        for (file, text) in files {
            let Ok(relative) = file.strip_prefix(source) else { continue };
            let Some(path) = module_path(relative) else { continue };
            let code = blanked(without_tests(text));
            let imports = uses(&code)
                .into_iter()
                .filter_map(|import| Some((import.last()?.clone(), import)))
                .collect();
            modules.insert(path, Module { file: relative.to_path_buf(), code, imports });
        }
        Modules(modules)
    }

    fn file_name(&self, path: &ModulePath) -> String {
        self.0.get(path).map(|module| module.file.display().to_string()).unwrap_or_default()
    }

    fn arrows(&self) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
        let mut arrows = BTreeMap::new();
        for (path, module) in &self.0 {
            let mut paths: Vec<Vec<String>> = module.imports.values().cloned().collect();
            paths.extend(inline_paths(&module.code));
            let targets: BTreeSet<ModulePath> = paths
                .into_iter()
                .filter_map(|import| self.definition(path, &import, 0))
                .filter(|target| target != path && !are_parent_and_child(target, path))
                .collect();
            arrows.insert(path.clone(), targets);
        }
        arrows
    }

    /// The module that defines the item that `import` names, seen from `from`.
    fn definition(&self, from: &ModulePath, import: &[String], depth: usize) -> Option<ModulePath> {
        // A chain of re-exports longer than this would be a circle of its own.
        if depth > 8 {
            return None;
        }
        let (mut at, mut rest) = self.start(from, import)?;
        while let Some((first, after)) = rest.split_first() {
            let child: ModulePath = at.iter().cloned().chain([first.clone()]).collect();
            if self.0.contains_key(&child) {
                (at, rest) = (child, after);
                continue;
            }
            let through = self.0.get(&at)?.imports.get(first);
            return match through {
                Some(through) if at != *from => {
                    let whole: Vec<String> = through.iter().chain(after).cloned().collect();
                    Some(self.definition(&at, &whole, depth + 1).unwrap_or(at))
                }
                _ => Some(at),
            };
        }
        Some(at)
    }

    /// Where a path begins; `None` where that is another crate.
    fn start<'a>(
        &self,
        from: &ModulePath,
        import: &'a [String],
    ) -> Option<(ModulePath, &'a [String])> {
        let (first, after) = import.split_first()?;
        match first.as_str() {
            "crate" => Some((Vec::new(), after)),
            "self" => Some((from.clone(), after)),
            "super" => {
                let mut at = from.clone();
                at.pop()?;
                let mut rest = after;
                while rest.first().is_some_and(|word| word == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
                Some((at, rest))
            }
            child => {
                let known: ModulePath = from.iter().cloned().chain([child.to_string()]).collect();
                self.0.contains_key(&known).then(|| (from.clone(), import))
            }
        }
    }
}

fn are_parent_and_child(one: &ModulePath, other: &ModulePath) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    short.len() + 1 == long.len() && long.starts_with(short)
}

/// `link/mod.rs` and `link.rs` are both `link`; a `tests` module does not count.
fn module_path(file: &Path) -> Option<ModulePath> {
    let mut path: ModulePath =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.iter().any(|part| part == "tests" || part == "bin") {
        return None;
    }
    match path.last().map(String::as_str) {
        Some("mod") => drop(path.pop()),
        Some("lib" | "main") if path.len() == 1 => path.clear(),
        _ => {}
    }
    Some(path)
}

/// Every path that the `use` items of `code` import. Groups are split; renames and globs are
/// removed.
fn uses(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].trim_end_matches([' ', '\t']);
        let begins = before.is_empty() || before.ends_with(['\n', ';', '}', '{', ')']);
        if begins || before.ends_with("pub") {
            let tree = code[at + 4..].split(';').next().unwrap_or_default();
            expand(&[], tree, &mut paths);
        }
    }
    paths
}

fn expand(prefix: &[String], tree: &str, paths: &mut Vec<Vec<String>>) {
    let tree = tree.trim();
    let Some((head, group)) = tree.split_once('{') else {
        let tree = tree.split(" as ").next().unwrap_or(tree);
        let mut path = prefix.to_vec();
        let words = tree.split("::").map(str::trim).filter(|word| !word.is_empty());
        path.extend(words.filter(|word| *word != "*").map(String::from));
        if path.last().is_some_and(|word| word == "self") && path.len() > 1 {
            path.pop();
        }
        if !path.is_empty() {
            paths.push(path);
        }
        return;
    };
    let mut prefix = prefix.to_vec();
    prefix
        .extend(head.split("::").map(str::trim).filter(|word| !word.is_empty()).map(String::from));
    for part in comma_separated(group.rsplit_once('}').map_or(group, |(inner, _)| inner)) {
        if !part.trim().is_empty() {
            expand(&prefix, part, paths);
        }
    }
}

/// Splits at the commas that are not inside a group.
fn comma_separated(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Paths in expressions and types that begin with `crate`, `super` or `self`.
fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut paths = Vec::new();
    for begin in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(begin) {
            if code[..at].ends_with(|before| is_word(before) || before == ':' || before == '$') {
                continue;
            }
            let end = code[at..].find(|next: char| !is_word(next) && next != ':');
            let path = &code[at..end.map_or(code.len(), |end| at + end)];
            if path.ends_with("::") {
                continue; // A group or a glob of a `use`: `uses` takes it apart.
            }
            let words = path.split("::").filter(|word| !word.is_empty()).map(String::from);
            paths.push(words.collect());
        }
    }
    paths
}

/// The strongly connected components, by Tarjan's algorithm. Each component is sorted by name.
fn strongly_connected(arrows: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<Vec<ModulePath>> {
    let mut search =
        Search { arrows, order: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for node in arrows.keys() {
        if !search.order.contains_key(node) {
            search.visit(node);
        }
    }
    search.found
}

struct Search<'a> {
    arrows: &'a BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    /// The order in which a node was visited, and whether it is still on the stack.
    order: BTreeMap<ModulePath, (usize, bool)>,
    stack: Vec<ModulePath>,
    found: Vec<Vec<ModulePath>>,
}

impl Search<'_> {
    /// Returns the earliest node that `node` leads back to.
    fn visit(&mut self, node: &ModulePath) -> usize {
        let own = self.order.len();
        self.order.insert(node.clone(), (own, true));
        self.stack.push(node.clone());
        let mut earliest = own;
        for next in self.arrows.get(node).into_iter().flatten() {
            earliest = match self.order.get(next) {
                None => earliest.min(self.visit(next)),
                Some((met, true)) => earliest.min(*met),
                Some((_, false)) => earliest,
            };
        }
        if earliest == own {
            let mut component = Vec::new();
            while let Some(top) = self.stack.pop() {
                self.order.entry(top.clone()).and_modify(|(_, on_stack)| *on_stack = false);
                let is_last = top == *node;
                component.push(top);
                if is_last {
                    break;
                }
            }
            component.sort();
            self.found.push(component);
        }
        earliest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| (Path::new("src").join(name), (*text).to_string()))
            .collect();
        breaches(Path::new("src"), &files)
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "fn f(x: &super::a::A) {}"),
        ]);
        assert_eq!(found, ["src: a circle of files: a.rs, b.rs"]);
    }

    #[test]
    fn a_re_export_does_not_hide_a_circle() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; pub use b::{B, C as D};"),
            ("a.rs", "pub struct A; use super::B;"),
            ("b.rs", "use crate::{a::{self, A}, x};"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn parent_and_child_tests_comments_and_one_way_are_none() {
        assert!(circles(&[("lib.rs", "mod a; use a::A;"), ("a.rs", "use super::X;")]).is_empty());
        let one_way = [
            ("a/mod.rs", "mod c; // use crate::b::B;\nlet x = \"crate::b\";"),
            ("a/c.rs", "#[cfg(test)]\nmod tests { use crate::b::B; }"),
            ("b.rs", "use crate::a::A; use crate::a::c::C;"),
            ("lib.rs", ""),
        ];
        assert!(circles(&one_way).is_empty());
        // A group leads to its items, not to the module before the braces.
        let group = [
            ("lib.rs", "mod a; mod c; pub use a::B; pub use c::{C, D};"),
            ("a.rs", "mod b; pub use b::B;"),
            ("a/b.rs", "use crate::{C, D};"),
            ("c.rs", ""),
        ];
        assert!(circles(&group).is_empty());
    }

    #[test]
    fn a_circle_over_three_files_and_a_grandparent_is_found() {
        let three =
            [("a.rs", "use crate::b;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use super::a::x;")];
        assert_eq!(circles(&three).len(), 1);
        let grandparent = [
            ("lib.rs", "mod a; use a::b::B;"),
            ("a.rs", "mod b;"),
            ("a/b.rs", "use crate::Options;"),
        ];
        assert_eq!(circles(&grandparent).len(), 1);
    }
}
