//! The controller on simulated paths and servers.

use super::*;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(50);

/// Runs a download of a minute whose rate depends on the number of connections, in Mbit/s.
fn simulate(most: usize, limit: Option<Limit>, rate: impl Fn(usize) -> f64) -> Controller {
    let mut now = Instant::from_nanos(1);
    let most = Most { any: most, windows: 2 * most };
    let mut controller = Controller::new(most, RTT, now);
    let mut arrived = 0.0;
    for _ in 0..600 {
        now = now + Duration::from_millis(100);
        arrived += rate(controller.target()) * 1e6 / 8.0 / 10.0;
        let running = controller.target();
        controller.push(now, Bytes::from_f64(arrived), running, limit);
    }
    controller
}

#[test]
fn a_server_that_collapses_above_four_ends_at_four_and_the_steps_say_why() {
    let rate = |n: usize| if n <= 4 { 10.0 * n as f64 } else { 5.0 };
    let controller = simulate(8, None, rate);
    assert_eq!(controller.target(), 4);
    let tried: Vec<_> = controller.steps().iter().map(|s| (s.connections, s.reason)).collect();
    use Reason::{Pays, Start, Worse};
    assert_eq!(tried, [(1, Start), (2, Pays), (4, Pays), (8, Worse), (5, Worse)]);
}

#[test]
fn a_full_link_stays_at_one_with_a_diagnosis_and_without() {
    let told = simulate(8, Some(Limit::Link), |_| 100.0);
    assert_eq!((told.target(), told.steps().len()), (1, 1));
    assert_eq!(told.steps()[0].reason, Reason::Diagnosis);
    let untold = simulate(8, None, |_| 100.0);
    assert_eq!((untold.target(), untold.steps()[1].reason), (1, Reason::BringsTooLittle));
}

#[test]
fn a_window_limited_path_gets_as_many_as_fill_it() {
    let rate = |n: usize| (21.0 * n as f64).min(200.0);
    let controller = simulate(8, Some(Limit::ReceiveWindow), rate);
    assert!(rate(controller.target()) >= 180.0, "{}", controller.target());
    // Nobody else's loss is made worse by more than eight without a reason.
    let others = Some(Limit::CongestionWindow(Cause::Loss));
    assert_eq!(simulate(8, others, rate).target(), 8);
    assert_eq!(simulate(8, None, rate).target(), 8);
}

#[test]
fn a_window_that_new_connections_hide_for_a_while_is_not_forgotten() {
    let mut controller = Controller::new(Most { any: 8, windows: 16 }, RTT, Instant::from_nanos(1));
    let (mut now, mut arrived) = (Instant::from_nanos(1), 0.0);
    for _ in 0..300 {
        now = now + Duration::from_millis(100);
        arrived += (21.0 * controller.target() as f64).min(193.0) * 1e6 / 80.0;
        let limit = match controller.target() {
            1 => Limit::ReceiveWindow,
            _ => Limit::CongestionWindow(Cause::SlowStart),
        };
        controller.push(now, Bytes::from_f64(arrived), controller.target(), Some(limit));
    }
    let tried: Vec<_> = controller.steps().iter().map(|step| step.connections).collect();
    assert_eq!((controller.target(), tried), (12, vec![1, 4, 8, 12]));
}

/// What a connection of this age carries, in bytes a second, if slow start ends at `window`:
/// nothing in the two round trips until the answer begins.
fn grown(age: f64, rtt: f64, window: f64) -> f64 {
    let rounds = age / rtt - 2.0;
    if rounds < 0.0 { 0.0 } else { (14_600.0 * rounds.exp2()).min(window) / rtt }
}

/// The mean rate of a file of `bytes`, in bytes a second, and the number at the end. One
/// connection a tick begins, as in the engine, and grows from nothing; `carries` is what the
/// path and the server let through of what `n` connections offer.
fn download(
    bytes: f64,
    rtt: Duration,
    window: f64,
    limit: Option<Limit>,
    carries: impl Fn(usize, f64) -> f64,
) -> (f64, usize) {
    const TICK: f64 = 0.1;
    let mut controller = Controller::new(Most { any: 8, windows: 16 }, rtt, Instant::from_nanos(0));
    let (mut arrived, mut ticks, mut began) = (0.0, 0u64, vec![0.0]);
    while arrived < bytes && ticks < 10_000 {
        ticks += 1;
        let at = ticks as f64 * TICK;
        let offered: f64 =
            began.iter().map(|start| grown(at - start, rtt.as_secs_f64(), window)).sum();
        arrived += carries(began.len(), offered) * TICK;
        let now = Instant::from_nanos(ticks * 100_000_000);
        controller.push(now, Bytes::from_f64(arrived), began.len(), limit);
        began.truncate(controller.target());
        if began.len() < controller.target() {
            began.push(at);
        }
    }
    (arrived / (ticks as f64 * TICK), controller.target())
}

#[test]
fn on_a_window_limited_path_the_search_costs_less_than_a_tenth_of_1_gb() {
    let link = 200e6 / 8.0;
    let (rtt, limit) = (Duration::from_millis(100), Some(Limit::ReceiveWindow));
    let (rate, target) = download(1e9, rtt, 262_144.0, limit, |_, all| all.min(link));
    assert!(target as f64 * 262_144.0 / 0.1 >= 0.9 * link, "{target}");
    assert!(rate >= link * 0.9 && rate <= link, "{}", rate * 8.0 / 1e6);
}

#[test]
fn a_collapse_costs_less_than_a_tenth_of_100_mb() {
    let each = 10e6 / 8.0;
    let rtt = Duration::from_millis(20);
    let limit = Some(Limit::SenderApplication);
    let (rate, target) = download(100e6, rtt, each * 0.02, limit, |n, all| match n {
        0..=4 => all.min(4.0 * each),
        _ => all.min(each),
    });
    assert_eq!(target, 4);
    assert!(rate >= 4.0 * each * 0.9, "{}", rate * 8.0 / 1e6);
}

#[test]
fn after_a_collapse_single_connections_find_the_most_that_the_server_likes() {
    let rate = |n: usize| if n <= 6 { 10.0 * n as f64 } else { 5.0 };
    let controller = simulate(8, None, rate);
    assert_eq!(controller.target(), 6);
    let tried: Vec<_> = controller.steps().iter().map(|s| s.connections).collect();
    assert_eq!(tried, [1, 2, 4, 8, 5, 6, 7]);
}

#[test]
fn a_short_dip_while_a_connection_begins_does_not_end_the_search() {
    let mut controller = Controller::new(Most { any: 8, windows: 16 }, RTT, Instant::from_nanos(1));
    let (mut now, mut arrived, mut dipped) = (Instant::from_nanos(1), 0.0, false);
    for _ in 0..600 {
        now = now + Duration::from_millis(100);
        let target = controller.target();
        dipped |= controller.steps().iter().any(|step| step.connections == 2);
        let dips = target == 2 && !dipped;
        let rate = 10.0 * target.min(4) as f64;
        arrived += (if dips { 2.0 } else { rate }) * 1e6 / 80.0;
        controller.push(now, Bytes::from_f64(arrived), target, None);
    }
    assert_eq!(controller.target(), 4);
    assert_eq!(controller.steps()[1].reason, Reason::Worse);
}

#[test]
fn a_server_that_is_slow_in_all_gets_one_connection_after_one_trial() {
    let controller = simulate(8, Some(Limit::SenderApplication), |_| 20.0);
    assert_eq!((controller.target(), controller.steps().len()), (1, 2));
}

#[test]
fn a_link_that_one_connection_fills_slowly_stays_at_one() {
    // Slow start takes nine round trips, so the second is no gain once the first is measured.
    let link = 200e6 / 8.0;
    let rtt = Duration::from_millis(100);
    let (_, target) = download(400e6, rtt, 8e6, None, |_, all| all.min(link));
    assert_eq!(target, 1);
}

#[test]
fn a_refused_connection_is_not_tried_again() {
    let now = Instant::from_nanos(1);
    let mut controller = Controller::new(Most { any: 8, windows: 16 }, RTT, now);
    controller.refused(now + Duration::from_secs(1), 2);
    controller.push(now + Duration::from_secs(9), Bytes::new(9), 2, None);
    assert_eq!((controller.target(), controller.steps()[0].reason), (2, Reason::Refused));
}

proptest! {
    /// Whatever a server does with n connections, the number that stays is the best of those
    /// that were tried, or has so little less that the others did not pay.
    #[test]
    fn it_ends_at_a_number_that_paid(rates in prop::collection::vec(1.0f64..100.0, 16)) {
        let controller = simulate(16, None, |n| rates[n - 1]);
        let rate = rates[controller.target() - 1];
        prop_assert!((1..=16).contains(&controller.target()));
        for step in controller.steps() {
            let share = 1.0 + PAYS * step.connections as f64;
            prop_assert!(rate * share >= rates[step.connections - 1] * 0.99);
        }
    }

    /// Links that are shared fairly up to a knee: at least 80 % of what the best number brings.
    #[test]
    fn it_finds_the_knee(knee in 1usize..20, most in 1usize..20) {
        let rate = |n: usize| n.min(knee) as f64;
        let controller = simulate(most, None, rate);
        prop_assert!(rate(controller.target()) >= 0.8 * rate(most), "{}", controller.target());
    }
}
