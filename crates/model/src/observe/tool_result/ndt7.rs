//! A result of ndt7: M-Lab's archived JSON, and what ndt7-client prints (`-format json`).
//!
//! The server takes `TCP_INFO` of its socket some four times a second, and archives the whole of it
//! (m-lab/ndt-server, `ndt7/model/archivaldata.go`; m-lab/tcp-info, `tcp/tcpinfo.go`). Units are
//! the kernel's. Of a download the server's socket is the sender's.

use super::{ParseResultError, TestProgram, TestedSocket};
use crate::observe::{CongestionState, Sample, TcpInfo, TcpState, ss};
use crate::units::{Bytes, Duration, Instant, Rate, Window};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An archived result.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Archived {
    #[serde(rename = "ServerIP")]
    server_ip: String,
    server_port: u16,
    #[serde(rename = "ClientIP")]
    client_ip: String,
    client_port: u16,
    start_time: String,
    download: Option<Archive>,
    upload: Option<Archive>,
    /// A row of M-Lab's table.
    #[serde(rename = "raw")]
    raw: Option<Box<Archived>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Archive {
    start_time: String,
    server_measurements: Option<Vec<Measurement>>,
}

/// What ndt7-client prints in a line.
#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ClientMessage {
    key: String,
    #[serde(default)]
    value: Option<Measurement>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Measurement {
    connection_info: Option<Ends>,
    #[serde(rename = "BBRInfo")]
    bbr_info: Option<BbrInfo>,
    #[serde(rename = "TCPInfo")]
    tcp_info: Option<ArchivedInfo>,
    origin: Option<String>,
    test: Option<String>,
    failure: Option<String>,
}

#[derive(Default, Clone, serde::Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Ends {
    client: String,
    server: String,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct BbrInfo {
    #[serde(rename = "BW")]
    bandwidth: i64,
}

/// `struct tcp_info`, as Go names its fields.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct ArchivedInfo {
    elapsed_time: i64,
    state: i64,
    #[serde(rename = "CAState")]
    ca_state: i64,
    retransmits: i64,
    backoff: i64,
    options: i64,
    #[serde(rename = "WScale")]
    scales: i64,
    app_limited: i64,
    #[serde(rename = "RTO")]
    rto: i64,
    #[serde(rename = "ATO")]
    ato: i64,
    #[serde(rename = "SndMSS")]
    snd_mss: i64,
    #[serde(rename = "RcvMSS")]
    rcv_mss: i64,
    unacked: i64,
    sacked: i64,
    lost: i64,
    retrans: i64,
    last_data_sent: i64,
    last_data_recv: i64,
    last_ack_recv: i64,
    #[serde(rename = "PMTU")]
    pmtu: i64,
    rcv_ss_thresh: i64,
    #[serde(rename = "RTT")]
    rtt: i64,
    #[serde(rename = "RTTVar")]
    rttvar: i64,
    snd_ss_thresh: i64,
    snd_cwnd: i64,
    #[serde(rename = "AdvMSS")]
    advmss: i64,
    reordering: i64,
    #[serde(rename = "RcvRTT")]
    rcv_rtt: i64,
    rcv_space: i64,
    total_retrans: i64,
    pacing_rate: i64,
    bytes_acked: i64,
    bytes_received: i64,
    segs_out: Option<i64>,
    segs_in: Option<i64>,
    notsent_bytes: Option<i64>,
    #[serde(rename = "MinRTT")]
    min_rtt: Option<i64>,
    data_segs_in: Option<i64>,
    data_segs_out: Option<i64>,
    delivery_rate: Option<i64>,
    busy_time: Option<i64>,
    #[serde(rename = "RWndLimited")]
    rwnd_limited: Option<i64>,
    snd_buf_limited: Option<i64>,
    delivered: Option<i64>,
    bytes_sent: Option<i64>,
    bytes_retrans: Option<i64>,
    #[serde(rename = "DSackDups")]
    dsack_dups: Option<i64>,
    reord_seen: Option<i64>,
    snd_wnd: Option<i64>,
}

/// The sockets of an archived result.
pub(super) fn read(value: &str) -> Result<Vec<TestedSocket>, ParseResultError> {
    let mut outer: Archived = serde_json::from_str(value)?;
    let raw = outer.raw.take();
    let result = raw.map_or(outer, |raw| *raw);
    let ends = [
        end(&result.server_ip, result.server_port, SERVER_PORT),
        end(&result.client_ip, result.client_port, CLIENT_PORT),
    ];
    let mut sockets = Vec::new();
    for test in [result.download, result.upload].into_iter().flatten() {
        let began = ss::date(&test.start_time).or_else(|| ss::date(&result.start_time));
        let measurements = test.server_measurements.unwrap_or_default();
        sockets.extend(socket(measurements, ends, began.unwrap_or(Instant::ZERO)));
    }
    some(sockets)
}

/// The sockets in what ndt7-client printed.
pub(super) fn of_messages(
    messages: Vec<ClientMessage>,
) -> Result<Vec<TestedSocket>, ParseResultError> {
    let mut tests: Vec<(String, Vec<Measurement>)> = Vec::new();
    for message in messages {
        let Some(measurement) = message.value else { continue };
        if message.key == "error" {
            let failure = measurement.failure.unwrap_or_else(|| "it does not say why".into());
            return Err(ParseResultError::Failed(shortened(&failure)));
        }
        if message.key != "measurement" || measurement.origin.as_deref() != Some("server") {
            continue;
        }
        let name = measurement.test.clone().unwrap_or_default();
        match tests.iter_mut().find(|(test, _)| *test == name) {
            Some((_, measurements)) => measurements.push(measurement),
            None => tests.push((name, vec![measurement])),
        }
    }
    let sockets = tests.into_iter().filter_map(|(_, measurements)| {
        let ends = measurements.iter().find_map(|one| one.connection_info.clone());
        let Ends { client, server } = ends.unwrap_or_default();
        let ends = [
            server.parse().unwrap_or_else(|_| end("", 0, SERVER_PORT)),
            client.parse().unwrap_or_else(|_| end("", 0, CLIENT_PORT)),
        ];
        socket(measurements, ends, Instant::ZERO)
    });
    some(sockets.collect())
}

fn some(sockets: Vec<TestedSocket>) -> Result<Vec<TestedSocket>, ParseResultError> {
    if sockets.is_empty() {
        return Err(ParseResultError::NoTcpInfo);
    }
    Ok(sockets)
}

/// Ports of ends that a result does not name.
const SERVER_PORT: u16 = 443;
const CLIENT_PORT: u16 = 49_152;

/// An end; one that is not named is the unspecified address.
fn end(address: &str, port: u16, otherwise: u16) -> SocketAddr {
    let address = address.parse().unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    SocketAddr::new(address, if port == 0 { otherwise } else { port })
}

/// The server's socket of one test; `None` without `TCP_INFO`.
fn socket(
    mut measurements: Vec<Measurement>,
    [server, client]: [SocketAddr; 2],
    began: Instant,
) -> Option<TestedSocket> {
    measurements.retain(|one| one.tcp_info.is_some());
    measurements.sort_by_key(|one| one.tcp_info.as_ref().map_or(0, |info| info.elapsed_time));
    let samples = measurements.into_iter().filter_map(|one| {
        let archived = one.tcp_info?;
        let at = began + micros(archived.elapsed_time);
        let state = TcpState::from_number(small(archived.state));
        let mut sample = Sample::new(at, server, client, state);
        // A socket has BBR's numbers only under BBR.
        let is_bbr = one.bbr_info.is_some_and(|bbr| bbr.bandwidth > 0);
        sample.congestion_control = is_bbr.then(|| "bbr".into());
        sample.info = Some(archived.info(state));
        Some(sample)
    });
    let samples: Vec<Sample> = samples.collect();
    (!samples.is_empty()).then_some(TestedSocket { samples, by: TestProgram::Ndt7 })
}

impl ArchivedInfo {
    fn info(&self, state: TcpState) -> TcpInfo {
        let scales = small(self.scales);
        let base = TcpInfo {
            state,
            ca_state: CongestionState::from_number(small(self.ca_state)),
            retransmits: small(self.retransmits),
            backoff: small(self.backoff),
            options: small(self.options),
            snd_wscale: scales & 15,
            rcv_wscale: scales >> 4,
            delivery_rate_app_limited: self.app_limited & 1 == 1,
            rto: micros(self.rto),
            ato: micros(self.ato),
            snd_mss: bytes(self.snd_mss),
            rcv_mss: bytes(self.rcv_mss),
            unacked: count(self.unacked),
            sacked: count(self.sacked),
            lost: count(self.lost),
            retrans: count(self.retrans),
            last_data_sent: millis(self.last_data_sent),
            last_data_recv: millis(self.last_data_recv),
            last_ack_recv: millis(self.last_ack_recv),
            pmtu: bytes(self.pmtu),
            rcv_ssthresh: Window::new(bytes(self.rcv_ss_thresh)),
            rtt: micros(self.rtt),
            rttvar: micros(self.rttvar),
            snd_ssthresh: count(self.snd_ss_thresh),
            snd_cwnd: count(self.snd_cwnd),
            advmss: bytes(self.advmss),
            reordering: count(self.reordering),
            rcv_rtt: micros(self.rcv_rtt),
            rcv_space: bytes(self.rcv_space),
            total_retrans: count(self.total_retrans),
            ..TcpInfo::default()
        };
        self.counted(base)
    }

    /// With what kernels count since Linux 4.2.
    fn counted(&self, base: TcpInfo) -> TcpInfo {
        TcpInfo {
            pacing_rate: rate(self.pacing_rate),
            bytes_acked: Some(bytes(self.bytes_acked)),
            bytes_received: Some(bytes(self.bytes_received)),
            segs_out: self.segs_out.map(count),
            segs_in: self.segs_in.map(count),
            notsent_bytes: self.notsent_bytes.map(bytes),
            min_rtt: self.min_rtt.map(micros),
            data_segs_in: self.data_segs_in.map(count),
            data_segs_out: self.data_segs_out.map(count),
            delivery_rate: self.delivery_rate.and_then(rate),
            busy_time: self.busy_time.map(micros),
            rwnd_limited: self.rwnd_limited.map(micros),
            sndbuf_limited: self.snd_buf_limited.map(micros),
            delivered: self.delivered.map(count),
            bytes_sent: self.bytes_sent.map(bytes),
            bytes_retrans: self.bytes_retrans.map(bytes),
            dsack_dups: self.dsack_dups.map(count),
            reord_seen: self.reord_seen.map(count),
            // A kernel before 5.4 leaves it at zero, and no window is that for a whole test.
            snd_wnd: self.snd_wnd.filter(|window| *window > 0).map(|one| Window::new(bytes(one))),
            ..base
        }
    }
}

// Go has signed numbers for the sake of a data base; none of these is negative.

fn small(number: i64) -> u8 {
    u8::try_from(number).unwrap_or(0)
}

fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

fn whole(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn bytes(number: i64) -> Bytes {
    Bytes::new(whole(number))
}

fn micros(number: i64) -> Duration {
    Duration::from_nanos(whole(number).saturating_mul(1000))
}

fn millis(number: i64) -> Duration {
    Duration::from_nanos(whole(number).saturating_mul(1_000_000))
}

/// Bytes a second; -1 is no rate.
fn rate(number: i64) -> Option<Rate> {
    let bits = u64::try_from(number).ok()?.checked_mul(8)?;
    Some(Rate::from_bits_per_sec(bits))
}

/// Enough of a foreign sentence for a message.
fn shortened(text: &str) -> String {
    const ENOUGH: usize = 200;
    text.chars().take(ENOUGH).collect()
}
