//! What looks a second apart tell, and what they do not.

use super::*;
use fullpipe_model::observe::{SocketMemory, TcpState};
use fullpipe_model::units::{Instant, Window};
use proptest::prelude::*;

/// A sender that is looked at each second over a path of 40 ms, with nothing scarce.
fn look(second: u64, change: impl Fn(u64, &mut Sample, &mut TcpInfo)) -> Sample {
    let mut info = TcpInfo {
        state: TcpState::Established,
        snd_mss: Bytes::new(1448),
        rtt: Duration::from_millis(40),
        min_rtt: Some(Duration::from_millis(40)),
        snd_cwnd: 4000,
        snd_ssthresh: 3000,
        unacked: 100,
        bytes_acked: Some(Bytes::new(second * 10_000_000)),
        notsent_bytes: Some(Bytes::new(500_000)),
        busy_time: Some(Duration::from_secs(second)),
        rwnd_limited: Some(Duration::ZERO),
        sndbuf_limited: Some(Duration::ZERO),
        snd_wnd: Some(Window::new(Bytes::new(6_000_000))),
        ..TcpInfo::default()
    };
    let ends = ["192.0.2.1:80", "192.0.2.2:4000"].map(|end| end.parse().unwrap());
    let at = Instant::ZERO + Duration::from_secs(second);
    let mut sample = Sample::new(at, ends[0], ends[1], TcpState::Established);
    change(second, &mut sample, &mut info);
    sample.info = Some(info);
    sample
}

fn looks(change: impl Fn(u64, &mut Sample, &mut TcpInfo)) -> Vec<Sample> {
    (1..=5).map(|second| look(second, &change)).collect()
}

fn limits(change: impl Fn(u64, &mut Sample, &mut TcpInfo)) -> Vec<(Limit, f64)> {
    let verdict = from_looks(&looks(change), &[]);
    verdict.shares.iter().map(|one| (one.limit, (one.share * 1e6).round() / 1e6)).collect()
}

#[test]
fn the_counters_decide() {
    let found = limits(|second, _, info| {
        info.busy_time = Some(Duration::from_millis(900 * second));
        info.rwnd_limited = Some(Duration::from_millis(500 * second));
        info.sndbuf_limited = Some(Duration::from_millis(200 * second));
    });
    let [window, rest, buffer, idle] = &found[..] else { panic!("{found:?}") };
    assert_eq!(*window, (Limit::ReceiveWindow, 0.5));
    assert!([rest, buffer].contains(&&(Limit::SendBuffer, 0.2)), "{found:?}");
    assert!([rest, buffer].contains(&&(Limit::Unknown, 0.2)), "{found:?}");
    assert_eq!(*idle, (Limit::SenderApplication, 0.1));
}

#[test]
fn a_moment_is_no_second() {
    assert_eq!(limits(|_, _, _| {}), [(Limit::Unknown, 1.0)]);
    let queue = |info: &mut TcpInfo| (info.rtt, info.unacked) = (Duration::from_millis(80), 600);
    assert_eq!(limits(|_, _, info| queue(info)), [(Limit::Link, 1.0)]);
    // A queue at every other look.
    let found = limits(|second, _, info| {
        if second % 2 == 0 {
            queue(info)
        }
    });
    assert_eq!(found, [(Limit::Unknown, 1.0)]);
    let empty = |info: &mut TcpInfo| info.notsent_bytes = Some(Bytes::ZERO);
    assert_eq!(limits(|_, _, info| empty(info)), [(Limit::SenderApplication, 1.0)]);
    let found = limits(|second, _, info| {
        if second % 2 == 0 {
            empty(info)
        }
    });
    assert_eq!(found, [(Limit::Unknown, 1.0)]);
    let full = SocketMemory {
        sndbuf: Bytes::new(100_000),
        wmem_queued: Bytes::new(99_000),
        ..SocketMemory::default()
    };
    let found = limits(|_, sample, info| {
        empty(info);
        sample.memory = Some(full);
    });
    assert_eq!(found, [(Limit::SendBuffer, 1.0)]);
}

#[test]
fn what_no_counter_shows_is_no_more_than_a_guess() {
    let link = |_: u64, _: &mut Sample, info: &mut TcpInfo| {
        (info.rtt, info.unacked) = (Duration::from_millis(80), 600);
    };
    assert!(from_looks(&looks(link), &[]).confidence <= SURE_FROM);
    let window = |second: u64, _: &mut Sample, info: &mut TcpInfo| {
        info.rwnd_limited = Some(Duration::from_millis(900 * second));
    };
    assert!(from_looks(&looks(window), &[]).confidence > SURE_FROM);
    let old = |_: u64, _: &mut Sample, info: &mut TcpInfo| {
        (info.busy_time, info.rwnd_limited, info.sndbuf_limited) = (None, None, None);
        info.notsent_bytes = Some(Bytes::ZERO);
    };
    let found = from_looks(&looks(old), &[]);
    assert_eq!(found.limited_by().limit, Limit::SenderApplication);
    assert!(found.confidence <= SURE_FROM);
}

#[test]
fn a_receiver_shows_its_own_application_only() {
    let received = |unread: u64| {
        let looks = looks(|second, sample, info| {
            info.bytes_received = Some(Bytes::new(second * 1_000_000));
            info.rcv_wnd = Some(Window::new(Bytes::new(4096)));
            sample.rqueue = Bytes::new(unread);
        });
        from_receiver_looks(&looks).limited_by().limit
    };
    assert_eq!(received(100_000), Limit::ReceiverApplication);
    assert_eq!(received(0), Limit::Unknown);
}

proptest! {
    /// The kernel's own account: whatever the looks' states are, each counter has its part.
    #[test]
    fn shares_are_the_growth_of_the_counters(
        parts in proptest::collection::vec((0_u64..=400, 0_u64..=300, 0_u64..=300), 2..12),
    ) {
        let mut sums = (0, 0, 0);
        let mut samples = vec![look(0, |_, _, info| info.busy_time = Some(Duration::ZERO))];
        for (second, (rwnd, sndbuf, rest)) in (1..).zip(&parts) {
            sums = (sums.0 + rwnd, sums.1 + sndbuf, sums.2 + rest);
            samples.push(look(second, |_, _, info| {
                info.rwnd_limited = Some(Duration::from_millis(sums.0));
                info.sndbuf_limited = Some(Duration::from_millis(sums.1));
                info.busy_time = Some(Duration::from_millis(sums.0 + sums.1 + sums.2));
            }));
        }
        let verdict = from_looks(&samples, &[]);
        let share = |limit| {
            verdict.shares.iter().find(|one| one.limit == limit).map_or(0.0, |one| one.share)
        };
        let time = verdict.time.as_secs_f64() * 1000.0;
        // A part below a hundredth is noise.
        let near = |found: f64, ms: u64| (found - ms as f64 / time).abs() < 0.04;
        prop_assert!(near(share(Limit::ReceiveWindow), sums.0), "{:?} {:?}", verdict.shares, sums);
        prop_assert!(near(share(Limit::SendBuffer), sums.1), "{:?} {:?}", verdict.shares, sums);
        prop_assert!(near(share(Limit::Unknown), sums.2), "{:?} {:?}", verdict.shares, sums);
    }
}
