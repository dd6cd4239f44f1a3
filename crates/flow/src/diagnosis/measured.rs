//! The path that a capture shows, for the lab to rebuild.
//!
//! A capture shows what passed, not what was set: of the buffers only the window that a receiver
//! advertised, of congestion control only its reaction to loss. What it does not show is left out,
//! and whoever rebuilds the path says what is assumed.

use super::losses::Losses;
use super::{DiagnosedConnection, Diagnosis, PacketCause};
use crate::connection::{Close, Connection, Direction, DirectionFacts, MannerFacts};
use crate::finding::Finding;
use crate::limit::{Limit, Verdict};
use fullpipe_model::law::{Framing, IpVersion};
use fullpipe_model::limit::End;
use fullpipe_model::tune::{MeasuredEnd, MeasuredGrants, MeasuredPath};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};

/// Trains this much faster than the goodput show the link. Slower ones are what the limit itself
/// lets pass, or too short to be timed.
const FASTER: f64 = 1.3;
/// Where the link is the limit, trains may be faster by no more than this. What is beyond was
/// acknowledged at once.
const AT_LINK: f64 = 1.25;
/// A link that was the limit for this share of the time shows its rate.
const AT_TIMES: f64 = 0.1;
/// And by that much it must have been faster then than on average. A link of the average rate would
/// have been the limit all the time.
const FASTER_AT_TIMES: f64 = 1.1;
/// The parts of the handshake in [`Connection::completeness`]: SYN and SYN-ACK.
const HANDSHAKE: u8 = 1 | 2;

impl DiagnosedConnection {
    /// The path, its ends and the transfer, as far as the capture shows them; `None` for a
    /// direction without data or without a round trip.
    pub fn measured_path(&self, direction: Direction) -> Option<MeasuredPath> {
        if let Some(path) = self.sampled_path(direction) {
            return Some(path);
        }
        let diagnosis = self.diagnosis(direction)?;
        let connection = &self.connection;
        let facts = connection.facts(direction);
        let rtt = least_rtt(diagnosis, facts)?;
        let limited_by = diagnosis.limited_by().limit;
        let findings = diagnosis.findings();
        let held = findings.iter().find(|finding| finding.limit == limited_by);
        let (payload, goodput) = goodput(connection, facts, diagnosis)?;
        let framing = framing(connection);
        let policer = self.sub_causes(direction).find_map(|cause| match cause {
            PacketCause::Policer(policer) => Some(policer),
            _ => None,
        });
        let rate = match policer {
            // It lets pass at least what arrived.
            Some(policer) => Some(policer.rate.max(goodput)),
            None => link_rate(diagnosis, &findings, goodput),
        };
        let rate = rate.map(|rate| with_headers(rate, framing));
        let back = match direction {
            Direction::ClientToServer => Direction::ServerToClient,
            Direction::ServerToClient => Direction::ClientToServer,
        };
        let receiver = connection.facts(back);
        let losses = losses(facts, &diagnosis.verdict, framing);
        Some(MeasuredPath {
            rate,
            queue: rate.map(|rate| rate.over(standing(diagnosis, facts, rtt))),
            loss: losses.path,
            lost_segments: Some(losses.path_segments),
            loss_run: losses.run,
            overflow: losses.overflow,
            drops_early: losses.drops_early.filter(|_| policer.is_none()),
            policer: policer.map(|policer| policer.bucket).filter(|bucket| *bucket > Bytes::ZERO),
            drops_tails: policer.is_some_and(|policer| policer.drops_tails),
            payload,
            peak: diagnosis.verdict.peak_goodput(),
            watched: facts.data_time.filter(|_| connection.completeness & HANDSHAKE == HANDSHAKE),
            application_window: self.grants(direction, limited_by),
            framing,
            sender: MeasuredEnd {
                window: known(Window::new(facts.in_flight_max)),
                window_scaling: offered(connection, direction, |manner| {
                    manner.window_scale_offered
                }),
                sack: offered(connection, direction, |manner| manner.sack_permitted),
                application_rate: (limited_by == Limit::SenderApplication).then_some(goodput),
                ..MeasuredEnd::default()
            },
            receiver: MeasuredEnd {
                window: receive_window(receiver, held),
                window_scaling: offered(connection, back, |manner| manner.window_scale_offered),
                sack: offered(connection, back, |manner| manner.sack_permitted),
                application_rate: (limited_by == Limit::ReceiverApplication).then_some(goodput),
                ..MeasuredEnd::default()
            },
            ..MeasuredPath::new(rtt, goodput, limited_by)
        })
    }
}

impl DiagnosedConnection {
    /// The window above TCP's, if that limited the data.
    fn grants(&self, direction: Direction, limited_by: Limit) -> Option<MeasuredGrants> {
        if limited_by != Limit::ApplicationWindow {
            return None;
        }
        self.sub_causes(direction).find_map(|cause| match cause {
            PacketCause::ApplicationWindow(window) => Some(MeasuredGrants {
                window: window.bound,
                step: window.step,
                host: match direction {
                    Direction::ClientToServer if window.protocol.is_the_clients() => End::Sender,
                    _ => End::Receiver,
                },
            }),
            _ => None,
        })
    }
}

fn known(window: Window) -> Option<Window> {
    (window > Window::ZERO).then_some(window)
}

/// The handshake's round trip, or the least of the data's if that is less. Where segments overtook
/// others, the least is that of one which did not wait as the rest.
fn least_rtt(diagnosis: &Diagnosis, facts: &DirectionFacts) -> Option<Duration> {
    let handshake = diagnosis.path.rtt.filter(|rtt| rtt.as_micros() > 0);
    if facts.loss.reordered_segments > 0 && handshake.is_some() {
        return handshake;
    }
    let intervals = diagnosis.verdict.intervals.iter();
    let of_data = intervals.filter_map(|interval| interval.evidence.rtt);
    of_data.chain(handshake).filter(|rtt| rtt.as_micros() > 0).min()
}

/// The payload of a transfer that was seen as a whole, and its goodput from the first data to the
/// last, as its receiver counts it; otherwise the goodput after the start-up.
fn goodput(
    connection: &Connection,
    facts: &DirectionFacts,
    diagnosis: &Diagnosis,
) -> Option<(Option<Bytes>, Rate)> {
    let payload = facts.unique_payload;
    let began = connection.completeness & HANDSHAKE == HANDSHAKE;
    let ended = matches!(connection.close, Close::Finished | Close::HalfClosed);
    let whole = facts.data_time.and_then(|time| payload.per(time));
    let whole = whole.filter(|_| began && ended);
    let found = whole
        .map(|rate| (Some(payload), rate))
        .or_else(|| diagnosis.verdict.steady_goodput().map(|rate| (None, rate)));
    found.filter(|(_, rate)| *rate > Rate::ZERO)
}

/// The payload rate of the narrowest link, where the transfer shows it.
fn link_rate(diagnosis: &Diagnosis, findings: &[Finding], goodput: Rate) -> Option<Rate> {
    let trains = diagnosis.verdict.trains;
    let link = findings.iter().find(|finding| finding.limit == Limit::Link);
    if diagnosis.limited_by().limit == Limit::Link {
        let carried = link.map_or(goodput, |finding| finding.evidence.goodput).max(goodput);
        let most = AT_LINK * carried.as_f64();
        let trains = trains.filter(|rate| *rate > carried && rate.as_f64() <= most);
        return Some(trains.unwrap_or(carried));
    }
    let trains = trains.filter(|rate| rate.as_f64() >= FASTER * goodput.as_f64());
    // Where a link was the limit at times, it carried more then than on average.
    let at_times = link
        .filter(|finding| finding.share >= AT_TIMES)
        .filter(|finding| finding.evidence.goodput.as_f64() >= FASTER_AT_TIMES * goodput.as_f64());
    trains.or(at_times.map(|finding| finding.evidence.goodput))
}

/// The rate of a link that carries `goodput` of payload.
fn with_headers(goodput: Rate, framing: Framing) -> Rate {
    let mss = framing.mss().as_f64();
    Rate::from_bits_per_sec_f64(goodput.as_f64() * framing.mtu.as_f64().max(mss) / mss)
}

/// How long data stood in queues, at most. Near the receiver the round trips of data are too short
/// to show it, and those of the intervals, by timestamps, do.
fn standing(diagnosis: &Diagnosis, facts: &DirectionFacts, rtt: Duration) -> Duration {
    let intervals = diagnosis.verdict.intervals.iter();
    let longest = intervals.filter_map(|interval| interval.evidence.rtt).max();
    let of_data = facts.rtt.p99.filter(|_| facts.rtt.min.is_some_and(|least| least >= rtt));
    of_data.max(longest).unwrap_or(rtt).saturating_sub(rtt)
}

/// The losses by where they were. Those that were spurious are spread over all retransmissions.
fn losses(facts: &DirectionFacts, verdict: &Verdict, framing: Framing) -> Losses {
    let again = facts.loss.lost_segments.saturating_add(facts.loss.spurious_retransmissions);
    let real = if again > 0 { facts.loss.lost_segments as f64 / again as f64 } else { 1.0 };
    Losses::of(verdict, framing.mss(), real)
}

/// The framing that the handshake agreed on, or the usual one.
fn framing(connection: &Connection) -> Framing {
    let (client, server) = (connection.client_to_server.manner, connection.server_to_client.manner);
    let ip = if connection.client.is_ipv4() { IpVersion::Ipv4 } else { IpVersion::Ipv6 };
    let usual = Framing { ip, ..Framing::IP_1500 };
    let Some((client_mss, server_mss)) = client.mss.zip(server.mss) else { return usual };
    let headers = ip.header().get() + TCP_HEADER;
    let mtu = u64::from(client_mss.min(server_mss)) + headers;
    Framing { mtu: Bytes::new(mtu), timestamps: client.timestamps && server.timestamps, ..usual }
}

/// A TCP header without options.
const TCP_HEADER: u64 = 20;

/// Whether the end that sends in `direction` offered an option in its SYN. A server leaves out what
/// the client did not offer, so that its own setting is not known then.
fn offered(
    connection: &Connection,
    direction: Direction,
    offers: fn(&MannerFacts) -> bool,
) -> Option<bool> {
    let client = offers(&connection.client_to_server.manner);
    let is_known = direction == Direction::ClientToServer || client;
    let seen = is_known && connection.completeness & HANDSHAKE == HANDSHAKE;
    seen.then(|| offers(&connection.facts(direction).manner))
}

/// The window that limited, or else the largest, where its scale is known.
fn receive_window(receiver: &DirectionFacts, held: Option<&Finding>) -> Option<Window> {
    let limiting = held.filter(|finding| finding.limit == Limit::ReceiveWindow);
    let largest = receiver.window.max.filter(|_| receiver.window.scale.is_some());
    limiting.and_then(|finding| finding.evidence.window).or(largest).and_then(known)
}
