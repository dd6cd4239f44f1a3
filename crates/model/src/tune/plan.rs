//! The plan: what to change, on which host, and why.

use super::{HostSettings, MemTriple, Setting};
use crate::law::window::{self, Limit, Windows};
use crate::law::window_scale::{MAX_WINDOW, WindowScale};
use crate::law::{Framing, bdp, receive_buffer, send_buffer};
use crate::units::{Bytes, Duration, Rate, Window};

/// A path to fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// The bottleneck's rate, as its link counts it.
    pub rate: Rate,
    /// Round-trip time without queues.
    pub rtt: Duration,
    /// What the bottleneck's queue holds; `None`: one BDP.
    pub queue: Option<Bytes>,
    /// How data is cut and wrapped.
    pub framing: Framing,
}

impl Path {
    /// A path with a queue of one BDP and 1500-byte packets.
    pub const fn new(rate: Rate, rtt: Duration) -> Self {
        Path { rate, rtt, queue: None, framing: Framing::IP_1500 }
    }

    /// Bytes in flight when the path is full and its queue empty.
    pub fn bdp(self) -> Bytes {
        bdp::bdp(self.rate, self.rtt)
    }
}

/// Which end of the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// Sends the data: the server of a download.
    Sender,
    /// Receives the data: the client of a download.
    Receiver,
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Host::Sender => "sender",
            Host::Receiver => "receiver",
        })
    }
}

/// One sysctl to set.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Change {
    /// Where.
    pub host: Host,
    /// Which sysctl.
    pub setting: Setting,
    /// Its value now, as the sysctl prints it.
    pub from: String,
    /// Its value to be, as the sysctl takes it.
    pub to: String,
    /// Why, with the numbers.
    pub reason: String,
}

/// Something to know that is not a change of a sysctl.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Note {
    /// Where; `None`: the path, or both.
    pub host: Option<Host>,
    /// What, with the numbers.
    pub text: String,
}

/// What the settings allow on the path, by the window law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    /// The largest window that the receiver advertises.
    pub receive_window: Window,
    /// What the sender keeps in flight.
    pub send_window: Window,
    /// Steady goodput.
    pub goodput: Rate,
    /// What bounds it.
    pub limited_by: Limit,
}

/// The settings that fill a path, each with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What the plan is for.
    pub path: Path,
    /// In flight on the full path.
    pub bdp: Bytes,
    /// What the settings allow before.
    pub before: Prediction,
    /// What they allow with the changes.
    pub after: Prediction,
    /// What to set, sender first. Empty where the path is filled already.
    pub changes: Vec<Change>,
    /// What to know beside.
    pub notes: Vec<Note>,
}

/// The largest value that a sysctl of type int takes.
const SYSCTL_MAX: u64 = i32::MAX as u64;

/// The settings that let `sender` fill `path` towards `receiver`.
pub fn plan(path: Path, sender: &HostSettings, receiver: &HostSettings) -> Plan {
    let _ = (
        SYSCTL_MAX,
        MAX_WINDOW,
        MemTriple::new(0, 0, 0),
        receive_buffer::SOCK_MIN_RCVBUF,
        send_buffer::SOCK_MIN_SNDBUF,
    );
    let before = predict(path, sender, receiver);
    Plan { path, bdp: path.bdp(), before, after: before, changes: Vec::new(), notes: Vec::new() }
}

/// What these settings allow on `path`.
pub fn predict(path: Path, sender: &HostSettings, receiver: &HostSettings) -> Prediction {
    let scaled = sender.tcp_window_scaling && receiver.tcp_window_scaling;
    let sayable = if scaled { receiver.window_scale() } else { WindowScale::new(0) };
    let receive_window = receiver.receive_window().min(sayable.largest());
    let send_window = sender.send_window();
    let windows = Windows { receive: receive_window, send: send_window, congestion: Window::UNLIMITED };
    let (goodput, limited_by) = window::rate(windows, path.rtt, path.framing.goodput(path.rate));
    Prediction { receive_window, send_window, goodput, limited_by }
}
