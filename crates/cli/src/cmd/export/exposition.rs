//! The metrics as OpenMetrics text.
//!
//! Names follow OpenTelemetry's semantic conventions where they have one, with the underscores of
//! Prometheus: `process.executable.name`, `process.linux.cgroup`, `server.port`, `container.id`,
//! `container.runtime`, `k8s.pod.uid`, `k8s.pod.name`, `k8s.namespace.name`,
//! `network.io.direction`. Units are seconds and bytes.

use super::exemplars::Exemplars;
use fullpipe_host::totals::{Counters, Group, GroupLabel, Observation, Totals};
use fullpipe_model::limit::Limit;
use fullpipe_model::observe::Prefixes;
use fullpipe_model::units::{Duration, Instant};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Bounds of the goodput's buckets in bytes a second: 100 kbit/s to 100 Gbit/s.
const GOODPUT: [f64; 7] = [12_500.0, 125e3, 1.25e6, 12.5e6, 125e6, 1.25e9, 12.5e9];
/// Bounds of the lost share's buckets.
const LOST: [f64; 6] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9];

/// The series that do not depend on the connections: two histograms with a bucket without bound,
/// sum and count each, three gauges and the version.
pub const FIXED_SERIES: usize = (GOODPUT.len() + 3) + (LOST.len() + 3) + 3 + 1;

/// The metrics of a host.
pub struct Exposition {
    registry: Registry,
    totals: Arc<Mutex<Totals>>,
    goodput: Histogram,
    lost: Histogram,
    connections: Gauge,
    busy: Gauge,
    look: Gauge<f64, std::sync::atomic::AtomicU64>,
    /// Of the lost share.
    exemplars: Option<Mutex<Exemplars>>,
}

/// The name of the lost share's histogram behind the registry's prefix, and the whole of it.
const LOST_NAME: &str = "tcp_connection_lost_ratio";
const LOST_WHOLE: &str = "fullpipe_tcp_connection_lost_ratio";

impl Exposition {
    /// Nothing counted yet; at most `series_max` series in all, which `labels` tell apart; where
    /// peers are is said by `prefixes`. What lost time is told with its part of the recording in
    /// the folder `ring`.
    pub fn new(
        series_max: usize,
        labels: &[GroupLabel],
        prefixes: Arc<Prefixes>,
        ring: Option<PathBuf>,
    ) -> Exposition {
        let totals = Totals::new(series_max.saturating_sub(FIXED_SERIES), labels, prefixes);
        let totals = Arc::new(Mutex::new(totals));
        let mut registry = Registry::with_prefix("fullpipe");
        let (goodput, lost) = (Histogram::new(GOODPUT), Histogram::new(LOST));
        let (connections, busy) = (Gauge::default(), Gauge::default());
        let look = Gauge::default();
        registry.register_collector(Box::new(ByGroup(Arc::clone(&totals))));
        registry.register(
            "tcp_connection_goodput_bytes_per_second",
            "Rate of a busy connection between two looks",
            goodput.clone(),
        );
        registry.register(
            LOST_NAME,
            "Share of the time between two looks that a limit other than the path and the sending \
             application held a busy connection",
            lost.clone(),
        );
        registry.register("tcp_connections", "TCP connections", connections.clone());
        registry.register("tcp_busy_connections", "TCP connections that move data", busy.clone());
        registry.register_with_unit(
            "look",
            "How long the last look at all connections took",
            Unit::Seconds,
            look.clone(),
        );
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program", version);
        let exemplars = ring.map(|ring| Mutex::new(Exemplars::new(ring, &LOST)));
        Exposition { registry, totals, goodput, lost, connections, busy, look, exemplars }
    }

    /// Counts what a look found at `now`.
    pub fn note(
        &self,
        connections: usize,
        (took, now): (Duration, Instant),
        look: impl FnOnce(&mut Totals) -> Vec<Observation>,
    ) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        let observed = look(&mut totals);
        for observation in &observed {
            self.goodput.observe(observation.goodput);
            self.lost.observe(observation.lost_share);
        }
        self.connections.set(i64::try_from(connections).unwrap_or(i64::MAX));
        self.busy.set(i64::try_from(observed.len()).unwrap_or(i64::MAX));
        self.look.set(took.as_secs_f64());
        if let Some(exemplars) = &self.exemplars {
            exemplars.lock().unwrap_or_else(PoisonError::into_inner).note(&observed, now);
        }
    }

    /// The metrics as OpenMetrics.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // A String takes everything.
        text::encode(&mut out, &self.registry).expect("a String takes any text");
        match &self.exemplars {
            Some(exemplars) => {
                let exemplars = exemplars.lock().unwrap_or_else(PoisonError::into_inner);
                exemplars.within(&out, LOST_WHOLE)
            }
            None => out,
        }
    }
}

/// The counters of each group.
#[derive(Debug)]
struct ByGroup(Arc<Mutex<Totals>>);

impl Collector for ByGroup {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let groups = self.0.lock().unwrap_or_else(PoisonError::into_inner).groups();
        by_limit(
            &mut encoder,
            ("tcp_limited", "Time that a limit held connections, summed over them.", Unit::Seconds),
            &groups,
            |counters, limit| Some(counters.by_limit.get(&limit)?.time.as_secs_f64()),
        )?;
        by_limit(
            &mut encoder,
            ("tcp_limited_io", "Bytes that moved while a limit held.", Unit::Bytes),
            &groups,
            |counters, limit| Some(counters.by_limit.get(&limit)?.bytes.as_f64()),
        )?;
        let help = "Time of connections, by whose it was.";
        let (name, unit) = ("tcp_owned", Some(&Unit::Seconds));
        let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
        for (group, counters) in &groups {
            for (owner, time) in &counters.by_owner {
                let labels = labels(group, &[("owner", owner.name())]);
                ConstCounter::new(time.as_secs_f64()).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "Bytes that were acknowledged (transmit) and received (receive).";
        let mut metric =
            encoder.encode_descriptor("tcp_io", help, Some(&Unit::Bytes), MetricType::Counter)?;
        for (group, counters) in &groups {
            let directions = [("transmit", counters.sent), ("receive", counters.received)];
            for (direction, bytes) in directions {
                let labels = labels(group, &[("network_io_direction", direction)]);
                ConstCounter::new(bytes.get()).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "Segments that were sent again.";
        let name = "tcp_retransmitted_segments";
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (group, counters) in &groups {
            let labels = labels(group, &[]);
            ConstCounter::new(counters.retransmissions).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn by_limit(
    encoder: &mut DescriptorEncoder,
    (name, help, unit): (&str, &str, Unit),
    groups: &[(Group, Counters)],
    value: fn(&Counters, Limit) -> Option<f64>,
) -> Result<(), std::fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Counter)?;
    for (group, counters) in groups {
        for limit in Limit::ALL {
            let Some(value) = value(counters, limit) else { continue };
            let cause = limit.cause().unwrap_or_default();
            let labels = labels(group, &[("limit", limit.name()), ("cause", cause)]);
            ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// A group's labels and others.
fn labels(group: &Group, others: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let own = group.labels.iter().map(|(label, said)| (name(*label), said.clone()));
    own.chain(others.iter().map(|(name, value)| (*name, value.to_string()))).collect()
}

/// The name of a label.
const fn name(label: GroupLabel) -> &'static str {
    match label {
        GroupLabel::Process => "process_executable_name",
        GroupLabel::Cgroup => "process_linux_cgroup",
        GroupLabel::Port => "server_port",
        GroupLabel::Workload => "workload",
        GroupLabel::Unit => "systemd_unit",
        GroupLabel::Container => "container_id",
        GroupLabel::Runtime => "container_runtime",
        GroupLabel::Pod => "k8s_pod_uid",
        GroupLabel::PodName => "k8s_pod_name",
        GroupLabel::Controller => "controller",
        GroupLabel::Namespace => "k8s_namespace_name",
        GroupLabel::Qos => "k8s_pod_qos_class",
        GroupLabel::Site => "peer_site",
        GroupLabel::Provider => "peer_provider",
        GroupLabel::Region => "peer_region",
    }
}
