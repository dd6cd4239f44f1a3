//! What is to be known beside a plan's changes.

use crate::change::{MemoryShort, SlowByLoss};
use crate::law::slow_start::INITIAL_WINDOW_SEGMENTS;
use crate::limit::End;
use crate::units::{Bytes, Duration, Rate, Window};
use std::fmt;

/// What is to be known beside a plan's changes. As a reason, it is written as a sentence in English
/// and is [`PlanNote::Told`] where it was read again, and equals what says the same.
#[derive(Debug, Clone)]
pub enum PlanNote {
    /// One connection cannot have in flight what the path holds.
    SeveralConnections {
        /// What the path holds.
        bdp: Bytes,
        /// The largest window.
        largest: Bytes,
        /// How many connections fill the path.
        connections: u64,
    },
    /// The window scale changes, which is chosen in the handshake.
    NewConnections {
        /// The scale before.
        from: u8,
        /// The scale then.
        to: u8,
    },
    /// What memory a connection may take.
    Memory {
        /// The end whose buffer it is.
        end: End,
        /// The buffer.
        buffer: Bytes,
        /// Where all sockets together come under pressure, if that is known.
        pressure: Option<Bytes>,
    },
    /// The application set a buffer.
    Frozen {
        /// The end whose buffer it is.
        end: End,
        /// What it asked for.
        asked: Bytes,
        /// The window that this leaves.
        window: Window,
        /// What it would have to ask for.
        ask: Bytes,
    },
    /// An application that sets a buffer gets too small a one.
    WouldFreeze {
        /// The end whose buffer it is.
        end: End,
        /// The largest window that it gets.
        most: Window,
        /// The setting that bounds the buffer.
        max: Bytes,
    },
    /// Pauses begin slow start anew.
    SlowStartAfterIdle {
        /// How many round trips it takes.
        round_trips: u32,
        /// How long that is.
        time: Duration,
    },
    /// What all connections need does not fit into memory.
    MemoryShort {
        /// What is missing.
        short: MemoryShort,
        /// What one connection can expect.
        goodput: Rate,
    },
    /// BBR would help, and the kernel does not have it.
    NoBbr(SlowByLoss),
    /// BBR takes more than its share.
    BbrIsUnfair,
    /// What was asked for would lower a setting.
    LowersNothing {
        /// The setting.
        knob: String,
        /// Its value, which stays.
        stays: String,
        /// What was asked for.
        asked: String,
    },
    /// A sentence that was read.
    Told(String),
}

impl fmt::Display for PlanNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanNote::SeveralConnections { bdp, largest, connections } => write!(
                f,
                "the path holds {bdp}, above the {largest:#} that one connection can have in flight: \
                 {connections} fill it"
            ),
            PlanNote::NewConnections { from, to } => write!(
                f,
                "new connections only: the window scale ({from}, then {to}) is chosen in the handshake"
            ),
            PlanNote::Memory { end, buffer, pressure } => memory(f, *end, *buffer, *pressure),
            PlanNote::Frozen { end, asked, window, ask } => {
                frozen(f, *end, [*asked, *ask], *window)
            }
            PlanNote::WouldFreeze { end: End::Receiver, most, max } => write!(
                f,
                "an application that sets SO_RCVBUF ends autotuning and gets a window of at most {most}, \
                 as net.core.rmem_max is {max:#}"
            ),
            PlanNote::WouldFreeze { end: End::Sender, most, max } => write!(
                f,
                "an application that sets SO_SNDBUF ends autotuning and keeps at most {most} in flight, \
                 as net.core.wmem_max is {max:#}"
            ),
            PlanNote::SlowStartAfterIdle { round_trips, time } => write!(
                f,
                "net.ipv4.tcp_slow_start_after_idle is 1: a connection that pauses begins again with \
                 {INITIAL_WINDOW_SEGMENTS} segments and needs {round_trips} round trips ({time}) to fill \
                 the path; set it to 0 for long-lived connections that pause"
            ),
            PlanNote::MemoryShort { short, goodput } => {
                let MemoryShort { connections, wanted, budget } = short;
                write!(
                    f,
                    "{connections} connections that each fill the path alone would take {wanted:#} of \
                     memory, and {budget:#} may be used: one connection can expect {goodput}; say \
                     fewer --connections or more --memory"
                )
            }
            PlanNote::NoBbr(slow) => {
                write!(f, "{slow}, but this kernel does not have it loaded: modprobe tcp_bbr")
            }
            PlanNote::BbrIsUnfair => f.write_str(
                "bbr takes more than its share from connections of cubic in short queues: for paths that \
                 others use too, several connections are the fairer remedy",
            ),
            PlanNote::LowersNothing { knob, stays, asked } => write!(
                f,
                "{knob} stays at {stays}: {asked} would lower it, and a plan lowers nothing"
            ),
            PlanNote::Told(told) => f.write_str(told),
        }
    }
}

/// What memory a connection may take.
fn memory(
    f: &mut fmt::Formatter<'_>,
    end: End,
    buffer: Bytes,
    pressure: Option<Bytes>,
) -> fmt::Result {
    let direction = if end == End::Sender { "send" } else { "receive" };
    write!(f, "each connection may use {buffer:#} of memory to {direction}")?;
    match (pressure, connections_under(pressure, buffer)) {
        (Some(total), Some(connections)) => write!(
            f,
            "; net.ipv4.tcp_mem allows {total:#} before pressure, so {connections} such connections"
        ),
        _ => Ok(()),
    }
}

/// An application set a buffer: what it asked for, and what it would have to.
fn frozen(
    f: &mut fmt::Formatter<'_>,
    end: End,
    [asked, ask]: [Bytes; 2],
    window: Window,
) -> fmt::Result {
    let (option, leaves) = match end {
        End::Receiver => ("SO_RCVBUF", format!("leaves a window of {window}")),
        End::Sender => ("SO_SNDBUF", format!("keeps {window} in flight")),
    };
    write!(
        f,
        "the application sets {option} to {asked:#}, which ends autotuning and {leaves}; let it not \
         set {option}, or ask for {} bytes",
        ask.get()
    )
}

/// How many connections with this buffer there can be before sockets come under pressure.
pub fn connections_under(pressure: Option<Bytes>, buffer: Bytes) -> Option<u64> {
    Some(pressure?.get() / buffer.get().max(1))
}

impl PartialEq for PlanNote {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for PlanNote {}

impl serde::Serialize for PlanNote {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for PlanNote {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(PlanNote::Told)
    }
}
