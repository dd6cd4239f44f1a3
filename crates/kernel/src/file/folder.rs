//! Folders held by descriptor, and files that are written completely or not at all.
//!
//! A path is resolved anew at each use, and whoever can write to one of its directories decides
//! where it leads. A [`Folder`] is resolved once: everything in it is found, made, renamed and
//! removed relative to its descriptor (`openat` and its kin), and its last name is never a symbolic
//! link. So once the owner of the folder has been checked, on the descriptor, nobody can replace
//! it.
//!
//! Files that matter are written through [`Pending`]: under a temporary name that did not exist
//! (`O_EXCL`), synced, renamed. A reader, or a machine that went down, has either the old file or
//! the new one.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{AT_FDCWD, AtFlags, Flock, FlockArg, OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, linkat, unlinkat};

/// Permission bits that let anybody but the owner write.
const OTHERS_WRITE: u32 = 0o022;
/// Suffix of incomplete files and folders.
const PART: &str = ".part";
/// Regardless of the umask: a file that others can write is not trusted later.
const MODE: u32 = 0o644;

/// Why a folder or a file is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct NotOurs {
    /// Which one.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl From<NotOurs> for io::Error {
    fn from(error: NotOurs) -> Self {
        io::Error::new(io::ErrorKind::PermissionDenied, error)
    }
}

/// A directory, held open.
#[derive(Debug)]
pub struct Folder {
    handle: File,
    path: PathBuf,
}

/// A directory that this process alone holds ([`Folder::hold`]).
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "it unlocks when it is dropped")] Flock<File>);

impl Folder {
    /// Opens the directory at `path`, whose last name must not be a symbolic link.
    pub fn open(path: &Path) -> io::Result<Folder> {
        // With a slash at the end, a link would be followed.
        let plain: PathBuf = path.components().collect();
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let handle = open(&plain, flags, Mode::empty())
            .map_err(|errno| not_a_folder(&plain, errno.into()))?;
        Ok(Folder { handle: handle.into(), path: path.into() })
    }

    /// The path by which it was opened; another directory may have this name by now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to this very directory, whatever has happened to its name. Valid in this process as
    /// long as this value lives.
    pub fn by_descriptor(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()))
    }

    /// Holds the directory until what is returned is dropped: whoever else asks for it waits. Where
    /// it is held already, `waits` is called first.
    pub fn hold(&self, waits: impl FnOnce()) -> io::Result<FolderLock> {
        if let Some(lock) = self.try_hold()? {
            return Ok(lock);
        }
        waits();
        let lock = Flock::lock(File::open(self.by_descriptor())?, FlockArg::LockExclusive);
        lock.map(FolderLock).map_err(|(_, errno)| errno.into())
    }

    /// The same without waiting; `None` where it is held already.
    pub fn try_hold(&self) -> io::Result<Option<FolderLock>> {
        let file = File::open(self.by_descriptor())?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(FolderLock(lock))),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// Refuses a directory of another user.
    pub fn check_owner(&self) -> Result<(), NotOurs> {
        check(&self.handle, &self.path, 0)
    }

    /// Refuses a directory of another user, and one that others can write to.
    pub fn check_ours_alone(&self) -> Result<(), NotOurs> {
        check(&self.handle, &self.path, OTHERS_WRITE)
    }

    /// Whether somebody else could make or replace files in it.
    pub fn is_shared(&self) -> bool {
        self.check_ours_alone().is_err()
    }

    /// The directory `name` in it.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let path = self.path.join(one_name(name.as_ref())?);
        let handle = openat(&self.handle, name.as_ref(), flags, Mode::empty())
            .map_err(|e| not_a_folder(&path, e.into()))?;
        Ok(Folder { handle: handle.into(), path })
    }

    /// Makes the directory `name`, which must not exist, with this mode, reduced by the process's
    /// `umask`.
    pub fn make_folder(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Folder> {
        mkdirat(&self.handle, one_name(name.as_ref())?, Mode::from_bits_truncate(mode))?;
        let made = self.folder(name)?;
        // Whoever can write in here could have replaced it.
        made.check_owner()?;
        Ok(made)
    }

    /// Opens the directory `name` and makes it if it is missing; it must belong to us alone.
    pub(crate) fn own_folder(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        match self.make_folder(name.as_ref(), 0o700) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
        let there = self.folder(name)?;
        there.check_ours_alone()?;
        Ok(there)
    }

    /// Opens the regular file `name` for reading.
    pub fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        // Without O_NONBLOCK, opening a FIFO of this name would block forever.
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file: File =
            openat(&self.handle, one_name(name.as_ref())?, flags, Mode::empty())?.into();
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
        }
        Ok(file)
    }

    /// The same, but refuses a file of another user and one that others can write to.
    pub fn open_own_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let file = self.open_file(name.as_ref())?;
        check(&file, &self.path.join(name.as_ref()), OTHERS_WRITE)?;
        Ok(file)
    }

    /// Reads the regular file `name`.
    pub fn read(&self, name: impl AsRef<OsStr>) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open_file(name)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Makes the file `name`, which must not exist.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::from_bits_truncate(MODE);
        Ok(openat(&self.handle, one_name(name.as_ref())?, flags, mode)?.into())
    }

    /// Begins the file `name`. It gets that name when it is complete, and replaces an existing
    /// file.
    pub fn begin(&self, name: impl AsRef<OsStr>) -> io::Result<Pending> {
        let folder = self.handle.try_clone()?;
        let name = one_name(name.as_ref())?.to_owned();
        let (part, file) = under_free_name(&name, |part| self.create(part))?;
        Ok(Pending { folder, file, part: Some(part), name, done: false })
    }

    /// The same, but until then it has no name at all where the file system can do that
    /// (`O_TMPFILE`): then a process that is killed leaves nothing, however much it has written.
    pub fn begin_nameless(&self, name: impl AsRef<OsStr>) -> io::Result<Pending> {
        let name = one_name(name.as_ref())?.to_owned();
        let flags = OFlag::O_WRONLY | OFlag::O_TMPFILE | OFlag::O_CLOEXEC;
        let Ok(file) = openat(&self.handle, ".", flags, Mode::from_bits_truncate(MODE)) else {
            return self.begin(name);
        };
        let folder = self.handle.try_clone()?;
        Ok(Pending { folder, file: file.into(), part: None, name, done: false })
    }

    /// Writes the file `name` completely or not at all.
    pub fn write_whole(&self, name: impl AsRef<OsStr>, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.begin(name)?;
        file.write_all(bytes)?;
        file.commit()
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(self.by_descriptor())?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Waits until everything in it, and in the rest of its file system, is on disk: sooner than
    /// many files one after another.
    pub fn sync_file_system(&self) -> io::Result<()> {
        Ok(nix::unistd::syncfs(&self.handle)?)
    }

    /// Renames `from` to `to`, which must be free, a file, or an empty directory.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(renameat(&self.handle, one_name(from.as_ref())?, &self.handle, one_name(to.as_ref())?)?)
    }

    /// Removes the file or link `name`.
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&self.handle, one_name(name.as_ref())?, UnlinkatFlags::NoRemoveDir)?)
    }

    /// Removes the directory `name` with everything in it. Links in it are removed, not followed.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        fs::remove_dir_all(self.by_descriptor().join(one_name(name.as_ref())?))
    }
}

/// Opens the directory at `path` and makes it and its parents if they are missing, for this user
/// only. It must belong to us alone, and root makes nothing in another user's directory.
pub fn make_own(path: &Path) -> io::Result<Folder> {
    match Folder::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        there => {
            let there = there?;
            there.check_ours_alone()?;
            return Ok(there);
        }
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let above = match Folder::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_own(parent)?,
        there => there?,
    };
    if geteuid().is_root() {
        above.check_owner()?;
    }
    above.own_folder(name)
}

/// Refuses a path that somebody else could redirect: one of its directories belongs to neither root
/// nor this user, or others can write to it and remove what is in it (which they cannot in a sticky
/// directory such as /tmp). For programs that are given a path instead of a descriptor.
pub fn check_path(path: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    for above in fs::canonicalize(path)?.ancestors() {
        let metadata = fs::symlink_metadata(above)?;
        let problem = if metadata.uid() != 0 && metadata.uid() != geteuid().as_raw() {
            "it belongs to another user"
        } else if metadata.mode() & OTHERS_WRITE != 0 && metadata.mode() & STICKY == 0 {
            "others can write to it (chmod go-w mends that)"
        } else {
            continue;
        };
        return Err(NotOurs { path: above.into(), problem }.into());
    }
    Ok(())
}

/// A copy of an open file that programs started from now on inherit: the interpreter of a script
/// opens the script again by its descriptor.
pub fn inheritable(file: &File) -> io::Result<OwnedFd> {
    Ok(nix::unistd::dup(file)?)
}

/// What is wrong with a folder or file, if that caused `error`.
pub fn not_ours(error: &io::Error) -> Option<NotOurs> {
    error.get_ref()?.downcast_ref::<NotOurs>().cloned()
}

/// Whether `name` belongs to an incomplete file of a process of ours that was killed.
pub fn is_left_over(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b".") && name.ends_with(PART.as_bytes())
}

/// Resolves a path through a descriptor to a readable one; returns any other path unchanged.
pub fn readable(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let through: PathBuf = parts.by_ref().take(5).collect();
    match through.starts_with("/proc/self/fd").then(|| fs::read_link(&through)) {
        Some(Ok(folder)) => folder.join(parts.as_path()),
        _ => path.into(),
    }
}

/// Makes something under a temporary name that nothing else has; also returns the name.
fn under_free_name<T>(
    name: &OsStr,
    make: impl Fn(&OsStr) -> io::Result<T>,
) -> io::Result<(OsString, T)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut part = OsString::from(".");
        part.push(name);
        part.push(format!(".{}-{number}{PART}", std::process::id()));
        match make(&part) {
            Ok(made) => return Ok((part, made)),
            // Left by a process that once had our id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// A file under its temporary name, or without any. Dropping it without commit removes the file.
#[derive(Debug)]
pub struct Pending {
    folder: File,
    file: File,
    /// `None`: it has no name yet.
    part: Option<OsString>,
    name: OsString,
    done: bool,
}

impl Pending {
    /// Begins the file at `path`, in any directory that the user named. Anything that exists and is
    /// not a regular file, such as a device, is not replaced.
    pub fn at(path: &Path) -> io::Result<Pending> {
        let (folder, name) = place_of(path)?;
        folder.begin(name)
    }

    /// The same without a name: see [`Folder::begin_nameless`].
    pub fn nameless_at(path: &Path) -> io::Result<Pending> {
        let (folder, name) = place_of(path)?;
        folder.begin_nameless(name)
    }

    /// Another handle of the file, for a writer that needs to own one.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Waits until the complete file is on disk, and gives it its name.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        // A link does not replace a file, and a new name does: so it gets a temporary one first.
        let part = match self.part.take() {
            Some(part) => part,
            None => self.link()?,
        };
        let renamed = renameat(&self.folder, part.as_os_str(), &self.folder, self.name.as_os_str());
        self.part = Some(part);
        renamed?;
        self.done = true;
        Ok(())
    }

    /// Gives a file without a name a temporary one.
    fn link(&self) -> io::Result<OsString> {
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let follow = AtFlags::AT_SYMLINK_FOLLOW;
        let (part, ()) = under_free_name(&self.name, |part| {
            Ok(linkat(AT_FDCWD, own.as_str(), &self.folder, part, follow)?)
        })?;
        Ok(part)
    }
}

fn not_a_place(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

/// The directory and the name of a file that is to be written.
fn place_of(path: &Path) -> io::Result<(Folder, &OsStr)> {
    let name = path.file_name().ok_or_else(|| not_a_place("it names no file"))?;
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(not_a_place("there is something else than a plain file"));
    }
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let handle = open(folder, OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    Ok((Folder { handle: handle.into(), path: folder.into() }, name))
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(part) = self.part.take().filter(|_| !self.done) {
            // A file that cannot be removed is recognised by its name later.
            let _ = unlinkat(&self.folder, part.as_os_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Writes the file at `path` completely or not at all: see [`Pending::at`].
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = Pending::at(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// The same, but writes directly into something that exists and is not a regular file: a pipe or a
/// device.
pub fn write_into(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, bytes);
    }
    write_whole(path, bytes)
}

/// Refuses a file of another user, and one with any permission bit of `forbidden`; checked on its
/// descriptor.
fn check(file: &File, path: &Path, forbidden: u32) -> Result<(), NotOurs> {
    let problem = match file.metadata() {
        Err(_) => "its owner cannot be read",
        Ok(metadata) if metadata.uid() != geteuid().as_raw() => "it belongs to another user",
        Ok(metadata) if metadata.mode() & forbidden != 0 => {
            "others can write to it (chmod go-w mends that)"
        }
        Ok(_) => return Ok(()),
    };
    Err(NotOurs { path: path.into(), problem })
}

/// Refuses a name that would leave its directory.
fn one_name(name: &OsStr) -> io::Result<&OsStr> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(std::path::Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of one file")),
    }
}

/// For a link Linux reports that it is not a directory.
fn not_a_folder(path: &Path, cause: io::Error) -> io::Error {
    if fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink()) {
        return io::Error::new(
            io::ErrorKind::NotADirectory,
            "it is a symbolic link; give the directory's own path",
        );
    }
    cause
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn place() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        (place, folder)
    }

    #[test]
    fn who_asks_for_a_held_folder_is_told_and_waits() {
        let (place, folder) = place();
        let held = folder.hold(|| panic!("nobody holds it")).unwrap();
        let (told, hears) = std::sync::mpsc::channel();
        let other = Folder::open(place.path()).unwrap();
        let waits = std::thread::spawn(move || other.hold(|| told.send(()).unwrap()).map(drop));
        hears.recv().unwrap();
        assert!(!waits.is_finished());
        drop(held);
        waits.join().unwrap().unwrap();
        folder.hold(|| panic!("it was let go")).unwrap();
    }

    #[test]
    fn links_are_neither_followed_nor_written_through() {
        let (place, folder) = place();
        let victim = place.path().join("victim");
        fs::write(&victim, "kept").unwrap();
        symlink(&victim, place.path().join("link")).unwrap();
        symlink(place.path(), place.path().join("around")).unwrap();
        assert!(folder.create("link").is_err() && folder.read("link").is_err());
        assert!(folder.folder("around").is_err() && folder.make_folder("around", 0o700).is_err());
        let refused = Folder::open(&place.path().join("around/")).unwrap_err().to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        folder.write_whole("link", b"new").unwrap();
        assert_eq!(
            (fs::read(&victim).unwrap(), folder.read("link").unwrap()),
            (b"kept".to_vec(), b"new".to_vec())
        );
        for outside in ["", ".", "..", "../x", "a/b", "/etc", "a/"] {
            assert!(folder.create(outside).is_err(), "{outside}");
        }
    }

    #[test]
    fn a_folder_is_the_same_after_its_name_is_another_ones() {
        let (place, folder) = place();
        let inner = folder.make_folder("inner", 0o755).unwrap();
        fs::rename(place.path().join("inner"), place.path().join("moved")).unwrap();
        symlink("/nonexistent", place.path().join("inner")).unwrap();
        inner.write_whole("file", b"x").unwrap();
        fs::write(inner.by_descriptor().join("other"), "y").unwrap();
        let mut names = inner.names().unwrap();
        names.sort();
        assert_eq!(names, ["file", "other"]);
        assert_eq!(fs::read(place.path().join("moved/file")).unwrap(), b"x");
        let told = readable(&inner.by_descriptor().join("file"));
        assert_eq!(told, fs::canonicalize(place.path()).unwrap().join("moved/file"));
        assert_eq!(readable(Path::new("a/b")), Path::new("a/b"));
        folder.remove_folder("inner").unwrap_or_default();
        folder.remove_folder("moved").unwrap();
        assert!(!place.path().join("moved").exists());
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
    fn what_others_own_or_can_write_is_not_ours_alone() {
        let (place, folder) = place();
        folder.check_ours_alone().unwrap();
        folder.write_whole("file", b"x").unwrap();
        folder.open_own_file("file").unwrap();
        let rights = |name: &str, mode| {
            fs::set_permissions(place.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        rights("file", 0o664);
        assert!(folder.open_own_file("file").unwrap_err().to_string().contains("others can write"));
        folder.own_folder("inner").unwrap();
        assert_eq!(fs::metadata(place.path().join("inner")).unwrap().mode() & 0o777, 0o700);
        rights("inner", 0o777);
        assert!(folder.own_folder("inner").is_err() && folder.folder("inner").unwrap().is_shared());
        if !geteuid().is_root() {
            eprintln!("SKIPPED: giving a file to another user takes root");
            return;
        }
        for name in ["file", "inner"] {
            rights(name, 0o700);
            std::os::unix::fs::chown(place.path().join(name), Some(1000), Some(1000)).unwrap();
        }
        assert!(folder.open_own_file("file").unwrap_err().to_string().contains("another user"));
        assert!(folder.folder("inner").unwrap().check_owner().is_err());
    }

    #[test]
    fn what_leads_to_a_place_counts_too() {
        let (place, folder) = place();
        let path = place.path().join("a/b");
        let made = make_own(&path).unwrap();
        made.check_ours_alone().unwrap();
        assert_eq!(make_own(&path).unwrap().path(), path);
        check_path(&path).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = check_path(&path).unwrap_err();
        assert_eq!(not_ours(&error).unwrap().path, fs::canonicalize(place.path()).unwrap());
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        check_path(&path).unwrap();
        assert!(make_own(place.path()).is_err() && folder.is_shared());
        assert_eq!(not_ours(&io::ErrorKind::NotFound.into()), None);
    }

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let (place, folder) = place();
        folder.write_whole("file", b"old").unwrap();
        let mut pending = folder.begin("file").unwrap();
        let second = folder.begin("file").unwrap();
        pending.write_all(b"new").unwrap();
        assert_eq!(folder.read("file").unwrap(), b"old");
        assert_eq!(folder.names().unwrap().iter().filter(|name| is_left_over(name)).count(), 2);
        pending.commit().unwrap();
        drop(second);
        assert_eq!(
            (folder.read("file").unwrap(), folder.names().unwrap()),
            (b"new".to_vec(), vec!["file".into()])
        );
        write_whole(&place.path().join("file"), b"third").unwrap();
        assert_eq!(folder.read("file").unwrap(), b"third");
        let mut nameless = Pending::nameless_at(&place.path().join("file")).unwrap();
        nameless.write_all(b"fourth").unwrap();
        assert_eq!(folder.names().unwrap(), ["file"], "this file system has O_TMPFILE");
        nameless.commit().unwrap();
        assert_eq!(folder.read("file").unwrap(), b"fourth");
        assert!(write_whole(Path::new("/dev/null"), b"").is_err(), "a device stays one");
        assert!(!is_left_over(OsStr::new("x.part")));
    }
}
