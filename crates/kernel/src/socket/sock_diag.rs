//! What the kernel knows about its TCP sockets: `sock_diag`, the interface of `ss`.
//!
//! [`SockDiag::sample`] reads one connection by its addresses in about 2 us: use it for sampling
//! every 10 ms. [`SockDiag::dump`] reads all that match. For that the kernel walks its whole table
//! of connections, 0.8 ms on a machine with 24 GB, so use it to find a connection, not to follow
//! it. Both return [`Sample`]s with `TCP_INFO`, socket memory and congestion control. Buffers are
//! reused.
//!
//! Source: sock_diag(7), linux/inet_diag.h, net/ipv4/inet_diag.c.

mod message;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use fullpipe_model::observe::{Sample, TcpState, canonical};
use fullpipe_model::units::{Bytes, Instant};
use netlink_sys::{Socket, protocols::NETLINK_SOCK_DIAG};

use crate::network::netlink::connected_socket;
use crate::network::netns::NetNs;
use crate::{Refused, host::clock};
use message::{AddressFamily, DumpProgress, DumpRequest};

/// Which connections to report. Listening sockets and those in TIME-WAIT are left out, because they
/// have no useful TCP_INFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Filter {
    /// Port of the socket's own end.
    pub local_port: Option<u16>,
    /// Port of the other end.
    pub remote_port: Option<u16>,
}

/// A summary of a TCP socket: which sockets exist, and what is still to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSocket {
    /// The socket's own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Its TCP state.
    pub state: TcpState,
    /// Received and not yet read by its process. For a listener: connections that wait to be
    /// accepted.
    pub unread: Bytes,
    /// Written by its process and not yet acknowledged. A FIN counts as one byte.
    pub unsent: Bytes,
    /// Whether a process has it open. After it was closed, the kernel keeps it until its data is
    /// delivered.
    pub has_owner: bool,
}

/// A TCP socket with what identifies it on its host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostSocket {
    /// What the kernel knows about it, without the name of its congestion control.
    pub sample: Sample,
    /// The kernel's number of the socket, which no other socket of this machine ever gets.
    pub cookie: u64,
    /// The inode of its file, which the links in `/proc/PID/fd` name; `None` once every process
    /// has closed it.
    pub inode: Option<u64>,
    /// The user who opened it.
    pub uid: u32,
    /// The control group that it was opened in: the inode of a directory of cgroup v2. `None`
    /// before Linux 5.9.
    pub cgroup: Option<u64>,
}

/// A socket that asks about the TCP sockets of one network namespace.
pub struct SockDiag {
    socket: Socket,
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// Room for one datagram of a dump; the kernel sends at most 32 KiB at once.
const ANSWER_ROOM: usize = 64 << 10;

impl SockDiag {
    /// Opens one for the namespace that the calling thread is in.
    pub fn open() -> Result<SockDiag, Refused> {
        let socket = connected_socket(NETLINK_SOCK_DIAG).map_err(|e| {
            Refused::new("open sock_diag", "TCP", e)
                .hint("this kernel may be built without CONFIG_INET_DIAG")
        })?;
        Ok(SockDiag { socket, request: Vec::new(), answer: Vec::with_capacity(ANSWER_ROOM) })
    }

    /// Opens one for `ns`; it works from any thread.
    pub fn open_in(ns: &NetNs) -> Result<SockDiag, Refused> {
        ns.run(SockDiag::open)?
    }

    /// Appends a sample of each connection that matches to `samples`.
    pub fn dump(&mut self, filter: &Filter, samples: &mut Vec<Sample>) -> Result<(), Refused> {
        for family in [AddressFamily::V4, AddressFamily::V6] {
            DumpRequest::dump(family, filter.local_port, filter.remote_port)
                .write(&mut self.request);
            self.exchange(samples)?;
        }
        Ok(())
    }

    /// Passes every connection of the namespace to `visit`, except those in TIME-WAIT, with what
    /// identifies it. Nothing is kept: 20,000 sockets take no more memory than one.
    pub fn each(&mut self, visit: &mut dyn FnMut(HostSocket)) -> Result<(), Refused> {
        for family in [AddressFamily::V4, AddressFamily::V6] {
            DumpRequest::counters(family).write(&mut self.request);
            self.exchange_by(|answer, at| message::read_identified(answer, at, visit))?;
        }
        Ok(())
    }

    /// The local addresses that accept connections (TCP) or datagrams (UDP) from anybody.
    pub fn listeners(&mut self) -> Result<Vec<SocketAddr>, Refused> {
        let mut samples = Vec::new();
        for family in [AddressFamily::V4, AddressFamily::V6] {
            for request in [DumpRequest::listeners(family), DumpRequest::datagrams(family)] {
                request.write(&mut self.request);
                self.exchange(&mut samples)?;
            }
        }
        Ok(samples.into_iter().map(|sample| sample.local).collect())
    }

    /// All connections of the namespace except those in TIME-WAIT, including those that a process
    /// has closed.
    pub fn open_sockets(&mut self) -> Result<Vec<OpenSocket>, Refused> {
        self.list([
            DumpRequest::dump(AddressFamily::V4, None, None),
            DumpRequest::dump(AddressFamily::V6, None, None),
        ])
    }

    /// The number of established connections that nobody has accepted yet, over all listeners.
    pub fn waiting_to_be_accepted(&mut self) -> Result<u64, Refused> {
        let listeners = self.list([
            DumpRequest::listeners(AddressFamily::V4),
            DumpRequest::listeners(AddressFamily::V6),
        ])?;
        Ok(listeners.iter().map(|listener| listener.unread.get()).sum())
    }

    fn list(&mut self, requests: [DumpRequest; 2]) -> Result<Vec<OpenSocket>, Refused> {
        let mut sockets = Vec::new();
        for request in requests {
            request.write(&mut self.request);
            self.exchange_by(|answer, _| message::read_open(answer, &mut sockets))?;
        }
        Ok(sockets)
    }

    /// The connection between these two ends as it is now; `None` if there is none.
    ///
    /// IPv4 addresses written as IPv6 (`::ffff:10.0.0.1`) equal plain ones, here and in the answer.
    pub fn sample(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Option<Sample>, Refused> {
        DumpRequest::one(local, remote).write(&mut self.request);
        let mut samples = Vec::with_capacity(1);
        self.exchange(&mut samples)?;
        // Without a connection, the lookup finds the listener on the local address.
        Ok(samples.pop().filter(|sample| sample.remote.port() == remote.port()))
    }

    fn exchange(&mut self, samples: &mut Vec<Sample>) -> Result<(), Refused> {
        self.exchange_by(|answer, at| message::read(answer, at, samples))
    }

    fn exchange_by(
        &mut self,
        mut read: impl FnMut(&[u8], Instant) -> DumpProgress,
    ) -> Result<(), Refused> {
        self.socket.send(&self.request, 0).map_err(refused)?;
        loop {
            self.answer.clear();
            self.answer.reserve(ANSWER_ROOM);
            match self.socket.recv(&mut self.answer, 0) {
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(refused(e)),
            }
            match read(&self.answer, clock::now()) {
                DumpProgress::More => {}
                DumpProgress::Done => return Ok(()),
                // The connection ended, or never existed.
                DumpProgress::Failed(libc::ENOENT) => return Ok(()),
                DumpProgress::Failed(errno) => {
                    return Err(refused(io::Error::from_raw_os_error(errno)));
                }
            }
        }
    }
}

fn refused(cause: io::Error) -> Refused {
    Refused::new("ask sock_diag", "TCP sockets", cause)
}

/// The 16 bytes of an address field.
fn octets(end: SocketAddr) -> [u8; 16] {
    match end {
        SocketAddr::V4(v4) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v4.ip().octets());
            bytes
        }
        SocketAddr::V6(v6) => v6.ip().octets(),
    }
}

/// The address in a field's 16 bytes.
fn address(family: AddressFamily, bytes: [u8; 16], port: u16) -> SocketAddr {
    let ip = match family {
        AddressFamily::V4 => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
        AddressFamily::V6 => Ipv6Addr::from(bytes).into(),
    };
    canonical(SocketAddr::new(ip, port))
}
