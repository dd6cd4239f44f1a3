//! The first request: redirects are followed, and an earlier run's bytes are continued if the file
//! is still the same.

use super::answer::{Head, field};
use super::connect::{Carrier, ConnectConfig, connect};
use super::part::ResumeRecord;
use super::plan::{Opened, Refusal, opened};
use super::{GetError, GetEvent, GetNotice, GetOptions};
use crate::{Timing, clock};
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Duration, Instant};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Request, Response};
use std::ops::Range;
use url::Url;

/// The given fields that may go to another server than the one that the user named. Any other may
/// be a secret (`Authorization`, `Cookie`, `Proxy-Authorization`, `X-Api-Key`, `Private-Token`).
const PUBLIC: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::PRAGMA,
    header::USER_AGENT,
];

/// An answer with data, and what brought it.
pub(super) struct Opening {
    pub(super) url: Url,
    /// Whether that is another server than the first: then fields that may be secret are not for
    /// it.
    pub(super) elsewhere: bool,
    pub(super) redirects: u32,
    pub(super) carrier: Carrier,
    pub(super) answer: Response<Incoming>,
    pub(super) head: Head,
    /// Whether the answer continues the earlier run.
    pub(super) continues: bool,
    pub(super) timing: Timing,
}

/// A request for `range` of the file, or for all of it.
pub(super) fn request(
    options: &GetOptions,
    range: Option<Range<u64>>,
    if_range: Option<&str>,
    elsewhere: bool,
) -> Result<Request<Full<Buffer>>, GetError> {
    let mut request = Request::new(Full::default());
    let fields = request.headers_mut();
    fields.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let agent = concat!("fullpipe/", env!("CARGO_PKG_VERSION"));
    fields.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    for (name, value) in &options.headers {
        let parsed: HeaderName = name.parse().map_err(|_| no_field(name, value))?;
        if !elsewhere || PUBLIC.contains(&parsed) {
            fields.insert(parsed, value.parse().map_err(|_| no_field(name, value))?);
        }
    }
    if let Some(range) = range {
        let text = match range.end {
            u64::MAX => format!("bytes={}-", range.start),
            end => format!("bytes={}-{}", range.start, end.saturating_sub(1)),
        };
        fields.extend(text.parse().ok().map(|value| (header::RANGE, value)));
        if let Some(value) = if_range.and_then(|text| text.parse().ok()) {
            fields.insert(header::IF_RANGE, value);
        }
    }
    Ok(request)
}

fn no_field(name: &str, value: &str) -> GetError {
    GetError::Option {
        option: "--header",
        value: format!("'{name}: {value}'"),
        must: "not a field of HTTP; write -H 'NAME: VALUE'".into(),
    }
}

/// Asks for `url` until there is an answer with data. With `earlier`, asks for the `first` part
/// that it lacks, on the condition that the file is the same.
pub(super) async fn open(
    config: &ConnectConfig,
    url: &Url,
    mut earlier: Option<(&ResumeRecord, Range<u64>)>,
    started: Instant,
    tell: &mut dyn FnMut(GetEvent),
) -> Result<Opening, GetError> {
    let origin = url.origin();
    let mut url = url.clone();
    let (mut redirects, mut redirect) = (0, Duration::ZERO);
    loop {
        let elsewhere = url.origin() != origin;
        let mut carrier = connect(config, &url).await?;
        tell(GetEvent::Connected { local: carrier.local, peer: carrier.peer });
        // An entity tag means nothing under another URL (RFC 9110 section 8.8.3).
        let same_url = earlier.as_ref().filter(|(record, _)| record.url == url.as_str());
        let if_range = same_url.and_then(|(record, _)| record.validators.if_range());
        let range = same_url.map(|(_, first)| first.clone());
        let request = request(&config.options, range, if_range, elsewhere)?;
        let mut timing = times(&carrier, started, redirect);
        let answer = ask(config, &mut carrier, request, &url).await?;
        timing.starttransfer = clock::now().since(started);
        let (status, head) = (answer.status(), head_of(&answer, &url)?);
        let location = field(&answer, header::LOCATION).filter(|_| status.is_redirection());
        if let Some(location) = location {
            let next = follow(config, &url, &location, redirects)?;
            let leaves = !elsewhere && next.origin() != origin;
            say(&config.options, &url, &next, leaves, tell);
            url = next;
            redirects += 1;
            redirect = clock::now().since(started);
            continue;
        }
        let earlier_here = same_url.map(|(record, first)| (*record, first));
        let judged = opened(earlier_here, status, &head).map_err(|other| refused(&url, other))?;
        let continues = match judged {
            Opened::AskWhole => {
                earlier = None;
                continue;
            }
            Opened::Continues => true,
            Opened::Whole => false,
        };
        return Ok(Opening { url, elsewhere, redirects, carrier, answer, head, continues, timing });
    }
}

/// What a head says, or why its body cannot be believed.
pub(super) fn head_of<T>(answer: &Response<T>, url: &Url) -> Result<Head, GetError> {
    Head::of(answer).map_err(|problem| GetError::Framing { url: url.to_string(), problem })
}

/// A refusal as an error.
pub(super) fn refused(url: &Url, refusal: Refusal) -> GetError {
    let url = url.to_string();
    match refusal {
        Refusal::Changed(what) => GetError::Changed { url, what },
        Refusal::Status(status) => GetError::Status { url, status },
        Refusal::WrongRange { asked, sent } => {
            let asked = asked.map_or_else(
                || "of the whole file".into(),
                |asked| format!("{}-{}", asked.start, asked.end.saturating_sub(1)),
            );
            GetError::WrongRange { url, asked, sent }
        }
        Refusal::NoRanges(why) => GetError::WrongRange {
            url,
            asked: "of a part".into(),
            sent: format!("nothing that fits: {why}"),
        },
    }
}

/// Says what a redirect means for the user's secrets and for the file. `leaves`: it leads away from
/// the server that the user named.
fn say(options: &GetOptions, url: &Url, next: &Url, leaves: bool, tell: &mut dyn FnMut(GetEvent)) {
    let fields = options.headers.iter().map(|(name, _)| name.as_str());
    let secret = fields
        .filter(|name| !PUBLIC.iter().any(|public| name.eq_ignore_ascii_case(public.as_str())));
    let names: Vec<&str> = secret.collect();
    if leaves && !names.is_empty() {
        let host = next[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
        tell(GetEvent::Notice(GetNotice::Withheld { host, fields: names.join(", ") }));
    }
    if url.scheme() == "https" && next.scheme() == "http" {
        tell(GetEvent::Notice(GetNotice::Unprotected));
    }
}

/// Makes a request, and waits for the head of its answer.
pub(super) async fn ask(
    config: &ConnectConfig,
    carrier: &mut Carrier,
    request: Request<Full<Buffer>>,
    url: &Url,
) -> Result<Response<Incoming>, GetError> {
    let waited = config.options.read_timeout;
    match tokio::time::timeout(waited.into(), carrier.ask(request, url)).await {
        Ok(answer) => answer.map_err(|source| GetError::Answer { url: url.to_string(), source }),
        Err(_) => Err(GetError::Timeout {
            url: url.to_string(),
            what: "the head of the answer",
            waited,
            option: "--read-timeout",
        }),
    }
}

fn follow(
    config: &ConnectConfig,
    url: &Url,
    location: &str,
    followed: u32,
) -> Result<Url, GetError> {
    next_url(&config.options, url, location, followed).map_err(|problem| GetError::Redirect {
        url: url.to_string(),
        location: location.into(),
        followed,
        problem,
    })
}

/// Where a redirect leads, or why it is not followed.
fn next_url(
    options: &GetOptions,
    url: &Url,
    location: &str,
    followed: u32,
) -> Result<Url, &'static str> {
    if followed >= options.redirects {
        return Err("no more are followed; fetch that URL, or allow more with --max-redirs");
    }
    let next = url.join(location).map_err(|_| "not a URL; tell the server's owner")?;
    match next.scheme() {
        "http" if url.scheme() == "https" && options.sha256.is_none() => Err(
            "from https to http, where anyone on the path can change the file; fetch that URL itself, or give --sha256",
        ),
        "http" | "https" => Ok(next),
        _ => Err("neither http nor https; fetch it with another program"),
    }
}

fn times(carrier: &Carrier, started: Instant, redirect: Duration) -> Timing {
    Timing {
        redirect,
        namelookup: carrier.looked_up.since(started),
        connect: carrier.connected.since(started),
        appconnect: carrier.secured.map_or(Duration::ZERO, |secured| secured.since(started)),
        pretransfer: clock::now().since(started),
        starttransfer: Duration::ZERO,
        total: Duration::ZERO,
    }
}
