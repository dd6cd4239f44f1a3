//! The graphs of one direction's data.

use super::bounds::TraceBounds;
use super::marks::{Mark, Marks};
use super::points::{EventKind, Points, TracedEvent};
use super::rate::RateBins;
use super::silences::{Acked, Sent, Silences};
use super::stall::{Stall, keep_longest};
use fullpipe_model::units::Rate;
use std::collections::BTreeMap;

/// The graphs of one direction's data. Sequence numbers count from its first byte and do not wrap.
/// Values are in bytes, round trips in µs. Of acknowledgements, windows and bytes in flight only
/// changes are points: a value holds until the next.
#[derive(Debug, Clone, serde::Serialize)]
pub struct DirectionTrace {
    segments: Points,
    acks: Points,
    #[serde(skip_serializing_if = "Points::is_empty")]
    window_edge: Points,
    #[serde(skip_serializing_if = "Points::is_empty")]
    window: Points,
    in_flight: Points,
    rtt: Points,
    rate: RateBins,
    marks: BTreeMap<&'static str, Marks>,
    stalls: Vec<Stall>,
    #[serde(skip)]
    silences: Silences,
    #[serde(skip)]
    bounds: TraceBounds,
}

impl DirectionTrace {
    pub(super) fn new(bounds: TraceBounds) -> Self {
        DirectionTrace {
            segments: Points::new(EventKind::Segment),
            acks: Points::new(EventKind::Value),
            window_edge: Points::new(EventKind::Value),
            window: Points::new(EventKind::Value),
            in_flight: Points::new(EventKind::Value),
            rtt: Points::new(EventKind::RoundTrip),
            rate: RateBins::default(),
            marks: BTreeMap::new(),
            stalls: Vec::new(),
            silences: Silences::default(),
            bounds,
        }
    }

    /// Segments with data: the sequence number after each.
    pub fn segments(&self) -> &Points {
        &self.segments
    }

    /// The acknowledgement line, where it rises.
    pub fn acks(&self) -> &Points {
        &self.acks
    }

    /// The end of the advertised window, as a sequence number. Empty where the window's scale is
    /// not known.
    pub fn window_edge(&self) -> &Points {
        &self.window_edge
    }

    /// The advertised window. Empty where its scale is not known.
    pub fn window(&self) -> &Points {
        &self.window
    }

    /// Payload in flight at the capture point.
    pub fn in_flight(&self) -> &Points {
        &self.in_flight
    }

    /// Round trips from data to its acknowledgement, under Karn's rule.
    pub fn rtt(&self) -> &Points {
        &self.rtt
    }

    /// Bytes by time.
    pub fn rate(&self) -> &RateBins {
        &self.rate
    }

    /// The places of a label, by the schema's word, or of `sack` (a reported block) or `push`.
    pub fn marks(&self, label: &str) -> Option<&Marks> {
        self.marks.get(label)
    }

    /// Silences longer than two round trips and 100 ms, in order of time.
    pub fn stalls(&self) -> &[Stall] {
        &self.stalls
    }

    pub(super) fn set_bounds(&mut self, bounds: TraceBounds) {
        self.bounds = bounds;
        let lines = [
            &mut self.segments,
            &mut self.acks,
            &mut self.window_edge,
            &mut self.window,
            &mut self.in_flight,
            &mut self.rtt,
        ];
        lines.into_iter().for_each(|points| points.thin(bounds.points));
        self.rate.thin(bounds.rate_bins);
        self.marks.values_mut().for_each(|marks| marks.thin(bounds.marks));
        if self.stalls.len() > bounds.marks {
            keep_longest(&mut self.stalls, bounds.marks);
            self.stalls.sort_unstable_by_key(|stall| stall.start);
        }
    }

    pub(super) fn thin(&mut self, points: usize) {
        self.set_bounds(self.bounds.scaled_to(points));
    }

    /// How many points, bins and places it holds.
    pub(super) fn held(&self) -> usize {
        let lines = [
            &self.segments,
            &self.acks,
            &self.window_edge,
            &self.window,
            &self.in_flight,
            &self.rtt,
        ];
        let points: usize = lines.into_iter().map(Points::len).sum();
        points
            + self.silences.len()
            + self.rate.len()
            + self.marks.values().map(Marks::len).sum::<usize>()
    }

    pub(super) fn note_sent(&mut self, sent: Sent) {
        self.silences.sent(sent, self.bounds.marks);
    }

    pub(super) fn note_acked(&mut self, acked: Acked) {
        self.silences.acknowledged(acked);
    }

    /// Ends the direction, whose mean goodput is known now.
    pub(super) fn finish(&mut self, goodput: Option<Rate>) {
        self.stalls = std::mem::take(&mut self.silences).finish(goodput, self.bounds.marks);
    }

    pub(super) fn add_bytes(&mut self, at: u64, payload: u64, wire: u64) {
        self.rate.add(at, payload, wire, self.bounds.rate_bins);
    }

    pub(super) fn add_segment(&mut self, at: u64, start: i64, end: i64, packet: u64) {
        let tag = super::differences::number(packet);
        self.segments.push(TracedEvent { at, value: end, low: start, tag }, self.bounds.points);
    }

    /// Notes the highest acknowledged number.
    pub(super) fn set_ack(&mut self, at: u64, ack: i64) {
        self.acks.push_change(at, ack, self.bounds.points);
    }

    /// Notes the window after `ack`.
    pub(super) fn set_window(&mut self, at: u64, ack: i64, window: i64) {
        self.window.push_change(at, window, self.bounds.points);
        self.window_edge.push_change(at, ack.saturating_add(window), self.bounds.points);
    }

    pub(super) fn set_in_flight(&mut self, at: u64, bytes: i64) {
        self.in_flight.push_change(at, bytes, self.bounds.points);
    }

    /// Notes a round trip of the data up to `sequence`.
    pub(super) fn add_rtt(&mut self, at: u64, micros: i64, sequence: i64) {
        self.rtt.push(
            TracedEvent { at, value: micros, low: micros, tag: sequence },
            self.bounds.points,
        );
    }

    pub(super) fn add_mark(&mut self, label: &'static str, mark: Mark) {
        self.marks.entry(label).or_default().add(mark, self.bounds.marks);
    }
}
