//! Arbitrary bytes as what the kernel says of a socket, through the limits.
#![no_main]

use fullpipe_flow::limit::{PathHint, from_samples};
use fullpipe_model::observe::{Reasons, Sample, SocketMemory, TcpInfo, TcpState};
use fullpipe_flow::limit::truth::{Knowledge, intervals};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// Memory, `tcp_info` of Linux 6.12, and reasons without their magic number.
const CHUNK: usize = 36 + 248 + 360;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let end = "192.0.2.1:80".parse().unwrap();
    let samples: Vec<Sample> = bytes
        .chunks(CHUNK)
        .enumerate()
        .map(|(number, chunk)| {
            let (memory, info) = chunk.split_at(36.min(chunk.len()));
            // Behind it, half of the sockets' kernels count reasons: with a magic number at the end.
            let mut counted = info.to_vec();
            if chunk[0] & 1 == 1 {
                counted.extend(u64::from_be_bytes(*b"fullpipe").to_ne_bytes());
            }
            let (info, reasons) = Reasons::split(&counted);
            Sample {
                at: Instant::ZERO + Duration::from_millis(10 * number as u64),
                local: end,
                remote: end,
                state: TcpState::Established,
                rqueue: Bytes::new(u64::from(chunk[0]) << 20),
                wqueue: Bytes::ZERO,
                congestion_control: None,
                info: TcpInfo::parse(info).ok(),
                memory: SocketMemory::parse(memory).ok(),
                reasons,
            }
        })
        .collect();
    let verdict = from_samples(&samples, &samples, Duration::from_millis(10), PathHint::default());
    assert!(verdict.shares.iter().all(|candidate| (0.0..=1.0 + 1e-9).contains(&candidate.share)));
    let rtt = Duration::from_millis(20);
    let (sender, receiver, link) = (&samples, &samples, None);
    let epoch = Duration::ZERO;
    let known = Knowledge { sender, receiver, link, rtt, is_policed: false, epoch };
    for interval in intervals(&known) {
        let sum: f64 = interval.limits.iter().map(|candidate| candidate.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{interval:?}");
        assert!(interval.unread.is_none_or(|part| (0.0..=1.0).contains(&part)));
    }
});
