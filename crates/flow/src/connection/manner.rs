//! How an end sends and acknowledges: SYN options, ACKs for many segments, bursts, silences,
//! resets.

use crate::capture::segment::{Flags, Segment};
use fullpipe_model::units::{Bytes, Duration, Instant, column};

/// Data that follows other data this soon belongs to the same burst.
const BURST_GAP: Duration = Duration::from_micros(500);

/// An ACK this much later than the quickest counts as delayed; the reason may also have been a
/// queue.
const DELAYED: Duration = Duration::from_millis(10);

/// The counts of one direction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Manner {
    mss: Option<u16>,
    pub offers_scale: bool,
    sack_permitted: bool,
    timestamps: bool,
    fast_open: bool,
    multipath: bool,
    resets: u16,
    ece: u32,
    cwr: u32,
    delayed: u32,
    delay_sum: Duration,
    delay_max: Duration,
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
    /// The largest segment that it accepts, by its SYN.
    #[serde(rename = "mss_bytes")]
    pub mss: Option<u16>,
    /// Its SYN permits SACK.
    pub sack_permitted: bool,
    /// Its SYN has timestamps.
    pub timestamps: bool,
    /// Its SYN requests or carries a TCP Fast Open cookie (RFC 7413).
    pub fast_open: bool,
    /// Its SYN offers Multipath TCP (RFC 8684).
    pub multipath: bool,
    /// Its SYN offers window scaling, whether or not the other end did too.
    pub window_scale_offered: bool,
    /// Packets with ECN-Echo: this end received a congestion mark. That of a SYN, which only offers
    /// ECN, is not counted.
    pub ecn_echo: u32,
    /// Packets with CWR: this end reduced its congestion window in response.
    pub congestion_window_reduced: u32,
    /// ACKs that acknowledge something new.
    pub advancing_acks: u32,
    /// Advancing ACKs for more than two full-sized segments ("stretch ACK", RFC 2525 section 2.13).
    pub stretch_acks: u32,
    /// Advancing ACKs for at most two full-sized segments that came 10 ms or more later than the
    /// quickest (RFC 9293 section 3.8.6.3 allows 500 ms).
    pub delayed_acks: u32,
    /// How much later than the quickest these came, on average.
    #[serde(rename = "delayed_ack_mean_us", serialize_with = "column::micros::serialize")]
    pub delayed_ack_mean: Duration,
    /// How much later than the quickest the latest of these came.
    #[serde(rename = "delayed_ack_max_us", serialize_with = "column::micros::serialize")]
    pub delayed_ack_max: Duration,
    /// Most bytes that one ACK acknowledged.
    #[serde(rename = "acked_max_bytes")]
    pub acked_max: u32,
    /// Most packets of data in one burst, without a gap of 0.5 ms.
    pub burst_max_packets: u16,
    /// The longest time between two packets of its data.
    #[serde(rename = "silence_max_us", serialize_with = "column::micros::serialize")]
    pub silence_max: Duration,
    /// Number of RST segments.
    pub resets: u16,
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
            self.fast_open |= options.fast_open.is_some();
            self.multipath |= options.multipath;
        } else {
            self.ece = self.ece.saturating_add(u32::from(segment.flags.any(Flags::ECE)));
            self.cwr = self.cwr.saturating_add(u32::from(segment.flags.any(Flags::CWR)));
        }
        self.resets = self.resets.saturating_add(u16::from(segment.flags.any(Flags::RST)));
    }

    /// Notes the time of data.
    pub fn sends(&mut self, at: Instant) {
        let gap = (self.burst > 0).then(|| at.since(self.sent_at));
        self.sent_at = at;
        self.silence_max = self.silence_max.max(gap.unwrap_or(Duration::ZERO));
        self.burst =
            if gap.is_some_and(|gap| gap <= BURST_GAP) { self.burst.saturating_add(1) } else { 1 };
        self.burst_max = self.burst_max.max(self.burst);
    }

    /// When data was last sent; meaningful where any was.
    pub fn last_sent(&self) -> Instant {
        self.sent_at
    }

    /// How long no data has been sent.
    pub fn silent_for(&self, at: Instant) -> Duration {
        if self.burst > 0 { at.since(self.sent_at) } else { Duration::ZERO }
    }

    /// Notes an ACK of `fresh` bytes, sent in segments of at most `size`. It came `late` after the
    /// quickest ACK so far.
    pub fn acknowledges(&mut self, fresh: u32, size: Bytes, late: Duration) {
        self.advancing = self.advancing.saturating_add(1);
        let stretches = u64::from(fresh) > 2 * size.get().max(1);
        self.stretch = self.stretch.saturating_add(u32::from(stretches));
        self.acked_max = self.acked_max.max(fresh);
        if !stretches && late >= DELAYED {
            self.delayed = self.delayed.saturating_add(1);
            self.delay_sum = self.delay_sum.saturating_add(late);
            self.delay_max = self.delay_max.max(late);
        }
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
            fast_open: self.fast_open,
            multipath: self.multipath,
            window_scale_offered: self.offers_scale,
            ecn_echo: self.ece,
            congestion_window_reduced: self.cwr,
            delayed_acks: self.delayed,
            delayed_ack_mean: Duration::from_nanos(
                self.delay_sum.as_nanos() / u64::from(self.delayed.max(1)),
            ),
            delayed_ack_max: self.delay_max,
            advancing_acks: self.advancing,
            stretch_acks: self.stretch,
            acked_max: self.acked_max,
            burst_max_packets: self.burst_max,
            silence_max: self.silence_max,
            resets: self.resets,
        }
    }
}
