//! One change of one host: how it is applied to a scenario, and how it is told.

use crate::change::{Change, MemTriple, Sysctl};
use crate::limit::End;
use crate::scenario::{Host, Scenario, SysctlText};
use crate::units::Bytes;
use std::fmt;

/// One change to try.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// A sysctl, from the tuning plan.
    Sysctl(Change),
    /// The application does not set its buffer any more and leaves it to the kernel, which may make
    /// it as large as this.
    Autotuning {
        /// The end whose application set its buffer.
        #[serde(rename = "host")]
        end: End,
        /// The bound of autotuning.
        #[serde(rename = "largest_bytes", with = "crate::units::column::bytes")]
        largest: Bytes,
    },
    /// The sender's congestion control.
    #[serde(with = "named")]
    CongestionControl(String),
    /// The sender's initial congestion window, in segments.
    #[serde(with = "counted")]
    InitialWindow(u32),
    /// A larger window above TCP's, where the program lets one set it.
    ApplicationWindow {
        /// The end whose program sets it.
        #[serde(rename = "host")]
        end: End,
        /// What fills the path.
        #[serde(rename = "window_bytes", with = "crate::units::column::bytes")]
        window: Bytes,
    },
}

/// The name of a congestion control, beside the host that has it.
mod named {
    use super::End;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Named {
        host: End,
        name: String,
    }

    pub fn serialize<S: Serializer>(name: &str, s: S) -> Result<S::Ok, S::Error> {
        Named { host: End::Sender, name: name.into() }.serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
        Named::deserialize(d).map(|named| named.name)
    }
}

/// A number of segments, beside the host that begins with it.
mod counted {
    use super::End;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Counted {
        host: End,
        segments: u32,
    }

    pub fn serialize<S: Serializer>(segments: &u32, s: S) -> Result<S::Ok, S::Error> {
        Counted { host: End::Sender, segments: *segments }.serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
        Counted::deserialize(d).map(|counted| counted.segments)
    }
}

impl Remedy {
    /// The end that has to change.
    pub fn end(&self) -> End {
        match self {
            // A plan for two hosts names the host of each change, and none is read without.
            Remedy::Sysctl(change) => change.end.unwrap_or(End::Sender),
            Remedy::Autotuning { end, .. } | Remedy::ApplicationWindow { end, .. } => *end,
            Remedy::CongestionControl(_) | Remedy::InitialWindow(_) => End::Sender,
        }
    }

    /// Makes the change in a scenario.
    pub(super) fn apply(&self, scenario: &mut Scenario) {
        let host = host_of(scenario, self.end());
        match self {
            Remedy::Sysctl(change) => {
                host.sysctl.insert(change.knob.to_string(), SysctlText(change.to.to_string()));
            }
            Remedy::Autotuning { end, largest } => autotune(scenario, *end, *largest),
            Remedy::CongestionControl(name) => host.congestion_control = Some(name.clone()),
            Remedy::InitialWindow(segments) => host.initcwnd = Some(*segments),
            Remedy::ApplicationWindow { window, .. } => {
                scenario.transfer.application_window = Some(*window);
            }
        }
    }

    /// What to do, in a few words without the host: `net.ipv4.tcp_wmem at least 4096 16384
    /// 11534336`.
    pub fn words(&self) -> String {
        match self {
            Remedy::Sysctl(change) => change.words(),
            Remedy::Autotuning { end: End::Sender, .. } => {
                "the application does not set SO_SNDBUF".into()
            }
            Remedy::Autotuning { end: End::Receiver, .. } => {
                "the application does not set SO_RCVBUF".into()
            }
            Remedy::CongestionControl(name) => format!("congestion control {name}"),
            Remedy::InitialWindow(segments) => format!("initcwnd {segments} (ip route)"),
            Remedy::ApplicationWindow { window, .. } => {
                format!("the program's own window at least {window:#}")
            }
        }
    }
}

/// With its host: `sender: net.ipv4.tcp_wmem at least 4096 16384 11534336`.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.end(), self.words())
    }
}

/// The host of a scenario at an end: the server sends.
pub(super) fn host_of(scenario: &mut Scenario, end: End) -> &mut Host {
    match end {
        End::Sender => &mut scenario.hosts.server,
        End::Receiver => &mut scenario.hosts.client,
    }
}

/// Lets the kernel size the buffer of an end, up to `largest`. A bound that another change has
/// raised stays.
fn autotune(scenario: &mut Scenario, end: End, largest: Bytes) {
    match end {
        End::Sender => scenario.transfer.send_buffer = None,
        End::Receiver => scenario.transfer.receive_buffer = None,
    }
    let setting = match end {
        End::Sender => Sysctl::TcpWmem,
        End::Receiver => Sysctl::TcpRmem,
    };
    let host = host_of(scenario, end);
    host.sysctl.remove(Sysctl::TcpModerateRcvbuf.name());
    let present = host.sysctl.get(setting.name()).and_then(|value| value.0.parse().ok());
    let initial = if end == End::Sender { 16_384 } else { 131_072 };
    let present = present.unwrap_or(MemTriple::new(4096, initial, 0));
    let largest = largest.max(present.max);
    let triple = MemTriple { default: Bytes::new(initial).min(largest), max: largest, ..present };
    host.sysctl.insert(setting.name().into(), SysctlText(triple.to_string()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Knob;

    #[test]
    fn what_is_written_is_read() {
        let change = Change {
            end: Some(End::Receiver),
            knob: Knob::Sysctl(Sysctl::TcpRmem),
            from: Some(MemTriple::new(4096, 131_072, 6_291_456).into()),
            to: MemTriple::new(4096, 131_072, 33_554_432).into(),
            reason: "it is less than the path holds".into(),
        };
        let all = [
            Remedy::Sysctl(change),
            Remedy::Autotuning { end: End::Sender, largest: Bytes::new(4_194_304) },
            Remedy::CongestionControl("bbr".into()),
            Remedy::InitialWindow(32),
            Remedy::ApplicationWindow { end: End::Receiver, window: Bytes::new(8 << 20) },
        ];
        for remedy in all {
            let text = serde_json::to_string(&remedy).unwrap();
            assert_eq!(serde_json::from_str::<Remedy>(&text).unwrap(), remedy, "{text}");
        }
    }
}
