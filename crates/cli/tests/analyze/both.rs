//! Captures of the same connections from two places and more.

use crate::{Value, analyze};
use std::path::Path;

/// A capture of the lab, of a transfer that this limit held.
fn of(limit: &str, end: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../flow/tests/lab/captures/limits");
    folder.join(limit).join(end).into_os_string().into_string().unwrap()
}

/// What limited it is said first, by the capture that is placed best.
#[test]
fn two_captures_say_what_held_the_data() {
    for (limit, cause) in [
        ("link", None),
        ("receive_window", None),
        ("receiver_application", None),
        ("send_buffer", None),
        ("sender_application", None),
        ("congestion_window_loss", Some("loss")),
        ("congestion_window_slow_start", Some("slow_start")),
    ] {
        let [client, server] = ["client.pcap.gz", "server.pcap.gz"].map(|end| of(limit, end));
        let limit = cause.map_or(limit, |_| "congestion_window");
        // How a program reads is seen where it reads.
        let best = if limit == "receiver_application" { &client } else { &server };
        for (a, b) in [(&client, &server), (&server, &client)] {
            let ended = analyze(&["--both", a, b, "--json"]);
            let json: Value = serde_json::from_str(&ended.out).unwrap();
            let one = &json[0]["paired"]["connections"][0];
            let answer = &one["answer"];
            let said = &answer["limited_by"];
            let is_right = said["limit"] == limit && said["cause"] == Value::from(cause);
            // Both captures of the send buffer are too short for more than a guess, which is said.
            assert!(is_right || (said["is_guess"] == true && limit == "send_buffer"), "{answer:#}");
            assert_eq!(answer["seen_at"], if a == best { "a" } else { "b" }, "{answer:#}");
            // Both ends are captured: nothing but the path is between, and it has the round trip.
            let [whole, beyond] =
                ["whole_us", "beyond_us"].map(|name| answer["round_trip"][name].as_f64().unwrap());
            assert!(beyond < 0.1 * whole, "{answer:#}");
            let far = if a == &client { "a" } else { "b" };
            assert_eq!(answer["round_trip"]["far"], far, "{answer:#}");
            // The link is the only one of these that is always busy.
            let busy = one["to_client"]["busy"].as_f64().unwrap();
            assert_eq!(busy > 0.9, limit == "link", "{one:#}");
        }
        let said = analyze(&["--both", &client, &server]).out;
        let line = format!("this is what {} shows", best.rsplit('/').next().unwrap());
        let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&line) && text.contains("who must act:"), "{said}");
        assert!(text.contains("the least round trip, "), "{said}");
        let chinese = analyze(&["--both", &client, &server, "--language", "zh"]).out;
        assert!(!chinese.contains(" the ") && chinese.contains("最短往返时间"), "{chinese}");
    }
}

/// Captures of both ends in the lab, whose link dropped what is said to be lost.
#[test]
fn two_captures_say_where_segments_were_lost() {
    for (limit, words) in [
        ("link", "a queue between the two was full"),
        ("congestion_window_loss", "no full queue dropped them"),
        ("receive_window", "no data was lost, before, between or after the two"),
    ] {
        let [client, server] = ["client.pcap.gz", "server.pcap.gz"].map(|end| of(limit, end));
        let ended = analyze(&["--both", &client, &server]);
        assert_eq!((ended.code, ended.err.as_str()), (0, ""));
        assert!(ended.out.contains(words), "{}", ended.out);
        // The order in which they are named is not that in which packets pass them.
        let [one, other] = [[&client, &server], [&server, &client]].map(|[a, b]| {
            let ended = analyze(&["--both", a, b, "--json"]);
            let mut json: Value = serde_json::from_str(&ended.out).unwrap();
            json[0]["paired"]["connections"][0]["to_client"].take()
        });
        assert_eq!(one["lost"], other["lost"]);
        assert_eq!(one["lost"]["segments"] == 0, limit == "receive_window");
    }
    let one = of("link", "client.pcap.gz");
    // Three places are two pieces of the path; here one piece has no length.
    let [a, b] = ["client.pcap.gz", "server.pcap.gz"].map(|end| of("link", end));
    let points = [format!("c={a}"), format!("s={b}"), format!("again={b}")];
    let named = points.iter().flat_map(|point| ["--point", point.as_str()]).collect::<Vec<_>>();
    let three: Value =
        serde_json::from_str(&analyze(&[&named[..], &["--json"]].concat()).out).unwrap();
    assert_eq!((&three[0]["b"], &three[1]["b"]), (&"s".into(), &"again".into()));
    assert_eq!(three[0]["paired"]["connections"][0]["to_client"]["lost"]["segments"], 5);
    assert!(three[1]["paired"]["connections"][0]["near_client"].is_null());
    assert_eq!(analyze(&["--point", &points[0]]).code, 2);
    let alone = analyze(&["--both", &one]);
    assert_eq!(alone.code, 2);
    assert!(alone.err.contains("compares two captures, and 1 are named"), "{}", alone.err);
    let apart = analyze(&["--both", &one, &of("congestion_window_loss", "server.pcap.gz")]);
    assert_eq!(apart.code, 1);
    assert!(apart.err.contains("no connection is in both"), "{}", apart.err);
    assert_eq!(analyze(&["--both", &one, "/nowhere/at.all"]).code, 4);
    // What it does not look at is refused, not passed over.
    assert_eq!(analyze(&["--both", &one, &b, "--capture-point", "sender"]).code, 2);
}
