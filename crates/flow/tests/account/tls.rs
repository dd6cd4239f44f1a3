//! HTTPS: the round trips of TLS, what is no question in it, and what just misses that.

use super::{AT_CLIENT, AT_SERVER, account, account_until, parts, questions};
use fullpipe_flow::account::Cause;
use fullpipe_model::units::Duration;

/// HTTPS by TLS 1.2 where it is `old`, else 1.3; the server answers the request after two seconds.
fn https(is_at_client: bool, is_old: bool) -> String {
    let mut trace = String::from(if is_at_client { AT_CLIENT } else { AT_SERVER });
    let [to_server, to_client] = if is_at_client { [0.040, 0.0] } else { [0.0, 0.040] };
    let mut at = 0.040;
    let mut says = |wait: f64, words: &str| {
        at += wait;
        trace += &format!("{at:.3} {words} win 512\n");
    };
    says(0.0, "> P. 1:518     ack 1 tls 22.1");
    says(to_server + 0.001, "< P. 1:3001    ack 518 tls 22.2");
    if is_old {
        says(to_client + 0.002, "> P. 518:644   ack 3001 tls 22.16");
        says(to_server, "< P. 3001:3052 ack 644 tls 20");
        says(to_client, "> P. 644:744   ack 3052 tls 23");
    } else {
        says(to_client + 0.002, "> P. 518:598   ack 3001 tls 20");
        says(0.0, "> P. 598:744   ack 3001 tls 23");
        // Session tickets.
        says(to_server, "< P. 3001:3052 ack 744 tls 23");
    }
    let again = if is_old { to_server } else { 0.0 };
    if !is_old {
        says(0.001, "> .  744:744   ack 3052");
    }
    says(again + 2.0, "< P. 3052:4052 ack 744 tls 23");
    trace
}

#[test]
fn the_handshake_of_tls_has_its_own_round_trips() {
    for (is_at_client, is_old, expected) in [
        (true, false, ["path connect 40 0", "path tls 40 0", "path turns 40 0"].as_slice()),
        (true, true, &["path connect 40 0", "path tls 80 40", "path turns 40 0"]),
        (false, false, &["path connect 40 0", "path tls 40 0"]),
        (false, true, &["path connect 40 0", "path tls 80 40"]),
    ] {
        let found = account(&https(is_at_client, is_old));
        let mut parts = parts(&found);
        parts.retain(|part| part.starts_with("path"));
        assert_eq!(parts, expected, "at the client {is_at_client}, TLS 1.2 {is_old}");
        let thinks = found.spent_on(Cause::ServerThinks).as_nanos() / 1_000_000;
        assert!((2000..=2002).contains(&thinks), "{thinks} ms: {found:?}");
        assert_eq!(found.spent_on(Cause::Paused), Duration::ZERO);
        let counted = (found.requests, found.turns, found.tls_turns);
        assert_eq!(counted, (1, 1, if is_old { 2 } else { 1 }), "at the client {is_at_client}");
    }
}

#[test]
fn a_few_encrypted_bytes_after_an_answer_are_no_question_unless_they_are_answered() {
    for (last, waits) in [
        // An HTTP/2 client acknowledges settings.
        ("744:782", false),
        ("744:900", true),
    ] {
        let (_, end) = last.split_once(':').unwrap();
        let asked = format!(
            "{}2.200 > P. {last} ack 4052 win 512 tls 23\n2.240 < . 4052:4052 ack {end} win 512\n",
            https(true, false)
        );
        let found = account_until(&asked, Some("9.000"));
        assert_eq!(found.last_wait.is_some(), waits, "{last}");
        assert_eq!(found.requests, if waits { 2 } else { 1 }, "{last}");
        let answered = format!("{asked}4.200 < P. 4052:4152 ack {end} win 512 tls 23");
        let found = account(&answered);
        assert_eq!((found.requests, found.turns), (2, 2), "{last}");
        let thinks = found.spent_on(Cause::ServerThinks).as_nanos() / 1_000_000;
        assert!((3960..=3962).contains(&thinks), "{thinks}");
    }
    // Without TLS ten bytes are a question.
    let asked = format!("{}0.520 > P. 601:611 ack 10001 win 512\n", questions(true));
    assert!(account_until(&asked, Some("9.000")).last_wait.is_some());
}

#[test]
fn the_end_of_a_handshake_is_no_question() {
    // A browser connects before it needs to; the server sends its tickets.
    let trace = https(true, false);
    let handshake: Vec<&str> = trace.lines().take(7).collect();
    let tickets = "0.123 < P. 3001:3052 ack 598 win 512 tls 23\n";
    let connected = format!("{}\n{tickets}", handshake.join("\n"));
    for trace in [connected.clone(), connected.replace(tickets, "")] {
        let waits = account_until(&trace, Some("9.000"));
        assert_eq!((waits.requests, waits.turns, waits.last_wait), (0, 0, None), "{trace}");
        assert_eq!(waits.spent_on(Cause::ServerThinks).as_nanos() / 1_000_000, 1);
    }
    // Then it asks.
    let asks = format!(
        "{connected}3.000 > P. 598:744 ack 3052 win 512 tls 23
         4.040 < P. 3052:4052 ack 744 win 512 tls 23"
    );
    let found = account(&asks);
    assert_eq!((found.requests, found.turns, found.tls_turns), (1, 1, 1));
    assert_eq!(found.spent_on(Cause::ServerThinks).as_nanos() / 1_000_000, 1001);
    assert_eq!(found.spent_on(Cause::Turns).as_nanos() / 1_000_000, 40);
}

#[test]
fn a_server_that_does_not_answer_a_client_hello() {
    let trace = format!(
        "{AT_CLIENT}\n0.040 > P. 1:518 ack 1 win 512 tls 22.1\n0.080 < . 1:1 ack 518 win 512"
    );
    let waits = account_until(&trace, Some("5.000"));
    let expected =
        ["path connect 40 0", "path tls 40 0", "server_application server_thinks 4920 4920"];
    assert_eq!(parts(&waits), expected);
    assert!(waits.last_wait.is_some());
}

#[test]
fn bytes_like_a_handshake_are_none_without_its_hello() {
    let plain = account(&questions(true));
    let trace = questions(true).replace("win 512\n", "win 512 tls 22.16\n");
    assert_eq!(account(&trace), plain);
    // A pause in the middle of an answer stays one, though TLS was before.
    let paused = format!(
        "{}2.300 > P. 744:800 ack 4052 win 512 tls 23
         2.340 < P. 4052:5052 ack 800 win 512 tls 23
         2.340 > .  800:800 ack 5052 win 512
         4.340 < P. 5052:6052 ack 800 win 512 tls 23",
        https(true, false)
    );
    let paused = account(&paused).spent_on(Cause::Paused).as_nanos() / 1_000_000;
    // From the acknowledgement at the server on.
    assert_eq!(paused, 1960);
}
