//! Our client and our server, and what their options promise.

use crate::fixture::{Serving, fetch, fetch_observed};
use fullpipe_model::units::{Bytes, Duration, Rate};
use fullpipe_transfer::{
    DownloadError, DownloadEvent, DownloadOptions, DownloadOutcome, DownloadRequest, Limits,
    Resource, Server, ServerError, ServerOptions, Stop, download, pace,
};

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

#[test]
fn generated_content_arrives_whole_and_is_counted_once() {
    let server = Serving::start(ServerOptions::default());
    for size in [0, 1, 262_146, 262_147, 262_148, 30_000_000] {
        let mut events = Vec::new();
        let options = DownloadOptions {
            verify: true,
            interval: Duration::from_millis(1),
            ..Default::default()
        };
        let got = fetch_observed(server.addr, &format!("/bytes/{size}"), options, &mut |event| {
            events.push(event)
        });
        let got = got.unwrap();
        assert_eq!((got.outcome, got.status), (DownloadOutcome::Complete, 200));
        assert_eq!((got.body.get(), got.content_length), (size, Some(Bytes::new(size))));
        assert_eq!(got.intervals.iter().map(|interval| interval.body).sum::<Bytes>(), got.body);
        assert_eq!(
            got.intervals.iter().map(|interval| interval.length).sum::<Duration>(),
            got.timing.total
        );
        assert_eq!(got.connection.peer, server.addr);

        let timing = got.timing;
        let steps = [
            timing.namelookup,
            timing.connect,
            timing.pretransfer,
            timing.starttransfer,
            timing.total,
        ];
        assert!(steps.is_sorted(), "{timing:?}");
        assert_eq!((timing.appconnect, timing.redirect), (Duration::ZERO, Duration::ZERO));

        let told: Vec<_> = events
            .iter()
            .filter_map(|e| if let DownloadEvent::Interval(i) = e { Some(*i) } else { None })
            .collect();
        assert_eq!(told, got.intervals, "the observer hears of every interval");
        assert_eq!(events[0], DownloadEvent::Connected(got.connection));
        assert_eq!(events.iter().filter(|e| matches!(e, DownloadEvent::Headers { .. })).count(), 1);
    }
    let served = server.end();
    assert_eq!((served.connections, served.requests), (6, 6));
    assert_eq!(served.body.get(), 1 + 262_146 + 262_147 + 262_148 + 30_000_000);
}

#[test]
fn a_result_row_has_its_units_in_its_column_names() {
    let server = Serving::start(ServerOptions::default());
    let row = serde_json::to_value(fetch(server.addr, "/bytes/1000", Default::default()).unwrap())
        .unwrap();
    assert_eq!((&row["body_bytes"], &row["outcome"]), (&1000.into(), &"complete".into()));
    for column in [
        "redirect_us",
        "namelookup_us",
        "connect_us",
        "appconnect_us",
        "pretransfer_us",
        "starttransfer_us",
    ] {
        assert!(row["timing"][column].is_u64(), "{column}: {row}");
    }
    assert!(row["timing"]["total_us"].as_u64() > Some(0), "{row}");
    assert!(row["rcvbuf_bytes"].as_u64() > Some(0), "{row}");
}

#[test]
fn requests_follow_each_other_on_one_connection_when_the_client_asks() {
    let server = Serving::start(ServerOptions::default());
    let ask_after = Duration::from_millis(30);
    let options = DownloadOptions { requests: 4, ask_after, verify: true, ..Default::default() };
    let got = fetch(server.addr, "/bytes/100000", options.clone()).unwrap();
    assert_eq!(got.outcome, DownloadOutcome::Complete);
    assert_eq!((got.body.get(), got.content_length), (400_000, Some(Bytes::new(400_000))));
    assert_eq!(got.intervals.iter().map(|interval| interval.body).sum::<Bytes>(), got.body);
    assert!(got.timing.total >= Duration::from_millis(90), "{:?}", got.timing);
    let max_duration = Some(Duration::from_millis(50));
    let got = fetch(server.addr, "/bytes/1", DownloadOptions { max_duration, ..options }).unwrap();
    assert_eq!(got.outcome, DownloadOutcome::StoppedAfterDuration);
    assert!((1..4).contains(&got.body.get()), "the time ends between two answers");
    let served = server.end();
    assert_eq!(served.connections, 2);
}

#[test]
fn a_download_ends_with_its_duration() {
    let server =
        Serving::start(ServerOptions { write_rate: Some(rate("1mbit")), ..Default::default() });
    let max_duration = Some(Duration::from_millis(200));
    let options = DownloadOptions { max_duration, ..Default::default() };
    let got = fetch(server.addr, "/bytes/1GiB", options).unwrap();
    assert_eq!(got.outcome, DownloadOutcome::StoppedAfterDuration);
    assert!(got.timing.total >= Duration::from_millis(200), "{:?}", got.timing);
}

/// Within 5 % of the rate asked for, and no 100 ms beyond the pacer's bound.
///
/// On a machine that is short of CPU a pacer may fall behind by more than it is allowed to catch
/// up; then the mean says nothing about the pacer, so up to five runs may be made. The upper bounds
/// hold in each of them.
fn assert_paced(measure: impl Fn() -> fullpipe_transfer::Download, asked: Rate) {
    let mut means = Vec::new();
    for _ in 0..5 {
        let got = measure();
        let span = Duration::from_millis(100);
        // One interval's reads may be counted into the next, late by what the machine makes them.
        let bound = asked.over(span + span);
        for interval in &got.intervals {
            assert!(interval.body <= bound, "{interval:?} beyond {bound}");
        }
        let mean = got.goodput().unwrap();
        assert!(mean.as_f64() < asked.as_f64() * 1.05, "{mean} of {asked}");
        if mean.as_f64() > asked.as_f64() * 0.95 {
            return;
        }
        means.push(mean.to_string());
    }
    panic!("{means:?} of {asked}");
}

#[test]
fn a_slow_reader_reads_at_the_rate_asked_for() {
    let server = Serving::start(ServerOptions::default());
    for asked in [rate("2mbit"), rate("80mbit"), rate("800mbit")] {
        let measure = || {
            let max_duration = Some(Duration::from_millis(1200));
            let options = DownloadOptions {
                read_rate: Some(asked),
                max_duration,
                verify: true,
                ..Default::default()
            };
            fetch(server.addr, "/bytes/10GiB", options).unwrap()
        };
        assert_paced(measure, asked);
    }
}

#[test]
fn a_slow_writer_writes_at_the_rate_asked_for() {
    for asked in [rate("2mbit"), rate("80mbit"), rate("800mbit")] {
        let server =
            Serving::start(ServerOptions { write_rate: Some(asked), ..Default::default() });
        let measure = || {
            let max_duration = Some(Duration::from_millis(1200));
            let options = DownloadOptions { max_duration, verify: true, ..Default::default() };
            fetch(server.addr, "/bytes/10GiB", options).unwrap()
        };
        assert_paced(measure, asked);
    }
}

/// What the server could hand to its socket is what the client took and what two sockets hold:
/// nothing in between.
#[test]
fn a_slow_reader_pushes_back_on_the_sender() {
    let buffer = Bytes::new(32 << 10);
    let options = ServerOptions { sndbuf: Some(buffer), ..Default::default() };
    let server = Server::bind(options.clone()).unwrap();
    assert_eq!(server.sndbuf(), Bytes::new(64 << 10), "the kernel doubles SO_SNDBUF");
    drop(server);
    let server = Serving::start(options);
    let options = DownloadOptions {
        rcvbuf: Some(buffer),
        read_rate: Some(rate("8mbit")),
        max_duration: Some(Duration::from_millis(500)),
        ..Default::default()
    };
    let got = fetch(server.addr, "/bytes/1GiB", options).unwrap();
    assert_eq!(got.connection.rcvbuf, Bytes::new(64 << 10), "the kernel doubles SO_RCVBUF");
    let served = server.end().body;
    // Both buffers, doubled as the kernel does (socket(7)), the chunk being written, and the step
    // being read.
    let held = buffer.get() * 4 + (256 << 10) + pace::STEP.as_nanos();
    assert!(
        served >= got.body && served.get() <= got.body.get() + held,
        "served {served}, read {}",
        got.body
    );
}

#[test]
fn the_caller_stops_a_download() {
    let server =
        Serving::start(ServerOptions { write_rate: Some(rate("80mbit")), ..Default::default() });
    let stop = Stop::new();
    let resource = Resource { server: server.addr, path: "/bytes/1GiB".into() };
    let request = DownloadRequest { resource, options: DownloadOptions::default() };
    let mut intervals = 0;
    let got = download(&request, &stop, &mut |event| {
        intervals += u32::from(matches!(event, DownloadEvent::Interval(_)));
        if intervals == 2 {
            stop.stop();
        }
    });
    let got = got.unwrap();
    assert_eq!(got.outcome, DownloadOutcome::StoppedByCaller);
    assert!(got.body > Bytes::ZERO && got.body < Bytes::new(1 << 30));
    assert_eq!(got.intervals.iter().map(|interval| interval.body).sum::<Bytes>(), got.body);

    let error = download(&request, &stop, &mut |_| {}).unwrap_err();
    assert!(matches!(error, DownloadError::NoResponse { .. }), "{error}");
}

#[test]
fn a_server_stops_in_the_middle_of_a_response() {
    let limits = Limits { shutdown: Duration::from_millis(50), ..Default::default() };
    let write_rate = Some(rate("80mbit"));
    let server = Server::bind(ServerOptions { write_rate, limits, ..Default::default() }).unwrap();
    let resource = Resource { server: server.local_addr(), path: "/bytes/1GiB".into() };
    let stop = Stop::new();
    let error = std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(&stop).unwrap());
        let request = DownloadRequest { resource, options: DownloadOptions::default() };
        let error = download(&request, &Stop::new(), &mut |event| {
            if matches!(event, DownloadEvent::Interval(_)) {
                stop.stop();
            }
        });
        assert_eq!(serving.join().unwrap().requests, 1);
        error.unwrap_err()
    });
    let DownloadError::ClosedEarly { received, expected, .. } = &error else { panic!("{error}") };
    assert!(*received > Bytes::ZERO);
    assert_eq!(*expected, Some(Bytes::new(1 << 30)));
    assert!(error.to_string().contains("of 1073741824 bytes"), "{error}");
}

#[test]
fn what_cannot_be_bound_says_what_to_try() {
    let server = Serving::start(ServerOptions::default());
    let bind = |options: ServerOptions| Server::bind(options).unwrap_err();
    let taken = bind(ServerOptions { bind: server.addr, ..Default::default() });
    assert!(
        taken
            .to_string()
            .starts_with(&format!("listen on {}: Address already in use", server.addr)),
        "{taken}"
    );
    assert!(taken.to_string().ends_with("(ss -ltnp shows who listens)"), "{taken}");

    let elsewhere = bind(ServerOptions { bind: ([192, 0, 2, 1], 0).into(), ..Default::default() });
    assert!(elsewhere.to_string().contains("choose an address of this host"), "{elsewhere}");

    let unknown = bind(ServerOptions { congestion: Some("nonesuch".into()), ..Default::default() });
    assert!(
        matches!(unknown, ServerError::SocketOption { option: "TCP_CONGESTION", .. }),
        "{unknown}"
    );
    let long = bind(ServerOptions {
        congestion: Some("reno-and-much-more-than-that".into()),
        ..Default::default()
    });
    assert!(matches!(long, ServerError::SocketOption { option: "TCP_CONGESTION", .. }), "{long}");

    let nowhere = bind(ServerOptions { directory: Some("/nonesuch".into()), ..Default::default() });
    assert!(
        nowhere.to_string().starts_with("serve directory /nonesuch: No such file"),
        "{nowhere}"
    );
    let zero = bind(ServerOptions { write_rate: Some(Rate::ZERO), ..Default::default() });
    assert!(zero.to_string().contains("write_rate"), "{zero}");
    let vast = bind(ServerOptions { sndbuf: Some("4GiB".parse().unwrap()), ..Default::default() });
    assert!(matches!(vast, ServerError::SocketOption { option: "SO_SNDBUF", .. }), "{vast}");

    // Reno is always there, and allowed to everybody.
    Server::bind(ServerOptions { congestion: Some("reno".into()), ..Default::default() }).unwrap();
}
