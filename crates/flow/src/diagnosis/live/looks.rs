//! Looks at sockets that people logged: far apart, perhaps one only, with the fields that the log
//! happens to have.

use super::recording::{RecordedSocket, by_socket, diagnosed, those_that_answer};
use super::{HostFacts, Observed};
use crate::connection::Warning;
use crate::diagnosis::DiagnosedConnection;
use crate::trace::TraceBounds;
use fullpipe_model::limit::End;
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
        let socket = &sockets[at];
        let samples = &socket.samples;
        let host = HostFacts::default();
        let seen = Observed { role, samples, other, asked: None, settings: None, host };
        let diagnosis = seen.diagnosis_of_looks();
        let number = found.len() as u64;
        let told = diagnosed(&seen, diagnosis, number, socket.first, trace);
        found.extend(told.map(|mut told| {
            told.connection.warnings.extend(warnings(&seen, socket.is_life));
            told
        }));
    }
    found
}

/// Whether a look is at the same socket as the one before: what a socket counts never falls.
/// Between looks that are far apart another one may have taken its ports.
fn goes_on(before: &Sample, now: &Sample) -> bool {
    let [Some(before), Some(now)] = [before, now].map(moved) else { return true };
    std::iter::zip(before, now).all(|(before, now)| before <= now)
}

/// What the log lacks.
fn warnings(seen: &Observed<'_>, is_life: bool) -> Vec<Warning> {
    let is_receiver = seen.role == End::Receiver && seen.other.len() < 2;
    let has_counters = seen.infos().any(|info| info.busy_time.is_some());
    let lacking = [
        (Warning::SocketLog, true),
        (Warning::OneLook, is_life),
        (Warning::NoCounters, !is_receiver && !has_counters),
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
