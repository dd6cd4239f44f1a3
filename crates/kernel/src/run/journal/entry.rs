//! The lines of a journal.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A line of a journal: something that exists or is about to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// The run itself, always first. It says in which boot and PID namespace the process ids of the
    /// other lines are valid.
    Run {
        /// Version of the program that wrote it.
        version: String,
        /// Random number of this boot; start times count from it.
        boot_id: String,
        /// The PID namespace of the supervisor, as the number in `pid:[4026531836]`.
        pid_namespace: u64,
        /// The process that holds the lock.
        supervisor: u32,
    },
    /// A process to kill.
    Process(Process),
    /// A directory to remove with all that is in it.
    Directory {
        /// Absolute path, named as [`super::JournalWriter::scratch_directory`] does.
        path: PathBuf,
    },
    /// Something that the kernel ends by itself; for people who read the journal.
    Note {
        /// Its kind: "namespace", "device", "sysctl".
        kind: String,
        /// Its name.
        name: String,
    },
}

/// A process, described so that a later one with the same id is not mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its id in the supervisor's PID namespace.
    pub pid: u32,
    /// When it started, in clock ticks since boot: field 22 of /proc/PID/stat.
    pub start_ticks: u64,
    /// Its role in the run.
    pub role: String,
}

impl Entry {
    /// The entry for this run.
    pub(super) fn run() -> Entry {
        Entry::Run {
            version: env!("CARGO_PKG_VERSION").into(),
            boot_id: boot_id(),
            pid_namespace: pid_namespace(),
            supervisor: std::process::id(),
        }
    }
}

impl Process {
    /// Describes the process that has `pid` now; `None` if there is none.
    pub fn with_pid(pid: u32, role: &str) -> Option<Process> {
        Some(Process { pid, start_ticks: start_ticks(pid)?, role: role.into() })
    }

    /// Whether the process that has this id now is the one described.
    pub fn is_running(&self) -> bool {
        start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// Identity of this boot; empty if the kernel does not report it.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().into()
}

/// Identity of this process's PID namespace; 0 if the kernel does not report it.
pub(super) fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map(|m| m.ino()).unwrap_or(0)
}

/// Field 22 of /proc/PID/stat.
fn start_ticks(pid: u32) -> Option<u64> {
    parse_start_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_start_ticks(stat: &str) -> Option<u64> {
    // The command's name is in parentheses and may itself contain blanks and parentheses, so the
    // last parenthesis ends it.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 1";
        assert_eq!(parse_start_ticks(stat), Some(123_456));
    }

    #[test]
    fn this_process_is_running_and_its_double_is_not() {
        let mut process = Process::with_pid(std::process::id(), "test").unwrap();
        assert!(process.is_running());
        process.start_ticks += 1;
        assert!(!process.is_running());
    }

    proptest! {
        #[test]
        fn any_text_is_a_stat_or_not(stat in "\\PC*") {
            let _ = parse_start_ticks(&stat);
        }

        #[test]
        fn an_entry_reads_back(pid: u32, start_ticks: u64, role in "\\PC*") {
            let entry = Entry::Process(Process { pid, start_ticks, role });
            let line = serde_json::to_string(&entry).unwrap();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry);
        }
    }
}
