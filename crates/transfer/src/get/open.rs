//! The first request: redirects are followed, and an earlier run's bytes are continued if the file
//! is still the same.

use super::answer::{Head, field};
use super::connect::{Carrier, Config, connect};
use super::part::Record;
use super::{GetError, GetEvent, GetOptions};
use crate::{Timing, clock};
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Duration, Instant};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use std::ops::Range;
use url::Url;

/// Fields that are for one server alone.
const PRIVATE: [HeaderName; 3] = [header::AUTHORIZATION, header::COOKIE, header::HOST];

/// An answer with data, and what brought it.
pub(super) struct Opening {
    pub(super) url: Url,
    /// Whether that is another server than the first: then private fields are not for it.
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
) -> Result<Request<Empty<Buffer>>, GetError> {
    let mut request = Request::new(Empty::new());
    let fields = request.headers_mut();
    fields.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    fields.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let agent = concat!("fullpipe/", env!("CARGO_PKG_VERSION"));
    fields.insert(header::USER_AGENT, HeaderValue::from_static(agent));
    for (name, value) in &options.headers {
        let refuse = || GetError::Option {
            option: "--header",
            value: format!("'{name}: {value}'"),
            must: "not a field of HTTP; write -H 'NAME: VALUE'".into(),
        };
        let parsed: HeaderName = name.parse().map_err(|_| refuse())?;
        if !(elsewhere && PRIVATE.contains(&parsed)) {
            fields.insert(parsed, value.parse().map_err(|_| refuse())?);
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

/// Asks for `url` until there is an answer with data. With `earlier`, asks for the `first` part
/// that it lacks, on the condition that the file is the same.
pub(super) async fn open(
    config: &Config,
    url: &Url,
    mut earlier: Option<(&Record, Range<u64>)>,
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
        let if_range = earlier.as_ref().and_then(|(record, _)| record.validators.if_range());
        let range = earlier.as_ref().map(|(_, first)| first.clone());
        let request = request(&config.options, range, if_range, elsewhere)?;
        let mut timing = times(&carrier, started, redirect);
        let answer = ask(config, &mut carrier, request, &url).await?;
        timing.starttransfer = clock::now().since(started);
        let (status, head) = (answer.status(), Head::of(&answer));
        let location = field(&answer, header::LOCATION).filter(|_| status.is_redirection());
        if let Some(location) = location {
            url = follow(config, &url, &location, redirects)?;
            redirects += 1;
            redirect = clock::now().since(started);
            continue;
        }
        if status == StatusCode::RANGE_NOT_SATISFIABLE && earlier.is_some() {
            earlier = None;
            continue;
        }
        if !status.is_success() {
            return Err(GetError::Status { url: url.to_string(), status });
        }
        let continues = match (&earlier, status) {
            (Some((record, first)), StatusCode::PARTIAL_CONTENT) => {
                check(&url, first, Some(record.length), &head)?;
                record.validators.agree(&head.validators)
            }
            (None, StatusCode::PARTIAL_CONTENT) => return Err(unasked(&url, &answer)),
            _ => false,
        };
        if status == StatusCode::PARTIAL_CONTENT && !continues {
            earlier = None;
            continue;
        }
        return Ok(Opening { url, elsewhere, redirects, carrier, answer, head, continues, timing });
    }
}

fn unasked(url: &Url, answer: &Response<Incoming>) -> GetError {
    GetError::WrongRange {
        url: url.to_string(),
        asked: "of the whole file".into(),
        sent: field(answer, header::CONTENT_RANGE).unwrap_or_default(),
    }
}

/// Makes a request, and waits for the head of its answer.
pub(super) async fn ask(
    config: &Config,
    carrier: &mut Carrier,
    request: Request<Empty<Buffer>>,
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

/// Refuses a part that is not the one that was asked for.
pub(super) fn check(
    url: &Url,
    asked: &Range<u64>,
    total: Option<u64>,
    head: &Head,
) -> Result<(), GetError> {
    let wrong = |sent: String| {
        let asked = format!("{}-{}", asked.start, asked.end.saturating_sub(1));
        Err(GetError::WrongRange { url: url.to_string(), asked, sent })
    };
    let Some(part) = head.part else { return wrong("no valid Content-Range".into()) };
    let sent = || format!("{}-{} of {:?}", part.start, part.last, part.total);
    if let (Some(total), Some(now)) = (total, part.total)
        && total != now
    {
        let what = format!("its length was {total} and is {now}");
        return Err(GetError::Changed { url: url.to_string(), what });
    }
    let length = part.last - part.start + 1;
    let whole = asked.end == u64::MAX || part.last + 1 == asked.end;
    if part.start != asked.start || !whole || head.length.is_some_and(|said| said != length) {
        return wrong(sent());
    }
    Ok(())
}

fn follow(config: &Config, url: &Url, location: &str, followed: u32) -> Result<Url, GetError> {
    let refuse = |problem| GetError::Redirect {
        url: url.to_string(),
        location: location.into(),
        followed,
        problem,
    };
    if followed >= config.options.redirects {
        return Err(refuse(
            "no more are followed; fetch that URL, or allow more with --max-redirs",
        ));
    }
    let next = url.join(location).map_err(|_| refuse("not a URL; tell the server's owner"))?;
    match next.scheme() {
        "http" | "https" => Ok(next),
        _ => Err(refuse("neither http nor https; fetch it with another program")),
    }
}

fn times(carrier: &Carrier, started: Instant, redirect: Duration) -> Timing {
    let since = |at: Instant| at.since(started);
    Timing {
        redirect,
        namelookup: since(carrier.looked_up),
        connect: since(carrier.connected),
        appconnect: carrier.secured.map_or(Duration::ZERO, since),
        pretransfer: since(clock::now()),
        starttransfer: Duration::ZERO,
        total: Duration::ZERO,
    }
}
