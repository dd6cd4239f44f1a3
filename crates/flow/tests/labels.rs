//! Labels of small traces: by what the traces themselves say, and by TShark where it is installed.

mod skip;
mod trace;

use fullpipe_flow::capture::{LinkType, write};
use fullpipe_flow::connection::{Label, Labels};
use fullpipe_flow::{Analyzer, Config};
use skip::skip;
use std::process::Command;
use trace::Line;

const TRACES: [(&str, &str); 3] = [
    ("loss", include_str!("traces/loss.txt")),
    ("windows", include_str!("traces/windows.txt")),
    ("reordering", include_str!("traces/reordering.txt")),
];

fn sorted(mut labels: Vec<String>) -> Vec<String> {
    labels.sort();
    labels
}

fn ours(lines: &[Line]) -> Vec<Vec<String>> {
    let mut analyzer = Analyzer::new(Config { labels: Labels::Wireshark, ..Config::default() });
    let mut label = |line: &Line| {
        let packet = line.packet();
        let facts = analyzer.push(line.at, LinkType::RAW, &packet, packet.len()).unwrap();
        sorted(facts.labels.iter().map(|label| label.name().to_string()).collect())
    };
    lines.iter().map(&mut label).collect()
}

#[test]
fn each_packet_has_the_labels_that_the_trace_says() {
    for (name, text) in TRACES {
        let lines = trace::parse(text);
        for (number, (line, labels)) in lines.iter().zip(ours(&lines)).enumerate() {
            assert_eq!(labels, sorted(line.labels.clone()), "{name}: packet {}", number + 1);
        }
    }
}

/// The traces' own expectations are TShark's, not ours.
#[test]
fn tshark_says_the_same() {
    let folder = std::env::temp_dir().join(format!("fullpipe-flow-labels-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in TRACES {
        let lines = trace::parse(text);
        let mut file = write::file_header(65_535).to_vec();
        for line in &lines {
            let packet = line.packet();
            file.extend(write::record_header(line.at, packet.len() as u32, packet.len() as u32));
            file.extend(packet);
        }
        let path = folder.join(format!("{name}.pcap"));
        std::fs::write(&path, file).unwrap();
        let labels: Vec<Label> =
            Label::ALL.into_iter().filter(|label| *label != Label::DuplicatePacket).collect();
        let names: Vec<String> =
            labels.iter().map(|label| format!("tcp.analysis.{}", label.name())).collect();
        let fields = names.iter().flat_map(|name| ["-e", name.as_str()]);
        let output = Command::new("tshark")
            .args([
                "-n",
                "-o",
                "tcp.check_checksum:TRUE",
                "-T",
                "fields",
                "-E",
                "separator=|",
                "-e",
                "tcp.checksum.status",
            ])
            .args(fields)
            .arg("-r")
            .arg(&path)
            .env("HOME", &folder)
            .env("XDG_CONFIG_HOME", &folder)
            .output();
        let Ok(output) = output else {
            return skip("tshark_says_the_same", "tshark is not installed");
        };
        let table = String::from_utf8(output.stdout).unwrap();
        assert_eq!(table.lines().count(), lines.len(), "{name}: every packet is read");
        for (number, (line, row)) in lines.iter().zip(table.lines()).enumerate() {
            let mut cells = row.split('|');
            assert_eq!(cells.next(), Some("1"), "{name}: packet {}'s checksum is good", number + 1);
            let set = |(label, cell): (&Label, &str)| {
                (!cell.is_empty()).then(|| label.name().to_string())
            };
            let theirs = labels.iter().zip(cells).filter_map(set).collect();
            assert_eq!(
                sorted(line.labels.clone()),
                sorted(theirs),
                "{name}: packet {}",
                number + 1
            );
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
