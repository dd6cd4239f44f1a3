use super::*;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::observe::{SocketMemory, TcpInfo, TcpState};
use fullpipe_model::units::Instant;

const RATE: Rate = Rate::from_bits_per_sec(80_000_000);
const BASE: Duration = Duration::from_millis(20);
const LOADED: Duration = Duration::from_millis(50);

/// A sample every 10 ms of an end that carries `RATE` for `millis` after a second of half of it.
fn samples(millis: u64, role: End, rtt: Duration) -> Vec<Sample> {
    let carried = |at: u64| {
        let slow = Duration::from_millis(at.min(1000));
        let full = Duration::from_millis(at.saturating_sub(1000));
        Bytes::new(RATE.over(slow).get() / 2).saturating_add(RATE.over(full))
    };
    let ends = ("10.0.0.1:5000".parse().unwrap(), "10.0.0.2:6000".parse().unwrap());
    let (local, remote) = if role == End::Sender { ends } else { (ends.1, ends.0) };
    (0..=millis / 10)
        .map(|step| {
            let count = carried(step * 10);
            let moved = Some(count);
            let segments = Some((count.get() / 1448) as u32);
            let info = TcpInfo {
                rtt,
                min_rtt: Some(BASE),
                unacked: 100,
                snd_cwnd: 400,
                snd_mss: Bytes::new(1448),
                pmtu: Bytes::new(1500),
                bytes_acked: moved.filter(|_| role == End::Sender),
                bytes_received: moved.filter(|_| role == End::Receiver),
                bytes_sent: moved,
                bytes_retrans: Some(Bytes::new(14_480)),
                data_segs_out: segments,
                total_retrans: (step * 100 / millis.max(1)) as u32,
                ..TcpInfo::default()
            };
            Sample {
                wqueue: Bytes::new(1_000_000),
                congestion_control: Some("cubic".into()),
                info: Some(info),
                memory: Some(SocketMemory { sndbuf: Bytes::new(4 << 20), ..Default::default() }),
                ..Sample::new(
                    Instant::from_nanos((1 + step) * 10_000_000),
                    local,
                    remote,
                    TcpState::Established,
                )
            }
        })
        .collect()
}

fn connection(cpu: f64) -> TestConnection {
    let seen = |role| Seen { samples: samples(5000, role, LOADED), cpu };
    TestConnection {
        received: Bytes::new(45_000_000),
        time: Duration::from_secs(5),
        sender: seen(End::Sender),
        receiver: seen(End::Receiver),
    }
}

fn measured(connections: &[TestConnection]) -> (Measured, Option<Rfc6349>) {
    let settings = HostSettings::defaults(KernelVersion::new(6, 12));
    let run = PathTestRun {
        role: End::Sender,
        connections,
        idle_rtt: Some(Duration::from_millis(21)),
        sender_settings: &settings,
        receiver_settings: &settings,
    };
    let measured = run.measure().unwrap();
    let reached = measured.reached_bandwidth().unwrap();
    let metrics = Rfc6349::new(&run, &measured, reached);
    (measured, metrics)
}

#[test]
fn rates_round_trips_and_loss_are_those_of_the_samples() {
    let (measured, _) = measured(&[connection(0.1)]);
    assert_eq!(measured.goodput, Rate::from_bits_per_sec(72_000_000));
    assert!((measured.steady.fraction_of(RATE) - 1.0).abs() < 0.001, "{}", measured.steady);
    assert_eq!((measured.base_rtt, measured.loaded_rtt), (Some(BASE), Some(LOADED)));
    assert_eq!(measured.queue, Some(Duration::from_millis(30)));
    assert_eq!(measured.mtu, Some(Bytes::new(1500)));
    let loss = measured.loss.unwrap();
    assert_eq!(loss.lost_segments, 10);
    assert!(loss.share_least < loss.share && loss.share < loss.share_most);
    assert_eq!(measured.machine, None);
}

#[test]
fn a_round_trip_from_a_timestamp_is_not_the_least() {
    let mut one = connection(0.1);
    let exact = Duration::from_micros(20_340);
    for sample in one.sender.samples.iter_mut().take(50) {
        sample.info.as_mut().unwrap().min_rtt = Some(exact);
    }
    assert_eq!(measured(&[one]).0.base_rtt, Some(exact));
}

#[test]
fn several_connections_are_summed() {
    let (measured, _) = measured(&[connection(0.1), connection(0.2)]);
    assert!((measured.steady.fraction_of(RATE) - 2.0).abs() < 0.002, "{}", measured.steady);
    assert_eq!(measured.received, Bytes::new(90_000_000));
    assert_eq!(measured.connections.len(), 2);
    assert_eq!(measured.loss.unwrap().lost_segments, 20);
}

#[test]
fn a_machine_that_has_no_time_left_is_named() {
    let (measured, _) = measured(&[connection(0.97)]);
    let machine = measured.machine.unwrap();
    assert!(
        crate::finding::words::machine_limit(&machine).contains("97 % of a core"),
        "{machine:?}"
    );
    assert_eq!(measured.bottleneck, None, "what the path carries is not known");
}

#[test]
fn the_metrics_of_rfc_6349_follow_from_the_same_run() {
    let (measured, metrics) = measured(&[connection(0.1)]);
    let metrics = metrics.unwrap();
    // Slow start cost half a second of five; timestamps cost 12 of 1460 bytes.
    let ratio = metrics.transfer_time_ratio.unwrap();
    let expected = 80.0 / 72.0 * 1460.0 / 1448.0;
    assert!((ratio - expected).abs() < 0.001, "{ratio} {expected}");
    assert_eq!(metrics.buffer_delay_percent.map(f64::round), Some(150.0));
    assert_eq!(metrics.retransmitted, Bytes::new(14_480));
    assert!(metrics.ideal > measured.steady && metrics.ideal < metrics.bottleneck);
    assert_eq!(metrics.send_buffer, Some(Bytes::new(4 << 20)));
}

#[test]
fn nothing_is_measured_where_nothing_arrived() {
    let settings = HostSettings::defaults(KernelVersion::new(6, 12));
    let none = [TestConnection::default()];
    let run = PathTestRun {
        role: End::Receiver,
        connections: &none,
        idle_rtt: None,
        sender_settings: &settings,
        receiver_settings: &settings,
    };
    assert_eq!(run.measure(), None);
    assert_eq!(PathTestRun { connections: &[], ..run }.measure(), None);
}
