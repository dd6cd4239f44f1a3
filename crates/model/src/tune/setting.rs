//! The settings that a plan may change, and their values: three buffer sizes, one size, or a
//! switch.

use crate::units::Bytes;

/// A setting that a plan may change, by its sysctl name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Setting {
    /// Receive buffer of TCP sockets: least, initial, largest (autotuning's bound).
    #[serde(rename = "net.ipv4.tcp_rmem")]
    TcpRmem,
    /// Send buffer of TCP sockets: least, initial, largest (autotuning's bound).
    #[serde(rename = "net.ipv4.tcp_wmem")]
    TcpWmem,
    /// The largest SO_RCVBUF that an application may request.
    #[serde(rename = "net.core.rmem_max")]
    RmemMax,
    /// The largest SO_SNDBUF that an application may request.
    #[serde(rename = "net.core.wmem_max")]
    WmemMax,
    /// Whether windows above 65535 can be used.
    #[serde(rename = "net.ipv4.tcp_window_scaling")]
    TcpWindowScaling,
    /// Whether receive buffers are autotuned.
    #[serde(rename = "net.ipv4.tcp_moderate_rcvbuf")]
    TcpModerateRcvbuf,
}

impl Setting {
    /// Every setting; read these of a host before planning.
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

    /// Whether each network namespace has its own value. `net.core.*mem_max` belong to the machine.
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
    /// The size that a socket keeps even under memory pressure.
    pub min: Bytes,
    /// The initial size.
    pub default: Bytes,
    /// The bound of autotuning.
    pub max: Bytes,
}

impl MemTriple {
    /// The three values in bytes.
    pub const fn new(min: u64, default: u64, max: u64) -> Self {
        MemTriple { min: Bytes::new(min), default: Bytes::new(default), max: Bytes::new(max) }
    }
}

/// As in the sysctl: `4096 131072 6291456`.
impl std::fmt::Display for MemTriple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.min.get(), self.default.get(), self.max.get())
    }
}

/// Why a text is not a `tcp_rmem` or `tcp_wmem` value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "memory triple '{text}': not three whole numbers of bytes; write for example 4096 131072 6291456"
)]
pub struct ParseMemTripleError {
    /// The given text.
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

/// Why a text is not a value of a sysctl.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "setting {setting}: '{value}' is not a value of it; write whole numbers as sysctl prints them"
)]
pub struct SetError {
    /// The sysctl.
    pub setting: Setting,
    /// The given text.
    pub value: String,
}

/// The value of a setting. It is displayed and serialised as the sysctl prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// For `tcp_rmem` and `tcp_wmem`.
    Triple(MemTriple),
    /// For `rmem_max` and `wmem_max`.
    Bytes(Bytes),
    /// For a switch: 1 or 0.
    Flag(bool),
}

impl Value {
    /// Parses the text of `setting`: what /proc shows and what `sysctl -w` takes.
    ///
    /// # Errors
    /// The text is not a value of this setting.
    pub fn parse(setting: Setting, text: &str) -> Result<Value, SetError> {
        let value = match setting {
            Setting::TcpRmem | Setting::TcpWmem => text.parse().ok().map(Value::Triple),
            Setting::RmemMax | Setting::WmemMax => {
                text.trim().parse().ok().map(Bytes::new).map(Value::Bytes)
            }
            Setting::TcpWindowScaling | Setting::TcpModerateRcvbuf => {
                text.trim().parse().ok().map(|number: u8| Value::Flag(number != 0))
            }
        };
        value.ok_or_else(|| SetError { setting, value: text.into() })
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Triple(triple) => triple.fmt(f),
            Value::Bytes(bytes) => bytes.get().fmt(f),
            Value::Flag(on) => u8::from(*on).fmt(f),
        }
    }
}

impl serde::Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
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
}
