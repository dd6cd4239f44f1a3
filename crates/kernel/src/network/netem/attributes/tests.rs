use super::*;
use proptest::prelude::*;

fn probability() -> impl Strategy<Value = Probability> {
    (0.0..=1.0).prop_map(|fraction| Probability::new(fraction).unwrap())
}

fn chance() -> impl Strategy<Value = Chance> {
    (probability(), probability())
        .prop_map(|(probability, correlation)| Chance { probability, correlation })
}

fn time() -> impl Strategy<Value = Duration> {
    (0..=i64::MAX as u64).prop_map(Duration::from_nanos)
}

fn loss() -> impl Strategy<Value = LossModel> {
    let p = probability;
    prop_oneof![
        chance().prop_map(LossModel::Random),
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
    ]
}

fn shaping() -> impl Strategy<Value = Shaping> {
    (1..u64::MAX / 8, any::<i32>(), any::<u32>(), any::<i32>()).prop_map(
        |(bytes, packet, cell, cell_overhead)| {
            let overhead = Overhead { packet, cell: NonZeroU32::new(cell), cell_overhead };
            Shaping { rate: Rate::from_bits_per_sec(bytes * 8), overhead }
        },
    )
}

fn slot() -> impl Strategy<Value = Slot> {
    let spacing = (time(), time(), any::<bool>()).prop_map(|(a, b, between)| {
        let b = b.max(Duration::from_nanos(1));
        if between { Spacing::Between(a, b) } else { Spacing::Around(a, b) }
    });
    (spacing, 0..i32::MAX as u32, 0..i32::MAX as u64).prop_map(|(spacing, packets_max, bytes)| {
        Slot { spacing, packets_max, bytes_max: Bytes::new(bytes) }
    })
}

fn reorder() -> impl Strategy<Value = Reorder> {
    (chance(), 1..u32::MAX)
        .prop_map(|(chance, gap)| Reorder { chance, gap: NonZeroU32::new(gap).unwrap() })
}

fn netem() -> impl Strategy<Value = Netem> {
    let delays = (time(), time(), probability(), any::<u32>());
    let events = (loss(), chance(), chance(), proptest::option::of(reorder()));
    let rest = (
        proptest::option::of(shaping()),
        proptest::option::of(slot()),
        any::<bool>(),
        proptest::option::of(any::<u64>()),
    );
    (delays, events, rest).prop_map(|(delays, events, rest)| {
        let (delay, jitter, delay_correlation, limit) = delays;
        let (loss, duplicate, corrupt, reorder) = events;
        let (rate, slot, ecn, seed) = rest;
        let distribution = Vec::new();
        let delays =
            Netem { delay, jitter, delay_correlation, limit, distribution, ..Netem::default() };
        Netem { loss, duplicate, corrupt, reorder, rate, slot, ecn, seed, ..delays }
    })
}

proptest! {
    #[test]
    fn what_is_told_is_read_back(netem in netem()) {
        // netem's scale is finer than a billionth, so no probability is changed by it.
        prop_assert_eq!(decode(&encode(&netem).unwrap()), Ok(netem));
    }

    #[test]
    fn any_bytes_are_netem_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(decode(&bytes).is_err(), bytes.len() < QOPT_LEN);
    }
}

/// What iproute2's `tc` sends for
/// `netem delay 100ms 10ms 25% loss gemodel 1% 10% 70% 0.1% limit 5000 rate 8mbit -14`, the fields
/// by hand from linux/pkt_sched.h.
#[test]
fn the_kernels_fields_are_where_the_kernel_looks() {
    let p = |text: &str| text.parse::<Probability>().unwrap();
    let netem = Netem {
        limit: 5000,
        delay: Duration::from_millis(100),
        jitter: Duration::from_millis(10),
        delay_correlation: p("25%"),
        loss: LossModel::GilbertElliott { p: p("1%"), r: p("10%"), bad: p("70%"), good: p("0.1%") },
        rate: Some(Shaping {
            rate: Rate::from_bits_per_sec(8_000_000),
            overhead: Overhead { packet: -14, ..Overhead::NONE },
        }),
        seed: Some(7),
        ..Netem::default()
    };
    let bytes = encode(&netem).unwrap();
    assert_eq!(u32s::<6>(&bytes), [1_562_500, 5000, 0, 0, 0, 156_250]);
    let of = |kind| attributes(&bytes[24..]).find(|(found, _)| *found == kind).unwrap().1.to_vec();
    assert_eq!(u32s::<3>(&of(CORR)), [1 << 30, 0, 0]);
    assert_eq!(u32s::<4>(&of(RATE)), [1_000_000, 14u32.wrapping_neg(), 0, 0]);
    assert_eq!((u64_of(&of(LATENCY64)), u64_of(&of(PRNG_SEED))), (100_000_000, 7));
    // h, to be spared in the bad state, is 30 %.
    let nested = of(LOSS);
    let (kind, model) = attributes(&nested).next().unwrap();
    let [p, r, h, k1] = u32s(model).map(|field| f64::from(field) / f64::from(u32::MAX));
    assert_eq!(kind, LOSS_GE);
    for (field, expected) in [(p, 0.01), (r, 0.1), (h, 0.3), (k1, 0.001)] {
        assert!((field - expected).abs() < 1e-9, "{field} {expected}");
    }
}

#[test]
fn what_the_fields_cannot_hold_is_refused() {
    let slow = Shaping { rate: Rate::from_bits_per_sec(7), overhead: Overhead::NONE };
    for (netem, text) in [
        (Netem { delay: Duration::from_nanos(u64::MAX), ..Netem::default() }, "netem delay"),
        (
            Netem { distribution: vec![0; DISTRIBUTION_MAX + 1], ..Netem::default() },
            "16385 entries",
        ),
        (Netem { rate: Some(slow), ..Netem::default() }, "below one byte"),
    ] {
        let error = encode(&netem).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
