//! The threads that move packets: one a direction, each with a port to read, a port to write and the clock.
//!
//! A thread delivers what is due, reads what has arrived, and waits in `ppoll` for whichever comes first. `ppoll` wakes
//! some tens of microseconds late even in SCHED_FIFO, so the last stretch before a deadline is spun away, but only on a
//! link with few events: where the next event is always near, spinning would take the CPU from the very hosts that are
//! being measured.

use super::direction::{Direction, DriverCounters, Segment};
use super::lateness::Lateness;
use super::ring::Ring;
use super::tap::{CaptureError, Stream, Tap, Writer};
use super::virtual_time;
use fullpipe_kernel::port::{Port, PortPair};
use fullpipe_kernel::{clock, sched, wait};
use fullpipe_model::link::{Config, Counters, Link};
use fullpipe_model::scenario::Path as LinkPath;
use fullpipe_model::units::{Bytes, Duration, Instant, Rate};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Frames read before deliveries get their turn again.
const READ_BUDGET: usize = 16;
/// Deliveries before reading gets its turn again.
const DELIVER_BUDGET: usize = 64;
/// The stretch before a deadline that may be spun away.
const SPIN: Duration = Duration::from_micros(60);
/// A link with more events than this in [`CALM_SPAN`] does not spin.
const CALM_EVENTS: u32 = 20;
const CALM_SPAN: Duration = Duration::from_millis(10);
/// The longest sleep: how soon a stop is noticed.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(50);
/// Assumed for the ring of a link without a rate.
const UNSHAPED_RATE: Rate = Rate::from_bits_per_sec(10_000_000_000);
const UNSHAPED_QUEUE: Bytes = Bytes::new(16 << 20);

/// How to run a link.
#[derive(Debug, Clone, Default)]
pub struct Options<'a> {
    /// Where to put captures, and how much of each packet; `None`: no captures.
    pub capture: Option<CaptureOptions<'a>>,
    /// Segments due within this time are written together; `None`: chosen by the rate.
    pub coalesce: Option<Duration>,
    /// The most memory that packets may take, both directions together; `None`: half of what is available.
    pub memory_max: Option<Bytes>,
    /// Time passes only while everything waits: see [`super::virtual_time`].
    pub virtual_time: bool,
}

/// Captures of a link.
#[derive(Debug, Clone, Copy)]
pub struct CaptureOptions<'a> {
    /// Folder for the four streams, see [`STREAMS`].
    pub directory: &'a Path,
    /// Bytes kept of each packet.
    pub snaplen: Bytes,
    /// From the run's clock to 1970.
    pub epoch: Duration,
}

/// File names of the four capture points: way of the data in and out, way of the acknowledgements in and out.
pub const STREAMS: [&str; 4] =
    ["to-client.ingress.pcap", "to-client.egress.pcap", "to-server.ingress.pcap", "to-server.egress.pcap"];

/// Why a link cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// Not enough memory for the packets in flight.
    #[error(
        "emulate link: {rate} over {delay} with its queue needs {needed:#} of packet memory, {available:#} may be used; \
         lower the rate, the delay or the queue"
    )]
    Memory {
        /// Of the direction that does not fit.
        rate: Rate,
        /// Of the same direction.
        delay: Duration,
        /// For both directions.
        needed: Bytes,
        /// What there is.
        available: Bytes,
    },
    /// The capture.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A thread could not be started.
    #[error("start thread of the link: {0}")]
    Thread(std::io::Error),
    /// Reading or waiting failed in a way that ends the link.
    #[error("read from {device} of the link: {cause}")]
    Port {
        /// Whose port.
        device: &'static str,
        /// The kernel's answer.
        cause: std::io::Error,
    },
}

/// What one direction did.
#[derive(Debug, Clone, Default)]
pub struct DirectionReport {
    /// What the model counted.
    pub link: Counters,
    /// What the driver counted.
    pub driver: DriverCounters,
    /// How late hand-overs were.
    pub lateness: Lateness,
    /// Whether its thread ran in SCHED_FIFO.
    pub real_time: bool,
}

/// What a link did.
#[derive(Debug, Clone, Default)]
pub struct LinkReport {
    /// Way of the data.
    pub to_client: DirectionReport,
    /// Way of the acknowledgements.
    pub to_server: DirectionReport,
    /// Packets that the captures miss.
    pub capture_dropped: u64,
    /// Packets lost between the hosts and the emulator, which the model knows nothing of.
    pub port_drops: u64,
    /// Segments due within this time were written together.
    pub coalesce: Duration,
    /// Packet memory, taken before the run.
    pub memory: Bytes,
    /// Which kind of device joined the hosts to the link.
    pub port_kind: String,
}

impl LinkReport {
    /// Lateness of both directions together.
    pub fn lateness(&self) -> Lateness {
        let mut both = self.to_client.lateness.clone();
        both.merge(&self.to_server.lateness);
        both
    }

    /// Whether both threads ran in SCHED_FIFO.
    pub fn real_time(&self) -> bool {
        self.to_client.real_time && self.to_server.real_time
    }
}

/// A running link.
#[derive(Debug)]
pub struct Emulator {
    ports: Arc<PortPair>,
    stop: Arc<AtomicBool>,
    to_client: std::thread::JoinHandle<Result<DirectionReport, EmulatorError>>,
    to_server: std::thread::JoinHandle<Result<DirectionReport, EmulatorError>>,
    writer: Option<Writer>,
    coalesce: Duration,
    memory: Bytes,
}

impl Emulator {
    /// Starts the link `path` between the server's port (`ports.a`) and the client's (`ports.b`). It runs until
    /// [`Emulator::stop`].
    ///
    /// # Errors
    /// Memory or threads that are not to be had, capture files that cannot be made.
    pub fn start(ports: Arc<PortPair>, path: &LinkPath, options: &Options<'_>) -> Result<Self, EmulatorError> {
        let rtt = path.rtt();
        let sizes = ring_sizes(path, options.memory_max.unwrap_or_else(available_memory))?;
        let coalesce = options.coalesce.unwrap_or_else(|| coalescing_time(path));
        let (writer, taps) = match options.capture {
            Some(capture) => {
                let paths = STREAMS.map(|name| capture.directory.join(name));
                let (writer, streams) =
                    Writer::start(&paths.each_ref().map(|path| path.as_path()), capture.snaplen, capture.epoch)?;
                (Some(writer), taps(streams))
            }
            None => (None, [Tap::default(), Tap::default()]),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let [client_tap, server_tap] = taps;
        let l2_len = ports.a.l2_len();
        let direction = |config: &Config, seed, size: Bytes, tap| {
            let link: Link<Segment> = Link::new(config, rtt, seed);
            Direction::new(link, Ring::new(size.get() as usize), l2_len, coalesce, tap)
        };
        // Two directions, two random streams: the same seed must not lose the ACK of every packet it loses.
        let to_client = direction(&path.to_client, path.seed.wrapping_mul(2), sizes[0], client_tap);
        let to_server = direction(&path.to_server, path.seed.wrapping_mul(2).wrapping_add(1), sizes[1], server_tap);
        let memory = Bytes::new((to_client.ring_size() + to_server.ring_size()) as u64);
        let patient = options.virtual_time;
        let start = |name: &str, direction, way| {
            let (ports, stop) = (Arc::clone(&ports), Arc::clone(&stop));
            std::thread::Builder::new()
                .name(name.into())
                .spawn(move || {
                    let (read, write, device) = match way {
                        Way::ToClient => (&ports.a, &ports.b, "the server's port"),
                        Way::ToServer => (&ports.b, &ports.a, "the client's port"),
                    };
                    let run = if patient { virtual_time::run } else { run };
                    run(direction, read, write, &stop, device)
                })
                .map_err(EmulatorError::Thread)
        };
        let to_client = start("link-to-client", to_client, Way::ToClient)?;
        let to_server = start("link-to-server", to_server, Way::ToServer)?;
        Ok(Emulator { ports, stop, to_client, to_server, writer, coalesce, memory })
    }

    /// Ends the link; packets on their way are gone. Captures are complete when this returns.
    ///
    /// # Errors
    /// What ended a direction early, or a capture that could not be written.
    pub fn stop(self) -> Result<LinkReport, EmulatorError> {
        self.stop.store(true, Ordering::Relaxed);
        let join = |thread: std::thread::JoinHandle<Result<DirectionReport, EmulatorError>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // Both are joined before either error is returned: no thread outlives the link.
        let (to_client, to_server) = (join(self.to_client), join(self.to_server));
        let capture_dropped = self.writer.map(Writer::finish).transpose()?.unwrap_or(0);
        let drops = [self.ports.a.drops(), self.ports.b.drops()];
        let port_drops = drops.into_iter().flatten().map(|drops| drops.from_host + drops.to_host).sum();
        Ok(LinkReport {
            to_client: to_client?,
            to_server: to_server?,
            capture_dropped,
            port_drops,
            coalesce: self.coalesce,
            memory: self.memory,
            port_kind: self.ports.a.kind().to_string(),
        })
    }
}

#[derive(Clone, Copy)]
enum Way {
    ToClient,
    ToServer,
}

fn taps(streams: Vec<Stream>) -> [Tap; 2] {
    let mut streams = streams.into_iter();
    std::array::from_fn(|_| Tap { ingress: streams.next(), egress: streams.next() })
}

/// Writes are worth joining where the link is fast: a tenth of a millisecond and more from a gigabit on, nothing where
/// a packet takes that long by itself.
fn coalescing_time(path: &LinkPath) -> Duration {
    let rate = path.to_client.rate.max(path.to_server.rate).map_or(0, Rate::bits_per_sec);
    match rate {
        0..200_000_000 => Duration::ZERO,
        200_000_000..1_000_000_000 => Duration::from_micros(100),
        _ => Duration::from_micros(150),
    }
}

/// What each direction can hold at once by its model, and a quarter more.
fn ring_sizes(path: &LinkPath, available: Bytes) -> Result<[Bytes; 2], EmulatorError> {
    let size = |config: &Config| {
        let unshaped = UNSHAPED_RATE.over(config.delay).saturating_add(UNSHAPED_QUEUE);
        let held = config.bytes_in_flight(path.rtt()).unwrap_or(unshaped);
        // Small packets take a cache line more than their bytes; a few frames are always in the making.
        held.saturating_add(Bytes::new(held.get() / 4)).saturating_add(Bytes::new(1 << 20))
    };
    let sizes = [size(&path.to_client), size(&path.to_server)];
    let needed = sizes[0].saturating_add(sizes[1]);
    if needed > available {
        let largest = if sizes[0] >= sizes[1] { &path.to_client } else { &path.to_server };
        let (rate, delay) = (largest.rate.unwrap_or(UNSHAPED_RATE), largest.delay);
        return Err(EmulatorError::Memory { rate, delay, needed, available });
    }
    Ok(sizes)
}

/// Half of what the kernel says is available; where it does not say, a gigabyte.
fn available_memory() -> Bytes {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    Bytes::new(kib.map_or(1 << 30, |kib| kib * 512))
}

/// One direction's thread.
fn run(
    mut direction: Direction,
    read: &Port,
    write: &Port,
    stop: &AtomicBool,
    device: &'static str,
) -> Result<DirectionReport, EmulatorError> {
    let real_time = sched::fifo().is_ok();
    // Without it the kernel adds up to 50 us to every wait of a thread that is not real-time; refusal costs only that.
    let _ = sched::timer_slack(Duration::from_nanos(1));
    let mut calm = Calm::default();
    while !stop.load(Ordering::Relaxed) {
        let mut events = 0;
        while events < DELIVER_BUDGET && direction.deliver(clock::now(), |parts| write.write_vectored(parts)) {
            events += 1;
        }
        events += take_in(&mut direction, read).map_err(|cause| EmulatorError::Port { device, cause })?;
        let now = clock::now();
        calm.record(events as u32, now);
        if events > 0 {
            continue;
        }
        let left = direction.due().map_or(SLEEP_MAX, |due| due.since(now).min(SLEEP_MAX));
        let spin = if calm.is_calm() { SPIN } else { Duration::ZERO };
        if left <= spin {
            std::hint::spin_loop();
            continue;
        }
        wait::readable(read, Some(left.saturating_sub(spin))).map_err(|cause| EmulatorError::Port { device, cause })?;
    }
    let (link, driver, lateness) = direction.finish();
    Ok(DirectionReport { link, driver, lateness, real_time })
}

/// Reads until nothing is there, the budget is spent or something is due.
fn take_in(direction: &mut Direction, read: &Port) -> std::io::Result<usize> {
    for taken in 0..READ_BUDGET {
        let Some(space) = direction.space() else {
            return Ok(taken);
        };
        let len = match read.read(space) {
            Ok(len) => len,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(taken),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(taken),
            Err(error) => return Err(error),
        };
        let now = clock::now();
        direction.arrived(len, now);
        if direction.due().is_some_and(|due| due <= now) {
            return Ok(taken + 1);
        }
    }
    Ok(READ_BUDGET)
}

/// How busy a direction has been lately.
#[derive(Debug, Default)]
struct Calm {
    since: Instant,
    events: u32,
    last: u32,
}

impl Calm {
    fn record(&mut self, events: u32, now: Instant) {
        self.events += events;
        if now.since(self.since) >= CALM_SPAN {
            (self.last, self.events, self.since) = (self.events, 0, now);
        }
    }

    fn is_calm(&self) -> bool {
        self.last.max(self.events) <= CALM_EVENTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::scenario::File;

    fn path(text: &str) -> LinkPath {
        File::parse(text).unwrap().scenarios(text, "test").unwrap().remove(0).path
    }

    #[test]
    fn memory_is_what_the_model_can_hold_or_a_refusal_with_the_number() {
        let path = path("[link]\nrate = \"10gbit\"\nrtt = \"100ms\"");
        // 62.5 MB on the wire and 125 MB in the queue, each way, a quarter more: 470 MB in all.
        let sizes = ring_sizes(&path, Bytes::new(1 << 30)).unwrap();
        assert!(sizes[0] >= Bytes::new(187_500_000) && sizes[0] <= Bytes::new(240_000_000), "{sizes:?}");
        let error = ring_sizes(&path, Bytes::new(1 << 28)).unwrap_err().to_string();
        assert!(error.contains("10 Gbit/s") && error.contains("256 MiB may be used"), "{error}");
    }

    #[test]
    fn slow_links_join_nothing() {
        assert_eq!(coalescing_time(&path("[link]\nrate = \"100mbit\"")), Duration::ZERO);
        assert!(coalescing_time(&path("[link]\nrate = \"1gbit\"")) >= Duration::from_micros(100));
    }
}
