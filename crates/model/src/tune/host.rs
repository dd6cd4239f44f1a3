//! What a host is set to, in Linux's sysctl names.

use crate::law::window_scale::WindowScale;
use crate::law::{AdvWinScale, KernelVersion, WindowLaw, receive_buffer, send_buffer};
use crate::units::{Bytes, Window};

/// A setting that a plan may change, by its sysctl name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Setting {
    /// Receive buffer of TCP sockets: least, initial, largest (autotuning's bound).
    #[serde(rename = "net.ipv4.tcp_rmem")]
    TcpRmem,
    /// Send buffer of TCP sockets: least, initial, largest (autotuning's bound).
    #[serde(rename = "net.ipv4.tcp_wmem")]
    TcpWmem,
    /// The largest SO_RCVBUF that an application may ask for.
    #[serde(rename = "net.core.rmem_max")]
    RmemMax,
    /// The largest SO_SNDBUF that an application may ask for.
    #[serde(rename = "net.core.wmem_max")]
    WmemMax,
    /// Whether windows above 65535 can be said.
    #[serde(rename = "net.ipv4.tcp_window_scaling")]
    TcpWindowScaling,
    /// Whether receive buffers are autotuned.
    #[serde(rename = "net.ipv4.tcp_moderate_rcvbuf")]
    TcpModerateRcvbuf,
}

impl Setting {
    /// Every setting: what to read of a host before planning.
    pub const ALL: [Setting; 6] = [
        Setting::TcpRmem,
        Setting::TcpWmem,
        Setting::RmemMax,
        Setting::WmemMax,
        Setting::TcpWindowScaling,
        Setting::TcpModerateRcvbuf,
    ];

    /// The sysctl's name, with dots.
    pub const fn sysctl(self) -> &'static str {
        match self {
            Setting::TcpRmem => "net.ipv4.tcp_rmem",
            Setting::TcpWmem => "net.ipv4.tcp_wmem",
            Setting::RmemMax => "net.core.rmem_max",
            Setting::WmemMax => "net.core.wmem_max",
            Setting::TcpWindowScaling => "net.ipv4.tcp_window_scaling",
            Setting::TcpModerateRcvbuf => "net.ipv4.tcp_moderate_rcvbuf",
        }
    }

    /// Whether each network namespace has its own value. `net.core.*mem_max` are the machine's.
    pub const fn per_namespace(self) -> bool {
        !matches!(self, Setting::RmemMax | Setting::WmemMax)
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.sysctl())
    }
}

/// The three values of `tcp_rmem` or `tcp_wmem`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct MemTriple {
    /// What a socket keeps even under memory pressure.
    pub min: Bytes,
    /// Where a socket starts.
    pub default: Bytes,
    /// What autotuning may reach.
    pub max: Bytes,
}

impl MemTriple {
    /// The three values in bytes.
    pub const fn new(min: u64, default: u64, max: u64) -> Self {
        MemTriple { min: Bytes::new(min), default: Bytes::new(default), max: Bytes::new(max) }
    }
}

/// As the sysctl takes it: `4096 131072 6291456`.
impl std::fmt::Display for MemTriple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.min.get(), self.default.get(), self.max.get())
    }
}

/// Why a text is not a `tcp_rmem` or `tcp_wmem` value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("memory triple '{text}': not three whole numbers of bytes; write for example 4096 131072 6291456")]
pub struct ParseMemTripleError {
    /// What was given.
    pub text: String,
}

impl std::str::FromStr for MemTriple {
    type Err = ParseMemTripleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[min, default, max]) => Ok(MemTriple::new(min, default, max)),
            _ => Err(ParseMemTripleError { text: text.into() }),
        }
    }
}

/// Why a sysctl's text was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {setting}: '{value}' is not a value of it; write whole numbers as sysctl prints them")]
pub struct SetError {
    /// Which sysctl.
    pub setting: Setting,
    /// What was given.
    pub value: String,
}

/// The settings of one host that decide how much it can have in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSettings {
    /// Which law turns buffers into windows.
    pub kernel: KernelVersion,
    /// `net.ipv4.tcp_rmem`.
    pub tcp_rmem: MemTriple,
    /// `net.ipv4.tcp_wmem`.
    pub tcp_wmem: MemTriple,
    /// `net.core.rmem_max`.
    pub rmem_max: Bytes,
    /// `net.core.wmem_max`.
    pub wmem_max: Bytes,
    /// `net.ipv4.tcp_adv_win_scale`; without effect since Linux 6.6.
    pub tcp_adv_win_scale: AdvWinScale,
    /// `net.ipv4.tcp_window_scaling`.
    pub tcp_window_scaling: bool,
    /// `net.ipv4.tcp_moderate_rcvbuf`.
    pub tcp_moderate_rcvbuf: bool,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub tcp_slow_start_after_idle: bool,
    /// The pages at which all TCP sockets together come under memory pressure, `net.ipv4.tcp_mem[1]`, if known.
    pub tcp_mem_pressure_pages: Option<u64>,
    /// What the application asks for with SO_RCVBUF, if it does: autotuning then ends.
    pub so_rcvbuf: Option<Bytes>,
    /// What the application asks for with SO_SNDBUF, if it does: autotuning then ends.
    pub so_sndbuf: Option<Bytes>,
}

impl HostSettings {
    /// What `kernel` sets on a machine with enough memory (several GiB) when nobody tuned it.
    pub fn defaults(kernel: KernelVersion) -> Self {
        let initial = if kernel < KernelVersion::RMEM_INITIAL_128K { 87_380 } else { 131_072 };
        let rmem_max = if kernel < KernelVersion::RMEM_32M { 6_291_456 } else { 33_554_432 };
        let core_max = if kernel < KernelVersion::CORE_MEM_4M { 212_992 } else { 4_194_304 };
        HostSettings {
            kernel,
            tcp_rmem: MemTriple::new(4096, initial, rmem_max),
            tcp_wmem: MemTriple::new(4096, 16_384, 4_194_304),
            rmem_max: Bytes::new(core_max),
            wmem_max: Bytes::new(core_max),
            tcp_adv_win_scale: AdvWinScale::DEFAULT,
            tcp_window_scaling: true,
            tcp_moderate_rcvbuf: true,
            tcp_slow_start_after_idle: true,
            tcp_mem_pressure_pages: None,
            so_rcvbuf: None,
            so_sndbuf: None,
        }
    }

    /// Sets one sysctl as its text says: what /proc shows, what a [`super::Change`] asks for.
    pub fn set(&mut self, setting: Setting, value: &str) -> Result<(), SetError> {
        let error = || SetError { setting, value: value.into() };
        let bytes = || value.trim().parse().map(Bytes::new).map_err(|_| error());
        let flag = || value.trim().parse().map(|number: u8| number != 0).map_err(|_| error());
        match setting {
            Setting::TcpRmem => self.tcp_rmem = value.parse().map_err(|_| error())?,
            Setting::TcpWmem => self.tcp_wmem = value.parse().map_err(|_| error())?,
            Setting::RmemMax => self.rmem_max = bytes()?,
            Setting::WmemMax => self.wmem_max = bytes()?,
            Setting::TcpWindowScaling => self.tcp_window_scaling = flag()?,
            Setting::TcpModerateRcvbuf => self.tcp_moderate_rcvbuf = flag()?,
        }
        Ok(())
    }

    /// One sysctl as /proc shows it, with single spaces.
    pub fn get(&self, setting: Setting) -> String {
        match setting {
            Setting::TcpRmem => self.tcp_rmem.to_string(),
            Setting::TcpWmem => self.tcp_wmem.to_string(),
            Setting::RmemMax => self.rmem_max.get().to_string(),
            Setting::WmemMax => self.wmem_max.get().to_string(),
            Setting::TcpWindowScaling => u8::from(self.tcp_window_scaling).to_string(),
            Setting::TcpModerateRcvbuf => u8::from(self.tcp_moderate_rcvbuf).to_string(),
        }
    }

    /// How this host turns receive buffer into window.
    pub fn window_law(&self) -> WindowLaw {
        WindowLaw::of(self.kernel, self.tcp_adv_win_scale)
    }

    /// The window scale that this host offers in its SYN.
    pub fn window_scale(&self) -> WindowScale {
        WindowScale::chosen(self.tcp_rmem.max, self.rmem_max, Bytes::MAX)
    }

    /// The largest `sk_rcvbuf` that a connection may get.
    pub fn rcvbuf(&self) -> Bytes {
        match self.so_rcvbuf {
            Some(requested) => receive_buffer::so_rcvbuf(requested, self.rmem_max),
            None if self.tcp_moderate_rcvbuf => self.tcp_rmem.max,
            None => self.tcp_rmem.default,
        }
    }

    /// The largest `sk_sndbuf` that a connection may get.
    pub fn sndbuf(&self) -> Bytes {
        match self.so_sndbuf {
            Some(requested) => send_buffer::so_sndbuf(requested, self.wmem_max),
            None => self.tcp_wmem.max,
        }
    }

    /// The largest window that this host advertises when it receives.
    pub fn receive_window(&self) -> Window {
        self.window_law().window(self.rcvbuf()).min(self.window_scale().largest())
    }

    /// What this host keeps in flight when it sends.
    pub fn send_window(&self) -> Window {
        send_buffer::window(self.sndbuf())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_read_what_proc_shows() {
        assert_eq!("4096\t131072\t6291456\n".parse(), Ok(MemTriple::new(4096, 131_072, 6_291_456)));
        assert_eq!(MemTriple::new(4096, 131_072, 6_291_456).to_string(), "4096 131072 6291456");
        for bad in ["", "4096", "4096 1 2 3", "4096 -1 3", "a b c", "99999999999999999999 1 1"] {
            assert!(bad.parse::<MemTriple>().unwrap_err().to_string().contains(bad), "{bad}");
        }
    }

    #[test]
    fn names_serialise_as_sysctls() {
        for setting in Setting::ALL {
            let value = toml::Value::try_from(setting).unwrap();
            assert_eq!(value.as_str(), Some(setting.sysctl()));
        }
    }

    #[test]
    fn what_is_set_is_what_is_got() {
        let mut host = HostSettings::defaults(KernelVersion::new(6, 18));
        for (setting, value) in [
            (Setting::TcpRmem, "4096 87380 100000000"),
            (Setting::TcpWmem, "4096 16384 1"),
            (Setting::RmemMax, "2500000"),
            (Setting::WmemMax, "0"),
            (Setting::TcpWindowScaling, "0"),
            (Setting::TcpModerateRcvbuf, "0"),
        ] {
            host.set(setting, value).unwrap();
            assert_eq!(host.get(setting), value);
            let error = host.set(setting, "much").unwrap_err().to_string();
            assert!(error.contains(setting.sysctl()) && error.contains("'much'"), "{error}");
        }
    }

    #[test]
    fn an_application_that_sets_its_buffer_is_bounded_by_the_machine() {
        let host = HostSettings {
            so_rcvbuf: Some("64MiB".parse().unwrap()),
            ..HostSettings::defaults(KernelVersion::new(6, 1))
        };
        assert_eq!(host.rcvbuf(), Bytes::new(2 * 212_992));
        assert_eq!(host.receive_window(), Window::new(Bytes::new(212_992)));
        let host = HostSettings { tcp_moderate_rcvbuf: false, ..HostSettings::defaults(KernelVersion::new(6, 1)) };
        assert_eq!(host.receive_window(), Window::new(Bytes::new(65_536)));
    }
}
