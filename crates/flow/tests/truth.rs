//! Against TShark's own analysis of 150 public captures (`../shared/captures`, not part of the
//! repository).
//!
//! Two measures. *Connections*: each one's counts are compared in each direction, label by label,
//! and so are packets, payload, windows and the handshake's round trip; a label agrees for a
//! connection when both directions' counts are equal. *Packets*: of those that have a label, by us
//! or by TShark, how many have the same set of labels, whatever connection either gave them to.
//! What differs is named in [`REASONS`], file by file; a difference in another file fails, and so
//! does an agreement below the floors.
#![allow(clippy::print_stdout, reason = "the agreement is the test's result, and is shown")]

mod figures;
mod skip;

use fullpipe_flow::capture;
use fullpipe_flow::connection::{Connection, DirectionFacts, Label, Labels};
use fullpipe_flow::{Analyzer, Config};
use serde_json::Value;
use skip::skip;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Least part of the connections in which something must agree.
const FLOORS: [(&str, f64); 3] = [
    // A SYN that is repeated, or answered with a strange number, is timed differently on purpose:
    // Karn's rule, and an answer must acknowledge what was sent. So is a handshake that was
    // captured in one direction only, inside of tunnels.
    ("handshake rtt", 0.955),
    // TShark keeps scaling one way after a repeated SYN whose answer refused it; RFC 7323 does not.
    ("window max", 0.985),
    ("connection", 0.997),
];
/// For everything else.
const FLOOR: f64 = 0.99;
/// Least part of the labelled packets that must have the same labels.
const PACKETS_FLOOR: f64 = 0.999;

/// Files with other labels, packets or payload than TShark's, and why.
const REASONS: [(&str, &str); 4] = [
    (
        "zeek__contentline_telnet-unclosed-suboption.pcapng.gz",
        "TShark follows 10,000 unacknowledged segments; of a FIN beyond them it does not count the sequence number, so that \
         its acknowledgement is one of something unseen",
    ),
    (
        "ndpi__vnc.pcap",
        "TShark begins another stream when its VNC dissector takes a connection over; to us addresses and ports are one",
    ),
    (
        "zeek__tunnels_gre-aruba-amsdu.pcap",
        "several 802.11 frames in one (A-MSDU) are not taken apart",
    ),
    (
        "ndpi__reasm_crash_anon.pcapng",
        "a TCP header of length zero: TShark takes what follows the ports for payload, we take nothing",
    ),
];

#[derive(Default)]
struct Tally {
    connections: usize,
    agree: BTreeMap<String, usize>,
    present: BTreeMap<String, usize>,
    differences: Vec<String>,
    packets: Packets,
}

/// Packets that have a label, by us or by TShark.
#[derive(Default)]
struct Packets {
    labelled: usize,
    agree: usize,
    different: Vec<String>,
}

impl Tally {
    fn note(&mut self, what: &str, where_: &str, ours: String, theirs: String, present: bool) {
        *self.present.entry(what.into()).or_default() += usize::from(present);
        *self.agree.entry(what.into()).or_default() += usize::from(ours == theirs);
        if ours != theirs {
            self.differences.push(format!("{what:24} {where_}: ours {ours}, tshark {theirs}"));
        }
    }
}

impl Tally {
    /// As the guide shows it.
    fn table(&self) -> String {
        let Packets { labelled, agree, .. } = self.packets;
        let part = agree as f64 / labelled as f64 * 100.0;
        let mut text = format!(
            "{agree} of {labelled} labelled packets have the same labels: {part:.2} %.\n\n"
        );
        text += "| what | connections that agree | | seen in |\n|---|--:|--:|--:|\n";
        for (what, agree) in &self.agree {
            let part = *agree as f64 / self.connections as f64 * 100.0;
            let row = format!(
                "| {what} | {agree} of {} | {part:.2} % | {} |\n",
                self.connections, self.present[what]
            );
            text += &row;
        }
        text += "\nWhat differs, and why:\n\n";
        REASONS.iter().for_each(|(file, why)| text += &format!("* `{file}`: {why}.\n"));
        text += "* the handshake's round trip: of a SYN that was sent twice it is not known which one was answered (Karn's \
                 rule), and an answer must acknowledge what was sent.\n";
        text += "* payload is compared where no packet is there twice: copies were not sent.\n";
        text += "* the largest window: TShark keeps scaling one way after a repeated SYN whose answer refused it; RFC 7323 \
                 does not.\n";
        text
    }
}

#[test]
fn labels_and_facts_agree_with_tshark() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let Ok(index) = std::fs::read_to_string(folder.join("index.tsv")) else {
        return skip("labels_and_facts_agree_with_tshark", &format!("no {}", folder.display()));
    };
    let mut tally = Tally::default();
    let (mut files, mut left_out) = (0, BTreeMap::<&str, usize>::new());
    for row in index.lines().skip(1) {
        let mut columns = row.split('\t');
        let (Some(sha256), Some(file)) = (columns.next(), columns.next()) else { continue };
        let Ok(truth) = std::fs::read_to_string(folder.join(format!("truth/{sha256}.json"))) else {
            continue;
        };
        let truth: Value = serde_json::from_str(&truth).unwrap();
        match compare(&folder.join("files").join(file), &truth, &mut tally) {
            Ok(()) => files += 1,
            Err(why) => *left_out.entry(why).or_default() += 1,
        }
    }
    tally.differences.iter().for_each(|line| println!("{line}"));
    tally.packets.different.iter().for_each(|line| println!("packet {line}"));
    let part = tally.packets.agree as f64 / tally.packets.labelled as f64;
    println!(
        "{} of {} labelled packets = {:.3} %",
        tally.packets.agree,
        tally.packets.labelled,
        part * 100.0
    );
    REASONS.iter().for_each(|(file, why)| println!("{file}: {why}"));
    println!("{files} files, {} connections; left out: {left_out:?}", tally.connections);
    let mut failed = Vec::new();
    for (what, agree) in &tally.agree {
        let part = *agree as f64 / tally.connections as f64;
        println!(
            "{what:24} {agree}/{} = {:.2} % (in {})",
            tally.connections,
            part * 100.0,
            tally.present[what]
        );
        let floor = FLOORS.iter().find(|(name, _)| name == what).map_or(FLOOR, |(_, floor)| *floor);
        if part < floor {
            failed.push(what);
        }
    }
    figures::hold("truth", &tally.table());
    assert!(part >= PACKETS_FLOOR, "labelled packets agree in {part}");
    let has_floor = |line: &&String| FLOORS[..2].iter().any(|(what, _)| line.starts_with(what));
    let unexplained: Vec<_> = tally
        .differences
        .iter()
        .filter(|line| !has_floor(line))
        .chain(&tally.packets.different)
        .filter(|line| !REASONS.iter().any(|(file, _)| line.contains(file)))
        .collect();
    assert!(unexplained.is_empty(), "differences without a reason: {unexplained:#?}");
    assert!(tally.connections > 500, "the set is smaller than it was");
    assert!(failed.is_empty(), "below their floor: {failed:?}");
}

/// Compares one file; says why it is left out.
fn compare(file: &Path, truth: &Value, tally: &mut Tally) -> Result<(), &'static str> {
    let flows = truth["flows"].as_array().unwrap();
    let mut analyzer = Analyzer::new(Config { labels: Labels::Wireshark, ..Config::default() });
    let mut frames = HashMap::<(u64, Label), Vec<u64>>::new();
    let mut number = 0;
    let opened = std::fs::File::open(file).map_err(|_| "not there")?;
    let unpacked = capture::Unpack::new(opened).map_err(|_| "cannot be read")?;
    let end = capture::read(unpacked, |packet| {
        number += 1;
        if let Some(facts) = analyzer.push_packet(&packet) {
            facts.labels.iter().for_each(|label| {
                frames.entry((facts.connection, label)).or_default().push(number)
            });
        }
    });
    match end {
        Err(capture::ReadError::Format { .. }) => return Err("another format"),
        Err(error) => println!("{}: {error}", file.display()),
        Ok(_) => {}
    }
    compare_packets(file, flows, &frames, &mut tally.packets);
    let mut ours =
        HashMap::<(SocketAddr, SocketAddr), std::collections::VecDeque<Connection>>::new();
    for connection in analyzer.finish().connections.into_iter().map(|one| one.connection) {
        ours.entry(ordered(connection.client, connection.server))
            .or_default()
            .push_back(connection);
    }
    for flow in flows {
        let (a, b) = (end_of(&flow["a"]), end_of(&flow["b"]));
        if flow["a_to_b"]["packets"] == 0 && flow["b_to_a"]["packets"] == 0 {
            continue; // seen in ICMP errors only
        }
        let place =
            format!("{} stream {}", file.file_name().unwrap().to_string_lossy(), flow["stream"]);
        tally.connections += 1;
        let Some(connection) = ours.get_mut(&ordered(a, b)).and_then(|list| list.pop_front())
        else {
            tally.note("connection", &place, "none".into(), format!("{a} {b}"), true);
            continue;
        };
        tally.note("connection", &place, String::new(), String::new(), true);
        compare_connection(&connection, flow, (a, &place), &frames, tally);
    }
    Ok(())
}

/// Compares each packet's labels, whatever connection it was given to.
fn compare_packets(
    file: &Path,
    flows: &[Value],
    ours: &HashMap<(u64, Label), Vec<u64>>,
    tally: &mut Packets,
) {
    let mut both = BTreeMap::<u64, (BTreeSet<&str>, BTreeSet<&str>)>::new();
    for ((_, label), frames) in ours {
        for frame in frames {
            both.entry(*frame).or_default().0.insert(label.name());
        }
    }
    for flow in flows {
        for label in labels_of_tshark() {
            for frame in flow["frames"][label.name()].as_array().into_iter().flatten() {
                both.entry(frame.as_u64().unwrap()).or_default().1.insert(label.name());
            }
        }
    }
    tally.labelled += both.len();
    for (frame, (ours, theirs)) in both {
        if ours == theirs {
            tally.agree += 1;
        } else {
            let name = file.file_name().unwrap().to_string_lossy();
            tally.different.push(format!("{name} {frame}: ours {ours:?}, tshark {theirs:?}"));
        }
    }
}

fn labels_of_tshark() -> impl Iterator<Item = Label> {
    Label::ALL.into_iter().filter(|label| *label != Label::DuplicatePacket)
}

fn compare_connection(
    connection: &Connection,
    flow: &Value,
    (a, place): (SocketAddr, &str),
    frames: &HashMap<(u64, Label), Vec<u64>>,
    tally: &mut Tally,
) {
    let (from_a, from_b) = if connection.client == a {
        (&connection.client_to_server, &connection.server_to_client)
    } else {
        (&connection.server_to_client, &connection.client_to_server)
    };
    for label in labels_of_tshark() {
        let counts = |facts: &DirectionFacts| facts.labels.of(label);
        let ours = (counts(from_a), counts(from_b));
        let theirs = |direction: &str| flow[direction]["flags"][label.name()].as_u64().unwrap();
        let theirs = (theirs("a_to_b"), theirs("b_to_a"));
        let detail = if ours == theirs {
            String::new()
        } else {
            let found = frames.get(&(connection.id, label)).cloned().unwrap_or_default();
            let known: Vec<u64> =
                serde_json::from_value(flow["frames"][label.name()].clone()).unwrap_or_default();
            let only = |these: &[u64], those: &[u64]| -> Vec<u64> {
                these.iter().filter(|frame| !those.contains(frame)).take(12).copied().collect()
            };
            format!(
                " only ours {:?}, only theirs {:?};",
                only(&found, &known),
                only(&known, &found)
            )
        };
        let place = format!("{place}{detail}");
        tally.note(
            label.name(),
            &place,
            format!("{ours:?}"),
            format!("{theirs:?}"),
            theirs != (0, 0),
        );
    }
    let both = |one: String, two: String| format!("{one} {two}");
    let of = |name: &str| both(flow["a_to_b"][name].to_string(), flow["b_to_a"][name].to_string());
    let mut plain = |what: &str, theirs: &str, ours: fn(&DirectionFacts) -> String| {
        tally.note(what, place, both(ours(from_a), ours(from_b)), of(theirs), true);
    };
    plain("packets", "packets", |facts| facts.packets.to_string());
    plain("wire bytes", "bytes", |facts| facts.wire.get().to_string());
    // TShark counts copies that the capture made as payload that was sent.
    if from_a.loss.duplicate_packets + from_b.loss.duplicate_packets == 0 {
        plain("payload", "payload", |facts| facts.payload.get().to_string());
    } else {
        tally.note("payload", place, String::new(), String::new(), false);
    }
    let window = |window: Option<fullpipe_model::units::Window>| {
        window.map_or("null".into(), |w| w.bytes().get().to_string())
    };
    let ours = both(window(from_a.window.max), window(from_b.window.max));
    tally.note("window max", place, ours, of("window_max_nosynrst"), true);
    let ours = connection
        .handshake_rtt
        .map(|rtt| format!("{:.9}", rtt.as_secs_f64()))
        .unwrap_or("null".into());
    let theirs = flow["initial_rtt"].as_str().unwrap_or("null").to_string();
    tally.note("handshake rtt", place, ours, theirs, true);
}

fn ordered(a: SocketAddr, b: SocketAddr) -> (SocketAddr, SocketAddr) {
    (a.min(b), a.max(b))
}

fn end_of(end: &Value) -> SocketAddr {
    let address = end[0].as_str().unwrap().parse().unwrap();
    SocketAddr::new(address, end[1].as_u64().unwrap() as u16)
}
