//! A user's own program inside of a run: as itself, with the files that it expects.
//!
//! [`crate::netns::NetNs::start_in`] gives a program its network. What is here gives it the rest,
//! so that `ssh`, `sudo -u` or a shell behave as they do outside:
//! * its own user again, where the run has become root of a user namespace: a user namespace in
//!   that one, in which it is who it was (and has no power over the run's network);
//! * files in place of others (a `resolv.conf` with a resolver that can be reached), in a mount
//!   namespace of its own;
//! * its own bound on descriptors, where the run has raised its;
//! * a `/proc` that shows the processes of the run by the numbers that they have there, where the
//!   kernel allows it.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::SigSet;
use nix::unistd::{Gid, Uid, getegid, geteuid};

use crate::Refused;
use crate::descriptors::DescriptorLimit;

/// A descriptor that can be read once the process has ended: to wait for it beside other things.
/// Only the parent of a process that it has not waited for may ask, else the number may be
/// another's.
pub fn pidfd(pid: u32) -> Result<OwnedFd, Refused> {
    // SAFETY: no memory is passed.
    let raw = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    match i32::try_from(raw) {
        // SAFETY: `raw` was just opened and belongs to nobody else.
        Ok(raw) if raw >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(raw) }),
        _ => {
            Err(Refused::last("watch process", pid.to_string()).hint("it needs Linux 5.3 or later"))
        }
    }
}

/// Sends `signal` (its number) to a child of this process that was not waited for yet.
pub fn send(pid: u32, signal: u32) {
    // One that is not there any more needs no signal.
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid as libc::pid_t, signal as libc::c_int) };
}

/// Who somebody is: to be read before [`crate::sandbox::run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    uid: Uid,
    gid: Gid,
}

impl Identity {
    /// Who this process is.
    pub fn own() -> Identity {
        Identity { uid: geteuid(), gid: getegid() }
    }
}

/// What a program finds at its start.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Whom it runs as, where that is not who the run is.
    pub identity: Identity,
    /// Files to be found in place of others: (what is shown, where).
    pub files: Vec<(PathBuf, PathBuf)>,
    /// How many descriptors it may have, whatever the run itself needs.
    pub descriptors: DescriptorLimit,
}

impl Surroundings {
    /// Makes `command` start in them; call it after [`crate::netns::NetNs::start_in`], for it gives
    /// up the power to enter anything.
    pub fn apply_to(&self, command: &mut Command) -> Result<(), Refused> {
        let text = |path: &Path| {
            CString::new(path.as_os_str().as_bytes())
                .map_err(|e| Refused::new("show file", path.to_string_lossy(), e))
        };
        let mut files = Vec::new();
        for (shown, place) in &self.files {
            files.push((text(shown)?, text(place)?));
        }
        // Texts are made here: nothing may be allocated between fork and exec.
        let maps = (self.identity != Identity::own())
            .then(|| [format!("{} 0 1", self.identity.uid), format!("{} 0 1", self.identity.gid)]);
        let descriptors = self.descriptors;
        // SAFETY: the hook makes system calls only and allocates nothing, as is right between fork
        // and exec.
        unsafe {
            command.pre_exec(move || {
                descriptors.restore()?;
                surround(&files, maps.as_ref())
            })
        };
        Ok(())
    }
}

fn surround(files: &[(CString, CString)], maps: Option<&[String; 2]>) -> io::Result<()> {
    // Those that the run has blocked to pass them on are the program's to take.
    SigSet::empty().thread_set_mask()?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    const NONE: Option<&str> = None;
    // What is mounted here is this program's alone.
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)?;
    for (shown, place) in files {
        mount(Some(shown.as_c_str()), place.as_c_str(), NONE, MsFlags::MS_BIND, NONE)?;
    }
    // Refused in containers whose own /proc has hidden parts: there the numbers are the outer ones.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), "/proc", Some("proc"), flags, NONE);
    if let Some([uid, gid]) = maps {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        write("/proc/self/uid_map", uid)?;
        write("/proc/self/gid_map", gid)?;
    }
    Ok(())
}

fn write(path: &str, text: &str) -> io::Result<()> {
    // OpenOptions keeps short paths on the stack.
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}
