//! Our client against servers that break the rules, and against none.

use crate::fixture::{PATIENCE, Script, Serving, fetch, script};
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::{
    DownloadError, DownloadOptions, DownloadOutcome, RequestPhase, ServerOptions,
};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::TcpListener;

fn say(text: &'static str) -> Script {
    Box::new(move |stream| stream.write_all(text.as_bytes()).unwrap())
}

#[test]
fn a_server_that_closes_early_is_an_error_with_both_lengths() {
    let (addr, server) = script(vec![
        say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789"),
        say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n"),
    ]);
    let error = fetch(addr, "/", Default::default()).unwrap_err();
    assert!(error.to_string().contains("the connection ended after 10 of 1000 bytes"), "{error}");
    let error = fetch(addr, "/", Default::default()).unwrap_err();
    assert!(error.to_string().contains("after 10 of an unknown number of bytes"), "{error}");
    server.join().unwrap();
}

#[test]
fn bodies_may_be_chunked_or_end_with_the_connection() {
    let (addr, server) = script(vec![
        say(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n",
        ),
        say("HTTP/1.0 200 OK\r\n\r\nabcde"),
        say("HTTP/1.1 204 No Content\r\n\r\n"),
    ]);
    for (body, length) in [(5, None), (5, None), (0, Some(Bytes::ZERO))] {
        let got = fetch(addr, "/", Default::default()).unwrap();
        assert_eq!(
            (got.body.get(), got.content_length, got.outcome),
            (body, length, DownloadOutcome::Complete)
        );
    }
    server.join().unwrap();
}

/// The server's own delays are the truth that the breakdown is held to.
#[test]
fn the_time_breakdown_sees_the_servers_delays() {
    let pause = std::time::Duration::from_millis(120);
    let (addr, server) = script(vec![Box::new(move |stream| {
        std::thread::sleep(pause); // the delay under test
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na").unwrap();
        std::thread::sleep(pause); // the delay under test
        stream.write_all(b"b").unwrap();
    })]);
    let timing = fetch(addr, "/", Default::default()).unwrap().timing;
    server.join().unwrap();
    let pause = Duration::from(pause);
    assert!(timing.pretransfer < pause, "{timing:?}");
    assert!(timing.starttransfer >= pause && timing.starttransfer < pause + pause, "{timing:?}");
    assert!(timing.total >= pause + pause, "{timing:?}");
}

#[test]
fn who_waits_for_a_response_may_give_up() {
    // The kernel completes the handshake; nobody ever answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let max_duration = Some(Duration::from_millis(50));
    let server = listener.local_addr().unwrap();
    let error =
        fetch(server, "/", DownloadOptions { max_duration, ..Default::default() }).unwrap_err();
    assert!(
        matches!(error, DownloadError::NoResponse { phase: RequestPhase::Response, .. }),
        "{error}"
    );
}

#[test]
fn nobody_listening_a_wrong_path_and_wrong_bytes_are_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = fetch(closed, "/", Default::default()).unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("connect to {closed}: Connection refused")),
        "{error}"
    );

    let server = Serving::start(ServerOptions::default());
    let error = fetch(server.addr, "/nothing", Default::default()).unwrap_err();
    assert!(error.to_string().contains("the server says 404 Not Found"), "{error}");

    let moved = "HTTP/1.1 302 Found\r\nLocation: next\r\nContent-Length: 0\r\n\r\n";
    let (addr, other) = script(vec![say(moved)]);
    let error = fetch(addr, "/", Default::default()).unwrap_err();
    assert!(error.to_string().contains("the server says 302 Found"), "{error}");
    other.join().unwrap();

    let (addr, other) = script(vec![say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\u{6}no")]);
    let error =
        fetch(addr, "/", DownloadOptions { verify: true, ..Default::default() }).unwrap_err();
    assert!(
        matches!(error, DownloadError::Content { offset, .. } if offset == Bytes::ZERO),
        "{error}"
    );
    other.join().unwrap();
}

#[test]
fn a_reset_is_told_from_an_end() {
    let (addr, server) = script(vec![Box::new(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab").unwrap();
        nix::sys::socket::setsockopt(
            &*stream,
            nix::sys::socket::sockopt::Linger,
            &nix::libc::linger { l_onoff: 1, l_linger: 0 },
        )
        .unwrap();
    })]);
    let error = fetch(addr, "/", Default::default()).unwrap_err();
    let text = error.to_string();
    // The reset may overtake what was sent before it.
    assert!(text.contains("onnection reset") || text.contains("of 9 bytes"), "{text}");
    server.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever a server says, there is an answer in time.
    #[test]
    fn any_response_gives_a_result_or_an_error(
        head in prop_oneof![Just(""), Just("HTTP/1.1 200 OK\r\n"), Just("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")],
        tail in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&tail));
        });
        let max_duration = Some(Duration::from_secs(10));
        let got = fetch(addr, "/", DownloadOptions { max_duration, ..Default::default() });
        server.join().unwrap();
        if let Ok(got) = got {
            prop_assert_eq!(got.intervals.iter().map(|interval| interval.body).sum::<Bytes>(), got.body);
        }
    }
}
