//! Looks at sockets that people logged: far apart, perhaps one only, with the fields that the log
//! happens to have.

use super::recording::{RecordedSocket, by_socket, diagnosed, those_that_answer};
use super::{HostFacts, Observed, role};
use crate::connection::Warning;
use crate::diagnosis::DiagnosedConnection;
use crate::trace::TraceBounds;
use fullpipe_model::limit::End;
use fullpipe_model::observe::tool_result::{TestProgram, TestedSocket};
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration};

/// The connections in a log of looks, in the order of their first ones, with the points of their
/// graphs where `trace` asks for them. Their [`Warning`]s say what the log lacks.
///
/// Of a sender's socket with one look the kernel's counters tell its whole life: for that long it
/// was busy. One look at a receiver says nothing of a time, and is left out.
pub fn connections_of_looks(
    samples: impl IntoIterator<Item = Sample>,
    trace: Option<TraceBounds>,
) -> Vec<DiagnosedConnection> {
    let mut sockets = by_socket(samples, goes_on);
    sockets.iter_mut().for_each(live);
    sockets.retain(|socket| socket.samples.len() > 1);
    let mut found: Vec<DiagnosedConnection> = Vec::new();
    for (at, role, other) in those_that_answer(&sockets) {
        let number = found.len() as u64;
        found.extend(told(&sockets[at], role, other, None, number, trace));
    }
    found
}

/// The connections of a test by another program, in the order of the result.
pub fn connections_of_results(
    sockets: impl IntoIterator<Item = TestedSocket>,
    trace: Option<TraceBounds>,
) -> Vec<DiagnosedConnection> {
    let mut found: Vec<DiagnosedConnection> = Vec::new();
    let mut first = 1;
    for TestedSocket { samples, by } in sockets {
        let count = samples.len() as u64;
        let mut socket = RecordedSocket { first, samples, is_life: false };
        live(&mut socket);
        first += count;
        let number = found.len() as u64;
        if socket.samples.len() > 1 {
            found.extend(told(&socket, role(&socket.samples), &[], Some(by), number, trace));
        }
    }
    found
}

/// The connection of a socket; `by` is the program that looked at it, where that is not ss.
fn told(
    socket: &RecordedSocket,
    role: End,
    other: &[Sample],
    by: Option<TestProgram>,
    number: u64,
    trace: Option<TraceBounds>,
) -> Option<DiagnosedConnection> {
    let (samples, host) = (&socket.samples, HostFacts::default());
    let seen = Observed { role, samples, other, asked: None, settings: None, host };
    let diagnosis = seen.diagnosis_of_looks(by);
    let mut told = diagnosed(&seen, diagnosis, number, socket.first, trace)?;
    told.connection.warnings.extend(warnings(&seen, by, socket.is_life));
    Some(told)
}

/// Whether a look is at the same socket as the one before: what a socket counts never falls.
/// Between looks that are far apart another one may have taken its ports.
fn goes_on(before: &Sample, now: &Sample) -> bool {
    let [Some(before), Some(now)] = [before, now].map(moved) else { return true };
    std::iter::zip(before, now).all(|(before, now)| before <= now)
}

/// What the log lacks.
fn warnings(seen: &Observed<'_>, by: Option<TestProgram>, is_life: bool) -> Vec<Warning> {
    let is_receiver = seen.role == End::Receiver && seen.other.len() < 2;
    let has_counters = seen.infos().any(|info| info.busy_time.is_some());
    let has_memory = seen.samples.iter().any(|sample| sample.memory.is_some());
    let source = match by {
        None => Warning::SocketLog,
        Some(TestProgram::Ndt7) => Warning::Ndt7Result,
        Some(TestProgram::Iperf3 { .. }) => Warning::Iperf3Result,
    };
    let is_log = by.is_none();
    let lacking = [
        (source, true),
        (Warning::OneLook, is_life),
        (Warning::NoCounters, is_log && !is_receiver && !has_counters),
        (Warning::NoSocketMemory, is_log && !is_receiver && !has_memory && !is_life),
        (Warning::ReceiverLog, is_receiver),
    ];
    lacking.into_iter().filter(|(_, is_so)| *is_so).map(|(warning, _)| warning).collect()
}

/// Puts the beginning of a sender's socket before its only look: its counters began at zero, and it
/// has been busy for as long as they say.
fn live(socket: &mut RecordedSocket) {
    let [only] = &socket.samples[..] else { return };
    let Some(info) = &only.info else { return };
    let Some(busy) = info.busy_time.filter(|busy| *busy > Duration::ZERO) else { return };
    if info.bytes_acked <= info.bytes_received {
        return;
    }
    let at = only.at.saturating_sub(busy);
    let first = Sample { at, info: Some(begun(info)), memory: None, ..only.clone() };
    let last = Sample { at: at + busy, ..only.clone() };
    (socket.samples, socket.is_life) = (vec![first, last], true);
}

/// A socket that has moved nothing yet, with the counters that `info` has.
fn begun(info: &TcpInfo) -> TcpInfo {
    TcpInfo {
        state: info.state,
        snd_mss: info.snd_mss,
        bytes_acked: zero(info.bytes_acked),
        bytes_received: zero(info.bytes_received),
        bytes_sent: zero(info.bytes_sent),
        bytes_retrans: zero(info.bytes_retrans),
        segs_out: info.segs_out.map(|_| 0),
        segs_in: info.segs_in.map(|_| 0),
        data_segs_out: info.data_segs_out.map(|_| 0),
        data_segs_in: info.data_segs_in.map(|_| 0),
        busy_time: info.busy_time.map(|_| Duration::ZERO),
        rwnd_limited: info.rwnd_limited.map(|_| Duration::ZERO),
        sndbuf_limited: info.sndbuf_limited.map(|_| Duration::ZERO),
        ..TcpInfo::default()
    }
}

fn zero(count: Option<Bytes>) -> Option<Bytes> {
    count.map(|_| Bytes::ZERO)
}

/// What a socket has carried in each direction.
fn moved(sample: &Sample) -> Option<[Bytes; 2]> {
    let info = sample.info.as_ref()?;
    Some([info.bytes_acked?, info.bytes_received?])
}
