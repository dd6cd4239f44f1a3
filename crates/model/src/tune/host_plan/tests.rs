use super::*;
use proptest::prelude::*;

/// A machine with everything shown; `changed` differs from the defaults.
fn machine(kernel: &str, changed: &[(&str, &str)]) -> HostState {
    let mut settings = HostSettings::defaults(kernel.parse().unwrap());
    let text = |settings: &HostSettings, sysctl: Sysctl| match sysctl {
        Sysctl::TcpMem => "287898 383867 575796".into(),
        Sysctl::TcpMtuProbing => "0".into(),
        Sysctl::TcpCongestionControl => "cubic".into(),
        Sysctl::DefaultQdisc => "fq_codel".into(),
        Sysctl::TcpNotsentLowat => u32::MAX.to_string(),
        _ => settings.get(sysctl).map_or_else(|| "1".to_string(), |value| value.to_string()),
    };
    let mut shown = BTreeMap::new();
    for sysctl in Sysctl::ALL {
        let named = changed.iter().find(|(name, _)| *name == sysctl.name());
        let value = named.map_or_else(|| text(&settings, sysctl), |(_, value)| value.to_string());
        let knob = Knob::Sysctl(sysctl);
        let value = knob.read(&value).unwrap();
        settings.make(&knob, &value);
        shown.insert(knob, Shown { value, is_settable: true });
    }
    settings.tcp_mem_pressure_pages = Some(383_867);
    HostState {
        settings,
        shown,
        memory_available: Some("22GiB".parse().unwrap()),
        congestion_controls: vec!["reno".into(), "bbr".into(), "cubic".into()],
    }
}

fn question(rate: &str, rtt: &str, role: Role) -> HostQuestion {
    HostQuestion {
        path: Path::new(rate.parse().unwrap(), rtt.parse().unwrap()),
        role,
        connections: 1,
        memory: None,
        loss: None,
        pauses: false,
        black_hole: false,
        wishes: Vec::new(),
    }
}

/// The machine after the plan.
fn applied(state: &HostState, plan: &HostPlan) -> HostState {
    let mut state = state.clone();
    for change in &plan.changes {
        state.settings.make(&change.knob, &change.to);
        state.shown.get_mut(&change.knob).unwrap().value = change.to.clone();
    }
    state
}

fn to(plan: &HostPlan, name: &str) -> Option<String> {
    let found = plan.changes.iter().find(|change| change.knob.to_string() == name);
    found.map(|change| change.to.to_string())
}

/// Article C: 1 Gbit/s, 146 ms; the sender's buffer is the first limit and the receiver's the next.
#[test]
fn article_c_is_one_plan_for_each_end() {
    let state = machine("5.10", &[]);
    let sender = plan_host(&question("1gbit", "146ms", Role::Sender), &state);
    assert_eq!(sender.before.limited_by, crate::limit::Limit::SendBuffer);
    assert!(to(&sender, "net.ipv4.tcp_wmem").is_some() && sender.changes.len() == 1, "{sender:?}");
    let receiver = plan_host(&question("1gbit", "146ms", Role::Receiver), &state);
    assert_eq!(receiver.before.limited_by, crate::limit::Limit::ReceiveWindow);
    // 6 MiB give half as window: 21.5 MB/s, the article saw 21.2.
    let carried = receiver.before.goodput.as_f64() / 8e6;
    assert!((20.5..21.6).contains(&carried), "{carried} MB/s");
    for plan in [&sender, &receiver] {
        assert_eq!(plan.after.limited_by, crate::limit::Limit::Link);
    }
    let both = plan_host(&question("1gbit", "146ms", Role::Both), &state);
    assert_eq!(both.changes.len(), 2, "{both:?}");
}

#[test]
fn what_belongs_to_the_machine_is_told_and_not_changed_in_a_container() {
    let mut state = machine("6.1", &[("net.ipv4.tcp_mem", "100 200 300")]);
    state.shown.remove(&Knob::Sysctl(Sysctl::TcpMem));
    for sysctl in [Sysctl::TcpWmem, Sysctl::WmemMax] {
        state.shown.get_mut(&Knob::Sysctl(sysctl)).unwrap().is_settable = false;
    }
    let plan = plan_host(&question("1gbit", "146ms", Role::Sender), &state);
    assert!(plan.changes.is_empty(), "{plan:?}");
    assert_eq!(plan.on_the_machine[0].knob.to_string(), "net.ipv4.tcp_wmem");
    assert_eq!(plan.after, plan.before, "what is not set does nothing");
}

#[test]
fn many_connections_get_what_memory_there_is_and_pressure_comes_after_it() {
    let state = machine("6.1", &[]);
    let many = HostQuestion { connections: 500, ..question("10gbit", "100ms", Role::Both) };
    let plan = plan_host(&many, &state);
    let budget = plan.memory_bytes.unwrap();
    assert_eq!(budget, Bytes::new((22 << 30) / 4));
    assert!(plan.buffers_at_most <= budget, "{plan:?}");
    assert!(plan.after.goodput > plan.before.goodput && plan.after.goodput < many.path.goodput());
    assert!(
        plan.notes.iter().any(|note| note.to_string().contains("--connections")),
        "{:?}",
        plan.notes
    );
    // 5.5 GiB in pages of 4096 bytes, no less than what the buffers may take.
    let pages: Vec<u64> =
        to(&plan, "net.ipv4.tcp_mem").unwrap().split(' ').flat_map(str::parse).collect();
    assert!(pages[1] * 4096 >= plan.buffers_at_most.get(), "{pages:?}");
    let small = HostQuestion { memory: Some("1MiB".parse().unwrap()), ..many };
    let plan = plan_host(&small, &state);
    assert!(plan.changes.is_empty(), "what is there is not lowered: {plan:?}");
}

#[test]
fn what_somebody_switched_off_is_switched_on_where_it_counts() {
    let off = [
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.tcp_timestamps", "0"),
        ("net.ipv4.tcp_window_scaling", "0"),
        ("net.ipv4.tcp_moderate_rcvbuf", "0"),
        ("net.ipv4.tcp_notsent_lowat", "16384"),
        ("net.ipv4.tcp_adv_win_scale", "-2"),
    ];
    let plan = plan_host(&question("1gbit", "50ms", Role::Both), &machine("5.10", &off));
    for (name, _) in off {
        assert!(to(&plan, name).is_some(), "{name}: {plan:?}");
    }
    // Woken a millisecond late at 1 Gbit/s: 125 kB, twice.
    assert_eq!(to(&plan, "net.ipv4.tcp_notsent_lowat"), Some("250000".into()));
    // At 100 Mbit/s sequence numbers last for 344 s; since 6.6 the scale is without effect.
    let plan = plan_host(&question("100mbit", "50ms", Role::Both), &machine("6.12", &off));
    assert!(to(&plan, "net.ipv4.tcp_timestamps").is_none(), "{plan:?}");
    assert!(to(&plan, "net.ipv4.tcp_adv_win_scale").is_none(), "{plan:?}");
}

#[test]
fn loss_is_a_reason_for_bbr_only_where_it_is_the_limit() {
    let lossy = |loss: &str, changed: &[(&str, &str)]| {
        let loss = Some(loss.parse().unwrap());
        plan_host(
            &HostQuestion { loss, ..question("1gbit", "146ms", Role::Sender) },
            &machine("6.1", changed),
        )
    };
    assert_eq!(to(&lossy("0.1%", &[]), Sysctl::TcpCongestionControl.name()), Some("bbr".into()));
    assert_eq!(to(&lossy("0.000000001%", &[]), Sysctl::TcpCongestionControl.name()), None);
    assert_eq!(
        to(
            &lossy("0.1%", &[(Sysctl::TcpCongestionControl.name(), "bbr")]),
            Sysctl::TcpCongestionControl.name()
        ),
        None
    );
}

#[test]
fn wishes_are_planned_and_do_not_lower_a_size() {
    let wish = |text: &str| HostQuestion {
        wishes: vec![text.parse().unwrap()],
        pauses: true,
        ..question("1gbit", "1ms", Role::Both)
    };
    let state = machine("6.18", &[]);
    let plan = plan_host(&wish("net.ipv4.tcp_mtu_probing=1"), &state);
    assert_eq!(to(&plan, "net.ipv4.tcp_mtu_probing"), Some("1".into()));
    assert_eq!(to(&plan, Sysctl::TcpSlowStartAfterIdle.name()), Some("0".into()));
    let plan = plan_host(&wish("net.core.rmem_max=65536"), &state);
    assert!(to(&plan, "net.core.rmem_max").is_none());
    assert!(
        plan.notes.iter().any(|note| note.to_string().contains("lowers nothing")),
        "{:?}",
        plan.notes
    );
    assert!("net.ipv4.tcp_sack=3".parse::<Wish>().unwrap_err().contains("from 0 to 1"));
    assert!("net.ipv4.tcp_sack".parse::<Wish>().is_err());
}

proptest! {
    /// For any path and machine: every value is one that the kernel takes, no size is lowered, a
    /// tuned machine has nothing left to change, the buffers stay within the memory, and the notes
    /// speak of the machine as the changes leave it.
    #[test]
    fn plans_are_sound(
        bits in 1_000u64..1_000_000_000_000,
        micros in 1u64..2_000_000,
        connections in 1u64..100_000,
        memory in proptest::option::of(1u64..1 << 40),
        rmem in 4096u64..=i32::MAX as u64,
        wmem in 4096u64..=i32::MAX as u64,
        flags in proptest::collection::vec(any::<bool>(), 5),
        new_kernel: bool,
    ) {
        let flag = |at: usize| if flags[at] { "1" } else { "0" };
        let (rmem, wmem) = (format!("4096 4096 {rmem}"), format!("4096 4096 {wmem}"));
        let changed = [
            ("net.ipv4.tcp_rmem", rmem.as_str()),
            ("net.ipv4.tcp_wmem", &wmem),
            ("net.ipv4.tcp_sack", flag(0)),
            ("net.ipv4.tcp_timestamps", flag(1)),
            ("net.ipv4.tcp_moderate_rcvbuf", flag(2)),
            ("net.ipv4.tcp_window_scaling", flag(3)),
        ];
        let state = machine(if new_kernel { "6.18" } else { "5.10" }, &changed);
        let path = Path::new(crate::units::Rate::from_bits_per_sec(bits), Duration::from_micros(micros));
        let question = HostQuestion {
            path,
            connections,
            memory: memory.map(Bytes::new),
            pauses: flags[4],
            ..question("1gbit", "1ms", Role::Both)
        };
        let plan = plan_host(&question, &state);
        let was = state.settings.rcvbuf().saturating_add(state.settings.sndbuf());
        let was = was.get().saturating_mul(connections);
        prop_assert!(
            plan.buffers_at_most.get() <= plan.memory_bytes.unwrap().get().max(was)
                || !flags[2],
            "{:?}", plan
        );
        for change in &plan.changes {
            prop_assert_eq!(change.knob.checked(&change.to.to_string()).unwrap(), change.to.clone());
            prop_assert!(!change.knob.lowers(change.from.as_ref().unwrap(), &change.to), "{:?}", change);
        }
        prop_assert!(plan.after.goodput >= plan.before.goodput);
        let tuned = applied(&state, &plan);
        for note in &plan.notes {
            match note {
                PlanNote::Memory { end: End::Sender, buffer, .. } => {
                    prop_assert_eq!(*buffer, tuned.settings.sndbuf());
                }
                PlanNote::Memory { end: End::Receiver, buffer, .. } => {
                    prop_assert_eq!(*buffer, tuned.settings.rcvbuf());
                }
                PlanNote::NewConnections { from, to } => {
                    let scales = [&state, &tuned].map(|one| one.settings.window_scale().get());
                    prop_assert_eq!([*from, *to], scales);
                }
                _ => {}
            }
        }
        let again = plan_host(&question, &tuned);
        prop_assert!(again.changes.is_empty(), "{:?} after {:?}", again.changes, plan.changes);
    }
}
