//! A packet's bytes written anew: only what is known to be safe is copied, everything else is zero.

use super::addresses::AddressMap;
use super::ports::PortMap;
use super::sums::Sum;
use crate::capture::LinkType;
use crate::capture::layer::{Inside, word};
use std::ops::Range;

/// The bytes before, the bytes after, and how far those are kept.
#[derive(Debug)]
pub(super) struct WrittenPacket<'a> {
    pub from: &'a [u8],
    pub out: &'a mut [u8],
    /// Whether payloads stay, as zeroes.
    pub keeps_payload: bool,
    /// Where in `out` the last byte that is not zero may end.
    pub kept: usize,
    pub addresses: &'a mut AddressMap,
    pub ports: Option<&'a PortMap>,
    /// Checksums over what is written, the outermost first.
    pub sums: &'a mut Vec<Sum>,
    /// What the packet had on the wire.
    pub original_length: usize,
    /// Where what is removed begins: the data above TCP or UDP.
    pub payload: usize,
    /// Where the headers of a fragment end, and how many checksums they have: they stay, whatever
    /// the fragment has inside.
    pub fragment: Option<(usize, usize)>,
}

/// A card's address.
const MAC: usize = 6;

impl WrittenPacket<'_> {
    /// Where a part of the packet begins.
    pub fn place(&self, part: &[u8]) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.from.as_ptr() as usize).min(self.from.len())
    }

    /// Keeps the bytes as they are, as far as they were captured.
    pub fn copy(&mut self, range: Range<usize>) {
        let end = range.end.min(self.from.len());
        let start = range.start.min(end);
        self.out[start..end].copy_from_slice(&self.from[start..end]);
        self.kept = self.kept.max(end);
    }

    /// Writes bytes, as far as the packet was captured.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        let end = (at + bytes.len()).min(self.from.len());
        let start = at.min(end);
        self.out[start..end].copy_from_slice(&bytes[..end - start]);
        self.kept = self.kept.max(end);
    }

    /// Leaves zeroes up to here.
    pub fn zero_until(&mut self, end: usize) {
        self.kept = self.kept.max(end.min(self.from.len()));
    }

    /// Replaces a card's address.
    pub fn mac(&mut self, at: usize) {
        if let Some(address) = self.from.get(at..).and_then(|rest| rest.first_chunk::<MAC>()) {
            let replaced = self.addresses.mac(*address);
            self.put(at, &replaced);
        }
    }

    /// Writes the header that the link type puts before what is inside, which begins at `inside`.
    pub fn link_header(&mut self, link: LinkType, at: usize, inside: usize) {
        match link {
            // What they have is what `Inside` names, and is written there; two bytes or four say
            // what follows, or nothing does.
            LinkType::NULL | LinkType::LOOP | LinkType::C_HDLC => self.copy(at..inside),
            // Kind of packet, kind of card, length of its address, the address, an Ethertype.
            LinkType::LINUX_SLL => {
                self.copy(at..at + 6);
                if self.from.get(at + 4..at + 6) == Some(&[0, 6]) {
                    self.mac(at + 6);
                }
                self.copy(at + 14..inside);
            }
            // An Ethertype, the interface's number, kind of card and packet, length, address.
            LinkType::LINUX_SLL2 => {
                self.copy(at..at + 2);
                self.copy(at + 8..at + 12);
                if self.from.get(at + 11) == Some(&6) {
                    self.mac(at + 12);
                }
                self.zero_until(inside);
            }
            // Frame control and two addresses.
            LinkType::FDDI => {
                self.copy(at..at + 1);
                self.mac(at + 1);
                self.mac(at + 7);
            }
            // The length alone: no field is said to be there.
            LinkType::IEEE802_11_RADIOTAP => {
                self.copy(at + 2..at + 4);
                self.zero_until(inside);
            }
            LinkType::IPOIB => self.copy(at + 40..inside),
            LinkType::JUNIPER_ETHER => {
                self.copy(at..at + 4);
                if self.from.get(at + 3).is_some_and(|flags| flags & 0x80 != 0) {
                    self.copy(at + 4..at + 6);
                }
                self.zero_until(inside);
            }
            LinkType::NFLOG => self.nflog(at, inside),
            LinkType::PKTAP => {
                self.copy(at..at + 4);
                self.copy(at + 8..at + 12);
                self.zero_until(inside);
                let (Some(length), Some(inner)) =
                    (word(self.from, at), word(self.from, at + 8).map(u32::swap_bytes))
                else {
                    return;
                };
                let inner = LinkType(u16::try_from(inner).unwrap_or(u16::MAX));
                if inner != LinkType::PKTAP {
                    self.link_header(inner, at + length.swap_bytes() as usize, inside);
                }
            }
            // A preamble, or nothing.
            _ => self.zero_until(inside),
        }
    }

    /// Family and version, and of each attribute length and type. The packet is an attribute, too,
    /// and is read only where all of it is there: it is filled up with zeroes.
    fn nflog(&mut self, at: usize, inside: usize) {
        self.copy(at..at + 2);
        let mut attribute = at + 4;
        while attribute + 4 <= inside {
            self.copy(attribute..attribute + 4);
            let length =
                usize::from(u16::from_le_bytes([self.from[attribute], self.from[attribute + 1]]));
            attribute += length.max(4).next_multiple_of(4);
        }
        self.zero_until(self.from.len());
    }

    /// Writes a header that begins with `header` and ends where `next` begins.
    pub fn header(&mut self, header: Inside<'_>, next: Inside<'_>) {
        let (at, end) = (self.place(header.bytes()), self.place(next.bytes()));
        match header {
            Inside::Ip(_) => {}
            Inside::Ethernet(_) => {
                self.mac(at);
                self.mac(at + MAC);
                self.copy(at + 2 * MAC..end);
            }
            Inside::EtherType(ethertype, _) => match ethertype {
                // Tags of VLANs.
                0x8100 | 0x88a8 | 0x9100 | 0x9200 => self.copy(at..end),
                // VN-Tag: the Ethertype alone.
                0x8926 => self.copy(at + 4..end),
                // PPPoE: all but the session.
                0x8864 => {
                    self.copy(at..at + 2);
                    self.copy(at + 4..end);
                }
                // FabricPath's tag, a service's tag, or nothing.
                _ => self.zero_until(end),
            },
            Inside::Llc(_) | Inside::Ppp(_) => self.copy(at..end),
            Inside::Mpls(_) => self.labels(at, end),
            Inside::Wlan(_) => self.wlan(at, end),
        }
    }

    /// MPLS: a label becomes the first that is not reserved; its class, the end of the stack and
    /// the hops that are left stay. A control word stays zero.
    fn labels(&mut self, at: usize, end: usize) {
        const FIRST_FREE: u8 = 16;
        let mut entry = at;
        while let Some([a, b, c, hops]) = self.from.get(entry..entry + 4) {
            let label = u32::from(*a) << 12 | u32::from(*b) << 4 | u32::from(*c >> 4);
            let (high, low) = match label {
                // The reserved ones say how to go on (RFC 3032 section 2.1).
                reserved @ ..16 => (0, (reserved as u8) << 4),
                _ => (FIRST_FREE >> 4, FIRST_FREE << 4),
            };
            let is_last = c & 1 == 1;
            let written = [0, high, low | c & 15, *hops];
            self.put(entry, &written);
            entry += 4;
            if is_last || entry >= end {
                break;
            }
        }
        self.zero_until(end);
    }

    /// IEEE 802.11: control, duration, three or four addresses, and between them a number; then
    /// quality of service, and a field that stays zero.
    fn wlan(&mut self, at: usize, end: usize) {
        const QOS: u8 = 0x80;
        let Some([kind, flags]) = self.from.get(at..at + 2) else { return };
        let (has_qos, has_four) = (kind & QOS != 0, flags & 3 == 3);
        self.copy(at..at + 4);
        for address in [4, 10, 16] {
            self.mac(at + address);
        }
        self.copy(at + 22..at + 24);
        if has_four {
            self.mac(at + 24);
        }
        let behind = at + if has_four { 30 } else { 24 };
        if has_qos {
            self.copy(behind..behind + 2);
        }
        self.zero_until(end);
    }
}
