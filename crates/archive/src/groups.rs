//! Groups of captures: what one thread analyses at a time, and what is done or not done together.
//!
//! A group has parts of its own, so small captures share a part, and a run that is killed loses
//! one group for each thread. The groups follow from the list alone: a run that goes on with
//! another makes those that are left as they would have been.

use crate::list::{FoundCapture, SourceList, Unusable};
use crate::manifest::Done;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A group ends with the capture that makes it this large: about a second of one thread's work.
const GROUP_BYTES: u64 = 64 << 20;
/// The most captures of a group.
const GROUP_CAPTURES: usize = 256;

/// Captures that are done together.
#[derive(Debug, Default)]
pub struct CaptureGroup {
    /// Those that can be read.
    pub captures: Vec<FoundCapture>,
    /// Names that lead to no capture.
    pub unusable: Vec<Unusable>,
}

impl CaptureGroup {
    fn is_empty(&self) -> bool {
        self.captures.is_empty() && self.unusable.is_empty()
    }

    /// A word that no other group has: a digest of its names. Names that are tried again are in no
    /// part, so a group of the same names has none yet.
    pub fn word(&self) -> String {
        let mut digest = Sha256::new();
        let named = self.captures.iter().map(|found| &found.path);
        for path in named.chain(self.unusable.iter().map(|name| &name.path)) {
            digest.update(path.as_os_str().as_bytes());
            digest.update([0]);
        }
        digest.finalize()[..10].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The groups of a list, without what is done already.
pub struct Groups {
    list: SourceList,
    done: Done,
    /// Names that were in a group; whatever is named twice is analysed once.
    seen: HashSet<String>,
    /// Captures that are not what they were when they were analysed, with their rows.
    changed: BTreeMap<String, u64>,
}

impl Groups {
    /// The groups of `list` without the captures of `done`.
    pub fn new(list: SourceList, done: Done) -> Self {
        Groups { list, done, seen: HashSet::new(), changed: BTreeMap::new() }
    }

    /// The next group; `None` at the end of the list.
    ///
    /// # Errors
    /// The list cannot be read.
    pub fn next_group(&mut self) -> std::io::Result<Option<CaptureGroup>> {
        let (mut group, mut bytes, mut count) = (CaptureGroup::default(), 0, 0);
        while let Some(item) = self.list.next() {
            match item? {
                Ok(found) => {
                    bytes += found.bytes;
                    if self.is_to_do(&found) {
                        group.captures.push(found);
                    }
                }
                Err(name) => {
                    if self.is_new(&text_of(&name.path)) {
                        group.unusable.push(name);
                    }
                }
            }
            count += 1;
            if bytes >= GROUP_BYTES || count >= GROUP_CAPTURES {
                if !group.is_empty() {
                    break;
                }
                (bytes, count) = (0, 0);
            }
        }
        Ok(Some(group).filter(|group| !group.is_empty()))
    }

    /// Captures that changed after they were analysed, with the number of their rows, which are
    /// those of what they were.
    pub fn into_changed(self) -> BTreeMap<String, u64> {
        self.changed
    }

    fn is_to_do(&mut self, found: &FoundCapture) -> bool {
        let name = text_of(&found.path);
        if !self.is_new(&name) {
            return false;
        }
        match self.done.captures.get(&name) {
            Some(earlier) if !earlier.is_to_be_tried_again() => {
                if !earlier.is_same(found.bytes, found.modified_ns) {
                    self.changed.insert(name, earlier.rows);
                }
                false
            }
            _ => true,
        }
    }

    fn is_new(&mut self, name: &str) -> bool {
        self.seen.insert(name.to_owned())
    }
}

/// A name as text: what is no UTF-8 is escaped, so that two names stay two.
pub fn text_of(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("bytes:{}", path.as_os_str().as_bytes().escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Sources;
    use std::ffi::OsStr;
    use std::fs;

    fn groups_of(named: Vec<std::path::PathBuf>) -> Vec<CaptureGroup> {
        let list = Sources { named, listed: None }.list().unwrap();
        let mut groups = Groups::new(list, Done::default());
        std::iter::from_fn(|| groups.next_group().unwrap()).collect()
    }

    #[test]
    fn every_name_is_in_one_group() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for number in 0..GROUP_CAPTURES + 3 {
            fs::write(root.join(format!("{number:04}")), "x").unwrap();
        }
        let twice = vec![root.to_path_buf(), root.join("0007"), root.join("missing")];
        let groups = groups_of(twice);
        let sizes: Vec<_> =
            groups.iter().map(|group| (group.captures.len(), group.unusable.len())).collect();
        assert_eq!(sizes, [(GROUP_CAPTURES, 0), (3, 1)]);
        assert_ne!(groups[0].word(), groups[1].word());
        assert_eq!(groups[0].word(), groups_of(vec![root.to_path_buf()])[0].word());
    }

    #[test]
    fn a_large_capture_ends_its_group() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for (name, bytes) in [("a", 1), ("b", GROUP_BYTES), ("c", 1)] {
            fs::File::create(root.join(name)).unwrap().set_len(bytes).unwrap();
        }
        let groups = groups_of(vec![root.to_path_buf()]);
        assert_eq!(groups.iter().map(|group| group.captures.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn names_that_are_no_text_stay_apart() {
        let [one, other] =
            [&b"\xff"[..], b"\xfe"].map(|name| text_of(Path::new(OsStr::from_bytes(name))));
        assert_ne!(one, other);
        assert_eq!(text_of(Path::new("\u{fffd}")), "\u{fffd}");
    }
}
