//! What one end of a connection sent, and what the other end acknowledged of it.

use super::ack_path::AckPath;
use super::advertised_window::AdvertisedWindow;
use super::answers::{Answers, NewData};
use super::cuts::Cuts;
use super::drops::{Drops, SentAgain};
use super::grants::{Granted, Grants};
use super::histogram::Histogram;
use super::labels::{LabelSet, Memory, Scale};
use super::manner::Manner;
use super::outstanding::{Outstanding, Sending};
use super::passage::{Passage, PassageFacts};
use super::payload::Unique;
use super::recent::Recent;
use super::scoreboard::{Acknowledgement, LossFacts, Scoreboard};
use super::segment_size::SegmentSize;
use super::series::{AckWindow, Data, SeriesStart};
use super::stalls::Stalls;
use super::{AnswerFacts, DirectionFacts, LabelCounts, Labels, RttFacts};
use crate::capture::segment::{Flags, PayloadStart, Segment, SequenceNumber};
use crate::config::Config;
use crate::intake::HostPairSum;
use crate::limit::{Coverage, Path, Verdict};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// One end's direction. It is kept small, since each open connection has two.
#[derive(Debug, Default)]
pub(super) struct Half {
    pub packets: u64,
    pub wire: u64,
    pub payload: u64,
    pub payload_max: u32,
    /// How its data begins.
    pub begins: PayloadStart,
    pub memory: Memory,
    pub manner: Manner,
    pub recent: Recent,
    pub outstanding: Outstanding,
    pub duplicate_packets: u32,
    pub congestion_experienced: u32,
    pub sent_fast_open: bool,
    /// The other end sent data since this end's last data.
    is_asked: bool,
    /// How often this end's data followed data of the other end, after its first.
    turns: u8,
    /// Segments of its data that do not fill the MSS.
    pieces: u8,
    /// The highest number that the other end acknowledged, and the number after the highest sent,
    /// each where it is known. Two options would take more.
    una_number: SequenceNumber,
    next_number: SequenceNumber,
    knows_una: bool,
    knows_next: bool,
    segment: SegmentSize,
    passage: Passage,
    /// Absent until a packet has a label or the sender waits. On most connections neither happens.
    notes: Option<Box<Notes>>,
    unique: Unique,
    in_flight_max: u32,
    /// Loss and reordering, by SACK and gaps. Absent until one of them appears.
    board: Option<Box<Scoreboard>>,
    rtt: Histogram,
    window: AdvertisedWindow,
    /// Only meaningful once there is a series; the two start together.
    first_data: Instant,
    last_data: Instant,
    series: Option<Box<Cuts>>,
}

/// An end that sent fewer packets has no waits to note: most connections are short, and many are
/// open at once.
const NOTED_FROM: u64 = 8;

/// Facts that only some directions have.
#[derive(Debug, Clone, Default)]
struct Notes {
    labels: LabelCounts,
    stalls: Stalls,
    answers: Answers,
    grants: Grants,
    ack_path: AckPath,
    drops: Drops,
}

/// The data of one segment, as counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentData {
    /// Bytes that were not captured before.
    pub new_bytes: u64,
    /// How many segments it was on the wire.
    pub segments: u32,
    /// It does not fill a segment.
    pub is_short: bool,
    /// The highest number acknowledged when it was sent.
    pub una: SequenceNumber,
    /// The number after the highest sent before it, where there was one.
    pub before: Option<SequenceNumber>,
}

/// What a series of intervals starts with, if this data is the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesTimes {
    /// Length of its intervals; `None` where no round trip is known.
    pub interval: Option<Duration>,
    /// Length of the intervals to be shown, if it was asked for.
    pub shown: Option<Duration>,
    /// The round trip between the capture point and the sending end. `None` where neither the
    /// handshake nor the place of the capture shows it.
    pub lag: Option<Duration>,
}

/// Data for the series of intervals.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesData {
    pub sent: SentData,
    /// It is a retransmission.
    pub is_retransmission: bool,
    /// IP identifications show that packets before it did not pass the capture point.
    pub follows_gap: bool,
    /// The last window that the other end advertised, where its scale is known.
    pub window: Option<u32>,
    /// What its host had sent to the other, in all of their connections, with this data.
    pub carried: HostPairSum,
}

/// The result of [`Half::finish`].
pub(super) struct FinishedHalf {
    pub facts: DirectionFacts,
    /// What limited the data; `None` where there was none.
    pub verdict: Option<Verdict>,
}

impl Half {
    /// Counts a packet's labels.
    pub fn count(&mut self, labels: LabelSet) {
        if labels != LabelSet::default() {
            self.notes.get_or_insert_default().labels.add(labels);
        }
    }

    /// Whether so many of its packets are copies that the capture made them: a network that doubles
    /// one packet in four is rare.
    pub fn is_captured_twice(&self) -> bool {
        let copies = u64::from(self.duplicate_packets);
        copies >= 3 && copies * 4 >= self.packets
    }

    /// The least time from this end's data to its acknowledgement.
    pub fn least_rtt(&self) -> Option<Duration> {
        self.rtt.min().map(Duration::from_nanos)
    }

    /// The highest number that the other end acknowledged.
    pub fn una(&self) -> Option<SequenceNumber> {
        self.knows_una.then_some(self.una_number)
    }

    fn set_una(&mut self, una: SequenceNumber) {
        (self.una_number, self.knows_una) = (una, true);
    }

    /// The number after the highest sent.
    fn next(&self) -> Option<SequenceNumber> {
        self.knows_next.then_some(self.next_number)
    }

    /// Whether this number acknowledges all that was sent.
    pub fn is_all_acknowledged_by(&self, ack: SequenceNumber) -> bool {
        self.next().is_none_or(|next| !ack.is_before(next))
    }

    /// The scoreboard of loss and reordering, created on first use.
    pub fn board(&mut self) -> &mut Scoreboard {
        self.board.get_or_insert_default()
    }

    /// The last window that it advertised. If the scale was not captured, only a window of zero is
    /// known.
    pub fn known_window(&self) -> Option<u32> {
        let is_known = self.memory.scale != Scale::Unknown;
        self.window.last.filter(|window| is_known || *window == 0)
    }

    /// Whether the last window that it advertised leaves the other end, whose segments are as large
    /// as `full`, too little to send once all of its data is acknowledged.
    pub fn holds_back(&self, full: u64) -> bool {
        self.known_window().is_some() && self.window.holds_back(full)
    }

    /// The largest segment of its data so far.
    pub fn segment_size(&self) -> Bytes {
        Bytes::new(self.segment.get().into())
    }

    /// The last window that it advertised, where its scale is known.
    pub fn scaled_window(&self) -> Option<Bytes> {
        let window = self.window.last.filter(|_| self.memory.scale != Scale::Unknown)?;
        Some(Bytes::new(window.into()))
    }

    /// The shift of the other end's windows, as far as this end's data shows it.
    pub fn inferred_scale(&self) -> Option<u8> {
        self.series.as_ref().and_then(|series| series.judged().inferred_scale())
    }

    /// The number in the field of its last window, where a scale makes it mean more.
    pub fn window_field(&self) -> Option<u32> {
        let Scale::Shift(shift @ 1..) = self.memory.scale else { return None };
        // A SYN's window is never scaled.
        let last = self.window.last.filter(|_| self.window.is_known())?;
        Some(last >> shift.min(14)).filter(|field| *field > 0)
    }

    /// Notes a segment that takes up sequence numbers; `field` is what the other end's
    /// [`Half::window_field`] has. Returns the number after the highest sent before it.
    pub fn advance(
        &mut self,
        at: Instant,
        segment: &Segment,
        field: Option<u32>,
    ) -> Option<SequenceNumber> {
        let (seq, end) = (segment.seq, segment.end());
        let before = self.next();
        let advances = before.is_none_or(|next| !seq.is_before(next));
        let edge = field.zip(self.una()).map(|(field, una)| una + field);
        let is_beyond = advances && self.passage.sent(end, edge);
        let sent = self.outstanding.send(Sending { at, seq, end, advances, is_beyond });
        let board = self.board.as_ref().filter(|_| !advances);
        if let Some(sent) = sent.or_else(|| board?.below_gap(seq)) {
            let notes = self.notes.get_or_insert_default();
            let (length, next) = (segment.payload_len(), before.unwrap_or(end));
            notes.drops.note(SentAgain { at, sent, seq, length, next });
        }
        (self.next_number, self.knows_next) = (before.map_or(end, |next| next.max(end)), true);
        before
    }

    /// Counts the data of a segment. `before` is the number after the highest sent before it. `mss`
    /// is the smaller of those that the two SYNs allow.
    pub fn note_payload(
        &mut self,
        segment: &Segment,
        before: Option<SequenceNumber>,
        mss: Option<u16>,
    ) -> SentData {
        let length = segment.payload_len();
        if let Some(first) = before {
            self.unique.starts_at(first);
        }
        if !self.knows_una {
            self.set_una(segment.seq);
        }
        SentData {
            new_bytes: self.unique.see(segment.seq, length, self.una_number),
            segments: self.segment.sees(length, mss, segment.options.timestamps.is_some()),
            is_short: length < mss.map_or(self.segment.get(), |mss| u32::from(mss) * 3 / 4),
            una: self.una_number,
            before,
        }
    }

    /// When its last data was sent; only meaningful once there was some.
    pub fn last_data(&self) -> Instant {
        self.last_data
    }

    /// Notes the time at which data was sent.
    pub fn note_data_time(&mut self, at: Instant) {
        self.manner.sends(at);
        if self.series.is_none() {
            self.first_data = at;
        }
        self.last_data = self.last_data.max(at);
    }

    /// Notes that data up to `end` is in flight. With [`Labels::Sack`], bytes that SACK reported do
    /// not count.
    pub fn note_in_flight(&mut self, labels: Labels, una: SequenceNumber, end: SequenceNumber) {
        let next = self.next().unwrap_or(end);
        let in_flight = next.distance(una).saturating_sub(self.sacked(labels));
        self.in_flight_max = self.in_flight_max.max(in_flight);
    }

    /// What is in flight now, as [`Half::note_in_flight`] counts it; `None` before the first
    /// acknowledgement or data.
    pub fn in_flight(&self, labels: Labels) -> Option<Bytes> {
        let (next, una) = (self.next()?, self.una()?);
        Some(Bytes::new(next.distance(una).saturating_sub(self.sacked(labels)).into()))
    }

    fn sacked(&self, labels: Labels) -> u32 {
        match (labels, &self.board) {
            (Labels::Sack, Some(board)) => board.sacked_bytes(),
            _ => 0,
        }
    }

    /// Adds data to the series of intervals. The first data starts the series.
    pub fn note_in_series(
        &mut self,
        at: Instant,
        segment: &Segment,
        data: SeriesData,
        times: SeriesTimes,
    ) {
        let SentData { new_bytes, segments, una, before, .. } = data.sent;
        let series = self.series.get_or_insert_with(|| {
            let start = SeriesStart {
                at,
                seq: segment.seq,
                una,
                edge: data.window.map(|window| una + window),
                interval: times.interval,
                lag: times.lag,
            };
            Box::new(Cuts::new(start, times.shown))
        });
        let is_repeated = new_bytes == 0 || data.is_retransmission;
        if std::mem::take(&mut self.is_asked) && !is_repeated {
            self.turns = self.turns.saturating_add(1);
        }
        if data.sent.is_short && !is_repeated {
            self.pieces = self.pieces.saturating_add(1);
        }
        series.sent(
            at,
            Data {
                seq: segment.seq,
                length: segment.payload_len(),
                segments,
                segment: self.segment.get(),
                is_repeated,
                follows_gap: data.follows_gap,
                carried: data.carried,
                echo: segment.options.timestamps.map(|(_, echo)| echo),
            },
        );
        // With the lag that this segment's echo shows.
        if let Some(notes) = &mut self.notes {
            let (judged, segment_length) = (series.judged(), segment.payload_len());
            notes.stalls.sent(at, judged.lag(), data.sent.is_short && !is_repeated);
            if let Some(rtt) = judged.least_rtt().filter(|_| !is_repeated) {
                let segment = self.segment.get();
                let is_cut = !segment_length.is_multiple_of(segment.max(1));
                notes.answers.sent(at, NewData { bytes: new_bytes, segment, is_cut }, rtt);
            }
            if let Some(next) = before.filter(|_| !is_repeated) {
                let rtt = judged.least_rtt().unwrap_or(Duration::ZERO);
                notes.grants.sent(Granted { at, next, lag: judged.lag_of_messages(), rtt });
            }
        }
    }

    /// Notes the window of this end's SYN.
    pub fn note_syn_window(&mut self, segment: &Segment) {
        self.window.note_syn(segment.window);
    }

    /// Notes the window that this end advertises in an ACK that it sent.
    pub fn note_window(&mut self, segment: &Segment) -> AckWindow {
        let is_syn = segment.flags.any(Flags::SYN);
        // The window of a SYN is never scaled (RFC 7323, 2.2).
        let scale = if is_syn { Scale::Unused } else { self.memory.scale };
        let window = scale.apply(segment.window);
        if !is_syn && let Some(agreed) = scale.agreed() {
            self.window.compare(segment.window, agreed);
        }
        self.window.note(window, !is_syn);
        match scale {
            Scale::Unknown => AckWindow::Unscaled(segment.window),
            Scale::Unused | Scale::Shift(_) => AckWindow::Bytes(window),
        }
    }

    /// Notes the SACK blocks of an ACK of this half's data. Returns whether they report something
    /// new.
    pub fn note_sack(&mut self, at: Instant, segment: &Segment) -> bool {
        if self.board.is_none() && segment.options.sack.is_empty() {
            return false;
        }
        let (Some(una), Some(next)) = (self.una(), self.next()) else { return false };
        let segment_size = self.segment.get();
        let rtt = self.least_rtt();
        let newest = segment.options.sack.as_slice().first().map(|(_, right)| *right);
        let age = newest.and_then(|right| self.outstanding.age(at, right));
        let board = self.board();
        board.reported(age);
        board.acknowledge(&Acknowledgement { at, segment, una, next, segment_size, rtt })
    }

    /// The age of the newest data that `ack` covers; see [`Outstanding::acknowledge`].
    pub fn age_of(&mut self, at: Instant, ack: SequenceNumber) -> Option<Duration> {
        self.outstanding.acknowledge(at, ack, &mut self.passage)
    }

    /// What passed and what did not.
    fn passed(&mut self) -> PassageFacts {
        if let Some(board) = &self.board {
            self.outstanding.finish(&mut self.passage, |from, to| board.sacked_within(from, to));
        }
        let board = self.board.as_ref();
        PassageFacts {
            is_overtaken: board.is_some_and(|board| board.sacked_bytes() > 0),
            hole: board.map_or(Bytes::ZERO, |board| board.hole(self.una())),
            ..self.passage.facts(self.segment.get(), self.segment.times())
        }
    }

    /// Notes that the other end acknowledged up to `ack`, `rtt` after the newest data that this
    /// covers. Returns how many bytes are newly acknowledged, and how much later this ACK came than
    /// the quickest. `None` where nothing is newly acknowledged, or no data was sent.
    pub fn note_acknowledged(
        &mut self,
        at: Instant,
        ack: SequenceNumber,
        rtt: Option<Duration>,
    ) -> Option<FreshAck> {
        let before = self.una();
        if before.is_some_and(|una| !una.is_before(ack)) {
            return None;
        }
        self.set_una(ack);
        if let Some(una) = before.filter(|_| self.packets == 0) {
            self.unique.acknowledged(ack.distance(una));
        }
        if self.series.is_some() {
            self.last_data = at;
        }
        let una = before.filter(|_| self.payload > 0)?;
        let late = rtt.zip(self.least_rtt()).map(|(rtt, least)| rtt.saturating_sub(least));
        Some(FreshAck {
            bytes: ack.distance(una),
            segment_size: Bytes::new(self.segment.get().into()),
            late: late.unwrap_or(Duration::ZERO),
        })
    }

    /// Notes that a retransmission timer of this end expired after `silence`.
    pub fn note_timeout(&mut self, silence: Duration) {
        self.notes.get_or_insert_default().stalls.timed_out(silence);
    }

    /// Notes that the other end sent data, after which this end may go on. `ack` is what it
    /// acknowledges.
    pub fn note_answer(&mut self, at: Instant, ack: SequenceNumber) {
        self.is_asked = self.series.is_some();
        if self.packets >= NOTED_FROM {
            let notes = self.notes.get_or_insert_default();
            notes.answers.answered(at);
            notes.grants.message(at, ack);
        }
    }

    /// Notes an ACK without data that acknowledges something of this half's.
    pub fn note_bare_ack(&mut self, at: Instant) {
        if let Some(notes) = &mut self.notes {
            notes.grants.acknowledged(at);
        }
    }

    /// Notes an ACK of this half's data if it came late and without data of the other end.
    pub fn note_late_ack(&mut self, at: Instant, segment: &Segment, ack: FreshAck) {
        let is_bare = segment.end() == segment.seq;
        let is_of_few = u64::from(ack.bytes) <= 2 * ack.segment_size.get();
        let is_all = self.next() == Some(segment.ack);
        if is_bare && is_of_few && is_all && Stalls::is_delayed(ack.late) {
            self.notes.get_or_insert_default().stalls.acknowledged_late(at, ack.late);
        }
    }

    /// Adds an ACK of this half's data to the series of intervals, if there is one.
    pub fn note_ack_in_series(
        &mut self,
        at: Instant,
        segment: &Segment,
        window: AckWindow,
        rtt: Option<Duration>,
    ) {
        let sacked = self.board.as_ref().map_or(0, |board| board.sacked_bytes());
        let Some(series) = &mut self.series else { return };
        if let Some(rtt) = rtt {
            self.rtt.add(rtt.as_nanos());
            series.measured(rtt);
        }
        if let Some((value, _)) = segment.options.timestamps {
            series.stamped(at, value);
            if self.packets >= NOTED_FROM {
                let excess = rtt
                    .zip(self.rtt.min())
                    .map(|(rtt, least)| rtt.saturating_sub(Duration::from_nanos(least)));
                let notes = self.notes.get_or_insert_default();
                notes.ack_path.acknowledged(at, value, excess);
            }
        }
        if let Some(notes) = &mut self.notes {
            notes.answers.heard();
        }
        series.acknowledged(at, segment.ack, window, sacked);
    }

    /// Payload without repetitions, by sequence numbers: what was acknowledged counts, captured or
    /// not.
    fn unique_payload(&self) -> Bytes {
        self.unique.count(self.una_of_data(), self.next())
    }

    /// Whether data was acknowledged that was not captured.
    pub fn lacks_data(&self) -> bool {
        self.unique.lacks(self.una_of_data(), self.next())
            || self.unique_payload().get() > self.payload
    }

    /// The highest number that was acknowledged. One far beyond everything else is no
    /// acknowledgement of data.
    fn una_of_data(&self) -> Option<SequenceNumber> {
        // A window without a scale may have been sent since.
        let in_flight = self.in_flight_max.saturating_add(u16::MAX.into());
        let is_far =
            |una: &SequenceNumber| self.next().is_some_and(|next| una.distance(next) > in_flight);
        self.una().filter(|una| !is_far(una))
    }

    /// The facts, and what limited the data. `scale_inferred` is the shift of this end's windows,
    /// as inferred from the other end's data.
    pub fn finish(
        mut self,
        config: &Config,
        handshake_rtt: Option<Duration>,
        scale_inferred: Option<u8>,
    ) -> FinishedHalf {
        let passage = self.passed();
        let unique_payload = self.unique_payload();
        let least = self.series.as_ref().and_then(|series| series.judged().least_rtt());
        // On a slow link, data takes longer than a SYN even without a queue, so its own is taken.
        let base = least.or(handshake_rtt);
        let rtt = RttFacts::of(&self.rtt);
        let loss = self.board.map(|board| board.finish(rtt.min)).unwrap_or_default();
        let is_reordered = loss.is_reordering();
        // Where packets overtake others, the least round trip is that of one which did.
        let base = if is_reordered { base.max(handshake_rtt) } else { base };
        let time = self.series.as_ref().map(|_| self.last_data.since(self.first_data));
        let data_time =
            self.series.as_ref().map(|_| self.manner.last_sent().since(self.first_data));
        let is_at_sender =
            self.series.as_ref().is_some_and(|series| series.judged().is_at_sender());
        let coverage = match (self.memory.scale != Scale::Unknown, is_at_sender) {
            (true, _) => Coverage::FromStart,
            (false, true) => Coverage::MiddleAtSender,
            (false, false) => Coverage::MiddleElsewhere,
        };
        let (turns, pieces) = (self.turns.into(), self.pieces.into());
        let notes = self.notes.map(|notes| *notes).unwrap_or_default();
        let segment = self.segment.get().into();
        let drops = notes.drops.pattern(self.first_data, self.last_data, segment);
        let (hint, scale) = (config.hint, self.memory.scale.agreed());
        let path =
            Path { rtt: base, hint, coverage, is_at_sender, turns, pieces, drops, is_reordered };
        let verdict = self.series.map(|series| series.judge(path));
        let facts = DirectionFacts {
            packets: self.packets,
            wire: Bytes::new(self.wire),
            payload: Bytes::new(self.payload),
            unique_payload,
            payload_max: Bytes::new(self.payload_max.into()),
            goodput: time.and_then(|time| unique_payload.per(time)),
            data_time,
            goodput_peak: verdict.as_ref().and_then(Verdict::peak_goodput),
            rtt,
            window: self.window.facts(scale, scale_inferred),
            in_flight_max: Bytes::new(self.in_flight_max.into()),
            labels: notes.labels,
            manner: self.manner.facts(),
            loss: LossFacts {
                duplicate_packets: self.duplicate_packets.into(),
                congestion_experienced: self.congestion_experienced.into(),
                ..loss
            },
            stalls: notes.stalls.facts(),
            answers: if is_at_sender { notes.answers.facts() } else { AnswerFacts::default() },
            passage,
            ack_path: notes.ack_path.facts(),
            http2: None,
            grants: notes.grants.facts(),
            begins: self.begins,
        };
        FinishedHalf { facts, verdict }
    }
}

/// An ACK that acknowledges new data.
#[derive(Debug, Clone, Copy)]
pub(super) struct FreshAck {
    /// How many bytes it acknowledges for the first time.
    pub bytes: u32,
    /// The largest segment in which this direction's data was sent so far.
    pub segment_size: Bytes,
    /// How much later it came than the quickest ACK.
    pub late: Duration,
}
