//! By what one sees whether a setting is in force, or why one cannot.

use fullpipe_model::change::RouteMetric;
use fullpipe_model::units::Bytes;
use serde::{Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;

/// What was seen of a setting, or why nothing could be. It is written as a sentence in English
/// ([`fmt::Display`]), in data, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// The receive buffer of a socket that asks for the most.
    AskedReceive(Bytes),
    /// The send buffer of a socket that asks for the most.
    AskedSend(Bytes),
    /// The congestion control of a new socket.
    Control(String),
    /// Whether a handshake has an option.
    Option(bool),
    /// A receive buffer that was filled and emptied, before and after.
    Grew(Bytes, Bytes),
    /// The congestion window before and after a pause, in segments.
    Pause(u32, u32),
    /// The receive buffer of a new socket.
    NewReceive(Bytes),
    /// The window scale of a handshake, and the expected one.
    Scale(u8, u8),
    /// The buffer of a new socket, the largest, and what this leaves open.
    Sizes(Bytes, Bytes, Open),
    /// What a socket that took no more had unsent.
    Unsent(Bytes),
    /// The same, where the send buffer is full before.
    UnsentHidden(Bytes),
    /// There is no connection over loopback: why.
    NoConnection(String),
    /// Why no socket here can show it.
    Hidden(Hidden),
    /// A discipline on a device takes its length.
    QueueTaken(String, String),
    /// The disciplines on a device do not.
    QueueIgnored(String, Vec<String>),
    /// There is no route to this address.
    NoRoute(IpAddr),
    /// What packets to an address have: the device, the metric, its value.
    Route(IpAddr, String, RouteMetric, u32),
}

/// What the sizes of buffers leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Open {
    /// Nothing.
    Nothing,
    /// The largest value would take too much memory.
    TooMuchMemory,
    /// Loopback did not need the largest value.
    NotNeeded,
    /// The largest value takes a path with a delay.
    NeedsDelay,
}

/// Why no socket here can show a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// `default_qdisc`.
    NewDevices,
    /// `tcp_mem`.
    AllSockets,
    /// `tcp_mtu_probing`.
    LossyPaths,
    /// `tcp_adv_win_scale` since Linux 6.6.
    NotRead,
    /// `tcp_adv_win_scale` before.
    LoopbackWindows,
    /// Buffers cannot grow.
    NoGrowth,
    /// The congestion window did not grow.
    NoWindowGrowth,
    /// This kernel does not say what is unsent.
    NotSaid,
    /// Nothing is known of it.
    Unknown,
}

impl Hidden {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Hidden::NewDevices => "devices that are made from now on get it",
            Hidden::AllSockets => "it bounds all sockets together: see /proc/net/sockstat",
            Hidden::LossyPaths => "it acts on paths that lose large packets",
            Hidden::NotRead => "Linux reads it no more since 6.6",
            Hidden::LoopbackWindows => "windows of loopback are bounded by its segments",
            Hidden::NoGrowth => "buffers cannot grow: tcp_rmem's largest is its initial value",
            Hidden::NoWindowGrowth => "the congestion window did not grow over loopback",
            Hidden::NotSaid => "this kernel does not say what is unsent",
            Hidden::Unknown => "nothing is known of it",
        }
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sign::AskedReceive(got) => {
                write!(f, "a socket that asks for the most by SO_RCVBUF gets {got:#}")
            }
            Sign::AskedSend(got) => {
                write!(f, "a socket that asks for the most by SO_SNDBUF gets {got:#}")
            }
            Sign::Control(name) => write!(f, "a new socket has {name}"),
            Sign::Option(has) => {
                write!(f, "a handshake has it {}", if *has { "on" } else { "off" })
            }
            Sign::Grew(before, after) => {
                write!(f, "a buffer of {before:#} that was filled and emptied became {after:#}")
            }
            Sign::Pause(before, after) => {
                write!(f, "a congestion window of {before} segments was {after} after a pause")
            }
            Sign::NewReceive(size) => write!(f, "a new socket has a receive buffer of {size:#}"),
            Sign::Scale(offered, expected) => {
                write!(f, "a handshake offers a window scale of {offered}, for {expected}")
            }
            Sign::Sizes(initial, largest, open) => {
                write!(f, "a new socket has {initial:#}, and a full one grew to {largest:#}")?;
                f.write_str(match open {
                    Open::Nothing => "",
                    Open::TooMuchMemory => {
                        "; the window scale of a handshake is made for its largest value; to fill that \
                         would take too much memory here"
                    }
                    Open::NotNeeded => "; loopback did not need its largest value",
                    Open::NeedsDelay => {
                        "; its largest value takes a path with a delay: loopback needs no more"
                    }
                })
            }
            Sign::Unsent(unsent) => write!(f, "a socket that took no more had {unsent:#} unsent"),
            Sign::UnsentHidden(unsent) => write!(
                f,
                "the send buffer is full before: a socket that took no more had {unsent:#} unsent"
            ),
            Sign::NoConnection(why) => {
                write!(f, "no connection over loopback ({why}): is lo up?")
            }
            Sign::Hidden(why) => f.write_str(why.words()),
            other => other.of_network(f),
        }
    }
}

impl Sign {
    /// Those of devices and routes.
    fn of_network(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sign::QueueTaken(device, kind) => {
                write!(f, "{kind} on {device} takes its length from it")
            }
            Sign::QueueIgnored(device, kinds) => {
                let kinds = if kinds.is_empty() { "nothing".into() } else { kinds.join(", ") };
                write!(
                    f,
                    "on {device} stands {kinds}, which does not read it: `tc qdisc replace dev {device} root pfifo_fast`, \
                     or give that discipline its own limit"
                )
            }
            Sign::NoRoute(peer) => write!(f, "the kernel has no route to {peer}"),
            Sign::Route(peer, device, metric, got) => {
                write!(f, "packets to {peer} leave by {device} with {} {got}", metric.name())
            }
            // The others are written by their caller.
            _ => Ok(()),
        }
    }
}

impl Serialize for Sign {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
