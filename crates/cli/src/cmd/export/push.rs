//! Pushes OTLP documents to a collector by HTTP.
//!
//! All values count from their start, so what a failed push had is in the next one: after a failure
//! it waits, and then pushes what is so by then. Nothing piles up.

use super::otlp::{Encoder, ExportAnswer, ExportRequest, RpcStatus};
use crate::cmd::pauses::{self, PAUSE_MAX};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use clap::ValueEnum;
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Duration, Instant};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use prost::Message;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

/// OpenTelemetry's default for a push.
const PATIENCE: Duration = Duration::from_secs(10);
/// An answer longer than this is none of a collector.
const ANSWER_MAX: usize = 1 << 20;
/// Where a collector takes metrics, if the URL names no path.
const PATH: &str = "/v1/metrics";

/// A collector's address.
#[derive(Debug, Clone)]
pub struct Collector {
    /// `HOST:PORT`.
    address: String,
    authority: HeaderValue,
    /// The path and query.
    target: Uri,
}

impl std::str::FromStr for Collector {
    type Err = Sentence;

    fn from_str(text: &str) -> Result<Collector, Sentence> {
        let wrong = |english: &str, chinese: &str| {
            Sentence::new(
                format!("'{text}' {english}; try http://127.0.0.1:4318"),
                format!("'{text}' {chinese}；可试 http://127.0.0.1:4318"),
            )
        };
        let uri: Uri = text.parse().map_err(|error| {
            wrong(&format!("is no URL: {error}"), &format!("不是 URL：{error}"))
        })?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong(
                "must begin with http://: a collector on this host adds TLS",
                "须以 http:// 开头：TLS 由本机的收集器添加",
            ));
        }
        let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty())
        else {
            return Err(wrong("names no host", "没有给出主机"));
        };
        if authority.as_str().contains('@') {
            return Err(wrong(
                "has a password, which would be sent in the clear",
                "带有密码，会以明文发送",
            ));
        }
        let target = match uri.path_and_query().map(|target| target.as_str()) {
            None | Some("" | "/") => PATH,
            Some(target) => target,
        };
        let port = authority.port_u16().unwrap_or(80);
        Ok(Collector {
            address: format!("{}:{port}", authority.host()),
            authority: HeaderValue::from_str(authority.as_str())
                .map_err(|e| wrong(&e.to_string(), &e.to_string()))?,
            target: target.parse().map_err(|error| {
                wrong(&format!("has no path: {error}"), &format!("没有路径：{error}"))
            })?,
        })
    }
}

/// How documents are encoded, by the names of OpenTelemetry's `OTEL_EXPORTER_OTLP_PROTOCOL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// Protocol Buffers, which every collector reads
    #[value(name = "http/protobuf")]
    Protobuf,
    /// JSON, which people read, too
    #[value(name = "http/json")]
    Json,
}

/// The media types of both.
const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

impl Protocol {
    /// The media type, and a document in it.
    fn encode(self, document: &ExportRequest) -> (&'static str, Vec<u8>) {
        match self {
            Protocol::Protobuf => (PROTOBUF, document.encode_to_vec()),
            // Names and numbers alone: there is nothing that JSON has no form of.
            Protocol::Json => (JSON, serde_json::to_vec(document).unwrap_or_default()),
        }
    }
}

/// Why a push failed, and how long the collector wants to be left alone.
#[derive(Debug)]
struct Refused {
    why: String,
    pause: Option<Duration>,
}

impl Refused {
    fn by(error: impl std::fmt::Display) -> Refused {
        Refused { why: error.to_string(), pause: None }
    }
}

/// Now, since 1970.
fn since_1970() -> Instant {
    Instant::from_nanos((clock::now() + clock::realtime_offset()).as_nanos())
}

/// Pushes what `text` gives, each `interval`, for ever. Says when it begins to fail and when it
/// works again, not each time.
pub async fn push(
    (collector, protocol): (&Collector, Protocol),
    interval: Duration,
    text: impl Fn() -> String,
) {
    let mut encoder = Encoder::new(since_1970());
    let mut failures = 0;
    loop {
        let document = encoder.document(&text(), since_1970());
        let pushed = post(collector, protocol.encode(&document));
        let patience = tokio::time::timeout(PATIENCE.into(), pushed);
        let outcome = patience
            .await
            .unwrap_or_else(|_| Err(Refused::by(format!("there is no answer after {PATIENCE}"))));
        let pause = match outcome {
            Ok(rejected) => {
                if failures > 0 {
                    let address = &collector.address;
                    remark(&either(
                        format!("{address} takes metrics again"),
                        format!("{address} 恢复接收指标"),
                    ));
                }
                failures = 0;
                if let Some(why) = rejected {
                    let address = &collector.address;
                    remark(&either(
                        format!("{address} dropped values: {why}"),
                        format!("{address} 丢弃了一些值：{why}"),
                    ));
                }
                interval
            }
            Err(Refused { why, pause }) => {
                if failures == 0 {
                    let url = format!("http://{}{}", collector.address, collector.target);
                    remark(&either(
                        format!(
                            "push to {url}: {why}; trying again with longer and longer pauses, \
                             up to {PAUSE_MAX}"
                        ),
                        format!("推送到 {url}：{why}；将以越来越长的间隔重试，最长 {PAUSE_MAX}"),
                    ));
                }
                failures += 1;
                pause.unwrap_or_else(|| pauses::after(failures, interval))
            }
        };
        tokio::time::sleep(pause.into()).await;
    }
}

/// Pushes one document. `Some` is what the collector says about values that it dropped.
async fn post(
    collector: &Collector,
    (kind, body): (&'static str, Vec<u8>),
) -> Result<Option<String>, Refused> {
    let stream = TcpStream::connect(&collector.address).await.map_err(Refused::by)?;
    let connected = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(Refused::by)?;
    let mut request = Request::post(collector.target.clone())
        .body(Full::<Bytes>::from(body))
        .map_err(Refused::by)?;
    let headers = [
        (HOST, collector.authority.clone()),
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (USER_AGENT, HeaderValue::from_static(concat!("fullpipe/", env!("CARGO_PKG_VERSION")))),
        (CONNECTION, HeaderValue::from_static("close")),
    ];
    request.headers_mut().extend(headers);
    let asking = async move {
        let response = sender.send_request(request).await.map_err(Refused::by)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
        let body = body.map_err(Refused::by)?.to_bytes();
        judge(status, &headers, &body)
    };
    // The connection moves the bytes; its errors also appear in the answer.
    let (answer, _) = tokio::join!(asking, connection);
    answer
}

/// What the collector says, in whichever of the two encodings: proxies answer in their own. A body
/// that is neither says nothing.
fn told<M: Message + Default + DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> M {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case(PROTOBUF) {
        M::decode(body).unwrap_or_default()
    } else {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

fn judge(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Option<String>, Refused> {
    if status.is_success() {
        let partial = told::<ExportAnswer>(headers, body).partial_success.unwrap_or_default();
        let (rejected, why) = (partial.rejected_data_points, partial.error_message);
        return Ok((rejected > 0).then(|| format!("{rejected} were rejected. {why}")));
    }
    let retry_after = headers.get(RETRY_AFTER);
    let seconds = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    let hint = match status {
        StatusCode::NOT_FOUND => "; is it the address of OTLP by HTTP (port 4318 by default)?",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "; try the other --otlp-protocol",
        _ => "",
    };
    let message = match told::<RpcStatus>(headers, body).message {
        none if none.is_empty() => none,
        text => format!(" ({text})"),
    };
    let pause = seconds.map(|seconds| Duration::from_secs(seconds).min(PAUSE_MAX));
    Err(Refused { why: format!("the collector answers {status}{message}{hint}"), pause })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_without_a_path_get_that_of_metrics() {
        let read = |text: &str| -> Result<(String, String), Sentence> {
            let collector: Collector = text.parse()?;
            Ok((collector.address, collector.target.to_string()))
        };
        let pair = |address: &str, target: &str| Ok((address.to_string(), target.to_string()));
        assert_eq!(read("http://127.0.0.1:4318"), pair("127.0.0.1:4318", "/v1/metrics"));
        assert_eq!(read("http://[::1]:4318/"), pair("[::1]:4318", "/v1/metrics"));
        assert_eq!(read("http://sink/otlp?a=b"), pair("sink:80", "/otlp?a=b"));
        for wrong in ["", "127.0.0.1:4318", "https://sink", "grpc://sink:4317", "http://a:b@sink"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    fn headers(kind: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))])
    }

    #[test]
    fn an_answer_says_what_was_dropped_and_when_to_come_back() {
        let json = headers("application/json; charset=utf-8");
        assert_eq!(judge(StatusCode::OK, &json, b"{}").unwrap(), None);
        for count in ["\"3\"", "3"] {
            let partial = format!(
                r#"{{"partialSuccess":{{"rejectedDataPoints":{count},"errorMessage":"too old"}}}}"#
            );
            let dropped = judge(StatusCode::OK, &json, partial.as_bytes()).unwrap().unwrap();
            assert!(dropped.contains('3') && dropped.contains("too old"), "{dropped}");
        }
        let busy = StatusCode::SERVICE_UNAVAILABLE;
        let seconds = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
        let refused = judge(busy, &seconds, b"").unwrap_err();
        assert_eq!(refused.pause, Some(Duration::from_secs(7)));
        let refused = judge(StatusCode::BAD_REQUEST, &json, br#"{"message":"bad"}"#).unwrap_err();
        assert!(refused.why.contains("400") && refused.why.contains("bad"), "{refused:?}");
    }

    /// The bytes are what protoc makes of `partial_success { rejected_data_points: 3
    /// error_message: "too old" }`, and of a `google.rpc.Status` with code 3 and message "bad".
    #[test]
    fn an_answer_in_protocol_buffers_says_the_same() {
        let kind = headers(PROTOBUF);
        assert_eq!(judge(StatusCode::OK, &kind, b"").unwrap(), None);
        let dropped = judge(StatusCode::OK, &kind, b"\n\x0b\x08\x03\x12\x07too old").unwrap();
        assert_eq!(dropped.unwrap(), "3 were rejected. too old");
        let refused = judge(StatusCode::BAD_REQUEST, &kind, b"\x08\x03\x12\x03bad").unwrap_err();
        assert!(refused.why.contains("400") && refused.why.contains("(bad)"), "{refused:?}");
    }

    proptest! {
        /// Whatever listens there answers whatever it likes.
        #[test]
        fn no_answer_is_trusted(
            status in 200u16..600, is_protobuf: bool, body: Vec<u8>, length in 0usize..40,
        ) {
            let kind = headers(if is_protobuf { PROTOBUF } else { JSON });
            let status = StatusCode::from_u16(status).unwrap();
            // Begins as an answer does, so that more than the first byte is looked at.
            let mut near = b"\n\x0b\x08\x03\x12\x07too old"[..length.min(13)].to_vec();
            near.extend(&body);
            for body in [body, near] {
                prop_assert_eq!(judge(status, &kind, &body).is_ok(), status.is_success());
            }
        }
    }
}
