//! Tuning a machine and putting it back: in a network namespace and a file system of the trial's own,
//! so the machine that runs it keeps its settings.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use fullpipe_model::change::Sysctl;
use fullpipe_model::units::Duration;
use serde_json::Value;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, MARK, Program, User, until};

pub const CASES: &[Case] = &[
    ("apply_and_undo_is_the_identity", &[Need::Root], apply_and_undo_is_the_identity),
    ("somebody_elses_change_is_respected", &[Need::Root], somebody_elses_change_is_respected),
    ("kill_9_at_any_time_leads_back", &[Need::Root], kill_9_at_any_time_leads_back),
    ("a_time_ends_unless_it_is_confirmed", &[Need::Root], a_time_ends_unless_it_is_confirmed),
    ("a_killed_watcher_is_told", &[Need::Root], a_killed_watcher_is_told),
    ("what_is_persisted_is_taken_back", &[Need::Root], what_is_persisted_is_taken_back),
    (
        "devices_and_routes",
        &[Need::Root, Need::Program("ip"), Need::Program("tc")],
        devices_and_routes,
    ),
    (
        "sockets_show_what_is_in_force",
        &[Need::Root, Need::Program("ip")],
        sockets_show_what_is_in_force,
    ),
    (
        "a_proof_comes_before_the_change",
        &[Need::Root, Need::GuestKernel],
        a_proof_comes_before_the_change,
    ),
    ("without_privilege", &[Need::OrdinaryUser], without_privilege),
    ("bad_requests", &[], bad_requests),
];

/// Article C's path.
pub const PATH: [&str; 4] = ["--rate", "1gbit", "--rtt", "146ms"];

/// A network namespace, and folders for settings and state that nobody else sees; both end with it.
pub struct Place {
    program: Program,
    keeper: Child,
    machine: BTreeMap<String, String>,
}

impl Place {
    pub fn new() -> Place {
        let program = Program::new();
        let script = "mount -t tmpfs none /var/lib && mkdir -p /etc/sysctl.d && \
                      mount -t tmpfs none /etc/sysctl.d && echo ready && exec cat";
        let mut keeper = Command::new("unshare")
            .args(["--net", "--mount", "--propagation", "private", "sh", "-c", script])
            .env(MARK, program.mark())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the namespace is made");
        let place = Place { program, keeper, machine: own_settings() };
        // Some defaults of the kernel depend on the machine: these fall short of the path anywhere.
        place.shell("echo 4096 131072 6291456 > /proc/sys/net/ipv4/tcp_rmem");
        place.shell("echo 4096 16384 4194304 > /proc/sys/net/ipv4/tcp_wmem");
        place
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        let id = self.keeper.id();
        let enter = [
            "nsenter".into(),
            format!("--net=/proc/{id}/ns/net"),
            format!("--mount=/proc/{id}/ns/mnt"),
            "--".into(),
        ];
        enter.into_iter().chain(words.iter().map(|word| word.to_string())).collect()
    }

    fn command(&self, words: &[&str]) -> Command {
        let words = self.words(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.program.command_by(&words)
    }

    /// `fullpipe tune` inside.
    fn tune_command(&self, arguments: &[&str]) -> Command {
        let binary = self.program.binary().to_str().unwrap().to_string();
        self.command(&[&[binary.as_str(), "tune"], arguments].concat())
    }

    pub fn tune(&self, arguments: &[&str]) -> Finished {
        self.program.start(&mut self.tune_command(arguments)).end()
    }

    /// The same; anything but success is a failure.
    pub fn done(&self, arguments: &[&str]) -> Finished {
        let finished = self.tune(arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished
    }

    pub fn apply(&self, more: &[&str]) -> Finished {
        self.done(&[&["apply", "--yes"], &PATH[..], more].concat())
    }

    pub fn shell(&self, script: &str) -> String {
        let finished = self.program.start(&mut self.command(&["sh", "-c", script])).end();
        assert_eq!(finished.code, Some(0), "{script}: {finished:?}");
        finished.out
    }

    fn sysctl(&self, name: &str) -> String {
        let text = self.shell(&format!("cat /proc/sys/{}", name.replace('.', "/")));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Every setting of the namespace that TCP has.
    pub fn settings(&self) -> String {
        // tcp_fastopen_key cannot be read before it is set, and the metrics are a trigger.
        self.shell("grep -rs '' /proc/sys/net/ipv4 /proc/sys/net/core | grep -v -e fastopen_key -e ':$' | sort")
    }

    fn status(&self) -> Value {
        self.done(&["status", "--json"]).json()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        if !std::thread::panicking() {
            assert_eq!(own_settings(), self.machine, "the machine's own settings are touched");
        }
    }
}

/// What of the machine itself a trial could have changed by mistake.
fn own_settings() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for sysctl in Sysctl::ALL {
        let path = format!("/proc/sys/{}", sysctl.name().replace('.', "/"));
        found.extend(std::fs::read_to_string(&path).ok().map(|text| (path, text)));
    }
    for path in ["/etc/sysctl.d/60-fullpipe.conf", "/var/lib/fullpipe/tune"] {
        found.insert(path.into(), std::path::Path::new(path).exists().to_string());
    }
    found
}

fn apply_and_undo_is_the_identity() {
    let place = Place::new();
    let before = place.settings();
    // The buffers have to hold a BDP of 18.25 MB.
    let dry = place.done(&[&["apply"], &PATH[..]].concat());
    assert!(dry.out.contains("sysctl -w net.ipv4.tcp_wmem="), "{dry:?}");
    assert!(dry.err.contains("dry run") && dry.err.contains("--yes"), "{dry:?}");
    assert_eq!(place.settings(), before, "a dry run changes nothing");
    place.apply(&["--pauses", "--set", "net.ipv4.tcp_mtu_probing=1"]);
    for name in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
        let largest: u64 = place.sysctl(name).rsplit(' ').next().unwrap().parse().unwrap();
        assert!(largest > 18_250_000, "{name}: {largest}");
    }
    assert_eq!(place.sysctl("net.ipv4.tcp_slow_start_after_idle"), "0");
    assert_eq!(place.sysctl("net.ipv4.tcp_mtu_probing"), "1");
    let status = place.status();
    let settings = status["applies"][0]["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 4, "{status:#}");
    assert!(settings.iter().all(|one| one["standing"] == "applied"), "{status:#}");
    // A tuned machine has nothing more to set.
    let again = place.apply(&["--pauses"]);
    assert!(again.out.contains("Nothing to set here"), "{again:?}");
    let undone = place.done(&["undo"]);
    assert!(undone.out.contains("tcp_wmem = 4096 16384 4194304 again"), "{undone:?}");
    assert_eq!(place.settings(), before);
    assert_eq!(place.status()["applies"].as_array().unwrap().len(), 0);
    let nothing = place.done(&["undo"]);
    assert!(nothing.out.contains("Nothing is applied"), "{nothing:?}");
}

fn somebody_elses_change_is_respected() {
    let place = Place::new();
    let before = place.settings();
    place.apply(&[]);
    let set = |value: &str| place.shell(&format!("echo {value} > /proc/sys/net/ipv4/tcp_rmem"));
    set("4096 131072 33333333");
    let theirs = place.settings();
    let refused = place.tune(&["undo"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for word in [
        "net.ipv4.tcp_rmem is 4096 131072 33333333 now",
        "would become 4096 131072 6291456",
        "--force",
    ] {
        assert!(refused.err.contains(word), "{word}: {refused:?}");
    }
    assert_eq!(place.settings(), theirs, "nothing is put back");
    let status = place.done(&["status"]);
    assert!(status.out.contains("changed since"), "{status:?}");
    let skipped = place.done(&["undo", "--skip-changed"]);
    assert!(skipped.out.contains("left: net.ipv4.tcp_rmem"), "{skipped:?}");
    assert_eq!(place.sysctl("net.ipv4.tcp_rmem"), "4096 131072 33333333");
    assert_eq!(place.sysctl("net.ipv4.tcp_wmem"), "4096 16384 4194304");
    set("4096 131072 6291456");
    assert_eq!(place.settings(), before);
    place.apply(&[]);
    set("4096 131072 7000000");
    place.done(&["undo", "--force"]);
    assert_eq!(place.settings(), before);
}

/// Whenever the process dies, `undo` leads back, also if nothing was written yet.
fn kill_9_at_any_time_leads_back() {
    let place = Place::new();
    let before = place.settings();
    let arguments = [&["apply", "--yes", "--persist", "--pauses"], &PATH[..]].concat();
    place.done(&arguments);
    let record = format!("/proc/{}/root/var/lib/fullpipe/tune/1.jsonl", place.keeper.id());
    let lines = || std::fs::read_to_string(&record).map_or(0, |text| text.lines().count());
    let whole = lines();
    assert!(whole >= 6, "a beginning, three settings, a file and an end: {whole}");
    place.done(&["undo"]);
    let mut found = BTreeMap::<String, u32>::new();
    for wanted in (0..=whole).cycle().take(5 * (whole + 1)) {
        let mut running = place.program.start(&mut place.tune_command(&arguments));
        // What comes after this line of the record is lost, or has just happened.
        while lines() < wanted && !running.has_ended() {
            std::hint::spin_loop();
        }
        running.kill_9();
        running.end();
        let status = place.status();
        let phase = status["applies"][0]["phase"].as_str().unwrap_or("none").to_string();
        *found.entry(phase).or_default() += 1;
        place.done(&["undo"]);
        assert_eq!(place.settings(), before, "killed at line {wanted}");
        assert_eq!(
            place.shell("ls -A /etc/sysctl.d | grep -v part || true"),
            "",
            "killed at line {wanted}"
        );
    }
    eprintln!("killed: {found:?}");
    assert!(found.contains_key("none"), "some are killed before they begin: {found:?}");
}

fn a_time_ends_unless_it_is_confirmed() {
    let place = Place::new();
    let before = place.settings();
    let both = ["--pauses"];
    place.apply(&[&both[..], &["--for", "1s"]].concat());
    until("the time ends", Duration::from_secs(60), || place.settings() == before);
    until("the record is gone", Duration::from_secs(60), || {
        place.status()["applies"].as_array().unwrap().is_empty()
    });
    place.apply(&["--only", "net.ipv4.tcp_wmem", "--for", "1s"]);
    let confirmed = place.done(&["confirm"]);
    assert!(confirmed.out.contains("Apply 1 stays"), "{confirmed:?}");
    // Begun later and as long, so that the first one's time has passed when this one's has.
    place.apply(&["--only", "net.ipv4.tcp_rmem", "--for", "2s"]);
    until("the other time ends", Duration::from_secs(60), || {
        place.status()["applies"].as_array().unwrap().len() == 1
    });
    assert_eq!(place.sysctl("net.ipv4.tcp_rmem"), "4096 131072 6291456");
    assert_ne!(place.sysctl("net.ipv4.tcp_wmem"), "4096 16384 4194304", "it was confirmed");
    place.done(&["undo"]);
    assert_eq!(place.settings(), before);
}

/// The trial's processes that run `tune apply`.
fn watchers(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| {
        let read = |file: &str| std::fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
        let (environment, words) = (read("environ"), read("cmdline"));
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
            && String::from_utf8_lossy(&words).contains("tune\0apply")
    })
    .collect()
}

fn a_killed_watcher_is_told() {
    let place = Place::new();
    let before = place.settings();
    place.apply(&["--for", "2s"]);
    let found = watchers(place.program.mark());
    assert_eq!(found.len(), 1, "one process waits for the deadline");
    let id = nix::unistd::Pid::from_raw(found[0]);
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGKILL).unwrap();
    until("the deadline passes", Duration::from_secs(60), || {
        place.status()["applies"][0]["overdue"] == true
    });
    let status = place.done(&["status"]);
    assert!(status.out.contains("tune undo 1") && status.out.contains("gone"), "{status:?}");
    assert_ne!(place.settings(), before);
    place.done(&["undo"]);
    assert_eq!(place.settings(), before);
}

fn what_is_persisted_is_taken_back() {
    let place = Place::new();
    const FILE: &str = "/etc/sysctl.d/60-fullpipe.conf";
    place.apply(&["--only", "net.ipv4.tcp_wmem"]);
    // What is in force already is persisted too.
    place.apply(&["--persist"]);
    let text = place.shell(&format!("cat {FILE}"));
    for name in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
        assert!(text.contains(&format!("{name} = {}\n", place.sysctl(name))), "{text}");
    }
    // The file does what it says: sysctl reads it.
    place.shell(&format!("test -z \"$(command -v sysctl)\" || sysctl -q -p {FILE}"));
    assert_eq!(
        place.shell("ls -A /etc/sysctl.d"),
        "60-fullpipe.conf\n",
        "nothing half-written stays"
    );
    place.done(&["undo", "--all"]);
    assert_eq!(place.shell("ls -A /etc/sysctl.d"), "");
    // Somebody's own lines stay, and come back as they were.
    place.shell(&format!("printf 'net.ipv4.tcp_rmem = 1 2 3\\nvm.swappiness = 7\\n' > {FILE}"));
    place.apply(&["--persist"]);
    let text = place.shell(&format!("cat {FILE}"));
    assert!(
        text.contains("vm.swappiness = 7\n") && text.matches("tcp_rmem").count() == 1,
        "{text}"
    );
    place.done(&["undo"]);
    assert_eq!(
        place.shell(&format!("cat {FILE}")),
        "net.ipv4.tcp_rmem = 1 2 3\nvm.swappiness = 7\n"
    );
}

fn devices_and_routes() {
    let place = Place::new();
    place.shell(
        "ip link add a0 type veth peer name b0 && ip address add 192.0.2.1/24 dev a0 && \
         ip link set a0 up && ip link set b0 up && \
         ip route add default via 192.0.2.254 dev a0 metric 7 mtu 1400 && \
         ip -6 route add 2001:db8::/32 dev a0",
    );
    // A route's carrier comes up by itself a moment later.
    let network = || {
        let text = place.shell("ip route show; ip -6 route show 2001:db8::/32; ip link show a0");
        text.replace(" linkdown", "").replace("LOWERLAYERDOWN", "UP").replace("M-DOWN", "")
    };
    let mut before = network();
    until("the devices are up", Duration::from_secs(60), || {
        let now = network();
        let same = now == before;
        before = now;
        same
    });
    const QUEUE: &str = "device a0 txqueuelen";
    let kept = place.apply(&["--persist", "--set", &format!("{QUEUE}=6000"), "--only", QUEUE]);
    assert!(kept.err.contains("TransmitQueueLength=6000"), "{kept:?}");
    assert!(kept.err.contains("|| ip link set dev a0 txqueuelen 6000"), "{kept:?}");
    assert_eq!(place.shell("ls -A /etc/sysctl.d"), "", "no file without a setting");
    place.done(&["undo"]);
    place.apply(&[
        "--set",
        "device a0 txqueuelen=5000",
        "--set",
        "route default dev a0 initcwnd=32",
        "--set",
        "route default dev a0 quickack=1",
        "--set",
        "route 2001:db8::/32 dev a0 initrwnd=40",
    ]);
    let now = network();
    assert!(now.contains("qlen 5000"), "{now}");
    let default = now.lines().find(|line| line.starts_with("default")).unwrap();
    for word in ["via 192.0.2.254", "metric 7", "mtu 1400", "initcwnd 32", "quickack 1"] {
        assert!(default.contains(word), "{word}: {now}");
    }
    assert!(
        now.lines().any(|line| line.contains("2001:db8::/32") && line.contains("initrwnd 40")),
        "{now}"
    );
    // A veth has no queue, so its length means nothing; the routes are those that packets take.
    let seen = |name: &str| {
        let checks = place.tune(&["verify", "--json"]).json();
        let found = checks.as_array().unwrap().iter().find(|check| check["setting"] == name);
        found.unwrap_or_else(|| panic!("{name}: {checks:#}"))["seen"].as_str().unwrap().to_string()
    };
    assert_eq!(seen("device a0 txqueuelen"), "not_in_force");
    assert_eq!(seen("route default dev a0 initcwnd"), "in_force");
    assert_eq!(seen("route 2001:db8::/32 dev a0 initrwnd"), "in_force");
    place.shell(
        "tc qdisc replace dev a0 root pfifo_fast && \
         ip route add 198.51.100.0/24 via 192.0.2.253 dev a0",
    );
    assert_eq!(seen("device a0 txqueuelen"), "in_force");
    assert_eq!(seen("route default dev a0 initcwnd"), "not_in_force", "another route is chosen");
    place.shell("tc qdisc del dev a0 root && ip route del 198.51.100.0/24 dev a0");
    place.done(&["undo"]);
    assert_eq!(network(), before);
    let absent = place
        .done(&[&["plan", "--set", "route 198.51.100.0/24 dev a0 initcwnd=9"], &PATH[..]].concat());
    assert!(absent.out.contains("On the machine"), "{absent:?}");
}

fn sockets_show_what_is_in_force() {
    let place = Place::new();
    let seen = |name: &str| {
        let finished = place.done(&["verify", "--json"]);
        let checks = finished.json();
        let found = checks.as_array().unwrap().iter().find(|check| check["setting"] == name);
        let check = found.unwrap_or_else(|| panic!("{name}: {checks:#}"));
        (check["seen"].as_str().unwrap().to_string(), check["how"].as_str().unwrap().to_string())
    };
    let (word, why) = seen("net.ipv4.tcp_sack");
    assert!(word == "cannot_be_seen" && why.contains("lo up"), "{word}: {why}");
    place.shell("ip link set lo up");
    // Settings that no kernel has by itself.
    place.shell(
        "cd /proc/sys/net/ipv4 && echo 4096 100000 4000000 > tcp_rmem && echo 0 > tcp_sack && \
         echo reno > tcp_congestion_control",
    );
    let (word, why) = seen("net.ipv4.tcp_rmem");
    assert!(
        word == "in_force" && why.contains("97.66 KiB") && why.contains("3.815 MiB"),
        "{word}: {why}"
    );
    for name in
        ["net.ipv4.tcp_sack", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_moderate_rcvbuf"]
    {
        let (word, why) = seen(name);
        assert_eq!(word, "in_force", "{name}: {why}");
    }
    assert_eq!(seen("net.ipv4.tcp_mtu_probing").0, "cannot_be_seen");
    // Article C: what the plan sets is what connections get.
    place.apply(&["--role", "receiver", "--pauses"]);
    // How far a buffer grows over loopback depends on the machine, but beyond the old bound it does.
    let (word, why) = seen("net.ipv4.tcp_rmem");
    assert!(word != "not_in_force" && !why.contains("grew to 3.815 MiB"), "{word}: {why}");
    place.shell("echo 0 > /proc/sys/net/ipv4/tcp_slow_start_after_idle");
    let (word, why) = seen("net.ipv4.tcp_slow_start_after_idle");
    assert_ne!(word, "not_in_force", "{why}");
}

/// A receive buffer of 400 kB over 200 Mbit/s and 40 ms: half of it is window, 49 Mbit/s.
fn a_proof_comes_before_the_change() {
    let place = Place::new();
    place.shell("echo 4096 131072 400000 > /proc/sys/net/ipv4/tcp_rmem");
    place.shell("echo 4096 16384 1000000 > /proc/sys/net/ipv4/tcp_wmem");
    let before = place.settings();
    let measured = |goodput: u64| {
        let path = serde_json::json!({
            "rate_bps": 200_000_000, "rtt_us": 40_000, "goodput_bps": goodput,
            "limit": "receive_window",
            "receiver": {"window_bytes": 249_000, "largest_bytes": 400_000},
        });
        place.program.file("why.json", path.to_string());
        place.program.work().join("why.json").to_str().unwrap().to_string()
    };
    let apply = |file: &str, role: &str| {
        place.tune(&["apply", "--yes", "--prove", "--json", "--from", file, "--role", role])
    };
    // A window of 249 kB carries 49.8 Mbit/s at 40 ms, not 10.
    let refused = apply(&measured(10_000_000), "receiver");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for part in ["does not repeat the measurement", "nothing is changed"] {
        assert!(refused.err.contains(part), "{refused:?}");
    }
    // As the sender, what this machine can change gains nothing.
    let file = measured(49_500_000);
    let refused = apply(&file, "sender");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("receiver: net.ipv4.tcp_rmem"), "{refused:?}");
    assert_eq!(place.settings(), before, "what is not proven is not applied");
    assert_eq!(place.status()["applies"].as_array().unwrap().len(), 0);
    let applied = apply(&file, "receiver");
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(applied.err.contains("Expect about"), "{applied:?}");
    let told = applied.json();
    let expected = told["proof"]["trials"][0]["expected_bps"].as_f64().unwrap();
    // The law: the window was all that held it below the link.
    assert!((150e6..=200e6).contains(&expected), "{expected}");
    let largest = |text: &str| text.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let proven = told["proof"]["trials"][0]["changes"][0]["to"].as_str().unwrap();
    assert!(largest(&place.sysctl("net.ipv4.tcp_rmem")) >= largest(proven), "{told:#}");
    place.done(&["undo"]);
    assert_eq!(place.settings(), before);
    // Nobody knows which end's changes count.
    let usage = place.tune(&["apply", "--yes", "--prove", "--from", &file]);
    assert_eq!(usage.code, Some(2), "{usage:?}");
    assert!(usage.err.contains("--role"), "{usage:?}");
    let usage = place.tune(&[&["apply", "--yes", "--prove"], &PATH[..]].concat());
    assert_eq!(usage.code, Some(2), "{usage:?}");
}

fn without_privilege() {
    let program = Program::of(User::Ordinary);
    let own = own_settings();
    let tune = |before: &[&str], arguments: &[&str]| {
        let binary = program.binary().to_str().unwrap().to_string();
        let words = [before, &[binary.as_str(), "tune"], arguments].concat();
        program.start(program.command_by(&words).env("HOME", program.work())).end()
    };
    // A wish, because the machine's own buffers may do.
    let wish = ["--set", "net.ipv4.tcp_mtu_probing=2", "--only", "net.ipv4.tcp_mtu_probing"];
    let planned = tune(&[], &[&["plan"], &PATH[..], &wish].concat());
    assert_eq!(planned.code, Some(0), "{planned:?}");
    let apply = [&["apply", "--yes"], &PATH[..], &wish].concat();
    let refused = tune(&[], &apply);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(
        refused.err.contains("CAP_NET_ADMIN") && refused.err.lines().count() == 1,
        "{refused:?}"
    );
    assert_eq!(tune(&[], &["status"]).out, "Nothing is applied in this network namespace.\n");
    assert_eq!(own_settings(), own);
    // In a namespace of its own it may.
    let own_namespace = ["unshare", "--map-root-user", "--net", "--"];
    let applied = tune(&own_namespace, &apply);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert!(applied.out.contains("net.ipv4.tcp_mtu_probing = 2, was 0"), "{applied:?}");
    let elsewhere = tune(&[], &["status"]);
    assert!(elsewhere.out.contains("1 more in other network namespaces"), "{elsewhere:?}");
    assert_eq!(own_settings(), own);
}

fn bad_requests() {
    let program = Program::new();
    for (arguments, code, word) in [
        (&["--rate", "1gbit"][..], 2, "--rtt"),
        (&["--rate", "10bit", "--rtt", "1ms"], 2, "below"),
        (
            &["--rate", "1gbit", "--rtt", "1ms", "--set", "net.ipv4.tcp_rmem=1 2"],
            2,
            "three whole numbers",
        ),
        (
            &["--rate", "1gbit", "--rtt", "1ms", "--set", "net.ipv4.ip_forward=1"],
            2,
            "tune settings",
        ),
        (
            &["--rate", "1gbit", "--rtt", "1ms", "--set", "net.core.rmem_max=2147483648"],
            2,
            "2147483647",
        ),
        (&["--rate", "1gbit", "--rtt", "1ms", "--only", "tcp_rmem"], 2, "net.ipv4.tcp_rmem"),
        (&["--from", "missing.json"], 4, "missing.json"),
        (&["--from", "/dev/zero"], 4, "regular file"),
    ] {
        let refused = program.run(&[&["tune", "plan"], arguments].concat());
        assert_eq!(refused.code, Some(code), "{arguments:?}: {refused:?}");
        assert!(refused.err.contains(word), "{word}: {refused:?}");
        assert_eq!(refused.err.lines().count(), 1, "{refused:?}");
    }
    let file = program.file("path.json", r#"{"path": {"rate_bps": 1000000000, "rtt_us": 146000, "goodput_bps": 100000000, "sender": {"frozen_by_application": true, "buffer_bytes": 425984}}}"#);
    let planned = program.run(&["tune", "plan", "--from", file, "--role", "sender", "--json"]);
    assert_eq!(planned.code, Some(0), "{planned:?}");
    let plan = planned.json();
    assert_eq!(plan["path"]["rtt_us"], 146_000);
    // An application that set its buffer is helped by wmem_max alone.
    let changes: Vec<_> = ["changes", "on_the_machine"]
        .iter()
        .flat_map(|key| plan[key].as_array().unwrap())
        .collect();
    assert!(changes.iter().all(|change| change["setting"] != "net.ipv4.tcp_wmem"), "{plan:#}");
    assert_eq!(plan["before"]["limited_by"], "send_buffer", "{plan:#}");
}
