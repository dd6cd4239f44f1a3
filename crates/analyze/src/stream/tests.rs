use super::PacketStream;
use crate::Capture;
use crate::error::Error;
use crate::origin::{Origin, opener};
use fullpipe_flow::capture::{FileItem, write, write_ng};
use fullpipe_model::units::Instant;
use proptest::prelude::*;
use std::path::PathBuf;

/// A capture with a packet of one byte at each of `times`.
fn capture(times: &[u64], byte: u8) -> Vec<u8> {
    let mut file = write::file_header(65_535).to_vec();
    for at in times {
        file.extend(write::record_header(Instant::from_nanos(*at), 1, 1));
        file.push(byte);
    }
    file
}

/// When each packet was captured, and its byte.
fn packets(capture: Capture) -> (Vec<(u64, u8)>, Result<(), Error>) {
    let mut found = Vec::new();
    let ended = capture.for_each_packet(|packet| {
        found.push((packet.at.as_nanos(), packet.data[0]));
        Ok(())
    });
    (found, ended)
}

fn files(folder: &tempfile::TempDir, contents: &[Vec<u8>]) -> Vec<PathBuf> {
    let path = |(number, bytes): (usize, &Vec<u8>)| {
        let path = folder.path().join(number.to_string());
        std::fs::write(&path, bytes).unwrap();
        path
    };
    contents.iter().enumerate().map(path).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each file in order of time: merging is a stable sort by time, files in the order of their
    /// names.
    #[test]
    fn merged_files_are_in_order_of_time(mut all in prop::collection::vec(prop::collection::vec(0_u64..40, 0..40), 1..5)) {
        all.iter_mut().for_each(|times| times.sort_unstable());
        let folder = tempfile::tempdir().unwrap();
        let contents: Vec<_> = (0_u8..).zip(&all).map(|(byte, times)| capture(times, byte)).collect();
        let (found, ended) = packets(Capture::merged(files(&folder, &contents)));
        prop_assert!(ended.is_ok());
        let mut expected: Vec<(u64, u8)> =
            (0_u8..).zip(&all).flat_map(|(byte, times)| times.iter().map(move |at| (*at, byte))).collect();
        expected.sort_by_key(|(at, _)| *at);
        prop_assert_eq!(found, expected);
    }

    /// A clock that stepped back within a file loses no packet, and each file keeps its order.
    #[test]
    fn no_packet_is_lost_whatever_the_times(all in prop::collection::vec(prop::collection::vec(0_u64..9, 0..20), 1..5)) {
        let folder = tempfile::tempdir().unwrap();
        let contents: Vec<_> = (0_u8..).zip(&all).map(|(byte, times)| capture(times, byte)).collect();
        let (found, _) = packets(Capture::merged(files(&folder, &contents)));
        for (byte, times) in (0_u8..).zip(&all) {
            let own: Vec<_> = found.iter().filter(|(_, from)| *from == byte).map(|(at, _)| *at).collect();
            prop_assert_eq!(&own, times);
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let whole = capture(&[1, 3, 5], 0);
    let cut = [&capture(&[2, 4], 1)[..], &[7; 9]].concat();
    let mut paths = files(&folder, &[whole, cut, b"no capture at all".to_vec(), Vec::new()]);
    paths.push(folder.path().join("nowhere"));
    let (found, ended) = packets(Capture::merged(paths.clone()));
    assert_eq!(found, [(1, 0), (2, 1), (3, 0), (4, 1), (5, 0)]);
    let (first, rest) = (ended.unwrap_err(), paths.split_off(2));
    assert!(matches!(first, Error::Cut { bytes: 9, packets: 2, .. }), "{first}");
    for (path, expected) in rest.into_iter().zip(["neither pcap", "nothing in it", "open "]) {
        let error = packets(Capture::file(path)).1.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn rotated_files_are_open_one_at_a_time() {
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Counted(std::fs::File, Arc<AtomicUsize>);
    impl Read for Counted {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(into)
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let contents: Vec<_> =
        (0_u8..50).map(|n| capture(&[u64::from(n) * 10, u64::from(n) * 10 + 9], n)).collect();
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&open), Arc::clone(&most));
    let merged = Capture::merged(files(&folder, &contents)).opened_by(move |path| {
        peak.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(Box::new(Counted(std::fs::File::open(path)?, Arc::clone(&now))))
    });
    assert_eq!(packets(merged).0.len(), 100);
    // The last packet of one waits while the first of the next is looked at.
    assert!(most.load(Ordering::Relaxed) <= 2, "{most:?}");
    assert_eq!(open.load(Ordering::Relaxed), 0);
}

/// A file of two interfaces, each of which writes in its own batches.
fn of_two_interfaces(packets: &[(u32, u64)]) -> Vec<u8> {
    let mut file = Vec::new();
    write_ng::file_header(&["in", "out"], &mut file);
    for (interface, at) in packets {
        write_ng::packet(*interface, Instant::from_nanos(*at), &[7], 1, "", &mut file);
    }
    file
}

proptest! {
    /// Interfaces that write in batches are merged by time, whatever the pieces in which the file
    /// is read; what goes back within one interface's file is sorted from there on.
    #[test]
    fn interfaces_that_write_in_batches_are_merged(
        times in prop::collection::vec((0_u32..2, 0_u64..900_000_000), 1..60),
    ) {
        let file = of_two_interfaces(&times);
        let mut stream = PacketStream::new(
            vec![Origin::Reader("two".into(), Box::new(std::io::Cursor::new(file)))],
            opener(),
            true,
        );
        let mut found = Vec::new();
        while stream.read(|item| found.extend(nanos(item))) {}
        let mut expected: Vec<u64> = times.iter().map(|(_, at)| *at).collect();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
        let (counts, errors) = stream.finish();
        prop_assert!(errors.is_empty());
        let mut newest = 0;
        let back = times.iter().filter(|(_, at)| {
            newest = newest.max(*at);
            *at < newest
        });
        prop_assert_eq!(counts.backwards, back.count() as u64);
        prop_assert_eq!(counts.unsorted, 0);
    }
}

#[test]
fn a_file_whose_clock_goes_back_is_sorted_from_there_on() {
    let file = capture(&[10, 30, 20, 50, 40, 60], 1);
    let read = |sorts| {
        let origin = Origin::Reader("one".into(), Box::new(std::io::Cursor::new(file.clone())));
        let mut stream = PacketStream::new(vec![origin], opener(), sorts);
        let mut found = Vec::new();
        while stream.read(|item| found.extend(nanos(item))) {}
        let counts = stream.finish().0;
        (found, counts.backwards, counts.unsorted)
    };
    assert_eq!(read(true), (vec![10, 30, 20, 40, 50, 60], 2, 1));
    assert_eq!(read(false), (vec![10, 30, 20, 50, 40, 60], 2, 2), "as Wireshark takes them");
}

#[test]
fn what_waits_before_an_error_is_not_lost() {
    let mut file = of_two_interfaces(&[(0, 50), (1, 20), (0, 70)]);
    file.extend([6, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    let origin = Origin::Reader("broken".into(), Box::new(std::io::Cursor::new(file)));
    let mut stream = PacketStream::new(vec![origin], opener(), true);
    let mut found = Vec::new();
    while stream.read(|item| found.extend(nanos(item))) {}
    assert_eq!((found, stream.finish().1.len()), (vec![20, 50, 70], 1));
}

/// When a packet was captured.
fn nanos(item: &FileItem<'_>) -> Option<u64> {
    match item {
        FileItem::Packet(packet) => Some(packet.at.as_nanos()),
        FileItem::Secrets(_) => None,
    }
}
