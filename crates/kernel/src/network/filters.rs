//! BPF programs at a device's hooks on kernels without `tcx` (before Linux 6.6): filters that have
//! no effect once we have ended.
//!
//! A filter belongs to its device and stays when the process that made it is killed. So the filter
//! itself is only a few instructions: a tail call to the program in slot 0 of a table; if the slot
//! is empty, the packet passes. Only we hold the table's descriptor, and **the kernel empties a
//! program table when its last descriptor is closed** (`bpf_fd_array_map_clear`, since Linux 4.2).
//! So a killed process is detached, and its leftover filter lets every packet pass.
//!
//! Before a filter is made, it is noted in a file beside the journals. [`clean`] removes it, and
//! also the `clsact` that it needed, unless somebody else has filters there by then.

use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::Refused;
use crate::bpf::{self, Hook, Map};
use crate::network::netlink::Netlink;
use crate::network::netns::NetNs;
use crate::run::journal;

const PREFIX: &str = "filters-";
const BOTH: [Hook; 2] = [Hook::Ingress, Hook::Egress];

/// A filter that leads to a program as long as this value lives.
#[derive(Debug)]
pub struct Filter {
    _slot: Map,
    netlink: Netlink,
    device: u32,
    hook: Hook,
    note: Option<Note>,
}

/// The file that records filters on a device; it outlives this process.
#[derive(Debug, Clone)]
struct Note(PathBuf);

impl Note {
    /// The note for device number `device` in `ns`.
    fn of(ns: &NetNs, device: u32) -> Result<Note, Refused> {
        let directory = directory()?;
        Ok(Note(directory.join(format!("{PREFIX}{}-{device}", ns.inode()?))))
    }

    /// Notes that there will be filters. `made`: the device had no `clsact` before.
    fn write(&self, made: bool) -> Result<(), Refused> {
        fs::write(&self.0, if made { "clsact" } else { "" })
            .map_err(|cause| Refused::new("note filters in", self.0.display().to_string(), cause))
    }

    /// What was noted: whether we made the `clsact`; `None` without a note.
    fn made(&self) -> Option<bool> {
        fs::read(&self.0).ok().map(|text| text == b"clsact")
    }

    /// Removes the note, and the `clsact` if we made it and nobody uses it.
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
    /// Runs `program` for packets at `hook` of device number `device` in `ns`. `subject` names both
    /// in messages. `stays`: the device outlives this process, unlike our own devices.
    pub fn add(
        ns: &NetNs,
        program: &[u64],
        device: u32,
        hook: Hook,
        stays: bool,
        subject: &str,
    ) -> Result<Filter, Refused> {
        let (slot, stub) = bpf::behind_a_slot(program, subject)?;
        let mut netlink = Netlink::open(ns)?;
        let note = if stays { Some(Note::of(ns, device)?) } else { None };
        let before = note.as_ref().and_then(Note::made);
        // Noted before the filter is made, and again when it is known who made the `clsact`, so
        // that nothing is left without a note.
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
        // A device that is gone took its filters along; `clean` handles other failures.
        let _ = self.netlink.delete_filter(self.device, self.hook);
        let other = BOTH.map(|hook| {
            hook != self.hook && self.netlink.has_filter(self.device, hook).unwrap_or(true)
        });
        if !other.contains(&true) {
            let _ = note.settle(&mut self.netlink, self.device);
        }
    }
}

/// Removes what killed processes left on devices of `ns` and returns the number of devices. `lives`
/// says whether the filters of a device number are in use.
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

/// The device number in a note's name.
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
