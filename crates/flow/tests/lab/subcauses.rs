//! Sub-causes in captures of the lab: named where they were built in, and nowhere else.

use crate::runs;
use crate::score::capture_in;
use fullpipe_flow::capture::{self, Unpack};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{DiagnosedConnection, SubCause};
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
        let Some(SubCause::Policer(policer)) = causes.next() else { panic!("{end}: none") };
        // In payload: 524 of 576 bytes.
        let rate = policer.rate.as_f64() / (1029e3 * 524.0 / 576.0);
        assert!((0.9..1.1).contains(&rate), "{end}: {policer:?}");
        let bucket = policer.bucket.as_f64() / (18_432.0 * 524.0 / 576.0);
        assert!((0.2..1.2).contains(&bucket), "{end}: {policer:?}");
    }
}

#[test]
fn near_miss_what_is_held_by_something_else_has_no_sub_cause() {
    for run in runs("limits") {
        for end in ["server", "client"] {
            let connection = connection(&run, end);
            let both = [Direction::ClientToServer, Direction::ServerToClient];
            let named: Vec<SubCause> =
                both.into_iter().flat_map(|one| connection.sub_causes(one)).collect();
            let is_wrong = |one: &SubCause| !matches!(one, SubCause::Timeouts(_));
            assert!(!named.iter().any(is_wrong), "{}, {end}: {named:?}", run.display());
        }
    }
}
