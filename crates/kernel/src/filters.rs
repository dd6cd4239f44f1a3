//! Programs at a device's hooks where the kernel has no `tcx` (before Linux 6.6): filters that do
//! nothing once we have ended.
//!
//! A filter belongs to its device and stays when the process that made it is killed. So the filter
//! itself is a few instructions that go on (tail call) to the program in slot 0 of a table, and let
//! the packet pass where that is empty. The table's descriptor is ours alone, and **the kernel
//! empties a program table when its last descriptor is closed** (`bpf_fd_array_map_clear`, since
//! Linux 4.2): a process that is killed has detached, and what it leaves lets every packet pass.
//!
//! What is left is noted beforehand, in a file beside the journals, and [`clean`] takes it away,
//! with the `clsact` that it needed if nobody else has filters there by then.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::Refused;
use crate::bpf::{self, Hook};
use crate::journal;
use crate::netlink::Netlink;
use crate::netns::NetNs;

const PREFIX: &str = "filters-";
const BOTH: [Hook; 2] = [Hook::Ingress, Hook::Egress];

/// A filter that leads to a program as long as this value lives.
#[derive(Debug)]
pub struct Filter {
    _slot: OwnedFd,
    netlink: Netlink,
    device: u32,
    hook: Hook,
    note: Option<Note>,
}

/// What is known, beyond the end of this process, of the filters on a device.
#[derive(Debug, Clone)]
struct Note(PathBuf);

impl Note {
    /// Of the device with number `device` in `ns`.
    fn of(ns: &NetNs, device: u32) -> Result<Note, Refused> {
        let directory = directory()?;
        Ok(Note(directory.join(format!("{PREFIX}{}-{device}", ns.inode()?))))
    }

    /// Notes that there will be filters; `made`: the device had no hooks for them before.
    fn write(&self, made: bool) -> Result<(), Refused> {
        fs::write(&self.0, if made { "clsact" } else { "" })
            .map_err(|cause| Refused::new("note filters in", self.0.display().to_string(), cause))
    }

    /// What was noted; `None`: nothing.
    fn made(&self) -> Option<bool> {
        fs::read(&self.0).ok().map(|text| text == b"clsact")
    }

    /// Forgets it, and takes the hooks away if they are ours and nobody uses them.
    fn settle(&self, netlink: &mut Netlink, device: u32) -> Result<(), Refused> {
        let ours = self.made() == Some(true);
        if ours
            && !netlink.has_filter(device, Hook::Ingress)?
            && !netlink.has_filter(device, Hook::Egress)?
        {
            netlink.delete_clsact(device)?;
        }
        let _ = fs::remove_file(&self.0);
        Ok(())
    }
}

fn directory() -> Result<PathBuf, Refused> {
    journal::own_directory().map_err(|error| {
        Refused::new("find", "the directory of journals", std::io::Error::other(error.to_string()))
    })
}

impl Filter {
    /// Has packets at `hook` of the device with number `device` in `ns` meet `program`. `subject`
    /// names both in messages. `stays`: the device does not go with this process, as one of our own
    /// does.
    pub fn add(
        ns: &NetNs,
        program: &[u64],
        (device, hook): (u32, Hook),
        stays: bool,
        subject: &str,
    ) -> Result<Filter, Refused> {
        let (slot, stub) = bpf::behind_a_slot(program, subject)?;
        let mut netlink = Netlink::open(ns)?;
        let note = if stays { Some(Note::of(ns, device)?) } else { None };
        let before = note.as_ref().and_then(Note::made);
        // Before it is made, and again with what was found: nothing is left without a note of it.
        if let Some(note) = &note {
            note.write(before.unwrap_or(false))?;
        }
        let made = netlink.add_clsact(device)? || before == Some(true);
        if let Some(note) = &note {
            note.write(made)?;
        }
        netlink.set_filter(device, hook, stub.as_fd())?;
        Ok(Filter { _slot: slot, netlink, device, hook, note })
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        let Some(note) = &self.note else { return };
        // A device that is gone took them along; whatever else goes wrong is left to `clean`.
        let _ = self.netlink.delete_filter(self.device, self.hook);
        let other = BOTH.map(|hook| {
            hook != self.hook && self.netlink.has_filter(self.device, hook).unwrap_or(true)
        });
        if !other.contains(&true) {
            let _ = note.settle(&mut self.netlink, self.device);
        }
    }
}

/// Takes away what killed processes left on devices of `ns`; how many devices that were. `lives`
/// says of a device's number whether its filters are in use.
pub fn clean(ns: &NetNs, lives: impl Fn(&mut Netlink, u32) -> bool) -> Result<usize, Refused> {
    let (mut netlink, prefix) = (Netlink::open(ns)?, format!("{PREFIX}{}-", ns.inode()?));
    let mut cleaned = 0;
    let entries = fs::read_dir(directory()?).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let Some(device) = number(&path, &prefix) else { continue };
        if lives(&mut netlink, device) {
            continue;
        }
        let gone = BOTH.map(|hook| netlink.delete_filter(device, hook));
        let device_is_gone =
            gone.iter().any(|gone| gone.as_ref().is_err_and(|e| e.errno() == Some(libc::ENODEV)));
        if device_is_gone {
            let _ = fs::remove_file(&path);
            continue;
        }
        for gone in gone {
            gone?;
        }
        Note(path).settle(&mut netlink, device)?;
        cleaned += 1;
    }
    Ok(cleaned)
}

/// The device in a note's name.
fn number(path: &Path, prefix: &str) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notes_name_says_the_device_of_this_namespace_only() {
        assert_eq!(number(Path::new("/run/fullpipe/filters-7-12"), "filters-7-"), Some(12));
        for name in ["filters-77-12", "filters-7-x", "filters-7-", "link-7.sock"] {
            assert_eq!(number(Path::new(name), "filters-7-"), None, "{name}");
        }
    }
}
