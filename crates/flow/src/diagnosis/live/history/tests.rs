use super::*;
use crate::limit::Limit;
use fullpipe_model::observe::{Process, TcpInfo, TcpState};
use fullpipe_model::units::{Bytes, Duration, Window};
use proptest::prelude::*;

pub(crate) const OFFSET: ClockOffset = ClockOffset::new(Duration::from_secs(1_700_000_000));

pub(crate) fn second(second: u64) -> Instant {
    Instant::from_nanos(second * 1_000_000_000)
}

fn host(at: u64, boot: &str) -> String {
    let host =
        HostNote { at: second(at), offset: OFFSET, boot: boot.into(), ..HostNote::default() };
    host.to_string()
}

/// A sender whose peer's window holds it nine tenths of its time.
fn sample(at: u64) -> Sample {
    let millis = Duration::from_millis;
    let info = TcpInfo {
        state: TcpState::Established,
        rtt: millis(50),
        min_rtt: Some(millis(50)),
        snd_mss: Bytes::new(1448),
        snd_cwnd: 500,
        unacked: 45,
        snd_wnd: Some(Window::new(Bytes::new(65_536))),
        bytes_acked: Some(Bytes::new(at * 1_300_000)),
        bytes_received: Some(Bytes::ZERO),
        bytes_sent: Some(Bytes::new(at * 1_300_000)),
        data_segs_out: Some(at as u32 * 900),
        busy_time: Some(Duration::from_secs(at)),
        rwnd_limited: Some(millis(at * 900)),
        sndbuf_limited: Some(Duration::ZERO),
        ..TcpInfo::default()
    };
    let (local, remote) = (([192, 0, 2, 1], 80).into(), ([192, 0, 2, 2], 4000).into());
    Sample {
        wqueue: Bytes::new(500_000),
        info: Some(info),
        ..Sample::new(second(at), local, remote, TcpState::Established)
    }
}

fn note(at: u64, cookie: u64, process: Option<&str>) -> String {
    let first = sample(at);
    let process = process.map(|name| Process {
        pid: 7,
        name: name.into(),
        command: String::new(),
        cgroup: None,
        container: None,
        pod: None,
    });
    let socket = NotedSocket {
        namespace: "host".into(),
        namespace_inode: 1,
        cookie,
        uid: 0,
        process,
        egress: None,
        group: None,
    };
    let (at, local, remote) = (first.at, first.local, first.remote);
    let socket = Some(Box::new(socket));
    Note { at, local, remote, asked: None, settings: None, socket }.to_string()
}

/// A part with a socket's samples of these seconds.
pub(crate) fn part(
    boot: &str,
    seconds: std::ops::Range<u64>,
    process: Option<&str>,
) -> Vec<String> {
    let mut lines = vec![host(seconds.start, boot)];
    let looks = seconds.clone().map(|at| {
        let (at, length) = (second(at), Duration::from_secs(1));
        LookNote { at, length, connections: 5, busy: 2, kept: 1, ..LookNote::default() }.to_string()
    });
    lines.extend(looks);
    lines.extend(seconds.clone().map(|at| serde_json::to_string(&sample(at)).unwrap()));
    lines.push(note(seconds.end - 1, 9, process));
    lines
}

fn all(history: &History) -> Vec<PastAnswer> {
    history.answers_between(Instant::ZERO, Instant::from_nanos(u64::MAX), &mut |_| true)
}

fn history(from: u64, until: u64, parts: &[Vec<String>]) -> History {
    let mut history = History::new(OFFSET.calendar(second(from)), OFFSET.calendar(second(until)));
    for part in parts {
        part.iter().for_each(|line| history.line(line).unwrap());
        history.end_part();
    }
    history
}

#[test]
fn a_socket_goes_on_over_parts_and_is_answered_of_the_time_that_is_asked_about() {
    let parts =
        [part("a", 100..160, Some("nginx")), part("a", 160..220, None), part("a", 220..280, None)];
    let history = history(150, 230, &parts);
    let [answer] = &all(&history)[..] else { panic!("one socket") };
    let times: Vec<u64> =
        answer.samples.iter().map(|one| one.at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(times, (150..=230).collect::<Vec<u64>>());
    let connection = &answer.connection;
    assert_eq!(connection.answer.limit, Limit::ReceiveWindow);
    assert!(connection.answer.share >= 0.9, "{}", connection.answer.share);
    assert_eq!(connection.answer.time, Duration::from_secs(80));
    assert_eq!(connection.process.as_ref().unwrap().name, "nginx", "it was known once");
    assert_eq!(history.looks().len(), 81);
    assert_eq!(history.looks()[0].0, OFFSET.calendar(second(150)));
}

#[test]
fn after_a_boot_the_same_numbers_are_of_another_socket() {
    let history = history(0, 1000, &[part("a", 100..160, None), part("b", 20..60, None)]);
    assert_eq!(all(&history).len(), 2);
}

#[test]
fn samples_without_a_note_or_a_clock_are_nobodys() {
    let mut cut = part("a", 100..160, None);
    cut.pop();
    assert!(all(&history(0, 1000, &[cut])).is_empty());
    let mut no_host = part("a", 100..160, None);
    no_host.remove(0);
    let history = history(0, 1000, &[no_host]);
    assert!(all(&history).is_empty() && history.looks().is_empty());
}

#[test]
fn every_kind_of_line_is_read_as_it_is_written() {
    let look = LookNote {
        at: second(3),
        length: Duration::from_secs(1),
        limits: vec![NotedTime { limit: Limit::Link, time: Duration::from_micros(7) }],
        lost: Duration::from_micros(5),
        ..LookNote::default()
    };
    assert_eq!(look.to_string().parse(), Ok(HistoryLine::Look(look)));
    let holder = Some(NotedHolder { process: "nginx 7".into(), memory: Bytes::new(3) });
    let host = HostNote {
        at: second(3),
        offset: OFFSET,
        host: "h1".into(),
        boot: "x".into(),
        kernel: "6.12".parse().ok(),
        vendor: "QEMU".into(),
        counters: [("tcp PruneCalled".to_string(), 4)].into(),
        memory: Some(NotedMemory { held: Bytes::new(8), bound: Bytes::new(9), holder }),
        offloads_off: vec![("eth0".into(), "tcp-segmentation-offload".into())],
        is_blind: true,
    };
    assert_eq!(host.to_string().parse(), Ok(HistoryLine::Host(Box::new(host))));
    assert!("{\"at_ns\":1}".parse::<HistoryLine>().is_err());
    let line = look_line();
    assert!(fullpipe_model::observe::is_line(line.as_bytes()), "it is of a recording: {line}");
}

fn look_line() -> String {
    LookNote { at: second(1), ..LookNote::default() }.to_string()
}

proptest! {
    /// Whatever stands in a part, it is read or refused, and what was read has answers.
    #[test]
    fn any_line_is_taken_or_refused(
        lines in proptest::collection::vec((0_usize..130, 0_usize..400, "\\PC{0,3}"), 0..60),
    ) {
        let good = part("a", 100..160, Some("nginx"));
        let mut history = History::new(Instant::ZERO, Instant::from_nanos(u64::MAX));
        for (at, cut, into) in lines {
            let mut line = good[at % good.len()].clone();
            let place = line.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(line.len());
            line.insert_str(place, &into);
            let _ = history.line(&line);
        }
        history.end_part();
        for one in all(&history) {
            prop_assert!(one.connection.answer.share <= 1.0);
        }
    }
}
