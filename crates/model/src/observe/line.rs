//! A line of a recording: one sample as JSON.
//!
//! A recording is a foreign file. Sums over its samples must not run over, so a line with a number
//! that no kernel has is refused here, once, and whoever adds up need not ask.

use super::{Sample, SocketMemory, TcpInfo};
use crate::units::{Bytes, Duration};

/// More than a connection carries, or a machine has.
const BYTES_MOST: u64 = 1 << 56;
/// More than a segment or a buffer has: the kernel's sizes of these have 32 bits.
const SIZE_MOST: u64 = 1 << 32;
/// The largest segment: with IPv6 jumbograms left aside, an IP packet has 16 bits.
const SEGMENT_MOST: u64 = 1 << 16;
/// 36 years.
const TIME_MOST: Duration = Duration::from_nanos(1 << 60);

/// The key that every sample and note has.
const AT: &[u8] = b"\"at_ns\"";

/// The key of a line that tells whether it is of a recording.
#[derive(serde::Deserialize)]
struct LineKeys {
    at_ns: Option<serde::de::IgnoredAny>,
}

/// Whether a line is of a recording: a sample, or a note. One that is cut is, if it has the key.
pub fn is_line(line: &[u8]) -> bool {
    match serde_json::from_slice::<LineKeys>(line) {
        Ok(keys) => keys.at_ns.is_some(),
        Err(_) => line.windows(AT.len()).any(|word| word == AT),
    }
}

/// Why a text is not a sample.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseSampleError {
    /// It is not the JSON of one.
    #[error("{0}; write it with `fullpipe why --record`")]
    Json(String),
    /// A number in it is larger than any kernel's.
    #[error("a number in it is larger than any kernel's")]
    Impossible,
}

impl std::str::FromStr for Sample {
    type Err = ParseSampleError;

    fn from_str(line: &str) -> Result<Self, ParseSampleError> {
        let sample: Sample = serde_json::from_str(line)
            .map_err(|error| ParseSampleError::Json(error.to_string()))?;
        if is_possible(&sample) { Ok(sample) } else { Err(ParseSampleError::Impossible) }
    }
}

fn is_possible(sample: &Sample) -> bool {
    sample.at.as_nanos() <= TIME_MOST.as_nanos() && is_possible_socket(sample)
}

/// Whether no number of its socket is larger than any kernel's.
pub(super) fn is_possible_socket(sample: &Sample) -> bool {
    within([sample.rqueue, sample.wqueue], SIZE_MOST)
        && sample.memory.as_ref().is_none_or(memory)
        && sample.info.as_ref().is_none_or(|info| sizes(info) && counts(info) && times(info))
}

fn within(all: impl IntoIterator<Item = Bytes>, most: u64) -> bool {
    all.into_iter().all(|bytes| bytes.get() <= most)
}

fn memory(memory: &SocketMemory) -> bool {
    let SocketMemory {
        rmem_alloc,
        rcvbuf,
        wmem_alloc,
        sndbuf,
        fwd_alloc,
        wmem_queued,
        optmem,
        backlog,
        drops: _,
    } = *memory;
    let all = [rmem_alloc, rcvbuf, wmem_alloc, sndbuf, fwd_alloc, wmem_queued, optmem, backlog];
    within(all, SIZE_MOST)
}

fn sizes(info: &TcpInfo) -> bool {
    let windows = [Some(info.rcv_ssthresh), info.snd_wnd, info.rcv_wnd];
    within([info.snd_mss, info.rcv_mss, info.advmss, info.pmtu], SEGMENT_MOST)
        && within(windows.into_iter().flatten().map(|window| window.bytes()), SIZE_MOST)
        && within([info.rcv_space], SIZE_MOST)
        && within(info.notsent_bytes, SIZE_MOST)
}

fn counts(info: &TcpInfo) -> bool {
    let all = [info.bytes_acked, info.bytes_received, info.bytes_sent, info.bytes_retrans];
    within(all.into_iter().flatten(), BYTES_MOST)
}

fn times(info: &TcpInfo) -> bool {
    let always = [
        info.rto,
        info.ato,
        info.last_data_sent,
        info.last_ack_sent,
        info.last_data_recv,
        info.last_ack_recv,
        info.rtt,
        info.rttvar,
        info.rcv_rtt,
    ];
    let some =
        [info.min_rtt, info.busy_time, info.rwnd_limited, info.sndbuf_limited, info.total_rto_time];
    always.into_iter().chain(some.into_iter().flatten()).all(|time| time <= TIME_MOST)
}
