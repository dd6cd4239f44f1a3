//! Each limit as a sender's kernel shows it, with a near miss for each.

use super::*;
use crate::limit::judge::Opinion;
use fullpipe_model::observe::{CongestionState, SocketMemory, TcpState};
use fullpipe_model::units::Window;

/// A socket that is sampled every 10 ms. It sends at 40 MB/s over a path of 50 ms, and nothing is
/// scarce.
struct Socket {
    info: TcpInfo,
    memory: SocketMemory,
    rqueue: Bytes,
}

const STEP: u64 = 10;

fn series(count: u64, mut change: impl FnMut(u64, &mut Socket)) -> Vec<Sample> {
    let socket_of = |n: u64| Socket {
        info: TcpInfo {
            state: TcpState::Established,
            snd_mss: Bytes::new(1448),
            rtt: Duration::from_millis(50),
            min_rtt: Some(Duration::from_millis(50)),
            snd_cwnd: 4000,
            snd_ssthresh: 3000,
            unacked: 1380,
            bytes_acked: Some(Bytes::new(n * 400_000)),
            notsent_bytes: Some(Bytes::new(500_000)),
            busy_time: Some(Duration::from_millis(n * STEP)),
            rwnd_limited: Some(Duration::ZERO),
            sndbuf_limited: Some(Duration::ZERO),
            snd_wnd: Some(Window::new(Bytes::new(6_000_000))),
            ..TcpInfo::default()
        },
        memory: SocketMemory {
            sndbuf: Bytes::new(4_194_304),
            wmem_queued: Bytes::new(2_000_000),
            rcvbuf: Bytes::new(6_000_000),
            ..SocketMemory::default()
        },
        rqueue: Bytes::ZERO,
    };
    (0..count)
        .map(|n| {
            let mut socket = socket_of(n);
            change(n, &mut socket);
            let state = socket.info.state;
            Sample {
                rqueue: socket.rqueue,
                info: Some(socket.info),
                memory: Some(socket.memory),
                ..Sample::new(
                    Instant::ZERO + Duration::from_millis(n * STEP),
                    "192.0.2.1:80".parse().unwrap(),
                    "192.0.2.2:4000".parse().unwrap(),
                    state,
                )
            }
        })
        .collect()
}

fn millis(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

/// Asserts what the rules decide alone: series like these are not what the trained judge learnt
/// from.
#[track_caller]
fn assert_limit(sender: &[Sample], receiver: &[Sample], limit: Limit) -> Verdict {
    let interval = Duration::from_millis(50);
    let (_, intervals) = by_rules(sender, receiver, interval, PathHint::default());
    let verdict = Verdict::new(Source::Samples, intervals);
    let steady = verdict.steadily_limited_by();
    assert!(steady.limit == limit && steady.share > 0.8, "{:?}", verdict.steady);
    verdict
}

#[test]
fn receive_window_by_the_counter() {
    let sender = series(200, |n, s| s.info.rwnd_limited = millis(n * STEP * 95 / 100));
    let verdict = assert_limit(&sender, &[], Limit::ReceiveWindow);
    assert_eq!(verdict.source, Source::Samples);
    assert!((verdict.share(Limit::ReceiveWindow) - 0.95).abs() < 0.06);
}

#[test]
fn receive_window_closed_by_an_application_that_does_not_read() {
    let sender = series(200, |n, s| s.info.rwnd_limited = millis(n * STEP));
    let unread = series(200, |_, s| s.memory.rmem_alloc = Bytes::new(5_000_000));
    assert_limit(&sender, &unread, Limit::ReceiverApplication);
    // Near miss: only as much is unread as an application reads in a moment.
    let read = series(200, |_, s| s.memory.rmem_alloc = Bytes::new(500_000));
    assert_limit(&sender, &read, Limit::ReceiveWindow);
    // Without the receiver's samples, the window that never opens again is the evidence.
    let closed = series(200, |n, s| {
        s.info.rwnd_limited = millis(n * STEP);
        s.info.snd_wnd = Some(Window::new(Bytes::new(if n < 20 { 6_000_000 } else { 100_000 })));
    });
    assert_limit(&closed, &[], Limit::ReceiverApplication);
}

#[test]
fn send_buffer_by_the_counter_and_by_the_full_queue() {
    let counted = series(200, |n, s| s.info.sndbuf_limited = millis(n * STEP));
    assert_limit(&counted, &[], Limit::SendBuffer);
    // The counter stands still while the writer copies; the queue is full and nothing waits to be
    // sent.
    let full = |_: u64, s: &mut Socket| {
        s.info.notsent_bytes = Some(Bytes::ZERO);
        s.memory.wmem_queued = Bytes::new(3_500_000);
    };
    assert_limit(&series(200, full), &[], Limit::SendBuffer);
    // Near miss: nothing waits, but the queue has room, so the application is slow.
    let slow = |_: u64, s: &mut Socket| {
        s.info.notsent_bytes = Some(Bytes::ZERO);
        s.memory.wmem_queued = Bytes::new(900_000);
    };
    assert_limit(&series(200, slow), &[], Limit::SenderApplication);
}

#[test]
fn sender_application_that_is_not_busy() {
    let sender = series(200, |n, s| {
        s.info.busy_time = millis(n * STEP / 20);
        s.info.bytes_acked = Some(Bytes::new(n * 1000));
    });
    assert_limit(&sender, &[], Limit::SenderApplication);
}

#[test]
fn link_with_a_standing_queue_whatever_the_counters_say() {
    let sender = series(200, |n, s| {
        s.info.rtt = Duration::from_millis(90);
        s.info.unacked = 2480;
        s.info.rwnd_limited = millis(n * STEP);
    });
    assert_limit(&sender, &[], Limit::Link);
}

#[test]
fn near_miss_a_long_round_trip_that_delivers_less_is_no_queue_of_ours() {
    // The round trip doubles in every other second, and delivery falls with it. Only the window is
    // constant.
    let mut acked = 0;
    let sender = series(400, |n, s| {
        let slow = n / 100 % 2 == 1;
        acked += if slow { 200_000 } else { 400_000 };
        s.info.bytes_acked = Some(Bytes::new(acked));
        s.info.rtt = Duration::from_millis(if slow { 100 } else { 50 });
        s.info.rwnd_limited = millis(n * STEP);
    });
    assert_limit(&sender, &[], Limit::ReceiveWindow);
}

#[test]
fn near_miss_bursts_from_a_send_buffer_queue_for_a_moment() {
    let sender = series(200, |n, s| {
        s.info.rtt = Duration::from_millis(54);
        s.info.unacked = if n % 3 == 0 { 1000 } else { 1500 };
        s.info.notsent_bytes = Some(Bytes::ZERO);
        s.memory.wmem_queued = Bytes::new(3_500_000);
    });
    assert_limit(&sender, &[], Limit::SendBuffer);
}

#[test]
fn link_of_a_paced_sender_without_a_queue() {
    // BBR: data to send, room in both windows, delivery flat.
    assert_limit(&series(200, |_, _| ()), &[], Limit::Link);
}

#[test]
fn slow_start_while_delivery_doubles() {
    let sender = series(40, |n, s| {
        s.info.bytes_acked = Some(Bytes::new(1000 << (n / 3)));
        s.info.snd_ssthresh = i32::MAX as u32;
        s.info.unacked = s.info.snd_cwnd;
    });
    assert_limit(&sender, &[], Limit::CongestionWindow(Cause::SlowStart));
}

#[test]
fn congestion_window_after_loss() {
    // There are too few segments for the judge, which would take losses at an even rate for a
    // policer's.
    let sender = series(400, |n, s| {
        s.info.bytes_acked = Some(Bytes::new(n * 100));
        s.info.total_retrans = (n / 5) as u32;
        s.info.snd_cwnd = 1380;
    });
    assert_limit(&sender, &[], Limit::CongestionWindow(Cause::Loss));
}

#[test]
fn loss_behind_a_full_small_window() {
    // The kernel counts the window, but the data in it waits for the timer.
    let sender = |every: u64| {
        series(400, |n, s| {
            s.info.rwnd_limited = millis(n * STEP);
            s.info.snd_wnd = Some(Window::new(Bytes::new(2_000_000)));
            s.info.bytes_acked = Some(Bytes::new(n * 400_000 / every));
            s.info.total_retrans = (n / 5) as u32;
        })
    };
    assert_limit(&sender(4), &[], Limit::CongestionWindow(Cause::Loss));
    // Near miss: the repair comes without a pause, and a whole window passes in each round trip.
    assert_limit(&sender(1), &[], Limit::ReceiveWindow);
}

#[test]
fn a_hint_of_the_rate_settles_it() {
    let sender = series(200, |n, s| s.info.rwnd_limited = millis(n * STEP));
    let hint = PathHint { rate: Some(Rate::from_bits_per_sec(330_000_000)), rtt: None };
    let verdict = from_samples(&sender, &[], Duration::from_millis(50), hint);
    assert_eq!(verdict.limited_by().limit, Limit::Link);
}

#[test]
fn samples_without_info_or_out_of_order_are_survived() {
    let mut sender = series(50, |_, _| ());
    sender.iter_mut().step_by(3).for_each(|sample| sample.info = None);
    sender.swap(10, 20);
    let verdict = from_samples(&sender, &sender, Duration::from_millis(50), PathHint::default());
    assert!(verdict.shares.iter().all(|candidate| candidate.share.is_finite()));
    assert_eq!(
        from_samples(&[], &[], Duration::ZERO, PathHint::default()).limited_by().limit,
        Limit::Unknown
    );
}

#[test]
fn a_recorded_sample_gives_the_same_verdict() {
    let sender = series(100, |n, s| s.info.sndbuf_limited = millis(n * STEP));
    let lines: Vec<String> =
        sender.iter().map(|sample| serde_json::to_string(sample).unwrap()).collect();
    assert!(
        lines[0].contains("\"rtt_us\":50000") && lines[0].contains("\"sndbuf_bytes\":4194304"),
        "{}",
        lines[0]
    );
    let recorded: Vec<Sample> =
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(recorded, sender);
}

/// A table that was trained with other traits would be ignored silently.
#[test]
fn the_committed_table_was_trained_with_these_traits() {
    let verdict = from_samples(&series(200, |_, _| ()), &[], MIN_INTERVAL, PathHint::default());
    let (possible, link) = (Possible::ALL, LinkEvidence::None);
    let case = Case { traits: verdict.traits, possible, link, judges_parts: true };
    assert!(Opinion::of(Source::Samples, &case.traits, case.possible).is_some());
}

/// The counters are those of a connection's whole life, which may have been over long ago.
#[test]
fn a_short_transfer_says_nothing_of_the_silence_after_it() {
    let sampled = |ago| {
        let samples = series(100, |_, socket| {
            let info = &mut socket.info;
            (info.data_segs_out, info.data_segs_in) = (Some(40), Some(1));
            (info.unacked, info.notsent_bytes) = (0, Some(Bytes::ZERO));
            info.bytes_acked = Some(Bytes::new(40 * 1448));
            info.busy_time = millis(60);
            // A flight of 20 segments each round trip.
            info.delivery_rate = Bytes::new(20 * 1448).per(Duration::from_millis(50));
            info.last_data_recv = Duration::from_millis(ago);
        });
        from_samples(&samples, &[], Duration::from_millis(50), PathHint::default())
    };
    let just_now = sampled(60);
    assert_eq!(just_now.limited_by().limit, Limit::CongestionWindow(Cause::SlowStart));
    assert!(just_now.time < Duration::from_millis(200), "{}", just_now.time);
    for ago in [1000, 3_600_000] {
        let shares = sampled(ago).shares;
        assert!(shares.is_empty(), "{ago} ms ago: {shares:?}");
    }
}

/// Whether the samples prove a full link: 40 MB/s for two seconds, by a socket that `change` makes.
fn is_proven(change: impl FnMut(u64, &mut Socket)) -> bool {
    let sender = series(200, change);
    let (spans, intervals) = by_rules(&sender, &[], Duration::from_millis(50), PathHint::default());
    is_full(&spans, &intervals, PathHint::default())
}

/// A window that is full of what waits in a queue: 65 ms on a path of 50, so 2.6 MB in flight, where
/// the path holds 2.
fn queued(n: u64, s: &mut Socket) {
    s.info.rtt = Duration::from_millis(65);
    s.info.unacked = 1796;
    s.info.snd_wnd = Some(Window::new(Bytes::new(2_600_000)));
    s.info.rwnd_limited = millis(n * STEP);
}

#[test]
fn a_queue_that_stands_is_a_full_link_whatever_else_is_full() {
    assert!(is_proven(queued), "the receive window is full, too");
    assert!(is_proven(|n, s| {
        queued(n, s);
        (s.info.rwnd_limited, s.info.sndbuf_limited) = (millis(0), millis(n * STEP));
    }));
    // Near misses: a reader of blocks delays its ACKs by a tenth of the round trip; a blocked writer
    // lets what is in flight fall to less than the path holds; the window closes; the application
    // pauses.
    assert!(!is_proven(|n, s| {
        queued(n, s);
        s.info.rtt = Duration::from_millis(55);
    }));
    assert!(!is_proven(|n, s| {
        queued(n, s);
        s.info.unacked = if n % 3 == 0 { 1100 } else { 1796 };
    }));
    assert!(!is_proven(|n, s| {
        queued(n, s);
        if n % 20 >= 10 {
            s.info.snd_wnd = Some(Window::new(Bytes::new(1_500_000)));
        }
    }));
    assert!(!is_proven(|n, s| {
        queued(n, s);
        s.info.busy_time = millis(n * STEP * 8 / 10);
    }));
}

fn verdict(sender: &[Sample], receiver: &[Sample]) -> Verdict {
    from_samples(sender, receiver, Duration::from_millis(50), PathHint::default())
}

/// A writer of blocks, each of which fills the link for `busy` of each 20 samples and leaves a queue
/// before it. `is_slow` says for which samples it writes in blocks at all.
fn blocks(busy: u64, is_slow: impl Fn(u64) -> bool) -> Vec<Sample> {
    let mut sent = 0;
    let mut busy_time = 0;
    series(400, |n, s| {
        let is_busy = n % 20 < busy || !is_slow(n);
        sent += u32::from(is_busy) * 276;
        busy_time += u64::from(is_busy) * STEP;
        queued(0, s);
        s.info.snd_wnd = Some(Window::new(Bytes::new(6_000_000)));
        s.info.data_segs_out = Some(1 + sent);
        s.info.bytes_acked = Some(Bytes::new(u64::from(sent) * 1448));
        s.info.busy_time = millis(busy_time);
        if !is_busy {
            (s.info.unacked, s.info.notsent_bytes) = (0, Some(Bytes::ZERO));
            s.memory.wmem_queued = Bytes::ZERO;
        }
    })
}

#[test]
fn a_writer_that_pauses_for_a_quarter_of_the_time_is_the_limit_although_its_blocks_fill_the_link() {
    let proven = |sender: &[Sample]| {
        let verdict = verdict(sender, &[]);
        (verdict.limited_by().limit, verdict.confidence >= 0.98)
    };
    assert_eq!(proven(&blocks(13, |_| true)), (Limit::SenderApplication, true));
    assert!(waited(&blocks(13, |_| true)).unwrap().outweighs(Limit::Link));
    // Near misses: pauses of a tenth, and pauses that are only in the end.
    for sender in [blocks(18, |_| true), blocks(5, |n| n >= 260)] {
        assert!(!waited(&sender).unwrap().outweighs(Limit::Link));
    }
    // What a link can give is bounded by what is left; another limit may take all of it.
    assert!(!waited(&blocks(13, |_| true)).unwrap().outweighs(Limit::SendBuffer));
    assert!(waited(&blocks(10, |_| true)).unwrap().outweighs(Limit::SendBuffer));
}

#[test]
fn a_writer_that_is_blocked_is_not_waited_for() {
    // Answers of 30 kB to one question after another, in a buffer that just holds one.
    let answers = |queued: u64| {
        series(400, |n, s| {
            s.info.unacked = 21;
            s.info.data_segs_out = Some(1 + 21 * (n / 5) as u32);
            s.info.notsent_bytes = Some(Bytes::ZERO);
            (s.memory.wmem_queued, s.memory.sndbuf) = (Bytes::new(queued), Bytes::new(46_080));
        })
    };
    let waits = |queued| waited(&answers(queued)).unwrap().outweighs(Limit::SendBuffer);
    assert!(waits(39_406));
    assert!(!waits(45_000), "it fills the buffer");
    // Nor is one whose data both windows hold back, or that repairs.
    let held = |change: fn(&mut Socket)| {
        let mut sender = answers(39_406);
        for sample in &mut sender {
            let info = sample.info.take().unwrap();
            let mut socket = Socket { info, memory: sample.memory.unwrap(), rqueue: Bytes::ZERO };
            change(&mut socket);
            sample.info = Some(socket.info);
        }
        !waited(&sender).unwrap().outweighs(Limit::SendBuffer)
    };
    assert!(held(|s| s.info.snd_cwnd = 22));
    assert!(held(|s| s.info.snd_wnd = Some(Window::new(Bytes::new(31_000)))));
    assert!(held(|s| s.info.notsent_bytes = Some(Bytes::new(1448))));
    assert!(held(|s| s.info.ca_state = CongestionState::Recovery));
    // Few samples, or none that says what is unsent, prove nothing.
    assert_eq!(waited(&answers(39_406)[..20]), None);
    assert_eq!(waited(&series(400, |_, _| ())), None);
}

#[test]
fn a_reader_that_has_read_everything_is_not_blamed() {
    let sender = series(400, |n, s| {
        s.info.rwnd_limited = millis(n * STEP);
        s.info.snd_wnd = Some(Window::new(Bytes::new(if n % 9 < 3 { 6_000_000 } else { 100_000 })));
    });
    let receiver = |unread| series(400, move |_, s| s.rqueue = Bytes::new(unread));
    let blamed = |unread| verdict(&sender, &receiver(unread)).share(Limit::ReceiverApplication);
    assert_eq!(blamed(0), 0.0);
    assert!(is_ever_unread(&receiver(5_000_000)) && is_ever_unread(&[]));
}

/// A socket whose packets overtake each other: the shortest round trip is that of one which did.
fn overtaken(seen: u32, rtt: impl Fn(u64) -> u64, unacked: u32) -> Vec<Sample> {
    series(300, |n, socket| {
        let info = &mut socket.info;
        (info.rtt, info.min_rtt) = (Duration::from_millis(rtt(n)), millis(30));
        (info.snd_cwnd, info.snd_ssthresh, info.unacked) = (unacked, 49, unacked);
        info.bytes_acked = Some(Bytes::new(n * 16_000));
        info.delivered = Some(n as u32 * 11);
        info.reord_seen = Some(n as u32 * seen);
        (info.total_retrans, info.dsack_dups) = (n as u32 / 40, Some(n as u32 / 40));
    })
}

#[test]
fn where_packets_overtake_each_other_the_shortest_round_trip_is_no_paths() {
    let verdict = |sender: &[Sample]| {
        from_samples(sender, &[], Duration::from_millis(50), PathHint::default())
    };
    const LOSS: Limit = Limit::CongestionWindow(Cause::Loss);
    // 13 Mbit/s, which is what 66 segments are each 60 ms.
    let taken_for_loss = verdict(&overtaken(5, |_| 60, 66)).limited_by();
    assert!(taken_for_loss.limit == LOSS && taken_for_loss.share > 0.8, "{taken_for_loss:?}");
    // The same round trips in order are a queue's, and so are longer ones than before.
    let in_order = verdict(&overtaken(0, |_| 60, 66)).limited_by().limit;
    assert_eq!(in_order, Limit::Link);
    let queued = verdict(&overtaken(5, |n| if n < 20 { 30 } else { 60 }, 66)).limited_by().limit;
    assert_eq!(queued, Limit::Link);
    assert!(is_overtaken(&overtaken(5, |_| 60, 66)) && !is_overtaken(&overtaken(0, |_| 60, 66)));
}

/// What is in flight grows by 2,000 bytes each 10 ms, of a path that holds 200,000 at 40 Mbit/s
/// over 40 ms, and is halved by a drop at 300,000: each was the link's. Of a path by which ten times
/// as much was delivered once, none was.
#[test]
fn a_drop_with_a_queue_before_it_is_the_links_by_the_socket() {
    let dropped = |delivered: u64| {
        let mut drops = 0;
        let sender = series(400, |n, socket| {
            let flight = 150_000 + 2_000 * (n % 75);
            drops += u32::from(n % 75 == 0);
            socket.info.unacked = (flight / 1448) as u32;
            socket.info.total_retrans = drops;
            socket.info.bytes_acked = Some(Bytes::new(n * 50_000));
            socket.info.delivery_rate = Some(Rate::from_bits_per_sec(delivered + n));
            (socket.info.rtt, socket.info.min_rtt) = (Duration::from_millis(45), millis(40));
        });
        let (spans, intervals) = by_rules(&sender, &[], MIN_INTERVAL, PathHint::default());
        let mut verdict = Verdict::new(Source::Samples, intervals);
        let loss = Limit::CongestionWindow(Cause::Loss);
        verdict = verdict.proven_to_be(loss);
        overflows::overrule(verdict, &spans, PathHint::default()).limited_by().limit
    };
    assert_eq!(dropped(40_000_000), Limit::Link);
    assert_eq!(dropped(400_000_000), Limit::CongestionWindow(Cause::Loss));
}

/// A reader takes 2 MB/s of 10 MB/s that come. Once its buffer is full it holds the sender, and
/// before that a faster path would only have filled it sooner; while the buffer takes all, or where
/// the reader takes what there is in blocks, it holds nobody.
#[test]
fn a_reader_that_falls_behind_holds_the_transfer_even_while_the_link_is_full() {
    let named = |shut: f64, unread: fn(u64) -> u64| {
        let receiver = series(100, |n, socket| {
            socket.info.bytes_received = Some(Bytes::new(n * 100_000));
            socket.info.rcv_mss = Bytes::new(1448);
            socket.rqueue = Bytes::new(unread(n));
        });
        let interval = |at: u64| Interval {
            start: Instant::ZERO + Duration::from_millis(at * 100),
            length: Duration::from_millis(100),
            candidates: vec![
                Candidate { limit: Limit::Link, share: 1.0 - shut },
                Candidate { limit: Limit::ReceiverApplication, share: shut },
            ],
            evidence: Evidence::default(),
        };
        let verdict = Verdict::new(Source::Samples, (0..10).map(interval).collect());
        unread::overrule(verdict, &receiver).limited_by().limit
    };
    assert_eq!(named(0.2, |n| n * 80_000), Limit::ReceiverApplication);
    assert_eq!(named(0.02, |n| n * 80_000), Limit::Link, "the buffer takes what comes");
    assert_eq!(named(0.2, |n| n % 20 * 100_000), Limit::Link, "blocks");
    assert_eq!(named(0.2, |_| 0), Limit::Link);
}
