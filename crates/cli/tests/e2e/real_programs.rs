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
