//! One request and its response: connect, ask, receive.

use super::connection::{self, Socket};
use super::intervals::Intervals;
use super::{
    Connected, Download, DownloadError, DownloadEvent, DownloadOptions, DownloadOutcome,
    DownloadRequest, RequestPhase, Resource, Timing,
};
use crate::{Stop, clock, content};
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Bytes, Duration, Instant};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, Uri};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use tokio::time::{Sleep, sleep};

/// A request, and what it needs while it runs.
pub(super) struct Attempt<'a> {
    request: &'a DownloadRequest,
    stop: &'a Stop,
    observer: &'a mut dyn FnMut(DownloadEvent),
    started: Instant,
}

impl<'a> Attempt<'a> {
    /// It starts now.
    pub(super) fn new(
        request: &'a DownloadRequest,
        stop: &'a Stop,
        observer: &'a mut dyn FnMut(DownloadEvent),
    ) -> Attempt<'a> {
        Attempt { request, stop, observer, started: clock::now() }
    }

    pub(super) async fn run(mut self) -> Result<Download, DownloadError> {
        let options = &self.request.options;
        let mut timing = Timing { namelookup: self.elapsed(), ..Timing::default() };
        let stream = self
            .unless_interrupted(
                RequestPhase::Connect,
                connection::connect(self.request.resource.server, options),
            )
            .await??;
        timing.connect = self.elapsed();
        let connected = connection::describe(&stream)
            .map_err(|error| connection::connect_error(self.request.resource.server, error))?;
        (self.observer)(DownloadEvent::Connected(connected));
        timing.pretransfer = self.elapsed();

        let first_byte = Arc::new(OnceLock::new());
        let content_length = Arc::new(OnceLock::new());
        let socket = Socket::new(stream, options, first_byte.clone(), content_length.clone());
        let response = self
            .unless_interrupted(RequestPhase::Response, ask(socket, &self.request.resource))
            .await?;
        let response = response.map_err(|source| DownloadError::Response {
            url: self.request.resource.url(),
            peer: connected.peer,
            source,
        })?;
        timing.starttransfer =
            first_byte.get().copied().unwrap_or_else(clock::now).since(self.started);
        if !response.status().is_success() {
            let (url, status) = (self.request.resource.url(), response.status());
            return Err(DownloadError::Status { url, status });
        }
        if let Some(length) = response.body().size_hint().exact() {
            // It is set only once, here.
            let _ = content_length.set(length);
        }
        self.receive(response, connected, timing).await
    }

    async fn receive(
        &mut self,
        response: Response<Incoming>,
        connection: Connected,
        mut timing: Timing,
    ) -> Result<Download, DownloadError> {
        let (status, server) = (response.status().as_u16(), text(&response, header::SERVER));
        let mut body = response.into_body();
        let content_length = body.size_hint().exact().map(Bytes::new);
        (self.observer)(DownloadEvent::Headers { content_length });
        let mut received = Received {
            body: Bytes::ZERO,
            intervals: Intervals::new(self.request.options.interval),
        };
        let outcome = self.read(&mut body, content_length, &mut received).await?;
        timing.total = self.elapsed();
        for interval in received.intervals.finish(timing.total) {
            (self.observer)(DownloadEvent::Interval(*interval));
        }
        Ok(Download {
            outcome,
            url: self.request.resource.url(),
            status,
            server,
            connection,
            content_length,
            body: received.body,
            started: self.started,
            timing,
            intervals: received.intervals.into_all(),
        })
    }

    /// Reads the body until its end, or until something else ends the download.
    async fn read(
        &mut self,
        body: &mut Incoming,
        expected: Option<Bytes>,
        received: &mut Received,
    ) -> Result<DownloadOutcome, DownloadError> {
        let (options, started) = (&self.request.options, self.started);
        let mut interrupted = pin!(interrupted(self.stop, options, started));
        let mut interval_ends = received.intervals.ends_at();
        let mut interval_end = pin!(sleep_until(started, interval_ends));
        loop {
            let frame = tokio::select! {
                biased;
                outcome = &mut interrupted => return Ok(outcome),
                () = &mut interval_end => None,
                frame = body.frame() => match frame {
                    Some(frame) => Some(frame),
                    None => return Ok(DownloadOutcome::Complete),
                },
            };
            for interval in received.intervals.advance(self.elapsed()) {
                (self.observer)(DownloadEvent::Interval(*interval));
            }
            if interval_ends != received.intervals.ends_at() {
                interval_ends = received.intervals.ends_at();
                interval_end.set(sleep_until(started, interval_ends));
            }
            match frame {
                // Trailers are not the body.
                Some(Ok(frame)) => self.take(&frame.into_data().unwrap_or_default(), received)?,
                Some(Err(source)) => {
                    let (url, received) = (self.request.resource.url(), received.body);
                    return Err(DownloadError::ClosedEarly { url, received, expected, source });
                }
                None => {}
            }
        }
    }

    /// Consumes a piece of the body.
    fn take(&self, data: &[u8], received: &mut Received) -> Result<(), DownloadError> {
        if self.request.options.verify
            && let Some((offset, expected, found)) = content::first_difference(received.body, data)
        {
            let url = self.request.resource.url();
            return Err(DownloadError::Content { url, offset, expected, found });
        }
        let length = Bytes::new(data.len() as u64);
        received.intervals.count(length);
        received.body += length;
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        clock::now().since(self.started)
    }

    /// The result of `future`, or an error if it is interrupted in `phase`.
    async fn unless_interrupted<T>(
        &self,
        phase: RequestPhase,
        future: impl Future<Output = T>,
    ) -> Result<T, DownloadError> {
        tokio::select! {
            biased;
            done = future => Ok(done),
            _ = interrupted(self.stop, &self.request.options, self.started) => {
                let elapsed = self.elapsed();
                Err(DownloadError::NoResponse { url: self.request.resource.url(), phase, elapsed })
            }
        }
    }
}

/// The part of a body received so far.
struct Received {
    body: Bytes,
    intervals: Intervals,
}

/// Sends the request and waits for the response's headers; a task of the runtime then drives the
/// connection.
async fn ask(socket: Socket, asked: &Resource) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(DownloadOptions::READ_BUFFER_MAX.get() as usize)
        .handshake(TokioIo::new(socket))
        .await?;
    // Its errors also appear in the response and its body.
    tokio::spawn(connection);
    let mut request = hyper::Request::new(Empty::<Buffer>::new());
    let host = asked.server.to_string();
    let agent = concat!("fullpipe/", env!("CARGO_PKG_VERSION"));
    for (name, value) in
        [(header::HOST, host.as_str()), (header::USER_AGENT, agent), (header::ACCEPT, "*/*")]
    {
        let value = HeaderValue::from_str(value).expect("an address has visible ASCII only");
        request.headers_mut().insert(name, value);
    }
    *request.uri_mut() = asked.path.parse().unwrap_or_else(|_| Uri::from_static("/"));
    sender.send_request(request).await
}

/// Waits for anything that ends a download early, and returns which it was.
async fn interrupted(stop: &Stop, options: &DownloadOptions, started: Instant) -> DownloadOutcome {
    let deadline = async {
        match options.max_duration {
            Some(duration) => sleep_until(started, duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.stopped() => DownloadOutcome::StoppedByCaller,
        () = deadline => DownloadOutcome::StoppedAfterDuration,
    }
}

/// Sleeps until `elapsed` after `started`.
fn sleep_until(started: Instant, elapsed: Duration) -> Sleep {
    sleep((started + elapsed).since(clock::now()).into())
}

fn text(response: &Response<Incoming>, name: HeaderName) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(String::from)
}
