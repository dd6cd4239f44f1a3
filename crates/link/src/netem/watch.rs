//! Captures at both edges of a wire: what the packet rings saw, in order, one stream for each edge.

use super::super::options::CaptureOptions;
use super::super::super_packet::{HEADER_MAX, Layout};
use super::super::tap::{CaptureError, Stream, Writer};
use fullpipe_kernel::network::packet_ring::{PacketRing, RETIRE_AFTER, SeenPacket};
use fullpipe_kernel::network::wire::L2_LEN;
use fullpipe_kernel::process::wait::{self, PollFd, PollFlags};
use fullpipe_kernel::{Refused, host::clock};
use fullpipe_model::units::{Duration, Instant};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The longest sleep; a stop is noticed this soon.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// File names of the server's and the client's edge.
pub const EDGES: [&str; 2] = ["server.edge.pcap", "client.edge.pcap"];

/// Why an edge could not be captured.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A capture file failed.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The kernel refused a request.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The thread, or its wait, failed.
    #[error("watch edges of the link: {0}")]
    Thread(std::io::Error),
}

/// A thread that captures at both edges.
#[derive(Debug)]
pub(super) struct EdgeCapture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, WatchError>>,
    writer: Writer,
}

impl EdgeCapture {
    pub(super) fn start(
        server: PacketRing,
        client: PacketRing,
        options: CaptureOptions<'_>,
    ) -> Result<EdgeCapture, WatchError> {
        let paths = EDGES.map(|name| options.directory.join(name));
        let (writer, streams) = Writer::start(
            &paths.each_ref().map(|path| path.as_path()),
            options.snaplen,
            options.epoch,
        )?;
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new().name("watch".into()).spawn({
            let (stop, epoch) = (Arc::clone(&stop), options.epoch);
            move || run([server, client], streams, epoch, &stop)
        });
        Ok(EdgeCapture { stop, thread: thread.map_err(WatchError::Thread)?, writer })
    }

    /// Ends it; returns the number of packets that the captures miss.
    pub(super) fn stop(self) -> Result<u64, WatchError> {
        self.stop.store(true, Ordering::Relaxed);
        let missed = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let unwritten = self.writer.finish()?;
        Ok(missed? + unwritten)
    }
}

fn run(
    mut rings: [PacketRing; 2],
    mut streams: Vec<Stream>,
    epoch: Duration,
    stop: &AtomicBool,
) -> Result<u64, WatchError> {
    let mut stop_at = None;
    // After the stop, wait for the block that the kernel is filling.
    while stop_at.is_none_or(|at| clock::now() < at) {
        let mut fds = rings.each_ref().map(|ring| PollFd::new(ring.as_fd(), PollFlags::POLLIN));
        wait::ready(&mut fds, Some(SLEEP_MAX.min(RETIRE_AFTER))).map_err(WatchError::Thread)?;
        for (ring, stream) in rings.iter_mut().zip(&mut streams) {
            ring.read(|seen| write(stream, seen, epoch));
        }
        if stop_at.is_none() && stop.load(Ordering::Relaxed) {
            stop_at = Some(clock::now() + RETIRE_AFTER.saturating_mul(3));
        }
    }
    streams.into_iter().for_each(Stream::finish);
    let mut missed = 0;
    for ring in &rings {
        missed += ring.drops()?;
    }
    Ok(missed)
}

/// Writes segment by segment, as on the wire.
fn write(stream: &mut Stream, seen: SeenPacket<'_>, epoch: Duration) {
    let at = Instant::ZERO + seen.at.saturating_sub(epoch);
    let Some(layout) = Layout::parse_start(seen.frame, seen.len, L2_LEN) else { return };
    if layout.count() == 1 {
        let ip = layout.ip_start();
        stream.start_of(&seen.frame[ip..], seen.len - ip, at);
        return;
    }
    for index in 0..layout.count() {
        let mut head = [0; HEADER_MAX];
        let length = layout.header(seen.frame, index, 1, &mut head);
        stream.start_of(&head[layout.ip_start()..length], layout.ip_len(index), at);
    }
}
