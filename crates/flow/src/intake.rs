//! The half of an analysis that needs no knowledge of connections: reads each packet's link
//! headers, tunnels and TCP header, and counts what is not TCP.
//!
//! [`crate::Analyzer`] has an intake of its own. With several threads, one at a time drives an
//! intake. It passes each result to the analyzer that its `shard` names, and each tick to all
//! analyzers, in the capture's order: first [`Intake::tick`], then [`Intake::sort`], which leaves
//! plain headers to the analyzer's thread. So every packet is framed and read once, and the result
//! is the same as with one thread.

mod expected;
mod followed;
mod host_pairs;

use crate::capture::greeting::WORDS_MOST;
use crate::capture::segment::{Flags, FlowKey, Parsed, PayloadStart, Segment, SequenceNumber};
use crate::capture::{LinkType, Opened, Opener, Packet, half, word};
use crate::config::{Config, Counts};
use crate::connection::Labels;
use crate::connection::filter::Filter;
use expected::{Expected, Saying};
use followed::Followed;
use fullpipe_model::units::{Duration, Instant};
pub use host_pairs::HostPairSum;
use host_pairs::HostPairs;
use std::net::Ipv4Addr;

/// A TCP segment with its place in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it was captured.
    pub at: Instant,
    /// Number of its packet, from 1.
    pub number: u64,
    /// Bytes of the packet on the wire, link header included.
    pub wire: usize,
    /// What its host had sent to the other, in all of their connections, with its own payload;
    /// nothing where it has none.
    pub carried: HostPairSum,
    /// The segment.
    pub segment: Segment,
}

impl Arrival {
    /// The number of the analyzer, out of `count`, that its connection belongs to; the same for
    /// both directions.
    pub fn shard(&self, count: usize) -> usize {
        FlowKey::of(&self.segment).0.shard(count)
    }
}

/// The headers of a packet whose connection is known and whose TCP header is whole;
/// [`Headers::read`] reads them.
///
/// It is compact, because one thread passes it to another: some 80 bytes a packet with
/// [`Headers::bytes`]. Only of a segment with an end's first words the payload belongs to it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    at: Instant,
    number: u64,
    carried: HostPairSum,
    wire: u32,
    /// Length of the link's header, and of the captured part of the IP and TCP headers, with that
    /// of the words behind them.
    link: u8,
    kept: u16,
}

/// The headers of a packet that is [`Sorted::Headers`]: IPv4 without options.
const IP_HEADER: usize = 20;

impl Headers {
    /// How many bytes of headers belong to it.
    pub fn bytes(&self) -> usize {
        self.kept.into()
    }

    /// The segment, and the words in it, from the bytes that came with it; `None` if they are
    /// others.
    #[inline]
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Option<(Arrival, &'a [u8])> {
        let wire = self.wire as usize;
        let segment = Segment::from_plain_ipv4(bytes, wire.saturating_sub(self.link.into()))?;
        let words = bytes.get(header_end(bytes)..).unwrap_or_default();
        let Headers { at, number, carried, .. } = *self;
        Some((Arrival { at, number, wire, carried, segment }, words))
    }
}

/// What [`Intake::sort`] makes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorted<'a> {
    /// Its connection's analyzer is to read it: the headers with their bytes, and the connection.
    Headers(Headers, &'a [u8], FlowKey),
    /// It is read already, because that was necessary to find its connection; with the words in
    /// it.
    Segment(Arrival, &'a [u8]),
}

impl Sorted<'_> {
    /// The number of the analyzer, out of `count`, that its connection belongs to; the same for
    /// both directions.
    pub fn shard(&self, count: usize) -> usize {
        match self {
            Sorted::Headers(_, _, key) => key.shard(count),
            Sorted::Segment(arrival, _) => arrival.shard(count),
        }
    }
}

/// From packets to TCP segments.
#[derive(Debug)]
pub struct Intake {
    opener: Opener,
    labels: Labels,
    filter: Option<Filter>,
    clock: PacketClock,
    counts: Counts,
    /// Words that go on in later segments.
    expected: Expected,
    /// Connections whose segments are passed on with all of their payload.
    followed: Followed,
    pairs: HostPairs,
}

impl Intake {
    /// An intake that has seen nothing.
    pub fn new(config: &Config) -> Self {
        Intake {
            opener: Opener::new(config.layer),
            labels: config.labels,
            filter: config.filter.clone(),
            clock: PacketClock::default(),
            counts: Counts::default(),
            expected: Expected::default(),
            followed: Followed::new(config),
            pairs: HostPairs::default(),
        }
    }

    /// Learns secrets of TLS connections, before their packets
    /// ([`Analyzer::learn`](crate::Analyzer::learn)).
    pub fn learn(&mut self, log: &[u8]) {
        self.followed.learn(log);
    }

    /// Moves the capture's clock to the next packet. If this returns a time, call
    /// [`retire`](crate::Analyzer::retire) before that packet.
    pub fn tick(&mut self, at: Instant) -> Option<Instant> {
        self.clock.tick(at)
    }

    /// The time of the packet before.
    pub fn now(&self) -> Instant {
        self.clock.before
    }

    /// Reads the next packet only as far as necessary to know its connection, if it is TCP and
    /// passes [`Config::filter`]. [`Headers::read`] completes that to what [`open`](Intake::open)
    /// returns.
    #[inline]
    pub fn sort<'a>(&mut self, packet: &Packet<'a>) -> Option<Sorted<'a>> {
        let plain = if self.filter.is_none() { plain_headers(packet) } else { None };
        let Some((link, ip, key)) = plain else {
            return self.open(packet).map(|(arrival, words)| Sorted::Segment(arrival, words));
        };
        let bytes = self.with_words(ip, key);
        self.counts.packets += 1;
        let wire = u32::try_from(packet.original_length).unwrap_or(u32::MAX);
        let headers = Headers {
            at: packet.at,
            number: self.counts.packets,
            carried: self.carried_by_plain(
                packet.at,
                ip,
                packet.original_length.saturating_sub(link.into()),
            ),
            wire,
            link,
            kept: bytes.len() as u16,
        };
        Some(Sorted::Headers(headers, bytes, key))
    }

    /// The headers of a plain packet, with the words behind them, if there are any.
    #[inline]
    fn with_words<'a>(&mut self, ip: &'a [u8], key: FlowKey) -> &'a [u8] {
        let end = header_end(ip);
        let (headers, payload) = ip.split_at(end.min(ip.len()));
        if self.followed.is_one(key, ip.get(IP_HEADER + 13).map_or(Flags(0), |flags| Flags(*flags)))
        {
            return ip;
        }
        if payload.is_empty() || is_header_broken(ip) {
            return headers;
        }
        let start = PayloadStart::of(payload);
        if !self.expected.may_be_words(start) {
            return headers;
        }
        let total = half(ip, 2).map_or(end, usize::from);
        let wire = total.saturating_sub(end) as u32;
        let control = ip.get(33).map_or(0, |flags| {
            u32::from(Flags(*flags).any(Flags::SYN)) + u32::from(Flags(*flags).any(Flags::FIN))
        });
        let seq = SequenceNumber(word(ip, 24).unwrap_or_default());
        if self.followed.begins(key, start, payload) {
            return ip;
        }
        let payload = &payload[..payload.len().min(WORDS_MOST)];
        let saying = Saying { start, seq, end: seq + wire.wrapping_add(control), payload };
        let kept = if self.expected.are_words(saying) { payload.len() } else { 0 };
        &ip[..end + kept]
    }

    /// The TCP segment of the next packet, if it contains one that passes [`Config::filter`], and
    /// the words in it: what of its payload may be the first that an end says.
    pub fn open<'a>(&mut self, packet: &Packet<'a>) -> Option<(Arrival, &'a [u8])> {
        let Packet { at, link_type, data, original_length: wire } = *packet;
        self.counts.packets += 1;
        let number = self.counts.packets;
        if self.filter.is_none()
            && let Some((before, ip)) = plain_tcp(link_type, data)
            && let Some(segment) = Segment::from_plain_ipv4(ip, wire.saturating_sub(before.into()))
        {
            let words = self.words(&segment, ip);
            let carried = self.carried(at, &segment);
            return Some((Arrival { at, number, wire, carried, segment }, words));
        }
        let (parsed, ip) = self.parse(link_type, data, wire);
        let segment = match parsed {
            Parsed::Tcp(segment) => segment,
            other => {
                let count = match other {
                    Parsed::Fragment => &mut self.counts.fragments,
                    Parsed::Cut => &mut self.counts.cut,
                    _ => &mut self.counts.not_tcp,
                };
                *count += 1;
                return None;
            }
        };
        // What a filter leaves out takes its part of the path all the same.
        let carried = self.carried(at, &segment);
        if self
            .filter
            .as_ref()
            .is_some_and(|filter| !filter.matches(segment.source, segment.destination))
        {
            self.counts.filtered += 1;
            return None;
        }
        let words = self.words(&segment, ip);
        Some((Arrival { at, number, wire, carried, segment }, words))
    }

    /// Adds a segment to what passed between its hosts, and says how much that is.
    fn carried(&mut self, at: Instant, segment: &Segment) -> HostPairSum {
        match segment.payload_len() {
            0 => HostPairSum::default(),
            _ if segment.is_broken => HostPairSum::default(),
            payload => self.pairs.add(at, (segment.source.ip(), segment.destination.ip()), payload),
        }
    }

    /// The same for the headers of a plain packet, which had `wire` bytes behind the link's header.
    #[inline]
    fn carried_by_plain(&mut self, at: Instant, ip: &[u8], wire: usize) -> HostPairSum {
        let total = half(ip, 2).map_or(0, usize::from).min(wire);
        let payload = total.saturating_sub(header_end(ip)) as u32;
        let [source, destination] = [12, 16].map(|at| word(ip, at).unwrap_or_default());
        match payload {
            0 => HostPairSum::default(),
            _ if is_header_broken(ip) => HostPairSum::default(),
            _ => self.pairs.add(
                at,
                (Ipv4Addr::from_bits(source).into(), Ipv4Addr::from_bits(destination).into()),
                payload,
            ),
        }
    }

    /// The words in a segment that was read from this IP packet.
    #[inline]
    fn words<'a>(&mut self, segment: &Segment, ip: &'a [u8]) -> &'a [u8] {
        if self.follows(segment, ip) {
            return Segment::payload_in(ip, usize::MAX);
        }
        let start = segment.payload_start;
        if !self.expected.may_be_words(start) || segment.is_broken {
            return &[];
        }
        let payload = Segment::payload_in(ip, WORDS_MOST);
        let saying = Saying { start, seq: segment.seq, end: segment.end(), payload };
        if !payload.is_empty() && self.expected.are_words(saying) { payload } else { &[] }
    }

    /// Whether all of a segment's payload is wanted, which was read from this IP packet.
    #[inline]
    fn follows(&mut self, segment: &Segment, ip: &[u8]) -> bool {
        let may_begin = self.followed.may_begin(segment.payload_start);
        if segment.is_broken || !(may_begin || self.followed.any()) {
            return false;
        }
        let (key, _) = FlowKey::of(segment);
        self.followed.is_one(key, segment.flags)
            || may_begin
                && self.followed.begins(
                    key,
                    segment.payload_start,
                    Segment::payload_in(ip, WORDS_MOST),
                )
    }

    /// What was counted.
    pub fn finish(self) -> Counts {
        self.counts
    }

    /// Reads a packet. The IP packet beside what is read is empty where it is not in the data: its
    /// fragments were put together.
    fn parse<'a>(&mut self, link: LinkType, data: &'a [u8], wire: usize) -> (Parsed, &'a [u8]) {
        if let Some((_, ip)) = plain_tcp(link, data) {
            return (Segment::from_ip(ip, wire.saturating_sub(data.len() - ip.len())), ip);
        }
        self.parse_any(link, data, wire)
    }

    #[cold]
    fn parse_any<'a>(&mut self, link: LinkType, data: &'a [u8], wire: usize) -> (Parsed, &'a [u8]) {
        match self.opener.open(link, data) {
            Opened::Ip(ip) => {
                let fcs = if self.labels == Labels::Wireshark {
                    trailer_by_wireshark(link, data)
                } else {
                    0
                };
                let parsed =
                    Segment::from_ip(ip, length_behind_link(data, ip, wire).saturating_sub(fcs));
                let start = (ip.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
                let within = data.get(start..start.saturating_add(ip.len()));
                (parsed, within.unwrap_or_default())
            }
            Opened::Fragment => (Parsed::Fragment, &[]),
            Opened::Other => (Parsed::Other, &[]),
        }
    }
}

/// When to look for connections that are finished. The capture's time decides, not their own
/// packets, so it does not matter which connections an analyzer has.
#[derive(Debug)]
struct PacketClock {
    /// The time of the packet before.
    before: Instant,
    ticked: Instant,
}

impl Default for PacketClock {
    fn default() -> Self {
        PacketClock { before: Instant::ZERO, ticked: Instant::ZERO }
    }
}

/// Captured time between two ticks: short compared with every timeout, long compared with a packet.
const TICK: Duration = Duration::from_millis(10);

impl PacketClock {
    fn tick(&mut self, at: Instant) -> Option<Instant> {
        // A clock that jumps for a single packet must not end anything.
        let now = at.min(std::mem::replace(&mut self.before, at));
        let has_moved = now.since(self.ticked) >= TICK || self.ticked.since(now) >= TICK;
        has_moved.then(|| {
            self.ticked = now;
            now
        })
    }
}

/// Bytes at a frame's end that Wireshark takes for a checksum: always after FabricPath's tag, even
/// if there is none. A packet without options or data then ends inside its TCP header.
fn trailer_by_wireshark(link: LinkType, data: &[u8]) -> usize {
    let is_fabric_path = link == LinkType::ETHERNET && data.get(12..14) == Some(&[0x89, 0x03]);
    if is_fabric_path { 4 } else { 0 }
}

/// The IP packet behind a plain Ethernet header or none, if it is TCP over IPv4 without options, in
/// one piece: nearly every packet is, and needs no opener. The first value is the length of the
/// link's header.
#[inline]
fn plain_tcp(link: LinkType, data: &[u8]) -> Option<(u8, &[u8])> {
    const TCP: u8 = 6;
    let (before, ip) = match link {
        LinkType::ETHERNET => {
            let (ethernet, ip) = data.split_first_chunk::<14>()?;
            (ethernet[12..] == [8, 0]).then_some((14, ip))?
        }
        LinkType::RAW => (0, data),
        _ => return None,
    };
    let header = ip.first_chunk::<20>()?;
    let fragmented = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    (header[0] == 0x45 && header[9] == TCP && !fragmented).then_some((before, ip))
}

/// The headers of a packet that is plain and complete up to the numbers in its TCP header, with the
/// length of the link's header before them, and the connection that they name.
#[inline]
fn plain_headers<'a>(packet: &Packet<'a>) -> Option<(u8, &'a [u8], FlowKey)> {
    let (before, ip) = plain_tcp(packet.link_type, packet.data)?;
    let header = ip.first_chunk::<36>()?;
    let total = usize::from(half(header, 2)?);
    let is_whole =
        total >= header.len() && packet.original_length >= usize::from(before) + header.len();
    let source = (word(header, 12)?, half(header, 20)?);
    let destination = (word(header, 16)?, half(header, 22)?);
    let (key, _) = FlowKey::of_ipv4(source, destination);
    // The link's padding is not part of the packet.
    is_whole.then(|| (before, &ip[..ip.len().min(total)], key))
}

/// Whether the TCP header of a plain IPv4 packet says that it is shorter than one can be.
#[inline]
fn is_header_broken(ip: &[u8]) -> bool {
    ip.get(IP_HEADER + 12).is_none_or(|byte| byte >> 4 < 5)
}

/// Where the TCP header of a plain IPv4 packet ends, which is at least as long as one must be.
#[inline]
fn header_end(ip: &[u8]) -> usize {
    const TCP_HEADER: usize = 20;
    let length = ip.get(IP_HEADER + 12).map_or(0, |byte| usize::from(byte >> 4) * 4);
    IP_HEADER + length.max(TCP_HEADER)
}

/// What the IP packet `ip`, found in `data`, had on the wire, if `data` was of `original_length`.
pub fn length_behind_link(data: &[u8], ip: &[u8], original_length: usize) -> usize {
    if data.as_ptr_range().contains(&ip.as_ptr()) {
        original_length.saturating_sub(data.len().saturating_sub(ip.len()))
    } else {
        // Put together from fragments, of which `data` is only the last.
        ip.len()
    }
}

#[cfg(test)]
mod tests;
