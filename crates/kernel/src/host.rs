//! This machine: the properties that are recorded beside each result, its sysctls and its clock.

pub mod clock;
pub mod sysctl;

use std::fs;

use fullpipe_model::law::KernelVersion;
use fullpipe_model::units::Bytes;
use serde::Serialize;

use crate::process::sched;

/// The properties of the machine that results depend on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// The kernel's release as `uname -r` prints it.
    pub kernel: String,
    /// The CPU's name; "unknown" if the machine does not report it.
    pub cpu_model: String,
    /// How many CPUs this program may use.
    pub cpus: usize,
    /// Mean number of runnable threads over the last minute: above `cpus`, the machine is not
    /// quiet.
    pub load_average: Option<f64>,
}

impl Host {
    /// Reads the present state.
    pub fn read() -> Host {
        let [release, cpuinfo, loadavg] =
            ["/proc/sys/kernel/osrelease", "/proc/cpuinfo", "/proc/loadavg"]
                .map(|path| fs::read_to_string(path).unwrap_or_default());
        Host {
            kernel: release.trim().into(),
            cpu_model: cpu_model(&cpuinfo).unwrap_or("unknown").into(),
            cpus: sched::cpus().map_or(1, |cpus| cpus.len()),
            load_average: load_average(&loadavg),
        }
    }

    /// The kernel's version, for laws that depend on it; `None` if the release is not numbered like
    /// Linux.
    pub fn kernel_version(&self) -> Option<KernelVersion> {
        self.kernel.parse().ok()
    }
}

/// The environment variable that says this host's name in place of the kernel: in a container the
/// kernel knows the container's.
const HOST_NAME: &str = "FULLPIPE_HOST_NAME";

/// What this host is called in what is kept or sent; empty if nothing says it.
pub fn name() -> String {
    let said = std::env::var(HOST_NAME).unwrap_or_default();
    if !said.trim().is_empty() {
        return said.trim().to_owned();
    }
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Memory that programs can still use without swapping, as the kernel estimates it
/// (`MemAvailable`); `None` if it does not report that.
pub fn memory_available() -> Option<Bytes> {
    entry_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// The memory that the kernel manages (`MemTotal`); `None` if it does not report that.
pub fn memory_total() -> Option<Bytes> {
    entry_of(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

fn entry_of(meminfo: &str, name: &str) -> Option<Bytes> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Bytes::new(kibibytes).checked_mul(1024)
}

fn load_average(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    // x86 has "model name"; ARM names boards under "Hardware" or nothing at all.
    let value = ["model name", "Hardware"].into_iter().find_map(|key| {
        cpuinfo.lines().find_map(|line| Some(line.strip_prefix(key)?.split_once(':')?.1.trim()))
    });
    value.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described_as_uname_describes_it() {
        let host = Host::read();
        let uname = std::process::Command::new("uname").arg("-r").output().unwrap();
        assert_eq!(host.kernel, String::from_utf8_lossy(&uname.stdout).trim());
        assert!(host.kernel_version().is_some_and(|version| version.major >= 3), "{host:?}");
        assert!(host.cpus >= 1 && host.load_average.is_some(), "{host:?}");
    }

    #[test]
    fn available_memory_is_what_meminfo_says() {
        let text = "MemTotal:       24683672 kB\nMemFree:         7361240 kB\nMemAvailable:   23106204 kB\n";
        let available = |text| entry_of(text, "MemAvailable:");
        assert_eq!(available(text), Some(Bytes::new(23_106_204 * 1024)));
        assert_eq!(
            (available("MemTotal: 1 kB\n"), available("MemAvailable: many\n")),
            (None, None)
        );
        assert_eq!(entry_of(text, "MemTotal:"), Some(Bytes::new(24_683_672 * 1024)));
        assert!(memory_available().is_some_and(|memory| memory > Bytes::new(1 << 20)));
        assert!(memory_total() > memory_available());
    }

    #[test]
    fn names_of_cpus_by_architecture() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"),
            Some("Some CPU @ 2 GHz")
        );
        assert_eq!(cpu_model("processor\t: 0\nHardware\t: Board\n"), Some("Board"));
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }
}
