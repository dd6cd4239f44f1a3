//! One connection of a download: it takes a piece, asks for it, receives it, and takes the next.

use super::connect::{Carrier, ConnectConfig, connect};
use super::open::{ask, head_of, refused, request};
use super::part::{PartFile, failed};
use super::plan::{Ask, RangePlan, Refusal};
use super::ranges::Worker;
use super::{GetError, GetEvent, Kept, Target};
use crate::causes::chain;
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Bytes, Duration};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use url::Url;

/// Why a connection ended before its work did.
#[derive(Debug)]
pub(super) enum Failure {
    Get(GetError),
    /// A part cannot be had, or cannot be trusted: why.
    NoRanges(&'static str),
}

/// What a download does after a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The others go on without it.
    Fewer,
    /// It is replaced.
    Again,
    /// Everything is fetched again from the first byte.
    Anew,
    /// Nothing would do better.
    Fail,
}

impl Next {
    /// After a failure beside `running` connections. `broken`: it broke while it received;
    /// `hopeless`: no other connection could do better.
    pub(super) fn after(no_ranges: bool, hopeless: bool, broken: bool, running: usize) -> Next {
        match (no_ranges, hopeless) {
            (true, _) if running > 0 => Next::Fewer,
            (true, _) => Next::Anew,
            (false, true) => Next::Fail,
            // A connection that broke while it received is replaced; one that never got so far was
            // not wanted.
            (false, false) if running > 0 && !broken => Next::Fewer,
            (false, false) => Next::Again,
        }
    }
}

impl From<GetError> for Failure {
    fn from(error: GetError) -> Self {
        Failure::Get(error)
    }
}

/// Where the bytes go.
pub(super) enum Sink {
    /// A file of ours, that gets its name at the end.
    Part(PartFile),
    /// What takes bytes in order alone, and must never be replaced by a file: standard output, a
    /// device, a pipe.
    Stream { name: PathBuf, to: RefCell<Box<dyn Write>> },
}

impl Sink {
    /// Whether bytes can go there in order alone. Nothing is opened: a pipe would wait.
    pub(super) fn is_stream(target: &Target) -> bool {
        match target {
            Target::Stdout => true,
            Target::File(path) => {
                std::fs::metadata(path).is_ok_and(|one| !one.is_file() && !one.is_dir())
            }
        }
    }

    pub(super) fn open(target: &Target) -> Result<Sink, GetError> {
        let Target::File(path) = target else {
            let to: Box<dyn Write> = Box::new(std::io::stdout());
            return Ok(Sink::Stream { name: "standard output".into(), to: RefCell::new(to) });
        };
        if !Sink::is_stream(target) {
            return PartFile::open(path).map(Sink::Part);
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
    pub(super) config: ConnectConfig,
    pub(super) url: Url,
    pub(super) elsewhere: bool,
    pub(super) sink: Sink,
    pub(super) plan: RefCell<RangePlan>,
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
        Bytes::new(self.plan.borrow().done())
    }

    /// The connection ended too early.
    pub(super) fn short(&self, cause: String) -> GetError {
        GetError::Short {
            url: self.url.to_string(),
            received: self.done(),
            expected: self.plan.borrow().length().map(Bytes::new),
            cause,
            kept: Kept::Unsaid,
        }
    }

    fn refused(&self, refusal: Refusal) -> Failure {
        match refusal {
            Refusal::NoRanges(why) => Failure::NoRanges(why),
            other => Failure::Get(refused(&self.url, other)),
        }
    }

    /// Takes what belongs to the worker's piece; returns whether all of it was wanted.
    fn accept(&self, worker: Worker, data: &[u8]) -> Result<bool, GetError> {
        self.plan.borrow_mut().accept(worker, data, |data, at| self.sink.write(data, at))
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
                let asked = shared.plan.borrow_mut().ask(worker);
                match asked.map_err(|refusal| shared.refused(refusal))? {
                    Some(piece) => next(shared, worker, idle.take(), &piece).await?,
                    None => return Ok(()),
                }
            }
        };
        let clean = receive(shared, worker, body, carrier.is_multiplexed()).await?;
        if (clean || carrier.is_multiplexed()) && carrier.is_ready().await {
            idle = Some(carrier);
        }
    }
}

/// Asks for a piece, on a connection that is idle or on a new one.
async fn next(
    shared: &Shared,
    worker: Worker,
    idle: Option<Carrier>,
    asked: &Ask,
) -> Result<(Carrier, Incoming), Failure> {
    let mut carrier = match idle {
        Some(carrier) => carrier,
        None => {
            let carrier = connect(&shared.config, &shared.url).await?;
            shared.tell(GetEvent::Connected { local: carrier.local, peer: carrier.peer });
            carrier
        }
    };
    let range = (!asked.whole).then(|| asked.piece.clone());
    let if_range = shared.plan.borrow().if_range().map(String::from);
    let (options, elsewhere) = (&shared.config.options, shared.elsewhere);
    let request = request(options, range, if_range.as_deref(), elsewhere)?;
    let answer = ask(&shared.config, &mut carrier, request, &shared.url).await?;
    let head = head_of(&answer, &shared.url)?;
    let judged = shared.plan.borrow_mut().answered(worker, asked, answer.status(), &head);
    judged.map_err(|refusal| shared.refused(refusal))?;
    Ok((carrier, answer.into_body()))
}

/// Receives a body until the worker's piece is complete. Returns whether the body ended with it, so
/// that the connection can be used again. `http2`: the body is a stream, which says itself that it
/// has ended.
async fn receive(
    shared: &Shared,
    worker: Worker,
    mut body: Incoming,
    http2: bool,
) -> Result<bool, Failure> {
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
            Some(Err(error)) => return Err(shared.short(chain(&error)).into()),
            // hyper takes RST_STREAM with NO_ERROR for an end; END_STREAM alone is one (RFC 9113
            // section 8.1).
            None if http2 && !body.is_end_stream() => {
                let cause = "the server reset the stream before its end (RST_STREAM)";
                return Err(shared.short(cause.into()).into());
            }
            None if shared.plan.borrow_mut().ended(worker) => return Ok(true),
            None => return Err(shared.short("the body ended before its length".into()).into()),
        };
        heard = tokio::time::Instant::now();
        let all = shared.accept(worker, &data)?;
        if !shared.plan.borrow().has_piece(worker) {
            // The end of a chunked body, or of a stream, comes after its last byte.
            return Ok(all && body.is_end_stream());
        }
    }
}
