//! The duties of a machine's first process, for a guest whose whole userland is this program.
//!
//! User-mode Linux boots with the host's files as its read-only root (hostfs), so every program and
//! library of the host is there, at its own path. What a running system has besides comes from
//! [`mount_system`]; [`mount_host_directory`] makes the one place where the guest may write to the
//! host; [`power_off`] ends the machine.

use std::convert::Infallible;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::Refused;

/// Mounts what programs expect of a running system: proc, sysfs, devices, and memory for what is
/// written in passing.
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

/// Makes the host's directory `from` writable at `to`, which is made.
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

/// Keeps the pages of this program in memory once they are there, from now on.
///
/// Where memory runs out a kernel first gives up pages that it can read again. In a guest reading
/// takes no time, so it would read the program it runs for ever, and nobody would be told that
/// memory is what is missing.
pub fn keep_program_in_memory() -> Result<(), Refused> {
    // SAFETY: takes no memory of ours; which pages may be given up is no matter of what is in them.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT) } {
        0 => Ok(()),
        _ => Err(Refused::last("lock memory", "this program")),
    }
}

/// Ends the machine at once; files must be synced before. Returns only where this process may not
/// do that.
pub fn power_off() -> Result<Infallible, Refused> {
    // SAFETY: takes no memory; it ends every process of the machine without a word, which is what
    // is asked for.
    unsafe { libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF) };
    Err(Refused::last("power off", "the guest").hint("only a guest's first process may do that"))
}

/// Kills every process of the group that process `leader` began, itself included: a guest is many
/// processes of its host. Does nothing where there is none left.
///
/// Its number cannot be somebody else's in a PID namespace of our own ([`crate::sandbox`]), where
/// only we start processes.
pub fn end_group(leader: u32) {
    if let Ok(leader) = i32::try_from(leader) {
        let _ = killpg(Pid::from_raw(leader), Signal::SIGKILL);
    }
}
