//! Puts objects into a store that speaks S3: one at a time, over the same connections as
//! [`crate::get()`] makes.
//!
//! Requests are signed by `rusty-s3`, in their query and without their body (AWS's "presigned
//! URLs"), so nothing but a put of this one object in the next minutes can be done with one. An
//! object appears in the store whole or not at all, and one that is there is replaced; so whoever
//! is not sure that a put succeeded puts again.

mod access;

pub use access::StoreAccess;

use crate::Stop;
use crate::causes::chain;
use crate::get::connect::{Carrier, ConnectConfig, connect};
use crate::get::{GetError, GetOptions};
use bytes::Bytes as Buffer;
use fullpipe_model::units::Duration;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration as StdDuration;
use tokio::runtime::Runtime;
use url::Url;

/// A signature is good for so long, and as much may the clocks differ. Stores refuse what was
/// signed more than 15 minutes in their future.
const SIGNED_FOR: StdDuration = StdDuration::from_secs(15 * 60);
/// For a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// For an object and its answer, however slowly it goes.
const WHOLE: Duration = Duration::from_secs(120);
/// An answer longer than this is none of a store.
const ANSWER_MOST: usize = 64 << 10;

/// A bucket, and how the names of all objects begin: `s3://BUCKET/PREFIX/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreAddress {
    bucket: String,
    /// Empty, or with a slash at its end.
    prefix: String,
}

/// What is no address of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' {problem}; write for example s3://bucket/fullpipe/host=NAME/")]
pub struct ParseStoreError {
    /// As it was given.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl FromStr for StoreAddress {
    type Err = ParseStoreError;

    fn from_str(text: &str) -> Result<StoreAddress, ParseStoreError> {
        StoreAddress::read(text)
            .map_err(|problem| ParseStoreError { text: text.to_string(), problem })
    }
}

impl StoreAddress {
    fn read(text: &str) -> Result<StoreAddress, &'static str> {
        let place = text.strip_prefix("s3://").ok_or("must begin with s3://")?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if !is_bucket(bucket) {
            return Err("names no bucket, which has 3 to 63 letters, digits, '-', '.' and '_'");
        }
        if prefix.is_empty() {
            return Ok(StoreAddress { bucket: bucket.into(), prefix: String::new() });
        }
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        // A URL with such a path is one of another object.
        if prefix.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("has a part of its path that is empty, '.' or '..'");
        }
        if prefix.chars().any(char::is_control) || prefix.len() > 900 {
            return Err("has a path that is too long or has control characters");
        }
        Ok(StoreAddress { bucket: bucket.into(), prefix: format!("{prefix}/") })
    }
}

/// Whether stores allow such a name.
fn is_bucket(name: &str) -> bool {
    let first = name.as_bytes().first();
    (3..=63).contains(&name.len())
        && first.is_some_and(u8::is_ascii_alphanumeric)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}

/// Why an object is not in the store. Each is worth another try later, but the first two.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing says who we are, or where the store is.
    #[error("upload to {store}: {problem}")]
    Access {
        /// Where to.
        store: String,
        /// What is missing or wrong, and what to set.
        problem: String,
    },
    /// The event loop could not be made.
    #[error(
        "start the upload's event loop: {0}; the process may be out of file descriptors (see ulimit -n)"
    )]
    Runtime(io::Error),
    /// There is no connection to the store, or it broke.
    #[error("upload to {store}: {problem}; check AWS_ENDPOINT_URL, and what is on the way")]
    Broken {
        /// The store's host.
        store: String,
        /// What happened.
        problem: String,
    },
    /// The store's certificate is not trusted, or that is no TLS.
    #[error(
        "upload to {store}: TLS: {problem}; install ca-certificates, or name the file of its authority by AWS_CA_BUNDLE"
    )]
    Tls {
        /// The store's host.
        store: String,
        /// What went wrong.
        problem: String,
    },
    /// The store does not take it.
    #[error("upload to {store}: the store answers {status}{}{}", in_brackets(code), advice(*status, region))]
    Refused {
        /// The store's host.
        store: String,
        /// Status code and reason.
        status: StatusCode,
        /// The store's own word for it; empty where it says none.
        code: String,
        /// Where the bucket is, if the store says so.
        region: Option<String>,
    },
    /// [`Stop`] ended it.
    #[error("upload to {store}: interrupted")]
    Stopped {
        /// The store's host.
        store: String,
    },
}

fn in_brackets(code: &str) -> String {
    if code.is_empty() { String::new() } else { format!(" ({code})") }
}

/// What to try.
fn advice(status: StatusCode, region: &Option<String>) -> String {
    let is_elsewhere = matches!(status.as_u16(), 301 | 307 | 400);
    if let Some(region) = region.as_ref().filter(|_| is_elsewhere) {
        return format!("; the bucket is in {region}: set AWS_REGION={region}");
    }
    match status.as_u16() {
        301 | 307 | 400 => "; check AWS_REGION and AWS_ENDPOINT_URL",
        401 | 403 => "; check the key, the clock, and that s3:PutObject is allowed there",
        404 => "; make the bucket, or check its name",
        _ => "",
    }
    .into()
}

impl StoreError {
    /// Whether no later try can succeed as long as the environment is the same.
    pub fn is_final(&self) -> bool {
        matches!(self, StoreError::Access { .. } | StoreError::Runtime(_))
    }

    /// Whether [`Stop`] ended it.
    pub fn is_stop(&self) -> bool {
        matches!(self, StoreError::Stopped { .. })
    }
}

/// A store, and the connection to it while there is one.
pub struct Store {
    address: StoreAddress,
    access: StoreAccess,
    bucket: Bucket,
    config: ConnectConfig,
    carrier: Option<Carrier>,
    runtime: Runtime,
}

impl Store {
    /// The store at `address`, to which `access` leads; `options` has the proxies. Connects
    /// nowhere.
    ///
    /// # Errors
    /// [`StoreError::Access`] where the endpoint is no URL, or no credentials can be had.
    pub fn open(
        address: StoreAddress,
        access: StoreAccess,
        options: GetOptions,
    ) -> Result<Store, StoreError> {
        let store = address.to_string();
        let bucket = bucket(&address, &access)
            .map_err(|problem| StoreError::Access { store: store.clone(), problem })?;
        access.credentials().map_err(|problem| StoreError::Access { store, problem })?;
        let config = ConnectConfig::new(GetOptions {
            http1_only: true,
            cacert: access.authorities.clone(),
            connect_timeout: CONNECT,
            ..options
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StoreError::Runtime)?;
        Ok(Store { address, access, bucket, config, carrier: None, runtime })
    }

    /// Where objects go, for people and for whoever remembers what is there.
    pub fn place(&self) -> String {
        let host = self.bucket.base_url();
        let host = &host[url::Position::BeforeHost..url::Position::AfterPort];
        format!("{} ({host})", self.address)
    }

    /// Puts `bytes` there under `name`, on the calling thread, until `stop` ends it.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn put(&mut self, name: &str, bytes: Vec<u8>, stop: &Stop) -> Result<(), StoreError> {
        let key = format!("{}{name}", self.address.prefix);
        // Agents that renew credentials write the file again.
        let credentials = self
            .access
            .credentials()
            .map_err(|problem| StoreError::Access { store: self.address.to_string(), problem })?;
        let host = self.host();
        let Store { bucket, config, carrier, runtime, .. } = self;
        let put = Put { bucket, config, key: &key, credentials, bytes: bytes.into() };
        runtime.block_on(async {
            let limited = tokio::time::timeout(WHOLE.into(), put.run(carrier));
            tokio::select! {
                biased;
                () = stop.stopped() => Err(StoreError::Stopped { store: host }),
                done = limited => done.unwrap_or_else(|_| {
                    let problem = format!("there is no answer after {WHOLE}");
                    Err(StoreError::Broken { store: host, problem })
                }),
            }
        })
    }

    /// Ends the connection: there is nothing to put for a while.
    pub fn rest(&mut self) {
        self.carrier = None;
    }

    fn host(&self) -> String {
        self.bucket.base_url().host_str().unwrap_or_default().to_string()
    }
}

/// Where the bucket is: by a path at an endpoint that was named, as every store has it; by its own
/// host name at AWS, and where the endpoint is that name already, as some stores demand.
fn bucket(address: &StoreAddress, access: &StoreAccess) -> Result<Bucket, String> {
    let name = address.bucket.clone();
    let (endpoint, style) = match &access.endpoint {
        Some(endpoint) => {
            let own = format!("//{name}.");
            let (endpoint, style) = match endpoint.contains(&own) {
                true => (endpoint.replacen(&own, "//", 1), UrlStyle::VirtualHost),
                false => (endpoint.clone(), UrlStyle::Path),
            };
            // Without it the last part of its path would be replaced.
            (format!("{}/", endpoint.trim_end_matches('/')), style)
        }
        None => {
            let region = access.region.as_ref().ok_or(
                "nothing says where the store is: set AWS_REGION, or AWS_ENDPOINT_URL where it is not AWS",
            )?;
            let tail = if region.starts_with("cn-") { ".cn" } else { "" };
            // A certificate of AWS is for one name before its own.
            let style = if name.contains('.') { UrlStyle::Path } else { UrlStyle::VirtualHost };
            (format!("https://s3.{region}.amazonaws.com{tail}/"), style)
        }
    };
    let url: Url = endpoint.parse().map_err(|error| no_endpoint(&endpoint, error))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(no_endpoint(&endpoint, "it has more than a host and a path"));
    }
    let region = access.region.clone().unwrap_or_else(|| "us-east-1".into());
    Bucket::new(url, style, name, region).map_err(|error| no_endpoint(&endpoint, error))
}

fn no_endpoint(endpoint: &str, problem: impl fmt::Display) -> String {
    format!("the endpoint '{endpoint}' is none: {problem}; write for example http://127.0.0.1:9000")
}

/// One object on its way.
struct Put<'p> {
    bucket: &'p Bucket,
    config: &'p ConnectConfig,
    key: &'p str,
    credentials: Credentials,
    bytes: Buffer,
}

impl Put<'_> {
    async fn run(self, kept: &mut Option<Carrier>) -> Result<(), StoreError> {
        let plain = self.bucket.object_url(self.key);
        let plain = plain.map_err(|error| self.broken(&error.to_string()))?;
        // A store that ends an idle connection says nothing; that is no failure of this object.
        if let Some(mut carrier) = kept.take()
            && carrier.is_ready().await
            && let Ok(answer) = carrier.ask(self.request(), &self.signed()).await
        {
            return self.judge(carrier, answer, kept).await;
        }
        // Not the signed one: errors tell it.
        let connected = connect(self.config, &plain).await;
        let mut carrier = connected.map_err(|error| self.unconnected(error))?;
        let asked = carrier.ask(self.request(), &self.signed()).await;
        let answer = asked.map_err(|error| self.broken(&chain(&error)))?;
        self.judge(carrier, answer, kept).await
    }

    fn signed(&self) -> Url {
        self.bucket.put_object(Some(&self.credentials), self.key).sign(SIGNED_FOR)
    }

    fn request(&self) -> Request<Full<Buffer>> {
        let mut request = Request::new(Full::new(self.bytes.clone()));
        *request.method_mut() = Method::PUT;
        let agent = concat!("fullpipe/", env!("CARGO_PKG_VERSION"));
        request.headers_mut().extend([
            (header::USER_AGENT, HeaderValue::from_static(agent)),
            (header::CONTENT_TYPE, HeaderValue::from_static("application/gzip")),
        ]);
        request
    }

    /// What the store says. A connection whose answer was read to its end is kept for the next
    /// object.
    async fn judge(
        &self,
        carrier: Carrier,
        answer: Response<hyper::body::Incoming>,
        kept: &mut Option<Carrier>,
    ) -> Result<(), StoreError> {
        let status = answer.status();
        let region = answer.headers().get("x-amz-bucket-region");
        let region = region.and_then(|value| value.to_str().ok()).map(str::to_string);
        let body = Limited::new(answer.into_body(), ANSWER_MOST).collect().await;
        if status.is_success() {
            *kept = body.is_ok().then_some(carrier);
            return Ok(());
        }
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let store = self.store();
        Err(StoreError::Refused { store, status, code: code(&body), region })
    }

    fn store(&self) -> String {
        self.bucket.base_url().host_str().unwrap_or_default().to_string()
    }

    fn broken(&self, problem: &str) -> StoreError {
        StoreError::Broken { store: self.store(), problem: problem.into() }
    }

    fn unconnected(&self, error: GetError) -> StoreError {
        match error {
            GetError::Tls { problem, .. } => StoreError::Tls { store: self.store(), problem },
            // Its file cannot be read.
            GetError::Option { option: "--cacert", value, must } => StoreError::Access {
                store: self.store(),
                problem: format!("AWS_CA_BUNDLE {value}: {must}"),
            },
            GetError::Timeout { waited, .. } => {
                self.broken(&format!("there is no connection after {waited}"))
            }
            GetError::Lookup { source, .. } => self.broken(&format!("no such host: {source}")),
            GetError::Connect { source, .. } => self.broken(&source.to_string()),
            other => self.broken(&other.to_string()),
        }
    }
}

/// The store's word for an error, of its answer in XML: letters alone, whoever answers.
fn code(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let inner = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = inner.map(|(code, _)| code).unwrap_or_default();
    let is_word = code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_word { code.into() } else { String::new() }
}

#[cfg(test)]
mod tests;
