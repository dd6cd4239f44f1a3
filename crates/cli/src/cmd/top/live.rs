//! The snapshot of the host's connections as they are.

use super::row::{Hidden, Id, Moment, Row, Snapshot};
use fullpipe_flow::account::Cause;
use fullpipe_host::watch::{SocketKey, Watch, WatchedSocket};
use fullpipe_model::limit::Limit;
use fullpipe_model::observe::{Prefixes, Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration};

/// The connections as the last look found them, with where their peers are.
pub fn snapshot(watch: &Watch, prefixes: &Prefixes) -> Snapshot {
    let (namespaces, hidden_namespaces) = watch.namespaces();
    Snapshot {
        rows: watch.busy().into_iter().map(|socket| row(socket, prefixes)).collect(),
        connections: watch.connections(),
        namespaces,
        hidden: Hidden {
            namespaces: hidden_namespaces,
            has_processes: watch.has_hidden_processes(),
        },
        then: None,
    }
}

/// What the list shows of a connection.
pub fn row(socket: &WatchedSocket, prefixes: &Prefixes) -> Row {
    let mut times: Vec<(Limit, Duration)> =
        socket.times().all().filter(|(_, time)| *time > Duration::ZERO).collect();
    times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let moments = socket.moments().map(|moment| Moment {
        rate: moment.rate,
        limit: moment.shares.first().map(|candidate| candidate.limit),
    });
    let mut waits = socket.account();
    let watched = waits.iter().map(|part| part.time).sum();
    waits.retain(|part| !matches!(part.cause, Cause::Transfer(_)));
    Row {
        id: (socket.key.namespace, socket.key.cookie),
        local: socket.local,
        remote: socket.remote,
        site: prefixes.site(socket.remote.ip()).cloned(),
        role: socket.role(),
        process: socket.process.clone(),
        rate: socket.rate(),
        retransmissions: socket.retransmissions(),
        times,
        waits,
        watched,
        history: moments.collect(),
        facts: Vec::new(),
    }
}

/// The connection with this id, if it still exists.
pub fn socket(watch: &Watch, (namespace, cookie): Id) -> Option<&WatchedSocket> {
    watch.socket(SocketKey { namespace, cookie })
}

/// The figures of one connection, for its details.
pub fn facts(socket: &WatchedSocket) -> Vec<(&'static str, String)> {
    let (sent, received) = socket.moved();
    let mut facts = vec![
        ("sent", sent.to_string()),
        ("received", received.to_string()),
        ("sent again", format!("{} segments", socket.retransmissions())),
    ];
    if let Some(sample) = socket.sample() {
        facts.extend(of_sample(sample));
    }
    facts.push(("namespace", socket.namespace.to_string()));
    if let Some(process) = &socket.process {
        facts.extend(process.cgroup.clone().map(|cgroup| ("cgroup", cgroup)));
        facts.extend(
            process.container.clone().map(|id| ("container", id.chars().take(12).collect())),
        );
        facts.extend(process.pod.as_ref().map(|pod| ("pod", pod.to_string())));
    }
    facts
}

fn of_sample(sample: &Sample) -> Vec<(&'static str, String)> {
    let mut facts =
        vec![("Send-Q", sample.wqueue.to_string()), ("Recv-Q", sample.rqueue.to_string())];
    facts.extend(sample.congestion_control.clone().map(|name| ("congestion control", name)));
    facts.extend(sample.info.iter().flat_map(of_info));
    if let Some(memory) = &sample.memory {
        facts.push(("sk_sndbuf", memory.sndbuf.to_string()));
        facts.push(("sk_rcvbuf", memory.rcvbuf.to_string()));
    }
    facts
}

fn of_info(info: &TcpInfo) -> Vec<(&'static str, String)> {
    let segments = |count: u32| {
        let bytes = info.snd_mss.checked_mul(u64::from(count)).unwrap_or(Bytes::MAX);
        format!("{bytes} ({count} segments)")
    };
    let mut facts = vec![
        ("round trip", format!("{} ({} deviation)", info.rtt, info.rttvar)),
        ("congestion window", segments(info.snd_cwnd)),
        ("unacknowledged", segments(info.unacked)),
        ("segment", info.snd_mss.to_string()),
    ];
    facts.extend(info.min_rtt.map(|rtt| ("least round trip", rtt.to_string())));
    facts.extend(info.snd_wnd.map(|window| ("peer's window", window.bytes().to_string())));
    facts.extend(info.pacing_rate.map(|rate| ("pacing rate", format!("{rate:#}"))));
    facts.extend(info.delivery_rate.map(|rate| ("delivery rate", format!("{rate:#}"))));
    facts
}
