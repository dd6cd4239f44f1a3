//! A result of `iperf3 --json`, of either end, and of `--json-stream`.
//!
//! For each interval iperf3 prints what its sockets carried, and of one that sends some of
//! `TCP_INFO` at the interval's end (`iperf_api.c`, `print_interval_results`): segments sent again,
//! the congestion window and the peer's in bytes, the smoothed round trip. How much is in flight it
//! does not print. On average that is the rate times the round trip (Little's law), and a sample's
//! `unacked` is that. `bytes` is what was written into the socket, and the first of it fills the
//! send buffer: what the receiver had at the end tells how much, and was carried no earlier.

use super::{ParseResultError, TestProgram, TestedSocket};
use crate::observe::{Sample, TcpInfo, TcpState};
use crate::units::{Bytes, Duration, Instant, Rate, Window};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Test {
    start: TestStart,
    intervals: Vec<TestInterval>,
    end: TestEnd,
    error: Option<String>,
    /// What the server printed, where the client asked for it.
    server_output_json: Option<Box<Test>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct TestStart {
    connected: Vec<Connected>,
    timestamp: Timestamp,
    tcp_mss: Option<u64>,
    tcp_mss_default: Option<u64>,
    sock_bufsize: u64,
    sndbuf_actual: Option<u64>,
    test_start: TestAsked,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Connected {
    socket: i64,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Timestamp {
    timesecs: u64,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct TestAsked {
    protocol: String,
    target_bitrate: u64,
    fqrate: u64,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct TestInterval {
    streams: Vec<StreamInterval>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct StreamInterval {
    socket: i64,
    seconds: f64,
    bytes: u64,
    retransmits: Option<u32>,
    snd_cwnd: Option<u64>,
    snd_wnd: Option<u64>,
    rtt: Option<u64>,
    rttvar: Option<u64>,
    pmtu: Option<u64>,
    reorder: Option<u32>,
    sender: Option<bool>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct TestEnd {
    sender_tcp_congestion: Option<String>,
    streams: Vec<StreamEnd>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct StreamEnd {
    receiver: Received,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Received {
    socket: i64,
    bytes: u64,
}

/// One line of `--json-stream`.
#[derive(serde::Deserialize)]
pub(super) struct TestEvent {
    event: String,
    #[serde(default)]
    data: serde_json::Value,
}

/// The sockets of a result.
pub(super) fn read(value: &str) -> Result<Vec<TestedSocket>, ParseResultError> {
    // Of two streams 3.12 prints the buffers twice, and only a map takes that: the last one counts.
    let value: serde_json::Value = serde_json::from_str(value)?;
    sockets(serde_json::from_value(value)?)
}

/// The sockets of the lines of `--json-stream`.
pub(super) fn of_events(events: Vec<TestEvent>) -> Result<Vec<TestedSocket>, ParseResultError> {
    let mut test = Test::default();
    for TestEvent { event, data } in events {
        match event.as_str() {
            "start" => test.start = serde_json::from_value(data)?,
            "interval" => test.intervals.push(serde_json::from_value(data)?),
            "end" => test.end = serde_json::from_value(data)?,
            "error" => test.error = Some(data.as_str().unwrap_or("it does not say why").into()),
            "server_output_json" => {
                test.server_output_json = Some(Box::new(serde_json::from_value(data)?));
            }
            _ => (),
        }
    }
    sockets(test)
}

fn sockets(mut test: Test) -> Result<Vec<TestedSocket>, ParseResultError> {
    let by_server = test.server_output_json.take();
    if let (Some(error), true) = (&test.error, test.intervals.is_empty()) {
        return Err(ParseResultError::Failed(error.chars().take(SENTENCE).collect()));
    }
    let protocol = &test.start.test_start.protocol;
    if !protocol.is_empty() && protocol != "TCP" {
        return Err(ParseResultError::Protocol(protocol.chars().take(SENTENCE).collect()));
    }
    let mut found = streams(&test)?;
    // What the other end says of the same test: a sender says more than a receiver.
    if let Some(by_server) = by_server {
        found.extend(streams(&by_server)?);
    }
    let senders: Vec<_> = found.iter().filter(|one| one.sends).map(|one| one.ends).collect();
    found.retain(|one| one.sends || !senders.contains(&(one.ends.1, one.ends.0)));
    if found.is_empty() {
        return Err(ParseResultError::NoIntervals);
    }
    Ok(found.into_iter().map(|one| one.socket).collect())
}

/// Enough of a foreign sentence for a message.
const SENTENCE: usize = 200;
/// Longer than any test.
const SECONDS_MOST: f64 = 1e8;
/// Linux keeps a send buffer's size as an `int`.
const SEND_BUFFER_MOST: u64 = i32::MAX as u64;
/// The headers of IPv4 and TCP, with timestamps.
const HEADERS: u64 = 52;

/// One end of one connection.
struct TestedStream {
    ends: (SocketAddr, SocketAddr),
    sends: bool,
    socket: TestedSocket,
}

fn streams(test: &Test) -> Result<Vec<TestedStream>, ParseResultError> {
    let mut numbers: Vec<i64> = Vec::new();
    for stream in test.intervals.iter().flat_map(|interval| &interval.streams) {
        if numbers.last() != Some(&stream.socket) && !numbers.contains(&stream.socket) {
            numbers.push(stream.socket);
        }
        if numbers.len() > STREAMS_MOST {
            return Err(ParseResultError::Impossible);
        }
    }
    numbers.into_iter().map(|number| stream(test, number)).collect()
}

/// iperf3 itself takes at most 128 streams, in each direction.
const STREAMS_MOST: usize = 256;

fn stream(test: &Test, number: i64) -> Result<TestedStream, ParseResultError> {
    let all = test.intervals.iter().flat_map(|interval| &interval.streams);
    let intervals: Vec<&StreamInterval> = all.filter(|one| one.socket == number).collect();
    if intervals.iter().any(|one| !(0.0..=SECONDS_MOST).contains(&one.seconds)) {
        return Err(ParseResultError::Impossible);
    }
    // Versions before 3.7 do not say which end it is; a sender has a congestion window.
    let sends = intervals.iter().any(|one| one.sender.unwrap_or(one.snd_cwnd.is_some()));
    let ends = ends(test, number);
    let name = test.end.sender_tcp_congestion.as_ref().filter(|_| sends);
    let mut at = Instant::from_nanos(test.start.timestamp.timesecs.saturating_mul(1_000_000_000));
    let written = intervals.iter().fold(0_u64, |sum, one| sum.saturating_add(one.bytes));
    let received = test.end.streams.iter().map(|one| &one.receiver);
    let received = received.filter(|one| sends && one.socket == number && one.bytes > 0);
    let unsent = received.map(|one| written.saturating_sub(one.bytes)).next().unwrap_or(0);
    if unsent > SEND_BUFFER_MOST {
        return Err(ParseResultError::Impossible);
    }
    let mut so_far = SoFar { unsent, ..SoFar::default() };
    let infos = std::iter::once(so_far.info(test, &intervals, None, sends));
    let infos = infos.chain(intervals.iter().map(|interval| {
        so_far.add(interval);
        so_far.info(test, &intervals, Some(interval), sends)
    }));
    let mut samples: Vec<Sample> = Vec::with_capacity(intervals.len() + 1);
    let lengths = std::iter::once(0.0).chain(intervals.iter().map(|one| one.seconds));
    for (info, length) in std::iter::zip(infos, lengths) {
        at = at + Duration::from_secs_f64(length);
        let mut sample = Sample::new(at, ends.0, ends.1, TcpState::Established);
        sample.congestion_control = name.cloned();
        sample.info = Some(info);
        samples.push(sample);
    }
    let asked = &test.start.test_start;
    let rates = [asked.target_bitrate, asked.fqrate].into_iter().filter(|rate| *rate > 0);
    let rate = rates.min().map(Rate::from_bits_per_sec);
    let sndbuf = test.start.sndbuf_actual.filter(|_| test.start.sock_bufsize > 0).map(Bytes::new);
    let by = TestProgram::Iperf3 { rate, sndbuf };
    Ok(TestedStream { ends, sends, socket: TestedSocket { samples, by } })
}

/// Both ends of a stream; ones that are not named are unspecified.
fn ends(test: &Test, number: i64) -> (SocketAddr, SocketAddr) {
    let nobody = Connected::default();
    let known = test.start.connected.iter().find(|one| one.socket == number).unwrap_or(&nobody);
    (address(&known.local_host, known.local_port), address(&known.remote_host, known.remote_port))
}

fn address(host: &str, port: u16) -> SocketAddr {
    let bare = host.split('%').next().unwrap_or(host);
    let address: IpAddr = bare.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    SocketAddr::new(address.to_canonical(), port)
}

/// What a stream has carried up to an interval's end.
#[derive(Default)]
struct SoFar {
    bytes: u64,
    /// What is in the send buffer at the end, and is taken to have been written first.
    unsent: u64,
    again: u32,
    reordered: u32,
}

impl SoFar {
    fn add(&mut self, interval: &StreamInterval) {
        self.bytes = self.bytes.saturating_add(interval.bytes);
        self.again = self.again.saturating_add(interval.retransmits.unwrap_or(0));
        self.reordered = self.reordered.max(interval.reorder.unwrap_or(0));
    }

    /// The socket at the end of an interval; `None` is the beginning, whose round trip and
    /// congestion window are taken to be those of the first one's end.
    fn info(
        &self,
        test: &Test,
        all: &[&StreamInterval],
        interval: Option<&StreamInterval>,
        sends: bool,
    ) -> TcpInfo {
        let bytes = self.bytes.saturating_sub(self.unsent);
        let carried = Some(Bytes::new(bytes));
        let state = TcpState::Established;
        if !sends {
            let bytes_acked = Some(Bytes::ZERO);
            return TcpInfo { state, bytes_received: carried, bytes_acked, ..TcpInfo::default() };
        }
        let start = &test.start;
        let shown = interval.or(all.first().copied());
        let path = shown.and_then(|one| one.pmtu).unwrap_or(0);
        let mss = start.tcp_mss.or(start.tcp_mss_default).unwrap_or(path.saturating_sub(HEADERS));
        let mss = mss.clamp(1, u64::from(u16::MAX));
        let rtts = all.iter().filter_map(|one| one.rtt).filter(|rtt| *rtt > 0);
        let in_flight = interval.map_or(0.0, |one| in_flight(one) / mss as f64);
        let segments = (bytes / mss).saturating_add(self.again.into());
        let window = interval.and_then(|one| one.snd_wnd).filter(|window| *window > 0);
        TcpInfo {
            state,
            snd_mss: Bytes::new(mss),
            pmtu: Bytes::new(path.min(u64::from(u16::MAX))),
            rtt: micros(shown.and_then(|one| one.rtt)),
            rttvar: micros(interval.and_then(|one| one.rttvar)),
            min_rtt: rtts.min().map(|least| micros(Some(least))),
            snd_cwnd: count(shown.and_then(|one| one.snd_cwnd).unwrap_or(0) / mss),
            unacked: in_flight as u32,
            total_retrans: self.again,
            bytes_acked: carried,
            bytes_received: Some(Bytes::ZERO),
            bytes_sent: carried,
            data_segs_out: Some(count(segments)),
            segs_out: Some(count(segments)),
            reord_seen: Some(self.reordered),
            snd_wnd: window.map(|window| Window::new(Bytes::new(window))),
            ..TcpInfo::default()
        }
    }
}

/// The mean amount in flight.
fn in_flight(interval: &StreamInterval) -> f64 {
    let rtt = interval.rtt.unwrap_or(0) as f64 / 1e6;
    if interval.seconds > 0.0 { interval.bytes as f64 / interval.seconds * rtt } else { 0.0 }
}

fn micros(count: Option<u64>) -> Duration {
    Duration::from_nanos(count.unwrap_or(0).saturating_mul(1000))
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
