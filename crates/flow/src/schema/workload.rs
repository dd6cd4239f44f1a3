//! What limited a workload of a host in an hour: a row of a fleet.

use super::{Cell, Column, Kind, Place, Record, SCHEMA_VERSION};
use crate::diagnosis::live::{WorkloadHour, WorkloadPart, WorkloadSum};

/// Rows of workloads.
pub enum Workloads {}

/// What a row is made of.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadRow<'r> {
    /// What it is of.
    pub hour: &'r WorkloadHour,
    /// What was summed.
    pub sum: &'r WorkloadSum,
}

impl Record for Workloads {
    type Row<'r> = WorkloadRow<'r>;
}

type W = Column<Workloads>;

const NO_POD: &str = "it is in no pod, or its node did not say what that is called";
const ALL: &str = "it is of the whole host";

fn part<'r>(
    row: &WorkloadRow<'r>,
    get: impl FnOnce(&'r WorkloadPart) -> Option<&'r str>,
) -> Cell<'r> {
    Cell::word(row.hour.of.as_ref().and_then(get))
}

const fn text(
    name: &'static str,
    null: &'static str,
    meaning: &'static str,
    get: for<'r> fn(&'r WorkloadRow<'r>) -> Cell<'r>,
) -> W {
    W::new(name, Kind::Text, null, meaning, get).at(Place::Rows)
}

/// What took the time of a workload's connections, hour by hour. Rows are sums: those of the same
/// hour may be several, and are to be added.
pub static WORKLOADS: &[W] = &[
    W::new("schema", Kind::Number, "", "version of this table", |_| Cell::number(SCHEMA_VERSION))
        .at(Place::Rows),
    text("host_name", "its recorder is too old", "the host that recorded it", |row| {
        Cell::word(row.hour.host.as_deref())
    }),
    W::new("hour_ns", Kind::Number, "", "when the hour begins, since 1970", |row| {
        Cell::number(row.hour.hour.as_nanos())
    })
    .at(Place::Rows),
    text(
        "workload",
        "its process is hidden, or it is of the whole host",
        "the pod's id, or else the container's, or else the systemd unit, by the control group; `host` of what is in none",
        |row| part(row, |part| part.workload.as_deref()),
    ),
    text("process_name", "it is hidden, or it is of the whole host", "the process", |row| {
        part(row, |part| part.process.as_deref())
    }),
    W::new(
        "server_port",
        Kind::Number,
        "both ports are clients', or it is of the whole host",
        "the lower one of both ports",
        |row| Cell::Number(row.hour.of.as_ref().and_then(|part| part.port).map(u64::from)),
    )
    .at(Place::Rows),
    text(
        "peer_site",
        "no prefix has it, or none were given",
        "where the other end is, by the file of prefixes",
        |row| part(row, |part| Some(&part.site.as_ref()?.site)),
    ),
    text("peer_provider", "the file does not say", "whose that site is", |row| {
        part(row, |part| part.site.as_ref()?.provider.as_deref())
    }),
    text("peer_region", "the file does not say", "in which region it is", |row| {
        part(row, |part| part.site.as_ref()?.region.as_deref())
    }),
    text("role", ALL, "which end of the data this host is: `sender` or `receiver`", |row| {
        part(row, |part| Some(part.role))
    }),
    text("owner", ALL, "whose the time was, by the names of the account", |row| {
        part(row, |part| Some(part.owner))
    }),
    text("cause", ALL, "what for: a limit of the data, or what was waited for", |row| {
        part(row, |part| Some(part.cause))
    }),
    W::new("time_us", Kind::Number, ALL, "the time, summed over connections", |row| {
        Cell::micros(row.hour.of.as_ref().map(|_| row.sum.time))
    })
    .at(Place::Rows),
    W::new(
        "lost_us",
        Kind::Number,
        "",
        "what is lost of it; of the whole host, what connections lost of which nothing was kept",
        |row| Cell::micros(row.sum.lost),
    )
    .at(Place::Rows),
    W::new(
        "io_bytes",
        Kind::Number,
        ALL,
        "what moved meanwhile, in the direction that moved more",
        |row| Cell::Number(row.hour.of.as_ref().map(|_| row.sum.bytes.get())),
    )
    .at(Place::Rows),
    W::new(
        "watched_us",
        Kind::Number,
        "it is of a workload",
        "for how long the recorder looked in this hour",
        |row| Cell::micros(row.hour.of.is_none().then_some(row.sum.watched)),
    )
    .at(Place::Rows),
    text("pod_namespace", NO_POD, "the namespace of Kubernetes that the pod is in", |row| {
        part(row, |part| Some(&part.pod.as_ref()?.namespace))
    }),
    text("pod_name", NO_POD, "the pod's name", |row| {
        part(row, |part| Some(&part.pod.as_ref()?.name))
    }),
    text(
        "controller",
        NO_POD,
        "what made the pod, by the pod's name, such as a Deployment; the pod's name where that tells none",
        |row| part(row, |part| Some(part.pod.as_ref()?.controller(part.workload.as_deref()?))),
    ),
];
