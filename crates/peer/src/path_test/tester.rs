//! The near end of a test: it asks, and puts both ends' accounts together.

use super::data::{self, Moved};
use super::message::{Account, Amount, Response, Spec, TestDirection, TestRequest, VERSION};
use super::mtu::{PathMtu, Prober};
use super::running::{Collected, Running};
use super::{HostFacts, Sampler, TestError, samples};
use crate::{Channel, Client, Kind};
use fullpipe_flow::finding::path_test::{Seen, TestConnection};
use fullpipe_kernel::host::clock;
use fullpipe_model::observe::Sample;
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::mpsc::RecvTimeoutError;

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(45);
/// Looks at the far end's clock: so many, or as many as fit into [`CLOCKS_TIME`].
const CLOCKS: usize = 8;
/// On a long path two or three looks have to do.
const CLOCKS_TIME: Duration = Duration::from_secs(1);
/// How long a run by time may last beyond its time, for what is still on its way.
const BEYOND: Duration = Duration::from_secs(10);
/// How long nothing may move in a run by bytes.
const STALL: Duration = Duration::from_secs(60);
/// How often a run is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Since its start.
    pub elapsed: Duration,
    /// Acknowledged by the far end so far.
    pub forward: Bytes,
    /// Read here so far.
    pub reverse: Bytes,
    /// Segments that this end sent again so far.
    pub retransmitted_segments: u64,
    /// The round trip of the first connection that sends here.
    pub rtt: Option<Duration>,
    /// The congestion window of all connections that send here.
    pub cwnd: Bytes,
}

/// What a run has shown, from both ends and on this end's clock.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The connections that carried data to the far end.
    pub forward: Vec<TestConnection>,
    /// Those that carried data to here.
    pub reverse: Vec<TestConnection>,
}

/// The near end of a test.
pub struct Tester<'a> {
    client: Client,
    sampler: &'a dyn Sampler,
    channel: Channel,
    far: HostFacts,
    idle_rtt: Duration,
    /// The far end's clock less this one's, in nanoseconds.
    offset: i128,
}

impl std::fmt::Debug for Tester<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tester").field("client", &self.client).finish_non_exhaustive()
    }
}

impl<'a> Tester<'a> {
    /// Connects, and compares clocks.
    pub fn connect(client: Client, sampler: &'a dyn Sampler) -> Result<Tester<'a>, TestError> {
        let (channel, far) = (client.control()?, HostFacts::default());
        let (idle_rtt, offset) = (Duration::MAX, 0);
        let mut tester = Tester { client, sampler, channel, far, idle_rtt, offset };
        let addr = tester.addr();
        match tester.ask(&TestRequest::Hello { version: VERSION })? {
            Response::Welcome { version: VERSION, kernel, sysctls } => {
                tester.far = HostFacts { kernel, sysctls };
            }
            Response::Welcome { version: theirs, .. } => {
                return Err(TestError::Version { addr, theirs, ours: VERSION });
            }
            _ => return Err(TestError::Confused { addr }),
        }
        let start = clock::now();
        for _ in 0..CLOCKS {
            let before = clock::now();
            let Response::Clock { now } = tester.ask(&TestRequest::Clock {})? else {
                return Err(TestError::Confused { addr });
            };
            let after = clock::now();
            let rtt = after.since(before);
            // The closest look is the one that waited least on its way.
            if rtt < tester.idle_rtt {
                tester.idle_rtt = rtt;
                let middle = i128::from(before.as_nanos()) + i128::from(rtt.as_nanos() / 2);
                tester.offset = i128::from(now.as_nanos()) - middle;
            }
            if after.since(start) >= CLOCKS_TIME {
                break;
            }
        }
        Ok(tester)
    }

    /// The far end.
    pub fn addr(&self) -> SocketAddr {
        self.client.addr()
    }

    /// What the far end's host said about itself.
    pub fn far(&self) -> &HostFacts {
        &self.far
    }

    /// The least round trip of messages without load.
    pub fn idle_rtt(&self) -> Duration {
        self.idle_rtt
    }

    /// Probes the path MTU of both directions; `goes_on` is asked between probes.
    pub fn path_mtu(&mut self, goes_on: &dyn Fn() -> bool) -> Result<PathMtu, TestError> {
        let addr = self.addr();
        let Response::Probed { port, token } = self.ask(&TestRequest::Mtu {})? else {
            return Err(TestError::Confused { addr });
        };
        let unspecified = match addr.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let (local, far) = (SocketAddr::new(unspecified, 0), SocketAddr::new(addr.ip(), port));
        let probed = Prober::new(local, far, token, self.idle_rtt)
            .and_then(|mut prober| prober.measure(goes_on));
        let found = probed.map_err(|source| TestError::Probe { addr: far, source })?;
        if goes_on() { Ok(found) } else { Err(TestError::Interrupted) }
    }

    fn ask(&mut self, request: &TestRequest) -> Result<Response, TestError> {
        self.channel.send(request, ANSWER)?;
        match self.channel.receive(ANSWER)? {
            Response::Refused { why } => {
                Err(TestError::Refused { addr: self.addr(), why: printable(&why) })
            }
            response => Ok(response),
        }
    }

    /// Makes one run. `watch` is called every 50 ms and when the data has ended, and answers
    /// whether to go on.
    pub fn run(
        &mut self,
        spec: &Spec,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<Outcome, TestError> {
        if let Some(fault) = spec.fault(Duration::MAX) {
            return Err(TestError::Spec(fault));
        }
        let addr = self.addr();
        let Response::Prepared { id, key } =
            self.ask(&TestRequest::Prepare { spec: spec.clone() })?
        else {
            return Err(TestError::Confused { addr });
        };
        let streams = self.open(spec, &id, &key)?;
        let Response::Started {} = self.ask(&TestRequest::Start {})? else {
            return Err(TestError::Confused { addr });
        };
        let start = clock::now();
        let running = Running::start(streams, spec, TestDirection::Forward, self.sampler)?;
        let near = wait(&running, spec, start, watch)?;
        let after = clock::now().since(start);
        // What passed after the last look is part of the run.
        if !watch(&Progress::at_end(&near, spec, after)) {
            return Err(TestError::Interrupted);
        }
        let early = |why: &String| TestError::Early { addr, after, why: printable(why) };
        if let Some(why) = near.iter().find_map(|one| one.moved.failed.as_ref()) {
            return Err(early(why));
        }
        let Response::Report { connections: far } = self.ask(&TestRequest::Finish {})? else {
            return Err(TestError::Confused { addr });
        };
        if let Some(why) = far.iter().find_map(|one| one.failed.as_ref()) {
            return Err(early(why));
        }
        if far.len() != near.len() {
            return Err(TestError::Confused { addr });
        }
        self.outcome(spec, near, far)
    }

    /// Opens the data connections, all at once: each takes two round trips.
    fn open(&self, spec: &Spec, id: &str, key: &str) -> Result<Vec<TcpStream>, TestError> {
        let client = &self.client;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..spec.total())
                .map(|index| scope.spawn(move || open_one(client, spec, (id, key), index)))
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        })
    }

    fn outcome(
        &mut self,
        spec: &Spec,
        near: Vec<Collected>,
        far: Vec<Account>,
    ) -> Result<Outcome, TestError> {
        let mut outcome = Outcome::default();
        for (index, (near, far)) in near.into_iter().zip(far).enumerate() {
            let index = index as u16;
            let samples = self.samples(index, far.samples)?;
            let far_end = Seen { samples, cpu: far.cpu.clamp(0.0, 1.0) };
            let Moved { amount, time, cpu, .. } = near.moved;
            let near_end = Seen { samples: near.samples, cpu };
            if spec.direction_of(index) == TestDirection::Forward {
                let (received, time) = (far.moved, far.time);
                let (sender, receiver) = (near_end, far_end);
                outcome.forward.push(TestConnection { received, time, sender, receiver });
            } else {
                let (sender, receiver) = (far_end, near_end);
                outcome.reverse.push(TestConnection { received: amount, time, sender, receiver });
            }
        }
        Ok(outcome)
    }

    /// The far end's samples of a connection, on this end's clock.
    fn samples(&mut self, connection: u16, count: u32) -> Result<Vec<Sample>, TestError> {
        let mut all: Vec<Sample> = Vec::new();
        while all.len() < count as usize {
            let from = all.len() as u32;
            self.channel.send(&TestRequest::Samples { connection, from }, ANSWER)?;
            let frame = self.channel.receive_frame(ANSWER)?;
            if frame.kind != Kind::Samples {
                return Err(TestError::Confused { addr: self.addr() });
            }
            let piece = samples::unpack(&frame.payload)?;
            if piece.is_empty() {
                break;
            }
            all.extend(piece);
        }
        for sample in &mut all {
            let at = i128::from(sample.at.as_nanos()) - self.offset;
            sample.at = Instant::from_nanos(u64::try_from(at.max(0)).unwrap_or(u64::MAX));
        }
        all.sort_by_key(|sample| sample.at);
        Ok(all)
    }
}

/// Opens data connection `index` of the test with this secret.
fn open_one(
    client: &Client,
    spec: &Spec,
    (id, key): (&str, &str),
    index: u16,
) -> Result<TcpStream, TestError> {
    let stream = client.data(id, key, index)?;
    if let Some(name) = &spec.congestion
        && spec.direction_of(index) == TestDirection::Forward
    {
        data::set_congestion(&stream, name)
            .map_err(|source| TestError::Congestion { name: name.clone(), source })?;
    }
    Ok(stream)
}

/// A text of the far end without control characters, and not too long.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// Waits for the threads, and shows how far they are.
fn wait(
    running: &Running,
    spec: &Spec,
    start: Instant,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Vec<Collected>, TestError> {
    let (mut moved, mut since) = (Bytes::ZERO, start);
    let mut progress = Progress::default();
    loop {
        match running.collected.recv_timeout(LOOK.into()) {
            Ok(collected) => return Ok(collected),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(TestError::Sample("a thread of this run ended".into()));
            }
        }
        let now = clock::now();
        progress.update(running, spec, now.since(start));
        if !watch(&progress) {
            running.shared.end();
            return Err(TestError::Interrupted);
        }
        let sum = progress.forward.saturating_add(progress.reverse);
        if sum != moved {
            (moved, since) = (sum, now);
        }
        let is_over = match spec.amount {
            Amount::Time(time) => now.since(start) > time + BEYOND,
            Amount::Bytes(_) => now.since(since) > STALL,
        };
        if is_over {
            running.shared.end();
        }
    }
}

impl Progress {
    /// Looks at a run that goes on. Nothing that was seen is taken back: when sampling has ended,
    /// the run's end says the rest.
    fn update(&mut self, running: &Running, spec: &Spec, elapsed: Duration) {
        let Some(latest) = running.latest() else { return };
        let read = running.shared.read.load(std::sync::atomic::Ordering::Relaxed);
        let mut now = Progress { elapsed, reverse: Bytes::new(read), ..Progress::default() };
        now.add(spec, latest.iter().map(Option::as_ref));
        now.forward = now.forward.max(self.forward);
        now.retransmitted_segments = now.retransmitted_segments.max(self.retransmitted_segments);
        *self = now;
    }

    /// What a run has moved, from this end's account of it.
    fn at_end(near: &[Collected], spec: &Spec, elapsed: Duration) -> Progress {
        let mut end = Progress { elapsed, ..Progress::default() };
        for (index, one) in near.iter().enumerate() {
            if spec.direction_of(index as u16) == TestDirection::Reverse {
                end.reverse = end.reverse.saturating_add(one.moved.amount);
            }
        }
        let lasts =
            near.iter().map(|one| one.samples.iter().rev().find(|sample| sample.info.is_some()));
        end.add(spec, lasts);
        if matches!(spec.amount, Amount::Bytes(_)) {
            // All of it was acknowledged, the last of it after the last sample.
            let sent = near
                .iter()
                .enumerate()
                .filter(|(index, _)| spec.direction_of(*index as u16) == TestDirection::Forward);
            end.forward = sent.map(|(_, one)| one.moved.amount).sum();
        }
        end
    }

    /// Adds up what the sockets that send here say.
    fn add<'a>(&mut self, spec: &Spec, samples: impl Iterator<Item = Option<&'a Sample>>) {
        for (index, sample) in samples.enumerate() {
            if spec.direction_of(index as u16) != TestDirection::Forward {
                continue;
            }
            let Some(info) = sample.and_then(|sample| sample.info.as_ref()) else { continue };
            let acked = info.bytes_acked.unwrap_or(Bytes::ZERO);
            self.forward = self.forward.saturating_add(acked);
            self.retransmitted_segments += u64::from(info.total_retrans);
            self.rtt = self.rtt.or(Some(info.rtt));
            let cwnd = info.snd_mss.checked_mul(info.snd_cwnd.into()).unwrap_or(Bytes::MAX);
            self.cwnd = self.cwnd.saturating_add(cwnd);
        }
    }
}
