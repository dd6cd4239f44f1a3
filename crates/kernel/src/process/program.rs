//! Runs a user's own program inside a run, with the user and files that it expects.
//!
//! [`crate::network::netns::NetNs::start_in`] gives a program its network. This module gives it the
//! rest, so that `ssh`, `sudo -u` or a shell behave as they do outside:
//! * its original user, if the run became root of a user namespace: a nested user namespace, in
//!   which it is who it was (and has no power over the run's network);
//! * replaced files (a `resolv.conf` with a reachable resolver), in its own mount namespace;
//! * its original limit of descriptors, if the run raised its own;
//! * a `/proc` that shows the processes of the run by their ids there, if the kernel allows it.

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
use crate::process::descriptors::DescriptorLimit;

/// A descriptor that becomes readable once the process has ended, to wait for it together with
/// other descriptors. Only the parent of a process that was not yet waited for may call this;
/// otherwise the number may belong to another process.
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

/// Sends `signal` (its number) to a child of this process that was not yet waited for.
pub fn send(pid: u32, signal: u32) {
    // One that is not there any more needs no signal.
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid as libc::pid_t, signal as libc::c_int) };
}

/// A user and group; read it before [`crate::run::sandbox::run`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    uid: Uid,
    gid: Gid,
}

impl Identity {
    /// The identity of this process.
    pub fn own() -> Identity {
        Identity { uid: geteuid(), gid: getegid() }
    }
}

/// The environment of a program at its start.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The user it runs as, if that is not the run's user.
    pub identity: Identity,
    /// Replaced files: (what is shown, where).
    pub files: Vec<(PathBuf, PathBuf)>,
    /// How many descriptors it may have, whatever the run itself needs.
    pub descriptors: DescriptorLimit,
}

impl Surroundings {
    /// Makes `command` start in this environment. Call it after
    /// [`crate::network::netns::NetNs::start_in`], because it gives up the power to enter anything.
    pub fn apply_to(&self, command: &mut Command) -> Result<(), Refused> {
        let mut files = Vec::new();
        for (shown, place) in &self.files {
            files.push((c_text(shown)?, c_text(place)?));
        }
        // Strings are made here, because nothing may be allocated between fork and exec.
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

/// A path as the kernel takes it.
fn c_text(path: &Path) -> Result<CString, Refused> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|e| Refused::new("show file", path.to_string_lossy(), e))
}

fn surround(files: &[(CString, CString)], maps: Option<&[String; 2]>) -> io::Result<()> {
    // The run blocked signals in order to pass them on; the program must receive them.
    SigSet::empty().thread_set_mask()?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    const NONE: Option<&str> = None;
    // Mounts are visible to this program only.
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)?;
    for (shown, place) in files {
        mount(Some(shown.as_c_str()), place.as_c_str(), NONE, MsFlags::MS_BIND, NONE)?;
    }
    // Containers that hide parts of /proc refuse this; the program then sees the outer ids.
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
