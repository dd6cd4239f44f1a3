//! The far end of a test: what a daemon does for a peer.

use super::message::{Account, Response, Spec, TestRequest, VERSION};
use super::mtu::Answering;
use super::running::{Collected, Running};
use super::{Amount, Sampler, TestDirection, data, samples};
use crate::{Channel, Expected, Kind, PeerError, Service, Session};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::Duration;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How long a peer may say nothing between runs.
const IDLE: Duration = Duration::from_secs(60);
/// How long the data connections of a run may take to come, and a peer to start what is prepared.
const GATHER: Duration = Duration::from_secs(30);
/// How often it is looked whether the peer is still there meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// How long an answer may take to leave.
const ANSWER: Duration = Duration::from_secs(30);
/// How long data may still arrive after the near end said that it is done.
const LAST_DATA: Duration = Duration::from_secs(3);

/// What tests may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponderLimits {
    /// Runs at once, of all peers: two would measure each other.
    pub runs: usize,
    /// The longest run.
    pub longest: Duration,
}

impl Default for ResponderLimits {
    fn default() -> Self {
        ResponderLimits { runs: 1, longest: Duration::from_secs(3600) }
    }
}

/// The far end of tests.
pub struct Responder<S> {
    sampler: S,
    limits: ResponderLimits,
    runs: AtomicUsize,
}

impl<S: Sampler> Responder<S> {
    /// One that samples its sockets by `sampler`.
    pub fn new(sampler: S, limits: ResponderLimits) -> Responder<S> {
        Responder { sampler, limits, runs: AtomicUsize::new(0) }
    }

    /// Takes the place of a run; `None` if all are taken.
    fn place(&self) -> Option<RunPlace<'_>> {
        let taken = self.runs.fetch_add(1, Ordering::AcqRel);
        let place = RunPlace(&self.runs);
        (taken < self.limits.runs).then_some(place)
    }
}

/// The place of a run, given back when dropped.
struct RunPlace<'a>(&'a AtomicUsize);

impl Drop for RunPlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Where a session is.
enum Stage<'a> {
    /// Nothing is prepared.
    Idle,
    /// Data connections are expected.
    Prepared { spec: Spec, expected: Expected, place: RunPlace<'a> },
    /// Data moves.
    Running { spec: Spec, running: Running, place: RunPlace<'a> },
}

impl<S: Sampler> Service for Responder<S> {
    fn serve(&self, channel: Channel, session: &Session<'_>) -> Result<(), String> {
        self.serve_from(None, channel, session)
    }
}

impl<S: Sampler> Responder<S> {
    /// Serves a peer whose first request may have come already.
    pub(crate) fn serve_from(
        &self,
        mut first: Option<TestRequest>,
        mut channel: Channel,
        session: &Session<'_>,
    ) -> Result<(), String> {
        let (mut stage, mut last) = (Stage::Idle, Vec::new());
        let mut answering = None;
        loop {
            let patience = match &stage {
                Stage::Running { spec, .. } => match spec.amount {
                    Amount::Time(time) => time + IDLE,
                    Amount::Bytes(_) => self.limits.longest,
                },
                Stage::Prepared { .. } => GATHER,
                Stage::Idle => IDLE,
            };
            let request = match first.take().map_or_else(|| channel.receive(patience), Ok) {
                Ok(request) => request,
                // The peer has what it wanted and leaves.
                Err(PeerError::Broken { .. }) if matches!(stage, Stage::Idle) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            };
            if let TestRequest::Samples { connection, from } = request {
                let collected: &[Collected] = &last;
                send_samples(&mut channel, collected, connection, from)
                    .map_err(|error| error.to_string())?;
                continue;
            }
            // Probes are answered between runs only: one at a time, and it ends with the session.
            drop(answering.take());
            if let (TestRequest::Mtu {}, Stage::Idle) = (&request, &stage) {
                let response = match probing(&channel, session) {
                    Ok((socket, response)) => {
                        answering = Some(socket);
                        response
                    }
                    Err(why) => refused(why),
                };
                channel.send(&response, ANSWER).map_err(|error| error.to_string())?;
                continue;
            }
            let (next, response) = self.answer(request, stage, session, &mut last);
            stage = next;
            session.set_busy(!matches!(stage, Stage::Idle));
            channel.send(&response, ANSWER).map_err(|error| error.to_string())?;
        }
    }
}

fn refused(why: impl Into<String>) -> Response {
    Response::Refused { why: why.into() }
}

impl<S: Sampler> Responder<S> {
    fn answer<'a>(
        &'a self,
        request: TestRequest,
        stage: Stage<'a>,
        session: &Session<'_>,
        last: &mut Vec<Collected>,
    ) -> (Stage<'a>, Response) {
        match (request, stage) {
            (TestRequest::Hello { .. }, stage) => {
                let facts = self.sampler.facts();
                let (kernel, sysctls) = (facts.kernel, facts.sysctls);
                (stage, Response::Welcome { version: VERSION, kernel, sysctls })
            }
            (TestRequest::Clock {}, stage) => (stage, Response::Clock { now: clock::now() }),
            (TestRequest::Prepare { spec }, Stage::Idle) => match self.prepare(spec, session) {
                Ok((stage, response)) => (stage, response),
                Err(why) => (Stage::Idle, refused(why)),
            },
            (TestRequest::Start {}, Stage::Prepared { spec, expected, place }) => {
                match self.start(&spec, expected, session) {
                    Ok(running) => (Stage::Running { spec, running, place }, Response::Started {}),
                    Err(why) => (Stage::Idle, refused(why)),
                }
            }
            (TestRequest::Finish {}, Stage::Running { running, place, .. }) => {
                *last = finish(&running);
                drop(place);
                let connections = last.iter().map(account).collect();
                (Stage::Idle, Response::Report { connections })
            }
            _ => (Stage::Idle, refused("that question does not come now")),
        }
    }

    fn prepare(&self, spec: Spec, session: &Session<'_>) -> Result<(Stage<'_>, Response), String> {
        if let Some(fault) = spec.fault(self.limits.longest) {
            return Err(fault);
        }
        let place = self.place().ok_or("another test is running; try again when it is over")?;
        if !session.set_busy(true) {
            return Err("the daemon is being stopped".into());
        }
        let expected = session.expect(spec.total()).ok_or("the host has no randomness")?;
        let (id, key) = expected.secret();
        Ok((Stage::Prepared { spec, expected, place }, Response::Prepared { id, key }))
    }

    fn start(
        &self,
        spec: &Spec,
        expected: Expected,
        session: &Session<'_>,
    ) -> Result<Running, String> {
        let streams = gather(expected, session)?;
        for (index, stream) in streams.iter().enumerate() {
            if spec.direction_of(index as u16) == TestDirection::Reverse {
                congestion(stream, spec)?;
            }
        }
        Running::start(streams, spec, TestDirection::Reverse, &self.sampler)
            .map_err(|error| error.to_string())
    }
}

/// Waits for the data connections of a run, for as long as its peer is there.
fn gather(mut expected: Expected, session: &Session<'_>) -> Result<Vec<TcpStream>, String> {
    let start = clock::now();
    while clock::now().since(start) < GATHER {
        if expected.have_come(LOOK) {
            return Ok(expected.into_streams());
        }
        if session.has_left() {
            return Err("it left before its data connections came".into());
        }
    }
    Err("its data connections did not all come".into())
}

/// Begins to answer probes of the path MTU.
fn probing(channel: &Channel, session: &Session<'_>) -> Result<(Answering, Response), String> {
    let local = session.local.ok_or("the session's own address is not known")?;
    let answering = Answering::start(local, channel.remote())
        .map_err(|error| format!("answer probes of the path MTU: {error}"))?;
    let response = Response::Probed { port: answering.port, token: answering.token };
    Ok((answering, response))
}

fn congestion(stream: &TcpStream, spec: &Spec) -> Result<(), String> {
    let Some(name) = &spec.congestion else { return Ok(()) };
    data::set_congestion(stream, name)
        .map_err(|error| format!("use congestion control {name} at the far end: {error}"))
}

/// Waits for the last data, and ends what does not end by itself.
fn finish(running: &Running) -> Vec<Collected> {
    if let Ok(collected) = running.collected.recv_timeout(LAST_DATA.into()) {
        return collected;
    }
    running.shared.end();
    running.collected.recv().unwrap_or_default()
}

fn account(one: &Collected) -> Account {
    Account {
        moved: one.moved.amount,
        time: one.moved.time,
        cpu: one.moved.cpu,
        samples: one.samples.len() as u32,
        failed: one.moved.failed.clone(),
    }
}

/// Sends the samples of a connection from one on; none where there are no more.
fn send_samples(
    channel: &mut Channel,
    last: &[Collected],
    connection: u16,
    from: u32,
) -> Result<(), PeerError> {
    let all = last.get(usize::from(connection)).map_or(&[][..], |one| &one.samples);
    let rest = all.get(from as usize..).unwrap_or_default();
    let piece = rest.get(..samples::PIECE.min(rest.len())).unwrap_or_default();
    let packed = samples::pack(piece).unwrap_or_default();
    channel.send_frame(Kind::Samples, &packed, ANSWER)
}
