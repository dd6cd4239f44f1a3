//! Sockets on loopback, and what the kernel gives them.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use fullpipe_kernel::socket::sock_diag::SockDiag;
use fullpipe_kernel::{
    Refused,
    host::clock,
    process::wait,
    socket::{congestion, socket_buffers},
};
use fullpipe_model::observe::Sample;
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::{Bytes, Duration};

use super::judge::{Autotuned, Evidence, Idle, Pair};

/// A buffer above this is not filled: it would take too much memory.
const FILLED_AT_MOST: Bytes = Bytes::new(256 << 20);
/// Rounds of a pause and [`GULPS`]; autotuning grows the buffer in most.
const ROUNDS: usize = 60;
/// Rounds without growth after which the buffer is left as it is.
const STEADY_ROUNDS: usize = 24;
/// How often the buffer is emptied and filled at once. Autotuning compares what was read within a
/// round-trip time with the window, so that has to be more than one window.
const GULPS: usize = 4;
/// A pause before the data, which the receiver takes for the path's delay.
const DELAY: Duration = Duration::from_millis(20);
/// What is written or read at once.
const BLOCK: usize = 256 << 10;
/// A connection is idle after one RTO, and the congestion window is halved for each one more.
const PAUSE_OF_RTOS: u64 = 3;

/// Opens sockets and looks at them. `memory` is what may be used.
pub(super) fn probe(settings: &HostSettings, memory: Bytes) -> Result<Evidence, Refused> {
    let listener = fresh()?;
    let (receive_buffer, send_buffer) =
        (socket_buffers::receive(&listener)?, socket_buffers::send(&listener)?);
    let asker = fresh()?;
    let most = Bytes::new(i32::MAX as u64);
    Ok(Evidence {
        receive_buffer,
        send_buffer,
        congestion_control: congestion::of(&listener)?,
        largest_asked_receive: socket_buffers::ask_receive(&asker, most)?,
        largest_asked_send: socket_buffers::ask_send(&asker, most)?,
        pair: match LoopbackConnection::open() {
            Ok(connection) => Ok(connection.look(settings, memory)?),
            Err(error) => Err(error.to_string()),
        },
    })
}

/// A socket that nobody has changed yet.
fn fresh() -> Result<TcpListener, Refused> {
    // Where lo was never up, 127.0.0.1 is nobody's address; these sockets carry nothing.
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
        .map_err(|cause| Refused::new("open socket", "on loopback", cause))
}

/// A connection over loopback, with both ends in our hands.
struct LoopbackConnection {
    sender: TcpStream,
    receiver: TcpStream,
    diag: SockDiag,
}

impl LoopbackConnection {
    fn open() -> io::Result<LoopbackConnection> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let sender = TcpStream::connect(listener.local_addr()?)?;
        let (receiver, _) = listener.accept()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(LoopbackConnection {
            sender,
            receiver,
            diag: SockDiag::open().map_err(io::Error::other)?,
        })
    }

    fn look(mut self, settings: &HostSettings, memory: Bytes) -> Result<Pair, Refused> {
        // BBR does not begin again after a pause, whatever the setting says; every kernel has Reno.
        congestion::set(&self.sender, "reno")?;
        let sample = self.sample(&self.sender.try_clone().map_err(broken)?)?;
        let info = sample.info.as_ref();
        let options = info.map_or(0, |info| info.options);
        let initial_cwnd = info.map_or(0, |info| info.snd_cwnd);
        let handshake_scale = {
            let receiver = self.receiver.try_clone().map_err(broken)?;
            self.sample(&receiver)?.info.map_or(0, |info| info.rcv_wscale)
        };
        self.fill().map_err(broken)?;
        let sender = self.sender.try_clone().map_err(broken)?;
        let full = self.sample(&sender)?;
        let unsent = full.info.as_ref().and_then(|info| info.notsent_bytes);
        let mut largest_send = full.memory.map_or(Bytes::ZERO, |memory| memory.sndbuf);
        let receive = self.autotune(settings.tcp_rmem.max, memory)?;
        largest_send = largest_send.max(socket_buffers::send(&self.sender)?);
        Ok(Pair {
            options,
            receiver_scale: handshake_scale,
            unsent_when_full: unsent,
            largest_send,
            receive,
            idle: self.pause(initial_cwnd)?,
        })
    }

    /// Fills and empties the receive buffer until it grows no more.
    fn autotune(&mut self, bound: Bytes, memory: Bytes) -> Result<Autotuned, Refused> {
        let too_large = bound > FILLED_AT_MOST || bound > Bytes::new(memory.get() / 8);
        let mut largest = socket_buffers::receive(&self.receiver)?;
        let mut unchanged = 0;
        for _ in 0..ROUNDS {
            if largest >= bound || unchanged >= STEADY_ROUNDS || (too_large && largest > BIG_ENOUGH)
            {
                break;
            }
            self.rest(DELAY)?;
            for _ in 0..GULPS {
                self.fill().map_err(broken)?;
                self.drain().map_err(broken)?;
            }
            let now = socket_buffers::receive(&self.receiver)?;
            unchanged = if now > largest { 0 } else { unchanged + 1 };
            largest = largest.max(now);
        }
        Ok(Autotuned { largest, was_stopped: too_large })
    }

    /// Whether the congestion window survives a pause.
    fn pause(&mut self, initial: u32) -> Result<Option<Idle>, Refused> {
        self.drain().map_err(broken)?;
        let sender = self.sender.try_clone().map_err(broken)?;
        let Some(before) = self.sample(&sender)?.info else { return Ok(None) };
        if before.snd_cwnd < initial.saturating_mul(2) || initial == 0 {
            return Ok(None);
        }
        // Loopback has an RTO of 200 ms; nothing arrives meanwhile.
        let pause = Duration::from_nanos(before.rto.as_nanos().saturating_mul(PAUSE_OF_RTOS));
        self.rest(pause)?;
        (&self.sender).write_all(&[0]).map_err(broken)?;
        let Some(after) = self.sample(&sender)?.info else { return Ok(None) };
        Ok(Some(Idle { before: before.snd_cwnd, after: after.snd_cwnd }))
    }

    /// Sends nothing for `pause`.
    fn rest(&self, pause: Duration) -> Result<(), Refused> {
        let start = clock::now();
        loop {
            let left = pause.saturating_sub(clock::now().since(start));
            if left == Duration::ZERO {
                return Ok(());
            }
            wait::ready(&mut [], Some(left))
                .map_err(|cause| Refused::new("wait for", "a pause of a connection", cause))?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let block = vec![0; BLOCK];
        loop {
            match (&self.sender).write(&block) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn drain(&mut self) -> io::Result<()> {
        let mut block = vec![0; BLOCK];
        loop {
            match (&self.receiver).read(&mut block) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn sample(&mut self, end: &TcpStream) -> Result<Sample, Refused> {
        let (local, remote) = (end.local_addr().map_err(broken)?, end.peer_addr().map_err(broken)?);
        self.diag.sample(local, remote)?.ok_or_else(|| broken(io::ErrorKind::NotFound.into()))
    }
}

/// A buffer that has grown to this shows that autotuning works.
const BIG_ENOUGH: Bytes = Bytes::new(16 << 20);

fn broken(cause: io::Error) -> Refused {
    Refused::new("probe", "a connection over loopback", cause)
}
