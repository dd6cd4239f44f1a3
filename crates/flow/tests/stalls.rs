//! Silences in a direction's data and their causes, from packets made by hand: each cause as a
//! capture at the sender and, where it shows there, at the receiver, and what just misses it.

#[path = "trace/mod.rs"]
mod text;

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::trace::{Stall, TraceBounds};
use fullpipe_flow::{Analyzer, Config};
use serde_json::Value;

/// Captured at the server, the client 40 ms away.
const AT_SERVER: &str = "
    0.0000 > S  0:0         win 65535 <mss 1460,wscale 7,sackOK>
    0.0001 < S. 0:0   ack 1 win 65535 <mss 1460,wscale 7,sackOK>
    0.0400 > .  1:1   ack 1 win 512
    0.0400 > P. 1:101 ack 1 win 512
";
/// Captured at the client, the server 40 ms away.
const AT_CLIENT: &str = "
    0.0000 > S  0:0         win 65535 <mss 1460,wscale 7,sackOK>
    0.0400 < S. 0:0   ack 1 win 65535 <mss 1460,wscale 7,sackOK>
    0.0401 > .  1:1   ack 1 win 512
    0.0401 > P. 1:101 ack 1 win 512
";

/// The stalls of the server's data.
fn stalls(handshake: &str, trace: &str) -> Vec<Stall> {
    let config = Config { trace: Some(TraceBounds::default()), ..Config::default() };
    let mut analyzer = Analyzer::new(config);
    for line in text::parse(&format!("{handshake}{trace}")) {
        let packet = line.packet();
        analyzer.push(line.at, LinkType::RAW, &packet, packet.len());
    }
    let connection = analyzer.finish().connections.remove(0);
    let trace = connection.trace().unwrap();
    trace.direction(Direction::ServerToClient).unwrap().stalls().to_vec()
}

fn causes(handshake: &str, trace: &str) -> Vec<&'static str> {
    stalls(handshake, trace).iter().map(|stall| stall.cause.name()).collect()
}

#[test]
fn a_sender_with_nothing_to_send_and_what_it_costs() {
    let found = stalls(
        AT_SERVER,
        "0.0410 < . 1:1449     ack 101 win 512
         0.0810 > . 101:101    ack 1449 win 512
         0.5410 < . 1449:2897  ack 101 win 512
         0.5810 > . 101:101    ack 2897 win 512
         0.6310 < . 2897:4345  ack 101 win 512
         0.6710 > . 101:101    ack 4345 win 512",
    );
    let [stall] = &found[..] else { panic!("500 ms are a stall, 90 ms are not: {found:?}") };
    assert_eq!(stall.cause.name(), "sender_application");
    let json = serde_json::to_value(stall).unwrap();
    assert_eq!((&json["start_us"], &json["length_us"]), (&41_000.into(), &500_000.into()));
    assert_eq!(json["sequence"], Value::from(1448));
    // 4344 bytes in 630 ms, which is the mean, in half a second.
    assert_eq!(json["cost_bytes"], Value::from(4344 * 500 / 630));
}

#[test]
fn a_sender_with_nothing_to_send_seen_at_the_receiver() {
    let trace = "
        0.0811 < . 1:1449     ack 101 win 512
        0.0812 > . 101:101    ack 1449 win 512
        0.5811 < . 1449:2897  ack 101 win 512
        0.5812 > . 101:101    ack 2897 win 512";
    assert_eq!(causes(AT_CLIENT, trace), ["sender_application"]);
}

/// Without a window, only probes pass; data comes as soon as it opens.
#[test]
fn a_window_of_zero() {
    let at_server = "
        0.0410 < . 1:1449     ack 101 win 512
        0.0810 > . 101:101    ack 1449 win 0
        0.3810 > . 101:101    ack 1449 win 512
        0.3811 < . 1449:2897  ack 101 win 512
        0.4211 > . 101:101    ack 2897 win 512";
    assert_eq!(causes(AT_SERVER, at_server), ["zero_window"]);
    let at_client = "
        0.0811 < . 1:1449     ack 101 win 512
        0.0812 > . 101:101    ack 1449 win 0
        0.3810 > . 101:101    ack 1449 win 512
        0.4210 < . 1449:2897  ack 101 win 512
        0.4211 > . 101:101    ack 2897 win 512";
    assert_eq!(causes(AT_CLIENT, at_client), ["zero_window"]);
    // The window was open again for 200 ms before data came.
    let just_misses = "
        0.0410 < . 1:1449     ack 101 win 512
        0.0810 > . 101:101    ack 1449 win 0
        0.1810 > . 101:101    ack 1449 win 512
        0.3811 < . 1449:2897  ack 101 win 512
        0.4211 > . 101:101    ack 2897 win 512";
    assert_eq!(causes(AT_SERVER, just_misses), ["sender_application"]);
}

/// The window is never zero, but what arrived is not read.
#[test]
fn a_receiver_that_does_not_read() {
    let trace = "
        0.0410 < . 1:1449     ack 101 win 512
        0.0810 > . 101:101    ack 1449 win 8
        0.3810 > . 101:101    ack 1449 win 512
        0.3811 < . 1449:2897  ack 101 win 512
        0.4211 > . 101:101    ack 2897 win 512";
    assert_eq!(causes(AT_SERVER, trace), ["receiver_application"]);
    let has_room = trace.replace("win 8\n", "win 12\n");
    assert_eq!(causes(AT_SERVER, &has_room), ["sender_application"], "12 times 128 is a segment");
}

/// The first of six segments is lost, and so is the repair that its duplicate ACKs prompt.
#[test]
fn a_timer_though_much_followed_what_was_lost() {
    let flight = "
        0.0410 < . 1:1449     ack 101 win 512
        0.0411 < . 1449:2897  ack 101 win 512
        0.0412 < . 2897:4345  ack 101 win 512
        0.0413 < . 4345:5793  ack 101 win 512
        0.0414 < . 5793:7241  ack 101 win 512
        0.4414 < . 1:1449     ack 101 win 512
        0.4814 > . 101:101    ack 7241 win 512";
    assert_eq!(causes(AT_SERVER, flight), ["retransmission_timeout"]);
}

/// Nothing followed what was lost, so nothing but the timer could show it.
#[test]
fn the_last_segment_of_a_flight_is_lost() {
    let at_server = "
        0.0410 < . 1:1449     ack 101 win 512
        0.0411 < . 1449:2897  ack 101 win 512
        0.0810 > . 101:101    ack 1449 win 512
        0.3411 < . 1449:2897  ack 101 win 512
        0.3811 > . 101:101    ack 2897 win 512";
    assert_eq!(causes(AT_SERVER, at_server), ["tail_loss"]);
    let new_data = at_server.replace("0.3411 < . 1449:2897", "0.3411 < . 2897:4345");
    assert_eq!(causes(AT_SERVER, &new_data), ["sender_application"]);
}

#[test]
fn a_delayed_ack_that_a_sender_waits_for() {
    let trace = "
        0.0410 < P. 1:1001     ack 101 win 512
        0.2810 > .  101:101    ack 1001 win 512
        0.2811 < P. 1001:2001  ack 101 win 512
        0.3211 > .  101:101    ack 2001 win 512";
    assert_eq!(causes(AT_SERVER, trace), ["delayed_ack"]);
    // Later than any receiver may delay an ACK.
    let late = trace.replace("0.28", "0.98").replace("0.32", "1.02");
    assert_eq!(causes(AT_SERVER, &late), ["packet_delay"]);
}

/// Data is in flight all the time, and nothing is lost.
#[test]
fn a_path_that_holds_packets_back() {
    let trace = "
        0.0410 < . 1:1449     ack 101 win 512
        0.0411 < . 1449:2897  ack 101 win 512
        0.0412 < . 2897:4345  ack 101 win 512
        0.2410 < . 4345:5793  ack 101 win 512
        0.6410 > . 101:101    ack 4345 win 512
        0.6411 < . 5793:7241  ack 101 win 512
        0.7411 > . 101:101    ack 7241 win 512";
    assert_eq!(causes(AT_SERVER, trace), ["packet_delay", "packet_delay"]);
    // Had the first of them been lost, its repair would say so.
    let lost = trace.replace("0.6410 > . 101:101    ack 4345", "0.6410 < . 1:1449 ack 101");
    assert_eq!(causes(AT_SERVER, &lost)[0], "retransmission_timeout");
}

/// What was acknowledged but not captured was sent, whenever that was: no silence is seen.
#[test]
fn data_that_was_not_captured() {
    let trace = "
        0.0410 < . 1:1449     ack 101 win 512
        0.4810 > . 101:101    ack 2897 win 512
        0.5210 < . 2897:4345  ack 101 win 512
        0.5610 > . 101:101    ack 4345 win 512";
    assert_eq!(causes(AT_SERVER, trace), [""; 0]);
    let captured = trace.replace("ack 2897", "ack 1449").replace("2897:4345", "1449:2897");
    assert_eq!(causes(AT_SERVER, &captured), ["sender_application"]);
}

/// A sender of 40 segments a round trip pauses and begins again with ten, then twenty.
#[test]
fn an_idle_sender_begins_again_with_a_small_window() {
    let flight = |at: f64, from: u32, segments: u32| -> String {
        let line = |number: u32| {
            let (at, seq) = (at + f64::from(number) * 1e-5, 1 + (from + number) * 1448);
            format!("{at:.5} < . {seq}:{} ack 101 win 512\n", seq + 1448)
        };
        let ack = 1 + (from + segments) * 1448;
        let data: String = (0..segments).map(line).collect();
        format!("{data}{:.5} > . 101:101 ack {ack} win 2048\n", at + 0.04)
    };
    let begins = |first: u32, second: u32| {
        let before = flight(0.041, 0, 40);
        let after = flight(1.0, 40, first) + &flight(1.041, 40 + first, second);
        causes(AT_SERVER, &(before + &after))
    };
    assert_eq!(begins(10, 20), ["idle_restart"]);
    assert_eq!(begins(40, 40), ["sender_application"], "its window was kept");
    assert_eq!(begins(2, 2), ["sender_application"], "it had no more to send");
}
