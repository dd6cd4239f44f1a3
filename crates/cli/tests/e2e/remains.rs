//! Looks for anything that a run may have left behind: processes, namespaces, devices, journals,
//! scratch directories, sysctls, mounts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fullpipe_model::units::Duration;

use crate::program::{MARK, Program, until};

/// The kernel takes a namespace down in its own time after the last process is gone.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The machine's own state that no run may change.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    devices: BTreeSet<String>,
    sysctls: BTreeMap<PathBuf, Vec<u8>>,
    namespace_mounts: Vec<String>,
}

impl Machine {
    /// As it is now.
    pub fn look() -> Machine {
        let names = |path: &str| {
            fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap())
        };
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut sysctls = BTreeMap::new();
        settings(Path::new("/proc/sys/net"), &mut sysctls);
        settings(Path::new("/proc/sys/user"), &mut sysctls);
        sysctls.retain(|path, _| !is_counter(path));
        assert!(sysctls.contains_key(Path::new("/proc/sys/net/ipv4/tcp_rmem")));
        Machine {
            devices: names("/sys/class/net").collect(),
            sysctls,
            namespace_mounts: mounts
                .lines()
                .filter(|line| line.contains("nsfs"))
                .map(Into::into)
                .collect(),
        }
    }

    /// Fails with what differs.
    pub fn assert_unchanged(&self) {
        let now = Machine::look();
        assert_eq!(now.devices, self.devices, "devices of the machine");
        assert_eq!(now.namespace_mounts, self.namespace_mounts, "mounted namespaces");
        for (path, value) in &self.sysctls {
            let (before, after) = (String::from_utf8_lossy(value), now.sysctls.get(path));
            let after = String::from_utf8_lossy(after.map_or(&[], Vec::as_slice));
            assert_eq!(after.trim(), before.trim(), "{}", path.display());
        }
    }
}

/// Values that change by themselves.
fn is_counter(path: &Path) -> bool {
    path.ends_with("nf_conntrack_count") || path.ends_with("stable_secret")
}

/// Every setting below `folder` that can be written and read.
fn settings(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            settings(&entry.path(), found);
        } else if metadata.permissions().mode() & 0o600 == 0o600
            && let Ok(value) = fs::read(entry.path())
        {
            found.insert(entry.path(), value);
        }
    }
}

/// Ids of the processes that carry the program's mark.
pub fn processes(program: &Program) -> Vec<u32> {
    all_processes().filter(|&id| mark_of(id).as_deref() == Some(program.mark())).collect()
}

/// The mark of a trial's program on a process.
fn mark_of(process: u32) -> Option<String> {
    let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
    let mark = format!("{MARK}=");
    let found =
        environment.split(|&byte| byte == 0).find_map(|it| it.strip_prefix(mark.as_bytes()));
    found.map(|value| String::from_utf8_lossy(value).into_owned())
}

fn all_processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn parent_of(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok())
}

/// Whether nothing of the program can be in this process: it is the trials' own, or one that a
/// trial started by itself, or another trial's program's. The kernel gives the number of a
/// namespace that is gone to the next one, and that may be theirs.
fn is_others(process: u32, program: &Program) -> bool {
    if let Some(mark) = mark_of(process) {
        return mark != program.mark();
    }
    process == std::process::id() || parent_of(process) == Some(std::process::id())
}

/// `net:[inode]` of every network namespace that these processes are in, with any thread, or hold
/// open, but for our own.
pub fn namespaces(processes: impl IntoIterator<Item = u32>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for id in processes {
        let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        let threads = threads.map(|thread| thread.path().join("ns/net"));
        let files = fs::read_dir(format!("/proc/{id}/fd"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.path());
        let links = threads.chain(files).filter_map(|path| fs::read_link(path).ok());
        found.extend(links.filter_map(|link| {
            Some(link.to_str().filter(|name| name.starts_with("net:["))?.to_string())
        }));
    }
    found.remove(fs::read_link("/proc/self/ns/net").unwrap().to_str().unwrap());
    found
}

/// Id of the process that is number `inner` of the run's PID namespace: 1 is init, 2 the worker.
pub fn process_inside(program: &Program, inner: u32) -> Option<u32> {
    processes(program).into_iter().find(|id| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        numbers.is_some_and(|numbers| {
            let numbers: Vec<_> = numbers.split_whitespace().collect();
            numbers.len() > 1 && numbers.last() == Some(&inner.to_string().as_str())
        })
    })
}

/// Fails unless nothing of the program is left: its processes, the `namespaces` that it was seen
/// with, scratch directories, the journals of its `supervisors`, and changes to the machine.
pub fn assert_nothing_left(
    program: &Program,
    namespaces_seen: &BTreeSet<String>,
    supervisors: &[u32],
    machine: &Machine,
) {
    until("its processes are gone", PATIENCE, || processes(program).is_empty());
    until("its namespaces are gone", PATIENCE, || {
        let others = all_processes().filter(|&id| !is_others(id, program));
        namespaces(others).is_disjoint(namespaces_seen)
    });
    assert_eq!(program.scratch(), Vec::<PathBuf>::new(), "scratch directories");
    assert_eq!(journals(supervisors), Vec::<PathBuf>::new(), "journals");
    machine.assert_unchanged();
}

/// Journals of runs with these supervisors. Others may be there: the folder belongs to all runs of
/// a user.
fn journals(supervisors: &[u32]) -> Vec<PathBuf> {
    let own = format!("/tmp/fullpipe-{}", nix::unistd::geteuid());
    let folders = ["/run/fullpipe", "/tmp/fullpipe-1000", own.as_str()];
    let files =
        folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
    let ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        supervisors.iter().any(|id| name.starts_with(&format!("run-{id}-")))
    };
    files.map(|entry| entry.path()).filter(ours).collect()
}
