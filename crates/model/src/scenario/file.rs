//! A scenario file as it is written.

use super::error::ScenarioError;
use super::{Client, Host, LinkEngine, Reference, Server, Truth};
use crate::link::rule::{Endpoint, Protocol};
use crate::link::{Words, with_words};
use crate::units::{Bytes, Duration, Rate, written};
use std::collections::BTreeMap;

/// What a TOML file says: every key optional, unknown keys an error. See the module's example.
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// Name of the experiment; without one the file's name serves.
    pub name: Option<String>,
    /// What it shows.
    pub description: String,
    /// Other scenarios by name, in place of an experiment of its own.
    pub include: Vec<String>,
    /// Release of the kernel to run under, or how it begins: `"6.1"`. With the virtual engine only.
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
    /// Figures to stand beside ours.
    pub reference: Reference,
    /// What limits it, where it was built to show that.
    pub truth: Option<Truth>,
    /// How often to run each row.
    #[serde(deserialize_with = "written::count_optional")]
    pub repeat: Option<u32>,
    /// Keys (as in the file, dotted) and the values that each takes: all combinations are run.
    pub matrix: BTreeMap<String, Vec<toml::Value>>,
    /// Rows that override what they name, in place of the file's own.
    pub cases: Vec<toml::Table>,
    /// The same beside it: rows that repeat the file's own with something changed.
    pub also: Vec<toml::Table>,
}

impl File {
    /// Reads TOML text. Errors carry line and column.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| ScenarioError::Toml(in_one_line(&error, text)))
    }
}

/// Place and problem, without the picture of the line that the crate draws below: errors of ours
/// are one line.
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
    /// `[link]`: besides these keys the words of both directions.
    #[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct LinkFile {
        /// `own` or `netem`: what carries the packets.
        pub engine: Option<LinkEngine>,
        /// Round-trip time: half of it is each direction's delay. Not together with `delay`.
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
        /// Other paths for some packets; the first that matches decides.
        pub rules: Vec<RuleFile>,
    }
}

with_words! {
    /// `[[link.rules]]`: which packets, and the words of their path. Nothing is taken over from
    /// `[link]`.
    #[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RuleFile {
        /// The end that packets go to, and answers come from: `10.0.0.5:443`, `:8081`.
        pub to: Option<Endpoint>,
        /// The end that packets come from, and answers go to.
        pub from: Option<Endpoint>,
        /// `tcp`, `udp`.
        pub protocol: Option<Protocol>,
        /// Round-trip time: half of it is each direction's delay. Not together with `delay`.
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
    /// The server's port; without one any that is free.
    #[serde(deserialize_with = "written::count_optional")]
    pub port: Option<u16>,
    /// Size of the file.
    pub size: Option<Bytes>,
    /// Stop after this long; a bare number is seconds.
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
    /// Time between two observations of a socket.
    pub interval: Option<Duration>,
}
