//! The kernel in front of us as a [`Machine`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fullpipe_kernel::file::records::{self, Records};
use fullpipe_kernel::host::sysctl::{self, Name, SysctlError};
use fullpipe_kernel::network::netlink::Netlink;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::{Refused, file::folder, host::clock};
use fullpipe_model::change::{Change, Knob, Value};
use fullpipe_model::tune::Shown;
use fullpipe_model::units::Duration;

use super::record::{Begin, Item, Line, Record, RecordError};
use super::transaction::Machine;

/// The file that sets sysctls at boot.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/60-fullpipe.conf";

/// Why this machine could not be read, written or recorded.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A sysctl.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// A device, a route, a record.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A file.
    #[error("{operation}: {}: {cause}; it needs root, and a file system that can be written", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// A record is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl MachineError {
    /// Whether a privilege is missing.
    pub fn is_privilege(&self) -> bool {
        let kinds = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
        matches!(self, MachineError::Sysctl(SysctlError::Global { .. }))
            || self.kind().is_some_and(|kind| kinds.contains(&kind))
    }

    /// What keeps even root from setting a sysctl, as in a container; `None` where something else
    /// was refused, or where root could do it.
    pub fn container(&self) -> Option<&'static str> {
        match self.kind()? {
            io::ErrorKind::ReadOnlyFilesystem => Some("/proc/sys is mounted read-only"),
            io::ErrorKind::PermissionDenied if is_root() => {
                Some("this root has no power over its network namespace")
            }
            _ => None,
        }
    }

    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            MachineError::Sysctl(SysctlError::Refused(refused))
            | MachineError::Refused(refused) => Some(refused.cause.kind()),
            MachineError::File { cause, .. } => Some(cause.kind()),
            MachineError::Sysctl(_) | MachineError::Record(_) => None,
        }
    }
}

/// A process's folder belongs to its user.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// This machine, in the network namespace of the calling thread, and the records of this user.
#[derive(Debug)]
pub struct ThisMachine {
    records: Option<Records>,
    /// The record that lines are added to.
    number: u32,
    netlink: Netlink,
}

impl ThisMachine {
    /// For reading alone: records are there if there are some.
    ///
    /// # Errors
    /// The kernel refuses a socket, or the records cannot be read.
    pub fn to_read() -> Result<ThisMachine, MachineError> {
        // Without a place for records there are none.
        let records = match records::directory("tune") {
            Ok(directory) => Records::open_existing(&directory)?,
            Err(_) => None,
        };
        Ok(ThisMachine { records, number: 0, netlink: Netlink::open_own()? })
    }

    /// For changes. Other processes that want to change something wait.
    ///
    /// # Errors
    /// There is no place for records that belongs to this user alone.
    pub fn to_change() -> Result<ThisMachine, MachineError> {
        let records = Records::open(&records::directory("tune")?)?;
        let number = records.numbers()?.last().map_or(1, |last| last + 1);
        Ok(ThisMachine { records: Some(records), number, netlink: Netlink::open_own()? })
    }

    /// The number of the record that lines are added to.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Adds lines to record `number` from now on.
    pub fn go_on_with(&mut self, number: u32) {
        self.number = number;
    }

    /// Every record of this network namespace, oldest first, and how many there are of others.
    ///
    /// # Errors
    /// One cannot be read, or is not a record.
    pub fn records(&self) -> Result<(BTreeMap<u32, Record>, usize), MachineError> {
        let Some(records) = &self.records else { return Ok((BTreeMap::new(), 0)) };
        let (here, mut elsewhere) = (network_namespace()?, 0);
        let mut found = BTreeMap::new();
        for number in records.numbers()? {
            match Record::read(&records.read(number)?)? {
                Some(record) if record.begin.network_namespace == here => {
                    found.insert(number, record);
                }
                Some(_) => elsewhere += 1,
                None => {}
            }
        }
        Ok((found, elsewhere))
    }

    /// Removes record `number`, which is put back.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn forget(&mut self, number: u32) -> Result<(), MachineError> {
        match &self.records {
            Some(records) => Ok(records.remove(number)?),
            None => Ok(()),
        }
    }

    /// Whether the caller may set `knob`; changes nothing. Devices and routes tell only when they
    /// are set.
    ///
    /// # Errors
    /// It may not.
    pub fn may_set(&self, knob: &Knob) -> Result<(), MachineError> {
        match knob {
            Knob::Sysctl(one) => Ok(sysctl::may_write_own(&name(one.name()))?),
            Knob::QueueLength(_) | Knob::Route(..) => Ok(()),
        }
    }

    /// A setting as it is here; `None`: this kernel or namespace does not show it.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn shown(&mut self, knob: &Knob) -> Result<Option<Shown>, MachineError> {
        let number = match knob {
            Knob::Sysctl(one) => {
                return Ok(sysctl::shown_own(&name(one.name()))?.and_then(|shown| {
                    // What is no value of this setting is not this setting.
                    let value = knob.read(&shown.value).ok()?;
                    Some(Shown { value, is_settable: shown.is_settable })
                }));
            }
            Knob::QueueLength(device) => self.netlink.queue_length(device)?,
            Knob::Route(route, metric) => self.netlink.route_metric(route, *metric)?,
        };
        Ok(number.map(|value| Shown { value: Value::Number(value.into()), is_settable: true }))
    }

    /// The first line of an apply that begins now.
    ///
    /// # Errors
    /// The network namespace cannot be identified.
    pub fn begin(&self, purpose: &str, keep: Option<Duration>) -> Result<Begin, MachineError> {
        let at = since_1970();
        Ok(Begin {
            version: env!("CARGO_PKG_VERSION").into(),
            at,
            boot_id: records::boot_id(),
            network_namespace: network_namespace()?,
            deadline: keep.map(|keep| at + keep),
            purpose: purpose.into(),
        })
    }

    /// Whether `record` was made in this boot.
    pub fn is_this_boot(&self, record: &Record) -> bool {
        record.begin.boot_id == records::boot_id()
    }

    /// The time, as records have it.
    pub fn now(&self) -> Duration {
        since_1970()
    }
}

fn since_1970() -> Duration {
    (clock::now() + clock::realtime_offset()).since(fullpipe_model::units::Instant::ZERO)
}

fn network_namespace() -> Result<u64, Refused> {
    NetNs::current("this network namespace")?.inode()
}

fn name(text: &str) -> Name {
    text.parse().expect("the table of knobs has names of sysctls")
}

impl Machine for ThisMachine {
    type Error = MachineError;

    fn read(&mut self, item: &Item) -> Result<Option<String>, MachineError> {
        match item {
            Item::Knob(knob) => Ok(self.shown(knob)?.map(|shown| shown.value.to_string())),
            Item::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(Some(text)),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(cause) => Err(file_error("read file", path, cause)),
            },
        }
    }

    fn write(&mut self, item: &Item, value: Option<&str>) -> Result<(), MachineError> {
        match (item, value) {
            (Item::File(path), Some(text)) => folder::write_whole(path, text.as_bytes())
                .map_err(|cause| file_error("write file", path, cause)),
            (Item::File(path), None) => {
                std::fs::remove_file(path).map_err(|cause| file_error("remove file", path, cause))
            }
            (Item::Knob(_), None) => Ok(()),
            (Item::Knob(Knob::Sysctl(one)), Some(value)) => {
                Ok(sysctl::write_own(&name(one.name()), value)?)
            }
            (Item::Knob(Knob::QueueLength(device)), Some(value)) => {
                Ok(self.netlink.set_queue_length(device, number(value)?)?)
            }
            (Item::Knob(Knob::Route(route, metric)), Some(value)) => {
                Ok(self.netlink.set_route_metric(route, *metric, number(value)?)?)
            }
        }
    }

    fn note(&mut self, line: &Line) -> Result<(), MachineError> {
        let text = serde_json::to_string(line).map_err(|error| {
            Refused::new("write record", self.number.to_string(), io::Error::other(error))
        })?;
        match &self.records {
            Some(records) => Ok(records.append(self.number, &text)?),
            None => Err(Refused::new(
                "write record",
                self.number.to_string(),
                io::Error::from(io::ErrorKind::NotFound),
            )
            .into()),
        }
    }
}

fn file_error(operation: &'static str, path: &Path, cause: io::Error) -> MachineError {
    MachineError::File { operation, path: path.into(), cause }
}

fn number(text: &str) -> Result<u32, Refused> {
    text.parse().map_err(|error| {
        Refused::new("set number", text, io::Error::new(io::ErrorKind::InvalidInput, error))
    })
}

/// The file [`SYSCTL_FILE`] with `changes`: what it has already stays, unless it is set anew.
pub fn persisted(present: Option<&str>, changes: &[Change]) -> String {
    const HEAD: &str =
        "# Written by `fullpipe tune apply --persist`; `fullpipe tune undo` takes it back.\n";
    let present = present.unwrap_or(HEAD).lines();
    let kept = present.filter(|line| {
        let name = line.split_once('=').map(|(name, _)| name.trim().trim_start_matches('-'));
        !changes.iter().any(|change| name == Some(change.knob.to_string().as_str()))
    });
    let mut text: String = kept.map(|line| format!("{line}\n")).collect();
    for change in changes {
        if let Knob::Sysctl(sysctl) = change.knob {
            let _ = writeln!(text, "{sysctl} = {}", change.to);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, to: &str) -> Change {
        let knob: Knob = name.parse().unwrap();
        let to = knob.checked(to).unwrap();
        Change { end: None, knob, from: None, to, reason: "a test".into() }
    }

    #[test]
    fn the_file_keeps_what_it_has_and_sets_nothing_twice() {
        let first = persisted(None, &[change("net.ipv4.tcp_rmem", "1 2 3")]);
        assert!(
            first.starts_with("# Written by") && first.ends_with("net.ipv4.tcp_rmem = 1 2 3\n")
        );
        let more = [
            change("net.ipv4.tcp_rmem", "1 2 4"),
            change("net.core.rmem_max", "5000"),
            change("device eth0 txqueuelen", "2000"),
        ];
        let second = persisted(Some(&format!("{first}vm.swappiness = 1\n")), &more);
        assert_eq!(second.matches("tcp_rmem").count(), 1, "{second}");
        assert!(second.contains("tcp_rmem = 1 2 4\n") && second.contains("rmem_max = 5000\n"));
        assert!(second.contains("vm.swappiness = 1\n") && !second.contains("eth0"), "{second}");
    }

    #[test]
    fn this_machine_shows_what_procfs_shows() {
        let mut machine = ThisMachine::to_read().unwrap();
        let knob: Knob = "net.ipv4.tcp_rmem".parse().unwrap();
        let shown = machine.shown(&knob).unwrap().unwrap();
        let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap();
        assert_eq!(shown.value.to_string(), text.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(machine.shown(&"device nosuch0 txqueuelen".parse().unwrap()).unwrap().is_none());
        let route = "route 203.0.113.0/24 dev lo initcwnd".parse().unwrap();
        assert!(machine.shown(&route).unwrap().is_none());
        let lo = machine.shown(&"device lo txqueuelen".parse().unwrap()).unwrap().unwrap();
        let file = std::fs::read_to_string("/sys/class/net/lo/tx_queue_len").unwrap();
        assert_eq!(lo.value.to_string(), file.trim());
    }
}
