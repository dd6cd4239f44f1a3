//! The messages of OTLP that `export` sends, and those that a collector answers with.
//!
//! Names and numbers of fields are those of opentelemetry-proto 1.11.0, which are stable:
//! `collector/metrics/v1/metrics_service.proto`, `metrics/v1/metrics.proto`,
//! `common/v1/common.proto` and `resource/v1/resource.proto`. Fields that are never sent are left
//! out: a receiver takes them for their defaults. JSON has the same messages by Protocol Buffers'
//! rules for JSON: lowerCamelCase, integers of 64 bits as strings, enumerations as numbers.

use prost::{Message, Oneof};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: each value counts from its start.
pub const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

/// `InstrumentationScope`.
#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Scope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct Metric {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(string, tag = "3")]
    pub unit: String,
    #[prost(oneof = "MetricData", tags = "5, 7, 9")]
    #[serde(flatten)]
    pub data: Option<MetricData>,
}

#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricData {
    #[prost(message, tag = "5")]
    Gauge(GaugePoints),
    #[prost(message, tag = "7")]
    Sum(SumPoints),
    #[prost(message, tag = "9")]
    Histogram(HistogramPoints),
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GaugePoints {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberPoint>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SumPoints {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistogramPoints {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

/// `NumberDataPoint`.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NumberPoint {
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "as_text", skip_serializing_if = "is_zero")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "as_text")]
    pub time_unix_nano: u64,
    #[prost(oneof = "Number", tags = "4, 6")]
    #[serde(flatten)]
    pub value: Option<Number>,
}

#[derive(Clone, Copy, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Number {
    #[prost(double, tag = "4")]
    AsDouble(f64),
    #[prost(sfixed64, tag = "6")]
    AsInt(#[serde(serialize_with = "as_text")] i64),
}

/// `HistogramDataPoint`.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HistogramPoint {
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "as_text")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "as_text")]
    pub time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    #[serde(serialize_with = "as_text")]
    pub count: u64,
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    #[serde(serialize_with = "as_texts")]
    pub bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    pub explicit_bounds: Vec<f64>,
    #[prost(message, repeated, tag = "8")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exemplars: Vec<Exemplar>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exemplar {
    #[prost(message, repeated, tag = "7")]
    pub filtered_attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "as_text")]
    pub time_unix_nano: u64,
    #[prost(oneof = "ExemplarValue", tags = "3")]
    #[serde(flatten)]
    pub value: Option<ExemplarValue>,
}

#[derive(Clone, Copy, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ExemplarValue {
    #[prost(double, tag = "3")]
    AsDouble(f64),
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub struct AnyValue {
    #[prost(oneof = "AttributeValue", tags = "1, 3")]
    #[serde(flatten)]
    pub value: Option<AttributeValue>,
}

#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AttributeValue {
    #[prost(string, tag = "1")]
    StringValue(String),
    #[prost(int64, tag = "3")]
    IntValue(#[serde(serialize_with = "as_text")] i64),
}

/// `ExportMetricsServiceResponse`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExportAnswer {
    #[prost(message, optional, tag = "1")]
    pub partial_success: Option<PartialSuccess>,
}

/// `ExportMetricsPartialSuccess`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartialSuccess {
    #[prost(int64, tag = "1")]
    #[serde(deserialize_with = "number_or_text")]
    pub rejected_data_points: i64,
    #[prost(string, tag = "2")]
    pub error_message: String,
}

/// `google.rpc.Status`, the body of a refusal; its code and details say nothing that HTTP's status
/// does not.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default)]
pub struct RpcStatus {
    #[prost(string, tag = "2")]
    pub message: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn as_text<S: Serializer>(number: &impl ToString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&number.to_string())
}

fn as_texts<S: Serializer>(numbers: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().map(u64::to_string))
}

/// A number of 64 bits is a string, but not every collector knows.
fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum NumberOrText {
        Number(i64),
        Text(String),
    }
    Ok(match NumberOrText::deserialize(deserializer)? {
        NumberOrText::Number(number) => number,
        NumberOrText::Text(text) => text.parse().unwrap_or(0),
    })
}
