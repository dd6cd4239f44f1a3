//! A scenario file as it is written.

use super::error::{Position, ScenarioError};
use super::transfer::TransferFile;
use super::{Host, LinkEngine, Reference, Truth};
use crate::link::rule::{Endpoint, Protocol};
use crate::link::{Words, with_words};
use crate::units::{Bytes, Duration, written};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

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
    /// The keys of the file's own row as they are written: what each row overrides.
    #[serde(skip)]
    pub(super) table: toml::Table,
}

impl File {
    /// Reads TOML text, once: the checked keys and the table that rows override come from the same
    /// document.
    ///
    /// # Errors
    /// [`ScenarioError::Toml`], with line, column and key.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        let document = DeTable::parse(text).map_err(|error| toml_error(&error, text, None))?;
        let wrong = |error| toml_error(&error, text, Some(&document));
        let mut file = File::deserialize(Deserializer::from(document.clone())).map_err(wrong)?;
        file.table =
            toml::Table::deserialize(Deserializer::from(document.clone())).map_err(wrong)?;
        for rows in ["matrix", "cases", "also"] {
            file.table.remove(rows);
        }
        Ok(file)
    }
}

/// The problem with its place and its key, without the picture of the line that the crate adds: our
/// errors are one line.
fn toml_error(
    error: &toml::de::Error,
    text: &str,
    document: Option<&Spanned<DeTable<'_>>>,
) -> ScenarioError {
    let before = error.span().and_then(|span| text.get(..span.start));
    let position = before.map(|before| Position {
        line: before.matches('\n').count() + 1,
        column: before.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
    });
    let keys = document.zip(error.span()).and_then(|(table, span)| keys_to(table.as_ref(), &span));
    ScenarioError::Toml {
        position,
        key: keys.filter(|keys| !keys.is_empty()).map(|keys| keys.join(".")),
        problem: error.message().replace('\n', "; "),
    }
}

/// The keys from `table` down to the value at `span`, or to the table with a key at `span`.
fn keys_to(table: &DeTable<'_>, span: &Range<usize>) -> Option<Vec<String>> {
    if table.keys().any(|key| key.span() == *span) {
        return Some(Vec::new());
    }
    table.iter().find_map(|(key, value)| {
        let mut keys = keys_inside(value, span)?;
        keys.insert(0, key.as_ref().to_string());
        Some(keys)
    })
}

/// The same from a value; empty if it is the one at `span`.
fn keys_inside(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<Vec<String>> {
    let inner = match value.as_ref() {
        DeValue::Table(table) => keys_to(table, span),
        DeValue::Array(values) => values.iter().find_map(|value| keys_inside(value, span)),
        _ => None,
    };
    inner.or_else(|| (value.span() == *span).then(Vec::new))
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
