//! An upload: the sender of the data opens the connection.
//!
//! [`UploadServer`] reads whatever arrives on a connection until its end, then answers with how
//! much that was and how long it took from the first byte to the last: two numbers of eight bytes,
//! big-endian. [`upload`] writes zeros as fast as the socket takes them, ends its direction, and
//! waits for that answer. So an upload is measured where it arrives.
//!
//! Both can have a window above TCP's ([`GrantedWindow`]), as SSH and HTTP/2 have: then the server
//! says how many whole steps it has read each time that these are more (in bytes, eight of them,
//! before the answer), and the sender is never further ahead of that than the window.
//!
//! ```
//! use fullpipe_model::units::{Bytes, Duration};
//! use fullpipe_transfer::{Stop, UploadServer, upload};
//! let server = UploadServer::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
//! let (to, stop) = (server.local_addr(), Stop::new());
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || server.run(&stop)
//! });
//! let (size, most) = (Bytes::new(1_000_000), Duration::from_secs(60));
//! let uploaded = upload(to, size, most, None, &Stop::new()).unwrap();
//! assert_eq!(uploaded.body, size);
//! assert!(uploaded.complete);
//! stop.stop();
//! serving.join().unwrap().unwrap();
//! ```

use crate::Stop;
use crate::clock;
use crate::server::{ServerError, listen};
use fullpipe_model::law::GrantedWindow;
use fullpipe_model::units::{Bytes, Duration};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::pin::pin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Bytes that are written or read at a time.
const BLOCK: usize = 64 << 10;
/// How often a sender that waits for its socket looks whether it should stop.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);

/// A listening socket for uploads.
#[derive(Debug)]
pub struct UploadServer {
    listener: TcpListener,
    local_addr: SocketAddr,
    granted: Option<GrantedWindow>,
}

impl UploadServer {
    /// Makes the listening socket, on the calling thread and in its network namespace. Whoever
    /// uploads has the same window.
    ///
    /// # Errors
    /// The address is taken, or is none of this host.
    pub fn bind(addr: SocketAddr, granted: Option<GrantedWindow>) -> Result<Self, ServerError> {
        let listener = listen(addr)?;
        let local_addr =
            listener.local_addr().map_err(|source| crate::server::bind_error(addr, source))?;
        Ok(UploadServer { listener, local_addr, granted })
    }

    /// The address for senders, with the port that the kernel chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Takes one upload after another on the calling thread until `stop`. An upload that breaks off
    /// gets no answer; nobody else needs its error.
    ///
    /// # Errors
    /// The event loop cannot be made.
    pub fn run(self, stop: &Stop) -> Result<(), ServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| ServerError::Runtime { source })?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)
                .map_err(|source| ServerError::Runtime { source })?;
            let mut stopped = pin!(stop.stopped());
            loop {
                let one = async {
                    let (stream, _) = listener.accept().await?;
                    take(stream, self.granted).await
                };
                tokio::select! {
                    biased;
                    () = &mut stopped => return Ok(()),
                    // What ran out may be there again later; at once it would only burn CPU.
                    ended = one => if ended.is_err() {
                        tokio::time::sleep(LOOK).await;
                    },
                }
            }
        })
    }
}

/// Reads an upload to its end, and answers.
async fn take(mut stream: tokio::net::TcpStream, granted: Option<GrantedWindow>) -> io::Result<()> {
    // What it says is small, and at once.
    stream.set_nodelay(true)?;
    let mut block = vec![0; BLOCK];
    let (mut count, mut first, mut last) = (0_u64, None, clock::now());
    let mut said = 0;
    loop {
        let read = stream.read(&mut block).await?;
        if read == 0 {
            break;
        }
        last = clock::now();
        first.get_or_insert(last);
        count += read as u64;
        let steps = granted.map_or(0, |granted| (count - said) / granted.step.get().max(1));
        if let Some(granted) = granted.filter(|_| steps > 0) {
            said += steps * granted.step.get();
            stream.write_all(&said.to_be_bytes()).await?;
        }
    }
    let time = first.map_or(Duration::ZERO, |first| last.since(first));
    stream.write_all(&count.to_be_bytes()).await?;
    stream.write_all(&time.as_nanos().to_be_bytes()).await
}

/// What arrived of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uploaded {
    /// Bytes that the server read.
    pub body: Bytes,
    /// From its first byte to its last, at the server.
    pub duration: Duration,
    /// Whether all of the size was sent; otherwise the time ended.
    pub complete: bool,
}

/// Connects to `to` and uploads `size`, or as much of it as can be written in `most`, on the
/// calling thread. What the socket has taken by then still arrives. `granted` is the server's
/// window.
///
/// # Errors
/// The connection was refused or broke off, or `stop` came before the answer.
pub fn upload(
    to: SocketAddr,
    size: Bytes,
    most: Duration,
    granted: Option<GrantedWindow>,
    stop: &Stop,
) -> io::Result<Uploaded> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(LOOK))?;
    stream.set_read_timeout(Some(LOOK))?;
    let (block, until) = (vec![0; BLOCK], clock::now() + most);
    let (mut sent, mut replies) = (0, UploadReplies::default());
    while sent < size.get() && clock::now() < until {
        let most = match granted {
            Some(granted) => replies.last().saturating_add(granted.window.get()).min(size.get()),
            None => size.get(),
        };
        if most == sent {
            replies.read(&mut stream, stop)?;
            continue;
        }
        let next = (most - sent).min(BLOCK as u64) as usize;
        sent += unless_stopped(stop, || stream.write(&block[..next]))?.unwrap_or(0) as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    while !replies.is_ended {
        replies.read(&mut stream, stop)?;
    }
    let Some([count, nanos]) = replies.answer() else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let duration = Duration::from_nanos(nanos);
    Ok(Uploaded { body: Bytes::new(count), duration, complete: sent == size.get() })
}

/// What the server says: numbers of eight bytes, the last two of which are its answer.
#[derive(Debug, Default)]
struct UploadReplies {
    /// The last two, the older one first.
    last: [Option<u64>; 2],
    /// The beginning of the next one.
    begun: Vec<u8>,
    is_ended: bool,
}

impl UploadReplies {
    /// The last one, or 0 before the first.
    fn last(&self) -> u64 {
        self.last[1].unwrap_or(0)
    }

    /// Waits for more of them, for [`LOOK`] at most.
    ///
    /// # Errors
    /// The server ends them while more are waited for.
    fn read(&mut self, stream: &mut TcpStream, stop: &Stop) -> io::Result<()> {
        let mut some = [0; 4096];
        let read = match unless_stopped(stop, || stream.read(&mut some))? {
            None => return Ok(()),
            Some(0) if self.is_ended => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(0) => {
                self.is_ended = true;
                return Ok(());
            }
            Some(read) => read,
        };
        self.begun.extend_from_slice(&some[..read]);
        let (replies, rest) = self.begun.as_chunks::<8>();
        for number in replies {
            self.last = [self.last[1], Some(u64::from_be_bytes(*number))];
        }
        self.begun = rest.to_vec();
        Ok(())
    }

    /// The server's answer, if all of it came.
    fn answer(&self) -> Option<[u64; 2]> {
        let [count, nanos] = self.last;
        Some([count?, nanos?])
    }
}

/// Does `io`; `None` if it has to be done again.
fn unless_stopped(
    stop: &Stop,
    mut io: impl FnMut() -> io::Result<usize>,
) -> io::Result<Option<usize>> {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    match io() {
        Ok(done) => Ok(Some(done)),
        Err(error) if matches!(error.kind(), Interrupted | TimedOut | WouldBlock) => {
            if stop.is_stopped() { Err(TimedOut.into()) } else { Ok(None) }
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_listens_is_an_error_and_no_answer_ends_with_a_stop() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let stop = Stop::new();
        stop.stop();
        // The backlog takes the connection, and nobody reads.
        let error = upload(to, Bytes::new(1), Duration::from_secs(60), None, &stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(listener);
        let error =
            upload(to, Bytes::new(1), Duration::from_secs(60), None, &Stop::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn what_was_not_granted_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = listener.local_addr().unwrap();
        let granted = GrantedWindow { window: Bytes::new(10_000), step: Bytes::new(4_000) };
        let most = Duration::from_secs(60);
        let sending = std::thread::spawn(move || {
            upload(to, Bytes::new(14_000), most, Some(granted), &Stop::new())
        });
        let (mut peer, _) = listener.accept().unwrap();
        let mut block = vec![0; 20_000];
        peer.read_exact(&mut block[..10_000]).unwrap();
        peer.set_read_timeout(Some(LOOK / 4)).unwrap();
        assert!(peer.read(&mut block).is_err(), "more than the window");
        peer.write_all(&1_000_u64.to_be_bytes()).unwrap();
        // A number may come in two parts.
        let number = 4_000_u64.to_be_bytes();
        peer.write_all(&number[..3]).unwrap();
        peer.set_read_timeout(None).unwrap();
        peer.read_exact(&mut block[..1_000]).unwrap();
        peer.write_all(&number[3..]).unwrap();
        peer.read_exact(&mut block[..3_000]).unwrap();
        assert_eq!(peer.read(&mut block).unwrap(), 0, "all of it was sent");
        peer.write_all(&14_000_u64.to_be_bytes()).unwrap();
        peer.write_all(&7_u64.to_be_bytes()).unwrap();
        drop(peer);
        let uploaded = sending.join().unwrap().unwrap();
        assert_eq!(
            (uploaded.body, uploaded.duration),
            (Bytes::new(14_000), Duration::from_nanos(7))
        );
        assert!(uploaded.complete);
    }

    #[test]
    fn an_upload_that_time_ends_is_counted_where_it_arrives() {
        let server = UploadServer::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let (to, stop) = (server.local_addr(), Stop::new());
        let serving = std::thread::spawn({
            let stop = stop.clone();
            move || server.run(&stop)
        });
        let most = Duration::from_millis(50);
        let uploaded = upload(to, Bytes::new(1 << 50), most, None, &Stop::new()).unwrap();
        assert!(!uploaded.complete && uploaded.body > Bytes::ZERO, "{uploaded:?}");
        stop.stop();
        serving.join().unwrap().unwrap();
    }
}
