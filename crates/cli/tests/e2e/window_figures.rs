//! What the window agent is for, in virtual time: the presets `window/..`, shortened. The figures
//! are exact on any machine.

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Row, row};

pub const CASES: &[Case] = &[
    ("a_fast_reader_fills_the_link", &[Need::GuestKernel], a_fast_reader_fills_the_link),
    ("a_slow_reader_holds_little", &[Need::GuestKernel], a_slow_reader_holds_little),
    ("a_short_path_stays_as_fast", &[Need::GuestKernel], a_short_path_stays_as_fast),
    ("in_real_time_it_is_refused", &[Need::Sandbox], in_real_time_it_is_refused),
];

const FAST: &str = include_str!("../../../../scenarios/window/fast-reader.toml");
const SLOW: &str = include_str!("../../../../scenarios/window/slow-reader.toml");
const SHORT: &str = include_str!("../../../../scenarios/window/low-rtt.toml");

/// Payload that a link of 2 Gbit/s carries: 1448 bytes in an IP packet of 1500.
const LINK: f64 = 2e9 * 1448.0 / 1500.0;

fn rows(name: &str, text: &str, [duration, short]: [&str; 2]) -> Vec<Row> {
    let program = Program::new();
    let text =
        text.replace(&format!("duration = \"{duration}\""), &format!("duration = \"{short}\""));
    let file = program.file(name, text);
    let rows = program.rows(&[file, "--engine", "virtual"]);
    for row in &rows {
        eprintln!("{}", row.0);
    }
    rows
}

fn a_fast_reader_fills_the_link() {
    let rows = rows("fast.toml", FAST, ["10s", "4s"]);
    let steady = |case: &str| row(&rows, case).number("steady_goodput_bps");
    let goodput = |case: &str| row(&rows, case).number("goodput_bps");
    // 6 MiB of buffer are less than 6 MiB of payload in a round trip.
    assert!(steady("kernel-6mb") <= 8.0 * 6_291_456.0 / 0.08);
    assert!(steady("agent-6mb") >= 0.95 * LINK);
    // With the start: not slower than with a buffer that is large enough.
    assert!(goodput("agent-6mb") >= 0.98 * goodput("kernel-32mb"));
    let again = |case: &str| row(&rows, case).number("retransmission");
    assert!(again("agent-6mb") <= again("kernel-256mb"));
}

fn a_slow_reader_holds_little() {
    let rows = rows("slow.toml", SLOW, ["10s", "6s"]);
    let of = |case: &str, column: &str| row(&rows, case).number(column);
    let (agent, kernel) = ("agent-6mb", "kernel-256mb");
    assert!(of(agent, "goodput_bps") >= 0.98 * of(kernel, "goodput_bps"));
    assert!(of(agent, "retransmission") <= of(kernel, "retransmission"));
    let part = |column: &str| of(agent, column) / of(kernel, column);
    // Of the 9 MB that Linux 6.12 lets stand. The start doubles the window beyond the reader once.
    assert!(part("receive_queue_mean_bytes") <= 0.16);
    assert!(part("receive_queue_max_bytes") <= 0.40);
}

fn a_short_path_stays_as_fast() {
    let rows = rows("short.toml", SHORT, ["1s", "500ms"]);
    let goodput = |case: &str| row(&rows, case).number("goodput_bps");
    assert!(goodput("agent-6mb") >= 0.97 * goodput("kernel-6mb"));
}

fn in_real_time_it_is_refused() {
    let program = Program::new();
    let text = "[transfer]\nduration = \"1s\"\n[hosts.client]\nwindow_agent = true\n";
    let finished = program.run(&["lab", "run", program.file("agent.toml", text), "--json"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("use --engine virtual"), "{finished:?}");
}
