use super::*;
use crate::change::Sysctl;
use crate::law::GrantedWindow;
use crate::tune::MeasuredGrants;
use crate::units::{Probability, Rate, Window};
use proptest::prelude::*;

const LAB: Lab = Lab { kernel: KernelVersion::new(6, 12), link_engine: LinkEngine::Netem };

fn measured(goodput: &str, limited_by: Limit) -> MeasuredPath {
    let rtt = "50ms".parse().unwrap();
    MeasuredPath::new(rtt, goodput.parse().unwrap(), limited_by)
}

fn rebuilt(measured: MeasuredPath) -> Experiment {
    Experiment::new(measured, LAB).unwrap()
}

fn sysctl(scenario: &Scenario, end: End, setting: Sysctl) -> Option<&str> {
    let host = match end {
        End::Sender => &scenario.hosts.server,
        End::Receiver => &scenario.hosts.client,
    };
    host.sysctl.get(setting.name()).map(|value| value.0.as_str())
}

#[test]
fn a_receive_window_is_rebuilt_as_a_buffer_that_advertises_it() {
    let mut path = measured("80mbit", Limit::ReceiveWindow);
    path.rate = Some("1gbit".parse().unwrap());
    path.receiver.window = Some(Window::new(Bytes::new(500_000)));
    let experiment = rebuilt(path);
    assert_eq!(experiment.before.path.to_client.rate, Some("1gbit".parse().unwrap()));
    assert_eq!(experiment.before.path.rtt(), "50ms".parse().unwrap());
    let text = sysctl(&experiment.before, End::Receiver, Sysctl::TcpRmem).unwrap();
    let rmem: crate::change::MemTriple = text.parse().unwrap();
    // 1448 of 1448 + 832 bytes are data, by the kernel's own measure.
    let advertised = rmem.max.as_f64() * 1448.0 / (1448.0 + 832.0);
    assert!((advertised / 500_000.0 - 1.0).abs() < 0.02, "{advertised}");
    let [remedy] = &experiment.remedies[..] else { panic!("{:?}", experiment.remedies) };
    assert_eq!(remedy.end(), End::Receiver, "the peer's setting, not the sender's");
    assert!(experiment.trials().len() == 2 && !experiment.is_whole);
}

#[test]
fn a_window_above_tcp_is_rebuilt_and_one_that_fills_the_path_is_tried() {
    let mut path = measured("40mbit", Limit::ApplicationWindow);
    path.rate = Some("400mbit".parse().unwrap());
    // SFTP's requests are the client's, which sends here.
    let (window, step) = (Bytes::new(8 << 15), Some(Bytes::new(1 << 15)));
    path.application_window = Some(MeasuredGrants { window, step, host: End::Sender });
    let experiment = rebuilt(path.clone());
    let transfer = &experiment.before.transfer;
    assert!(
        transfer.upload
            && transfer.granted() == Some(GrantedWindow { window, step: step.unwrap() })
    );
    // 400 Mbit/s over 50 ms are 2.4 MB of payload, and a step.
    let larger = Remedy::ApplicationWindow { end: End::Sender, window: Bytes::new(4 << 20) };
    assert_eq!(experiment.remedies, [larger]);
    assert!(
        experiment
            .assumptions
            .iter()
            .any(|one| one.to_string().contains("OpenSSH's channel is fixed"))
    );
    assert_eq!(
        experiment.trials()[1].scenario.transfer.application_window,
        Some(Bytes::new(4 << 20))
    );
    // What is not the limit is left out, and what was not seen is said.
    path.application_window = Some(MeasuredGrants { window, step: None, host: End::Sender });
    assert!(
        rebuilt(path.clone())
            .assumptions
            .iter()
            .any(|one| one.to_string().contains("grants at a time"))
    );
    path.limited_by = Limit::Link;
    assert_eq!(rebuilt(path).before.transfer.granted(), None);
}

#[test]
fn each_change_is_tried_alone_and_then_all_together() {
    let mut path = measured("20mbit", Limit::SendBuffer);
    path.rate = Some("500mbit".parse().unwrap());
    path.sender.buffer = Some(Bytes::new(32_768));
    path.sender.frozen_by_application = Some(true);
    path.sender.largest = Some(Bytes::new(262_144));
    let experiment = rebuilt(path);
    assert_eq!(experiment.before.transfer.send_buffer, Some(Bytes::new(16_384)));
    let trials = experiment.trials();
    assert!(
        trials[0].remedies.is_empty()
            && trials[0].scenario == {
                let mut before = experiment.before.clone();
                before.name = "prove/before".into();
                before
            }
    );
    let autotuning = trials
        .iter()
        .find(|trial| matches!(&trial.remedies[..], [Remedy::Autotuning { end: End::Sender, .. }]));
    let alone = &autotuning.unwrap().scenario;
    assert_eq!(alone.transfer.send_buffer, None);
    assert_eq!(sysctl(alone, End::Sender, Sysctl::TcpWmem), Some("4096 16384 262144"));
    assert_eq!(
        trials.len(),
        1 + experiment.remedies.len() + usize::from(experiment.remedies.len() > 1)
    );
    let names: std::collections::BTreeSet<_> =
        trials.iter().map(|trial| trial.scenario.name.clone()).collect();
    assert_eq!(names.len(), trials.len(), "each has a name of its own");
}

#[test]
fn loss_is_imposed_where_it_limits_and_left_to_the_queue_where_the_link_does() {
    let mut path = measured("20mbit", Limit::CongestionWindow(Cause::Loss));
    path.loss = Probability::new(0.001);
    path.rate = Some("100mbit".parse().unwrap());
    let experiment = rebuilt(path.clone());
    assert_ne!(experiment.before.path.to_client.loss, crate::link::Loss::default());
    assert_eq!(experiment.before.path.to_server.loss, crate::link::Loss::default());
    assert!(experiment.remedies.contains(&Remedy::CongestionControl("bbr".into())));
    path.limited_by = Limit::Link;
    path.queue = Some(Bytes::new(300_000));
    path.overflow = Probability::new(0.002);
    let experiment = rebuilt(path);
    assert_eq!(experiment.before.path.to_client.loss, crate::link::Loss::default());
    assert_eq!(experiment.before.path.to_client.queue.to_string(), "300kB");
    assert!(experiment.remedies.is_empty(), "{:?}", experiment.remedies);
}

#[test]
fn a_queue_that_overflowed_is_as_large_as_it_stood_whatever_limits() {
    let mut path = measured("5mbit", Limit::CongestionWindow(Cause::Loss));
    path.loss = Probability::new(0.004);
    path.rate = Some("13mbit".parse().unwrap());
    path.queue = Some(Bytes::new(90_000));
    let queue = |path: &MeasuredPath| rebuilt(path.clone()).before.path.to_client.queue.to_string();
    assert_eq!(queue(&path), "96kB", "it may hold more than what stood");
    path.overflow = Probability::new(0.1);
    assert_eq!(queue(&path), "90kB");
}

#[test]
fn a_queue_that_drops_early_may_be_codel() {
    let mut path = measured("5mbit", Limit::Link);
    path.rate = Some("5mbit".parse().unwrap());
    path.drops_early = Some(true);
    let all = hypotheses(&path);
    assert_eq!(all.len(), 6, "three congestion controls, two disciplines");
    let codel = rebuilt(all[5].clone()).before.path.to_client.discipline;
    assert_eq!(codel.to_string(), "codel target 5ms interval 100ms");
    path.drops_early = Some(false);
    assert_eq!(hypotheses(&path).len(), 3);
}

#[test]
fn a_policers_bucket_may_hold_more_than_what_was_seen_of_it() {
    let mut path = measured("6mbit", Limit::Link);
    path.rate = Some("6mbit".parse().unwrap());
    path.policer = Some(Bytes::new(17_000));
    let buckets: Vec<_> = hypotheses(&path).iter().map(|one| one.policer.unwrap().get()).collect();
    assert_eq!(buckets, [17_000, 17_000, 17_000, 51_000, 51_000, 51_000]);
}

#[test]
fn a_window_that_carried_more_than_the_law_of_loss_allows_lost_nothing_at_random() {
    let mut path = measured("44mbit", Limit::SendBuffer);
    let loss = |path: &MeasuredPath| rebuilt(path.clone()).before.path.to_client.loss;
    // CUBIC, here as fast as Reno, carries 2.8 Mbit/s with 1 %, and 28 Mbit/s with 0.01 %.
    path.loss = Probability::new(0.01);
    assert!(loss(&path).is_never());
    path.loss = Probability::new(0.0001);
    assert!(!loss(&path).is_never());
}

#[test]
fn a_short_transfer_is_repeated_as_long_as_it_was_watched() {
    let mut path = measured("5mbit", Limit::Link);
    path.watched = Some("4500ms".parse().unwrap());
    let duration = |path: &MeasuredPath| rebuilt(path.clone()).before.transfer.duration;
    assert_eq!(duration(&path), path.watched.unwrap());
    path.watched = Some("10000s".parse().unwrap());
    assert!(duration(&path) < "600s".parse().unwrap(), "not a long one");
}

#[test]
fn a_path_carries_at_least_what_a_round_trip_showed() {
    let mut path = measured("2mbit", Limit::CongestionWindow(Cause::Loss));
    path.peak = Some("40mbit".parse().unwrap());
    let rate = rebuilt(path).before.path.to_client.rate.unwrap();
    assert_eq!(rate, Rate::from_bits_per_sec_f64(40e6 * 1500.0 / 1448.0));
}

#[test]
fn what_the_handshake_left_out_is_off_at_that_end() {
    let mut path = measured("5mbit", Limit::ReceiveWindow);
    path.receiver.window_scaling = Some(false);
    path.sender.sack = Some(false);
    let experiment = rebuilt(path);
    let hosts = &experiment.before.hosts;
    assert_eq!(hosts.server.sysctl.get("net.ipv4.tcp_sack").map(|value| &*value.0), Some("0"));
    assert_eq!(hosts.client.sysctl.get("net.ipv4.tcp_sack"), None);
    let scaling = sysctl(&experiment.before, End::Receiver, Sysctl::TcpWindowScaling);
    assert_eq!(scaling, Some("0"));
    assert_eq!(sysctl(&experiment.before, End::Sender, Sysctl::TcpWindowScaling), None);
}

#[test]
fn what_is_not_known_is_said() {
    let experiment = rebuilt(measured("80mbit", Limit::ReceiveWindow));
    let said: Vec<String> = experiment.assumptions.iter().map(ToString::to_string).collect();
    let said = said.join("\n");
    for what in ["beyond 80 Mbit/s", "queue", "congestion control", "receive window was not seen"] {
        assert!(said.contains(what), "{what}: {said}");
    }
    let rate = experiment.before.path.to_client.rate.unwrap();
    assert_eq!(rate, Rate::from_bits_per_sec_f64(160e6 * 1500.0 / 1448.0));
}

#[test]
fn a_transfer_seen_as_a_whole_is_repeated_as_a_whole() {
    let mut path = measured("8mbit", Limit::CongestionWindow(Cause::SlowStart));
    path.payload = Some(Bytes::new(300_000));
    let experiment = rebuilt(path);
    assert!(experiment.is_whole);
    assert_eq!(experiment.before.transfer.size, Bytes::new(300_000));
    let last = experiment.trials().pop().unwrap();
    assert_eq!(last.scenario.hosts.server.initcwnd, Some(INITIAL_WINDOW));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_measured_path_makes_scenarios_or_a_refusal(path in crate::tune::any_measured_path()) {
        match Experiment::new(path, LAB) {
            Ok(experiment) => {
                for trial in experiment.trials() {
                    // Whoever runs it reads it from its JSON.
                    let json = serde_json::to_string(&trial.scenario).unwrap();
                    prop_assert_eq!(serde_json::from_str::<Scenario>(&json).unwrap(), trial.scenario);
                }
            }
            Err(error) => prop_assert!(error.to_string().starts_with("rebuild the measured path")),
        }
    }

    #[test]
    fn usual_paths_are_never_refused(
        rate in 1_000_000_u64..2_000_000_000,
        rtt in 100_u64..1_000_000,
        share in 0.01..1.0_f64,
        limited_by in prop::sample::select(&Limit::ALL[..]),
    ) {
        let goodput = Rate::from_bits_per_sec_f64(rate as f64 * share);
        let mut path = MeasuredPath::new(Duration::from_micros(rtt), goodput, limited_by);
        path.rate = Some(Rate::from_bits_per_sec(rate));
        let experiment = Experiment::new(path, LAB);
        prop_assert!(experiment.is_ok(), "{:?}", experiment);
    }
}
