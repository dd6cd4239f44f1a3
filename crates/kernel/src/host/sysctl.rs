//! Reads and writes sysctls of a network namespace, and refuses those that it cannot set.
//!
//! `/proc/sys/net` shows each thread the settings of the thread's namespace. Some of them belong to
//! the whole machine in any namespace (`net.core.rmem_max` on most kernels): for those the kernel
//! shows no file, or one that nobody may write. [`write()`] refuses these with that reason, so a
//! lab can never change its host. [`write()`] names a namespace, so nobody writes the machine's own
//! settings by mistake. [`write_own`] writes those of the caller's namespace, which may be the
//! machine's: it is for whoever was asked to tune this very machine.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::Refused;
use crate::network::netns::NetNs;

/// A checked name of a sysctl below `net.`: `net.ipv4.tcp_rmem`.
///
/// A dot inside a component is written as a slash, as in `sysctl(8)`:
/// `net.ipv4.conf.eth0/1.rp_filter`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text is not the name of a network namespace's sysctl.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Not below `net.`.
    #[error(
        "sysctl '{0}': only settings of the network can be set per host; write for example net.ipv4.tcp_rmem"
    )]
    NotNet(String),
    /// Not made of components with letters, digits, `_` and `-`.
    #[error("sysctl '{0}': not a name; write words joined by dots, for example net.ipv4.tcp_rmem")]
    NotAName(String),
}

impl Name {
    /// Its path in procfs.
    pub fn path(&self) -> PathBuf {
        let mut path = PathBuf::from("/proc/sys");
        // Components have no dots and are not empty (checked by the parser), so none is ".." or
        // absolute.
        path.extend(self.0.split('.').map(|part| part.replace('/', ".")));
        path
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let parts: Vec<&str> = text.split('.').collect();
        if text.len() > 200 || !parts.iter().all(|part| is_part(part)) {
            return Err(NameError::NotAName(text.into()));
        }
        if parts.len() < 3 || parts[0] != "net" {
            return Err(NameError::NotNet(text.into()));
        }
        Ok(Name(text.into()))
    }
}

/// Whether it can stand between the dots of a name.
fn is_part(part: &str) -> bool {
    part.starts_with(|c: char| c.is_ascii_alphanumeric())
        && part.ends_with(|c: char| c.is_ascii_alphanumeric())
        && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/'))
        && !part.contains("//")
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// Why a sysctl could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The setting belongs to the machine, not to the namespace.
    #[error(
        "set sysctl: {name} in {place}: it belongs to the whole machine, not to a network namespace; leave it out, or \
         set it on the machine with `sysctl -w` if that is what you want"
    )]
    Global {
        /// The sysctl.
        name: Name,
        /// The namespace.
        place: String,
    },
    /// The kernel accepted a value and shows another.
    #[error(
        "set sysctl: {name} in {place}: wrote '{wanted}' and read back '{got}'; write a value that the kernel keeps"
    )]
    NotKept {
        /// The sysctl.
        name: Name,
        /// The namespace.
        place: String,
        /// What was written.
        wanted: String,
        /// What the kernel shows now.
        got: String,
    },
    /// The kernel refused.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// The value of `name` in `ns`, with single spaces between its parts.
pub fn read(ns: &NetNs, name: &Name) -> Result<String, SysctlError> {
    Ok(ns.run(|| read_here(ns.label(), name))??)
}

/// Sets `name` in `ns` to `value` and reads it back.
///
/// Errors: [`SysctlError::Global`] if the setting does not belong to the namespace,
/// [`SysctlError::NotKept`] if the kernel changed the value.
pub fn write(ns: &NetNs, name: &Name, value: &str) -> Result<(), SysctlError> {
    ns.run(|| write_here(ns.label(), name, value))?
}

/// The value of `name` in the namespace of the calling thread; `None` if this kernel or namespace
/// does not show it.
pub fn read_own(name: &Name) -> Result<Option<String>, Refused> {
    match read_here(OWN, name) {
        Ok(value) => Ok(Some(value)),
        Err(refused) if refused.errno() == Some(libc::ENOENT) => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// A sysctl as a namespace shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its value, with single spaces between its parts.
    pub value: String,
    /// Whether it can be set in this namespace, by somebody with the privilege.
    pub is_settable: bool,
}

/// `name` in the namespace of the calling thread; `None` if this kernel or namespace does not show
/// it.
pub fn shown_own(name: &Name) -> Result<Option<Shown>, Refused> {
    let Some(value) = read_own(name)? else { return Ok(None) };
    // The kernel removes the write permission of settings that a namespace shares with others.
    let mode = fs::metadata(name.path()).map_or(0, |metadata| metadata.permissions().mode());
    Ok(Some(Shown { value, is_settable: mode & 0o222 != 0 }))
}

/// Whether the caller may set `name` in its namespace; changes nothing.
pub fn may_write_own(name: &Name) -> Result<(), Refused> {
    match fs::OpenOptions::new().write(true).open(name.path()) {
        Ok(_) => Ok(()),
        Err(cause) => Err(privileged(refused("set sysctl", OWN, name, cause))),
    }
}

/// Sets `name` in the namespace of the calling thread and reads it back.
///
/// Errors: as for [`write()`].
pub fn write_own(name: &Name, value: &str) -> Result<(), SysctlError> {
    write_here(OWN, name, value).map_err(|error| match error {
        SysctlError::Refused(refused) => privileged(refused).into(),
        other => other,
    })
}

const OWN: &str = "this network namespace";

/// Whoever tunes a machine is not in a sandbox of ours.
fn privileged(refused: Refused) -> Refused {
    match refused.errno() {
        Some(libc::EPERM | libc::EACCES) if !refused.hint.contains("congestion") => {
            refused.hint("it needs CAP_NET_ADMIN over this network namespace: run it as root")
        }
        Some(libc::EROFS) => refused.hint(
            "containers mount /proc/sys read-only, for root too: give the container its settings \
             when it starts, as `fullpipe tune plan --format docker` or `kubernetes` prints them",
        ),
        _ => refused,
    }
}

fn read_here(place: &str, name: &Name) -> Result<String, Refused> {
    let text =
        fs::read_to_string(name.path()).map_err(|e| refused("read sysctl", place, name, e))?;
    Ok(words(&text))
}

fn write_here(place: &str, name: &Name, value: &str) -> Result<(), SysctlError> {
    let path = name.path();
    let global = || SysctlError::Global { name: name.clone(), place: place.into() };
    match fs::metadata(&path) {
        // The kernel removes the write permission of settings that a namespace shares with others.
        Ok(metadata) if metadata.permissions().mode() & 0o222 == 0 => return Err(global()),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound && of_the_machine(name) => {
            return Err(global());
        }
        Err(e) => return Err(refused("set sysctl", place, name, e).into()),
    }
    fs::write(&path, value).map_err(|e| refused("set sysctl", place, name, e))?;
    let got = read_here(place, name)?;
    let wanted = words(value);
    if got != wanted {
        return Err(SysctlError::NotKept { name: name.clone(), place: place.into(), wanted, got });
    }
    Ok(())
}

/// Whether the machine has a setting that a new namespace does not show.
fn of_the_machine(name: &Name) -> bool {
    // /proc/1 is the init of the machine or container, outside of the namespaces made here. Its
    // sysctl tree is not visible from here, so this lists what people ask for; others are "no such
    // sysctl".
    const KNOWN: [&str; 11] = [
        "net.core.busy_poll",
        "net.core.busy_read",
        "net.core.default_qdisc",
        "net.core.dev_weight",
        "net.core.netdev_budget",
        "net.core.netdev_max_backlog",
        "net.core.optmem_max",
        "net.core.rmem_default",
        "net.core.rmem_max",
        "net.core.wmem_default",
        "net.core.wmem_max",
    ];
    KNOWN.contains(&name.as_str())
        || name.as_str() == "net.ipv4.tcp_mem"
        || name.as_str() == "net.ipv4.udp_mem"
}

fn refused(operation: &'static str, place: &str, name: &Name, cause: io::Error) -> Refused {
    let hint = match cause.raw_os_error() {
        Some(libc::ENOENT) => "this kernel has no such setting: check the name with `sysctl -a`",
        Some(libc::EINVAL) => {
            "the kernel does not take this value: check its range and how many numbers it wants"
        }
        Some(libc::EPERM | libc::EACCES) if name.as_str().ends_with("congestion_control") => {
            "only those in net.ipv4.tcp_allowed_congestion_control can be set here: use a route's congctl instead"
        }
        Some(libc::EPERM | libc::EACCES) => "run inside the sandbox (root, or a user namespace)",
        _ => "",
    };
    Refused::new(operation, format!("{name} in {place}"), cause).hint(hint)
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_and_paths_are_the_same_thing() {
        for (name, path) in [
            ("net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"),
            ("net.ipv4.conf.eth0/1.rp_filter", "/proc/sys/net/ipv4/conf/eth0.1/rp_filter"),
        ] {
            assert_eq!(name.parse::<Name>().unwrap().path().to_str(), Some(path));
        }
    }

    #[test]
    fn what_is_not_the_networks_is_refused() {
        for name in ["kernel.hostname", "net", "net.ipv4", "vm.swappiness.x"] {
            assert!(matches!(name.parse::<Name>(), Err(NameError::NotNet(_))), "{name}");
        }
        for name in [
            "",
            "net..ipv4.x",
            "net.ipv4./etc/passwd",
            "net.ipv4.../../x",
            "net.ipv4.a b",
            "/net.ipv4.x",
        ] {
            assert!(matches!(name.parse::<Name>(), Err(NameError::NotAName(_))), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_text_leads_out_of_the_networks_settings(text in "net[a-z0-9_./-]{0,30}|\\PC{0,30}") {
            if let Ok(name) = text.parse::<Name>() {
                let path = name.path();
                prop_assert!(path.starts_with("/proc/sys/net"));
                prop_assert!(path.components().all(|c| !matches!(c, std::path::Component::ParentDir)));
            }
        }
    }
}
