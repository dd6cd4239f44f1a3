//! What one end of a connection sent, and what the other end acknowledged of it.

use super::advertised_window::AdvertisedWindow;
use super::histogram::Histogram;
use super::labels::{LabelSet, Memory, Scale};
use super::manner::Manner;
use super::outstanding::Outstanding;
use super::payload::Unique;
use super::recent::Recent;
use super::scoreboard::{Acknowledgement, LossFacts, Scoreboard};
use super::segment_size::SegmentSize;
use super::series::{AckWindow, Data, Series, SeriesStart};
use super::{DirectionFacts, Label, LabelCounts, Labels, RttFacts};
use crate::config::Config;
use crate::limit::{Coverage, Path, Verdict, decide};
use crate::segment::{Flags, Segment, SequenceNumber};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// One end's direction. Small, as there are two for each open connection.
#[derive(Debug, Default)]
pub(super) struct Half {
    pub packets: u64,
    pub wire: u64,
    pub payload: u64,
    pub payload_max: u32,
    pub memory: Memory,
    pub manner: Manner,
    pub recent: Recent,
    pub outstanding: Outstanding,
    pub duplicate_packets: u32,
    pub congestion_experienced: u32,
    pub sent_fast_open: bool,
    /// Highest that the other end acknowledged.
    pub una: Option<SequenceNumber>,
    /// Number after the highest sent.
    next: Option<SequenceNumber>,
    segment: SegmentSize,
    /// Absent until a packet has a label, which most connections' never have.
    counts: Option<Box<LabelCounts>>,
    unique: Unique,
    in_flight_max: u32,
    /// What SACK and gaps say of loss; absent until there is either.
    board: Option<Box<Scoreboard>>,
    rtt: Histogram,
    window: AdvertisedWindow,
    /// Meaningful where there is a series, which begins with it.
    first_data: Instant,
    last_data: Instant,
    series: Option<Box<Series>>,
}

/// Data of a segment, as it was counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentData {
    /// Bytes that were not captured before.
    pub new_bytes: u64,
    /// How many segments it was on the wire.
    pub segments: u32,
    /// Acknowledged when it was sent.
    pub una: SequenceNumber,
}

/// How a series of intervals is begun, if this data is the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesTimes {
    /// Length of its intervals; `None` where no round trip is known.
    pub interval: Option<Duration>,
    /// The round trip between the capture point and the end that sends; `None` where neither the
    /// handshake nor the capture's place says it.
    pub lag: Option<Duration>,
}

/// Data for the series of intervals.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesData {
    pub sent: SentData,
    /// It is a retransmission.
    pub is_retransmission: bool,
    /// By IP identifications packets before it did not pass.
    pub follows_gap: bool,
    /// The window that the other end advertised last, where its scale is known.
    pub window: Option<u32>,
}

/// What [`Half::finish`] gives.
pub(super) struct FinishedHalf {
    pub facts: DirectionFacts,
    /// What held the data; `None` where there was none.
    pub verdict: Option<Verdict>,
}

impl Half {
    /// Counts a packet's labels.
    pub fn count(&mut self, labels: LabelSet) {
        if labels != LabelSet::default() {
            self.counts.get_or_insert_default().add(labels);
        }
    }

    /// How many packets have this label.
    pub fn count_of(&self, label: Label) -> u64 {
        self.counts.as_ref().map_or(0, |counts| counts.of(label))
    }

    /// The least time that its data took to be acknowledged.
    pub fn least_rtt(&self) -> Option<Duration> {
        self.rtt.min().map(Duration::from_nanos)
    }

    /// What SACK and gaps say of loss.
    pub fn board(&mut self) -> &mut Scoreboard {
        self.board.get_or_insert_default()
    }

    /// The window that it advertised last. Of one whose scale was not seen only zero is known.
    pub fn known_window(&self) -> Option<u32> {
        let is_known = self.memory.scale != Scale::Unknown;
        self.window.last.filter(|window| is_known || *window == 0)
    }

    /// The shift of the other end's windows, as far as this end's data shows it.
    pub fn inferred_scale(&self) -> Option<u8> {
        self.series.as_ref().and_then(|series| series.inferred_scale())
    }

    /// A segment that takes sequence numbers was sent. Gives the number after the highest sent
    /// before.
    pub fn advance(&mut self, at: Instant, segment: &Segment) -> Option<SequenceNumber> {
        let (seq, end) = (segment.seq, segment.end());
        let before = self.next;
        let advances = before.is_none_or(|next| !seq.is_before(next));
        self.outstanding.send(at, seq, end, advances);
        self.next = Some(before.map_or(end, |next| next.max(end)));
        before
    }

    /// Counts the data of a segment that was sent after `before`; `mss` is the least that both SYNs
    /// allow.
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
        SentData {
            new_bytes: self.unique.see(segment.seq, length),
            segments: self.segment.sees(length, mss, segment.options.timestamps.is_some()),
            una: *self.una.get_or_insert(segment.seq),
        }
    }

    /// Data was sent at this time.
    pub fn note_data_time(&mut self, at: Instant) {
        self.manner.sends(at);
        if self.series.is_none() {
            self.first_data = at;
        }
        self.last_data = self.last_data.max(at);
    }

    /// Data that ends at `end` is in flight, by `labels` without what SACK reported.
    pub fn note_in_flight(&mut self, labels: Labels, una: SequenceNumber, end: SequenceNumber) {
        let sacked = match (labels, &self.board) {
            (Labels::Sack, Some(board)) => board.sacked_bytes(),
            _ => 0,
        };
        let in_flight = self.next.unwrap_or(end).distance(una).saturating_sub(sacked);
        self.in_flight_max = self.in_flight_max.max(in_flight);
    }

    /// Data goes into the series of intervals, which the first begins.
    pub fn note_in_series(
        &mut self,
        at: Instant,
        segment: &Segment,
        data: SeriesData,
        times: SeriesTimes,
    ) {
        let SentData { new_bytes, segments, una, .. } = data.sent;
        let series = self.series.get_or_insert_with(|| {
            Box::new(Series::new(SeriesStart {
                at,
                seq: segment.seq,
                una,
                edge: data.window.map(|window| una + window),
                interval: times.interval,
                lag: times.lag,
            }))
        });
        if let Some((_, echo)) = segment.options.timestamps {
            series.echoed(at, echo);
        }
        series.sent(
            at,
            Data {
                seq: segment.seq,
                length: segment.payload_len(),
                segments,
                segment: self.segment.get(),
                is_repeated: new_bytes == 0 || data.is_retransmission,
                follows_gap: data.follows_gap,
            },
        );
    }

    /// An ACK that this end sent, as far as it says something of this end: the window that it
    /// advertises.
    pub fn note_window(&mut self, segment: &Segment) -> AckWindow {
        let is_syn = segment.flags.any(Flags::SYN);
        // The window of a SYN is never scaled (RFC 7323, 2.2).
        let scale = if is_syn { Scale::Unused } else { self.memory.scale };
        let window = scale.apply(segment.window);
        self.window.note(window, !is_syn);
        match scale {
            Scale::Unknown => AckWindow::Unscaled(segment.window),
            Scale::Unused | Scale::Shift(_) => AckWindow::Bytes(window),
        }
    }

    /// An ACK of this half's data; whether its SACK blocks say something new.
    pub fn note_sack(&mut self, at: Instant, segment: &Segment) -> bool {
        if self.board.is_none() && segment.options.sack.is_empty() {
            return false;
        }
        let (Some(una), Some(next)) = (self.una, self.next) else { return false };
        let segment_size = self.segment.get();
        let rtt = self.least_rtt();
        let newest = segment.options.sack.as_slice().first().map(|(_, right)| *right);
        let age = newest.and_then(|right| self.outstanding.age(at, right));
        let board = self.board();
        board.reported(age);
        board.acknowledge(&Acknowledgement { at, segment, una, next, segment_size, rtt })
    }

    /// The other end acknowledged up to `ack`, which took `rtt` from the newest data that it
    /// covers. Gives how many bytes are new and how much later than the quickest ACK this one came;
    /// `None` where nothing is new, or no data was sent.
    pub fn note_acknowledged(
        &mut self,
        at: Instant,
        ack: SequenceNumber,
        rtt: Option<Duration>,
    ) -> Option<FreshAck> {
        let before = self.una;
        if before.is_some_and(|una| !una.is_before(ack)) {
            return None;
        }
        self.una = Some(ack);
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

    /// An ACK of this half's data goes into the series of intervals, if there is one.
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
        }
        series.acknowledged(at, segment.ack, window, sacked);
    }

    /// The facts, and what held the data. `scale_inferred` is the shift of this end's windows, as
    /// the other end's data shows it.
    pub fn finish(
        self,
        config: &Config,
        handshake_rtt: Option<Duration>,
        scale_inferred: Option<u8>,
    ) -> FinishedHalf {
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
        let scale = match self.memory.scale {
            Scale::Unknown => None,
            Scale::Unused => Some(0),
            Scale::Shift(shift) => Some(shift.min(14)),
        };
        let rtt = rtt_facts(&self.rtt);
        let loss = self.board.map(|board| board.finish(rtt.min)).unwrap_or_default();
        let facts = DirectionFacts {
            packets: self.packets,
            wire: Bytes::new(self.wire),
            payload: Bytes::new(self.payload),
            unique_payload: self.unique.count(),
            payload_max: Bytes::new(self.payload_max.into()),
            goodput: time.and_then(|time| self.unique.count().per(time)),
            goodput_peak: verdict.as_ref().and_then(Verdict::peak_goodput),
            rtt,
            window: self.window.facts(scale, scale_inferred),
            in_flight_max: Bytes::new(self.in_flight_max.into()),
            labels: self.counts.map(|counts| *counts).unwrap_or_default(),
            manner: self.manner.facts(),
            loss: LossFacts {
                duplicate_packets: self.duplicate_packets.into(),
                congestion_experienced: self.congestion_experienced.into(),
                ..loss
            },
        };
        FinishedHalf { facts, verdict }
    }
}

/// An ACK of something new.
#[derive(Debug, Clone, Copy)]
pub(super) struct FreshAck {
    /// How many bytes it acknowledges for the first time.
    pub bytes: u32,
    /// The largest segment that they were sent in.
    pub segment_size: Bytes,
    /// How much later it came than the quickest.
    pub late: Duration,
}

fn rtt_facts(rtt: &Histogram) -> RttFacts {
    let quantile = |fraction| rtt.quantile(fraction).map(Duration::from_nanos);
    RttFacts {
        count: rtt.count(),
        min: rtt.min().map(Duration::from_nanos),
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        max: rtt.max().map(Duration::from_nanos),
    }
}
