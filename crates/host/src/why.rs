//! Why the host's connections are slow: the busiest are followed for some seconds, and each gets an
//! answer.
//!
//! [`why`] looks twice to see which connections are busy, follows those that a [`LiveFilter`]
//! selects, and asks the sockets what their applications set. Where both ends of a connection are
//! on this host, each is evidence for the other, and the sender's end has the answer.

use crate::follow::{Target, follow};
use crate::machine::{
    Counters, group_is_short, holders, memory_pressure, offloads_off, physical_devices, vendor,
};
use crate::watch::{SocketKey, Watch, WatchedSocket};
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_flow::diagnosis::Explanation;
use fullpipe_flow::diagnosis::live::{Answer, HostFacts, LiveConnection, Note, Observed, role};
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_kernel::{Refused, socket::socket_options};
use fullpipe_model::limit::End;
use fullpipe_model::observe::{Egress, Process, Sample, SocketOptions};
use fullpipe_model::units::{Bytes, Duration};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// How to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WhyOptions {
    /// Whether connections over loopback count as well.
    pub loopback: bool,
    /// How long to follow the connections.
    pub span: Duration,
    /// How many connections to follow at most, the busiest first.
    pub most: usize,
}

/// The time between the two looks that find the busy connections.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// A connection of the host that was followed.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    /// What it is and what limits it.
    pub connection: LiveConnection,
    /// The samples that the answer rests on, of this host's end.
    pub samples: Vec<Sample>,
    /// Those of the other end, where that is on this host too.
    pub other: Vec<Sample>,
    /// What this host knew of its end beside the samples.
    pub note: Note,
}

/// The answers, and what was looked at for them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The connections, the one that loses most first.
    pub followed: Vec<Followed>,
    /// What the machine itself dropped or held back meanwhile.
    pub machine: Vec<Explanation>,
    /// How many busy connections were selected; more than were followed, perhaps.
    pub selected: usize,
    /// How many connections there are.
    pub connections: usize,
}

/// Whether a connection is meant.
fn is_selected(socket: &WatchedSocket, filter: &LiveFilter, options: WhyOptions) -> bool {
    let process = socket.process.as_deref();
    filter.matches(socket.local, socket.remote, process)
        && (options.loopback || !is_loopback(socket.local, socket.remote))
}

/// Whether a connection stays within this host.
pub(crate) fn is_loopback(local: SocketAddr, remote: SocketAddr) -> bool {
    remote.ip().is_loopback() || local.ip() == remote.ip()
}

/// Finds out what limits the selected connections. `tick` is called with the time that has passed.
pub fn why(
    watch: &mut Watch,
    filter: &LiveFilter,
    options: WhyOptions,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<Found, Refused> {
    watch.look()?;
    let is_interrupted = interrupt
        .wait(Some(FIRST_LOOK))
        .map_err(|cause| Refused::new("wait for the second look", "timer", cause))?;
    if is_interrupted {
        return Ok(Found::default());
    }
    watch.look()?;
    let mut busy = watch.busy();
    busy.retain(|socket| is_selected(socket, filter, options));
    let selected = busy.len();
    busy.sort_by_key(|socket| std::cmp::Reverse((waits(socket), socket.rate(), socket.key)));
    busy.truncate(options.most);
    let seen: Vec<SeenSocket> =
        busy.into_iter().map(|socket| SeenSocket::new(socket, watch)).collect();
    let mut found = answers(watch, &seen, options.span, interrupt, tick)?;
    found.selected = selected;
    Ok(found)
}

/// A connection that is followed for as long as it is of interest, with an answer whenever one is
/// asked for.
///
/// **Order of calls.** [`Following::start`], then [`Following::answer`] again and again: each
/// samples for a while, and answers for what it has seen of the last second.
pub struct Following {
    seen: SeenSocket,
    targets: Vec<Target>,
    samples: HashMap<SocketKey, Vec<Sample>>,
}

/// What an answer of [`Following`] rests on: long enough for 25 intervals of a verdict, and short
/// enough that slow start is forgotten soon.
const LAST: Duration = Duration::from_secs(1);

impl Following {
    /// The connection between `local` and `remote`; `None` if there is none.
    pub fn start(
        watch: &mut Watch,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Option<Following>, Refused> {
        watch.look()?;
        watch.look()?;
        let seen = watch.between(local, remote).map(|socket| SeenSocket::new(socket, watch));
        Ok(seen.map(|seen| {
            let targets = [Some(seen.target), seen.other].into_iter().flatten().collect();
            Following { seen, targets, samples: HashMap::new() }
        }))
    }

    /// What limits the connection, after `span` more or as soon as `interrupt` is set; `None`
    /// while there is too little to tell, and once the connection is gone.
    pub fn answer(
        &mut self,
        watch: &mut Watch,
        span: Duration,
        interrupt: &Interrupt,
    ) -> Result<Option<Answer>, Refused> {
        let more = follow(watch, &self.targets, span, interrupt, &mut |_| {})?;
        let is_there = more.get(&self.seen.target.key).is_some_and(|samples| samples.len() > 1);
        for (key, samples) in more {
            let all = self.samples.entry(key).or_default();
            all.extend(samples);
            let newest = all.last().map(|sample| sample.at);
            all.retain(|sample| newest.is_some_and(|newest| newest.since(sample.at) <= LAST));
        }
        let followed = is_there.then(|| self.seen.answer(watch, &self.samples, None)).flatten();
        Ok(followed.map(|followed| followed.connection.answer))
    }
}

/// Finds out what limits the connection between `local` and `remote`; nothing is found if there is
/// none any more. `tick` is called with the time that has passed.
pub fn why_one(
    watch: &mut Watch,
    local: SocketAddr,
    remote: SocketAddr,
    span: Duration,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<Found, Refused> {
    watch.look()?;
    watch.look()?;
    let seen: Vec<SeenSocket> = watch
        .between(local, remote)
        .map(|socket| SeenSocket::new(socket, watch))
        .into_iter()
        .collect();
    answers(watch, &seen, span, interrupt, tick)
}

/// Follows connections, and answers for each.
fn answers(
    watch: &mut Watch,
    seen: &[SeenSocket],
    span: Duration,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<Found, Refused> {
    let mut targets: Vec<Target> =
        seen.iter().flat_map(|one| [Some(one.target), one.other]).flatten().collect();
    targets.sort_by_key(|target| target.key);
    targets.dedup();
    let before = Counters::read();
    let left_by: Vec<Option<Egress>> = seen.iter().map(|one| one.egress(watch)).collect();
    let samples = follow(watch, &targets, span, interrupt, tick)?;
    let mut machine = Counters::read().since(&before);
    machine.extend(memory_pressure(&holders(watch)));
    machine.extend(offloads_off(&physical_devices()));
    let both = seen.iter().zip(&left_by);
    let followed =
        both.filter_map(|(one, left_by)| one.answer(watch, &samples, left_by.as_ref())).collect();
    let machine = machine.into_iter().map(Explanation::from).collect();
    let followed = worst_first(followed);
    let selected = seen.len();
    Ok(Found { followed, machine, selected, connections: watch.connections() })
}

/// The one that loses most first. Of two ends of one connection only the sender's stays: its
/// counters tell more, and the other end's samples are part of its answer.
pub(crate) fn worst_first(mut followed: Vec<Followed>) -> Vec<Followed> {
    let senders: Vec<(SocketAddr, SocketAddr)> = followed
        .iter()
        .map(|one| &one.connection.answer)
        .filter(|answer| answer.role == End::Sender)
        .map(|answer| (answer.local, answer.remote))
        .collect();
    followed.retain(|one| {
        let answer = &one.connection.answer;
        answer.role == End::Sender || !senders.contains(&(answer.remote, answer.local))
    });
    followed.sort_by(|a, b| {
        let (a, b) = (&a.connection.answer, &b.connection.answer);
        b.lost.cmp(&a.lost).then_with(|| b.goodput.cmp(&a.goodput))
    });
    followed
}

/// Whether data waits at one of its ends.
fn waits(socket: &WatchedSocket) -> bool {
    socket.sample().is_some_and(|one| one.wqueue > Bytes::ZERO || one.rqueue > Bytes::ZERO)
}

/// A connection that is followed.
struct SeenSocket {
    target: Target,
    other: Option<Target>,
    namespace: Arc<str>,
    process: Option<Arc<Process>>,
    uid: u32,
}

fn target(socket: &WatchedSocket) -> Target {
    Target { key: socket.key, local: socket.local, remote: socket.remote }
}

impl SeenSocket {
    fn new(socket: &WatchedSocket, watch: &Watch) -> SeenSocket {
        let other = watch.between(socket.remote, socket.local).map(target);
        SeenSocket {
            target: target(socket),
            other: other.filter(|other| other.key != socket.key),
            namespace: Arc::clone(&socket.namespace),
            process: socket.process.clone(),
            uid: socket.uid,
        }
    }

    /// What its packets pass on their way out of this host.
    fn egress(&self, watch: &Watch) -> Option<Egress> {
        watch.egress(self.target.key, self.target.remote.ip())
    }

    /// The answer, with what the device did since `left_by` was read.
    fn answer(
        &self,
        watch: &mut Watch,
        samples: &HashMap<SocketKey, Vec<Sample>>,
        left_by: Option<&Egress>,
    ) -> Option<Followed> {
        let [own, other] = [Some(self.target), self.other].map(|target| {
            target.and_then(|target| samples.get(&target.key)).cloned().unwrap_or_default()
        });
        let settings = watch.settings(self.target.key)?;
        let asked = asked(watch, self.target.key);
        let leaves_by = left_by.and_then(|_| self.egress(watch));
        let group = self.process.as_deref().and_then(|process| process.cgroup.as_deref());
        let group = group.and_then(group_is_short);
        let vendor = vendor();
        let host = HostFacts {
            egress: left_by.zip(leaves_by.as_ref()).map(|(before, after)| [before, after]),
            group: group.as_ref(),
            vendor: &vendor,
            program: self.process.as_deref().map_or("", |process| &process.name),
        };
        let seen = Observed {
            role: role(&own),
            samples: &own,
            other: &other,
            asked,
            settings: Some(&settings),
            host,
        };
        let answer = seen.answer()?;
        let connection = LiveConnection {
            answer,
            namespace: self.namespace.to_string(),
            process: self.process.as_deref().cloned(),
            uid: self.uid,
            peer_site: None,
        };
        let Target { local, remote, .. } = self.target;
        let at = own.last()?.at;
        let note = Note { at, local, remote, asked, settings: Some(settings), socket: None };
        Some(Followed { connection, samples: own, other, note })
    }
}

/// What the application asked of a socket, where its process may be asked.
fn asked(watch: &Watch, key: SocketKey) -> Option<SocketOptions> {
    socket_options::read(watch.descriptor(key)?).ok()
}
