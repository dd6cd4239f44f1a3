//! An experiment as plain data: two hosts, the path between them, a transfer, what to vary and how
//! often.
//!
//! There are two views, as for all foreign data. [`File`] is exactly what a TOML file contains;
//! unknown keys are refused with their line. [`File::scenarios`] turns it into ready [`Scenario`]s:
//! cases and matrix multiplied, every combination checked and named.
//!
//! ```toml
//! name = "b2"
//! description = "1 Gbit/s, 50 ms, Linux's default buffers"
//!
//! [hosts.server]                       # the sender of the data
//! congestion_control = "cubic"
//! sysctl = { "net.ipv4.tcp_wmem" = "4096 16384 4194304" }
//!
//! [hosts.client]
//! sysctl = { "net.ipv4.tcp_rmem" = "4096 131072 6291456" }
//!
//! [link]                               # both directions; [link.to_client] and [link.to_server] override
//! rate = "1gbit"
//! rtt = "50ms"
//!
//! [transfer]
//! size = "1967MiB"
//! duration = "10s"                     # stop after that long
//!
//! [matrix]                             # every combination is a row
//! "link.rtt" = ["10ms", "50ms"]
//!
//! [[cases]]                            # or: rows that differ in what they name
//! name = "small"
//! transfer.size = "1MB"
//!
//! [[also]]                             # or: rows beside the file's own
//! name = "linux-6.1"
//! kernel = "6.1"
//! ```

mod combinations;
mod error;
mod expand;
mod file;
mod generate;
mod over;
mod readers;
mod table;
mod transfer;
mod truth;

pub use combinations::RUNS_MAX;
pub use error::{Position, ScenarioError};
pub use file::File;
pub use generate::{Conversation, Generated, Hindrance, World, conversation, generate, world};
pub use over::{Override, OverrideError};
pub use readers::Readers;
pub use transfer::{Client, Server, Transfer};
pub use truth::{Cause, Truth};

use crate::link;
use crate::link::rule::{Classifier, Match};
use crate::units::{Bytes, Duration, Rate, written};
use std::collections::BTreeMap;

/// One experiment, ready to run, with no defaults left open.
///
/// Its JSON is stored with the results, and passed to a run in another process, which reads back
/// exactly the same value. Reading checks types only; bounds are checked when a [`File`] becomes
/// scenarios.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Path-like name, unique in its file: `a1-rtt/rtt=10ms`.
    pub name: String,
    /// What it shows, for people.
    pub description: String,
    /// Kernel release to run under, or the beginning of one (`6.1`); `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// What carries the packets; `None`: whatever suits the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_engine: Option<LinkEngine>,
    /// The two hosts.
    pub hosts: Hosts,
    /// The path between them.
    pub path: Path,
    /// The transfer.
    pub transfer: Transfer,
    /// What to capture.
    pub capture: Capture,
    /// Time between two samples of a socket.
    pub sample_interval: Duration,
    /// Number of repetitions; each next one has a seed one higher.
    pub repeat: u32,
    /// Published figures to compare with.
    pub reference: Reference,
    /// The limit that it was built to have, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
}

/// Both ends.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Sends the data. It opens the connection if the transfer is an upload.
    pub server: Host,
    /// Requests and reads the data.
    pub client: Host,
}

/// One end: its network settings and how its application runs.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Sysctls of its network namespace, by full name.
    pub sysctl: BTreeMap<String, SysctlText>,
    /// Congestion control of its connections; `None`: the kernel's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Initial congestion window in segments (`initcwnd` of `ip route`); `None`: the kernel's 10.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::count_optional")]
    pub initcwnd: Option<u32>,
    /// Initial receive window in segments (`initrwnd` of `ip route`); `None`: the kernel's choice.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::count_optional")]
    pub initrwnd: Option<u32>,
    /// Run its application on this CPU only.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::count_optional")]
    pub cpu: Option<u32>,
    /// Niceness of its application, -20 to 19.
    #[serde(deserialize_with = "written::count")]
    pub nice: i8,
    /// Runs a CPU hog of this niceness on the application's CPU (which must then be set).
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "written::count_optional")]
    pub cpu_hog_nice: Option<i8>,
    /// The window agent follows the connections of its application (the client's only, in virtual
    /// time).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub window_agent: bool,
    /// What the agent keeps all receive buffers within; needs `window_agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_budget: Option<Bytes>,
}

/// The value of any sysctl, as text; TOML may give a number or a text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct SysctlText(pub String);

impl<'de> serde::Deserialize<'de> for SysctlText {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = written::whole_or_text(d)?;
        Ok(SysctlText(text.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

/// The path, both directions.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// From server to client: the direction of the data.
    #[serde(with = "direction")]
    pub to_client: link::Config,
    /// From client to server: the direction of the acknowledgements.
    #[serde(with = "direction")]
    pub to_server: link::Config,
    /// Largest IP packet.
    pub mtu: Bytes,
    /// Seed of everything random on the path.
    pub seed: u64,
    /// Other paths for some packets; the first match decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
}

/// A path for some packets.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The packets.
    #[serde(rename = "match")]
    pub matches: Match,
    /// From server to client.
    #[serde(with = "direction")]
    pub to_client: link::Config,
    /// From client to server.
    #[serde(with = "direction")]
    pub to_server: link::Config,
}

impl Rule {
    /// The round-trip time that its delays add up to.
    pub fn rtt(&self) -> Duration {
        self.to_client.delay.base.saturating_add(self.to_server.delay.base)
    }
}

impl Path {
    /// The round-trip time that the delays add up to.
    pub fn rtt(&self) -> Duration {
        self.to_client.delay.base.saturating_add(self.to_server.delay.base)
    }

    /// A classifier of packets by rule.
    pub fn classifier(&self) -> Classifier {
        Classifier::new(self.rules.iter().map(|rule| rule.matches).collect())
    }
}

/// What can carry the packets of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkEngine {
    /// Our own link: [`crate::link`].
    #[default]
    Own,
    /// The kernel's netem.
    Netem,
}

impl LinkEngine {
    /// The name, as it is written.
    pub fn name(self) -> &'static str {
        match self {
            LinkEngine::Own => "own",
            LinkEngine::Netem => "netem",
        }
    }
}

/// What the link captures.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Bytes captured of each packet: 128 hold every header.
    pub snaplen: Bytes,
}

/// What others measured in the same experiment.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reference {
    /// Mean goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput: Option<Rate>,
    /// Rate of whole Ethernet frames in both directions together, if that was measured instead of
    /// goodput: capinfos calls it the data byte rate, and Wireshark shows it in the capture file
    /// properties.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Rate>,
    /// Why ours differs, or what to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// This row repeats another experiment with one change, to explain why that one's figure
    /// differs: the change. If it cannot run (another kernel, another link), it is left out without
    /// an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Writes a direction as a scenario file would, and reads it back.
mod direction {
    use crate::link::{Config, Words};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(config: &Config, s: S) -> Result<S::Ok, S::Error> {
        let words = Words::from(config);
        // Every result contains these three, even with default values.
        Words {
            delay: Some(config.delay.clone()),
            queue: Some(config.queue),
            loss: Some(config.loss),
            ..words
        }
        .serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Config, D::Error> {
        Words::deserialize(d).map(|words| words.unchecked())
    }
}

#[cfg(test)]
mod tests;
