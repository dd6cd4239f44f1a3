//! The harness: starts a case as a user, sends it signals, and looks for what is left of it.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use fullpipe_kernel::{host::clock, run::sandbox};
use fullpipe_model::units::Duration;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Everything here is over in far less; this is when a trial gives up.
const LIMIT: Duration = Duration::from_secs(20);
const MARK: &str = "FULLPIPE_TEST_RUN";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Own,
    Ordinary,
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == User::Ordinary || !nix::unistd::geteuid().is_root() {
            "user"
        } else {
            "root"
        })
    }
}

impl User {
    /// As whom trials can run here.
    pub fn available() -> Vec<User> {
        if !nix::unistd::geteuid().is_root() {
            crate::skipped("sandbox as root", "not root");
            return vec![User::Own];
        }
        let mut probe = Command::new("setpriv");
        probe.args(["--reuid=1000", "--regid=1000", "--clear-groups", "unshare", "-Ur", "true"]);
        if probe.output().is_ok_and(|output| output.status.success()) {
            return vec![User::Own, User::Ordinary];
        }
        crate::skipped("sandbox as an ordinary user", "no setpriv, or no user namespaces here");
        vec![User::Own]
    }
}

/// One trial's program: who runs it, where its journals are, how its processes are known.
pub struct Program {
    user: User,
    mark: String,
    journals: PathBuf,
}

impl Program {
    pub fn new(user: User, trial: &str) -> Program {
        let mark = format!("{}-{trial}-{user}", std::process::id());
        Program { user, journals: std::env::temp_dir().join(format!("fullpipe-test-{mark}")), mark }
    }

    fn command(&self, words: &[&str]) -> Command {
        // Whoever runs the tests in the background of a script, or by nohup, has them ignore
        // signals, and a run would honour that.
        let mut command = Command::new("/usr/bin/env");
        command.arg("--default-signal=HUP,INT,QUIT,TERM");
        if self.user == User::Ordinary {
            command.args(["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"]);
        }
        command.arg(std::env::current_exe().unwrap());
        command.args(words).arg(&self.journals).env(MARK, &self.mark).env_remove("XDG_RUNTIME_DIR");
        command
    }

    fn start(&self, case: &str) -> Running<'_> {
        let mut child = self
            .command(&["--inside", case])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Running { program: self, child, lines }
    }

    /// Ids of the processes that carry this trial's mark.
    fn processes(&self) -> Vec<i32> {
        let mark = format!("{MARK}={}", self.mark);
        let ids = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|item| item.ok()?.file_name().to_str()?.parse().ok());
        let marked = |id: &i32| {
            let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
        };
        ids.filter(marked).collect()
    }

    /// Id of the process that is number 1 of the run's PID namespace.
    fn init(&self) -> i32 {
        let is_init = |id: &i32| {
            let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            status.lines().any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"))
        };
        self.processes().into_iter().find(is_init).expect("init is there")
    }

    /// Waits until no process is left, then checks that nothing else is: namespaces, journals,
    /// scratch directories.
    fn assert_gone(&self, namespaces: &[String]) {
        until("its processes are gone", || self.processes().is_empty());
        until("its namespaces are gone", || {
            let alive: HashSet<String> = namespaces_alive();
            namespaces.iter().all(|namespace| !alive.contains(namespace))
        });
        assert!(
            !fs::exists("/sys/class/net/fptest0").unwrap(),
            "a device is in the machine's own namespace"
        );
        assert_eq!(self.journal_files(), Vec::<PathBuf>::new());
        let _ = fs::remove_dir(&self.journals);
    }

    fn journal_files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.journals)
            .map_or(Vec::new(), |items| items.map(|item| item.unwrap().path()).collect())
    }

    fn clean(&self) -> String {
        let output = self.command(&["--clean"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Program {
    /// What a failed trial left; a good one has removed it.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.journals);
    }
}

/// Inodes of all network namespaces that a process is in.
fn namespaces_alive() -> HashSet<String> {
    let ids =
        fs::read_dir("/proc").unwrap().filter_map(|item| item.ok()?.file_name().into_string().ok());
    ids.filter_map(|id| Some(fs::metadata(format!("/proc/{id}/ns/net")).ok()?.ino().to_string()))
        .collect()
}

/// Polls `condition` until it holds, at most [`LIMIT`].
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = clock::now() + LIMIT;
    while !condition() {
        assert!(clock::now() < deadline, "waited {LIMIT} until {what}");
        std::thread::yield_now();
    }
}

struct Running<'a> {
    program: &'a Program,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running<'_> {
    /// The next line that the case prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Exit code (`None`: killed), the rest of standard output, standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let program = self.program;
        until("it ends", || {
            self.child.try_wait().unwrap().is_some() || program.processes().is_empty()
        });
        let (mut out, mut err) = (String::new(), String::new());
        self.lines.read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Running<'_> {
    /// A trial that fails leaves nothing running either: with the supervisor goes all the rest.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

type TrialFn = fn(&Program);

pub const TRIALS: [(&str, TrialFn); 15] = [
    ("exit_code_is_the_closures", |program| {
        let (code, _, err) = program.start("seven").end();
        assert_eq!(code, Some(7), "{err}");
        program.assert_gone(&[]);
    }),
    ("panic_is_told_and_cleaned", |program| {
        let (code, out, err) = program.start("panic").end();
        assert_eq!(code, Some(101));
        assert!(err.contains("on purpose"), "{err}");
        assert!(!fs::exists(out.trim()).unwrap(), "scratch directory {out} is left");
        program.assert_gone(&[]);
    }),
    ("hosts_have_their_own_settings", |program| {
        let sysctls = ["tcp_rmem", "tcp_wmem", "tcp_congestion_control"]
            .map(|name| format!("/proc/sys/net/ipv4/{name}"));
        let read = || sysctls.clone().map(|path| fs::read_to_string(path).unwrap());
        let before = read();
        passes(program, "settings");
        assert_eq!(read(), before, "the machine's own settings changed");
    }),
    ("transfer_over_tun_ports", |program| passes(program, "tun")),
    ("transfer_over_veth_ports", |program| passes(program, "veth")),
    ("orphans_are_reaped", |program| passes(program, "orphans")),
    ("sigint_interrupts", |program| interrupts(program, Signal::SIGINT)),
    ("sigterm_interrupts", |program| interrupts(program, Signal::SIGTERM)),
    ("sighup_interrupts", |program| interrupts(program, Signal::SIGHUP)),
    ("second_interrupt_kills", |program| {
        let mut running = program.start("stubborn");
        assert_eq!(running.line(), "ready");
        running.signal(Signal::SIGINT);
        assert_eq!(running.line(), "interrupted and staying");
        // The time between the two is the thing under test: closer ones count as one.
        let patience = clock::now() + sandbox::PATIENCE;
        until("patience has passed", || clock::now() >= patience);
        running.signal(Signal::SIGINT);
        let (code, _, err) = running.end();
        assert_eq!(code, Some(130), "{err}");
        program.assert_gone(&[]);
    }),
    ("killed_processes_inside_are_told", |program| {
        let worker = program.start("killed-worker").end();
        // Process 1 of a namespace cannot be killed from inside, only from here.
        let mut running = program.start("wait");
        assert_eq!(running.line(), "ready");
        kill(Pid::from_raw(program.init()), Signal::SIGKILL).unwrap();
        for (code, _, err) in [worker, running.end()] {
            assert_eq!(code, Some(99), "{err}");
            assert!(err.contains("killed by") && err.contains("SIGKILL"), "{err}");
        }
        program.assert_gone(&[]);
    }),
    ("two_runs_at_once_leave_each_other_alone", |program| {
        let mut first = program.start("wait");
        assert_eq!(first.line(), "ready");
        let (code, out, err) = program.start("count-cleaned").end();
        assert_eq!((code, out.trim()), (Some(0), "0"), "{err}");
        assert_eq!(program.clean(), "");
        assert_eq!(program.journal_files().len(), 1);
        first.signal(Signal::SIGTERM);
        assert_eq!(first.end().0, Some(130));
        program.assert_gone(&[]);
    }),
    ("kill_9_of_the_supervisor_leaves_nothing", kill_9),
    ("no_user_namespaces_is_said_with_the_way_out", no_user_namespaces),
    ("threads_are_refused", |program| {
        let (code, _, err) = program.start("seven-from-thread").end();
        // The case starts a run inside a run, with a thread beside it.
        assert_eq!(code, Some(7), "{err}");
        program.assert_gone(&[]);
    }),
];

/// Runs a case that checks itself.
fn passes(program: &Program, case: &str) {
    let (code, out, err) = program.start(case).end();
    for skipped in err.lines().filter(|line| line.starts_with("SKIPPED")) {
        eprintln!("{skipped} (as {})", program.user);
    }
    assert_eq!(code, Some(0), "{out}{err}");
    program.assert_gone(&[]);
}

fn interrupts(program: &Program, signal: Signal) {
    let mut running = program.start("wait");
    assert_eq!(running.line(), "ready");
    running.signal(signal);
    let (code, out, err) = running.end();
    assert_eq!((code, out.trim()), (Some(130), "interrupted"), "{err}");
    program.assert_gone(&[]);
}

/// Twenty runs, each killed at another point: after the n-th step, and some spins of the CPU later.
fn kill_9(program: &Program) {
    // A generator of our own, for a sequence that a failure can name: the round's number is the
    // seed.
    for round in 0u32..20 {
        let random = (round + 1).wrapping_mul(2_654_435_761) >> 8;
        let mut running = program.start("busy");
        let mut namespaces = Vec::new();
        let mut scratch = None;
        for _ in 0..random % 7 {
            let line = running.line();
            match line.split_once(' ') {
                Some(("namespace", inode)) => namespaces.push(inode.to_string()),
                Some(("scratch", path)) => scratch = Some(path.to_string()),
                _ => {}
            }
        }
        for _ in 0..random % 100_000 {
            std::hint::spin_loop();
        }
        running.signal(Signal::SIGKILL);
        let (code, _, _) = running.end();
        assert_eq!(code, None, "round {round}: it was killed before its end");
        until("its processes are gone", || program.processes().is_empty());
        let cleaned = program.clean();
        if let Some(scratch) = scratch {
            assert!(
                !fs::exists(&scratch).unwrap(),
                "round {round}: {scratch} is left; cleaned: {cleaned}"
            );
        }
        program.assert_gone(&namespaces);
    }
}

fn no_user_namespaces(program: &Program) {
    if program.user == User::Own && nix::unistd::geteuid().is_root() {
        // Root needs no user namespace; the ordinary user's trial is this one.
        return;
    }
    // A user namespace's own limit on further ones is 0, and its root has no capabilities: nothing
    // of the machine's.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && \
                  exec setpriv --bounding-set=-all --securebits=+noroot \"$0\" --inside seven \"$1\"";
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=1000",
        "--regid=1000",
        "--clear-groups",
        "unshare",
        "-Ur",
        "sh",
        "-c",
        script,
    ]);
    let output = command.arg(own).arg(&program.journals).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("sudo sysctl -w user.max_user_namespaces=10000"), "{err}");
    program.assert_gone(&[]);
}
