//! A server on its own thread, and raw HTTP over a socket.

use fullpipe_model::units::Bytes;
use fullpipe_transfer::{
    Download, DownloadError, DownloadEvent, DownloadOptions, DownloadRequest, Resource, Served,
    Server, ServerOptions, Stop, content, download,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest that any read of a test may wait: an answer that takes longer is a failure, not a hang.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs until it is dropped.
pub struct Serving {
    pub addr: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<Served>>,
}

impl Serving {
    pub fn start(options: ServerOptions) -> Self {
        let server = Server::bind(options).unwrap();
        let (addr, stop) = (server.local_addr(), Stop::new());
        let thread = std::thread::spawn({
            let stop = stop.clone();
            move || server.run(&stop).unwrap()
        });
        Serving { addr, stop, thread: Some(thread) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.addr)
    }

    /// Stops it; what it did.
    pub fn end(mut self) -> Served {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends `request` as it is and returns all that comes until the server closes.
pub fn raw(addr: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = connect(addr);
    // The server may refuse, and reset, before all is sent.
    let _ = stream.write_all(request);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// The status line and headers, and the body, of one `GET` without keep-alive.
pub fn get(addr: SocketAddr, path: &str, headers: &str) -> (String, Vec<u8>) {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{headers}\r\n");
    split(&raw(addr, request.as_bytes()))
}

pub fn split(answer: &[u8]) -> (String, Vec<u8>) {
    let end =
        answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a response has headers");
    (String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec())
}

/// What a scripted server does with a connection once it has read a request's head.
pub type Script = Box<dyn FnOnce(&mut TcpStream) + Send>;

/// Answers each connection in turn with one of `scripts`, then is gone. Returns its address.
pub fn script(scripts: Vec<Script>) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        for script in scripts {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            read_head(&mut stream);
            script(&mut stream);
        }
    });
    (addr, thread)
}

/// Reads up to the empty line that ends a head.
pub fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

pub fn fetch(
    server: SocketAddr,
    path: &str,
    options: DownloadOptions,
) -> Result<Download, DownloadError> {
    fetch_observed(server, path, options, &mut |_| {})
}

pub fn fetch_observed(
    server: SocketAddr,
    path: &str,
    options: DownloadOptions,
    observer: &mut dyn FnMut(DownloadEvent),
) -> Result<Download, DownloadError> {
    let request = DownloadRequest { resource: Resource { server, path: path.into() }, options };
    download(&request, &Stop::new(), observer)
}

/// Generated content, the slow way.
pub fn generated(from: u64, to: u64) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < (to - from) as usize {
        let done = all.len() as u64;
        all.extend_from_slice(&content::at(Bytes::new(from + done), Bytes::new(to - from - done)));
    }
    all
}
