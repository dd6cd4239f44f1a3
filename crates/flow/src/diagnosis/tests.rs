use super::*;
use crate::capture::LinkType;
use crate::{Analyzer, Config};
use fullpipe_model::units::{Bytes, Instant};

/// A segment of 20 bytes of header between two ends; `payload` bytes are claimed, none captured.
fn packet(to_server: bool, flags: u8, seq: u32, ack: u32, payload: u16) -> Vec<u8> {
    let ends = [([192, 0, 2, 1], 40_000_u16), ([198, 51, 100, 2], 80)];
    let (from, to) = if to_server { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
    let total = (40 + payload).to_be_bytes();
    let ip =
        [&[0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, 6, 0, 0][..], &from.0, &to.0].concat();
    let numbers = [seq.to_be_bytes(), ack.to_be_bytes()].concat();
    let window = 10_000_u16.to_be_bytes();
    [
        &ip[..],
        &from.1.to_be_bytes(),
        &to.1.to_be_bytes(),
        &numbers,
        &[0x50, flags],
        &window,
        &[0; 4],
    ]
    .concat()
}

/// 40 windows of 10 kB, each a round trip of 50 ms, from the server.
fn window_limited() -> DiagnosedConnection {
    const RTT: u64 = 50_000_000;
    let mut analyzer = Analyzer::new(Config::default());
    let mut push = |nanos: u64, packet: &[u8]| {
        let wire = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        analyzer
            .push(Instant::from_nanos(1_000_000_000_000 + nanos), LinkType::RAW, packet, wire)
            .unwrap();
    };
    push(0, &packet(true, 2, 99, 0, 0));
    push(10_000, &packet(false, 0x12, 499, 100, 0));
    push(RTT, &packet(true, 0x10, 100, 500, 0));
    for turn in 0..40_u32 {
        let at = RTT * u64::from(turn + 1) + 1_000_000;
        for part in 0..10_u32 {
            let seq = 500 + turn * 10_000 + part * 1_000;
            push(at + u64::from(part) * 1_000, &packet(false, 0x10, seq, 100, 1_000));
        }
        push(at + RTT - 500_000, &packet(true, 0x10, 100, 500 + (turn + 1) * 10_000, 0));
    }
    analyzer.finish().connections.remove(0)
}

#[test]
fn a_captured_connection_is_parted_into_facts_and_a_diagnosis_of_the_data() {
    let mut connection = window_limited();
    assert!(connection.diagnosis(Direction::ClientToServer).is_none(), "the client sent no data");
    let data = connection.bulk().unwrap();
    assert_eq!(data.subject.sender, connection.connection.server);
    assert_eq!(data.subject.direction, Some(Direction::ServerToClient));
    assert_eq!(data.subject.seen_at, SeenAt::Capture(Place::Server));
    assert_eq!(data.limited_by().limit, Limit::ReceiveWindow);
    // 10 kB at 50 ms are 1.6 Mbit/s.
    let finding = data.worst_finding().unwrap();
    assert_eq!(finding.evidence.window.unwrap().bytes(), Bytes::new(10_000));
    assert!(
        finding.evidence.allowed.unwrap().bits_per_sec().abs_diff(1_600_000) < 50_000,
        "{finding:?}"
    );
    connection.renumber(7);
    assert_eq!(connection.bulk().unwrap().subject.connection, Some(7));
}

#[test]
fn findings_worked_out_before_are_those_worked_out_later() {
    let later = window_limited();
    let before = later.clone().with_findings();
    assert_eq!(later.findings(), before.findings());
    assert_eq!(serde_json::to_value(&later).unwrap(), serde_json::to_value(&before).unwrap());
}

#[test]
fn one_sample_is_no_diagnosis() {
    let none = Sockets { sender: &[], receiver: &[], interval: Duration::from_millis(10) };
    assert_eq!(Diagnosis::from_samples(none, PathHint::default()), None);
}
