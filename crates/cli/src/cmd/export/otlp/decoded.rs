//! What Google's `protoc` reads in the bytes that are pushed, by the fields of opentelemetry-proto,
//! against the JSON of the same document.

use super::tests::at;
use super::{Encoder, ExportRequest};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use proptest::prelude::*;
use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;

/// A message: its fields with their values, or one value.
#[derive(Debug, PartialEq)]
enum Node {
    Leaf(String),
    Fields(BTreeMap<String, Vec<Node>>),
}

/// A number in one form, however it was written.
fn number(text: &str) -> String {
    match (text.parse::<i128>(), text.parse::<f64>()) {
        (Ok(whole), _) => whole.to_string(),
        (_, Ok(double)) if double.fract() == 0.0 && double.abs() < 1e15 => format!("{double:.0}"),
        (_, Ok(double)) => format!("{double:e}"),
        // A name of an enumeration's value, or a truth value.
        _ => text.replace("AGGREGATION_TEMPORALITY_CUMULATIVE", "2"),
    }
}

/// Protocol Buffers leave out what has its default, where that has no meaning of its own.
fn is_default(name: &str, value: &Value) -> bool {
    let has_default = ["name", "description", "unit", "key", "count", "isMonotonic"];
    has_default.contains(&name) && (*value == "" || *value == "0" || *value == false)
}

fn of_json(value: &Value) -> Node {
    match value {
        Value::Object(fields) => {
            let mut node: BTreeMap<String, Vec<Node>> = BTreeMap::new();
            for (name, value) in fields.iter().filter(|(name, value)| !is_default(name, value)) {
                let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                for value in values {
                    node.entry(name.clone()).or_default().push(of_json(value));
                }
            }
            Node::Fields(node)
        }
        Value::String(text) => Node::Leaf(text.clone()),
        other => Node::Leaf(number(&other.to_string())),
    }
}

/// `snake_case` as JSON has it.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
}

/// A quoted text of the text format: UTF-8 in octal escapes.
fn unquoted(text: &str) -> String {
    let inner = &text[1..text.len() - 1];
    let mut bytes = Vec::new();
    let mut rest = inner.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let digits = after.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 3 {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..3]).unwrap(), 8).unwrap());
            rest = &after[3..];
        } else {
            bytes.push(match after[0] {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                other => other,
            });
            rest = &after[1..];
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// The text format, of which protoc prints a field a line.
fn of_text<'l>(lines: &mut impl Iterator<Item = &'l str>) -> Node {
    let mut node: BTreeMap<String, Vec<Node>> = BTreeMap::new();
    while let Some(line) = lines.next().map(str::trim) {
        let (name, value) = match line.split_once(": ") {
            Some((name, text)) if text.starts_with('"') => (name, Node::Leaf(unquoted(text))),
            Some((name, text)) => (name, Node::Leaf(number(text))),
            None if line == "}" => break,
            None => (line.strip_suffix(" {").unwrap(), of_text(lines)),
        };
        node.entry(camel(name)).or_default().push(value);
    }
    Node::Fields(node)
}

/// What protoc reads; `None` where there is none.
#[expect(clippy::print_stderr, reason = "skips are told to whoever reads the test's output")]
fn by_protoc(bytes: &[u8]) -> Option<Node> {
    const REQUEST: &str = "otlp.ExportMetricsServiceRequest";
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/otlp");
    let protoc = Command::new("protoc")
        .args(["-I", folder, "--decode", REQUEST, "metrics.proto"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut protoc) = protoc else {
        eprintln!("SKIPPED: OTLP by Protocol Buffers: no protoc (Debian: protobuf-compiler)");
        return None;
    };
    protoc.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = protoc.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(of_text(&mut text.lines()))
}

/// A document with every type of metric.
fn document(name: &str, count: u32, observed: &[f64]) -> ExportRequest {
    let mut registry = Registry::with_prefix("x");
    let counters = Family::<Vec<(String, String)>, Counter>::default();
    let key = vec![
        ("process_executable_name".to_owned(), name.to_owned()),
        ("server_port".to_owned(), "443".to_owned()),
    ];
    counters.get_or_create(&key).inc_by(count.into());
    registry.register_with_unit("io", "Bytes \"moved\"", Unit::Bytes, counters);
    let histogram = Histogram::new([0.0, 0.1, 5.0]);
    observed.iter().for_each(|value| histogram.observe(*value));
    registry.register("lost_ratio", "Share", histogram);
    let gauge = Gauge::<f64, AtomicU64>::default();
    // The sum of nothing would be -0, which has two forms as text.
    gauge.set(0.0 + observed.iter().sum::<f64>());
    registry.register_with_unit("look", "How long", Unit::Seconds, gauge);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    // As `export --ring` writes it.
    let exemplar = format!("{{recording=\"sockets-{count}.gz\",network_peer_port=\"7\"}} 0.25");
    let bucket = format!("le=\"5.0\"}} {}", observed.iter().filter(|value| **value <= 5.0).count());
    let text = text.replace(&bucket, &format!("{bucket} # {exemplar} 1800000003.125"));
    Encoder::new(at(1_800_000_000)).document(&text, at(1_800_000_007))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn protoc_reads_what_the_json_says(
        name in "\\PC*|[a\\\\\"\n\r\t,={} é]*",
        count: u32,
        observed in prop::collection::vec(0.0..1e12, 0..6),
    ) {
        let document = document(&name, count, &observed);
        let bytes = document.encode_to_vec();
        prop_assert_eq!(&ExportRequest::decode(bytes.as_slice()).unwrap(), &document);
        let json = of_json(&serde_json::to_value(&document).unwrap());
        if let Some(decoded) = by_protoc(&bytes) {
            prop_assert_eq!(decoded, json);
        }
    }
}

/// Bytes that are cut or changed are no other document by chance.
#[test]
fn bytes_that_are_cut_are_refused_or_differ() {
    let document = document("name", 3, &[0.5, 7.0]);
    let bytes = document.encode_to_vec();
    for length in 0..bytes.len() {
        let cut = ExportRequest::decode(&bytes[..length]);
        assert!(cut.map_or(true, |cut| cut != document), "{length} of {}", bytes.len());
    }
}
