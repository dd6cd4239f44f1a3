//! IP headers and tunnels written anew.

use super::Dropped;
use super::sums::{Pseudo, Sum};
use super::written::WrittenPacket;
use crate::capture::layer::{Inside, half};
use crate::capture::tunnel::Ip;
use std::net::IpAddr;
use std::ops::Range;

const TCP: u8 = 6;
const UDP: u8 = 17;
const GRE: u8 = 47;
const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;

/// Where an IP packet and its parts are.
struct Places {
    /// Where it begins.
    at: usize,
    addresses: Range<usize>,
    /// Its length by the header, or where that says nothing by the record.
    length: usize,
}

impl WrittenPacket<'_> {
    /// Writes the IP packet's header and what follows it; gives what a tunnel carries, where it is
    /// one.
    pub fn ip<'b>(&mut self, ip: &'b [u8]) -> Result<Option<Inside<'b>>, Dropped> {
        let headers = Ip::parse(ip).ok_or(Dropped::Unreadable)?;
        let places = self.ip_header(ip)?;
        let start = self.place(headers.payload);
        self.zero_until(start);
        let length = places.length.saturating_sub(start - places.at);
        if let Some(fragment) = headers.fragment {
            self.fragment = Some((self.kept, self.sums.len()));
            // Only the first one has headers that can be read; the data of all others is payload.
            if fragment.offset > 0 {
                self.payload = start;
                return Ok(None);
            }
            if headers.protocol == TCP {
                self.tcp(start, length, places.addresses, false);
                return Ok(None);
            }
        }
        if headers.protocol == TCP {
            self.tcp(start, length, places.addresses, true);
            return Ok(None);
        }
        let next = headers.inside();
        let Some(next) = next else {
            if headers.protocol == UDP && self.has_names(start) {
                self.payload = start + 8;
            }
            // A fragment is counted as one, whatever it is of; its header alone stays.
            let is_fragment = headers.fragment.is_some();
            return if is_fragment { Ok(None) } else { Err(other(headers.protocol)) };
        };
        let is_whole = headers.fragment.is_none();
        self.tunnel_header(
            headers.protocol,
            start..self.place(next.bytes()),
            length,
            &places,
            is_whole,
        );
        Ok(Some(next))
    }

    /// Whether ports of UDP are those of a protocol that tells names. What others carry may be
    /// headers of packets that stand in the capture by themselves as well.
    fn has_names(&self, udp: usize) -> bool {
        // DNS, DHCP, NetBIOS, LDAP, SSDP, mDNS, LLMNR.
        const PORTS: [u16; 9] = [53, 67, 68, 137, 138, 389, 1900, 5353, 5355];
        [0, 2].iter().any(|side| half(self.from, udp + side).is_some_and(|p| PORTS.contains(&p)))
    }

    fn ip_header(&mut self, ip: &[u8]) -> Result<Places, Dropped> {
        let at = self.place(ip);
        if ip.first().is_some_and(|first| first >> 4 == 4) {
            self.v4_header(at, ip)
        } else {
            self.v6_header(at, ip)
        }
    }

    fn v4_header(&mut self, at: usize, ip: &[u8]) -> Result<Places, Dropped> {
        let header = ip.first_chunk::<V4_HEADER>().ok_or(Dropped::Unreadable)?;
        let headers = usize::from(header[0] & 15) * 4;
        if headers < V4_HEADER || headers > ip.len() {
            return Err(Dropped::Unreadable);
        }
        self.copy(at..at + 10);
        let [source, destination] =
            [12, 16].map(|place| [0, 1, 2, 3].map(|byte| header[place + byte]));
        let pair = self.addresses.pair(source, destination);
        self.put(at + 12, pair.as_flattened());
        // Options become the end of the list, four and more times.
        self.zero_until(at + headers);
        self.sums.extend(Sum::read(self.from, at + 10, at..at + headers, None, true));
        let total = half(header, 2).map_or(0, usize::from);
        Ok(Places { at, addresses: at + 12..at + 20, length: self.length(at, total) })
    }

    fn v6_header(&mut self, at: usize, ip: &[u8]) -> Result<Places, Dropped> {
        let header = ip.first_chunk::<V6_HEADER>().ok_or(Dropped::Unreadable)?;
        // Version and class; the flow label becomes zero.
        self.put(at, &[header[0], header[1] & 0xf0]);
        self.copy(at + 4..at + 8);
        for place in [8, 24] {
            let address: [u8; 16] = std::array::from_fn(|byte| header[place + byte]);
            if let IpAddr::V6(replaced) = self.addresses.ip(address.into()) {
                self.put(at + place, &replaced.octets());
            }
        }
        let (mut protocol, mut next) = (header[6], V6_HEADER);
        while let Some([following, length, ..]) = ip.get(next..next + 8) {
            let length = match protocol {
                // Options become as many times one byte of padding, a route one that has ended.
                0 | 43 | 60 | 135 => {
                    self.copy(at + next..at + next + 2);
                    (usize::from(*length) + 1) * 8
                }
                51 => {
                    self.copy(at + next..at + next + 2);
                    (usize::from(*length) + 2) * 4
                }
                44 => {
                    self.copy(at + next..at + next + 8);
                    8
                }
                _ => break,
            };
            (protocol, next) = (*following, next + length);
        }
        let payload = half(header, 4).map_or(0, usize::from);
        let total = if payload == 0 { 0 } else { payload + V6_HEADER };
        Ok(Places { at, addresses: at + 8..at + 40, length: self.length(at, total) })
    }

    /// What the packet had on the wire: with segmentation offload the header says 0.
    fn length(&self, at: usize, total: usize) -> usize {
        let most = self.original_length.saturating_sub(at);
        if total == 0 { most } else { total.min(most) }
    }

    /// Writes the header of a tunnel, which is at `range`, in a packet whose payload has `length`
    /// bytes.
    fn tunnel_header(
        &mut self,
        protocol: u8,
        range: Range<usize>,
        length: usize,
        places: &Places,
        is_whole: bool,
    ) {
        let end = range.start + length;
        let is_whole = is_whole && end <= self.from.len();
        let covered = range.start..end.min(self.from.len());
        match protocol {
            UDP => {
                let pseudo = Pseudo { addresses: places.addresses.clone(), protocol: UDP, length };
                let sum = Sum::read(self.from, range.start + 6, covered, Some(pseudo), is_whole);
                self.sums.extend(sum.map(|sum| sum.may_be_absent(self.from)));
                self.udp_tunnel(range);
            }
            GRE => self.gre(range, covered, is_whole),
            // Nothing stands between.
            _ => {}
        }
    }

    /// Tunnels over UDP. The source port is drawn from what is inside, so the destination's stands
    /// in for it; numbers of networks and of tunnels, and options, become zeroes.
    fn udp_tunnel(&mut self, range: Range<usize>) {
        let (at, inner) = (range.start, range.start + 8);
        let port = half(self.from, at + 2).unwrap_or_default();
        self.put(at, &port.to_be_bytes());
        self.copy(at + 2..at + 6);
        match port {
            // VXLAN: flags, and with GPE what follows.
            4789 | 8472 => self.copy(inner..inner + 1),
            4790 => {
                self.copy(inner..inner + 1);
                self.copy(inner + 3..inner + 4);
            }
            // Geneve: version, length of the options, flags, Ethertype. Options of class, type and
            // length zero have four bytes each.
            6081 => self.copy(inner..inner + 4),
            2152 => self.gtp_u(inner, range.end),
            _ => {}
        }
        self.zero_until(range.end);
    }

    /// GTP-U: flags, kind and length; of extensions their lengths and kinds.
    fn gtp_u(&mut self, at: usize, end: usize) {
        self.copy(at..at + 4);
        let has_extension = self.from.get(at).is_some_and(|flags| flags & 4 != 0);
        if !has_extension {
            return;
        }
        self.copy(at + 11..at + 12);
        let mut extension = at + 12;
        while extension < end {
            let length = self.from.get(extension).map_or(0, |units| usize::from(*units) * 4);
            if length == 0 {
                return;
            }
            self.copy(extension..extension + 1);
            self.copy(extension + length - 1..extension + length);
            extension += length;
        }
    }

    /// GRE: flags, what follows, a checksum, sequence numbers; the key or call becomes zero. Of
    /// ERSPAN's header the version, and whether it has a second part.
    fn gre(&mut self, range: Range<usize>, covered: Range<usize>, is_whole: bool) {
        let at = range.start;
        let (flags, protocol) = (half(self.from, at), half(self.from, at + 2));
        let (flags, protocol) = (flags.unwrap_or_default(), protocol.unwrap_or_default());
        self.copy(at..at + 4);
        if flags & 7 == 1 {
            // PPTP: length, call, sequence, acknowledgement.
            self.copy(at + 4..at + 6);
            self.copy(at + 8..range.end);
            return;
        }
        let has_sum = flags & 0x8000 != 0;
        let mut next = at + 4 + if flags & 0xc000 != 0 { 4 } else { 0 };
        if has_sum {
            self.sums.extend(Sum::read(self.from, at + 4, covered, None, is_whole));
        }
        next += if flags & 0x2000 != 0 { 4 } else { 0 };
        if flags & 0x1000 != 0 {
            self.copy(next..next + 4);
            next += 4;
        }
        if matches!(protocol, 0x88be | 0x22eb) && next < range.end {
            let version = self.from.get(next).map_or(0, |byte| byte & 0xf0);
            self.put(next, &[version]);
            if protocol == 0x22eb {
                let has_more = self.from.get(next + 11).map_or(0, |byte| byte & 1);
                self.put(next + 11, &[has_more]);
            }
        }
        self.zero_until(range.end);
    }
}

/// What a packet is that carries no TCP.
fn other(protocol: u8) -> Dropped {
    match protocol {
        UDP => Dropped::Udp,
        1 | 58 => Dropped::Icmp,
        _ => Dropped::OtherProtocol,
    }
}
