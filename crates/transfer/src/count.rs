//! How many connections a transfer uses: a pure controller. `get` and the relay use it.
//!
//! It starts with one, or with as many as it is told. Where the diagnosis says that the link or
//! this machine holds the data, more connections would not help, and it stays. A server that sends
//! no faster may limit the connection or all of them, which only a trial tells.
//! Otherwise it doubles the number as long as that pays: `n` connections more must bring at least
//! `PAYS` of what they would bring if each carried its share; a relay's carriers,
//! `CARRIERS_PAY`. If a number does not pay, it **goes
//! back** to the last that did, and looks for the knee between the two by halving the distance.
//! Where a window holds each connection, what they carry adds up without harm to anyone until the
//! path is full, so that more are allowed ([`Most::windows`]); the first trial is of
//! `WINDOWS_FIRST` connections, because a window is full after every round trip, whoever else
//! sends; and the search ends as soon as they carry less than `FULL_SHARE` of their share, which
//! is where the path is full. Every trial is a [`Step`], with its measured rate and its reason, so
//! the user reads when and why.
//!
//! **A search costs what the numbers before the right one do not carry**, so it hurries where the
//! answer is plain. After a few round trips (`QUICK_ROUNDS`) a number is accepted if its new
//! connections brought at least half of their share (`PAYS_PLAINLY`), and rejected if the rate
//! fell to `WORSE_PLAINLY`; that much less is seen even while the last of them begin. Everything
//! between the two is measured to the end, and so is every number of a relay, whose users pause
//! and start as they like.
//!
//! **A rate that fell so much is a server that resents the number**, and no knee is there to be
//! found by halving: each trial above it would cost as much again. So the search goes back, lets
//! the rate recover, and then goes up by single connections until the first that does not pay.
//!
//! **Order of calls.** [`Controller::push`] at every tick with the bytes that have arrived so far,
//! then [`Controller::target`]. After a change of the target the rate is not counted while
//! connections are made and their windows grow (`Controller::settling`).

use fullpipe_model::limit::{Cause, Limit};
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, column};
use serde::Serialize;
use std::collections::VecDeque;

/// The least share of their part that connections must bring.
const PAYS: f64 = 0.2;
/// The same for a relay's carriers, which cost a stranger's server nothing: what is found then
/// carries all but a twentieth of what any number would.
const CARRIERS_PAY: f64 = 0.05;
/// A rate this much lower than before is a regression and no noise.
const WORSE: f64 = 0.95;
/// With this share of their part connections pay, however short the measurement.
const PAYS_PLAINLY: f64 = 0.5;
/// A rate that fell to this share of the best one will not come back by itself.
const WORSE_PLAINLY: f64 = 0.6;
/// Not counted after a change.
const SETTLE: Duration = Duration::from_millis(600);
/// How long a number is measured, at least.
const MEASURE: Duration = Duration::from_millis(800);
/// Round trips of slow start and of a measurement.
const ROUNDS: u64 = 12;
/// Not counted after the last of more connections began, at least.
const QUICK_SETTLE: Duration = Duration::from_millis(400);
/// Two round trips until the request is answered, and five in which slow start grows from ten
/// segments (RFC 6928) to 320, which is more than most windows that hold a connection.
const QUICK_SETTLE_ROUNDS: u64 = 7;
/// How long a number is measured if the answer is plain, at least.
const QUICK: Duration = Duration::from_millis(300);
/// A window arrives in one burst a round trip, so that four of them are counted as three to five;
/// two connections that carry twice as much are then still seen to bring more.
const QUICK_ROUNDS: u64 = 4;
/// The first number after one, where a window holds the connection.
const WINDOWS_FIRST: usize = 4;
/// Connections that a window holds carry as much each, however many there are, until the path is
/// full: with less than this part of their share, more would only fill its queue.
const FULL_SHARE: f64 = 0.8;
/// From this number on, connections that a window holds become half as many more, and not twice as
/// many: what does not fit into the path is lost there.
const WINDOWS_DOUBLE: usize = 8;

/// Why a number of connections was taken or left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The first measurement.
    Start,
    /// More data arrived with it.
    Pays,
    /// It brought too little for what it costs others.
    BringsTooLittle,
    /// Less data arrived with it.
    Worse,
    /// The diagnosis says that more connections cannot help.
    Diagnosis,
    /// The server refused it.
    Refused,
}

/// A number of connections that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Step {
    /// When it was decided, since the body began.
    #[serde(rename = "at_us", serialize_with = "column::micros::serialize")]
    pub at: Duration,
    /// How many connections.
    pub connections: usize,
    /// What they brought together; `None` if they were not measured.
    #[serde(rename = "rate_bps", serialize_with = "column::rate_optional::serialize")]
    pub rate: Option<Rate>,
    /// What was made of it.
    pub reason: Reason,
}

/// How many connections are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Most {
    /// Usually.
    pub any: usize,
    /// While a window holds each.
    pub windows: usize,
}

impl Most {
    /// Bounds in order, of at least one connection.
    fn checked(self) -> Most {
        let any = self.any.max(1);
        Most { any, windows: self.windows.max(any) }
    }

    fn under(self, windows: bool) -> usize {
        if windows { self.windows } else { self.any }
    }
}

/// The two spans of a trial.
#[derive(Debug, Clone, Copy)]
struct Spans {
    settles: Duration,
    measures: Duration,
}

impl Spans {
    fn new(settles: Duration, measures: Duration, rtt: Duration, rounds: [u64; 2]) -> Spans {
        let rounds = rounds.map(|n| rtt.saturating_mul(n).min(Duration::from_secs(5)));
        Spans { settles: settles.max(rounds[0]), measures: measures.max(rounds[1]) }
    }
}

/// Chooses the number of connections.
#[derive(Debug, Clone)]
pub struct Controller {
    most: Most,
    target: usize,
    /// The best number so far, and its rate.
    best: Option<(usize, Rate)>,
    /// The smallest number that did not pay.
    too_many: Option<usize>,
    full: Spans,
    quick: Spans,
    changed: Instant,
    /// Whether the last change was to more connections.
    grew: bool,
    /// When as many as wanted ran for the first time after the change.
    reached: Option<Instant>,
    /// The number to try once the rate has recovered from one that was plainly worse.
    after_recovery: Option<usize>,
    /// Whether the search goes up by single connections.
    by_one: bool,
    /// Whether a window held the connections when they could last be judged.
    windows: bool,
    /// What had arrived at the last ticks, as long as a short measurement takes; only of a search
    /// that hurries.
    recent: VecDeque<(Instant, Bytes)>,
    hurries: bool,
    /// The least share of their part that more must bring.
    pays: f64,
    /// Where the measurement began.
    from: Option<(Instant, Bytes)>,
    steps: Vec<Step>,
    holds: bool,
    started: Instant,
}

impl Controller {
    /// At most `most` connections (at least one), on a path with this round-trip time.
    pub fn new(most: Most, rtt: Duration, now: Instant) -> Controller {
        let rounds = [QUICK_SETTLE_ROUNDS, QUICK_ROUNDS];
        let quick = Spans::new(QUICK_SETTLE, QUICK, rtt, rounds);
        let carriers = Controller::carriers(1, most, rtt, now);
        Controller { quick, hurries: true, pays: PAYS, ..carriers }
    }

    /// The same for a relay's carriers, from `first` on: every number is measured to the end.
    pub fn carriers(first: usize, most: Most, rtt: Duration, now: Instant) -> Controller {
        let most = most.checked();
        let full = Spans::new(SETTLE, MEASURE, rtt, [ROUNDS; 2]);
        Controller {
            most,
            target: first.clamp(1, most.windows),
            best: None,
            too_many: None,
            full,
            quick: full,
            changed: now,
            grew: false,
            reached: None,
            after_recovery: None,
            by_one: false,
            windows: false,
            recent: VecDeque::new(),
            hurries: false,
            pays: CARRIERS_PAY,
            from: None,
            steps: Vec::new(),
            holds: most.windows <= 1,
            started: now,
        }
    }

    /// How many connections there should be now.
    pub fn target(&self) -> usize {
        self.target
    }

    /// The numbers that were tried, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether the number will not change any more.
    pub fn is_over(&self) -> bool {
        self.holds
    }

    /// The transfer pauses: what is being measured says nothing, and begins anew.
    pub fn interrupt(&mut self, now: Instant) {
        (self.changed, self.reached, self.from) = (now, None, None);
    }

    /// The server refused a connection while `running` others were there.
    pub fn refused(&mut self, now: Instant, running: usize) {
        let running = running.max(1);
        self.note(now, self.target, None, Reason::Refused);
        self.most = Most { any: running, windows: running };
        self.target = running;
        self.holds = true;
    }

    /// `arrived` bytes in all at `now`, while `running` connections fetch; `limit` is what the
    /// diagnosis says of them, where there is one.
    pub fn push(&mut self, now: Instant, arrived: Bytes, running: usize, limit: Option<Limit>) {
        if self.holds || self.recovers(now) {
            return;
        }
        if let Some(rate) = self.plain_collapse(now, arrived) {
            self.conclude(now, rate, limit);
            return;
        }
        let Some((since, before)) = self.from else {
            if !self.settling(now, running) {
                self.from = Some((now, arrived));
            }
            return;
        };
        let span = now.since(since);
        if span < self.quick.measures {
            return;
        }
        let rate = arrived.saturating_sub(before).per(span).unwrap_or(Rate::ZERO);
        if span < self.full.measures && !self.is_plain(rate, limit) {
            return;
        }
        self.conclude(now, rate, limit);
    }

    fn conclude(&mut self, now: Instant, rate: Rate, limit: Option<Limit>) {
        self.decide(now, rate, limit);
        self.changed = now;
        self.reached = None;
        self.from = None;
        self.recent.clear();
    }

    /// Whether the rate still recovers from a number that was plainly worse.
    fn recovers(&mut self, now: Instant) -> bool {
        let Some(next) = self.after_recovery else { return false };
        if now.since(self.changed) >= self.full.settles {
            self.after_recovery = None;
            self.target = next;
            self.grew = true;
            self.changed = now;
        }
        true
    }

    /// The rate since more connections began, if it is plainly worse: others that still begin will
    /// not mend it.
    fn plain_collapse(&mut self, now: Instant, arrived: Bytes) -> Option<Rate> {
        if !(self.hurries && self.grew) {
            return None;
        }
        self.recent.push_back((now, arrived));
        while self.recent.get(1).is_some_and(|(at, _)| now.since(*at) >= self.quick.measures) {
            self.recent.pop_front();
        }
        let (at, before) = *self.recent.front()?;
        let span = now.since(at);
        let (_, had) = self.best.filter(|_| span >= self.quick.measures)?;
        let rate = arrived.saturating_sub(before).per(span)?;
        (rate.as_f64() < had.as_f64() * WORSE_PLAINLY).then_some(rate)
    }

    /// Whether it is too early to measure. The first connection and those that stay of more get
    /// the full time: their windows may still grow, or have to recover.
    fn settling(&mut self, now: Instant, running: usize) -> bool {
        if running >= self.target {
            self.reached.get_or_insert(now);
        }
        let settles = if self.grew { self.quick.settles } else { self.full.settles };
        let is_settled = self.reached.is_some_and(|reached| now.since(reached) >= settles);
        // The file may have no piece left for the last of them.
        !is_settled && now.since(self.changed) < self.full.settles.saturating_mul(4)
    }

    /// Whether a short measurement is enough to decide.
    fn is_plain(&self, rate: Rate, limit: Option<Limit>) -> bool {
        let Some((best, had)) = self.best else { return is_steady(limit) };
        let gain = rate.as_f64() / had.as_f64().max(1.0);
        gain >= 1.0 + share(best, self.target, PAYS_PLAINLY) || gain < WORSE_PLAINLY
    }

    fn decide(&mut self, now: Instant, rate: Rate, limit: Option<Limit>) {
        let tried = self.target;
        self.windows = match limit {
            // The newest connections may hide it.
            None | Some(Limit::Unknown | Limit::CongestionWindow(Cause::SlowStart)) => self.windows,
            limit => is_window(limit),
        };
        match self.best {
            None => {
                self.best = Some((tried, rate));
                let reason = if more_helps(limit) { Reason::Start } else { Reason::Diagnosis };
                self.holds = reason == Reason::Diagnosis;
                self.note(now, tried, Some(rate), reason);
            }
            Some((best, had)) => {
                let share = share(best, tried, self.pays);
                let reason = if rate.as_f64() >= had.as_f64() * (1.0 + share) {
                    self.best = Some((tried, rate));
                    let full = had.as_f64() * (1.0 + self::share(best, tried, FULL_SHARE));
                    self.holds = self.hurries && self.windows && rate.as_f64() < full;
                    // What was worse before is not, after recovery.
                    self.too_many = self.too_many.filter(|too_many| *too_many > tried);
                    self.by_one &= self.too_many.is_some();
                    Reason::Pays
                } else {
                    self.too_many = Some(tried);
                    match rate.as_f64() < had.as_f64() * WORSE {
                        true => Reason::Worse,
                        false => Reason::BringsTooLittle,
                    }
                };
                self.note(now, tried, Some(rate), reason);
                if self.hurries && !self.by_one && rate.as_f64() < had.as_f64() * WORSE_PLAINLY {
                    self.by_one = true;
                    self.after_recovery = Some(best + 1);
                    self.target = best;
                    return;
                }
            }
        }
        let best = self.best.map_or(tried, |(best, _)| best);
        let next = self.next(tried, best);
        self.holds |= next.is_none();
        self.grew = next.is_some_and(|next| next > tried);
        self.target = if self.holds { best } else { next.unwrap_or(best) };
    }

    /// The number to try after `tried`, where `best` is the best so far; `None` if the knee is
    /// found.
    fn next(&self, tried: usize, best: usize) -> Option<usize> {
        let most = self.most.under(self.windows);
        let next = match self.too_many {
            Some(too_many) if self.by_one && tried == best => (best + 1).min(too_many - 1),
            Some(_) if self.by_one => best,
            None if best == 1 && self.windows => WINDOWS_FIRST.min(most),
            None if self.windows && best >= WINDOWS_DOUBLE => (best + best / 2).min(most),
            None => (best * 2).min(most),
            Some(too_many) => (best + too_many) / 2,
        };
        (next > best).then_some(next)
    }

    fn note(&mut self, now: Instant, connections: usize, rate: Option<Rate>, reason: Reason) {
        let at = now.since(self.started);
        self.steps.push(Step { at, connections, rate, reason });
    }
}

/// What more connections bring, as a share of what `best` carry, if each brings this part of its
/// own share.
fn share(best: usize, tried: usize, part: f64) -> f64 {
    part * (tried as f64 - best as f64) / best as f64
}

fn is_window(limit: Option<Limit>) -> bool {
    matches!(limit, Some(Limit::ReceiveWindow | Limit::SendBuffer))
}

/// Whether a limit holds the first connection after slow start, as far as its socket can tell. A
/// full link is none of them: its queue may still fill.
fn is_steady(limit: Option<Limit>) -> bool {
    is_window(limit) || limit == Some(Limit::SenderApplication)
}

/// Whether more connections can help against a limit.
pub(crate) fn more_helps(limit: Option<Limit>) -> bool {
    match limit {
        Some(Limit::Link | Limit::ReceiverApplication) => false,
        // Each has a window of its own.
        Some(Limit::ApplicationWindow) => true,
        // A server that sends no faster may mean the connection, or all of them: only a trial
        // tells.
        Some(Limit::SenderApplication) => true,
        Some(Limit::ReceiveWindow | Limit::SendBuffer | Limit::CongestionWindow(_)) => true,
        // Then the measurement decides.
        Some(Limit::Unknown) | None => true,
    }
}

#[cfg(test)]
mod tests;
