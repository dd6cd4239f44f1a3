//! Arbitrary bytes as a capture file, in arbitrary pieces, through the whole analysis.
#![no_main]

use fullpipe_flow::capture::Reader;
use fullpipe_flow::connection::{Direction, Warning};
use fullpipe_flow::finding::{KnownPath, findings};
use fullpipe_flow::limit::CapturePoint;
use fullpipe_flow::trace::TraceBounds;
use fullpipe_flow::{Analyzer, Config};

/// The first byte says how to cut and where the capture was taken; the rest is the file.
fn packets(bytes: &[u8]) -> u64 {
    let [how, file @ ..] = bytes else { return 0 };
    let capture_point =
        [CapturePoint::Unknown, CapturePoint::SenderEdge, CapturePoint::ReceiverEdge]
            [usize::from(how % 3)];
    // So few points that they are merged.
    let trace = Some(TraceBounds { points: 8, rate_bins: 8, marks: 8, ..TraceBounds::default() });
    let mut analyzer = Analyzer::new(Config { capture_point, trace, ..Config::default() });
    let mut reader = Reader::new();
    for piece in file.chunks(usize::from(how / 3).max(1)) {
        reader.feed(piece);
        while let Ok(Some(packet)) = reader.next_packet() {
            analyzer.push_packet(&packet);
        }
    }
    let summary = reader.finish();
    let analysis = analyzer.finish();
    assert_eq!(summary.packets, analysis.counts.packets, "every packet that was read is analysed");
    for diagnosed in &analysis.connections {
        let connection = &diagnosed.connection;
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            let facts = connection.facts(direction);
            // Only what was acknowledged and not captured can make it more.
            let lacks = [Warning::CaptureDropped, Warning::OneSided];
            let is_warned = connection.warnings.iter().any(|warning| lacks.contains(warning));
            assert!(facts.unique_payload <= facts.payload || is_warned);
            if let Some(trace) = diagnosed.trace().and_then(|trace| trace.direction(direction)) {
                let payload: u64 = trace.rate().iter().map(|(payload, _)| payload.get()).sum();
                assert_eq!(payload, facts.payload.get(), "no byte is lost between the bins");
            }
            let Some(diagnosis) = diagnosed.diagnosis(direction) else { continue };
            let verdict = &diagnosis.verdict;
            let sum: f64 = verdict.shares.iter().map(|candidate| candidate.share).sum();
            assert!(
                verdict.shares.is_empty() || (sum - 1.0).abs() < 1e-6,
                "shares add up to {sum}"
            );
            findings(verdict, KnownPath { rtt: connection.handshake_rtt, goodput_max: None });
        }
    }
    analysis.counts.packets
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    packets(bytes);
});
