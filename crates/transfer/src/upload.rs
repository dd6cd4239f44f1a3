//! An upload: the sender of the data opens the connection.
//!
//! [`UploadServer`] reads whatever arrives on a connection until its end, then answers with how
//! much that was and how long it took from the first byte to the last: two numbers of eight bytes,
//! big-endian. [`upload`] writes zeros as fast as the socket takes them, ends its direction, and
//! waits for that answer. So an upload is measured where it arrives.
//!
//! ```
//! use fullpipe_model::units::{Bytes, Duration};
//! use fullpipe_transfer::{Stop, UploadServer, upload};
//! let server = UploadServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
//! let (to, stop) = (server.local_addr(), Stop::new());
//! let serving = std::thread::spawn({
//!     let stop = stop.clone();
//!     move || server.run(&stop)
//! });
//! let (size, most) = (Bytes::new(1_000_000), Duration::from_secs(60));
//! let uploaded = upload(to, size, most, &Stop::new()).unwrap();
//! assert_eq!(uploaded.body, size);
//! assert!(uploaded.complete);
//! stop.stop();
//! serving.join().unwrap().unwrap();
//! ```

use crate::Stop;
use crate::clock;
use crate::server::{ServerError, listen};
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
}

impl UploadServer {
    /// Makes the listening socket, on the calling thread and in its network namespace.
    ///
    /// # Errors
    /// The address is taken, or is none of this host.
    pub fn bind(addr: SocketAddr) -> Result<Self, ServerError> {
        let listener = listen(addr)?;
        let local_addr =
            listener.local_addr().map_err(|source| crate::server::bind_error(addr, source))?;
        Ok(UploadServer { listener, local_addr })
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
                    take(stream).await
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
async fn take(mut stream: tokio::net::TcpStream) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    let (mut count, mut first, mut last) = (0_u64, None, clock::now());
    loop {
        let read = stream.read(&mut block).await?;
        if read == 0 {
            break;
        }
        last = clock::now();
        first.get_or_insert(last);
        count += read as u64;
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
/// calling thread. What the socket has taken by then still arrives.
///
/// # Errors
/// The connection was refused or broke off, or `stop` came before the answer.
pub fn upload(to: SocketAddr, size: Bytes, most: Duration, stop: &Stop) -> io::Result<Uploaded> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_write_timeout(Some(LOOK))?;
    stream.set_read_timeout(Some(LOOK))?;
    let (block, until) = (vec![0; BLOCK], clock::now() + most);
    let mut left = size.get();
    while left > 0 && clock::now() < until {
        let next = left.min(BLOCK as u64) as usize;
        left -= unless_stopped(stop, || stream.write(&block[..next]))?.unwrap_or(0) as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    let mut answer = [0; 16];
    let mut filled = 0;
    while filled < answer.len() {
        match unless_stopped(stop, || stream.read(&mut answer[filled..]))? {
            Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read.unwrap_or(0),
        }
    }
    let [count, nanos] = [0, 8].map(|at| {
        let mut number = [0; 8];
        number.copy_from_slice(&answer[at..at + 8]);
        u64::from_be_bytes(number)
    });
    let duration = Duration::from_nanos(nanos);
    Ok(Uploaded { body: Bytes::new(count), duration, complete: left == 0 })
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
        let error = upload(to, Bytes::new(1), Duration::from_secs(60), &stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(listener);
        let error = upload(to, Bytes::new(1), Duration::from_secs(60), &Stop::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn an_upload_that_time_ends_is_counted_where_it_arrives() {
        let server = UploadServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (to, stop) = (server.local_addr(), Stop::new());
        let serving = std::thread::spawn({
            let stop = stop.clone();
            move || server.run(&stop)
        });
        let most = Duration::from_millis(50);
        let uploaded = upload(to, Bytes::new(1 << 50), most, &Stop::new()).unwrap();
        assert!(!uploaded.complete && uploaded.body > Bytes::ZERO, "{uploaded:?}");
        stop.stop();
        serving.join().unwrap().unwrap();
    }
}
