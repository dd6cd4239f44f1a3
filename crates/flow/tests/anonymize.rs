//! Captures as they may be shared: over all captures of the repository, every connection's answer
//! and every packet's labels are those of the capture itself, and nothing of it is in them.

use fullpipe_flow::capture::anonymize::{
    AnonymizeOptions, Anonymizer, InputMarks, Key, Search, SharedFile,
};
use fullpipe_flow::capture::{Reader, Unpack};
use fullpipe_flow::connection::LabelSet;
use fullpipe_flow::{Analysis, Analyzer, Config};
use proptest::prelude::*;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The captures below a folder of the repository.
fn captures(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let (mut folders, mut found) = (vec![root], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().contains(".pcap") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A capture as it may be shared, and what it must not have.
fn shared(capture: &[u8], key: u8, options: AnonymizeOptions) -> (Vec<u8>, Anonymizer, InputMarks) {
    let mut anonymizer = Anonymizer::new(&Key([key; 32]), options);
    let (mut reader, mut out, mut marks) = (Reader::new(), Vec::new(), InputMarks::default());
    let mut file = SharedFile::begin(&mut out);
    reader.feed(capture);
    while let Ok(Some((packet, interfaces))) = reader.next_with_interfaces() {
        let written = file.packet(&packet, interfaces, &mut anonymizer, &mut out);
        marks.packet(packet.data, written.payload);
    }
    file.end(&reader.finish(), &mut out);
    marks.finish(anonymizer.addresses());
    (out, anonymizer, marks)
}

/// A packet's connection, and its labels by either definition.
type PacketLabels = Option<(u64, LabelSet, LabelSet)>;

/// What the analysis says of a capture, and of each packet, and how many the capture dropped.
fn analysed(capture: &[u8]) -> (Analysis, Vec<PacketLabels>, Option<u64>) {
    let (mut analyzer, mut reader) = (Analyzer::new(Config::default()), Reader::new());
    let mut packets = Vec::new();
    reader.feed(capture);
    while let Ok(Some(packet)) = reader.next_packet() {
        let facts = analyzer.push_packet(&packet);
        packets.push(facts.map(|facts| (facts.connection, facts.labels, facts.wireshark)));
    }
    (analyzer.finish(), packets, reader.finish().dropped)
}

/// Holds a capture's shared form to the capture.
fn check(name: &str, capture: &[u8], options: AnonymizeOptions) -> usize {
    let (out, mut anonymizer, marks) = shared(capture, 11, options);
    let (mut before, packets, dropped) = analysed(capture);
    let (mut after, shared_packets, shared_dropped) = analysed(&out);
    after.connections.iter_mut().for_each(|one| one.connection.forget_names());
    for connection in &mut before.connections {
        let facts = &mut connection.connection;
        facts.forget_names();
        facts.start = facts.start + anonymizer.shift();
        for end in [&mut facts.client, &mut facts.server] {
            let address = anonymizer.addresses().ip(end.ip());
            *end = SocketAddr::new(address, anonymizer.port(end.port()));
        }
    }
    assert_eq!(packets, shared_packets, "{name}");
    assert_eq!(dropped, shared_dropped, "{name}");
    let json = |analysis: &Analysis| serde_json::to_value(analysis).unwrap();
    let (before_json, after_json) = (json(&before), json(&after));
    assert_eq!(before_json, after_json, "{name}");
    let mut search = Search::new(&marks);
    search.look(&out);
    assert_eq!(search.finish(), (0, vec![]), "{name}");
    before.connections.len()
}

fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    Unpack::new(File::open(path).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn every_answer_is_the_same() {
    let mut connections = 0;
    for folder in ["docs/src/cases", "crates/flow/tests/lab/captures"] {
        for path in captures(folder) {
            let capture = unpacked(&path);
            let name = path.display().to_string();
            connections += check(&name, &capture, AnonymizeOptions::default());
            let options = AnonymizeOptions { ports: true, shift_time: true, zeroes: true };
            check(&name, &capture, options);
        }
    }
    assert!(connections >= 50, "{connections}");
}

/// What a capture says beside its packets stays behind: whoever named an interface, wrote a
/// comment, or kept a session's secrets.
#[test]
fn nothing_but_packets_is_written() {
    const SECRETS: [&str; 6] = [
        "<script>eth-of-alice</script>",
        "ignore previous instructions",
        "CLIENT_RANDOM 52340c85",
        "\u{1b}]0;terminal\u{7}",
        "alice-laptop.example.org",
        "host alice and port 443",
    ];
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let option = |code: u16, value: &[u8]| {
        let mut option =
            [&code.to_le_bytes()[..], &(value.len() as u16).to_le_bytes(), value].concat();
        option.resize(option.len().next_multiple_of(4), 0);
        option
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let end = option(0, &[]);
    let names: Vec<u8> =
        [2, 3, 11, 12, 15].iter().flat_map(|code| option(*code, SECRETS[0].as_bytes())).collect();
    let mut packet = vec![0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    packet.extend([0x9c, 0x40, 1, 0xbb, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 9, 9, 0, 0, 0, 0]);
    packet.extend(SECRETS[4].as_bytes());
    packet.resize(packet.len().next_multiple_of(4), b'!');
    let length = (packet.len() as u32).to_le_bytes();
    let mut enhanced = [&[0; 4][..], &[0; 4], &[1, 0, 0, 0], &length, &length, &packet].concat();
    enhanced.extend(option(1, SECRETS[1].as_bytes()));
    enhanced.extend(&end);
    let capture = [
        block(0x0a0d_0d0a, &[&section[..], &option(4, SECRETS[3].as_bytes()), &end].concat()),
        block(1, &[&[101, 0, 0, 0, 0, 0, 4, 0][..], &names, &option(9, &[6]), &end].concat()),
        block(
            10,
            &[&[0x4b, 0x53, 0x4c, 0x54, 24, 0, 0, 0][..], SECRETS[2].as_bytes(), &[0; 2]].concat(),
        ),
        block(4, &[&[1, 0, 28, 0, 192, 0, 2, 1][..], SECRETS[4].as_bytes(), &[0; 4]].concat()),
        block(0x0bad, &option(1, SECRETS[5].as_bytes())),
        block(6, &enhanced),
    ]
    .concat();
    let (before, ..) = analysed(&capture);
    assert_eq!((before.counts.packets, before.connections.len()), (1, 1));
    let (out, ..) = shared(&capture, 3, AnonymizeOptions::default());
    for secret in SECRETS.iter().flat_map(|secret| secret.as_bytes().windows(4)) {
        assert!(!out.windows(4).any(|part| part == secret), "{}", secret.escape_ascii());
    }
    check("secrets", &capture, AnonymizeOptions::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_file_gives_one_that_is_read(
        start in prop::sample::select(vec![vec![], vec![0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 4], vec![10, 13, 13, 10]]),
        bytes: Vec<u8>,
        key: u8,
    ) {
        let (out, ..) = shared(&[start, bytes].concat(), key, AnonymizeOptions::default());
        let mut reader = Reader::new();
        reader.feed(&out);
        while reader.next_packet().unwrap().is_some() {}
        prop_assert_eq!(reader.finish().cut, 0);
    }
}
