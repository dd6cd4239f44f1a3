use super::*;
use crate::capture::LinkType;
use crate::connection::{Close, Direction, Warning};
use crate::diagnosis::live::{Acts, HostFacts, LiveConnection, Observed};
use crate::diagnosis::{DiagnosedConnection, Explanation, NoAnswer, OfDirection, PacketCause};
use crate::limit::truth::TruthInterval;
use crate::limit::{Candidate, Limit};
use crate::schema::RunRow;
use crate::{Analyzer, Config};
use fullpipe_model::limit::End;
use fullpipe_model::observe::{PeerSite, PodName, Process};
use fullpipe_model::observe::{Phase, Reason, Sample, SocketMemory, TcpInfo, TcpState, Wait};
use fullpipe_model::units::{Bytes, Duration, Instant};
use serde_json::Value;

/// Two segments of data that are acknowledged, after a handshake.
fn connection() -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(Config::default());
    let mut push = |millis: u64, to_server: bool, flags: u8, numbers: [u32; 2], payload: u16| {
        let ends = [([192, 0, 2, 1], 40_000_u16), ([198, 51, 100, 2], 80)];
        let (from, to) = if to_server { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        let total = (40 + payload).to_be_bytes();
        let ip = [&[0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, 6, 0, 0][..], &from.0, &to.0]
            .concat();
        let ports = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
        let numbers = numbers.map(u32::to_be_bytes).concat();
        let packet = [&ip[..], &ports, &numbers, &[0x50, flags, 0x27, 0x10], &[0; 4]].concat();
        let at = Instant::from_nanos(1_000_000_000_000 + millis * 1_000_000);
        analyzer.push(at, LinkType::RAW, &packet, usize::from(40 + payload));
    };
    push(0, true, 2, [99, 0], 0);
    push(0, false, 0x12, [499, 100], 0);
    push(50, true, 0x10, [100, 500], 0);
    push(60, false, 0x10, [500, 100], 1000);
    push(60, false, 0x10, [1500, 100], 1000);
    push(110, true, 0x10, [100, 2500], 0);
    analyzer.finish().connections.remove(0).with_intervals()
}

fn sample() -> Sample {
    Sample {
        at: Instant::from_nanos(7),
        local: "192.0.2.1:1".parse().unwrap(),
        remote: "192.0.2.2:2".parse().unwrap(),
        state: TcpState::Established,
        rqueue: Bytes::new(1),
        wqueue: Bytes::new(2),
        congestion_control: Some("cubic".into()),
        info: Some(TcpInfo::default()),
        memory: Some(SocketMemory::default()),
        reasons: None,
    }
}

fn at<'v>(json: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(json, |value, part| value.get(part))
}

/// Each column has a value of its kind, in JSON the same one where the column says that it stands.
fn hold<'r, K: Record>(
    columns: &'static [Column<K>],
    row: &'r K::Row<'r>,
    json: &Value,
    direction: &str,
) {
    for column in columns {
        let (name, cell) = (column.name, (column.get)(row));
        assert_eq!(cell.kind(), column.kind, "{name}");
        assert!(!column.meaning.is_empty());
        let path = match column.place {
            Place::Everywhere => name.to_owned(),
            Place::At(path) | Place::Json(path) => path.to_owned(),
            Place::InDirection(path) => format!("{direction}.{path}"),
            Place::Rows => continue,
        };
        let cell = serde_json::to_value(&cell).unwrap();
        match at(json, &path) {
            Some(value) => assert_eq!(&cell, value, "{name}, in JSON {path}"),
            None => assert!(
                !column.null.is_empty() && cell.is_null(),
                "{name}: {path} is not in {json}"
            ),
        }
    }
}

/// No two names are one, or one the plural of another.
fn distinct<K: Record>(columns: &[Column<K>]) {
    let mut names: Vec<&str> =
        columns.iter().map(|column| column.name.trim_end_matches('s')).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "{names:?}");
}

#[test]
fn names_are_distinct() {
    distinct(RUNS);
    distinct(SCENARIOS);
    distinct(CONNECTIONS);
    distinct(PACKETS);
    distinct(INTERVALS);
    distinct(WHOLES);
    distinct(FINDINGS);
    distinct(SAMPLES);
    distinct(LIVE_CONNECTIONS);
    distinct(TRUTH_INTERVALS);
    distinct(CAPTURE_PROBLEMS);
    distinct(WORKLOADS);
}

#[test]
fn a_run_in_json_is_its_table_in_order() {
    let row = RunRow { notes: vec!["a".into()], law_term: Some(Limit::Link), ..RunRow::default() };
    let json = serde_json::to_string(&row).unwrap();
    hold(RUNS, &row, &serde_json::from_str(&json).unwrap(), "");
    let mut rest = json.as_str();
    let mut count = 0;
    for column in RUNS.iter().filter(|column| column.place != Place::Rows) {
        let key = format!("\"{}\":", column.name);
        rest = rest.split_once(&key).unwrap_or_else(|| panic!("{key} in its place")).1;
        count += 1;
    }
    let keys = serde_json::from_str::<serde_json::Map<_, _>>(&json).unwrap().len();
    assert_eq!(keys, count, "a key of the row has no column");
    assert_eq!(serde_json::from_str::<RunRow>(&json).unwrap(), row);
    assert_eq!(serde_json::from_str::<RunRow>("{}").unwrap().schema, Version::unsaid());
}

#[test]
fn an_interval_of_truth_in_json_is_its_table() {
    let time = Duration::from_millis(10);
    let interval = TruthInterval {
        local: "192.0.2.1:80".parse().unwrap(),
        remote: "192.0.2.2:4000".parse().unwrap(),
        start: Instant::from_nanos(7),
        length: time,
        limits: vec![Candidate { limit: Limit::Link, share: 1.0 }],
        waits: vec![Wait { reason: Reason::CongestionWindow, phase: Phase::AfterLoss, time }],
        link_busy: Some(1.0),
        unread: None,
    };
    hold(TRUTH_INTERVALS, &interval, &serde_json::to_value(&interval).unwrap(), "");
}

#[test]
fn a_connection_in_json_is_its_table() {
    let connection = connection();
    let json = serde_json::to_value(&connection).unwrap();
    let rows: Vec<_> = connection_rows("x.pcap", &connection).collect();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        hold(CONNECTIONS, row, &json, row.direction.name());
    }
    let diagnosis = connection.bulk().unwrap();
    let direction = Direction::ServerToClient;
    let interval = OfDirection { direction, what: &diagnosis.verdict.intervals[0] };
    hold(INTERVALS, &interval, &serde_json::to_value(&interval).unwrap(), "");
    for finding in connection.findings().iter() {
        hold(FINDINGS, finding, &serde_json::to_value(finding).unwrap(), "");
    }
}

#[test]
fn a_sub_cause_in_json_is_its_table() {
    let time = Duration::from_secs(3);
    let unanswered = NoAnswer { attempts: 3, time, is_half_open: false };
    let direction = Direction::ClientToServer;
    let row = OfDirection { direction, what: Explanation::from(PacketCause::NoAnswer(unanswered)) };
    let claim = crate::finding::words::sub_cause(&row.what.sub_cause);
    assert!(claim.contains("3 times in 3 s"), "{claim}");
    hold(SUB_CAUSES, &row, &serde_json::to_value(&row).unwrap(), "");
}

#[test]
fn a_sample_in_json_is_its_table() {
    let sample = sample();
    hold(SAMPLES, &sample, &serde_json::to_value(&sample).unwrap(), "");
    let bare = Sample { congestion_control: None, info: None, memory: None, ..sample };
    hold(SAMPLES, &bare, &serde_json::to_value(&bare).unwrap(), "");
}

#[test]
fn a_live_connection_in_json_is_its_table() {
    let sample = |n: u64| {
        let info = TcpInfo {
            bytes_acked: Some(Bytes::new(n * 100_000)),
            rtt: Duration::from_millis(20),
            snd_mss: Bytes::new(1448),
            busy_time: Some(Duration::from_millis(n * 10)),
            rwnd_limited: Some(Duration::ZERO),
            sndbuf_limited: Some(Duration::ZERO),
            ..TcpInfo::default()
        };
        Sample { at: Instant::from_nanos(n * 10_000_000), info: Some(info), ..sample() }
    };
    let samples: Vec<Sample> = (0..50).map(sample).collect();
    let seen = Observed {
        role: End::Sender,
        samples: &samples,
        other: &[],
        asked: None,
        settings: None,
        host: HostFacts::default(),
    };
    let process = Process {
        pid: 7,
        name: "nginx".into(),
        command: "nginx -g x".into(),
        cgroup: Some("/a".into()),
        container: None,
        pod: None,
    };
    let answer = seen.answer().unwrap();
    assert!(answer.lifetime.is_some());
    let site = |region: Option<&str>| PeerSite {
        site: "fra1".into(),
        provider: None,
        region: region.map(str::to_owned),
    };
    for (process, peer_site) in
        [(Some(process), Some(site(Some("eu")))), (None, Some(site(None))), (None, None)]
    {
        let (answer, namespace) = (answer.clone(), "host".into());
        let connection = LiveConnection { answer, namespace, process, uid: 0, peer_site };
        let json = serde_json::to_value(&connection).unwrap();
        let row = LiveRow { looked: Instant::from_nanos(7), connection: &connection };
        hold(LIVE_CONNECTIONS, &row, &json, "");
        // Whatever is in JSON is a column, or one of the parts that have tables of their own.
        const PARTS: [&str; 4] = ["causes", "findings", "path", "lifetime"];
        let named: Vec<&str> = LIVE_CONNECTIONS
            .iter()
            .map(|column| match column.place {
                Place::At(path) | Place::Json(path) => path.split('.').next().unwrap(),
                _ => column.name,
            })
            .collect();
        for key in json.as_object().unwrap().keys() {
            assert!(PARTS.contains(&key.as_str()) || named.contains(&key.as_str()), "{key}");
        }
    }
}

/// Of a workload, of one whose process is hidden, and of the whole host.
#[test]
fn rows_of_workloads_say_what_they_are_of() {
    use crate::diagnosis::live::{WorkloadHour, WorkloadPart, WorkloadSum};
    let part = WorkloadPart {
        workload: Some("nginx.service".into()),
        pod: Some(PodName { namespace: "shop".into(), name: "web-1".into() }),
        process: Some("nginx".into()),
        port: Some(443),
        site: Some(PeerSite { site: "fra1".into(), provider: None, region: Some("eu".into()) }),
        role: "sender",
        owner: "client_host",
        cause: "receive_window",
    };
    let hidden = WorkloadPart {
        workload: None,
        pod: None,
        process: None,
        port: None,
        site: None,
        ..part.clone()
    };
    let second = Duration::from_secs;
    let sum =
        WorkloadSum { time: second(3), lost: second(2), bytes: Bytes::new(5), watched: second(60) };
    let absent = |of: Option<WorkloadPart>, host: Option<&str>| -> Vec<&str> {
        let hour = Instant::from_nanos(7);
        let hour = WorkloadHour { host: host.map(Into::into), hour, of };
        let row = WorkloadRow { hour: &hour, sum: &sum };
        let cells = WORKLOADS.iter().map(|column| (column, (column.get)(&row)));
        let held = cells.inspect(|(column, cell)| assert_eq!(cell.kind(), column.kind));
        let absent = held.filter(|(column, cell)| {
            let is_absent = serde_json::to_value(cell).unwrap().is_null();
            assert!(!is_absent || !column.null.is_empty(), "{}", column.name);
            is_absent
        });
        absent.map(|(column, _)| column.name).collect()
    };
    assert_eq!(absent(Some(part), Some("h1")), ["peer_provider", "watched_us"]);
    assert_eq!(absent(None, None).len(), WORKLOADS.len() - 4);
    let of_hidden = absent(Some(hidden), Some("h1"));
    assert!(of_hidden.contains(&"workload") && !of_hidden.contains(&"cause"), "{of_hidden:?}");
}

#[test]
fn stable_names_are_those_of_json() {
    fn same(name: &str, value: impl serde::Serialize) {
        assert_eq!(serde_json::to_value(value).unwrap(), name);
    }
    for direction in [Direction::ClientToServer, Direction::ServerToClient] {
        same(direction.name(), direction);
    }
    for acts in [Acts::Here, Acts::Peer, Acts::Path, Acts::Nobody, Acts::Unknown] {
        same(acts.name(), acts);
    }
    for close in [
        Close::Open,
        Close::HalfClosed,
        Close::Finished,
        Close::ResetByClient,
        Close::ResetByServer,
    ] {
        same(close.name(), close);
    }
    for warning in Warning::ALL {
        same(warning.name(), warning);
    }
    use crate::connection::Place;
    for place in [Place::Client, Place::Server, Place::Between, Place::Unknown] {
        same(place.name(), place);
    }
}

#[test]
fn csv_is_quoted_and_has_a_cell_for_each_name() {
    let connection = connection();
    let mut line = String::new();
    let rows: Vec<_> = connection_rows("a, \"b\".pcap", &connection).collect();
    csv_line(CONNECTIONS, &rows[1], &mut line);
    assert!(
        line.starts_with(
            "2,\"a, \"\"b\"\".pcap\",0,192.0.2.1:40000,198.51.100.2:80,server_to_client,"
        ),
        "{line}"
    );
    assert!(line.ends_with('\n'));
    line.clear();
    csv_line(CONNECTIONS, &ConnectionRow { file: "x", ..rows[1] }, &mut line);
    assert_eq!(line.split(',').count(), csv_header(CONNECTIONS).split(',').count());
}

/// The columns of a connection's row before version 2 said its version.
const CONNECTIONS_1: &str = "file,id,client,server,direction,start_ns,duration_us,handshake_rtt_us,close,completeness,\
    captured_at,captured_at_confidence,packets,wire_bytes,payload_bytes,unique_payload_bytes,goodput_bps,\
    goodput_peak_bps,rtt_count,rtt_min_us,rtt_p50_us,rtt_p95_us,rtt_p99_us,rtt_max_us,window_scale,window_min_bytes,\
    window_p50_bytes,window_max_bytes,in_flight_max_bytes,retransmission,fast_retransmission,\
    spurious_retransmission,rto,out_of_order,duplicate_ack,zero_window,zero_window_probe,zero_window_probe_ack,\
    window_full,window_update,keep_alive,keep_alive_ack,lost_segment,ack_lost_segment,reused_ports,tfo_syn,tfo_ack,\
    tfo_ignored,duplicate_packet,lost_segments,spurious_retransmissions,reordered_segments,congestion_experienced,\
    ecn_echo,congestion_window_reduced,advancing_acks,stretch_acks,delayed_acks,burst_max_packets,silence_max_us,\
    warnings,limited_by,limit_cause,limit_share,lost_us";

/// What version 2 renamed, and nothing else: whoever read version 1 finds every other column where
/// it was.
#[test]
fn the_changes_of_names_since_version_1_are_listed() {
    let now = csv_header(CONNECTIONS);
    let now: Vec<&str> = now.trim_end().split(',').collect();
    let renamed = |name: &str| {
        let change =
            RENAMED.iter().find(|change| change.of == "connection" && change.before == name);
        change.map_or(name.to_owned(), |change| change.after.to_owned())
    };
    let before: Vec<String> = CONNECTIONS_1.split(',').map(renamed).collect();
    assert_eq!(now[0], "schema", "new in version 2");
    assert_eq!(
        now[before.len() + 1..],
        [
            "limit_confidence",
            "timeout_wait_us",
            "sub_causes",
            "waited_for",
            "owner",
            "connect_us",
            "syn_retransmissions",
            "requests",
            "server_wait_us",
            "client_wait_us",
            "turns",
            "turns_us",
            "peer_gone_us",
            "last_wait_us",
            "tls_us",
            "protocol",
            "protocol_version",
            "tls_version",
            "tls_offered",
            "server_name",
            "alpn_offered",
            "alpn_chosen",
            "client_program",
            "server_program",
            "http2_data_bytes",
            "http2_streams",
            "http2_held_us",
            "http2_connection_window_bytes",
            "http2_connection_waited_us",
            "http2_waiting_stream",
            "http2_stream_window_bytes",
            "http2_stream_waited_us",
            "http2_stream_time_us",
        ],
        "new in version 2"
    );
    assert_eq!(
        now[1..=before.len()],
        before,
        "a column was renamed, moved or lost: list it in RENAMED, with the next version"
    );
}
