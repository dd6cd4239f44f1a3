//! One request and its response: connect, ask, receive.

use super::connection::{self, Socket};
use super::intervals::Intervals;
use super::location::Location;
use super::output::Sink;
use super::{
    Connected, Download, DownloadError, DownloadEvent, DownloadOptions, Outcome, RequestPhase,
    Timing,
};
use crate::{Stop, clock, content};
use bytes::Bytes as Buffer;
use fullpipe_model::units::{Bytes, Duration, Instant};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use tokio::time::{Sleep, sleep};

/// A request, and what it needs from its download.
pub(super) struct Attempt<'a> {
    pub(super) url: &'a str,
    pub(super) options: &'a DownloadOptions,
    pub(super) stop: &'a Stop,
    pub(super) observer: &'a mut dyn FnMut(DownloadEvent),
    pub(super) started: Instant,
    pub(super) redirect_time: Duration,
}

/// The server's answer, if it is no error.
pub(super) enum ServerAnswer {
    Download(Box<Download>),
    Redirect { status: StatusCode, location: String },
}

impl Attempt<'_> {
    pub(super) async fn run(&mut self) -> Result<ServerAnswer, DownloadError> {
        let location = Location::parse(self.url)?;
        // First, because an output that cannot be made should be reported before the transfer, not
        // after it.
        let sink = Sink::open(&self.options.output)?;
        let mut timing = Timing { redirect: self.redirect_time, ..Timing::default() };
        let peers = connection::look_up(&location)?;
        timing.namelookup = self.elapsed();
        let stream = self
            .unless_interrupted(RequestPhase::Connect, connection::connect(&peers, self.options))
            .await??;
        timing.connect = self.elapsed();
        let connected = connection::describe(&stream)
            .map_err(|error| connection::connect_error(peers[0], error))?;
        (self.observer)(DownloadEvent::Connected(connected));
        timing.pretransfer = self.elapsed();

        let first_byte = Arc::new(OnceLock::new());
        let content_length = Arc::new(OnceLock::new());
        let socket = Socket::new(stream, self.options, first_byte.clone(), content_length.clone());
        let response =
            self.unless_interrupted(RequestPhase::Response, ask(socket, &location)).await?;
        let response = response.map_err(|source| DownloadError::Response {
            url: self.url.into(),
            peer: connected.peer,
            source,
        })?;
        timing.starttransfer =
            first_byte.get().copied().unwrap_or_else(clock::now).since(self.started);

        let status = response.status();
        if let (true, Some(location)) = (status.is_redirection(), text(&response, header::LOCATION))
        {
            return Ok(ServerAnswer::Redirect { status, location });
        }
        if !status.is_success() {
            return Err(DownloadError::Status { url: self.url.into(), status });
        }
        if let Some(length) = response.body().size_hint().exact() {
            // It is set only once, here.
            let _ = content_length.set(length);
        }
        self.receive(response, sink, connected, timing)
            .await
            .map(|download| ServerAnswer::Download(Box::new(download)))
    }

    async fn receive(
        &mut self,
        response: Response<Incoming>,
        mut sink: Sink,
        connection: Connected,
        mut timing: Timing,
    ) -> Result<Download, DownloadError> {
        let (status, server) = (response.status().as_u16(), text(&response, header::SERVER));
        let mut body = response.into_body();
        let content_length = body.size_hint().exact().map(Bytes::new);
        (self.observer)(DownloadEvent::Headers { content_length });
        let mut received =
            Received { body: Bytes::ZERO, intervals: Intervals::new(self.options.interval) };
        let outcome = self.read(&mut body, content_length, &mut sink, &mut received).await?;
        timing.total = self.elapsed();
        for interval in received.intervals.finish(timing.total) {
            (self.observer)(DownloadEvent::Interval(*interval));
        }
        if outcome == Outcome::Complete {
            sink.complete()?;
        }
        Ok(Download {
            outcome,
            url: self.url.into(),
            redirects: 0,
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
        sink: &mut Sink,
        received: &mut Received,
    ) -> Result<Outcome, DownloadError> {
        let (options, started) = (self.options, self.started);
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
                    None => return Ok(Outcome::Complete),
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
                Some(Ok(frame)) => {
                    self.take(&frame.into_data().unwrap_or_default(), sink, received)?
                }
                Some(Err(source)) => {
                    let (url, received) = (self.url.into(), received.body);
                    return Err(DownloadError::ClosedEarly { url, received, expected, source });
                }
                None => {}
            }
        }
    }

    /// Consumes a piece of the body.
    fn take(
        &self,
        data: &[u8],
        sink: &mut Sink,
        received: &mut Received,
    ) -> Result<(), DownloadError> {
        if self.options.verify
            && let Some((offset, expected, found)) = content::first_difference(received.body, data)
        {
            return Err(DownloadError::Content { url: self.url.into(), offset, expected, found });
        }
        sink.write(data)?;
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
            _ = interrupted(self.stop, self.options, self.started) => {
                let elapsed = self.elapsed();
                Err(DownloadError::NoResponse { url: self.url.into(), phase, elapsed })
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
async fn ask(socket: Socket, location: &Location) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(DownloadOptions::READ_BUFFER_MAX.get() as usize)
        .handshake(TokioIo::new(socket))
        .await?;
    // Its errors also appear in the response and its body.
    tokio::spawn(connection);
    let mut request = hyper::Request::new(Empty::<Buffer>::new());
    let values = [
        (header::HOST, location.authority.as_str()),
        (header::USER_AGENT, concat!("fullpipe/", env!("CARGO_PKG_VERSION"))),
        (header::ACCEPT, "*/*"),
    ];
    for (name, value) in values {
        request.headers_mut().insert(
            name,
            HeaderValue::from_str(value).expect("a part of a URL has visible ASCII only"),
        );
    }
    *request.uri_mut() = location.target.clone();
    sender.send_request(request).await
}

/// Waits for anything that ends a download early, and returns which it was.
async fn interrupted(stop: &Stop, options: &DownloadOptions, started: Instant) -> Outcome {
    let deadline = async {
        match options.max_duration {
            Some(duration) => sleep_until(started, duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop.stopped() => Outcome::StoppedByCaller,
        () = deadline => Outcome::StoppedAfterDuration,
    }
}

/// Sleeps until `elapsed` after `started`.
fn sleep_until(started: Instant, elapsed: Duration) -> Sleep {
    sleep((started + elapsed).since(clock::now()).into())
}

fn text(response: &Response<Incoming>, name: HeaderName) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(String::from)
}
