//! The cache of finished runs, found by what they depend on.
//!
//! Only runs in virtual time are cached: their result depends only on their `Key`, so a cached
//! result is as good as a new one. A run in real time measures one machine at one moment and is
//! always repeated.
//!
//! ```text
//! $XDG_CACHE_HOME/fullpipe/runs/
//!   KEY/
//!     run/         a run's folder as in a results directory, with its row
//!     used         touched at each use; the least recently used entry is removed first
//! ```
//!
//! Rows and files from the cache count like measured ones. So it is trusted only if the cache, an
//! entry and a run's folder belong to this user and nobody else can write to them; each is checked
//! on its descriptor.
//!
//! The cache is optional: if anything is wrong with it, the run counts as not cached, and no run
//! fails because of it. An entry is complete or absent; several sweeps may use the cache at once.

use crate::guest::{CacheError, Kernel};
use crate::results;
use crate::sweep::Key;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::file::folder::{Folder, make_own};
use fullpipe_model::units::{Bytes, Duration};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The cache is trimmed to this size after each sweep.
pub(crate) const SIZE_DEFAULT: Bytes = Bytes::new(2 << 30);
const RUN: &str = "run";
const USED: &str = "used";
const PART: &str = ".part";
/// An incomplete entry that has not been touched for this long belongs to a killed sweep.
const ABANDONED_AFTER: Duration = Duration::from_secs(3600);

/// The cached runs of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
    limit: Bytes,
}

/// A run found in the cache.
#[derive(Debug)]
pub struct Found {
    /// Its row, which says that it is from the cache.
    pub row: RunRow,
    /// The folder of its files.
    pub files: Folder,
}

/// A cached run, for a list.
#[derive(Debug, Clone)]
pub struct CachedRun {
    /// Its key.
    pub key: Key,
    /// Its row.
    pub row: RunRow,
    /// The size of its files.
    pub size: Bytes,
    /// When it was made or last found.
    pub used: SystemTime,
}

impl Cache {
    /// This user's cache; `None` without a home directory.
    ///
    /// # Errors
    /// The cache does not belong to this user alone.
    pub fn of_user() -> Result<Option<Cache>, CacheError> {
        let Some(kernels) = Kernel::cache_folder() else { return Ok(None) };
        let folder = kernels.with_file_name("runs");
        for place in [folder.parent().unwrap_or(&folder), &folder] {
            match Folder::open(place) {
                Ok(there) => there
                    .check_ours_alone()
                    .map_err(|error| CacheError::new(place, error.into()))?,
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(CacheError::new(place, cause)),
            }
        }
        Ok(Some(Cache::at(&folder, SIZE_DEFAULT)))
    }

    /// The cache in `folder`, trimmed to `limit`.
    pub fn at(folder: &Path, limit: Bytes) -> Cache {
        Cache { folder: folder.into(), limit }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The size that it is trimmed to.
    pub fn limit(&self) -> Bytes {
        self.limit
    }

    /// The run with this key, if it is cached.
    pub fn find(&self, key: &Key) -> Option<Found> {
        let (entry, files) = self.open(key)?;
        let mut row = results::row(&files).ok().flatten()?;
        row.cached = true;
        // The time decides which entry is removed first; a failure is not worth repeating a run.
        let _ = entry.write_whole(USED, b"1");
        Some(Found { row, files })
    }

    /// The entry of a key and the folder of its run, if both belong to this user alone.
    fn open(&self, key: &Key) -> Option<(Folder, Folder)> {
        let cache = Folder::open(&self.folder).ok()?;
        let entry = cache.folder(key.to_string()).ok()?;
        let run = entry.folder(RUN).ok()?;
        let alone =
            [&cache, &entry, &run].into_iter().all(|folder| folder.check_ours_alone().is_ok());
        alone.then_some((entry, run))
    }

    /// Stores a copy of a run whose files are in `files`.
    pub fn insert(&self, key: &Key, files: &Path, row: &RunRow) {
        // The folder is not ours, or cannot be made.
        let Ok(cache) = make_own(&self.folder) else { return };
        let part = format!("{key}-{}{PART}", std::process::id());
        let kept = cache
            .make_folder(&part, 0o700)
            .and_then(|entry| fill(&entry, files, row))
            .and_then(|()| cache.rename(&part, key.to_string()));
        if kept.is_err() {
            // It exists already, or there is no room.
            let _ = cache.remove_folder(&part);
        }
    }

    fn entry(&self, key: &Key) -> PathBuf {
        self.folder.join(key.to_string())
    }

    /// All cached runs, most recently used first.
    pub fn list(&self) -> Vec<CachedRun> {
        let mut kept: Vec<CachedRun> = self.keys().filter_map(|key| self.kept(key)).collect();
        kept.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.key.cmp(&b.key)));
        kept
    }

    fn keys(&self) -> impl Iterator<Item = Key> {
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        names.filter_map(|entry| Key::parse(entry.file_name().to_str()?))
    }

    fn kept(&self, key: Key) -> Option<CachedRun> {
        let row = results::row(&self.open(&key)?.1).ok().flatten()?;
        let (size, used) = self.size_and_use(&key)?;
        Some(CachedRun { key, row, size, used })
    }

    fn size_and_use(&self, key: &Key) -> Option<(Bytes, SystemTime)> {
        let entry = self.entry(key);
        let used = fs::metadata(entry.join(USED))
            .and_then(|used| used.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH);
        let files =
            fs::read_dir(entry.join(RUN)).ok()?.flatten().filter_map(|file| file.metadata().ok());
        Some((
            files.map(|file| Bytes::new(file.len())).fold(Bytes::ZERO, Bytes::saturating_add),
            used,
        ))
    }

    /// Removes the least recently used runs until the rest fits into the limit.
    pub fn trim(&self) {
        // The next sweep tries again.
        let _ = self.clean(self.limit);
    }

    /// Removes the least recently used runs until the rest fits into `limit`; returns how many runs
    /// and bytes that were.
    ///
    /// # Errors
    /// The first entry that cannot be removed.
    pub fn clean(&self, limit: Bytes) -> io::Result<(usize, Bytes)> {
        self.remove_abandoned()?;
        let mut entries: Vec<_> =
            self.keys().filter_map(|key| Some((self.size_and_use(&key)?, key))).collect();
        // Most recently used first; entries after the limit is reached are removed.
        entries.sort_by(|((_, a), key), ((_, b), other)| b.cmp(a).then_with(|| key.cmp(other)));
        let (mut total, mut removed, mut freed) = (Bytes::ZERO, 0, Bytes::ZERO);
        for ((size, _), key) in entries {
            total = total.saturating_add(size);
            if total > limit {
                fs::remove_dir_all(self.entry(&key))?;
                removed += 1;
                freed = freed.saturating_add(size);
            }
        }
        Ok((removed, freed))
    }

    fn remove_abandoned(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let half = entry.file_name().to_str().is_some_and(|name| name.ends_with(PART));
            let touched = entry.metadata().and_then(|metadata| metadata.modified())?;
            if half && touched.elapsed().is_ok_and(|age| age > ABANDONED_AFTER.into()) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Writes the whole of a new entry.
fn fill(entry: &Folder, files: &Path, row: &RunRow) -> io::Result<()> {
    let run = entry.make_folder(RUN, 0o700)?;
    copy(files, &run)?;
    run.write_whole(results::ROW, &serde_json::to_vec(row)?)?;
    entry.write_whole(USED, b"1")
}

/// Copies a run's files except its row, which is written anew.
fn copy(from: &Path, to: &Folder) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        if name != results::ROW {
            io::copy(&mut fs::File::open(&path)?, &mut to.create(name)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    fn key(digit: char) -> Key {
        Key::parse(&digit.to_string().repeat(64)).unwrap()
    }

    fn scratch(name: &str) -> Scratch {
        let folder =
            std::env::temp_dir().join(format!("fullpipe-test-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("run")).unwrap();
        fs::write(folder.join("run/link.json"), [b'x'; 1000]).unwrap();
        Scratch(folder)
    }

    #[test]
    fn what_was_put_in_is_found_whole_and_says_where_it_is_from() {
        let place = scratch("cache-find");
        let cache = Cache::at(&place.0.join("runs"), SIZE_DEFAULT);
        assert!(cache.find(&key('a')).is_none() && cache.list().is_empty());
        // A share that two decimal digits cannot express.
        let row = RunRow { name: "b2".into(), limit_share: 1.0 / 3.0, ..RunRow::default() };
        cache.insert(&key('a'), &place.0.join("run"), &row);
        cache.insert(&key('a'), &place.0.join("run"), &RunRow::default());
        let found = cache.find(&key('a')).unwrap();
        assert_eq!(found.row, RunRow { cached: true, ..row });
        assert_eq!(found.files.read("link.json").unwrap(), [b'x'; 1000]);
        assert!(cache.find(&key('b')).is_none());
        let names: Vec<_> =
            fs::read_dir(cache.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [key('a').to_string().as_str()], "nothing is left of the second");
        let path = found.files.by_descriptor();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(cache.find(&key('a')).is_none(), "others can write to it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(cache.find(&key('a')).is_some());
        fs::write(path.join(results::ROW), "{").unwrap();
        assert!(cache.find(&key('a')).is_none(), "what is damaged is not there");
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let place = scratch("cache-clean");
        let cache = Cache::at(&place.0.join("runs"), Bytes::new(1 << 20));
        for (age, digit) in ['a', 'b', 'c'].into_iter().enumerate() {
            cache.insert(&key(digit), &place.0.join("run"), &RunRow::default());
            let used =
                File::options().write(true).open(cache.entry(&key(digit)).join(USED)).unwrap();
            used.set_modified(
                SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(100 - age as u64),
            )
            .unwrap();
        }
        fs::write(cache.folder().join("foreign"), "stays").unwrap();
        cache.find(&key('b')).unwrap();
        let order: Vec<Key> = cache.list().into_iter().map(|kept| kept.key).collect();
        assert_eq!(order, [key('b'), key('a'), key('c')]);
        let one = cache.list()[0].size;
        assert!(one > Bytes::new(1000));
        cache.trim();
        assert_eq!(cache.list().len(), 3, "all of it fits");
        assert_eq!(cache.clean(Bytes::new(one.get() * 2)).unwrap(), (1, one));
        assert!(cache.find(&key('c')).is_none() && cache.find(&key('b')).is_some());
        assert_eq!(cache.clean(Bytes::ZERO).unwrap().0, 2);
        assert!(cache.list().is_empty() && cache.folder().join("foreign").exists());
    }
}
