//! How a capture is analysed, and what became of its packets.

use crate::capture::Layer;
use crate::connection::Labels;
use crate::connection::filter::Filter;
use crate::frames::KeyLog;
use crate::limit::{CapturePoint, PathHint};
use crate::trace::TraceBounds;
use crate::windows::OwnWindows;
use fullpipe_model::observe::Prefixes;
use fullpipe_model::units::Duration;
use std::sync::Arc;

/// How to analyse.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where the capture was taken.
    pub capture_point: CapturePoint,
    /// What is known of the path from elsewhere.
    pub hint: PathHint,
    /// Length of the intervals to show. The verdict rests on intervals of a round trip, at least 10
    /// ms, whatever is shown; by default, those are shown.
    pub interval: Option<Duration>,
    /// Connections that are kept at most, finished ones that were not drained included; packets of
    /// further ones are counted as [`Counts::untracked`].
    pub max_connections: usize,
    /// Connections that are open at a time at most; beyond it the quarter that was silent for
    /// longest is finished early, and counted as [`Counts::forced_out`]. From a quarter of it on,
    /// each new connection ends the [lingering](Config::linger) of the one closed for longest.
    pub max_open: usize,
    /// How long a closed connection's late packets still belong to it; by default 2 MSL of 2
    /// minutes (RFC 9293, 3.4.2).
    pub linger: Duration,
    /// How long an open connection may be silent; by default 2 hours and 4 minutes (RFC 5382,
    /// REQ-5).
    pub idle_timeout: Duration,
    /// Whose definitions the labels follow.
    pub labels: Labels,
    /// Which IP packet of a tunnelled one is analysed.
    pub layer: Layer,
    /// Which connections; all by default.
    pub filter: Option<Filter>,
    /// A user's own entries of what programs grant above TCP; none by default.
    pub windows: OwnWindows,
    /// Read the frames of HTTP/2, for its windows, where they are in clear text or [`Config::keys`]
    /// open them; by default.
    pub frames: bool,
    /// The secrets of TLS connections that are known before the capture is read, which may bring
    /// others ([`Analyzer::learn`](crate::Analyzer::learn)); none by default.
    pub keys: KeyLog,
    /// Record the points of each connection's graphs ([`crate::trace`]), and how many; not by
    /// default.
    pub trace: Option<TraceBounds>,
    /// Keep the order in which each connection's time was spent
    /// ([`crate::diagnosis::DiagnosedConnection::spans`]); not by default.
    pub spans: bool,
    /// Where peers are, for rows of workloads; nowhere by default.
    pub prefixes: Arc<Prefixes>,
    /// How far the looks of a log of ss are apart, where it has no stamps of time.
    pub looks_every: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            capture_point: CapturePoint::Unknown,
            hint: PathHint::default(),
            interval: None,
            max_connections: 1 << 20,
            max_open: 1 << 18,
            linger: Duration::from_secs(240),
            idle_timeout: Duration::from_secs(7440),
            labels: Labels::default(),
            layer: Layer::default(),
            filter: None,
            windows: OwnWindows::default(),
            frames: true,
            keys: KeyLog::default(),
            trace: None,
            spans: false,
            prefixes: Arc::default(),
            looks_every: None,
        }
    }
}

/// What became of a capture's packets, and how many connections were not told whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counts {
    /// Packets given.
    pub packets: u64,
    /// Of them, not TCP over IP (or behind something that is not entered, as a tunnel).
    pub not_tcp: u64,
    /// Of them, IP fragments before the one that completes their packet, or whose packet was never
    /// complete.
    pub fragments: u64,
    /// Of them, cut before the end of the numbers in their TCP header.
    pub cut: u64,
    /// Of them, TCP of connections that [`Config::filter`] leaves out.
    pub filtered: u64,
    /// Of them, TCP of connections beyond [`Config::max_connections`].
    pub untracked: u64,
    /// Connections finished early because of [`Config::max_open`]; what came later of them is a
    /// connection of its own.
    pub forced_out: u64,
    /// Packets that the capture itself dropped, by the counters that it wrote (pcapng's
    /// `isb_ifdrop` and `isb_osdrop`); `None` where it wrote none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Packets whose time is before that of a packet before them in the file.
    #[serde(skip_serializing_if = "is_zero")]
    pub backwards: u64,
    /// Of them, those that were not sorted by time, because they are too late for it or because
    /// nobody asked for it.
    #[serde(skip_serializing_if = "is_zero")]
    pub unsorted: u64,
    /// Samples given, where they are the evidence and not packets.
    #[serde(skip_serializing_if = "is_zero")]
    pub samples: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Counts {
    /// What there was of evidence: `1200 packets`.
    pub fn of(&self) -> String {
        match self.samples {
            0 => format!("{} packets", self.packets),
            samples => format!("{samples} samples"),
        }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        // All of them by name, so that a new one is not forgotten.
        let Counts {
            packets,
            not_tcp,
            fragments,
            cut,
            filtered,
            untracked,
            forced_out,
            dropped,
            backwards,
            unsorted,
            samples,
        } = other;
        self.packets += packets;
        self.not_tcp += not_tcp;
        self.fragments += fragments;
        self.cut += cut;
        self.filtered += filtered;
        self.untracked += untracked;
        self.forced_out += forced_out;
        self.dropped = self.dropped.map_or(dropped, |one| Some(one + dropped.unwrap_or(0)));
        self.backwards += backwards;
        self.unsorted += unsorted;
        self.samples += samples;
    }
}
