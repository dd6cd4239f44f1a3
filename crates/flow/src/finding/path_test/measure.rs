//! From what both hosts saw to the measured path.

use super::{
    Loss, MachineLimit, Measured, MeasuredConnection, OwnLimit, PathTestRun, Seen, TestConnection,
    seconds,
};
use crate::diagnosis::live::{Acts, Answer, HostFacts, Observed};
use crate::diagnosis::{Diagnosis, Sockets};
use crate::limit::{Limit, PathHint};
use fullpipe_model::law::rfc6349::average_rtt;
use fullpipe_model::limit::{Cause, End};
use fullpipe_model::observe::SocketOptions;
use fullpipe_model::observe::TcpInfo;
use fullpipe_model::units::{Bytes, Duration, Rate};

/// From this share of a core on, a thread was as fast as it could be.
const BUSY_CORE: f64 = 0.9;
/// The least probability that the trained judge must give to a policer: with this the generated
/// paths of `docs/src/test.md` were judged. The sub-cause asks for 0.8.
const POLICED: f64 = 0.75;
/// The step of TCP's timestamps in Linux (`TCP_TS_HZ`).
const MILLISECOND: Duration = Duration::from_millis(1);
/// The least length of an interval of the verdict.
const INTERVAL: Duration = Duration::from_millis(40);
/// The path was full where it was the limit for this share of the time.
const PATH_LEAST: f64 = 0.5;

impl PathTestRun<'_> {
    /// The path as this run measured it. `None` if nothing arrived.
    pub fn measure(&self) -> Option<Measured> {
        let received = self.sum(|one| one.received);
        let time = self.connections.iter().map(|one| one.time).max()?;
        let goodput = received.per(time).filter(|rate| *rate > Rate::ZERO)?;
        let most = self.connections.iter().max_by_key(|one| one.received)?;
        let answer = self.answer(most);
        let machine = self.machine(answer.as_ref());
        let base_rtt = self.base_rtt();
        let (loaded_rtt, longest_rtt) = self.loaded_rtt();
        let last = most.sender.samples.iter().rev().find_map(|sample| sample.info.as_ref());
        let [mtu, mss] = [last.map(|info| info.pmtu), last.map(|info| info.snd_mss)]
            .map(|size| size.filter(|bytes| *bytes > Bytes::ZERO));
        let steady = self.steady().unwrap_or(goodput);
        let is_full = machine.is_none() && answer.as_ref().is_some_and(fills_path);
        let windows = most.sender.samples.iter().filter_map(|sample| sample.info.as_ref()?.snd_wnd);
        Some(Measured {
            role: self.role,
            received,
            time,
            goodput,
            steady,
            bottleneck: is_full.then(|| on_the_link(steady, mtu, mss)),
            base_rtt,
            loaded_rtt,
            longest_rtt,
            queue: loaded_rtt.zip(base_rtt).map(|(loaded, base)| loaded.saturating_sub(base)),
            mtu,
            mss,
            congestion_control: most
                .sender
                .samples
                .iter()
                .find_map(|sample| sample.congestion_control.clone()),
            window: windows.max(),
            loss: Loss::of(self.connections.iter().filter_map(|one| ends(&one.sender))),
            policer: policed(most).then_some(steady),
            machine,
            answer,
            connections: self.connections.iter().map(|one| self.connection(one)).collect(),
        })
    }

    fn sum(&self, of: impl Fn(&TestConnection) -> Bytes) -> Bytes {
        self.connections.iter().map(of).fold(Bytes::ZERO, Bytes::saturating_add)
    }

    fn steady(&self) -> Option<Rate> {
        let receivers: Vec<_> =
            self.connections.iter().map(|one| &one.receiver.samples[..]).collect();
        let senders: Vec<_> = self.connections.iter().map(|one| &one.sender.samples[..]).collect();
        seconds::second_half_rate(&receivers, |info| info.bytes_received)
            .or_else(|| seconds::second_half_rate(&senders, |info| info.bytes_acked))
    }

    /// What limited a connection, by both ends' samples, with what the receiver's host knows of it.
    fn answer(&self, one: &TestConnection) -> Option<Answer> {
        let mut answer = self.answer_of(one, End::Sender)?;
        if let Some(receiver) = self.answer_of(one, End::Receiver) {
            let known: Vec<&str> =
                answer.causes.iter().map(|cause| cause.sub_cause.name()).collect();
            let new = receiver
                .causes
                .into_iter()
                .filter(|cause| !known.contains(&cause.sub_cause.name()));
            let new: Vec<_> = new.collect();
            answer.causes.extend(new);
        }
        // The answer speaks for the sender's host; this may be the other one.
        answer.acts = match (answer.acts, self.role) {
            (Acts::Here, End::Receiver) => Acts::Peer,
            (Acts::Peer, End::Receiver) => Acts::Here,
            (acts, _) => acts,
        };
        Some(answer)
    }

    /// What limited a connection, as the host of one of its ends sees it.
    fn answer_of(&self, one: &TestConnection, role: End) -> Option<Answer> {
        let (sender, receiver) = (&one.sender.samples, &one.receiver.samples);
        let (samples, other, settings) = match role {
            End::Sender => (sender, receiver, self.sender_settings),
            End::Receiver => (receiver, sender, self.receiver_settings),
        };
        let (asked, host) = (Some(asked()), HostFacts::default());
        Observed { role, samples, other, asked, settings: Some(settings), host }.answer()
    }

    /// Whether a machine was the limit: a thread that moves data had no more time, or a socket
    /// waited for this program.
    fn machine(&self, answer: Option<&Answer>) -> Option<MachineLimit> {
        let busiest =
            |of: fn(&TestConnection) -> f64| self.connections.iter().map(of).fold(0.0, f64::max);
        let (sender, receiver) = (busiest(|one| one.sender.cpu), busiest(|one| one.receiver.cpu));
        let waited = answer.and_then(|answer| match answer.limit {
            Limit::SenderApplication => Some((End::Sender, sender, OwnLimit::DidNotWrite)),
            Limit::ReceiverApplication => Some((End::Receiver, receiver, OwnLimit::DidNotRead)),
            _ => None,
        });
        if let Some((end, cpu, by)) = waited {
            return Some(MachineLimit { end, cpu, by });
        }
        let (end, cpu) =
            if sender >= receiver { (End::Sender, sender) } else { (End::Receiver, receiver) };
        let by = OwnLimit::BusyThread;
        (cpu >= BUSY_CORE).then_some(MachineLimit { end, cpu, by })
    }

    fn base_rtt(&self) -> Option<Duration> {
        let samples = self.connections.iter().flat_map(|one| &one.sender.samples);
        let least = samples.filter_map(|sample| sample.info.as_ref()?.min_rtt);
        let all = least.chain(self.idle_rtt).filter(|rtt| *rtt > Duration::ZERO);
        let least = all.clone().min()?;
        // Where an ACK may be of either transmission, Linux takes the round trip from the echoed
        // timestamp, in whole milliseconds and rounded down (`tcp_ack_update_rtt`), and keeps it
        // as the least: on a lossy path that is up to a millisecond too short.
        let is_whole = least.as_nanos().is_multiple_of(MILLISECOND.as_nanos());
        let exact = all.filter(|rtt| *rtt > least && *rtt < least + MILLISECOND).min();
        exact.filter(|_| is_whole).or(Some(least))
    }

    /// The mean and the longest round trip under load.
    fn loaded_rtt(&self) -> (Option<Duration>, Option<Duration>) {
        let means = self
            .connections
            .iter()
            .filter_map(|one| average_rtt(&seconds::rtts(&one.sender.samples)));
        let samples = self.connections.iter().flat_map(|one| &one.sender.samples);
        let longest = samples.filter_map(|sample| Some(sample.info.as_ref()?.rtt)).max();
        (average_rtt(&means.collect::<Vec<_>>()), longest)
    }

    fn connection(&self, one: &TestConnection) -> MeasuredConnection {
        let verdict = verdict(one);
        let named = verdict.as_ref().map(|diagnosis| diagnosis.limited_by());
        MeasuredConnection {
            received: one.received,
            goodput: one.received.per(one.time).unwrap_or(Rate::ZERO),
            retransmitted_segments: ends(&one.sender).map_or(0, |(first, last)| {
                last.total_retrans.wrapping_sub(first.total_retrans).into()
            }),
            limit: named.map_or(Limit::Unknown, |named| named.limit),
            share: named.map_or(0.0, |named| named.share),
        }
    }
}

/// What this program asks of its sockets: nothing.
fn asked() -> SocketOptions {
    SocketOptions { sets_rcvbuf: Some(false), sets_sndbuf: Some(false), ..SocketOptions::default() }
}

fn verdict(one: &TestConnection) -> Option<Diagnosis> {
    let (sender, receiver) = (&one.sender.samples[..], &one.receiver.samples[..]);
    let sockets = Sockets { sender, receiver, interval: INTERVAL };
    Diagnosis::from_samples(sockets, PathHint::default())
}

fn policed(one: &TestConnection) -> bool {
    verdict(one).is_some_and(|diagnosis| diagnosis.verdict.policer() >= POLICED)
}

/// Whether the path itself was the limit for most of the time: full, or losing what is sent.
fn fills_path(answer: &Answer) -> bool {
    let [link, slow] = [Limit::Link, Limit::CongestionWindow(Cause::SlowStart)].map(|limit| {
        let of_limit = answer.limits.iter().filter(|one| one.limit == limit);
        of_limit.map(|one| one.share).sum::<f64>()
    });
    link >= PATH_LEAST * (1.0 - slow).max(0.0) && link > 0.0
}

/// The rate in IP packets of a link that carries `goodput`.
fn on_the_link(goodput: Rate, mtu: Option<Bytes>, mss: Option<Bytes>) -> Rate {
    let Some((mtu, mss)) = mtu.zip(mss).filter(|(mtu, mss)| mtu > mss) else { return goodput };
    Rate::from_bits_per_sec_f64(goodput.as_f64() * mtu.as_f64() / mss.as_f64())
}

/// The first and the last state of a socket.
fn ends(seen: &Seen) -> Option<(&TcpInfo, &TcpInfo)> {
    let mut infos = seen.samples.iter().filter_map(|sample| sample.info.as_ref());
    let first = infos.next()?;
    Some((first, infos.next_back()?))
}
