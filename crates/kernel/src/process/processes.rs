//! Which process has a socket open, what it runs and in which container.
//!
//! A socket's file has an inode, which `sock_diag` reports, and each descriptor of it is a link in
//! `/proc/PID/fd`. [`SocketOwners::read`] reads all links that this process may read: those of
//! every process as root, those of the user's own otherwise. That is some 20 us for each process of
//! the host, so read it when an owner is unknown, not for each sample.
//!
//! Sources: proc(5), cgroups(7).

use std::collections::HashMap;
use std::fs;

use fullpipe_model::observe::{Process, Workload};

/// The process with this id, without its pod's name; `None` if there is none any more.
pub fn process(pid: u32) -> Option<Process> {
    let [name, command, cgroup] =
        ["comm", "cmdline", "cgroup"].map(|file| fs::read(format!("/proc/{pid}/{file}")).ok());
    let name = String::from_utf8_lossy(&name?).trim_end().to_string();
    let command = command.map(|bytes| words(&bytes)).unwrap_or_default();
    let cgroup = cgroup.and_then(|bytes| group(&String::from_utf8_lossy(&bytes)));
    let container = cgroup.as_deref().and_then(|path| Workload::of(path).container);
    let container = container.map(Into::into);
    Some(Process { pid, name, command, cgroup, container, pod: None })
}

/// A descriptor of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// The process.
    pub pid: u32,
    /// The descriptor's number there.
    pub number: u32,
}

/// The processes that have sockets open.
#[derive(Debug, Clone, Default)]
pub struct SocketOwners {
    by_inode: HashMap<u64, Descriptor>,
    /// Whether some processes did not let us read their descriptors.
    has_hidden: bool,
}

impl SocketOwners {
    /// Reads the descriptors of all processes.
    pub fn read() -> SocketOwners {
        let mut owners = SocketOwners::default();
        for pid in pids() {
            match fs::read_dir(format!("/proc/{pid}/fd")) {
                Ok(entries) => {
                    for entry in entries.flatten() {
                        owners.note(pid, &entry);
                    }
                }
                Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                    owners.has_hidden = true;
                }
                // It ended meanwhile.
                Err(_) => {}
            }
        }
        owners
    }

    fn note(&mut self, pid: u32, entry: &fs::DirEntry) {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let target = fs::read_link(entry.path()).ok();
        let inode = target.as_ref().and_then(|target| socket_inode(target.to_str()?));
        if let (Some(number), Some(inode)) = (number, inode) {
            // The first process that has it: pids come in order, and parents before children.
            self.by_inode.entry(inode).or_insert(Descriptor { pid, number });
        }
    }

    /// A descriptor of the socket with this inode.
    pub fn of(&self, inode: u64) -> Option<Descriptor> {
        self.by_inode.get(&inode).copied()
    }

    /// Whether there are processes whose descriptors this process may not read.
    pub fn has_hidden(&self) -> bool {
        self.has_hidden
    }
}

/// Whether this process may read the descriptors of every process, even of the first one.
pub fn sees_all() -> bool {
    fs::read_dir("/proc/1/fd").is_ok()
}

/// The ids of all processes, in order.
pub(crate) fn pids() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// `socket:[12345]` names inode 12345.
fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Arguments end with NUL bytes.
fn words(command: &[u8]) -> String {
    let parts = command.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    parts.map(|part| String::from_utf8_lossy(part)).collect::<Vec<_>>().join(" ")
}

/// The path of cgroup v2 (`0::/path`), or else of the first hierarchy of v1 that names more than
/// the root.
fn group(text: &str) -> Option<String> {
    let mut paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let unified = text.lines().find_map(|line| line.strip_prefix("0::"));
    let named = unified.filter(|path| *path != "/").or_else(|| paths.find(|path| *path != "/"));
    named.or(unified).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_group_of_version_two_comes_first() {
        assert_eq!(group("1:name=systemd:/a\n0::/b/c\n").as_deref(), Some("/b/c"));
        assert_eq!(group("12:memory:/docker/x\n0::/\n").as_deref(), Some("/docker/x"));
        assert_eq!(group("0::/\n").as_deref(), Some("/"));
        assert_eq!(group(""), None);
    }

    #[test]
    fn a_socket_of_our_own_is_ours() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
        let inode = fs::metadata(path).unwrap().ino();
        let found = SocketOwners::read().of(inode).unwrap();
        assert_eq!(found.pid, std::process::id());
        assert_eq!(found.number, socket.as_raw_fd() as u32);
        let process = process(found.pid).unwrap();
        assert!(!process.name.is_empty() && !process.command.is_empty(), "{process:?}");
        assert_eq!(super::process(u32::MAX), None);
    }

    proptest! {
        #[test]
        fn foreign_text_is_read_or_passed_over(text in "\\PC{0,80}") {
            let _ = (socket_inode(&text), group(&text), words(text.as_bytes()));
        }
    }
}
