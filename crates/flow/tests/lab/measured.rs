//! The path that a capture of the lab shows, beside the path that the lab had.

use crate::runs;
use crate::subcauses::connection;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::{Cause, Limit};
use fullpipe_model::tune::MeasuredPath;
use std::path::Path;

/// Each case of `captures/limits.toml`: its limit, the link's rate and the round trip.
const TRUTH: [(&str, Limit, f64, f64); 7] = [
    ("congestion_window_loss", Limit::CongestionWindow(Cause::Loss), 50e6, 0.030),
    ("congestion_window_slow_start", Limit::CongestionWindow(Cause::SlowStart), 100e6, 0.150),
    ("link", Limit::Link, 8e6, 0.030),
    ("receive_window", Limit::ReceiveWindow, 8e6, 0.030),
    ("receiver_application", Limit::ReceiverApplication, 8e6, 0.030),
    // Its buffer limits the second half of its bytes; most of its time is slow start.
    ("send_buffer", Limit::CongestionWindow(Cause::SlowStart), 20e6, 0.100),
    ("sender_application", Limit::SenderApplication, 8e6, 0.030),
];

fn measured(run: &Path, end: &str) -> MeasuredPath {
    connection(run, end).measured_path(Direction::ServerToClient).unwrap()
}

#[test]
fn a_capture_shows_the_path_that_the_lab_had() {
    for (run, (name, limit, rate, rtt)) in runs("limits").into_iter().zip(TRUTH) {
        assert_eq!(run.file_name().unwrap(), name);
        for end in ["server", "client"] {
            let path = measured(&run, end);
            assert_eq!(path.limited_by, limit, "{name} at the {end}");
            let seen = path.rtt.as_secs_f64() / rtt;
            assert!((0.99..1.1).contains(&seen), "{name} at the {end}: round trip {seen}");
            // Where it is shown at all, it is the link's.
            if let Some(seen) = path.rate {
                let seen = seen.as_f64() / rate;
                assert!((0.85..1.15).contains(&seen), "{name} at the {end}: rate {seen}");
            }
            assert_eq!(path.framing.mtu.get(), 1500);
        }
    }
}

#[test]
fn loss_and_policers_are_measured_where_they_are() {
    let loss = |run: &str| {
        let run = runs("limits").into_iter().find(|path| path.ends_with(run)).unwrap();
        measured(&run, "server").loss.unwrap().get()
    };
    // Of some 600 segments 3 % are lost.
    assert!((0.02..0.045).contains(&loss("congestion_window_loss")));
    assert_eq!(loss("receive_window"), 0.0);
    let policed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures/policer");
    let path = measured(&policed, "server");
    assert!(path.policer.is_some() && path.limited_by == Limit::Link, "{path:?}");
    let rate = path.rate.unwrap().as_f64() / 1029e3;
    assert!((0.9..1.1).contains(&rate), "{rate}");
}
