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
    directions: &[BothViews; 2],
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
        let syns = [first, second].map(|tap| views.at[tap].way.syn);
        if let [Some(near), Some(far)] = syns {
            of_way.syn(&near, &far);
        }
        if views.is_renumbered() {
            of_way.once(HeaderField::SequenceNumbers, None, None);
        }
        let pairs = views.crossed().map(|(a, b)| {
            let [near, far] = order([a, b]);
            let of = |tap: usize, at: usize| &views.at[tap].way.sightings[at];
            (of(first, near), of(second, far))
        });
        of_way.packets(pairs);
    }
    changes
}

/// The values of a field at the near place and at the far one, if both have it.
type FieldValues = fn(&Sighting, &Sighting) -> Option<(u64, u64)>;

/// By what packets are compared that passed both.
const FIELDS: [(HeaderField, FieldValues); 7] = [
    (HeaderField::TimestampValue, |near, far| {
        let [near, far] = [near, far].map(|one| one.marks().timestamp().map(u64::from));
        near.zip(far)
    }),
    (HeaderField::Dscp, |near, far| of_both(near, far, |one| one.header.class >> 2)),
    (HeaderField::Identification, |near, far| {
        let [near, far] = [near, far].map(|one| one.marks().ip_id().map(u64::from));
        near.zip(far)
    }),
    (HeaderField::Window, |near, far| of_both(near, far, |one| one.window)),
    (HeaderField::Hops, |near, far| of_both(near, far, |one| one.header.ttl)),
    (HeaderField::CongestionMark, |near, far| ecn(near, far).filter(is_mark)),
    (HeaderField::Ecn, |near, far| ecn(near, far).filter(|values| !is_mark(values))),
];

/// Where the hops are among them.
const HOPS: usize = 4;
const _: () = assert!(matches!(FIELDS[HOPS].0, HeaderField::Hops));

fn of_both<T: Into<u64>>(
    near: &Sighting,
    far: &Sighting,
    value: fn(&Sighting) -> T,
) -> Option<(u64, u64)> {
    Some((value(near).into(), value(far).into()))
}

const ECN: u8 = 3;

fn ecn(near: &Sighting, far: &Sighting) -> Option<(u64, u64)> {
    of_both(near, far, |one| one.header.class & ECN)
}

/// Whether the field says that something between the places was congested.
fn is_mark((near, far): &(u64, u64)) -> bool {
    *near != 0 && *far == u64::from(ECN)
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

    fn packets<'s>(&mut self, pairs: impl ExactSizeIterator<Item = (&'s Sighting, &'s Sighting)>) {
        let of = pairs.len() as u64;
        let mut found = FIELDS.map(|_| Differing::default());
        for (near, far) in pairs {
            // Most packets differ in their hops at most.
            if near.is_same_but_for_hops(far) {
                found[HOPS].note((near.header.ttl.into(), far.header.ttl.into()));
                continue;
            }
            for (values, found) in FIELDS.iter().map(|(_, values)| values).zip(&mut found) {
                values(near, far).into_iter().for_each(|values| found.note(values));
            }
        }
        for ((field, _), Differing { packets, first }) in FIELDS.into_iter().zip(found) {
            let Some((near, far)) = first else { continue };
            let (near, far, from_client) = (Some(near), Some(far), self.from_client);
            self.changes.push(HeaderChange { field, from_client, near, far, packets, of });
        }
    }
}

/// Packets whose headers differ in a field.
#[derive(Default)]
struct Differing {
    packets: u64,
    /// The values of the first of them.
    first: Option<(u64, u64)>,
}

impl Differing {
    #[inline]
    fn note(&mut self, (near, far): (u64, u64)) {
        if near != far {
            self.packets += 1;
            self.first.get_or_insert((near, far));
        }
    }
}
