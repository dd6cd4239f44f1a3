//! Time by limit and by owner, and bytes, summed over connections by process, control group and
//! port, by their workloads, or by where their peers are: what an exporter shows.
//!
//! [`Totals::look`] adds what the last look of a [`Watch`] found. The number of groups is bounded:
//! what does not fit is summed as one more group, "other", so the sums over all groups are right
//! whatever the bound. A group whose connections are gone gives its place up to a new one after ten
//! minutes: then it begins again at zero, which monitoring systems take for a restart.

use crate::watch::{SocketKey, Watch, WatchedSocket};
use fullpipe_flow::account::Owner;
use fullpipe_model::limit::Limit;
use fullpipe_model::observe::{
    ContainerRuntime, HOST, PeerSite, PodQos, Prefixes, Process, SocketEnds, Workload,
    is_server_port,
};
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A group without busy connections for this long may be replaced.
const RETIRE: Duration = Duration::from_secs(600);

/// What connections are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupLabel {
    /// The name of their process.
    Process,
    /// Its control group.
    Cgroup,
    /// The lower one of both ports, if it is below those of clients.
    Port,
    /// The pod, or else the container, or else the systemd unit that the process is in; `host` of
    /// what is in none.
    Workload,
    /// The systemd unit.
    Unit,
    /// The container's id.
    Container,
    /// What runs the container.
    Runtime,
    /// The pod's id.
    Pod,
    /// The pod's name, where this node says it.
    PodName,
    /// The controller behind the pod, by the pod's name where this node says that; or else as
    /// [`GroupLabel::Workload`].
    Controller,
    /// The namespace of Kubernetes that the pod is in, where this node says it.
    Namespace,
    /// The pod's quality of service.
    Qos,
    /// Where the other end is, by the table of prefixes.
    Site,
    /// Whose that site is.
    Provider,
    /// In which region it is.
    Region,
}

impl GroupLabel {
    /// Whether the table of prefixes says it.
    pub const fn is_of_peer(self) -> bool {
        matches!(self, GroupLabel::Site | GroupLabel::Provider | GroupLabel::Region)
    }

    /// What it says of a connection; empty where that is not known.
    fn of(self, process: Option<&Process>, ports: [u16; 2], peer: Option<&PeerSite>) -> String {
        let cgroup = process.and_then(|process| process.cgroup.as_deref());
        let workload = cgroup.map(Workload::of);
        let pod = process.and_then(|process| process.pod.as_ref());
        let said = match self {
            GroupLabel::Process => return process.map_or_else(String::new, |one| one.name.clone()),
            GroupLabel::Cgroup => cgroup,
            GroupLabel::Port => {
                let low = ports[0].min(ports[1]);
                return if is_server_port(low) { low.to_string() } else { String::new() };
            }
            GroupLabel::Workload => {
                return workload.map_or_else(|| HOST.into(), |workload| workload.name());
            }
            GroupLabel::Pod => {
                let pod = workload.and_then(|workload| workload.pod);
                return pod.map_or_else(String::new, |pod| pod.to_string());
            }
            GroupLabel::Controller => {
                let workload = workload.map_or_else(|| HOST.into(), |workload| workload.name());
                return pod.map_or(workload.clone(), |pod| pod.controller(&workload).into());
            }
            GroupLabel::PodName => pod.map(|pod| pod.name.as_str()),
            GroupLabel::Namespace => pod.map(|pod| pod.namespace.as_str()),
            GroupLabel::Unit => workload.and_then(|workload| workload.unit),
            GroupLabel::Container => workload.and_then(|workload| workload.container),
            GroupLabel::Runtime => {
                workload.and_then(|workload| workload.runtime).map(ContainerRuntime::name)
            }
            GroupLabel::Qos => workload.and_then(|workload| workload.qos).map(PodQos::name),
            GroupLabel::Site => peer.map(|peer| peer.site.as_str()),
            GroupLabel::Provider => peer.and_then(|peer| peer.provider.as_deref()),
            GroupLabel::Region => peer.and_then(|peer| peer.region.as_deref()),
        };
        said.unwrap_or_default().into()
    }
}

/// Connections that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// What each label says, in the order in which they were asked for.
    pub labels: Vec<(GroupLabel, String)>,
    /// Whether this is the rest that did not fit.
    pub is_other: bool,
}

impl Group {
    /// The group of what has no group of its own.
    fn other(labels: &[GroupLabel]) -> Group {
        let labels = labels.iter().map(|label| (*label, "other".to_owned())).collect();
        Group { labels, is_other: true }
    }

    fn of(socket: &WatchedSocket, labels: &[GroupLabel], prefixes: &Prefixes) -> Group {
        let (process, ports) =
            (socket.process.as_deref(), [socket.local.port(), socket.remote.port()]);
        let peer = prefixes.site(socket.remote.ip());
        let labels = labels.iter().map(|label| (*label, label.of(process, ports, peer))).collect();
        Group { labels, is_other: false }
    }
}

/// What a group's connections did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    /// Time and bytes by limit.
    pub by_limit: BTreeMap<Limit, Held>,
    /// All the time, by whose it was.
    pub by_owner: BTreeMap<Owner, Duration>,
    /// What was sent and acknowledged.
    pub sent: Bytes,
    /// What was received.
    pub received: Bytes,
    /// Segments sent again.
    pub retransmissions: u64,
}

/// What moved while a limit held, and for how long it did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Held {
    /// The time, summed over connections.
    pub time: Duration,
    /// The bytes.
    pub bytes: Bytes,
}

impl Counters {
    /// How many series of an exporter it is: two a limit, one an owner, two directions,
    /// retransmissions.
    fn series(&self) -> usize {
        2 * self.by_limit.len() + self.by_owner.len() + 3
    }

    fn add(&mut self, part: &Counters) {
        for (limit, held) in &part.by_limit {
            let sum = self.by_limit.entry(*limit).or_default();
            sum.time = sum.time.saturating_add(held.time);
            sum.bytes = sum.bytes.saturating_add(held.bytes);
        }
        for (owner, time) in &part.by_owner {
            let sum = self.by_owner.entry(*owner).or_default();
            *sum = sum.saturating_add(*time);
        }
        self.sent = self.sent.saturating_add(part.sent);
        self.received = self.received.saturating_add(part.received);
        self.retransmissions += part.retransmissions;
    }
}

/// The counters of all groups.
#[derive(Debug)]
pub struct Totals {
    groups: BTreeMap<Group, (Counters, Instant)>,
    other: Counters,
    series_max: usize,
    labels: Vec<GroupLabel>,
    prefixes: Arc<Prefixes>,
    before: HashMap<SocketKey, LastMoved>,
    looked: Option<Instant>,
}

/// What a connection had moved at the last look, and whose its time had been.
#[derive(Debug, Clone, Copy, Default)]
struct LastMoved {
    sent: Bytes,
    received: Bytes,
    retransmissions: u64,
    owned: [Duration; Owner::ALL.len()],
}

/// What one connection did in the last moment: for distributions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Bytes a second.
    pub goodput: f64,
    /// The share of the moment that a limit other than the path and the sending application held.
    pub lost_share: f64,
    /// The end of the moment.
    pub at: Instant,
    /// Its length.
    pub length: Duration,
    /// Whose it is.
    pub ends: SocketEnds,
}

impl Totals {
    /// Counters that take at most `series_max` series, of groups that `labels` tell apart; where
    /// peers are is said by `prefixes`.
    pub fn new(series_max: usize, labels: &[GroupLabel], prefixes: Arc<Prefixes>) -> Totals {
        Totals {
            groups: BTreeMap::new(),
            other: Counters::default(),
            series_max,
            labels: labels.to_vec(),
            prefixes,
            before: HashMap::new(),
            looked: None,
        }
    }

    /// The most series that the rest takes: each limit and each owner.
    pub const OTHER_SERIES: usize = 2 * Limit::ALL.len() + Owner::ALL.len() + 3;

    /// Adds what happened since the last call; returns what each busy connection did.
    pub fn look(&mut self, watch: &Watch, now: Instant) -> Vec<Observation> {
        let since = self.looked.replace(now).unwrap_or(Instant::ZERO);
        let busy = watch.busy();
        let mut observed = Vec::with_capacity(busy.len());
        let mut moved = HashMap::with_capacity(busy.len());
        for socket in busy {
            let (sent, received) = socket.moved();
            let retransmissions = socket.retransmissions();
            let new = LastMoved { sent, received, retransmissions, owned: owned(socket) };
            moved.insert(socket.key, new);
            let old = self.before.get(&socket.key).copied();
            let mut part = part_of(old, new);
            for moment in socket.moments().rev().take_while(|moment| moment.at > since) {
                let bytes = moment.rate.over(moment.length);
                let mut lost_share = 0.0;
                for candidate in &moment.shares {
                    let share = candidate.share.clamp(0.0, 1.0);
                    let held = part.by_limit.entry(candidate.limit).or_default();
                    let time = Duration::from_secs_f64(moment.length.as_secs_f64() * share);
                    held.time = held.time.saturating_add(time);
                    let bytes = Bytes::from_f64(bytes.as_f64() * share);
                    held.bytes = held.bytes.saturating_add(bytes);
                    lost_share += if candidate.limit.loses_time() { share } else { 0.0 };
                }
                if !moment.shares.is_empty() {
                    let goodput = moment.rate.as_f64() / 8.0;
                    let (at, length) = (moment.at, moment.length);
                    let (lost_share, ends) = (lost_share.min(1.0), (socket.local, socket.remote));
                    observed.push(Observation { goodput, lost_share, at, length, ends });
                }
            }
            if part != Counters::default() {
                let group = Group::of(socket, &self.labels, &self.prefixes);
                self.add(group, &part, now);
            }
        }
        self.before = moved;
        observed
    }

    /// Adds to a group, or to the rest where the group does not fit.
    fn add(&mut self, group: Group, part: &Counters, now: Instant) {
        let mut sum = self.groups.get(&group).map(|(counters, _)| counters.clone());
        let had = sum.as_ref().map_or(0, Counters::series);
        sum.get_or_insert_default().add(part);
        let sum = sum.unwrap_or_default();
        let needed = sum.series() - had;
        self.make_room(needed, &group, now);
        if self.series() + needed + Totals::OTHER_SERIES > self.series_max {
            self.other.add(part);
        } else {
            self.groups.insert(group, (sum, now));
        }
    }

    /// Removes the group that was idle longest while `needed` series do not fit, if it is retired.
    fn make_room(&mut self, needed: usize, group: &Group, now: Instant) {
        while self.series() + needed + Totals::OTHER_SERIES > self.series_max {
            let idle = self.groups.iter().filter(|(other, _)| *other != group);
            let oldest = idle.min_by_key(|(_, (_, last))| *last);
            match oldest {
                Some((oldest, (_, last))) if now.since(*last) > RETIRE => {
                    let oldest = oldest.clone();
                    self.groups.remove(&oldest);
                }
                _ => return,
            }
        }
    }

    /// The series of all groups, the rest not counted.
    fn series(&self) -> usize {
        self.groups.values().map(|(counters, _)| counters.series()).sum()
    }

    /// The groups with their counters; the rest, if there is one, last.
    pub fn groups(&self) -> Vec<(Group, Counters)> {
        let mut groups: Vec<(Group, Counters)> =
            self.groups.iter().map(|(group, (sum, _))| (group.clone(), sum.clone())).collect();
        if self.other != Counters::default() {
            groups.push((Group::other(&self.labels), self.other.clone()));
        }
        groups
    }
}

/// Whose the time of a connection was, in the order of the owners.
fn owned(socket: &WatchedSocket) -> [Duration; Owner::ALL.len()] {
    let parts = socket.account();
    Owner::ALL.map(|owner| {
        let its = parts.iter().filter(|part| part.owner == owner);
        its.fold(Duration::ZERO, |sum, part| sum.saturating_add(part.time))
    })
}

/// What moved since the last look; all of it, where the counters began anew.
fn part_of(old: Option<LastMoved>, new: LastMoved) -> Counters {
    let old = old.filter(|old| {
        old.sent <= new.sent
            && old.received <= new.received
            && old.retransmissions <= new.retransmissions
    });
    let old = old.unwrap_or_default();
    let grown = new.owned.iter().zip(old.owned).map(|(new, old)| new.saturating_sub(old));
    let by_owner = Owner::ALL.into_iter().zip(grown).filter(|(_, time)| *time > Duration::ZERO);
    Counters {
        sent: new.sent - old.sent,
        received: new.received - old.received,
        retransmissions: new.retransmissions - old.retransmissions,
        by_owner: by_owner.collect(),
        by_limit: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::observe::PodName;
    use proptest::prelude::*;

    fn group(number: u16) -> Group {
        let labels = vec![(GroupLabel::Process, format!("process-{number}"))];
        Group { labels, is_other: false }
    }

    fn part(limit: Limit, seconds: u64) -> Counters {
        let held = Held { time: Duration::from_secs(seconds), bytes: Bytes::new(seconds) };
        Counters {
            by_limit: BTreeMap::from([(limit, held)]),
            sent: Bytes::new(seconds),
            ..Counters::default()
        }
    }

    #[test]
    fn what_does_not_fit_is_other_until_a_group_retires() {
        let minute = |minute: u64| Instant::ZERO + Duration::from_secs(60 * minute);
        // Room for two groups of one limit, five series each.
        let mut totals =
            Totals::new(Totals::OTHER_SERIES + 10, &[GroupLabel::Process], Arc::default());
        for number in 1..=3 {
            totals.add(group(number), &part(Limit::Link, 1), minute(0));
        }
        let names = |totals: &Totals| -> Vec<String> {
            totals.groups().into_iter().map(|(group, _)| group.labels[0].1.clone()).collect()
        };
        assert_eq!(names(&totals), ["process-1", "process-2", "other"]);
        totals.add(group(2), &part(Limit::Link, 1), minute(9));
        totals.add(group(4), &part(Limit::Link, 1), minute(11));
        assert_eq!(names(&totals), ["process-2", "process-4", "other"], "1 was idle longest");
        // A second limit of a group does not fit: it is the rest's.
        totals.add(group(4), &part(Limit::SendBuffer, 5), minute(11));
        let (_, other) = totals.groups().pop().unwrap();
        assert_eq!(other.by_limit[&Limit::SendBuffer].time, Duration::from_secs(5));
    }

    #[test]
    fn a_workload_is_told_by_the_group_of_its_process() {
        use GroupLabel::{Cgroup, Container, Pod, Port, Process as Name, Qos, Runtime, Unit};
        let id = "4c01db0b339c8a2f7e3a6a3c5b1d9e0f4c01db0b339c8a2f7e3a6a3c5b1d9e0f";
        let uid = "214f3ba8-4b69-4bdb-a7d5-5ecc73f04ae9";
        let pod = format!("/kubepods/burstable/pod{uid}/crio-{id}");
        let process = |cgroup: &str| Process {
            pid: 7,
            name: "nginx".into(),
            command: String::new(),
            cgroup: Some(cgroup.into()),
            container: None,
            pod: None,
        };
        let (namespace, name) = ("shop".into(), "web-7d4b9c6f5-x2x9z".into());
        let in_pod = Process { pod: Some(PodName { namespace, name }), ..process(&pod) };
        for (label, expected) in [
            (Name, "nginx"),
            (Cgroup, &pod),
            (Port, "443"),
            (GroupLabel::Workload, uid),
            (Unit, ""),
            (Container, id),
            (Runtime, "crio"),
            (Pod, uid),
            (GroupLabel::PodName, "web-7d4b9c6f5-x2x9z"),
            (GroupLabel::Controller, "web"),
            (GroupLabel::Namespace, "shop"),
            (Qos, "burstable"),
        ] {
            assert_eq!(label.of(Some(&in_pod), [40_000, 443], None), expected, "{label:?}");
        }
        let of_unit = process("/system.slice/nginx.service");
        assert_eq!(GroupLabel::Workload.of(Some(&of_unit), [1, 2], None), "nginx.service");
        assert_eq!(GroupLabel::PodName.of(Some(&of_unit), [1, 2], None), "");
        assert_eq!(GroupLabel::Controller.of(Some(&of_unit), [1, 2], None), "nginx.service");
        assert_eq!(GroupLabel::Controller.of(Some(&process(&pod)), [1, 2], None), uid);
        assert_eq!(GroupLabel::Controller.of(None, [1, 2], None), "host");
        assert_eq!(GroupLabel::Workload.of(Some(&process("/")), [1, 2], None), "host");
        assert_eq!(GroupLabel::Workload.of(None, [1, 2], None), "host");
        assert_eq!(Port.of(None, [40_000, 50_000], None), "");
    }

    #[test]
    fn a_peer_is_told_by_its_prefix() {
        let prefixes = Prefixes::parse("192.0.2.0/24,fra1,Own").unwrap();
        let peer = prefixes.site("::ffff:192.0.2.7".parse().unwrap());
        let said = [GroupLabel::Site, GroupLabel::Provider, GroupLabel::Region]
            .map(|label| (label.is_of_peer(), label.of(None, [1, 2], peer)));
        assert_eq!(said, [(true, "fra1".into()), (true, "Own".into()), (true, String::new())]);
        assert_eq!(GroupLabel::Site.of(None, [1, 2], None), "");
    }

    #[test]
    fn counters_that_began_anew_count_from_zero() {
        let moved = |sent| LastMoved { sent: Bytes::new(sent), ..LastMoved::default() };
        assert_eq!(part_of(Some(moved(5)), moved(7)).sent, Bytes::new(2));
        assert_eq!(part_of(Some(moved(9)), moved(7)).sent, Bytes::new(7));
        assert_eq!(part_of(None, moved(7)).sent, Bytes::new(7));
    }

    proptest! {
        /// Whatever comes, the bound holds and nothing is lost.
        #[test]
        fn the_bound_holds_and_the_sum_is_right(
            parts in proptest::collection::vec((0_u16..40, 0_usize..8, 1_u64..100), 0..200),
            series_max in 0_usize..300,
        ) {
            let mut totals = Totals::new(series_max, &[GroupLabel::Process], Arc::default());
            let mut expected = Bytes::ZERO;
            for (number, limit, seconds) in parts {
                totals.add(group(number), &part(Limit::ALL[limit], seconds), Instant::ZERO);
                expected = expected.saturating_add(Bytes::new(seconds));
            }
            let groups = totals.groups();
            let series: usize = groups.iter().map(|(_, counters)| counters.series()).sum();
            prop_assert!(series <= series_max.max(Totals::OTHER_SERIES));
            let sum = groups.iter().fold(Bytes::ZERO, |sum, (_, counters)| {
                sum.saturating_add(counters.sent)
            });
            prop_assert_eq!(sum, expected);
        }
    }
}
