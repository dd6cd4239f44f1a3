use super::super::{HistoryOptions, HistoryRecorder, HistoryRing};
use super::*;
use fullpipe_flow::diagnosis::CountedEvent;
use fullpipe_flow::diagnosis::live::ClockOffset;
use fullpipe_flow::limit::Limit;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::Bytes;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const SIZE: Bytes = Bytes::new(1_000_000);

fn question<'q>(filter: &'q LiveFilter, from: Instant, until: Instant) -> PastQuestion<'q> {
    PastQuestion { from, until, filter, loopback: true, most: 10 }
}

/// A transfer whose reader reads a byte at a time is recorded, over several parts, and answered of
/// the time of one of them.
#[test]
fn what_was_recorded_is_answered() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("ring");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut slow = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut sender, _) = listener.accept().unwrap();
    sender.set_nonblocking(true).unwrap();
    let ring = HistoryRing::begin(&path, SIZE).unwrap();
    let namespaces = crate::watch::Namespaces::Own;
    let part = Duration::from_secs(2);
    let options = HistoryOptions { namespaces, part, ..HistoryOptions::default() };
    let mut recorder = HistoryRecorder::begin(ring, SIZE, options).unwrap();
    let start = clock::now();
    while recorder.ring().parts().0 < 3 {
        assert!(clock::now().since(start) < Duration::from_secs(60), "no part is written");
        while sender.write(&[0; 4096]).is_ok() {}
        slow.read_exact(&mut [0]).unwrap();
        assert!(recorder.step().unwrap().is_none());
        std::thread::park_timeout(recorder.idle().into());
    }
    assert!(recorder.finish().1.is_none());
    let filter = LiveFilter::port(port);
    let now = clock::now() + clock::realtime_offset();
    let began = start + clock::realtime_offset();
    let told = past(&path, question(&filter, began, now)).unwrap();
    let [one] = &told.found.followed[..] else { panic!("{:?}", told.found.followed) };
    let answer = &one.connection.answer;
    assert_eq!((answer.local.port(), answer.limit), (port, Limit::ReceiverApplication));
    assert!(answer.time >= Duration::from_secs(3), "{:?}", answer.time);
    assert!(one.samples.is_sorted_by(|a, b| a.at < b.at) && one.other.len() > 2);
    assert_eq!(one.connection.process.as_ref().unwrap().pid, std::process::id());
    // Watched look by look, it is the same: all of its time, and all that it moved.
    let socket = watched(one).unwrap();
    let times = socket.times();
    assert!(socket.is_busy() && socket.moments().len() == one.samples.len() - 1);
    assert!(
        times.whole() <= answer.time
            && times.of(answer.limit).as_secs_f64() > 0.5 * times.whole().as_secs_f64(),
        "{times:?}"
    );
    let [first, last] = [one.samples.first(), one.samples.last()].map(|sample| {
        sample.and_then(|sample| sample.info.as_ref()?.bytes_acked).unwrap_or_default()
    });
    assert_eq!(socket.moved().0, last.saturating_sub(first));
    assert!(told.ground.gaps.is_empty() && told.ground.lost > Duration::ZERO, "{:?}", told.ground);
    assert!(told.found.connections >= 2 && told.ground.unreadable.is_empty());
    // Of a time before, nothing is known, and that is told.
    let before = began.saturating_sub(Duration::from_secs(600));
    let told = past(&path, question(&filter, before, before + Duration::from_secs(60))).unwrap();
    assert!(told.found.followed.is_empty());
    let gap = Gap { from: before, until: before + Duration::from_secs(60) };
    assert_eq!((told.ground.gaps, told.ground.first.is_some()), (vec![gap], true));
    // Another port is another connection.
    let told = past(&path, question(&LiveFilter::port(1), began, now)).unwrap();
    assert!(told.found.followed.is_empty() && told.found.connections >= 2);
}

#[test]
fn a_folder_without_parts_is_none_and_a_part_that_is_damaged_is_told() {
    let place = tempfile::tempdir().unwrap();
    let filter = LiveFilter::port(1);
    let all = question(&filter, Instant::ZERO, Instant::from_nanos(1 << 62));
    for path in [place.path().to_path_buf(), place.path().join("missing")] {
        assert!(matches!(past(&path, all), Err(HistoryError::Empty { .. })));
    }
    let path = place.path().join("ring");
    let mut ring = HistoryRing::begin(&path, SIZE).unwrap();
    assert!(ring.add(Instant::from_nanos(1_700_000_000_000_000_000), b"no gzip").is_none());
    let told = past(&path, all).unwrap();
    assert_eq!(told.ground.unreadable.len(), 1);
    assert!(told.ground.unreadable[0].starts_with("sockets-2023"), "{:?}", told.ground.unreadable);
}

#[test]
fn counters_are_summed_within_a_boot() {
    let host = |boot: &str, pruned: u64| HostNote {
        boot: boot.into(),
        offset: ClockOffset::default(),
        counters: BTreeMap::from([("tcp PruneCalled".to_string(), pruned)]),
        offloads_off: vec![("eth0".into(), "generic-receive-offload".into())],
        ..HostNote::default()
    };
    let hosts = [host("a", 5), host("a", 7), host("b", 1), host("b", 1), host("b", 4)];
    let found = machine(&hosts.iter().collect::<Vec<_>>());
    let event = CountedEvent::ReceiveQueuePruned;
    let offload = "generic-receive-offload";
    let expected = [
        MachineCause::Counted { event, count: 5, at: None },
        MachineCause::OffloadOff { device: "eth0".into(), offload },
    ];
    assert_eq!(found, expected);
}
