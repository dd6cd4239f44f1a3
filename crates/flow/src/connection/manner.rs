//! How an end sends and acknowledges: SYN options, ACKs for many segments, bursts, silences, resets.

use crate::segment::{Flags, Segment};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// Data that follows data this soon belongs to the same burst.
const BURST_GAP: Duration = Duration::from_micros(500);

/// What is counted of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner {
    mss: Option<u16>,
    pub offers_scale: bool,
    sack_permitted: bool,
    timestamps: bool,
    resets: u16,
    advancing: u32,
    stretch: u32,
    acked_max: u32,
    burst: u16,
    burst_max: u16,
    silence_max: Duration,
    /// When data was last sent; meaningful where `burst` is not zero.
    sent_at: Instant,
}

/// How an end sends and acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct MannerFacts {
    /// The largest segment that it is willing to receive, by its SYN.
    #[serde(rename = "mss_bytes")]
    pub mss: Option<u16>,
    /// Its SYN permits SACK.
    pub sack_permitted: bool,
    /// Its SYN has timestamps.
    pub timestamps: bool,
    /// ACKs that acknowledge something new.
    pub advancing_acks: u32,
    /// Of them, for more than two full-sized segments ("stretch ACK", RFC 2525 section 2.13).
    pub stretch_acks: u32,
    /// Most bytes that one ACK acknowledged.
    #[serde(rename = "acked_max_bytes")]
    pub acked_max: u32,
    /// Most packets of data at a stretch without a gap of 0.5 ms.
    pub burst_max_packets: u16,
    /// The longest time between two packets of its data.
    #[serde(rename = "silence_max_us", serialize_with = "micros")]
    pub silence_max: Duration,
    /// RST segments.
    pub resets: u16,
}

fn micros<S: serde::Serializer>(value: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(value.as_micros())
}

impl Manner {
    /// Notes a segment that this end sent.
    pub fn sees(&mut self, segment: &Segment) {
        if segment.flags.any(Flags::SYN) {
            let options = &segment.options;
            self.mss = options.mss.and_then(|mss| mss.get().try_into().ok()).or(self.mss);
            self.offers_scale |= options.window_scale.is_some();
            self.sack_permitted |= options.sack_permitted;
            self.timestamps |= options.timestamps.is_some();
        }
        self.resets = self.resets.saturating_add(u16::from(segment.flags.any(Flags::RST)));
    }

    /// Data.
    pub fn sends(&mut self, at: Instant) {
        let gap = (self.burst > 0).then(|| at.since(self.sent_at));
        self.sent_at = at;
        self.silence_max = self.silence_max.max(gap.unwrap_or(Duration::ZERO));
        self.burst = if gap.is_some_and(|gap| gap <= BURST_GAP) { self.burst.saturating_add(1) } else { 1 };
        self.burst_max = self.burst_max.max(self.burst);
    }

    /// An ACK of `fresh` bytes that were sent in segments of at most `size`.
    pub fn acknowledges(&mut self, fresh: u32, size: Bytes) {
        self.advancing = self.advancing.saturating_add(1);
        self.stretch = self.stretch.saturating_add(u32::from(u64::from(fresh) > 2 * size.get().max(1)));
        self.acked_max = self.acked_max.max(fresh);
    }

    /// The largest segment that the other end may send.
    pub fn mss(&self) -> Option<u16> {
        self.mss
    }

    pub fn facts(&self) -> MannerFacts {
        MannerFacts {
            mss: self.mss,
            sack_permitted: self.sack_permitted,
            timestamps: self.timestamps,
            advancing_acks: self.advancing,
            stretch_acks: self.stretch,
            acked_max: self.acked_max,
            burst_max_packets: self.burst_max,
            silence_max: self.silence_max,
            resets: self.resets,
        }
    }
}
