//! What the window agent is for, in virtual time: the presets `window/..`, shortened. The figures
//! are exact on any machine.

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Row, row};

pub const CASES: &[Case] = &[
    ("a_fast_reader_fills_the_link", &[Need::GuestKernel], a_fast_reader_fills_the_link),
    ("a_slow_reader_holds_little", &[Need::GuestKernel], a_slow_reader_holds_little),
    ("the_first_second_is_the_kernels", &[Need::GuestKernel], the_first_second_is_the_kernels),
    ("a_path_with_loss_is_filled", &[Need::GuestKernel], a_path_with_loss_is_filled),
    ("a_short_path_stays_as_fast", &[Need::GuestKernel], a_short_path_stays_as_fast),
    ("no_reader_is_slower_at_any_mtu", &[Need::GuestKernel], no_reader_is_slower_at_any_mtu),
    ("in_real_time_it_is_refused", &[Need::Sandbox], in_real_time_it_is_refused),
];

const FAST: &str = include_str!("../../../../scenarios/window/fast-reader.toml");
const SLOW: &str = include_str!("../../../../scenarios/window/slow-reader.toml");
const FIRST: &str = include_str!("../../../../scenarios/window/first-second.toml");
const LOSS: &str = include_str!("../../../../scenarios/window/loss.toml");
const SHORT: &str = include_str!("../../../../scenarios/window/low-rtt.toml");

/// Payload that a link of 2 Gbit/s carries: 1448 bytes in an IP packet of 1500.
const LINK: f64 = 2e9 * 1448.0 / 1500.0;
/// What the slow reader takes in a round trip.
const READ: f64 = 200e6 * 0.08 / 8.0;

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
    assert_eq!(row(&rows, "kernel-6mb").0["limited_by"], "receive_window");
}

fn a_slow_reader_holds_little() {
    let rows = rows("slow.toml", SLOW, ["10s", "6s"]);
    for control in ["cubic", "bbr"] {
        let of = |case: &str, column: &str| {
            row(&rows, &format!("{case}/congestion_control={control}")).number(column)
        };
        let (agent, kernel) = ("agent-6mb", "kernel-256mb");
        assert!(of(agent, "goodput_bps") >= 0.98 * of(kernel, "goodput_bps"));
        assert!(of(agent, "retransmission") <= of(kernel, "retransmission"));
        // A sender that sends its window at once at 2 Gbit/s has it read in a round trip: half of
        // nine tenths stand in the mean. Above that a third of the threshold, and the start, which
        // doubles the window beyond the reader once.
        let mean = READ * 0.9 / 2.0 + 262_144.0 / 3.0 + 2.0 * READ / 10.0;
        assert!(of(agent, "receive_queue_mean_bytes") <= mean);
        assert!(of(agent, "receive_queue_max_bytes") <= 2.0 * READ);
        // Of the 9 MB that Linux 6.12 lets stand.
        let part = |column: &str| of(agent, column) / of(kernel, column);
        assert!(part("receive_queue_mean_bytes") <= 0.16);
        assert!(part("receive_queue_max_bytes") <= 0.48);
    }
}

fn the_first_second_is_the_kernels() {
    let rows = rows("first.toml", FIRST, ["1s", "1s"]);
    for control in ["cubic", "bbr", "reno"] {
        let goodput = |case: &str| {
            row(&rows, &format!("{case}/congestion_control={control}")).number("goodput_bps")
        };
        assert!(goodput("agent-6mb") >= goodput("kernel-6mb"));
        // BBR starts with nearly three times what is delivered in a round trip, the law with twice.
        let part = if control == "bbr" { 0.8 } else { 0.98 };
        assert!(goodput("agent-6mb") >= part * goodput("kernel-32mb"));
    }
}

/// With BBR, which goes on where a segment is lost: what came beyond a hole takes window as well.
fn a_path_with_loss_is_filled() {
    let text = LOSS.replace(r#"["cubic", "bbr", "reno"]"#, r#"["bbr"]"#);
    let text = text.replace(r#"["0%", "0.1%", "1%"]"#, r#"["1%"]"#);
    let rows = rows("loss.toml", &text, ["5s", "5s"]);
    let of = |case: &str, column: &str| {
        row(&rows, &format!("{case}/congestion_control=bbr/loss=1")).number(column)
    };
    assert!(of("agent-6mb", "steady_goodput_bps") >= 0.95 * LINK);
    assert!(of("agent-6mb", "goodput_bps") >= of("kernel-256mb", "goodput_bps"));
    assert!(of("agent-6mb", "goodput_bps") >= 4.0 * of("kernel-6mb", "goodput_bps"));
}

fn a_short_path_stays_as_fast() {
    let rows = rows("short.toml", SHORT, ["1s", "500ms"]);
    let goodput = |case: &str| row(&rows, case).number("goodput_bps");
    assert!(goodput("agent-6mb") >= 0.97 * goodput("kernel-6mb"));
}

/// A window of fewer than two segments leaves the sender to its persist timer, so that readers on
/// jumbo frames stood still. None may be slower than the kernel's own window lets it be. The queue
/// holds what any window allows: which of a few large packets are lost is luck.
fn no_reader_is_slower_at_any_mtu() {
    const WORLD: &str = r#"
[link]
rate = "20mbit"
rtt = "5ms"
queue = "16MB"
[transfer]
duration = "5s"
[matrix]
"link.mtu" = ["576", "1500", "9000", "65535"]
"transfer.read_rate" = ["320kbit", "3200kbit", "200mbit"]
[[cases]]
name = "kernel"
[[cases]]
name = "agent"
hosts.client.window_agent = true
[[cases]]
name = "budget"
hosts.client.window_agent = true
hosts.client.window_budget = "1MiB"
"#;
    let program = Program::new();
    let rows =
        program.rows(&[program.file("mtu.toml", WORLD), "--engine", "virtual", "--jobs", "2"]);
    assert_eq!(rows.len(), 3 * 4 * 3);
    let mut slower = Vec::new();
    for kernel in rows.iter().filter(|row| row.name().contains("kernel")) {
        let most = kernel.number("goodput_bps");
        for case in ["agent", "budget"] {
            let name = kernel.name().replace("kernel", case);
            let other = rows.iter().find(|row| row.name() == name).expect("each case has a row");
            let goodput = other.number("goodput_bps");
            eprintln!("{} {case}: {:.3} of the kernel's {most}", kernel.name(), goodput / most);
            if goodput < 0.95 * most {
                slower.push((kernel.name().to_owned(), case, goodput / most));
            }
        }
    }
    assert_eq!(slower, []);
}

fn in_real_time_it_is_refused() {
    let program = Program::new();
    let text = "[transfer]\nduration = \"1s\"\n[hosts.client]\nwindow_agent = true\n";
    let finished = program.run(&["lab", "run", program.file("agent.toml", text), "--json"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("use --engine virtual"), "{finished:?}");
}
