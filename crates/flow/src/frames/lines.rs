//! HTTP/2's windows over time, for graphs.

use crate::trace::Points;
use fullpipe_model::units::Instant;

/// The most points of a window's line.
const POINTS_MOST: usize = 1000;

/// What an end may still send by HTTP/2's windows, over time: as its program knows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GrantedLines {
    /// In all streams together.
    pub connection: Points,
    /// The stream that waited longest for its own window, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// In that stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_window: Option<Points>,
}

/// The line of one window, while it grows.
#[derive(Debug, Clone)]
pub(super) struct WindowLine {
    /// The connection's first packet: times count from there.
    start: Instant,
    /// The time of the last point, in µs.
    last: u64,
    points: Points,
}

impl WindowLine {
    /// A line without points.
    pub fn new(start: Instant) -> Self {
        WindowLine { start, last: 0, points: Points::of_values() }
    }

    /// The window was changed. A grant that was heard late counts with what followed it.
    pub fn note(&mut self, at: Instant, available: i64) {
        self.last = self.last.max(at.since(self.start).as_micros());
        self.points.push_change(self.last, available, POINTS_MOST);
    }

    /// The points.
    pub fn finish(self) -> Points {
        self.points
    }
}
