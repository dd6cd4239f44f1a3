//! The window agent on real connections: between two namespaces, over an emulated path.
//!
//! `net.core.rmem_max` belongs to the machine and stays as it is. So the client's `tcp_rmem`, which
//! is its namespace's own, is made small: what the agent may give beyond it is still twice
//! `rmem_max`.

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, User, until};
use fullpipe_model::units::Duration;
use serde_json::Value;
use std::path::{Path, PathBuf};

const NEEDS: &[Need] = &[
    Need::WindowAgent,
    Need::Program("iperf3"),
    Need::Program("python3"),
    Need::Program("tshark"),
];

/// A BPF iterator sets options of sockets from Linux 6.13 on.
const ADOPTION: &[Need] = &[Need::WindowAgent, Need::Kernel("6.13"), Need::Program("python3")];

pub const CASES: &[Case] = &[
    ("a_fast_reader_gets_more_than_tcp_rmem", NEEDS, a_fast_reader_gets_more_than_tcp_rmem),
    ("a_path_with_loss_is_looked_at", NEEDS, a_path_with_loss_is_looked_at),
    ("a_slow_readers_queue_is_small", NEEDS, a_slow_readers_queue_is_small),
    ("a_connection_that_exists_is_followed", ADOPTION, a_connection_that_exists_is_followed),
    ("a_budget_bounds_all_together", NEEDS, a_budget_bounds_all_together),
    (
        "of_four_that_start_together_one_runs",
        &[Need::WindowAgent],
        of_four_that_start_together_one_runs,
    ),
    ("an_agent_on_a_program_is_stopped", NEEDS, an_agent_on_a_program_is_stopped),
    ("kill_9_leaves_the_program_and_no_group", NEEDS, kill_9_leaves_the_program_and_no_group),
    ("what_a_dry_run_shows_is_not_done", NEEDS, what_a_dry_run_shows_is_not_done),
    ("a_chosen_buffer_is_left_alone", NEEDS, a_chosen_buffer_is_left_alone),
    ("what_cannot_be_is_refused", &[Need::WindowAgent], what_cannot_be_is_refused),
    ("without_privilege", &[Need::OrdinaryUser], without_privilege),
];

/// `tcp_rmem` of the fast reader's namespace: its window is at most this, whatever the overhead.
const RMEM_MAX: f64 = 131_072.0;
const RTT: f64 = 0.08;

/// Runs `client` by the shell, behind a path, with `tcp_rmem` of its own.
fn over(program: &Program, path: &[&str], server: &str, rmem: &str, client: &str) -> Finished {
    let client = format!("echo '{rmem}' > /proc/sys/net/ipv4/tcp_rmem && exec {client}");
    let options = ["link", "--quiet", "--rtt", "80ms", "--server", server];
    let words = [&options[..], path, &["--", "sh", "-c", &client]].concat();
    let finished = program.run(&words);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
}

/// The agent's words before the program's.
fn window(program: &Program, options: &str) -> String {
    format!("{} window {options} --json --", program.binary().display())
}

/// The last look, with its connections, the largest window first.
fn last_look(finished: &Finished) -> Value {
    let line = finished.err.lines().rev().find(|line| line.starts_with("{\"slow_readers"));
    let line = line.unwrap_or_else(|| panic!("no look: {finished:?}"));
    serde_json::from_str(line).unwrap()
}

/// The connection that received most windows' worth.
fn busiest(finished: &Finished) -> Value {
    let count = |one: &&Value| one["acknowledgements"].as_u64().unwrap();
    let look = last_look(finished);
    look["connections"].as_array().unwrap().iter().max_by_key(count).unwrap().clone()
}

/// Bits per second that iperf3's client received.
fn iperf3(finished: &Finished) -> f64 {
    let report: Value = serde_json::from_str(&finished.out).unwrap();
    report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap()
}

/// What has a window: not resets, whose acknowledgement is zero.
const FROM_CLIENT: &str = "ip.src == 10.77.0.2 && tcp.flags.ack == 1 && tcp.flags.reset == 0";

/// RFC 9293 section 3.8.6.2.1: the right edge of the client's window never moves left.
fn the_right_edge_never_moves_left(program: &Program, folder: &str) {
    let file = program.work().join(folder).join("client.edge.pcap");
    let fields = ["tcp.stream", "tcp.ack_raw", "tcp.window_size", "tcp.flags.syn"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let words = ["-r", file.to_str().unwrap(), "-Y", FROM_CLIENT, "-T", "fields"];
    let words: Vec<&str> = ["tshark"].into_iter().chain(words).chain(fields).collect();
    let finished = program.start(&mut program.command_by(&words)).end();
    let mut edges = std::collections::BTreeMap::<String, u32>::new();
    let mut seen = 0;
    for line in finished.out.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [stream, ack, window, syn] = cells[..] else { panic!("{line}") };
        // The window of a SYN has no scale.
        if !["0", "False"].contains(&syn) {
            continue;
        }
        let edge = ack.parse::<u32>().unwrap().wrapping_add(window.parse().unwrap());
        let before = edges.entry(stream.into()).or_insert(edge);
        let step = edge.wrapping_sub(*before) as i32;
        assert!(step >= 0, "stream {stream}: the window is taken back by {} bytes", -step);
        *before = edge;
        seen += 1;
    }
    assert!(seen > 100, "only {seen} acknowledgements: {finished:?}");
}

fn a_fast_reader_gets_more_than_tcp_rmem() {
    let program = Program::new();
    let path = ["--rate", "100mbit", "--capture", "fast"];
    let rmem = format!("4096 65536 {RMEM_MAX}");
    let iperf = "iperf3 -c {server} -R -J -t 5";
    let run = |client: &str| over(&program, &path, "iperf3 -s", &rmem, client);
    let kernel = iperf3(&run(iperf));
    // A window in a round trip, whose payload is less than the buffer.
    assert!(kernel <= 8.0 * RMEM_MAX / RTT, "{kernel}");
    let finished = run(&format!("{} {iperf}", window(&program, "run")));
    let rate = iperf3(&finished);
    // Half of the largest buffer as a window, or the link, without its headers; half of it for
    // start-up and a busy machine.
    let rmem_max: f64 =
        std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
    let bound = (8.0 * rmem_max / RTT).min(100e6 * 1448.0 / 1500.0) / 2.0;
    let one = busiest(&finished);
    eprintln!("kernel {kernel:.0}, agent {rate:.0} of {bound:.0} bit/s: {one}");
    assert!(rate >= bound && rate > kernel, "{kernel} {rate} {bound}: {one}");
    assert_eq!(one["refusals"], 0, "{one}");
    assert_eq!(one["frozen"], false, "{one}");
    the_right_edge_never_moves_left(&program, "fast");
}

/// Where three SACK blocks and timestamps fill the options, the kernel does not ask the agent about
/// what it sends; it is asked about what comes.
fn a_path_with_loss_is_looked_at() {
    let program = Program::new();
    let path = ["--rate", "100mbit", "--loss", "1%", "--capture", "loss"];
    let rmem = format!("4096 65536 {RMEM_MAX}");
    let words = window(&program, "run --interval 100ms");
    let client = format!("{words} iperf3 -c {{server}} -R -J -t 5");
    let finished = over(&program, &path, "iperf3 -s", &rmem, &client);
    let one = busiest(&finished);
    assert_eq!(one["refusals"], 0, "{one}");
    let looks = finished.err.lines().filter(|line| line.starts_with("{\"slow_readers"));
    let looks = looks.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let beyond = |look: Value| {
        let connections = look["connections"].as_array().unwrap();
        connections.iter().map(|one| one["out_of_order_bytes"].as_u64().unwrap()).max()
    };
    let most = looks.filter_map(beyond).max();
    // Three blocks are three segments at least, and the holes between them.
    assert!(most >= Some(6 * 1448), "{most:?}: {finished:?}");
    the_right_edge_never_moves_left(&program, "loss");
}

/// What the slow reader takes, in 12 s.
const READ: usize = 24_000_000;

/// A reader of 2 MB/s without bursts: curl's limiter pauses for a second (article A4).
pub const READER: &str = "\
import socket, sys, time
stream = socket.create_connection((sys.argv[1], 8000))
stream.sendall(b'GET /zeros HTTP/1.0\\r\\n\\r\\n')
begin, total = time.monotonic(), 0
while chunk := stream.recv(16384):
    total += len(chunk)
    time.sleep(max(0, begin + total / 2e6 - time.monotonic()))
print(total / (time.monotonic() - begin))
";

fn a_slow_readers_queue_is_small() {
    let program = Program::new();
    program.file("zeros", vec![0; READ]);
    program.file("reader.py", READER);
    let path = ["--rate", "100mbit", "--capture", "slow"];
    // As much for the kernel as it likes: it is the reader who is slow, at a sixth of the link.
    let server = "python3 -m http.server 8000";
    let run = |name: &str| {
        let client = format!("{} python3 reader.py {{server}}", window(&program, name));
        let finished = over(&program, &path, server, "4096 131072 6291456", &client);
        // The reader is never kept waiting: it gets all but what its start costs.
        let rate: f64 = finished.out.trim().parse().unwrap();
        assert!(rate >= 0.9 * 2e6, "{name}: {finished:?}");
        busiest(&finished)
    };
    let queue = |one: &Value| one["queue_mean_bytes"].as_f64().unwrap();
    let kernel = run("watch");
    let agent = run("run");
    eprintln!("kernel {kernel}, agent {agent}");
    // Twice the threshold; and what came before a round trip showed that the reader is slow, which
    // is read off at a quarter of its rate.
    let peak = agent["queue_peak_bytes"].as_f64().unwrap();
    let began = peak * peak / (2.0 * 2e6 / 4.0) / (READ as f64 / 2e6);
    assert!(queue(&agent) <= 2.0 * 262_144.0 + began, "{agent}");
    assert!(queue(&agent) <= queue(&kernel) / 2.0, "{kernel} {agent}");
    assert_eq!(agent["refusals"], 0, "{agent}");
    the_right_edge_never_moves_left(&program, "slow");
}

/// A client that is there before its agent and stays after it. It prints its rates in bit/s without
/// the agent, with it, and after it, and what the agent and those who ask it said.
const LONG_READER: &str = "\
import json, os, socket, subprocess, sys, threading, time
server, group, fullpipe = sys.argv[1:]
with open(group + '/cgroup.procs', 'w') as file:
    file.write('0')
stream = socket.create_connection((server, 8000))
stream.sendall(b'GET /zeros HTTP/1.0\\r\\n\\r\\n')
total = 0
def read():
    global total
    while chunk := stream.recv(65536):
        total += len(chunk)
threading.Thread(target=read, daemon=True).start()
def rate(seconds):
    begin, before = time.monotonic(), total
    time.sleep(seconds)
    return 8 * (total - before) / (time.monotonic() - begin)
def run(*words):
    done = subprocess.run([fullpipe, 'window', *words], capture_output=True, text=True)
    return done.stdout + done.stderr
rate(1)
rates = [rate(2)]
agent = subprocess.Popen([fullpipe, 'window', 'run', '--cgroup', group],
    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
said = agent.stderr.readline()
rate(2)
rates.append(rate(2))
status = json.loads(run('status', '--json'))
second = run('run', '--cgroup', group)
stopped = run('stop', '--cgroup', group)
code = agent.wait(timeout=20)
rates.append(rate(1))
after = run('status')
print(json.dumps(dict(rates=rates, said=said, status=status, second=second, stopped=stopped,
    code=code, after=after)))
";

/// A control group of a trial. Removed at its end.
struct TrialGroup(PathBuf);

impl TrialGroup {
    fn new(name: &str) -> TrialGroup {
        let path = cgroup_mounts().remove(0).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        TrialGroup(path)
    }
}

impl Drop for TrialGroup {
    fn drop(&mut self) {
        // What ran in it has ended; the kernel may need a moment to see that.
        until("the group is empty", Duration::from_secs(10), || {
            std::fs::remove_dir(&self.0).is_ok()
        });
    }
}

fn a_connection_that_exists_is_followed() {
    let program = Program::new();
    std::fs::File::create(program.work().join("zeros")).unwrap().set_len(1 << 30).unwrap();
    program.file("reader.py", LONG_READER);
    let group = TrialGroup::new("fullpipe-trial");
    let rmem = format!("4096 65536 {RMEM_MAX}");
    let client = format!(
        "python3 reader.py {{server}} {} {}",
        group.0.display(),
        program.binary().display()
    );
    let path = ["--rate", "100mbit"];
    let finished = over(&program, &path, "python3 -m http.server 8000", &rmem, &client);
    let told: Value = serde_json::from_str(&finished.out).unwrap();
    eprintln!("{told}");
    let rates: Vec<f64> =
        told["rates"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap()).collect();
    // A window in a round trip, whose payload is less than the buffer; the client's clock and
    // reads may cut a few segments off one side.
    assert!(rates[0] <= 1.1 * 8.0 * RMEM_MAX / RTT, "{told}");
    assert!(rates[1] >= 2.0 * rates[0], "{told}");
    // Its buffer stays.
    assert!(rates[2] >= rates[0], "{told}");
    let said = told["said"].as_str().unwrap();
    assert!(said.starts_with("Connections that existed before and are followed: 1."), "{told}");
    let agents = told["status"].as_array().unwrap();
    let own = group.0.to_str().unwrap();
    let own = agents.iter().find(|agent| agent["cgroup"] == own).unwrap();
    assert_eq!((&own["control"], &own["stopped"]), (&true.into(), &false.into()), "{told}");
    assert_eq!(own["connections"][0]["remote"], "10.77.0.1:8000", "{told}");
    let text = |name: &str| told[name].as_str().unwrap().to_string();
    assert!(text("second").contains("follows") && text("second").contains("already"), "{told}");
    assert!(text("stopped").contains("has let go of 1 connection; it ends"), "{told}");
    assert_eq!(told["code"], 130, "{told}");
    assert!(!text("after").contains(group.0.to_str().unwrap()), "{told}");
}

fn a_budget_bounds_all_together() {
    let program = Program::new();
    let rmem = format!("4096 65536 {RMEM_MAX}");
    let budget = 1_048_576.0;
    let words = window(&program, "run --budget 1MiB");
    let client = format!("{words} iperf3 -c {{server}} -R -P 4 -J -t 5");
    let finished = over(&program, &["--rate", "100mbit"], "iperf3 -s", &rmem, &client);
    let rate = iperf3(&finished);
    let look = last_look(&finished);
    let number = |one: &Value, name: &str| one[name].as_f64().unwrap();
    // iperf3's control connection counts as well. All have ended at the last look.
    let connections = look["connections"].as_array().unwrap();
    let windows: f64 = connections.iter().map(|one| number(one, "window_bytes")).sum();
    eprintln!("{rate:.0} bit/s, windows {windows}: {look}");
    // Half of a buffer is payload. Before the budget's first look each may have what the kernel
    // gives; without a budget the link would be full.
    assert!(windows <= budget / 2.0 + 65_536.0, "{look}");
    assert!(rate <= 1.25 * 8.0 * budget / 2.0 / RTT, "{rate}: {look}");
    // They share it: nobody starves.
    let rates = |one: &&Value| number(one, "acknowledgements") > 50.0;
    assert_eq!(connections.iter().filter(rates).count(), 4, "{look}");
}

/// Four that start on one control group at the same time: one follows it, and the others name it.
fn of_four_that_start_together_one_runs() {
    let program = Program::new();
    let trial = TrialGroup::new("fullpipe-four");
    let group = trial.0.to_str().unwrap();
    for _ in 0..3 {
        let words = ["window", "run", "--cgroup", group];
        let mut running: Vec<Running> =
            (0..4).map(|_| program.start(&mut program.command(&words))).collect();
        let wait = Duration::from_secs(30);
        // Three end by themselves; the one that is left is found.
        until("three were refused", wait, || {
            running.iter_mut().map(Running::has_ended).filter(|&has_ended| has_ended).count() == 3
        });
        let status = program.run(&["window", "status"]);
        let on_group = status.out.matches(group).count();
        assert_eq!(on_group, 1, "{status:?}");
        let stopped = program.run(&["window", "stop", "--cgroup", group]);
        assert_eq!(stopped.code, Some(0), "{stopped:?}");
        let mut codes: Vec<_> = running.into_iter().map(|one| one.end().code).collect();
        codes.sort_unstable();
        assert_eq!(codes, [Some(2), Some(2), Some(2), Some(130)]);
    }
}

fn an_agent_on_a_program_is_stopped() {
    let program = Program::new();
    program.start(&mut program.command_by(&["mkfifo", "gate"])).end();
    let words = ["window", "run", "--", "sh", "-c", "echo started > started; read line < gate"];
    let running = program.start(&mut program.command(&words));
    let wait = Duration::from_secs(30);
    until("it runs", wait, || program.work().join("started").exists());
    let own = format!("process {}", running.id());
    until("it is found", wait, || program.run(&["window", "status"]).out.contains(&own));
    let group = groups()
        .into_iter()
        .find(|path| path.ends_with(format!("fullpipe-window-{}", running.id())));
    let group = group.unwrap();
    let stopped = program.run(&["window", "stop", "--cgroup", group.to_str().unwrap()]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.out.contains("it ends with sh -c"), "{stopped:?}");
    let status = program.run(&["window", "status"]);
    let line = status.out.lines().find(|line| line.starts_with(&own)).unwrap().to_string();
    assert!(line.ends_with("it has let go of its connections"), "{status:?}");
    // The program was not told to end.
    std::fs::write(program.work().join("gate"), "go\n").unwrap();
    let finished = running.end();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let none = program.run(&["window", "stop", "--cgroup", group.to_str().unwrap()]);
    assert!(none.out.starts_with("No window agent"), "{none:?}");
}

/// Where cgroup v2 is mounted.
pub fn cgroup_mounts() -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = mounts.lines().filter(|line| line.contains(" - cgroup2 "));
    points.filter_map(|line| line.split(' ').nth(4).map(PathBuf::from)).collect()
}

/// Our groups that are there now.
fn groups() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with("fullpipe-window-") {
                    found.push(entry.path());
                }
                walk(&entry.path(), found);
            }
        }
    }
    let mut found = Vec::new();
    cgroup_mounts().iter().for_each(|point| walk(point, &mut found));
    found
}

fn kill_9_leaves_the_program_and_no_group() {
    let program = Program::new();
    let script = "echo started > started; read line < gate; echo done > done";
    program.start(&mut program.command_by(&["mkfifo", "gate"])).end();
    let words = ["window", "run", "--", "sh", "-c", script];
    let mut running = program.start(&mut program.command(&words));
    let own = |id: u32| move |path: &PathBuf| path.ends_with(format!("fullpipe-window-{id}"));
    let wait = Duration::from_secs(30);
    until("it runs", wait, || program.work().join("started").exists());
    let id = running.id();
    let child = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    assert!(groups().iter().any(own(id)), "{:?}", groups());
    running.kill_9();
    // The program goes on, and ends when it is told to.
    assert!(Path::new("/proc").join(child.trim()).exists());
    std::fs::write(program.work().join("gate"), "go\n").unwrap();
    until("the program ends by itself", wait, || program.work().join("done").exists());
    until("its process is gone", wait, || !Path::new("/proc").join(child.trim()).exists());
    running.end();
    // The next start removes what is left.
    let next = program.run(&["window", "watch", "--", "true"]);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(!groups().iter().any(own(id)), "{:?}", groups());
}

fn what_a_dry_run_shows_is_not_done() {
    let program = Program::new();
    let rmem = format!("4096 65536 {RMEM_MAX}");
    let client = format!("{} iperf3 -c {{server}} -R -J -t 2", window(&program, "run --dry-run"));
    let finished = over(&program, &["--rate", "100mbit"], "iperf3 -s", &rmem, &client);
    let one = busiest(&finished);
    assert!(one["buffer_bytes"].as_f64().unwrap() <= RMEM_MAX, "{one}");
    assert!(iperf3(&finished) <= 8.0 * RMEM_MAX / RTT, "{one}");
}

fn a_chosen_buffer_is_left_alone() {
    let program = Program::new();
    let iperf = "iperf3 -c {server} -R -J -t 2 -w 65536";
    let run = |options: &str| {
        let client = format!("{} {iperf}", window(&program, options));
        let rmem = format!("4096 65536 {RMEM_MAX}");
        busiest(&over(&program, &["--rate", "100mbit"], "iperf3 -s", &rmem, &client))
    };
    let left = run("run");
    assert_eq!((&left["frozen"], &left["buffer_bytes"]), (&true.into(), &131_072.into()));
    let followed = run("run --unfreeze");
    assert_eq!(followed["frozen"], false, "{followed}");
    assert!(followed["buffer_bytes"].as_u64().unwrap() > 131_072, "{followed}");
}

fn what_cannot_be_is_refused() {
    let program = Program::new();
    for (words, code, told) in [
        (&["--cgroup", "/nowhere"][..], 4, "open control group /nowhere"),
        (&["--cgroup", "/tmp"], 4, "name a folder of cgroup v2"),
        (&["--", "/nowhere/program"], 3, "start /nowhere/program"),
        (&["--threshold", "1", "--", "true"], 2, "not within"),
        (&[], 2, "--cgroup"),
    ] {
        let finished = program.run(&[&["window", "watch"], words].concat());
        assert_eq!(finished.code, Some(code), "{words:?}: {finished:?}");
        assert!(finished.err.contains(told), "{words:?}: {finished:?}");
    }
    let code = program.run(&["window", "run", "--", "sh", "-c", "exit 7"]).code;
    assert_eq!(code, Some(7));
}

fn without_privilege() {
    let program = Program::of(User::Ordinary);
    let finished = program.run(&["window", "watch", "--", "true"]);
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.err.contains("it needs root"), "{finished:?}");
}
