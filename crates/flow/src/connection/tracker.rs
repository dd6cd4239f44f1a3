//! An open connection, and how a segment changes it.

use super::closing::Closing;
use super::completeness::Completeness;
use super::half::{FinishedHalf, Half, SeriesData, SeriesTimes};
use super::handshake::Handshake;
use super::labels::{self, LabelContext, Scale};
use super::relabel::{self, Relabelled, Repetition};
use super::series::MIN_INTERVAL;
use super::warnings::warnings;
use super::{Connection, Difference, Label, LabelSet, Labels, vantage};
use crate::config::Config;
use crate::limit::{CapturePoint, Verdict};
use crate::segment::{Flags, FlowKey, Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};

/// An open connection. Ends are numbered: 0 is the sender of the first packet seen, 1 the other.
#[derive(Debug)]
pub(crate) struct Tracker {
    id: u64,
    first_packet: u64,
    /// Whether the first packet's sender is the first end of the connection's key.
    starts_with_first: bool,
    closing: Closing,
    completeness: Completeness,
    /// Which end opened.
    client: Option<usize>,
    start: Instant,
    last: Instant,
    handshake: Handshake,
    /// By end: what it sent.
    halves: [Half; 2],
    /// Number of each direction's SYN; one before its first segment, where that was not captured.
    initial: [Option<SequenceNumber>; 2],
    /// Whether the capture cut a packet within its TCP header.
    has_cut_headers: bool,
}

/// What a connection starts with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    /// The connection's number in the capture.
    pub id: u64,
    /// The number of its first packet.
    pub first_packet: u64,
    /// When that was captured.
    pub at: Instant,
    /// Whether its sender is the first end of the connection's key. The tracker's owner keeps the
    /// key.
    pub from_first: bool,
}

/// A segment of the connection, as the capture shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapturedSegment<'a> {
    /// When it was captured.
    pub at: Instant,
    /// The segment.
    pub segment: &'a Segment,
    /// Its bytes with all headers.
    pub wire: usize,
    /// Whether its sender is the first end of the connection's key.
    pub from_first: bool,
    /// Whether it took over an older connection's ports.
    pub reuses_ports: bool,
}

/// What a packet was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Its labels, by [`Config::labels`].
    pub labels: LabelSet,
    /// The labels that Wireshark gives it.
    pub wireshark: LabelSet,
    /// Why the two differ, where they do.
    pub difference: Option<Difference>,
    /// Whether the client sent it.
    pub by_client: bool,
}

/// The labels that Wireshark gives a packet.
#[derive(Debug, Clone, Copy)]
struct WiresharkLabels {
    labels: LabelSet,
    /// Whether it is one of the last packets once more.
    is_again: bool,
}

/// A connection that has ended, or whose capture has.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The facts.
    pub connection: Connection,
    /// What held the client's data, then the server's; `None` where there was none.
    pub verdicts: [Option<Verdict>; 2],
}

impl Tracker {
    /// Starts with the connection's first segment, which is to be [pushed](Tracker::push) next.
    pub fn new(opening: Opening) -> Self {
        Tracker {
            id: opening.id,
            first_packet: opening.first_packet,
            starts_with_first: opening.from_first,
            closing: Closing::default(),
            completeness: Completeness::default(),
            client: None,
            start: opening.at,
            last: opening.at,
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
        self.closing.is_complete()
    }

    /// The next segment. Gives its labels and whether the client sent it.
    pub fn push(&mut self, config: &Config, captured: CapturedSegment<'_>) -> Seen {
        let CapturedSegment { at, segment, wire, .. } = captured;
        let from = self.sender(captured.from_first);
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
        let mut wireshark = self.wireshark_labels(at, segment, from);
        if captured.reuses_ports || other_answer {
            wireshark.add(Label::ReusedPorts);
        }
        self.label_fast_open(&mut wireshark, segment, from);
        let sender = &mut self.halves[from];
        sender.manner.sees(segment);
        sender.congestion_experienced += u32::from(segment.ce);
        let is_again = sender.recent.is_repeated(segment);
        self.closing.note(segment, from);
        self.completeness.note(segment);
        let mut corrected = self.note_data(
            config,
            at,
            segment,
            from,
            WiresharkLabels { labels: wireshark, is_again },
        );
        let has_new_sack = self.note_ack(at, segment, from);
        if is_again {
            self.halves[from].duplicate_packets += 1;
            corrected = relabel::duplicate(wireshark);
        } else if has_new_sack {
            corrected = relabel::sack(wireshark);
        }
        let Relabelled { labels, difference } = match config.labels {
            Labels::Sack => corrected,
            Labels::Wireshark => Relabelled::unchanged(wireshark),
        };
        self.halves[from].count(labels);
        Seen { labels, wireshark, difference, by_client: self.client.unwrap_or(0) == from }
    }

    /// The facts, and what held the data.
    pub fn finish(self, key: FlowKey, config: &Config) -> Finished {
        let client = self.client.unwrap_or(0);
        let rtt = self.handshake.clean_rtt();
        let mut ends = key.ends();
        if !self.starts_with_first {
            ends.reverse();
        }
        let [opener, answerer] = [&self.halves[client], &self.halves[1 - client]];
        let warnings = warnings(opener, answerer, self.has_cut_headers);
        let close = self.closing.close(client);
        let [first, second] = self.halves;
        let (from_client, from_server) =
            if client == 0 { (first, second) } else { (second, first) };
        // Each end's data shows the scale of the other's windows.
        let (client_scale, server_scale) =
            (from_server.inferred_scale(), from_client.inferred_scale());
        // Data of the server is answered by the client: its times are those of the client's side.
        let data = from_server.least_rtt().zip(from_client.least_rtt());
        let handshake = self.handshake.client_side().zip(self.handshake.server_side());
        let FinishedHalf { facts: client_to_server, verdict: of_client } =
            from_client.finish(config, rtt, client_scale);
        let FinishedHalf { facts: server_to_client, verdict: of_server } =
            from_server.finish(config, rtt, server_scale);
        let connection = Connection {
            id: self.id,
            first_packet: self.first_packet,
            client: ends[client],
            server: ends[1 - client],
            close,
            completeness: self.completeness.bits(),
            start: self.start,
            duration: self.last.since(self.start),
            handshake_rtt: self.handshake.rtt(),
            vantage: vantage::guess(handshake, data),
            warnings,
            client_to_server,
            server_to_client,
        };
        Finished { connection, verdicts: [of_client, of_server] }
    }

    /// The labels that Wireshark gives a segment, by what was seen before it.
    fn wireshark_labels(&mut self, at: Instant, segment: &Segment, from: usize) -> LabelSet {
        let rtt = self.handshake.irtt();
        let (sender, receiver) = self.pair(from);
        let context = LabelContext { rtt, oldest: sender.outstanding.oldest() };
        labels::label(&mut sender.memory, &mut receiver.memory, at, segment, context)
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

    /// What the segment carries. Gives its labels, corrected by what SACK and gaps say.
    fn note_data(
        &mut self,
        config: &Config,
        at: Instant,
        segment: &Segment,
        from: usize,
        labels: WiresharkLabels,
    ) -> Relabelled {
        let WiresharkLabels { labels, is_again } = labels;
        let length = segment.payload_len();
        let half = &mut self.halves[from];
        half.payload += u64::from(length);
        half.payload_max = half.payload_max.max(length);
        let is_probe = labels.contains(Label::KeepAlive) || labels.contains(Label::ZeroWindowProbe);
        if segment.end() == segment.seq || is_probe {
            return Relabelled::unchanged(labels);
        }
        let rtt = self.handshake.clean_rtt().or(config.hint.rtt);
        let times = self.series_times(config, from);
        let (sender, receiver) = self.pair(from);
        let before = sender.advance(at, segment);
        if length == 0 {
            return Relabelled::unchanged(labels);
        }
        let mss = sender.manner.mss().into_iter().chain(receiver.manner.mss()).min();
        let sent = sender.note_payload(segment, before, mss);
        let mut relabelled = Relabelled::unchanged(labels);
        if let Some(next) = before.filter(|next| next.is_before(segment.seq)) {
            sender.board().open_gap(at, next, segment);
        } else if before.is_some_and(|next| segment.seq.is_before(next))
            && !is_again
            && before != Some(segment.seq + 1)
        {
            let repetition = Repetition {
                at,
                segment,
                new_bytes: sent.new_bytes,
                una: sent.una,
                duplicate_acks: receiver.memory.duplicate_acks(),
                silent: sender.manner.silent_for(at),
                rtt,
            };
            relabelled = relabel::repeated(sender.board(), &repetition, labels);
        }
        let follows_gap = sender.recent.misses(segment);
        sender.recent.counts(sent.segments);
        sender.note_in_flight(config.labels, sent.una, segment.end());
        sender.note_data_time(at);
        // Where the capture or the network made it, the sender did nothing.
        if !is_again {
            let is_retransmission = relabelled.labels.contains(Label::Retransmission);
            let window = receiver.known_window();
            let data = SeriesData { sent, is_retransmission, follows_gap, window };
            sender.note_in_series(at, segment, data, times);
        }
        relabelled
    }

    /// What the segment acknowledges and which window it advertises; whether it is a duplicate ACK
    /// by its SACK blocks.
    fn note_ack(&mut self, at: Instant, segment: &Segment, from: usize) -> bool {
        if !segment.flags.any(Flags::ACK) || segment.flags.any(Flags::RST) {
            return false;
        }
        let (sender, receiver) = self.pair(from);
        let window = sender.note_window(segment);
        let has_new_sack = receiver.note_sack(at, segment);
        let carries_nothing = segment.end() == segment.seq;
        let is_duplicate = has_new_sack && receiver.una == Some(segment.ack) && carries_nothing;
        let rtt = receiver.outstanding.acknowledge(at, segment.ack);
        if let Some(ack) = receiver.note_acknowledged(at, segment.ack, rtt) {
            sender.manner.acknowledges(ack.bytes, ack.segment_size, ack.late);
        }
        receiver.note_ack_in_series(at, segment, window, rtt);
        is_duplicate
    }

    /// How a series of intervals of this end's data is begun.
    fn series_times(&self, config: &Config, from: usize) -> SeriesTimes {
        let rtt = self.handshake.clean_rtt().or(config.hint.rtt);
        let interval = config.interval.or(rtt.map(|rtt| rtt.max(MIN_INTERVAL)));
        SeriesTimes { interval, lag: self.lag(config, from) }
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
