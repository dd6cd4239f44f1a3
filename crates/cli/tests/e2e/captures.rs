//! The captures, read by TShark: they contain what was on the wire, and our counts match
//! Wireshark's.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

use crate::Case;
use crate::figures::assert_row;
use crate::need::Need;
use crate::program::{Program, Row};
use crate::relay_postgres as postgresql;

pub const CASES: &[Case] = &[
    ("tshark_sees_the_losses_that_we_see", &[Need::Program("tshark")], || {
        agrees("[link]\nto_client.loss = \"1%\"\n", "", &["retransmission", "duplicate_ack"]);
    }),
    ("tshark_sees_the_full_windows_that_we_see", &[Need::Program("tshark")], || {
        // An application that reads slower than the path carries, until its buffer is full.
        agrees(
            "[link]\n",
            "read_rate = \"2mbit\"\nreceive_buffer = \"100kB\"\n",
            &["window_full", "zero_window"],
        );
    }),
    (
        "a_conversation_with_postgresql_is_answered_with_its_settings",
        &[Need::PostgreSql],
        conversation,
    ),
];

/// Rows that a cursor fetches one by one over 40 ms; then, as the answer says, several at a time.
fn conversation() {
    let program = Program::new();
    let server = postgresql::Server::new(&program);
    let one_by_one = fetched(&program, &server, 1);
    assert_eq!(one_by_one["protocol"], "postgresql", "{one_by_one:#}");
    let law = ROWS as u64 * 40_000;
    assert!(turns(&one_by_one) >= law, "{} of {law} us", turns(&one_by_one));
    let answer = program.run(&["analyze", "rows-1/client.edge.pcap"]);
    assert!(answer.out.contains("a larger fetch size where a cursor reads"), "{answer:?}");
    let faster = turns(&fetched(&program, &server, 25));
    assert!(faster < law / 3, "{faster} of {law} us");
    server.end();
}

const ROWS: usize = 50;

/// The connection in which rows were fetched, so many at a time.
fn fetched(program: &Program, server: &postgresql::Server, at_a_time: usize) -> Value {
    let declare = format!("declare c cursor for select generate_series(1, {ROWS});\n");
    let fetches = format!("fetch {at_a_time} from c;\n").repeat(ROWS / at_a_time);
    program.file("rows.sql", format!("begin;\n{declare}{fetches}commit;\n"));
    let (folder, port) = (format!("rows-{at_a_time}"), server.address.port().to_string());
    let link = ["link", "-q", "--rtt", "40ms", "--capture", &folder, "--"];
    let psql = ["psql", "-XAtq", "-h", "{server}", "-p", &port, "-U", "postgres"];
    let got = program.run(&[&link[..], &psql, &["-d", "postgres", "-f", "rows.sql"]].concat());
    assert!(got.code == Some(0) && got.out.lines().count() == ROWS, "{got:?}");
    let report = program.run(&["analyze", &format!("{folder}/client.edge.pcap"), "--json"]).json();
    let connections = report["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 1, "{report:#}");
    connections[0].clone()
}

/// Microseconds of questions and answers on their way.
fn turns(connection: &Value) -> u64 {
    let parts = connection["account"]["parts"].as_array().unwrap();
    let turns = parts.iter().find(|part| part["cause"] == "turns");
    turns.and_then(|part| part["time_us"].as_u64()).unwrap_or_else(|| panic!("{connection:#}"))
}

/// The fields that TShark prints for each packet, in order.
const FIELDS: [&str; 11] = [
    "ip.checksum.status",
    "tcp.checksum.status",
    "frame.len",
    "ip.len",
    "frame.time_epoch",
    "tcp.analysis.initial_rtt",
    "tcp.analysis.retransmission",
    "tcp.analysis.window_full",
    "tcp.analysis.duplicate_ack",
    "tcp.analysis.out_of_order",
    "tcp.analysis.zero_window",
];

/// A capture as TShark reads it: a line of [`FIELDS`] for each packet.
struct Seen(Vec<Vec<String>>);

impl Seen {
    fn read(capture: &Path) -> Seen {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(capture).args([
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
        ]);
        command
            .args(["-Y", "tcp", "-T", "fields"])
            .args(FIELDS.iter().flat_map(|field| ["-e", field]));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        Seen(text.lines().map(|line| line.split('\t').map(Into::into).collect()).collect())
    }

    fn column(&self, name: &str) -> impl Iterator<Item = &str> {
        let index = FIELDS
            .iter()
            .position(|field| field.ends_with(name))
            .expect("a field that was asked for");
        self.0.iter().map(move |values| values[index].as_str())
    }

    /// Packets that have this label.
    fn count(&self, label: &str) -> f64 {
        self.column(label).filter(|value| !value.is_empty()).count() as f64
    }

    /// Good checksums, whole packets within the MTU, and a time that never goes back.
    fn assert_sound(&self) {
        assert!(self.0.len() > 500, "{} packets", self.0.len());
        for name in ["ip.checksum.status", "tcp.checksum.status"] {
            assert!(self.column(name).all(|status| status == "1"), "{name}: 1 is good");
        }
        for (frame, packet) in self.column("frame.len").zip(self.column("ip.len")) {
            assert_eq!(frame, packet, "the frame is the IP packet");
            assert!(packet.parse::<u32>().unwrap() <= 1500, "{packet} bytes are above the MTU");
        }
        // As text of one length the nanoseconds are whole; a float would round them.
        let times: Vec<_> = self.column("frame.time_epoch").collect();
        assert!(times.is_sorted(), "time goes back");
    }
}

/// Runs three seconds over 50 Mbit/s and 20 ms, captures whole packets at both ends, and compares.
/// The columns in `there` must not be zero, or the comparison would show nothing.
fn agrees(link: &str, transfer: &str, there: &[&str]) {
    let program = Program::new();
    program.file(
        "captured.toml",
        format!(
            "name = \"captured\"\n{link}rate = \"50mbit\"\nrtt = \"20ms\"\n[transfer]\nduration = \"3s\"\n{transfer}\
             [capture]\nsnaplen = \"65535B\"\n"
        ),
    );
    let row = program.rows(&["./captured.toml", "--keep-captures", "--out", "results"]).remove(0);
    assert_row(&row);
    let folder = program.work().join("results/001-captured");
    let [server, client] =
        ["server.pcap", "client.pcap"].map(|name| Seen::read(&folder.join(name)));
    server.assert_sound();
    client.assert_sound();
    assert_eq!(
        client.0.len() as f64,
        row.number("packets"),
        "packets, both ways, at the receiver's edge"
    );
    assert_counts(&row, &server, &client, there);
}

/// Compares our columns with TShark's at the same edge: the sender's events at the server's edge,
/// the receiver's at the client's.
fn assert_counts(row: &Row, server: &Seen, client: &Seen, there: &[&str]) {
    let columns = [
        ("retransmission", server),
        ("window_full", server),
        ("duplicate_ack", client),
        ("out_of_order", client),
        ("zero_window", client),
    ];
    for (column, seen) in columns {
        // At the sender's own edge nothing comes out of order: what TShark calls so there was sent
        // again, quickly.
        let quick = if column == "retransmission" { seen.count("out_of_order") } else { 0.0 };
        let (ours, theirs) = (row.number(column), seen.count(column) + quick);
        eprintln!("{column}: ours {ours}, TShark's {theirs}");
        assert_eq!(ours, theirs, "{column}");
        assert!(
            ours > 0.0 || !there.contains(&column),
            "{column}: none in a run that is made to have them"
        );
    }
    let initial = client.column("initial_rtt").find(|rtt| !rtt.is_empty()).expect("a handshake");
    let (ours, theirs) = (row.number("handshake_rtt_us"), initial.parse::<f64>().unwrap() * 1e6);
    // Theirs is from SYN to the ACK that ends the handshake: the client's own answer comes some
    // microseconds later.
    assert!(
        (-1.0..1000.0).contains(&(theirs - ours)),
        "handshake: ours {ours} us, TShark's {theirs} us"
    );
    let nominal = row.number("rtt_nominal_us");
    assert!(ours >= nominal, "handshake: {ours} us over a path of {nominal} us");
}
