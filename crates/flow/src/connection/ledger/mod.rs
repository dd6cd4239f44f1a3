//! Where the time of a connection goes, counted as packets pass.
//!
//! Time is divided at the packets that decide something: data, data sent again, the handshake and
//! the close. The time since the one before belongs to what that packet shows the wait to have
//! been for. So every nanosecond from the first packet to the last is counted once, whatever is
//! captured. ACKs and windows divide nothing; they are noted, because they tell how the time until
//! the next data is to be divided.

mod connects;
mod counted;
mod course;
mod finish;
mod pace;
mod spent;
mod tls;

pub use counted::Counted;
pub(super) use finish::CapturedSpan;
pub(crate) use spent::{Spent, Sums};
use tls::MAX_SMALL_TALK;

use crate::capture::segment::PayloadStart;
use course::Course;
use fullpipe_model::units::{Duration, Instant};
use pace::{BURST_FROM, Pace};

/// Data that follows other data of the same end within this time, or within two round trips, is
/// the same transfer, whatever it waited for: which limit that was, the verdict says.
const SILENCE_LEAST: Duration = Duration::from_millis(100);
/// An ACK this much later than the round trip was delayed (RFC 9293 section 3.8.6.3).
const DELAYED: Duration = Duration::from_millis(30);
/// Data that was held back for an ACK leaves this soon after it.
const AT_ONCE: Duration = Duration::from_millis(2);
/// A client that asks nothing for this long after an answer wants nothing, and neither does an end
/// that says nothing for this long between two small messages.
const IDLE_FROM: Duration = Duration::from_secs(10);
/// A message of so many segments or more fills queues: the way of its last byte takes longer than
/// the least round trip, and its acknowledgement tells how long.
const LONG_RUN: u8 = 16;

/// What the ledger needs of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct LedgerEvent {
    pub at: Instant,
    /// The end that sent it.
    pub from: u8,
    pub what: What,
    /// Its sender has everything that the other end sent before.
    pub has_all: bool,
    /// It acknowledges data that was not captured.
    pub has_unseen: bool,
    /// The window that it advertises is zero, or too little for the other end, which has nothing in
    /// flight; `None` where it advertises none.
    pub is_shut: Option<bool>,
    pub closes: Option<Closes>,
    /// How its data begins.
    pub start: PayloadStart,
    /// Its data ends a write (PSH).
    pub is_pushed: bool,
    /// Its data does not fill a segment.
    pub is_short: bool,
    /// The length of its data.
    pub length: u32,
}

/// What a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Syn,
    SynAck,
    /// New data.
    Data,
    /// Data sent again.
    Again {
        by_timer: bool,
    },
    /// A keep-alive, which the other end has to answer.
    KeepAlive,
    /// Nothing of these: an ACK, a window, a probe of one.
    Ack,
}

/// How a segment closes the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closes {
    Fin,
    Reset,
}

/// What is known of the path, by end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lags {
    /// The round trip between the capture point and each end.
    pub to: [Duration; 2],
    /// The round trip between the ends, by the handshake.
    pub whole: Option<Duration>,
    /// The end that opened the connection.
    pub client: u8,
    /// Whether the handshake was captured: else nothing is known of the time before.
    pub from_handshake: bool,
}

impl Lags {
    fn rtt(&self) -> Duration {
        self.whole.unwrap_or(self.to[0].saturating_add(self.to[1]))
    }

    fn silence(&self) -> Duration {
        SILENCE_LEAST.max(self.rtt().saturating_mul(2))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LedgerPhase {
    /// Nothing was seen yet.
    #[default]
    New,
    SynSent,
    SynAnswered,
    Open,
    Closed,
}

/// The account of one connection while it is open. Many connections are open at once, so what most
/// of them never need is in a box.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    /// Time is counted up to here.
    at: Instant,
    sums: Sums,
    rare: Option<Box<Rare>>,
    /// How long after `at` everything that the speaker sent was acknowledged, in µs, or with
    /// [`PARTLY`] some of it last; [`NEVER`] where nothing was.
    acked: u32,
    requests: u32,
    turns: u32,
    /// Segments of data since the speaker began, up to [`LONG_RUN`].
    run: u8,
    phase: LedgerPhase,
    /// The end that sent data last, or [`NOBODY`].
    speaker: u8,
    /// [`PUSHED`], [`PAID`], [`UNSURE`], and those of [`tls`].
    flags: u8,
    /// How fast the data of each end arrives.
    pace: [Pace; 2],
}

const NEVER: u32 = u32::MAX;
const PARTLY: u32 = 1 << 31;
const NOBODY: u8 = 2;
/// The last data ends a write.
const PUSHED: u8 = 1;
/// Most of a round trip was paid before the client asked.
const PAID: u8 = 2;
/// What the client sent last asks for something only if it is answered: a goodbye before it closes,
/// or a few encrypted bytes. It is not among [`Ledger::requests`] yet.
const UNSURE: u8 = 128;

impl Ledger {
    /// The account of a connection whose first packet was captured at `at`; whether the order of
    /// its time is kept, too.
    pub fn new(at: Instant, keeps_order: bool) -> Self {
        Ledger {
            at,
            sums: Sums::default(),
            rare: keeps_order.then(|| Box::new(Rare::in_order())),
            acked: NEVER,
            requests: 0,
            turns: 0,
            run: 0,
            phase: LedgerPhase::New,
            speaker: NOBODY,
            flags: 0,
            pace: [Pace::default(); 2],
        }
    }
}

/// What most connections never need.
#[derive(Debug, Clone, Default)]
struct Rare {
    /// Since when a window is shut, and at which end.
    shut: Option<(Instant, u8)>,
    /// How much of the time since `at` a window was shut.
    was_shut: Duration,
    /// Timeouts and keep-alives of an end since the other was last heard, the time that was counted
    /// as timeouts, and the end.
    tries: u8,
    tries_by: u8,
    unheard: Duration,
    /// How often the speaker went on after a pause without being answered.
    pauses: u8,
    met_old: bool,
    /// A keep-alive passed since the last data.
    is_kept_alive: bool,
    syn_retransmissions: u16,
    /// The time that is counted, in its order, where that was asked for.
    course: Option<Course>,
}

impl Rare {
    fn in_order() -> Self {
        Rare { course: Some(Course::default()), ..Rare::default() }
    }
}

/// Up to half an hour.
fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX).min(PARTLY - 1)
}

/// The index of an end.
const fn index(end: u8) -> usize {
    (end & 1) as usize
}

impl Ledger {
    /// Notes a segment that only goes on with the transfer before it. Returns whether that was all.
    #[inline]
    pub fn goes_on(&mut self, event: &LedgerEvent) -> bool {
        let is_plain = self.phase == LedgerPhase::Open
            && self.rare.as_deref().is_none_or(|rare| rare.shut.is_none() && rare.tries == 0)
            && event.is_shut != Some(true)
            && event.closes.is_none()
            && !event.has_unseen;
        if !is_plain {
            return false;
        }
        match event.what {
            What::Data if self.speaker == event.from => {
                let time = event.at.since(self.at);
                if time > DELAYED {
                    return false;
                }
                self.spend(Spent::Transfer(event.from), time);
                if (BURST_FROM..LONG_RUN).contains(&self.run) {
                    self.pace[index(event.from)].see(time, event.length);
                }
                self.said(event);
                true
            }
            What::Ack => {
                self.acknowledges(event);
                true
            }
            _ => false,
        }
    }

    /// Notes any other segment.
    pub fn see(&mut self, event: &LedgerEvent, lags: Lags) {
        match self.phase {
            LedgerPhase::New | LedgerPhase::SynSent | LedgerPhase::SynAnswered => {
                self.connects(event, lags)
            }
            LedgerPhase::Open => self.talks(event, lags),
            LedgerPhase::Closed => self.ends(event, lags),
        }
    }

    /// Counts time after what is counted.
    fn spend(&mut self, what: Spent, time: Duration) {
        self.sums.add(what, time);
        if let Some(course) = self.course() {
            course.add(what, time);
        }
        self.at = self.at + time;
    }

    /// Calls up to `most` of the time that was spent on `from` something else.
    fn shift(&mut self, from: Spent, to: Spent, most: Duration) {
        self.sums.shift(from, to, most);
        if let Some(course) = self.course() {
            course.shift(from, to, most);
        }
    }

    fn course(&mut self) -> Option<&mut Course> {
        self.rare.as_mut().and_then(|rare| rare.course.as_mut())
    }

    /// Counts all the time up to `at`.
    fn spend_all(&mut self, what: Spent, at: Instant) {
        self.spend(what, at.since(self.at));
    }

    /// The end that sent data last.
    fn speaker(&self) -> Option<u8> {
        (self.speaker != NOBODY).then_some(self.speaker)
    }

    fn is_kept_alive(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.is_kept_alive)
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn talks(&mut self, event: &LedgerEvent, lags: Lags) {
        let LedgerEvent { at, from, what, .. } = *event;
        self.heard(from);
        match what {
            What::Data => {
                self.data(event, lags);
                self.said(event);
            }
            What::Again { by_timer } => self.again(event, by_timer, lags),
            What::KeepAlive => {
                self.tries(from, Duration::ZERO);
                self.rare().is_kept_alive = true;
            }
            What::Ack if event.has_unseen && self.speaker != from => {
                let silence = at.since(self.at);
                let is_long = silence > lags.silence();
                let spent = if is_long { Spent::NotCaptured } else { Spent::Transfer(1 - from) };
                self.spend(spent, silence);
                self.acked = 0;
            }
            What::Ack | What::Syn | What::SynAck => self.acknowledges(event),
        }
        self.window(event);
        if event.closes.is_some() {
            self.ended(at, Some(from), lags);
            self.phase = LedgerPhase::Closed;
        }
    }

    /// Notes whether the window is shut that an end advertises.
    fn window(&mut self, event: &LedgerEvent) {
        let shut = self.rare.as_ref().and_then(|rare| rare.shut);
        match (event.is_shut, shut) {
            (Some(true), None) => self.rare().shut = Some((event.at, event.from)),
            (Some(false), Some((since, by))) if by == event.from => {
                let time = event.at.since(since.max(self.at));
                let rare = self.rare();
                rare.shut = None;
                rare.was_shut = rare.was_shut.saturating_add(time);
            }
            _ => {}
        }
    }

    /// How long a window was shut since time was last counted, where that is worth telling.
    fn shut_until(&self, at: Instant, lags: Lags) -> Duration {
        let Some(rare) = &self.rare else { return Duration::ZERO };
        let now = rare.shut.map_or(Duration::ZERO, |(since, _)| at.since(since.max(self.at)));
        let shut = rare.was_shut.saturating_add(now).min(at.since(self.at));
        if shut > lags.silence() { shut } else { Duration::ZERO }
    }

    /// An end was heard: what the other tried is answered.
    fn heard(&mut self, from: u8) {
        if let Some(rare) = self.rare.as_mut().filter(|rare| rare.tries_by != from) {
            (rare.unheard, rare.tries) = (Duration::ZERO, 0);
        }
    }

    /// An end tries again to be heard, after this time.
    fn tries(&mut self, from: u8, time: Duration) {
        self.heard(from);
        let rare = self.rare();
        rare.tries_by = from;
        rare.tries = rare.tries.saturating_add(1);
        rare.unheard = rare.unheard.saturating_add(time);
    }

    /// Notes whether the speaker was acknowledged.
    fn acknowledges(&mut self, event: &LedgerEvent) {
        if self.speaker != event.from && self.until_acked().is_none() {
            let partly = if event.has_all { 0 } else { PARTLY };
            self.acked = micros(event.at.since(self.at)) | partly;
        }
    }

    /// How long after the last data everything was acknowledged, if it was.
    fn until_acked(&self) -> Option<Duration> {
        (self.acked & PARTLY == 0).then(|| Duration::from_micros(self.acked.into()))
    }

    /// How long after the last data some of it was still on its way: when it was acknowledged
    /// last.
    fn until_arrived(&self) -> Option<Duration> {
        (self.acked != NEVER).then(|| Duration::from_micros((self.acked & !PARTLY).into()))
    }

    /// Data was sent: what is acknowledged from now on is later.
    fn said(&mut self, event: &LedgerEvent) {
        self.run = self.run.saturating_add(1).min(LONG_RUN);
        let is_more = self.run > 1 && event.length > MAX_SMALL_TALK;
        if is_more && self.speaker == event.from {
            self.did_ask();
        }
        self.acked = NEVER;
        self.flags = self.flags & !PUSHED | if event.is_pushed { PUSHED } else { 0 };
        if let Some(rare) = &mut self.rare {
            (rare.was_shut, rare.is_kept_alive) = (Duration::ZERO, false);
        }
    }

    fn data(&mut self, event: &LedgerEvent, lags: Lags) {
        let LedgerEvent { at, from, .. } = *event;
        // The first segment of an answer is longer than those that tell the round trip.
        let way = lags.to[index(from)].saturating_add(self.pace[index(from)].time_of(event.length));
        match self.speaker() {
            Some(speaker) if speaker == from => self.same(event, lags),
            Some(_) if event.has_all => {
                self.pace[index(from)].begins(event.length);
                // What left at once was still on its way. The ACK of a short message may have been
                // delayed, and one that was captured where it was made tells nothing of the path.
                let is_far = lags.to[index(from)].saturating_mul(2) >= lags.rtt();
                let arrived = self.until_arrived().filter(|_| is_far).unwrap_or(way);
                let more = arrived.saturating_sub(way).min(at.since(self.at));
                if self.run >= LONG_RUN || more < DELAYED {
                    self.spend(Spent::Transfer(1 - from), more);
                }
                self.answers(at, from, way, lags);
                self.speaks(event, lags);
            }
            // It had not heard the other end yet: both send at a time.
            Some(_) => self.spend_all(Spent::Transfer(from), at),
            None => {
                if !lags.from_handshake {
                    self.spend_all(Spent::Transfer(from), at);
                } else if from == lags.client {
                    self.spend_all(Spent::Thinks(from), at);
                } else {
                    self.answers(at, from, way, lags);
                }
                self.speaks(event, lags);
            }
        }
    }

    /// An end begins to speak.
    fn speaks(&mut self, event: &LedgerEvent, lags: Lags) {
        let from = event.from;
        (self.speaker, self.run) = (from, 0);
        if let Some(rare) = &mut self.rare {
            rare.pauses = 0;
        }
        if from == lags.client && !self.shakes_hands(event.start) {
            let is_sure = !self.may_be_small_talk(event);
            self.flags = self.flags & !UNSURE | if is_sure { 0 } else { UNSURE };
            self.requests = self.requests.saturating_add(is_sure.into());
        }
    }

    /// Divides the time from the last data of one end to the first of the other, which has it all,
    /// by how long the way takes.
    fn answers(&mut self, at: Instant, from: u8, way: Duration, lags: Lags) {
        self.spend(Spent::WindowShut(1 - from), self.shut_until(at, lags));
        let path = at.since(self.at).min(way);
        self.spend(self.way_to(from), path);
        let thought = at.since(self.at);
        let is_client = from == lags.client;
        let is_idle = is_client && (thought >= IDLE_FROM || self.is_kept_alive());
        self.spend(if is_idle { Spent::Idle } else { Spent::Thinks(from) }, thought);
        let has_paid = path.saturating_mul(2) >= lags.rtt();
        if is_client {
            self.flags = self.flags & !PAID | if has_paid { PAID } else { 0 };
        } else if !self.has_only_finished() {
            self.did_ask();
            let paid = has_paid || self.flags & PAID != 0;
            if !self.is_in_tls() {
                self.turns = self.turns.saturating_add((paid || self.turns == 0).into());
            } else if paid || self.tls_turns() == 0 {
                self.pays_tls_turn();
            }
            self.flags &= !PAID;
        }
    }

    /// Divides the time between two segments of the same end.
    fn same(&mut self, event: &LedgerEvent, lags: Lags) {
        let LedgerEvent { at, from, .. } = *event;
        let (reader, silence) = (1 - from, at.since(self.at));
        let until_acked = self.until_acked();
        self.spend(Spent::WindowShut(reader), self.shut_until(at, lags));
        if let Some(until_acked) = until_acked {
            let late = until_acked.saturating_sub(lags.to[index(reader)]);
            let since = silence.saturating_sub(until_acked).saturating_sub(lags.to[index(from)]);
            if late >= DELAYED && since <= AT_ONCE && event.is_short {
                self.spend(Spent::DelayedAck(reader), late.min(at.since(self.at)));
            } else if since > lags.silence() {
                // Between small messages there is nothing to say; in a long one there is.
                let is_idle = since >= IDLE_FROM && self.run < LONG_RUN;
                let is_idle = is_idle || self.is_kept_alive();
                // After its session tickets a server begins its answer.
                let is_answer = from != lags.client && self.has_sent_tickets_only();
                let spent = match (is_answer, is_idle) {
                    (true, _) => Spent::Thinks(from),
                    (false, true) => Spent::Idle,
                    (false, false) => Spent::Paused(from),
                };
                if !is_answer {
                    // What came before the pause is the transfer's.
                    let left = at.since(self.at);
                    self.spend(Spent::Transfer(from), left.saturating_sub(since));
                    let rare = self.rare();
                    rare.pauses = rare.pauses.saturating_add(1);
                }
                self.spend_all(spent, at);
            }
        }
        self.spend_all(Spent::Transfer(from), at);
    }

    /// Data was sent again.
    fn again(&mut self, event: &LedgerEvent, by_timer: bool, lags: Lags) {
        let LedgerEvent { at, from, .. } = *event;
        self.spend(Spent::WindowShut(1 - from), self.shut_until(at, lags));
        let time = at.since(self.at);
        self.spend(if by_timer { Spent::Timeout } else { Spent::Recovery }, time);
        if by_timer {
            self.tries(from, time);
        }
        if let Some(rare) = &mut self.rare {
            rare.was_shut = Duration::ZERO;
        }
        // Whoever has heard all that the other end said begins anew: the first copy was lost before
        // it was captured.
        if self.speaker == NOBODY || (self.speaker != from && event.has_all) {
            self.speaks(event, lags);
        }
        // What the other end sent before stays acknowledged, at the time that is now counted.
        let stays = self.speaker != from && self.until_acked().is_some();
        self.acked = if stays { 0 } else { NEVER };
    }

    /// What follows a FIN or RST: more data of the other end, or the rest of the close.
    fn ends(&mut self, event: &LedgerEvent, lags: Lags) {
        match event.what {
            What::Data if event.closes != Some(Closes::Reset) => {
                self.data(event, lags);
                self.said(event);
            }
            What::Again { by_timer } => self.again(event, by_timer, lags),
            What::Syn => {
                // Some systems try again where they were refused.
                let is_refused = self.speaker == NOBODY;
                let spent = if is_refused { Spent::Refused } else { Spent::SynMetOldConnection };
                self.spend_all(spent, event.at);
                self.phase = LedgerPhase::SynSent;
            }
            _ => {
                self.heard(event.from);
                self.acknowledges(event);
                if event.closes.is_some() {
                    self.spend_all(Spent::Closing, event.at);
                }
            }
        }
    }
}
