//! The captures, read by TShark: what is in them is what was on the wire, and our counts of it are Wireshark's.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Case;
use crate::figures::assert_row;
use crate::need::Need;
use crate::program::{Program, Row};

pub const CASES: &[Case] = &[
    ("tshark_finds_them_sound", &[Need::Program("tshark")], || sound(&Captured::of(LOSSY))),
    ("tshark_counts_losses_alike", &[Need::Program("tshark")], || {
        counts_alike(&Captured::of(LOSSY), &["retransmission"])
    }),
    ("tshark_counts_full_windows_alike", &[Need::Program("tshark")], || {
        counts_alike(&Captured::of(SMALL_WINDOW), &["window_full", "zero_window"]);
    }),
];

const LOSSY: &str = "[link]\nrate = \"50mbit\"\nrtt = \"20ms\"\nto_client.loss = \"1%\"\n";
/// A reader that is slower than the path, and a buffer that fills.
const SMALL_WINDOW: &str = "[link]\nrate = \"50mbit\"\nrtt = \"20ms\"\n[hosts.client.sysctl]\n\
                            \"net.ipv4.tcp_rmem\" = \"4096 65536 65536\"\n";

/// A run of three seconds with whole packets captured at both ends.
struct Captured {
    row: Row,
    server: PathBuf,
    client: PathBuf,
    _program: Program,
}

impl Captured {
    fn of(scenario: &str) -> Captured {
        let program = Program::new();
        let slow = if scenario == SMALL_WINDOW { "read_rate = \"4mbit\"\n" } else { "" };
        let text = format!(
            "name = \"captured\"\n{scenario}[transfer]\nduration = \"3s\"\n{slow}[capture]\nsnaplen = \"65535B\"\n"
        );
        program.file("captured.toml", text);
        let row = program.rows(&["./captured.toml", "--keep-captures", "--out", "results"]).remove(0);
        assert_row(&row);
        let folder = program.work().join("results/001-captured");
        Captured { row, server: folder.join("server.pcap"), client: folder.join("client.pcap"), _program: program }
    }
}

/// The lines that TShark prints with these arguments.
fn tshark(capture: &Path, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    let output = command.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(Into::into).collect()
}

fn count(capture: &Path, filter: &str) -> f64 {
    tshark(capture, &["-Y", filter]).len() as f64
}

fn sound(captured: &Captured) {
    for capture in [&captured.server, &captured.client] {
        let fields = ["ip.checksum.status", "tcp.checksum.status", "frame.len", "ip.len", "frame.time_epoch"];
        let fields: Vec<&str> = fields.iter().flat_map(|field| ["-e", *field]).collect();
        let lines = tshark(capture, &[&["-T", "fields"], fields.as_slice()].concat());
        assert!(lines.len() > 500, "{} packets", lines.len());
        // As text the nanoseconds are whole; a float would round them.
        let mut last = String::new();
        for line in &lines {
            let values: Vec<&str> = line.split('\t').collect();
            assert_eq!(values[..2], ["1", "1"], "checksums of IP and TCP (1: good) in {}: {line}", capture.display());
            assert_eq!(values[2], values[3], "the frame is the IP packet: {line}");
            assert!(values[2].parse::<u32>().unwrap() <= 1500, "above the MTU: {line}");
            assert!(values[4] >= last.as_str(), "time goes back from {last} in {}: {line}", capture.display());
            last = values[4].to_string();
        }
    }
    // Both directions of what the receiver's edge saw are the row's packets.
    assert_eq!(count(&captured.client, "tcp"), captured.row.number("packets"));
}

/// Our columns against TShark's at the same edge: what the sender did at the server's, what reached and left the
/// receiver at the client's. The counts in `there` must not be zero, or the comparison would show nothing.
fn counts_alike(captured: &Captured, there: &[&str]) {
    let columns = [
        ("retransmission", &captured.server),
        ("window_full", &captured.server),
        ("duplicate_ack", &captured.client),
        ("out_of_order", &captured.client),
        ("zero_window", &captured.client),
    ];
    for (column, capture) in columns {
        let (ours, theirs) = (captured.row.number(column), count(capture, &format!("tcp.analysis.{column}")));
        eprintln!("{column}: ours {ours}, TShark's {theirs}");
        assert_eq!(ours, theirs, "{column} in {}", capture.display());
        assert!(ours > 0.0 || !there.contains(&column), "{column}: none in a run that is made to have them");
    }
    let rtt = &tshark(
        &captured.client,
        &["-T", "fields", "-e", "tcp.analysis.initial_rtt", "-Y", "tcp.analysis.initial_rtt"],
    )[0];
    let theirs = rtt.parse::<f64>().unwrap() * 1e6;
    let ours = captured.row.number("handshake_rtt_us");
    // Theirs is from SYN to the ACK that ends the handshake: the client's own answer, within some microseconds.
    assert!((0.0..1000.0).contains(&(theirs - ours)), "handshake: ours {ours} us, TShark's {theirs} us");
}
