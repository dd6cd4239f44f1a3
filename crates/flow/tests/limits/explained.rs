//! What a finding says beside its limit, of transfers whose limit is built in.

use crate::analyse;
use crate::as_captured::each_limit;
use crate::sim::{Point, Transfer};
use fullpipe_flow::finding::Finding;
use fullpipe_flow::finding::words;
use fullpipe_flow::limit::Limit;
use fullpipe_flow::{Config, Language};

/// The first finding of the server's data.
fn first(transfer: &Transfer, point: Point) -> Finding {
    let connection = analyse(transfer, point, Config::default());
    connection.bulk().unwrap().findings().remove(0)
}

#[test]
fn the_numbers_that_decided_are_about_the_limit_that_was_built_in() {
    for (limit, transfer) in each_limit() {
        let finding = first(&transfer, Point::Sender);
        assert_eq!(finding.limit, limit, "{}", words::claim(&finding));
        let about: &[&str] = match limit {
            Limit::ReceiveWindow => &["window", "rules_receive_window"],
            Limit::ReceiverApplication => &["window", "unread", "rules_receiver_application"],
            Limit::SendBuffer => &["in_flight", "rules_send_buffer"],
            Limit::SenderApplication => &["short_segments", "unprompted", "idle", "rules_sender"],
            Limit::Link => &["rate", "rtt", "rules_link"],
            Limit::CongestionWindow(_) => &["retransmissions", "root_loss", "loss"],
            Limit::ApplicationWindow | Limit::Unknown => &[],
        };
        let is_about = |name: &str| about.iter().any(|part| name.contains(part));
        // Where the judge would say something else, the rules stand alone.
        let names: Vec<&str> = finding.reasons.iter().map(|reason| reason.name()).collect();
        assert!(names.is_empty() || names.iter().any(|name| is_about(name)), "{limit}: {names:?}");
        assert!(names.len() <= 3, "{limit}: {names:?}");
    }
}

#[test]
fn a_reason_is_a_quantity_that_the_capture_shows() {
    let (limit, transfer) = &each_limit()[0];
    let finding = first(transfer, Point::Sender);
    assert_eq!(finding.limit, *limit);
    let names = ["in_flight_of_window", "in_flight_p90_of_window", "window_full"];
    let of_window = finding.reasons.iter().find(|reason| names.contains(&reason.name()));
    let reason = of_window.unwrap_or_else(|| panic!("{:?}", finding.reasons));
    // The window held it nearly all of the time.
    assert!((0.8..=1.0).contains(&reason.value) && reason.typical < 0.2, "{reason:?}");
    assert!(reason.words(Language::English).contains(" % of the "), "{reason:?}");
}

#[test]
fn a_remedy_names_the_congestion_control_that_the_capture_shows() {
    let (limit, transfer) = &each_limit()[5];
    let finding = first(transfer, Point::Sender);
    assert_eq!(finding.limit, *limit);
    // The sender of the simulation halves its window.
    assert!(
        words::remedy(finding.remedy).contains("slows down after it"),
        "{}",
        words::remedy(finding.remedy)
    );
}

#[test]
fn the_rules_stand_alone_where_a_transfer_has_no_shape() {
    let transfer = Transfer { bytes: 30_000, ..Transfer::default() };
    assert_eq!(first(&transfer, Point::Sender).reasons, []);
}
