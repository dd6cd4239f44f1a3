//! Moving data: one connection, one thread.
//!
//! A thread sleeps in the kernel and wakes for a block of data, or every [`PATIENCE`] to see
//! whether it has to end.

use super::{Amount, Ends};
use fullpipe_kernel::host::clock;
use fullpipe_model::observe::canonical;
use fullpipe_model::units::{Bytes, Duration, Instant};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeValLike;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is written or read at once, as iperf3 does.
const BLOCK: usize = 128 << 10;
/// How long a thread may sleep without a look at whether it has to end.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(200);
/// How long the receiver of a run by bytes may take to read what was still in buffers.
const CLOSE: Duration = Duration::from_secs(600);

/// What is told to the threads of a run, and what they tell.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Set, they end.
    pub ended: AtomicBool,
    /// What has been read, all connections together.
    pub read: AtomicU64,
}

impl Shared {
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// What a thread did.
#[derive(Debug)]
pub(super) struct Moved {
    /// What it wrote, or read.
    pub amount: Bytes,
    /// From its first data to its last.
    pub time: Duration,
    /// The share of a core that it took.
    pub cpu: f64,
    /// Why it ended too early.
    pub failed: Option<String>,
    /// Its socket, still open, so that it can be sampled once more.
    stream: Option<TcpStream>,
}

impl Moved {
    /// Closes the socket and drops what was not sent yet, so that the path does not have to carry
    /// it. The other end gets a reset.
    pub fn close_unsent(&mut self) {
        if let Some(stream) = self.stream.take() {
            let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
            // Without it the path only has to carry what is in the buffer.
            let _ = setsockopt(&stream, sockopt::Linger, &linger);
        }
    }
}

/// The addresses of a connection.
pub(super) fn ends(stream: &TcpStream) -> io::Result<Ends> {
    let (local, remote) = (canonical(stream.local_addr()?), canonical(stream.peer_addr()?));
    Ok(Ends { local, remote })
}

/// Gives a socket a congestion control.
pub(super) fn set_congestion(stream: &TcpStream, name: &str) -> io::Result<()> {
    let name = std::ffi::OsString::from(name);
    setsockopt(stream, sockopt::TcpCongestion, &name).map_err(io::Error::from)
}

/// What the calling thread has used of the CPU.
fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Duration::ZERO };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros.max(0) as u64)
}

/// Counts a thread's time.
struct Meter {
    cpu: Duration,
    start: Instant,
    first: Option<Instant>,
    last: Instant,
    amount: u64,
}

impl Meter {
    fn start() -> Meter {
        let now = clock::now();
        Meter { cpu: cpu_time(), start: now, first: None, last: now, amount: 0 }
    }

    fn note(&mut self, count: usize) {
        self.last = clock::now();
        self.first.get_or_insert(self.last);
        self.amount += count as u64;
    }

    fn end(self, stream: TcpStream, failed: Option<String>) -> Moved {
        let wall = clock::now().since(self.start).as_secs_f64();
        let cpu = cpu_time().saturating_sub(self.cpu).as_secs_f64();
        Moved {
            amount: Bytes::new(self.amount),
            time: self.last.since(self.first.unwrap_or(self.last)),
            cpu: if wall > 0.0 { (cpu / wall).min(1.0) } else { 0.0 },
            failed,
            stream: Some(stream),
        }
    }
}

/// Whether a call has to be made again.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Sends until the amount is reached. In a run by time, what is in the buffer then is not part of
/// it; in a run by bytes, the receiver has read everything.
pub(super) fn send(mut stream: TcpStream, amount: Amount, shared: &Shared) -> Moved {
    let block = vec![0x5a_u8; BLOCK];
    let mut meter = Meter::start();
    if let Err(error) = stream.set_write_timeout(Some(PATIENCE)) {
        return meter.end(stream, Some(error.to_string()));
    }
    loop {
        let left = match amount {
            Amount::Time(time) if clock::now().since(meter.start) >= time => 0,
            Amount::Time(_) => BLOCK,
            Amount::Bytes(all) => {
                (all.get().saturating_sub(meter.amount)).min(BLOCK as u64) as usize
            }
        };
        if left == 0 || shared.has_ended() {
            break;
        }
        match stream.write(block.get(..left).unwrap_or_default()) {
            Ok(count) => meter.note(count),
            Err(error) if is_pause(&error) => {}
            Err(error) => return meter.end(stream, Some(error.to_string())),
        }
    }
    let failed = match amount {
        Amount::Time(_) => None,
        Amount::Bytes(_) => wait_for_close(&mut stream, shared).err(),
    };
    if failed.is_none() && matches!(amount, Amount::Bytes(_)) {
        meter.last = clock::now();
    }
    meter.end(stream, failed)
}

/// Ends the data, and waits until the receiver has read it.
fn wait_for_close(stream: &mut TcpStream, shared: &Shared) -> Result<(), String> {
    stream
        .shutdown(Shutdown::Write)
        .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
        .map_err(|error| error.to_string())?;
    let (start, mut byte) = (clock::now(), [0]);
    loop {
        match stream.read(&mut byte) {
            Ok(0) => return Ok(()),
            Ok(_) => return Err("the receiver sent data".into()),
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error.to_string()),
        }
        if shared.has_ended() || clock::now().since(start) >= CLOSE {
            return Err("the receiver did not read everything in time".into());
        }
    }
}

/// Receives until the sender ends. A sender that ends before the amount is reached has failed.
pub(super) fn receive(mut stream: TcpStream, amount: Amount, shared: &Shared) -> Moved {
    let mut block = vec![0_u8; BLOCK];
    let mut meter = Meter::start();
    if let Err(error) = stream.set_read_timeout(Some(PATIENCE)) {
        return meter.end(stream, Some(error.to_string()));
    }
    let ended = loop {
        match stream.read(&mut block) {
            Ok(0) => break "the sender closed the connection".to_owned(),
            Ok(count) => {
                meter.note(count);
                shared.read.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {
                if shared.has_ended() {
                    break "no more data came".to_owned();
                }
            }
            Err(error) => break error.to_string(),
        }
    };
    let is_whole = match amount {
        // The sender's clock is another one, and its last data may be lost by the reset.
        Amount::Time(time) => {
            let lasted = clock::now().since(meter.first.unwrap_or(meter.start));
            lasted.as_secs_f64() >= 0.9 * time.as_secs_f64() - 0.2
        }
        Amount::Bytes(all) => meter.amount >= all.get(),
    };
    if matches!(amount, Amount::Bytes(_)) {
        // Tells the sender that everything was read.
        let _ = stream.shutdown(Shutdown::Write);
    }
    meter.end(stream, (!is_whole).then_some(ended))
}
