//! What a host knew of a socket beside its samples, as a line of a recording.
//!
//! A recording has a note after the samples of each socket that was followed. With it, whoever
//! reads the recording names the causes that the host named: who set a buffer, which setting caps
//! it. A recording is a foreign file: a note whose numbers no kernel has is refused here, once.

use fullpipe_model::change::Sysctl;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::observe::{Egress, ParseSampleError, Process, SocketOptions};
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::{Bytes, Instant, Window, column};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What a host knew of one of its sockets. Its text is a line of JSON.
///
/// ```
/// use fullpipe_flow::diagnosis::live::Note;
/// let line = r#"{"at_ns":7,"local":"192.0.2.1:80","remote":"192.0.2.2:4000","note":{
///     "asked":{"sets_rcvbuf":true},
///     "kernel":"6.18","sysctl":{"net.core.rmem_max":"4194304"}}}"#;
/// let note: Note = line.parse().unwrap();
/// assert_eq!(note.asked.unwrap().sets_rcvbuf, Some(true));
/// assert_eq!(note.settings.as_ref().unwrap().rmem_max.get(), 4_194_304);
/// assert_eq!(note.to_string().parse(), Ok(note));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// When the last of the samples was taken that it belongs to, by their clock.
    pub at: Instant,
    /// The socket's own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// What its application asked of it, where that may be known.
    pub asked: Option<SocketOptions>,
    /// The settings of its network namespace, where they are known.
    pub settings: Option<HostSettings>,
    /// Which socket it was; only a recording that goes on for days has it.
    pub socket: Option<Box<NotedSocket>>,
}

/// Which socket of its host it was, whose, and what its packets passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedSocket {
    /// The label of its network namespace.
    pub namespace: String,
    /// The inode of that.
    pub namespace_inode: u64,
    /// The kernel's number of the socket: no other socket has it while the machine runs.
    pub cookie: u64,
    /// The user who opened it.
    pub uid: u32,
    /// The process that had it open, where that may be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// What its packets passed on their way out, at the first sample and at the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<[Egress; 2]>,
    /// What its control group used, where that was at its memory limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<NotedGroup>,
}

/// A control group at its memory limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotedGroup {
    /// Its path.
    pub path: String,
    /// What it uses.
    #[serde(rename = "used_bytes", with = "column::bytes")]
    pub used: Bytes,
    /// Its limit.
    #[serde(rename = "bound_bytes", with = "column::bytes")]
    pub bound: Bytes,
    /// What of it sockets hold.
    #[serde(rename = "sockets_bytes", with = "column::bytes")]
    pub sockets: Bytes,
}

/// More than a buffer or a window has: the kernel's sizes of these have 32 bits.
const SIZE_MOST: Bytes = Bytes::new(1 << 32);

/// The line's JSON.
#[derive(Serialize, Deserialize)]
struct NoteLine {
    #[serde(rename = "at_ns", with = "column::instant")]
    at: Instant,
    local: SocketAddr,
    remote: SocketAddr,
    note: Known,
}

#[derive(Serialize, Deserialize)]
struct Known {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<SocketOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<KernelVersion>,
    /// The settings as the kernel shows them, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sysctl: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    socket: Option<Box<NotedSocket>>,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = self.settings.as_ref();
        let note = Known {
            asked: self.asked,
            kernel: settings.map(|settings| settings.kernel),
            sysctl: settings.map(shown).unwrap_or_default(),
            socket: self.socket.clone(),
        };
        let line = NoteLine { at: self.at, local: self.local, remote: self.remote, note };
        // Texts and numbers can always be written.
        f.write_str(&serde_json::to_string(&line).map_err(|_| std::fmt::Error)?)
    }
}

impl std::str::FromStr for Note {
    type Err = ParseSampleError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let NoteLine { at, local, remote, note } = serde_json::from_str(line)
            .map_err(|error| ParseSampleError::Json(error.to_string()))?;
        let Known { asked, kernel, sysctl, socket } = note;
        let settings = match kernel {
            Some(kernel) => Some(settings(kernel, &sysctl)?),
            None => None,
        };
        let note = Note { at, local, remote, asked, settings, socket };
        if note.is_possible() { Ok(note) } else { Err(ParseSampleError::Impossible) }
    }
}

impl Note {
    fn is_possible(&self) -> bool {
        let asked = self.asked.iter().flat_map(|asked| {
            [asked.window_clamp.map(Window::bytes), asked.notsent_lowat].into_iter().flatten()
        });
        let settings = self.settings.iter().flat_map(|settings| {
            let triples = [settings.tcp_rmem, settings.tcp_wmem];
            let of_triples = triples.into_iter().flat_map(|one| [one.min, one.default, one.max]);
            of_triples.chain([settings.rmem_max, settings.wmem_max])
        });
        asked.chain(settings).all(|size| size <= SIZE_MOST)
    }
}

/// The settings that a note has.
fn noted() -> impl Iterator<Item = Sysctl> {
    let others = [Sysctl::TcpAdvWinScale, Sysctl::TcpSlowStartAfterIdle];
    Sysctl::OF_WINDOWS.into_iter().chain(others)
}

/// Settings by their names, as the kernel shows them.
fn shown(settings: &HostSettings) -> BTreeMap<String, String> {
    noted()
        .filter_map(|sysctl| Some((sysctl.name().into(), settings.get(sysctl)?.to_string())))
        .collect()
}

/// The settings that are named; those that are not are the kernel's defaults.
fn settings(
    kernel: KernelVersion,
    shown: &BTreeMap<String, String>,
) -> Result<HostSettings, ParseSampleError> {
    let mut settings = HostSettings::defaults(kernel);
    for sysctl in noted() {
        let Some(text) = shown.get(sysctl.name()) else { continue };
        settings.read(sysctl, text).map_err(|_| {
            ParseSampleError::Json(format!("{} has no value of its kind", sysctl.name()))
        })?;
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::law::AdvWinScale;
    use fullpipe_model::observe::{Class, Qdisc};
    use fullpipe_model::units::Rate;

    fn note() -> Note {
        Note {
            at: Instant::from_nanos(7),
            local: ([192, 0, 2, 1], 80).into(),
            remote: ([192, 0, 2, 2], 4000).into(),
            asked: Some(SocketOptions {
                sets_rcvbuf: Some(true),
                sets_sndbuf: None,
                window_clamp: Some(Window::new(Bytes::new(60_000))),
                notsent_lowat: Some(Bytes::new(4096)),
                max_pacing_rate: Some(Rate::from_bits_per_sec(20_000_000)),
            }),
            settings: Some(HostSettings {
                rmem_max: Bytes::new(212_992),
                tcp_slow_start_after_idle: false,
                tcp_adv_win_scale: AdvWinScale::new(-2).unwrap(),
                ..HostSettings::defaults(KernelVersion::new(6, 1))
            }),
            socket: None,
        }
    }

    fn socket() -> NotedSocket {
        let process = Process {
            pid: 7,
            name: "nginx".into(),
            command: "nginx: worker".into(),
            cgroup: Some("/system.slice/nginx.service".into()),
            container: None,
            pod: None,
        };
        let qdisc = Qdisc {
            kind: "htb".into(),
            handle: "1:".into(),
            rate: None,
            loses: false,
            drops: 3,
            overlimits: 9,
            classes: vec![Class { handle: "1:1".into(), most: None, sent: Bytes::new(5) }],
        };
        let egress = Egress { device: "eth0".into(), qdiscs: vec![qdisc] };
        let [used, bound, sockets] = [9, 10, 5].map(Bytes::new);
        NotedSocket {
            namespace: "host".into(),
            namespace_inode: 4_026_531_840,
            cookie: 9,
            uid: 1000,
            process: Some(process),
            egress: Some([egress.clone(), egress]),
            group: Some(NotedGroup { path: "/pod".into(), used, bound, sockets }),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let of_socket = Note { socket: Some(Box::new(socket())), ..note() };
        for note in [note(), Note { asked: None, settings: None, ..note() }, of_socket] {
            assert_eq!(note.to_string().lines().count(), 1);
            assert_eq!(note.to_string().parse(), Ok(note));
        }
    }

    #[test]
    fn a_note_that_no_kernel_makes_is_refused() {
        let line = note().to_string();
        assert!(line.parse::<fullpipe_model::observe::Sample>().is_err(), "it is no sample");
        for (from, to) in [
            ("\"212992\"", "\"5000000000\""),
            ("\"212992\"", "\"much\""),
            ("\"-2\"", "\"77\""),
            ("60000", "60000000000"),
            ("\"at_ns\":7", "\"at_ns\":-1"),
        ] {
            assert!(line.contains(from), "{from} in {line}");
            assert!(line.replace(from, to).parse::<Note>().is_err(), "{to}");
        }
    }
}
