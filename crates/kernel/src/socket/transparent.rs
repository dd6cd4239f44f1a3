//! Sockets that accept every address: transparent proxying, inside our own namespace.
//!
//! Three parts together let a namespace answer for the whole world: routes that make every address
//! local ([`crate::network::netlink::Netlink::own_every_address`]), an nftables rule that passes
//! packets to a socket whatever their destination (`tproxy`, [`rule`]), and sockets that may use
//! foreign addresses (`IP_TRANSPARENT`), which are made here. The local address of an accepted
//! connection is then the address to which the peer connected.
//!
//! Source: Documentation/networking/tproxy.rst, ip(7), nft(8).

use std::io::{self, IoSliceMut, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn,
    SockaddrIn6, SockaddrStorage, bind, recvmsg, sendto, setsockopt, socket, sockopt,
};

use fullpipe_model::units::Bytes;

use crate::Refused;
use crate::network::netns::NetNs;

const IPV6_TRANSPARENT: libc::c_int = 75;

/// The rule, as nftables text, that passes all TCP and UDP arriving on `device` to the sockets on
/// `port`. With `ipv6` it covers both families; otherwise only IPv4, because a kernel without IPv6
/// knows nothing else.
pub fn rule(device: &str, port: u16, ipv6: bool) -> String {
    let family = |protocol: &str, tproxy: &str| {
        format!(
            "  iifname {{ \"{device}\", \"lo\" }} meta nfproto {protocol} meta l4proto {{ tcp, udp }} tproxy {tproxy} to :{port} \
             accept\n"
        )
    };
    // crate::socket::connection_request answers these SYNs; they return through the loopback
    // device.
    let mut requests = format!(
        "  iifname \"{device}\" meta nfproto ipv4 tcp flags & (fin|syn|rst|ack) == syn drop\n"
    );
    if ipv6 {
        requests += &format!(
            "  iifname \"{device}\" ip6 nexthdr tcp tcp flags & (fin|syn|rst|ack) == syn drop\n"
        );
    }
    let families = family("ipv4", "ip") + &if ipv6 { family("ipv6", "ip6") } else { String::new() };
    format!(
        "table inet fullpipe {{\n chain everything {{\n  type filter hook prerouting priority mangle; policy \
         accept;\n{requests}{families} }}\n}}\n"
    )
}

/// The command `nft`, to run in `ns`.
fn nft_in(ns: &NetNs) -> Result<Command, Refused> {
    let mut command = Command::new("nft");
    let path = std::env::var("PATH").unwrap_or_default();
    // Debian installs it in a directory that is not in an ordinary user's PATH.
    command
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    ns.start_in(&mut command)?;
    Ok(command)
}

fn nft_refused(ns: &NetNs, cause: io::Error) -> Refused {
    let hint = match cause.kind() {
        io::ErrorKind::NotFound => "install nftables (on Debian: apt-get install nftables)",
        _ => "",
    };
    Refused::new("run nft in", ns.label(), cause).hint(hint)
}

/// Applies `text` by `nft` in `ns`.
pub fn nft(ns: &NetNs, text: &str) -> Result<(), Refused> {
    let refused = |cause: io::Error| nft_refused(ns, cause);
    let mut command = nft_in(ns)?;
    command.args(["-f", "-"]).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(refused)?;
    if let Some(mut stdin) = child.stdin.take() {
        // If nft does not read everything, its exit status says why.
        let _ = stdin.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(refused)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("no reason given").trim().to_string();
    Err(refused(io::Error::other(said))
        .hint("this kernel may be built without nf_tables, nft_tproxy or nft_masq"))
}

/// A running `nft`. Its tables with `flags owner` belong to the session, and the kernel removes
/// them when it ends (Linux 5.12). It ends when this value is dropped or its process ends, however
/// that happens.
#[derive(Debug)]
pub struct NftSession {
    child: Child,
}

impl NftSession {
    /// Starts a session that executes `commands`, one on each line. They take effect after this
    /// returns, so check for the result.
    pub fn start(ns: &NetNs, commands: &str) -> Result<NftSession, Refused> {
        let refused = |cause: io::Error| nft_refused(ns, cause);
        let mut command = nft_in(ns)?;
        let mut child = command.arg("-i").stderr(Stdio::null()).spawn().map_err(refused)?;
        let stdin =
            child.stdin.as_mut().ok_or_else(|| refused(io::ErrorKind::BrokenPipe.into()))?;
        // Its standard input stays open in `child`, because closing it would end the session.
        stdin.write_all(commands.as_bytes()).and_then(|()| stdin.flush()).map_err(refused)?;
        Ok(NftSession { child })
    }
}

impl Drop for NftSession {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens a socket of `address`'s family that may use any address, bound to `address`.
fn open(kind: SockType, address: SocketAddr) -> nix::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let fd = socket(family, kind, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    if address.is_ipv4() {
        setsockopt(&fd, sockopt::IpTransparent, &true)?;
    } else {
        setsockopt(&fd, sockopt::Ipv6V6Only, &true)?;
        let on: libc::c_int = 1;
        let length = size_of_val(&on) as libc::socklen_t;
        // SAFETY: `on` is an int of the length given and lives through the call.
        let code = unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::IPPROTO_IPV6,
                IPV6_TRANSPARENT,
                (&raw const on).cast(),
                length,
            )
        };
        nix::errno::Errno::result(code)?;
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(fd)
}

/// Connections that wait to be accepted; the kernel takes fewer where `net.core.somaxconn` is less.
const BACKLOG: libc::c_int = 1024;

/// A listener in `ns` for connections to any address, given the rule. The local address of an
/// accepted connection is the address to which the peer connected.
pub fn listener(ns: &NetNs, address: SocketAddr) -> Result<TcpListener, Refused> {
    let refused =
        |errno: nix::Error| Refused::new("listen for every address", address.to_string(), errno);
    let fd = ns.run(|| {
        let fd = open(SockType::Stream, address)?;
        // Not by nix's `Backlog`: it takes no more than musl's SOMAXCONN, 128, and the kernel more.
        // SAFETY: no memory is passed; the descriptor is open.
        nix::errno::Errno::result(unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) })?;
        nix::Result::Ok(fd)
    })?;
    Ok(TcpListener::from(fd.map_err(refused)?))
}

/// A UDP socket in `ns` for datagrams to any address, given the rule; read it with [`receive`].
pub fn datagrams(ns: &NetNs, address: SocketAddr) -> Result<UdpSocket, Refused> {
    let refused =
        |errno: nix::Error| Refused::new("receive for every address", address.to_string(), errno);
    let fd = ns.run(|| {
        let fd = open(SockType::Datagram, address)?;
        if address.is_ipv4() {
            setsockopt(&fd, sockopt::Ipv4OrigDstAddr, &true)?;
        } else {
            setsockopt(&fd, sockopt::Ipv6OrigDstAddr, &true)?;
        }
        nix::Result::Ok(fd)
    })?;
    Ok(UdpSocket::from(fd.map_err(refused)?))
}

/// A UDP socket in `ns` that sends from the address `from`, whoever owns it. Datagrams to `from`
/// still arrive at the [`datagrams`] socket.
pub fn reply_socket(ns: &NetNs, from: SocketAddr) -> Result<UdpSocket, Refused> {
    let fd = ns.run(|| open(SockType::Datagram, from))?;
    Ok(UdpSocket::from(fd.map_err(|errno| Refused::new("answer as", from.to_string(), errno))?))
}

/// A socket in `ns` that sends whole IP packets of `any`'s family, with any addresses.
pub fn packets(ns: &NetNs, any: IpAddr) -> Result<OwnedFd, Refused> {
    let family = if any.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    // raw(7): with this protocol the sender writes the header itself.
    let opened =
        ns.run(|| socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw))?;
    opened.map_err(|errno| Refused::new("open socket for packets", ns.label(), errno))
}

/// Sends a whole IP packet by a socket of [`packets`] to `to`, the address in its header.
pub fn send_packet(socket: &OwnedFd, packet: &[u8], to: IpAddr) -> io::Result<()> {
    let to = SockaddrStorage::from(SocketAddr::new(to, 0));
    Ok(sendto(socket.as_raw_fd(), packet, &to, MsgFlags::empty()).map(drop)?)
}

/// Ends a connection with a reset, as from a port without a listener.
pub fn reset(connection: TcpStream) {
    reset_at_close(&connection);
}

/// Makes a connection end with a reset instead of a FIN when it is closed.
pub fn reset_at_close(connection: &TcpStream) {
    // Closing with a linger time of zero resets the connection; if the kernel refuses the option,
    // it closes normally.
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    let _ = setsockopt(connection, sockopt::Linger, &now);
}

/// Makes a connection end with a FIN again after [`reset_at_close`]: all that belongs to it was
/// written, and the kernel delivers it, whatever becomes of this process.
pub fn end_at_close(connection: &TcpStream) {
    let as_usual = libc::linger { l_onoff: 0, l_linger: 0 };
    let _ = setsockopt(connection, sockopt::Linger, &as_usual);
}

/// Bytes written to `connection` and not yet acknowledged by its peer; a FIN counts as one byte.
pub fn unsent(connection: &TcpStream) -> io::Result<Bytes> {
    /// `TCP_CLOSE`: a connection that was reset owes nothing, whatever it counts
    /// (include/net/tcp_states.h).
    const CLOSED: u8 = 7;
    let mut state = 0u8;
    let mut length = size_of_val(&state) as libc::socklen_t;
    let fd = connection.as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes, one, into `state`: the first field of
    // `struct tcp_info`.
    let code = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &raw mut length,
        )
    };
    if code == 0 && state == CLOSED {
        return Ok(Bytes::ZERO);
    }
    let mut count: libc::c_int = 0;
    // SAFETY: the kernel writes an int into `count`, which lives through the call (tcp(7),
    // SIOCOUTQ).
    match unsafe { libc::ioctl(connection.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) } {
        0 => Ok(Bytes::new(u64::try_from(count).unwrap_or(0))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives a datagram from a [`datagrams`] socket: its length, its sender, its destination.
pub fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
) -> io::Result<(usize, SocketAddr, SocketAddr)> {
    let mut space = nix::cmsg_space!(libc::sockaddr_in6);
    let mut parts = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrStorage>(
        socket.as_fd().as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::empty(),
    )?;
    let meant = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4OrigDstAddr(address) => {
            let address = SockaddrIn::from(address);
            Some(SocketAddr::new(IpAddr::V4(address.ip()), address.port()))
        }
        ControlMessageOwned::Ipv6OrigDstAddr(address) => {
            let address = SockaddrIn6::from(address);
            Some(SocketAddr::new(IpAddr::V6(address.ip()), address.port()))
        }
        _ => None,
    });
    let sender = message.address.and_then(|address| {
        let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::new(IpAddr::V4(v4.ip()), v4.port()));
        v4.or_else(|| {
            address.as_sockaddr_in6().map(|v6| SocketAddr::new(IpAddr::V6(v6.ip()), v6.port()))
        })
    });
    match (sender, meant) {
        (Some(sender), Some(meant)) => Ok((message.bytes, sender, meant)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
