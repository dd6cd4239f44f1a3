//! A control group for one program: a folder below this process's own in cgroup v2.
//!
//! A program is started inside by moving ourselves in, starting it, and moving back: so it is
//! inside before its first instruction, and no hook between fork and exec is needed. An empty group
//! that a killed process left is removed by the next start. Processes of other PID namespaces make
//! their groups here too, with our number perhaps: so a group's lock says that somebody has it.

use crate::cmd::program;
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use nix::fcntl::{Flock, FlockArg};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Names of our groups; the number of the process follows.
const PREFIX: &str = "fullpipe-window-";
/// What may follow that, where others have the same number.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

/// A group of our own. It is removed when this is dropped, unless processes are left in it.
pub struct Group {
    path: PathBuf,
    /// Where this process was.
    home: PathBuf,
    /// Its lock, as long as this process lives.
    _lock: Flock<File>,
}

impl Group {
    /// Makes a group below this process's own.
    pub fn new() -> Result<Group, Failure> {
        let home = own_group()?;
        remove_left_over(&home);
        let first = format!("{PREFIX}{}", std::process::id());
        let others = LETTERS.chars().map(|letter| format!("{first}{letter}"));
        let mut made = Err(io::Error::from(io::ErrorKind::AlreadyExists));
        let mut path = home.join(&first);
        for name in std::iter::once(first.clone()).chain(others) {
            path = home.join(name);
            made = make(&path);
            let taken = [io::ErrorKind::AlreadyExists, io::ErrorKind::NotFound];
            if !made.as_ref().is_err_and(|cause| taken.contains(&cause.kind())) {
                break;
            }
        }
        let lock =
            made.map_err(|cause| failed(["make control group", "创建控制组"], &path, &cause))?;
        Ok(Group { path, home, _lock: lock })
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a program with its arguments in it.
    pub fn start(&self, words: &[OsString]) -> Result<Child, Failure> {
        enter(&self.path)?;
        let child = program::start(Command::new(&words[0]).args(&words[1..]), "window");
        enter(&self.home)?;
        child
    }

    /// Whether no process is in it.
    pub fn is_empty(&self) -> bool {
        let processes = fs::read_to_string(self.path.join("cgroup.procs"));
        processes.is_ok_and(|processes| processes.trim().is_empty())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A program that left processes behind keeps its group; the next start removes it.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Makes a group and locks it. It is not found if somebody took it for left over in between.
fn make(path: &Path) -> io::Result<Flock<File>> {
    fs::create_dir(path)?;
    let folder = Flock::lock(File::open(path)?, FlockArg::LockExclusive)
        .map_err(|(_, errno)| io::Error::from(errno))?;
    // The lock of a folder that is gone already would be of no use.
    if fs::metadata(path)?.ino() != folder.metadata()?.ino() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Ok(folder)
}

/// Moves this process.
fn enter(group: &Path) -> Result<(), Failure> {
    fs::write(group.join("cgroup.procs"), "0")
        .map_err(|cause| failed(["enter control group", "进入控制组"], group, &cause))
}

fn failed([operation, chinese]: [&str; 2], group: &Path, cause: &io::Error) -> Failure {
    let denied = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    let kind = if denied.contains(&cause.kind()) { Kind::Missing } else { Kind::Run };
    let group = group.display();
    let told = Sentence::new(
        format!(
            "window: {operation} {group}: {cause}; it needs root and a writable cgroup v2; --cgroup PATH \
             names one that exists"
        ),
        format!(
            "window：{chinese} {group}：{cause}；需要 root 和可写的 cgroup v2；--cgroup PATH 可给出现有的"
        ),
    );
    Failure::new(kind, told)
}

/// Empty groups that nobody has locked. One with processes refuses to be removed.
fn remove_left_over(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(PREFIX));
        let Some(folder) = is_ours.then(|| File::open(entry.path()).ok()).flatten() else {
            continue;
        };
        if Flock::lock(folder, FlockArg::LockExclusiveNonblock).is_ok() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Whether a group can be made below this process's own, which is returned; nothing is made.
pub fn check() -> Result<PathBuf, Failure> {
    let home = own_group()?;
    let processes = fs::OpenOptions::new().write(true).open(home.join("cgroup.procs"));
    processes.map_err(|cause| failed(["write to control group", "写入控制组"], &home, &cause))?;
    Ok(home)
}

fn read(file: &str) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|cause| {
        let what = Sentence::new(format!("window: read {file}"), format!("window：读取 {file}"));
        Failure::new(Kind::Run, what.with(cause))
    })
}

/// The folder of this process's group in cgroup v2.
fn own_group() -> Result<PathBuf, Failure> {
    let (mounts, groups) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
    find(&mounts, &groups).ok_or_else(|| {
        let told = Sentence::new(
            "window: no cgroup v2 with this process is mounted; mount it: mount -t cgroup2 none \
             /sys/fs/cgroup; --cgroup PATH names another",
            "window：没有挂载包含此进程的 cgroup v2；请挂载：mount -t cgroup2 none /sys/fs/cgroup；\
             --cgroup PATH 可给出另一个",
        );
        Failure::new(Kind::Missing, told)
    })
}

/// The mount of cgroup v2 in proc(5)'s `mountinfo`, and below it the group with number 0 of
/// `cgroup`.
fn find(mounts: &str, groups: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (root, point) = (place.next()?, place.next()?);
        let below = Path::new(group).strip_prefix(root).ok()?;
        let is_v2 = kind.split(' ').next() == Some("cgroup2");
        is_v2.then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
24 30 0:22 / /proc rw,nosuid - proc proc rw
35 34 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
34 33 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
";

    #[test]
    fn the_own_group_is_below_the_mount_of_version_2() {
        let found = find(MOUNTS, "1:name=systemd:/a\n0::/user.slice/b.scope\n");
        assert_eq!(found.unwrap(), Path::new("/sys/fs/cgroup/unified/user.slice/b.scope"));
        assert_eq!(find(MOUNTS, "0::/\n").unwrap(), Path::new("/sys/fs/cgroup/unified"));
    }

    #[test]
    fn a_group_outside_of_the_mount_is_not_found() {
        let within = MOUNTS.replace("0:28 / ", "0:28 /docker/1 ");
        assert_eq!(find(&within, "0::/user.slice\n"), None);
        assert_eq!(
            find(&within, "0::/docker/1/x\n").unwrap(),
            Path::new("/sys/fs/cgroup/unified/x")
        );
        assert_eq!(find("", "0::/\n"), None);
        assert_eq!(find(MOUNTS, "1:cpu:/\n"), None);
    }
}
