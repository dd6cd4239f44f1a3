//! From what both ends saw of a run to what it measured.

use super::intervals::Interval;
use crate::sentence::either;
use crate::terminal::language;
use fullpipe_flow::Language;
use fullpipe_flow::finding::path_test::{Measured, PathTestRun, Rfc6349, TestConnection};
use fullpipe_model::limit::End;
use fullpipe_model::tune::HostSettings;
use fullpipe_model::units::{Duration, Rate};
use fullpipe_peer::path_test::{Outcome, PathMtu, Spec, TestDirection};

/// A run of one direction.
pub struct Tested {
    /// Whether the other direction carried data at the same time.
    pub at_once: bool,
    /// What it measured.
    pub measured: Measured,
    /// The same in the terms of RFC 6349.
    pub rfc6349: Option<Rfc6349>,
    /// What passed in each interval.
    pub intervals: Vec<Interval>,
    connections: Vec<TestConnection>,
    idle_rtt: Duration,
}

/// Both ends' settings: this host's, the far one's.
type Hosts<'a> = [&'a HostSettings; 2];

fn run<'a>(
    role: End,
    connections: &'a [TestConnection],
    idle: Duration,
    hosts: Hosts<'a>,
) -> PathTestRun<'a> {
    let [here, far] = hosts;
    let (sender_settings, receiver_settings) = match role {
        End::Sender => (here, far),
        End::Receiver => (far, here),
    };
    PathTestRun { role, connections, idle_rtt: Some(idle), sender_settings, receiver_settings }
}

/// What a run measured, in each of its directions in which data arrived.
pub fn tested(
    spec: &Spec,
    outcome: &Outcome,
    intervals: Vec<Interval>,
    idle_rtt: Duration,
    hosts: Hosts<'_>,
) -> Vec<Tested> {
    let at_once = spec.direction == TestDirection::Both;
    let ways = [(End::Sender, &outcome.forward), (End::Receiver, &outcome.reverse)];
    let measured = ways.into_iter().filter_map(|(role, connections)| {
        let measured = run(role, connections, idle_rtt, hosts).measure()?;
        Some(Tested {
            at_once,
            measured,
            rfc6349: None,
            intervals: intervals.clone(),
            connections: connections.clone(),
            idle_rtt,
        })
    });
    measured.collect()
}

/// Adds the metrics of RFC 6349 to each run. The bottleneck bandwidth of a direction is that of the
/// contract, or the most that a run of the direction reached.
pub fn add_rfc6349(done: &mut [Tested], contract: Option<Rate>, hosts: Hosts<'_>) {
    let [to, from] = [End::Sender, End::Receiver].map(|role| {
        let runs = done.iter().filter(|one| one.measured.role == role);
        runs.filter_map(|one| one.measured.reached_bandwidth()).max()
    });
    for one in done {
        let role = one.measured.role;
        let reached = if role == End::Sender { to } else { from };
        let Some(bottleneck) = contract.or(reached) else { continue };
        let run = run(role, &one.connections, one.idle_rtt, hosts);
        one.rfc6349 = Rfc6349::new(&run, &one.measured, bottleneck);
    }
}

/// The path MTU that probes found, in a line.
pub fn mtu_in_words(found: PathMtu) -> String {
    if found.forward.is_none() {
        return either(
            "path MTU: UDP does not reach the far end, so it was not probed",
            "路径 MTU：UDP 到不了对端，因此没有探测",
        )
        .into();
    }
    if language() == Language::Chinese {
        let [to, from] = [(found.forward, "发往它"), (found.reverse, "来自它")];
        let [to, from] = [to, from].map(|(mtu, way)| match mtu {
            Some(mtu) => format!("{way} {} 字节", mtu.get()),
            None => format!("{way}的探测没有应答"),
        });
        return format!("探测的路径 MTU：{to}，{from}");
    }
    let [to, from] = [(found.forward, "to"), (found.reverse, "from")].map(|(mtu, way)| match mtu {
        Some(mtu) => format!("{} bytes {way} it", mtu.get()),
        None => format!("no answer to probes {way} it"),
    });
    format!("path MTU by probes: {to}, {from}")
}

/// What to do where a kernel sends larger packets than the path carries; empty where none does.
pub fn black_hole(found: PathMtu, done: &[Tested]) -> String {
    let said = done.iter().find_map(|one| {
        let (way, way_zh, mtu) = match one.measured.role {
            End::Sender => ("to it", "发往它时", found.forward?),
            End::Receiver => ("from it", "来自它时", found.reverse?),
        };
        let believed = one.measured.mtu.filter(|believed| *believed > mtu)?;
        let (believed, mtu) = (believed.get(), mtu.get());
        Some(either(
            format!(
                "\n{way}, the kernel sends packets of {believed} bytes, and the path carries {mtu}: larger ones are lost without a word.\n\
                 At the sender, net.ipv4.tcp_mtu_probing=1 finds that out, and `ip route change .. mtu {mtu}` tells it.\n"
            ),
            format!(
                "\n{way_zh}，内核发送 {believed} 字节的数据包，而路径只能传 {mtu} 字节：更大的会无声地丢失。\n\
                 在发送方，net.ipv4.tcp_mtu_probing=1 会发现这一点，`ip route change .. mtu {mtu}` 则直接告知。\n"
            ),
        ))
    });
    said.unwrap_or_default()
}
