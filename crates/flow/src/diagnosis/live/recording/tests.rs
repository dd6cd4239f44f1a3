//! What a recording says is what its host said.

use super::super::tests::{receiver, sender};
use super::*;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::Instant;
use proptest::prelude::*;

/// The samples as a recording gives them back.
fn recorded(samples: &[Sample]) -> Vec<Sample> {
    let lines = samples.iter().map(|sample| serde_json::to_string(sample).unwrap());
    lines.map(|line| serde_json::from_str(&line).unwrap()).collect()
}

#[test]
fn the_diagnosis_is_that_of_the_host() {
    let settings = HostSettings::defaults(KernelVersion::new(6, 12));
    let both = [
        (End::Sender, sender(|_, _, _| {})),
        (End::Receiver, receiver(|info, _| info.rcv_wnd = Some(Window::new(Bytes::new(400_000))))),
    ];
    for (role, samples) in both {
        let seen = Observed {
            role,
            samples: &samples,
            other: &[],
            asked: None,
            settings: Some(&settings),
            host: HostFacts::default(),
        };
        let answer = seen.answer().unwrap();
        let [found] = &connections(recorded(&samples), &[], None)[..] else { panic!("one socket") };
        let diagnosis = found.bulk().unwrap();
        assert_eq!(diagnosis.verdict.shares, answer.limits);
        assert_eq!(diagnosis.verdict.confidence, answer.confidence);
        assert_eq!(diagnosis.findings(), answer.findings);
        assert_eq!(found.lost(), answer.lost);
        let facts = found.connection.facts(found.connection.bulk());
        assert_eq!(facts.goodput, Some(answer.goodput));
        // 300 samples with 400 kB between two.
        assert_eq!(facts.unique_payload, Bytes::new(299 * 400_000));
        let (path, told) = (found.measured_path(found.connection.bulk()).unwrap(), answer.path);
        let told = told.unwrap();
        assert_eq!((path.rtt, path.goodput, path.rate), (told.rtt, told.goodput, told.rate));
        assert_eq!(path.sender.largest, None, "there is no note");
    }
}

#[test]
fn a_note_names_the_causes_that_the_host_named() {
    let settings = HostSettings::defaults(KernelVersion::new(6, 12));
    let samples = receiver(|_, _| {});
    let asked =
        fullpipe_model::observe::SocketOptions { sets_rcvbuf: Some(true), ..Default::default() };
    let seen = Observed {
        role: End::Receiver,
        samples: &samples,
        other: &[],
        asked: Some(asked),
        settings: Some(&settings),
        host: HostFacts::default(),
    };
    let answer = seen.answer().unwrap();
    assert_eq!(answer.causes[0].sub_cause.name(), "receive_buffer_frozen");
    let last = samples.last().unwrap();
    let note = |at, asked| Note {
        at,
        local: last.local,
        remote: last.remote,
        asked,
        settings: Some(settings.clone()),
        socket: None,
    };
    let newer = note(last.at, Some(asked));
    // An older one, and one of another socket with the same addresses.
    let others = [note(samples[5].at, None), note(last.at + Duration::from_secs(1), None)];
    let notes = [others[1].clone(), newer.to_string().parse().unwrap(), others[0].clone()];
    let [found] = &connections(samples.clone(), &notes, None)[..] else { panic!("one socket") };
    let document = serde_json::to_value(found).unwrap();
    assert_eq!(
        document["sub_causes"][0]["claim"],
        crate::finding::words::sub_cause(&answer.causes[0].sub_cause),
        "{document:#}"
    );
    let path = found.measured_path(found.connection.bulk());
    assert_eq!(path, answer.path);
    let [found] = &connections(samples, &others[1..], None)[..] else { panic!("one socket") };
    assert!(!serde_json::to_string(found).unwrap().contains("receive_buffer_frozen"));
}

/// Samples with both addresses swapped: the other end of the same connection.
fn swapped(samples: Vec<Sample>) -> Vec<Sample> {
    let swap = |one: Sample| Sample { local: one.remote, remote: one.local, ..one };
    samples.into_iter().map(swap).collect()
}

#[test]
fn two_ends_are_one_connection_and_the_sender_answers() {
    let (sender, receiver) = (sender(|_, _, _| {}), swapped(receiver(|_, _| {})));
    for samples in [[sender.clone(), receiver.clone()], [receiver, sender]] {
        let [found] = &connections(samples.concat(), &[], Some(TraceBounds::default()))[..] else {
            panic!("one connection")
        };
        assert_eq!(found.connection.server.port(), 80);
        assert_eq!(found.connection.vantage.place, Place::Server, "the sender's socket");
        assert_eq!(found.sockets().len(), 2);
        assert_eq!(found.bulk().unwrap().limited_by().limit.name(), "receive_window");
    }
}

#[test]
fn interleaved_sockets_are_told_apart_and_an_older_time_is_another_socket() {
    let one = sender(|_, _, _| {});
    let other = |sample: &Sample| Sample { remote: ([203, 0, 113, 9], 9).into(), ..sample.clone() };
    let mixed: Vec<Sample> =
        one.iter().flat_map(|sample| [sample.clone(), other(sample)]).collect();
    let found = connections(mixed, &[], None);
    assert_eq!(found.iter().map(|one| one.connection.id).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(found.iter().map(|one| one.connection.first_packet).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(connections([&one[..], &one[..]].concat(), &[], None).len(), 2);
    assert!(connections(one.into_iter().take(1), &[], None).is_empty(), "one sample spans no time");
}

#[test]
fn the_graphs_carry_what_the_counters_do() {
    let [found] = &connections(sender(|_, _, _| {}), &[], Some(TraceBounds::default()))[..] else {
        panic!("one socket")
    };
    let trace = found.trace().unwrap();
    let direction = trace.direction(Direction::ServerToClient).unwrap();
    let carried: u64 = direction.rate().iter().map(|(payload, _)| payload.get()).sum();
    assert_eq!(carried, 299 * 400_000);
    let last = direction.acks().iter().last().unwrap();
    assert_eq!((last.last, last.at()), (299 * 400_000, Duration::from_millis(2990)));
    assert_eq!(direction.window().iter().map(|point| point.max).max(), Some(2_000_000));
    assert!(direction.rtt().iter().all(|point| point.max == 50_000));
    assert!(trace.direction(Direction::ClientToServer).is_none());
}

proptest! {
    /// A recording is a foreign file: whatever its numbers are, nothing panics.
    #[test]
    fn any_samples_are_answered(
        rows in prop::collection::vec(
            (
                0..1_u64 << 61,
                prop::collection::vec(prop_oneof![0..3_u64, 0..=1_u64 << 16, 0..=1_u64 << 16], 16),
                prop::collection::vec(prop_oneof![Just(1_u64 << 32), 0..1_u64 << 57], 9),
            ),
            2..40,
        ),
        receives: bool,
    ) {
        let base = if receives { receiver(|_, _| {}) } else { sender(|_, _, _| {}) };
        let samples = rows.iter().zip(base).map(|((at, n, large), sample)| {
            let small = |index: usize| n[index] as u32;
            let time = |index: usize| Duration::from_nanos(n[index]);
            let bytes = |index: usize| Bytes::new(n[index]);
            let info = TcpInfo {
                snd_mss: bytes(0),
                unacked: (large[8] >> 24) as u32,
                sacked: small(2),
                retrans: small(3),
                snd_cwnd: small(4),
                rtt: Duration::from_nanos(large[3]),
                rcv_rtt: Duration::from_nanos(large[4]),
                bytes_acked: Some(Bytes::new(large[0])),
                bytes_received: Some(Bytes::new(large[1])),
                bytes_sent: Some(Bytes::new(large[2])),
                busy_time: Some(Duration::from_nanos(large[5])),
                rwnd_limited: Some(Duration::from_nanos(large[6])),
                sndbuf_limited: Some(Duration::from_nanos(large[7])),
                snd_wnd: Some(Window::new(Bytes::new(large[8] >> 25))),
                rcv_wnd: Some(Window::new(bytes(14))),
                total_retrans: small(15),
                rcv_mss: bytes(0),
                advmss: bytes(2),
                min_rtt: Some(time(5)),
                ..sample.info.unwrap()
            };
            let at = Instant::from_nanos(*at);
            Sample { at, rqueue: bytes(3), wqueue: bytes(1), info: Some(info), ..sample }
        });
        // As a file gives them: what no kernel says is refused.
        let samples: Vec<Sample> = samples
            .filter_map(|sample| serde_json::to_string(&sample).unwrap().parse().ok())
            .collect();
        for found in connections(samples, &[], Some(TraceBounds::default())) {
            prop_assert!(serde_json::to_string(&found).is_ok());
            prop_assert!(serde_json::to_string(&found.trace()).is_ok());
            let _ = found.measured_path(found.connection.bulk());
        }
    }
}
