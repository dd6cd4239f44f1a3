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

/// A queue before the link: twice the path's round trip, with more in flight than the path holds.
fn queue(info: &mut TcpInfo) {
    (info.rtt, info.unacked) = (Duration::from_millis(80), 600);
}

fn empty(info: &mut TcpInfo) {
    info.notsent_bytes = Some(Bytes::ZERO);
}

#[test]
fn a_moment_is_no_second() {
    assert_eq!(limits(|_, _, _| {}), [(Limit::Unknown, 1.0)]);
    assert_eq!(limits(|_, _, info| queue(info)), [(Limit::Link, 1.0)]);
    // A queue at every other look.
    let found = limits(|second, _, info| {
        if second % 2 == 1 {
            queue(info)
        }
    });
    assert_eq!(found, [(Limit::Unknown, 1.0)]);
    // Without its memory nobody knows why; one that is never idle is more often blocked.
    assert_eq!(limits(|_, _, info| empty(info)), [(Limit::SendBuffer, 1.0)]);
    let found = limits(|second, _, info| {
        if second % 2 == 1 {
            empty(info)
        }
    });
    assert_eq!(found, [(Limit::Unknown, 1.0)]);
}

/// A socket that has written all it may, so much of its send buffer.
fn full(part: u64) -> Option<SocketMemory> {
    let (sndbuf, wmem_queued) = (Bytes::new(100_000), Bytes::new(1000 * part));
    Some(SocketMemory { sndbuf, wmem_queued, ..SocketMemory::default() })
}

#[test]
fn a_send_buffer_is_told_from_its_application_by_its_memory() {
    let with = |part: u64| {
        limits(|_, sample, info| {
            empty(info);
            sample.memory = full(part);
        })
    };
    assert_eq!(with(99), [(Limit::SendBuffer, 1.0)]);
    // A writer is woken when a third is free.
    assert_eq!(with(67), [(Limit::SendBuffer, 1.0)]);
    assert_eq!(with(30), [(Limit::SenderApplication, 1.0)]);
    // One that pauses found its buffer full when it wrote, and then was idle for a third.
    let found = limits(|second, sample, info| {
        empty(info);
        sample.memory = full(99);
        info.busy_time = Some(Duration::from_millis(650 * second));
    });
    assert_eq!(found, [(Limit::SenderApplication, 1.0)]);
}

/// What is sent again while nothing waits to be sent is repaired without anybody's wait. It was
/// called loss, for a whole second each.
#[test]
fn a_segment_sent_again_is_no_limit_where_nothing_waits() {
    for in_vain in [0, 1] {
        let found = limits(|second, sample, info| {
            empty(info);
            sample.memory = full(80);
            info.total_retrans = u32::try_from(3 * second).unwrap();
            info.dsack_dups = Some(info.total_retrans * in_vain);
        });
        assert_eq!(found, [(Limit::SendBuffer, 1.0)]);
    }
}

/// A congestion window of 345 segments over 40 ms, which is what is carried, with so many segments
/// lost of a thousand.
fn lossy(per_mille: u64, control: &'static str) -> Vec<(Limit, f64)> {
    limits(|second, sample, info| {
        let sent = second * 10_000_000 / 1448;
        (info.snd_cwnd, info.unacked, info.snd_ssthresh) = (345, 345, 200);
        info.data_segs_out = Some(u32::try_from(sent).unwrap());
        info.total_retrans = u32::try_from(sent * per_mille / 1000).unwrap();
        info.dsack_dups = Some(0);
        sample.congestion_control = Some(control.into());
    })
}

#[test]
fn losses_are_random_by_the_laws_or_the_links() {
    let loss = Limit::CongestionWindow(Cause::Loss);
    // 276 segments are in flight, and the laws allow 39 with one loss in a thousand.
    assert_eq!(lossy(0, "reno"), [(Limit::CongestionWindow(Cause::SlowStart), 1.0)]);
    assert_eq!(lossy(1, "cubic"), [(Limit::Link, 1.0)]);
    assert_eq!(lossy(50, "cubic"), [(Limit::Link, 1.0)]);
    assert_eq!(lossy(50, "bbr"), [(Limit::Link, 1.0)]);
    // They allow 72 with eight losses in four seconds. Two a second are independent; eight at once
    // are a queue that was full.
    let lost = |sums: [u32; 5]| {
        limits(move |second, sample, info| {
            (info.snd_cwnd, info.unacked, info.snd_ssthresh) = (345, 345, 200);
            info.data_segs_out = Some(u32::try_from(second * 10_000_000 / 1448).unwrap());
            info.total_retrans = sums[second as usize - 1];
            sample.congestion_control = Some("cubic".into());
        })
    };
    assert_eq!(lost([0, 2, 4, 6, 8]), [(loss, 1.0)]);
    assert_eq!(lost([0, 3, 4, 7, 8]), [(loss, 1.0)]);
    assert_eq!(lost([0, 0, 8, 8, 8]), [(Limit::Link, 1.0)]);
}

#[test]
fn a_window_that_shuts_now_and_then_is_its_readers() {
    let window = |sizes: [u64; 2]| {
        limits(move |second, _, info| {
            let size = sizes[usize::from(second % 2 == 0)];
            info.snd_wnd = Some(Window::new(Bytes::new(size)));
            info.rwnd_limited = info.busy_time;
        })
    };
    assert_eq!(window([400_000, 400_000]), [(Limit::ReceiveWindow, 1.0)]);
    assert_eq!(window([400_000, 380_000]), [(Limit::ReceiveWindow, 1.0)]);
    assert_eq!(window([400_000, 220_000]), [(Limit::ReceiverApplication, 1.0)]);
    // One that was wider once, and then never again, is as large as it can be.
    let samples: Vec<Sample> = (1..=12)
        .map(|second| {
            look(second, |second, _, info| {
                let size = if second < 4 { 500_000 } else { 400_000 };
                info.snd_wnd = Some(Window::new(Bytes::new(size)));
                info.rwnd_limited = info.busy_time;
            })
        })
        .collect();
    assert_eq!(from_looks(&samples, &[]).limited_by().limit, Limit::ReceiveWindow);
}

#[test]
fn groups_take_every_span_once() {
    for count in [2_u64, 9, 10, 17, 18, 40] {
        let samples: Vec<Sample> = (1..=count).map(|second| look(second, |_, _, _| {})).collect();
        let spans = spans_of(&samples, MIN_INTERVAL);
        let ends = group_ends(&spans);
        assert!(ends.is_sorted() && ends.last() == Some(&spans.len()), "{count}: {ends:?}");
        let longest = ends.iter().scan(0, |from, end| Some(end - std::mem::replace(from, *end)));
        assert!(longest.max() < Some(16), "{count}: {ends:?}");
    }
}

#[test]
fn what_no_counter_shows_is_less_sure() {
    let link = |_: u64, _: &mut Sample, info: &mut TcpInfo| queue(info);
    assert!(from_looks(&looks(link), &[]).confidence <= BY_STATES);
    let window = |second: u64, _: &mut Sample, info: &mut TcpInfo| {
        info.rwnd_limited = Some(Duration::from_millis(900 * second));
    };
    assert!(from_looks(&looks(window), &[]).confidence > BY_STATES);
    // Without its memory a full send buffer looks like an application that pauses.
    let writer = |_: u64, _: &mut Sample, info: &mut TcpInfo| empty(info);
    assert!(from_looks(&looks(writer), &[]).confidence <= SURE_FROM);
    let told = from_looks(
        &looks(|_, sample, info| {
            empty(info);
            sample.memory = full(30);
        }),
        &[],
    );
    assert!(told.confidence > SURE_FROM && told.confidence <= BY_STATES);
    let old = |_: u64, _: &mut Sample, info: &mut TcpInfo| {
        (info.busy_time, info.rwnd_limited, info.sndbuf_limited) = (None, None, None);
        empty(info);
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
