//! Makes the points of one connection's graphs, packet by packet.

use super::bounds::TraceBounds;
use super::differences::number;
use super::direction::DirectionTrace;
use super::marks::Mark;
use super::packet::{Packet, PathEnds};
use super::silences::{Acked, Sent};
use super::stall::Resumed;
use crate::capture::segment::{Flags, SackBlocks, SequenceNumber};
use crate::connection::{Label, LabelSet};
use fullpipe_model::units::{Duration, Instant, Rate};

/// The points of one connection. Ends are numbered as in the tracker.
#[derive(Debug, Clone)]
pub(super) struct Digest {
    start: Instant,
    /// The time of the last packet in µs. It never goes back, even if the capture's clock does.
    now: u64,
    directions: [DirectionTrace; 2],
    spaces: [Space; 2],
}

/// One direction's sequence numbers without wrap.
#[derive(Debug, Clone, Copy, Default)]
struct Space {
    /// A number and its place from the first byte.
    reference: Option<(SequenceNumber, i64)>,
    /// Whether a number of data was placed.
    has_data: bool,
    /// The highest acknowledged.
    acked: Option<i64>,
}

impl Space {
    /// The place of a number: the one that is nearest to that of the last data or acknowledgement.
    /// `origin` is the number of the first byte.
    fn place(&self, origin: Option<SequenceNumber>, number: SequenceNumber) -> i64 {
        let (known, place) = self.reference.unwrap_or_else(|| (origin.unwrap_or(number), 0));
        place.saturating_add(number.after(known).into())
    }

    /// The place of the number of data, or of an acknowledgement of data.
    fn moved_to(&mut self, origin: Option<SequenceNumber>, number: SequenceNumber) -> i64 {
        let here = self.place(origin, number);
        self.reference = Some((number, here));
        here
    }
}

impl Digest {
    pub fn new(start: Instant, bounds: TraceBounds) -> Self {
        let directions = [DirectionTrace::new(bounds), DirectionTrace::new(bounds)];
        Digest { start, now: 0, directions, spaces: Default::default() }
    }

    /// How many points, bins and places it holds.
    pub fn held(&self) -> usize {
        self.directions.iter().map(DirectionTrace::held).sum()
    }

    /// Keeps at most this much from now on.
    pub fn set_bounds(&mut self, bounds: TraceBounds) {
        self.directions.iter_mut().for_each(|direction| direction.set_bounds(bounds));
    }

    /// Notes the next packet.
    pub fn see(&mut self, packet: &Packet, sack: &SackBlocks, ends: &PathEnds) {
        self.now = self.now.max(packet.at.since(self.start).as_micros());
        let from = &mut self.directions[packet.from()];
        if packet.is_broken() {
            // Neither do its connection's facts count a payload.
            from.add_bytes(self.now, 0, packet.wire.into());
            return;
        }
        // A copy's payload is counted once in the facts, too.
        let payload = if packet.is_copy() { 0 } else { packet.payload };
        from.add_bytes(self.now, payload.into(), packet.wire.into());
        self.see_data(packet, ends);
        if packet.flags.any(Flags::ACK) && !packet.flags.any(Flags::RST) {
            self.see_ack(packet, sack, ends);
        }
        for (direction, bytes) in self.directions.iter_mut().zip(packet.in_flight()) {
            if let Some(bytes) = bytes {
                direction.set_in_flight(self.now, number(bytes));
            }
        }
    }

    /// The graphs of each direction with data. That of end `client` comes first, as in `goodputs`.
    pub fn finish(self, client: usize, goodputs: [Option<Rate>; 2]) -> [Option<DirectionTrace>; 2] {
        let [first, second] = self.spaces.map(|space| space.has_data);
        let [one, other] = self.directions;
        let (one, other) = (first.then_some(one), second.then_some(other));
        let mut directions = if client == 0 { [one, other] } else { [other, one] };
        for (direction, goodput) in directions.iter_mut().zip(goodputs) {
            if let Some(direction) = direction {
                direction.finish(goodput);
            }
        }
        directions
    }

    fn see_data(&mut self, packet: &Packet, ends: &PathEnds) {
        let (from, labels, length) = (packet.from(), packet.labels, packet.payload);
        let is_probe = labels.contains(Label::KeepAlive) || labels.contains(Label::ZeroWindowProbe);
        // A SYN takes up the number before the first byte.
        let first = packet.seq + u32::from(packet.flags.any(Flags::SYN));
        let space = &mut self.spaces[from];
        let origin = ends.origins[from];
        // The number of an empty segment, as a reset, may be anything.
        let start = match length {
            0 => space.place(origin, first),
            _ => space.moved_to(origin, first),
        };
        space.has_data |= length > 0;
        let mark = Mark { at: self.now, sequence: start, length, packet: packet.number };
        let direction = &mut self.directions[from];
        if length > 0 && !is_probe {
            let end = start + i64::from(length);
            direction.add_segment(self.now, start, end, packet.number);
            // A copy that the capture or the network made is not the sender's doing.
            if !labels.contains(Label::DuplicatePacket) {
                direction.note_sent(Sent {
                    at: self.now,
                    start,
                    end,
                    resumed: resumed(labels),
                    follows_gap: packet.follows_gap(),
                    is_pushed: packet.flags.any(Flags::PSH),
                    stamp: packet.stamp(),
                    segment: packet.segment_size,
                    path_rtt: ends.path_rtt.map(Duration::as_micros),
                    lag: ends.lags[from].map(Duration::as_micros),
                });
            }
        }
        if length > 0 && packet.flags.any(Flags::PSH) {
            direction.add_mark("push", mark);
        }
        if labels != LabelSet::default() {
            let own = labels.iter().filter(|label| !is_of_acknowledged(*label));
            own.for_each(|label| direction.add_mark(label.name(), mark));
        }
    }

    fn see_ack(&mut self, packet: &Packet, sack: &SackBlocks, ends: &PathEnds) {
        let (of, labels) = (1 - packet.from(), packet.labels);
        let (space, direction) = (&mut self.spaces[of], &mut self.directions[of]);
        let ack = space.moved_to(ends.origins[of], packet.ack);
        let highest = space.acked.map_or(ack, |acked| acked.max(ack));
        space.acked = Some(highest);
        direction.set_ack(self.now, highest);
        if let Some(window) = packet.window().filter(|_| ack == highest) {
            direction.set_window(self.now, ack, number(window));
        }
        direction.note_acked(Acked {
            at: self.now,
            ack,
            window: packet.window().map(number),
            is_zero: packet.has_zero_window(),
            rtt: packet.rtt(),
        });
        if let Some(rtt) = packet.rtt() {
            direction.add_rtt(self.now, number(rtt), ack);
        }
        let mut mark = Mark { at: self.now, sequence: ack, length: 0, packet: packet.number };
        if labels != LabelSet::default() {
            let about = labels.iter().filter(|label| is_of_acknowledged(*label));
            about.for_each(|label| direction.add_mark(label.name(), mark));
        }
        for (left, right) in sack.as_slice() {
            mark.sequence = space.place(None, *left);
            mark.length = right.distance(*left);
            direction.add_mark("sack", mark);
        }
    }
}

/// What made the sender send data with these labels, if it was silent before.
fn resumed(labels: LabelSet) -> Resumed {
    if labels.contains(Label::FastRetransmission) {
        Resumed::Fast
    } else if labels.contains(Label::Retransmission) {
        Resumed::Timer
    } else if labels.contains(Label::OutOfOrder) {
        Resumed::Overtaken
    } else {
        Resumed::New
    }
}

/// Whether a packet with this label belongs in the graph of the data that it acknowledges, not of
/// the data of its sender.
fn is_of_acknowledged(label: Label) -> bool {
    matches!(
        label,
        Label::DuplicateAck
            | Label::ZeroWindow
            | Label::ZeroWindowProbeAck
            | Label::WindowUpdate
            | Label::KeepAliveAck
            | Label::AckLostSegment
            | Label::TfoAck
            | Label::TfoIgnored
    )
}
