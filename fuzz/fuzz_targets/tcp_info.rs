//! Arbitrary bytes as what the kernel says of a socket, through the limits.
#![no_main]

use fullpipe_flow::limit::{PathHint, from_samples};
use fullpipe_flow::sample::{Sample, SocketMemory, TcpInfo, TcpState};
use fullpipe_model::units::{Bytes, Duration, Instant};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let end = "192.0.2.1:80".parse().unwrap();
    let samples: Vec<Sample> = bytes
        .chunks(284)
        .enumerate()
        .map(|(number, chunk)| {
            let (memory, info) = chunk.split_at(36.min(chunk.len()));
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
            }
        })
        .collect();
    let verdict = from_samples(&samples, &samples, Duration::from_millis(10), PathHint::default());
    assert!(verdict.shares.iter().all(|candidate| (0.0..=1.0 + 1e-9).contains(&candidate.share)));
});
