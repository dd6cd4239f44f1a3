//! `fullpipe top`: what it shows of a real connection, and the terminal as it was afterwards.

use crate::Case;
use crate::need::Need;
use crate::program::{Program, until};
use fullpipe_model::units::Duration;
use serde_json::Value;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

pub const CASES: &[Case] = &[
    ("a_reader_that_does_not_read_is_shown", &[], a_reader_that_does_not_read_is_shown),
    ("no_terminal_is_told_what_to_use", &[], no_terminal_is_told_what_to_use),
    ("the_terminal_is_restored", &[Need::Program("python3")], the_terminal_is_restored),
];

/// A connection over loopback whose reader never reads, with as much written as fits.
pub struct StalledConnection {
    /// The writing end.
    pub writer: TcpStream,
    _reader: TcpStream,
    /// Keeps the port.
    _listener: TcpListener,
}

impl StalledConnection {
    /// To a listener on `port`; 0 is any.
    pub fn to_port(port: u16) -> std::io::Result<StalledConnection> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let mut writer = TcpStream::connect(listener.local_addr()?)?;
        let (reader, _) = listener.accept()?;
        writer.set_nonblocking(true)?;
        let block = [0; 1 << 16];
        until("both buffers are full", Duration::from_secs(20), || {
            writer.write(&block).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        });
        Ok(StalledConnection { writer, _reader: reader, _listener: listener })
    }
}

fn a_reader_that_does_not_read_is_shown() {
    let stalled = StalledConnection::to_port(0).unwrap();
    let (local, remote) =
        (stalled.writer.local_addr().unwrap(), stalled.writer.peer_addr().unwrap());
    let port = local.port().to_string();
    let program = Program::new();
    let top = program.run(&["top", "--once", "--interval", "300ms", "--port", &port]);
    assert_eq!((top.code, top.err.as_str()), (Some(0), ""), "{top:?}");
    let line = top
        .out
        .lines()
        .position(|line| line.contains(&format!("{local} -> {remote}")))
        .or_else(|| top.out.lines().position(|line| line.contains(&format!("{local} → {remote}"))))
        .unwrap_or_else(|| panic!("the writer is busy: {}", top.out));
    let figures = top.out.lines().nth(line - 1).unwrap();
    assert!(figures.contains("receive"), "the reader, or its window: {}", top.out);
    assert!(figures.trim_start().starts_with("100 %"), "all of its time is lost: {}", top.out);
    // This program's own process is the writer's.
    let process = format!("{}", std::process::id());
    assert!(top.out.contains(&process), "{}", top.out);
    let other = program.run(&["top", "--once", "--interval", "100ms", "--peer", "192.0.2.1"]);
    assert!(!other.out.contains(&port), "{}", other.out);
    for (filter, is_shown) in [
        (format!("port {port} and pid {process}"), true),
        (format!("port {port} and not pid {process}"), false),
    ] {
        let top = program.run(&["top", "--once", "--interval", "100ms", "--filter", &filter]);
        assert_eq!(top.out.contains(&remote.to_string()), is_shown, "{filter}: {}", top.out);
        let why = program.run(&["why", "--for", "500ms", "--json", "--filter", &filter]);
        assert_eq!(why.out.contains(&remote.to_string()), is_shown, "{filter}: {}", why.out);
    }
}

fn no_terminal_is_told_what_to_use() {
    let refused = Program::new().run(&["top"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for part in ["must be a terminal", "fullpipe why", "--once"] {
        assert!(refused.err.contains(part), "{part}: {refused:?}");
    }
}

/// Opens a terminal of 80 by 24, starts `top` in it and ends it in one of several ways; says
/// whether the terminal's attributes are what they were.
const TERMINAL: &str = r#"
import fcntl, json, os, pty, signal, struct, subprocess, sys, termios
binary, way = sys.argv[1:3]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
before = termios.tcgetattr(slave)
child = subprocess.Popen([binary, "top", "--interval", "100ms"], stdin=slave, stdout=slave,
                         stderr=slave, start_new_session=True, env={**os.environ, "NO_COLOR": "1"})
def too_late(*_):
    child.kill()
    sys.exit("too late; seen: %r" % seen[-2000:])
signal.signal(signal.SIGALRM, too_late)
signal.alarm(100)
seen = b""
def wait_for(text, count=1):
    global seen
    while seen.count(text) < count:
        seen += os.read(master, 65536)
wait_for(b"fullpipe top")
raw = termios.tcgetattr(slave) != before
stopped = None
if way == "q":
    os.write(master, b"q")
elif way == "ctrl-c":
    os.write(master, b"\x03")
elif way == "term":
    child.send_signal(signal.SIGTERM)
elif way in ("ctrl-z", "tstp"):
    if way == "ctrl-z":
        os.write(master, b"\x1a")
    else:
        child.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(child.pid, os.WUNTRACED)
    stopped = os.WIFSTOPPED(status) and termios.tcgetattr(slave) == before
    child.send_signal(signal.SIGCONT)
    wait_for(b"\x1b[?1049h", 2)
    wait_for(b"fullpipe top", 2)
    os.write(master, b"q")
code = child.wait(20)
os.set_blocking(master, False)
try:
    while True:
        seen += os.read(master, 65536)
except BlockingIOError:
    pass
print(json.dumps({
    "raw": raw, "code": code, "stopped": stopped,
    "attributes": termios.tcgetattr(slave) == before,
    "screen": seen.rfind(b"\x1b[?1049l") > seen.rfind(b"\x1b[?1049h"),
    "cursor": seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l"),
    "colour": any(b"\x1b[%dm" % n in seen for n in range(30, 38)),
}))
"#;

fn the_terminal_is_restored() {
    let program = Program::new();
    program.file("terminal.py", TERMINAL);
    let binary = program.binary().to_str().unwrap().to_string();
    for (way, code) in [("q", 0), ("ctrl-c", 130), ("term", 130), ("ctrl-z", 0), ("tstp", 0)] {
        let mut command = program.command_by(&["python3", "terminal.py", &binary, way]);
        let finished = program.start(&mut command).end();
        assert_eq!(finished.code, Some(0), "{way}: {finished:?}");
        let told: Value = serde_json::from_str(&finished.out)
            .unwrap_or_else(|error| panic!("{way}: {error}: {finished:?}"));
        assert_eq!(told["code"], code, "{way}: {told}");
        for restored in ["raw", "attributes", "screen", "cursor"] {
            assert_eq!(told[restored], true, "{way}: {restored}: {told}");
        }
        assert_eq!(told["colour"], false, "{way}: NO_COLOR: {told}");
        if code == 0 && way != "q" {
            assert_eq!(told["stopped"], true, "{way}: restored before it stopped: {told}");
        }
    }
}
