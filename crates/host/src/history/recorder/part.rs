//! The part that is being recorded: in memory until it is complete, and then one file.

use super::super::{HistoryRing, RingTrouble};
use crate::machine::{
    Counters, group_shortage, holders, memory_pressure, offloads_off, physical_devices, vendor,
};
use crate::watch::{SocketKey, Watch, WatchedSocket};
use flate2::Compression;
use flate2::write::GzEncoder;
use fullpipe_flow::diagnosis::MachineCause;
use fullpipe_flow::diagnosis::live::{
    ClockOffset, HostNote, LookNote, Note, NotedHolder, NotedMemory, NotedSocket,
};
use fullpipe_kernel::file::records;
use fullpipe_kernel::host::{Host, clock};
use fullpipe_kernel::socket::socket_options;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::observe::{Egress, Process, Sample, SocketEnds, SocketOptions};
use fullpipe_model::units::Instant;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::sync::Arc;

/// What is compressed at a time.
const BLOCK: usize = 64 << 10;
/// Of how many new connections of a look it is read what their packets pass: each takes some 0.1
/// ms.
const EGRESS_MOST: usize = 8;

/// What does not change while this process lives.
pub(super) struct Machine {
    host: String,
    boot: String,
    kernel: Option<KernelVersion>,
    vendor: String,
}

impl Machine {
    pub(super) fn read() -> Machine {
        Machine {
            // Who reads it later may not be on this machine.
            host: fullpipe_kernel::host::name(),
            boot: records::boot_id(),
            kernel: Host::read().kernel_version(),
            vendor: vendor().trim().into(),
        }
    }
}

/// A part that is not complete.
pub(super) struct OpenPart {
    start: Instant,
    offset: ClockOffset,
    hosts: Vec<HostNote>,
    looks: Vec<LookNote>,
    sockets: BTreeMap<SocketKey, KeptSocket>,
    samples: u64,
    /// Readings of what packets pass that are left.
    egress_left: usize,
}

/// A socket that is kept.
struct KeptSocket {
    ends: SocketEnds,
    namespace: Arc<str>,
    process: Option<Arc<Process>>,
    uid: u32,
    asked: Option<SocketOptions>,
    egress: Option<Egress>,
    samples: Vec<Sample>,
}

impl OpenPart {
    /// One without anything.
    pub(super) fn begin(start: Instant) -> OpenPart {
        OpenPart {
            start,
            offset: ClockOffset::new(clock::realtime_offset()),
            hosts: Vec::new(),
            looks: Vec::new(),
            sockets: BTreeMap::new(),
            samples: 0,
            egress_left: EGRESS_MOST,
        }
    }

    /// The part after this one, which knows the sockets that are followed and begins with the last
    /// sample of each: so no time is between two parts.
    pub(super) fn next(&self, followed: &[SocketKey], start: Instant) -> OpenPart {
        let mut next = OpenPart::begin(start);
        for key in followed {
            let Some(known) = self.sockets.get(key) else { continue };
            let samples: Vec<Sample> = known.samples.last().cloned().into_iter().collect();
            next.samples += samples.len() as u64;
            let (namespace, process) = (Arc::clone(&known.namespace), known.process.clone());
            let KeptSocket { ends, uid, asked, .. } = *known;
            let egress = known.egress.clone();
            let kept = KeptSocket { ends, namespace, process, uid, asked, egress, samples };
            next.sockets.insert(*key, kept);
        }
        next
    }

    pub(super) fn start(&self) -> Instant {
        self.start
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    pub(super) fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    pub(super) fn ends(&self, key: SocketKey) -> Option<SocketEnds> {
        self.sockets.get(&key).map(|socket| socket.ends)
    }

    pub(super) fn note_look(&mut self, look: LookNote) {
        self.looks.push(look);
        self.egress_left = EGRESS_MOST;
    }

    /// Notes what the machine counts by now.
    pub(super) fn note_host(&mut self, watch: &Watch, machine: &Machine) {
        // Who holds memory is looked for where it is short.
        let memory = memory_pressure(&[]).and_then(|_| memory_pressure(&holders(watch)));
        let offloads = offloads_off(&physical_devices()).into_iter();
        let offloads_off = offloads.filter_map(|cause| match cause {
            MachineCause::OffloadOff { device, offload } => Some((device, offload.into())),
            _ => None,
        });
        self.hosts.push(HostNote {
            at: clock::now(),
            offset: self.offset,
            host: machine.host.clone(),
            boot: machine.boot.clone(),
            kernel: machine.kernel,
            vendor: machine.vendor.clone(),
            counters: Counters::read().named(),
            memory: memory.and_then(noted_memory),
            offloads_off: offloads_off.collect(),
            is_blind: watch.has_hidden_processes(),
        });
    }

    /// Knows a socket from now on, or whose it is by now. Of a new one the sample of the look
    /// before the last is taken.
    pub(super) fn know(&mut self, socket: &WatchedSocket, watch: &Watch, is_new: bool) {
        if let Some(known) = self.sockets.get_mut(&socket.key) {
            known.process = known.process.take().or_else(|| socket.process.clone());
            if is_new {
                self.samples += take_up(&mut known.samples, socket);
            }
            return;
        }
        let is_read = self.egress_left > 0 && !socket.remote.ip().is_loopback();
        self.egress_left -= usize::from(is_read);
        let egress = is_read.then(|| watch.egress(socket.key, socket.remote.ip())).flatten();
        let mut known = KeptSocket {
            ends: (socket.local, socket.remote),
            namespace: Arc::clone(&socket.namespace),
            process: socket.process.clone(),
            uid: socket.uid,
            asked: asked(watch, socket.key),
            egress,
            samples: Vec::new(),
        };
        self.samples += take_up(&mut known.samples, socket);
        self.sockets.insert(socket.key, known);
    }

    /// Adds a sample of a socket that is known.
    pub(super) fn add(&mut self, key: SocketKey, sample: Sample) {
        if let Some(known) = self.sockets.get_mut(&key)
            && known.samples.last().is_none_or(|last| last.at < sample.at)
        {
            known.samples.push(sample);
            self.samples += 1;
        }
    }

    /// Writes it to the ring; what went wrong, if anything did.
    pub(super) fn write(
        mut self,
        watch: &mut Watch,
        ring: &mut HistoryRing,
    ) -> Option<RingTrouble> {
        let start = self.offset.calendar(self.start);
        match self.compressed(watch) {
            Ok(bytes) => ring.add(start, &bytes),
            Err(error) => Some(RingTrouble::Lost(error)),
        }
    }

    fn compressed(&mut self, watch: &mut Watch) -> io::Result<Vec<u8>> {
        let out = GzEncoder::new(Vec::new(), Compression::fast());
        // JSON comes by words, and each write clears all of the encoder's room.
        let mut out = BufWriter::with_capacity(BLOCK, out);
        for host in &self.hosts {
            writeln!(out, "{host}")?;
        }
        for look in &self.looks {
            writeln!(out, "{look}")?;
        }
        for (key, socket) in std::mem::take(&mut self.sockets) {
            let note = socket.note(key, watch);
            let Some(note) = note else { continue };
            for sample in &socket.samples {
                serde_json::to_writer(&mut out, sample)?;
                out.write_all(b"\n")?;
            }
            writeln!(out, "{note}")?;
        }
        out.into_inner().map_err(IntoInnerError::into_error)?.finish()
    }
}

/// Adds the sample of the look before the last, if it is newer than what there is; how many that
/// are.
fn take_up(samples: &mut Vec<Sample>, socket: &WatchedSocket) -> u64 {
    let [before, _] = socket.last_samples() else { return 0 };
    if samples.last().is_some_and(|last| last.at >= before.at) {
        return 0;
    }
    samples.push(before.clone());
    1
}

impl KeptSocket {
    /// What is noted beside its samples, where there are any.
    fn note(&self, key: SocketKey, watch: &mut Watch) -> Option<Note> {
        let (local, remote) = self.ends;
        let at = self.samples.last()?.at;
        let egress = self.egress.clone();
        let egress = egress.and_then(|first| Some([first, watch.egress(key, remote.ip())?]));
        let group = self.process.as_deref().and_then(|process| process.cgroup.as_deref());
        let socket = NotedSocket {
            namespace: self.namespace.to_string(),
            namespace_inode: key.namespace,
            cookie: key.cookie,
            uid: self.uid,
            process: self.process.as_deref().cloned(),
            egress,
            group: group.and_then(group_shortage),
        };
        let asked = self.asked.or_else(|| asked(watch, key));
        let (settings, socket) = (watch.settings(key), Some(Box::new(socket)));
        Some(Note { at, local, remote, asked, settings, socket })
    }
}

fn asked(watch: &Watch, key: SocketKey) -> Option<SocketOptions> {
    socket_options::read(watch.descriptor(key)?).ok()
}

fn noted_memory(cause: MachineCause) -> Option<NotedMemory> {
    let MachineCause::TcpMemory { held, bound, holder } = cause else { return None };
    let holder = holder.map(|(process, memory)| NotedHolder { process, memory });
    Some(NotedMemory { held, bound, holder })
}
