//! Makes the namespaces, directly or through a user namespace, and explains why it failed.

use std::fmt;
use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::{Privilege, SandboxError};
use crate::Refused;

/// The settings that decide whether an ordinary user may make a user namespace; `None` if the
/// kernel has no such setting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserNamespaceLimits {
    /// `kernel.unprivileged_userns_clone` (Debian, Ubuntu, Arch): 0 forbids.
    pub unprivileged_userns_clone: Option<u64>,
    /// `user.max_user_namespaces`: 0 forbids.
    pub max_user_namespaces: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns` (Ubuntu): 1 removes all capabilities inside.
    pub apparmor_restrict_unprivileged_userns: Option<u64>,
}

impl UserNamespaceLimits {
    /// Reads them on this machine.
    pub fn read() -> Self {
        let [clone, most, restricted] = [
            "/proc/sys/kernel/unprivileged_userns_clone",
            "/proc/sys/user/max_user_namespaces",
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        ]
        .map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
        UserNamespaceLimits {
            unprivileged_userns_clone: clone,
            max_user_namespaces: most,
            apparmor_restrict_unprivileged_userns: restricted,
        }
    }
}

impl fmt::Display for UserNamespaceLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value =
            |value: Option<u64>| value.map_or("not there".into(), |value| value.to_string());
        write!(
            f,
            "kernel.unprivileged_userns_clone is {}, user.max_user_namespaces is {}, \
             kernel.apparmor_restrict_unprivileged_userns is {}; run as root, or ",
            value(self.unprivileged_userns_clone),
            value(self.max_user_namespaces),
            value(self.apparmor_restrict_unprivileged_userns)
        )?;
        f.write_str(match self {
            Self { unprivileged_userns_clone: Some(0), .. } => {
                "allow it with `sudo sysctl -w kernel.unprivileged_userns_clone=1`"
            }
            Self { max_user_namespaces: Some(0), .. } => {
                "allow it with `sudo sysctl -w user.max_user_namespaces=10000`"
            }
            Self { apparmor_restrict_unprivileged_userns: Some(1), .. } => {
                "allow it with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
            }
            _ => "in a container, start it with `--privileged` or with a seccomp profile that allows unshare",
        })
    }
}

/// Moves this process into an empty network namespace and its future children into a new PID
/// namespace.
pub(super) fn make() -> Result<Privilege, SandboxError> {
    let inner = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET;
    match unshare(inner) {
        Ok(()) => return Ok(Privilege::Root),
        Err(Errno::EPERM) => {}
        Err(errno) => return Err(Refused::new("make namespaces", "PID and network", errno).into()),
    }
    // Read the ids before: inside, everybody is nobody until they are mapped.
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | inner).map_err(|errno| SandboxError::NoPrivilege {
        cause: errno.into(),
        limits: UserNamespaceLimits::read(),
    })?;
    // An ordinary user may map its own group only after giving up setgroups (CVE-2014-8989).
    map("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1"))
        .map_err(|cause| not_mapped(cause, uid.is_root()))?;
    map("/proc/self/gid_map", &format!("0 {gid} 1"))?;
    Ok(Privilege::UserNamespace)
}

/// Since Linux 5.12 root maps itself only with CAP_SETFCAP (`verify_root_map` in
/// kernel/user_namespace.c), which a container may have dropped. An ordinary user is refused where
/// a security module removes all capabilities inside.
fn not_mapped(cause: io::Error, is_root: bool) -> SandboxError {
    match cause.raw_os_error() {
        Some(libc::EPERM) if is_root => SandboxError::RootWithoutCapabilities(cause),
        Some(libc::EPERM | libc::EACCES) => {
            SandboxError::NoPrivilege { cause, limits: UserNamespaceLimits::read() }
        }
        _ => Refused::new("become root of user namespace", "/proc/self/uid_map", cause).into(),
    }
}

fn map(path: &str, text: &str) -> Result<(), SandboxError> {
    fs::write(path, text).map_err(|cause: io::Error| {
        Refused::new("become root of user namespace", path, cause).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_about_what_forbids_it() {
        let cases = [
            (
                UserNamespaceLimits { max_user_namespaces: Some(0), ..Default::default() },
                "max_user_namespaces=10000",
            ),
            (
                UserNamespaceLimits { unprivileged_userns_clone: Some(0), ..Default::default() },
                "unprivileged_userns_clone=1",
            ),
            (
                UserNamespaceLimits {
                    apparmor_restrict_unprivileged_userns: Some(1),
                    ..Default::default()
                },
                "apparmor_restrict_unprivileged_userns=0",
            ),
            (UserNamespaceLimits::default(), "container"),
        ];
        for (limits, advice) in cases {
            assert!(limits.to_string().contains(advice), "{limits}");
        }
    }
}
