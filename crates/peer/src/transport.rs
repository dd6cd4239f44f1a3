//! What connections between two fullpipes are made of: TCP, or Multipath TCP.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// How many connections may wait to be accepted; the kernel takes less if `somaxconn` is less.
const BACKLOG: i32 = 4096;

/// Makes it answer at once whether a connection has come, and tells where it listens, with the port
/// that the kernel chose.
pub(super) fn without_waiting(listener: TcpListener) -> io::Result<(TcpListener, SocketAddr)> {
    listener.set_nonblocking(true)?;
    let addr = listener.local_addr()?;
    Ok((listener, addr))
}

/// The protocol of a connection's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// Multipath TCP (RFC 8684): one connection over several paths, which the kernels of both ends
    /// find. With an end that has no Multipath TCP it is TCP.
    MultipathTcp,
}

impl Transport {
    /// Tries whether the kernel has it. A kernel without Multipath TCP, or where
    /// `net.mptcp.enabled` is 0, refuses the socket.
    pub fn check(self) -> io::Result<()> {
        self.socket(Domain::IPV4).map(drop)
    }

    fn socket(self, domain: Domain) -> io::Result<Socket> {
        let protocol = match self {
            Transport::Tcp => Protocol::TCP,
            Transport::MultipathTcp => Protocol::MPTCP,
        };
        Socket::new(domain, Type::STREAM, Some(protocol))
    }

    /// A socket for a connection to `addr`.
    pub(super) fn to(self, addr: SocketAddr) -> io::Result<Socket> {
        self.socket(Domain::for_address(addr))
    }

    /// Listens on `addr`. Who connects by TCP is accepted in any case.
    pub(super) fn listen(self, addr: SocketAddr) -> io::Result<TcpListener> {
        let socket = self.socket(Domain::for_address(addr))?;
        // As the standard library does: a port whose connections are closing can be taken again.
        socket.set_reuse_address(true)?;
        socket.bind(&addr.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    }
}
