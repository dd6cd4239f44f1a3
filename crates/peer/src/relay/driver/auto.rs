//! How many carriers a session has where nobody says: pure, for the near end to drive.
//!
//! The first data starts a search: [`fullpipe_transfer::count`] takes one carrier, and twice as
//! many as long as that pays. What a carrier carries at first is not what it carries after its
//! first losses, so [`SOON`] after its end another search begins with the number there is, and
//! looks for more; each that finds the same doubles the time to the next. [`AGAIN`] is the longest,
//! and a search after that begins at half the number, because paths and users change; so does the
//! one after a search that found less. So a number that no longer pays shrinks, and one that is too
//! small grows. Times in which the users move nothing say nothing about carriers, and are not
//! measured. A relay cannot tell a path that is full from users that ask for no more: both are a
//! number that does not pay.
//!
//! **Order of calls.** [`Auto::push`] at every tick; then [`Auto::target`] and [`Auto::poll`].

use fullpipe_model::units::{Bytes, Duration, Instant};
use fullpipe_transfer::count::{Controller, Most, Reason, Step};

/// The most carriers: half of what a far end allows one session.
pub(super) const MOST: usize = 32;

/// After a search that found another number, the next one waits this long.
const SOON: Duration = Duration::from_secs(10);

/// The longest time from one search to the next. The one after it has half the carriers for its
/// first measurement, of some seconds.
const AGAIN: Duration = Duration::from_secs(120);

/// Less than this between two ticks is no transfer.
const TRANSFER: Bytes = Bytes::new(16 << 10);

/// A transfer that moved nothing for this long pauses.
const PAUSES: Duration = Duration::from_secs(1);

/// Chooses the number of carriers.
#[derive(Debug)]
pub(super) struct Auto {
    target: usize,
    search: Option<Controller>,
    search_at: Instant,
    /// From the last search to the next.
    waits: Duration,
    moved: Bytes,
    busy_at: Option<Instant>,
    /// What the last search found.
    found: Option<usize>,
    /// Whether that was less than before.
    shrank: bool,
    words: Option<String>,
}

impl Auto {
    /// One carrier, and a search as soon as there is a transfer.
    pub fn new(now: Instant) -> Auto {
        Auto {
            target: 1,
            search: None,
            search_at: now,
            waits: SOON,
            moved: Bytes::ZERO,
            busy_at: None,
            found: None,
            shrank: false,
            words: None,
        }
    }

    /// How many carriers there should be now.
    pub fn target(&self) -> usize {
        self.target
    }

    /// What the last search found, in words, once; not if it found the number there was.
    pub fn poll(&mut self) -> Option<String> {
        self.words.take()
    }

    /// `moved` bytes of users in all, both ways, over `running` carriers with this round trip.
    pub fn push(&mut self, now: Instant, moved: Bytes, running: usize, rtt: Duration) {
        let moves = moved.saturating_sub(self.moved) >= TRANSFER;
        self.moved = moved;
        if moves {
            self.busy_at = Some(now);
        }
        let is_busy = self.busy_at.is_some_and(|at| now.since(at) < PAUSES);
        let Some(search) = &mut self.search else {
            if is_busy && now >= self.search_at {
                let most = Most { any: MOST, windows: MOST };
                let may_be_too_many = self.shrank || self.waits == AGAIN;
                let first = if may_be_too_many { self.target.div_ceil(2) } else { self.target };
                let search = Controller::carriers(first, most, rtt, now);
                self.target = search.target();
                self.search = Some(search);
            }
            return;
        };
        if !is_busy {
            return search.interrupt(now);
        }
        if !moves {
            // Perhaps it pauses, which is known later.
            return;
        }
        search.push(now, moved, running, None);
        self.target = search.target();
        if search.is_over() {
            let is_new = self.found != Some(self.target);
            self.words = is_new.then(|| in_words(self.target, search.steps()));
            self.shrank = self.found.is_some_and(|found| found > self.target);
            self.waits = if is_new { SOON } else { self.waits.saturating_mul(2).min(AGAIN) };
            self.found = Some(self.target);
            self.search = None;
            self.search_at = now + self.waits;
        }
    }
}

/// What was tried, and what came of it.
fn in_words(found: usize, steps: &[Step]) -> String {
    let tried = steps.iter().map(|step| {
        let rate = step.rate.map_or_else(|| "an unknown rate".to_owned(), |rate| rate.to_string());
        let why = match step.reason {
            Reason::Start | Reason::Pays => "",
            Reason::BringsTooLittle => " (too little more)",
            Reason::Worse => " (less)",
            Reason::Diagnosis | Reason::Refused => " (no more are possible)",
        };
        format!("{} carried {rate}{why}", step.connections)
    });
    let tried: Vec<String> = tried.collect();
    let meaning = match found {
        1 => ": one fills the path, or users ask for no more; where it fills it, no relay helps",
        _ => "",
    };
    format!("carriers: {}; {found} from now on{meaning}", tried.join(", "))
}

#[cfg(test)]
mod paths;

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(200);
    const RTT: Duration = Duration::from_millis(100);

    /// A session whose users move `rate(second, carriers)` Mbit/s, for some seconds.
    struct World {
        now: Instant,
        moved: f64,
        auto: Auto,
        said: Vec<String>,
    }

    impl World {
        fn new() -> World {
            let now = Instant::from_nanos(1);
            World { now, moved: 0.0, auto: Auto::new(now), said: Vec::new() }
        }

        fn run(&mut self, seconds: u64, rate: impl Fn(usize) -> f64) {
            for _ in 0..seconds * 5 {
                self.now = self.now + TICK;
                self.moved += rate(self.auto.target()) * 125_000.0 * TICK.as_secs_f64();
                let running = self.auto.target();
                self.auto.push(self.now, Bytes::from_f64(self.moved), running, RTT);
                self.said.extend(self.auto.poll());
            }
        }
    }

    #[test]
    fn a_path_of_windows_gets_the_carriers_that_fill_it_and_one_that_changes_gives_them_back() {
        let mut world = World::new();
        world.run(5, |_| 0.0);
        assert_eq!(world.auto.target(), 1, "nothing to carry, nothing to measure");
        world.run(60, |n| (13.0 * n as f64).min(200.0));
        assert!(world.auto.target() >= 12, "{:?}", world.said);
        assert_eq!(world.said.len(), 1, "{:?}", world.said);
        // Now one fills the path: every search halves the number.
        world.run(1000, |_| 200.0);
        assert_eq!(world.auto.target(), 1, "{:?}", world.said);
        assert!(world.said.last().unwrap().contains("1 from now on: one fills the path"));
        let said = world.said.len();
        world.run(1000, |_| 200.0);
        assert_eq!(world.said.len(), said, "the same again is not told");
        world.run(300, |n| (13.0 * n as f64).min(200.0));
        assert!(world.auto.target() >= 12, "{:?}", world.said);
    }

    /// With pauses in the middle of each measurement, none is taken for a rate.
    #[test]
    fn pauses_are_not_measured() {
        let mut world = World::new();
        for _ in 0..100 {
            world.run(2, |n| 13.0 * n as f64);
            world.run(5, |_| 0.0);
        }
        assert_eq!((world.auto.target(), world.said.len()), (1, 0), "{:?}", world.said);
    }

    /// Generated paths: what a carrier gets, what the path carries. The number that is found
    /// carries at least 95 % of what any number would.
    #[test]
    fn fifty_paths_get_a_number_near_the_best() {
        for seed in 0..50u32 {
            let each = 1.5_f64.powf(f64::from(seed % 10));
            let path = each * 1.07_f64.powf(f64::from(seed));
            let rate = |n: usize| (each * n as f64).min(path);
            let mut world = World::new();
            world.run(100, rate);
            let (found, best) = (rate(world.auto.target()), rate(MOST));
            assert!(found >= 0.95 * best, "{seed}: {found} of {best}, {:?}", world.said);
        }
    }
}
