//! The gateway's datagrams: each pair of addresses is a flow with its own socket outside
//! ([`super::gateway`]).
//!
//! A flow lives as long as datagrams pass in either direction. There are at most
//! [`super::bounds::Bounds::flows`] of them; a new one replaces the one that has been silent for
//! longest. If the far side answers with an error (nobody listens on that port), the command gets
//! the ICMP message that a router would have sent, so that a connected socket sees ECONNREFUSED.
//! Datagrams that could not be passed on are counted.

use super::bounds::GatewayCounters;
use super::destinations::{Destinations, PAUSE, spawn};
use super::unreachable::{Reporter, Unreachable};
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::run::outside::{self, Outside};
use fullpipe_kernel::{Refused, host::clock, socket::transparent};
use fullpipe_model::units::{Duration, Instant};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A flow without a datagram in either direction for this long is forgotten, as in RFC 4787,
/// section 4.3 (at least two minutes).
const FLOW_IDLE: Duration = Duration::from_secs(120);

/// Sender and destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct DatagramEnds {
    sender: SocketAddr,
    meant: SocketAddr,
}

/// Datagrams between one pair of addresses.
#[derive(Debug)]
struct Flow {
    far: UdpSocket,
    /// When the last datagram passed in either direction, in nanoseconds.
    last: AtomicU64,
    ended: AtomicBool,
}

impl Flow {
    fn touch(&self) {
        self.last.store(clock::now().as_nanos(), Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        Instant::from_nanos(self.last.load(Ordering::Relaxed))
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Ends it; its thread wakes up and exits.
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        outside::end_datagrams(&self.far);
    }
}

/// The gateway's end of all flows of a family.
pub(super) struct Passing {
    /// The socket on which the command's datagrams arrive.
    pub near: UdpSocket,
    pub ns: Arc<NetNs>,
    pub outside: Arc<Outside>,
    pub destinations: Destinations,
    pub counters: Arc<GatewayCounters>,
    pub reporter: Arc<Reporter>,
    /// The most flows at once.
    pub flows_max: usize,
}

impl Passing {
    /// Passes datagrams on as long as the process lives.
    pub(super) fn run(&self) {
        let mut flows: HashMap<DatagramEnds, Arc<Flow>> = HashMap::new();
        let mut buffer = vec![0; 65_536];
        loop {
            let Ok((length, sender, meant)) = transparent::receive(&self.near, &mut buffer) else {
                std::thread::park_timeout(PAUSE);
                continue;
            };
            let ends = DatagramEnds { sender, meant };
            if flows.get(&ends).is_none_or(|flow| flow.has_ended()) {
                flows.retain(|_, flow| !flow.has_ended());
                while flows.len() >= self.flows_max {
                    self.evict_one(&mut flows);
                }
                let mut opened = self.open(ends);
                if opened.as_ref().is_err_and(|refused| !is_unreachable(refused))
                    && !flows.is_empty()
                {
                    // Descriptors or threads ran out before the maximum; a silent flow can free
                    // some.
                    self.evict_one(&mut flows);
                    opened = self.open(ends);
                }
                match opened {
                    Ok(flow) => drop(flows.insert(ends, flow)),
                    Err(refused) => {
                        self.counters.drop_datagram();
                        self.report(ends, refused.errno());
                        continue;
                    }
                }
            }
            if let Some(flow) = flows.get(&ends) {
                flow.touch();
                self.send(flow, ends, &buffer[..length]);
            }
        }
    }

    fn evict_one(&self, flows: &mut HashMap<DatagramEnds, Arc<Flow>>) {
        let silent = longest_silent(flows.iter().map(|(&ends, flow)| (ends, flow.last())));
        if let Some(flow) = silent.and_then(|ends| flows.remove(&ends)) {
            flow.end();
            self.counters.evict_flow();
        }
    }

    fn send(&self, flow: &Flow, ends: DatagramEnds, datagram: &[u8]) {
        // A socket may report the error of an earlier datagram instead of taking this one.
        let mut sent = flow.far.send(datagram);
        if let Err(error) = &sent
            && self.report(ends, error.raw_os_error())
        {
            sent = flow.far.send(datagram);
        }
        if sent.is_err() {
            self.counters.drop_datagram();
        }
    }

    /// Reports `errno` to the command's kernel if it is about the way to the other side; returns
    /// whether it is.
    fn report(&self, ends: DatagramEnds, errno: Option<i32>) -> bool {
        let Some(unreachable) = errno.and_then(Unreachable::from_errno) else { return false };
        self.reporter.report(unreachable, ends.sender, ends.meant);
        true
    }

    fn open(&self, ends: DatagramEnds) -> Result<Arc<Flow>, Refused> {
        let far = self.outside.udp(self.destinations.target(ends.meant))?;
        let answers = transparent::reply_socket(&self.ns, ends.meant)?;
        let flow = Arc::new(Flow { far, last: AtomicU64::default(), ended: AtomicBool::default() });
        flow.touch();
        let answering = Answering {
            flow: Arc::clone(&flow),
            answers,
            ends,
            counters: Arc::clone(&self.counters),
            reporter: Arc::clone(&self.reporter),
        };
        spawn("gateway-udp", move || answering.run())?;
        Ok(flow)
    }
}

/// The return direction of a flow.
struct Answering {
    flow: Arc<Flow>,
    answers: UdpSocket,
    ends: DatagramEnds,
    counters: Arc<GatewayCounters>,
    reporter: Arc<Reporter>,
}

impl Answering {
    fn run(&self) {
        let mut buffer = vec![0; 65_536];
        while let Some(left) = time_left(self.flow.last(), clock::now())
            && self.flow.far.set_read_timeout(Some(left.into())).is_ok()
        {
            let received = self.flow.far.recv(&mut buffer);
            if self.flow.has_ended() {
                return;
            }
            match received {
                Ok(length) => {
                    self.flow.touch();
                    if self.answers.send_to(&buffer[..length], self.ends.sender).is_err() {
                        self.counters.drop_datagram();
                    }
                }
                Err(error) if is_wait(&error) => {}
                Err(error) => match error.raw_os_error().and_then(Unreachable::from_errno) {
                    Some(unreachable) => {
                        self.reporter.report(unreachable, self.ends.sender, self.ends.meant)
                    }
                    None => break,
                },
            }
        }
        self.flow.ended.store(true, Ordering::Relaxed);
    }
}

fn is_unreachable(refused: &Refused) -> bool {
    refused.errno().and_then(Unreachable::from_errno).is_some()
}

fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// How much longer a flow with its last datagram at `last` may stay silent; `None`: it is
/// forgotten.
fn time_left(last: Instant, now: Instant) -> Option<Duration> {
    let left = FLOW_IDLE.saturating_sub(now.since(last));
    (left > Duration::ZERO).then_some(left)
}

/// The flow that has been silent for longest.
fn longest_silent<K>(flows: impl Iterator<Item = (K, Instant)>) -> Option<K> {
    flows.min_by_key(|&(_, last)| last).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_silent_makes_room() {
        let at = Instant::from_nanos;
        let flows = [("one", at(30)), ("two", at(10)), ("three", at(20))];
        assert_eq!(longest_silent(flows.into_iter()), Some("two"));
    }

    #[test]
    fn a_flow_is_forgotten_two_minutes_after_its_last_datagram_whichever_way_that_went() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        assert_eq!(time_left(at(5), at(5)), Some(FLOW_IDLE));
        assert_eq!(time_left(at(5), at(124)), Some(Duration::from_secs(1)));
        assert_eq!(time_left(at(5), at(125)), None);
    }
}
