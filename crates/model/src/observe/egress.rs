//! The queueing disciplines that packets pass on their way out of a host.

use crate::units::{Bytes, Rate, column};
use serde::{Deserialize, Serialize};

/// The device through which packets to a peer leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Egress {
    /// Its name.
    pub device: String,
    /// Its queueing disciplines for packets that leave.
    pub qdiscs: Vec<Qdisc>,
}

/// A queueing discipline on a device, and what it did so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qdisc {
    /// The kernel's name: `fq_codel`, `tbf`.
    pub kind: String,
    /// Its handle as `tc` writes it: `1:`.
    pub handle: String,
    /// The rate that it lets pass, where one number says it.
    #[serde(rename = "rate_bps", with = "column::rate_optional", default)]
    pub rate: Option<Rate>,
    /// Whether it drops packets on purpose.
    pub loses: bool,
    /// Packets dropped.
    pub drops: u64,
    /// Packets that had to wait because they were above its rate.
    pub overlimits: u64,
    /// The classes that packets are put into, of htb and hfsc.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
}

/// A class that packets are put into, and what it did so far. Classes that only share out their
/// rate among others are not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Its handle as `tc` writes it: `1:10`.
    pub handle: String,
    /// The most that it may carry: its own bound, or that of a class above it. `None` where none
    /// of them has one.
    #[serde(rename = "most_bps", with = "column::rate_optional", default)]
    pub most: Option<Rate>,
    /// What it sent, with headers.
    #[serde(rename = "sent_bytes", with = "column::bytes")]
    pub sent: Bytes,
}
