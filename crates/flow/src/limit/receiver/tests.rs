//! Each limit as a receiver's kernel shows it, with a near miss for each.

use super::*;
use fullpipe_model::observe::{SocketMemory, TcpState};
use fullpipe_model::units::Instant;

const STEP: u64 = 10;
const RTT: u64 = 50;

/// A receiver that is sampled every 10 ms; `change` gets the bytes that arrived so far.
fn series(count: u64, mut change: impl FnMut(u64, &mut Sample, &mut TcpInfo)) -> Vec<Sample> {
    let at = |n: u64| {
        let mut info = TcpInfo {
            state: TcpState::Established,
            rcv_mss: Bytes::new(1448),
            min_rtt: Some(Duration::from_millis(RTT)),
            rcv_rtt: Duration::from_millis(RTT),
            rcv_wnd: Some(Window::new(Bytes::new(6_000_000))),
            bytes_received: Some(Bytes::new(n * 400_000)),
            data_segs_in: Some((n * 276) as u32),
            rcv_ooopack: Some(0),
            rcv_wscale: 10,
            ..TcpInfo::default()
        };
        let mut sample = Sample {
            memory: Some(SocketMemory {
                rcvbuf: Bytes::new(12_000_000),
                ..SocketMemory::default()
            }),
            ..Sample::new(
                Instant::ZERO + Duration::from_millis(n * STEP),
                "192.0.2.2:4000".parse().unwrap(),
                "192.0.2.1:80".parse().unwrap(),
                TcpState::Established,
            )
        };
        change(n, &mut sample, &mut info);
        sample.info = Some(info);
        sample
    };
    (0..count).map(at).collect()
}

/// Asserts what the rules decide alone: series like these are not what the trained judge learnt
/// from.
#[track_caller]
fn assert_limit(samples: &[Sample], limit: Limit) {
    let hint = PathHint::default();
    let (_, intervals) = by_rules(samples, Duration::from_millis(100), base_rtt(samples), hint);
    let verdict = Verdict::new(Source::ReceiverSamples, intervals);
    let steady = verdict.steadily_limited_by();
    assert!(steady.limit == limit && steady.share > 0.65, "{limit:?}: {:?}", verdict.steady);
}

#[test]
fn a_window_that_every_round_trip_fills() {
    // 40 MB/s over 50 ms is 2 MB a round trip.
    let window =
        |bytes| series(300, move |_, _, info| info.rcv_wnd = Some(Window::new(Bytes::new(bytes))));
    assert_limit(&window(2_100_000), Limit::ReceiveWindow);
    // Near miss: an autotuned window is twice what arrives. Then nothing shows what holds it.
    assert_limit(&window(4_000_000), Limit::Unknown);
    // Without a scale, 65,535 bytes are all that can be said.
    let unscaled = series(300, |n, _, info| {
        info.rcv_wscale = 0;
        info.bytes_received = Some(Bytes::new(n * 13_000));
        info.data_segs_in = Some((n * 9) as u32);
    });
    assert_limit(&unscaled, Limit::ReceiveWindow);
}

#[test]
fn an_application_that_does_not_read() {
    let unread = |part: u64| {
        series(300, move |_, sample, _| {
            sample.rqueue = Bytes::new(part * 50_000);
            sample.memory =
                sample.memory.map(|m| SocketMemory { rmem_alloc: Bytes::new(part * 120_000), ..m });
        })
    };
    assert_limit(&unread(80), Limit::ReceiverApplication);
    assert_limit(&unread(10), Limit::Unknown);
}

#[test]
fn data_out_of_order_is_a_repaired_loss() {
    let lossy = series(300, |n, _, info| info.rcv_ooopack = Some(n as u32 / 5));
    assert_limit(&lossy, Limit::CongestionWindow(Cause::Loss));
    // Near miss: a full queue loses packets too, and the round trip shows it.
    let queue = series(300, |n, _, info| {
        info.rcv_ooopack = Some(n as u32 / 5);
        info.rcv_rtt = Duration::from_millis(2 * RTT);
    });
    assert_limit(&queue, Limit::Link);
}

#[test]
fn silence_and_small_segments_are_the_senders_application() {
    // It sends for 100 ms, and pauses for 400.
    let pausing = |n: u64| (n / 50) * 10 + (n % 50).min(10);
    let paused = series(500, |n, _, info| {
        info.bytes_received = Some(Bytes::new(pausing(n) * 400_000));
        info.data_segs_in = Some((pausing(n) * 276) as u32);
    });
    assert_limit(&paused, Limit::SenderApplication);
    let pieces = series(300, |n, _, info| info.data_segs_in = Some((n * 500) as u32));
    assert_limit(&pieces, Limit::SenderApplication);
}

#[test]
fn a_burst_each_round_trip_is_a_fixed_amount_in_flight() {
    // Data of 20 ms, then 30 ms of silence.
    let burst = |n: u64| (n / 5) * 2 + (n % 5).min(2);
    let bursts = series(300, |n, _, info| {
        info.bytes_received = Some(Bytes::new(burst(n) * 400_000));
        info.data_segs_in = Some((burst(n) * 277) as u32);
    });
    assert_limit(&bursts, Limit::SendBuffer);
}

#[test]
fn a_queue_at_full_delivery_is_the_links() {
    let queued = series(300, |_, _, info| info.rcv_rtt = Duration::from_millis(RTT + 20));
    assert_limit(&queued, Limit::Link);
    // Near miss: bursts every 30 ms, between which the round trip seems to grow.
    let burst = |n: u64| (n / 3) * 3 + if n.is_multiple_of(3) { 0 } else { 3 };
    let pieces = series(300, |n, _, info| {
        info.rcv_rtt = Duration::from_millis(RTT + 20);
        info.bytes_received = Some(Bytes::new(burst(n) * 40_000));
        info.data_segs_in = Some((burst(n) * 27) as u32);
    });
    assert_limit(&pieces, Limit::SenderApplication);
}

/// A sender that paces its data looks like a link but for the queue and the drops.
#[test]
fn even_data_that_never_waits_is_not_called_a_links() {
    let paced = |each: u64, rtt: Duration| {
        series(251, move |n, _, info| {
            (info.min_rtt, info.rcv_rtt) = (Some(rtt), rtt);
            info.rcv_wnd = Some(Window::new(Bytes::new(3_000_000)));
            info.rcv_space = Bytes::new(each * 10);
            info.bytes_received = Some(Bytes::new(n * each));
            info.data_segs_in = Some((n * each / 1448) as u32);
        })
    };
    for rtt in [20, 40, 60, 100, 150].map(Duration::from_millis) {
        for each in (1..=40).map(|one| one * 10_000) {
            let verdict = from_receiver(&paced(each, rtt), Duration::ZERO, PathHint::default());
            let found = verdict.limited_by().limit;
            assert_ne!(found, Limit::Link, "{each} bytes every 10 ms over {rtt:?}");
        }
    }
}

/// Only round trips that were measured say that nothing waited.
#[test]
fn what_was_not_measured_speaks_against_no_link() {
    let evidence = |rcv_rtt| {
        let samples = series(100, move |_, _, info| info.rcv_rtt = rcv_rtt);
        let spans = spans(&samples, MIN_INTERVAL);
        case(&spans, &[], Some(Duration::from_millis(RTT)), PathHint::default()).link
    };
    assert_eq!(evidence(Duration::from_millis(RTT)), LinkEvidence::Against);
    assert_eq!(evidence(Duration::ZERO), LinkEvidence::None);
    assert_eq!(evidence(Duration::from_millis(RTT + 20)), LinkEvidence::Queue);
}

#[test]
fn no_samples_are_no_verdict() {
    for samples in [Vec::new(), series(1, |_, _, _| {})] {
        let verdict = from_receiver(&samples, Duration::ZERO, PathHint::default());
        assert_eq!(verdict.limited_by().limit, Limit::Unknown);
        assert!(verdict.intervals.is_empty());
    }
}
