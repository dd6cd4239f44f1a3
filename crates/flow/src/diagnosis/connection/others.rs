//! What the connections of a capture show of each other.

use super::DiagnosedConnection;
use crate::account::Cause;
use crate::diagnosis::subcause::{may_share, sharing};
use crate::limit::{Interval, Verdict};
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Most connections of one host that are compared with each other.
const MOST: usize = 32;
/// A connection that accompanies others has at most one byte for so many of each of theirs.
const OTHERS_BYTES: u64 = 20;
/// It has no more questions than these.
const REQUESTS_MOST: u64 = 32;
/// Its programs are silent for at least this part of its time, and for all but this part of their
/// silence other connections move data.
const SILENT: f64 = 0.5;
const NOT_COVERED: f64 = 0.2;
/// A connection that pauses for longer moves no data meanwhile.
const PAUSE_MOST: Duration = Duration::from_secs(1);

/// Compares the connections of one capture with each other, and records in each what the others
/// show of it.
pub fn note_others(connections: &mut [DiagnosedConnection]) {
    note_sharing(connections);
    note_companions(connections);
}

/// Finds the connections that share a link with others. Only connections with the same receiver or
/// the same sender are compared.
fn note_sharing(connections: &mut [DiagnosedConnection]) {
    let mut groups = BTreeMap::<(bool, IpAddr), Vec<usize>>::new();
    for (at, connection) in connections.iter().enumerate() {
        if let Some(diagnosis) = connection.bulk().filter(|one| may_share(&one.verdict)) {
            let subject = diagnosis.subject;
            groups.entry((false, subject.receiver.ip())).or_default().push(at);
            groups.entry((true, subject.sender.ip())).or_default().push(at);
        }
    }
    let mut found = Vec::new();
    for group in groups.into_values().filter(|group| (2..=MOST).contains(&group.len())) {
        let verdicts = group.iter().filter_map(|at| connections[*at].bulk());
        let verdicts: Vec<&Verdict> = verdicts.map(|diagnosis| &diagnosis.verdict).collect();
        for (number, at) in group.iter().enumerate() {
            found.extend(sharing(&verdicts, number).map(|sharing| (*at, sharing)));
        }
    }
    for (at, sharing) in found {
        connections[at].sharing = Some(sharing);
    }
}

/// Finds the connections by which two programs agree on what they move in others between the same
/// hosts, as those of iperf3 and FTP do: their silence keeps nobody waiting.
fn note_companions(connections: &mut [DiagnosedConnection]) {
    let mut groups = BTreeMap::<[IpAddr; 2], Vec<DataSpan>>::new();
    for connection in connections.iter() {
        groups.entry(hosts(connection)).or_default().extend(data_spans(connection));
    }
    for connection in connections {
        if let Some(group) = groups.get(&hosts(connection)).filter(|group| group.len() > 1) {
            connection.accompanies = accompanies(connection, group);
        }
    }
}

/// The two hosts, whichever opened it.
fn hosts(connection: &DiagnosedConnection) -> [IpAddr; 2] {
    let (one, other) = (connection.connection.client.ip(), connection.connection.server.ip());
    [one.min(other), one.max(other)]
}

/// When a connection moved data, and how much it did in all.
#[derive(Debug, Clone, Copy)]
struct DataSpan {
    id: u64,
    from: Instant,
    until: Instant,
    bytes: u64,
}

/// When the connection moved data.
fn data_spans(connection: &DiagnosedConnection) -> Vec<DataSpan> {
    let (id, bytes) = (connection.connection.id, payload(connection));
    let mut spans: Vec<DataSpan> = Vec::new();
    let intervals = connection.bulk().map(|one| one.verdict.intervals.as_slice());
    let moving = intervals.unwrap_or_default().iter().filter(|one| one.carried() > Bytes::ZERO);
    for Interval { start: from, length, .. } in moving {
        let (from, until) = (*from, *from + *length);
        match spans.last_mut() {
            Some(last) if from.since(last.until) <= PAUSE_MOST => last.until = until,
            _ => spans.push(DataSpan { id, from, until, bytes }),
        }
    }
    spans
}

fn payload(connection: &DiagnosedConnection) -> u64 {
    let connection = &connection.connection;
    connection.client_to_server.payload.get() + connection.server_to_client.payload.get()
}

/// Whether a connection's programs are silent while others of `group`, which has it too, move data.
fn accompanies(connection: &DiagnosedConnection, group: &[DataSpan]) -> bool {
    let Some(account) = connection.account() else { return false };
    let silence = [Cause::ClientThinks, Cause::Paused].map(|cause| account.spent_on(cause));
    let silence = silence[0].saturating_add(silence[1]).as_secs_f64();
    if silence < SILENT * account.time.as_secs_f64() || account.requests > REQUESTS_MOST {
        return false;
    }
    let (id, begin) = (connection.connection.id, connection.connection.start);
    // Somebody may wait until the capture ends.
    let end = begin + account.time;
    let least = payload(connection).saturating_mul(OTHERS_BYTES);
    let others = group.iter().filter(|one| one.id != id && one.bytes > least);
    let mut others: Vec<&DataSpan> =
        others.filter(|one| one.until > begin && one.from < end).collect();
    others.sort_by_key(|one| one.from);
    let (mut bare, mut covered_until) = (Duration::ZERO, begin);
    for one in others {
        bare = bare.saturating_add(one.from.since(covered_until));
        covered_until = covered_until.max(one.until.min(end));
    }
    bare = bare.saturating_add(end.since(covered_until));
    bare.as_secs_f64() <= NOT_COVERED * silence
}
