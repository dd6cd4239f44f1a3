//! A terminal that is closed (a pane of tmux, a session of ssh) ends what was started in it, and
//! leaves nothing behind; what was started to outlive it goes on.

use crate::Case;
use crate::attach::{self, DEVICE, THERE, World};
use crate::get::Serving;
use crate::need::Need;
use crate::program::{Program, Running, until};
use crate::relay::far_end;
use crate::remains::{Machine, PATIENCE, assert_nothing_left, namespaces, processes};
use crate::window::cgroup_mounts;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_model::units::Duration;
use fullpipe_transfer::ServerOptions;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::TcpStream;

pub const CASES: &[Case] = &[
    ("what_shows_or_waits_ends", &[Need::Program("python3")], what_shows_or_waits_ends),
    ("what_transfers_ends", &[Need::Program("python3")], what_transfers_ends),
    ("what_has_namespaces_ends", &[Need::Program("python3")], what_has_namespaces_ends),
    (
        "the_window_agent_ends",
        &[Need::WindowAgent, Need::Program("python3")],
        the_window_agent_ends,
    ),
    (
        "what_is_on_a_device_ends_or_stays_as_asked",
        &[Need::Root, Need::Tcx, Need::Program("python3")],
        what_is_on_a_device_ends_or_stays,
    ),
    ("nohup_outlives_it", &[Need::Program("python3")], nohup_outlives_it),
];

/// How the command gets its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It leads the session, as in `tmux new-window 'fullpipe ...'`: only it gets SIGHUP.
    Leader,
    /// A shell leads the session: its end sends SIGHUP to the whole foreground group.
    Job,
    /// Whoever started it had SIGHUP ignored: only the terminal says that it is gone.
    Ignored,
}

/// Opens a terminal, starts a command in it, and closes the terminal once the test says so, by a
/// FIFO. Ends when the command has ended.
const CLOSED: &str = r#"
import fcntl, os, pty, struct, subprocess, sys, termios
way, sign, words = sys.argv[1], sys.argv[2].encode(), sys.argv[3:]
if way == "Job":
    words = ["sh", "-c", '"$@"; true', "sh", *words]
elif way == "Ignored":
    words = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *words]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
def lead():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
os.mkfifo("go")
child = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, preexec_fn=lead)
os.close(slave)
seen = b""
try:
    while sign not in seen:
        seen += os.read(master, 65536)
except OSError:
    sys.exit("it ended before the terminal was closed: %r" % seen[-2000:])
print("alive", flush=True)
open("go").read()
os.close(master)
try:
    code = child.wait(20)
    if code == 101:
        sys.exit("it panicked")
except subprocess.TimeoutExpired:
    times = open("/proc/%d/stat" % child.pid).read().rsplit(")", 1)[1].split()[11:13]
    child.kill()
    sys.exit("it outlived its terminal by 20 s; ticks of user and system time: %s" % times)
print("ended", code)
"#;

/// Starts these words in a terminal of their own, and waits until they have printed `sign`.
fn started(
    program: &Program,
    way: Way,
    within: Option<&NetNs>,
    sign: &str,
    words: &[&str],
) -> Running {
    program.file("closed.py", CLOSED);
    let way = format!("{way:?}");
    let words = [&["python3", "closed.py", &way, sign], words].concat();
    let mut command = program.command_by(&words);
    if let Some(ns) = within {
        ns.start_in(&mut command).unwrap();
    }
    let mut running = program.start(&mut command);
    let mut ended = false;
    until("the command is under way", PATIENCE, || {
        ended = running.has_ended();
        ended || running.out().contains("alive")
    });
    assert!(!ended, "{words:?}: {}", running.err());
    running
}

/// Starts the command, closes its terminal, and fails if anything of it is left.
fn ends(way: Way, files: &[(&'static str, &str)], sign: &str, words: &[&str]) {
    let machine = Machine::look();
    let program = Program::new();
    for (name, text) in files {
        program.file(name, text);
    }
    let binary = program.binary().to_str().unwrap();
    let running = started(&program, way, None, sign, &[&[binary], words].concat());
    let supervisors = processes(&program);
    let seen = namespaces(supervisors.iter().copied());
    std::fs::write(program.work().join("go"), "").unwrap();
    let finished = running.end();
    assert_eq!(finished.code, Some(0), "{way:?} {words:?}: {finished:?}");
    assert_nothing_left(&program, &seen, &supervisors, &machine);
}

fn what_shows_or_waits_ends() {
    let allow: &[(&str, &str)] = &[("allow", "127.0.0.1:1\n")];
    for way in [Way::Leader, Way::Job] {
        ends(way, &[], "fullpipe top", &["top"]);
        ends(way, &[], "following", &["why", "--watch", "--for", "60s"]);
        ends(way, &[], "following", &["why", "--for", "60s"]);
        ends(way, &[], "127.0.0.1", &["export", "--listen", "127.0.0.1:0"]);
        ends(way, &[], "serving", &["serve", "--listen", "127.0.0.1:0"]);
        let reloads = ["serve", "--relay", "--allow-from", "allow", "--listen", "127.0.0.1:0"];
        ends(way, allow, "and relays", &reloads);
    }
    ends(Way::Ignored, &[], "fullpipe top", &["top", "--interval", "100ms"]);
    ends(Way::Ignored, &[], "No busy", &["why", "--watch", "--for", "500ms", "--port", "1"]);
}

/// A download goes on for as long as it takes, and a relay for ever: the far side is not in the
/// terminal, and stays.
fn what_transfers_ends() {
    let slow = ServerOptions { write_rate: Some("1MB/s".parse().unwrap()), ..Default::default() };
    let served = Serving::start(slow);
    let url = served.url("/bytes/1000000000");
    let far = Program::new();
    let (_daemon, server) = far_end(&far, "127.0.0.1:0", &["--allow", "127.0.0.1:*"]);
    let server = server.to_string();
    // Where SIGHUP is ignored (`nohup`), a transfer goes on, as other downloaders' do.
    for way in [Way::Leader, Way::Job] {
        ends(way, &[], "s left", &["get", &url, "--output", "body"]);
        ends(way, &[], "following", &["why", &url, "--for", "60s"]);
        let listen = ["--listen", "127.0.0.1:0", "--to", "127.0.0.1:9"];
        ends(way, &[], "listening on", &[&["relay", "--server", &server], &listen[..]].concat());
    }
}

fn what_has_namespaces_ends() {
    let scenario = "name = \"long\"\n[link]\nrate = \"50mbit\"\nrtt = \"10ms\"\n[transfer]\n\
                    duration = \"200s\"\n";
    let ready = "echo ready; exec sleep 250";
    for way in [Way::Leader, Way::Job] {
        let run = ["lab", "run", "long.toml", "--no-cache"];
        ends(way, &[("long.toml", scenario)], "0/1", &run);
        ends(way, &[], "ready", &["link", "--rtt", "10ms", "--", "sh", "-c", ready]);
    }
}

fn the_window_agent_ends() {
    let mounts = cgroup_mounts();
    let group = mounts[0].to_str().unwrap();
    for way in [Way::Leader, Way::Job] {
        let watch = ["window", "watch", "--interval", "100ms", "--cgroup", group];
        ends(way, &[], "onnection", &watch);
        let ready = "echo ready; exec sleep 250";
        ends(way, &[], "ready", &["window", "run", "--", "sh", "-c", ready]);
    }
}

/// Whether a link that was attached in a terminal outlives it: the one in the foreground ends and
/// leaves the device as it was, the one in the background stays until somebody detaches it.
fn what_is_on_a_device_ends_or_stays() {
    let delay = Duration::from_millis(100);
    for way in [Way::Leader, Way::Job] {
        let (world, program, name) = (World::new(), Program::new(), attach::name("hangup"));
        let before = world.device();
        let attach = ["link", "attach", "--dev", DEVICE, "--name", &name, "--rtt", "100ms"];
        let closed = |sign: &str, words: &[&str]| {
            let running = started(&program, way, Some(&world.here), sign, words);
            let had = world.round_trip(THERE, world.ports[0]);
            assert!(had >= delay, "{way:?} {words:?}: {had}");
            std::fs::write(program.work().join("go"), "").unwrap();
            let finished = running.end();
            assert_eq!(finished.code, Some(0), "{way:?} {words:?}: {finished:?}");
            std::fs::remove_file(program.work().join("go")).unwrap();
        };
        // Under a shell, the shell's end is seen before the link's.
        let is_as_before = || {
            until("the device is as before", PATIENCE, || world.device() == before);
        };
        let binary = program.binary().to_str().unwrap();
        let foreground = ["--foreground", "--live"];
        closed("queue", &[&[binary], &attach[..], &foreground].concat());
        is_as_before();
        // The shell of a pane, in which it was attached, goes on until the pane is closed.
        let pane = format!("\"$0\" {} && echo attached; exec sleep 250", attach.join(" "));
        closed("attached", &["sh", "-c", &pane, binary]);
        let still = world.round_trip(THERE, world.ports[0]);
        assert!(still >= delay, "{way:?}: {still}");
        assert_eq!(world.run(&program, &["detach", "--dev", &name]).code, Some(0));
        is_as_before();
    }
}

/// SIGHUP that was ignored at the start stays ignored, and nothing else is of the terminal.
fn nohup_outlives_it() {
    let program = Program::new();
    let started = "echo begun; exec \"$0\" export --listen 127.0.0.1:0 </dev/null >out 2>err";
    let binary = program.binary().to_str().unwrap().to_string();
    program.file("closed.py", CLOSED);
    let words = ["python3", "closed.py", "Ignored", "begun", "sh", "-c", started, &binary];
    let script = program.start(&mut program.command_by(&words));
    let said = program.work().join("err");
    let mut address = String::new();
    until("it serves metrics", PATIENCE, || {
        let text = std::fs::read_to_string(&said).unwrap_or_default();
        let mut words = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
        let found = words.find(|word| word.parse::<std::net::SocketAddr>().is_ok());
        address = found.unwrap_or_default().into();
        !address.is_empty()
    });
    until("the script waits", PATIENCE, || script.out().contains("alive"));
    std::fs::write(program.work().join("go"), "").unwrap();
    // The terminal is gone when the script waits for the process, which is asked more than once.
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20).into())).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let exporter = processes(&program).into_iter().find(|id| {
        let words = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        words.split('\0').nth(1) == Some("export")
    });
    kill(Pid::from_raw(exporter.expect("it runs") as i32), Signal::SIGTERM).unwrap();
    let finished = script.end();
    assert!(finished.out.contains("ended 130"), "{finished:?}");
}
