//! One connection of a download: it takes a piece, asks for it, receives it, and takes the next.

use super::answer::Head;
use super::connect::{Carrier, Config, connect};
use super::open::{ask, check, request};
use super::part::{Part, Validators, failed};
use super::ranges::{Ranges, Worker};
use super::{GetError, GetEvent, Target};
use crate::causes::chain;
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Bytes, Duration};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Incoming;
use std::cell::RefCell;
use std::fs::{FileType, OpenOptions};
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use url::Url;

/// Why a connection ended before its work did.
#[derive(Debug)]
pub(super) enum Failure {
    Get(GetError),
    /// The server sent the whole file where a part was asked for.
    NoRanges,
}

impl From<GetError> for Failure {
    fn from(error: GetError) -> Self {
        Failure::Get(error)
    }
}

/// Where the bytes go.
pub(super) enum Sink {
    /// A file of ours, that gets its name at the end.
    Part(Part),
    /// What takes bytes in order alone, and must never be replaced by a file: standard output, a
    /// device, a pipe.
    Stream { name: PathBuf, to: RefCell<Box<dyn Write>> },
}

impl Sink {
    /// Whether bytes can go there in order alone. Nothing is opened: a pipe would wait.
    pub(super) fn is_stream(target: &Target) -> bool {
        let special = |kind: FileType| !kind.is_file() && !kind.is_dir();
        match target {
            Target::Stdout => true,
            Target::File(path) => std::fs::metadata(path).is_ok_and(|one| special(one.file_type())),
        }
    }

    pub(super) fn open(target: &Target) -> Result<Sink, GetError> {
        let Target::File(path) = target else {
            let to: Box<dyn Write> = Box::new(std::io::stdout());
            return Ok(Sink::Stream { name: "standard output".into(), to: RefCell::new(to) });
        };
        if !Sink::is_stream(target) {
            return Part::open(path).map(Sink::Part);
        }
        let open = OpenOptions::new().write(true).open(path);
        let to: Box<dyn Write> = Box::new(open.map_err(|source| failed(path, source))?);
        Ok(Sink::Stream { name: path.clone(), to: RefCell::new(to) })
    }

    fn write(&self, data: &[u8], offset: u64) -> Result<(), GetError> {
        match self {
            Sink::Part(part) => part.write(data, offset),
            Sink::Stream { name, to } => {
                to.borrow_mut().write_all(data).map_err(|source| failed(name, source))
            }
        }
    }

    /// Hands over what is buffered.
    pub(super) fn flush(&self) -> Result<(), GetError> {
        match self {
            Sink::Part(_) => Ok(()),
            Sink::Stream { name, to } => {
                to.borrow_mut().flush().map_err(|source| failed(name, source))
            }
        }
    }
}

/// What all connections of a download share. They run on one thread.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) url: Url,
    pub(super) elsewhere: bool,
    pub(super) validators: Validators,
    /// Whether the length was known from the start.
    pub(super) length: Option<u64>,
    pub(super) sink: Sink,
    pub(super) ranges: RefCell<Ranges>,
    /// What this run has received.
    pub(super) fetched: RefCell<u64>,
    pub(super) events: RefCell<Vec<GetEvent>>,
}

/// An answer whose body is to be received.
pub(super) struct Ready {
    pub(super) carrier: Carrier,
    pub(super) body: Incoming,
}

impl Shared {
    /// Bytes that are there.
    pub(super) fn done(&self) -> Bytes {
        Bytes::new(match self.length {
            Some(_) => self.ranges.borrow().done_bytes(),
            None => *self.fetched.borrow(),
        })
    }

    fn short(&self, cause: String) -> Failure {
        Failure::Get(GetError::Short {
            url: self.url.to_string(),
            received: self.done(),
            expected: self.length.map(Bytes::new),
            cause,
        })
    }

    /// Takes what belongs to the worker's piece; returns whether all of it was wanted.
    fn accept(&self, worker: Worker, data: &[u8]) -> Result<bool, GetError> {
        let (at, wanted) = self.ranges.borrow_mut().advance(worker, data.len() as u64);
        *self.fetched.borrow_mut() += wanted;
        self.sink.write(&data[..wanted as usize], at)?;
        Ok(wanted == data.len() as u64)
    }

    fn tell(&self, event: GetEvent) {
        self.events.borrow_mut().push(event);
    }
}

/// Fetches pieces until there is none to take, after waiting for `delay`. `ready` is an answer for
/// the piece that the worker has already.
pub(super) async fn work(
    shared: &Shared,
    worker: Worker,
    mut ready: Option<Ready>,
    delay: Duration,
) -> Result<(), Failure> {
    tokio::time::sleep(delay.into()).await;
    let mut idle: Option<Carrier> = None;
    loop {
        let (mut carrier, body) = match ready.take() {
            Some(Ready { carrier, body }) => (carrier, body),
            None => {
                let Some(piece) = shared.ranges.borrow_mut().take(worker) else { return Ok(()) };
                next(shared, idle.take(), piece).await?
            }
        };
        let clean = receive(shared, worker, body).await?;
        if (clean || carrier.is_multiplexed()) && carrier.is_ready().await {
            idle = Some(carrier);
        }
    }
}

/// Asks for a piece, on a connection that is idle or on a new one.
async fn next(
    shared: &Shared,
    idle: Option<Carrier>,
    piece: Range<u64>,
) -> Result<(Carrier, Incoming), Failure> {
    let mut carrier = match idle {
        Some(carrier) => carrier,
        None => {
            let carrier = connect(&shared.config, &shared.url).await?;
            shared.tell(GetEvent::Connected { local: carrier.local, peer: carrier.peer });
            carrier
        }
    };
    let whole = piece.start == 0 && piece.end == shared.ranges.borrow().total();
    if !whole && shared.length.is_none() && shared.validators.if_range().is_none() {
        return Err(Failure::NoRanges);
    }
    let range = (!whole).then(|| piece.clone());
    let if_range = shared.validators.if_range();
    let request = request(&shared.config.options, range, if_range, shared.elsewhere)?;
    let answer = ask(&shared.config, &mut carrier, request, &shared.url).await?;
    let (status, head) = (answer.status(), Head::of(&answer));
    let url = shared.url.to_string();
    let changed =
        |what: &str| Failure::Get(GetError::Changed { url: url.clone(), what: what.into() });
    if status == StatusCode::RANGE_NOT_SATISFIABLE {
        return Err(changed("it is shorter than before"));
    }
    if !status.is_success() {
        return Err(GetError::Status { url, status }.into());
    }
    if !shared.validators.agree(&head.validators) {
        return Err(changed("its ETag or Last-Modified is another"));
    }
    if whole {
        let same = head.length.is_none_or(|length| shared.length.is_none_or(|was| was == length));
        return if same { Ok((carrier, answer.into_body())) } else { Err(changed("its length")) };
    }
    if status != StatusCode::PARTIAL_CONTENT {
        return Err(Failure::NoRanges);
    }
    check(&shared.url, &piece, shared.length, &head)?;
    Ok((carrier, answer.into_body()))
}

/// Receives a body until the worker's piece is complete. Returns whether the body ended with it, so
/// that the connection can be used again.
async fn receive(shared: &Shared, worker: Worker, mut body: Incoming) -> Result<bool, Failure> {
    let waited = shared.config.options.read_timeout;
    // One timer for the whole body: setting one for each read costs more than the read.
    let mut silence = std::pin::pin!(tokio::time::sleep(waited.into()));
    let mut heard = tokio::time::Instant::now();
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = &mut silence => {
                let end = heard + waited.into();
                if end <= tokio::time::Instant::now() {
                    return Err(GetError::Timeout {
                        url: shared.url.to_string(),
                        what: "more of the body",
                        waited,
                        option: "--read-timeout",
                    }.into());
                }
                silence.as_mut().reset(end);
                continue;
            }
        };
        let data: Buffer = match frame {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => data,
                Err(_trailers) => continue,
            },
            Some(Err(error)) => return Err(shared.short(chain(&error))),
            None if shared.length.is_none() => {
                let end = *shared.fetched.borrow();
                shared.ranges.borrow_mut().end_at(end);
                return Ok(true);
            }
            None if !shared.ranges.borrow().has_piece(worker) => return Ok(true),
            None => return Err(shared.short("the body ended before its length".into())),
        };
        heard = tokio::time::Instant::now();
        let all = shared.accept(worker, &data)?;
        if !shared.ranges.borrow().has_piece(worker) {
            // The end of a chunked body, or of a stream, comes after its last byte.
            return Ok(all && hyper::body::Body::is_end_stream(&body));
        }
    }
}
