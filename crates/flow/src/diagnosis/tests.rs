use super::*;
use crate::capture::LinkType;
use crate::limit::Limit;
use crate::{Analyzer, Config};
use fullpipe_model::units::{Bytes, Instant};

#[path = "../../tests/window/mod.rs"]
mod window;

/// 40 windows of 10 kB, each a round trip of 50 ms, from the server.
fn window_limited() -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(Config::default());
    for (nanos, packet) in window::packets(40_000, 40) {
        let at = Instant::from_nanos(1_000_000_000_000 + nanos);
        let wire = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        analyzer.push(at, LinkType::RAW, &packet, wire).unwrap();
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
