//! The duties of a machine's first process, for a guest whose whole userland is this program.
//!
//! User-mode Linux boots with the host's files as its read-only root (hostfs), so every program and
//! library of the host is at its own path. [`mount_system`] mounts what a running system has in
//! addition; [`mount_host_directory`] makes the one place where the guest may write to the host;
//! [`power_off`] ends the machine.

use std::convert::Infallible;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::Refused;

/// Mounts what programs expect of a running system: proc, sysfs, devices, and tmpfs for temporary
/// files.
///
/// `/proc`, `/sys`, `/dev`, `/run` and `/tmp` must exist in the root, as they do on any Linux.
pub fn mount_system() -> Result<(), Refused> {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
    ] {
        mount_at(kind, Path::new(target), None)?;
    }
    Ok(())
}

/// Where a guest has its control groups.
pub const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Mounts the control groups (version 2) at [`CONTROL_GROUPS`], after [`mount_system`].
pub fn mount_control_groups() -> Result<(), Refused> {
    mount_at("cgroup2", Path::new(CONTROL_GROUPS), None)
}

/// Mounts the host's directory `from` writable at `to`, which is created.
pub fn mount_host_directory(from: &Path, to: &Path) -> Result<(), Refused> {
    std::fs::create_dir_all(to)
        .map_err(|cause| Refused::new("make directory", to.display().to_string(), cause))?;
    mount_at("hostfs", to, Some(from))
}

fn mount_at(kind: &str, target: &Path, data: Option<&Path>) -> Result<(), Refused> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), data).map_err(|errno| {
        Refused::new("mount", target.display().to_string(), errno)
            .hint("is the guest's kernel one of ours?")
    })
}

/// Keeps the pages of this program in memory once they are loaded.
///
/// A kernel that runs out of memory first drops pages that it can read again. In a guest reading
/// takes no time, so it would read the program's own pages forever, and nobody would learn that
/// memory is missing.
pub fn keep_program_in_memory() -> Result<(), Refused> {
    // SAFETY: takes no memory of ours; which pages may be given up is no matter of what is in them.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT) } {
        0 => Ok(()),
        _ => Err(Refused::last("lock memory", "this program")),
    }
}

/// Powers the machine off at once; sync files before. Returns only if this process may not do that.
pub fn power_off() -> Result<Infallible, Refused> {
    // SAFETY: takes no memory; it ends every process of the machine without a word, which is what
    // is asked for.
    unsafe { libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF) };
    Err(Refused::last("power off", "the guest").hint("only a guest's first process may do that"))
}

/// Kills every process of the group that process `leader` started, including itself: a guest is
/// many processes on its host. Does nothing if none is left.
///
/// In a PID namespace of our own ([`crate::run::sandbox`]) only we start processes, so the number
/// cannot belong to somebody else.
pub fn end_group(leader: u32) {
    if let Ok(leader) = i32::try_from(leader) {
        let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
    }
}
