//! How many connections a transfer uses: a pure controller. `get` and the relay use it.
//!
//! It starts with one, or with as many as it is told. Where the diagnosis says that the link, the
//! server or this machine holds the data, more connections would not help, and it stays.
//! Otherwise it doubles the number as long as that pays: `n` connections more must bring at least
//! [`PAYS`] of what they would bring if each carried its share. If a number does not pay, it
//! **goes back** to the last that did, and looks for the knee between the two by halving the
//! distance. Where a window holds each connection, what they carry adds up without harm to anyone
//! until the path is full, so that more are allowed ([`Most::windows`]); and the first trial is of
//! [`WINDOWS_FIRST`] connections, because a window is full after every round trip, whoever else
//! sends. Every trial is a [`Step`], with its measured rate and its reason, so the user reads when
//! and why.
//!
//! **A search costs what the numbers before the right one do not carry**, so it hurries where the
//! answer is plain. After a few round trips ([`QUICK_ROUNDS`]) a number is accepted if its new
//! connections brought at least half of their share ([`PAYS_PLAINLY`]), and rejected if the rate
//! fell to [`WORSE_PLAINLY`]. Everything between the two is measured to the end, and so is every
//! number of a relay, whose users pause and start as they like.
//!
//! **Order of calls.** [`Controller::push`] at every tick with the bytes that have arrived so far,
//! then [`Controller::target`]. After a change of the target the rate is not counted while
//! connections are made and their windows grow ([`Controller::settling`]).

use fullpipe_model::limit::Limit;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, column};
use serde::Serialize;

/// The least share of their part that connections must bring.
const PAYS: f64 = 0.2;
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
pub(crate) struct Most {
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

    fn under(self, limit: Option<Limit>) -> usize {
        match limit {
            limit if is_window(limit) => self.windows,
            _ => self.any,
        }
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
pub(crate) struct Controller {
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
    /// Where the measurement began.
    from: Option<(Instant, Bytes)>,
    steps: Vec<Step>,
    holds: bool,
    started: Instant,
}

impl Controller {
    /// At most `most` connections (at least one), on a path with this round-trip time.
    pub(crate) fn new(most: Most, rtt: Duration, now: Instant) -> Controller {
        let rounds = [QUICK_SETTLE_ROUNDS, QUICK_ROUNDS];
        let quick = Spans::new(QUICK_SETTLE, QUICK, rtt, rounds);
        Controller { quick, ..Controller::starting_at(1, most, rtt, now) }
    }

    /// The same from `first` connections on, and every number is measured to the end.
    pub(crate) fn starting_at(first: usize, most: Most, rtt: Duration, now: Instant) -> Controller {
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
            from: None,
            steps: Vec::new(),
            holds: most.windows <= 1,
            started: now,
        }
    }

    /// How many connections there should be now.
    pub(crate) fn target(&self) -> usize {
        self.target
    }

    /// The numbers that were tried, in order.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether the number will not change any more.
    pub(crate) fn is_over(&self) -> bool {
        self.holds
    }

    /// The transfer pauses: what is being measured says nothing, and begins anew.
    pub(crate) fn interrupt(&mut self, now: Instant) {
        (self.changed, self.reached, self.from) = (now, None, None);
    }

    /// The server refused a connection while `running` others were there.
    pub(crate) fn refused(&mut self, now: Instant, running: usize) {
        let running = running.max(1);
        self.note(now, self.target, None, Reason::Refused);
        self.most = Most { any: running, windows: running };
        self.target = running;
        self.holds = true;
    }

    /// `arrived` bytes in all at `now`, while `running` connections fetch; `limit` is what the
    /// diagnosis says of them, where there is one.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        arrived: Bytes,
        running: usize,
        limit: Option<Limit>,
    ) {
        if self.holds {
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
        self.decide(now, rate, limit);
        self.changed = now;
        self.reached = None;
        self.from = None;
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
        let Some((best, had)) = self.best else { return is_window(limit) };
        let gain = rate.as_f64() / had.as_f64().max(1.0);
        gain >= 1.0 + share(best, self.target, PAYS_PLAINLY) || gain < WORSE_PLAINLY
    }

    fn decide(&mut self, now: Instant, rate: Rate, limit: Option<Limit>) {
        let tried = self.target;
        match self.best {
            None => {
                self.best = Some((tried, rate));
                let reason = if more_helps(limit) { Reason::Start } else { Reason::Diagnosis };
                self.holds = reason == Reason::Diagnosis;
                self.note(now, tried, Some(rate), reason);
            }
            Some((best, had)) => {
                let share = share(best, tried, PAYS);
                let reason = if rate.as_f64() >= had.as_f64() * (1.0 + share) {
                    self.best = Some((tried, rate));
                    Reason::Pays
                } else {
                    self.too_many = Some(tried);
                    match rate.as_f64() < had.as_f64() * WORSE {
                        true => Reason::Worse,
                        false => Reason::BringsTooLittle,
                    }
                };
                self.note(now, tried, Some(rate), reason);
            }
        }
        let best = self.best.map_or(tried, |(best, _)| best);
        let next = self.next(best, limit);
        self.holds |= next.is_none();
        self.grew = next.is_some_and(|next| next > tried);
        self.target = if self.holds { best } else { next.unwrap_or(best) };
    }

    /// The number to try after `best`; `None` if the knee is found.
    fn next(&self, best: usize, limit: Option<Limit>) -> Option<usize> {
        let next = match self.too_many {
            None if best == 1 && is_window(limit) => WINDOWS_FIRST.min(self.most.under(limit)),
            None => (best * 2).min(self.most.under(limit)),
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

/// Whether more connections can help against a limit.
pub(crate) fn more_helps(limit: Option<Limit>) -> bool {
    match limit {
        Some(Limit::Link | Limit::SenderApplication | Limit::ReceiverApplication) => false,
        Some(Limit::ReceiveWindow | Limit::SendBuffer | Limit::CongestionWindow(_)) => true,
        // Then the measurement decides.
        Some(Limit::Unknown) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: Duration = Duration::from_millis(50);

    /// Runs a download of a minute whose rate depends on the number of connections, in Mbit/s.
    fn simulate(most: usize, limit: Option<Limit>, rate: impl Fn(usize) -> f64) -> Controller {
        let mut now = Instant::from_nanos(1);
        let most = Most { any: most, windows: 2 * most };
        let mut controller = Controller::new(most, RTT, now);
        let mut arrived = 0.0;
        for _ in 0..600 {
            now = now + Duration::from_millis(100);
            arrived += rate(controller.target()) * 1e6 / 8.0 / 10.0;
            let running = controller.target();
            controller.push(now, Bytes::from_f64(arrived), running, limit);
        }
        controller
    }

    #[test]
    fn a_server_that_collapses_above_four_ends_at_four_and_the_steps_say_why() {
        let rate = |n: usize| if n <= 4 { 10.0 * n as f64 } else { 5.0 };
        let controller = simulate(8, None, rate);
        assert_eq!(controller.target(), 4);
        let tried: Vec<_> = controller.steps().iter().map(|s| (s.connections, s.reason)).collect();
        use Reason::{Pays, Start, Worse};
        assert_eq!(tried, [(1, Start), (2, Pays), (4, Pays), (8, Worse), (6, Worse), (5, Worse)]);
    }

    #[test]
    fn a_full_link_stays_at_one_with_a_diagnosis_and_without() {
        let told = simulate(8, Some(Limit::Link), |_| 100.0);
        assert_eq!((told.target(), told.steps().len()), (1, 1));
        assert_eq!(told.steps()[0].reason, Reason::Diagnosis);
        let untold = simulate(8, None, |_| 100.0);
        assert_eq!((untold.target(), untold.steps()[1].reason), (1, Reason::BringsTooLittle));
    }

    #[test]
    fn a_window_limited_path_gets_as_many_as_fill_it() {
        let rate = |n: usize| (21.0 * n as f64).min(200.0);
        let controller = simulate(8, Some(Limit::ReceiveWindow), rate);
        assert!(rate(controller.target()) >= 180.0, "{}", controller.target());
        // Nobody else's loss is made worse by more than eight without a reason.
        let others = Some(Limit::CongestionWindow(fullpipe_model::limit::Cause::Loss));
        assert_eq!(simulate(8, others, rate).target(), 8);
        assert_eq!(simulate(8, None, rate).target(), 8);
    }

    /// What a connection of this age carries, in bytes a second, if slow start ends at `window`:
    /// nothing in the two round trips until the answer begins.
    fn grown(age: f64, rtt: f64, window: f64) -> f64 {
        let rounds = age / rtt - 2.0;
        if rounds < 0.0 { 0.0 } else { (14_600.0 * rounds.exp2()).min(window) / rtt }
    }

    /// The mean rate of a file of `bytes`, in bytes a second, and the number at the end. One
    /// connection a tick begins, as in the engine, and grows from nothing; `carries` is what the
    /// path and the server let through of what `n` connections offer.
    fn download(
        bytes: f64,
        rtt: Duration,
        window: f64,
        limit: Option<Limit>,
        carries: impl Fn(usize, f64) -> f64,
    ) -> (f64, usize) {
        const TICK: f64 = 0.1;
        let mut controller =
            Controller::new(Most { any: 8, windows: 16 }, rtt, Instant::from_nanos(0));
        let (mut arrived, mut ticks, mut began) = (0.0, 0u64, vec![0.0]);
        while arrived < bytes && ticks < 10_000 {
            ticks += 1;
            let at = ticks as f64 * TICK;
            let offered: f64 =
                began.iter().map(|start| grown(at - start, rtt.as_secs_f64(), window)).sum();
            arrived += carries(began.len(), offered) * TICK;
            let now = Instant::from_nanos(ticks * 100_000_000);
            controller.push(now, Bytes::from_f64(arrived), began.len(), limit);
            began.truncate(controller.target());
            if began.len() < controller.target() {
                began.push(at);
            }
        }
        (arrived / (ticks as f64 * TICK), controller.target())
    }

    #[test]
    fn on_a_window_limited_path_the_search_costs_less_than_a_sixth_of_400_mb() {
        let link = 200e6 / 8.0;
        let (rtt, limit) = (Duration::from_millis(100), Some(Limit::ReceiveWindow));
        let (rate, target) = download(400e6, rtt, 262_144.0, limit, |_, all| all.min(link));
        assert!(target as f64 * 262_144.0 / 0.1 >= 0.9 * link, "{target}");
        assert!(rate >= link * 5.0 / 6.0 && rate <= link, "{}", rate * 8.0 / 1e6);
    }

    #[test]
    fn a_collapse_costs_less_than_a_fifth_of_100_mb() {
        let each = 10e6 / 8.0;
        let rtt = Duration::from_millis(20);
        let (rate, target) = download(100e6, rtt, each * 0.02, None, |n, all| match n {
            0..=4 => all.min(4.0 * each),
            _ => all.min(each),
        });
        assert_eq!(target, 4);
        assert!(rate >= 4.0 * each * 0.8, "{}", rate * 8.0 / 1e6);
    }

    #[test]
    fn a_link_that_one_connection_fills_slowly_stays_at_one() {
        // Slow start takes nine round trips, so the second is no gain once the first is measured.
        let link = 200e6 / 8.0;
        let rtt = Duration::from_millis(100);
        let (_, target) = download(400e6, rtt, 8e6, None, |_, all| all.min(link));
        assert_eq!(target, 1);
    }

    #[test]
    fn a_refused_connection_is_not_tried_again() {
        let now = Instant::from_nanos(1);
        let mut controller = Controller::new(Most { any: 8, windows: 16 }, RTT, now);
        controller.refused(now + Duration::from_secs(1), 2);
        controller.push(now + Duration::from_secs(9), Bytes::new(9), 2, None);
        assert_eq!((controller.target(), controller.steps()[0].reason), (2, Reason::Refused));
    }

    proptest! {
        /// Whatever a server does with n connections, the number that stays is the best of those
        /// that were tried, or has so little less that the others did not pay.
        #[test]
        fn it_ends_at_a_number_that_paid(rates in prop::collection::vec(1.0f64..100.0, 16)) {
            let controller = simulate(16, None, |n| rates[n - 1]);
            let rate = rates[controller.target() - 1];
            prop_assert!((1..=16).contains(&controller.target()));
            for step in controller.steps() {
                let share = 1.0 + PAYS * step.connections as f64;
                prop_assert!(rate * share >= rates[step.connections - 1] * 0.99);
            }
        }

        /// Links that are shared fairly up to a knee: at least 80 % of what the best number brings.
        #[test]
        fn it_finds_the_knee(knee in 1usize..20, most in 1usize..20) {
            let rate = |n: usize| n.min(knee) as f64;
            let controller = simulate(most, None, rate);
            prop_assert!(rate(controller.target()) >= 0.8 * rate(most), "{}", controller.target());
        }
    }
}
