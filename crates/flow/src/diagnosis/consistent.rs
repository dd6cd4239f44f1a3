//! What a verdict may say beside the facts of its own connection. A verdict that contradicts them
//! becomes unknown here, before anybody reads it, so that no table, sentence or remedy repeats it.
//!
//! * One direction of a connection alone shows no limit.
//! * A device that spoils the window scale makes the window the limit, as small as the sender takes
//!   it for.
//! * A window of the applications' own protocol, which the packets show, holds the sender wherever
//!   as much is under way as it allows.
//! * While the sender waits for its retransmission timer, or for an ACK that is delayed, no window,
//!   buffer or link holds it.

use super::subcause::{ApplicationWindow, DataSeen, PacketCause, SSH_CHANNEL, WindowHolds};
use crate::connection::{Connection, Direction, Warning};
use crate::frames::FlowControl;
use crate::limit::{Candidate, Cause, Interval, Limit, Pace, Verdict};
use fullpipe_model::limit::End;
use fullpipe_model::units::{Bytes, Rate, Window};

/// Waits that the packets show for more than this part of the time are what limited the transfer.
const MOST: f64 = 0.5;
const LOSS: Limit = Limit::CongestionWindow(Cause::Loss);
/// Shares of a limit and of a wait that excludes it may add up to this much more than the whole:
/// both are measured by intervals of a round trip.
const BESIDE: f64 = 0.1;

/// The window of a channel is used up where so much of it is under way: the rest was granted since.
const FIXED_CHANNEL: f64 = 0.7;

/// The verdict on the data of `direction`, as far as the connection's facts allow it.
pub(super) fn consistent(
    connection: &Connection,
    direction: Direction,
    verdict: Verdict,
) -> Verdict {
    if connection.warnings.contains(&Warning::OneSided) {
        return undecided(verdict);
    }
    let seen = DataSeen { connection, direction, verdict: Some(&verdict), sharing: None };
    if let Some(window) = seen.window_taken() {
        return with_window(&verdict, window);
    }
    if let Some(window) = seen.granted_window() {
        return with_grants(&verdict, window, seen.frames());
    }
    if verdict.policed.is_some() || verdict.pace == Some(Pace::OneSum) {
        // What is full drops what only timers repair, too.
        return verdict;
    }
    match refuted_by(connection, direction, &verdict) {
        None => proved(connection, direction, verdict),
        Some(PacketCause::Timeouts(_)) => {
            let told = with_waits_for_timers(&verdict);
            match refuted_by(connection, direction, &told) {
                // A policer, or a short queue, is waited for in the same way.
                None if verdict.limited_by().limit == Limit::Link => told,
                None => proved(connection, direction, told),
                Some(_) => undecided(verdict),
            }
        }
        Some(_) => undecided(verdict),
    }
}

/// The sub-cause, counted in the packets, beside which the verdict cannot be true.
fn refuted_by(
    connection: &Connection,
    direction: Direction,
    verdict: &Verdict,
) -> Option<PacketCause> {
    let seen = DataSeen { connection, direction, verdict: Some(verdict), sharing: None };
    seen.sub_causes().find(|cause| is_certain(*cause) && excludes(*cause, verdict))
}

/// The same verdict, sure where it names loss and the sender waited for its timer most of the time.
fn proved(connection: &Connection, direction: Direction, verdict: Verdict) -> Verdict {
    let seen = DataSeen { connection, direction, verdict: Some(&verdict), sharing: None };
    let is_proved = verdict.limited_by().limit == LOSS
        && seen
            .sub_causes()
            .any(|cause| matches!(cause, PacketCause::Timeouts(waits) if waits.part > MOST));
    if is_proved { verdict.with_proof() } else { verdict }
}

/// The same transfer, with the time in which the sender waited for its retransmission timer given
/// to loss: something was in flight and nothing of it arrived.
fn with_waits_for_timers(verdict: &Verdict) -> Verdict {
    replaced(verdict, |interval| {
        let mut interval = interval.clone();
        let waits = interval.evidence.goodput == Rate::ZERO
            && interval.evidence.in_flight > Bytes::ZERO
            && interval.limit() != Limit::Unknown;
        if waits {
            interval.candidates = vec![Candidate { limit: LOSS, share: 1.0 }];
        }
        interval
    })
}

/// The same transfer, held by a receive window of this size wherever nothing else but its own
/// program would have.
fn with_window(verdict: &Verdict, window: Bytes) -> Verdict {
    let held = replaced(verdict, |interval| {
        let mut interval = interval.clone();
        interval.evidence.window = Some(Window::new(window));
        if !matches!(interval.limit(), Limit::Link | Limit::CongestionWindow(_)) {
            interval.candidates = vec![Candidate { limit: Limit::ReceiveWindow, share: 1.0 }];
        }
        interval
    });
    held.with_proof()
}

/// The same transfer, held by a window of the applications wherever as much was under way as that
/// window allows. The sender's buffer held as much by then, so it was no bound before or after:
/// until then the congestion window grew, and from then on that window holds.
///
/// Where frames show when it held the data, that is exact, and nothing else is changed.
fn with_grants(
    verdict: &Verdict,
    window: ApplicationWindow,
    frames: Option<&FlowControl>,
) -> Verdict {
    const START: Limit = Limit::CongestionWindow(Cause::SlowStart);
    let holds = WindowHolds::of(&window, verdict, frames);
    let mut all = verdict.intervals.iter();
    let reached = all.find(|one| holds.in_interval(one)).map(|one| one.start);
    let held = replaced(verdict, |interval| {
        let mut interval = interval.clone();
        let is_after = reached.is_some_and(|reached| interval.start >= reached);
        let limit = match interval.limit() {
            _ if holds.in_interval(&interval) => Limit::ApplicationWindow,
            _ if window.waited.is_some() => return interval,
            Limit::SendBuffer if is_after => Limit::ApplicationWindow,
            Limit::SendBuffer => START,
            _ => return interval,
        };
        interval.candidates = vec![Candidate { limit, share: 1.0 }];
        interval
    });
    let is_first = held.limited_by().limit == Limit::ApplicationWindow;
    if is_first { held.with_proof() } else { held }
}

/// The same transfer as its sockets show it, held by the window of SSH's channel wherever nothing
/// of TCP did. At the sender, about as much has to be under way as that window allows.
pub(super) fn with_channel(verdict: &Verdict, here: End) -> Verdict {
    let least = FIXED_CHANNEL * SSH_CHANNEL.as_f64();
    let held = replaced(verdict, |interval| {
        let mut interval = interval.clone();
        let is_full = here == End::Receiver || interval.evidence.in_flight.as_f64() >= least;
        if is_full && leaves_room_above(interval.limit()) {
            let limit = Limit::ApplicationWindow;
            interval.candidates = vec![Candidate { limit, share: 1.0 }];
        }
        interval
    });
    let is_first = held.limited_by().limit == Limit::ApplicationWindow;
    if is_first { held.with_proof() } else { held }
}

/// The same transfer as its sockets show it, whose application asked for no more than this rate and
/// got it, while nothing waited on the path.
pub(super) fn with_asked_pace(verdict: &Verdict, rate: Rate) -> Verdict {
    let mut held = replaced(verdict, |interval| {
        let mut interval = interval.clone();
        if matches!(interval.limit(), Limit::Link | Limit::Unknown) {
            let limit = Limit::SenderApplication;
            interval.candidates = vec![Candidate { limit, share: 1.0 }];
        }
        interval
    })
    .with_proof();
    held.pace = Some(Pace::Even(rate));
    held
}

/// Whether nothing of TCP is known to hold the data, so that a window above TCP may.
pub(super) const fn leaves_room_above(limit: Limit) -> bool {
    matches!(limit, Limit::SenderApplication | Limit::SendBuffer | Limit::Unknown)
}

/// Whether a sub-cause is counted in the packets themselves, so that a verdict has to give way to
/// it and not the other way round.
fn is_certain(cause: PacketCause) -> bool {
    matches!(
        cause,
        PacketCause::Timeouts(_) | PacketCause::DelayedAck(_) | PacketCause::ApplicationWindow(_)
    )
}

/// Whether a sub-cause and the verdict cannot both be true: the time that the sub-cause took and
/// the time of the limits that it excludes are more than there was.
pub(super) fn excludes(cause: PacketCause, verdict: &Verdict) -> bool {
    const START: Limit = Limit::CongestionWindow(Cause::SlowStart);
    let (part, beside): (f64, &[Limit]) = match cause {
        PacketCause::Timeouts(one) => (one.part, &[LOSS, START]),
        PacketCause::IdleRestart(one) => (one.part, &[LOSS, START, Limit::SenderApplication]),
        PacketCause::DelayedAck(one) => (one.part, &[Limit::SenderApplication, Limit::SendBuffer]),
        // Proof, by the times at which it was waited for: the verdict has them already.
        PacketCause::ApplicationWindow(one) if one.waited.is_some() => return false,
        PacketCause::ApplicationWindow(one) => {
            (one.part, &[Limit::SenderApplication, Limit::ApplicationWindow])
        }
        PacketCause::NoAnswer(_)
        | PacketCause::PathMtu(_)
        | PacketCause::WindowScale(_)
        | PacketCause::Policer(_)
        | PacketCause::Sharing(_)
        | PacketCause::AckPath(_)
        | PacketCause::HostReordering(_)
        | PacketCause::Reordering(_) => return false,
    };
    let is_excluded =
        |held: &&Candidate| held.limit != Limit::Unknown && !beside.contains(&held.limit);
    let others: f64 = verdict.shares.iter().filter(is_excluded).map(|held| held.share).sum();
    part + others > 1.0 + BESIDE
}

/// The same transfer without an answer.
fn undecided(verdict: Verdict) -> Verdict {
    let mut blank = replaced(&verdict, |interval| Interval {
        candidates: vec![Candidate { limit: Limit::Unknown, share: 1.0 }],
        ..interval.clone()
    });
    blank.confidence = 0.0;
    blank
}

/// The same transfer with other answers for its intervals.
fn replaced(verdict: &Verdict, told: impl Fn(&Interval) -> Interval) -> Verdict {
    let is_shown_otherwise = !std::ptr::eq(verdict.shown(), verdict.intervals.as_slice());
    let shown = is_shown_otherwise.then(|| verdict.shown().iter().map(&told).collect());
    let intervals = verdict.intervals.iter().map(&told).collect();
    let mut other = Verdict::new(verdict.source, intervals).with_coverage(verdict.coverage);
    (other.trains, other.bursts) = (verdict.trains, verdict.bursts);
    other.traits = verdict.traits.clone();
    other.part_traits = verdict.part_traits.clone();
    match shown {
        Some(shown) => other.shown_as(shown),
        None => other,
    }
}
