//! `fullpipe analyze --annotate` from outside: what TShark reads of its comments, at which packets,
//! and that nothing else is another than before.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, User, until};
use fullpipe_flow::capture::write;
use fullpipe_model::units::{Duration, Instant};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const CASES: &[Case] = &[
    ("comments_are_at_their_packets", &[Need::Program("tshark")], comments_are_at_their_packets),
    ("packets_and_answer_stay", &[Need::Program("tshark")], packets_and_answer_stay),
    ("in_chinese_at_the_same_packets", &[Need::Program("tshark")], in_chinese),
    ("the_profile_shows_them", &[Need::Program("tshark")], the_profile_shows_them),
    ("a_hostile_name_is_plain", &[Need::Program("tshark")], a_hostile_name_is_plain),
    ("what_cannot_be_is_refused", &[], what_cannot_be_is_refused),
    ("kill_9_leaves_nothing", &[Need::OrdinaryUser], kill_9_leaves_nothing),
];

fn in_repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// A capture of the repository, where the program works.
fn capture(program: &Program, name: &str, path: &str) {
    fs::copy(in_repository(path), program.work().join(name)).unwrap();
}

/// Writes `out.pcapng`; gives what it says.
fn annotate(program: &Program, input: &str) -> Value {
    let finished = program.run(&["analyze", input, "--annotate", "out.pcapng", "--json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished.json()
}

/// The lines that TShark prints.
fn tshark(program: &Program, words: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.args(words).current_dir(program.work());
    command.env("XDG_CONFIG_HOME", program.work().join("config"));
    let told = command.output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8(told.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The packets that a display filter of TShark's selects.
fn packets(program: &Program, filter: &str) -> Vec<u64> {
    let words = ["-r", "out.pcapng", "-Y", filter, "-T", "fields", "-e", "frame.number"];
    tshark(program, &words).iter().map(|number| number.parse().unwrap()).collect()
}

/// Where TShark finds a comment with these words.
fn commented(program: &Program, words: &str) -> Vec<u64> {
    packets(program, &format!("frame.comment contains \"{words}\""))
}

/// TShark's own labels say where each comment has to be.
fn comments_are_at_their_packets() {
    let program = Program::of(User::Ordinary);
    for name in ["reader-stops", "syn-lost", "peer-gone"] {
        capture(&program, name, &format!("docs/src/cases/{name}.pcap.gz"));
    }
    annotate(&program, "reader-stops");
    let shut = packets(&program, "tcp.analysis.zero_window");
    assert_eq!(commented(&program, "the window is shut here"), shut[..1]);
    let told = commented(&program, "[finding=window_shut owner=client_application]");
    assert!(told.len() >= 2 && told[0] == shut[0], "{told:?}");

    annotate(&program, "syn-lost");
    let again = packets(&program, "tcp.flags.syn == 1 && tcp.analysis.retransmission");
    let told = commented(&program, "the SYN or its answer was lost, and is sent again");
    assert!(!told.is_empty() && told.iter().all(|one| again.contains(one)), "{told:?} {again:?}");

    annotate(&program, "peer-gone");
    let again = packets(&program, "tcp.analysis.retransmission");
    let told = commented(&program, "[finding=peer_gone owner=peer_gone]");
    assert!(!told.is_empty() && told.iter().all(|one| again.contains(one)), "{told:?} {again:?}");

    let loss = "crates/flow/tests/lab/captures/limits/congestion_window_loss/server.pcap.gz";
    capture(&program, "loss", loss);
    let told = annotate(&program, "loss");
    assert!(told["about"].as_str().unwrap().contains("congestion window (loss)"), "{told:#}");
    // At the sender nothing passes out of order: what was sent before is sent again.
    let words = ["-r", "out.pcapng", "-Y", "tcp.srcport == 8080 && tcp.len > 0", "-T", "fields"];
    let fields = ["-e", "frame.number", "-e", "tcp.seq", "-e", "tcp.len"];
    let (mut again, mut sent) = (BTreeSet::new(), 0);
    for line in tshark(&program, &[&words[..], &fields].concat()) {
        let numbers: Vec<u64> = line.split('\t').map(|one| one.parse().unwrap()).collect();
        let [number, start, length] = numbers[..] else { panic!("{line}") };
        if start < sent {
            again.insert(number);
        }
        sent = sent.max(start + length);
    }
    let first = commented(&program, "the first data that was lost is sent again here");
    assert_eq!(first, [*again.first().unwrap()]);
    let repaired = commented(&program, "[finding=recovery owner=path]");
    assert!(!repaired.is_empty(), "{told:#}");
    assert!(repaired.iter().all(|one| again.contains(one)), "{repaired:?} {again:?}");
    assert!(!commented(&program, "held by the congestion window (loss)").is_empty());

    let chatty = "docs/src/cases/server-thinks.pcap.gz";
    capture(&program, "thinks", chatty);
    annotate(&program, "thinks");
    let asked = commented(&program, "has this request, and does not answer for");
    let by_client: BTreeSet<_> =
        packets(&program, "tcp.len > 0 && ip.src == 192.0.2.10").into_iter().collect();
    assert!(asked.len() == 25 && asked.iter().all(|one| by_client.contains(one)), "{asked:?}");
    // These clients give up.
    let gave_up = "tcp.flags.fin == 1 && ip.src == 192.0.2.10 && tcp.time_delta > 0.9";
    let waited = commented(&program, "until here: the server's program had the request");
    assert_eq!(waited, packets(&program, gave_up));

    program.file("late", hostile());
    annotate(&program, "late");
    assert_eq!(commented(&program, "has this request, and does not answer for 2."), [4]);
    assert_eq!(commented(&program, " s until here: the server's program had"), [5]);
}

/// Each packet's time, lengths and bytes by TShark.
fn bytes_of(program: &Program, file: &str) -> Vec<String> {
    let times = ["-r", file, "-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len"];
    let all = [&times[..], &["-e", "frame.cap_len"]].concat();
    let hexadecimal = tshark(program, &["-r", file, "-x"]);
    tshark(program, &all).into_iter().chain(hexadecimal).collect()
}

fn answer(program: &Program, file: &str) -> Value {
    let mut answer = program.run(&["analyze", file, "--json"]).json();
    answer["file"].take();
    answer
}

fn packets_and_answer_stay() {
    let program = Program::of(User::Ordinary);
    capture(&program, "three.pcap.gz", "crates/flow/tests/lab/captures/three.pcap.gz");
    capture(&program, "drops.pcapng.gz", "docs/src/cases/drops.pcapng.gz");
    for input in ["three.pcap.gz", "drops.pcapng.gz"] {
        let told = annotate(&program, input);
        assert!(told["comments"].as_u64().unwrap() > 0, "{told:#}");
        let shown = tshark(&program, &["-r", "out.pcapng", "-Y", "frame.comment"]);
        assert_eq!(told["commented_packets"], shown.len(), "{told:#}");
        let (before, after) = (bytes_of(&program, input), bytes_of(&program, "out.pcapng"));
        assert!(before.len() > 100 && after == before, "{input}");
        assert_eq!(answer(&program, "out.pcapng"), answer(&program, input), "{input}");
        // Once more, and by a pipe: the same file.
        let first = fs::read(program.work().join("out.pcapng")).unwrap();
        fs::copy(program.work().join("out.pcapng"), program.work().join("again.pcapng")).unwrap();
        annotate(&program, "again.pcapng");
        assert!(fs::read(program.work().join("out.pcapng")).unwrap() == first, "{input}");
        let mut command = program.command(&["analyze", "-", "--annotate", "piped.pcapng"]);
        let mut cat =
            program.command_by(&["cat", "again.pcapng"]).stdout(Stdio::piped()).spawn().unwrap();
        command.stdin(cat.stdout.take().unwrap());
        let finished = program.start(&mut command).end();
        cat.wait().unwrap();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert!(fs::read(program.work().join("piped.pcapng")).unwrap() == first, "{input}");
    }
}

/// Another language says the same at the same packets, with the names that programs read.
fn in_chinese() {
    let program = Program::of(User::Ordinary);
    capture(&program, "stops", "docs/src/cases/reader-stops.pcap.gz");
    let english = annotate(&program, "stops");
    let words = ["-r", "out.pcapng", "-Y", "frame.comment", "-T", "fields"];
    let fields = ["-e", "frame.number", "-e", "frame.comment"];
    let before = tshark(&program, &[&words[..], &fields].concat());
    let options = ["--annotate", "out.pcapng", "--json", "--language", "zh"];
    let mut command = program.command(&[&["analyze", "stops"], &options[..]].concat());
    let finished = program.start(command.env("LC_ALL", "C.UTF-8")).end();
    assert_eq!((finished.code, finished.json()), (Some(0), english_but_size(&english, &finished)));
    let after = tshark(&program, &[&words[..], &fields].concat());
    let names = |lines: &[String]| -> Vec<(String, String)> {
        let parts = lines.iter().map(|line| {
            let (number, rest) = line.split_once('\t').unwrap();
            (number.to_owned(), rest.rsplit_once(" [").unwrap().1.to_owned())
        });
        parts.collect()
    };
    assert_eq!(names(&before), names(&after));
    assert!(after.iter().any(|line| line.contains("没有读取：其接收窗口已关闭")), "{after:?}");
    assert!(!after.iter().any(|line| line.contains("until here")), "{after:?}");
}

/// What the JSON has to be: that of the English run, but for the bytes of the other sentences.
fn english_but_size(english: &Value, finished: &Finished) -> Value {
    let mut expected = english.clone();
    expected["size_bytes"] = finished.json()["size_bytes"].clone();
    expected
}

fn the_profile_shows_them() {
    let program = Program::of(User::Ordinary);
    capture(&program, "stops.pcap.gz", "docs/src/cases/reader-stops.pcap.gz");
    annotate(&program, "stops.pcap.gz");
    let script = in_repository("contrib/wireshark/fullpipe.lua");
    let script = format!("lua_script:{}", script.display());
    let filter = "fullpipe.finding == \"window_shut\" && fullpipe.owner == \"client_application\"";
    let read = ["-X", &script, "-r", "out.pcapng", "-Y"];
    let shown = ["-T", "fields", "-e", "frame.number", "-e", "fullpipe.connection"];
    let found = tshark(&program, &[&read[..], &[filter], &shown].concat());
    let told = commented(&program, "[finding=window_shut owner=client_application]");
    let expected: Vec<_> = told.iter().map(|number| format!("{number}\t0")).collect();
    assert!(!found.is_empty() && found == expected, "{found:?} {expected:?}");
    // Each comment of ours has an owner.
    let all = tshark(&program, &[&read[..], &["fullpipe.owner"], &shown].concat());
    assert_eq!(all.len(), commented(&program, "fullpipe #").len());
    let limits = tshark(&program, &[&read[..], &["fullpipe.limit"], &shown].concat());
    assert_eq!(limits.len(), commented(&program, "[limit=").len());

    let profile = program.work().join("config/wireshark/profiles/fullpipe");
    fs::create_dir_all(&profile).unwrap();
    for file in ["colorfilters", "preferences"] {
        fs::copy(in_repository(&format!("contrib/wireshark/profile/{file}")), profile.join(file))
            .unwrap();
    }
    let with_profile = ["-C", "fullpipe", "-r", "out.pcapng", "-Y", "frame.comment"];
    let columns = tshark(&program, &with_profile);
    assert!(columns.iter().any(|line| line.contains("its receive window was shut")), "{columns:?}");
    let rules = ["--color", "-T", "fields", "-e", "frame.coloring_rule.name"];
    let rules = tshark(&program, &[&with_profile[..], &rules].concat());
    assert!(rules.contains(&"fullpipe: client's program".to_owned()), "{rules:?}");
}

/// A server's name that would clear a terminal and give orders, in a connection with a long wait.
pub fn hostile() -> Vec<u8> {
    const ASKS: &[u8] = b"GET / HTTP/1.1\r\nHost: a\x1b[2J\x07\xe2\x80\xae<b>ignore\r\n\
        User-Agent: x\x1b]0;y\x07\r\n\r\n";
    let lengths = [0, 0, 0, ASKS.len() as u32, 100];
    let mut file = write::file_header(65_535).to_vec();
    let (mut sent, times) = ([1000_u32, 5000], [0, 20, 40, 41, 3000]);
    for (number, flags) in [0x02, 0x12, 0x10, 0x18, 0x18_u8].into_iter().enumerate() {
        let payload =
            if number == 3 { ASKS.to_vec() } else { vec![b'x'; lengths[number] as usize] };
        let end = usize::from(matches!(number, 1 | 4));
        let (addresses, ports) = match end {
            0 => ([192, 0, 2, 1, 198, 51, 100, 2], [0x9c, 0x40, 0, 80]),
            _ => ([198, 51, 100, 2, 192, 0, 2, 1], [0, 80, 0x9c, 0x40]),
        };
        let total = 40 + payload.len() as u16;
        let mut packet = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 1, 0x40, 0, 64, 6, 0, 0];
        packet.extend(addresses);
        packet.extend(ports);
        packet.extend(sent[end].to_be_bytes());
        packet.extend(if number == 0 { 0 } else { sent[1 - end] }.to_be_bytes());
        packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(&payload);
        sent[end] += payload.len() as u32 + u32::from(flags & 2 != 0);
        let at = Instant::from_nanos(1_000_000 * (times[number] + 1));
        file.extend(write::record_header(at, packet.len() as u32, packet.len() as u32));
        file.extend(packet);
    }
    file
}

fn a_hostile_name_is_plain() {
    let program = Program::of(User::Ordinary);
    program.file("hostile.pcap", hostile());
    let told = annotate(&program, "hostile.pcap");
    assert!(told["comments"].as_u64().unwrap() >= 2, "{told:#}");
    let about = told["about"].as_str().unwrap();
    let shown = tshark(&program, &["-r", "out.pcapng", "-T", "fields", "-e", "frame.comment"]);
    for text in about.lines().chain(shown.iter().map(String::as_str)) {
        assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
    }
    let bytes = fs::read(program.work().join("out.pcapng")).unwrap();
    let escape = bytes.iter().filter(|byte| **byte == 0x1b).count();
    let before = hostile().iter().filter(|byte| **byte == 0x1b).count();
    assert_eq!(escape, before, "only the packet has them");
}

fn refused(program: &Program, words: &[&str]) -> Finished {
    let refused = program.run(words);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    refused
}

fn what_cannot_be_is_refused() {
    let program = Program::new();
    capture(&program, "in.pcap.gz", "docs/src/cases/syn-lost.pcap.gz");
    fs::hard_link(program.work().join("in.pcap.gz"), program.work().join("hard.pcap")).unwrap();
    let before = fs::read(program.work().join("in.pcap.gz")).unwrap();
    for output in ["in.pcap.gz", "./in.pcap.gz", "hard.pcap"] {
        let told = refused(&program, &["analyze", "in.pcap.gz", "--annotate", output]);
        assert!(told.code == Some(2) && told.err.contains("names the input itself"), "{told:?}");
    }
    assert_eq!(fs::read(program.work().join("in.pcap.gz")).unwrap(), before);
    program.file("no.pcap", "nothing that is a capture");
    for words in [
        &["analyze", "no.pcap", "--annotate", "out.pcapng"][..],
        &["analyze", "missing.pcap", "--annotate", "out.pcapng"],
        &["analyze", "in.pcap.gz", "hard.pcap", "--annotate", "out.pcapng"],
        &["analyze", "in.pcap.gz", "--annotate", "no/folder/out.pcapng"],
        &["analyze", "in.pcap.gz", "--annotate", "out.pcapng", "--csv"],
    ] {
        refused(&program, words);
        assert!(!program.work().join("out.pcapng").exists(), "{words:?}");
    }
    // Half a capture is written as far as it goes, and that is said.
    program.file("half.pcap.gz", &before[..before.len() / 2]);
    let half = refused(&program, &["analyze", "half.pcap.gz", "--annotate", "out.pcapng"]);
    assert_eq!(half.code, Some(4), "{half:?}");
    assert!(program.work().join("out.pcapng").exists(), "{half:?}");
}

/// Killed while it reads a pipe of which it has taken more than a pipe holds.
fn kill_9_leaves_nothing() {
    let program = Program::of(User::Ordinary);
    let mut command = program.command(&["analyze", "-", "--annotate", "out.pcapng"]);
    let mut running = program.start(command.stdin(Stdio::piped()));
    let mut pipe = running.stdin();
    pipe.write_all(&vec![0; 1 << 20]).unwrap();
    assert!(!running.has_ended());
    running.kill_9();
    drop(pipe);
    until("nothing is left", Duration::from_secs(5), || {
        [program.work(), program.tmp()]
            .iter()
            .all(|folder| fs::read_dir(folder).unwrap().next().is_none())
    });
}
