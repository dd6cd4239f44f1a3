//! Results of real tests, and ones that are changed.

use super::*;
use crate::observe::TcpInfo;
use crate::units::{Duration, Instant, Window};
use proptest::prelude::*;

/// By iperf 3.12 over a path of 50 Mbit/s and 30 ms, six seconds.
const CLIENT: &str = include_str!("../../../../../fuzz/corpus/tool_result/iperf3-client");
/// What its server printed.
const SERVER: &str = include_str!("../../../../../fuzz/corpus/tool_result/iperf3-server");
/// A client that receives (`-R`), with what the server printed (`--get-server-output`).
const REVERSE: &str = include_str!("../../../../../fuzz/corpus/tool_result/iperf3-reverse");
/// In the form of m-lab/ndt-server's `data/result.go`, with numbers of a socket of Linux 6.12.
const NDT7: &str = include_str!("../../../../../fuzz/corpus/tool_result/ndt7");
/// As ndt7-client prints it.
const NDT7_CLIENT: &str = include_str!("../../../../../fuzz/corpus/tool_result/ndt7-client");

fn infos(socket: &TestedSocket) -> Vec<&TcpInfo> {
    socket.samples.iter().filter_map(|sample| sample.info.as_ref()).collect()
}

#[test]
fn an_interval_of_iperf3_is_a_sample_at_its_end() {
    let [socket] = &read(CLIENT).unwrap()[..] else { panic!("one stream") };
    assert_eq!(socket.by, TestProgram::Iperf3 { rate: None, sndbuf: None });
    assert_eq!(socket.samples.len(), 7, "six seconds");
    let [first, .., last] = &socket.samples[..] else { panic!() };
    assert!(last.at.since(first.at) >= Duration::from_millis(5900));
    assert_eq!(first.remote.port(), 5201);
    assert_eq!(last.congestion_control.as_deref(), Some("bbr"));
    let infos = infos(socket);
    // The sums that iperf3 prints itself: what is written last may still wait to be sent.
    let sent: serde_json::Value = serde_json::from_str(CLIENT).unwrap();
    let [sum, had] = ["sender", "receiver"].map(|end| &sent["end"]["streams"][0][end]);
    let [written, received] = [sum, had].map(|end| end["bytes"].as_u64().unwrap());
    assert!(received < written);
    assert_eq!(infos[6].bytes_acked.unwrap().get(), received);
    // The path's own rate: what fills the send buffer was not carried.
    let at = |number: usize| infos[number].bytes_acked.unwrap().as_f64() * 8.0;
    assert!(at(1) <= 50e6 && at(6) - at(0) <= 6.01 * 50e6, "{} {}", at(1), at(6));
    assert_eq!(u64::from(infos[6].total_retrans), sum["retransmits"].as_u64().unwrap());
    assert_eq!(infos[6].min_rtt.unwrap().as_micros(), sum["min_rtt"].as_u64().unwrap());
    let most = infos.iter().map(|info| u64::from(info.snd_cwnd) * 1448).max();
    assert_eq!(most, sum["max_snd_cwnd"].as_u64());
    // Little's law: 50 Mbit/s over 30 ms are 129 segments.
    assert!((110..=400).contains(&infos[6].unacked), "{}", infos[6].unacked);
}

#[test]
fn a_receiver_of_iperf3_has_bytes_alone() {
    let [socket] = &read(SERVER).unwrap()[..] else { panic!("one stream") };
    let infos = infos(socket);
    let last = infos.last().unwrap();
    assert!(last.bytes_received.unwrap() > Bytes::new(20_000_000));
    assert_eq!((last.bytes_acked, last.rtt), (Some(Bytes::ZERO), Duration::ZERO));
}

#[test]
fn the_senders_own_words_count_where_both_ends_are_there() {
    let [socket] = &read(REVERSE).unwrap()[..] else { panic!("one stream") };
    assert_eq!(socket.samples[0].local.port(), 5201, "the server sends");
    assert!(infos(socket).iter().any(|info| info.snd_cwnd > 0));
    let mut alone: serde_json::Value = serde_json::from_str(REVERSE).unwrap();
    alone.as_object_mut().unwrap().remove("server_output_json");
    let [socket] = &read(&alone.to_string()).unwrap()[..] else { panic!("one stream") };
    assert!(infos(socket).iter().all(|info| info.snd_cwnd == 0));
}

#[test]
fn lines_of_a_stream_say_what_the_whole_says() {
    let whole: serde_json::Value = serde_json::from_str(CLIENT).unwrap();
    let mut lines = serde_json::json!({"event": "start", "data": whole["start"]}).to_string();
    for interval in whole["intervals"].as_array().unwrap() {
        let line = serde_json::json!({"event": "interval", "data": interval});
        lines += &format!("\n{line}");
    }
    lines += &format!("\n{}\n", serde_json::json!({"event": "end", "data": whole["end"]}));
    assert_eq!(read(&lines), read(CLIENT));
}

/// By iperf 3.12 with `-P 2`, which prints `sock_bufsize` twice.
#[test]
fn each_stream_is_a_socket() {
    let text = include_str!("../../../../../fuzz/corpus/tool_result/iperf3-two");
    assert_eq!(text.matches("sock_bufsize").count(), 2);
    let [one, other] = &read(text).unwrap()[..] else { panic!("two streams") };
    assert_ne!(one.samples[0].local.port(), other.samples[0].local.port());
}

#[test]
fn what_iperf3_was_asked_is_known() {
    let mut value: serde_json::Value = serde_json::from_str(CLIENT).unwrap();
    value["start"]["test_start"]["target_bitrate"] = 10_000_000.into();
    value["start"]["sock_bufsize"] = 50_000.into();
    value["start"]["sndbuf_actual"] = 100_000.into();
    let by = read(&value.to_string()).unwrap()[0].by;
    let sndbuf = Some(Bytes::new(100_000));
    assert_eq!(by, TestProgram::Iperf3 { rate: Some(Rate::from_bits_per_sec(10_000_000)), sndbuf });
    value["start"]["test_start"]["protocol"] = "UDP".into();
    assert_eq!(read(&value.to_string()), Err(ParseResultError::Protocol("UDP".into())));
}

#[test]
fn a_result_of_ndt7_has_the_kernels_account() {
    for text in [NDT7, NDT7_CLIENT] {
        let sockets = read(text).unwrap();
        let [download, upload] = &sockets[..] else { panic!("two tests") };
        assert_eq!(download.by, TestProgram::Ndt7);
        let infos = infos(download);
        assert!(infos.len() >= 10);
        let last = infos.last().unwrap();
        assert!(infos[0].busy_time < last.busy_time && last.rwnd_limited > infos[0].rwnd_limited);
        assert_eq!((last.snd_wscale, last.rcv_wscale), (1, 7));
        assert!(last.snd_wnd > Some(Window::new(Bytes::ZERO)));
        assert!(download.samples.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert_eq!(download.samples[0].local.to_string(), "192.0.2.1:443");
        let received = upload.samples.last().unwrap().info.as_ref().unwrap();
        assert!(received.bytes_received > received.bytes_acked);
    }
    // A row of M-Lab's table.
    let raw = format!("{{\"id\": \"x\", \"date\": \"2024-01-01\", \"raw\": {NDT7}}}");
    assert_eq!(read(&raw), read(NDT7));
}

#[test]
fn what_is_no_result_says_what_is_read() {
    let said = |text: &str| read(text).unwrap_err();
    assert_eq!(said("{\"some\": \"thing\"}"), ParseResultError::Unknown);
    assert_eq!(said(""), ParseResultError::Unknown);
    assert!(matches!(said(&CLIENT[..CLIENT.len() / 2]), ParseResultError::Json(_)));
    let failed = "{\"start\": {}, \"error\": \"unable to connect to server\"}";
    assert_eq!(said(failed), ParseResultError::Failed("unable to connect to server".into()));
    let nothing = "{\"start\": {}, \"intervals\": [], \"end\": {}}";
    assert_eq!(said(nothing), ParseResultError::NoIntervals);
    let nothing = "{\"ServerIP\": \"192.0.2.1\", \"Download\": {\"ServerMeasurements\": []}}";
    assert_eq!(said(nothing), ParseResultError::NoTcpInfo);
    let vast = CLIENT.replacen("\"bytes\":\t7442720", "\"bytes\":\t7442720999999999999", 1);
    assert_eq!(said(&vast), ParseResultError::Impossible);
}

proptest! {
    /// A number changed, or the end cut off: it is read or refused, and what is read has the bounds
    /// of a sample.
    #[test]
    fn changed_results_are_read_or_refused(
        which in 0_usize..4,
        at in 0_usize..8000,
        to in "[0-9.eE+-]{0,22}|\"[a-z0-9.:%]{0,12}\"|null|\\[\\]|\\{\\}",
        cut: Option<u16>,
    ) {
        let text = [CLIENT, REVERSE, NDT7, NDT7_CLIENT][which];
        let numbers: Vec<(usize, usize)> = numbers_of(text);
        let (from, end) = numbers[at % numbers.len()];
        let mut changed = format!("{}{to}{}", &text[..from], &text[end..]);
        if let Some(cut) = cut {
            let cut = changed.floor_char_boundary(usize::from(cut));
            changed.truncate(cut);
        }
        for socket in read(&changed).unwrap_or_default() {
            for sample in &socket.samples {
                prop_assert!(sample.at.as_nanos() <= TIME_MOST);
                // Lines of a recording have times since a boot.
                let sample = Sample { at: Instant::ZERO, ..sample.clone() };
                let line = serde_json::to_string(&sample).unwrap();
                prop_assert!(line.parse::<Sample>().is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let _ = read(&text);
    }
}

/// Where the numbers of a text stand.
fn numbers_of(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = None;
    for (at, byte) in text.bytes().enumerate() {
        match (byte.is_ascii_digit(), from) {
            (true, None) => from = Some(at),
            (false, Some(begin)) => {
                found.push((begin, at));
                from = None;
            }
            _ => (),
        }
    }
    found
}
