//! A window inside the application: the sender stops after a fixed amount and goes on when the
//! peer's application answers, although the receive window is open and nothing was lost. SSH
//! channels (RFC 4254 section 5.2), HTTP/2 streams (RFC 9113 section 5.2) and SMB have such a
//! window; one request after another for blocks of one size is a window of one block.

use super::protocol_window::is_a_block;
use super::waited_window::WaitedWindow;
use super::{DataSeen, Granter, ProtocolWindow, SFTP_BLOCK};
use crate::capture::segment::ApplicationProtocol;
use crate::connection::GrantFacts;
use crate::frames::FlowControl;
use crate::limit::{Evidence, Interval, Limit, Verdict};
use fullpipe_model::units::{Bytes, Duration};

/// The least number of pauses that an answer ended, and the least fraction of all pauses.
const COUNT_LEAST: u32 = 8;
const OF_PAUSES: f64 = 0.8;
/// The least fraction of the time that they take.
const PART_LEAST: f64 = 0.2;
/// A bound is fixed where half of the intervals come to within this fraction of it.
const FIXED: f64 = 0.85;
const FIXED_IN: f64 = 0.5;
/// Another bound is open where no more than this fraction of it is used.
const OPEN: f64 = 0.8;
/// A receive window may be full for this fraction of the time at most.
const FULL_MOST: f64 = 0.05;
/// One segment retransmitted in so many pauses says nothing about them.
const OF_LOSS: u64 = 20;
/// What was sent beyond the grants that reach the bound differs by no more than this part of it.
const SPREAD_MOST: f64 = 0.04;
/// It varies less than what is in flight does: by this factor, in so many grants, where the latter
/// varies by so many segments.
const OF_FLIGHTS: f64 = 0.75;
const COMPARED_LEAST: u64 = 16;
const VARYING_LEAST: u64 = 8;
/// Or so many of the grants end a pause of the sender, and it varies no more than what is in
/// flight, or the protocol is known to have such a window.
const RELEASING_LEAST: f64 = 0.5;
/// Or most come to the same bound, and it varies no more than what is in flight, in a protocol that
/// is known to have such a window, of a size that programs have. (A program that sends whole frames
/// leaves a part of the window free now and then.)
const MOST: f64 = 0.75;
const CONSTANT: f64 = 0.025;
const MOST_OF_SFTP: f64 = 0.6;
const CONSTANT_OF_SFTP: f64 = 0.03;
const ABOUT_ROUND: f64 = 0.02;
/// Or a busy program, which has less under way now and then, and grants several messages' worth at
/// once: so many of the grants come to the bound, which varies by so much of what is in flight.
/// Where the protocol is HTTP/2, nearly all of them end a pause.
const BUSY_IN: f64 = 0.3;
const BUSY: f64 = 0.6;
const NEARLY_ALL: f64 = 0.9;
/// A request of SFTP's, or an answer, is 64 bytes or more with SSH's framing; of window messages
/// there are 10 to 14 bytes for as much data (OpenSSH 9.2, ten transfers of ssh, rsync and sftp).
const SAID_FOR_A_BLOCK: f64 = 40.0;
/// Where something else holds the data for most of the time, so many of the grants have to come to
/// the bound, to the byte or in such a protocol, and it varies by so much of what is in flight.
const SHARP_IN: f64 = 0.2;
const SHARP: f64 = 0.25;
const SHARP_OF_FIXED_IN: f64 = 0.15;
const SHARP_OF_FIXED: f64 = 0.5;
/// Or it is exact, and of such a size, with room for what a protocol adds to it. Whatever TCP holds
/// counts whole segments.
const EXACT: f64 = 0.002;
const ROUND: f64 = 0.005;
/// A round trip that is longer than the path's by this factor has a queue in it.
const QUEUE_LEAST: f64 = 1.1;
/// A window that frames show held an interval in which nothing was sent for so much of it, for want
/// of a grant: with more, as much more would have been sent.
const HELD_LEAST: f64 = 0.2;
/// Less is a message, which no window cuts.
const SEGMENTS_LEAST: u64 = 8;

/// Data that an application's own window held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApplicationWindow {
    /// How many times the sender stopped, or had sent all that was granted.
    pub count: u64,
    /// For how long it was held, in total.
    pub time: Duration,
    /// That time as a fraction of the whole transfer's, at most 1.
    pub part: f64,
    /// What may be sent beyond what the peer's application has taken.
    pub bound: Bytes,
    /// What one message of the peer grants more, where each came while data was under way.
    pub step: Option<Bytes>,
    /// The receive window at that time.
    pub window: Bytes,
    /// Which protocol's it is.
    pub protocol: ProtocolWindow,
    /// Whose program grants it.
    pub granter: Granter,
    /// Who waited for it, where the frames of HTTP/2 show that: then all of this is exact.
    pub waited: Option<WaitedWindow>,
}

impl ApplicationWindow {
    pub(super) fn of(seen: DataSeen<'_>) -> Option<Self> {
        Self::granted(seen).or_else(|| {
            let is_refuted = seen.frames().is_some_and(FlowControl::is_the_answer);
            if is_refuted { None } else { Self::by_pauses(seen) }
        })
    }

    /// By the frames of HTTP/2, which prove that its windows held the data, or that they did not;
    /// where those are not known, by what messages of the peer grant.
    pub(super) fn granted(seen: DataSeen<'_>) -> Option<Self> {
        let is_refuted = seen.frames().is_some_and(FlowControl::is_the_answer);
        Self::by_frames(seen).or_else(|| if is_refuted { None } else { Self::by_grants(seen) })
    }

    /// By the frames of HTTP/2: nothing was sent for want of a grant.
    fn by_frames(seen: DataSeen<'_>) -> Option<Self> {
        let verdict = seen.verdict?;
        let control = seen.frames()?;
        let most = control.most_waited()?;
        let part = seen.part(control.held).min(1.0);
        let windows = verdict.intervals.iter().filter_map(|one| one.evidence.window);
        let protocol = ProtocolWindow::Http2;
        (part >= PART_LEAST).then(|| ApplicationWindow {
            count: most.waits,
            time: control.held,
            part,
            bound: most.window,
            step: None,
            window: windows.max().map_or(Bytes::ZERO, |window| window.bytes()),
            protocol,
            granter: Granter::of(seen, protocol),
            waited: Some(WaitedWindow::of(seen, control, most)),
        })
    }

    /// By what was sent beyond each message of the peer: it comes to the same bound again and
    /// again, which nothing of TCP explains.
    fn by_grants(seen: DataSeen<'_>) -> Option<Self> {
        let verdict = seen.verdict?;
        let facts = seen.facts();
        let grants = facts.grants;
        let GrantFacts { count, at_bound, bound, step, spread, .. } = grants;
        let is_fixed = at_bound >= u64::from(COUNT_LEAST)
            && spread.extents.as_f64() <= SPREAD_MOST * bound.as_f64();
        let segment = seen.segment();
        let protocol = ProtocolWindow::of(seen, bound, Some(step));
        let granter = Granter::of(seen, protocol);
        let is_of_a_program = is_of_a_program(protocol, bound, (step, segment), granter);
        let is_granted = is_sharp(&grants, is_of_a_program, segment)
            || (protocol.is_fixed(bound) && is_sharper(&grants, segment))
            || is_of_a_busy_program(seen, protocol)
            || (at_bound as f64 >= FIXED_IN * count as f64
                && (protocol.is_usual(bound)
                    || is_granted(&grants, protocol, is_of_a_program, segment)));
        if !is_fixed || !is_granted || bound.get() < SEGMENTS_LEAST * segment {
            return None;
        }
        let window = open_window(verdict, bound)?;
        let holds = WindowHolds::new(verdict, bound.saturating_sub(step));
        let held = verdict.intervals.iter().filter(|one| holds.in_interval(one));
        let time = held.fold(Duration::ZERO, |sum, one| sum.saturating_add(one.length));
        let part = seen.part(time).min(1.0);
        (part >= PART_LEAST).then_some(ApplicationWindow {
            count: at_bound,
            time,
            part,
            bound,
            step: Some(step),
            window,
            protocol,
            granter,
            waited: None,
        })
    }

    /// By the sender's pauses of about a round trip, which answers of the peer end.
    fn by_pauses(seen: DataSeen<'_>) -> Option<Self> {
        let verdict = seen.verdict?;
        // There each answer is a request for something else: the account has those round trips.
        if seen.connection.protocol == Some(ApplicationProtocol::Http1) {
            return None;
        }
        let facts = seen.facts();
        let answers = facts.answers;
        let part = seen.part(answers.wait).min(1.0);
        let is_mostly = f64::from(answers.awaited) >= OF_PAUSES * f64::from(answers.pauses);
        if answers.awaited < COUNT_LEAST || !is_mostly || part < PART_LEAST {
            return None;
        }
        // Any other limit has evidence of its own.
        let limit = verdict.limited_by().limit;
        let may_be = matches!(limit, Limit::SendBuffer | Limit::SenderApplication | Limit::Unknown);
        let lost: u64 = verdict.intervals.iter().map(|one| one.evidence.retransmissions).sum();
        if !may_be || lost * OF_LOSS > answers.awaited.into() {
            return None;
        }
        let bound = fixed_bound(verdict)?;
        let window = open_window(verdict, bound)?;
        let segment = seen.segment();
        let protocol = ProtocolWindow::of(seen, bound, None);
        (bound.get() >= SEGMENTS_LEAST * segment).then_some(ApplicationWindow {
            count: answers.awaited.into(),
            time: answers.wait,
            part,
            bound,
            step: None,
            window,
            protocol,
            granter: Granter::of(seen, protocol),
            waited: None,
        })
    }
}

/// Where a window of the applications held the sender: all was sent, and neither loss nor a queue
/// that stands says otherwise.
#[derive(Debug, Clone, Copy)]
pub struct WindowHolds<'a> {
    /// What is under way just before the next grant.
    least: Bytes,
    /// The path's own round trip.
    path: Option<Duration>,
    /// What frames show, which is exact.
    frames: Option<&'a FlowControl>,
}

impl<'a> WindowHolds<'a> {
    fn new(verdict: &Verdict, least: Bytes) -> Self {
        let path = verdict.intervals.iter().filter_map(|one| one.evidence.rtt).min();
        WindowHolds { least, path, frames: None }
    }

    /// Of the window that was found beside this verdict, with the frames that show it.
    pub fn of(
        window: &ApplicationWindow,
        verdict: &Verdict,
        frames: Option<&'a FlowControl>,
    ) -> Self {
        let least = window.bound.saturating_sub(window.step.unwrap_or(Bytes::ZERO));
        let frames = frames.filter(|_| window.waited.is_some());
        WindowHolds { frames, ..Self::new(verdict, least) }
    }

    /// Whether it held the sender in this interval.
    pub fn in_interval(&self, interval: &Interval) -> bool {
        if let Some(frames) = self.frames {
            let held = frames.held_in(interval.start, interval.length);
            return held.as_secs_f64() >= HELD_LEAST * interval.length.as_secs_f64();
        }
        let Evidence { in_flight, retransmissions, rtt, .. } = interval.evidence;
        let has_queue = rtt
            .zip(self.path)
            .is_some_and(|(rtt, path)| rtt.as_secs_f64() > QUEUE_LEAST * path.as_secs_f64());
        in_flight.as_f64() >= FIXED * self.least.as_f64() && retransmissions == 0 && !has_queue
    }
}

/// Whether a bound that stays the same is of the applications, and not of TCP.
fn is_granted(
    grants: &GrantFacts,
    protocol: ProtocolWindow,
    is_of_a_program: bool,
    segment: u64,
) -> bool {
    let GrantFacts { count, at_bound, bound, spread, releasing, .. } = *grants;
    let [extents, flights] = [spread.extents, spread.flights].map(Bytes::as_f64);
    let is_compared = at_bound >= COMPARED_LEAST;
    let varies_less = is_compared
        && flights >= (VARYING_LEAST * segment) as f64
        && extents <= OF_FLIGHTS * flights;
    // A busy end asks for several blocks at once, and has fewer under way meanwhile.
    let is_sftp = matches!(protocol, ProtocolWindow::SftpRequests(_));
    let (most, constant) =
        if is_sftp { (MOST_OF_SFTP, CONSTANT_OF_SFTP) } else { (MOST, CONSTANT) };
    // Where neither varies, a send buffer that takes SFTP's equal blocks would look the same.
    let is_no_more = extents <= flights + segment as f64;
    let is_compared_to_flights = is_no_more && (flights > 0.0 || !is_sftp);
    let is_constant = is_compared
        && at_bound as f64 >= most * count as f64
        && extents <= constant * bound.as_f64()
        && is_no_more;
    varies_less
        || (releasing >= RELEASING_LEAST && (is_of_a_program || is_compared_to_flights))
        || (is_of_a_program && is_constant)
        || (is_round(bound, ROUND) && extents <= EXACT * bound.as_f64())
}

/// Whether the data stops at one amount again and again, while what is in flight then is never the
/// same, although something else holds it for most of the time.
fn is_sharp(grants: &GrantFacts, is_of_a_program: bool, segment: u64) -> bool {
    let GrantFacts { count, at_bound, bound, spread, .. } = *grants;
    let [extents, flights] = [spread.extents, spread.flights].map(Bytes::as_f64);
    at_bound >= COMPARED_LEAST
        && at_bound as f64 >= SHARP_IN * count as f64
        && flights >= (VARYING_LEAST * segment) as f64
        && extents <= SHARP * flights
        && (is_of_a_program || extents <= EXACT * bound.as_f64())
}

/// Whether a program whose protocol has such a window reaches it whenever it is quick enough.
fn is_of_a_busy_program(seen: DataSeen<'_>, protocol: ProtocolWindow) -> bool {
    let GrantFacts { count, at_bound, spread, releasing, .. } = seen.facts().grants;
    let [extents, flights] = [spread.extents, spread.flights].map(Bytes::as_f64);
    let has_one = match protocol {
        ProtocolWindow::SftpRequests(_) => has_message_for_each_block(seen),
        ProtocolWindow::Http2 => releasing >= NEARLY_ALL,
        _ => false,
    };
    has_one
        && at_bound >= COMPARED_LEAST
        && at_bound as f64 >= BUSY_IN * count as f64
        && flights >= (VARYING_LEAST * seen.segment()) as f64
        && extents <= BUSY * flights
}

/// Whether the other end says so much that it may ask for each of SFTP's blocks, or answer it. What
/// grants a channel's window is said for several blocks at once.
fn has_message_for_each_block(seen: DataSeen<'_>) -> bool {
    let said = seen.receiver_facts().unique_payload.as_f64();
    said * SFTP_BLOCK.as_f64() >= SAID_FOR_A_BLOCK * seen.facts().unique_payload.as_f64()
}

/// The same of a window that is never of another size: less has to be sharp.
fn is_sharper(grants: &GrantFacts, segment: u64) -> bool {
    let GrantFacts { count, at_bound, spread, .. } = *grants;
    let [extents, flights] = [spread.extents, spread.flights].map(Bytes::as_f64);
    at_bound >= COMPARED_LEAST
        && at_bound as f64 >= SHARP_OF_FIXED_IN * count as f64
        && flights >= (VARYING_LEAST * segment) as f64
        && extents <= SHARP_OF_FIXED * flights
}

/// Whether a protocol is known to have such a window, of a size that programs have. One message
/// grants `step` more.
fn is_of_a_program(
    protocol: ProtocolWindow,
    bound: Bytes,
    (step, segment): (Bytes, u64),
    granter: Granter,
) -> bool {
    match protocol {
        ProtocolWindow::SftpRequests(_) => is_a_block(step, segment),
        ProtocolWindow::SshChannel(_) => is_round(bound, ABOUT_ROUND),
        ProtocolWindow::Http2 => {
            is_round(bound, ABOUT_ROUND) || granter.like(protocol, bound).next().is_some()
        }
        ProtocolWindow::Of(_) | ProtocolWindow::Unknown => false,
    }
}

/// Whether this is a power of two, within a part of it.
fn is_round(bound: Bytes, within: f64) -> bool {
    let log = bound.get().max(1).ilog2().min(61);
    [log, log + 1].into_iter().any(|log| {
        let power = (1_u64 << log) as f64;
        (bound.as_f64() - power).abs() <= within * power
    })
}

/// The amount in flight to which intervals come back again and again. `None` where it varies.
fn fixed_bound(verdict: &Verdict) -> Option<Bytes> {
    let intervals = verdict.intervals.iter();
    let mut flights: Vec<Bytes> = intervals.map(|one| one.evidence.in_flight).collect();
    flights.retain(|flight| *flight > Bytes::ZERO);
    flights.sort_unstable();
    let bound = *flights.get(flights.len().saturating_sub(1) * 9 / 10)?;
    let at = flights.iter().filter(|flight| flight.as_f64() >= FIXED * bound.as_f64()).count();
    // More in flight now and then would be no bound; the first flight may be larger.
    let most = flights.get(flights.len().saturating_sub(1) * 95 / 100)?.as_f64();
    let is_fixed = most <= bound.as_f64() / FIXED;
    (is_fixed && at as f64 >= FIXED_IN * flights.len() as f64).then_some(bound)
}

/// The median receive window, if it had room all of the time.
fn open_window(verdict: &Verdict, bound: Bytes) -> Option<Bytes> {
    let intervals = verdict.intervals.iter();
    let full = intervals.clone().map(|one| one.evidence.window_full * one.length.as_secs_f64());
    let full: f64 = full.sum();
    let windows = intervals.filter_map(|one| one.evidence.window);
    let mut windows: Vec<Bytes> = windows.map(|window| window.bytes()).collect();
    windows.sort_unstable();
    let window = *windows.get(windows.len() / 2)?;
    let is_open = full <= FULL_MOST * verdict.time.as_secs_f64();
    (is_open && bound.as_f64() <= OPEN * window.as_f64()).then_some(window)
}
