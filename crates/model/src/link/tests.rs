//! The link in virtual time: its laws as properties over random arrivals.

use super::*;
use crate::units::Probability;
use proptest::prelude::*;

/// A direction in the words of a scenario file.
pub(super) fn written(words: &str) -> Config {
    let words: Words = toml::from_str(words).unwrap();
    words.config(&mut |path| Err(format!("no {path} here"))).unwrap()
}

/// Why the words cannot be a direction.
pub(super) fn refused(words: &str) -> String {
    match toml::from_str::<Words>(words) {
        Ok(words) => {
            words.config(&mut |path| Err(format!("no {path} here"))).unwrap_err().to_string()
        }
        Err(error) => error.message().to_string(),
    }
}

fn config(rate: &str, delay: &str, queue: &str, loss: &str) -> Config {
    let rate = if rate.is_empty() { String::new() } else { format!("rate = '{rate}'\n") };
    written(&format!("{rate}delay = '{delay}'\nqueue = '{queue}'\nloss = '{loss}'"))
}

/// A link on a path of 100 ms.
pub(super) fn link<T: Clone>(words: &str, seed: u64) -> Link<T> {
    Link::new(&written(words), Duration::from_millis(100), seed)
}

/// What came of a series of packets.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// Originals that were refused on arrival, and why.
    pub refused: Vec<(usize, DropCause)>,
    /// What left, in the order of leaving.
    pub departures: Vec<Departure<usize>>,
    /// What was dropped inside.
    pub dropped: Vec<Dropped<usize>>,
    pub counters: Counters,
}

/// Pushes packets at their times, polling whenever the link asks for it, and then until it is
/// empty.
pub(super) fn run(
    link: &mut Link<usize>,
    packets: impl IntoIterator<Item = (Instant, Packet)>,
) -> Outcome {
    let mut outcome = Outcome::default();
    for (index, (now, packet)) in packets.into_iter().enumerate() {
        poll_until(link, now, &mut outcome);
        if let Err(cause) = link.push(index, packet, now).original {
            outcome.refused.push((index, cause));
        }
    }
    poll_until(link, Instant::from_nanos(u64::MAX), &mut outcome);
    outcome.counters = link.counters();
    outcome
}

/// Polls as a driver does: at each time that the link names, up to `end`.
pub(super) fn poll_until(link: &mut Link<usize>, end: Instant, outcome: &mut Outcome) {
    while let Some(at) = link.poll_at().filter(|at| *at <= end) {
        match link.poll(at) {
            Some(Event::Departure(departure)) => outcome.departures.push(departure),
            Some(Event::Drop(dropped)) => outcome.dropped.push(dropped),
            None => {}
        }
    }
}

/// `count` packets of 1500 bytes, one each `gap`.
pub(super) fn evenly(count: usize, gap: Duration) -> impl Iterator<Item = (Instant, Packet)> {
    let at = move |index: usize| Instant::ZERO + gap.saturating_mul(index as u64 + 1);
    (0..count).map(move |index| (at(index), Bytes::new(1500).into()))
}

/// Whether `seen` of `count` is within the binomial 99.9 % interval of `probability`.
pub(super) fn binomial(seen: usize, count: usize, probability: f64) -> bool {
    let mean = count as f64 * probability;
    let sigma = (mean * (1.0 - probability)).sqrt();
    (seen as f64 - mean).abs() <= 3.291 * sigma + 1.0
}

/// Correlation of each value with the one before.
pub(super) fn autocorrelation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let covariance: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    covariance / variance
}

fn departure<T: std::fmt::Debug>(event: Event<T>) -> Departure<T> {
    match event {
        Event::Departure(departure) => departure,
        Event::Drop(dropped) => panic!("{dropped:?}"),
    }
}

/// Pushes `arrivals` (time since the one before, size) and drains: (departures, drops).
fn drive(
    link: &mut Link<usize>,
    arrivals: &[(u64, u64)],
) -> (Vec<Departure<usize>>, Vec<(usize, DropCause)>) {
    let (mut now, mut out, mut drops) = (Instant::ZERO, Vec::new(), Vec::new());
    for (index, (gap, size)) in arrivals.iter().enumerate() {
        now = now + Duration::from_nanos(*gap);
        while let Some(event) = link.poll(now) {
            out.push(departure(event));
        }
        if let Err(cause) = link.push(index, Bytes::new(*size).into(), now).original {
            drops.push((index, cause));
        }
    }
    while let Some(at) = link.poll_at() {
        out.extend(link.poll(at).map(departure));
    }
    (out, drops)
}

#[test]
fn a_lone_packet_takes_its_serialisation_time_and_the_delay() {
    let mut link = Link::new(&config("1gbit", "25ms", "1bdp", "0"), Duration::from_millis(50), 0);
    assert_eq!(link.push('p', Bytes::new(1500).into(), Instant::ZERO).original, Ok(()));
    assert_eq!(link.poll(Instant::from_nanos(25_011_999)), None);
    let departure = departure(link.poll(Instant::from_nanos(25_012_000)).unwrap());
    assert_eq!((departure.item, departure.at), ('p', Instant::from_nanos(25_012_000)));
}

#[test]
fn a_million_packets_take_as_long_as_their_sum_at_an_uneven_rate() {
    // 7 Mbit/s divides no packet evenly: without the carried remainder this is off by half a
    // millisecond.
    let mut link = Link::new(&config("7mbit", "0ms", "2GB", "0"), Duration::ZERO, 0);
    let mut last = Instant::ZERO;
    for index in 0..1_000_000 {
        assert_eq!(link.push(index, Bytes::new(1499).into(), Instant::ZERO).admitted(), 1);
    }
    while let Some(at) = link.poll_at() {
        last = departure(link.poll(at).unwrap()).at;
    }
    let exact = 1_000_000u128 * 1499 * 8_000_000_000 / 7_000_000;
    assert!(u128::from(last.as_nanos()).abs_diff(exact) <= 1, "{} != {exact}", last.as_nanos());
}

#[test]
fn the_default_queue_is_one_bdp_and_at_least_64_packets() {
    let rtt = Duration::from_millis(50);
    assert_eq!(
        config("1gbit", "25ms", "1bdp", "0").capacity(rtt),
        Capacity::Bytes(Bytes::new(6_250_000))
    );
    assert_eq!(
        config("1mbit", "0ms", "1bdp", "0").capacity(Duration::ZERO),
        Capacity::Bytes(Bytes::new(96_000))
    );
    assert_eq!(
        config("8mbit", "0ms", "20ms", "0").capacity(rtt),
        Capacity::Bytes(Bytes::new(20_000))
    );
    assert_eq!(Config::default().capacity(rtt), Capacity::Unlimited);
}

#[test]
fn impossible_directions_are_refused_with_the_reason() {
    let refuse = |config: Config, says: &str| {
        let error = config.checked().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    refuse(Config { rate: Some(Rate::ZERO), ..Config::default() }, "carries nothing");
    refuse(Config { rate: Some("5tbit".parse().unwrap()), ..Config::default() }, "above 1 Tbit/s");
    refuse(Config { delay: Duration::from_secs(3600).into(), ..Config::default() }, "above 60 s");
    refuse(Config { queue: "20ms".parse().unwrap(), ..Config::default() }, "needs a rate");
    refuse(
        Config {
            rate: Some("1gbit".parse().unwrap()),
            queue: "1000".parse().unwrap(),
            ..Config::default()
        },
        "less than one packet",
    );
    for text in ["1.5packets", "0bdp", "5parsec", "1mb"] {
        assert!(
            text.parse::<QueueLimit>().unwrap_err().to_string().contains("for example 100kB"),
            "{text}"
        );
    }
}

#[test]
fn loss_keeps_within_its_binomial_interval_and_repeats_with_its_seed() {
    let lost = |seed: u64| -> Vec<usize> {
        let mut link = Link::new(&config("", "1ms", "1bdp", "1%"), Duration::from_millis(2), seed);
        drive(&mut link, &vec![(1_000, 1500); 100_000])
            .1
            .into_iter()
            .map(|(index, _)| index)
            .collect()
    };
    let first = lost(7);
    assert_eq!(first, lost(7));
    assert_ne!(first, lost(8));
    // n p = 1000, sigma = sqrt(n p (1 - p)) = 31.5; 99.99 % of seeds are within 3.9 sigma.
    assert!((877..=1123).contains(&first.len()), "{} of 100000 lost at 1 %", first.len());
}

#[test]
fn which_packets_are_lost_does_not_depend_on_the_queue() {
    let lost = |queue: &str| {
        let mut link =
            Link::new(&config("10mbit", "1ms", queue, "5%"), Duration::from_millis(2), 3);
        let (_, drops) = drive(&mut link, &vec![(500_000, 1500); 5_000]);
        drops.into_iter().filter(|(_, cause)| *cause == DropCause::Loss).collect::<Vec<_>>()
    };
    assert_eq!(lost("2packets"), lost("1000packets"));
}

prop_compose! {
    fn any_config()(
        rate in prop::option::of(1_000u64..100_000_000_000),
        delay in 0u64..200_000_000,
        queue in prop_oneof![
            (1500u64..10_000_000).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
            (1u64..2000).prop_map(QueueLimit::Packets),
            (1u32..500).prop_map(QueueLimit::BdpPercent),
        ],
        loss in 0.0f64..0.5,
    ) -> Config {
        Config {
            delay: Duration::from_nanos(delay).into(),
            rate: rate.map(Rate::from_bits_per_sec),
            queue,
            loss: Loss::random(Probability::new(loss).unwrap()),
            ..Config::default()
        }
    }
}

/// A policer of 8 Mbit/s with a bucket of 15 kB, and packets of 1500 bytes so many microseconds
/// apart.
fn policed(gaps_us: &[u64]) -> (Vec<Instant>, Outcome) {
    let words = "rate = '8mbit'\ndelay = '10ms'\nqueue = '15kB'\ndiscipline = 'police'";
    let mut now = Instant::from_nanos(1_000_000);
    let times: Vec<Instant> = gaps_us
        .iter()
        .map(|gap| {
            now = now + Duration::from_micros(*gap);
            now
        })
        .collect();
    let packet = Packet::from(Bytes::new(1500));
    let outcome = run(&mut link(words, 1), times.iter().map(|at| (*at, packet)));
    (times, outcome)
}

#[test]
fn a_policer_passes_its_bucket_at_once_and_then_its_rate() {
    let (_, outcome) = policed(&[0; 100]);
    assert_eq!(outcome.departures.len(), 10);
    assert!(outcome.refused.iter().all(|(_, cause)| *cause == DropCause::Discipline));
    // 1500 bytes take 1.5 ms of 8 Mbit/s: every other packet of those 750 us apart finds tokens.
    let (_, outcome) = policed(&[750; 1000]);
    assert!((500..=520).contains(&outcome.departures.len()), "{}", outcome.departures.len());
}

proptest! {
    #[test]
    fn what_a_policer_passes_waits_for_nothing(gaps in prop::collection::vec(0_u64..4000, 1..200)) {
        let (times, outcome) = policed(&gaps);
        for departure in &outcome.departures {
            prop_assert_eq!(departure.at, times[departure.item] + Duration::from_millis(10));
            prop_assert_eq!(departure.queued, Duration::ZERO);
        }
        prop_assert_eq!(outcome.departures.len() + outcome.refused.len(), gaps.len());
    }

    #[test]
    fn packets_keep_order_delay_rate_and_room(
        config in any_config(),
        rtt in 0u64..400_000_000,
        arrivals in prop::collection::vec((0u64..2_000_000, 40u64..65_536), 1..300),
        seed: u64,
    ) {
        let rtt = Duration::from_nanos(rtt);
        let mut link = Link::new(&config, rtt, seed);
        let (out, drops) = drive(&mut link, &arrivals);
        let counters = link.counters();

        // Conservation: every packet departs or is dropped, once.
        prop_assert_eq!(out.len() + drops.len(), arrivals.len());
        prop_assert_eq!(counters.departed_packets as usize, out.len());
        prop_assert_eq!(counters.lost_packets + counters.queue_dropped_packets, drops.len() as u64);
        // Order: first in, first out.
        prop_assert!(out.windows(2).all(|pair| pair[0].item < pair[1].item && pair[0].at <= pair[1].at));

        let mut arrived = Vec::new();
        let mut now = 0;
        for (gap, _) in &arrivals {
            now += gap;
            arrived.push(now);
        }
        for departure in &out {
            // Delay: never early, by its own serialisation time (rounded down) and the propagation
            // delay.
            let (_, size) = arrivals[departure.item];
            let own = config.rate.map_or(0, |rate| u128::from(size) * 8_000_000_000 / u128::from(rate.bits_per_sec()));
            let earliest = u128::from(arrived[departure.item]) + own + u128::from(config.delay.base.as_nanos());
            prop_assert!(u128::from(departure.at.as_nanos()) + 1 >= earliest);
        }
        if let Some(rate) = config.rate {
            // Rate: after the first, what departs in a span fits the rate (a packet and a
            // nanosecond of rounding apart).
            if let [first, rest @ .., last] = out.as_slice() {
                let bytes: u64 = rest.iter().chain([last]).map(|departure| arrivals[departure.item].1).sum();
                let span = last.at.since(first.at).as_nanos() as u128 + 1;
                prop_assert!(u128::from(bytes) * 8_000_000_000 <= span * u128::from(rate.bits_per_sec()) + u128::from(rate.bits_per_sec()));
            }
            // Room: what ever waited fits the queue, but for one packet that an empty queue always
            // takes.
            if let Capacity::Bytes(limit) = config.capacity(rtt) {
                let largest = arrivals.iter().map(|(_, size)| *size).max().unwrap_or(0);
                prop_assert!(counters.queue_max_bytes <= limit.get().max(largest) + largest);
            }
        }
    }

    #[test]
    fn queue_text_reads_back(percent in 1u32..100_000, packets in 1u64..1_000_000, bytes: u64) {
        for queue in [QueueLimit::BdpPercent(percent), QueueLimit::Packets(packets), QueueLimit::Bytes(Bytes::new(bytes))] {
            prop_assert_eq!(queue.to_string().parse(), Ok(queue));
        }
    }
}
