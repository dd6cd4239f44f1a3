//! The account: where all the time of a connection went, from its first packet to its last, or to
//! the end of the capture where somebody still waits.
//!
//! A verdict ([`crate::limit`]) says what held the data between its first and its last byte. People
//! ask what they waited for, and most of that is often outside: a SYN that was lost, a server that
//! thinks, two hundred round trips paid one after the other, a peer that is gone. Here every
//! nanosecond belongs to one [`AccountPart`]: who had it ([`Owner`]) and for what ([`Cause`]). The
//! parts sum to [`Account::time`].

mod live;
mod parts;
mod spans;

pub use live::{LiveAccount, silence, waits_for_answer};
pub use parts::{AccountPart, Cause, Owner};
pub use spans::AccountSpan;
pub(crate) use spans::spans;

use crate::connection::{Counted, Direction, Spent};
use crate::limit::{Candidate, Limit, Pace, Verdict};
use fullpipe_model::units::{Duration, column};
use parts::of_limit;
use serde::Serialize;

/// A link that is full for at least this fraction of a transfer's time carries what it can.
const FULL: f64 = 0.5;

/// The time that was counted for a cause outside the transfer.
pub(crate) fn spent_on(counted: &Counted, cause: Cause) -> Duration {
    let sums = counted.sums.iter();
    let meant = sums.filter(|(what, _)| Cause::of(*what).is_ok_and(|(_, one)| one == cause));
    total(meant.map(|(_, time)| time))
}

/// All these times.
fn total(times: impl Iterator<Item = Duration>) -> Duration {
    times.fold(Duration::ZERO, Duration::saturating_add)
}

/// What lies behind the limits of one direction's data, and changes who had the time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behind {
    /// Segments above a size are lost.
    pub loses_by_size: bool,
    /// The sender takes the receive window for smaller than it is.
    pub shrinks_window: bool,
    /// The client sets the window above TCP, whichever way the data goes.
    pub window_is_the_clients: bool,
    /// It is the messages that grant what the other end may send, whose data that window holds.
    pub grants: bool,
    /// The programs were silent because other connections of theirs moved data meanwhile.
    pub accompanies: bool,
}

/// Who had the time that was counted for this, and for what, with what lies behind it; the
/// direction of the data where the verdict has to say that.
fn whose(what: Spent, behind: [Behind; 2]) -> Result<(Owner, Cause), Direction> {
    let (owner, cause) = Cause::of(what)?;
    Ok(if behind.iter().any(|behind| behind.loses_by_size) {
        cause.by_size(owner)
    } else if behind.iter().any(|behind| behind.accompanies) {
        cause.beside_others(owner)
    } else {
        (owner, cause)
    })
}

/// Where all the time of a connection went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// From the first packet to the last, or to the end of the capture where somebody still waits.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// What the remedies of all parts would give back.
    #[serde(rename = "lost_us", with = "column::micros")]
    pub lost: Duration,
    /// How long somebody had waited when the capture ended; `None` where nobody did.
    #[serde(rename = "last_wait_us", with = "column::micros_optional")]
    pub last_wait: Option<Duration>,
    /// Whether it was captured from its handshake on: else the time before is not known.
    pub from_handshake: bool,
    /// How often a SYN or SYN-ACK was sent again.
    pub syn_retransmissions: u64,
    /// How often the client asked: it sent data at the start, or after data of the server.
    pub requests: u64,
    /// Round trips that were paid one after another for questions and answers.
    pub turns: u64,
    /// Round trips of the handshake of TLS.
    pub tls_turns: u64,
    /// The time, divided; the longest first.
    pub parts: Vec<AccountPart>,
}

impl Account {
    /// Divides the time. `verdicts` are what held the client's data, then the server's, and
    /// `behind` what lies behind that.
    pub(crate) fn new(
        counted: &Counted,
        verdicts: [Option<&Verdict>; 2],
        behind: [Behind; 2],
    ) -> Self {
        // Which direction's data was sent again is not counted.
        let mut held = verdicts.into_iter().flatten().map(Verdict::limited_by);
        let is_link_full = held.clone().any(|one| one.limit == Limit::Link)
            && held.all(|one| match one.limit {
                Limit::Link => one.share >= FULL,
                limit => limit == Limit::Unknown,
            });
        let mut parts = AccountParts::default();
        for (what, time) in counted.sums.iter() {
            match whose(what, behind) {
                Ok((owner, cause)) => {
                    let turns = match what {
                        Spent::Tls => Some(counted.tls_turns.into()),
                        // One round trip of questions has to be paid, to the server.
                        Spent::Turn(0) => None,
                        _ => Some(counted.turns),
                    };
                    let lost = match cause {
                        // What is sent again has its turn on a full link like what is sent first.
                        Cause::Recovery if is_link_full => Duration::ZERO,
                        cause => cause.lost(time, turns),
                    };
                    parts.add(AccountPart { owner, cause, direction: None, time, lost });
                }
                Err(direction) => {
                    let end = match direction {
                        Direction::ClientToServer => 0,
                        Direction::ServerToClient => 1,
                    };
                    let [held, other] = [end, 1 - end]
                        .map(|end| verdicts[end].map(HeldTime::of).unwrap_or_default());
                    let mut left = time;
                    if behind[end].grants {
                        // While no more than a grant is on its way, the data waits that it is for.
                        let (data, of_data) =
                            (direction.reversed(), Spent::Transfer(1 - end as u8));
                        let waits = other.left_of_window(counted.sums.of(of_data)).min(time);
                        parts.held(Limit::ApplicationWindow, data, waits, behind[1 - end], true);
                        left = left.saturating_sub(waits);
                    }
                    transfer(&mut parts, direction, left, held, behind[end]);
                }
            }
        }
        let AccountParts(mut parts) = parts;
        parts.sort_by_key(|part| std::cmp::Reverse(part.time));
        Account {
            time: total(parts.iter().map(|part| part.time)),
            lost: total(parts.iter().map(|part| part.lost)),
            last_wait: counted.waiting,
            from_handshake: counted.from_handshake,
            syn_retransmissions: counted.syn_retransmissions.into(),
            requests: counted.requests.into(),
            turns: counted.turns.into(),
            tls_turns: counted.tls_turns.into(),
            parts,
        }
    }

    /// The part that lost most; the longest, where no part lost a tenth of the time. What one
    /// program does slowly is one part, whether it holds back or comes to a stop: it is told as
    /// what took longer.
    pub fn first(&self) -> Option<AccountPart> {
        let mut together = AccountParts::default();
        for part in &self.parts {
            let kin = together.0.iter_mut().find(|one| one.is_kin_of(part));
            match kin {
                Some(one) => one.absorb(part),
                None => together.0.push(*part),
            }
        }
        let most = together.0.iter().rev().max_by_key(|part| part.lost);
        most.filter(|part| part.lost > Duration::ZERO)
            .filter(|part| part.lost.saturating_mul(10) >= self.time)
            .or(together.0.iter().rev().max_by_key(|part| part.time))
            .copied()
    }

    /// All the time that went for this.
    pub fn spent_on(&self, cause: Cause) -> Duration {
        self.sum(|part| part.cause == cause)
    }

    /// Whether this limit held data of this direction for most of the time that is claimed for it,
    /// and whether that is worth telling. A verdict sees only one direction between its first data
    /// and its last: time in which an end waited for its turn, or the peer was gone, is no limit's.
    /// Where most was waited for something else, less than a tenth of the time is not told.
    pub(crate) fn agrees(&self, direction: Direction, limit: Limit, claimed: Duration) -> bool {
        let held = self.sum(|part| match (part.cause, limit) {
            (Cause::Transfer(one), _) => part.direction == Some(direction) && one == limit,
            (Cause::Timeouts | Cause::Recovery | Cause::PathMtu, Limit::CongestionWindow(_)) => {
                true
            }
            // A verdict's time ends with the last acknowledgement.
            (Cause::Closing, _) => true,
            _ => false,
        });
        let is_elsewhere = self.first().is_some_and(|first| first.direction.is_none());
        let is_small = is_elsewhere && claimed.saturating_mul(10) < self.time;
        limit == Limit::Unknown || (held.saturating_mul(2) >= claimed && !is_small)
    }

    fn sum(&self, is_meant: impl Fn(&AccountPart) -> bool) -> Duration {
        total(self.parts.iter().filter(|part| is_meant(part)).map(|part| part.time))
    }
}

/// What held data, and for how long.
#[derive(Debug, Clone, Copy, Default)]
struct HeldTime<'a> {
    shares: &'a [Candidate],
    time: Duration,
    /// A clock wakes the writer, and each block was carried before the next: whatever else held
    /// some of them cost nothing.
    is_by_clock: bool,
}

impl<'a> HeldTime<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        let is_by_clock = matches!(verdict.pace, Some(Pace::Pauses { period: Some(_), .. }));
        HeldTime { shares: &verdict.shares, time: verdict.time, is_by_clock }
    }

    /// The limits that are not the sending application's.
    fn others(&self) -> impl Iterator<Item = &'a Candidate> + Clone {
        self.shares.iter().filter(|one| one.limit != Limit::SenderApplication)
    }

    /// What of the time of these limits is in `time`.
    fn fits(&self, time: Duration) -> f64 {
        let held = self.time.as_secs_f64() * self.others().map(|one| one.share).sum::<f64>();
        (time.as_secs_f64() / held).min(1.0)
    }

    /// The time that a window above TCP held the data and that is not in `time`.
    fn left_of_window(&self, time: Duration) -> Duration {
        let window = self.others().find(|one| one.limit == Limit::ApplicationWindow);
        let share = window.map_or(0.0, |one| one.share) * (1.0 - self.fits(time));
        Duration::from_secs_f64(self.time.as_secs_f64() * share)
    }
}

/// Divides the time in which data went one way by the limits that held it. The verdict is about a
/// longer time: what the application waited between its messages is in it, and is accounted for
/// elsewhere. So each other limit has the time that the verdict gives it, and the application what
/// is left.
fn transfer(
    parts: &mut AccountParts,
    direction: Direction,
    time: Duration,
    held: HeldTime<'_>,
    behind: Behind,
) {
    let (fits, others) = (held.fits(time), held.others());
    let HeldTime { shares, time: whole, is_by_clock } = held;
    let whole = whole.as_secs_f64();
    let mut of_limits: Vec<(Limit, Duration)> = Vec::with_capacity(shares.len());
    let mut left = time;
    for one in others {
        let part = Duration::from_secs_f64(whole * one.share * fits).min(left);
        left = left.saturating_sub(part);
        of_limits.push((one.limit, part));
    }
    let application =
        shares.iter().map(|one| one.limit).find(|one| *one == Limit::SenderApplication);
    let rest = application.or(of_limits.first().map(|(limit, _)| *limit)).unwrap_or_default();
    match of_limits.iter_mut().find(|(limit, _)| *limit == rest) {
        Some((_, part)) => *part = part.saturating_add(left),
        None => of_limits.push((rest, left)),
    }
    for (limit, time) in of_limits {
        parts.held(limit, direction, time, behind, !is_by_clock);
    }
}

/// Parts, each of another kind.
#[derive(Debug, Clone, Default)]
struct AccountParts(Vec<AccountPart>);

impl AccountParts {
    /// Adds time in which a limit held data of a direction, and which may be lost.
    fn held(
        &mut self,
        limit: Limit,
        direction: Direction,
        time: Duration,
        behind: Behind,
        may_be_lost: bool,
    ) {
        if time == Duration::ZERO {
            return;
        }
        let (owner, cause) = of_limit(limit, direction, behind);
        let lost = if may_be_lost { cause.lost(time, None) } else { Duration::ZERO };
        self.add(AccountPart { owner, cause, direction: Some(direction), time, lost });
    }

    fn add(&mut self, part: AccountPart) {
        let AccountPart { owner, cause, direction, .. } = part;
        let mut parts = self.0.iter_mut();
        match parts.find(|one| (one.owner, one.cause, one.direction) == (owner, cause, direction)) {
            Some(one) => one.absorb(&part),
            None => self.0.push(part),
        }
    }
}
