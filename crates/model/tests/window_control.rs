//! The window agent's law: what holds whatever is observed, and what it does on thousands of paths
//! in virtual time.
//!
//! The path is a fluid: a sender that always fills the window, a bottleneck with a queue without
//! bound (so whatever the window has too much stands there), a reader with a rate of its own.
//! Where a
//! test is about segments, the sender sends whole ones only, and never a probe. Loss is
//! a delay: what is in order is what had arrived some round trips ago.

use fullpipe_model::tune::window_control::{Grant, Look, Phase, Settings, WindowControl, level};
use fullpipe_model::units::{Bytes, Duration, Instant, Rate, Window};
use proptest::prelude::*;

/// Steps of the simulation in a round trip.
const STEPS: usize = 16;
const INITIAL: u64 = 65_536;
/// A sender that sends whatever the window has room for.
const FLUID: u64 = 1;
/// Payload of a segment with timestamps at MTUs of 576, 1500, 9000 and 65536, as Linux sends it.
const SEGMENTS: [u64; 4] = [524, 1448, 8948, 65_483];

fn window(bytes: u64) -> Window {
    Window::new(Bytes::new(bytes))
}

/// A path and its reader.
#[derive(Debug, Clone, Copy)]
struct Path {
    link: Rate,
    rtt: Duration,
    reader: Rate,
    /// A hole is repaired after so many steps, and there is always one; zero: nothing is lost.
    repair: usize,
    /// The sender waits until so much fits into the window.
    segment: u64,
    settings: Settings,
}

/// Both ends and all between them; amounts in bytes since the connection began.
struct Simulation {
    path: Path,
    now: Instant,
    control: WindowControl,
    /// Right edges of the window, the oldest first, one each step: the sender knows the first.
    edges: std::collections::VecDeque<u64>,
    sent: u64,
    /// What arrived, the oldest first, one each step.
    arrived: std::collections::VecDeque<u64>,
    /// What is in order.
    received: u64,
    copied: u64,
    grant: Grant,
}

impl Simulation {
    fn new(path: Path) -> Self {
        let first = Look {
            received: 0,
            copied: 0,
            out_of_order: Bytes::ZERO,
            promised: window(INITIAL),
            rtt: path.rtt,
            own: window(INITIAL),
            segment: Bytes::new(path.segment),
        };
        Simulation {
            path,
            now: Instant::ZERO,
            control: WindowControl::new(path.settings, Instant::ZERO, &first),
            edges: [INITIAL; STEPS].into(),
            sent: 0,
            arrived: vec![0; path.repair + 1].into(),
            received: 0,
            copied: 0,
            grant: Grant { window: window(INITIAL), room: Bytes::new(INITIAL) },
        }
    }

    /// One step with an acknowledgement at its end.
    fn step(&mut self) {
        let step = Duration::from_nanos(self.path.rtt.as_nanos() / STEPS as u64);
        let began = self.now.since(Instant::ZERO);
        self.now = self.now + step;
        // Differences of totals, so that no fraction of a byte is lost.
        let passed = |rate: Rate| rate.over(began + step).get() - rate.over(began).get();
        let edge = *self.edges.back().unwrap();
        let room = self.edges.pop_front().unwrap().saturating_sub(self.sent);
        self.sent += room / self.path.segment * self.path.segment;
        let arrived = self.sent.min(self.arrived.back().unwrap() + passed(self.path.link));
        self.arrived.push_back(arrived);
        self.arrived.pop_front();
        self.received = *self.arrived.front().unwrap();
        self.copied = self.received.min(self.copied + passed(self.path.reader));
        let queued = self.path.link.time_for(Bytes::new(self.sent - arrived)).unwrap();
        let look = Look {
            received: self.received as u32,
            copied: self.copied as u32,
            out_of_order: Bytes::new(arrived - self.received),
            promised: window(edge - self.received),
            rtt: self.path.rtt + queued,
            own: window(INITIAL),
            segment: Bytes::new(self.path.segment),
        };
        self.grant = self.control.acknowledge(self.now, &look);
        // As `tcp_select_window`: at most the window and the free room, never less than promised.
        let free = self.grant.room.get() - (self.received - self.copied);
        let offered = free.min(self.grant.window.bytes().get());
        let new = self.received + offered;
        assert!(self.copied + self.grant.room.get() >= edge, "what is promised has no room");
        self.edges.push_back(new.max(edge));
    }

    fn round_trips(&mut self, count: usize) {
        (0..count * STEPS).for_each(|_| self.step());
    }

    /// What is read in `count` round trips, as a part of what `rate` allows, and the mean queue.
    fn measured(&mut self, count: usize, rate: Rate) -> (f64, f64) {
        let (began, copied, mut queue) = (self.now, self.copied, 0.0);
        for _ in 0..count * STEPS {
            self.step();
            queue += (self.received - self.copied) as f64;
        }
        let read = Bytes::new(self.copied - copied).per(self.now.since(began)).unwrap();
        (read.fraction_of(rate), queue / (count * STEPS) as f64)
    }
}

prop_compose! {
    /// 1 Mbit/s to 25 Gbit/s, 1 to 300 ms, each spread over its decades.
    fn any_path()(link in 6.0..10.4f64, rtt in 3.0..5.477f64) -> (Rate, Duration) {
        let rtt = Duration::from_secs_f64(10f64.powf(rtt - 6.0));
        (Rate::from_bits_per_sec_f64(10f64.powf(link)), rtt)
    }
}

fn any_look() -> impl Strategy<Value = (u64, Look)> {
    let span = prop_oneof![0..1_000_000u64, 0..2_000_000_000u64, any::<u64>()];
    let bytes = || prop_oneof![0..1u64 << 20, 0..1u64 << 31, any::<u64>()];
    let words = any::<[u32; 2]>();
    (span, words, bytes(), bytes(), any::<u64>(), bytes(), bytes()).prop_map(
        |(span, [received, copied], beyond, promised, rtt, own, segment)| {
            let (rtt, out_of_order) = (Duration::from_nanos(rtt), Bytes::new(beyond));
            let (promised, own) = (window(promised), window(own));
            let segment = Bytes::new(segment);
            (span, Look { received, copied, out_of_order, promised, rtt, own, segment })
        },
    )
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let word = any::<u64>;
    (word(), word(), word(), word(), word(), word(), any::<u32>()).prop_map(
        |(threshold, time, step, least, most, keep, hold_round_trips)| Settings {
            threshold: Bytes::new(threshold),
            threshold_time: Duration::from_nanos(time),
            step: Bytes::new(step),
            least: window(least),
            most: window(most),
            keep: window(keep),
            hold_round_trips,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_that_is_observed_breaks_its_bounds(
        settings in any_settings(),
        looks in prop::collection::vec(any_look(), 1..50),
    ) {
        let mut now = Instant::ZERO;
        let mut control = WindowControl::new(settings, now, &looks[0].1);
        let first = &looks[0].1;
        let queue = u64::from(first.received.wrapping_sub(first.copied));
        let at_first = queue.saturating_add(first.promised.bytes().get());
        let mut largest = first.least();
        for (span, look) in &looks {
            now = now + Duration::from_nanos(*span);
            let grant = control.acknowledge(now, look);
            largest = largest.max(look.least());
            prop_assert!(look.least().bytes().get() >= 2 * look.segment.get().min(65_535));
            prop_assert!(grant.window <= settings.most.max(look.least()));
            prop_assert!(grant.window >= settings.least.min(settings.most).max(look.least()));
            prop_assert!(grant.room >= grant.window.bytes());
            let most = settings.most.max(largest).bytes().get();
            prop_assert!(grant.room.get() <= most.max(at_first));
            let is_first_second = now < Instant::ZERO + Duration::from_secs(1);
            if is_first_second && control.phase() != Phase::Hold {
                prop_assert!(grant.window >= look.own.min(settings.most));
            }
        }
    }

    #[test]
    fn a_fast_reader_gets_the_link_and_the_path_half_a_window_more_at_most(
        (link, rtt) in any_path(),
    ) {
        let settings = Settings::default();
        let bdp = link.over(rtt).get();
        let reader = Rate::from_bits_per_sec(1 << 50);
        let mut run = Simulation::new(Path { link, rtt, reader, repair: 0, segment: FLUID, settings });
        // 14 doublings from 64 KiB make a GiB, each seen an epoch later.
        run.round_trips(40);
        let most = Window::per_rtt(settings.most, rtt).unwrap();
        let (share, _) = run.measured(40, link.min(most));
        prop_assert!(share >= 0.95, "{share} of {link}, {:?}", run.grant);
        let excess = bdp / 2 + 4 * settings.step.get();
        prop_assert!(run.sent - run.received <= excess, "{bdp} {:?}", run.grant);
        prop_assert!(run.grant.window.bytes().get() <= bdp + excess, "{bdp} {:?}", run.grant);
    }

    #[test]
    fn while_holes_are_repaired_a_fast_reader_gets_the_link_all_the_same(
        (link, rtt) in any_path(),
        round_trips in 1..4usize,
    ) {
        let settings = Settings::default();
        let reader = Rate::from_bits_per_sec(1 << 50);
        let repair = round_trips * STEPS;
        let mut run = Simulation::new(Path { link, rtt, reader, repair, segment: FLUID, settings });
        run.round_trips(80);
        let most = Window::per_rtt(settings.most, rtt).unwrap().over(rtt);
        // What is in order takes the window up as well.
        let most = Bytes::new(most.get() / (1 + round_trips as u64)).per(rtt).unwrap();
        let (share, _) = run.measured(40, link.min(most));
        // Settling costs a slow path some: it counts a repair by the least round trip, and here a
        // repair takes the same time whatever stands in the path.
        prop_assert!(share >= 0.75, "{share} of {link}, {:?}", run.grant);
        // And no more than a quarter of it too much, and a step of growth.
        let needed = link.over(rtt).get() * (1 + round_trips as u64);
        let bound = needed + needed / 2 + 4 * settings.step.get();
        prop_assert!(run.grant.window.bytes().get() <= bound, "{needed} {:?}", run.grant);
    }

    #[test]
    fn a_slow_reader_is_kept_busy_and_its_queue_near_the_threshold(
        (link, rtt) in any_path(),
        part in 0.01..0.5f64,
    ) {
        let settings = Settings::default();
        let reader = Rate::from_bits_per_sec_f64(link.as_f64() * part);
        let mut run = Simulation::new(Path { link, rtt, reader, repair: 0, segment: FLUID, settings });
        run.round_trips(60);
        let (share, queue) = run.measured(100, reader.min(settings.most.per_rtt(rtt).unwrap()));
        prop_assert!(share >= 0.98, "{share} of {reader}, {:?}", run.grant);
        let threshold = settings.threshold.max(reader.over(settings.threshold_time));
        // Nothing spreads what the start sent at once: it comes at once in each round trip, and is
        // read in the rest of it.
        let burst = settings.step.get().max(reader.over(rtt).get() / 2);
        let bound = (threshold.get() + burst) as f64;
        prop_assert!(queue <= bound, "{queue} over {bound}, {:?}", run.grant);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_the_mtu_a_reader_gets_what_it_asks_for(
        (link, rtt) in any_path(),
        segment in prop::sample::select(SEGMENTS.to_vec()),
        part in 0.0..1.0f64,
        threshold in prop::sample::select(vec![4 << 10, 256 << 10u64]),
    ) {
        // From 40 KB/s to all that the link carries, spread over its decades.
        let least = 320_000.0f64;
        let reader = Rate::from_bits_per_sec_f64(least * (link.as_f64() / least).powf(part));
        let settings = Settings { threshold: Bytes::new(threshold), ..Settings::default() };
        let mut run = Simulation::new(Path { link, rtt, reader, repair: 0, segment, settings });
        run.round_trips(100);
        // Long enough that a segment more or less does not count.
        let span = reader.time_for(Bytes::new(100 * segment)).unwrap().as_nanos();
        let count = (span / rtt.as_nanos()).clamp(100, 4000) as usize;
        let most = Window::per_rtt(settings.most, rtt).unwrap();
        let (share, _) = run.measured(count, reader.min(most));
        prop_assert!(share >= 0.95, "{share} of {reader}, {:?}", run.grant);
    }

    #[test]
    fn a_budget_never_stops_a_sender(
        (link, rtt) in any_path(),
        segment in prop::sample::select(SEGMENTS.to_vec()),
        most in prop_oneof![Just(8u64 << 10), 8u64 << 10..1 << 20],
        part in 0.0..1.0f64,
    ) {
        let least = 320_000.0f64;
        let reader = Rate::from_bits_per_sec_f64(least * (link.as_f64() / least).powf(part));
        let settings = Settings { most: window(most), ..Settings::default() };
        let mut run = Simulation::new(Path { link, rtt, reader, repair: 0, segment, settings });
        run.round_trips(100);
        // A window of whole segments passes the link, is read and comes back; each of them waits for
        // up to a step of the simulation.
        let whole = Bytes::new(most.max(2 * segment) / segment * segment);
        let on_the_way = link.time_for(whole).unwrap() + reader.time_for(whole).unwrap();
        let steps = Duration::from_nanos(rtt.as_nanos() / STEPS as u64 * 2);
        let expected = reader.min(whole.per(rtt + steps + on_the_way).unwrap());
        let span = reader.time_for(Bytes::new(100 * segment)).unwrap().as_nanos();
        let count = (span / rtt.as_nanos()).clamp(100, 4000) as usize;
        let (share, _) = run.measured(count, expected);
        prop_assert!(share >= 0.95, "{share} of {expected}, {:?}", run.grant);
    }
}

#[test]
fn two_gigabits_over_80_ms_need_a_sixth_of_256_megabytes() {
    let (link, rtt) = (Rate::from_bits_per_sec(2_000_000_000), Duration::from_millis(80));
    let fast = Rate::from_bits_per_sec(20_000_000_000);
    let path =
        Path { link, rtt, reader: fast, repair: 0, segment: FLUID, settings: Settings::default() };
    let mut run = Simulation::new(path);
    run.round_trips(20);
    let (share, queue) = run.measured(40, link);
    // What Linux reaches with tcp_rmem[2] = 6 MB, whatever the reader: 3 MB in a round trip.
    assert!(share >= 0.95 && queue < 3e6, "{share} {queue}");
    assert!(run.grant.room < Bytes::new(256_000_000 / 6), "{:?}", run.grant);
    // The reader becomes slow: what stands on its side drains, and stays small.
    run.path.reader = Rate::from_bits_per_sec(200_000_000);
    run.round_trips(100);
    let (share, queue) = run.measured(50, run.path.reader);
    assert!(share >= 0.99 && queue <= 0.05 * 256e6 / 2.0, "{share} {queue}");
    // And fast again.
    run.path.reader = fast;
    run.round_trips(100);
    assert!(run.measured(20, link).0 >= 0.95, "{:?}", run.grant);
}

#[test]
fn a_queue_in_the_path_does_not_become_the_measure() {
    let (link, rtt) = (Rate::from_bits_per_sec(600_000_000), Duration::from_millis(280));
    let reader = Rate::from_bits_per_sec(20_000_000_000);
    let mut run = Simulation::new(Path {
        link,
        rtt,
        reader,
        repair: 0,
        segment: FLUID,
        settings: Settings::default(),
    });
    run.round_trips(40);
    assert_ne!(run.control.phase(), Phase::Start);
    let bdp = link.over(rtt).get();
    // Some ten minutes.
    for _ in 0..20 {
        let (share, _) = run.measured(100, link);
        assert!(share >= 0.95, "{share} {:?}", run.grant);
        assert!(run.sent - run.received <= bdp / 2, "{bdp} {:?}", run.grant);
    }
}

#[test]
fn a_path_that_becomes_longer_is_followed() {
    let (link, rtt) = (Rate::from_bits_per_sec(1_000_000_000), Duration::from_millis(20));
    let reader = Rate::from_bits_per_sec(20_000_000_000);
    let settings = Settings { keep: window(INITIAL), ..Settings::default() };
    let mut run = Simulation::new(Path { link, rtt, reader, repair: 0, segment: FLUID, settings });
    run.round_trips(40);
    run.path.rtt = Duration::from_millis(100);
    // It settles within five seconds, finds that the path is longer, and grows by sixteenths,
    // before the old round trip would have been forgotten.
    run.round_trips(120);
    let (share, _) = run.measured(40, link);
    assert!(share >= 0.95, "{share} {:?}", run.grant);
}

#[test]
fn silence_and_a_stalled_reader_change_nothing() {
    let look = Look {
        received: 0,
        copied: 0,
        out_of_order: Bytes::ZERO,
        promised: window(1 << 20),
        rtt: Duration::from_millis(10),
        own: window(0),
        segment: Bytes::new(1448),
    };
    let mut control = WindowControl::new(Settings::default(), Instant::ZERO, &look);
    let before = control.acknowledge(Instant::ZERO, &look);
    // A few bytes each minute say nothing about what the reader could take.
    let mut late = look;
    for minute in 1..=10 {
        late = Look { received: late.received + 100, copied: late.copied + 100, ..look };
        let now = Instant::ZERO + Duration::from_secs(60 * minute);
        assert_eq!(control.acknowledge(now, &late), before);
        assert_eq!(control.phase(), Phase::Start);
    }
    // The window's worth arrives, nobody reads.
    let stalled = Look { received: late.copied + (1 << 20), promised: window(0), ..late };
    for second in 601..610 {
        let now = Instant::ZERO + Duration::from_secs(second);
        assert_eq!(control.acknowledge(now, &stalled), before);
    }
}

proptest! {
    #[test]
    fn all_windows_together_stay_within_their_budget(
        budget in 0u64..1 << 40,
        needs in prop::collection::vec((0u64..1 << 31, 0u64..1 << 16), 0..200),
        present in 65_536u64..1 << 30,
    ) {
        let settings = Settings::default();
        let needs = || needs.iter().map(|&(need, segment)| (Bytes::new(need), window(2 * segment)));
        let of = |budget| level(Bytes::new(budget), needs(), window(present), &settings);
        let granted = of(budget).bytes();
        prop_assert!(granted >= settings.least.bytes() && granted <= settings.most.bytes());
        if granted > settings.least.bytes() {
            let sum: u64 = needs()
                .map(|(need, least)| need.min(granted).max(least.bytes()).get())
                .sum();
            prop_assert!(sum <= budget, "{sum} of {budget} at {granted}");
        }
        // More for all is never less for each.
        prop_assert!(of(budget * 2) >= of(budget));
    }

    #[test]
    fn those_who_use_all_of_it_share_what_the_others_leave(
        fast in 1u64..100,
        slow in 0u64..1000,
        present in 1u64 << 20..1 << 30,
    ) {
        let (budget, need) = (1u64 << 34, 65_536);
        let needs = (0..fast).map(|_| present).chain((0..slow).map(|_| need));
        let found = level(
            Bytes::new(budget),
            needs.map(|need| (Bytes::new(need), window(2896))),
            window(present),
            &Settings::default(),
        );
        let share = (budget - slow * need) / fast;
        prop_assert_eq!(found.bytes().get(), share.min((1 << 30) - 1));
    }
}
