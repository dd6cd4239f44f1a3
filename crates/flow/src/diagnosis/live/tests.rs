//! What a host says of a connection, by what it sees of it.

use super::*;
use crate::account::Cause as AccountCause;
use crate::limit::{Evidence, Interval, Pace, Source};
use fullpipe_model::law::KernelVersion;
use fullpipe_model::observe::{Egress, Qdisc, SocketMemory, TcpState};
use fullpipe_model::units::{Instant, Window};

const STEP: u64 = 10;

/// A sender that is sampled every 10 ms and carries 2 MB a round trip of 50 ms; the receive window
/// holds it unless `change` says otherwise.
pub(super) fn sender(change: impl Fn(u64, &mut TcpInfo, &mut SocketMemory)) -> Vec<Sample> {
    let at = |n: u64| {
        let mut info = TcpInfo {
            state: TcpState::Established,
            options: 7,
            snd_mss: Bytes::new(1448),
            advmss: Bytes::new(1448),
            rto: Duration::from_millis(250),
            rtt: Duration::from_millis(50),
            min_rtt: Some(Duration::from_millis(50)),
            snd_cwnd: 4000,
            unacked: 1380,
            bytes_acked: Some(Bytes::new(n * 400_000)),
            data_segs_out: Some((n * 276) as u32),
            notsent_bytes: Some(Bytes::new(500_000)),
            busy_time: Some(Duration::from_millis(n * STEP)),
            rwnd_limited: Some(Duration::from_millis(n * STEP)),
            sndbuf_limited: Some(Duration::ZERO),
            snd_wnd: Some(Window::new(Bytes::new(2_000_000))),
            ..TcpInfo::default()
        };
        let mut memory = SocketMemory {
            sndbuf: Bytes::new(4_194_304),
            wmem_queued: Bytes::new(3_000_000),
            drops: Some(0),
            ..SocketMemory::default()
        };
        change(n, &mut info, &mut memory);
        sample(n, info, memory)
    };
    (0..300).map(at).collect()
}

/// The receiver of the same data, whose window is as large as a round trip's data.
pub(super) fn receiver(change: impl Fn(&mut TcpInfo, &mut SocketMemory)) -> Vec<Sample> {
    let at = |n: u64| {
        let mut info = TcpInfo {
            state: TcpState::Established,
            options: 7,
            rcv_mss: Bytes::new(1448),
            advmss: Bytes::new(1448),
            min_rtt: Some(Duration::from_millis(50)),
            rcv_rtt: Duration::from_millis(50),
            rcv_wnd: Some(Window::new(Bytes::new(2_100_000))),
            bytes_received: Some(Bytes::new(n * 400_000)),
            data_segs_in: Some((n * 276) as u32),
            rcv_ooopack: Some(0),
            rcv_wscale: 10,
            ..TcpInfo::default()
        };
        let mut memory = SocketMemory {
            rcvbuf: Bytes::new(4_200_000),
            drops: Some(0),
            ..SocketMemory::default()
        };
        change(&mut info, &mut memory);
        sample(n, info, memory)
    };
    (0..300).map(at).collect()
}

fn sample(n: u64, info: TcpInfo, memory: SocketMemory) -> Sample {
    Sample {
        wqueue: Bytes::new(500_000),
        congestion_control: Some("cubic".into()),
        info: Some(info),
        memory: Some(memory),
        ..Sample::new(
            Instant::ZERO + Duration::from_millis(n * STEP),
            "192.0.2.1:80".parse().unwrap(),
            "198.51.100.2:4000".parse().unwrap(),
            TcpState::Established,
        )
    }
}

fn answer(role: End, samples: &[Sample], asked: Option<SocketOptions>) -> Answer {
    let settings = HostSettings::defaults(KernelVersion::new(6, 12));
    let seen = Observed {
        role,
        samples,
        other: &[],
        asked,
        settings: Some(&settings),
        host: HostFacts::default(),
    };
    seen.answer().unwrap()
}

fn names(answer: &Answer) -> Vec<&'static str> {
    answer.causes.iter().map(|cause| cause.sub_cause.name()).collect()
}

/// However sure the answer is: where no change is advised, nobody is told to act.
#[test]
fn who_must_act_has_something_to_do() {
    let samples = sender(|_, _, _| {});
    let seen = Observed {
        role: End::Sender,
        samples: &samples,
        other: &[],
        asked: None,
        settings: None,
        host: HostFacts::default(),
    };
    let mut advised = Vec::new();
    for percent in 0..=100 {
        let mut diagnosis = seen.diagnosis().unwrap();
        diagnosis.verdict.confidence = f64::from(percent) / 100.0;
        let (headline, verdict) = (diagnosis.headline(), &diagnosis.verdict);
        let causes = seen.causes(&headline, verdict, mean_goodput(verdict));
        let (acts, remedy) = seen.advice(&headline, &causes, &diagnosis.findings());
        let withheld = remedy.unwrap().is_evidence();
        assert_eq!(acts == Acts::Unknown, withheld, "{percent} %: {acts:?}, {remedy:?}");
        advised.push(!withheld);
    }
    assert!(advised.contains(&true) && advised.contains(&false), "{advised:?}");
}

#[test]
fn a_window_of_the_peer_is_the_peers_to_change() {
    let found = answer(End::Sender, &sender(|_, _, _| {}), None);
    assert_eq!((found.limit, found.acts), (Limit::ReceiveWindow, Acts::Peer));
    assert!(found.lost > Duration::from_secs(2), "{:?}", found.lost);
    assert!(found.held > Duration::from_secs(2), "{:?}", found.held);
    let life = found.lifetime.unwrap();
    assert_eq!(life.busy, life.rwnd_limited);
    let path = found.path.unwrap();
    assert_eq!((path.rtt, path.rate), (Duration::from_millis(50), None), "nothing shows the link");
    assert_eq!(path.sender.congestion_control.as_deref(), Some("cubic"));
    assert_eq!(path.receiver.window, Some(Window::new(Bytes::new(2_000_000))));
    // 400 kB every 10 ms are 320 Mbit/s.
    let ratio = found.goodput.as_f64() / 320e6;
    assert!((0.97..1.03).contains(&ratio), "{}", found.goodput);
}

/// ssh over 167 ms, as its sender sees it: 2 MiB under way, and a message of the peer each 10 ms.
fn ssh(change: impl Fn(u64, &mut TcpInfo)) -> Vec<Sample> {
    sender(|n, info, memory| {
        let rtt = Duration::from_millis(167);
        (info.rtt, info.min_rtt) = (rtt, Some(rtt));
        info.bytes_acked = Some(Bytes::new(n * 125_000));
        info.data_segs_out = Some((n * 87) as u32);
        info.data_segs_in = Some(n as u32);
        info.notsent_bytes = Some(Bytes::ZERO);
        info.rwnd_limited = Some(Duration::ZERO);
        info.snd_wnd = Some(Window::new(Bytes::new(8_000_000)));
        info.delivery_rate_app_limited = true;
        info.unacked = 1400 + (n % 40) as u32;
        memory.wmem_queued = Bytes::new(2_500_000);
        change(n, info);
    })
}

fn of_program(program: &str, samples: &[Sample]) -> Answer {
    let host = HostFacts { program, ..HostFacts::default() };
    let (role, other, asked, settings) = (End::Sender, &[][..], None, None);
    Observed { role, samples, other, asked, settings, host }.answer().unwrap()
}

#[test]
fn the_window_of_an_ssh_channel_is_told_of_its_program_and_is_the_receivers() {
    let plain = ssh(|_, _| {});
    let found = of_program("sshd", &plain);
    assert_eq!(names(&found), ["ssh_channel_window"], "{}", found.limit);
    assert_eq!((found.limit, found.acts), (Limit::ApplicationWindow, Acts::Peer));
    assert!(found.share > 0.9 && found.headline.limit == found.limit, "{:?}", found.limits);
    let parts = found.account.iter();
    let of_window =
        parts.filter(|part| part.cause == AccountCause::Transfer(Limit::ApplicationWindow));
    let of_window: Duration = of_window.map(|part| part.time).sum();
    assert!(of_window.as_secs_f64() > 0.9 * found.time.as_secs_f64(), "{:?}", found.account);
    let remedy = Remedy::Packets(crate::finding::PacketRemedy::LeaveSshChannel);
    assert_eq!(found.remedy, Some(remedy));
    // So `prove` rebuilds it.
    let path = found.path.unwrap();
    let granted = path.application_window.unwrap();
    assert_eq!(path.limited_by, Limit::ApplicationWindow);
    assert_eq!((granted.window.get(), granted.host), (2 << 20, End::Receiver));
    let other = of_program("nginx", &plain).path.unwrap();
    assert_eq!(other.application_window, None);
    // Another program, a window of TCP that is nearly full, half as much under way, no grants, loss.
    assert_eq!(names(&of_program("nginx", &plain)), [""; 0]);
    let full = Window::new(Bytes::new(2_200_000));
    for near_miss in [
        ssh(|_, info| info.snd_wnd = Some(full)),
        ssh(|_, info| info.unacked /= 2),
        ssh(|_, info| info.data_segs_in = Some(3)),
        ssh(|n, info| info.total_retrans = n as u32 / 100),
    ] {
        let found = names(&of_program("sshd", &near_miss));
        assert!(!found.contains(&"ssh_channel_window"), "{found:?}");
    }
}

#[test]
fn a_full_window_is_the_peers_to_change_beside_a_busy_shaper_of_this_host() {
    let tbf = |overlimits| Egress {
        device: "eth0".into(),
        qdiscs: vec![Qdisc {
            kind: "tbf".into(),
            handle: "1:".into(),
            rate: Some("400mbit".parse().unwrap()),
            loses: false,
            drops: 0,
            overlimits,
            classes: Vec::new(),
        }],
    };
    let (before, after, samples) = (tbf(5), tbf(900), sender(|_, _, _| {}));
    let host = HostFacts { egress: Some([&before, &after]), ..HostFacts::default() };
    let seen = Observed {
        role: End::Sender,
        samples: &samples,
        other: &[],
        asked: None,
        settings: None,
        host,
    };
    let found = seen.answer().unwrap();
    assert_eq!(names(&found), ["shaped_here"], "it carries 320 Mbit/s");
    assert_eq!((found.limit, found.acts), (Limit::ReceiveWindow, Acts::Peer));
    assert_eq!(found.remedy, Some(Remedy::GrowReceiveBuffer));
    // Where it is no more than a guess whether it was the window or the link, what the shaper
    // counted decides: here something can be changed.
    let diagnosis = seen.diagnosis().unwrap();
    let mut guess = diagnosis.headline();
    (guess.or, guess.confidence) = (Some(Limit::Link), 0.3);
    let (acts, remedy) = seen.advice(&guess, &found.causes, &diagnosis.findings());
    assert_eq!(acts, Acts::Here);
    assert!(!remedy.unwrap().is_evidence() && remedy != found.remedy, "{remedy:?}");
}

#[test]
fn a_window_without_a_scale_is_named() {
    let unscaled = |_: u64, info: &mut TcpInfo, _: &mut SocketMemory| {
        info.options = 3;
        info.snd_wnd = Some(Window::new(Bytes::new(65_000)));
    };
    let found = answer(End::Sender, &sender(unscaled), None);
    assert_eq!(names(&found), ["window_scale_missing"]);
    assert!(
        crate::finding::words::sub_cause(&found.causes[0].sub_cause)
            .contains("at most 10.49 Mbit/s over 50 ms"),
        "{}",
        crate::finding::words::sub_cause(&found.causes[0].sub_cause)
    );
}

#[test]
fn the_receivers_own_buffer_is_told_by_who_set_it() {
    let set = SocketOptions { sets_rcvbuf: Some(true), ..SocketOptions::default() };
    let free = SocketOptions { sets_rcvbuf: Some(false), ..SocketOptions::default() };
    for (rcvbuf, asked, name) in [
        (4_200_000, set, "receive_buffer_frozen"),
        (425_984, set, "receive_buffer_capped"),
        (6_291_456, free, "receive_buffer_at_its_largest"),
    ] {
        let samples = receiver(|_, memory| memory.rcvbuf = Bytes::new(rcvbuf));
        let found = answer(End::Receiver, &samples, Some(asked));
        assert_eq!((found.limit, found.acts), (Limit::ReceiveWindow, Acts::Here));
        assert_eq!(names(&found), [name]);
    }
    let clamped = SocketOptions { window_clamp: Some(Window::new(Bytes::new(900_000))), ..free };
    let found = answer(End::Receiver, &receiver(|_, _| {}), Some(clamped));
    assert_eq!(names(&found), ["window_clamped"]);
}

#[test]
fn the_senders_buffer_is_told_by_who_set_it() {
    let held = |_: u64, info: &mut TcpInfo, memory: &mut SocketMemory| {
        info.rwnd_limited = Some(Duration::ZERO);
        info.sndbuf_limited = info.busy_time;
        info.snd_wnd = Some(Window::new(Bytes::new(6_000_000)));
        memory.sndbuf = Bytes::new(200_000);
    };
    let set = SocketOptions { sets_sndbuf: Some(true), ..SocketOptions::default() };
    let found = answer(End::Sender, &sender(held), Some(set));
    assert_eq!((found.limit, found.acts), (Limit::SendBuffer, Acts::Here));
    assert_eq!(names(&found), ["send_buffer_frozen"]);
    // Twice what wmem_max (212,992 bytes by default) allows.
    let capped = |n: u64, info: &mut TcpInfo, memory: &mut SocketMemory| {
        held(n, info, memory);
        memory.sndbuf = Bytes::new(425_984);
    };
    let found = answer(End::Sender, &sender(capped), Some(set));
    assert_eq!(names(&found), ["send_buffer_capped"]);
    // 1380 segments are in flight.
    let lowat =
        SocketOptions { notsent_lowat: Some(Bytes::new(131_072)), ..SocketOptions::default() };
    let found = answer(End::Sender, &sender(held), Some(lowat));
    assert_eq!(names(&found), ["notsent_lowat"]);
    let largest = |n: u64, info: &mut TcpInfo, memory: &mut SocketMemory| {
        held(n, info, memory);
        memory.sndbuf = Bytes::new(4_194_304);
    };
    let found = answer(End::Sender, &sender(largest), None);
    assert_eq!(names(&found), ["send_buffer_at_its_largest"]);
}

#[test]
fn pacing_small_segments_timeouts_and_drops_are_named() {
    let idle = |n: u64, info: &mut TcpInfo, memory: &mut SocketMemory| {
        info.rwnd_limited = Some(Duration::ZERO);
        info.notsent_bytes = Some(Bytes::ZERO);
        info.snd_wnd = Some(Window::new(Bytes::new(6_000_000)));
        memory.wmem_queued = Bytes::ZERO;
        info.snd_mss = Bytes::new(536);
        info.total_rto = Some((n / 100) as u16);
        memory.drops = Some(n as u32);
    };
    let bound = Rate::from_bits_per_sec(330_000_000);
    let paced = SocketOptions { max_pacing_rate: Some(bound), ..SocketOptions::default() };
    let found = answer(End::Sender, &sender(idle), Some(paced));
    let found = names(&found);
    for name in ["paced_by_application", "small_segments", "timeouts", "dropped_on_arrival"] {
        assert!(found.contains(&name), "{name} in {found:?}");
    }
}

#[test]
fn a_pace_that_the_application_asked_for_is_no_full_link() {
    let interval = |n: u64, limit| Interval {
        start: Instant::from_nanos(n * 1_000_000_000),
        length: Duration::from_secs(1),
        candidates: vec![Candidate { limit, share: 1.0 }],
        evidence: Evidence::default(),
    };
    let limits = [Limit::Link, Limit::Link, Limit::Unknown, Limit::ReceiveWindow];
    let intervals = (0..).zip(limits).map(|(n, limit)| interval(n, limit)).collect();
    let rate = Rate::from_bits_per_sec(10_000_000);
    let told = with_asked_pace(&Verdict::new(Source::Capture, intervals), rate);
    assert_eq!((told.share(Limit::SenderApplication), told.share(Limit::Link)), (0.75, 0.0));
    assert_eq!(told.share(Limit::ReceiveWindow), 0.25, "that is shown");
    assert_eq!(told.pace, Some(Pace::Even(rate)));
}

#[test]
fn repairs_that_were_not_needed_are_the_work_of_reordering() {
    let repairs = |needless: u32| {
        move |n: u64, info: &mut TcpInfo, _: &mut SocketMemory| {
            info.rwnd_limited = Some(Duration::ZERO);
            info.snd_wnd = Some(Window::new(Bytes::new(60_000_000)));
            info.total_retrans = n as u32;
            info.dsack_dups = Some(n as u32 * needless / 10);
            info.bytes_retrans = Some(Bytes::new(n * 1448));
            info.snd_cwnd = 1380;
        }
    };
    let names = |needless: u32| -> Vec<&'static str> {
        let samples = sender(repairs(needless));
        let seen = Observed {
            role: End::Sender,
            samples: &samples,
            other: &[],
            asked: None,
            settings: None,
            host: HostFacts::default(),
        };
        let verdict = seen.diagnosis().unwrap().verdict;
        let causes = cause::causes(&seen, Limit::CongestionWindow(Cause::Loss), &verdict);
        causes.iter().map(|cause| cause.name()).collect()
    };
    assert_eq!(names(9), ["reordering"]);
    assert_eq!(names(1), [""; 0], "a tenth was not needed");
}

#[test]
fn a_window_that_starts_anew_after_pauses_is_named_only_where_the_setting_is_on() {
    let bursts = |n: u64, info: &mut TcpInfo, _: &mut SocketMemory| {
        info.rwnd_limited = Some(Duration::ZERO);
        let pauses = n % 100 > 60;
        info.last_data_sent = Duration::from_millis(if pauses { (n % 100 - 60) * STEP } else { 0 });
        info.snd_cwnd = if n % 100 < 5 { 10 } else { 1000 };
    };
    let samples = sender(bursts);
    let found = answer(End::Sender, &samples, None);
    assert!(names(&found).contains(&"idle_restart"), "{:?}", names(&found));
    let settings = HostSettings {
        tcp_slow_start_after_idle: false,
        ..HostSettings::defaults(KernelVersion::new(6, 12))
    };
    let seen = Observed {
        role: End::Sender,
        samples: &samples,
        other: &[],
        asked: None,
        settings: Some(&settings),
        host: HostFacts::default(),
    };
    assert!(!names(&seen.answer().unwrap()).contains(&"idle_restart"));
}

#[test]
fn every_limit_has_somebody_to_act_or_says_why_not() {
    for limit in Limit::ALL {
        let (here, there) =
            (Acts::against(limit, End::Sender), Acts::against(limit, End::Receiver));
        // What one end does the other cannot.
        assert_eq!(here == Acts::Here, there == Acts::Peer, "{limit}");
        assert_eq!(here == Acts::Peer, there == Acts::Here, "{limit}");
    }
}

#[test]
fn one_sample_is_no_answer() {
    let samples = sender(|_, _, _| {});
    let settings = HostSettings::defaults(KernelVersion::new(6, 12));
    let seen = Observed {
        role: End::Sender,
        samples: &samples[..1],
        other: &[],
        asked: None,
        settings: Some(&settings),
        host: HostFacts::default(),
    };
    assert_eq!(seen.answer(), None);
}
