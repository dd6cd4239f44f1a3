//! How the kernel schedules a thread: real-time class, timer slack, CPU affinity, niceness.
//!
//! In Linux all of these belong to a thread, whatever POSIX says. The functions here act on the
//! calling thread, and [`Placement::apply_to`] on a program before it starts. Each returns the
//! kernel's answer, and a failure need not fail a run: the link works without SCHED_FIFO, only
//! later, and the result says so.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use fullpipe_model::units::Duration;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::Refused;

/// Puts the calling thread into SCHED_FIFO at the lowest priority, so that it runs at once when it
/// wakes, before all normal threads.
///
/// Needs CAP_SYS_NICE on the machine itself or an RLIMIT_RTPRIO; in a user namespace only the
/// latter helps. Threads and programs started from this thread do not inherit the class.
pub fn fifo() -> Result<(), Refused> {
    // The kernel's `struct sched_param` is this one number. musl's own function does nothing,
    // because POSIX means a process by it, and Linux a thread.
    let priority: libc::c_int = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `priority` lives through the call; 0 means the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) } {
        0 => Ok(()),
        _ => Err(Refused::last("use SCHED_FIFO", "calling thread")
            .hint("run as root, or raise the limit `ulimit -r` (rtprio in /etc/security/limits.conf) to 1")),
    }
}

/// Whether the calling thread has only one CPU. A real-time thread there blocks every other
/// program, because they have nowhere else to go. If the machine does not report its CPUs, it
/// counts as having more.
pub fn has_one_cpu() -> bool {
    cpus().is_ok_and(|cpus| cpus.len() == 1)
}

/// Lets the kernel delay timers of the calling thread by at most `slack` to save power; the default
/// is 50 us.
///
/// To the kernel zero means "back to the default", so the least is 1 ns. Real-time threads have no
/// slack anyway.
pub fn timer_slack(slack: Duration) -> Result<(), Refused> {
    nix::sys::prctl::set_timerslack(slack.as_nanos().max(1))
        .map_err(|errno| Refused::new("set timer slack", "calling thread", errno))
}

/// How long the calling thread was ready to run and had to wait for a CPU, since it started.
/// `None` where the kernel does not count that (`CONFIG_SCHED_INFO`).
pub fn waited_for_cpu() -> Option<Duration> {
    run_delay("/proc/thread-self/schedstat")
}

/// The same of the first thread of a process.
pub fn waited_for_cpu_of(pid: u32) -> Option<Duration> {
    run_delay(&format!("/proc/{pid}/schedstat"))
}

/// The second number of a `schedstat` file (`Documentation/scheduler/sched-stats.rst`).
fn run_delay(path: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// The CPUs that the calling thread may use, ascending.
pub fn cpus() -> Result<Vec<usize>, Refused> {
    let set = sched_getaffinity(Pid::from_raw(0))
        .map_err(|e| Refused::new("read CPU affinity", "calling thread", e))?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

/// The same, starting with the calling thread's CPU, so that not everybody starts on the first one.
pub fn cpus_from_here() -> Result<Vec<usize>, Refused> {
    let mut cpus = cpus()?;
    let here =
        nix::sched::sched_getcpu().ok().and_then(|here| cpus.iter().position(|&cpu| cpu == here));
    cpus.rotate_left(here.unwrap_or(0));
    Ok(cpus)
}

/// The CPUs and the niceness of a thread or program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    /// The CPUs to run on; empty: unchanged.
    pub cpus: Vec<usize>,
    /// The niceness from -20 (greedy) to 19 (polite); `None`: unchanged. Lowering it needs
    /// CAP_SYS_NICE.
    pub nice: Option<i8>,
}

impl std::fmt::Display for Placement {
    /// "on CPUs 0, 1 at niceness 5"
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cpus: Vec<String> = self.cpus.iter().map(ToString::to_string).collect();
        let cpus = (!cpus.is_empty()).then(|| format!("on CPUs {}", cpus.join(", ")));
        let nice = self.nice.map(|nice| format!("at niceness {nice}"));
        f.write_str(&[cpus, nice].into_iter().flatten().collect::<Vec<_>>().join(" "))
    }
}

impl Placement {
    /// Applies to the calling thread and to everything it starts from now on.
    pub fn apply(&self) -> Result<(), Refused> {
        let set = self.cpu_set()?;
        self.place(set.as_ref()).map_err(|e| Refused::new("place thread", self.to_string(), e))
    }

    /// Applies to the process of `command`, just before the program starts.
    pub fn apply_to(&self, command: &mut Command) -> Result<(), Refused> {
        let set = self.cpu_set()?;
        let nice = Placement { cpus: Vec::new(), nice: self.nice };
        // SAFETY: the hook makes two system calls and allocates nothing, as is right between fork
        // and exec.
        unsafe { command.pre_exec(move || nice.place(set.as_ref())) };
        Ok(())
    }

    fn cpu_set(&self) -> Result<Option<CpuSet>, Refused> {
        if self.cpus.is_empty() {
            return Ok(None);
        }
        let mut set = CpuSet::new();
        for &cpu in &self.cpus {
            set.set(cpu).map_err(|e| {
                Refused::new("choose CPUs", format!("cpu {cpu}"), e)
                    .hint("number CPUs from 0, as in /proc/cpuinfo")
            })?;
        }
        Ok(Some(set))
    }

    fn place(&self, set: Option<&CpuSet>) -> io::Result<()> {
        if let Some(set) = set {
            sched_setaffinity(Pid::from_raw(0), set)?;
        }
        if let Some(nice) = self.nice {
            // SAFETY: no memory is passed; `who` 0 is the calling thread.
            if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice.into()) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_where_it_was_placed() {
        let cpu = *cpus().unwrap().last().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "grep Cpus_allowed_list /proc/self/status; nice"]);
        Placement { cpus: vec![cpu], nice: Some(19) }.apply_to(&mut command).unwrap();
        let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let mut words = text.split_whitespace().skip(1);
        assert_eq!(words.next(), Some(cpu.to_string().as_str()), "{text}");
        assert_eq!(words.next(), Some("19"), "{text}");
    }

    #[test]
    fn placement_is_the_threads_own() {
        let before = cpus().unwrap();
        let first = before[0];
        let there = std::thread::spawn(move || {
            Placement { cpus: vec![first], nice: Some(5) }.apply().unwrap();
            timer_slack(Duration::from_nanos(1)).unwrap();
            (cpus().unwrap(), nix::sys::prctl::get_timerslack().unwrap())
        });
        assert_eq!(there.join().unwrap(), (vec![first], 1));
        assert_eq!(cpus().unwrap(), before);
    }

    /// Two threads that never wait share one CPU: each waits for it half of the time.
    #[test]
    #[allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
    fn who_shares_a_cpu_waits_for_it() {
        let cpu = cpus().unwrap()[0];
        let spin = move || {
            Placement { cpus: vec![cpu], nice: None }.apply().unwrap();
            let until = crate::host::clock::now() + Duration::from_millis(200);
            while crate::host::clock::now() < until {}
            waited_for_cpu()
        };
        let both = [std::thread::spawn(spin), std::thread::spawn(spin)];
        let waited: Vec<_> = both.map(|one| one.join().unwrap()).into_iter().flatten().collect();
        let [one, other] = waited[..] else {
            eprintln!("SKIPPED: this kernel has no CONFIG_SCHED_INFO");
            return;
        };
        assert!(one.saturating_add(other) > Duration::from_millis(50), "{one} {other}");
    }

    #[test]
    fn a_cpu_that_cannot_be_is_refused_with_its_number() {
        let error = Placement { cpus: vec![1 << 20], nice: None }.apply().unwrap_err();
        assert!(error.to_string().contains("cpu 1048576"), "{error}");
    }
}
