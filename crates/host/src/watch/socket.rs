//! One connection of the host, as it was at each look.

use super::moment::{LimitTimes, Moment};
use super::{FORGET, KeptLooks};
use fullpipe_flow::account::{AccountPart, LiveAccount, silence, waits_for_answer};
use fullpipe_flow::limit::{Limit, PathHint, Verdict, from_receiver, from_samples};
use fullpipe_kernel::socket::sock_diag::HostSocket;
use fullpipe_model::limit::End;
use fullpipe_model::observe::Process;
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration, Instant, Rate};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// A connection that moved data this long ago, and not since, may be in a pause between two bursts.
const LATELY: Duration = Duration::from_secs(2);
/// What identifies a connection: its cookie is never used again while the machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketKey {
    /// The inode of its network namespace.
    pub namespace: u64,
    /// The kernel's number of the socket.
    pub cookie: u64,
}

/// A connection that is watched.
#[derive(Debug, Clone)]
pub struct WatchedSocket {
    /// What identifies it.
    pub key: SocketKey,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The label of its network namespace.
    pub namespace: Arc<str>,
    /// The process that has it open, where that may be known.
    pub process: Option<Arc<Process>>,
    /// The inode of its file; `None` once it is closed.
    pub inode: Option<u64>,
    /// The user who opened it.
    pub uid: u32,
    /// The number of its control group.
    pub cgroup: Option<u64>,
    moved: Moved,
    seen: u64,
    active: Option<Box<Active>>,
}

/// Counters of what a connection moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Moved {
    sent: Bytes,
    received: Bytes,
}

/// What is kept of a connection that moves data.
#[derive(Debug, Clone)]
struct Active {
    recent: Vec<Sample>,
    moments: VecDeque<Moment>,
    times: LimitTimes,
    account: LiveAccount,
    /// What moved since it was first seen.
    sent: Bytes,
    received: Bytes,
    retransmissions: u64,
    last_moved: Instant,
    last: LastLook,
}

/// What a connection did between the last two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastLook {
    /// The time that it lost, by its account.
    pub lost: Duration,
    /// What was sent and acknowledged.
    pub sent: Bytes,
    /// What was received.
    pub received: Bytes,
    /// Segments that it sent again.
    pub again: u32,
}

impl Moved {
    fn of(info: Option<&TcpInfo>) -> Moved {
        Moved {
            sent: info.and_then(|info| info.bytes_acked).unwrap_or(Bytes::ZERO),
            received: info.and_then(|info| info.bytes_received).unwrap_or(Bytes::ZERO),
        }
    }
}

impl WatchedSocket {
    pub(super) fn new(
        key: SocketKey,
        namespace: Arc<str>,
        socket: HostSocket,
        look: u64,
        kept: KeptLooks,
    ) -> WatchedSocket {
        let HostSocket { sample, inode, uid, cgroup, .. } = socket;
        let mut new = WatchedSocket {
            key,
            local: sample.local,
            remote: sample.remote,
            namespace,
            process: None,
            inode,
            uid,
            cgroup,
            moved: Moved::of(sample.info.as_ref()),
            seen: look,
            active: None,
        };
        if waits(&sample) || has_just_moved(&sample) {
            new.push(sample, Moved::default(), kept);
        }
        new
    }

    /// A connection as it would have been watched, by the samples that were kept of it, in order of
    /// time. Nothing of it is forgotten; `None` without samples.
    pub(crate) fn of_samples(
        key: SocketKey,
        namespace: &str,
        process: Option<Process>,
        uid: u32,
        samples: &[Sample],
    ) -> Option<WatchedSocket> {
        let kept = KeptLooks { moments: samples.len().max(1), ..KeptLooks::HISTORY };
        let mut looks = samples.iter().map(|sample| {
            let (sample, cookie) = (sample.clone(), key.cookie);
            HostSocket { sample, cookie, inode: None, uid, cgroup: None }
        });
        let mut socket = WatchedSocket::new(key, namespace.into(), looks.next()?, 0, kept);
        looks.for_each(|look| socket.note(look, 0, kept));
        socket.process = process.map(Arc::new);
        Some(socket)
    }

    /// Takes the sample of another look.
    pub(super) fn note(&mut self, socket: HostSocket, look: u64, kept: KeptLooks) {
        let HostSocket { sample, inode, cgroup, .. } = socket;
        (self.seen, self.inode, self.cgroup) = (look, inode, cgroup);
        let before = std::mem::replace(&mut self.moved, Moved::of(sample.info.as_ref()));
        let sent = self.moved.sent.saturating_sub(before.sent);
        let received = self.moved.received.saturating_sub(before.received);
        let has_moved = sent > Bytes::ZERO || received > Bytes::ZERO;
        if self.active.is_some() || has_moved || waits(&sample) {
            self.push(sample, Moved { sent, received }, kept);
        }
    }

    fn push(&mut self, sample: Sample, moved: Moved, kept: KeptLooks) {
        let Moved { sent, received } = moved;
        let active = self.active.get_or_insert_with(|| Box::new(Active::new(&sample)));
        active.sent = active.sent.saturating_add(sent);
        active.received = active.received.saturating_add(received);
        if sent > Bytes::ZERO || received > Bytes::ZERO || waits(&sample) {
            active.last_moved = sample.at;
        }
        active.push(sample, moved, kept);
    }

    pub(super) fn forget_if_idle(&mut self, now: Instant, after: Duration) {
        if self.active.as_ref().is_some_and(|active| now.since(active.last_moved) > after) {
            self.active = None;
        }
    }

    pub(super) fn is_of(&self, look: u64) -> bool {
        self.seen == look
    }

    /// Whether it moved data, had some waiting or waited for an answer in the last minute.
    pub fn is_busy(&self) -> bool {
        self.active.is_some()
    }

    /// Whether its process is wanted and not known yet.
    pub(super) fn lacks_process(&self) -> bool {
        self.is_busy() && self.process.is_none() && self.inode.is_some()
    }

    /// The role of this end: the sender if it sent more than it received.
    pub fn role(&self) -> End {
        self.active.as_ref().map_or(End::Sender, |active| active.role())
    }

    /// What moved in the last moment, in the direction of [`WatchedSocket::role`].
    pub fn rate(&self) -> Rate {
        self.moments().next_back().map_or(Rate::ZERO, |moment| moment.rate)
    }

    /// The limit of the last moment.
    pub fn limit(&self) -> Option<Limit> {
        self.moments().next_back()?.shares.first().map(|candidate| candidate.limit)
    }

    /// The moments since it became busy, in order of time: at most those of two minutes at one a
    /// second.
    pub fn moments(&self) -> impl DoubleEndedIterator<Item = &Moment> + ExactSizeIterator {
        const NONE: &VecDeque<Moment> = &VecDeque::new();
        self.active.as_ref().map_or(NONE, |active| &active.moments).iter()
    }

    /// Time by limit since it became busy.
    pub fn times(&self) -> LimitTimes {
        self.active.as_ref().map(|active| active.times).unwrap_or_default()
    }

    /// Where the time went since it became busy, the longest part first. Each only grows.
    pub fn account(&self) -> Vec<AccountPart> {
        self.active.as_ref().map_or_else(Vec::new, |active| active.account.parts())
    }

    /// The time lost to a limit since it became busy.
    pub fn lost(&self) -> Duration {
        self.times().lost()
    }

    /// What was acknowledged, and what was received, since it became busy.
    pub fn moved(&self) -> (Bytes, Bytes) {
        self.active.as_ref().map_or((Bytes::ZERO, Bytes::ZERO), |a| (a.sent, a.received))
    }

    /// Segments that it sent again since it became busy.
    pub fn retransmissions(&self) -> u64 {
        self.active.as_ref().map_or(0, |active| active.retransmissions)
    }

    /// What it did between the last two looks; nothing where it is idle.
    pub fn last_look(&self) -> LastLook {
        self.active.as_ref().map_or(LastLook::default(), |active| active.last)
    }

    /// The samples of the last two looks, as far as there are so many.
    pub fn last_samples(&self) -> &[Sample] {
        let recent = self.active.as_ref().map_or(&[][..], |active| &active.recent);
        &recent[recent.len().saturating_sub(2)..]
    }

    /// The last sample.
    pub fn sample(&self) -> Option<&Sample> {
        self.active.as_ref()?.recent.last()
    }
}

/// Whether data waits in a socket, or its client for an answer.
fn waits(sample: &Sample) -> bool {
    let is_asked = waits_for_answer(sample).is_some_and(|time| time < FORGET);
    sample.wqueue > Bytes::ZERO || sample.rqueue > Bytes::ZERO || is_asked
}

/// Whether data came or went a moment before the sample. A transfer that goes in bursts is seen in
/// a pause, too.
fn has_just_moved(sample: &Sample) -> bool {
    sample.info.as_ref().is_some_and(|info| silence(info) < LATELY)
}

impl Active {
    fn new(first: &Sample) -> Active {
        Active {
            recent: Vec::new(),
            moments: VecDeque::new(),
            times: LimitTimes::default(),
            account: LiveAccount::new((first.local, first.remote)),
            sent: Bytes::ZERO,
            received: Bytes::ZERO,
            retransmissions: 0,
            last_moved: first.at,
            last: LastLook::default(),
        }
    }

    fn role(&self) -> End {
        let waits = self.recent.last().is_some_and(|sample| sample.wqueue > Bytes::ZERO);
        if self.sent > self.received || (self.sent == self.received && waits) {
            End::Sender
        } else {
            End::Receiver
        }
    }

    fn push(&mut self, sample: Sample, Moved { sent, received }: Moved, kept: KeptLooks) {
        let lost_before = self.account.lost();
        self.last = LastLook::default();
        while self.recent.len() >= kept.samples {
            self.recent.remove(0);
        }
        self.recent.reserve_exact(1);
        self.recent.push(sample);
        let [.., before, now] = self.recent.as_slice() else { return };
        let [earlier, later] =
            [before, now].map(|sample| sample.info.as_ref().map_or(0, |info| info.total_retrans));
        self.retransmissions += u64::from(later.wrapping_sub(earlier));
        let length = now.at.since(before.at);
        let role = self.role();
        let moved = if role == End::Sender { sent } else { received };
        let shares = self.verdict().intervals.pop().map(|last| last.candidates);
        let shares = shares.unwrap_or_default();
        self.account.note(before, now, role, &shares);
        let lost = self.account.lost().saturating_sub(lost_before);
        self.last = LastLook { lost, sent, received, again: later.wrapping_sub(earlier) };
        let moment =
            Moment { at: now.at, length, rate: moved.per(length).unwrap_or(Rate::ZERO), shares };
        self.times.add(&moment);
        while self.moments.len() >= kept.moments {
            self.moments.pop_front();
        }
        self.moments.push_back(moment);
    }

    fn verdict(&self) -> Verdict {
        let hint = PathHint::default();
        match self.role() {
            End::Sender => from_samples(&self.recent, &[], Duration::ZERO, hint),
            End::Receiver => from_receiver(&self.recent, Duration::ZERO, hint),
        }
    }
}
