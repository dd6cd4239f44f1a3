//! The laws in virtual time: no other program shares the clock, so a bound is the law's, not the
//! machine's.

use std::fs;
use std::path::Path;

use fullpipe_model::law::mathis;
use serde_json::Value;

use crate::Case;
use crate::figures::{assert_limited_by, assert_row};
use crate::need::Need;
use crate::program::{Program, Row, result_file, result_folder, row};

pub const CASES: &[Case] = &[
    ("quick_names_what_held_each_case", &[Need::GuestKernel], quick_names_what_held_each_case),
    (
        "a2_loses_what_was_asked_and_slows_down",
        &[Need::GuestKernel],
        a2_loses_what_was_asked_and_slows_down,
    ),
    ("a_slow_reader_is_named", &[Need::GuestKernel], || {
        slow_application("read_rate", "receiver_application")
    }),
    ("a_slow_writer_is_named", &[Need::GuestKernel], || {
        slow_application("write_rate", "sender_application")
    }),
    (
        "requests_take_a_round_trip_each",
        &[Need::GuestKernel, Need::Program("curl")],
        requests_take_a_round_trip_each,
    ),
    (
        "a_server_that_waits_before_it_answers",
        &[Need::GuestKernel, Need::Program("curl")],
        a_server_that_waits_before_it_answers,
    ),
    (
        "an_upload_is_measured_where_it_goes",
        &[Need::GuestKernel],
        an_upload_is_measured_where_it_goes,
    ),
    (
        "connections_share_the_link",
        &[Need::GuestKernel, Need::Program("curl")],
        connections_share_the_link,
    ),
    (
        "a_writer_that_fills_a_buffer_first_slows_down_later",
        &[Need::GuestKernel],
        a_writer_that_fills_a_buffer_first_slows_down_later,
    ),
    ("loss_holds_reno_at_mathis", &[Need::GuestKernel], loss_holds_reno_at_mathis),
    (
        "the_link_has_the_rate_it_was_given",
        &[Need::GuestKernel],
        the_link_has_the_rate_it_was_given,
    ),
    (
        "the_laws_predict_goodput_before_the_run",
        &[Need::GuestKernel],
        the_laws_predict_goodput_before_the_run,
    ),
    ("the_demos_plan_fills_the_path", &[Need::OldGuestKernel], the_demos_plan_fills_the_path),
];

/// Payload of a full segment at an MTU of 1500 with timestamps, and that MTU.
const MSS: f64 = 1448.0;
const MTU: f64 = 1500.0;

/// Rows in virtual time, with what holds for any row.
fn rows(program: &Program, arguments: &[&str]) -> Vec<Row> {
    let rows = program.rows(&[arguments, &["--engine", "virtual"]].concat());
    for row in &rows {
        assert_row(row);
        assert!(
            row.quiet() && row.text("engine") == "virtual",
            "{}: {:?}",
            row.name(),
            row.notes()
        );
    }
    rows
}

fn quick_names_what_held_each_case() {
    let rows = rows(&Program::new(), &["quick"]);
    for (case, limit) in [
        ("filled", "link"),
        ("small-receive-buffer", "receive_window"),
        ("small-send-buffer", "send_buffer"),
    ] {
        assert_limited_by(row(&rows, case), limit);
    }
    for case in ["filled", "small-receive-buffer"] {
        let row = row(&rows, case);
        let ratio = row.number("steady_goodput_bps") / row.number("law_bps");
        eprintln!("{case}: {ratio:.4} of the law");
        assert!((0.95..=1.02).contains(&ratio), "{case}: {ratio} of the law");
    }
}

fn a2_loses_what_was_asked_and_slows_down() {
    let program = Program::new();
    let rows = rows(&program, &["articles/a2-loss", "--out", "results"]);
    let mut slower = f64::INFINITY;
    for (case, p) in [("loss=0", 0.0), ("loss=1", 0.01), ("loss=10", 0.1)] {
        let row = row(&rows, case);
        let link = &result_file(&program.work().join("results"), row, "link.json")["to_client"];
        let arrived = link["arrived_packets"].as_u64().unwrap();
        let lost = link["lost_packets"].as_u64().unwrap();
        assert_eq!(lost as f64, row.number("lost"), "only data is lost here");
        let (least, most) = binomial_interval(arrived, p);
        eprintln!(
            "{case}: {lost} of {arrived} packets lost; 99.9 % of all draws lose {least} to {most}"
        );
        assert!(
            (least..=most).contains(&lost),
            "{case}: {lost} of {arrived} lost, expected {least} to {most}"
        );
        let goodput = row.number("goodput_bps");
        assert!(goodput < slower, "{case}: {goodput} bit/s, not slower than with less loss");
        slower = goodput;
        if p > 0.0 {
            assert!(row.number("retransmission") > 0.0, "{case}: lost, and nothing sent again");
            assert_limited_by(row, "congestion_window");
            assert_eq!(row.text("limit_cause"), "loss", "{case}");
        } else {
            assert_limited_by(row, "receive_window");
        }
    }
}

/// The central interval that holds a binomial count with 99.9 %, by summing the probabilities
/// themselves.
fn binomial_interval(n: u64, p: f64) -> (u64, u64) {
    if p == 0.0 {
        return (0, 0);
    }
    const TAIL: f64 = 0.0005;
    let mut probability = (n as f64 * (1.0 - p).ln()).exp();
    let mut below = probability;
    let mut k = 0;
    let mut least = None;
    loop {
        if below > TAIL && least.is_none() {
            least = Some(k);
        }
        if below >= 1.0 - TAIL || k == n {
            return (least.unwrap_or(k), k);
        }
        probability *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
        k += 1;
        below += probability;
    }
}

/// A corner of bench/prediction: from a window of six segments to two thirds of a send buffer. Most
/// are within 2 %.
fn the_laws_predict_goodput_before_the_run() {
    let wmem = "hosts.server.sysctl = { \"net.ipv4.tcp_wmem\" = \"4096 16384";
    let rmem = "hosts.client.sysctl = { \"net.ipv4.tcp_rmem\" = \"4096 16384";
    let mut text = String::from(
        "name = \"predicted\"\n[hosts.server]\ncongestion_control = \"cubic\"\n\
         sysctl = { \"net.ipv4.tcp_wmem\" = \"4096 16384 67108864\" }\n\
         [hosts.client]\nsysctl = { \"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\" }\n\
         [link]\nrate = \"200mbit\"\n[transfer]\nduration = \"3s\"\n",
    );
    for (name, rtt, setting) in [
        ("window/10ms", 10, format!("{rmem} 16384\" }}")),
        ("window/30ms", 30, format!("{rmem} 262144\" }}")),
        ("write/30ms", 30, format!("{wmem} 32768\" }}")),
        ("packets/10ms", 10, format!("link.rate = \"1gbit\"\n{wmem} 32768\" }}")),
        ("two-thirds/60ms", 60, format!("{wmem} 700000\" }}")),
        ("requested/40ms", 40, "transfer.receive_buffer = 100000".into()),
        ("link/10ms", 10, String::new()),
        (
            "granted/80ms",
            80,
            "transfer.upload = true\ntransfer.application_window = \"512KiB\"\n\
             transfer.application_window_step = \"64KiB\""
                .into(),
        ),
        (
            "halves/50ms",
            50,
            "transfer.upload = true\ntransfer.application_window = \"256KiB\"".into(),
        ),
    ] {
        text += &format!("[[cases]]\nname = \"{name}\"\nlink.rtt = \"{rtt}ms\"\n{setting}\n");
    }
    let program = Program::new();
    for row in rows(&program, &[program.file("predicted.toml", text)]) {
        let ratio = row.number("steady_goodput_bps") / row.number("law_bps");
        eprintln!("{}: {ratio:.4} of the prediction", row.name());
        assert!((0.9..=1.1).contains(&ratio), "{}: {ratio} of the prediction", row.name());
        assert_eq!(row.text("law_term"), row.text("limited_by"), "{}", row.name());
    }
}

/// 100 Mbit/s and 20 ms with room for buffers, and one thing that hinders.
fn hindered(case: &str) -> Row {
    let program = Program::new();
    let text = format!(
        "name = \"hindered\"\n[hosts.server]\ncongestion_control = \"reno\"\n[link]\nrate = \"100mbit\"\nrtt = \"20ms\"\n\
         [transfer]\nduration = \"4s\"\n[[cases]]\nname = \"case\"\n{case}\n"
    );
    rows(&program, &[program.file("hindered.toml", text)]).remove(0)
}

fn slow_application(key: &str, limit: &str) {
    let row = hindered(&format!("transfer.{key} = \"20mbit\""));
    let goodput = row.number("goodput_bps");
    eprintln!("{limit}: {goodput} bit/s through an application of 20 Mbit/s");
    assert!(
        (19.5e6..=20.3e6).contains(&goodput),
        "{limit}: {goodput} bit/s through an application of 20 Mbit/s"
    );
    assert_limited_by(&row, limit);
}

/// A hundred seconds with some 700 losses: Mathis' constant is for a mean.
fn loss_holds_reno_at_mathis() {
    let row = hindered("link.to_client.loss = \"1%\"\ntransfer.duration = \"100s\"");
    assert_limited_by(&row, "congestion_window");
    assert_eq!(row.text("limit_cause"), "loss");
    let quantity = "a quantity";
    let (bound, _) = mathis::rate(
        "1448".parse().expect(quantity),
        "20ms".parse().expect(quantity),
        "1%".parse().expect(quantity),
        "100mbit".parse().expect(quantity),
    );
    let ratio = row.number("goodput_bps") / bound.bits_per_sec() as f64;
    eprintln!(
        "loss: {} bit/s with {} losses, {ratio:.3} of Mathis' {bound}",
        row.number("goodput_bps"),
        row.number("lost")
    );
    assert!((0.7..=1.1).contains(&ratio), "{ratio} of Mathis' {bound}");
}

fn the_link_has_the_rate_it_was_given() {
    for (engine, rates) in
        [("netem", &["10mbit", "100mbit", "1gbit"][..]), ("own", &["10mbit", "100mbit"])]
    {
        for rate in rates {
            let program = Program::new();
            // A send buffer that keeps more than a gigabit's BDP in flight and less than BDP and
            // queue: it is the link that is measured here, not how near a default buffer comes.
            let text = format!(
                "[link]\nrate = \"{rate}\"\nrtt = \"20ms\"\n[transfer]\nduration = \"4s\"\n[hosts.server]\n\
                 congestion_control = \"reno\"\nsysctl = {{ \"net.ipv4.tcp_wmem\" = \"4096 16384 4718592\" }}\n"
            );
            let rows = rows(
                &program,
                &[program.file("rate.toml", text), "--out", "results", "--link-engine", engine],
            );
            let folder = fs::read_dir(program.work().join("results")).unwrap();
            let folder = folder.map(|e| e.unwrap().path()).find(|path| path.is_dir()).unwrap();
            let nominal = rows[0].number("rate_nominal_bps");
            let error = (steady_goodput(&folder) * MTU / MSS / nominal - 1.0) * 100.0;
            // An interval of 100 ms has a packet more or less.
            let bound = 0.1 + MTU * 8.0 / 0.1 / nominal * 100.0;
            eprintln!("{engine}, {rate}: IP packets {error:+.3} % off, at most {bound:.3} %");
            assert!(error.abs() <= bound, "{engine}, {rate}: {error:+.3} %, at most {bound:.3} %");
        }
    }
}

/// Median rate of the client's 100 ms intervals after the first second, when slow start is over:
/// what the link carries while it is full. A mean would hold against the link that its sender now
/// and then repairs a loss for some of them.
fn steady_goodput(folder: &Path) -> f64 {
    let transfer: Value =
        serde_json::from_slice(&fs::read(folder.join("transfer.json")).unwrap()).unwrap();
    let mut rates = Vec::new();
    for interval in transfer["download"]["intervals"].as_array().unwrap() {
        let number = |key: &str| interval[key].as_f64().unwrap();
        // The last one may be cut short.
        if number("start_us") >= 1e6 && number("length_us") >= 99e3 {
            rates.push(number("body_bytes") * 8e6 / number("length_us"));
        }
    }
    assert!(rates.len() >= 20, "two seconds of steady state");
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// What `calc` says of a gigabit and 50 ms, tried: the buffers that it finds too small, and those
/// that it asks for.
fn the_demos_plan_fills_the_path() {
    const KERNEL: &str = "6.1";
    let program = Program::new();
    let calc = program.run(&["calc", "--rate", "1gbit", "--rtt", "50ms", "--json"]).json();
    let plans = calc["kernels"].as_array().unwrap();
    let plan = plans.iter().find(|plan| plan["kernel"] == KERNEL).unwrap();
    let changes = plan["plan"]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2, "both buffers: {changes:?}");
    let case = |name: &str, value: &str| {
        let setting = |change: &Value| {
            let host = if change["host"] == "sender" { "server" } else { "client" };
            let (key, value) =
                (change["setting"].as_str().unwrap(), change[value].as_str().unwrap());
            format!("hosts.{host}.sysctl.\"{key}\" = \"{value}\"\n")
        };
        format!("[[cases]]\nname = \"{name}\"\n{}", changes.iter().map(setting).collect::<String>())
    };
    let text = format!(
        "name = \"planned\"\nkernel = \"{KERNEL}\"\n[link]\nrate = \"1gbit\"\nrtt = \"50ms\"\n[transfer]\n\
         duration = \"14s\"\n[hosts.server]\ncongestion_control = \"cubic\"\n{}{}",
        case("before", "from"),
        case("after", "to")
    );
    let planned = program.file("planned.toml", text);
    let rows = rows(&program, &[planned, "--out", "results", "--keep-captures"]);
    let (before, after) = (row(&rows, "before"), row(&rows, "after"));
    let share = |row: &Row| row.number("goodput_bps") / row.number("rate_nominal_bps");
    eprintln!("{:.4} of the rate before, {:.4} after", share(before), share(after));
    assert!((0.40..=0.50).contains(&share(before)), "before: {}", share(before));
    assert!(share(after) >= 0.9, "after: {}", share(after));
    assert_limited_by(after, "link");
    // The plan's window holds path and queue and is full all of the time, and so is the link.
    for end in ["server", "client"] {
        let folder = result_folder(&program.work().join("results"), after);
        let capture = folder.join(format!("{end}.pcap"));
        let document = program.run(&["analyze", "--json", capture.to_str().unwrap()]).json();
        let finding = &document["connections"][0]["findings"][0];
        assert_eq!(finding["limit"], "link", "by the capture at the {end}: {finding}");
        assert!(finding["confidence"].as_f64().unwrap() >= 0.9, "at the {end}: {finding}");
    }
}

/// Each request waits for the answer to the one before it: a round trip, and what the answer takes
/// on the link.
fn requests_take_a_round_trip_each() {
    let row =
        hindered("transfer.client = \"curl\"\ntransfer.size = \"10kB\"\ntransfer.requests = 40");
    assert_limited_by(&row, "sender_application");
    let seconds = row.number("duration_us") / 1e6;
    let least = 39.0 * 0.020;
    eprintln!("40 requests: {seconds} s from the first byte to the last");
    assert!((least..=1.2 * least).contains(&seconds), "{seconds} s for 39 further round trips");
    assert_eq!(row.number("body_bytes"), 400_000.0);
}

/// Long polling: each answer comes a round trip and the server's own time after it was requested.
fn a_server_that_waits_before_it_answers() {
    let row = hindered(
        "transfer.client = \"curl\"\ntransfer.size = \"10kB\"\ntransfer.requests = 5\n\
         transfer.answer_after = \"400ms\"\ntransfer.keepalive = \"1s\"",
    );
    assert_limited_by(&row, "sender_application");
    let seconds = row.number("duration_us") / 1e6;
    // From the first byte of the first answer to the last byte of the fifth.
    let least = 4.0 * 0.420;
    eprintln!("5 answers: {seconds} s from the first byte to the last");
    assert!((least..=1.1 * least).contains(&seconds), "{seconds} s for 4 further answers");
    assert_eq!(row.number("body_bytes"), 50_000.0);
}

/// The sender opens the connection, and its data still takes the path to the client, which is the
/// slower one here.
fn an_upload_is_measured_where_it_goes() {
    let row = hindered(
        "transfer.upload = true\ntransfer.duration = \"8s\"\nlink.to_client.rate = \"20mbit\"",
    );
    assert_limited_by(&row, "link");
    let (goodput, most) = (row.number("steady_goodput_bps"), 20e6 * MSS / MTU);
    eprintln!("upload: {goodput} bit/s of {most}");
    assert!((0.95 * most..=1.01 * most).contains(&goodput), "{goodput} bit/s over 20 Mbit/s");
}

/// Downloads at the same time share the link, and together they fill it. What limits one of them is
/// the link; but the losses that the others cause at its queue hold it, too, and evidence of one
/// connection cannot always distinguish the two.
fn connections_share_the_link() {
    let row =
        hindered("transfer.client = \"curl\"\ntransfer.size = \"8MB\"\ntransfer.connections = 3");
    let limit = row.text("limited_by");
    assert!(["link", "congestion_window"].contains(&limit), "limited by {limit}");
    assert_eq!(row.number("body_bytes"), 24e6);
    let rate = row.number("body_bytes") * 8.0 / (row.number("duration_us") / 1e6);
    eprintln!("3 connections: {rate} bit/s together");
    assert!((0.85 * 100e6..=100e6 * MSS / MTU).contains(&rate), "{rate} bit/s over 100 Mbit/s");
}

/// What is written before the rate holds passes at the link's rate: so much is there sooner.
fn a_writer_that_fills_a_buffer_first_slows_down_later() {
    let row = hindered(
        "transfer.write_rate = \"5mbit\"\ntransfer.write_rate_after = \"10MB\"\n\
         transfer.duration = \"6s\"",
    );
    assert_limited_by(&row, "sender_application");
    let bytes = row.number("body_bytes");
    // 10 MB at 100 Mbit/s and what 5 Mbit/s carry in the rest of 6 s, but for the start.
    let (least, most) = (10e6 + 5e6 / 8.0 * 4.5, 10e6 + 5e6 / 8.0 * 5.3);
    eprintln!("written ahead: {bytes} bytes, expected {least} to {most}");
    assert!((least..=most).contains(&bytes), "{bytes} bytes, expected {least} to {most}");
}
