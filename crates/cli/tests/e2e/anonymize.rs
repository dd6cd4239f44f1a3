//! `fullpipe anonymize` from outside: the same answer, TShark's view of checksums, captures of two
//! ends, and files that are there whole or not at all.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, User, until};
use fullpipe_model::units::Duration;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const CASES: &[Case] = &[
    ("the_answer_is_the_same", &[], the_answer_is_the_same),
    ("both_ends_belong_together_under_one_key", &[], both_ends_belong_together_under_one_key),
    ("tshark_sees_the_same_checksums", &[Need::Program("tshark")], tshark_sees_the_same_checksums),
    ("the_input_is_never_replaced", &[], the_input_is_never_replaced),
    ("a_key_and_a_capture_must_be_ones", &[], a_key_and_a_capture_must_be_ones),
    ("kill_9_leaves_nothing", &[Need::OrdinaryUser], kill_9_leaves_nothing),
];

fn in_repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// A capture of the repository, where the program works.
fn capture(program: &Program, name: &str, path: &str) {
    fs::copy(in_repository(path), program.work().join(name)).unwrap();
}

const LOSS: &str = "crates/flow/tests/lab/captures/limits/congestion_window_loss";

fn good(program: &Program, arguments: &[&str]) -> Finished {
    let finished = program.run(arguments);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
}

/// The answer without what must differ: the file's name, and the addresses' own numbers.
fn answer(program: &Program, file: &str) -> Value {
    let mut answer = good(program, &["analyze", file, "--json"]).json();
    answer["file"].take();
    for connection in answer["connections"].as_array_mut().unwrap() {
        for end in ["client", "server"] {
            let text = connection[end].as_str().unwrap().to_owned();
            connection[end] = text.rsplit_once(':').unwrap().1.into();
        }
    }
    answer
}

fn the_answer_is_the_same() {
    let program = Program::of(User::Ordinary);
    capture(&program, "in.pcap.gz", &format!("{LOSS}/client.pcap.gz"));
    capture(&program, "drops.pcapng.gz", "docs/src/cases/drops.pcapng.gz");
    for input in ["in.pcap.gz", "drops.pcapng.gz"] {
        for more in [&[][..], &["--zeroes"]] {
            let words = [&["anonymize", input, "-o", "out.pcapng", "--json"], more].concat();
            let told = good(&program, &words).json();
            assert_eq!((&told["check"]["found"], &told["packets"]), (&0.into(), &told["packets"]));
            assert!(told["check"]["connections"].as_u64().unwrap() >= 1, "{told:#}");
            assert_eq!(answer(&program, "out.pcapng"), answer(&program, input), "{input}");
        }
    }
    // By a pipe, too.
    let mut command = program.command(&["anonymize", "-", "-o", "piped.pcapng"]);
    command.stdin(File::open(program.work().join("in.pcap.gz")).unwrap());
    let mut cat =
        program.command_by(&["cat", "in.pcap.gz"]).stdout(Stdio::piped()).spawn().unwrap();
    command.stdin(cat.stdout.take().unwrap());
    let finished = program.start(&mut command).end();
    cat.wait().unwrap();
    assert!(finished.code == Some(0) && finished.out.contains("same answer"), "{finished:?}");
    assert_eq!(answer(&program, "piped.pcapng"), answer(&program, "in.pcap.gz"));
}

fn both_ends_belong_together_under_one_key() {
    let program = Program::new();
    good(&program, &["keygen", "a.key"]);
    for end in ["client", "server"] {
        capture(&program, &format!("{end}.pcap.gz"), &format!("{LOSS}/{end}.pcap.gz"));
        let (input, output) = (format!("{end}.pcap.gz"), format!("{end}.pcapng"));
        let words = ["anonymize", &input, "-o", &output, "--key-file", "a.key", "--shift-time"];
        good(&program, &words);
    }
    let before = paired(&program, ["client.pcap.gz", "server.pcap.gz"]);
    assert!(before["answer"].is_object() || before["busy"].is_object(), "{before:#}");
    assert_eq!(paired(&program, ["client.pcapng", "server.pcapng"]), before);
}

/// What two captures say together of their connection, without its addresses.
fn paired(program: &Program, files: [&str; 2]) -> Value {
    let words = [&["analyze", "--both", "--json"][..], &files].concat();
    let mut pairs = good(program, &words).json();
    let mut connection = pairs[0]["paired"]["connections"][0].take();
    assert!(connection.is_object(), "{pairs:#}");
    for end in ["client", "server"] {
        connection[end].take();
    }
    connection
}

/// The checksums' states by TShark: 1 right, 0 wrong, 2 not whole.
fn states(program: &Program, file: &str) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.args(["-r", file, "-T", "fields", "-o", "ip.check_checksum:TRUE"]);
    command.args(["-o", "tcp.check_checksum:TRUE", "-e", "ip.checksum.status"]);
    command.args(["-e", "tcp.checksum.status", "-e", "tcp.analysis.flags", "-e", "tcp.len"]);
    let told = command.current_dir(program.work()).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    String::from_utf8(told.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Packets whose checksums are right, wrong and not filled in, behind Ethernet.
fn with_sums() -> Vec<u8> {
    use fullpipe_flow::capture::write;
    use fullpipe_model::units::Instant;
    let mut file = write::file_header(65_535).to_vec();
    for (number, (ip_sum, tcp_sum)) in
        [([0x4e, 0x90], [0x69, 0xb4]), ([0x4e, 0x91], [0, 0]), ([0, 0], [1, 2])].iter().enumerate()
    {
        let mut packet = vec![0x45, 0, 0, 48, 0, 1, 0x40, 0, 64, 6, ip_sum[0], ip_sum[1]];
        packet.extend([192, 0, 2, 1, 198, 51, 100, 2, 0x9c, 0x40, 0, 80, 0, 0, 0, number as u8]);
        packet.extend([0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, tcp_sum[0], tcp_sum[1], 0, 0]);
        packet.extend(b"payload!");
        let at = Instant::from_nanos(1_000_000 * (number as u64 + 1));
        file.extend(write::record_header(at, 48, 48));
        file.extend(packet);
    }
    file
}

fn tshark_sees_the_same_checksums() {
    let program = Program::new();
    program.file("sums.pcap", with_sums());
    capture(&program, "lab.pcap.gz", &format!("{LOSS}/client.pcap.gz"));
    for input in ["sums.pcap", "lab.pcap.gz"] {
        good(&program, &["anonymize", input, "-o", "out.pcapng", "--zeroes"]);
        let before = states(&program, input);
        assert!(before.len() >= 3, "{before:?}");
        assert_eq!(states(&program, "out.pcapng"), before, "{input}");
    }
    let sums = states(&program, "sums.pcap");
    let distinct: std::collections::BTreeSet<_> = sums.iter().collect();
    assert!(distinct.len() == 2, "right ones and wrong ones: {sums:?}");
}

fn the_input_is_never_replaced() {
    let program = Program::new();
    capture(&program, "in.pcap.gz", &format!("{LOSS}/client.pcap.gz"));
    std::os::unix::fs::symlink("in.pcap.gz", program.work().join("link.pcap")).unwrap();
    fs::hard_link(program.work().join("in.pcap.gz"), program.work().join("hard.pcap")).unwrap();
    let before = fs::read(program.work().join("in.pcap.gz")).unwrap();
    for output in ["in.pcap.gz", "./in.pcap.gz", "link.pcap", "hard.pcap"] {
        let refused = program.run(&["anonymize", "in.pcap.gz", "-o", output]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("names the input itself"), "{refused:?}");
    }
    assert_eq!(fs::read(program.work().join("in.pcap.gz")).unwrap(), before);
}

fn a_key_and_a_capture_must_be_ones() {
    let program = Program::new();
    program.file("no.key", "none");
    program.file("no.pcap", "nothing that is a capture");
    capture(&program, "in.pcap.gz", &format!("{LOSS}/client.pcap.gz"));
    for words in [
        &["anonymize", "in.pcap.gz", "-o", "out.pcapng", "--key-file", "no.key"][..],
        &["anonymize", "in.pcap.gz", "-o", "out.pcapng", "--key-file", "missing.key"],
        &["anonymize", "no.pcap", "-o", "out.pcapng"],
        &["anonymize", "missing.pcap", "-o", "out.pcapng"],
        &["anonymize", ".", "-o", "out.pcapng"],
    ] {
        let refused = program.run(words);
        assert_eq!((refused.code, refused.out.as_str()), (Some(4), ""), "{refused:?}");
        assert!(!program.work().join("out.pcapng").exists());
    }
    // Half a capture is written as far as it goes, and that is said.
    let bytes = fs::read(in_repository("docs/src/cases/drops.pcapng.gz")).unwrap();
    program.file("half.pcapng.gz", &bytes[..bytes.len() / 2]);
    let half = program.run(&["anonymize", "half.pcapng.gz", "-o", "out.pcapng"]);
    assert_eq!(half.code, Some(4), "{half:?}");
    assert!(program.work().join("out.pcapng").exists(), "{half:?}");
}

/// Killed while it reads a pipe of which it has taken more than a pipe holds.
fn kill_9_leaves_nothing() {
    let program = Program::of(User::Ordinary);
    let mut command = program.command(&["anonymize", "-", "-o", "out.pcapng"]);
    let mut running = program.start(command.stdin(Stdio::piped()));
    let mut pipe = running.stdin();
    let piece = vec![0; 1 << 20];
    pipe.write_all(&piece).unwrap();
    assert!(!running.has_ended());
    running.kill_9();
    drop(pipe);
    let mut left = Vec::new();
    until("nothing is left", Duration::from_secs(5), || {
        left = [program.work(), program.tmp()]
            .iter()
            .flat_map(|folder| fs::read_dir(folder).unwrap().map(|one| one.unwrap().path()))
            .collect();
        left.is_empty()
    });
}
