//! A UDP socket whose packets are never cut into fragments, nor by what the kernel thinks of the
//! path.

use fullpipe_model::units::Duration;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// The UDP header, and IP's without options.
const UDP: usize = 8;
const IPV4: usize = 20;
const IPV6: usize = 40;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// It left.
    Left,
    /// The device carries none of that size.
    TooLarge,
}

/// A socket at `local`, any port.
pub(super) fn bind(mut local: SocketAddr) -> io::Result<UdpSocket> {
    local.set_port(0);
    let socket = UdpSocket::bind(local)?;
    // "Set DF but ignore Path MTU" (ip(7)).
    match local.ip().is_ipv4() {
        true => set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?,
        false => set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?,
    }
    Ok(socket)
}

/// The payload of a packet of `size`.
pub(super) fn payload(size: u16, to: SocketAddr) -> usize {
    let headers = UDP + if is_ipv4(to) { IPV4 } else { IPV6 };
    usize::from(size).saturating_sub(headers)
}

/// The smallest MTU that a path may have (RFC 791 as RFC 8899 reads it; RFC 8200).
pub(super) fn least(to: SocketAddr) -> u16 {
    if is_ipv4(to) { 576 } else { 1280 }
}

fn is_ipv4(to: SocketAddr) -> bool {
    to.ip().to_canonical().is_ipv4()
}

/// Sends a packet, and says whether the device takes it.
pub(super) fn send(socket: &UdpSocket, bytes: &[u8], to: SocketAddr) -> io::Result<Sent> {
    match socket.send_to(bytes, to) {
        Ok(_) => Ok(Sent::Left),
        Err(error) if error.raw_os_error() == Some(nix::libc::EMSGSIZE) => Ok(Sent::TooLarge),
        // What ICMP said about an earlier packet; this one was not sent, and counts as lost.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Sent::Left),
        Err(error) => Err(error),
    }
}

/// The next packet within `patience`; `None` if none came.
pub(super) fn receive(
    socket: &UdpSocket,
    buffer: &mut [u8],
    patience: Duration,
) -> io::Result<Option<(usize, SocketAddr)>> {
    let patience = std::time::Duration::from(patience).max(std::time::Duration::from_millis(1));
    socket.set_read_timeout(Some(patience))?;
    match socket.recv_from(buffer) {
        Ok(got) => Ok(Some(got)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}
