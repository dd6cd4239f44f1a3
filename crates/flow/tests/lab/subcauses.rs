//! Sub-causes in captures of the lab: named where they were built in, and nowhere else.

use crate::runs;
use crate::score::capture_in;
use fullpipe_flow::capture::{self, Unpack};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{DiagnosedConnection, PacketCause};
use fullpipe_flow::finding::words;
use fullpipe_flow::{Analyzer, Config};
use std::path::Path;

pub fn connection(run: &Path, end: &str) -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(Config::default());
    let file = Unpack::new(std::fs::File::open(capture_in(run, end)).unwrap()).unwrap();
    capture::read(file, |packet| {
        analyzer.push_packet(&packet);
    })
    .unwrap();
    let connections = analyzer.finish().connections;
    connections.into_iter().max_by_key(|one| one.connection.server_to_client.payload).unwrap()
}

/// A token bucket of 32 packets of 576 bytes at 1029 kbit/s.
#[test]
fn a_policer_is_named_with_its_rate_and_its_bucket() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures/policer");
    for end in ["server", "client"] {
        let connection = connection(&run, end);
        let mut causes = connection.sub_causes(Direction::ServerToClient);
        let Some(PacketCause::Policer(policer)) = causes.next() else { panic!("{end}: none") };
        // In payload: 524 of 576 bytes.
        let rate = policer.rate.as_f64() / (1029e3 * 524.0 / 576.0);
        assert!((0.9..1.1).contains(&rate), "{end}: {policer:?}");
        let bucket = policer.bucket.as_f64() / (18_432.0 * 524.0 / 576.0);
        assert!((0.2..1.2).contains(&bucket), "{end}: {policer:?}");
    }
}

/// A token bucket of 24 kB at 30 Mbit/s over 40 ms. It lets a bucket pass each round trip, and what
/// its tokens add meanwhile; a queue of that size delays.
#[test]
fn a_policer_that_drops_the_tails_of_bursts_is_named_and_a_queue_of_its_size_is_not() {
    let tails = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures/tails");
    let policed = connection(&tails.join("policer"), "server");
    let mut causes = policed.sub_causes(Direction::ServerToClient);
    let Some(PacketCause::Policer(policer)) = causes.next() else { panic!("none") };
    assert!(policer.drops_tails, "{policer:?}");
    let bucket = policer.bucket.as_f64() / 24e3;
    assert!((0.8..2.0).contains(&bucket), "{policer:?}");
    assert!(policer.rate.as_f64() < 30e6, "it is no more than the mean: {policer:?}");
    let finding = policed.findings()[0].what.clone();
    assert!(words::remedy(finding.remedy).contains("evenly"), "{finding:?}");
    for end in ["server", "client"] {
        let queued = connection(&tails.join("queue"), end);
        let mut causes = queued.sub_causes(Direction::ServerToClient);
        assert!(!causes.any(|one| matches!(one, PacketCause::Policer(_))), "{end}");
    }
}

/// Once a hole is filled, one ACK covers what SACK has reported before: no burst passed then.
#[test]
fn near_miss_random_loss_on_a_full_link_is_no_policer() {
    for run in runs("losses") {
        for end in ["server", "client"] {
            let connection = connection(&run, end);
            let mut causes = connection.sub_causes(Direction::ServerToClient);
            let is_policer = causes.any(|one| matches!(one, PacketCause::Policer(_)));
            assert!(!is_policer, "{}, {end}", run.display());
        }
    }
}

#[test]
fn near_miss_what_is_held_by_something_else_has_no_sub_cause() {
    for run in runs("limits") {
        for end in ["server", "client"] {
            let connection = connection(&run, end);
            let both = [Direction::ClientToServer, Direction::ServerToClient];
            let named: Vec<PacketCause> =
                both.into_iter().flat_map(|one| connection.sub_causes(one)).collect();
            let is_wrong = |one: &PacketCause| !matches!(one, PacketCause::Timeouts(_));
            assert!(!named.iter().any(is_wrong), "{}, {end}: {named:?}", run.display());
        }
    }
}
