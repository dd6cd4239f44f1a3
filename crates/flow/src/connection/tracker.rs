//! What is held of an open connection, and how a segment changes it.

use super::advertised_window::AdvertisedWindow;
use super::handshake::Handshake;
use super::histogram::Histogram;
use super::labels::{self, Known, Memory, Scale};
use super::manner::Manner;
use super::outstanding::Outstanding;
use super::payload::Unique;
use super::recent::Recent;
use super::relabel::{self, Told};
use super::scoreboard::{LossFacts, Scoreboard};
use super::segment_size::SegmentSize;
use super::series::{Data, Given, MIN_INTERVAL, Series, Start};
use super::vantage::{self, Warning};
use super::{
    Close, Connection, Difference, DirectionFacts, Label, LabelCounts, LabelSet, Labels, RttFacts,
};
use crate::config::Config;
use crate::limit::{CapturePoint, Coverage, Path, Verdict, decide};
use crate::segment::{Flags, FlowKey, Segment, SequenceNumber};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// An open connection.
#[derive(Debug)]
pub(crate) struct Tracker {
    id: u64,
    first_packet: u64,
    /// Whether the first packet's sender is the first end of the connection's key.
    starts_with_first: bool,
    /// Which ends sent a FIN that was acknowledged; both, once either reset the connection.
    closed: [Closing; 2],
    /// Which end first sent FIN or RST, and whether it was RST.
    ended: Option<(u8, bool)>,
    /// Wireshark's `tcp.completeness`.
    completeness: u8,
    /// Which end opened: 0 for the sender of the first packet seen, 1 for the other.
    client: Option<usize>,
    start: Instant,
    last: Instant,
    handshake: Handshake,
    halves: [Half; 2],
    /// Number of each direction's SYN; one before its first segment, where that was not captured.
    initial: [Option<SequenceNumber>; 2],
    /// Whether the capture cut a packet within its TCP header.
    has_cut_headers: bool,
}

/// What a packet was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub labels: LabelSet,
    pub wireshark: LabelSet,
    pub difference: Option<Difference>,
    pub by_client: bool,
}

/// How far an end's direction is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    Open,
    /// A FIN was sent; this number acknowledges it.
    Fin(SequenceNumber),
    Closed,
}

/// What one end sent.
#[derive(Debug, Default)]
struct Half {
    packets: u64,
    wire: u64,
    payload: u64,
    payload_max: u32,
    segment: SegmentSize,
    memory: Memory,
    /// Absent until a packet has a label, which most connections' never have.
    counts: Option<Box<LabelCounts>>,
    unique: Unique,
    outstanding: Outstanding,
    /// Number after the highest sent, and highest acknowledged by the other end.
    next: Option<SequenceNumber>,
    una: Option<SequenceNumber>,
    in_flight_max: u32,
    /// What SACK and gaps tell; absent until there is one.
    board: Option<Box<Scoreboard>>,
    recent: Recent,
    manner: Manner,
    duplicate_packets: u32,
    congestion_experienced: u32,
    sent_fast_open: bool,
    rtt: Histogram,
    window: AdvertisedWindow,
    /// Meaningful where there is a series, which begins with it.
    first_data: Instant,
    last_data: Instant,
    series: Option<Box<Series>>,
}

impl Tracker {
    /// Starts with the connection's first segment: its number and that of its first packet;
    /// `from_first` where the sender is the first end of the connection's key, which its owner
    /// keeps.
    pub fn new((id, first_packet): (u64, u64), at: Instant, from_first: bool) -> Self {
        Tracker {
            id,
            first_packet,
            starts_with_first: from_first,
            closed: [Closing::Open; 2],
            ended: None,
            completeness: 0,
            client: None,
            start: at,
            last: at,
            handshake: Handshake::default(),
            halves: Default::default(),
            initial: [None, None],
            has_cut_headers: false,
        }
    }

    /// Whether `segment` opens another connection between the same addresses and ports.
    pub fn is_reused_by(&self, segment: &Segment, from_first: bool) -> bool {
        let from = self.sender(from_first);
        let opens = segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK);
        opens && self.initial[from].is_some_and(|known| known != segment.seq)
    }

    /// Its number in the capture.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of its first packet.
    pub fn first_packet(&self) -> u64 {
        self.first_packet
    }

    /// When its last packet was.
    pub fn last(&self) -> Instant {
        self.last
    }

    /// Whether nothing but late packets can follow.
    pub fn is_closed(&self) -> bool {
        self.closed == [Closing::Closed; 2]
    }

    /// The next segment: whether its sender is the first end of the connection's key, its bytes
    /// with all headers, and whether it took over an older connection's ports. Gives its labels and
    /// whether the client sent it.
    pub fn push(
        &mut self,
        config: &Config,
        at: Instant,
        segment: &Segment,
        (from_first, wire, reuses): (bool, usize, bool),
    ) -> Seen {
        let from = self.sender(from_first);
        self.last = self.last.max(at);
        self.halves[from].packets += 1;
        self.halves[from].wire += wire as u64;
        self.has_cut_headers |= segment.is_header_cut;
        if segment.is_broken {
            let none = LabelSet::default();
            let by_client = self.client.unwrap_or(0) == from;
            return Seen { labels: none, wireshark: none, difference: None, by_client };
        }
        // A second answer with another number: the server forgot the first, or is not the server.
        let answers = segment.flags.any(Flags::SYN) && segment.flags.any(Flags::ACK);
        let other_answer = answers && self.initial[from].is_some_and(|known| known != segment.seq);
        self.note_handshake(at, segment, from);
        let rtt = self.handshake.irtt();
        let (sender, receiver) = self.pair(from);
        let known = Known { rtt, oldest: sender.outstanding.oldest() };
        let mut labels =
            labels::label(&mut sender.memory, &mut receiver.memory, at, segment, known);
        if reuses || other_answer {
            labels.add(Label::ReusedPorts);
        }
        self.label_fast_open(&mut labels, segment, from);
        let (sender, _) = self.pair(from);
        sender.manner.sees(segment);
        sender.congestion_experienced += u32::from(segment.ce);
        let is_again = sender.recent.is_repeated(segment);
        self.note_close(segment, from);
        self.note_completeness(segment);
        let mut better = self.note_data(config, at, segment, from, (labels, is_again));
        let news = self.note_ack(at, segment, from);
        if is_again {
            self.halves[from].duplicate_packets += 1;
            better = relabel::duplicate(labels);
        } else if news {
            better = relabel::sack(labels);
        }
        let wireshark = labels;
        let (labels, difference) =
            if config.labels == Labels::Sack { better } else { (labels, None) };
        if labels != LabelSet::default() {
            self.halves[from].counts.get_or_insert_default().add(labels);
        }
        Seen { labels, wireshark, difference, by_client: self.client.unwrap_or(0) == from }
    }

    /// The facts.
    pub fn finish(self, key: FlowKey, config: &Config) -> Connection {
        let client = self.client.unwrap_or(0);
        let rtt = self.handshake.clean_rtt();
        let mut ends = key.ends();
        if !self.starts_with_first {
            ends.reverse();
        }
        let warnings = self.warnings(client);
        let close = self.close(client);
        let [first, second] = self.halves;
        let (from_client, from_server) =
            if client == 0 { (first, second) } else { (second, first) };
        // Each end's data tells the scale of the other's windows.
        let (windows_of_client, windows_of_server) =
            (from_server.scale_told(), from_client.scale_told());
        // Data of the server is answered by the client: its times are those of the client's side.
        let data = from_server.least_rtt().zip(from_client.least_rtt());
        let handshake = self.handshake.client_side().zip(self.handshake.server_side());
        Connection {
            id: self.id,
            first_packet: self.first_packet,
            client: ends[client],
            server: ends[1 - client],
            close,
            completeness: self.completeness,
            start: self.start,
            duration: self.last.since(self.start),
            handshake_rtt: self.handshake.rtt(),
            vantage: vantage::guess(handshake, data),
            warnings,
            client_to_server: from_client.facts(config, rtt, windows_of_client),
            server_to_client: from_server.facts(config, rtt, windows_of_server),
        }
    }

    fn close(&self, client: usize) -> Close {
        match self.ended {
            None => Close::Open,
            Some((end, true)) if usize::from(end) == client => Close::ResetByClient,
            Some((_, true)) => Close::ResetByServer,
            Some(_) if self.closed.iter().all(|end| *end != Closing::Open) => Close::Finished,
            Some(_) => Close::HalfClosed,
        }
    }

    /// The bits of Wireshark's `tcp.completeness`: SYN, SYN-ACK, ACK, data, FIN, RST.
    fn note_completeness(&mut self, segment: &Segment) {
        let has = |flag| segment.flags.any(flag);
        let opening = match (has(Flags::SYN), has(Flags::ACK)) {
            (true, false) => 1,
            (true, true) => 2,
            (false, true) => 4,
            (false, false) => 0,
        };
        let data = if segment.payload_len() > 0 { 8 } else { 0 };
        let closing = if has(Flags::FIN) { 16 } else { 0 } | if has(Flags::RST) { 32 } else { 0 };
        self.completeness |= opening | data | closing;
    }

    fn warnings(&self, client: usize) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let pairs = [(&self.halves[0], &self.halves[1]), (&self.halves[1], &self.halves[0])];
        let is_larger = |(from, to): &(&Half, &Half)| {
            from.payload_max > to.manner.mss().map_or(9000, u32::from)
        };
        if pairs.iter().any(is_larger) {
            warnings.push(Warning::OffloadSuperPackets);
        }
        let one_sided =
            |(from, to): &(&Half, &Half)| from.packets == 0 && from.una.is_some() && to.packets > 1;
        if pairs.iter().any(one_sided) {
            warnings.push(Warning::OneSided);
        } else if self
            .halves
            .iter()
            .any(|half| half.counts.as_ref().is_some_and(|c| c.of(Label::AckLostSegment) > 0))
        {
            warnings.push(Warning::CaptureDropped);
        }
        if self.has_cut_headers {
            warnings.push(Warning::HeadersCut);
        }
        let [opened, answered] = [&self.halves[client], &self.halves[1 - client]];
        if opened.payload + answered.payload == 0 {
            return warnings;
        }
        match (opened.memory.scale, answered.memory.scale) {
            (Scale::Unknown, _) | (_, Scale::Unknown) => warnings.push(Warning::HandshakeMissing),
            (_, Scale::Unused) if opened.manner.offers_scale => {
                warnings.push(Warning::WindowScaleRefused)
            }
            _ => {}
        }
        warnings
    }

    /// TCP Fast Open: data in the SYN, and whether the answer acknowledges it.
    fn label_fast_open(&mut self, labels: &mut LabelSet, segment: &Segment, from: usize) {
        if !segment.flags.any(Flags::SYN) {
            return;
        }
        let has_cookie = segment.options.fast_open.is_some_and(|cookie| cookie > 0);
        if !segment.flags.any(Flags::ACK) {
            if has_cookie && segment.payload_len() > 0 {
                self.halves[from].sent_fast_open = true;
                labels.add(Label::TfoSyn);
            }
        } else if self.initial[1 - from].is_some_and(|initial| segment.ack != initial + 1) {
            labels.add(Label::TfoAck);
        } else if self.halves[1 - from].sent_fast_open {
            labels.add(Label::TfoIgnored);
        }
    }

    fn sender(&self, from_first: bool) -> usize {
        usize::from(from_first != self.starts_with_first)
    }

    fn note_close(&mut self, segment: &Segment, from: usize) {
        let resets = segment.flags.any(Flags::RST);
        let is_open = self.closed.contains(&Closing::Open);
        if is_open && segment.flags.any(Flags::RST | Flags::FIN) && (resets || self.ended.is_none())
        {
            self.ended = Some((from as u8, resets));
        }
        if resets {
            self.closed = [Closing::Closed; 2];
        } else if segment.flags.any(Flags::FIN) && self.closed[from] == Closing::Open {
            self.closed[from] = Closing::Fin(segment.end());
        }
        let acked = |end| segment.flags.any(Flags::ACK) && !segment.ack.is_before(end);
        if matches!(self.closed[1 - from], Closing::Fin(end) if acked(end)) {
            self.closed[1 - from] = Closing::Closed;
        }
    }

    fn pair(&mut self, from: usize) -> (&mut Half, &mut Half) {
        let [first, second] = &mut self.halves;
        if from == 0 { (first, second) } else { (second, first) }
    }

    fn note_handshake(&mut self, at: Instant, segment: &Segment, from: usize) {
        let opens = segment.flags.any(Flags::SYN);
        if opens || self.initial[from].is_none() {
            let before = u32::from(!opens).wrapping_neg();
            self.initial[from] = Some(segment.seq + before);
        }
        if segment.flags.any(Flags::ACK) && self.initial[1 - from].is_none() {
            self.initial[1 - from] = Some(segment.ack + u32::MAX);
        }
        if opens {
            let answers = segment.flags.any(Flags::ACK);
            self.client.get_or_insert(if answers { 1 - from } else { from });
            let (sender, receiver) = self.pair(from);
            match segment.options.window_scale {
                // RFC 7323, 2.2: it must be in both SYNs to be used in either direction.
                None => {
                    (sender.memory.scale, receiver.memory.scale) = (Scale::Unused, Scale::Unused)
                }
                Some(_) if answers && receiver.memory.scale == Scale::Unused => {
                    sender.memory.scale = Scale::Unused
                }
                Some(shift) => sender.memory.scale = Scale::Shift(shift),
            }
        }
        if let Some(client) = self.client {
            self.handshake.see(at, segment, client == from);
        }
    }

    /// What the segment carries. Gives its labels, corrected by what SACK and gaps tell.
    fn note_data(
        &mut self,
        config: &Config,
        at: Instant,
        segment: &Segment,
        from: usize,
        (labels, is_again): (LabelSet, bool),
    ) -> (LabelSet, Option<Difference>) {
        let length = segment.payload_len();
        let (seq, end) = (segment.seq, segment.end());
        let half = &mut self.halves[from];
        half.payload += u64::from(length);
        half.payload_max = half.payload_max.max(length);
        if end == seq
            || labels.contains(Label::KeepAlive)
            || labels.contains(Label::ZeroWindowProbe)
        {
            return (labels, None);
        }
        let lag = self.lag(config, from);
        let rtt = self.handshake.clean_rtt().or(config.hint.rtt);
        let interval = config.interval.or(rtt.map(|rtt| rtt.max(MIN_INTERVAL)));
        let (sender, receiver) = self.pair(from);
        let before = sender.next;
        let advances = before.is_none_or(|next| !seq.is_before(next));
        sender.outstanding.send(at, seq, end, advances);
        sender.next = Some(before.map_or(end, |next| next.max(end)));
        if length == 0 {
            return (labels, None);
        }
        if let Some(first) = before {
            sender.unique.starts_at(first);
        }
        let new = sender.unique.see(seq, length);
        let mss = sender.manner.mss().into_iter().chain(receiver.manner.mss()).min();
        let segments = sender.segment.sees(length, mss, segment.options.timestamps.is_some());
        let una = *sender.una.get_or_insert(seq);
        let mut better = (labels, None);
        if let Some(next) = before.filter(|next| next.is_before(seq)) {
            sender.board().open_gap(at, next, segment);
        } else if !advances && !is_again && before != Some(seq + 1) {
            let silent = sender.manner.silent_for(at);
            let told = Told { una, duplicates: receiver.memory.duplicate_acks(), silent, rtt };
            better = relabel::repeated(sender.board(), (at, segment, new), told, labels);
        }
        let follows_gap = sender.recent.misses(segment);
        sender.recent.counts(segments);
        sender.note_in_flight(config.labels, una, end);
        sender.manner.sends(at);
        if sender.series.is_none() {
            sender.first_data = at;
        }
        sender.last_data = sender.last_data.max(at);
        if is_again {
            // The capture or the network made it: the sender did nothing.
            return better;
        }
        // Of a scale that was not seen only a closed window is known.
        let is_known = receiver.memory.scale != Scale::Unknown;
        let window = receiver.window.last.filter(|window| is_known || *window == 0);
        let edge = window.map(|window| una + window);
        let start = Start { at, seq, una, edge, interval, lag };
        let series = sender.series.get_or_insert_with(|| Box::new(Series::new(start)));
        if let Some((_, echo)) = segment.options.timestamps {
            series.echoed(at, echo);
        }
        let is_repeated = new == 0 || better.0.contains(Label::Retransmission);
        let segment = sender.segment.get();
        series.sent(at, Data { seq, length, segments, segment, is_repeated, follows_gap });
        better
    }

    /// What the segment acknowledges and which window it gives; whether it is a duplicate ACK by
    /// its SACK blocks.
    fn note_ack(&mut self, at: Instant, segment: &Segment, from: usize) -> bool {
        if !segment.flags.any(Flags::ACK) || segment.flags.any(Flags::RST) {
            return false;
        }
        let (sender, receiver) = self.pair(from);
        let scale = if segment.flags.any(Flags::SYN) { Scale::Unused } else { sender.memory.scale };
        let window = scale.apply(segment.window);
        sender.window.note(window, !segment.flags.any(Flags::SYN));
        let ack = segment.ack;
        let news = receiver.note_sack(at, segment);
        let is_duplicate = news && receiver.una == Some(ack) && segment.end() == segment.seq;
        let sample = receiver.outstanding.acknowledge(at, ack);
        let sacked = receiver.board.as_ref().map_or(0, |board| board.sacked_bytes());
        if receiver.una.is_none_or(|una| una.is_before(ack)) {
            if let Some(una) = receiver.una.filter(|_| receiver.payload > 0) {
                let quickest = receiver.least_rtt();
                let late = sample
                    .zip(quickest)
                    .map_or(Duration::ZERO, |(rtt, least)| rtt.saturating_sub(least));
                sender.manner.acknowledges(
                    ack.distance(una),
                    Bytes::new(receiver.segment.get().into()),
                    late,
                );
            }
            receiver.una = Some(ack);
            receiver.last_data = if receiver.series.is_some() { at } else { receiver.last_data };
        }
        if let Some(series) = &mut receiver.series {
            if let Some(rtt) = sample {
                receiver.rtt.add(rtt.as_nanos());
                series.measured(rtt);
            }
            if let Some((value, _)) = segment.options.timestamps {
                series.stamped(at, value);
            }
            let window = match scale {
                Scale::Unknown => Given::Unscaled(segment.window),
                Scale::Unused | Scale::Shift(_) => Given::Bytes(window),
            };
            series.acknowledged(at, ack, window, sacked);
        }
        is_duplicate
    }

    /// The round trip between the capture point and the end that sends; none where neither the
    /// handshake nor the capture's place tells it.
    fn lag(&self, config: &Config, from: usize) -> Option<Duration> {
        let client = self.client.unwrap_or(0);
        let measured = match config.capture_point {
            CapturePoint::SenderEdge => Some(Duration::ZERO),
            CapturePoint::ReceiverEdge => self.handshake.clean_rtt().or(config.hint.rtt),
            CapturePoint::Unknown if from == client => self.handshake.client_side(),
            CapturePoint::Unknown => self.handshake.server_side(),
        };
        // So near to the sender there is nothing to correct.
        let near = self
            .handshake
            .rtt()
            .map_or(Duration::ZERO, |rtt| Duration::from_nanos(rtt.as_nanos() / 20));
        measured.map(|lag| if lag > near { lag } else { Duration::ZERO })
    }
}

impl Half {
    /// The least time that its data took to be acknowledged.
    fn least_rtt(&self) -> Option<Duration> {
        self.rtt.min().map(Duration::from_nanos)
    }

    fn board(&mut self) -> &mut Scoreboard {
        self.board.get_or_insert_default()
    }

    /// An ACK of this half's data; whether its SACK blocks say something new.
    fn note_sack(&mut self, at: Instant, segment: &Segment) -> bool {
        if self.board.is_none() && segment.options.sack.is_empty() {
            return false;
        }
        let (Some(una), Some(next)) = (self.una, self.next) else { return false };
        let size = self.segment.get();
        let rtt = self.least_rtt();
        let newest = segment.options.sack.as_slice().first().map(|(_, right)| *right);
        let sacked = newest.and_then(|right| self.outstanding.age(at, right));
        let board = self.board();
        board.reported(sacked);
        board.acknowledge((at, segment), (una, next), size, rtt)
    }

    fn note_in_flight(&mut self, labels: Labels, una: SequenceNumber, end: SequenceNumber) {
        let sacked = match (labels, &self.board) {
            (Labels::Sack, Some(board)) => board.sacked_bytes(),
            _ => 0,
        };
        let in_flight = self.next.unwrap_or(end).distance(una).saturating_sub(sacked);
        self.in_flight_max = self.in_flight_max.max(in_flight);
    }

    fn scale_told(&self) -> Option<u8> {
        self.series.as_ref().and_then(|series| series.scale_told())
    }

    fn facts(
        self,
        config: &Config,
        handshake_rtt: Option<Duration>,
        scale_inferred: Option<u8>,
    ) -> DirectionFacts {
        let least = self.series.as_ref().and_then(|series| series.least_rtt());
        // Data takes longer than a SYN on a slow link, with no queue before it: what data took is
        // the measure.
        let base = least.or(handshake_rtt);
        let time = self.series.as_ref().map(|_| self.last_data.since(self.first_data));
        let is_at_sender = self.series.as_ref().is_some_and(|series| series.is_at_sender());
        let coverage = match (self.memory.scale != Scale::Unknown, is_at_sender) {
            (true, _) => Coverage::FromStart,
            (false, true) => Coverage::MiddleAtSender,
            (false, false) => Coverage::MiddleElsewhere,
        };
        let path = Path { rtt: base, hint: config.hint, coverage };
        let verdict = self.series.map(|series| decide(&series.finish(), path));
        let quantile = |fraction| self.rtt.quantile(fraction).map(Duration::from_nanos);
        let scale = match self.memory.scale {
            Scale::Unknown => None,
            Scale::Unused => Some(0),
            Scale::Shift(shift) => Some(shift.min(14)),
        };
        DirectionFacts {
            packets: self.packets,
            wire: Bytes::new(self.wire),
            payload: Bytes::new(self.payload),
            unique_payload: self.unique.count(),
            payload_max: Bytes::new(self.payload_max.into()),
            goodput: time.and_then(|time| self.unique.count().per(time)),
            goodput_peak: verdict.as_ref().and_then(Verdict::peak_goodput),
            rtt: RttFacts {
                count: self.rtt.count(),
                min: self.rtt.min().map(Duration::from_nanos),
                p50: quantile(0.5),
                p95: quantile(0.95),
                p99: quantile(0.99),
                max: self.rtt.max().map(Duration::from_nanos),
            },
            window: self.window.facts(scale, scale_inferred),
            in_flight_max: Bytes::new(self.in_flight_max.into()),
            labels: self.counts.map(|counts| *counts).unwrap_or_default(),
            manner: self.manner.facts(),
            loss: LossFacts {
                duplicate_packets: self.duplicate_packets.into(),
                congestion_experienced: self.congestion_experienced.into(),
                ..self
                    .board
                    .map(|board| board.finish(self.rtt.min().map(Duration::from_nanos)))
                    .unwrap_or_default()
            },
            verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An open connection may take 2 KB; what grows beyond this (series, round-trip times,
    /// outstanding segments) is bounded where it is kept.
    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Tracker>() <= 1024, "{} bytes", size_of::<Tracker>());
    }
}
