//! The model test: a client of any number of connections, that is killed and run again, against a
//! server that replaces, cuts, lies and forgets. The final name has one version whole, or nothing.
//!
//! The client is the order of calls of `open`, `engine` and `worker`, with the sockets and the disk
//! taken away: bytes are only counted, and the partial file is the list of what was written where.

mod server;

use super::super::worker::Next;
use super::*;
use hyper::Response;
use server::{Body, Dice, Server};
use std::collections::BTreeMap;

/// Some seconds; another number with FULLPIPE_GET_RUNS.
fn runs() -> u64 {
    std::env::var("FULLPIPE_GET_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000)
}

/// The partial file and its record.
#[derive(Default)]
struct Disk {
    /// Start, end and version of what was written, in this order.
    written: Vec<(u64, u64, usize)>,
    record: Option<ResumeRecord>,
}

impl Disk {
    fn clear(&mut self) {
        *self = Disk::default();
    }

    /// The only version in the first `length` bytes, if there is one and they are all there.
    fn version(&self, length: u64) -> Option<usize> {
        let mut ends: Vec<u64> = self.written.iter().flat_map(|one| [one.0, one.1]).collect();
        ends.extend([0, length]);
        ends.retain(|end| *end <= length);
        ends.sort_unstable();
        ends.dedup();
        let mut found = None;
        for at in ends.iter().filter(|at| **at < length) {
            let last = self.written.iter().rev().find(|one| one.0 <= *at && *at < one.1)?;
            if found.is_some_and(|found| found != last.2) {
                return None;
            }
            found = Some(last.2);
        }
        found
    }
}

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Complete(u64),
    Failed,
    Killed,
}

/// How often what is tested happened, over all runs.
#[derive(Debug, Default)]
struct Seen {
    complete: u64,
    continued: u64,
    shared: u64,
    anew: u64,
    changed: u64,
}

/// What a connection does.
enum State {
    Idle,
    Receives(Body),
}

/// Why a connection ended.
enum Broken {
    Refused(Refusal),
    Framing,
    Short,
    Disk,
}

struct Client<'a> {
    url: usize,
    disk: &'a mut Disk,
    server: &'a mut Server,
    dice: &'a mut Dice,
    seen: &'a mut Seen,
    workers: BTreeMap<Worker, State>,
    next: Worker,
    target: usize,
    tries: u32,
    restarts: u32,
}

const URLS: [&str; 2] = ["http://a/", "http://b/"];
static ZEROS: [u8; 2_000_000] = [0; 2_000_000];

impl Client<'_> {
    /// What goes on meanwhile. Returns whether the process is killed.
    fn world(&mut self) -> bool {
        match self.dice.below(60) {
            0..=2 => self.server.replace(self.url, self.dice),
            3..=5 => self.server.wait(self.dice),
            6 | 7 => return true,
            _ => {}
        }
        false
    }

    fn head(&self, answer: &Response<()>) -> Option<Head> {
        Head::of(answer).ok()
    }

    /// The first answer, as `open` finds it.
    fn open(&mut self) -> Option<(RangePlan, Body)> {
        let earlier = self.disk.record.clone().filter(|one| one.validators.if_range().is_some());
        let here = earlier.filter(|record| record.url == URLS[self.url]);
        let mut first = here.and_then(|record| {
            let ask = RangePlan::resumed(&record)?.ask(0).ok()??;
            Some((record, ask.piece))
        });
        for _ in 0..6 {
            let (range, if_range) = match &first {
                Some((record, piece)) => (Some(piece.clone()), record.validators.if_range()),
                None => (None, None),
            };
            let (answer, body) = self.server.answer(self.url, range, if_range, self.dice);
            let head = self.head(&answer)?;
            let earlier = first.as_ref().map(|(record, piece)| (record, piece));
            match opened(earlier, answer.status(), &head) {
                Ok(Opened::AskWhole) => first = None,
                Ok(Opened::Continues) => {
                    self.seen.continued += 1;
                    return Some((RangePlan::resumed(&first?.0)?, body));
                }
                Ok(Opened::Whole) => {
                    self.disk.clear();
                    return Some((RangePlan::begun(&head), body));
                }
                Err(Refusal::Status(_)) => {}
                Err(_) => return None,
            }
        }
        None
    }

    fn run(mut self) -> End {
        let Some((mut plan, body)) = self.open() else { return End::Failed };
        if let Ok(Some(_)) = plan.ask(0) {
            self.workers.insert(0, State::Receives(body));
        }
        let full = self.dice.once_in(20);
        while !plan.is_complete() {
            if self.world() {
                return End::Killed;
            }
            if self.dice.once_in(10)
                && let Ok(record) = plan.record(URLS[self.url])
            {
                self.disk.record = Some(record);
            }
            let running = self.workers.len();
            if running < self.target && plan.has_work(running) {
                self.spawn();
            }
            if self.workers.is_empty() {
                return self.fail(&plan);
            }
            let chosen = self.dice.below(self.workers.len() as u64) as usize;
            let worker = *self.workers.keys().nth(chosen).unwrap();
            match self.step(&mut plan, worker, full) {
                Ok(true) => {}
                Ok(false) => drop(self.workers.remove(&worker)),
                Err(broken) => {
                    if !self.after(&mut plan, worker, &broken) {
                        return self.fail(&plan);
                    }
                }
            }
            let receive = self.workers.values().filter(|one| matches!(one, State::Receives(_)));
            self.seen.shared += u64::from(receive.count() > 1);
        }
        End::Complete(plan.done())
    }

    fn spawn(&mut self) {
        self.workers.insert(self.next, State::Idle);
        self.next += 1;
    }

    /// One thing that a connection does; false if it has nothing to do.
    fn step(&mut self, plan: &mut RangePlan, worker: Worker, full: bool) -> Result<bool, Broken> {
        let mut body = match self.workers[&worker] {
            State::Idle => {
                let Some(ask) = plan.ask(worker).map_err(Broken::Refused)? else {
                    return Ok(false);
                };
                let range = (!ask.whole).then(|| ask.piece.clone());
                let if_range = plan.if_range().filter(|_| !ask.whole).map(String::from);
                let (url, dice) = (self.url, &mut *self.dice);
                // Between the request and the answer other connections may go on; that the server
                // answers at once is as good, as it decides then.
                let (answer, body) = self.server.answer(url, range, if_range.as_deref(), dice);
                let head = self.head(&answer).ok_or(Broken::Framing)?;
                plan.answered(worker, &ask, answer.status(), &head).map_err(Broken::Refused)?;
                self.workers.insert(worker, State::Receives(body));
                return Ok(true);
            }
            State::Receives(body) => body,
        };
        if body.left == 0 {
            let whole = body.clean && plan.ended(worker);
            self.workers.insert(worker, State::Idle);
            return if whole { Ok(true) } else { Err(Broken::Short) };
        }
        let most = [1, 1_000, 300_000, u64::MAX][self.dice.below(4) as usize];
        let count = (1 + self.dice.below(body.left)).min(most);
        let fails = full && self.dice.once_in(5);
        plan.accept(worker, &ZEROS[..count as usize], |data, at| {
            if fails {
                return Err(Broken::Disk);
            }
            assert!(data.is_empty() || at == body.at, "a byte at the wrong place");
            self.disk.written.push((at, at + data.len() as u64, body.version));
            Ok(())
        })?;
        (body.at, body.left) = (body.at + count, body.left - count);
        let state = if plan.has_piece(worker) { State::Receives(body) } else { State::Idle };
        self.workers.insert(worker, state);
        Ok(true)
    }

    /// As the engine after a failure; false if the download fails.
    fn after(&mut self, plan: &mut RangePlan, worker: Worker, broken: &Broken) -> bool {
        self.workers.remove(&worker);
        plan.release(worker);
        let no_ranges = matches!(broken, Broken::Refused(Refusal::NoRanges(_)));
        let changed = matches!(broken, Broken::Refused(Refusal::Changed(_)));
        let hopeless = changed || matches!(broken, Broken::Disk);
        let short = matches!(broken, Broken::Short);
        let running = self.workers.len();
        match Next::after(no_ranges, hopeless, short, running) {
            Next::Fewer => self.target = running,
            Next::Again => {
                self.tries += 1;
                self.spawn();
                return self.tries < 8;
            }
            Next::Anew => {
                self.seen.anew += 1;
                self.restarts += 1;
                self.disk.clear();
                plan.begin_anew();
                self.spawn();
                return self.restarts < 4;
            }
            Next::Fail => {
                if changed {
                    self.seen.changed += 1;
                    self.disk.clear();
                }
                return false;
            }
        }
        true
    }

    /// As `keep`.
    fn fail(&mut self, plan: &RangePlan) -> End {
        match plan.record(URLS[self.url]) {
            Ok(record) if !self.disk.written.is_empty() => self.disk.record = Some(record),
            _ => self.disk.clear(),
        }
        End::Failed
    }
}

/// Up to six commands for one file name, with either URL.
fn model(seed: u64, seen: &mut Seen) {
    let mut dice = Dice::new(seed);
    let mut server = Server::new(&mut dice);
    let mut disk = Disk::default();
    for _ in 0..6 {
        let url = usize::from(dice.once_in(3));
        let target = 1 + dice.below(5) as usize;
        let client = Client {
            url,
            disk: &mut disk,
            server: &mut server,
            dice: &mut dice,
            seen,
            workers: BTreeMap::new(),
            next: 1,
            target,
            tries: 0,
            restarts: 0,
        };
        let end = client.run();
        if let End::Complete(length) = end {
            let versions = server.history(url);
            let mut whole = versions.iter().filter(|one| one.length == length);
            let found = disk.version(length);
            let right = whole.any(|one| length == 0 || found == Some(one.id));
            assert!(right, "seed {seed}: {length} bytes of {versions:?}: {:?}", disk.written);
            seen.complete += 1;
            return;
        }
        if dice.once_in(4) {
            server.replace(url, &mut dice);
        }
    }
}

#[test]
fn the_final_name_has_one_version_whole_or_nothing() {
    let mut seen = Seen::default();
    let runs = runs();
    for seed in 0..runs {
        model(seed, &mut seen);
    }
    // What is tested happened often enough to be tested.
    assert!(seen.complete > runs / 2, "{seen:?}");
    for (what, count) in [
        ("continued", seen.continued),
        ("shared", seen.shared),
        ("anew", seen.anew),
        ("changed", seen.changed),
    ] {
        assert!(count > runs / 200, "{what}: {seen:?}");
    }
}
