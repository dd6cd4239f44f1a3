//! Sampling, as the two ends of a test need it. The caller implements it.

use fullpipe_model::change::Sysctl;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::observe::Sample;
use fullpipe_model::tune::HostSettings;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The two addresses of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Its own.
    pub local: SocketAddr,
    /// The other one.
    pub remote: SocketAddr,
}

/// What a host says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostFacts {
    /// The version of its kernel.
    pub kernel: String,
    /// Its settings by their sysctl names.
    pub sysctls: BTreeMap<String, String>,
}

/// The kernel whose defaults are assumed where a host does not say its version.
const NEWEST: KernelVersion = KernelVersion::new(6, 18);

impl HostFacts {
    /// What is said of a host with these settings.
    pub fn of(settings: &HostSettings) -> HostFacts {
        let value =
            |sysctl: Sysctl| Some((sysctl.name().into(), settings.get(sysctl)?.to_string()));
        let sysctls = Sysctl::OF_WINDOWS.into_iter().filter_map(value).collect();
        HostFacts { kernel: settings.kernel.to_string(), sysctls }
    }

    /// The settings of the host that said this. What it did not say, or what makes no sense, is
    /// assumed to be its kernel's default.
    pub fn settings(&self) -> HostSettings {
        let kernel = self.kernel.parse().unwrap_or(NEWEST);
        let mut settings = HostSettings::defaults(kernel);
        for sysctl in Sysctl::OF_WINDOWS {
            if let Some(text) = self.sysctls.get(sysctl.name()) {
                let _ = settings.read(sysctl, text);
            }
        }
        settings
    }
}

/// Samples sockets of this host.
pub trait Sampler: Send + Sync {
    /// Begins to sample these sockets every 10 ms, until [`Sampling::stop`].
    ///
    /// # Errors
    /// The kernel refuses, in words.
    fn start(&self, sockets: Vec<Ends>) -> Result<Box<dyn Sampling>, String>;

    /// This host.
    fn facts(&self) -> HostFacts;
}

/// Sampling that goes on.
pub trait Sampling: Send {
    /// The last sample of each socket, in their order.
    fn latest(&self) -> Vec<Option<Sample>>;

    /// Takes a last sample of each socket that still exists, and gives all, in order of time.
    fn stop(self: Box<Self>) -> Vec<Vec<Sample>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_the_wire_and_nonsense_is_ignored() {
        let mut settings = HostSettings::defaults(KernelVersion::new(5, 10));
        settings.read(Sysctl::TcpRmem, "4096 65536 262144").unwrap();
        let mut facts = HostFacts::of(&settings);
        assert_eq!(facts.settings(), settings);
        facts.sysctls.insert("net.ipv4.tcp_rmem".into(), "many".into());
        facts.kernel = "unknown".into();
        assert_eq!(facts.settings().kernel, NEWEST);
    }
}
