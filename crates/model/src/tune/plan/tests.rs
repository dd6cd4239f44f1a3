use super::*;
use crate::law::{KernelVersion, transfer_time};
use crate::limit::{End, Limit};
use crate::units::{Duration, Rate};
use proptest::prelude::*;

fn kernel(version: &str) -> HostSettings {
    HostSettings::defaults(version.parse::<KernelVersion>().unwrap())
}

fn demo_path() -> Path {
    Path::new("1gbit".parse().unwrap(), "50ms".parse().unwrap())
}

/// The settings after a plan's texts were written and read again, as a host's sysctls are.
fn apply(
    plan: &Plan,
    sender: &HostSettings,
    receiver: &HostSettings,
) -> (HostSettings, HostSettings) {
    let (mut sender, mut receiver) = (sender.clone(), receiver.clone());
    for change in &plan.changes {
        let host = match change.end {
            Some(End::Sender) => &mut sender,
            _ => &mut receiver,
        };
        let Knob::Sysctl(sysctl) = change.knob else { panic!("{change:?}") };
        assert_eq!(host.get(sysctl), change.from);
        host.read(sysctl, &change.to.to_string()).unwrap();
    }
    (sender, receiver)
}

#[test]
fn the_demonstration_is_filled_on_old_and_new_kernels() {
    for version in ["4.18", "5.14", "6.1", "6.6", "6.12", "6.18"] {
        // The article's defaults: 6 MiB to receive, whatever the kernel's own.
        let host =
            HostSettings { tcp_rmem: MemTriple::new(4096, 131_072, 6_291_456), ..kernel(version) };
        let plan = plan(demo_path(), &host, &host);
        let before = plan.before.goodput.fraction_of(demo_path().rate);
        assert!(
            before <= 0.6 && plan.before.limited_by == Limit::SendBuffer,
            "{version}: {before}"
        );
        assert_eq!(plan.after.limited_by, Limit::Link, "{version}");
        // At least 90 % of the link over about 10 s, connecting and slow start included.
        let amount = Bytes::new(1_150_000_000);
        let time = transfer_time::transfer_time(
            amount,
            demo_path().framing.mss(),
            demo_path().rtt,
            plan.after.goodput,
        )
        .unwrap();
        let mean = time.mean_rate(amount).unwrap().fraction_of(demo_path().rate);
        assert!(mean >= 0.9, "{version}: {mean}");
    }
}

#[test]
fn each_change_says_why_in_numbers() {
    let host = kernel("6.1");
    let plan = plan(demo_path(), &host, &host);
    let said: Vec<_> = plan
        .changes
        .iter()
        .map(|c| (c.end.unwrap(), c.knob.to_string(), c.to.to_string(), c.reason.to_string()))
        .collect();
    assert_eq!(
        said,
        [
            (
                End::Sender,
                "net.ipv4.tcp_wmem".into(),
                "4096 16384 11534336".into(),
                "a send buffer of 4 MiB keeps 2.768 MB in flight (66 % of it), about 442.9 Mbit/s over 50 ms; the \
                 path holds 6.25 MB and its queue 6.25 MB"
                    .into()
            ),
            (
                End::Receiver,
                "net.ipv4.tcp_rmem".into(),
                "4096 131072 14680064".into(),
                "a receive buffer of 6 MiB advertises 3.146 MB (50 % of it, tcp_adv_win_scale 1), about 503.3 Mbit/s \
                 over 50 ms; the path holds 6.25 MB and its queue 6.25 MB"
                    .into()
            ),
        ]
    );
}

#[test]
fn a_path_that_is_filled_needs_nothing() {
    let host = kernel("6.18");
    let lan = Path::new("1gbit".parse().unwrap(), "1ms".parse().unwrap());
    assert_eq!(plan(lan, &host, &host).changes, []);
}

#[test]
fn switches_are_put_back_on() {
    let off =
        HostSettings { tcp_window_scaling: false, tcp_moderate_rcvbuf: false, ..kernel("6.18") };
    let changes = plan(demo_path(), &kernel("6.18"), &off).changes;
    let settings: Vec<_> = changes.iter().map(|c| (&c.knob, c.end, &c.from, &c.to)).collect();
    let (off, on) = (Some(Value::flag(false)), Value::flag(true));
    for sysctl in [Sysctl::TcpModerateRcvbuf, Sysctl::TcpWindowScaling] {
        let knob = Knob::Sysctl(sysctl);
        assert!(settings.contains(&(&knob, Some(End::Receiver), &off, &on)), "{settings:?}");
    }
}

#[test]
fn an_application_that_froze_its_buffer_is_named() {
    // plantegg's story: SO_SNDBUF of 16 KiB on 100 Mbit/s and 20 ms.
    let path = Path::new("100mbit".parse().unwrap(), "20ms".parse().unwrap());
    let sender = HostSettings { so_sndbuf: Some("16KiB".parse().unwrap()), ..kernel("5.4") };
    let plan = plan(path, &sender, &kernel("5.4"));
    assert_eq!(plan.before.limited_by, Limit::SendBuffer);
    assert_eq!(plan.changes[0].knob, Knob::Sysctl(Sysctl::WmemMax));
    let named = plan.notes.iter().any(|note| {
        note.end == Some(End::Sender) && note.note.to_string().contains("SO_SNDBUF to 16 KiB")
    });
    assert!(named, "{:?}", plan.notes);
}

#[test]
fn more_than_one_connection_can_hold_is_said() {
    let path = Path::new("1tbit".parse().unwrap(), "100ms".parse().unwrap());
    let plan = plan(path, &kernel("6.18"), &kernel("6.18"));
    // 12.5 GB over windows of 1 GiB.
    assert!(
        plan.notes[0].note.to_string().ends_with("in flight: 12 fill it"),
        "{}",
        plan.notes[0].note
    );
    assert_eq!(plan.after.limited_by, Limit::ReceiveWindow);
}

#[test]
fn memory_is_counted_in_connections() {
    // tcp_mem[1] of a machine of 3 GiB: 383869 pages are 1.5 GiB.
    let host = HostSettings { tcp_mem_pressure_pages: Some(383_869), ..kernel("6.18") };
    let notes = plan(demo_path(), &host, &host).notes;
    assert!(
        notes.iter().any(|note| note.note.to_string().ends_with("so 46 such connections")),
        "{notes:?}"
    );
    assert_eq!(383_869 * 4096 / 33_554_432, 46);
}

fn any_host() -> impl Strategy<Value = HostSettings> {
    let version = prop_oneof![Just("4.18"), Just("6.1"), Just("6.6"), Just("6.18")];
    let buffer = 4096u64..1 << 31;
    (version, buffer.clone(), buffer, -3i8..=3, any::<bool>(), any::<bool>()).prop_map(
        |(version, rmem, wmem, scale, scaling, moderate)| HostSettings {
            tcp_rmem: MemTriple::new(4096, 4096.max(rmem / 64), rmem),
            tcp_wmem: MemTriple::new(4096, 16_384, wmem),
            tcp_adv_win_scale: crate::law::AdvWinScale::new(scale).unwrap(),
            tcp_window_scaling: scaling,
            tcp_moderate_rcvbuf: moderate,
            ..kernel(version)
        },
    )
}

/// 1 kbit/s to 1 Tbit/s, 1 us to 10 s: evenly over the orders of magnitude.
fn any_path() -> impl Strategy<Value = Path> {
    (3.0f64..12.0, 0.0f64..7.0).prop_map(|(rate, rtt)| {
        Path::new(
            Rate::from_bits_per_sec_f64(10f64.powf(rate)),
            Duration::from_micros(10f64.powf(rtt) as u64),
        )
    })
}

fn largest(settings: &HostSettings) -> [u64; 2] {
    [settings.tcp_rmem.max.get(), settings.tcp_wmem.max.get()]
}

/// A path is full that carries this part of what it can.
const FULL: f64 = 0.99;

proptest! {
    #[test]
    fn a_planned_path_is_full(path in any_path(), sender in any_host(), receiver in any_host()) {
        let plan = plan(path, &sender, &receiver);
        // tcp_adv_win_scale below -1 may ask for more memory than a sysctl can say.
        let sayable = Bytes::new(500_000_000);
        if path.in_flight_target().bytes() <= sayable && receiver.tcp_adv_win_scale.get() >= -1 {
            // A large write waits for room of its own, which leaves the path idle for a moment now
            // and then; a buffer that grows with that would be smaller for some faster paths.
            let is_full = plan.after.goodput.as_f64() >= FULL * path.goodput().as_f64();
            prop_assert!(is_full || plan.after.limited_by == Limit::Link, "{:?}", plan);
        }
        prop_assert!(plan.after.goodput >= plan.before.goodput);
    }

    #[test]
    fn values_fit_a_sysctl_and_are_never_lowered(path in any_path(), sender in any_host(), receiver in any_host()) {
        let plan = plan(path, &sender, &receiver);
        for change in &plan.changes {
            let from = change.from.as_ref().unwrap();
            let checked = change.knob.checked(&change.to.to_string());
            prop_assert_eq!(checked.as_ref(), Ok(&change.to));
            prop_assert_eq!(from.numbers().len(), change.to.numbers().len());
            let mut both = from.numbers().iter().zip(change.to.numbers());
            prop_assert!(both.all(|(from, to)| from <= to), "{:?}", change);
            prop_assert_ne!(from, &change.to);
        }
    }

    #[test]
    fn a_plan_applied_leaves_nothing_to_plan(path in any_path(), sender in any_host(), receiver in any_host()) {
        let first = plan(path, &sender, &receiver);
        let (sender, receiver) = apply(&first, &sender, &receiver);
        let second = plan(path, &sender, &receiver);
        prop_assert_eq!(&second.before, &first.after);
        prop_assert_eq!(second.changes, vec![]);
    }

    #[test]
    fn more_rate_or_more_delay_never_asks_for_less(
        path in any_path(), faster in 1.0f64..10.0, longer in 1u64..1_000_000, host in any_host(),
    ) {
        let after = |path| { let plan = plan(path, &host, &host); apply(&plan, &host, &host) };
        let (sender, receiver) = after(path);
        for more in [
            Path::new(Rate::from_bits_per_sec_f64(path.rate.as_f64() * faster), path.rtt),
            Path::new(path.rate, path.rtt + Duration::from_micros(longer)),
        ] {
            let (more_sender, more_receiver) = after(more);
            for (less, more) in [(&sender, &more_sender), (&receiver, &more_receiver)] {
                prop_assert!(largest(less).iter().zip(largest(more)).all(|(less, more)| *less <= more));
            }
        }
    }

    #[test]
    fn rounding_adds_an_eighth_at_most(bytes in 32_768u64..i32::MAX as u64) {
        let rounded = round_up(Bytes::new(bytes)).get();
        prop_assert!(rounded >= bytes && rounded as f64 <= bytes as f64 * 1.126);
    }

    #[test]
    fn any_quantities_are_survived(bits: u64, nanos: u64, queue: u64, asked: u64) {
        let path = Path::new(Rate::from_bits_per_sec(bits), Duration::from_nanos(nanos));
        let path = Path { queue: Bytes::new(queue), ..path };
        let asks = HostSettings {
            so_rcvbuf: Some(Bytes::new(asked)),
            so_sndbuf: Some(Bytes::new(asked)),
            tcp_mem_pressure_pages: Some(asked),
            ..kernel("6.1")
        };
        plan(path, &asks, &asks);
        plan(path, &kernel("6.18"), &asks);
    }
}
