//! From a request to a response: methods, paths, ranges, status codes (RFC 9110).

use super::body::{BodySource, ResponseBody};
use super::files::{Directory, FileRefusal};
use super::range::{self, Selection};
use crate::pacing::WritePace;
use fullpipe_model::units::Bytes;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::response;
use hyper::{Method, Request, Response, StatusCode, Version};
use std::fs::Metadata;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const GENERATED: &str = "/bytes/";
const HINT: &str = "generated content is at /bytes/<size>, for example /bytes/2GiB";

/// What is served, with counters.
#[derive(Debug)]
pub(super) struct Site {
    directory: Option<Directory>,
    pace: Option<WritePace>,
    requests: AtomicU64,
    sent: Arc<AtomicU64>,
}

/// The representation of a path, before a range is selected.
struct Representation {
    source: BodySource,
    length: u64,
    validators: Option<Validators>,
}

/// Distinguishes versions of a file (RFC 9110 section 8.8).
struct Validators {
    etag: String,
    /// Absent for what was never modified.
    last_modified: Option<String>,
}

/// An error response: a status and a sentence.
struct Refused(StatusCode, String);

impl Site {
    pub(super) fn new(directory: Option<Directory>, pace: Option<WritePace>) -> Self {
        Site { directory, pace, requests: AtomicU64::new(0), sent: Arc::new(AtomicU64::new(0)) }
    }

    /// Requests answered and body bytes written to sockets so far.
    pub(super) fn served(&self) -> (u64, Bytes) {
        (self.requests.load(Ordering::Relaxed), Bytes::new(self.sent.load(Ordering::Relaxed)))
    }

    /// Answers any request.
    pub(super) fn respond<B>(
        &self,
        request: &Request<B>,
    ) -> Result<Response<ResponseBody>, hyper::http::Error> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        match self.find(request) {
            Ok(found) => self.send(found, request),
            Err(Refused(status, sentence)) => {
                let text = format!("{status}: {sentence}\n");
                let response =
                    start(status).header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
                let response = match status {
                    StatusCode::METHOD_NOT_ALLOWED => response.header(header::ALLOW, "GET, HEAD"),
                    _ => response,
                };
                let response = response.header(header::CONTENT_LENGTH, text.len());
                response.body(if request.method() == Method::HEAD {
                    ResponseBody::empty()
                } else {
                    ResponseBody::text(text)
                })
            }
        }
    }

    fn find<B>(&self, request: &Request<B>) -> Result<Representation, Refused> {
        // "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request
        // message that lacks a Host header field and to any request message that contains more than
        // one" (RFC 9112 section 3.2).
        let hosts = request.headers().get_all(header::HOST).iter().count();
        if hosts > 1 || (hosts == 0 && request.version() == Version::HTTP_11) {
            return Err(Refused(StatusCode::BAD_REQUEST, "one Host header is needed".into()));
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            return Err(Refused(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD".into()));
        }
        let path = request.uri().path();
        if let Some(size) = path.strip_prefix(GENERATED) {
            return generated(size);
        }
        let Some(directory) = &self.directory else {
            return Err(Refused(StatusCode::NOT_FOUND, format!("no directory is served; {HINT}")));
        };
        let (file, metadata) = directory.file(path).map_err(refused)?;
        let (length, validators) = (metadata.len(), validators(&metadata));
        Ok(Representation { source: BodySource::file(file), length, validators })
    }

    fn send<B>(
        &self,
        found: Representation,
        request: &Request<B>,
    ) -> Result<Response<ResponseBody>, hyper::http::Error> {
        let Representation { mut source, length, validators } = found;
        let (status, part) = match selection(request, length, validators.as_ref()) {
            Selection::Whole => (StatusCode::OK, 0..length),
            Selection::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
            Selection::Unsatisfiable => {
                // "A server generating a 416 response to a byte-range request SHOULD generate a
                // Content-Range header field specifying the current length" (RFC 9110 section
                // 15.5.17).
                return start(StatusCode::RANGE_NOT_SATISFIABLE)
                    .header(header::CONTENT_RANGE, format!("bytes */{length}"))
                    .header(header::CONTENT_LENGTH, 0)
                    .body(ResponseBody::empty());
            }
        };
        let positioned = match &mut source {
            BodySource::Generated { next } => {
                *next = Bytes::new(part.start);
                Ok(part.start)
            }
            BodySource::File { file, .. } => file.seek(SeekFrom::Start(part.start)),
            BodySource::Text(_) => Ok(0),
        };
        if positioned.is_err() {
            return start(StatusCode::INTERNAL_SERVER_ERROR).body(ResponseBody::empty());
        }
        let mut response = start(status)
            .header(header::ACCEPT_RANGES, "bytes")
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(header::CONTENT_LENGTH, part.end - part.start);
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {}-{}/{length}", part.start, part.end - 1);
            response = response.header(header::CONTENT_RANGE, range);
        }
        if let Some(validators) = validators {
            response = response.header(header::ETAG, validators.etag);
            if let Some(modified) = validators.last_modified {
                response = response.header(header::LAST_MODIFIED, modified);
            }
        }
        response.body(match *request.method() {
            Method::HEAD => ResponseBody::empty(),
            _ => ResponseBody::content(source, &part, self.pace, self.sent.clone()),
        })
    }
}

fn start(status: StatusCode) -> response::Builder {
    Response::builder()
        .status(status)
        .header(header::SERVER, concat!("fullpipe/", env!("CARGO_PKG_VERSION")))
}

fn generated(size: &str) -> Result<Representation, Refused> {
    let size = percent_encoding::percent_decode_str(size).decode_utf8_lossy();
    match size.parse::<Bytes>() {
        Ok(length) => Ok(Representation {
            source: BodySource::Generated { next: Bytes::ZERO },
            length: length.get(),
            // Content of one length is the same wherever and whenever it is made.
            validators: Some(Validators {
                etag: format!("\"generated-{}\"", length.get()),
                last_modified: None,
            }),
        }),
        Err(error) => Err(Refused(StatusCode::BAD_REQUEST, error.to_string())),
    }
}

fn refused(refusal: FileRefusal) -> Refused {
    match refusal {
        FileRefusal::NotFound => Refused(StatusCode::NOT_FOUND, format!("no such file; {HINT}")),
        FileRefusal::Forbidden(why) => Refused(StatusCode::FORBIDDEN, why.into()),
        FileRefusal::BadName => Refused(StatusCode::BAD_REQUEST, "not a file name".into()),
        FileRefusal::Failed => {
            Refused(StatusCode::INTERNAL_SERVER_ERROR, "the file cannot be opened".into())
        }
    }
}

fn validators(metadata: &Metadata) -> Option<Validators> {
    let etag =
        format!("\"{:x}-{:x}-{:x}\"", metadata.mtime(), metadata.mtime_nsec(), metadata.len());
    let modified = metadata.modified().ok()?;
    // An HTTP date cannot express a time before 1970 or after 9999; httpdate panics there.
    (0..=253_402_300_799)
        .contains(&metadata.mtime())
        .then(|| Validators { etag, last_modified: Some(httpdate::fmt_http_date(modified)) })
}

/// What the request selects from `length` bytes.
fn selection<B>(request: &Request<B>, length: u64, validators: Option<&Validators>) -> Selection {
    // "A server MUST ignore a Range header field received with a request method .. for which range
    // handling is not defined. For this specification, GET is the only method for which range
    // handling is defined" (14.2).
    if request.method() != Method::GET {
        return Selection::Whole;
    }
    let headers = request.headers();
    match text(headers, header::RANGE) {
        Some(range) if unchanged(headers, validators) => range::select(range, length),
        _ => Selection::Whole,
    }
}

/// `If-Range` (RFC 9110 section 13.1.5): a range of a changed file would not fit the client's part.
fn unchanged(headers: &HeaderMap, validators: Option<&Validators>) -> bool {
    if !headers.contains_key(header::IF_RANGE) {
        return true;
    }
    match (text(headers, header::IF_RANGE), validators) {
        (Some(seen), Some(now)) => seen == now.etag || Some(seen) == now.last_modified.as_deref(),
        _ => false,
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
