//! HTTP/2's windows inside TLS, of real programs, held to what TShark reads with the same keys.
//!
//! The captures are of Python's package h2, and one of `openssl s_client`, which changes its key
//! three times and sends so slowly that it never waits. Each receiver grants a few kB at a time,
//! over 40 ms.

#[path = "../skip/mod.rs"]
mod skip;

use fullpipe_flow::account::Cause;
use fullpipe_flow::capture::read;
use fullpipe_flow::connection::{Connection, Direction, Warning};
use fullpipe_flow::diagnosis::{DiagnosedConnection, PacketCause, SubCause};
use fullpipe_flow::trace::TraceBounds;
use fullpipe_flow::{Analyzer, Arrival, Config, FlowControl, Intake, KeyLog, Language, Sorted};
use fullpipe_model::limit::Limit;
use fullpipe_model::units::{Bytes, Duration};
use skip::skip;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// The captures, with the direction of their data; all but the last were taken at its sender.
const READ: [(&str, Direction); 8] = [
    ("tls13-aes128", Direction::ServerToClient),
    ("tls13-aes256", Direction::ClientToServer),
    ("tls13-chacha", Direction::ServerToClient),
    ("tls12-aes128", Direction::ClientToServer),
    ("tls12-aes256", Direction::ServerToClient),
    ("tls12-chacha", Direction::ServerToClient),
    ("key-update", Direction::ClientToServer),
    ("tls13-aes128-receiver", Direction::ServerToClient),
];

/// The one whose sender never waits.
const SLOW: &str = "key-update";

fn path(name: &str, kind: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/frames/captures");
    folder.join(format!("{name}.{kind}"))
}

fn config(name: &str) -> Config {
    let log = std::fs::read(path(name, "keys")).unwrap();
    Config { keys: KeyLog::parse(&log).unwrap(), ..Config::default() }
}

fn analyzed(name: &str, config: Config) -> DiagnosedConnection {
    let mut analyzer = Analyzer::new(config);
    let file = std::fs::File::open(path(name, "pcap")).unwrap();
    read(file, |packet| _ = analyzer.push_packet(&packet)).unwrap();
    let mut found = analyzer.finish().connections;
    assert_eq!(found.len(), 1, "{name}");
    found.remove(0)
}

fn control(connection: &Connection, direction: Direction) -> &FlowControl {
    connection.facts(direction).http2.as_deref().expect("its frames are read")
}

/// A frame, as TShark has it.
#[derive(Debug, Clone)]
struct TheirFrame {
    at: f64,
    from_server: bool,
    kind: u32,
    stream: u32,
    length: u64,
    /// Of a window update, and of settings that say how much a stream may carry.
    number: Option<i64>,
}

/// The frames of a capture; `None` without TShark.
fn tshark(name: &str) -> Option<Vec<TheirFrame>> {
    let fields = [
        "frame.time_epoch",
        "tcp.srcport",
        "http2.type",
        "http2.streamid",
        "http2.length",
        "http2.window_update.window_size_increment",
        "http2.settings.initial_window_size",
    ];
    let output = Command::new("tshark")
        .args(["-n", "-T", "fields", "-E", "separator=|", "-E", "aggregator=,"])
        .arg("-o")
        .arg(format!("tls.keylog_file:{}", path(name, "keys").display()))
        .args(["-Y", "http2"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .arg("-r")
        .arg(path(name, "pcap"))
        .output()
        .ok()?;
    let table = String::from_utf8(output.stdout).unwrap();
    let numbers = |cell: &str| -> Vec<i64> {
        cell.split(',').filter(|one| !one.is_empty()).map(|one| one.parse().unwrap()).collect()
    };
    let mut frames = Vec::new();
    for row in table.lines() {
        let cells: Vec<&str> = row.split('|').collect();
        let [kinds, streams, lengths, updates, initial] =
            [2, 3, 4, 5, 6].map(|cell| numbers(cells[cell]));
        let (mut updates, mut initial) = (updates.into_iter(), initial.into_iter());
        // HTTP/2's preface is a row without a type.
        let lengths = lengths.into_iter();
        for ((kind, stream), length) in kinds.into_iter().zip(streams).zip(lengths) {
            let number = match kind {
                4 if length > 0 => initial.next(),
                8 => updates.next(),
                _ => None,
            };
            frames.push(TheirFrame {
                at: cells[0].parse().unwrap(),
                from_server: cells[1] == "8443",
                kind: kind as u32,
                stream: stream as u32,
                length: length as u64,
                number,
            });
        }
    }
    Some(frames)
}

/// How long stream 1 waited for its window at its sender, from the frames alone: from the data that
/// uses it up to the update after it, where data follows that.
fn waited(frames: &[TheirFrame], data_from_server: bool) -> (f64, u64) {
    let (mut window, mut initial) = (65_535_i64, 65_535_i64);
    let (mut waited, mut waits) = (0.0, 0);
    let (mut empty, mut opened): (Option<f64>, Option<f64>) = (None, None);
    for frame in frames {
        let is_data = frame.from_server == data_from_server;
        match (frame.kind, is_data, frame.number) {
            (0, true, _) if frame.length > 0 => {
                if let (Some(empty), Some(opened)) = (empty.take(), opened.take()) {
                    (waited, waits) = (waited + opened - empty, waits + 1);
                }
                window -= frame.length as i64;
                empty = (window == 0).then_some(frame.at);
            }
            (8, false, Some(by)) if frame.stream == 1 => {
                window += by;
                opened = opened.or(empty.map(|_| frame.at));
            }
            (4, false, Some(size)) => {
                window += size - initial;
                initial = size;
            }
            _ => {}
        }
    }
    (waited, waits)
}

#[test]
fn tshark_reads_the_same_frames_with_the_same_keys() {
    let mut compared = 0;
    for (name, direction) in READ {
        let Some(theirs) = tshark(name) else {
            return skip("tshark_reads_the_same_frames", "tshark is not installed");
        };
        let found = analyzed(name, config(name));
        let connection = &found.connection;
        assert!(!connection.warnings.iter().any(|one| one.is_of_frames()), "{name}");
        let from_server = direction == Direction::ServerToClient;
        for (way, of_server) in
            [(Direction::ClientToServer, false), (Direction::ServerToClient, true)]
        {
            let own = control(connection, way);
            let data = theirs.iter().filter(|one| one.kind == 0 && one.from_server == of_server);
            let mut streams = BTreeMap::<u32, u64>::new();
            data.filter(|one| one.length > 0)
                .for_each(|one| *streams.entry(one.stream).or_default() += one.length);
            assert!(own.is_whole, "{name}");
            assert_eq!(own.data.get(), streams.values().sum::<u64>(), "{name}");
            assert_eq!(own.streams, streams.len() as u64, "{name}");
            for stream in &own.worst {
                assert_eq!(Some(&stream.data.get()), streams.get(&stream.stream), "{name}");
            }
        }
        let own = control(connection, direction);
        let sizes = theirs.iter().filter(|one| one.kind == 4 && one.from_server != from_server);
        let size = sizes.filter_map(|one| one.number).next_back().unwrap();
        assert_eq!(own.worst[0].window, Bytes::new(size as u64), "{name}");
        compared += theirs.len();
        if name == SLOW {
            assert!(own.never_bound(), "{name}: {own:?}");
            continue;
        }
        let most = own.most_waited().unwrap_or_else(|| panic!("{name}: {own:?}"));
        assert_eq!(most.stream, 1, "{name}");
        let (waited, waits) = waited(&theirs, from_server);
        if !name.ends_with("receiver") {
            assert!(waits >= 3 && waited > 0.1, "{name}: {waits} waits for {waited} s");
            assert_eq!(most.waits, waits, "{name}");
            let own = most.waited.as_secs_f64();
            // A frame's end that TCP kept back (Nagle's algorithm) was handed over with the rest:
            // at most a round trip of 41 ms before its frame was whole, as TShark dates it.
            let late = own - waited;
            let most = 0.041 * waits as f64;
            assert!(
                (-1e-3..=most).contains(&late),
                "{name}: {own} s, by TShark's frames {waited} s"
            );
        }
    }
    assert!(compared > 150, "{compared} frames compared");
}

/// What stream 1 may still send after each of its data frames, by the frames that TShark reads.
fn left_after_data(frames: &[TheirFrame], data_from_server: bool) -> Vec<i64> {
    let (mut window, mut initial) = (65_535_i64, 65_535_i64);
    let mut left = Vec::new();
    for frame in frames {
        let is_data = frame.from_server == data_from_server;
        match (frame.kind, is_data, frame.number) {
            (0, true, _) if frame.length > 0 => {
                window -= frame.length as i64;
                left.push(window);
            }
            (8, false, Some(by)) if frame.stream == 1 => window += by,
            (4, false, Some(size)) => {
                window += size - initial;
                initial = size;
            }
            _ => {}
        }
    }
    left
}

#[test]
fn the_line_of_a_window_is_what_its_frames_leave() {
    for (name, direction) in READ.into_iter().filter(|(name, _)| *name != SLOW) {
        let Some(theirs) = tshark(name) else {
            return skip("the_line_of_a_window", "tshark is not installed");
        };
        let found = analyzed(name, Config { trace: Some(TraceBounds::default()), ..config(name) });
        let lines = control(&found.connection, direction).lines.clone().unwrap();
        assert_eq!(lines.stream, Some(1), "{name}");
        let line: Vec<i64> = lines.stream_window.unwrap().iter().map(|point| point.last).collect();
        let left = left_after_data(&theirs, direction == Direction::ServerToClient);
        let mut rest = line.iter();
        let is_drawn = left.iter().all(|left| rest.any(|point| point == left));
        assert!(is_drawn && left.len() > 5, "{name}: {line:?} for {left:?}");
        assert_eq!(line[0], 4096, "{name}: before it was used up");
        assert!(lines.connection.iter().count() > left.len() / 2, "{name}");
        let other = control(&found.connection, direction.reversed()).lines.clone().unwrap();
        assert_eq!(other.stream_window, None, "{name}");
        let found = found.without_trace();
        assert_eq!(control(&found.connection, direction).lines, None, "{name}");
        let plain = analyzed(name, config(name));
        assert_eq!(control(&plain.connection, direction).lines, None, "{name}");
    }
}

#[test]
fn both_ends_of_the_path_see_the_same_waits() {
    let [sender, receiver] = ["tls13-aes128", "tls13-aes128-receiver"].map(|name| {
        let found = analyzed(name, config(name));
        *control(&found.connection, Direction::ServerToClient).most_waited().unwrap()
    });
    assert_eq!((sender.window, sender.stream), (receiver.window, receiver.stream));
    // The sender's capture ends early.
    assert!(sender.waits.abs_diff(receiver.waits) <= 2, "{sender:?}, {receiver:?}");
    assert!((sender.part() - receiver.part()).abs() < 0.1, "{sender:?}, {receiver:?}");
}

#[test]
fn the_sentence_says_who_waited_for_how_much_in_both_languages() {
    for (name, direction) in READ.into_iter().filter(|(name, _)| *name != SLOW) {
        let found = analyzed(name, config(name));
        let most = *control(&found.connection, direction).most_waited().unwrap();
        let cause = found.sub_causes(direction).find_map(|cause| match cause {
            PacketCause::ApplicationWindow(window) => Some(window),
            _ => None,
        });
        let cause = cause.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(cause.bound, most.window, "{name}");
        let percent = format!("{:.0}", most.part() * 100.0);
        let cause = SubCause::Packets(PacketCause::ApplicationWindow(cause));
        let [english, chinese] =
            [Language::English, Language::Chinese].map(|language| language.sub_cause(&cause));
        let says = format!("stream 1 waited {percent} % of the time for its window of 4,096 bytes");
        assert!(english.contains(&says), "{english}");
        let says = format!("流 1 有 {percent} % 的时间在等待它 4,096 字节的窗口");
        assert!(chinese.contains(&says), "{chinese}");
    }
}

#[test]
fn without_keys_and_with_those_of_others_nothing_is_read() {
    for (name, direction) in READ {
        let other = if name == SLOW { "tls13-chacha" } else { SLOW };
        for config in [Config::default(), config(other)] {
            let found = analyzed(name, config);
            assert!(found.connection.facts(direction).http2.is_none(), "{name}");
            assert!(!found.connection.warnings.iter().any(|one| one.is_of_frames()), "{name}");
        }
    }
    let found = analyzed("tls12-cbc", config("tls12-cbc"));
    assert_eq!(found.connection.warnings.last(), Some(&Warning::FramesCipher));
}

#[test]
fn a_capture_that_misses_a_packet_is_read_up_to_there_and_says_so() {
    let whole = analyzed("tls13-chacha", config("tls13-chacha"));
    let whole = control(&whole.connection, Direction::ServerToClient).clone();
    for (missing, cut) in [(true, false), (false, true)] {
        let mut analyzer = Analyzer::new(config("tls13-chacha"));
        let file = std::fs::File::open(path("tls13-chacha", "pcap")).unwrap();
        let mut large = 0;
        read(file, |mut packet| {
            // The fourth packet with much of the server's data.
            large += u32::from(packet.data.len() > 2000);
            let is_meant = packet.data.len() > 2000 && large == 4;
            if is_meant && cut {
                packet.data = &packet.data[..200];
            }
            if !(is_meant && missing) {
                analyzer.push_packet(&packet);
            }
        })
        .unwrap();
        let found = analyzer.finish().connections.remove(0);
        let own = control(&found.connection, Direction::ServerToClient);
        assert!(!own.is_whole && own.data < whole.data && own.data > Bytes::ZERO, "{own:?}");
        let expected = if missing { Warning::FramesGap } else { Warning::FramesCut };
        assert!(found.connection.warnings.contains(&expected), "{:?}", found.connection.warnings);
        assert!(!own.never_bound());
    }
}

/// A window update is the reason that a wait ended, and no question: the client asks once, and
/// what waited for its grants is the window's, in the account as in the frames.
#[test]
fn a_window_update_is_no_question() {
    for (name, direction) in READ {
        let found = analyzed(name, config(name));
        if name == SLOW {
            continue;
        }
        let control = control(&found.connection, direction);
        let account = found.account().unwrap();
        // An upload begins once the server has said its settings.
        let questions = 1 + u64::from(direction == Direction::ClientToServer);
        assert!(account.requests <= questions, "{name}: {account:?}");
        let held = account.spent_on(Cause::Transfer(Limit::ApplicationWindow));
        let least = 0.9 * control.held.as_secs_f64();
        assert!(held.as_secs_f64() >= least, "{name}: {held} of {}: {account:?}", control.held);
        assert!(account.time >= held, "{name}");
    }
}

#[test]
fn keys_in_the_capture_and_another_thread_give_the_same() {
    for (name, direction) in READ {
        let expected = analyzed(name, config(name));
        let log = std::fs::read(path(name, "keys")).unwrap();
        let (config, mut analyzer) = (Config::default(), Analyzer::new(Config::default()));
        let mut intake = Intake::new(&config);
        intake.learn(&log);
        analyzer.learn(&log);
        let file = std::fs::File::open(path(name, "pcap")).unwrap();
        let mut passed = 0;
        read(file, |packet| {
            let mut track = |arrival: &Arrival, words: &[u8]| {
                passed += words.len() as u64;
                analyzer.track(arrival, words);
            };
            match intake.sort(&packet) {
                Some(Sorted::Headers(headers, bytes, _)) => {
                    let (arrival, words) = headers.read(bytes).expect("what is plain can be read");
                    track(&arrival, words);
                }
                Some(Sorted::Segment(arrival, words)) => track(&arrival, words),
                None => {}
            }
        })
        .unwrap();
        let found = analyzer.finish().connections.remove(0);
        let (one, other) =
            (control(&found.connection, direction), control(&expected.connection, direction));
        assert_eq!(one, other, "{name}");
        assert!(passed > one.data.get(), "all of the payload is passed on");
        assert_eq!(one.held > Duration::ZERO, name != SLOW, "{name}");
    }
}
