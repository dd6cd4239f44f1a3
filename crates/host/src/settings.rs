//! The settings of this machine that decide how much data a connection can have in flight.
//!
//! They are read from `/proc/sys/net` in the network namespace of the calling thread. A setting
//! that this kernel or namespace does not show keeps the default of the kernel's version, and the
//! answer says so: `net.core.rmem_max` and `tcp_mem` belong to the machine, and a container may not
//! see them.

use fullpipe_kernel::Refused;
use fullpipe_kernel::host::Host;
use fullpipe_kernel::host::sysctl::{self, Name};
use fullpipe_model::change::Sysctl;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::tune::HostSettings;

/// The kernel whose defaults are assumed where this one's version cannot be read.
const NEWEST: KernelVersion = KernelVersion::new(6, 18);

/// The settings of a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThisHost {
    /// The settings.
    pub settings: HostSettings,
    /// The names of those that the namespace does not show; their defaults are assumed.
    pub assumed: Vec<&'static str>,
}

impl ThisHost {
    /// Reads the settings of the calling thread's namespace.
    ///
    /// # Errors
    /// A setting is there and cannot be read.
    pub fn read() -> Result<ThisHost, Refused> {
        let kernel = Host::read().kernel_version().unwrap_or(NEWEST);
        ThisHost::read_by(kernel, &mut |name| {
            name.parse::<Name>().ok().map_or(Ok(None), |name| sysctl::read_own(&name))
        })
    }

    /// The settings that `read` returns by their sysctl names; `None` for one that is not shown.
    fn read_by(
        kernel: KernelVersion,
        read: &mut dyn FnMut(&str) -> Result<Option<String>, Refused>,
    ) -> Result<ThisHost, Refused> {
        let (mut settings, mut assumed) = (HostSettings::defaults(kernel), Vec::new());
        let others = [Sysctl::TcpAdvWinScale, Sysctl::TcpSlowStartAfterIdle, Sysctl::TcpMem];
        for sysctl in Sysctl::OF_WINDOWS.into_iter().chain(others) {
            let text = read(sysctl.name())?;
            let is_read = text.is_some_and(|text| settings.read(sysctl, &text).is_ok());
            // Nothing is assumed of the memory of all sockets.
            if !is_read && sysctl != Sysctl::TcpMem {
                assumed.push(sysctl.name());
            }
        }
        Ok(ThisHost { settings, assumed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_and_the_rest_is_assumed() {
        let shown = |name: &str| {
            Ok(match name {
                "net.ipv4.tcp_rmem" => Some("4096 131072 6291456".into()),
                "net.ipv4.tcp_mem" => Some("10 20 30".into()),
                "net.ipv4.tcp_slow_start_after_idle" => Some("0".into()),
                _ => None,
            })
        };
        let host = ThisHost::read_by(KernelVersion::new(6, 1), &mut { shown }).unwrap();
        assert_eq!(host.settings.tcp_rmem.max.get(), 6_291_456);
        assert_eq!(host.settings.tcp_mem_pressure_pages, Some(20));
        assert!(!host.settings.tcp_slow_start_after_idle);
        assert!(host.assumed.contains(&"net.core.rmem_max"), "{:?}", host.assumed);
        assert!(!host.assumed.contains(&"net.ipv4.tcp_rmem"));
    }

    #[test]
    fn this_machine_has_settings() {
        let host = ThisHost::read().unwrap();
        assert!(host.settings.tcp_rmem.max >= host.settings.tcp_rmem.min);
        assert!(!host.assumed.contains(&"net.ipv4.tcp_rmem"), "every Linux shows it");
    }
}
