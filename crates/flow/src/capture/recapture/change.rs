//! What can be done to a capture, and how it is written.

use super::Stage;
use super::plain::{ClockStep, Drop, OneSide, Snap, Start, Twice};
use super::receive::Interrupts;
use super::send::Segmentation;
use fullpipe_model::units::{Duration, Probability};
use std::net::IpAddr;

/// A packet that the host sends this soon after the one before was handed over with it. Our edges
/// write segments of one hand-over with one time; real cards are some microseconds apart.
const HAND_OVER_GAP: Duration = Duration::from_micros(20);
/// Time between a card's interrupts under bulk load: Intel's igb and ixgbe drivers come to 4000 a
/// second (`IGB_4K_ITR`, drivers/net/ethernet/intel/igb/igb.h).
const INTERRUPT: Duration = Duration::from_micros(250);
/// A mirror port repeats a packet about so much later.
const MIRROR_DELAY: Duration = Duration::from_micros(10);

/// One way in which a capture differs from what passed the wire.
#[derive(Debug, Clone, PartialEq)]
pub enum CaptureChange {
    /// Segmentation offload (TSO, GSO): what `host` sends is seen before it is cut, as packets of
    /// up to 64 KB with the time of their first segment.
    Segmentation {
        /// The host that captures.
        host: IpAddr,
        /// The longest time between two segments that were handed over as one packet.
        gap: Duration,
    },
    /// Receive offload (GRO): what reaches `host` is seen at the card's interrupt, contiguous
    /// segments merged to at most 64 KB; the host's answers follow it.
    Interrupts {
        /// The host that captures.
        host: IpAddr,
        /// From the first packet that waits to the interrupt.
        every: Duration,
    },
    /// Captured from packet `packets + 1` on.
    Start {
        /// How many are missing.
        packets: u64,
    },
    /// No more than so many bytes of each packet are kept.
    Snap {
        /// Bytes, link header included.
        bytes: usize,
    },
    /// Only one direction was captured.
    OneSide {
        /// The host that sent what is there.
        from: IpAddr,
    },
    /// The capture lost packets that passed.
    Drop {
        /// How many of them.
        share: Probability,
        /// Of which; the same seed loses the same packets.
        seed: u64,
    },
    /// A mirror port of two places of a path: each packet comes twice, the second time one hop on.
    Twice {
        /// From the first time to the second.
        after: Duration,
    },
    /// The clock was set while the capture ran.
    ClockStep {
        /// So long after the first packet.
        after: Duration,
        /// By so much.
        by: Duration,
        /// Whether it was set back.
        back: bool,
    },
}

/// Why a text is no change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No such word, or a value that it cannot have.
    #[error(
        "recapture as '{0}': write tso, tso=GAP, gro, gro=INTERRUPT, start=PACKETS, \
         snap=BYTES, sent, drop=SHARE, drop=SHARE/SEED, twice, twice=DELAY, \
         clock=AFTER+STEP or clock=AFTER-STEP"
    )]
    Word(String),
    /// Which host captures is not known.
    #[error("recapture as '{0}': say which host captures, by its address")]
    NoHost(String),
}

/// What a host's own capture shows of its traffic: both kinds of merging.
pub fn as_host(host: IpAddr) -> [CaptureChange; 2] {
    [
        CaptureChange::Segmentation { host, gap: HAND_OVER_GAP },
        CaptureChange::Interrupts { host, every: INTERRUPT },
    ]
}

impl CaptureChange {
    /// Reads one change as it is written on a command line, for a capture taken by `host`.
    ///
    /// # Errors
    /// An unknown word, a value outside of its bounds, a change that needs a host without one.
    pub fn parse(text: &str, host: Option<IpAddr>) -> Result<CaptureChange, ChangeError> {
        let unknown = || ChangeError::Word(text.into());
        let host = host.ok_or_else(|| ChangeError::NoHost(text.into()));
        let (word, value) = match text.split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (text, None),
        };
        let duration = |default: Duration| match value {
            Some(value) => value.parse::<Duration>().map_err(|_| unknown()),
            None => Ok(default),
        };
        Ok(match (word, value) {
            ("tso", _) => {
                CaptureChange::Segmentation { host: host?, gap: duration(HAND_OVER_GAP)? }
            }
            ("gro", _) => CaptureChange::Interrupts { host: host?, every: duration(INTERRUPT)? },
            ("twice", _) => CaptureChange::Twice { after: duration(MIRROR_DELAY)? },
            ("sent", None) => CaptureChange::OneSide { from: host? },
            ("start", Some(value)) => {
                CaptureChange::Start { packets: value.parse().map_err(|_| unknown())? }
            }
            ("snap", Some(value)) => {
                CaptureChange::Snap { bytes: value.parse().map_err(|_| unknown())? }
            }
            ("drop", Some(value)) => drop_of(value).ok_or_else(unknown)?,
            ("clock", Some(value)) => clock_step(value).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        })
    }
}

fn drop_of(value: &str) -> Option<CaptureChange> {
    let (share, seed) = value.split_once('/').unwrap_or((value, "1"));
    Some(CaptureChange::Drop { share: share.parse().ok()?, seed: seed.parse().ok()? })
}

fn clock_step(value: &str) -> Option<CaptureChange> {
    let back = value.contains('-');
    let (after, by) = value.split_once(['+', '-'])?;
    Some(CaptureChange::ClockStep { after: after.parse().ok()?, by: by.parse().ok()?, back })
}

pub(super) fn stage(change: &CaptureChange) -> Box<dyn Stage> {
    match *change {
        CaptureChange::Segmentation { host, gap } => Box::new(Segmentation::new(host, gap)),
        CaptureChange::Interrupts { host, every } => Box::new(Interrupts::new(host, every)),
        CaptureChange::Start { packets } => Box::new(Start { left: packets }),
        CaptureChange::Snap { bytes } => Box::new(Snap { bytes }),
        CaptureChange::OneSide { from } => Box::new(OneSide { from }),
        CaptureChange::Drop { share, seed } => Box::new(Drop::new(share, seed)),
        CaptureChange::Twice { after } => Box::new(Twice::new(after)),
        CaptureChange::ClockStep { after, by, back } => Box::new(ClockStep::new(after, by, back)),
    }
}
