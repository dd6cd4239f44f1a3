//! An open connection, and how a segment changes it.

mod accounting;
mod data;

use super::closing::Closing;
use super::completeness::Completeness;
use super::half::{FinishedHalf, Half, SeriesTimes};
use super::handshake::Handshake;
use super::labels::{self, LabelContext, Scale};
use super::ledger::{CapturedSpan, Ledger};
use super::relabel::{self, Relabelled};
use super::series::MIN_INTERVAL;
use super::warnings::warnings;
use super::{Connection, Difference, Label, LabelSet, Labels, Warning, vantage};
use crate::capture::greeting::{FirstWords, Introduction, WORDS_MOST};
use crate::capture::segment::{ApplicationProtocol, Flags, FlowKey, Segment, SequenceNumber};
use crate::config::Config;
use crate::frames::{Conversation, Heard, Seats};
use crate::intake::{Arrival, HostPairSum};
use crate::limit::{CapturePoint, Verdict};
use crate::trace::{Known, PathEnds, Recorder, Trace, TraceBounds};
use fullpipe_model::observe::is_server_port;
use fullpipe_model::units::{Bytes, Duration, Instant};

/// An open connection. Its ends are numbered: 0 is the sender of the first packet seen, 1 the
/// other.
#[derive(Debug)]
pub(crate) struct Tracker {
    id: u64,
    first_packet: u64,
    /// Whether the first packet's sender is the first end of the connection's key.
    starts_with_first: bool,
    closing: Closing,
    completeness: Completeness,
    /// The end that opened the connection.
    client: Client,
    start: Instant,
    last: Instant,
    handshake: Handshake,
    ledger: Ledger,
    /// What each end sent, by the end's number.
    halves: [Half; 2],
    /// The sequence number of each direction's SYN. Where the SYN was not captured, one before its
    /// first segment.
    initial: Initial,
    /// Whether the capture cut a packet within its TCP header.
    has_cut_headers: bool,
    /// The points of its graphs, where they are wanted.
    recorder: Option<Box<Recorder>>,
    /// What its ends say of themselves. Absent until one does.
    introduction: Option<Box<Introduction>>,
    /// Its frames, where they can be read.
    conversation: Option<Box<Conversation>>,
}

/// The sequence number with which each end began. Two options would be larger by half.
#[derive(Debug, Clone, Copy, Default)]
struct Initial {
    numbers: [SequenceNumber; 2],
    known: [bool; 2],
}

impl Initial {
    fn of(&self, end: usize) -> Option<SequenceNumber> {
        self.known[end].then_some(self.numbers[end])
    }

    fn set(&mut self, end: usize, number: SequenceNumber) {
        (self.numbers[end], self.known[end]) = (number, true);
    }
}

/// The end that opened a connection.
#[derive(Debug, Clone, Copy)]
enum Client {
    /// It sent a SYN, or received a SYN-ACK.
    Known(u8),
    /// It has a port that systems give to clients, or sent the first packet.
    Guessed(u8),
}

/// The data that a tracker starts with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening {
    /// The connection's number in the capture.
    pub id: u64,
    /// The number of its first packet.
    pub first_packet: u64,
    /// When that packet was captured.
    pub at: Instant,
    /// Whether its sender is the first end of the connection's key. The owner of the tracker stores
    /// the key.
    pub from_first: bool,
    /// How much is kept for its graphs; `None` for nothing.
    pub trace: Option<TraceBounds>,
    /// Whether the order of its time is kept.
    pub keeps_order: bool,
}

/// A segment of the connection, as the capture shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapturedSegment<'a> {
    /// When it was captured.
    pub at: Instant,
    /// Its number in the capture, from 1.
    pub number: u64,
    /// The segment.
    pub segment: &'a Segment,
    /// What of its payload may be an end's first words; all of it, where its frames can be read.
    pub words: &'a [u8],
    /// Where its reader finds a place.
    pub seats: &'a Seats,
    /// Its bytes with all headers.
    pub wire: usize,
    /// What its host had sent to the other, in all of their connections, with its own payload.
    pub carried: HostPairSum,
    /// Whether its sender is the first end of the connection's key.
    pub from_first: bool,
    /// Whether it reuses the ports of an older connection.
    pub reuses_ports: bool,
}

impl<'a> CapturedSegment<'a> {
    /// The segment that arrived, which reuses no ports.
    pub fn of(arrival: &'a Arrival, words: &'a [u8], seats: &'a Seats, from_first: bool) -> Self {
        let Arrival { at, number, wire, carried, ref segment } = *arrival;
        let reuses_ports = false;
        CapturedSegment {
            at,
            number,
            segment,
            words,
            seats,
            wire,
            carried,
            from_first,
            reuses_ports,
        }
    }
}

/// How a packet was labelled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Its labels, as [`Config::labels`] selects them.
    pub labels: LabelSet,
    /// Its labels by Wireshark's definitions.
    pub wireshark: LabelSet,
    /// Why the two differ, if they do.
    pub difference: Option<Difference>,
    /// Whether the client sent it.
    pub by_client: bool,
    /// Whether it is a copy of a packet that was captured before.
    pub is_copy: bool,
}

/// A connection that has ended, or whose capture has.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The facts.
    pub connection: Connection,
    /// What limited the client's data, then the server's; `None` for a direction without data.
    pub verdicts: [Option<Verdict>; 2],
    /// The points of its graphs, if they were recorded.
    pub trace: Option<Box<Trace>>,
}

impl Tracker {
    /// Starts with the connection's first segment, which must be [pushed](Tracker::push) next.
    pub fn new(opening: Opening) -> Self {
        Tracker {
            id: opening.id,
            first_packet: opening.first_packet,
            starts_with_first: opening.from_first,
            closing: Closing::default(),
            completeness: Completeness::default(),
            client: Client::Guessed(0),
            start: opening.at,
            last: opening.at,
            handshake: Handshake::default(),
            ledger: Ledger::new(opening.at, opening.keeps_order),
            halves: Default::default(),
            initial: Initial::default(),
            has_cut_headers: false,
            recorder: opening.trace.map(|bounds| Box::new(Recorder::new(opening.at, bounds))),
            introduction: None,
            conversation: None,
        }
    }

    /// Whether `segment` opens another connection between the same addresses and ports.
    pub fn is_reused_by(&self, segment: &Segment, from_first: bool) -> bool {
        let from = self.sender(from_first);
        let opens = segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK);
        opens && self.initial.of(from).is_some_and(|known| known != segment.seq)
    }

    /// Its number in the capture.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The number of its first packet.
    pub fn first_packet(&self) -> u64 {
        self.first_packet
    }

    /// The time of its last packet.
    pub fn last(&self) -> Instant {
        self.last
    }

    /// Whether nothing but late packets can follow.
    pub fn is_closed(&self) -> bool {
        self.closing.is_complete()
    }

    /// How many points of graphs it holds; none where they are not recorded.
    pub fn traced_points(&self) -> usize {
        self.recorder.as_ref().map_or(0, |recorder| recorder.held())
    }

    /// From now on keeps at most this much for graphs, or nothing. What was not recorded before
    /// cannot be recorded from now on.
    pub fn bound_trace(&mut self, config: &Config, bounds: Option<TraceBounds>) {
        let ends = self.ends(config);
        match (bounds, &mut self.recorder) {
            (Some(bounds), Some(recorder)) => recorder.set_bounds(bounds, &ends),
            _ => self.recorder = None,
        }
    }

    /// Processes the next segment. Returns its labels and whether the client sent it.
    pub fn push(&mut self, config: &Config, captured: CapturedSegment<'_>) -> Seen {
        let (seen, rtt) = self.note(config, captured);
        if self.recorder.is_some() {
            self.record(config, &captured, &seen, rtt);
        }
        seen
    }

    /// Notes a packet for the graphs, after all else.
    fn record(
        &mut self,
        config: &Config,
        captured: &CapturedSegment<'_>,
        seen: &Seen,
        rtt: Option<Duration>,
    ) {
        let CapturedSegment { at, number, segment, wire, from_first, .. } = *captured;
        let from = self.sender(from_first);
        let [one, other] = &self.halves;
        let sender = &self.halves[from];
        let known = Known {
            at,
            number,
            wire: Bytes::new(wire as u64),
            from,
            labels: seen.labels,
            is_copy: seen.is_copy,
            rtt,
            window: sender.scaled_window(),
            in_flight: [one.in_flight(config.labels), other.in_flight(config.labels)],
            follows_gap: sender.recent.misses(segment),
            segment_size: sender.segment_size(),
        };
        if self.recorder.as_mut().is_some_and(|recorder| recorder.see(segment, &known)) {
            let ends = self.ends(config);
            self.recorder.iter_mut().for_each(|recorder| recorder.digest(&ends));
        }
    }

    /// What the graphs need to know of the path.
    fn ends(&self, config: &Config) -> PathEnds {
        PathEnds {
            origins: [0, 1].map(|end| self.initial.of(end).map(|number| number + 1)),
            path_rtt: self.path_rtt(config),
            lags: [self.lag(config, 0), self.lag(config, 1)],
        }
    }

    /// Processes the next segment. Returns also the round trip that it ends.
    fn note(&mut self, config: &Config, captured: CapturedSegment<'_>) -> (Seen, Option<Duration>) {
        let CapturedSegment { at, segment, wire, .. } = captured;
        let from = self.sender(captured.from_first);
        self.last = self.last.max(at);
        self.halves[from].packets += 1;
        self.halves[from].wire += wire as u64;
        self.has_cut_headers |= segment.is_header_cut;
        if captured.number == self.first_packet && is_from_server(segment) {
            self.client = Client::Guessed(1);
        }
        if segment.is_broken {
            // Its numbers cannot be believed: it counts as a packet, and changes nothing else.
            return (self.seen(from, Relabelled::unchanged(LabelSet::default())), None);
        }
        let is_copy = self.halves[from].recent.is_repeated(segment, self.handshake.clean_rtt());
        // Before the handshake is noted: it would make the second answer's number the known one.
        let reuses_ports = captured.reuses_ports || self.is_another_answer(segment, from);
        self.note_handshake(at, segment, from);
        // Wireshark labels copies, too, so its memory sees every packet.
        let mut wireshark = self.wireshark_labels(at, segment, from);
        if reuses_ports {
            wireshark.add(Label::ReusedPorts);
        }
        self.label_fast_open(&mut wireshark, segment, from);
        let (corrected, rtt) = if is_copy {
            // A copy that the capture or the network made shows nothing that the first did not.
            self.halves[from].duplicate_packets += 1;
            (relabel::duplicate(wireshark), None)
        } else {
            self.note_once(config, captured, from, wireshark)
        };
        let chosen = match config.labels {
            Labels::Sack => corrected,
            Labels::Wireshark => Relabelled::unchanged(wireshark),
        };
        self.halves[from].count(chosen.labels);
        (Seen { wireshark, is_copy, ..self.seen(from, chosen) }, rtt)
    }

    /// What is told of a packet with these labels.
    fn seen(&self, from: usize, labelled: Relabelled) -> Seen {
        let Relabelled { labels, difference } = labelled;
        let by_client = self.client() == from;
        Seen { labels, wireshark: labels, difference, by_client, is_copy: false }
    }

    /// Whether this is a second SYN-ACK with another number: the server forgot the first, or this
    /// is not the server.
    fn is_another_answer(&self, segment: &Segment, from: usize) -> bool {
        let answers = segment.flags.any(Flags::SYN) && segment.flags.any(Flags::ACK);
        answers && self.initial.of(from).is_some_and(|known| known != segment.seq)
    }

    /// Processes a segment that is not a copy. Returns its labels, and the round trip that it ends.
    fn note_once(
        &mut self,
        config: &Config,
        captured: CapturedSegment<'_>,
        from: usize,
        wireshark: LabelSet,
    ) -> (Relabelled, Option<Duration>) {
        let CapturedSegment { at, segment, .. } = captured;
        let sender = &mut self.halves[from];
        sender.manner.sees(segment);
        sender.congestion_experienced += u32::from(segment.ce);
        self.closing.note(segment, from);
        self.completeness.note(segment);
        self.hear(captured, from);
        let asks_nothing = self.read_frames(config, captured, from);
        let corrected = self.note_data(config, &captured, from, wireshark);
        let (has_new_sack, rtt) = self.note_ack(at, segment, from);
        self.account(at, segment, from, (wireshark, corrected), asks_nothing);
        (if has_new_sack { relabel::sack(wireshark) } else { corrected }, rtt)
    }

    /// Hears what a segment says of its sender, before it counts as data.
    fn hear(&mut self, captured: CapturedSegment<'_>, from: usize) {
        let CapturedSegment { segment, words, .. } = captured;
        if words.is_empty() {
            return;
        }
        let payload = &words[..words.len().min(WORDS_MOST)];
        let words = FirstWords { from, segment, payload, before: self.halves[from].payload };
        if Introduction::wants(self.introduction.as_deref(), &words) {
            self.introduction.get_or_insert_default().hear(words);
        }
    }

    /// Reads the frames in a segment, before it counts as data. Returns whether they say that
    /// nobody answers it.
    fn read_frames(&mut self, config: &Config, captured: CapturedSegment<'_>, from: usize) -> bool {
        let CapturedSegment { at, segment, words: payload, seats, .. } = captured;
        if self.conversation.is_none()
            && (payload.is_empty() || !config.frames || self.halves[from].payload > 0)
        {
            return false;
        }
        let lags = [0, 1].map(|end| self.lag(config, end).unwrap_or(Duration::ZERO));
        let heard = Heard { at, segment, payload, from, lags };
        if self.conversation.is_none() {
            let drawn_from = self.recorder.is_some().then_some(self.start);
            let begun = Conversation::begin(&heard, &config.keys, seats, drawn_from);
            self.conversation = begun.map(Box::new);
        }
        self.conversation.as_mut().is_some_and(|conversation| conversation.see(&heard))
    }

    /// The facts, and what limited the data. The capture went on until `until`.
    pub fn finish(self, key: FlowKey, config: &Config, until: Instant) -> Finished {
        let client = self.client();
        let both_ends = self.halves.iter().all(|half| half.packets > 0);
        let lags = self.lags();
        // What came later would have been another connection.
        let until = until.min(self.last + config.idle_timeout);
        let path = self.ends(config);
        let rtt = self.handshake.clean_rtt();
        let mut ends = key.ends();
        if !self.starts_with_first {
            ends.reverse();
        }
        let [opener, answerer] = [&self.halves[client], &self.halves[1 - client]];
        let mut warnings = warnings(opener, answerer, self.has_cut_headers);
        let (http2, stop) = self.conversation.map_or((None, None), |one| one.finish());
        warnings.extend(stop.and_then(Warning::of_frames));
        let close = self.closing.close(client);
        let counted = self.ledger.finish(CapturedSpan { last: self.last, until, both_ends }, lags);
        let [first, second] = self.halves;
        let (from_client, from_server) =
            if client == 0 { (first, second) } else { (second, first) };
        // The data of each end shows the scale of the other end's windows.
        let (client_scale, server_scale) =
            (from_server.inferred_scale(), from_client.inferred_scale());
        // The client acknowledges the server's data, so its round trips are those of the client's
        // side.
        let data = from_server.least_rtt().zip(from_client.least_rtt());
        let handshake = self.handshake.client_side().zip(self.handshake.server_side());
        let greeting = self.introduction.map(|heard| Box::new(heard.finish(client)));
        let is_grpc = greeting.as_ref().is_some_and(|greeting| greeting.is_grpc);
        let protocol = [&from_client, &from_server]
            .into_iter()
            .find_map(|half| half.begins.protocol())
            .map(|said| if is_grpc { ApplicationProtocol::Grpc } else { said })
            .or_else(|| ApplicationProtocol::of_port(ends[1 - client].port()));
        let FinishedHalf { facts: mut client_to_server, verdict: of_client } =
            from_client.finish(config, rtt, client_scale);
        let FinishedHalf { facts: mut server_to_client, verdict: of_server } =
            from_server.finish(config, rtt, server_scale);
        let [of_client_frames, of_server_frames] = match http2 {
            Some([client, server]) => [client, server].map(|one| Some(Box::new(one))),
            None => [None, None],
        };
        client_to_server.http2 = of_client_frames;
        server_to_client.http2 = of_server_frames;
        let goodputs = [client_to_server.goodput, server_to_client.goodput];
        let trace = self.recorder.map(|recorder| Box::new(recorder.finish(path, client, goodputs)));
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
            protocol,
            greeting,
            windows: config.windows,
            vantage: vantage::guess(handshake, data),
            warnings,
            client_to_server,
            server_to_client,
            counted,
        };
        Finished { connection, verdicts: [of_client, of_server], trace }
    }

    /// A segment's labels by Wireshark's definitions, given the segments before it.
    fn wireshark_labels(&mut self, at: Instant, segment: &Segment, from: usize) -> LabelSet {
        let rtt = self.handshake.irtt();
        let (sender, receiver) = self.pair(from);
        let context = LabelContext { rtt, oldest: sender.outstanding.oldest(at) };
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
        } else if self.initial.of(1 - from).is_some_and(|initial| segment.ack != initial + 1) {
            labels.add(Label::TfoAck);
        } else if self.halves[1 - from].sent_fast_open {
            labels.add(Label::TfoIgnored);
        }
    }

    /// The end that opened the connection, or that probably did where that is not known.
    fn client(&self) -> usize {
        match self.client {
            Client::Known(end) | Client::Guessed(end) => end.into(),
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
        if opens || self.initial.of(from).is_none() {
            let before = u32::from(!opens).wrapping_neg();
            self.initial.set(from, segment.seq + before);
        }
        if segment.flags.any(Flags::ACK) && self.initial.of(1 - from).is_none() {
            self.initial.set(1 - from, segment.ack + u32::MAX);
        }
        if opens {
            let answers = segment.flags.any(Flags::ACK);
            if matches!(self.client, Client::Guessed(_)) {
                self.client = Client::Known(if answers { 1 - from } else { from } as u8);
            }
            let (sender, receiver) = self.pair(from);
            sender.note_syn_window(segment);
            match segment.options.window_scale {
                // The capture cut the options, and so the scale stays unknown, as without a
                // handshake.
                None if segment.is_header_cut => {}
                // RFC 7323, 2.2: the option must be in both SYNs to be used in either direction.
                None => {
                    (sender.memory.scale, receiver.memory.scale) = (Scale::Unused, Scale::Unused)
                }
                Some(_) if answers && receiver.memory.scale == Scale::Unused => {
                    sender.memory.scale = Scale::Unused
                }
                Some(shift) => sender.memory.scale = Scale::Shift(shift),
            }
        }
        if let Client::Known(client) = self.client {
            self.handshake.see(at, segment, usize::from(client) == from);
        }
    }

    /// The round trip of the path: the handshake's, where it was clean, else the given one.
    fn path_rtt(&self, config: &Config) -> Option<Duration> {
        self.handshake.clean_rtt().or(config.hint.rtt)
    }

    /// What a series of intervals of this end's data starts with.
    fn series_times(&self, config: &Config, from: usize) -> SeriesTimes {
        let interval = self.path_rtt(config).map(|rtt| rtt.max(MIN_INTERVAL));
        SeriesTimes { interval, shown: config.interval, lag: self.lag(config, from) }
    }

    /// The round trip between the capture point and the sending end. `None` where neither the
    /// handshake nor the place of the capture shows it.
    fn lag(&self, config: &Config, from: usize) -> Option<Duration> {
        let client = self.client();
        let measured = match config.capture_point {
            CapturePoint::SenderEdge => Some(Duration::ZERO),
            CapturePoint::ReceiverEdge => self.path_rtt(config),
            CapturePoint::Unknown if from == client => self.handshake.client_side(),
            CapturePoint::Unknown => self.handshake.server_side(),
        };
        // This near to the sender, no correction is needed.
        let near = self
            .handshake
            .rtt()
            .map_or(Duration::ZERO, |rtt| Duration::from_nanos(rtt.as_nanos() / 20));
        measured.map(|lag| if lag > near { lag } else { Duration::ZERO })
    }
}

/// Whether ports say that a server sent this segment: its own is one that no system gives to
/// clients, and the other is one that Linux does (`ip_local_port_range`).
fn is_from_server(segment: &Segment) -> bool {
    is_server_port(segment.source.port()) && !is_server_port(segment.destination.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An open connection may take 2 KB. What grows beyond this (series, round-trip times,
    /// outstanding segments) is bounded in its own module.
    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<Tracker>() <= 1088, "{} bytes", size_of::<Tracker>());
    }
}
