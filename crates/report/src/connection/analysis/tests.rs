use super::*;
use crate::{Charset, Layout};
use fullpipe_flow::capture::LinkType;
use fullpipe_flow::diagnosis::worst_first;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Instant;

#[path = "../../../../flow/tests/trace/mod.rs"]
pub mod trace;
#[path = "../../../../flow/tests/window/mod.rs"]
mod window;

/// 100 windows of 10 kB, each a round trip of 50 ms: window by round trip is 1.6 Mbit/s. Seen at
/// the server.
fn captured() -> Analysis {
    let mut analyzer = Analyzer::new(Config::default());
    for (nanos, packet) in window::packets(40_000, 100) {
        let at = Instant::from_nanos(1_000_000_000_000 + nanos);
        let wire = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
        analyzer.push(at, LinkType::RAW, &packet, wire).unwrap();
    }
    analyzer.finish()
}

fn window_limited() -> Report {
    Report::new("window.pcap", captured())
}

#[test]
fn what_would_explain_it_as_well_is_told_behind_it() {
    use fullpipe_flow::limit::{Candidate, Limit};
    let connection = captured().connections.remove(0);
    let layout = Layout::default();
    assert!(!depth(&connection, layout).contains("(or "));
    let rival = Candidate { limit: Limit::SendBuffer, share: 0.0 };
    let mut verdict = connection.bulk().unwrap().verdict.clone();
    verdict.intervals.iter_mut().for_each(|interval| interval.candidates.push(rival));
    let explained = DiagnosedConnection::from_capture(connection.connection, [None, Some(verdict)])
        .with_findings()
        .with_intervals();
    let told = depth(&explained, layout);
    assert!(told.contains("receive window (or send buffer)"), "{told}");
    assert!(told.contains("would fit as well: send buffer (100 % of that time)"), "{told}");
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!(json["findings"][0]["rivals"][0]["limit"], "send_buffer");
    let data = json["intervals"]
        .as_array()
        .unwrap()
        .iter()
        .rfind(|i| i["direction"] == "server_to_client")
        .unwrap();
    assert_eq!(
        (&data["candidates"][0]["limit"], &data["candidates"][1]["limit"]),
        (&"receive_window".into(), &"send_buffer".into())
    );
}

/// However sure the answer is: where no change is advised, nobody is told to act.
#[test]
fn who_must_act_has_something_to_do() {
    let mut advised = Vec::new();
    for percent in 0..=100 {
        let connection = captured().connections.remove(0);
        let mut verdict = connection.bulk().unwrap().verdict.clone();
        verdict.confidence = f64::from(percent) / 100.0;
        let verdicts = [None, Some(verdict)];
        let explained = DiagnosedConnection::from_capture(connection.connection, verdicts);
        let told = depth(&explained.with_findings(), Layout::default());
        let withheld = told.contains("no setting is advised");
        assert_eq!(told.contains("who must act: not known yet"), withheld, "{percent}: {told}");
        advised.push(!withheld);
    }
    assert!(advised.contains(&true) && advised.contains(&false), "{advised:?}");
}

#[test]
fn json_is_what_the_program_promises() {
    let json = serde_json::to_value(window_limited()).unwrap();
    assert_eq!(json["schema"], fullpipe_flow::schema::SCHEMA_VERSION);
    assert_eq!(
        (json["file"].as_str(), json["packets"].as_u64()),
        (Some("window.pcap"), Some(1103))
    );
    let connection = &json["connections"][0];
    assert_eq!(connection["server"], "198.51.100.2:80");
    assert_eq!(connection["handshake_rtt_us"], 50_000);
    let data = &connection["server_to_client"];
    assert_eq!(
        (data["payload_bytes"].as_u64(), data["in_flight_max_bytes"].as_u64()),
        (Some(1_000_000), Some(10_000))
    );
    assert_eq!(data["labels"]["retransmission"], 0);
    assert_eq!(
        (&data["window_max_bytes"], &data["window"]["max_bytes"]),
        (&10_000.into(), &10_000.into())
    );
    assert_eq!(connection["vantage"]["place"], "server");
    assert_eq!(
        (connection["close"].as_str(), connection["completeness"].as_u64()),
        (Some("open"), Some(15))
    );
    assert_eq!(connection["client_to_server"]["window"]["max_bytes"], 10_000);
    assert_eq!(connection["limits"][0]["direction"], "server_to_client");
    assert_eq!(connection["limits"][0]["limit"], "receive_window");
    let finding = &connection["findings"][0];
    assert!(
        finding["claim"].is_string()
            && finding["evidence"].is_object()
            && finding["remedy"].is_string()
    );
    assert!(connection.get("intervals").is_none());
    let sum: f64 = connection["limits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["share"].as_f64().unwrap())
        .sum();
    assert!((sum - 1.0).abs() < 1e-9);
}

#[test]
fn the_table_names_the_limit_and_depth_says_what_would_change_it() {
    let mut report = window_limited();
    worst_first(&mut report.connections);
    let plain = Layout { charset: Charset::Ascii, ..Layout::default() };
    let text = table(&report, 20, plain);
    assert!(text.starts_with("window.pcap: 1103 packets, 1 TCP connection\n"), "{text}");
    assert!(text.contains("receive window") && text.contains("tcp_rmem"), "{text}");
    let text = depth(&report.connections[0], plain);
    // 10 kB a round trip of 50 ms.
    assert!(text.contains("allows 1.6"), "{text}");
    assert!(text.contains("#0 192.0.2.1:40000 <- 198.51.100.2:80"), "{text}");
    assert!(text.contains("tcp_rmem"), "{text}");
    assert!(text.contains("captured at the server ("), "{text}");
    assert!(text.contains("still open when the capture ended"), "{text}");
    // The answer advises it, above everything.
    assert_eq!(text.matches("let the receiver's buffer grow").count(), 1, "{text}");
    let (answer, below) = text.split_once("Where the time went").unwrap();
    assert!(
        answer.contains("who must act: the client") && !below.contains("to change it"),
        "{text}"
    );
}

#[test]
fn nothing_found_is_said() {
    let report = Report::new("empty.pcap", Analysis::default());
    assert_eq!(table(&report, 20, Layout::default()), "empty.pcap: 0 packets, 0 TCP connections\n");
}

#[test]
fn in_chinese_each_heading_and_each_sentence_is() {
    use fullpipe_flow::Language;
    use unicode_width::UnicodeWidthStr;
    let mut report = window_limited();
    worst_first(&mut report.connections);
    for width in [None, Some(60), Some(80), Some(120)] {
        let layout = Layout { width, language: Language::Chinese, ..Layout::default() };
        let first = &report.connections[0];
        let told = [table(&report, 20, layout), head(&report, layout), depth(first, layout)];
        let text = told.concat();
        for part in ["受限于", "接收窗口", "如何改进：", "由谁处理：客户端", "时间花在哪里："]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let wide = |line: &&str| width.is_some_and(|width| line.width() > usize::from(width));
        let pasted = |line: &&str| line.contains("sysctl -w") || line.contains("MSS");
        let lines: Vec<&str> = text.lines().filter(wide).filter(|line| !pasted(line)).collect();
        assert!(lines.is_empty(), "{width:?}: {lines:#?}");
        // What is left in English has to be a name: of a file, a setting, a command, a segment.
        let names =
            ["window", "pcap", "data", "scale", "timestamps", "sysctl", "print", "json", "less"];
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let words = words.filter(|word| word.len() > 3 && word.chars().all(char::is_lowercase));
        let english: Vec<&str> = words.filter(|word| !names.contains(word)).collect();
        assert!(english.is_empty(), "{english:?}\n{text}");
    }
}

#[test]
fn data_that_is_missing_to_the_end_is_the_first_that_is_said() {
    // At the client: of a certificate of two full segments and a rest only the rest arrives.
    let text = "
        0.000 > S  0:0         win 64240 <mss 1460,wscale 7,sackOK>
        0.020 < S. 0:0   ack 1 win 65160 <mss 1460,wscale 7,sackOK>
        0.020 > .  1:1   ack 1 win 502
        0.021 > P. 1:301 ack 1 win 502
        0.041 < P. 2921:3221 ack 301 win 502
        0.041 > .  301:301   ack 1 win 502 <sack 2921-3221>";
    let mut analyzer = Analyzer::new(Config::default());
    for line in trace::parse(text) {
        let packet = line.packet();
        analyzer.push(line.at, LinkType::RAW, &packet, packet.len()).unwrap();
    }
    let connection = analyzer.finish().connections.remove(0);
    let account = connection.account().unwrap();
    let answer =
        crate::connection::account::answer(&connection, &account, fullpipe_flow::Language::English)
            .unwrap();
    assert!(answer.claim.starts_with("probably a path MTU black hole"), "{answer:?}");
    assert!(answer.remedy.unwrap().contains("ICMP") && answer.who == "the path", "{answer:?}");
}
