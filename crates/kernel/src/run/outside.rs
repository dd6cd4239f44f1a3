//! Sockets in the network namespace that a run has left.
//!
//! A run lives in its own namespaces ([`crate::run::sandbox`]), and an ordinary user cannot return:
//! entering the machine's network namespace again would need CAP_SYS_ADMIN over it. But a socket
//! always belongs to the namespace in which it was opened, whoever uses it. So a small process
//! stays outside ([`Outside::keep`], before the run), opens sockets on request, and passes their
//! descriptors in (`SCM_RIGHTS`). It does nothing else: the run itself connects, sends and waits.
//!
//! It ends when the process that made it ends (`PR_SET_PDEATHSIG`), however that happens.

use std::io::{IoSlice, IoSliceMut};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use fullpipe_model::units::Duration;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    SockaddrStorage, connect, recvmsg, sendmsg, setsockopt, socket, socketpair, sockopt,
};
use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork};

use crate::Refused;
use crate::process::wait::{self, PollFd, PollFlags};

/// The connection to the process outside. Threads share it by reference.
#[derive(Debug)]
pub struct Outside {
    socket: OwnedFd,
    /// One request at a time.
    turn: Mutex<()>,
}

/// The kind of socket, encoded as the request byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketKind {
    Tcp4 = 1,
    Tcp6,
    Udp4,
    Udp6,
}

impl std::fmt::Display for SocketKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SocketKind::Tcp4 => "TCP over IPv4",
            SocketKind::Tcp6 => "TCP over IPv6",
            SocketKind::Udp4 => "UDP over IPv4",
            SocketKind::Udp6 => "UDP over IPv6",
        })
    }
}

impl SocketKind {
    fn from_byte(byte: u8) -> Option<SocketKind> {
        [SocketKind::Tcp4, SocketKind::Tcp6, SocketKind::Udp4, SocketKind::Udp6]
            .into_iter()
            .find(|&kind| kind as u8 == byte)
    }

    fn open(self) -> nix::Result<OwnedFd> {
        let family = if matches!(self, SocketKind::Tcp4 | SocketKind::Udp4) {
            AddressFamily::Inet
        } else {
            AddressFamily::Inet6
        };
        let kind = if matches!(self, SocketKind::Tcp4 | SocketKind::Tcp6) {
            SockType::Stream
        } else {
            SockType::Datagram
        };
        let opened = socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?;
        if kind == SockType::Stream {
            // Before anything can be sent, so that no killed process leaves an orderly end.
            let now = libc::linger { l_onoff: 1, l_linger: 0 };
            setsockopt(&opened, sockopt::Linger, &now)?;
        }
        Ok(opened)
    }
}

impl Outside {
    /// Leaves a process behind in the present network namespace. Call it from `main` before any
    /// thread is started, and before [`crate::run::sandbox::run`].
    pub fn keep() -> Result<Outside, Refused> {
        let refused =
            |errno: nix::Error| Refused::new("leave a process outside", "network namespace", errno);
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(refused)?;
        let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
        if threads > 1 {
            let cause = std::io::Error::other(format!("this process has {threads} threads"));
            return Err(Refused::new("leave a process outside", "network namespace", cause));
        }
        // SAFETY: this process has one thread (checked above), so the child may do whatever the
        // parent might.
        match unsafe { fork() }.map_err(refused)? {
            ForkResult::Child => {
                drop(ours);
                serve(&theirs)
            }
            ForkResult::Parent { .. } => Ok(Outside { socket: ours, turn: Mutex::new(()) }),
        }
    }

    /// A TCP connection to `address` as seen from outside; waits until it is established. Like that
    /// of [`Outside::begin_connect`], it ends with a reset until
    /// [`crate::socket::transparent::end_at_close`]: whoever dies has not completed what it sent.
    pub fn connect(&self, address: SocketAddr) -> Result<TcpStream, Refused> {
        let fd = self.open(if address.is_ipv4() { SocketKind::Tcp4 } else { SocketKind::Tcp6 })?;
        connect(fd.as_raw_fd(), &SockaddrStorage::from(address))
            .map_err(|errno| Refused::new("connect outside", address.to_string(), errno))?;
        Ok(TcpStream::from(fd))
    }

    /// Starts a TCP connection to `address` as seen from outside without blocking: once the socket
    /// is writable, it is connected or has an error.
    pub fn begin_connect(&self, address: SocketAddr) -> Result<TcpStream, Refused> {
        let stream = TcpStream::from(self.open(if address.is_ipv4() {
            SocketKind::Tcp4
        } else {
            SocketKind::Tcp6
        })?);
        let refused =
            |errno: nix::Error| Refused::new("connect outside", address.to_string(), errno);
        stream
            .set_nonblocking(true)
            .map_err(|cause| Refused::new("connect outside", address.to_string(), cause))?;
        match connect(stream.as_raw_fd(), &SockaddrStorage::from(address)) {
            Ok(()) | Err(nix::Error::EINPROGRESS) => Ok(stream),
            Err(errno) => Err(refused(errno)),
        }
    }

    /// A UDP socket that sends to and receives from `address` only.
    pub fn udp(&self, address: SocketAddr) -> Result<UdpSocket, Refused> {
        let fd = self.open(if address.is_ipv4() { SocketKind::Udp4 } else { SocketKind::Udp6 })?;
        connect(fd.as_raw_fd(), &SockaddrStorage::from(address))
            .map_err(|errno| Refused::new("connect outside", address.to_string(), errno))?;
        Ok(UdpSocket::from(fd))
    }

    /// Fails if the process outside has ended, which it does not do by itself. From then on no
    /// socket can be opened.
    pub fn check(&self) -> Result<(), Refused> {
        let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
        let gone = wait::ready(&mut fds, Some(Duration::ZERO)).is_ok_and(|ready| ready > 0);
        if !gone {
            return Ok(());
        }
        let cause = std::io::Error::other("it was killed");
        Err(Refused::new("reach the network by the process outside", "fullpipe-out", cause)
            .hint("start the link again, and leave that process alone"))
    }

    fn open(&self, kind: SocketKind) -> Result<OwnedFd, Refused> {
        let _turn = self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ask(&self.socket, kind).map_err(|cause| {
            Refused::new("open socket outside", kind.to_string(), cause)
                .hint("too many connections at once, or the process left outside was killed")
        })
    }
}

/// Ends the wait of a thread that receives from `socket`, now and later.
pub fn end_datagrams(socket: &UdpSocket) {
    // Nobody waits on a socket that is not connected.
    let _ = nix::sys::socket::shutdown(socket.as_raw_fd(), nix::sys::socket::Shutdown::Both);
}

/// One request, one answer: 0 and a descriptor, or an errno.
fn ask(socket: &OwnedFd, kind: SocketKind) -> std::io::Result<OwnedFd> {
    let fd = socket.as_raw_fd();
    sendmsg::<()>(fd, &[IoSlice::new(&[kind as u8])], &[], MsgFlags::MSG_NOSIGNAL, None)?;
    let mut answer = [0; 4];
    let mut space = nix::cmsg_space!(RawFd);
    let mut parts = [IoSliceMut::new(&mut answer)];
    let message = recvmsg::<()>(fd, &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    if message.bytes == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let passed = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
        _ => None,
    });
    match passed {
        // SAFETY: the kernel has just made this descriptor for us; nobody else knows it.
        Some(fd) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        None => Err(std::io::Error::from_raw_os_error(i32::from_ne_bytes(answer))),
    }
}

/// The whole life of the process outside.
fn serve(socket: &OwnedFd) -> ! {
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let _ = prctl::set_name(c"fullpipe-out");
    // Ctrl-C is meant for the run; this process ends with it, not before.
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
    ] {
        // SAFETY: ignoring a signal runs no code of ours.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigIgn) };
    }
    // A reader of our output waits until everybody has closed it, so this process must not hold it
    // open.
    if let Ok(null) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        let _ = (dup2_stdin(&null), dup2_stdout(&null), dup2_stderr(&null));
    }
    let fd = socket.as_raw_fd();
    loop {
        let mut request = [0];
        let mut parts = [IoSliceMut::new(&mut request)];
        match recvmsg::<()>(fd, &mut parts, None, MsgFlags::empty()).map(|message| message.bytes) {
            Ok(1) => {}
            Err(nix::Error::EINTR) => continue,
            _ => break,
        }
        let opened =
            SocketKind::from_byte(request[0]).ok_or(nix::Error::EINVAL).and_then(SocketKind::open);
        let sent = match &opened {
            Ok(opened) => {
                let rights = [opened.as_raw_fd()];
                let rights = [ControlMessage::ScmRights(&rights)];
                sendmsg::<()>(fd, &[IoSlice::new(&[0; 4])], &rights, MsgFlags::MSG_NOSIGNAL, None)
            }
            Err(errno) => {
                let code = (*errno as i32).to_ne_bytes();
                sendmsg::<()>(fd, &[IoSlice::new(&code)], &[], MsgFlags::MSG_NOSIGNAL, None)
            }
        };
        if sent.is_err() {
            break;
        }
    }
    // SAFETY: ends the process; what the parent registered for its own end is not this process's to
    // run.
    unsafe { libc::_exit(0) }
}
