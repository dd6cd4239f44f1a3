//! The served metrics as a document of OTLP (the OpenTelemetry protocol 1.x), in the encoding of
//! Protocol Buffers or in its JSON.
//!
//! It is made from the OpenMetrics text, so both ways out have the same metrics. A counter keeps
//! its name without `_total`, which OpenTelemetry's exporters for Prometheus put back. Labels get
//! the names of the semantic conventions again, the version is the resource's. Both encodings are
//! of the same [`message`].

mod message;

use fullpipe_model::units::Instant;
use message::{
    AnyValue, AttributeValue, CUMULATIVE, Exemplar, ExemplarValue, GaugePoints, HistogramPoint,
    HistogramPoints, KeyValue, Metric, MetricData, Number, NumberPoint, Resource, ResourceMetrics,
    Scope, ScopeMetrics, SumPoints,
};
pub use message::{ExportAnswer, ExportRequest, RpcStatus};
use std::collections::HashMap;

/// Makes the documents, and remembers since when each series counts.
pub struct Encoder {
    /// The time of the last document, since 1970; of the program's start before the first.
    last: Instant,
    series: HashMap<String, Series>,
}

#[derive(Debug, Clone, Copy)]
struct Series {
    start: Instant,
    value: f64,
    /// When a document had it last.
    seen: Instant,
}

/// A metric while its lines are read.
#[derive(Default)]
struct OpenMetric {
    name: String,
    help: String,
    kind: String,
    unit: String,
    samples: Vec<Sample>,
}

/// A name and a value.
type Label = (String, String);
type Labels = Vec<Label>;

struct Sample {
    suffix: String,
    labels: Labels,
    value: String,
    exemplar: Option<Exemplar>,
}

impl Encoder {
    /// Nothing was counted before `start`, a time since 1970.
    pub fn new(start: Instant) -> Encoder {
        Encoder { last: start, series: HashMap::new() }
    }

    /// The document of what `text`, OpenMetrics, says at `now`, a time since 1970.
    pub fn document(&mut self, text: &str, now: Instant) -> ExportRequest {
        let families = families(text);
        let metrics = families.iter().filter_map(|family| self.metric(family, now)).collect();
        self.series.retain(|_, series| series.seen == now);
        self.last = now;
        let mut attributes = vec![attribute("service.name", "fullpipe")];
        attributes.push(attribute("service.version", env!("CARGO_PKG_VERSION")));
        let host = fullpipe_kernel::host::name();
        if !host.is_empty() {
            attributes.push(attribute("host.name", &host));
        }
        let scope =
            Scope { name: "fullpipe.export".into(), version: env!("CARGO_PKG_VERSION").into() };
        let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics }];
        let resource = Some(Resource { attributes });
        ExportRequest { resource_metrics: vec![ResourceMetrics { resource, scope_metrics }] }
    }

    /// `None` for what is no metric of OTLP, or has no values yet.
    fn metric(&mut self, family: &OpenMetric, now: Instant) -> Option<Metric> {
        if family.samples.is_empty() {
            return None;
        }
        let data = match family.kind.as_str() {
            "counter" => MetricData::Sum(SumPoints {
                data_points: self.numbers(family, now),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            "gauge" => MetricData::Gauge(GaugePoints { data_points: self.numbers(family, now) }),
            "histogram" => MetricData::Histogram(HistogramPoints {
                data_points: self.histograms(family, now),
                aggregation_temporality: CUMULATIVE,
            }),
            _ => return None,
        };
        let unit = match family.unit.as_str() {
            "seconds" => "s",
            "bytes" => "By",
            _ if family.name.ends_with("_bytes_per_second") => "By/s",
            _ => "1",
        };
        let (name, description) = (family.name.clone(), family.help.clone());
        Some(Metric { name, description, unit: unit.into(), data: Some(data) })
    }

    fn numbers(&mut self, family: &OpenMetric, now: Instant) -> Vec<NumberPoint> {
        family.samples.iter().map(|sample| self.number(family, sample, now)).collect()
    }

    fn number(&mut self, family: &OpenMetric, sample: &Sample, now: Instant) -> NumberPoint {
        let value = match sample.value.parse() {
            Ok(whole) => Number::AsInt(whole),
            Err(_) => Number::AsDouble(double(&sample.value)),
        };
        // What a gauge says has no start.
        let start = if family.kind == "counter" {
            self.start(&family.name, &sample.labels, double(&sample.value), now)
        } else {
            Instant::ZERO
        };
        NumberPoint {
            attributes: attributes(&sample.labels),
            start_time_unix_nano: start.as_nanos(),
            time_unix_nano: now.as_nanos(),
            value: Some(value),
        }
    }

    /// The lines of a histogram count what is at or below a bound; OTLP's buckets count apart.
    fn histograms(&mut self, family: &OpenMetric, now: Instant) -> Vec<HistogramPoint> {
        let mut points: Vec<(Labels, HistogramPoint, u64)> = Vec::new();
        for sample in &family.samples {
            let (bound, labels): (Labels, Labels) =
                sample.labels.iter().cloned().partition(|(name, _)| name == "le");
            let index = points.iter().position(|(other, ..)| *other == labels);
            let index = index.unwrap_or_else(|| {
                let attributes = attributes(&labels);
                let time_unix_nano = now.as_nanos();
                let new = HistogramPoint { attributes, time_unix_nano, ..Default::default() };
                points.push((labels, new, 0));
                points.len() - 1
            });
            let (_, point, below) = &mut points[index];
            match (sample.suffix.as_str(), bound.first()) {
                ("_sum", _) => point.sum = Some(double(&sample.value)),
                ("_count", _) => point.count = sample.value.parse().unwrap_or_default(),
                ("_bucket", Some((_, bound))) => {
                    let all: u64 = sample.value.parse().unwrap_or(*below);
                    point.bucket_counts.push(all.saturating_sub(*below));
                    *below = all;
                    if bound != "+Inf" {
                        point.explicit_bounds.push(double(bound));
                    }
                    point.exemplars.extend(sample.exemplar.clone());
                }
                _ => {}
            }
        }
        let with_start = points.into_iter().map(|(labels, mut point, count)| {
            let start = self.start(&family.name, &labels, count as f64, now);
            point.start_time_unix_nano = start.as_nanos();
            point
        });
        with_start.collect()
    }

    /// Since when a series counts: one that is new, or fell, began after the last document.
    fn start(&mut self, name: &str, labels: &[Label], value: f64, now: Instant) -> Instant {
        let last = self.last;
        let new = Series { start: last, value, seen: now };
        let series = self.series.entry(format!("{name}{labels:?}")).or_insert(new);
        let start = if value < series.value { last } else { series.start };
        *series = Series { start, value, seen: now };
        start
    }
}

fn attributes(labels: &[Label]) -> Vec<KeyValue> {
    labels
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| {
            let name = match name.as_str() {
                "process_executable_name" => "process.executable.name",
                "process_linux_cgroup" => "process.linux.cgroup",
                "server_port" => "server.port",
                "systemd_unit" => "systemd.unit",
                "container_id" => "container.id",
                "container_runtime" => "container.runtime",
                "k8s_pod_uid" => "k8s.pod.uid",
                "k8s_pod_name" => "k8s.pod.name",
                "k8s_namespace_name" => "k8s.namespace.name",
                "k8s_pod_qos_class" => "k8s.pod.qos_class",
                "peer_site" => "peer.site",
                "peer_provider" => "peer.provider",
                "peer_region" => "peer.region",
                "network_io_direction" => "network.io.direction",
                "network_local_port" => "network.local.port",
                "network_peer_port" => "network.peer.port",
                other => other,
            };
            attribute(name, value)
        })
        .collect()
}

/// A port is a whole number, as the semantic conventions say.
fn attribute(key: &str, value: &str) -> KeyValue {
    let value = match (key, value.parse::<u16>()) {
        ("server.port" | "network.local.port" | "network.peer.port", Ok(port)) => {
            AttributeValue::IntValue(port.into())
        }
        _ => AttributeValue::StringValue(value.into()),
    };
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }) }
}

fn double(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}

/// The metrics of an OpenMetrics text that prometheus-client wrote: HELP, TYPE and UNIT come
/// before the values.
fn families(text: &str) -> Vec<OpenMetric> {
    let mut families: Vec<OpenMetric> = Vec::new();
    for line in text.lines() {
        let Some(descriptor) = line.strip_prefix("# ") else {
            if let Some(family) = families.last_mut() {
                family.samples.extend(sample(family, line));
            }
            continue;
        };
        let mut words = descriptor.splitn(3, ' ');
        let (Some(key), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if families.last().is_none_or(|family| family.name != name) {
            families.push(OpenMetric { name: name.into(), ..OpenMetric::default() });
        }
        let Some(family) = families.last_mut() else { continue };
        match key {
            "HELP" => family.help = rest.into(),
            "TYPE" => family.kind = rest.into(),
            "UNIT" => family.unit = rest.into(),
            _ => {}
        }
    }
    families
}

/// `NAME_SUFFIX{LABEL="VALUE",..} VALUE`, of the metric `family`. Behind buckets of a histogram,
/// whose labels are ours alone, may be an exemplar: ` # {LABEL="VALUE",..} VALUE SECONDS`.
fn sample(family: &OpenMetric, line: &str) -> Option<Sample> {
    let is_bucket = family.kind == "histogram" && line.contains("_bucket{");
    let exemplar = if is_bucket { line.split_once(" # {") } else { None };
    let (line, exemplar) = exemplar.map_or((line, None), |(line, rest)| (line, Some(rest)));
    let (series, value) = line.rsplit_once(' ')?;
    let (full, labels) = series.split_once('{').unwrap_or((series, "}"));
    let suffix = full.strip_prefix(&family.name)?.to_string();
    let exemplar = exemplar.and_then(self::exemplar);
    Some(Sample { suffix, labels: self::labels(labels), value: value.into(), exemplar })
}

/// `LABEL="VALUE",..} VALUE SECONDS`.
fn exemplar(text: &str) -> Option<Exemplar> {
    let (labels, rest) = text.rsplit_once("} ")?;
    let (value, seconds) = rest.split_once(' ')?;
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let nanos: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    Some(Exemplar {
        filtered_attributes: attributes(&self::labels(labels)),
        time_unix_nano: whole.checked_mul(1_000_000_000)?.checked_add(nanos)?,
        value: Some(ExemplarValue::AsDouble(value.parse().ok()?)),
    })
}

/// `LABEL="VALUE",..}`, with `\"`, `\\` and `\n` in values.
fn labels(text: &str) -> Labels {
    let mut labels = Vec::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once("=\"") {
        let mut value = String::new();
        let mut characters = after.char_indices();
        let mut end = after.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, escaped)) => value.push(escaped),
                    None => {}
                },
                other => value.push(other),
            }
        }
        labels.push((name.trim_start_matches(',').into(), value));
        rest = &after[end..];
    }
    labels
}

#[cfg(test)]
mod decoded;

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family as Metrics;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::registry::{Registry, Unit};
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    pub(super) fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    /// The points of a metric, and the value that holds them.
    fn metric(document: &ExportRequest, name: &str) -> Map<String, Value> {
        let document = serde_json::to_value(document).unwrap();
        let metrics = &document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        let mut metrics = metrics.as_array().unwrap().iter();
        metrics.find(|metric| metric["name"] == name).unwrap().as_object().unwrap().clone()
    }

    #[test]
    fn a_histogram_has_counts_apart_and_its_bounds() {
        let mut registry = Registry::default();
        let histogram = Histogram::new([1.0, 5.0]);
        registry.register("taken", "How long", histogram.clone());
        for value in [0.5, 1.0, 3.0, 9.0, 10.0] {
            histogram.observe(value);
        }
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let document = Encoder::new(at(3)).document(&text, at(5));
        let expected = json!({
            "aggregationTemporality": 2,
            "dataPoints": [{
                "attributes": [],
                "startTimeUnixNano": "3000000000",
                "timeUnixNano": "5000000000",
                "count": "5",
                "sum": 23.5,
                "bucketCounts": ["2", "1", "2"],
                "explicitBounds": [1.0, 5.0],
            }],
        });
        assert_eq!(metric(&document, "taken")["histogram"], expected);
    }

    #[test]
    fn an_exemplar_of_a_bucket_is_the_points() {
        let text = "# HELP a_b x.\n# TYPE a_b histogram\na_b_sum 3.5\na_b_count 2\n\
            a_b_bucket{le=\"1.0\"} 1 # {recording=\"sockets-x.gz\",network_peer_port=\"7\"} 0.5 \
            1800000000.25\na_b_bucket{le=\"+Inf\"} 2\n";
        let document = Encoder::new(at(3)).document(text, at(5));
        let point = &metric(&document, "a_b")["histogram"]["dataPoints"][0];
        assert_eq!(point["bucketCounts"], json!(["1", "1"]));
        let expected = json!([{
            "filteredAttributes": [
                { "key": "recording", "value": { "stringValue": "sockets-x.gz" } },
                { "key": "network.peer.port", "value": { "intValue": "7" } },
            ],
            "timeUnixNano": "1800000000250000000",
            "asDouble": 0.5,
        }]);
        assert_eq!(point["exemplars"], expected);
    }

    /// A receiver takes the start for the time from which the value counts.
    #[test]
    fn a_series_that_fell_or_is_new_starts_at_the_last_document() {
        let text = |value: u32| format!("# HELP a_b x.\n# TYPE a_b counter\na_b_total {value}\n");
        let mut encoder = Encoder::new(at(1));
        let mut starts = Vec::new();
        for (value, seconds) in [(5, 2), (7, 3), (2, 4), (2, 5)] {
            let document = encoder.document(&text(value), at(seconds));
            let point = metric(&document, "a_b")["sum"]["dataPoints"][0].clone();
            assert_eq!(point["asInt"], value.to_string());
            starts.push(point["startTimeUnixNano"].as_str().unwrap().to_string());
        }
        assert_eq!(starts, ["1000000000", "1000000000", "3000000000", "3000000000"]);
        encoder.document("# EOF\n", at(6));
        let document = encoder.document(&text(9), at(7));
        let point = metric(&document, "a_b")["sum"]["dataPoints"][0].clone();
        assert_eq!(point["startTimeUnixNano"], "6000000000", "it was gone meanwhile");
    }

    proptest! {
        /// A process may have any name.
        #[test]
        fn every_label_survives(name in "\\PC*|[a\\\\\"\n,={} ]*", count: u32) {
            let mut registry = Registry::with_prefix("x");
            let metrics = Metrics::<Vec<(String, String)>, Counter>::default();
            let key = vec![
                ("process_executable_name".to_string(), name.clone()),
                ("server_port".to_string(), "443".to_string()),
            ];
            metrics.get_or_create(&key).inc_by(count.into());
            registry.register_with_unit("io", "Bytes", Unit::Bytes, metrics);
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            let document = Encoder::new(at(0)).document(&text, at(1));
            let metric = metric(&document, "x_io_bytes");
            prop_assert_eq!(&metric["unit"], "By");
            let point = &metric["sum"]["dataPoints"][0];
            prop_assert_eq!(&point["asInt"], &json!(count.to_string()));
            let mut expected = vec![json!({ "key": "server.port", "value": { "intValue": "443" } })];
            if !name.is_empty() {
                let value = json!({ "stringValue": name });
                expected.insert(0, json!({ "key": "process.executable.name", "value": value }));
            }
            prop_assert_eq!(&point["attributes"], &Value::from(expected));
        }
    }
}
