//! `fullpipe analyze` as a user runs it: its output and its exit code.

mod both;
mod keys;
#[path = "../../../flow/tests/skip/mod.rs"]
mod skip;
#[path = "../../../flow/tests/window/mod.rs"]
mod window;
mod windows;

use fullpipe_flow::capture::write;
use fullpipe_flow::connection::Label;
use fullpipe_model::units::Instant;
use serde_json::Value;
use skip::skip;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use window::Segment;

/// A value that `fullpipe schema KIND --json` refuses, and why; nothing if it takes all of them.
fn refused(kind: &str, values: &[Value]) -> Option<String> {
    let ended = run(&["schema", kind, "--json"], &[]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let schema: Value = serde_json::from_str(&ended.out).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.add_resource("schema.json", schema).unwrap();
    let index = compiler.compile("schema.json", &mut schemas).unwrap();
    values.iter().find_map(|value| {
        schemas.validate(value, index).err().map(|error| format!("{error:#}: {value:#}"))
    })
}

#[test]
fn what_is_printed_is_what_its_json_schema_says() {
    let file = window_limited(1_700_000_000_000_000_000, 40_000, 20);
    let lines = |arguments: &[&str]| -> Vec<Value> {
        let ended = fed(&[arguments, &["-"]].concat(), &file);
        assert_eq!(ended.code, 0, "{}", ended.err);
        ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut connections = lines(&["--jsonl"]);
    assert_eq!(refused("connection", &connections), None);
    assert!(!connections[0]["findings"].as_array().unwrap().is_empty());
    assert_eq!(refused("packet", &lines(&["--packets", "--jsonl"])), None);
    // Deep inside, too, a value of another type is refused.
    connections[0]["findings"][0]["share"] = "all".into();
    assert!(refused("connection", &connections).is_some());
}

struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn analyze(arguments: &[&str]) -> Ended {
    fed(arguments, &[])
}

/// Runs it with `input` on its standard input.
fn fed(arguments: &[&str], input: &[u8]) -> Ended {
    run(&[&["analyze"], arguments].concat(), input)
}

/// Runs any subcommand with `input` on its standard input.
fn run(arguments: &[&str], input: &[u8]) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fullpipe"))
        .args(arguments)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let ended = std::thread::scope(|scope| {
        // One that fails does not read all; that is for the exit code to say.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    });
    Ended {
        code: ended.status.code().unwrap(),
        out: String::from_utf8(ended.stdout).unwrap(),
        err: String::from_utf8(ended.stderr).unwrap(),
    }
}

/// A capture of a server that sends `turns` windows of 10 kB, one a round trip of 50 ms.
fn window_limited(start: u64, port: u16, turns: u32) -> Vec<u8> {
    let mut file = write::file_header(65_535).to_vec();
    for (nanos, packet) in window::packets(port, turns) {
        let at = Instant::from_nanos(start + nanos);
        let original = u32::from(u16::from_be_bytes([packet[2], packet[3]]));
        file.extend(write::record_header(at, packet.len() as u32, original));
        file.extend(packet);
    }
    file
}

const EPOCH: u64 = 1_704_067_200_000_000_000;

/// A folder of this test's own, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("fullpipe-analyze-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn one_connection_is_told_in_depth() {
    let told = fed(&["-"], &window_limited(EPOCH, 40_000, 100));
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    // The law: 10 kB each 50 ms are 1.6 Mbit/s.
    assert!(told.out.contains("(10 kB at 49.49 ms allows 1.616 Mbit/s)"), "{}", told.out);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/window.txt");
    if std::env::var_os("FULLPIPE_BLESS").is_some() {
        std::fs::write(&golden, &told.out).unwrap();
    }
    assert_eq!(
        told.out,
        std::fs::read_to_string(&golden).unwrap(),
        "FULLPIPE_BLESS=1 writes it anew"
    );
}

#[test]
fn the_exit_code_says_whose_fault_it_is() {
    let folder = Folder::new("codes");
    let whole = window_limited(EPOCH, 40_000, 3);
    let good = folder.file("good.pcap", &whole);
    let cut = folder.file("cut.pcap", &whole[..whole.len() - 7]);
    let none = folder.file("none.pcap", b"");
    let other = folder.file("other.txt", b"GET / HTTP/1.1\r\n");
    let cases = [
        (&[good.as_str()][..], 0, ""),
        (&[cut.as_str()], 4, "ends in the middle of a packet, 49 bytes after"),
        (&[none.as_str()], 4, "nothing in it"),
        (&[other.as_str()], 4, "neither pcap"),
        (&["/nowhere/at.all"], 4, "/nowhere/at.all"),
        (&["/tmp"], 4, "directory"),
        (&[], 2, "FILE"),
        (&[good.as_str(), "--filter", "hots 10.0.0.1"], 2, "'hots' is none of host"),
        (&[good.as_str(), "--connection", "7"], 2, "no connection 7"),
        (&[other.as_str(), "--connection", "7"], 4, "neither pcap"),
        (&[cut.as_str(), "--connection", "7"], 4, "no connection 7"),
        (&[good.as_str(), "--interval", "0ms"], 2, "an interval cannot be 0"),
        (&[good.as_str(), "--interval", "1parsec"], 2, "--interval"),
        (&["-", "-"], 2, "read once"),
        (&[good.as_str(), "--json", "--csv"], 2, "cannot be used"),
    ];
    for (arguments, code, message) in cases {
        let ended = analyze(arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.err);
        assert!(ended.err.contains(message), "{arguments:?}: {}", ended.err);
        assert_eq!(ended.err.is_empty(), code == 0, "{arguments:?}");
    }
    // What is before the cut is analysed, and JSON says that there was one.
    let json: Value = serde_json::from_str(&analyze(&[&cut, "--json"]).out).unwrap();
    assert_eq!(json["packets"], 35);
    assert!(json["problem"].as_str().unwrap().contains("middle of a packet"));
    // One bad file does not keep the others from being analysed.
    let both = analyze(&[&other, &good, "--json"]);
    let json: Value = serde_json::from_str(&both.out).unwrap();
    assert_eq!((both.code, json.as_array().unwrap().len()), (4, 2));
    assert_eq!(json[1]["connections"][0]["client"], "192.0.2.1:40000");
}

/// The segments of `capture`, each cut to `most` bytes, with options in their headers.
fn with_options_cut_to(most: usize) -> Vec<u8> {
    let mut file = write::file_header(65_535).to_vec();
    for number in 0..10_u32 {
        let seq = 500 + number * 1_000;
        let (flags, ack, payload) = (0x10, 100, 1_000);
        let segment = Segment { port: 40_000, to_server: false, flags, seq, ack, payload };
        let mut packet = segment.packet();
        packet[32] = 0x80;
        packet.extend([1, 1, 8, 10, 0, 0, 0, number as u8, 0, 0, 0, 1]);
        packet.truncate(most);
        file.extend(write::record_header(
            Instant::from_nanos(EPOCH + u64::from(number)),
            packet.len() as u32,
            1_052,
        ));
        file.extend(packet);
    }
    file
}

#[test]
fn a_snap_length_that_cuts_tcp_headers_is_warned_of() {
    for (most, is_warned) in [(52, false), (51, true), (40, true), (36, true)] {
        let told = fed(&["-"], &with_options_cut_to(most));
        assert_eq!(told.code, 0, "{}", told.err);
        assert_eq!(
            told.out.contains("cut within their TCP headers"),
            is_warned,
            "{most}: {}",
            told.out
        );
        let json = fed(&["-", "--json"], &with_options_cut_to(most)).out;
        assert_eq!(json.contains("headers_cut"), is_warned, "{most}");
    }
}

#[test]
fn one_unreadable_file_of_many_does_not_stop_the_others() {
    let folder = Folder::new("many");
    let good = folder.file("good.pcap", &window_limited(EPOCH, 40_000, 3));
    let other = folder.file("other.txt", b"GET / HTTP/1.1\r\n");
    let missing = folder.0.join("missing.pcap").to_str().unwrap().to_owned();
    for options in [&["--json"][..], &["--jsonl"], &["--csv"], &["--packets"], &[]] {
        let files = [missing.as_str(), &other, &good];
        let told = analyze(&[&files[..], options].concat());
        assert_eq!(told.code, 4, "{options:?}");
        for problem in ["missing.pcap: No such file", "other.txt: reading a capture"] {
            assert!(told.err.contains(problem), "{options:?}: {}", told.err);
        }
        assert!(
            told.out.contains("198.51.100.2"),
            "{options:?}: the good one is analysed: {}",
            told.out
        );
    }
    let reports: Value = serde_json::from_str(&analyze(&[&missing, &good, "--json"]).out).unwrap();
    assert!(reports[0]["problem"].as_str().unwrap().contains("No such file"), "{reports}");
    assert_eq!(reports[1]["connections"].as_array().unwrap().len(), 1);
    // With none there is no report of nothing, and no file is made.
    let rows = folder.0.join("rows.parquet");
    let none = analyze(&[&missing, "/tmp", "--parquet", rows.to_str().unwrap()]);
    assert_eq!((none.code, none.out.as_str(), rows.exists()), (4, "", false));
}

/// The packets of one direction of a capture of raw IPv4.
fn one_way(capture: &[u8], to_server: bool) -> Vec<u8> {
    let mut file = write::file_header(65_535).to_vec();
    fullpipe_flow::capture::read(capture, |packet| {
        if (packet.data[12..16] == [192, 0, 2, 1]) == to_server {
            let kept = packet.data.len() as u32;
            file.extend(write::record_header(packet.at, kept, packet.original_length as u32));
            file.extend(packet.data);
        }
    })
    .unwrap();
    file
}

#[test]
fn files_taken_for_one_are_merged_by_time() {
    let folder = Folder::new("merged");
    let both = window_limited(EPOCH, 40_000, 20);
    let whole = folder.file("both.pcap", &both);
    let sent = folder.file("sent.pcap", &one_way(&both, true));
    let received = folder.file("received.pcap", &one_way(&both, false));
    let connections = |arguments: &[&str]| {
        let told = analyze(arguments);
        assert_eq!(told.code, 0, "{}", told.err);
        serde_json::from_str::<Value>(&told.out).unwrap()["connections"].clone()
    };
    let expected = connections(&[&whole, "--json"]);
    assert_eq!(expected[0]["client_to_server"]["packets"], 22);
    for files in [[&sent, &received], [&received, &sent]] {
        for threads in ["1", "2"] {
            let merged =
                connections(&["--as-one", files[0], files[1], "--json", "--threads", threads]);
            assert_eq!(merged, expected, "{files:?}");
        }
    }
}

#[test]
fn packets_do_not_depend_on_threads() {
    let folder = Folder::new("labelled");
    let captures: Vec<_> =
        (0..3_u16).map(|n| window_limited(EPOCH + u64::from(n) * 7_000, 40_000 + n, 40)).collect();
    let names = ["a.pcap", "b.pcap", "c.pcap"];
    let files: Vec<_> =
        names.iter().zip(&captures).map(|(name, bytes)| folder.file(name, bytes)).collect();
    let told = |threads: &str, options: &[&str]| {
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        let told = analyze(
            &[&["--as-one", "--packets", "--threads", threads][..], &files, options].concat(),
        );
        assert_eq!(told.code, 0, "{}", told.err);
        told.out
    };
    for options in [&[][..], &["--jsonl"], &["--connection", "1"], &["--labels", "wireshark"]] {
        let one = told("1", options);
        assert!(one.lines().count() > 400, "{options:?}: {}", one.lines().count());
        for threads in ["2", "4"] {
            assert_eq!(told(threads, options), one, "{options:?} with {threads} threads");
        }
    }
}

#[test]
fn files_taken_for_one_are_put_in_order_and_threads_change_nothing() {
    let folder = Folder::new("one");
    let whole = window_limited(EPOCH, 40_000, 50);
    // Cut between records: a rotated set.
    let at = write::FILE_HEADER + 123 * (write::RECORD_HEADER + 40);
    let second = [&whole[..write::FILE_HEADER], &whole[at..]].concat();
    let (second, first) = (folder.file("a.pcap", &second), folder.file("b.pcap", &whole[..at]));
    let whole = folder.file("whole.pcap", &whole);
    let connections = |arguments: &[&str]| {
        let ended = analyze(arguments);
        assert_eq!(ended.code, 0, "{}", ended.err);
        serde_json::from_str::<Value>(&ended.out).unwrap()["connections"].clone()
    };
    let expected = connections(&[&whole, "--json"]);
    assert_eq!(expected[0]["server_to_client"]["payload_bytes"], 500_000);
    assert_eq!(connections(&["--as-one", &second, &first, "--json"]), expected);
    assert_eq!(connections(&["--as-one", &second, &first, "--json", "--threads", "3"]), expected);
}

#[test]
fn whatever_is_printed_of_a_capture_whose_times_go_back_that_is_said() {
    let mut file = window_limited(EPOCH, 40_000, 3);
    file.extend(&window_limited(EPOCH + 1_000_000, 40_001, 3)[write::FILE_HEADER..]);
    for format in [&["--packets"][..], &["--packets", "--jsonl"], &["--jsonl"], &["--csv"], &[]] {
        let ended = fed(&[format, &["-"]].concat(), &file);
        let told = ended.err + if format.is_empty() { &ended.out } else { "" };
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("packets go back"), "{format:?}: {told}");
    }
}

/// Connections that end hours apart are printed when they end, with one thread and with several.
#[test]
fn rows_do_not_depend_on_how_many_threads_make_them() {
    let folder = Folder::new("threads");
    let hours = |hours: u64| EPOCH + hours * 3_600_000_000_000;
    let mut whole = write::file_header(65_535).to_vec();
    for index in 0..24_u16 {
        whole.extend(&window_limited(hours(index.into()), 40_000 + index, 3)[write::FILE_HEADER..]);
    }
    let file = folder.file("x.pcap", &whole);
    for format in ["--csv", "--jsonl"] {
        let one = analyze(&[&file, format]);
        assert_eq!((one.code, one.err.as_str()), (0, ""));
        assert_eq!(one.out.lines().count(), if format == "--csv" { 49 } else { 24 });
        for threads in ["2", "5"] {
            assert_eq!(
                analyze(&[&file, format, "--threads", threads]).out,
                one.out,
                "{format} --threads {threads}"
            );
        }
    }
    let ids = |out: &str| -> Vec<u64> {
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap();
        out.lines().map(id).collect()
    };
    assert_eq!(
        ids(&analyze(&[&file, "--jsonl", "--threads", "3"]).out),
        (0..24).collect::<Vec<_>>()
    );
}

#[test]
fn rows_and_lines_hold_what_json_holds() {
    let folder = Folder::new("rows");
    let file = folder.file("x.pcap", &window_limited(EPOCH, 40_000, 20));
    let json: Value = serde_json::from_str(&analyze(&[&file, "--json"]).out).unwrap();
    let line: Value = serde_json::from_str(&analyze(&[&file, "--jsonl"]).out).unwrap();
    assert_eq!(line["findings"], json["connections"][0]["findings"]);
    assert_eq!(line["file"], file.as_str());
    let csv = analyze(&[&file, "--csv"]).out;
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3);
    let column = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
    assert_eq!(rows[2][column("payload_bytes")], "200000");
    assert_eq!(rows[2][column("direction")], "server_to_client");
    let packets = analyze(&[&file, "--packets"]).out;
    assert_eq!(packets.lines().count(), json["packets"].as_u64().unwrap() as usize);
    assert!(
        packets
            .lines()
            .next()
            .unwrap()
            .ends_with("192.0.2.1:40000 > 198.51.100.2:80 [S] seq 0 win 10000 len 0")
    );
    // The tenth segment of a window ends where the window does.
    assert!(packets.lines().nth(12).unwrap().ends_with("len 1000  # window_full"), "{packets}");
    assert_eq!(analyze(&[&file, "--packets", "--filter", "port 81"]).out, "");
    let filtered: Value =
        serde_json::from_str(&analyze(&[&file, "--json", "--filter", "port 81"]).out).unwrap();
    assert_eq!(
        (&filtered["filtered"], filtered["connections"].as_array().unwrap().len()),
        (&json["packets"], 0)
    );
}

/// The rows of a Parquet file, each cell as CSV would have it.
fn parquet_rows(file: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let reader = SerializedFileReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let fields = reader.metadata().file_metadata().schema().get_fields().to_vec();
    let names = fields.iter().map(|field| field.name().to_string()).collect();
    let cell = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::ULong(number) => number.to_string(),
        Field::Double(fraction) => format!("{fraction:.4}"),
        Field::Bool(is) => is.to_string(),
        other => panic!("a cell of another kind: {other:?}"),
    };
    let rows = reader.get_row_iter(None).unwrap();
    (
        names,
        rows.map(|row| row.unwrap().get_column_iter().map(|(_, field)| cell(field)).collect())
            .collect(),
    )
}

#[test]
fn parquet_holds_what_csv_holds_and_packets_what_their_lines_hold() {
    let folder = Folder::new("parquet");
    let capture = folder.file("a.pcap", &window_limited(EPOCH, 40_000, 20));
    let table = folder.0.join("rows.parquet");
    let written = analyze(&[&capture, "--parquet", table.to_str().unwrap()]);
    assert_eq!((written.code, written.out.as_str(), written.err.as_str()), (0, "", ""));
    let csv = analyze(&[&capture, "--csv"]).out;
    let mut lines = csv.lines().map(|line| line.split(',').map(String::from).collect::<Vec<_>>());
    let (names, rows) = parquet_rows(&table);
    assert_eq!(Some(names), lines.next());
    assert_eq!(rows, lines.collect::<Vec<_>>());

    assert_eq!(analyze(&[&capture, "--packets", "--parquet", table.to_str().unwrap()]).code, 0);
    let (names, rows) = parquet_rows(&table);
    let lines = analyze(&[&capture, "--packets", "--jsonl"]).out;
    assert_eq!(rows.len(), lines.lines().count());
    for (row, line) in rows.iter().zip(lines.lines()) {
        let line: Value = serde_json::from_str(line).unwrap();
        for (name, cell) in names.iter().zip(row) {
            match &line[name] {
                Value::Number(number) => assert_eq!(cell, &number.to_string(), "{name}"),
                Value::String(text) => assert_eq!(cell, text, "{name}"),
                Value::Array(labels) => {
                    let labels: Vec<_> = labels.iter().filter_map(Value::as_str).collect();
                    assert_eq!(cell, &labels.join(" "), "{name}");
                }
                _ => {}
            }
        }
    }

    let nowhere = analyze(&[&capture, "--parquet", "/nowhere/rows.parquet"]);
    assert_eq!(nowhere.code, 1);
    assert!(nowhere.err.contains("write /nowhere/rows.parquet: No such file"), "{}", nowhere.err);
}

/// Every given capture is explained in the documented form; those that tshark finds cut exit with
/// 4, all others with 0.
#[test]
fn every_given_capture_has_its_json() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let Ok(index) = std::fs::read_to_string(folder.join("index.tsv")) else {
        return skip("every_given_capture_has_its_json", &format!("no {}", folder.display()));
    };
    for row in index.lines().skip(1) {
        let columns: Vec<_> = row.split('\t').collect();
        let file = folder.join("files").join(columns[1]);
        let ended = analyze(&[file.to_str().unwrap(), "--json"]);
        let damaged = columns
            .last()
            .is_some_and(|notes| notes.contains("cut short") || notes.contains("bad-caplen"));
        assert_eq!(ended.code, if damaged { 4 } else { 0 }, "{}: {}", columns[1], ended.err);
        let json: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(json["packets"].to_string(), columns[8], "{}", columns[1]);
        assert_eq!(json["file"], file.to_str().unwrap());
        for connection in json["connections"].as_array().unwrap() {
            check(connection)
                .unwrap_or_else(|missing| panic!("{}: {missing} in {connection}", columns[1]));
        }
    }
}

/// The promised fields of a connection; names one that is not there.
fn check(connection: &Value) -> Result<(), String> {
    let has = |holds: bool, name: &str| {
        if holds { Ok(()) } else { Err(format!("{name} is missing or wrong")) }
    };
    has(connection["id"].is_u64(), "id")?;
    for end in ["client", "server"] {
        has(
            connection[end].as_str().is_some_and(|end| end.parse::<std::net::SocketAddr>().is_ok()),
            end,
        )?;
    }
    for name in ["close", "vantage", "warnings", "completeness"] {
        has(!connection[name].is_null(), name)?;
    }
    has(
        connection["handshake_rtt_us"].is_u64() || connection["handshake_rtt_us"].is_null(),
        "handshake_rtt_us",
    )?;
    for direction in ["client_to_server", "server_to_client"] {
        let facts = &connection[direction];
        for name in ["packets", "payload_bytes", "in_flight_max_bytes"] {
            has(facts[name].is_u64(), name)?;
        }
        let is_known_or_null =
            |value: Option<&Value>| value.is_some_and(|value| value.is_u64() || value.is_null());
        for name in ["goodput_bps", "goodput_peak_bps", "window_min_bytes", "window_max_bytes"] {
            has(is_known_or_null(facts.get(name)), name)?;
        }
        has(facts["window"]["max_bytes"] == facts["window_max_bytes"], "window.max_bytes")?;
        let window = |name: &str| facts["window"][name].as_u64();
        let quantiles = [window("min_bytes"), window("p50_bytes"), window("max_bytes")];
        has(
            quantiles.is_sorted()
                && quantiles.iter().all(|q| q.is_some() == quantiles[0].is_some()),
            "window.p50_bytes",
        )?;
        for name in ["min_us", "p50_us", "p95_us", "p99_us", "max_us"] {
            has(is_known_or_null(facts["rtt"].get(name)), name)?;
        }
        for name in [
            "advancing_acks",
            "stretch_acks",
            "delayed_acks",
            "burst_max_packets",
            "ecn_echo",
            "resets",
        ] {
            has(facts["manner"][name].is_u64(), name)?;
        }
        for name in
            ["sack_permitted", "timestamps", "fast_open", "multipath", "window_scale_offered"]
        {
            has(facts["manner"][name].is_boolean(), name)?;
        }
        for label in Label::ALL {
            has(facts["labels"][label.name()].is_u64(), label.name())?;
        }
    }
    has(
        connection["vantage"]["place"].is_string() && connection["vantage"]["confidence"].is_f64(),
        "vantage",
    )?;
    for limit in connection["limits"].as_array().ok_or("limits")? {
        let share = limit["share"].as_f64().ok_or("share")?;
        has(
            (0.0..=1.0).contains(&share)
                && limit["limit"].is_string()
                && limit["direction"].is_string(),
            "limits",
        )?;
    }
    for finding in connection["findings"].as_array().ok_or("findings")? {
        has(
            finding["claim"].is_string()
                && finding["evidence"].is_object()
                && finding["remedy"].is_string(),
            "findings",
        )?;
        for change in finding["changes"].as_array().ok_or("changes")? {
            has(
                change["setting"].is_string()
                    && change["to"].is_string()
                    && change["host"].is_string(),
                "changes",
            )?;
        }
    }
    Ok(())
}
