//! Goodput against what the carriers could carry, over generated paths, and cases by name.

use super::network::Path;
use super::transfer::{Outcome, Setting, Trouble, carry, optimum};
use fullpipe_model::units::{Duration, Instant};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

const MEGABIT: f64 = 125_000.0;

/// Seeds of each sweep; more with FULLPIPE_RELAY_SEEDS.
fn seeds() -> u64 {
    std::env::var("FULLPIPE_RELAY_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

fn generated(seed: u64) -> Setting {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut pick = |from: f64, to: f64| {
        let share = random.next_u64() as f64 / u64::MAX as f64;
        from * (to / from).powf(share)
    };
    let count = pick(1.0, 16.0) as usize;
    let paths = (0..count)
        .map(|_| Path {
            rate: pick(2.0, 100.0) * MEGABIT,
            rtt: Duration::from_secs_f64(pick(0.005, 0.3)),
            loss: pick(1e-7, 0.01),
            window: pick(65_536.0, 4e6),
        })
        .collect();
    Setting {
        paths,
        link: pick(20.0, 1000.0) * MEGABIT,
        bytes: 6_000_000,
        streams: pick(1.0, 6.0) as u32,
        source: f64::INFINITY,
        troubles: Vec::new(),
        seed,
    }
}

/// The same carrier `count` times over a link.
fn alike(count: usize, path: Path, link: f64, bytes: u64) -> Setting {
    let paths = vec![path; count];
    let source = f64::INFINITY;
    Setting { paths, link, bytes, streams: 1, source, troubles: Vec::new(), seed: 7 }
}

fn goodput(setting: &Setting) -> f64 {
    let outcome = carry(setting);
    let share = share_of_optimum(setting, &outcome);
    eprintln!("{} carriers: {share:.3} of the optimum, {outcome:?}", setting.paths.len());
    setting.bytes as f64 / outcome.time.as_secs_f64()
}

/// The share of the optimum: what the carriers could have carried in the time that the transfer
/// took, less the round trips in which nothing can flow: OPEN and OPENED, and the way of the last
/// byte.
fn share_of_optimum(setting: &Setting, outcome: &Outcome) -> f64 {
    let fastest = setting.paths.iter().map(|path| path.rtt).min().unwrap();
    let until = Instant::ZERO + outcome.time.saturating_sub(fastest);
    setting.bytes as f64 / optimum(setting, until).as_f64()
}

#[test]
fn generated_carriers_carry_what_they_could() {
    let mut shares: Vec<(f64, u64)> = (1..=seeds())
        .map(|seed| {
            let setting = generated(seed);
            let outcome = carry(&setting);
            assert!(outcome.held <= 129 << 20, "seed {seed} held {}", outcome.held);
            (share_of_optimum(&setting, &outcome), seed)
        })
        .collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = |share: f64| shares[(shares.len() as f64 * share) as usize];
    eprintln!("worst {:?}, 10 % {:?}, median {:?}", &shares[..5], at(0.1), at(0.5));
    assert!(at(0.5).0 >= 0.85 && at(0.1).0 >= 0.65, "{:?} {:?}", at(0.5), at(0.1));
}

#[test]
fn carriers_that_die_or_fall_silent_cost_time_and_no_byte() {
    for seed in 1..=seeds() {
        let mut setting = generated(seed);
        let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0xdead);
        for _ in 0..6 {
            let carrier = random.next_u64() as usize % setting.paths.len();
            let at = Instant::ZERO + Duration::from_millis(random.next_u64() % 3000);
            let outage = Duration::from_millis(random.next_u64() % 20_000);
            let outage = random.next_u64().is_multiple_of(2).then_some(outage);
            setting.troubles.push(Trouble { carrier, at, outage });
        }
        carry(&setting);
    }
}

/// Article E's path: 300 ms, and a window of 2.1 MB for each connection.
const E2: Path = Path {
    rate: 1000.0 * MEGABIT,
    rtt: Duration::from_millis(300),
    loss: 1e-6,
    window: 2_142_000.0,
};
const E_FILE: u64 = 52_059_880;

#[test]
fn forty_carriers_are_not_slower_than_ten() {
    let link = 200.0 * MEGABIT;
    let at = |count| goodput(&alike(count, E2, link, E_FILE));
    let (one, five, ten, forty) = (at(1), at(5), at(10), at(40));
    eprintln!("1: {one:.0}, 5: {five:.0}, 10: {ten:.0}, 40: {forty:.0} B/s");
    assert!(five >= 1.4 * one && ten >= 1.9 * one && forty >= ten, "{one} {five} {ten} {forty}");
}

#[test]
fn one_bad_carrier_costs_little() {
    for count in [5, 10, 40] {
        let without = alike(count - 1, E2, 200.0 * MEGABIT, E_FILE);
        let mut with = alike(count, E2, 200.0 * MEGABIT, E_FILE);
        with.paths[0].loss = 0.05;
        let (with, without) = (carry(&with), carry(&without));
        let share = without.time.as_secs_f64() / with.time.as_secs_f64();
        eprintln!("{count} carriers, one with 5 % loss: {share:.3}, repeated {}", with.repeated);
        assert!(share >= 0.85, "{count}: {share}");
    }
}

#[test]
fn a_window_limited_path_is_filled() {
    let window = 262_144.0 / 1.05;
    let path = Path { rate: 200.0 * MEGABIT, rtt: Duration::from_millis(100), loss: 0.0, window };
    let setting = |count| alike(count, path, 200.0 * MEGABIT, 200_000_000);
    let (one, sixteen) = (goodput(&setting(1)), goodput(&setting(16)));
    eprintln!("1: {one:.0}, 16: {sixteen:.0} B/s");
    assert!(one <= window / 0.1 && sixteen >= 8.0 * one, "{one} {sixteen}");
    assert!(sixteen >= 0.9 * 200.0 * MEGABIT, "{sixteen}");
}

/// Second copies take room from the stream wherever carriers share a link: few, whether the user
/// writes as fast as it can or the carriers sometimes wait for it.
#[test]
fn copies_are_few_behind_a_deep_queue() {
    let link = 100.0 * MEGABIT;
    for (windows, loss) in [(1e6, 0.0), (1e6, 1e-4)] {
        let path = Path { rate: link, rtt: Duration::from_millis(20), loss, window: windows };
        for share in [f64::INFINITY, 1.0, 0.9] {
            let mut setting = alike(8, path, link, 60_000_000);
            setting.source = share * link;
            let outcome = carry(&setting);
            let (copied, time) = (outcome.repeated, outcome.time.as_secs_f64());
            let least = setting.bytes as f64 / setting.source.min(link);
            eprintln!("source {share}: {copied} bytes repeated, {time:.2} s, least {least:.2} s");

            // Every late chunk once made 6 MB of copies here, and 5.3 s of 4.8.
            assert!(copied <= setting.bytes / 20, "{windows} {loss} {share}: {copied}");
            assert!(time <= least / 0.97 + 0.15, "{windows} {loss} {share}: {time} {least}");
        }
    }
}

/// A carrier that is far slower than the others holds what it took. The copies of that stay within
/// their bound on every path.
#[test]
fn copies_of_late_chunks_stay_within_their_bound() {
    for seed in 1..=seeds().div_ceil(3) {
        let mut setting = generated(seed);
        setting.source = 0.3 * setting.link;
        let outcome = carry(&setting);
        // A silent carrier's chunks go again whatever they are: here carriers stall for seconds
        // only where they lose the same packet again and again.
        let bound = (1 << 20) + setting.bytes / 16 + setting.bytes / 20;
        assert!(outcome.repeated <= bound, "seed {seed}: {}", outcome.repeated);
    }
}

#[test]
fn a_silent_carrier_is_left_within_seconds() {
    let mut setting = alike(4, E2, 100.0 * MEGABIT, 20_000_000);
    let calm = carry(&setting).time;
    let at = Instant::ZERO + Duration::from_millis(1500);
    let outage = Some(Duration::from_secs(120));
    setting.troubles.push(Trouble { carrier: 1, at, outage });
    let silent = carry(&setting).time;
    eprintln!("calm {calm}, silent {silent}");
    assert!(silent < calm + Duration::from_secs(3), "{calm} {silent}");
}

#[test]
fn streams_share_the_carriers() {
    let mut setting = alike(6, E2, 100.0 * MEGABIT, 40_000_000);
    setting.streams = 8;
    let ends = carry(&setting).ends;
    let (first, last) = (ends[0].as_secs_f64(), ends[7].as_secs_f64());
    assert!(first >= 0.9 * last, "the same amount ends at the same time: {first} {last}");
}
