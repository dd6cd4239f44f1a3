//! A running link: its threads, and requests to them.

use super::control::{self, Order, Remote};
use super::direction::{Change, Direction};
use super::driven_direction::DrivenDirection;
use super::driver;
use super::error::EmulatorError;
use super::lanes::{LaneMemory, OneWay, Towards};
use super::memory_bound;
use super::options::{LinkOptions, STREAMS};
use super::report::{DirectionReport, LinkReport};
use super::statistics::Statistics;
use super::tap::{Stream, Tap, Writer};
use super::truth::LogWriter;
use super::virtual_time;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::network::port::PortPair;
use fullpipe_model::scenario::Path as LinkPath;
use fullpipe_model::units::{Bytes, Duration};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A running link. It can be shared: every method but [`Emulator::stop`] takes `&self`. Dropped
/// without that, it ends too, and what it would have reported is lost: its threads have a priority
/// at which nothing else would run beside them.
#[derive(Debug)]
pub struct Emulator {
    ports: Arc<PortPair>,
    stop: Arc<AtomicBool>,
    to_client: Worker,
    to_server: Worker,
    threads: Threads,
    writer: Option<Writer>,
    log_writer: Option<LogWriter>,
    asked_coalesce: Option<Duration>,
    memory_max: Option<Bytes>,
    present: Mutex<Present>,
}

/// The present path.
#[derive(Debug)]
struct Present {
    coalesce: Duration,
    /// Memory towards the client and towards the server.
    memory: [Vec<LaneMemory>; 2],
}

/// The connection to the thread that drives a direction.
#[derive(Debug)]
struct Worker {
    towards: Towards,
    remote: Remote,
}

/// The threads that drive the directions.
#[derive(Debug)]
enum Threads {
    /// One thread for both, with a helper if it needs one.
    Both(JoinHandle<Result<[DirectionReport; 2], EmulatorError>>),
    /// One thread for each.
    Each([JoinHandle<Result<DirectionReport, EmulatorError>>; 2]),
    /// They have ended.
    Ended,
}

/// The port that is read for a direction.
impl Towards {
    pub(super) fn device(self) -> &'static str {
        match self {
            Towards::Client => "the server's port",
            Towards::Server => "the client's port",
        }
    }
}

impl Emulator {
    /// Starts the link `path` between the server's port (`ports.a`) and the client's (`ports.b`).
    /// It runs until [`Emulator::stop`].
    ///
    /// # Errors
    /// There is not enough memory, a thread cannot be started, or a capture file cannot be made.
    pub fn start(
        ports: Arc<PortPair>,
        path: &LinkPath,
        options: &LinkOptions<'_>,
    ) -> Result<Self, EmulatorError> {
        let mut directions = directions(path, options.coalesce, options.memory_max)?;
        let present = Present {
            coalesce: directions[0].coalesce(),
            memory: directions.each_mut().map(|direction| direction.allocate(&[])),
        };
        let (writer, [client_tap, server_tap]) = match options.capture {
            Some(capture) => {
                let paths = STREAMS.map(|name| capture.directory.join(name));
                let (writer, streams) = Writer::start(
                    &paths.each_ref().map(|path| path.as_path()),
                    capture.snaplen,
                    capture.epoch,
                )?;
                (Some(writer), taps(streams))
            }
            None => (None, [Tap::default(), Tap::default()]),
        };
        let (log_writer, [client_log, server_log]) = match options.log {
            Some(log) => {
                let (writer, logs) = LogWriter::start(log.path, log.epoch)?;
                (Some(writer), logs.map(Some))
            }
            None => (None, [None, None]),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let way = |towards, path, tap, log| -> Result<(Worker, DrivenDirection), EmulatorError> {
            let direction = Direction::new(path, ports.a.l2_len(), tap).with_log(log);
            let (mailbox, remote) = control::mailbox().map_err(EmulatorError::Thread)?;
            let (ports, stop) = (Arc::clone(&ports), Arc::clone(&stop));
            Ok((
                Worker { towards, remote },
                DrivenDirection { direction, ports, towards, stop, mailbox, look: true },
            ))
        };
        let [to_client, to_server] = directions;
        let (to_client, client_way) = way(Towards::Client, to_client, client_tap, client_log)?;
        let (to_server, server_way) = way(Towards::Server, to_server, server_tap, server_log)?;
        let threads = Threads::start([client_way, server_way], options.virtual_time)
            .map_err(EmulatorError::Thread)?;
        let (asked_coalesce, memory_max) = (options.coalesce, options.memory_max);
        let present = Mutex::new(present);
        Ok(Emulator {
            ports,
            stop,
            to_client,
            to_server,
            threads,
            writer,
            log_writer,
            asked_coalesce,
            memory_max,
            present,
        })
    }

    /// Changes the path of a running link: packets that arrive after this returns take the new
    /// `path`. Packets on the wire leave as planned, and the queue keeps its packets (see
    /// [`fullpipe_model::link::Link::set`]). Memory for the new path is allocated before anything
    /// changes. The MTU belongs to the ports and stays.
    ///
    /// # Errors
    /// There is not enough memory, or a direction has ended.
    pub fn set(&self, path: &LinkPath) -> Result<(), EmulatorError> {
        const CHANGE: &str = "change the link";
        let mut present = self.present.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut directions = directions(path, self.asked_coalesce, self.memory_max)?;
        present.coalesce = directions[0].coalesce();
        for (direction, had) in directions.iter_mut().zip(&mut present.memory) {
            *had = direction.allocate(had);
        }
        let [to_client, to_server] = directions;
        let workers = [(&self.to_client, to_client), (&self.to_server, to_server)];
        let answers = workers.map(|(worker, path)| {
            (worker, worker.ask(CHANGE, |done| Order::Change(Box::new(Change { path }), done)))
        });
        for (worker, answer) in answers {
            answer?.recv().map_err(|_| worker.ended(CHANGE))?;
        }
        Ok(())
    }

    /// Statistics so far.
    ///
    /// # Errors
    /// A direction has ended.
    pub fn statistics(&self) -> Result<Statistics, EmulatorError> {
        const ASK: &str = "ask the link what it does";
        let at = clock::now();
        let answers = [&self.to_client, &self.to_server]
            .map(|worker| (worker, worker.ask(ASK, Order::Statistics)));
        let [to_client, to_server] =
            answers.map(|(worker, answer)| answer?.recv().map_err(|_| worker.ended(ASK)));
        Ok(Statistics { at, to_client: to_client?, to_server: to_server? })
    }

    /// Ends the link; packets on their way are lost. Captures are complete when this returns.
    ///
    /// # Errors
    /// The reason why a direction ended early, or a capture that could not be written.
    pub fn stop(mut self) -> Result<LinkReport, EmulatorError> {
        let [to_client, to_server] = self.end().join();
        let capture_dropped = self.writer.take().map(Writer::finish).transpose()?.unwrap_or(0);
        let log_dropped = self.log_writer.take().map(LogWriter::finish).transpose()?.unwrap_or(0);
        let drops = [self.ports.a.drops(), self.ports.b.drops()];
        let port_drops =
            drops.into_iter().flatten().map(|drops| drops.from_host + drops.to_host).sum();
        let present = self.present.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Present { coalesce, memory } = std::mem::replace(present, Present::NONE);
        Ok(LinkReport {
            to_client: to_client?,
            to_server: to_server?,
            capture_dropped,
            log_dropped,
            port_drops,
            coalesce,
            memory: memory
                .iter()
                .flatten()
                .fold(Bytes::ZERO, |sum, (_, size)| sum.saturating_add(*size)),
            port_kind: self.ports.a.kind().to_string(),
        })
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.end().wait();
    }
}

impl Emulator {
    /// Asks the threads to end, and returns those that have not been waited for.
    fn end(&mut self) -> Threads {
        self.stop.store(true, Ordering::Relaxed);
        self.to_client.remote.wake();
        self.to_server.remote.wake();
        std::mem::replace(&mut self.threads, Threads::Ended)
    }
}

impl Present {
    const NONE: Present = Present { coalesce: Duration::ZERO, memory: [Vec::new(), Vec::new()] };
}

impl Threads {
    fn start(ways: [DrivenDirection; 2], virtual_time: bool) -> std::io::Result<Threads> {
        if !virtual_time {
            return named_thread("link").spawn(move || driver::run(ways)).map(Threads::Both);
        }
        let [to_client, to_server] = ways;
        let to_client =
            named_thread("link-to-client").spawn(move || virtual_time::run(to_client))?;
        let to_server =
            named_thread("link-to-server").spawn(move || virtual_time::run(to_server))?;
        Ok(Threads::Each([to_client, to_server]))
    }

    /// The reports of the directions to the client and to the server. Both threads are joined
    /// before any error is returned, so no thread outlives the link.
    fn join(self) -> [Result<DirectionReport, EmulatorError>; 2] {
        match self {
            Threads::Both(thread) => match joined(thread) {
                Ok(reports) => reports.map(Ok),
                Err(error) => [Err(error), Ok(DirectionReport::default())],
            },
            Threads::Each(threads) => threads.map(joined),
            Threads::Ended => [Ok(DirectionReport::default()), Ok(DirectionReport::default())],
        }
    }

    /// Waits for the threads without asking how they ended: a panic here, while another one
    /// unwinds, would abort the process.
    fn wait(self) {
        match self {
            Threads::Both(thread) => drop(thread.join()),
            Threads::Each(threads) => {
                threads.map(|thread| drop(thread.join())).into_iter().collect()
            }
            Threads::Ended => {}
        }
    }
}

fn named_thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.into())
}

fn joined<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Worker {
    /// Sends a question; the receiver gets the answer.
    fn ask<T>(
        &self,
        operation: &'static str,
        order: impl FnOnce(Sender<T>) -> Order,
    ) -> Result<Receiver<T>, EmulatorError> {
        let (send, answer) = channel();
        if self.remote.send(order(send)) { Ok(answer) } else { Err(self.ended(operation)) }
    }

    fn ended(&self, operation: &'static str) -> EmulatorError {
        EmulatorError::Ended { operation, device: self.towards.device() }
    }
}

/// Both directions of `path`, if there is enough memory.
fn directions(
    path: &LinkPath,
    coalesce: Option<Duration>,
    memory_max: Option<Bytes>,
) -> Result<[OneWay; 2], EmulatorError> {
    let directions =
        [Towards::Client, Towards::Server].map(|towards| OneWay::of(path, towards, coalesce));
    memory_bound::check(
        directions.each_ref(),
        memory_max.unwrap_or_else(memory_bound::available_memory),
    )?;
    Ok(directions)
}

fn taps(streams: Vec<Stream>) -> [Tap; 2] {
    let mut streams = streams.into_iter();
    std::array::from_fn(|_| Tap { ingress: streams.next(), egress: streams.next() })
}
