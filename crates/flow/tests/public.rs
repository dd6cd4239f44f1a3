//! What the verdicts say of 150 public captures (`../shared/captures`, not part of the repository),
//! of which nobody knows what limited them, and must not say: that loss held a sender where nothing
//! was sent twice, or a receive window whose size is not known because the handshake with its scale
//! was not captured.
#![allow(clippy::print_stdout, reason = "what was found is shown")]

mod skip;

use fullpipe_flow::capture::{self, Unpack};
use fullpipe_flow::connection::{Direction, Label};
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::limit::Interval;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::limit::{Cause, Limit};
use fullpipe_model::units::Window;
use skip::skip;
use std::path::{Path, PathBuf};

/// Fewer would say that the captures are not those that this was made for.
const VERDICTS_LEAST: usize = 1500;

#[test]
fn no_loss_without_repeats_and_no_window_of_unknown_scale() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures/files");
    let Ok(files) = std::fs::read_dir(&folder) else {
        return skip(
            "no_loss_without_repeats_and_no_window_of_unknown_scale",
            &format!("no {}", folder.display()),
        );
    };
    let (mut verdicts, mut wrong) = (0, Vec::new());
    for file in files.flatten().map(|file| file.path()) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let connections = connections_in(&file);
        for (diagnosed, direction) in connections.iter().flat_map(directions) {
            let connection = &diagnosed.connection;
            let (id, data) = (connection.id, connection.facts(direction));
            let peer = connection.facts(other(direction));
            let verdict = diagnosed.diagnosis(direction).map(|found| &found.verdict);
            let Some(verdict) = verdict.filter(|verdict| !verdict.shares.is_empty()) else {
                continue;
            };
            verdicts += 1;
            let first = verdict.limited_by().limit;
            let repeats = data.labels.of(Label::Retransmission);
            if first == Limit::CongestionWindow(Cause::Loss) && repeats == 0 {
                wrong.push(format!("{name}, connection {id}: {first} without a repeat"));
            }
            let is_scale_unknown =
                peer.window.scale.is_none() && peer.window.scale_inferred.is_none();
            let is_open = |interval: &&Interval| {
                interval.evidence.window.is_some_and(|window| window > Window::ZERO)
            };
            let by_window = matches!(first, Limit::ReceiveWindow | Limit::ReceiverApplication);
            if by_window
                && is_scale_unknown
                && verdict.intervals.iter().filter(|i| i.limit() == first).any(|i| is_open(&i))
            {
                wrong.push(format!(
                    "{name}, connection {id}: a window of unknown scale is evidence of {first}"
                ));
            }
        }
    }
    println!("{verdicts} verdicts, {} of them wrong", wrong.len());
    assert!(verdicts >= VERDICTS_LEAST, "{verdicts} verdicts only");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Both directions of a connection.
fn directions(one: &DiagnosedConnection) -> [(&DiagnosedConnection, Direction); 2] {
    [(one, Direction::ClientToServer), (one, Direction::ServerToClient)]
}

/// The direction that answers this one.
fn other(direction: Direction) -> Direction {
    match direction {
        Direction::ClientToServer => Direction::ServerToClient,
        Direction::ServerToClient => Direction::ClientToServer,
    }
}

/// The connections in a capture.
fn connections_in(file: &Path) -> Vec<DiagnosedConnection> {
    let mut analyzer = Analyzer::new(Config::default());
    let opened =
        std::fs::File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let Ok(unpacked) = Unpack::new(opened) else { return Vec::new() };
    // Some of them are cut on purpose; what comes before the cut counts.
    let _ = capture::read(unpacked, |packet| {
        analyzer.push_packet(&packet);
    });
    analyzer.finish().connections
}
