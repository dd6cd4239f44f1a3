//! Where the time of a connection went, from packets made by hand: each cause at both capture
//! points, what just misses it, and that every nanosecond is counted once.

mod beside;
#[path = "../trace/mod.rs"]
mod text;
mod tls;

use fullpipe_flow::account::{Account, AccountPart, Cause, Owner};
use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{DiagnosedConnection, OfDirection, PacketCause};
use fullpipe_flow::finding::Finding;
use fullpipe_flow::limit::Limit;
use fullpipe_flow::schema::{CONNECTIONS, Cell, ConnectionRow, connection_rows};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Duration;
use proptest::prelude::*;

/// The first connection. A packet of another one ends the capture at `until`.
fn connection_until(trace: &str, until: Option<&str>) -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(Config { spans: true, ..Config::default() });
    for line in text::parse(trace) {
        let packet = line.packet();
        analyzer.push(line.at, LinkType::RAW, &packet, packet.len());
    }
    if let Some(until) = until {
        let line = text::parse(&format!("{until} > S 0:0 win 65535")).remove(0);
        let mut packet = line.packet();
        // Another port.
        packet[21] ^= 1;
        analyzer.push(line.at, LinkType::RAW, &packet, packet.len());
    }
    analyzer.finish().connections.remove(0)
}

fn account_until(trace: &str, until: Option<&str>) -> Account {
    let found = connection_until(trace, until);
    let account = found.account().unwrap();
    let sum: u64 = account.parts.iter().map(|part| part.time.as_nanos()).sum();
    assert_eq!(sum, account.time.as_nanos());
    if account.last_wait.is_none() {
        assert_eq!(account.time, found.connection.duration);
    }
    spans_agree(&found, &account);
    let tells = usize::from(!account.parts.is_empty());
    assert_eq!(rows_that_tell(&found), tells, "one row of a connection tells its account");
    account
}

/// How many rows of a connection tell what its time went for.
fn rows_that_tell(found: &DiagnosedConnection) -> usize {
    let waited_for = CONNECTIONS.iter().find(|column| column.name == "waited_for").unwrap();
    let cells = |row: &ConnectionRow<'_>| matches!((waited_for.get)(row), Cell::Text(Some(_)));
    connection_rows("capture", found).filter(cells).count()
}

/// In the order of time there is the same time without a gap, and the same of each cause outside
/// the data's own; of that, its sum for each direction.
fn spans_agree(found: &DiagnosedConnection, account: &Account) {
    let spans = found.spans();
    let mut at = found.connection.start;
    for span in &spans {
        assert_eq!(span.start, at, "{spans:?}");
        assert!(span.length > Duration::ZERO, "{spans:?}");
        at = at + span.length;
    }
    assert_eq!(at.since(found.connection.start), account.time);
    for part in &account.parts {
        let is_data = matches!(part.cause, Cause::Transfer(_));
        let is_meant = |cause: Cause, owner: Owner, direction: Option<Direction>| {
            let same = if is_data {
                matches!(cause, Cause::Transfer(_))
            } else {
                (cause, owner) == (part.cause, part.owner)
            };
            same && direction == part.direction
        };
        let of_spans = spans.iter().filter(|one| is_meant(one.cause, one.owner, one.direction));
        let of_parts =
            account.parts.iter().filter(|one| is_meant(one.cause, one.owner, one.direction));
        let spent: u64 = of_spans.map(|one| one.length.as_nanos()).sum();
        assert_eq!(
            spent,
            of_parts.map(|one| one.time.as_nanos()).sum::<u64>(),
            "{part:?} {spans:?}"
        );
    }
}

fn account(trace: &str) -> Account {
    account_until(trace, None)
}

/// The parts that took a millisecond or more, with their milliseconds and what was lost of them.
fn parts(account: &Account) -> Vec<String> {
    let ms = |nanos: u64| (nanos + 500_000) / 1_000_000;
    let long = account.parts.iter().filter(|part| ms(part.time.as_nanos()) > 0);
    let words = |part: &AccountPart| {
        let (owner, cause) = (part.owner.name(), part.cause.name());
        format!("{owner} {cause} {} {}", ms(part.time.as_nanos()), ms(part.lost.as_nanos()))
    };
    let mut all: Vec<String> = long.map(words).collect();
    all.sort();
    all
}

/// Captured at the client, the server 40 ms away.
const AT_CLIENT: &str = "
    0.000 > S  0:0         win 65535 <mss 1460,wscale 7,sackOK>
    0.040 < S. 0:0   ack 1 win 65535 <mss 1460,wscale 7,sackOK>
    0.040 > .  1:1   ack 1 win 512
";
/// Captured at the server, the client 40 ms away.
const AT_SERVER: &str = "
    0.000 > S  0:0         win 65535 <mss 1460,wscale 7,sackOK>
    0.000 < S. 0:0   ack 1 win 65535 <mss 1460,wscale 7,sackOK>
    0.040 > .  1:1   ack 1 win 512
";

#[test]
fn a_server_that_thinks_at_both_ends() {
    let at_client = account(&format!(
        "{AT_CLIENT}
        0.040 > P. 1:101     ack 1 win 512
        0.080 < .  1:1       ack 101 win 512
        4.080 < P. 1:501     ack 101 win 512
        4.080 > .  101:101   ack 501 win 512"
    ));
    let expected =
        ["path connect 40 0", "path turns 40 0", "server_application server_thinks 4000 4000"];
    assert_eq!(parts(&at_client), expected);
    assert_eq!((at_client.requests, at_client.turns, at_client.last_wait), (1, 1, None));
    let at_server = account(&format!(
        "{AT_SERVER}
        0.040 > P. 1:101     ack 1 win 512
        0.040 < .  1:1       ack 101 win 512
        4.040 < P. 1:501     ack 101 win 512
        4.080 > .  101:101   ack 501 win 512"
    ));
    let expected =
        ["nobody closing 40 0", "path connect 40 0", "server_application server_thinks 4000 4000"];
    assert_eq!(parts(&at_server), expected);
    assert_eq!((at_server.requests, at_server.turns), (1, 1));
}

/// Ten questions, one after another; the client thinks 5 ms before each but the first, the server
/// 2 ms.
fn questions(is_at_client: bool) -> String {
    let mut trace = String::from(if is_at_client { AT_CLIENT } else { AT_SERVER });
    let mut at = 0.040;
    for number in 0..10 {
        let (asked, answered) = (1 + number * 60, 1 + number * 1000);
        trace += &format!("{at:.3} > P. {asked}:{} ack {answered} win 512\n", asked + 60);
        at += if is_at_client { 0.042 } else { 0.002 };
        trace +=
            &format!("{at:.3} < P. {answered}:{} ack {} win 512\n", answered + 1000, asked + 60);
        at += if is_at_client { 0.005 } else { 0.045 };
    }
    trace
}

#[test]
fn round_trips_paid_one_after_another() {
    let at_client = account(&questions(true));
    assert_eq!((at_client.requests, at_client.turns), (10, 10));
    let expected = [
        "client_application client_thinks 45 45",
        "path connect 40 0",
        // One of them has to be paid.
        "path turns 400 360",
        "server_application server_thinks 20 20",
    ];
    assert_eq!(parts(&at_client), expected);
    // The first question's way is not seen from here, nor the last answer's.
    let at_server = account(&questions(false));
    assert_eq!((at_server.requests, at_server.turns), (10, 10));
    let expected = [
        "client_application client_thinks 45 45",
        "path connect 40 0",
        "path turns 360 360",
        "server_application server_thinks 20 20",
    ];
    assert_eq!(parts(&at_server), expected);
}

#[test]
fn a_request_whose_first_copy_was_lost_before_the_capture_is_one() {
    // The client acknowledges beyond what was captured, and sends it again.
    let asked = questions(false);
    let again = "0.515 > .  661:661 ack 10001 win 512
                 0.715 > P. 601:661 ack 10001 win 512
                 0.717 < P. 10001:11001 ack 661 win 512";
    let found = account(&format!("{asked}{again}"));
    // Its round trip is in the time that the timer took.
    assert_eq!((found.requests, found.turns), (11, 10));
    assert_eq!(found.spent_on(Cause::ServerThinks).as_nanos() / 1_000_000, 22);
}

#[test]
fn a_goodbye_is_no_request_unless_it_is_answered() {
    let asked = questions(true);
    let goodbye = format!(
        "{asked}0.520 > P. 601:625 ack 10001 win 512\n0.520 > F. 625:625 ack 10001 win 512\n"
    );
    let after = "0.560 < .  10001:10001 ack 626 win 512\n0.560 < F. 10001:10001 ack 626 win 512";
    assert_eq!(account(&format!("{goodbye}{after}")).requests, 10);
    // At the server the way of the last answer is before the goodbye, which ends no turn.
    let at_server = questions(false);
    let goodbye_there =
        "0.510 > P. 601:625 ack 10001 win 512\n0.510 > F. 625:625 ack 10001 win 512\n";
    let after_there = "0.510 < F. 10001:10001 ack 626 win 512\n0.550 > . 626:626 ack 10002 win 512";
    let there = account(&format!("{at_server}{goodbye_there}{after_there}"));
    assert_eq!((there.requests, there.turns), (10, 10));
    assert_eq!(there.spent_on(Cause::Turns), account(&at_server).spent_on(Cause::Turns));
    // Some clients close as they ask for the last time.
    let answer = "0.560 < P. 10001:10501 ack 626 win 512\n0.560 < F. 10501:10501 ack 626 win 512";
    assert_eq!(account(&format!("{goodbye}{answer}")).requests, 11);
    // And some give up.
    let gives_up = goodbye.replace("0.520 > F.", "5.520 > F.");
    assert_eq!(account(&gives_up).requests, 11);
}

#[test]
fn a_client_that_wants_nothing_for_long_is_idle() {
    let trace = |later: f64| {
        format!(
            "{AT_CLIENT}
            0.040 > P. 1:61      ack 1 win 512
            0.080 < P. 1:1001    ack 61 win 512
            {later:.3} > P. 61:121    ack 1001 win 512
            {:.3} < P. 1001:2001 ack 121 win 512",
            later + 0.04
        )
    };
    assert!(
        parts(&account(&trace(5.08)))
            .contains(&"client_application client_thinks 5000 5000".into())
    );
    assert!(parts(&account(&trace(60.08))).contains(&"nobody idle 60000 0".into()));
}

#[test]
fn requests_that_do_not_wait_for_answers_are_the_servers_to_answer() {
    let account = account(&format!(
        "{AT_CLIENT}
        0.040 > P. 1:61      ack 1 win 512
        0.041 > P. 61:121    ack 1 win 512
        1.081 < P. 1:1001    ack 121 win 512
        1.081 > .  121:121   ack 1001 win 512
        2.081 < P. 1001:2001 ack 121 win 512"
    ));
    let of_server = |part: &&AccountPart| part.owner == Owner::ServerApplication;
    let taken: Duration = account.parts.iter().filter(of_server).map(|part| part.time).sum();
    assert_eq!(taken, Duration::from_secs(2), "{account:?}");
}

#[test]
fn an_answer_to_a_handshake_that_comes_late_is_lost_time_as_well() {
    // The first SYN-ACK and the second are held back; what follows shows that the path takes 40 ms.
    let late = account(
        "0.000 > S  0:0           win 65535 <mss 1460>
         1.000 > S  0:0           win 65535 <mss 1460>
         2.500 < S. 0:0     ack 1 win 65535 <mss 1460>
         2.500 > P. 1:61    ack 1 win 512
         2.540 < P. 1:101   ack 61 win 512
         2.540 > P. 61:121  ack 101 win 512
         2.580 < P. 101:201 ack 121 win 512",
    );
    let parts = parts(&late);
    assert!(parts.contains(&"path syn_repeated 2460 2460".into()), "{parts:?}");
    assert!(parts.contains(&"path connect 40 0".into()), "{parts:?}");
}

#[test]
fn who_closed_and_is_not_heard_any_more_waits_for_one_that_is_gone() {
    let account = account(
        "0.000 > S  0:0           win 65535 <mss 1460>
         0.040 < S. 0:0     ack 1 win 65535 <mss 1460>
         0.040 > .  1:1     ack 1 win 512
         0.040 > P. 1:61    ack 1 win 512
         0.280 > P. 1:61    ack 1 win 512
         0.720 > P. 1:61    ack 1 win 512
         1.600 > P. 1:61    ack 1 win 512
         1.700 > F. 61:61   ack 1 win 512
         3.360 > P. 1:61    ack 1 win 512
         6.880 > P. 1:61    ack 1 win 512",
    );
    let parts = parts(&account);
    assert!(parts.contains(&"peer_gone peer_gone 6840 6840".into()), "{parts:?}");
}

#[test]
fn data_that_left_at_once_is_on_its_way_until_its_acks_come() {
    // Captured at the server: an answer of four segments for which the link takes 20 ms; the client
    // asks as soon as it has it, with the ACK of the last segment.
    let account = account(
        "0.000 > S  0:0           win 65535 <mss 1460>
         0.000 < S. 0:0     ack 1 win 65535 <mss 1460>
         0.040 > .  1:1     ack 1 win 512
         0.040 > P. 1:61    ack 1 win 512
         0.041 < .  1:1001    ack 61 win 512
         0.041 < .  1001:2001 ack 61 win 512
         0.041 < .  2001:3001 ack 61 win 512
         0.041 < P. 3001:4001 ack 61 win 512
         0.091 > .  61:61   ack 2001 win 512
         0.101 > P. 61:121  ack 4001 win 512",
    );
    assert_eq!(account.spent_on(Cause::ClientThinks), Duration::from_millis(10), "{account:?}");
    let on_its_way: Duration =
        account.parts.iter().filter(|part| part.direction.is_some()).map(|part| part.time).sum();
    assert_eq!(on_its_way, Duration::from_millis(10), "{account:?}");
}

#[test]
fn syns_that_were_lost_and_such_that_nobody_answers() {
    let late = account(
        "0.000 > S  0:0         win 65535 <mss 1460>
         1.000 > S  0:0         win 65535 <mss 1460>
         3.000 > S  0:0         win 65535 <mss 1460>
         3.040 < S. 0:0   ack 1 win 65535 <mss 1460>
         3.040 > .  1:1   ack 1 win 512",
    );
    assert_eq!(parts(&late), ["path connect 40 0", "path syn_repeated 3000 3000"]);
    assert_eq!(late.syn_retransmissions, 2);
    let none = "0.000 > S  0:0         win 65535 <mss 1460>
                1.000 > S  0:0         win 65535 <mss 1460>
                3.000 > S  0:0         win 65535 <mss 1460>";
    let waits = account_until(none, Some("6.000"));
    assert_eq!(parts(&waits), ["peer_gone syn_unanswered 6000 6000"]);
    assert!(waits.last_wait.is_some());
    // The fourth would have come at 7 s: it gave up.
    let gave_up = account_until(none, Some("60.000"));
    assert_eq!(parts(&gave_up), ["peer_gone syn_unanswered 3000 3000"]);
    // A capture on two interfaces has everything twice.
    let twice = account(
        "0.000000 > S  0:0         win 65535 <mss 1460>
         0.000003 > S  0:0         win 65535 <mss 1460>
         0.040000 < S. 0:0   ack 1 win 65535 <mss 1460>
         0.040003 < S. 0:0   ack 1 win 65535 <mss 1460>
         0.040010 > .  1:1   ack 1 win 512",
    );
    assert_eq!((parts(&twice), twice.syn_retransmissions), (vec!["path connect 40 0".into()], 0));
}

#[test]
fn a_syn_that_is_refused_and_one_that_meets_an_old_connection() {
    let refused = account(
        "0.000 > S  0:0         win 65535 <mss 1460>
         0.040 < R. 0:0   ack 1 win 0",
    );
    assert_eq!(parts(&refused), ["server_host refused 40 0"]);
    let refused_again = account(
        "0.000 > S  0:0         win 65535 <mss 1460>
         0.040 < R. 0:0   ack 1 win 0
         0.540 > S  0:0         win 65535 <mss 1460>
         0.580 < R. 0:0   ack 1 win 0",
    );
    assert_eq!(parts(&refused_again), ["server_host refused 580 0"]);
    let old = account(
        "0.000 > S  0:0         win 65535 <mss 1460>
         0.040 < .  777:777 ack 555 win 512
         0.040 > R  555:555     win 0
         1.000 > S  0:0         win 65535 <mss 1460>
         1.040 < S. 0:0   ack 1 win 65535 <mss 1460>
         1.040 > .  1:1   ack 1 win 512",
    );
    assert_eq!(parts(&old), ["path connect 40 0", "server_host syn_met_old_connection 1000 1000"]);
}

#[test]
fn a_request_that_nobody_answers() {
    let asked =
        format!("{AT_CLIENT} 0.040 > P. 1:101 ack 1 win 512\n 0.080 < . 1:1 ack 101 win 512");
    let hangs = account_until(&asked, Some("60.080"));
    let expected =
        ["path connect 40 0", "path turns 40 0", "server_application server_thinks 60000 60000"];
    assert_eq!(parts(&hangs), expected);
    assert_eq!(hangs.last_wait.map(|wait| wait.as_micros()), Some(60_040_000));
    // The client closes: it gave up.
    let gave_up =
        account_until(&format!("{asked}\n 5.080 > F. 101:101 ack 1 win 512"), Some("60.0"));
    assert!(parts(&gave_up).contains(&"server_application server_thinks 5000 5000".into()));
    assert_eq!(gave_up.last_wait, None);
    // After the answer nobody wants anything.
    let answered =
        account_until(&format!("{asked}\n 0.090 < P. 1:501 ack 101 win 512"), Some("60.0"));
    assert_eq!(answered.last_wait, None);
}

#[test]
fn a_peer_that_is_gone_and_one_that_comes_back() {
    let lost = format!(
        "{AT_SERVER}
        0.040 > P. 1:101     ack 1 win 512
        0.041 < P. 1:1001    ack 101 win 512
        0.341 < P. 1:1001    ack 101 win 512
        0.941 < P. 1:1001    ack 101 win 512
        2.141 < P. 1:1001    ack 101 win 512"
    );
    let gone = account_until(&lost, Some("4.041"));
    assert!(parts(&gone).contains(&"peer_gone peer_gone 4000 4000".into()), "{:?}", parts(&gone));
    assert_eq!(gone.last_wait.map(|wait| wait.as_micros()), Some(4_000_000));
    let back =
        account_until(&format!("{lost}\n 2.181 > . 101:101 ack 1001 win 512"), Some("4.041"));
    assert!(parts(&back).contains(&"path timeouts 2100 2100".into()), "{:?}", parts(&back));
    assert_eq!(back.last_wait, None);
    // A peer that is gone lost nothing, and no remedy against loss is told beside it.
    let heard = format!("{lost}\n 2.181 > . 101:101 ack 1001 win 512");
    for (trace, is_loss) in [(&lost, false), (&heard, true)] {
        let found = connection_until(trace, Some("4.041"));
        let of_loss = found.findings().iter().any(|one| one.what.limit.cause() == Some("loss"));
        let mut causes = found.sub_causes(Direction::ServerToClient);
        let of_timers = causes.any(|cause| matches!(cause, PacketCause::Timeouts(_)));
        assert_eq!((of_loss, of_timers), (is_loss, is_loss));
    }
}

#[test]
fn a_window_that_stays_shut_and_one_that_opens() {
    let shut = format!(
        "{AT_SERVER}
        0.040 > P. 1:101     ack 1 win 512
        0.041 < .  1:1449    ack 101 win 512
        0.081 > .  101:101   ack 1449 win 0"
    );
    let hangs = account_until(&shut, Some("5.081"));
    assert!(parts(&hangs).contains(&"client_application window_shut 5000 5000".into()));
    let opens = account_until(
        &format!(
            "{shut}
            2.081 > .  101:101   ack 1449 win 512
            2.081 < P. 1449:2897 ack 101 win 512
            2.121 > .  101:101   ack 2897 win 512"
        ),
        Some("5.0"),
    );
    assert!(parts(&opens).contains(&"client_application window_shut 2000 2000".into()));
    assert_eq!(opens.last_wait, None);
}

/// A window that has no room for a segment holds the sender as one of zero does (RFC 9293 section
/// 3.8.6.2.1); it probes, or sends what fits, after its timer. On loopback a segment has 64 kB.
#[test]
fn a_window_with_no_room_for_a_segment_is_shut() {
    // Segments of 8 kB.
    let begins = AT_SERVER.replace("mss 1460", "mss 8204")
        + "
        0.040 > P. 1:101     ack 1 win 512
        0.041 < .  1:8193    ack 101 win 512
        0.081 > .  101:101   ack 8193 win 512";
    let pauses = |window: u16| {
        parts(&account_until(
            &format!(
                "{begins}
                0.082 < .  8193:16385 ack 101 win 512
                0.122 > .  101:101    ack 16385 win {window}
                0.338 < .  16385:16400 ack 101 win 512
                0.378 > .  101:101    ack 16400 win 512"
            ),
            None,
        ))
    };
    // The scale of the trace is 7: 24 is 3 kB, less than half of the largest window and than a
    // segment; 64 is a segment.
    let shut = pauses(24);
    assert!(
        shut.iter().any(|part| part.starts_with("client_application window_shut 216")),
        "{shut:?}"
    );
    assert!(pauses(64).iter().all(|part| !part.contains("window_shut")), "{:?}", pauses(64));
    assert!(pauses(64).iter().any(|part| part.contains("paused")), "{:?}", pauses(64));
    // Data that is still on its way says nothing of what may be sent.
    let on_its_way = parts(&account_until(
        &format!(
            "{begins}
            0.082 < .  8193:16385  ack 101 win 512
            0.083 < .  16385:16400 ack 101 win 512
            0.122 > .  101:101     ack 16385 win 24
            0.123 > .  101:101     ack 16400 win 512
            0.423 < .  16400:16500 ack 101 win 512
            0.463 > .  101:101     ack 16500 win 512"
        ),
        None,
    ));
    assert!(on_its_way.iter().all(|part| !part.contains("window_shut")), "{on_its_way:?}");
}

#[test]
fn small_writes_that_wait_for_a_delayed_ack() {
    let held = account(&format!(
        "{AT_SERVER}
        0.040 > P. 1:101     ack 1 win 512
        0.080 < .  1:1       ack 101 win 512
        0.120 > P. 101:201   ack 1 win 512
        0.120 < P. 1:501     ack 201 win 512"
    ));
    assert!(parts(&held).contains(&"server_host delayed_ack 40 40".into()), "{:?}", parts(&held));
    // The application wrote it later: no ACK was waited for.
    let later = account(&format!(
        "{AT_SERVER}
        0.040 > P. 1:101     ack 1 win 512
        0.080 < .  1:1       ack 101 win 512
        0.150 > P. 101:201   ack 1 win 512
        0.150 < P. 1:501     ack 201 win 512"
    ));
    assert!(!parts(&later).iter().any(|part| part.contains("delayed_ack")));
}

#[test]
fn a_sender_that_pauses_in_an_answer() {
    let paused = account(&format!(
        "{AT_SERVER}
        0.040 > P. 1:101     ack 1 win 512
        0.041 < .  1:1449    ack 101 win 512
        0.081 > .  101:101   ack 1449 win 512
        5.081 < P. 1449:2897 ack 101 win 512
        5.121 > .  101:101   ack 2897 win 512"
    ));
    assert!(parts(&paused).contains(&"server_application paused 5000 5000".into()));
}

/// What a program does slowly is one answer, whether it holds back or comes to a stop. What another
/// does, or the same for another reason, is not.
#[test]
fn a_program_that_is_slow_in_two_ways_is_told_once() {
    let server = Owner::ServerApplication;
    let told = |parts: &[(Owner, Cause, u64, u64)]| {
        let mut account = account(&format!("{AT_SERVER} 0.040 > P. 1:101 ack 1 win 512"));
        account.time = Duration::from_secs(100);
        let parts = parts.iter().map(|(owner, cause, time, lost)| AccountPart {
            owner: *owner,
            cause: *cause,
            direction: matches!(cause, Cause::Transfer(_)).then_some(Direction::ServerToClient),
            time: Duration::from_secs(*time),
            lost: Duration::from_secs(*lost),
        });
        account.parts = parts.collect();
        let first = account.first().unwrap();
        (first.owner, first.cause, first.time.as_secs_f64(), first.lost.as_secs_f64())
    };
    let holds_back = Cause::Transfer(Limit::SenderApplication);
    let pauses = told(&[(server, holds_back, 80, 0), (server, Cause::Paused, 18, 18)]);
    assert_eq!(pauses, (server, holds_back, 98.0, 18.0));
    let stops = told(&[(server, Cause::Paused, 60, 60), (server, holds_back, 30, 0)]);
    assert_eq!(stops, (server, Cause::Paused, 90.0, 60.0));
    let reads = Cause::Transfer(Limit::ReceiverApplication);
    let shut = told(&[(server, Cause::WindowShut, 30, 30), (server, reads, 25, 25)]);
    assert_eq!(shut, (server, Cause::WindowShut, 55.0, 55.0));
    // Together they outweigh what alone lost more.
    let path = (Owner::Path, Cause::Timeouts, 40, 40);
    let with_path = told(&[path, (server, Cause::WindowShut, 30, 30), (server, reads, 25, 25)]);
    assert_eq!(with_path, shut);
    let client = Owner::ClientApplication;
    let of_both = told(&[path, (client, Cause::WindowShut, 30, 30), (server, reads, 25, 25)]);
    assert_eq!(of_both, (Owner::Path, Cause::Timeouts, 40.0, 40.0));
    let thinks =
        told(&[path, (server, Cause::ServerThinks, 30, 30), (server, Cause::Paused, 25, 25)]);
    assert_eq!(thinks, (Owner::Path, Cause::Timeouts, 40.0, 40.0));
}

#[test]
fn small_messages_that_come_now_and_then_are_idle_between() {
    let pushed = |pause: u32| {
        account(&format!(
            "{AT_SERVER}
            0.050 < P. 1:101     ack 1 win 512
            0.090 > .  1:1       ack 101 win 512
            {}.090 < P. 101:201   ack 1 win 512
            {}.130 > .  1:1       ack 201 win 512",
            pause, pause
        ))
    };
    assert!(parts(&pushed(20)).contains(&"nobody idle 20000 0".into()), "{:?}", parts(&pushed(20)));
    assert!(parts(&pushed(5)).contains(&"server_application paused 5000 5000".into()));
}

#[test]
fn without_the_handshake_the_client_is_the_end_with_an_ephemeral_port() {
    let middle = account("0.000 < P. 1:101 ack 1 win 512\n 0.040 > . 1:1 ack 101 win 512");
    assert!(!middle.from_handshake);
}

#[test]
fn one_direction_says_nothing_of_who_waited() {
    let account = account("0.000 > . 1:101 ack 1 win 512\n 0.500 > . 101:201 ack 1 win 512");
    assert_eq!(parts(&account), ["not_captured not_captured 500 0"]);
}

/// A verdict's time ends with the last acknowledgement, the account's transfer with the last data:
/// of two flights, that is half of it.
#[test]
fn the_limit_of_a_short_transfer_is_told() {
    let mut trace = format!("{AT_SERVER} 0.040 > P. 1:101 ack 1 win 512\n");
    let mut next = 1;
    for (at, count) in [(0.041, 10), (0.081, 20)] {
        for number in 0..count {
            let at = at + f64::from(number) * 0.000_01;
            trace += &format!("{at:.5} < . {next}:{} ack 101 win 512\n", next + 1448);
            next += 1448;
        }
        trace += &format!("{:.5} > . 101:101 ack {next} win 512\n", at + 0.04);
    }
    let found = connection_until(&trace, None);
    let of_data = |one: &OfDirection<Finding>| one.direction == Direction::ServerToClient;
    let told = found.findings().iter().find(|one| of_data(one)).map(|one| one.what.limit.cause());
    assert_eq!(told, Some(Some("slow_start")), "{:?}", parts(&found.account().unwrap()));
}

/// The page of the report names parts in its own words: none is missing there or in the guide.
#[test]
fn every_name_is_explained() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file| std::fs::read_to_string(root.join(file)).unwrap();
    let guide = read("docs/src/analyze.md");
    let words = [read("web/src/words/en.ts"), read("web/src/words/zh.ts")];
    for cause in Cause::ALL {
        let name = cause.name();
        let is_limit = matches!(cause, Cause::Transfer(limit) if limit != Limit::Unknown);
        assert!(is_limit || guide.contains(&format!("`{name}`")), "{name}");
        let is_transfer = matches!(cause, Cause::Transfer(_));
        let is_told = |text: &String| text.contains(&format!("      {name}: "));
        assert!(is_transfer || words.iter().all(is_told), "{name}");
    }
    for owner in Owner::ALL {
        let is_told = |text: &String| text.contains(&format!("      {}: ", owner.name()));
        assert!(words.iter().all(is_told), "{}", owner.name());
    }
}

fn any_line() -> impl Strategy<Value = (u32, bool, usize, u32, u32, u32, u16)> {
    (0..400_000_u32, any::<bool>(), 0..7_usize, 0..6_u32, 0..3_u32, 0..8_u32, 0..2_u16)
}

proptest! {
    /// Whatever passes, in whatever order: the parts sum to the time, and no more is lost than
    /// there was.
    #[test]
    fn every_nanosecond_is_counted_once(lines in prop::collection::vec(any_line(), 1..60)) {
        let mut at = 0;
        let mut trace = String::new();
        for (gap, from_client, flags, seq, length, ack, window) in lines {
            at += gap;
            let flags = ["S", "S.", ".", "P.", "F.", "R", "."][flags];
            let (from, seq) = (if from_client { '>' } else { '<' }, seq * 1000);
            let ack = if flags.contains('.') { format!("ack {}", ack * 1000) } else { String::new() };
            trace += &format!(
                "{}.{:06} {from} {flags} {seq}:{} {ack} win {}\n",
                at / 1_000_000, at % 1_000_000, seq + length * 1000, window * 512
            );
        }
        let account = account(&trace);
        prop_assert!(account.lost <= account.time);
    }
}
