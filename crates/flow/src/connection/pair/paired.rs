//! What two captures say together.

use super::changes::{HeaderChange, changes};
use super::clocks::{Clocks, nanos};
use super::copies::{BothViews, MatchedEnds, PassedBoth};
use super::crossings::fastest_crossings;
use super::fates::Comparison;
use super::matching::matched;
use super::sighting::Sighting;
use super::way::WayBetween;
use super::{Tap, TapView};
use fullpipe_model::units::{Bytes, Duration, Instant};
use serde::{Serialize, Serializer};
use std::net::SocketAddr;

/// Two captures of the same connections, compared. `C` is what is said of each connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairedCaptures<C = PairedConnection> {
    /// Packets of any kind in each capture.
    pub packets: [u64; 2],
    /// Packets that were not kept, because there were too many.
    pub left_out: [u64; 2],
    /// Connections of each capture that the other one does not have.
    pub unmatched: [usize; 2],
    /// By how much each capture's clock was set back while it ran; times are as if it had not been.
    #[serde(rename = "set_back_s", serialize_with = "seconds")]
    pub set_back: [Duration; 2],
    /// How the two clocks are related.
    pub clocks: Clocks,
    /// The connections that both captures have, by their first packets.
    pub connections: Vec<C>,
}

impl<C> PairedCaptures<C> {
    /// The same, with more said of each connection.
    pub fn with<D>(self, more: impl FnMut(C) -> D) -> PairedCaptures<D> {
        let PairedCaptures { packets, left_out, unmatched, set_back, clocks, connections } = self;
        let connections = connections.into_iter().map(more).collect();
        PairedCaptures { packets, left_out, unmatched, set_back, clocks, connections }
    }
}

fn seconds<S: Serializer>(times: &[Duration; 2], serializer: S) -> Result<S::Ok, S::Error> {
    times.map(Duration::as_secs_f64).serialize(serializer)
}

/// A connection that passed both places.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairedConnection {
    /// Who asked for it, as each place saw the address.
    pub client: [SocketAddr; 2],
    /// Who was asked.
    pub server: [SocketAddr; 2],
    /// When each place saw its first packet, by its own clock.
    #[serde(skip)]
    pub began: [Instant; 2],
    /// The place nearer to the client; unknown where nothing tells.
    pub near_client: Option<Tap>,
    /// From the client to the server, where the order of the places is known.
    pub to_server: Option<WayBetween>,
    /// From the server to the client.
    pub to_client: Option<WayBetween>,
    /// What differs between the places in the headers of the same packets.
    pub changes: Vec<HeaderChange>,
}

/// Compares what both places saw.
pub(super) fn compare(taps: [TapView; 2], is_drawn: bool) -> PairedCaptures {
    let packets = taps.each_ref().map(|tap| tap.packets);
    let left_out = taps.each_ref().map(|tap| tap.left_out);
    let set_back = taps.each_ref().map(|tap| tap.set_back);
    let spans = taps.each_ref().map(|tap| {
        let (first, last) = tap.span.unwrap_or_default();
        (nanos(first), nanos(last))
    });
    let [a, b] = taps.map(|tap| tap.connections);
    let (matched, unmatched) = matched(a, b);
    let passed: Vec<PassedBoth> = matched.into_iter().map(PassedBoth::new).collect();
    let clocks = Clocks::of(&fastest_crossings(&passed));
    let spans = [spans[0], (clocks.a_of_b(spans[1].0), clocks.a_of_b(spans[1].1))];
    let common = Common { clocks: &clocks, spans, is_drawn };
    let connections = passed.into_iter().map(|passed| paired(passed, &common)).collect();
    PairedCaptures { packets, left_out, unmatched, set_back, clocks, connections }
}

/// What all connections of two captures have in common.
struct Common<'a> {
    clocks: &'a Clocks,
    spans: [(i64, i64); 2],
    is_drawn: bool,
}

fn paired(mut passed: PassedBoth, common: &Common<'_>) -> PairedConnection {
    let Common { clocks, spans, is_drawn } = *common;
    passed.set_clock(clocks);
    let PassedBoth { mut directions, near, ends } = passed;
    let changes = changes(&directions, ends.client, near);
    let segment = full_segment(&directions);
    let all = directions.iter().flat_map(|one| &one.at).flat_map(|one| &one.way.sightings);
    let start = is_drawn.then(|| all.map(|one| one.at).min()).flatten();
    let ways = [0, 1].map(|way| {
        let near = if way == 0 { near? } else { near?.other() };
        let keeps_ids = directions[way].keeps_ids();
        let crossed = directions[way].take_crossed();
        let (views, back) = (&directions[way], &directions[1 - way]);
        let comparison = Comparison { views, back, near, keeps_ids, clocks, spans, segment, start };
        Some(comparison.compared(crossed))
    });
    let [first, second] = only_what_is_known(ways);
    // Which of A's ends is the client, and which of B's.
    let MatchedEnds { of: [of_a, of_b], is_turned, client, began } = ends;
    let client_of_b = client ^ usize::from(is_turned);
    let (to_server, to_client) = if client == 0 { (first, second) } else { (second, first) };
    let clients = [of_a[client], of_b[client_of_b]];
    let servers = [of_a[1 - client], of_b[1 - client_of_b]];
    let is_translated = clients[0] != clients[1] || servers[0] != servers[1];
    let translated = is_translated.then(HeaderChange::of_addresses);
    PairedConnection {
        client: clients,
        server: servers,
        began,
        near_client: near.map(|near| if client == 0 { near } else { near.other() }),
        to_server,
        to_client,
        changes: translated.into_iter().chain(changes).collect(),
    }
}

/// Whether an acknowledgement was lost or missed cannot be told of a capture that misses packets.
fn only_what_is_known(mut ways: [Option<WayBetween>; 2]) -> [Option<WayBetween>; 2] {
    if let [Some(there), Some(back)] = &mut ways {
        // The far place of one direction is the near one of the other.
        let misses_far = there.missed_at_far.segments + back.missed_at_near.segments > 0;
        let misses_near = there.missed_at_near.segments + back.missed_at_far.segments > 0;
        for (way, misses) in [(there, misses_far), (back, misses_near)] {
            if misses {
                way.acknowledgements_missed = std::mem::take(&mut way.acknowledgements_lost);
            }
        }
    }
    ways
}

/// What TCP puts into a segment at most, if nothing is known.
const USUAL_SEGMENT: u64 = 1460;

/// The payload of a full segment: by what the SYNs agreed to, or the largest that both places saw.
fn full_segment(directions: &[BothViews; 2]) -> u64 {
    let mut ways = directions.iter().flat_map(|one| &one.at).map(|one| &one.way);
    let syns = ways.clone().filter_map(|way| way.syn);
    let agreed = syns.filter_map(|syn| syn.mss).map(Bytes::get).min();
    let is_stamped = |one: &Sighting| one.marks().timestamp().is_some();
    let has_timestamps = ways.any(|way| way.sightings.last().is_some_and(is_stamped));
    // The option takes 12 bytes with its padding (RFC 7323 appendix A).
    let agreed = agreed.map(|mss| mss.saturating_sub(if has_timestamps { 12 } else { 0 }));
    let largest = |tap: usize| {
        let sightings = directions.iter().flat_map(|one| &one.at[tap].way.sightings);
        sightings.map(|one| u64::from(one.payload)).max().unwrap_or_default()
    };
    agreed.unwrap_or_else(|| match largest(0).min(largest(1)) {
        0 => USUAL_SEGMENT,
        // Merged at both places.
        size if size > 9000 => USUAL_SEGMENT,
        size => size,
    })
}
