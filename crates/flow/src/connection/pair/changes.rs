//! What the path changed in the headers of packets that passed both places.

use super::Tap;
use super::copies::BothViews;
use super::sighting::{Sighting, Syn};
use crate::capture::segment::Flags;
use fullpipe_model::units::Bytes;
use serde::Serialize;

/// A field of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderField {
    /// Addresses or ports (NAT).
    Address,
    /// Sequence numbers: a firewall chose others.
    SequenceNumbers,
    /// The SYN's maximum segment size, in bytes.
    MaximumSegmentSize,
    /// The SYN's window scale.
    WindowScale,
    /// The SYN's permission of selective acknowledgements: 1 or none.
    SackPermitted,
    /// The SYN's time stamps: 1 or none.
    Timestamps,
    /// TSval of later segments.
    TimestampValue,
    /// The SYN's request for ECN: 1 or none.
    EcnRequest,
    /// The IP header's ECN field (RFC 3168) of the same packet, other than by a mark.
    Ecn,
    /// Marks of congestion that were set on the way.
    CongestionMark,
    /// DSCP (RFC 2474).
    Dscp,
    /// IPv4's identification.
    Identification,
    /// The window of the same segment.
    Window,
    /// Hops between the places, by the time to live.
    Hops,
}

/// A field that is not the same at both places.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeaderChange {
    /// The field.
    pub field: HeaderField,
    /// Whether it was sent by the client.
    pub from_client: bool,
    /// Its value at the place nearer to the sender (or at A, where the order is not known), in the
    /// first packet with a change; `None` where there is none, or where a number says nothing.
    pub near: Option<u64>,
    /// Its value at the other place.
    pub far: Option<u64>,
    /// Packets with a change, of those that passed both places once.
    pub packets: u64,
    /// All packets that passed both places once.
    pub of: u64,
}

impl HeaderChange {
    /// The addresses themselves stand in the connection.
    pub(super) fn of_addresses() -> HeaderChange {
        let field = HeaderField::Address;
        HeaderChange { field, from_client: true, near: None, far: None, packets: 1, of: 1 }
    }
}

/// The changes of both directions, from the places nearer to the senders to the others.
pub(super) fn changes(
    directions: &[BothViews<'_>; 2],
    client: usize,
    near: Option<Tap>,
) -> Vec<HeaderChange> {
    let mut changes = Vec::new();
    for (way, views) in directions.iter().enumerate() {
        let near_first = near.unwrap_or(Tap::A);
        let near = if way == 0 { near_first } else { near_first.other() };
        let mut of_way = OfWay { from_client: way == client, changes: &mut changes };
        let order = |pair: [usize; 2]| [pair[near.at()], pair[near.other().at()]];
        let [first, second] = order([0, 1]);
        if let (Some(near), Some(far)) = (views.ways[first].syn, views.ways[second].syn) {
            of_way.syn(&near, &far);
        }
        if views.renumbered != 0 {
            of_way.once(HeaderField::SequenceNumbers, None, None);
        }
        let pairs = views.crossed().map(|(a, b)| {
            let [near, far] = order([a, b]);
            let of = |tap: usize, at: usize| &views.ways[tap].sightings[at];
            (of(first, near), of(second, far))
        });
        of_way.packets(&pairs.collect::<Vec<_>>());
    }
    changes
}

/// The changes of one direction.
struct OfWay<'a> {
    from_client: bool,
    changes: &'a mut Vec<HeaderChange>,
}

impl OfWay<'_> {
    fn once(&mut self, field: HeaderField, near: Option<u64>, far: Option<u64>) {
        let from_client = self.from_client;
        self.changes.push(HeaderChange { field, from_client, near, far, packets: 1, of: 1 });
    }

    fn syn(&mut self, near: &Syn, far: &Syn) {
        if near.is_cut || far.is_cut {
            return;
        }
        let yes = |has: bool| has.then_some(1);
        let asks = |syn: &Syn| {
            // RFC 3168 section 6.1.1: a SYN asks with both bits, its answer agrees with one.
            let agrees = syn.flags.any(Flags::ACK);
            syn.flags.any(Flags::ECE) && (agrees || syn.flags.any(Flags::CWR))
        };
        let fields = [
            (HeaderField::MaximumSegmentSize, [near, far].map(|syn| syn.mss.map(Bytes::get))),
            (HeaderField::WindowScale, [near, far].map(|syn| syn.window_scale.map(u64::from))),
            (HeaderField::SackPermitted, [near, far].map(|syn| yes(syn.sack_permitted))),
            (HeaderField::Timestamps, [near, far].map(|syn| yes(syn.has_timestamps))),
            (HeaderField::EcnRequest, [near, far].map(|syn| yes(asks(syn)))),
        ];
        for (field, [near, far]) in fields.into_iter().filter(|(_, [near, far])| near != far) {
            self.once(field, near, far);
        }
    }

    fn packets(&mut self, pairs: &[(&Sighting, &Sighting)]) {
        const ECN: u8 = 3;
        let of = pairs.len() as u64;
        let mut count = |field, value: fn(&Sighting) -> Option<u64>| {
            let differ = |(near, far): &&(&Sighting, &Sighting)| {
                value(near).zip(value(far)).is_some_and(|(near, far)| near != far)
            };
            let Some((near, far)) = pairs.iter().find(differ) else { return };
            let packets = pairs.iter().filter(differ).count() as u64;
            let (near, far, from_client) = (value(near), value(far), self.from_client);
            self.changes.push(HeaderChange { field, from_client, near, far, packets, of });
        };
        count(HeaderField::TimestampValue, |one| one.marks().timestamp().map(u64::from));
        count(HeaderField::Dscp, |one| Some((one.header.class >> 2).into()));
        count(HeaderField::Identification, |one| one.marks().ip_id().map(u64::from));
        count(HeaderField::Window, |one| Some(one.window.into()));
        count(HeaderField::Hops, |one| Some(one.header.ttl.into()));
        let ecn = |one: &Sighting| u64::from(one.header.class & ECN);
        let differ = pairs.iter().filter(|(near, far)| ecn(near) != ecn(far));
        let (marked, changed): (Vec<_>, Vec<_>) =
            differ.partition(|(near, far)| ecn(near) != 0 && ecn(far) == u64::from(ECN));
        let fields = [(HeaderField::CongestionMark, marked), (HeaderField::Ecn, changed)];
        for (field, found) in fields {
            let Some((near, far)) = found.first() else { continue };
            let (near, far, packets) = (Some(ecn(near)), Some(ecn(far)), found.len() as u64);
            let from_client = self.from_client;
            self.changes.push(HeaderChange { field, from_client, near, far, packets, of });
        }
    }
}
