//! One connection with its requests and their responses: connect, ask, receive.

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
use hyper::client::conn::http1::SendRequest;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, Uri};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use tokio::time::{Sleep, sleep};

/// A download, and what it needs while it runs.
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
        let (resource, peer) = (&self.request.resource, connected.peer);
        let asked = async {
            let mut asker = Asker::new(socket, resource, peer).await?;
            let response = asker.ask(resource).await?;
            Ok((asker, response))
        };
        let (asker, response) = self.unless_interrupted(RequestPhase::Response, asked).await??;
        timing.starttransfer =
            first_byte.get().copied().unwrap_or_else(clock::now).since(self.started);
        if let Some(length) = response.body().size_hint().exact() {
            // It is set only once, here.
            let _ = content_length.set(length);
        }
        self.receive(asker, response, connected, timing).await
    }

    async fn receive(
        &mut self,
        mut asker: Asker,
        response: Response<Incoming>,
        connection: Connected,
        mut timing: Timing,
    ) -> Result<Download, DownloadError> {
        let (status, server) = (response.status().as_u16(), text(&response, header::SERVER));
        let mut received = Received {
            body: Bytes::ZERO,
            before: Bytes::ZERO,
            intervals: Intervals::new(self.request.options.interval),
        };
        let mut content_length = Some(Bytes::ZERO);
        let mut next = Some(response);
        let mut outcome = DownloadOutcome::Complete;
        let mut left = self.request.options.requests;
        while let Some(response) = next.take() {
            let mut body = response.into_body();
            let length = body.size_hint().exact().map(Bytes::new);
            content_length = content_length.zip(length).map(|(all, length)| all + length);
            (self.observer)(DownloadEvent::Headers { content_length: length });
            received.before = received.body;
            outcome = self.read(&mut body, length, &mut received).await?;
            left -= 1;
            if outcome == DownloadOutcome::Complete && left > 0 {
                match self.ask_again(&mut asker).await {
                    Ok(response) => next = Some(response?),
                    Err(interrupted) => outcome = interrupted,
                }
            }
        }
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

    /// The response to the same request once more, or what ended the download before.
    async fn ask_again(
        &self,
        asker: &mut Asker,
    ) -> Result<Result<Response<Incoming>, DownloadError>, DownloadOutcome> {
        let options = &self.request.options;
        let ask = async {
            if options.ask_after > Duration::ZERO {
                sleep(options.ask_after.into()).await;
            }
            asker.ask(&self.request.resource).await
        };
        tokio::select! {
            biased;
            outcome = interrupted(self.stop, options, self.started) => Err(outcome),
            response = ask => Ok(response),
        }
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
            && let Some((offset, expected, found)) =
                content::first_difference(received.body - received.before, data)
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

/// The parts of bodies received so far.
struct Received {
    body: Bytes,
    /// What was received with the responses before this one.
    before: Bytes,
    intervals: Intervals,
}

/// A connection on which requests are sent.
struct Asker {
    sender: SendRequest<Empty<Buffer>>,
    peer: SocketAddr,
}

impl Asker {
    /// A connection whose socket is connected; a task of the runtime drives it.
    async fn new(
        socket: Socket,
        asked: &Resource,
        peer: SocketAddr,
    ) -> Result<Asker, DownloadError> {
        let made = hyper::client::conn::http1::Builder::new()
            .max_buf_size(DownloadOptions::READ_BUFFER_MAX.get() as usize)
            .handshake(TokioIo::new(socket))
            .await;
        let (sender, connection) = made.map_err(|source| no_response(asked, peer, source))?;
        // Its errors also appear in the response and its body.
        tokio::spawn(connection);
        Ok(Asker { sender, peer })
    }

    /// Sends a request, and waits for the response's headers.
    async fn ask(&mut self, asked: &Resource) -> Result<Response<Incoming>, DownloadError> {
        let answered = async {
            self.sender.ready().await?;
            self.sender.send_request(request(asked)).await
        };
        let response = answered.await.map_err(|source| no_response(asked, self.peer, source))?;
        let status = response.status();
        if !status.is_success() {
            return Err(DownloadError::Status { url: asked.url(), status });
        }
        Ok(response)
    }
}

fn no_response(asked: &Resource, peer: SocketAddr, source: hyper::Error) -> DownloadError {
    DownloadError::Response { url: asked.url(), peer, source }
}

fn request(asked: &Resource) -> hyper::Request<Empty<Buffer>> {
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
    request
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
