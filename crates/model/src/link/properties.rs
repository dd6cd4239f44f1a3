//! Properties of the link under any configuration: conservation, causality, its rate, its seed.

use super::tests::{Outcome, poll_until, run, written};
use super::*;
use crate::units::Probability;
use proptest::prelude::*;

fn any_probability() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64].prop_map(|p| Probability::new(p).unwrap())
}

prop_compose! {
    fn any_chance()(probability in any_probability(), correlation in any_probability()) -> Chance {
        Chance { probability, correlation }
    }
}

fn any_loss() -> impl Strategy<Value = Loss> {
    let p = any_probability;
    let model = prop_oneof![
        any_chance().prop_map(LossModel::Random),
        (p(), p(), p(), p(), p()).prop_map(|(p13, p31, p32, p23, p14)| LossModel::State {
            p13,
            p31,
            p32,
            p23,
            p14
        }),
        (p(), p(), p(), p()).prop_map(|(p, r, bad, good)| LossModel::GilbertElliott {
            p,
            r,
            bad,
            good
        }),
    ];
    (model, any::<bool>()).prop_map(|(model, ecn)| Loss { model, ecn })
}

fn any_distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::Normal),
        Just(Distribution::Pareto),
        Just(Distribution::ParetoNormal),
        prop::collection::vec(any::<i16>(), 1..9)
            .prop_map(|values| Distribution::Table(Table::new(values).unwrap())),
    ]
}

fn any_discipline() -> impl Strategy<Value = Discipline> {
    let texts = [
        "droptail",
        "mark 20kB",
        "mark 5ms",
        "codel",
        "codel target 100us interval 1ms ce_threshold 50us",
        "fq_codel",
        "fq_codel flows 1 quantum 64 noecn",
        "red",
        "red min 3kB max 9kB probability 50% noecn",
    ];
    prop::sample::select(texts.to_vec()).prop_map(|text| text.parse().unwrap())
}

fn any_changes() -> impl Strategy<Value = Changes> {
    let texts = [
        "1ms rate 1mbit, 2ms down, 3ms up delay 1ms, every 5ms",
        "5ms rate 10kbit, 100ms rate 1gbit, 200ms delay 3ms",
        "outage 1ms every 3ms",
        "handover 4ms delay 1ms 3ms outage 1ms",
        "1ms down",
    ];
    prop::sample::select(texts.to_vec()).prop_map(|text| text.parse().unwrap())
}

prop_compose! {
    /// Anything that passes [`Config::checked`].
    fn any_config()(
        rate in prop::option::of(1u64..10_000_000_000),
        (packet, cell, cell_overhead) in (-20i32..100, prop::option::of(1u32..100), -1i32..9),
        (base, jitter) in (0u64..200_000_000, 0u64..200_000_000),
        (correlation, distribution) in (any_probability(), any_distribution()),
        queue in prop_oneof![
            (1500u64..10_000_000).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
            (1u64..200).prop_map(QueueLimit::Packets),
            (1u32..500).prop_map(QueueLimit::BdpPercent),
        ],
        (discipline, loss) in (any_discipline(), any_loss()),
        (duplicate, corrupt) in (any_chance(), any_chance()),
        reorder in prop::option::of((any_chance(), 1u32..9)),
        slot in prop::option::of(prop::sample::select(vec![
            "1ms",
            "0ms 5ms packets 2",
            "distribution pareto 2ms 1ms bytes 2000",
        ])),
        changes in prop::option::of(any_changes()),
        trace: bool,
    ) -> Option<Config> {
        let cell = cell.and_then(std::num::NonZeroU32::new);
        let overhead = Overhead { packet, cell, cell_overhead };
        let jitter = Duration::from_nanos(jitter.min(base));
        let varies = jitter > Duration::ZERO;
        let mut config = Config {
            delay: Delay {
                base: Duration::from_nanos(base),
                jitter,
                correlation: if varies { correlation } else { Probability::ZERO },
                distribution: if varies { distribution } else { Distribution::Uniform },
            },
            rate: rate.map(Rate::from_bits_per_sec),
            overhead: if rate.is_some() && cell.is_some() { overhead } else { Overhead::NONE },
            queue, loss, duplicate, corrupt, discipline, changes,
            reorder: reorder.map(|(chance, gap)| Reorder { chance, gap: gap.try_into().unwrap() }),
            slot: slot.map(|text| text.parse().unwrap()),
        };
        if trace {
            (config.rate, config.overhead) = (None, Overhead::NONE);
            config.changes = Some("trace 0,1,1,7".parse().unwrap());
        }
        config.checked().ok()
    }
}

fn any_arrivals() -> impl Strategy<Value = Vec<(Instant, Packet)>> {
    let size = prop_oneof![0u64..70_000, Just(1500), Just(u64::MAX)];
    let one = (0u64..3_000_000, size, 0u32..4, 0u8..4);
    prop::collection::vec(one, 1..120).prop_map(|arrivals| {
        let mut now = 1_000;
        let packets = arrivals.into_iter().map(|(gap, size, flow, ecn)| {
            now += gap;
            (
                Instant::from_nanos(now),
                Packet { size: Bytes::new(size), flow, ecn: Ecn::from_bits(ecn) },
            )
        });
        packets.collect()
    })
}

fn conserved(counters: &Counters, inside: u64) -> bool {
    counters.arrived_packets + counters.duplicated_packets
        == counters.departed_packets
            + counters.lost_packets
            + counters.queue_dropped_packets
            + counters.discipline_dropped_packets
            + inside
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packets_are_conserved_and_never_early(
        config in any_config(), arrivals in any_arrivals(), seed: u64,
    ) {
        let Some(config) = config else { return Ok(()) };
        let mut link: Link<usize> = Link::new(&config, Duration::from_millis(40), seed);
        let outcome = run(&mut link, arrivals.clone());
        let inside = link.len() as u64;
        prop_assert!(
            conserved(&outcome.counters, inside), "{:?} {inside} inside", outcome.counters
        );
        prop_assert_eq!(outcome.counters.departed_packets as usize, outcome.departures.len());
        prop_assert!(outcome.departures.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let constant =
            config.delay.is_constant() && config.reorder.is_none() && config.changes.is_none();
        for departure in &outcome.departures {
            let (arrived, packet) = arrivals[departure.item];
            let least = if constant { config.delay.base } else { Duration::ZERO };
            prop_assert!(departure.at >= arrived + least, "{departure:?} arrived {arrived:?}");
            let size = packet.size.get();
            prop_assert!(departure.corrupt.is_none_or(|bit| u64::from(bit.byte) < size));
            prop_assert!(!departure.mark || packet.ecn.is_capable());
        }
        let copies = outcome.departures.iter().filter(|departure| departure.copy).count() as u64;
        prop_assert!(copies <= outcome.counters.duplicated_packets);
    }

    /// When the driver polls is not for the model to depend on: early, late or only at the end, the
    /// fate is the same.
    #[test]
    fn the_same_seed_and_arrivals_give_the_same_fate(
        config in any_config(), arrivals in any_arrivals(), seed: u64,
    ) {
        let Some(config) = config else { return Ok(()) };
        let new = || -> Link<usize> { Link::new(&config, Duration::from_millis(40), seed) };
        let punctual = run(&mut new(), arrivals.clone());
        prop_assert_eq!(&punctual, &run(&mut new(), arrivals.clone()));
        let mut lazy = new();
        let mut outcome = Outcome::default();
        for (index, (now, packet)) in arrivals.iter().enumerate() {
            if let Err(cause) = lazy.push(index, *packet, *now).original {
                outcome.refused.push((index, cause));
            }
        }
        poll_until(&mut lazy, Instant::from_nanos(u64::MAX), &mut outcome);
        outcome.counters = lazy.counters();
        let by_time = |departures: &[Departure<usize>]| {
            let mut all: Vec<_> = departures
                .iter()
                .map(|one| (one.at, one.item, one.copy, one.mark, one.corrupt))
                .collect();
            all.sort_by_key(|(at, item, copy, ..)| (*at, *item, *copy));
            all
        };
        prop_assert_eq!(by_time(&punctual.departures), by_time(&outcome.departures));
        prop_assert_eq!(punctual.refused, outcome.refused);
    }

    /// No span of departures carries more than the rate, but for the packet that begins it.
    #[test]
    fn the_rate_is_never_exceeded(
        rate in 1_000_000u64..1_000_000_000,
        discipline in any_discipline(),
        arrivals in any_arrivals(),
        seed: u64,
    ) {
        let config = Config {
            rate: Some(Rate::from_bits_per_sec(rate)),
            discipline,
            ..written("queue = '1MB'\nrate = '1mbit'")
        };
        let arrivals: Vec<_> = arrivals
            .into_iter()
            .filter(|(_, packet)| packet.size < Bytes::new(70_000))
            .collect();
        let mut link = Link::new(&config, Duration::from_millis(40), seed);
        let outcome = run(&mut link, arrivals.clone());
        for (index, first) in outcome.departures.iter().enumerate() {
            let mut bits = 0u128;
            for later in &outcome.departures[index + 1..] {
                bits += u128::from(arrivals[later.item].1.size.get()) * 8_000_000_000;
                let span = u128::from(later.at.since(first.at).as_nanos()) + 1;
                prop_assert!(bits <= span * u128::from(rate) + u128::from(rate), "{bits} in {span} ns");
            }
        }
    }

    /// A change in mid-transfer loses nothing of what waits or propagates.
    #[test]
    fn a_change_keeps_what_is_on_the_link(
        before in any_config(), after in any_config(), arrivals in any_arrivals(), seed: u64,
    ) {
        let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
        let mut link: Link<usize> = Link::new(&before, Duration::from_millis(40), seed);
        let half = arrivals.len() / 2;
        for (index, (now, packet)) in arrivals.iter().enumerate() {
            if index == half {
                let inside = link.len();
                let dropped = link.counters().discipline_dropped_packets;
                link.set(&after, Duration::from_millis(10), *now);
                let dropped = link.counters().discipline_dropped_packets - dropped;
                prop_assert_eq!(link.len() as u64 + dropped, inside as u64);
            }
            let _ = link.push(index, *packet, *now);
        }
        let mut outcome = Outcome::default();
        poll_until(&mut link, Instant::from_nanos(u64::MAX), &mut outcome);
        prop_assert!(conserved(&link.counters(), link.len() as u64));
    }

    #[test]
    fn words_read_back(config in any_config()) {
        let Some(config) = config else { return Ok(()) };
        let words = Words::from(&config);
        let text = toml::to_string(&words).unwrap();
        let read: Words = toml::from_str(&text).unwrap();
        prop_assert_eq!(read.unchecked(), config, "{}", text);
    }

    #[test]
    fn any_words_are_read_or_refused(text in "([a-z_]{0,9} ?[0-9.]{0,6}(%|ms|s|mbit|kB|,)? ?){0,6}") {
        let _ = text.parse::<Delay>();
        let _ = text.parse::<Loss>();
        let _ = text.parse::<Reorder>();
        let _ = text.parse::<Slot>();
        let _ = text.parse::<Changes>();
        let _ = text.parse::<Discipline>();
        let _ = text.parse::<RateWords>();
        let _ = text.parse::<rule::Match>();
    }
}

/// One impairment's draws are its own: with the others added, the same packets are lost, flipped
/// and doubled.
#[test]
fn an_impairment_does_not_move_the_draws_of_another() {
    let fates = |words: &str| {
        let outcome =
            run(&mut tests::link(words, 9), tests::evenly(5_000, Duration::from_micros(100)));
        let lost: Vec<usize> = outcome.refused.iter().map(|(item, _)| *item).collect();
        let mut flipped: Vec<usize> = outcome
            .departures
            .iter()
            .filter(|one| one.corrupt.is_some())
            .map(|one| one.item)
            .collect();
        flipped.sort_unstable();
        (lost, flipped)
    };
    let all = fates(
        "delay = '10ms 5ms 20%'\nloss = '3%'\ncorrupt = '2%'\nduplicate = '5%'\nreorder = '10% gap 3'",
    );
    assert_eq!(all.0, fates("loss = '3%'").0);
    let alone = fates("corrupt = '2%'").1;
    // What is lost shows no flipped bit.
    assert_eq!(all.1, alone.into_iter().filter(|item| !all.0.contains(item)).collect::<Vec<_>>());
}

/// What waited when the rate changed goes on by the new one; what was on the wire does not notice.
#[test]
fn a_change_of_rate_and_delay_is_for_what_waits() {
    let mut link: Link<usize> = tests::link("rate = '12mbit'\ndelay = '10ms'\nqueue = '1MB'", 1);
    for item in 0..10 {
        assert_eq!(link.push(item, Bytes::new(1500).into(), Instant::ZERO).admitted(), 1);
    }
    // At 12 Mbit/s a packet takes 1 ms: at 3.5 ms three are on the wire, one is half sent, six
    // wait.
    link.set(
        &written("rate = '120mbit'\ndelay = '1ms'\nqueue = '1MB'"),
        Duration::from_millis(100),
        Instant::from_nanos(3_500_000),
    );
    let mut outcome = Outcome::default();
    poll_until(&mut link, Instant::from_nanos(u64::MAX), &mut outcome);
    let at: Vec<(usize, u64)> =
        outcome.departures.iter().map(|one| (one.item, one.at.as_nanos() / 1000)).collect();
    // The other half of the fourth takes 50 us now, each of the rest 100 us.
    assert_eq!(
        at[..7],
        [(3, 4550), (4, 4650), (5, 4750), (6, 4850), (7, 4950), (8, 5050), (9, 5150)]
    );
    assert_eq!(at[7..], [(0, 11_000), (1, 12_000), (2, 13_000)]);
}
