//! A downloader: [`get`] fetches one URL into a file, or to standard output.
//!
//! **How to think.** A file is a set of ranges ([`ranges`]): what is there, what a connection
//! fetches, what is missing. An earlier run, a connection that died and a second connection are
//! the same thing to it. Connections ([`worker`]) take pieces and fill them; [`engine`] makes as
//! many as [`crate::count`] wants and replaces those that fail. Rates are limited below TLS and
//! HTTP ([`socket`]), and the bytes are kept beside the file with a record of what is there
//! ([`part`]), until all are: then the file gets its name.
//!
//! The pure parts are [`plan`], which decides what is believed, [`ranges`], [`crate::count`],
//! [`answer`] and [`crate::pace`]; the shell runs on the calling thread, but for name lookups and
//! for the syncs of the record.
//!
//! **What is believed.** A part is accepted only if the server says that it starts where it was
//! asked to, has the length that was asked for, and is of a file with the same length and strong
//! validator (a strong `ETag`, or an old enough `Last-Modified`: RFC 9110 section 8.8). Parts are
//! asked for only by conditional requests (`If-Range`, section 13.1.5), and an earlier run's bytes
//! are continued only under the same URL. Without all that a file comes whole, by one connection.

mod answer;
pub(crate) mod connect;
mod engine;
mod error;
mod event;
mod open;
mod options;
mod part;
mod plan;
mod proxy;
mod ranges;
mod socket;
mod tls;
mod worker;

pub use crate::count::{Reason, Step};
pub use error::{GetError, Kept};
pub use event::{Distrusted, GetEvent, GetNotice};
pub use options::{
    Connections, Diagnosis, Family, GetOptions, GetRequest, Got, LimiterKind, Target,
};

use crate::{Stop, clock};
use answer::{Head, TakesRanges};
use connect::ConnectConfig;
use engine::{Engine, Interruption};
use fullpipe_model::units::{Bytes, Duration, Instant, Rate};
use open::Opening;
use part::{PartFile, ResumeRecord};
use plan::RangePlan;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use url::Url;
use worker::{Shared, Sink};

/// Fetches on the calling thread, and tells `observer` what happens, some ten times a second.
///
/// `stop` ends it from another thread; what has arrived is kept, and the same call continues.
/// `diagnosis` is what the caller learns about the connections meanwhile, if it looks.
pub fn get(
    request: &GetRequest,
    diagnosis: &Diagnosis,
    stop: &Stop,
    observer: &mut dyn FnMut(GetEvent),
) -> Result<Got, GetError> {
    let url = checked(request)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(GetError::Runtime)?;
    let local = tokio::task::LocalSet::new();
    let fetch = Fetch { request, url, started: clock::now(), diagnosis, stop, tell: observer };
    local.block_on(&runtime, fetch.run())
}

/// The URL, if the request makes sense.
fn checked(request: &GetRequest) -> Result<Url, GetError> {
    let url = parsed(&request.url)
        .map_err(|problem| GetError::Url { url: request.url.clone(), problem })?;
    let options = &request.options;
    for (option, rate) in
        [("--limit-rate", options.limit_rate), ("--limit-rate-each", options.limit_rate_each)]
    {
        if rate == Some(Rate::ZERO) {
            let must = "must be above zero, or nothing would ever arrive".into();
            return Err(GetError::Option { option, value: Rate::ZERO.to_string(), must });
        }
    }
    if let Some(hash) = &options.sha256
        && (hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
    {
        let must = "must have 64 hexadecimal digits, as sha256sum prints them".into();
        return Err(GetError::Option { option: "--sha256", value: hash.clone(), must });
    }
    Ok(url)
}

fn parsed(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("'{}' is neither http nor https", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("no credentials in a URL; send -H 'Authorization: ..'".into());
    }
    Ok(url)
}

/// A call of [`get`].
struct Fetch<'a> {
    request: &'a GetRequest,
    url: Url,
    started: Instant,
    diagnosis: &'a Diagnosis,
    stop: &'a Stop,
    tell: &'a mut dyn FnMut(GetEvent),
}

impl Fetch<'_> {
    async fn run(mut self) -> Result<Got, GetError> {
        let options = &self.request.options;
        let config = ConnectConfig::new(options.clone());
        if options.sha256.is_some() && Sink::is_stream(&self.request.target) {
            let must = "needs a file: what went elsewhere cannot be taken back".into();
            let (option, value) = ("--sha256", "with a stream as output".into());
            return Err(GetError::Option { option, value, must });
        }
        let sink = Sink::open(&self.request.target)?;
        let earlier = match &sink {
            Sink::Part(part) if !options.restart => part.earlier().unwrap_or_else(|why| {
                (self.tell)(GetEvent::Notice(GetNotice::Distrusted(why)));
                None
            }),
            _ => None,
        };
        let earlier = earlier.filter(|record| record.validators.if_range().is_some());
        let interrupted = interrupted(self.stop, options.max_time, self.started);
        let mut interrupted = std::pin::pin!(interrupted);
        let url = self.url.clone();
        let opened = tokio::select! {
            biased;
            why = &mut interrupted => Err(why.error(url.as_str(), Bytes::ZERO)),
            opened = self.open_patiently(&config, earlier.as_ref()) => opened,
        };
        match opened {
            Ok((opening, retries)) => {
                let begun = Begun { config, sink, earlier, opening, retries };
                self.receive(begun, interrupted).await
            }
            Err(error) => {
                if let (Sink::Part(part), None) = (&sink, &earlier) {
                    part.discard();
                }
                let kept = if earlier.is_some() { Kept::Continues } else { Kept::Unsaid };
                Err(error.with_kept(kept))
            }
        }
    }

    /// The first answer with data, and how often it had to be asked for again.
    async fn open_patiently(
        &mut self,
        config: &ConnectConfig,
        earlier: Option<&ResumeRecord>,
    ) -> Result<(Opening, u32), GetError> {
        let first = earlier.and_then(|record| {
            let first = RangePlan::resumed(record)?.ask(0).ok()??.piece;
            Some((record, first))
        });
        let mut retries = 0;
        loop {
            let opened =
                open::open(config, &self.url, first.clone(), self.started, self.tell).await;
            match opened {
                Err(error)
                    if error.is_transient(&config.options) && retries < config.options.retries =>
                {
                    retries += 1;
                    let delay = engine::backoff(retries);
                    (self.tell)(GetEvent::Notice(GetNotice::Again { error, delay }));
                    tokio::time::sleep(delay.into()).await;
                }
                other => return other.map(|opening| (opening, retries)),
            }
        }
    }

    /// Receives the body, by as many connections as are wanted.
    async fn receive(
        self,
        begun: Begun,
        interrupted: impl Future<Output = Interruption>,
    ) -> Result<Got, GetError> {
        let Begun { config, sink, earlier, opening, retries } = begun;
        let Opening { url, elsewhere, redirects, carrier, answer, head, .. } = opening;
        let (continues, mut timing) = (opening.continues, opening.timing);
        let plan = begin(&sink, earlier.as_ref().filter(|_| continues), &head)?;
        if let Some(record) = earlier.as_ref().filter(|_| !continues) {
            let is_same = record.url == url.as_str();
            let notice = if is_same { GetNotice::AnotherFile } else { GetNotice::AnotherUrl };
            (self.tell)(GetEvent::Notice(notice));
        }
        let (length, resumed) = (plan.length(), if continues { plan.done() } else { 0 });
        let (length, resumed) = (length.map(Bytes::new), Bytes::new(resumed));
        timing.total = timing.starttransfer;
        (self.tell)(GetEvent::Started { length, resumed, timing });
        let one_connection = alone(&plan, &sink, &config.options);
        if let Some(why) = one_connection {
            (self.tell)(GetEvent::Notice(GetNotice::OneConnection(why)));
        }
        let in_parts = plan.in_parts().is_ok() && matches!(sink, Sink::Part(_));
        let (peer, status) = (carrier.peer, answer.status().as_u16());
        let version = format!("{:?}", answer.version());
        let shared = Rc::new(Shared {
            config,
            url,
            elsewhere,
            sink,
            plan: RefCell::new(plan),
            events: RefCell::new(Vec::new()),
        });
        let engine = Engine::new(Rc::clone(&shared), carrier, answer.into_body(), in_parts);
        let ran = engine.run(self.diagnosis, interrupted, self.tell).await;
        timing.total = clock::now().since(self.started);
        let fared = match ran {
            Ok(fared) => fared,
            Err(error) => return Err(keep(&shared, error)),
        };
        let (file, fetched) = (shared.plan.borrow().done(), shared.plan.borrow().fetched());
        let sha256 = finish(&shared, file)?;
        Ok(Got {
            url: shared.url.to_string(),
            redirects,
            status,
            version,
            peer,
            file: Bytes::new(file),
            fetched: Bytes::new(fetched),
            timing,
            connections: fared.connections.max(1),
            one_connection,
            steps: fared.steps,
            retries: retries + fared.retries,
            sha256,
        })
    }
}

/// Why a file comes by one connection although more were allowed.
fn alone(plan: &RangePlan, sink: &Sink, options: &GetOptions) -> Option<&'static str> {
    match options.connections {
        Connections::Fixed(1) | Connections::Auto { most: 1, windows: 1 } => None,
        _ if matches!(sink, Sink::Stream { .. }) => Some("the output takes bytes in order alone"),
        _ => plan.in_parts().err(),
    }
}

/// A download whose first answer is there.
struct Begun {
    config: ConnectConfig,
    sink: Sink,
    earlier: Option<ResumeRecord>,
    opening: Opening,
    retries: u32,
}

/// The plan of a file of which `earlier` is there, or nothing.
fn begin(sink: &Sink, earlier: Option<&ResumeRecord>, head: &Head) -> Result<RangePlan, GetError> {
    if let Some(plan) = earlier.and_then(RangePlan::resumed) {
        return Ok(plan);
    }
    if let Sink::Part(part) = sink {
        part.clear()?;
    }
    Ok(RangePlan::begun(head))
}

/// Why the download should end early, once it should.
async fn interrupted(stop: &Stop, limit: Option<Duration>, started: Instant) -> Interruption {
    let left = limit.map(|limit| limit.saturating_sub(clock::now().since(started)));
    tokio::select! {
        biased;
        () = stop.stopped() => Interruption::Stopped,
        () = tokio::time::sleep(left.unwrap_or(Duration::MAX).into()), if limit.is_some() => {
            Interruption::OutOfTime(limit.unwrap_or(Duration::ZERO))
        }
    }
}

/// After a failure: keeps what a later run can continue, and nothing else, and says which.
fn keep(shared: &Shared, error: GetError) -> GetError {
    let Sink::Part(part) = &shared.sink else { return error.with_kept(Kept::Stream) };
    let plan = shared.plan.borrow();
    let kept = match plan.record(shared.url.as_str()) {
        _ if matches!(error, GetError::Changed { .. }) => Kept::Unsaid,
        Err(why) => Kept::Nothing(why),
        Ok(record) if !store(part, &record) => Kept::Nothing("its record cannot be written"),
        Ok(_) if plan.takes_ranges() == TakesRanges::Yes => Kept::Continues,
        Ok(_) => Kept::IfRanges,
    };
    if matches!(kept, Kept::Unsaid | Kept::Nothing(_)) {
        part.discard();
    }
    error.with_kept(kept)
}

/// Writes the last record; on a full disk, of a little less.
fn store(part: &PartFile, record: &ResumeRecord) -> bool {
    let Ok(recorder) = part.recorder() else { return false };
    let Err(error) = recorder.write(record) else { return true };
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            part.make_room(record).and_then(|less| recorder.write(&less)).is_ok()
        }
        _ => false,
    }
}

/// Checks the file and gives it its name; returns its hash, if one was expected.
fn finish(shared: &Shared, length: u64) -> Result<Option<String>, GetError> {
    shared.sink.flush()?;
    let Sink::Part(part) = &shared.sink else { return Ok(None) };
    let expected = shared.config.options.sha256.as_ref().map(|hash| hash.to_ascii_lowercase());
    if let Some(expected) = &expected {
        let found = part.sha256(length)?;
        if found != *expected {
            part.forget();
            return Err(GetError::Hash {
                url: shared.url.to_string(),
                expected: expected.clone(),
                found,
                part: part.path().into(),
            });
        }
    }
    part.complete(length)?;
    Ok(expected)
}
