//! The captures of an archive, one after another: files, folders with everything below them, and
//! lists of names.
//!
//! A list is read and a folder is walked as captures are asked for, so memory does not grow with
//! their number. Folders are walked in the order of their names, so the same archive is always in
//! the same order. Names that begin with a dot, links to folders, and the folder of the results
//! itself are left out.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{BufRead, BufReader, Error, ErrorKind, Result};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A capture of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCapture {
    /// Where it is, as it was named.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was written last, since 1970.
    pub modified_ns: i128,
}

/// A name that leads to no capture.
#[derive(Debug)]
pub struct Unusable {
    /// The name.
    pub path: PathBuf,
    /// Why not.
    pub cause: Error,
}

/// What the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Files and folders.
    pub named: Vec<PathBuf>,
    /// A file with a name a line; `-` is standard input.
    pub listed: Option<PathBuf>,
}

impl Sources {
    /// Whether they can be listed more than once.
    pub fn are_lasting(&self) -> bool {
        self.listed.as_deref().is_none_or(|list| {
            !is_standard_input(list) && std::fs::metadata(list).is_ok_and(|list| list.is_file())
        })
    }

    /// The captures that they name.
    ///
    /// # Errors
    /// The list cannot be opened.
    pub fn list(&self) -> Result<SourceList> {
        let names: Option<Box<dyn BufRead + Send>> = match &self.listed {
            Some(list) if is_standard_input(list) => {
                Some(Box::new(BufReader::new(std::io::stdin())))
            }
            Some(list) => Some(Box::new(BufReader::new(std::fs::File::open(list)?))),
            None => None,
        };
        let stack = self.named.iter().rev().map(|path| Name::given(path.clone())).collect();
        Ok(SourceList { stack, names, results: None })
    }
}

fn is_standard_input(list: &Path) -> bool {
    list.as_os_str() == "-"
}

fn identity(there: &Metadata) -> (u64, u64) {
    (there.dev(), there.ino())
}

/// A name that waits for its turn.
struct Name {
    path: PathBuf,
    /// Named by the user, not found in a folder.
    is_given: bool,
}

impl Name {
    fn given(path: PathBuf) -> Self {
        Name { path, is_given: true }
    }

    fn unusable(&self, cause: Error) -> Unusable {
        Unusable { path: self.path.clone(), cause }
    }
}

/// An item: a capture, a name that leads to none, or the failure of the list itself.
pub type Item = Result<std::result::Result<FoundCapture, Unusable>>;

/// The captures, as they are found.
pub struct SourceList {
    /// The next name last.
    stack: Vec<Name>,
    names: Option<Box<dyn BufRead + Send>>,
    /// Device and inode of the results.
    results: Option<(u64, u64)>,
}

impl SourceList {
    /// Leaves out the folder `results`, which must exist.
    pub fn without(mut self, results: &Path) -> Self {
        self.results = std::fs::metadata(results).ok().map(|there| identity(&there));
        self
    }

    /// The next name of the list of names.
    fn next_line(&mut self) -> Result<Option<Name>> {
        let Some(names) = &mut self.names else { return Ok(None) };
        let mut line = Vec::new();
        loop {
            line.clear();
            if names.read_until(b'\n', &mut line)? == 0 {
                self.names = None;
                return Ok(None);
            }
            let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
            if let Some(last) = end {
                line.truncate(last + 1);
                return Ok(Some(Name::given(PathBuf::from(OsString::from_vec(line)))));
            }
        }
    }

    /// Looks at a name: a capture, or `None` for a folder, which is walked next, and for what is
    /// left out.
    fn look(&mut self, name: Name) -> std::result::Result<Option<FoundCapture>, Unusable> {
        let there = std::fs::metadata(&name.path).map_err(|cause| name.unusable(cause))?;
        if there.is_dir() {
            let is_link = !name.is_given
                && std::fs::symlink_metadata(&name.path).is_ok_and(|own| own.is_symlink());
            if !is_link && self.results != Some(identity(&there)) {
                self.stack.extend(entries(&name.path).map_err(|cause| name.unusable(cause))?);
            }
            return Ok(None);
        }
        if !there.is_file() {
            // A pipe would wait for a writer, perhaps for ever.
            let cause = Error::new(ErrorKind::InvalidInput, "it is no regular file");
            return Err(name.unusable(cause));
        }
        let modified_ns =
            i128::from(there.mtime()) * 1_000_000_000 + i128::from(there.mtime_nsec());
        Ok(Some(FoundCapture { path: name.path, bytes: there.len(), modified_ns }))
    }
}

/// What is in a folder, the first name last.
fn entries(folder: &Path) -> Result<Vec<Name>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    paths.sort_unstable_by(|one, other| other.cmp(one));
    Ok(paths.into_iter().map(|path| Name { path, is_given: false }).collect())
}

impl Iterator for SourceList {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            let name = match self.stack.pop() {
                Some(name) => name,
                None => match self.next_line() {
                    Ok(name) => name?,
                    Err(error) => {
                        self.names = None;
                        return Some(Err(error));
                    }
                },
            };
            match self.look(name) {
                Ok(Some(found)) => return Some(Ok(Ok(found))),
                Ok(None) => {}
                Err(unusable) => return Some(Ok(Err(unusable))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The names that are found below `root`, and those that lead to no capture.
    fn names(sources: &Sources, root: &Path) -> (Vec<String>, Vec<String>) {
        let short = |path: &Path| {
            let path = path.strip_prefix(root).unwrap_or(path);
            path.display().to_string()
        };
        let (mut found, mut unusable) = (Vec::new(), Vec::new());
        for item in sources.list().unwrap().without(&root.join("rows")) {
            match item.unwrap() {
                Ok(capture) => found.push(short(&capture.path)),
                Err(name) => unusable.push(short(&name.path)),
            }
        }
        (found, unusable)
    }

    #[test]
    fn folders_are_walked_in_order_and_the_results_are_left_out() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for folder in ["b/inner", "rows/day=2026-01-01", "a"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let files =
            ["b/2.pcap", "b/inner/1.pcap", "a/9", "b/.hidden", "rows/day=2026-01-01/p.parquet"];
        for file in files {
            fs::write(root.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(root, root.join("b/round")).unwrap();
        std::os::unix::fs::symlink(root.join("nowhere"), root.join("b/dangling")).unwrap();
        let sources = Sources { named: vec![root.to_path_buf()], listed: None };
        let (found, unusable) = names(&sources, root);
        assert_eq!(found, ["a/9", "b/2.pcap", "b/inner/1.pcap"]);
        assert_eq!(unusable, ["b/dangling"]);
        assert!(sources.are_lasting());
    }

    #[test]
    fn a_list_has_a_name_a_line_and_may_name_folders() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        fs::create_dir(root.join("day")).unwrap();
        for file in ["one", "day/two", "with space"] {
            fs::write(root.join(file), "x").unwrap();
        }
        let at = |name: &str| root.join(name).display().to_string();
        let lines =
            format!("{}\r\n\n{}\n{}\n{}", at("with space"), at("day"), at("missing"), at("one"));
        fs::write(root.join("list"), lines).unwrap();
        let sources = Sources { named: Vec::new(), listed: Some(root.join("list")) };
        let (found, unusable) = names(&sources, root);
        assert_eq!(found, ["with space", "day/two", "one"]);
        assert_eq!(unusable, ["missing"]);
        let of_standard_input = Sources { named: Vec::new(), listed: Some("-".into()) };
        assert!(!of_standard_input.are_lasting());
    }
}
