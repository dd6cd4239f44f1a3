//! netem and our own link carry the same paths: their results must agree, and each must repeat its
//! own.

use crate::Case;
use crate::guest::{self, Time};
use crate::need::Need;
use crate::program::{Program, Row, result_file, row, same_files, scenario};

pub const CASES: &[Case] = &[
    ("netem_and_our_link_agree", &[Need::GuestKernel], netem_and_our_link_agree),
    (
        "round_trips_by_netem_are_the_paths_alone",
        &[Need::GuestKernel],
        round_trips_by_netem_are_the_paths_alone,
    ),
    ("our_link_repeats_too", &[Need::GuestKernel], our_link_repeats_too),
    (
        "netem_does_to_packets_what_it_is_asked_to",
        &[Need::GuestKernel],
        netem_does_to_packets_what_it_is_asked_to,
    ),
    (
        "super_packets_are_captured_as_segments",
        &[Need::GuestKernel],
        super_packets_are_captured_as_segments,
    ),
    (
        "netem_carries_programs_traffic",
        &[Need::GuestKernel, Need::Program("curl"), Need::Program("python3")],
        netem_carries_programs_traffic,
    ),
    ("without_netem_it_says_what_to_do", &[], without_netem_it_says_what_to_do),
    ("words_that_netem_lacks_are_refused", &[], words_that_netem_lacks_are_refused),
];

fn rows(program: &Program, scenario: &str, engine: &str, out: &str) -> Vec<Row> {
    let engine = ["--engine", "virtual", "--link-engine", engine];
    program.rows(&[&[scenario], &engine[..], &["--keep-captures", "--out", out]].concat())
}

const SAME: &str = r#"
[[cases]]
name = "plain"
[[cases]]
name = "far"
link.rtt = "100ms"
[[cases]]
name = "short-queue"
link.queue = "40packets"
[[cases]]
name = "slow"
link.rate = "2mbit"
[[cases]]
name = "lossy"
hosts.server.congestion_control = "reno"
link.to_client.loss = "2%"
transfer.duration = "40s"
"#;

fn netem_and_our_link_agree() {
    let program = Program::new();
    let scenario = program.file(
        "same.toml",
        scenario("same", ["50mbit", "20ms"], "size = \"1TB\"\nduration = \"3s\"", SAME),
    );
    let (netem, own) =
        (rows(&program, scenario, "netem", "netem"), rows(&program, scenario, "own", "own"));
    for (netem, own) in netem.iter().zip(&own) {
        assert_eq!((netem.text("link_engine"), own.text("link_engine")), ("netem", "own"));
        // Of some 500 losses, each engine's its own, the rate's deviation is some 3 %: Reno's is
        // that of their square root.
        let bound = if netem.name().ends_with("lossy") { 0.1 } else { 0.02 };
        for (key, bound) in
            [("goodput_bps", bound), ("rtt_p50_us", 0.02), ("handshake_rtt_us", 0.002)]
        {
            let (a, b) = (netem.number(key), own.number(key));
            eprintln!(
                "{} {key}: netem {a}, own {b}, {:+.2} %",
                netem.name(),
                (b / a - 1.0) * 100.0
            );
            assert!((b / a - 1.0).abs() <= bound, "{} {key}: netem {a}, own {b}", netem.name());
        }
        let dropped = [netem, own].map(|row| row.number("queue_dropped"));
        assert!(
            (dropped[0] - dropped[1]).abs() <= 2.0 + 0.05 * dropped[0],
            "{}: {dropped:?}",
            netem.name()
        );
    }
}

fn round_trips_by_netem_are_the_paths_alone() {
    let program = Program::new();
    let text = "name = \"exact\"\n[link]\nrate = \"1gbit\"\n[transfer]\nsize = \"20kB\"\n[matrix]\n\"link.rtt\" = [\"1ms\", \"50ms\"]\n";
    for row in rows(&program, program.file("exact.toml", text), "netem", "out") {
        // SYN and SYN-ACK, 60 bytes each at 1 Gbit/s, are 0.96 us.
        let over = row.number("handshake_rtt_us") - row.number("rtt_nominal_us") - 0.96;
        eprintln!("{}: handshake {over} us above the path's", row.name());
        assert!((-1.0..=2.0).contains(&over), "{over} us");
        assert!(row.quiet() && row.number("link_late_max_us") == 0.0, "{:?}", row.notes());
    }
}

fn our_link_repeats_too() {
    let program = Program::new();
    let text = "name = \"twice\"\n[link]\nrate = \"20mbit\"\nrtt = \"10ms\"\nloss = \"1%\"\n[transfer]\nsize = \"1MB\"\n";
    let scenario = program.file("twice.toml", text);
    let [first, second] = ["first", "second"].map(|out| {
        rows(&program, scenario, "own", out);
        program.work().join(out)
    });
    assert!(!same_files([&first, &second]).is_empty());
}

const WORDS: &str = r#"
[[cases]]
name = "loss"
link.to_client.loss = "2%"
[[cases]]
name = "bursts"
link.to_client.loss = "gemodel 1% 20%"
[[cases]]
name = "reorder"
link.to_client.reorder = "5%"
[[cases]]
name = "jitter"
link.to_client.delay = "5ms 1ms distribution normal"
[[cases]]
name = "duplicate"
link.to_client.duplicate = "5%"
"#;

fn netem_does_to_packets_what_it_is_asked_to() {
    let program = Program::new();
    let rows = rows(
        &program,
        program.file(
            "words.toml",
            scenario("words", ["20mbit", "10ms"], "size = \"1TB\"\nduration = \"4s\"", WORDS),
        ),
        "netem",
        "out",
    );
    let out = program.work().join("out");
    // 5 deviations of a binomial; bursts of 5 spread a loss rate more, by the square root of 2 * 5
    // at most.
    for (case, share, spread) in [("loss", 0.02, 1.0), ("bursts", 0.01 / 0.21, 10f64.sqrt())] {
        let link = result_file(&out, row(&rows, case), "link.json");
        let count = |key: &str| link["to_client"][key].as_f64().unwrap();
        let (arrived, lost) = (count("arrived_packets"), count("lost_packets"));
        let deviation = (arrived * share * (1.0 - share)).sqrt() * spread;
        eprintln!("{case}: {lost} of {arrived} lost, {:.1} expected", arrived * share);
        assert!(
            arrived > 1000.0 && (lost - arrived * share).abs() < 5.0 * deviation,
            "{case}: {lost} of {arrived}"
        );
    }
    for case in ["reorder", "jitter"] {
        assert!(row(&rows, case).number("out_of_order") > 10.0, "{case}");
    }
    let twice = row(&rows, "duplicate");
    assert!(twice.number("duplicate_ack") > 10.0 && twice.number("lost") == 0.0);
    assert!(row(&rows, "jitter").number("rtt_p50_us") > 9_000.0);
}

fn super_packets_are_captured_as_segments() {
    let program = Program::new();
    let text =
        "name = \"fast\"\n[link]\nrate = \"25gbit\"\nrtt = \"2ms\"\n[transfer]\nsize = \"30MB\"\n";
    let row = rows(&program, program.file("fast.toml", text), "netem", "out").remove(0);
    // 30 MB in segments of 1448 bytes, and acknowledgements: as super-packets there were some 500.
    assert!(row.number("packets") > 30e6 / 1448.0, "{}", row.number("packets"));
    assert_eq!((row.number("retransmission"), row.text("link_engine")), (0.0, "netem"));
}

/// `link --engine netem` where the kernel has it: each word by its law, each refusal by its code.
fn netem_carries_programs_traffic() {
    let program = Program::new();
    program.file("big", vec![7; 2_000_000]);
    let link = |words: &str, report: &str| {
        format!(
            "$fullpipe link --engine netem --report {report} {words} --server 'exec python3 -m http.server 8000 2>/dev/null' -- \
             curl -q -sS -o/dev/null -w '%{{time_connect}} %{{time_total}} %{{size_download}}\\n' http://{{server}}:8000/big\n\
             echo $?\n"
        )
    };
    let script = [
        link("--rtt 120ms", "delay"),
        link("--rtt 20ms --down-rate 10mbit", "rate"),
        link("--rtt 1ms --down-loss 5%", "loss"),
        "$fullpipe link --engine netem --rate 1mbit --discipline codel --server 'sleep 60' -- true; echo $?\n".into(),
        "$fullpipe link --engine netem --rtt 1ms --log log --server 'exec python3 -m http.server 8000' -- true; echo $?\n"
            .into(),
    ]
    .concat();
    let out = guest::run(&program, None, Time::Virtual, &script);
    eprintln!("{out}");
    let lines: Vec<_> = out.lines().collect();
    let [delay, "0", rate, "0", loss, "0", codel, "4", log, "2"] = lines[..] else {
        panic!("{out}")
    };
    let numbers =
        |line: &str| -> Vec<f64> { line.split(' ').map(|word| word.parse().unwrap()).collect() };
    let report = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(program.work().join(name)).unwrap()).unwrap()
    };
    // The handshake is the path's round trip, and nothing else.
    let [connect, _, size] = numbers(delay)[..] else { panic!("{delay}") };
    assert!((0.120..0.1201).contains(&connect) && size == 2e6, "{delay}");
    // Every packet takes its time at the rate; slow start and the last acknowledgement are on top.
    let [_, total, _] = numbers(rate)[..] else { panic!("{rate}") };
    let carried = report("rate")["statistics"]["to_client"]["departed_bytes"].as_f64().unwrap();
    let least = carried * 8.0 / 1e7;
    assert!((least..least + 0.1).contains(&total), "{total} s for {carried} bytes");
    // 5 deviations of a binomial.
    assert_eq!(numbers(loss)[2], 2e6, "{loss}");
    let way = &report("loss")["statistics"]["to_client"];
    let [arrived, lost] = ["arrived_packets", "lost_packets"].map(|key| way[key].as_f64().unwrap());
    assert!(
        (lost - arrived * 0.05).abs() < 5.0 * (arrived * 0.05 * 0.95).sqrt(),
        "{lost} of {arrived}"
    );
    assert!(codel.contains("codel") && log.contains("--engine own"), "{out}");
}

fn without_netem_it_says_what_to_do() {
    let program = Program::new();
    let text = "[link]\nengine = \"netem\"\nrtt = \"10ms\"\n[transfer]\nsize = \"100kB\"\n";
    let finished = program.run(&["lab", "run", program.file("netem.toml", text), "--json"]);
    match finished.code {
        // Here it is: then it works.
        Some(0) => assert_eq!(finished.json()["rows"][0]["link_engine"], "netem"),
        code => {
            assert_eq!(code, Some(3), "{finished:?}");
            assert!(
                finished.err.contains("set netem") && finished.err.contains("modprobe sch_netem"),
                "{finished:?}"
            );
        }
    }
}

fn words_that_netem_lacks_are_refused() {
    let program = Program::new();
    let text =
        "[link]\nengine = \"netem\"\nrate = \"10mbit\"\nrtt = \"10ms\"\ndiscipline = \"codel\"\n";
    let finished = program.run(&["lab", "run", program.file("codel.toml", text)]);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert!(finished.err.contains("codel") && finished.err.contains("engine"), "{finished:?}");
}
