//! A capture that may be shared, and still gives the same answer.
//!
//! An [`Anonymizer`] takes a capture's packets one after another and writes each anew. It is not
//! told what to remove: it begins with zeroes, and copies the fields that the analysis rests on and
//! that say nothing of who speaks of what. IP and link addresses are replaced under a [`Key`]
//! ([`AddressMap`]), payloads become a few words that say which protocol it is, checksums
//! stay right or wrong. A packet that carries no TCP, or that cannot be read, is dropped
//! and counted; an empty record stays in its place, so that the packets behind it keep their
//! numbers, and the capture its length in time.
//!
//! ```
//! use fullpipe_flow::capture::anonymize::{Anonymizer, Key, AnonymizeOptions};
//! use fullpipe_flow::capture::{LinkType, Packet};
//! use fullpipe_model::units::Instant;
//! let mut anonymizer = Anonymizer::new(&Key([1; 32]), AnonymizeOptions::default());
//! # let ip = [0x45, 0, 0, 44, 0, 0, 0, 0, 64, 6, 0, 0, 203, 0, 113, 1, 203, 0, 113, 2];
//! # let tcp = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
//! # let data = [&ip[..], &tcp, b"name"].concat();
//! let at = Instant::from_nanos(1);
//! let packet = Packet { at, link_type: LinkType::RAW, data: &data, original_length: 44 };
//! let shared = anonymizer.packet(&packet);
//! assert_eq!((shared.data.len(), shared.original_length), (40, 44));
//! assert!(shared.data[12..20] != data[12..20], "other addresses");
//! ```

mod addresses;
mod file;
mod ip;
mod marks;
mod ports;
mod sums;
mod tcp;
mod words;
mod written;

pub use addresses::{AddressMap, Key};
pub use file::SharedFile;
pub use marks::{Find, FindKind, InputMarks, Search};

use super::layer::{Inside, MAX_HEADERS, behind};
use super::link::inside_link;
use super::opener::MAX_TUNNELS;
use super::{LinkType, Packet};
use fullpipe_model::units::{Duration, Instant};
use ports::PortMap;
use strum::{EnumCount, EnumIter, IntoEnumIterator, IntoStaticStr};
use sums::Sum;
use written::WrittenPacket;

/// What is done to a capture beside what always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnonymizeOptions {
    /// Ports are replaced, too, but for those that say which protocol or which end it is.
    pub ports: bool,
    /// All times are moved by a number of seconds that the key decides.
    pub shift_time: bool,
    /// Payloads stay as zeroes; otherwise packets end where their headers do, as with a snap
    /// length.
    pub zeroes: bool,
}

/// Why a packet is not in the output.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, EnumIter, EnumCount, IntoStaticStr, serde::Serialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Dropped {
    /// ARP.
    Arp,
    /// UDP that is no tunnel: names, calls, QUIC.
    Udp,
    /// ICMP of either version, which quotes other packets.
    Icmp,
    /// Another protocol over IP.
    OtherProtocol,
    /// No IP inside, or encrypted.
    NotIp,
    /// A link type whose headers are not known.
    UnknownLink,
    /// An IP header that contradicts itself or was cut.
    Unreadable,
}

impl Dropped {
    /// All reasons.
    pub fn all() -> impl Iterator<Item = Dropped> {
        Dropped::iter()
    }

    /// The stable name in results.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What became of a capture's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnonymizedCounts {
    /// All that came.
    pub packets: u64,
    dropped: [u64; Dropped::COUNT],
}

impl AnonymizedCounts {
    /// How many were dropped for this reason.
    pub fn dropped(&self, why: Dropped) -> u64 {
        self.dropped[why as usize]
    }

    /// How many were dropped in all.
    pub fn all_dropped(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

/// A packet as it may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPacket<'a> {
    /// When it was captured, perhaps moved.
    pub at: Instant,
    /// Its bytes; none where it was dropped.
    pub data: &'a [u8],
    /// Bytes that it had on the wire; 0 where it was dropped.
    pub original_length: usize,
    /// Why it was dropped, if it was.
    pub dropped: Option<Dropped>,
    /// Where in the packet before the data above TCP or UDP begins, which is not in this one.
    pub payload: usize,
}

/// Writes packets anew. The order of the capture's packets does not matter.
#[derive(Debug)]
pub struct Anonymizer {
    addresses: AddressMap,
    ports: Option<PortMap>,
    shift: Duration,
    zeroes: bool,
    /// The packet, and zeroes behind `written`.
    out: Vec<u8>,
    written: usize,
    sums: Vec<Sum>,
    counts: AnonymizedCounts,
}

/// Among the numbers that a key decides, how far times move.
const SHIFT: u64 = 1;
/// Seconds of sixteen years: times stay within what every format can say.
const SHIFT_MAX: u64 = 1 << 29;

impl Anonymizer {
    /// One under this key.
    pub fn new(key: &Key, options: AnonymizeOptions) -> Anonymizer {
        let addresses = AddressMap::new(key);
        let ports = options.ports.then(|| PortMap::new(&addresses));
        let seconds = addresses.number(SHIFT) % SHIFT_MAX;
        let shift = if options.shift_time { Duration::from_secs(seconds) } else { Duration::ZERO };
        let (zeroes, counts) = (options.zeroes, AnonymizedCounts::default());
        let (out, written, sums) = (Vec::new(), 0, Vec::new());
        Anonymizer { addresses, ports, shift, zeroes, out, written, sums, counts }
    }

    /// The packet as it may be shared.
    pub fn packet(&mut self, packet: &Packet<'_>) -> SharedPacket<'_> {
        self.counts.packets += 1;
        let at = packet.at + self.shift;
        // What is behind the last packet's end is zero already.
        self.out[..self.written].fill(0);
        if self.out.len() < packet.data.len() {
            self.out.resize(packet.data.len(), 0);
        }
        self.sums.clear();
        let mut frame = WrittenPacket {
            keeps_payload: self.zeroes,
            from: packet.data,
            out: &mut self.out[..packet.data.len()],
            kept: 0,
            addresses: &mut self.addresses,
            ports: self.ports.as_ref(),
            sums: &mut self.sums,
            original_length: packet.original_length,
            payload: packet.data.len(),
            fragment: None,
        };
        let written = frame.write(packet.link_type);
        let (payload, kept) = (frame.payload.min(packet.data.len()), frame.kept);
        self.written = kept;
        match written {
            Ok(()) => {
                let end = if self.zeroes { packet.data.len() } else { kept };
                let original_length = packet.original_length;
                SharedPacket { at, data: &self.out[..end], original_length, dropped: None, payload }
            }
            Err(why) => {
                self.counts.dropped[why as usize] += 1;
                SharedPacket { at, data: &[], original_length: 0, dropped: Some(why), payload }
            }
        }
    }

    /// Another one that replaces in the same way, and has seen nothing.
    pub fn another(&self) -> Anonymizer {
        Anonymizer {
            addresses: self.addresses.another(),
            ports: self.ports.clone(),
            shift: self.shift,
            zeroes: self.zeroes,
            out: Vec::new(),
            written: 0,
            sums: Vec::new(),
            counts: AnonymizedCounts::default(),
        }
    }

    /// How far times are moved.
    pub fn shift(&self) -> Duration {
        self.shift
    }

    /// What became of the packets so far.
    pub fn counts(&self) -> AnonymizedCounts {
        self.counts
    }

    /// The addresses that were replaced.
    pub fn addresses(&mut self) -> &mut AddressMap {
        &mut self.addresses
    }

    /// What a port becomes.
    pub fn port(&self, port: u16) -> u16 {
        self.ports.as_ref().map_or(port, |ports| ports.port(port))
    }
}

impl WrittenPacket<'_> {
    /// Writes the packet from its link's header on.
    fn write(&mut self, link: LinkType) -> Result<(), Dropped> {
        let from = self.from;
        let inside = inside_link(link, from).ok_or(Dropped::UnknownLink)?;
        self.link_header(link, 0, self.place(inside.bytes()));
        if let Err(why) = self.packets(inside) {
            let (end, sums) = self.fragment.ok_or(why)?;
            self.out[end..].fill(0);
            self.kept = end;
            self.sums.truncate(sums);
        }
        // What is inside is written before what covers it.
        let written = &mut self.out[..self.kept];
        self.sums.iter().rev().for_each(|sum| sum.write(written));
        Ok(())
    }

    /// Writes one IP packet inside the other.
    fn packets(&mut self, mut inside: Inside<'_>) -> Result<(), Dropped> {
        for _ in 0..MAX_TUNNELS {
            let ip = self.headers(inside)?;
            let Some(next) = self.ip(ip)? else { return Ok(()) };
            inside = next;
        }
        // What is deeper is not read.
        Err(Dropped::OtherProtocol)
    }

    /// Writes the headers up to an IP packet, and gives that.
    fn headers<'b>(&mut self, mut inside: Inside<'b>) -> Result<&'b [u8], Dropped> {
        const ARP: u16 = 0x0806;
        for _ in 0..MAX_HEADERS {
            if let Inside::Ip(ip) = inside {
                let is_ip = ip.first().is_some_and(|first| matches!(first >> 4, 4 | 6));
                return if is_ip { Ok(ip) } else { Err(Dropped::NotIp) };
            }
            let next = behind(inside).ok_or(match inside {
                Inside::EtherType(ARP, _) => Dropped::Arp,
                _ => Dropped::NotIp,
            })?;
            self.header(inside, next);
            inside = next;
        }
        Err(Dropped::NotIp)
    }
}

#[cfg(test)]
mod tests;
