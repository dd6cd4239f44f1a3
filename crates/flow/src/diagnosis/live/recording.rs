//! A recording: the samples of any number of sockets, as `fullpipe why --record` writes them.
//!
//! [`connections`] puts the samples of each socket together, and the two sockets of a connection
//! within one host, and diagnoses each as [`Observed::answer`] does. What the host knew beside its
//! samples is in the [`Note`]s of the recording: settings, and what applications asked. A socket
//! without one lacks the causes that rest on it.

use super::{HostFacts, Note, Observed, mean_goodput, path, role};
use crate::connection::{
    Close, Connection, Counted, Direction, DirectionFacts, Label, LabelCounts, Place, RttFacts,
    Vantage, Warning, WindowFacts,
};
use crate::diagnosis::{DiagnosedConnection, Diagnosis, Sampled};
use crate::trace::{Owner, SocketSeries, Trace, TraceBounds, WIRE_HEADERS};
use fullpipe_model::limit::End;
use fullpipe_model::observe::{Sample, SocketEnds, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};
use std::collections::HashMap;

/// Most samples of a socket in graphs.
const SAMPLES: usize = 2_000;
/// The bit of [`Connection::completeness`] that stands for data.
const DATA: u8 = 8;

/// The samples of one socket, in order of time.
#[derive(Debug, Default)]
pub(super) struct RecordedSocket {
    /// The number of its first sample among all, from 1.
    pub(super) first: u64,
    pub(super) samples: Vec<Sample>,
    /// Whether one look stands for its whole life.
    pub(super) is_life: bool,
}

/// The connections in `samples`, in the order of their first samples, with the points of their
/// graphs where `trace` asks for them. A socket with a single sample says nothing of a time and is
/// left out. `notes` are what its host knew of each socket, in any order; of several of one socket
/// the latest counts.
///
/// Samples of one socket are in order of time; where time goes back, another socket with the same
/// addresses begins (one of another network namespace).
pub fn connections(
    samples: impl IntoIterator<Item = Sample>,
    notes: &[Note],
    trace: Option<TraceBounds>,
) -> Vec<DiagnosedConnection> {
    let mut sockets = by_socket(samples, |_, _| true);
    sockets.retain(|socket| socket.samples.len() > 1);
    let notes = by_time(notes);
    let mut found = Vec::new();
    for (at, role, other) in those_that_answer(&sockets) {
        let socket = &sockets[at];
        let samples = &socket.samples;
        let note = note(&notes, samples);
        let asked = note.and_then(|note| note.asked);
        let settings = note.and_then(|note| note.settings.as_ref());
        let seen = Observed { role, samples, other, asked, settings, host: HostFacts::default() };
        let is_sparse = is_sparse(samples);
        let diagnosis = if is_sparse { seen.diagnosis_of_looks(None) } else { seen.diagnosis() };
        found.extend(diagnosed(&seen, diagnosis, found.len() as u64, socket.first, trace));
    }
    found
}

/// Samples that are as far apart are looks: the judge learnt from samples of every 10 ms, and a
/// recording of a thousand connections has one each 100 ms.
const SPARSE: Duration = Duration::from_millis(500);

/// Whether most samples of a socket are looks.
fn is_sparse(samples: &[Sample]) -> bool {
    let far = samples.windows(2).filter(|pair| pair[1].at.since(pair[0].at) >= SPARSE);
    2 * far.count() > samples.len()
}

/// The sockets that answer for their connections, with their roles and the samples of the other
/// ends.
pub(super) fn those_that_answer(sockets: &[RecordedSocket]) -> Vec<(usize, End, &[Sample])> {
    let ends = by_ends(sockets);
    let mut answering = Vec::new();
    for (at, socket) in sockets.iter().enumerate() {
        let other = other_end(sockets, &ends, at);
        let role = role(&socket.samples);
        // Of two ends of one connection the sender's counters tell more, so that one answers.
        if let Some(other) = other {
            let is_same_role = role == self::role(&sockets[other].samples);
            let answers = if is_same_role { at < other } else { role == End::Sender };
            if !answers {
                continue;
            }
        }
        let other = other.map_or(&[][..], |other| &sockets[other].samples);
        answering.push((at, role, other));
    }
    answering
}

/// The samples of each socket. One that is older than the one before, or that `goes_on` does not
/// find to be of the same socket, is of another.
pub(super) fn by_socket(
    samples: impl IntoIterator<Item = Sample>,
    goes_on: fn(&Sample, &Sample) -> bool,
) -> Vec<RecordedSocket> {
    let mut sockets: Vec<RecordedSocket> = Vec::new();
    let mut latest: HashMap<SocketEnds, usize> = HashMap::new();
    for (sample, number) in samples.into_iter().zip(1..) {
        let ends = (sample.local, sample.remote);
        let known = latest.get(&ends).copied();
        let known = known.filter(|at| {
            let last = sockets[*at].samples.last();
            last.is_none_or(|last| last.at <= sample.at && goes_on(last, &sample))
        });
        let at = known.unwrap_or_else(|| {
            sockets.push(RecordedSocket { first: number, ..RecordedSocket::default() });
            sockets.len() - 1
        });
        latest.insert(ends, at);
        sockets[at].samples.push(sample);
    }
    sockets
}

/// Sockets with the same addresses that are looked at for the other end of a connection.
const NAMESAKES: usize = 16;

/// The sockets by their addresses, in order.
fn by_ends(sockets: &[RecordedSocket]) -> HashMap<SocketEnds, Vec<usize>> {
    let mut found: HashMap<SocketEnds, Vec<usize>> = HashMap::new();
    for (at, socket) in sockets.iter().enumerate() {
        if let Some(first) = socket.samples.first() {
            found.entry((first.local, first.remote)).or_default().push(at);
        }
    }
    found
}

/// The notes by the socket's addresses, in order of time.
fn by_time(notes: &[Note]) -> HashMap<SocketEnds, Vec<&Note>> {
    let mut found: HashMap<SocketEnds, Vec<&Note>> = HashMap::new();
    for note in notes {
        found.entry((note.local, note.remote)).or_default().push(note);
    }
    found.values_mut().for_each(|notes| notes.sort_by_key(|note| note.at));
    found
}

/// The last note within the time of a socket's samples.
fn note<'a>(notes: &HashMap<SocketEnds, Vec<&'a Note>>, samples: &[Sample]) -> Option<&'a Note> {
    let (first, last) = (samples.first()?, samples.last()?);
    let notes = notes.get(&(first.local, first.remote))?;
    let until = notes.partition_point(|note| note.at <= last.at);
    let latest = notes[..until].last()?;
    (latest.at >= first.at).then_some(*latest)
}

/// The socket at the other end, sampled at the same time.
fn other_end(
    sockets: &[RecordedSocket],
    ends: &HashMap<SocketEnds, Vec<usize>>,
    at: usize,
) -> Option<usize> {
    let times =
        |socket: &RecordedSocket| Some((socket.samples.first()?.at, socket.samples.last()?.at));
    let own = sockets[at].samples.first()?;
    let (from, until) = times(&sockets[at])?;
    let mut namesakes = ends.get(&(own.remote, own.local))?.iter().copied().take(NAMESAKES);
    namesakes.find(|number| {
        *number != at
            && times(&sockets[*number]).is_some_and(|(start, end)| start <= until && from <= end)
    })
}

pub(super) fn diagnosed(
    seen: &Observed<'_>,
    diagnosis: Option<Diagnosis>,
    id: u64,
    first: u64,
    trace: Option<TraceBounds>,
) -> Option<DiagnosedConnection> {
    let diagnosis = diagnosis?;
    let verdict = &diagnosis.verdict;
    let goodput = mean_goodput(verdict);
    let (connection, direction) = connection(seen, &diagnosis, id, first)?;
    let ends = trace.map(|_| [seen.samples, seen.other]).into_iter().flatten();
    let sampled = Sampled {
        direction,
        causes: seen.causes(&diagnosis.headline(), verdict, goodput),
        path: path::measured(seen, verdict, goodput),
        sockets: ends.filter_map(|samples| series(samples, &connection)).collect(),
    };
    let trace = trace.map(|bounds| Trace::from_samples(seen.samples, seen.role, direction, bounds));
    Some(DiagnosedConnection::from_samples(connection, diagnosis, sampled, trace))
}

/// The samples of one end's socket, for the graphs.
fn series(samples: &[Sample], connection: &Connection) -> Option<SocketSeries> {
    let is_client = samples.first()?.local == connection.client;
    let end = if is_client { Owner::Client } else { Owner::Server };
    Some(SocketSeries::new(end, samples, connection.start, SAMPLES))
}

/// The facts that samples of one socket show, and the direction of its data. Nobody sees in them
/// which end opened the connection: the one with the higher port is taken for the client.
fn connection(
    seen: &Observed<'_>,
    diagnosis: &Diagnosis,
    id: u64,
    first: u64,
) -> Option<(Connection, Direction)> {
    let (start, end) = (seen.samples.first()?, seen.samples.last()?);
    let (local, remote) = (start.local, start.remote);
    let sender = if seen.role == End::Sender { local } else { remote };
    let [out, back] = [sent(seen, diagnosis), received(seen, diagnosis)];
    let nothing_moved = out.unique_payload == back.unique_payload;
    // Where nothing moved, the sender is the server: then its data is what is looked at.
    let is_client = if nothing_moved { sender != local } else { local.port() > remote.port() };
    let ((client, client_to_server), (server, server_to_client)) =
        if is_client { ((local, out), (remote, back)) } else { ((remote, back), (local, out)) };
    let place = if is_client { Place::Client } else { Place::Server };
    let direction =
        if sender == client { Direction::ClientToServer } else { Direction::ServerToClient };
    let connection = Connection {
        id,
        first_packet: first,
        client,
        server,
        close: Close::Open,
        completeness: DATA,
        start: start.at,
        duration: end.at.since(start.at),
        handshake_rtt: None,
        protocol: None,
        greeting: None,
        windows: Default::default(),
        vantage: Vantage { place, confidence: 1.0 },
        warnings: vec![Warning::NoPackets],
        client_to_server,
        server_to_client,
        counted: Counted::default(),
    };
    Some((connection, direction))
}

/// By how much a counter rose.
fn rise<T: Into<u64>>(seen: &Observed<'_>, of: impl Fn(&TcpInfo) -> Option<T>) -> Option<u64> {
    let (first, last) = seen.ends()?;
    Some(of(last)?.into().saturating_sub(of(first)?.into()))
}

fn bytes_rise(seen: &Observed<'_>, of: impl Fn(&TcpInfo) -> Option<Bytes>) -> Option<Bytes> {
    rise(seen, |info| of(info).map(Bytes::get)).map(Bytes::new)
}

/// What the socket's own end sent.
fn sent(seen: &Observed<'_>, diagnosis: &Diagnosis) -> DirectionFacts {
    let acked = bytes_rise(seen, |info| info.bytes_acked).unwrap_or_default();
    let packets = rise(seen, |info| info.segs_out).unwrap_or_default();
    let again = rise(seen, |info| Some(info.total_retrans)).unwrap_or_default();
    let rtts = seen.infos().map(|info| info.rtt).filter(|rtt| *rtt > Duration::ZERO).collect();
    let payload = bytes_rise(seen, |info| info.bytes_sent).unwrap_or(acked);
    DirectionFacts {
        wire: on_the_wire(payload, packets),
        payload,
        payload_max: seen.infos().map(|info| info.snd_mss).max().unwrap_or_default(),
        rtt: round_trips(rtts, seen.info().and_then(|info| info.min_rtt)),
        window: windows(seen.infos().filter_map(|info| info.rcv_wnd).collect()),
        in_flight_max: seen.infos().map(TcpInfo::in_flight).max().unwrap_or_default(),
        labels: LabelCounts::only(Label::Retransmission, u32::try_from(again).unwrap_or(u32::MAX)),
        ..facts(acked, packets, diagnosis, seen.role == End::Sender)
    }
}

/// What the socket's own end received.
fn received(seen: &Observed<'_>, diagnosis: &Diagnosis) -> DirectionFacts {
    let payload = bytes_rise(seen, |info| info.bytes_received).unwrap_or_default();
    let packets = rise(seen, |info| info.segs_in).unwrap_or_default();
    let rtts = seen.infos().map(|info| info.rcv_rtt).filter(|rtt| *rtt > Duration::ZERO).collect();
    DirectionFacts {
        payload_max: seen.infos().map(|info| info.rcv_mss).max().unwrap_or_default(),
        rtt: round_trips(rtts, None),
        window: windows(seen.infos().filter_map(|info| info.snd_wnd).collect()),
        ..facts(payload, packets, diagnosis, seen.role == End::Receiver)
    }
}

/// The facts of a direction that carried `unique` once; of the one that the diagnosis is about, its
/// goodput too.
fn facts(unique: Bytes, packets: u64, diagnosis: &Diagnosis, is_bulk: bool) -> DirectionFacts {
    let verdict = &diagnosis.verdict;
    let goodput = Some(mean_goodput(verdict)).filter(|rate| is_bulk && *rate > Rate::ZERO);
    DirectionFacts {
        packets,
        wire: on_the_wire(unique, packets),
        payload: unique,
        unique_payload: unique,
        payload_max: Bytes::ZERO,
        goodput,
        data_time: goodput.map(|_| verdict.time),
        goodput_peak: goodput.and_then(|_| verdict.peak_goodput()),
        rtt: RttFacts::default(),
        window: WindowFacts::default(),
        in_flight_max: Bytes::ZERO,
        labels: LabelCounts::default(),
        loss: Default::default(),
        stalls: Default::default(),
        answers: Default::default(),
        grants: Default::default(),
        http2: None,
        begins: Default::default(),
        passage: Default::default(),
        ack_path: Default::default(),
        manner: Default::default(),
    }
}

/// Payload in so many packets with their headers.
fn on_the_wire(payload: Bytes, packets: u64) -> Bytes {
    payload.saturating_add(Bytes::new(packets.saturating_mul(WIRE_HEADERS.get())))
}

/// The value below which this percentage of sorted values is.
fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied()
}

/// Round trips as the kernel smoothed them, with the least that it saw.
fn round_trips(mut all: Vec<Duration>, least: Option<Duration>) -> RttFacts {
    all.sort_unstable();
    RttFacts {
        count: all.len() as u64,
        min: least.or(percentile(&all, 0)),
        p50: percentile(&all, 50),
        p95: percentile(&all, 95),
        p99: percentile(&all, 99),
        max: percentile(&all, 100),
    }
}

fn windows(all: Vec<Window>) -> WindowFacts {
    let last = all.last().copied();
    let mut sorted = all;
    sorted.sort_unstable();
    WindowFacts {
        scale: None,
        scale_inferred: None,
        min: percentile(&sorted, 0),
        p50: percentile(&sorted, 50),
        max: percentile(&sorted, 100),
        last,
    }
}

#[cfg(test)]
mod tests;
