//! HTTP/2's windows, as its frames show them: in clear text, or inside TLS with keys that the user
//! has.
//!
//! [`Conversation`] reads one connection. [`KeyLog`] has the secrets of connections; a connection
//! whose ClientHello it knows, and one that begins with HTTP/2's preface, is read. Its segments
//! come with all of their payload, are put in order (`in_order`), opened (`tls`) and cut into
//! frames (`http2`); of these only headers, settings and window updates are looked at, and the
//! account (`credit`) says what waited for which window. Contents are overwritten as soon as a
//! record was read.
//!
//! Nothing is guessed: where the capture misses data, a record does not open or frames contradict
//! each other, reading stops, and the facts say so.

mod credit;
mod facts;
mod http2;
mod in_order;
mod keys;
mod lines;
mod tls;

pub(crate) use facts::FrameStop;
pub use facts::{FlowControl, FlowWindow, HeldSpan};
pub use keys::{KeyLog, KeyLogError};
pub use lines::GrantedLines;

use crate::capture::segment::{ApplicationProtocol, Flags, PayloadStart, Segment, SequenceNumber};
use credit::{Credit, Distance};
use fullpipe_model::units::{Duration, Instant};
use http2::{FlowFrame, FrameReader};
use in_order::{InOrder, Piece};
use std::sync::Arc;
use tls::{Tls, client_random};

/// The most connections that are read at a time.
const SEATS: usize = 128;

/// Bounds how many connections are read at a time: each holds a place among them.
#[derive(Debug, Default)]
pub(crate) struct Seats(Arc<()>);

impl Seats {
    /// A place, if one is free.
    fn take(&self) -> Option<Arc<()>> {
        (Arc::strong_count(&self.0) <= SEATS).then(|| Arc::clone(&self.0))
    }
}

/// A segment of a connection that is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard<'a> {
    pub at: Instant,
    pub segment: &'a Segment,
    /// What was captured of its payload.
    pub payload: &'a [u8],
    /// Its sender, by the ends' numbers.
    pub from: usize,
    /// The round trips between the capture point and each end.
    pub lags: [Duration; 2],
}

/// Reads a connection. Its ends are numbered as the tracker's are.
#[derive(Debug)]
pub(crate) struct Conversation {
    /// The end that asks.
    client: usize,
    is_clear: bool,
    tls: Option<Box<Tls>>,
    /// By the end that sends, as all that follows.
    bytes: [InOrder; 2],
    frames: [FrameReader; 2],
    /// When each end said something last.
    said_last: [Option<Instant>; 2],
    credits: [Credit; 2],
    /// The highest number that was acknowledged of each end's data.
    acknowledged: [Option<SequenceNumber>; 2],
    stop: Option<FrameStop>,
    seat: Option<Arc<()>>,
}

/// Whether a payload begins a connection that can be read with these keys.
pub(crate) fn can_read(start: PayloadStart, payload: &[u8], keys: &KeyLog) -> bool {
    match start {
        // Either end's first frames.
        PayloadStart::Http2Preface | PayloadStart::Says(ApplicationProtocol::Http2) => true,
        PayloadStart::ClientHello if !keys.is_empty() => {
            client_random(payload).is_some_and(|random| keys.has(&random))
        }
        _ => false,
    }
}

impl Conversation {
    /// Begins with the first data of a client, or of a server that says its settings before that;
    /// `None` where it [cannot](can_read) be read. Windows are drawn from a time on that is given.
    pub fn begin(
        heard: &Heard<'_>,
        keys: &KeyLog,
        seats: &Seats,
        drawn_from: Option<Instant>,
    ) -> Option<Self> {
        let Heard { segment, payload, from, .. } = *heard;
        // Where the other end's data begins is said by an acknowledgement, which a SYN with data
        // has not.
        let is_begun = segment.flags.any(Flags::ACK);
        if !is_begun || !can_read(segment.payload_start, payload, keys) {
            return None;
        }
        let tls = match segment.payload_start {
            PayloadStart::ClientHello if !OPENS_TLS => return None,
            PayloadStart::ClientHello => {
                let random = client_random(payload)?;
                Some(Box::new(Tls::new(keys.of(&random)?, random)))
            }
            _ => None,
        };
        let seat = seats.take();
        // What the other end sends begins where this one says that it does.
        let mut bytes = [first_byte(segment), segment.ack].map(InOrder::new);
        if from == 1 {
            bytes.reverse();
        }
        let is_server = matches!(segment.payload_start, PayloadStart::Says(_));
        let client = if is_server { 1 - from } else { from };
        Some(Conversation {
            client,
            is_clear: tls.is_none(),
            tls,
            bytes,
            frames: [0, 1].map(|end| FrameReader::new(end == client)),
            said_last: [None; 2],
            credits: [0, 1].map(|_| Credit::new(drawn_from)),
            acknowledged: [None; 2],
            stop: seat.is_none().then_some(FrameStop::TooMany),
            seat,
        })
    }

    /// Reads a segment, whichever way it goes, in the order of the capture. Returns whether nobody
    /// answers it: it grants more, or acknowledges what the other end said of itself.
    pub fn see(&mut self, heard: &Heard<'_>) -> bool {
        if self.stop.is_some() {
            return false;
        }
        if let Err(stop) = self.read(heard) {
            self.stops(stop);
            return false;
        }
        let has_rest = self.tls.as_ref().is_some_and(|tls| {
            tls.rest_of_record(usize::from(heard.from != self.client)).is_some()
        });
        self.frames[heard.from].takes_only_unanswered() && !has_rest
    }

    /// Reads no more, and keeps what the account says so far.
    fn stops(&mut self, stop: FrameStop) {
        self.stop = Some(stop);
        (self.tls, self.seat) = (None, None);
        self.bytes = [0, 1].map(|end| InOrder::new(self.bytes[end].next()));
    }

    fn read(&mut self, heard: &Heard<'_>) -> Result<(), FrameStop> {
        let Heard { at, segment, payload, from, .. } = *heard;
        if segment.flags.any(Flags::ACK) && !segment.flags.any(Flags::RST) {
            let known = &mut self.acknowledged[1 - from];
            *known = Some(known.map_or(segment.ack, |known| known.max(segment.ack)));
        }
        if segment.payload_len() == 0 {
            return Ok(());
        }
        if (payload.len() as u64) < segment.payload.get() {
            return Err(FrameStop::Cut);
        }
        let piece = Piece { at, seq: first_byte(segment), bytes: payload };
        if self.bytes[from].next().is_before(piece.seq) {
            return self.bytes[from].keep(piece).map_err(|_| FrameStop::Gap);
        }
        if let Some(fresh) = self.bytes[from].take(piece) {
            self.said(at, fresh, heard)?;
        }
        while let Some((sent, seq, bytes)) = self.bytes[from].pop() {
            if let Some(fresh) = self.bytes[from].take(Piece { at: sent, seq, bytes: &bytes }) {
                self.said(sent, fresh, heard)?;
            }
        }
        Ok(())
    }

    /// Reads the next bytes of an end, sent at `at`. A tail of what was begun, less than a segment,
    /// may come late because TCP kept it back until all before it was acknowledged (Nagle's
    /// algorithm): its program had handed it over with the rest.
    fn said(&mut self, at: Instant, bytes: &[u8], heard: &Heard<'_>) -> Result<(), FrameStop> {
        let Heard { from, lags, .. } = *heard;
        let late = Duration::from_nanos(lags[0].saturating_add(lags[1]).as_nanos() / LATE_PART);
        let before = self.said_last[from].replace(at);
        let before = before.filter(|last| late > Duration::ZERO && at.since(*last) >= late);
        let mut rest = bytes;
        while let Some((before, length)) = before.zip(self.tail_of(from, rest)) {
            let (tail, more) = rest.split_at(length.min(rest.len()));
            self.says(before, tail, heard)?;
            rest = more;
        }
        self.says(at, rest, heard)
    }

    /// How many of the next bytes of an end are a tail of what it has begun: of a record or a
    /// frame, and with a record's the next record as long as its frame goes on.
    fn tail_of(&self, from: usize, bytes: &[u8]) -> Option<usize> {
        let frame = self.frames[from].rest_of_frame();
        let rest = match &self.tls {
            Some(tls) => tls
                .rest_of_record(usize::from(from != self.client))
                .or_else(|| frame.and(tls::length_of_record(bytes))),
            None => frame,
        };
        rest.filter(|rest| *rest < TAIL_MOST && !bytes.is_empty())
    }

    /// Reads what an end handed over at `at`.
    fn says(&mut self, at: Instant, bytes: &[u8], heard: &Heard<'_>) -> Result<(), FrameStop> {
        let Heard { from, lags, .. } = *heard;
        let [mine, others] = match &mut self.credits {
            [one, other] if from == 0 => [one, other],
            [one, other] => [other, one],
        };
        let whole = lags[0].saturating_add(lags[1]);
        let [own, back] = [from, 1 - from].map(|end| Distance { to_sender: lags[end], whole });
        let frames = &mut self.frames[from];
        let mut heard = BothCredits { mine, others, at, own, back, exceeded: false };
        match &mut self.tls {
            None => frames.read(bytes, |frame| heard.note(frame))?,
            Some(_) if !OPENS_TLS => {}
            Some(tls) => {
                let end = usize::from(from != self.client);
                tls.read(end, bytes, |said| frames.read(said, |frame| heard.note(frame)))?;
            }
        }
        if heard.exceeded { Err(FrameStop::Malformed) } else { Ok(()) }
    }

    /// What was read of the client's data and of the server's, and why no more was. Nothing of what
    /// is no HTTP/2.
    pub fn finish(mut self) -> (Option<[FlowControl; 2]>, Option<FrameStop>) {
        if self.stop.is_none() && self.misses_data() {
            self.stops(FrameStop::Gap);
        }
        let is_http2 = self.frames.iter().any(FrameReader::is_http2);
        // Nobody asked for what is in clear text: packets without their payload are usual there.
        let is_usual = self.is_clear && self.stop == Some(FrameStop::Cut);
        if self.stop == Some(FrameStop::NotHttp2) || is_usual {
            return (None, None);
        }
        let [one, other] = self.credits.map(|credit| credit.finish(self.stop.is_none()));
        let facts = if self.client == 0 { [one, other] } else { [other, one] };
        (is_http2.then_some(facts), self.stop)
    }

    /// Whether data was acknowledged, or came later, that is not there.
    fn misses_data(&self) -> bool {
        [0, 1].into_iter().any(|end| {
            let next = self.bytes[end].next();
            let acknowledged = self.acknowledged[end];
            // A FIN takes a number, too.
            self.bytes[end].waits() || acknowledged.is_some_and(|known| known.distance(next) > 1)
        })
    }
}

/// Whether records are opened. In a page nobody gives keys, and what opens them would be a
/// twentieth of it.
const OPENS_TLS: bool = !cfg!(target_family = "wasm");

/// A tail is late after this part of a round trip.
const LATE_PART: u64 = 8;
/// It is less than a segment.
const TAIL_MOST: usize = 1460;

/// The accounts that a frame of one end changes.
struct BothCredits<'a> {
    /// Of the data that this end sends, and of what the other end does.
    mine: &'a mut Credit,
    others: &'a mut Credit,
    /// When it was sent, and how far it is to this end and to the other.
    at: Instant,
    own: Distance,
    back: Distance,
    exceeded: bool,
}

impl BothCredits<'_> {
    fn note(&mut self, frame: FlowFrame) {
        self.others.hears(self.at, frame, self.back);
        self.exceeded |= self.mine.sends(self.at, frame, self.own).is_err();
    }
}

/// The number of the first byte of a segment's payload.
fn first_byte(segment: &Segment) -> SequenceNumber {
    segment.seq + u32::from(segment.flags.any(Flags::SYN))
}
