//! Intercepts requests for TCP connections before the kernel answers them.
//!
//! A listener completes every handshake by itself. A gateway that stands in for other machines must
//! not do that, because the real machine may refuse. So [`crate::socket::transparent::rule`] drops
//! each SYN that arrives on a device, and [`ConnectionRequests`] gets a copy of it before that.
//! Once the other machine's answer is known, the SYN is passed to the listener over the loopback
//! device ([`ConnectionRequests::pass`]), or answered as that machine or a router would have done
//! ([`ConnectionRequests::refuse`]).
//!
//! Source: packet(7), raw(7), RFC 9293 section 3.5.2 (resets), RFC 792 and RFC 4443 (unreachable
//! destinations).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, sendto, socket,
};

use crate::Refused;
use crate::network::netns::NetNs;

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
/// Length of a TCP header without options.
const TCP_LEN: usize = 20;
const RST_ACK: u8 = 0x14;
/// Hop limit of an answer: it goes to the other end of a link.
const HOPS: u8 = 64;
/// Fits a SYN with options and TCP Fast Open data on a link with large packets.
const ROOM: usize = 65_536;

/// Classic BPF that accepts only SYNs without ACK, for IPv4 without fragments and IPv6 without
/// extension headers. Fields: operation, jump if true, jump if false, operand (linux/filter.h). The
/// packet begins with its IP header.
const FILTER: [(u16, u8, u8, u32); 19] = [
    (0x30, 0, 0, 0),       // load byte 0
    (0x54, 0, 0, 0xf0),    // its upper half: the version
    (0x15, 0, 8, 0x40),    // 4, else to 11
    (0x30, 0, 0, 9),       // protocol
    (0x15, 0, 13, 6),      // TCP, else no
    (0x28, 0, 0, 6),       // fragment
    (0x45, 11, 0, 0x3fff), // more or an offset: no
    (0xb1, 0, 0, 0),       // x = length of the IP header
    (0x50, 0, 0, 13),      // flags
    (0x54, 0, 0, 0x17),    // FIN, SYN, RST, ACK
    (0x15, 6, 7, 0x02),    // SYN alone: yes, else no
    (0x15, 0, 6, 0x60),    // version 6, else no
    (0x30, 0, 0, 6),       // next header
    (0x15, 0, 4, 6),       // TCP, else no
    (0x30, 0, 0, 53),      // flags
    (0x54, 0, 0, 0x17),    // FIN, SYN, RST, ACK
    (0x15, 0, 1, 0x02),    // SYN alone, else no
    (0x06, 0, 0, 0xffff),  // yes
    (0x06, 0, 0, 0),       // no
];

/// Why the requested machine cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody listens.
    Reset,
    /// No route to its network.
    NetworkUnreachable,
    /// No route to the machine.
    HostUnreachable,
    /// A firewall on the way does not allow it.
    Prohibited,
}

impl Refusal {
    /// Type and code of the ICMP message (RFC 792, RFC 1812 section 5.2.7.1; RFC 4443 section 3.1).
    fn icmp(self, ipv6: bool) -> Option<(u8, u8)> {
        match (self, ipv6) {
            (Refusal::Reset, _) => None,
            (Refusal::NetworkUnreachable, false) => Some((3, 0)),
            (Refusal::HostUnreachable, false) => Some((3, 1)),
            (Refusal::Prohibited, false) => Some((3, 13)),
            (Refusal::NetworkUnreachable, true) => Some((1, 0)),
            (Refusal::HostUnreachable, true) => Some((1, 3)),
            (Refusal::Prohibited, true) => Some((1, 1)),
        }
    }
}

/// A SYN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRequest {
    /// Sender of the SYN.
    pub from: SocketAddr,
    /// Destination of the SYN.
    pub to: SocketAddr,
    /// The IP packet, with correct checksums.
    packet: Vec<u8>,
    /// Offset of the TCP header in it.
    tcp: usize,
}

impl ConnectionRequest {
    /// Parses an IP packet; `None` if it is not a SYN or is malformed.
    pub fn parse(bytes: &[u8]) -> Option<ConnectionRequest> {
        let (tcp, end, protocol) = match bytes.first()? >> 4 {
            4 => {
                let header = usize::from(bytes[0] & 0xf) * 4;
                (header.max(IPV4_LEN), usize::from(be16(bytes, 2)?), *bytes.get(9)?)
            }
            6 => (IPV6_LEN, IPV6_LEN + usize::from(be16(bytes, 4)?), *bytes.get(6)?),
            _ => return None,
        };
        let packet = bytes.get(..end)?;
        let ports = packet.get(tcp..tcp + TCP_LEN)?;
        let is_syn = ports[13] & 0x17 == 0x02;
        if protocol != TCP || !is_syn {
            return None;
        }
        let (from_port, to_port) = (be16(ports, 0)?, be16(ports, 2)?);
        let (from, to) = if bytes[0] >> 4 == 4 {
            (IpAddr::from(octets::<4>(packet, 12)?), IpAddr::from(octets::<4>(packet, 16)?))
        } else {
            (IpAddr::from(octets::<16>(packet, 8)?), IpAddr::from(octets::<16>(packet, 24)?))
        };
        let (from, to) = (SocketAddr::new(from, from_port), SocketAddr::new(to, to_port));
        let mut request = ConnectionRequest { from, to, packet: packet.to_vec(), tcp };
        request.check()?;
        Some(request)
    }

    /// Completes the TCP checksum if the sender left it to its device; `None` if it is wrong.
    fn check(&mut self) -> Option<()> {
        let pseudo = pseudo_sum(self.from, self.to, TCP, self.packet.len() - self.tcp);
        if fold(pseudo + sum(&self.packet[self.tcp..])) == 0xffff {
            return Some(());
        }
        let at = self.tcp + 16;
        let left_to_device = be16(&self.packet, at)? == fold(pseudo);
        self.packet[at..at + 2].fill(0);
        let right = !fold(pseudo + sum(&self.packet[self.tcp..]));
        self.packet[at..at + 2].copy_from_slice(&right.to_be_bytes());
        left_to_device.then_some(())
    }

    /// The IP packet by which the other machine, or a router, refuses.
    pub fn refusal(&self, refusal: Refusal) -> Vec<u8> {
        match refusal.icmp(self.to.is_ipv6()) {
            None => self.reset(),
            Some((kind, code)) => self.unreachable(kind, code),
        }
    }

    /// The reset of a machine with no listener on the port: it acknowledges the SYN and its data.
    fn reset(&self) -> Vec<u8> {
        let syn = &self.packet[self.tcp..];
        let header = usize::from(syn[12] >> 4) * 4;
        let sequence = u32::from_be_bytes([syn[4], syn[5], syn[6], syn[7]]);
        let acknowledged = sequence.wrapping_add(1 + syn.len().saturating_sub(header) as u32);
        let mut tcp = Vec::with_capacity(TCP_LEN);
        tcp.extend(self.to.port().to_be_bytes());
        tcp.extend(self.from.port().to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(acknowledged.to_be_bytes());
        tcp.extend([(TCP_LEN as u8 / 4) << 4, RST_ACK, 0, 0, 0, 0, 0, 0]);
        let checksum = !fold(pseudo_sum(self.to, self.from, TCP, tcp.len()) + sum(&tcp));
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        self.answer(TCP, &tcp)
    }

    /// The ICMP message that the machine cannot be reached, with as much of the SYN as TCP needs to
    /// identify it.
    fn unreachable(&self, kind: u8, code: u8) -> Vec<u8> {
        let quoted = &self.packet[..(self.tcp + TCP_LEN).min(self.packet.len())];
        let mut icmp = vec![kind, code, 0, 0, 0, 0, 0, 0];
        icmp.extend(quoted);
        let pseudo =
            if self.to.is_ipv4() { 0 } else { pseudo_sum(self.to, self.from, ICMP6, icmp.len()) };
        let checksum = !fold(pseudo + sum(&icmp));
        icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
        self.answer(if self.to.is_ipv4() { ICMP } else { ICMP6 }, &icmp)
    }

    /// An IP packet to the sender of the SYN.
    fn answer(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(IPV6_LEN + payload.len());
        match (self.to, self.from) {
            (SocketAddr::V4(to), SocketAddr::V4(from)) => {
                packet.extend([0x45, 0]);
                packet.extend(((IPV4_LEN + payload.len()) as u16).to_be_bytes());
                packet.extend([0, 0, 0x40, 0, HOPS, protocol, 0, 0]);
                packet.extend(to.ip().octets());
                packet.extend(from.ip().octets());
                let checksum = !fold(sum(&packet));
                packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            (SocketAddr::V6(to), SocketAddr::V6(from)) => {
                packet.extend([0x60, 0, 0, 0]);
                packet.extend((payload.len() as u16).to_be_bytes());
                packet.extend([protocol, HOPS]);
                packet.extend(to.ip().octets());
                packet.extend(from.ip().octets());
            }
            _ => {}
        }
        packet.extend(payload);
        packet
    }
}

/// Receives the requests that arrive on one device.
#[derive(Debug)]
pub struct ConnectionRequests {
    seen: OwnedFd,
    ipv4: OwnedFd,
    ipv6: OwnedFd,
}

impl ConnectionRequests {
    /// Receives requests that arrive on the device with this index in `ns`, from now on. Needs
    /// power over the namespace.
    pub fn open(ns: &NetNs, index: u32) -> Result<ConnectionRequests, Refused> {
        let refused =
            |cause: io::Error| Refused::new("take connection requests in", ns.label(), cause);
        ns.run(|| {
            let raw =
                |family| socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw);
            let (ipv4, ipv6) = (raw(AddressFamily::Inet)?, raw(AddressFamily::Inet6)?);
            io::Result::Ok(ConnectionRequests { seen: packet_socket(index)?, ipv4, ipv6 })
        })?
        .map_err(refused)
    }

    /// Waits for the next request.
    pub fn receive(&self, buffer: &mut Vec<u8>) -> io::Result<ConnectionRequest> {
        buffer.resize(ROOM, 0);
        loop {
            let length = nix::sys::socket::recv(self.seen.as_raw_fd(), buffer, MsgFlags::empty())?;
            if let Some(request) =
                ConnectionRequest::parse(buffer.get(..length).unwrap_or_default())
            {
                return Ok(request);
            }
        }
    }

    /// Passes `request` to the listener, which answers it.
    pub fn pass(&self, request: &ConnectionRequest) -> io::Result<()> {
        self.send(&request.packet, request.to)
    }

    /// Answers `request` as if it had been refused.
    pub fn refuse(&self, request: &ConnectionRequest, refusal: Refusal) -> io::Result<()> {
        self.send(&request.refusal(refusal), request.from)
    }

    fn send(&self, packet: &[u8], to: SocketAddr) -> io::Result<()> {
        let socket = if to.is_ipv4() { &self.ipv4 } else { &self.ipv6 };
        // A port has no meaning for a raw socket, and IPv6 refuses one.
        let to = SockaddrStorage::from(SocketAddr::new(to.ip(), 0));
        sendto(socket.as_raw_fd(), packet, &to, MsgFlags::empty())?;
        Ok(())
    }
}

/// A socket that sees the SYNs of the device with this index.
fn packet_socket(index: u32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed. Without a protocol nothing arrives before the filter is there.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just opened and belongs to nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    let mut filter = FILTER.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let length = size_of_val(&program) as libc::socklen_t;
    // SAFETY: `program` names `filter`, both live through the call, and the kernel copies them.
    let code = unsafe {
        libc::setsockopt(
            raw,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            length,
        )
    };
    nix::errno::Errno::result(code)?;
    // SAFETY: all bits zero are an address of no family.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_ll of the length given and lives through the call.
    let code = unsafe { libc::bind(raw, (&raw const address).cast(), length) };
    nix::errno::Errno::result(code)?;
    Ok(fd)
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    octets(bytes, at).map(u16::from_be_bytes)
}

/// `N` bytes from `at` on.
fn octets<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// The sum of RFC 1071 before folding; an odd last byte counts as if a zero followed.
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
        .sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// Sum of the pseudo header (RFC 9293 section 3.1, RFC 8200 section 8.1).
fn pseudo_sum(from: SocketAddr, to: SocketAddr, protocol: u8, length: usize) -> u64 {
    let [from, to] = [from, to].map(|end| match end {
        SocketAddr::V4(v4) => sum(&v4.ip().octets()),
        SocketAddr::V6(v6) => sum(&v6.ip().octets()),
    });
    from + to + u64::from(protocol) + length as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A SYN from 10.77.0.2:40000 to 192.0.2.1:80 with sequence number 7, its checksum left to the
    /// device.
    fn syn() -> Vec<u8> {
        let mut packet =
            vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 77, 0, 2, 192, 0, 2, 1];
        packet.extend([
            0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0,
        ]);
        let (from, to) = ("10.77.0.2:40000".parse().unwrap(), "192.0.2.1:80".parse().unwrap());
        packet[36..38].copy_from_slice(&fold(pseudo_sum(from, to, TCP, 20)).to_be_bytes());
        packet
    }

    #[test]
    fn a_checksum_that_was_left_to_the_device_is_made_and_a_wrong_one_is_refused() {
        let request = ConnectionRequest::parse(&syn()).unwrap();
        assert_eq!(
            (request.from.to_string(), request.to.to_string()),
            ("10.77.0.2:40000".into(), "192.0.2.1:80".into())
        );
        // The parser has completed the checksum.
        assert_eq!(ConnectionRequest::parse(&request.packet).as_ref(), Some(&request));
        let mut wrong = request.packet;
        wrong[36] ^= 1;
        assert_eq!(ConnectionRequest::parse(&wrong), None);
    }

    #[test]
    fn a_reset_acknowledges_the_syn() {
        let reset = ConnectionRequest::parse(&syn()).unwrap().reset();
        assert_eq!(fold(sum(&reset[..20])), 0xffff, "checksum of the IP header");
        assert_eq!(&reset[12..20], [192, 0, 2, 1, 10, 77, 0, 2]);
        assert_eq!(
            (&reset[20..24], &reset[28..32], reset[33]),
            (&[0, 80, 0x9c, 0x40][..], &[0, 0, 0, 8][..], RST_ACK)
        );
    }

    #[test]
    fn an_icmp_message_quotes_the_syn() {
        let request = ConnectionRequest::parse(&syn()).unwrap();
        let message = request.unreachable(3, 1);
        assert_eq!((message[9], message[20], message[21]), (ICMP, 3, 1));
        assert_eq!(fold(sum(&message[20..])), 0xffff);
        assert_eq!(message[28..], request.packet);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_answered_without_harm(
            bytes in prop::collection::vec(any::<u8>(), 0..120),
            version in prop::sample::select(vec![0x45u8, 0x60, 0x4f]),
        ) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = version;
            }
            if let Some(request) = ConnectionRequest::parse(&bytes) {
                let _ = (request.reset(), request.unreachable(3, 1));
            }
        }

        #[test]
        fn any_flip_in_a_syn_is_read_and_answered_without_harm(at in 0usize..40, bit in 0u8..8, cut in 0usize..=40) {
            let mut bytes = syn();
            bytes[at] ^= 1 << bit;
            bytes.truncate(cut);
            if let Some(request) = ConnectionRequest::parse(&bytes) {
                let _ = (request.reset(), request.unreachable(3, 1));
            }
        }
    }
}
