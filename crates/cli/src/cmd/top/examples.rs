//! Connections that the tests of the screen show.

use super::row::{Hidden, Moment, Row, Snapshot};
use fullpipe_model::limit::{Cause, End, Limit};
use fullpipe_model::observe::Process;
use fullpipe_model::units::{Duration, Rate};
use std::sync::Arc;

fn process(pid: u32, name: &str, command: &str) -> Option<Arc<Process>> {
    let (name, command) = (name.into(), command.into());
    Some(Arc::new(Process { pid, name, command, cgroup: None, container: None, pod: None }))
}

/// A sender that its send buffer limits.
pub fn row() -> Row {
    let seconds = Duration::from_secs;
    Row {
        id: (1, 1),
        local: "10.0.0.1:40000".parse().unwrap(),
        remote: "10.0.0.2:443".parse().unwrap(),
        site: None,
        role: End::Sender,
        process: process(4711, "curl", "curl -T file https://10.0.0.2/"),
        rate: "55.05MB/s".parse().unwrap(),
        retransmissions: 3,
        times: vec![(Limit::SendBuffer, seconds(75)), (Limit::Link, seconds(25))],
        waits: Vec::new(),
        watched: seconds(100),
        history: (0..40_u64)
            .map(|second| Moment {
                rate: Rate::from_bits_per_sec(second * 11_000_000),
                limit: Some(if second < 30 { Limit::SendBuffer } else { Limit::Link }),
            })
            .collect(),
        facts: vec![("round trip", "50.1 ms".into()), ("congestion window", "2.9 MB".into())],
    }
}

/// The longest addresses that there are, at both ends.
pub fn longest() -> Row {
    Row {
        id: (1, 2),
        local: "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:1111]:54321".parse().unwrap(),
        remote: "[2001:db8:1111:2222:3333:4444:5555:6666]:65535".parse().unwrap(),
        site: None,
        role: End::Receiver,
        process: process(4_194_304, "fifteen-letters", "/usr/bin/fifteen-letters"),
        rate: "112MB/s".parse().unwrap(),
        retransmissions: 0,
        times: vec![
            (Limit::Link, Duration::from_secs(99)),
            (Limit::CongestionWindow(Cause::SlowStart), Duration::from_secs(1)),
        ],
        waits: Vec::new(),
        watched: Duration::from_secs(100),
        history: vec![],
        facts: vec![],
    }
}

/// Three connections: the one that loses most, the fastest, and one whose process is not known.
pub fn snapshot() -> Snapshot {
    let unknown = Row {
        id: (2, 3),
        local: "127.0.0.1:8080".parse().unwrap(),
        remote: "127.0.0.1:50000".parse().unwrap(),
        site: None,
        process: None,
        rate: Rate::ZERO,
        times: vec![(Limit::ReceiverApplication, Duration::from_secs(10))],
        ..row()
    };
    let fast = Row { process: process(80, "nginx", "nginx: worker"), ..longest() };
    Snapshot {
        rows: vec![unknown, fast, row()],
        connections: 1034,
        namespaces: 2,
        then: None,
        hidden: Hidden::default(),
    }
}
