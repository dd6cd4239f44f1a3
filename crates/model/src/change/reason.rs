//! Why a setting is changed.

use crate::law::WindowLaw;
use crate::units::{Bytes, Duration, Probability, Rate, Window};
use std::fmt;

/// Why a setting is changed: what it is now, with the numbers. It is written as a sentence in
/// English ([`fmt::Display`]); what was read again is [`ChangeReason::Told`], and two reasons are
/// the same if they say the same.
#[derive(Debug, Clone)]
pub enum ChangeReason {
    /// A send buffer keeps too little in flight.
    SendBuffer(ShortBuffer),
    /// A receive buffer advertises too small a window, by this law.
    ReceiveBuffer(ShortBuffer, WindowLaw),
    /// A receive buffer that is not tuned stays as it begins.
    NoAutotuning {
        /// Its initial size.
        initial: Bytes,
    },
    /// No window exceeds 65535 bytes.
    NoWindowScaling {
        /// What the path holds.
        bdp: Bytes,
    },
    /// Only one part in so many of a receive buffer is advertised.
    SmallShare(u64),
    /// The reason, and that no more fits into memory.
    Fits(Box<ChangeReason>, MemoryShort),
    /// All sockets together come under pressure before they have their buffers.
    SocketMemory {
        /// How many connections there may be.
        connections: u64,
        /// What they may take.
        total: Bytes,
        /// Where pressure begins.
        pressure: Bytes,
    },
    /// There are no selective acknowledgements.
    NoSack {
        /// The round trip that each lost segment costs.
        rtt: Duration,
    },
    /// Sequence numbers come round before old segments are gone.
    NoTimestamps {
        /// The path's rate.
        rate: Rate,
        /// How soon.
        wrap: Duration,
    },
    /// An application that is woken late lets its socket run dry.
    LateWakeUp {
        /// How late.
        late: Duration,
        /// The path's rate.
        rate: Rate,
        /// What it carries meanwhile.
        carried: Bytes,
    },
    /// Connections that pause begin again.
    SlowStartAfterPauses,
    /// Large packets vanish.
    MtuBlackHole,
    /// Loss alone makes a congestion control slow.
    SlowByLoss(SlowByLoss),
    /// BBR cannot pace by itself yet.
    PacingNeedsFq,
    /// It was asked for.
    AskedFor,
    /// A sentence that was read.
    Told(String),
}

/// A buffer that is too small for its path.
#[derive(Debug, Clone)]
pub struct ShortBuffer {
    /// Its size.
    pub buffer: Bytes,
    /// What it keeps in flight or advertises.
    pub window: Window,
    /// Which part of it that is, in per cent.
    pub percent: u32,
    /// What that carries; `None` where it is less than the path.
    pub carries: Option<Rate>,
    /// The path's round trip.
    pub rtt: Duration,
    /// What the path holds.
    pub bdp: Bytes,
    /// What its queue holds.
    pub queue: Bytes,
    /// Whether the application sets the buffer, which the setting bounds.
    pub is_of_application: bool,
}

/// Memory that does not suffice for what each connection needs.
#[derive(Debug, Clone, Copy)]
pub struct MemoryShort {
    /// How many connections there may be.
    pub connections: u64,
    /// What they would take.
    pub wanted: Bytes,
    /// What there is.
    pub budget: Bytes,
}

/// A congestion control that loss makes slow.
#[derive(Debug, Clone)]
pub struct SlowByLoss {
    /// The path's random loss.
    pub loss: Probability,
    /// The congestion control.
    pub algorithm: String,
    /// What one connection of it carries.
    pub carries: Rate,
    /// What the path carries.
    pub full: Rate,
}

const NO_SCALING: &str =
    "without window scaling at both ends no window is above 65535 bytes; the path holds";
const AFTER_PAUSES: &str =
    "connections that pause begin again with 10 segments; with 0 they go on as before the pause";
const BLACK_HOLE: &str = "large packets vanish without a word; with 1 a connection whose segments \
                          vanish tries smaller ones (RFC 4821)";

impl fmt::Display for ChangeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeReason::SendBuffer(short) => short.keeps(f),
            ChangeReason::ReceiveBuffer(short, law) => short.advertises(f, law),
            ChangeReason::NoAutotuning { initial } => write!(
                f,
                "without autotuning the receive buffer stays at tcp_rmem's initial {initial:#}"
            ),
            ChangeReason::NoWindowScaling { bdp } => write!(f, "{NO_SCALING} {bdp}"),
            ChangeReason::SmallShare(share) => {
                write!(f, "only 1/{share} of a receive buffer is advertised; with 1 it is the half")
            }
            ChangeReason::Fits(reason, MemoryShort { connections, wanted, budget }) => write!(
                f,
                "{reason}; {connections} connections with what one needs would take {wanted:#} \
                 where there are {budget:#}, so this is what fits"
            ),
            ChangeReason::SocketMemory { connections, total, pressure } => write!(
                f,
                "{connections} connections may take {total:#}, and all sockets together come under \
                 pressure at {pressure:#}"
            ),
            ChangeReason::NoSack { rtt } => write!(
                f,
                "without selective acknowledgements each lost segment of a window costs a round trip \
                 of its own, {rtt} here (RFC 2018)"
            ),
            ChangeReason::NoTimestamps { rate, wrap } => write!(
                f,
                "at {rate} sequence numbers come round after {wrap}, before old segments are gone; \
                 only timestamps tell them apart (RFC 7323, section 5)"
            ),
            ChangeReason::LateWakeUp { late, rate, carried } => write!(
                f,
                "an application that is woken {late} late lets the socket run dry: {rate} carry \
                 {carried} meanwhile, and it is woken when half of the bound is left"
            ),
            ChangeReason::SlowStartAfterPauses => f.write_str(AFTER_PAUSES),
            ChangeReason::MtuBlackHole => f.write_str(BLACK_HOLE),
            ChangeReason::SlowByLoss(slow) => slow.fmt(f),
            ChangeReason::PacingNeedsFq => {
                f.write_str("before Linux 4.13 bbr needs fq to space its packets")
            }
            ChangeReason::AskedFor => f.write_str("it was asked for"),
            ChangeReason::Told(told) => f.write_str(told),
        }
    }
}

impl ShortBuffer {
    fn keeps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShortBuffer { buffer, window, percent, .. } = self;
        write!(f, "a send buffer of {buffer:#} keeps {window} in flight ({percent} % of it), ")?;
        self.on_the_path(f, "SO_SNDBUF, which wmem_max bounds")
    }

    fn advertises(&self, f: &mut fmt::Formatter<'_>, law: &WindowLaw) -> fmt::Result {
        let ShortBuffer { buffer, window, percent, .. } = self;
        write!(
            f,
            "a receive buffer of {buffer:#} advertises {window} ({percent} % of it, {law}), "
        )?;
        self.on_the_path(f, "SO_RCVBUF, which rmem_max bounds")
    }

    /// `about 443 Mbit/s over 50 ms; the path holds 6.25 MB ..`.
    fn on_the_path(&self, f: &mut fmt::Formatter<'_>, by: &str) -> fmt::Result {
        let ShortBuffer { carries, rtt, bdp, queue, is_of_application, .. } = self;
        match carries {
            Some(rate) => write!(f, "about {rate} over {rtt}")?,
            None => write!(f, "less than the path over {rtt}")?,
        }
        write!(f, "; the path holds {bdp} and its queue {queue}")?;
        if *is_of_application { write!(f, ". The application sets {by}") } else { Ok(()) }
    }
}

impl fmt::Display for SlowByLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SlowByLoss { loss, algorithm, carries, full } = self;
        write!(
            f,
            "with {loss} of random loss one connection of {algorithm} carries {carries}, of {full}; bbr \
             does not slow down for such loss"
        )
    }
}

impl PartialEq for ChangeReason {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for ChangeReason {}

impl From<&str> for ChangeReason {
    fn from(told: &str) -> Self {
        ChangeReason::Told(told.into())
    }
}

impl serde::Serialize for ChangeReason {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ChangeReason {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(ChangeReason::Told)
    }
}
