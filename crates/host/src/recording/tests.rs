use super::writer::Writer;
use super::*;
use fullpipe_flow::capture::Reader;
use fullpipe_kernel::network::packet_filter::Keep;
use fullpipe_kernel::network::packet_ring::Hardware;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

/// Files in memory.
#[derive(Clone, Default)]
struct FilesInMemory {
    files: Arc<Mutex<Vec<Vec<u8>>>>,
    open: Vec<u8>,
    goes_on: bool,
}

const FILE_MAX: Bytes = Bytes::new(4000);

impl RecordPlace for FilesInMemory {
    fn write(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        self.open.extend(bytes);
        Ok(())
    }

    fn complete(&mut self) -> Result<(), RecordError> {
        self.files.lock().unwrap().push(std::mem::take(&mut self.open));
        Ok(())
    }

    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn file_max(&self) -> Bytes {
        FILE_MAX
    }

    fn goes_on(&self) -> bool {
        self.goes_on
    }
}

/// A packet without a `vnet_hdr` that matters.
fn seen(frame: &[u8], device: u32, at: u64) -> SeenPacket<'_> {
    let hardware = if device == 1 { Hardware::Loopback } else { Hardware::Other };
    let (at, len) = (Duration::from_micros(at), frame.len() + 900);
    SeenPacket { at, device, hardware, outgoing: false, frame, len }
}

/// The packets of a file with their lengths on the wire, and how many were dropped.
fn read(file: &[u8]) -> (Vec<(u64, usize)>, Option<u64>) {
    let mut reader = Reader::new();
    reader.feed(file);
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push((packet.at.as_nanos() / 1000, packet.original_length));
    }
    let summary = reader.finish();
    assert_eq!(summary.cut, 0, "the file is whole");
    (packets, summary.dropped)
}

#[test]
fn files_that_are_full_follow_one_another_and_each_can_be_read_alone() {
    let place = FilesInMemory { goes_on: true, ..FilesInMemory::default() };
    let files = Arc::clone(&place.files);
    let mut writer = Writer::new(Box::new(place));
    let frame = [0; 80];
    for number in 0..200 {
        assert!(writer.packet(&seen(&frame, 1 + number as u32 % 2, number)).unwrap());
        writer.note_dropped(number % 3);
    }
    writer.complete().unwrap();
    let files = files.lock().unwrap();
    assert!(files.len() > 3 && files.iter().all(|file| file.len() as u64 <= FILE_MAX.get()));
    let (packets, dropped): (Vec<_>, Vec<_>) = files.iter().map(|file| read(file)).unzip();
    let expected: Vec<_> = (0..200).map(|at| (at, frame.len() + 900 - 10)).collect();
    assert_eq!(packets.concat(), expected);
    let expected: u64 = (0..200).map(|number| number % 3).sum();
    assert_eq!(dropped.into_iter().map(Option::unwrap).sum::<u64>(), expected);
    let size: usize = files.iter().map(Vec::len).sum();
    assert_eq!(writer.size(), Bytes::new(size as u64));
}

#[test]
fn a_file_that_is_the_only_one_ends_when_it_is_full() {
    let place = FilesInMemory::default();
    let files = Arc::clone(&place.files);
    let mut writer = Writer::new(Box::new(place));
    let taken = (0..200).take_while(|at| writer.packet(&seen(&[0; 80], 1, *at)).unwrap()).count();
    writer.complete().unwrap();
    let files = files.lock().unwrap();
    let [file] = &files[..] else { panic!("{} files", files.len()) };
    assert!(file.len() as u64 <= FILE_MAX.get() && taken < 60, "{} of {taken}", file.len());
    assert_eq!(read(file).0.len(), taken);
}

/// What passes over loopback is recorded once, in order, without its payload, up to the last
/// packet before the end.
#[test]
#[allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
fn a_connection_of_this_host_is_recorded_as_a_whole() {
    const WORDS: &[u8] = b"nobody should read these words";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let filter = PacketFilter::tcp_between(&[server.ip()], &[server.port()], Keep::Headers);
    let options =
        RecordOptions { filter: filter.unwrap(), device: None, new_only: true, between: None };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.pcapng");
    let recording = match Recording::start(
        &options,
        Box::new(OneFile::begin(&path, Bytes::new(1 << 20)).unwrap()),
    ) {
        Ok(recording) => recording,
        Err(RecordError::Refused(error)) if error.errno() == Some(1) => {
            assert!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{error}");
            eprintln!("SKIPPED: recording: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let sends = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(WORDS).unwrap();
    });
    let mut got = Vec::new();
    TcpStream::connect(server).unwrap().read_to_end(&mut got).unwrap();
    sends.join().unwrap();
    assert!(recording.goes_on() && !path.exists());
    let recorded = recording.finish().unwrap();
    let file = std::fs::read(&path).unwrap();
    let (packets, dropped) = read(&file);
    assert_eq!(recorded.files, [path]);
    assert_eq!(
        (recorded.packets, recorded.size),
        (packets.len() as u64, Bytes::new(file.len() as u64))
    );
    assert_eq!((dropped, recorded.dropped, recorded.is_full), (Some(0), 0, false));
    // SYN, SYN-ACK, ACK, data, ACK, and at least two that close it.
    assert!((7..=12).contains(&packets.len()), "{packets:?}");
    assert!(packets.is_sorted() && packets.iter().any(|(_, length)| *length >= 54 + WORDS.len()));
    assert!(!file.windows(WORDS.len()).any(|part| part == WORDS), "no payload is kept");
}

/// Whoever reads a stream gets its beginning before there is a packet, and a whole capture.
#[test]
fn a_stream_begins_at_once_and_ends_whole() {
    let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let mut writer = Writer::new(Box::new(Stream::to("pipe", far, FILE_MAX)));
    writer.begin_at_once().unwrap();
    let mut file = vec![0; 4096];
    let first = near.read(&mut file).unwrap();
    assert!(first >= 28 && file.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "a section's header");
    file.truncate(first);
    assert!(writer.packet(&seen(&[0; 80], 1, 1)).unwrap());
    writer.complete().unwrap();
    drop(writer);
    near.set_nonblocking(false).unwrap();
    near.read_to_end(&mut file).unwrap();
    let (packets, dropped) = read(&file);
    assert_eq!((packets.len(), dropped), (1, Some(0)));
    // A reader who has gone is told apart from a disk that is full.
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(near);
    let mut writer = Writer::new(Box::new(Stream::to("pipe", far, FILE_MAX)));
    assert!(writer.begin_at_once().unwrap_err().is_closed());
}
