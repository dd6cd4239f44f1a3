//! The same transfers as people capture them: in a host, where offloads merge segments; begun in
//! the middle; without anything that tells the window's scale; on a mirror port.

use crate::sim::{self, Point, Transfer, millis};
use crate::{LOSS, shown};
use fullpipe_flow::capture::LinkType;
use fullpipe_flow::capture::recapture::{CaptureChange, CapturedRecord, Recapture, as_host};
use fullpipe_flow::connection::Label;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::limit::Verdict;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::limit::Limit;
use fullpipe_model::units::Duration;
use std::net::IpAddr;

/// What a capture at `point` has, changed.
fn captured(transfer: &Transfer, point: Point, changes: &[CaptureChange]) -> Vec<CapturedRecord> {
    let mut recapture = Recapture::new(changes);
    let mut records = Vec::new();
    for line in sim::run(transfer, point) {
        let data = line.packet();
        let original_length = data.len();
        let record =
            CapturedRecord { at: line.at, link_type: LinkType::RAW, data, original_length };
        recapture.push(record, &mut records);
    }
    recapture.finish(&mut records);
    records
}

fn connection(records: &[CapturedRecord]) -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(Config::default());
    for record in records {
        analyzer.push(record.at, record.link_type, &record.data, record.original_length).unwrap();
    }
    let mut connections = analyzer.finish().connections;
    assert_eq!(connections.len(), 1);
    connections.remove(0)
}

fn verdict(records: &[CapturedRecord]) -> Verdict {
    connection(records).bulk().unwrap().verdict.clone()
}

#[track_caller]
fn assert_first(records: &[CapturedRecord], limit: Limit, which: &str) {
    let verdict = verdict(records);
    let steady = verdict.steadily_limited_by();
    assert_eq!(steady.limit, limit, "{which}: {:?}\n{}", verdict.steady, shown(&verdict));
}

/// Addresses of the two ends, as the traces write them.
fn host(point: Point) -> IpAddr {
    match point {
        Point::Sender => [198, 51, 100, 2].into(),
        Point::Receiver => [192, 0, 2, 1].into(),
    }
}

/// One transfer of each limit that lasts.
pub fn each_limit() -> [(Limit, Transfer); 6] {
    let base = Transfer::default;
    [
        (Limit::ReceiveWindow, Transfer { receive_buffer: 200_000, ..base() }),
        (
            Limit::ReceiverApplication,
            Transfer { read_rate: 1_000_000, receive_buffer: 200_000, bytes: 3_000_000, ..base() },
        ),
        (Limit::SendBuffer, Transfer { send_buffer: 250_000, ..base() }),
        (
            Limit::SenderApplication,
            Transfer { write: (16_000, millis(7)), bytes: 8_000_000, rtt: millis(52), ..base() },
        ),
        (Limit::Link, Transfer { bytes: 40_000_000, ..base() }),
        (
            LOSS,
            Transfer {
                lose_one_in: 300,
                bytes: 6_000_000,
                rate: 125_000_000,
                queue: 6_250_000,
                ..base()
            },
        ),
    ]
}

#[test]
fn segments_that_offloads_merged_change_no_limit() {
    for (limit, transfer) in each_limit() {
        for point in [Point::Sender, Point::Receiver] {
            let records = captured(&transfer, point, &as_host(host(point)));
            let longest = records.iter().map(|record| record.original_length).max();
            let has_bursts = limit == Limit::SendBuffer && point == Point::Sender;
            assert!(longest > Some(3000) || !has_bursts, "nothing was merged: {longest:?}");
            assert_first(&records, limit, &format!("{point:?}"));
        }
    }
}

#[test]
fn without_the_start_the_senders_capture_still_tells_the_limit() {
    for (limit, transfer) in each_limit() {
        if limit == Limit::ReceiverApplication {
            // That the window was larger once was in the part that is missing.
            continue;
        }
        let records = captured(&transfer, Point::Sender, &[CaptureChange::Start { packets: 400 }]);
        assert_first(&records, limit, "cut");
        let scale = connection(&records).connection;
        assert_eq!(scale.client_to_server.window.scale, None, "the handshake is not there");
    }
}

#[test]
fn a_scale_that_was_not_seen_is_told_by_the_edge_that_data_touches() {
    let transfer = Transfer { receive_buffer: 200_000, ..Transfer::default() };
    let records = captured(&transfer, Point::Sender, &[CaptureChange::Start { packets: 400 }]);
    let connection = connection(&records).connection;
    let windows = [connection.client_to_server.window, connection.server_to_client.window];
    assert!(windows.iter().any(|window| window.scale_inferred == Some(7)), "{windows:?}");
}

#[test]
fn near_miss_a_window_of_unknown_scale_that_is_never_touched_is_no_limit() {
    // By its header the window is 128 times smaller than what is in flight.
    let transfer = Transfer { send_buffer: 250_000, ..Transfer::default() };
    let records = captured(&transfer, Point::Sender, &[CaptureChange::Start { packets: 400 }]);
    let verdict = verdict(&records);
    assert_eq!(verdict.share(Limit::ReceiveWindow), 0.0, "{}", shown(&verdict));
}

#[test]
fn a_snap_length_that_cuts_the_scale_off_leaves_it_unknown() {
    // 60 bytes of an Ethernet frame. Without the option, the window would count as never scaled.
    let snap = [CaptureChange::Snap { bytes: 46 }];
    let send_buffer = Transfer { send_buffer: 250_000, ..Transfer::default() };
    let records = captured(&send_buffer, Point::Sender, &snap);
    assert_eq!(connection(&records).connection.client_to_server.window.scale, None);
    let told = verdict(&records);
    assert_eq!(told.share(Limit::ReceiveWindow), 0.0, "{}", shown(&told));
    let window = Transfer { receive_buffer: 200_000, ..Transfer::default() };
    let connection = connection(&captured(&window, Point::Sender, &snap)).connection;
    let windows = [connection.client_to_server.window, connection.server_to_client.window];
    assert!(windows.iter().any(|window| window.scale_inferred == Some(7)), "{windows:?}");
}

#[test]
fn packets_that_a_mirror_port_repeats_are_not_sent_again() {
    let transfer = Transfer { receive_buffer: 200_000, bytes: 4_000_000, ..Transfer::default() };
    let twice = CaptureChange::Twice { after: Duration::ZERO };
    let mut records = captured(&transfer, Point::Sender, &[twice]);
    // The traces have no identifications, without which nobody can tell.
    (0_u16..).zip(&mut records).for_each(|(number, record)| {
        let id = number / 2 + 1;
        record.data[4..6].copy_from_slice(&id.to_be_bytes());
    });
    let connection = connection(&records).connection;
    assert_eq!(connection.server_to_client.labels.of(Label::Retransmission), 0);
    assert_first(&records, Limit::ReceiveWindow, "twice");
}

#[test]
fn steps_of_identifications_are_no_loss_where_nothing_was_sent_again() {
    // Writes half a second apart, and between them the host sent something to others, by the same
    // counter.
    let transfer = Transfer { write: (20_000, millis(500)), bytes: 400_000, ..Transfer::default() };
    let mut records = captured(&transfer, Point::Sender, &[]);
    let (mut id, mut before) = (1_u16, records[0].at);
    for record in &mut records {
        id += if record.at.since(before) > Duration::from_millis(200) { 20 } else { 1 };
        before = record.at;
        record.data[4..6].copy_from_slice(&id.to_be_bytes());
    }
    assert_first(&records, Limit::SenderApplication, "identifications");
    assert_eq!(verdict(&records).share(LOSS), 0.0);
}
