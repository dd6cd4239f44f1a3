//! Figures in virtual time, from the articles and the laws. They are exact on any machine, so the
//! bounds are narrow.

use crate::Case;
use crate::figures::assert_row;
use crate::need::Need;
use crate::program::{Program, Row, row};
use fullpipe_model::law::send_buffer::{self, SUPER_PACKET};
use fullpipe_model::law::{AdvWinScale, WindowLaw};
use fullpipe_model::units::Bytes;

pub const CASES: &[Case] = &[
    ("steady_goodput_is_the_articles", &[Need::GuestKernel], steady_goodput_is_the_articles),
    (
        "the_old_kernel_explains_the_articles",
        &[Need::OldGuestKernel],
        the_old_kernel_explains_the_articles,
    ),
    ("e1_is_the_old_kernels_window", &[Need::OldGuestKernel], e1_is_the_old_kernels_window),
    ("a1_is_the_window_a_round_trip", &[Need::GuestKernel], a1_is_the_window_a_round_trip),
    ("the_first_flight_is_initcwnd", &[Need::GuestKernel], the_first_flight_is_initcwnd),
    ("small_windows_in_frames", &[Need::OldGuestKernel], small_windows_in_frames),
    ("a_receive_buffer_is_the_window_of_its_law", &[Need::GuestKernel], || receive_buffer("6.12")),
    ("a_receive_buffer_was_half_window_before", &[Need::OldGuestKernel], || receive_buffer("6.1")),
    ("a_send_buffer_carries_two_thirds", &[Need::GuestKernel], || send_buffer("6.12")),
    ("a_send_buffer_always_did", &[Need::OldGuestKernel], || send_buffer("6.1")),
    (
        "real_programs_run_in_the_guest",
        &[
            Need::GuestKernel,
            Need::Program("nginx"),
            Need::Program("python3"),
            Need::Program("curl"),
        ],
        real_programs_run_in_the_guest,
    ),
    ("iperf3_is_both_ends", &[Need::GuestKernel, Need::Program("iperf3")], iperf3_is_both_ends),
    (
        "the_articles_small_buffers_in_the_guest",
        &[Need::GuestKernel],
        the_articles_small_buffers_in_the_guest,
    ),
];

fn virtual_rows(arguments: &[&str]) -> Vec<Row> {
    let rows = Program::new().rows(&[arguments, &["--engine", "virtual"]].concat());
    rows.iter().for_each(assert_row);
    rows
}

/// The goodput of the second half of the bytes in MB/s.
fn steady(row: &Row) -> f64 {
    row.number("steady_goodput_bps") / 8e6
}

fn named<'a>(rows: &'a [Row], name: &str) -> &'a Row {
    rows.iter().find(|row| row.name() == name).unwrap_or_else(|| panic!("no row {name}"))
}

fn assert_ratio(row: &Row, least: f64, most: f64) {
    let ratio = row.number("reference_ratio");
    eprintln!("{}: {ratio:.3} of the article's, kernel {}", row.name(), row.text("kernel"));
    assert!(
        (least..=most).contains(&ratio),
        "{}: {ratio} of the article's, expected {least} to {most}",
        row.name()
    );
}

/// B3 and B4, where the kernel's version does not matter.
fn steady_goodput_is_the_articles() {
    let rows = virtual_rows(&["articles/b3", "articles/b4"]);
    for name in ["b3", "b4"] {
        assert_ratio(named(&rows, name), 0.95, 1.05);
    }
}

/// What held half of the buffer back there: with it the window of C2 and C4 is the articles',
/// without it is not.
fn the_old_kernel_explains_the_articles() {
    let rows = virtual_rows(&["articles/c2", "articles/c4"]);
    for name in ["c2", "c4"] {
        assert_ratio(named(&rows, &format!("{name}/linux-6.1")), 0.95, 1.05);
        let today = named(&rows, name);
        assert!(today.number("reference_ratio") > 1.15, "{name}: {:#}", today.0);
    }
}

/// E1 while the receive buffer holds it: half of it was window there, too.
fn e1_is_the_old_kernels_window() {
    let rows = virtual_rows(&["articles/e1"]);
    for buffer in ["2194304", "4194304", "6194304"] {
        assert_ratio(named(&rows, &format!("e1/rmem={buffer}-linux-6.1")), 0.95, 1.05);
        assert!(
            named(&rows, &format!("e1/rmem={buffer}")).number("reference_ratio") > 1.15,
            "{buffer}"
        );
    }
}

fn a1_is_the_window_a_round_trip() {
    for row in
        virtual_rows(&["articles/a1-rtt"]).iter().filter(|row| row.0["reference_cause"].is_null())
    {
        let over = row.number("rtt_p50_us") - row.number("rtt_nominal_us");
        assert!((0.0..=50.0).contains(&over), "{}: {over} us above the path's", row.name());
        let law = row.number("in_flight_mean_bytes") * 8e6 / row.number("rtt_nominal_us");
        let ratio = row.number("goodput_bps") / law;
        assert!(
            (0.97..=1.03).contains(&ratio),
            "{}: {ratio} of what is in flight a round trip",
            row.name()
        );
        assert_eq!(row.text("limited_by"), "receive_window");
    }
}

/// 35 segments: a third flight after 10 and 20, or all at once.
fn the_first_flight_is_initcwnd() {
    let program = Program::new();
    let text = "name = \"first\"\n[link]\nrate = \"1gbit\"\nrtt = \"100ms\"\n[transfer]\nsize = \"50kB\"\n\
                [[cases]]\nname = \"ten\"\n[[cases]]\nname = \"forty\"\nhosts.server.initcwnd = 40\n";
    let rows = program.rows(&[program.file("first.toml", text), "--engine", "virtual"]);
    let flights = |name: &str| row(&rows, name).number("duration_us") / 100_000.0;
    assert!((1.95..=2.1).contains(&flights("ten")), "{} round trips", flights("ten"));
    assert!(flights("forty") < 0.1, "{} round trips", flights("forty"));
}

/// A1 and A2 beside what the article counted, whole frames.
fn small_windows_in_frames() {
    let rows = virtual_rows(&["articles/a1-rtt", "articles/a2-loss"]);
    for name in
        ["a1-rtt/rtt=2ms/rtt=390us", "a1-rtt/rtt=40.39ms", "a1-rtt/rtt=80.39ms", "a1-rtt/rtt=100ms"]
    {
        assert_ratio(named(&rows, name), 0.95, 1.05);
    }
    // Of some 200 losses: another seed may lose 7 % more or less of the time.
    assert_ratio(named(&rows, "a2-loss/loss=10/rtt=390us-linux-6.1"), 0.85, 1.15);
    // Two segments and an ACK a round trip: three headers, with Ethernet's, beside the payload.
    let row = named(&rows, "a1-rtt/rtt=2ms/rtt=390us");
    let headers =
        (row.number("frames_bps") - row.number("goodput_bps")) * row.number("rtt_p50_us") / 8e6;
    assert!(
        (3.0 * 66.0 * 0.97..=3.0 * 66.0 * 1.03).contains(&headers),
        "{headers} bytes of headers a round trip"
    );
}

/// Runs `keys` for each of `buffers` under `kernel` for two seconds of 1 Gbit/s and 50 ms.
fn over_buffers(kernel: &str, keys: &str, axis: &str, buffers: &[u64]) -> Vec<Row> {
    let values: Vec<_> = buffers.iter().map(|buffer| format!("\"4096 16384 {buffer}\"")).collect();
    let program = Program::new();
    let text = format!(
        "name = \"buffers\"\nkernel = \"{kernel}\"\n{keys}\n[link]\nrate = \"1gbit\"\nrtt = \"50ms\"\n\
         [transfer]\nduration = \"3s\"\n[matrix]\n'{axis}' = [{}]\n",
        values.join(", ")
    );
    let rows = program.rows(&[
        program.file("buffers.toml", text),
        "--engine",
        "virtual",
        "--link-engine",
        "own",
    ]);
    rows.iter().for_each(assert_row);
    rows
}

/// From buffer to window: the share that the kernel's law says, within the rounding to segments.
fn receive_buffer(kernel: &str) {
    let buffers = [262_144u64, 1 << 20, 2 << 20, 4 << 20];
    let wide = "[hosts.server]\nsysctl = { \"net.ipv4.tcp_wmem\" = \"4096 16384 67108864\" }";
    let rows = over_buffers(kernel, wide, "hosts.client.sysctl.\"net.ipv4.tcp_rmem\"", &buffers);
    let law = WindowLaw::of(kernel.parse().unwrap(), AdvWinScale::DEFAULT);
    for (buffer, row) in buffers.iter().zip(&rows) {
        let (seen, law) =
            (row.number("window_max_bytes"), law.window(Bytes::new(*buffer)).bytes().as_f64());
        eprintln!("{kernel}: {buffer}: window {seen}, {:.4} of the buffer", seen / *buffer as f64);
        assert!(
            (0.97..=1.002).contains(&(seen / law)),
            "{kernel}: {buffer}: window {seen}, law {law}"
        );
        // And a window a round trip is what it carries.
        let carried = steady(row) * row.number("rtt_p50_us") / seen;
        assert!(
            (0.95..=1.02).contains(&carried),
            "{kernel}: {buffer}: {carried} of the window a round trip"
        );
    }
}

/// From send buffer to what it carries in the path's round trip (its own bursts queue a little): a
/// whole write of small ones, two thirds of large ones, more in between.
fn send_buffer(kernel: &str) {
    const WRITE: u64 = 262_147;
    let buffers = [4096u64, 65_536, 1 << 20, 2 << 20, 4 << 20];
    let reno = "[hosts.server]\ncongestion_control = \"reno\"\n[hosts.client]\n\
                sysctl = { \"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\" }";
    let axis = "hosts.server.sysctl.\"net.ipv4.tcp_wmem\"";
    for (buffer, row) in buffers.iter().zip(&over_buffers(kernel, reno, axis, &buffers)) {
        let law =
            send_buffer::window_of_writes(Bytes::new(*buffer), Bytes::new(WRITE)).bytes().as_f64();
        let in_flight = steady(row) * row.number("rtt_nominal_us");
        eprintln!(
            "{kernel}: {buffer}: {in_flight:.0} bytes a round trip, {:.3} of the law",
            in_flight / law
        );
        let most = if (1 << 18..=1 << 21).contains(buffer) { 1.2 } else { 1.04 };
        assert!(
            (0.93..=most).contains(&(in_flight / law)),
            "{kernel}: {buffer}: {in_flight} in flight, law {law}"
        );
    }
    // Where every packet is sent whole, the buffer is asked before each: one of them is all that it
    // takes.
    let whole =
        reno.replace("\"reno\"", "\"reno\"\nsysctl = { \"net.ipv4.tcp_min_tso_segs\" = 45 }");
    let row = &over_buffers(kernel, &whole, axis, &[4096])[0];
    let in_flight = steady(row) * row.number("rtt_nominal_us");
    let ratio = in_flight / SUPER_PACKET.as_f64();
    assert!(
        (0.93..=1.03).contains(&ratio),
        "{kernel}: {in_flight} in flight, one packet is {SUPER_PACKET}"
    );
}

/// nginx, Python and curl off the host's disk: what is sent is the same, and the path decides how
/// fast.
fn real_programs_run_in_the_guest() {
    let program = Program::new();
    let text = "name = \"programs\"\n[link]\nrate = \"100mbit\"\nrtt = \"20ms\"\n[transfer]\nsize = \"2MB\"\n\
                [[cases]]\nname = \"builtin\"\n[[cases]]\nname = \"nginx\"\ntransfer.server = \"nginx\"\n\
                [[cases]]\nname = \"python\"\ntransfer.server = \"python\"\n\
                [[cases]]\nname = \"curl\"\ntransfer = { server = \"nginx\", client = \"curl\" }\n";
    let rows = program.rows(&[program.file("programs.toml", text), "--engine", "virtual"]);
    let builtin = row(&rows, "builtin").number("goodput_bps");
    for row in &rows {
        assert_row(row);
        assert_eq!(
            (row.number("body_bytes"), row.text("engine")),
            (2e6, "virtual"),
            "{}",
            row.name()
        );
        let ratio = row.number("goodput_bps") / builtin;
        // 2 MB are some nine round trips of slow start and of the link: how a program cuts its
        // writes moves the end by a part of one.
        assert!((0.94..=1.06).contains(&ratio), "{}: {ratio} of the built-in ends'", row.name());
    }
}

/// Two connections, of which the one with the data is captured, sampled and told; its rate is the
/// path's.
fn iperf3_is_both_ends() {
    let program = Program::new();
    let text = "name = \"iperf3\"\n[link]\nrate = \"100mbit\"\nrtt = \"20ms\"\n[transfer]\nduration = \"4s\"\n\
                [[cases]]\nname = \"builtin\"\n\
                [[cases]]\nname = \"iperf3\"\ntransfer = { server = \"iperf3\", client = \"iperf3\" }\n";
    let rows = program.rows(&[program.file("iperf3.toml", text), "--engine", "virtual"]);
    let (builtin, iperf3) = (row(&rows, "builtin"), row(&rows, "iperf3"));
    for row in &rows {
        assert_row(row);
        assert_eq!(
            (row.text("limited_by"), row.text("limited_by_sockets")),
            ("link", "link"),
            "{}",
            row.name()
        );
    }
    let ratio = steady(iperf3) / steady(builtin);
    eprintln!("iperf3: {ratio:.4} of the built-in ends' steady goodput");
    assert!((0.99..=1.01).contains(&ratio), "{ratio}");
    assert!(iperf3.0["connect_us"].is_null() && builtin.number("connect_us") > 20_000.0);
}

/// B5, B5' and B5'': a window or a write each round trip. B6's hog never waits: it runs in real
/// time and says so.
fn the_articles_small_buffers_in_the_guest() {
    let rows = virtual_rows(&[
        "articles/b5",
        "articles/b5a",
        "articles/b5b",
        "articles/b6-starved-client",
    ]);
    for (name, limit) in
        [("b5", "receive_window"), ("b5a", "send_buffer"), ("b5b", "receive_window")]
    {
        let row = named(&rows, name);
        assert_eq!((row.text("limited_by"), row.text("engine")), (limit, "virtual"), "{name}");
    }
    assert!(
        steady(named(&rows, "b5a")) > 50.0 * steady(named(&rows, "b5")),
        "only the receive buffer makes it very slow"
    );
    let starved = named(&rows, "b6-starved-client");
    assert_eq!(starved.text("engine"), "real");
    assert!(starved.notes().iter().any(|note| note.contains("CPU hog")), "{:?}", starved.notes());
}
