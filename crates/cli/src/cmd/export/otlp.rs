//! The served metrics as a document of OTLP (the OpenTelemetry protocol 1.x) in its JSON encoding.
//!
//! It is made from the OpenMetrics text, so both ways out have the same metrics. A counter keeps
//! its name without `_total`, which OpenTelemetry's exporters for Prometheus put back. Labels get
//! the names of the semantic conventions again, the version is the resource's. Integers of 64 bits
//! are strings, as Protocol Buffers' JSON encoding has it.

use fullpipe_model::units::Instant;
use serde_json::{Value, json};
use std::collections::HashMap;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: each value counts from its start.
const CUMULATIVE: u8 = 2;

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
}

impl Encoder {
    /// Nothing was counted before `start`, a time since 1970.
    pub fn new(start: Instant) -> Encoder {
        Encoder { last: start, series: HashMap::new() }
    }

    /// The document of what `text`, OpenMetrics, says at `now`, a time since 1970.
    pub fn document(&mut self, text: &str, now: Instant) -> Value {
        let families = families(text);
        let metrics: Vec<Value> =
            families.iter().filter_map(|family| self.metric(family, now)).collect();
        self.series.retain(|_, series| series.seen == now);
        self.last = now;
        let mut resource = vec![attribute("service.name", "fullpipe")];
        resource.push(attribute("service.version", env!("CARGO_PKG_VERSION")));
        let host = fullpipe_kernel::host::name();
        if !host.is_empty() {
            resource.push(attribute("host.name", &host));
        }
        json!({ "resourceMetrics": [{
            "resource": { "attributes": resource },
            "scopeMetrics": [{
                "scope": { "name": "fullpipe.export", "version": env!("CARGO_PKG_VERSION") },
                "metrics": metrics,
            }],
        }]})
    }

    /// `None` for what is no metric of OTLP, or has no values yet.
    fn metric(&mut self, family: &OpenMetric, now: Instant) -> Option<Value> {
        let (kind, mut data) = match family.kind.as_str() {
            "counter" => ("sum", json!({ "isMonotonic": true })),
            "gauge" => ("gauge", json!({})),
            "histogram" => ("histogram", json!({})),
            _ => return None,
        };
        if kind != "gauge" {
            data["aggregationTemporality"] = json!(CUMULATIVE);
        }
        let points: Vec<Value> = match kind {
            "histogram" => self.histograms(family, now),
            _ => family.samples.iter().map(|sample| self.number(family, sample, now)).collect(),
        };
        if points.is_empty() {
            return None;
        }
        data["dataPoints"] = points.into();
        let unit = match family.unit.as_str() {
            "seconds" => "s",
            "bytes" => "By",
            _ if family.name.ends_with("_bytes_per_second") => "By/s",
            _ => "1",
        };
        let (name, description) = (&family.name, &family.help);
        let mut metric = json!({ "name": name, "description": description, "unit": unit });
        metric[kind] = data;
        Some(metric)
    }

    fn number(&mut self, family: &OpenMetric, sample: &Sample, now: Instant) -> Value {
        let mut point = point(&sample.labels, now);
        match sample.value.parse::<i64>() {
            Ok(_) => point["asInt"] = json!(sample.value),
            Err(_) => point["asDouble"] = json!(double(&sample.value)),
        }
        if family.kind == "counter" {
            let start = self.start(&family.name, &sample.labels, double(&sample.value), now);
            point["startTimeUnixNano"] = json!(start.as_nanos().to_string());
        }
        point
    }

    /// The lines of a histogram count what is at or below a bound; OTLP's buckets count apart.
    fn histograms(&mut self, family: &OpenMetric, now: Instant) -> Vec<Value> {
        let mut points: Vec<(Labels, Value, u64)> = Vec::new();
        for sample in &family.samples {
            let (bound, labels): (Labels, Labels) =
                sample.labels.iter().cloned().partition(|(name, _)| name == "le");
            let index = points.iter().position(|(other, ..)| *other == labels);
            let index = index.unwrap_or_else(|| {
                let mut point = point(&labels, now);
                point["explicitBounds"] = json!([]);
                point["bucketCounts"] = json!([]);
                points.push((labels, point, 0));
                points.len() - 1
            });
            let (_, point, below) = &mut points[index];
            match (sample.suffix.as_str(), bound.first()) {
                ("_sum", _) => point["sum"] = json!(double(&sample.value)),
                ("_count", _) => point["count"] = json!(sample.value),
                ("_bucket", Some((_, bound))) => {
                    let all: u64 = sample.value.parse().unwrap_or(*below);
                    push(point, "bucketCounts", json!(all.saturating_sub(*below).to_string()));
                    *below = all;
                    if bound != "+Inf" {
                        push(point, "explicitBounds", json!(double(bound)));
                    }
                }
                _ => {}
            }
        }
        let with_start = points.into_iter().map(|(labels, mut point, count)| {
            let start = self.start(&family.name, &labels, count as f64, now);
            point["startTimeUnixNano"] = json!(start.as_nanos().to_string());
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

fn point(labels: &[Label], now: Instant) -> Value {
    let attributes: Vec<Value> = labels
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
                "k8s_pod_qos_class" => "k8s.pod.qos_class",
                "peer_site" => "peer.site",
                "peer_provider" => "peer.provider",
                "peer_region" => "peer.region",
                "network_io_direction" => "network.io.direction",
                other => other,
            };
            attribute(name, value)
        })
        .collect();
    json!({ "attributes": attributes, "timeUnixNano": now.as_nanos().to_string() })
}

/// A port is a number, as the semantic conventions say.
fn attribute(key: &str, value: &str) -> Value {
    let value = match (key, value.parse::<u16>()) {
        ("server.port", Ok(_)) => json!({ "intValue": value }),
        _ => json!({ "stringValue": value }),
    };
    json!({ "key": key, "value": value })
}

fn push(point: &mut Value, list: &str, value: Value) {
    if let Some(list) = point[list].as_array_mut() {
        list.push(value);
    }
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
                family.samples.extend(sample(&family.name, line));
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

/// `NAME_SUFFIX{LABEL="VALUE",..} VALUE`, of the metric `name`.
fn sample(name: &str, line: &str) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (full, labels) = series.split_once('{').unwrap_or((series, "}"));
    let suffix = full.strip_prefix(name)?.to_string();
    Some(Sample { suffix, labels: self::labels(labels), value: value.into() })
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
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family as Metrics;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::registry::{Registry, Unit};
    use proptest::prelude::*;
    use serde_json::Map;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    /// The points of a metric, and the value that holds them.
    fn metric<'a>(document: &'a Value, name: &str) -> &'a Map<String, Value> {
        let metrics = &document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        let mut metrics = metrics.as_array().unwrap().iter();
        metrics.find(|metric| metric["name"] == name).unwrap().as_object().unwrap()
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

    /// A receiver takes the start for the time from which the value counts.
    #[test]
    fn a_series_that_fell_or_is_new_starts_at_the_last_document() {
        let text = |value: u32| format!("# HELP a_b x.\n# TYPE a_b counter\na_b_total {value}\n");
        let mut encoder = Encoder::new(at(1));
        let mut starts = Vec::new();
        for (value, seconds) in [(5, 2), (7, 3), (2, 4), (2, 5)] {
            let document = encoder.document(&text(value), at(seconds));
            let point = &metric(&document, "a_b")["sum"]["dataPoints"][0];
            assert_eq!(point["asInt"], value.to_string());
            starts.push(point["startTimeUnixNano"].as_str().unwrap().to_string());
        }
        assert_eq!(starts, ["1000000000", "1000000000", "3000000000", "3000000000"]);
        encoder.document("# EOF\n", at(6));
        let document = encoder.document(&text(9), at(7));
        let point = &metric(&document, "a_b")["sum"]["dataPoints"][0];
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
