//! Sub-causes in captures of the lab: named where they were built in, and nowhere else.

use crate::runs;
use crate::score::capture_in;
use fullpipe_flow::account::Cause as Part;
use fullpipe_flow::capture::{self, Unpack};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{DiagnosedConnection, PacketCause};
use fullpipe_flow::finding::{PacketRemedy, Remedy, words};
use fullpipe_flow::limit::{Cause, Limit};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Duration;
use std::path::Path;

pub fn connection(run: &Path, end: &str) -> DiagnosedConnection {
    let connections = connections(run, end).into_iter();
    connections.max_by_key(|one| one.connection.server_to_client.payload).unwrap()
}

fn connections(run: &Path, end: &str) -> Vec<DiagnosedConnection> {
    let mut analyzer = Analyzer::new(Config::default());
    let file = Unpack::new(std::fs::File::open(capture_in(run, end)).unwrap()).unwrap();
    capture::read(file, |packet| {
        analyzer.push_packet(&packet);
    })
    .unwrap();
    analyzer.finish().connections
}

/// A segment of 1448 bytes takes 1500 on the link.
const PAYLOAD_OF_LINK: f64 = 1448.0 / 1500.0;

/// Three connections fill 8 Mbit/s together, each with a part that swings; or each is held by its
/// own window or writer, and the link has room.
#[test]
fn connections_of_the_same_hosts_fill_a_link_together() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures/shared");
    for (name, limit) in [
        ("full", Limit::Link),
        ("full-without-timestamps", Limit::Link),
        ("window", Limit::ReceiveWindow),
        ("writers", Limit::SenderApplication),
    ] {
        for end in ["server", "client"] {
            let connections = connections(&shared.join(name), end);
            assert_eq!(connections.len(), 3);
            for one in connections {
                let what = &one.findings()[0].what;
                assert_eq!(what.limit, limit, "{name} at the {end}: {}", words::event(what));
                let own = what.evidence.goodput.as_f64();
                let all = own + what.evidence.beside.expect("the others' rate").as_f64();
                assert!(own < 0.8 * all, "{name} at the {end}: {own} of {all}");
                let part = all / (8e6 * PAYLOAD_OF_LINK);
                assert!(limit != Limit::Link || (0.95..1.05).contains(&part), "{end}: {part}");
            }
        }
    }
}

/// The receiver's application grants 192 KiB, and the path holds four times as much.
#[test]
fn a_window_above_tcp_is_named_at_both_ends_with_its_size() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures/granted/192KiB");
    for end in ["server", "client"] {
        let [one] = &connections(&run, end)[..] else { panic!("one connection") };
        let what = &one.findings()[0].what;
        assert_eq!(what.limit, Limit::ApplicationWindow, "{end}: {}", words::event(what));
        let window = what.evidence.in_flight.as_f64() / f64::from(192 << 10);
        assert!((0.9..1.1).contains(&window), "{end}: {}", words::event(what));
    }
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

/// Where packets overtake each other, the congestion window is small although nothing is lost, and
/// neither repairs nor round trips that are longer than the shortest are a full link's. What passes
/// one after the other is.
#[test]
fn what_is_taken_for_loss_is_no_full_link_and_a_full_link_is_one_in_any_order() {
    let order = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures/order");
    for (case, rate, limit) in
        [("room", 100e6, Limit::CongestionWindow(Cause::Loss)), ("full", 5e6, Limit::Link)]
    {
        for end in ["server", "client"] {
            let connection = connection(&order.join(case), end);
            let finding = &connection.findings()[0].what;
            assert_eq!(finding.limit, limit, "{case}, {end}: {finding:?}");
            // The law: what is full carries its rate in whole packets, and what is not does not.
            let of_rate = finding.evidence.goodput.as_f64() / (rate * 1448.0 / 1500.0);
            assert_eq!(of_rate > 0.9, limit == Limit::Link, "{case}, {end}: {of_rate}");
            let mut causes = connection.sub_causes(Direction::ServerToClient);
            let named = causes.find_map(|one| match one {
                PacketCause::Reordering(one) => Some(one),
                _ => None,
            });
            let is_told = limit != Limit::Link;
            assert_eq!(named.is_some(), is_told, "{case}, {end}: {named:?}");
            let facts = connection.connection.facts(Direction::ServerToClient).loss;
            assert_eq!(facts.lost_segments, 0, "{case}, {end}: {facts:?}");
            let keeps_order = finding.remedy == Remedy::Packets(PacketRemedy::KeepOrder);
            assert_eq!(keeps_order, is_told, "{case}, {end}: {finding:?}");
        }
    }
}

/// A link that is full has no time to give back: what is sent again has its turn like the rest.
#[test]
fn repairs_on_a_full_link_lose_nothing() {
    let mut seen = [0, 0];
    for suite in ["limits", "losses", "tails", "order"] {
        for run in runs(suite) {
            let there =
                ["server", "client"].into_iter().filter(|end| capture_in(&run, end).exists());
            for end in there {
                let connection = connection(&run, end);
                let verdict = &connection.diagnosis(Direction::ServerToClient).unwrap().verdict;
                let is_full = verdict.share(Limit::Link) >= 0.5;
                let account = connection.account().unwrap();
                for part in account.parts.iter().filter(|one| one.cause == Part::Recovery) {
                    let lost = if is_full { Duration::ZERO } else { part.time };
                    assert_eq!(part.lost, lost, "{}, {end}", run.display());
                    seen[usize::from(is_full)] += 1;
                }
            }
        }
    }
    assert!(seen.iter().all(|count| *count >= 4), "{seen:?}");
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
