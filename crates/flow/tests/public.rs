//! What the verdicts say of 150 public captures (`../shared/captures`, not part of the repository),
//! of which nobody knows what limited them, and must not say: that loss held a sender where nothing
//! was sent twice, or a receive window whose size is not known because the handshake with its scale
//! was not captured.
#![allow(clippy::print_stdout, reason = "what was found is shown")]

mod skip;

use fullpipe_flow::account::{Cause, Owner};
use fullpipe_flow::capture::{self, Unpack};
use fullpipe_flow::connection::{Direction, Label};
use fullpipe_flow::diagnosis::{ApplicationWindow, DiagnosedConnection, PacketCause};
use fullpipe_flow::limit::Interval;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::limit::{Cause as CongestionCause, Limit};
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
            if first == Limit::CongestionWindow(CongestionCause::Loss) && repeats == 0 {
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

/// `shared/cases/13`: ssh over 167 ms, whose client grants 2 MiB. Its sender's buffer has no bound.
#[test]
fn the_window_of_an_ssh_channel_is_found_at_both_ends_and_in_no_public_capture() {
    let name = "the_window_of_an_ssh_channel_is_found_at_both_ends_and_in_no_public_capture";
    let shared = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let case = shared.join("cases/13-ssh-channel-window");
    if !case.exists() {
        return skip(name, &format!("no {}", case.display()));
    }
    for end in ["sender", "receiver"] {
        let connections = connections_in(&case.join(format!("ssh-2m-{end}.pcap.gz")));
        let [one] = &connections[..] else { panic!("{} connections", connections.len()) };
        let found = windows(one, Direction::ServerToClient);
        let [window] = &found[..] else { panic!("{end}: {found:?}") };
        assert_eq!(window.bound.get(), 2 << 20, "{end}");
        let account = one.account().unwrap();
        let first = account.first().unwrap();
        let meant = (Owner::ClientApplication, Cause::Transfer(Limit::ApplicationWindow));
        assert_eq!((first.owner, first.cause), meant, "{end}");
        // The account gives the window no more than the verdict, which knows nothing of turns.
        let (given, told) = (first.time.as_secs_f64(), window.time.as_secs_f64());
        assert!((0.8..=1.001).contains(&(given / told)), "{end}: {given} s of {told} s");
        // A buffer that held as much later was no bound before.
        let verdict = &one.diagnosis(Direction::ServerToClient).unwrap().verdict;
        assert_eq!(verdict.share(Limit::SendBuffer), 0.0, "{end}");
    }
    let files = std::fs::read_dir(shared.join("captures/files")).unwrap();
    for file in files.flatten().map(|file| file.path()) {
        for (one, direction) in connections_in(&file).iter().flat_map(directions) {
            let found = windows(one, direction).into_iter().filter(|found| found.step.is_some());
            assert_eq!(found.count(), 0, "{}, {}", file.display(), one.connection.id);
        }
    }
}

/// The windows above TCP that hold a direction's data.
fn windows(one: &DiagnosedConnection, direction: Direction) -> Vec<ApplicationWindow> {
    let causes = one.sub_causes(direction);
    causes
        .filter_map(|cause| match cause {
            PacketCause::ApplicationWindow(window) => Some(window),
            _ => None,
        })
        .collect()
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
