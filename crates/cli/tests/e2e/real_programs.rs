//! nginx, Python and curl instead of our own ends: the path decides, not the program.

use crate::Case;
use crate::figures::assert_row;
use crate::need::Need;
use crate::program::{Program, Row};

pub const CASES: &[Case] = &[
    ("nginx_sends_as_fast", &[Need::GuestKernel, Need::Program("nginx")], || {
        agrees_with_builtin("server", "nginx")
    }),
    ("python_sends_as_fast", &[Need::GuestKernel, Need::Program("python3")], || {
        agrees_with_builtin("server", "python")
    }),
    ("curl_receives_as_fast", &[Need::GuestKernel, Need::Program("curl")], || {
        agrees_with_builtin("client", "curl")
    }),
    ("get_keeps_a_limit", &[Need::GuestKernel], || keeps_a_limit("get", 0.03)),
    ("curl_keeps_a_limit", &[Need::GuestKernel, Need::Program("curl")], || {
        keeps_a_limit("curl", 0.25)
    }),
    ("wget_keeps_a_limit", &[Need::GuestKernel, Need::Program("wget")], || {
        keeps_a_limit("wget", 0.1)
    }),
    ("pv_keeps_a_limit", &[Need::GuestKernel, Need::Program("pv")], || keeps_a_limit("pv", 0.1)),
];

/// One run over 100 Mbit/s and 10 ms of 20 MB, 1.7 s at full rate, in virtual time: a busy machine
/// has no part in it.
fn run(ends: &str) -> Row {
    let program = Program::new();
    program.file(
        "s.toml",
        format!(
            "[hosts.server]\ncongestion_control = \"cubic\"\n[link]\nrate = \"100mbit\"\nrtt = \"10ms\"\n\
             [transfer]\nsize = \"20MB\"\nduration = \"10s\"\n{ends}\n"
        ),
    );
    let row = program.rows(&["./s.toml", "--engine", "virtual"]).remove(0);
    assert!(program.scratch().is_empty());
    row
}

fn agrees_with_builtin(end: &str, program: &str) {
    let (builtin, real) = (run(""), run(&format!("{end} = \"{program}\"")));
    for row in [&builtin, &real] {
        assert_row(row);
        assert_eq!(row.number("body_bytes"), 20e6);
    }
    let ratio = real.number("goodput_bps") / builtin.number("goodput_bps");
    eprintln!("{program}: {:.1} % of the built-in {end}'s goodput", ratio * 100.0);
    assert!(
        (0.95..=1.05).contains(&ratio),
        "{program}: {ratio}; {:?} {:?}",
        real.notes(),
        builtin.notes()
    );
    assert_eq!(real.text("limited_by"), "link", "{program}: {:#}", real.0["limits"]);
}

/// 3 MB at 200 kB/s: 15 s. curl reads at full speed until its mean is above the limit, so that it
/// ends early.
fn keeps_a_limit(client: &str, tolerance: f64) {
    const LIMIT: f64 = 200e3;
    let program = Program::new();
    program.file(
        "s.toml",
        format!(
            "[link]\nrate = \"200mbit\"\nrtt = \"20ms\"\n\
             [transfer]\nsize = \"3MB\"\nlimit_rate = \"200kB/s\"\nclient = \"{client}\"\n"
        ),
    );
    let row = program.rows(&["./s.toml", "--engine", "virtual"]).remove(0);
    assert_eq!(row.number("body_bytes"), 3e6);
    let ratio = row.number("goodput_bps") / 8.0 / LIMIT;
    eprintln!("{client}: {ratio:.3} of the limit");
    assert!((ratio - 1.0).abs() <= tolerance, "{client}: {ratio}");
    assert_eq!(row.text("limited_by"), "receiver_application", "{:#}", row.0["limits"]);
}
