//! The addresses of this host's interfaces.

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use std::io;
use std::net::IpAddr;

/// The addresses that the host has now, as [`IpAddr::to_canonical`] gives them.
pub(super) fn own_addresses() -> io::Result<Vec<IpAddr>> {
    let interfaces = getifaddrs()?.filter_map(|interface| interface.address);
    Ok(interfaces.filter_map(ip_of).map(|address| address.to_canonical()).collect())
}

fn ip_of(address: SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| address.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|address| address.ip().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    #[test]
    #[allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
    fn loopback_and_the_address_towards_others_are_among_them() {
        let own = own_addresses().unwrap();
        assert!(own.contains(&Ipv4Addr::LOCALHOST.into()), "{own:?}");
        // Where there is a route to other hosts, this host has an address on it. Nothing is sent.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        match socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()) {
            Ok(local) => assert!(own.contains(&local.ip()), "{local} {own:?}"),
            Err(error) => eprintln!("SKIPPED: address towards others: no route: {error}"),
        }
    }
}
