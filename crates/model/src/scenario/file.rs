//! A scenario file as it is written.

use super::error::ScenarioError;
use super::{Client, Host, LinkEngine, Reference, Server, Truth};
use crate::link::rule::{Endpoint, Protocol};
use crate::link::{Words, with_words};
use crate::units::{Bytes, Duration, Rate, written};
use std::collections::BTreeMap;

/// The contents of a TOML file: every key is optional, unknown keys are errors. See the module's
/// example.
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// Name of the experiment; by default the file's name.
    pub name: Option<String>,
    /// What the experiment shows.
    pub description: String,
    /// Names of other scenarios to run instead of an experiment in this file.
    pub include: Vec<String>,
    /// Kernel release to run under, or the beginning of one: `"6.1"`. Only with the virtual engine.
    #[serde(deserialize_with = "written::quoted_optional")]
    pub kernel: Option<String>,
    /// Settings of the two hosts.
    pub hosts: HostsFile,
    /// The path.
    pub link: LinkFile,
    /// The transfer.
    pub transfer: TransferFile,
    /// The capture.
    pub capture: CaptureFile,
    /// Socket samples.
    pub sample: SampleFile,
    /// Published figures to compare with.
    pub reference: Reference,
    /// The limit that it was built to have, if any.
    pub truth: Option<Truth>,
    /// Repetitions of each row.
    #[serde(deserialize_with = "written::count_optional")]
    pub repeat: Option<u32>,
    /// Keys (dotted, as in the file) with the values that each takes; every combination runs.
    pub matrix: BTreeMap<String, Vec<toml::Value>>,
    /// Rows that override the keys they name and replace the file's own row.
    pub cases: Vec<toml::Table>,
    /// The same in addition to the file's own row.
    pub also: Vec<toml::Table>,
}

impl File {
    /// Reads TOML text. Errors carry line and column.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| ScenarioError::Toml(in_one_line(&error, text)))
    }
}

/// Position and problem, without the picture of the line that the crate adds: our errors are one
/// line.
fn in_one_line(error: &toml::de::Error, text: &str) -> String {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return error.message().replace('\n', "; ");
    };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message().replace('\n', "; "))
}

/// `[hosts]`
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostsFile {
    /// The sender of the data.
    pub server: Host,
    /// The receiver.
    pub client: Host,
}

with_words! {
    /// `[link]`: these keys, and the words of both directions.
    #[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct LinkFile {
        /// What carries the packets: `own` or `netem`.
        pub engine: Option<LinkEngine>,
        /// Round-trip time: half of it is each direction's delay. Excludes `delay`.
        pub rtt: Option<Duration>,
        /// Largest IP packet.
        pub mtu: Option<Bytes>,
        /// Seed of the path's randomness.
        #[serde(deserialize_with = "written::count_optional")]
        pub seed: Option<u64>,
        /// Overrides for server to client.
        pub to_client: Words,
        /// Overrides for client to server.
        pub to_server: Words,
        /// Other paths for some packets; the first match decides.
        pub rules: Vec<RuleFile>,
    }
}

with_words! {
    /// `[[link.rules]]`: which packets, and the words of their path. It takes nothing over from
    /// `[link]`.
    #[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RuleFile {
        /// The destination of packets, and the source of answers: `10.0.0.5:443`, `:8081`.
        pub to: Option<Endpoint>,
        /// The source of packets, and the destination of answers.
        pub from: Option<Endpoint>,
        /// `tcp`, `udp`.
        pub protocol: Option<Protocol>,
        /// Round-trip time: half of it is each direction's delay. Excludes `delay`.
        pub rtt: Option<Duration>,
        /// Overrides for server to client.
        pub to_client: Words,
        /// Overrides for client to server.
        pub to_server: Words,
    }
}

/// `[transfer]`
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransferFile {
    /// `builtin`, `nginx`, `python` or `iperf3`.
    pub server: Option<Server>,
    /// `builtin`, `curl` or `iperf3`.
    pub client: Option<Client>,
    /// The server's port; by default any free port.
    #[serde(deserialize_with = "written::count_optional")]
    pub port: Option<u16>,
    /// Size of the file.
    pub size: Option<Bytes>,
    /// Stop after this time; a bare number is seconds.
    #[serde(deserialize_with = "written::seconds_optional")]
    pub duration: Option<Duration>,
    /// Rate at which the client's application reads.
    pub read_rate: Option<Rate>,
    /// Rate at which the server's application writes.
    pub write_rate: Option<Rate>,
    /// Bytes that the client's application reads at once; with `read_rate`.
    pub read_block: Option<Bytes>,
    /// Bytes that the server's application writes at once; with `write_rate`.
    pub write_block: Option<Bytes>,
    /// `SO_RCVBUF` of the client's application.
    pub receive_buffer: Option<Bytes>,
    /// `SO_SNDBUF` of the server's application.
    pub send_buffer: Option<Bytes>,
}

/// `[capture]`
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaptureFile {
    /// Bytes kept of each packet.
    pub snaplen: Option<Bytes>,
}

/// `[sample]`
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SampleFile {
    /// Time between two samples of a socket.
    pub interval: Option<Duration>,
}
