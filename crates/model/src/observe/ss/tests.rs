//! Logs of several versions of ss, by what their lines say.

use super::*;
use crate::observe::TcpInfo;
use crate::units::{Rate, Window};
use proptest::prelude::*;

fn read(text: &str) -> Result<SsLog, ParseSsError> {
    read_every(text, None)
}

fn read_every(text: &str, every: Option<Duration>) -> Result<SsLog, ParseSsError> {
    let mut reader = SsLogReader::new(every);
    text.lines().try_for_each(|line| reader.line(line))?;
    reader.finish()
}

fn info(sample: &Sample) -> &TcpInfo {
    sample.info.as_ref().unwrap()
}

const HEADER: &str =
    "State Recv-Q Send-Q Local Address:Port Peer Address:Port Process                         \n";
const ENDS: &str = "ESTAB 0      3947008 192.0.2.1:80 198.51.100.2:40000 ";
/// By iproute2 6.1.
const DETAILS: &str = "cubic wscale:7,10 rto:204 rtt:3.5/1.25 ato:40 mss:1448 pmtu:1500 rcvmss:536 \
    advmss:1448 cwnd:10 ssthresh:7 bytes_sent:5000 bytes_retrans:1448 bytes_acked:3000 \
    segs_out:7 segs_in:5 data_segs_out:6 send 33097143bps lastsnd:4 lastrcv:2000 lastack:8 \
    pacing_rate 39.7Mbps/1Gbps delivery_rate 12.5Kbps delivered:5 app_limited busy:120ms \
    rwnd_limited:60ms(50.0%) sndbuf_limited:12ms(10.0%) unacked:4 retrans:1/3 lost:2 sacked:1 \
    dsack_dups:1 reordering:9 rcv_space:14480 rcv_ssthresh:64088 notsent:90 minrtt:3.25 \
    snd_wnd:65536";

#[test]
fn each_field_is_where_the_kernel_has_it() {
    let two = format!("{HEADER}{ENDS}\n\t ts sack {DETAILS}\n");
    let log = read(&two).unwrap();
    assert_eq!(log.clock, SsClock::None);
    let [sample] = &log.samples[..] else { panic!("one socket") };
    assert_eq!(sample.wqueue, Bytes::new(3_947_008));
    assert_eq!(sample.congestion_control.as_deref(), Some("cubic"));
    let info = info(sample);
    assert_eq!((info.options, info.snd_wscale, info.rcv_wscale), (7, 7, 10));
    assert_eq!((info.rtt, info.rttvar), (Duration::from_micros(3500), Duration::from_micros(1250)));
    assert_eq!((info.snd_mss, info.pmtu), (Bytes::new(1448), Bytes::new(1500)));
    assert_eq!((info.snd_cwnd, info.snd_ssthresh), (10, 7));
    assert_eq!((info.unacked, info.retrans, info.total_retrans), (4, 1, 3));
    assert_eq!((info.lost, info.sacked), (2, 1));
    assert_eq!(info.bytes_acked, Some(Bytes::new(3000)));
    assert_eq!(info.bytes_received, Some(Bytes::ZERO), "ss prints no zero");
    assert_eq!(info.last_data_recv, Duration::from_secs(2));
    assert_eq!(info.pacing_rate, Some(Rate::from_bits_per_sec(39_700_000)));
    assert_eq!(info.max_pacing_rate, Some(Rate::from_bits_per_sec(1_000_000_000)));
    assert_eq!(info.delivery_rate, Some(Rate::from_bits_per_sec(12_500)));
    assert!(info.delivery_rate_app_limited);
    assert_eq!(info.busy_time, Some(Duration::from_millis(120)));
    assert_eq!(info.rwnd_limited, Some(Duration::from_millis(60)));
    assert_eq!(info.sndbuf_limited, Some(Duration::from_millis(12)));
    assert_eq!(
        (info.notsent_bytes, info.min_rtt),
        (Some(Bytes::new(90)), Some(Duration::from_micros(3250)))
    );
    assert_eq!(info.snd_wnd, Some(Window::new(Bytes::new(65_536))));
    assert_eq!(info.rcv_wnd, None, "this log shows no field so new");
    // One line (-O), with all that -e, -m and -p add.
    let more = "users:((\"a busy:9ms b\",pid=7,fd=3)) timer:(on,204ms,2) uid:1000 ino:5 sk:1 \
        cgroup:/x <-> skmem:(r1,rb131072,t2,tb87040,f3,w4,o5,bl6,d7) ts sack";
    let one = read(&format!("{HEADER}{ENDS} {more} {DETAILS}\n")).unwrap();
    let memory = one.samples[0].memory.unwrap();
    assert_eq!((memory.rcvbuf, memory.sndbuf), (Bytes::new(131_072), Bytes::new(87_040)));
    assert_eq!((memory.wmem_queued, memory.backlog), (Bytes::new(4), Bytes::new(6)));
    assert_eq!(memory.drops, Some(7));
    let from_timer = TcpInfo { retransmits: 2, ..info.clone() };
    assert_eq!(one.samples[0].info, Some(from_timer));
}

#[test]
fn what_is_left_out_is_zero_only_where_the_log_knows_the_field() {
    let old =
        format!("{ENDS}\n\t cubic wscale:7,7 rto:204 rtt:1/2 mss:1448 cwnd:10 bytes_acked:9\n");
    let log = read(&old).unwrap();
    assert_eq!(info(&log.samples[0]).bytes_received, Some(Bytes::ZERO));
    assert_eq!(
        (info(&log.samples[0]).busy_time, info(&log.samples[0]).notsent_bytes),
        (None, None)
    );
    // Another socket of the same log shows that its kernel has the counter.
    let busy = "ESTAB 0 0 192.0.2.1:80 198.51.100.2:40001\n\t cubic rto:204 busy:4ms\n";
    let log = read(&(old + busy)).unwrap();
    assert_eq!(info(&log.samples[0]).busy_time, Some(Duration::ZERO));
    assert_eq!(info(&log.samples[0]).notsent_bytes, Some(Bytes::ZERO));
    assert_eq!(info(&log.samples[0]).snd_wnd, None);
}

#[test]
fn stamps_are_what_date_prints() {
    let second = |line| stamp::read(line).map(|stamp| stamp.after(Instant::ZERO).as_nanos());
    // `date -u -d @1764464829`.
    let at = 1_764_464_829_000_000_000;
    for line in [
        "Sun Nov 30 01:07:09 UTC 2025",
        "Sun 30 Nov 2025 01:07:09 AM UTC",
        "2025-11-30T01:07:09+00:00",
        "2025-11-30 01:07:09",
        "2025-11-30T02:07:09+01:00",
        "2025-11-29T21:37:09-0330",
        "1764464829",
    ] {
        assert_eq!(second(line), Some(at), "{line}");
    }
    assert_eq!(second("2025-11-30T01:07:09,25+00:00"), Some(at + 250_000_000));
    assert_eq!(second("1764464829.123456789"), Some(at + 123_456_789));
    assert_eq!(second("Sun 30 Nov 2025 01:07:09 PM UTC"), Some(at + 12 * 3_600_000_000_000));
    // `date -u -d 2024-02-29 +%s`.
    assert_eq!(second("Thu Feb 29 00:00:00 UTC 2024"), Some(1_709_164_800_000_000_000));
    for line in ["", "12", "cubic rto:204", "01:70:09", "2025-13-01 00:00:00", "State Recv-Q"] {
        assert_eq!(second(line), None, "{line}");
    }
    let midnight = stamp::read("00:00:01.5").unwrap();
    let last = stamp::read("23:59:59").unwrap().after(Instant::ZERO);
    assert_eq!(midnight.after(last).since(last), Duration::from_millis(2500));
}

/// A look, with so much acknowledged.
fn look(acked: u64) -> String {
    format!("{HEADER}{ENDS}\n\t cubic rto:204 bytes_acked:{acked}\n")
}

#[test]
fn the_times_of_looks_are_their_stamps() {
    let text = format!("100000000.25\n{}100000000.75\n{}", look(1), look(2));
    let log = read(&text).unwrap();
    assert_eq!(log.clock, SsClock::Stamps);
    assert_eq!(log.samples[1].at.since(log.samples[0].at), Duration::from_millis(500));
    // A loop of `sleep 1` takes a little longer than a second, so a second is left out at times.
    let stamps = [0, 1, 2, 4, 5];
    let text: String =
        stamps.iter().map(|at| format!("{}\n{}", 100_000_000 + at, look(1 + at))).collect();
    let log = read(&text).unwrap();
    let steps = log.samples.windows(2).map(|pair| pair[1].at.since(pair[0].at));
    assert!(steps.eq([Duration::from_millis(1250); 4]));
    // What is no steady loop is left as it is.
    let text = format!(
        "{}\n{}{}\n{}{}\n{}",
        100_000_000,
        look(1),
        100_000_001,
        look(2),
        100_000_060,
        look(3)
    );
    let log = read(&text).unwrap();
    assert_eq!(log.samples[1].at.since(log.samples[0].at), Duration::from_secs(1));
}

/// What `ts FORMAT` prints for each line of `text`, all in the same second of 2025-11-30.
fn with_stamps_in_front(text: &str, second: u64, format: fn(u64) -> String) -> String {
    text.lines().map(|line| format!("{} {line}\n", format(second))).collect()
}

#[test]
fn stamps_in_front_of_lines_are_those_of_looks() {
    let formats: [fn(u64) -> String; 6] = [
        |second| format!("{}.250000", 1_764_460_800 + second),
        |second| format!("2025-11-30 00:00:{second:02}"),
        |second| format!("[2025-11-30T00:00:{second:02}.5]"),
        |second| format!("Nov 30 00:00:{second:02}"),
        |second| format!("Sun Nov 30 00:00:{second:02} UTC 2025:"),
        |second| format!("00:00:{second:02}"),
    ];
    for format in formats {
        for head in [HEADER, ""] {
            let looks = [0, 2, 4].map(|second| {
                let text = look(1000 + second).replace(HEADER, head);
                with_stamps_in_front(&text.replace("ESTAB", "tcp ESTAB"), second, format)
            });
            let (text, first) = (looks.concat(), format(0));
            assert!(is_log(text.as_bytes()), "{first}");
            let log = read(&text).unwrap();
            assert_eq!((log.clock, log.samples.len()), (SsClock::Stamps, 3), "{first}");
            let steps = log.samples.windows(2).map(|pair| pair[1].at.since(pair[0].at));
            assert!(steps.eq([Duration::from_secs(2); 2]), "{first}");
            assert_eq!(info(&log.samples[2]).bytes_acked, Some(Bytes::new(1004)), "{first}");
        }
    }
}

#[test]
fn a_look_at_several_sockets_is_one_though_each_line_has_a_stamp() {
    let at = |micros: u64| format!("{}.{micros:06} ", 1_764_460_800);
    let two = |from: u64, acked: u64| {
        format!(
            "{}{ENDS}\n{}\t cubic rto:204 bytes_acked:{acked}\n{}{}\n{}\t cubic rto:204\n",
            at(from),
            at(from + 100),
            at(from + 200),
            ENDS.replace(":80 ", ":81 "),
            at(from + 300),
        )
    };
    let log = read(&(two(0, 1) + &two(500_000, 2))).unwrap();
    let times: Vec<u64> = log.samples.iter().map(|one| one.at.as_nanos() % 1_000_000_000).collect();
    assert_eq!(times, [0, 0, 500_000_000, 500_000_000]);
}

#[test]
fn what_a_line_begins_with_is_no_stamp_where_the_rest_is_no_line_of_ss() {
    // `ss -H state established` begins with what waits to be read, here 100 MB.
    let ends = ENDS.replace("ESTAB 0 ", "123456789 ");
    let log = read(&format!("{ends}\n\t cubic rto:204\n")).unwrap();
    assert_eq!((log.clock, log.samples[0].rqueue), (SsClock::None, Bytes::new(123_456_789)));
    // What stands behind the time of a line of its own is no line of ss.
    for line in ["2025-11-30 01:07:09  UTC", "Sun Nov  2 01:07:09 UTC 2025", "01:07:09 AM"] {
        assert_eq!(stamped(line), None, "{line}");
        let log = read(&format!("{line}\n{}", look(1))).unwrap();
        assert_eq!((log.clock, log.samples.len()), (SsClock::Stamps, 1), "{line}");
    }
    let text = with_stamps_in_front("Welcome to Nov 30\n12 monkeys", 1, |_| "1764460800".into());
    assert!(!is_log(text.as_bytes()));
    assert_eq!(read(&text), Err(ParseSsError::NoSockets));
}

#[test]
fn without_stamps_the_user_says_how_far_looks_are_apart() {
    let text = look(1) + &look(2) + &look(3);
    let log = read_every(&text, Some(Duration::from_secs(2))).unwrap();
    assert_eq!((log.clock, log.samples.len()), (SsClock::Every, 3));
    assert_eq!(log.samples[2].at.as_nanos(), 4_000_000_000);
    // Without that, and without headers (-H), too, the last look is what is known.
    let log = read(&text.replace(HEADER, "")).unwrap();
    assert_eq!((log.clock, log.samples.len()), (SsClock::None, 1));
    assert_eq!(info(&log.samples[0]).bytes_acked, Some(Bytes::new(3)));
}

#[test]
fn ends_of_every_form_are_read_and_names_are_refused() {
    let ends = |local: &str| {
        let text = format!("ESTAB 0 0 {local} [2001:db8::2]:4000 cubic rto:204\n");
        read(&text).map(|log| log.samples[0].local.to_string())
    };
    assert_eq!(ends("[2001:db8::1]:80").unwrap(), "[2001:db8::1]:80");
    assert_eq!(ends("192.0.2.1%eth0:80").unwrap(), "192.0.2.1:80");
    assert_eq!(ends("[fe80::1]%eth0:80").unwrap(), "[fe80::1]:80");
    assert_eq!(ends("localhost:http"), Err(ParseSsError::Name("localhost:http".into())));
    let bare = read("0 5 192.0.2.1:80 192.0.2.2:4000\n\t cubic rto:204\n").unwrap();
    assert_eq!(bare.samples[0].state, TcpState::Established);
    let listens = "LISTEN 0 128 192.0.2.1:80 0.0.0.0:*\n\t cubic cwnd:10\n";
    assert_eq!(read(listens), Err(ParseSsError::NoSockets));
    assert_eq!(read(ENDS), Err(ParseSsError::NoDetails));
    let cut = format!("{ENDS}\n\t cubic rtt:1.5\n");
    assert_eq!(read(&cut), Err(ParseSsError::Value("rtt:1.5".into())));
}

#[test]
fn a_log_is_told_from_other_files() {
    for log in [HEADER.to_owned(), format!("Mon Nov 30 01:07:09 UTC 2026\n{}", look(1)), look(1)] {
        assert!(is_log(log.as_bytes()), "{log}");
    }
    let captures: [&[u8]; 4] =
        [&[0xd4, 0xc3, 0xb2, 0xa1], b"\n\r\r\n", b"{\"at_ns\":1}", b"snoop\0"];
    for other in captures {
        assert!(!is_log(other) && !could_be_log(other));
    }
    assert!(!is_log(b"some text\n") && !is_log(b""));
}

/// Words of ss in any order, with numbers and what does not belong there.
const WORDS: &str = "(1764464829.25 |Nov 30 01:07:09 |\\[2025-11-30 01:07:09\\] )?\
    ([\\t ]?(ESTAB|cubic|rtt:|busy:|skmem:\\(|timer:\\(on,|[0-9]{1,20}|\
    [0-9.:/,ms%()]{1,12}|192.0.2.1:80|\\PC{0,4}) ?){0,12}";

proptest! {
    /// Lines that look like those of ss, with what does not belong there.
    #[test]
    fn any_lines_are_read_or_refused(
        lines in proptest::collection::vec(WORDS, 0..12),
        every: Option<u64>,
    ) {
        let mut reader = SsLogReader::new(every.map(Duration::from_nanos));
        let is_read = lines.iter().all(|line| reader.line(line).is_ok());
        let count = reader.samples();
        if let (true, Ok(log)) = (is_read, reader.finish()) {
            prop_assert!(!log.samples.is_empty() && log.samples.len() <= count);
            // A sample's own line has the same bounds.
            for sample in &log.samples {
                let line = serde_json::to_string(sample).unwrap();
                prop_assert!(line.parse::<Sample>().is_ok() || sample.at.as_nanos() > 1 << 60);
            }
        }
    }

    #[test]
    fn any_text_is_a_log_or_not(text: String, bytes: Vec<u8>) {
        let _ = (is_log(text.as_bytes()), is_log(&bytes));
        let mut reader = SsLogReader::new(None);
        let _ = text.lines().map(|line| reader.line(line)).collect::<Vec<_>>();
        let _ = reader.finish();
    }
}
