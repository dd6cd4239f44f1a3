//! Packets of this host, recorded as pcapng while they pass.
//!
//! [`Recording::start`] looks at the packets that its filter keeps and writes them to a
//! [`RecordPlace`], on a thread of its own; [`Recording::finish`] ends it and says what was
//! recorded, and how many packets the kernel dropped because nobody had read them in time. That
//! number is in the file, too.
//!
//! **Each packet once.** Where no device is named, all are looked at, as nobody knows which one a
//! connection will take. A packet that passes several of them (a bond and its port, a bridge and a
//! container's device) is seen on each, so each direction of a connection is recorded on the device
//! that saw it first; where that one falls silent, on the next that sees it.
//!
//! It takes CAP_NET_RAW.

mod choice;
mod place;
mod writer;

pub use place::{FileRing, InMemory, OneFile, RecordPlace, Stream};

use choice::Choice;
use fullpipe_kernel::network::netlink::Netlink;
use fullpipe_kernel::network::packet_filter::PacketFilter;
use fullpipe_kernel::network::packet_ring::{self, PacketRing, RETIRE_AFTER, SeenPacket};
use fullpipe_kernel::{Refused, host::clock, process::wait};
use fullpipe_model::units::{Bytes, Duration, Instant, column};
use serde::Serialize;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use writer::Writer;

/// What the kernel keeps until it is read: three seconds of full-size packets at 1 Gbit/s, of which
/// the headers are kept. A disk may stand still for so long.
const MEMORY: Bytes = Bytes::new(64 << 20);

/// What to record.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Which packets, and how much of each.
    pub filter: PacketFilter,
    /// On which device; `None`: on every one.
    pub device: Option<String>,
    /// Only connections whose first packet is seen.
    pub new_only: bool,
    /// Only connections between these two addresses.
    pub between: Option<[IpAddr; 2]>,
}

/// Why a recording could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The kernel refuses.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// What was recorded could not be written.
    #[error("write recording {place}: {cause}; free some space, or choose another place for it")]
    Write {
        /// Where.
        place: String,
        /// Why.
        cause: std::io::Error,
    },
}

impl RecordError {
    /// Whether the reader of a stream has gone, who has what he wanted.
    pub fn is_closed(&self) -> bool {
        match self {
            RecordError::Write { cause, .. } => cause.kind() == std::io::ErrorKind::BrokenPipe,
            RecordError::Refused(_) => false,
        }
    }
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Recorded {
    /// Packets that are in it.
    pub packets: u64,
    /// What they take, with everything else that was written.
    #[serde(rename = "size_bytes", with = "column::bytes")]
    pub size: Bytes,
    /// Packets that the kernel dropped, because nobody had read those before them in time.
    pub dropped: u64,
    /// When the first packet passed, since 1970; `None` where none did.
    #[serde(rename = "first_ns", with = "column::instant_optional")]
    pub first: Option<Instant>,
    /// When the last one did.
    #[serde(rename = "last_ns", with = "column::instant_optional")]
    pub last: Option<Instant>,
    /// Whether it ended because its place was full.
    pub is_full: bool,
    /// Where it is, in order of time; nowhere if there was no packet.
    pub files: Vec<PathBuf>,
}

/// What a recording has by now, for whoever shows its progress.
#[derive(Debug, Default)]
struct RecordingProgress {
    packets: AtomicU64,
    size: AtomicU64,
    dropped: AtomicU64,
    has_ended: AtomicBool,
}

/// A thread that records.
#[derive(Debug)]
pub struct Recording {
    stop: Arc<AtomicBool>,
    progress: Arc<RecordingProgress>,
    /// Nothing once it was joined.
    thread: Option<JoinHandle<Result<Recorded, RecordError>>>,
}

impl Drop for Recording {
    /// The thread ends soon, whoever waits for it.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Recording {
    /// Begins to record: every packet that passes from now on is seen.
    ///
    /// # Errors
    /// The kernel refuses: it takes CAP_NET_RAW, and the device must be there and up.
    pub fn start(
        options: &RecordOptions,
        place: Box<dyn RecordPlace>,
    ) -> Result<Recording, RecordError> {
        let (device, index) = match &options.device {
            Some(device) => (device.as_str(), Netlink::open_own()?.link_index(device)?),
            None => ("every device", 0),
        };
        // Where the kernel has not so much to give, it may have less.
        let ring = PacketRing::open_own(device, index, &options.filter, MEMORY).or_else(|_| {
            PacketRing::open_own(device, index, &options.filter, packet_ring::MEMORY)
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        let progress = Arc::new(RecordingProgress::default());
        let loop_of = Loop {
            ring,
            choice: Choice::new(options.new_only, options.between),
            writer: Writer::new(place),
            recorded: Recorded::default(),
        };
        let (until, shown) = (Arc::clone(&stop), Arc::clone(&progress));
        let name = std::thread::Builder::new().name("record".into());
        let thread = name
            .spawn(move || {
                let recorded = loop_of.run(&until, &shown);
                shown.has_ended.store(true, Ordering::Relaxed);
                recorded
            })
            .map_err(|cause| Refused::new("record packets", "thread", cause))?;
        Ok(Recording { stop, progress, thread: Some(thread) })
    }

    /// How many packets it has, what they take, and how many were dropped.
    pub fn so_far(&self) -> (u64, Bytes, u64) {
        let [packets, size, dropped] =
            [&self.progress.packets, &self.progress.size, &self.progress.dropped]
                .map(|count| count.load(Ordering::Relaxed));
        (packets, Bytes::new(size), dropped)
    }

    /// Whether it goes on: its place is not full, and nothing has failed.
    pub fn goes_on(&self) -> bool {
        !self.progress.has_ended.load(Ordering::Relaxed)
    }

    /// Ends it with the packets that have passed by now, and completes what was written.
    ///
    /// # Errors
    /// The kernel refused to wait for packets, or something could not be written. What was written
    /// until then is kept where that is possible.
    pub fn finish(mut self) -> Result<Recorded, RecordError> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(Recorded::default()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// What the thread has.
struct Loop {
    ring: PacketRing,
    choice: Choice,
    writer: Writer,
    recorded: Recorded,
}

impl Loop {
    fn run(
        mut self,
        stop: &AtomicBool,
        progress: &RecordingProgress,
    ) -> Result<Recorded, RecordError> {
        let looked = self.writer.begin_at_once().and_then(|()| self.look(stop, progress));
        // What was written until then is kept, whatever has happened.
        let completed = self.writer.complete();
        self.recorded.size = self.writer.size();
        self.recorded.files = self.writer.files();
        looked.and(completed).map(|()| self.recorded)
    }

    fn look(&mut self, stop: &AtomicBool, progress: &RecordingProgress) -> Result<(), RecordError> {
        let mut stop_at = None;
        // After the stop, it waits for the block that the kernel is filling.
        while stop_at.is_none_or(|at| clock::now() < at) && !self.recorded.is_full {
            wait::readable(self.ring.as_fd(), Some(RETIRE_AFTER))
                .map_err(|cause| Refused::new("wait for packets", "packet ring", cause))?;
            self.read()?;
            progress.packets.store(self.recorded.packets, Ordering::Relaxed);
            progress.size.store(self.writer.size().get(), Ordering::Relaxed);
            progress.dropped.store(self.recorded.dropped, Ordering::Relaxed);
            if stop_at.is_none() && stop.load(Ordering::Relaxed) {
                stop_at = Some(clock::now() + RETIRE_AFTER.saturating_mul(2));
            }
        }
        Ok(())
    }

    /// Takes what the ring has.
    fn read(&mut self) -> Result<(), RecordError> {
        let Loop { ring, choice, writer, recorded } = self;
        let mut written = Ok(());
        ring.read(|seen| {
            if written.is_ok() && !recorded.is_full && choice.takes(&seen) {
                written = write(writer, recorded, &seen);
            }
        });
        let dropped = ring.drops()?;
        recorded.dropped += dropped;
        writer.note_dropped(dropped);
        written?;
        writer.flush()
    }
}

fn write(
    writer: &mut Writer,
    recorded: &mut Recorded,
    seen: &SeenPacket<'_>,
) -> Result<(), RecordError> {
    if !writer.packet(seen)? {
        recorded.is_full = true;
        return Ok(());
    }
    let at = Instant::ZERO + seen.at;
    recorded.packets += 1;
    recorded.first.get_or_insert(at);
    recorded.last = Some(at);
    Ok(())
}

impl Recorded {
    /// How long it lasted, from the first packet to the last.
    pub fn span(&self) -> Duration {
        self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last.since(first))
    }
}

#[cfg(test)]
mod tests;
