//! A condition on the connections of this host that ends a recording soon after it held: "it is
//! slow now and then" is recorded when it happens.
//!
//! `goodput < 10mbit`, `rtt > 200ms`, `retransmitted > 1%`. A connection counts that moves data or
//! has some waiting: an idle one moves nothing, and nobody waits for it. The condition must hold
//! for three looks in a row, as one look may fall into a pause.

use crate::watch::{Namespaces, SocketKey, Watch, WatchedSocket};
use fullpipe_kernel::Refused;
use fullpipe_kernel::host::clock;
use fullpipe_kernel::network::packet_filter::PacketFilter;
use fullpipe_model::observe::TcpInfo;
use fullpipe_model::units::{Bytes, Duration, Instant, ParseError, Probability, Rate, column};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// The time between two looks.
const STEP: Duration = Duration::from_secs(1);
/// For how many looks in a row a condition must hold.
const LOOKS: u32 = 3;

/// A quantity, and a bound that it crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    bound: Bound,
    is_above: bool,
}

/// A quantity of a connection with a value of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// What it moves in the direction that moves more, without what is sent again.
    Goodput(Rate),
    /// Its smoothed round trip.
    Rtt(Duration),
    /// What part of the segments that this host sends is sent again.
    Retransmitted(Probability),
}

/// Conditions as they can be typed.
const EXAMPLES: &str = "e.g. 'goodput < 10mbit', 'rtt > 200ms', 'retransmitted > 1%'";

/// A condition that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerError {
    /// Nothing is compared.
    #[error("'{0}' compares nothing by < or >; {EXAMPLES}")]
    NoComparison(String),
    /// No such quantity.
    #[error("'{0}' is none of goodput, rtt and retransmitted; {EXAMPLES}")]
    NoQuantity(String),
    /// The value is none of that quantity.
    #[error("{0}; {EXAMPLES}")]
    Value(ParseError),
}

impl FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Trigger, TriggerError> {
        let Some(at) = text.find(['<', '>']) else {
            return Err(TriggerError::NoComparison(text.into()));
        };
        let (name, value) = (text[..at].trim(), text[at + 1..].trim());
        let bound = match name {
            "goodput" => value.parse().map(Bound::Goodput),
            "rtt" => value.parse().map(Bound::Rtt),
            "retransmitted" => value.parse().map(Bound::Retransmitted),
            _ => return Err(TriggerError::NoQuantity(name.into())),
        };
        let bound = bound.map_err(TriggerError::Value)?;
        Ok(Trigger { bound, is_above: text[at..].starts_with('>') })
    }
}

/// As it can be typed.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_above { '>' } else { '<' };
        let name = match self.bound {
            Bound::Goodput(_) => "goodput",
            Bound::Rtt(_) => "rtt",
            Bound::Retransmitted(_) => "retransmitted",
        };
        let value = match self.bound {
            Bound::Goodput(rate) => rate.to_exact(),
            Bound::Rtt(time) => time.to_exact(),
            Bound::Retransmitted(part) => part.to_exact(),
        };
        write!(f, "{name} {sign} {value}")
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Goodput(rate) => rate.fmt(f),
            Bound::Rtt(time) => time.fmt(f),
            Bound::Retransmitted(part) => part.fmt(f),
        }
    }
}

/// Where a condition held.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Triggered {
    /// The condition, as it can be typed.
    pub condition: String,
    /// The connection's own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// What it did by the last look.
    #[serde(flatten)]
    step: LookStep,
    /// Its quantity by then, in words.
    #[serde(skip)]
    pub value: String,
}

/// What a connection did between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct LookStep {
    #[serde(rename = "goodput_bps", with = "column::rate")]
    goodput: Rate,
    #[serde(rename = "rtt_us", with = "column::micros_optional")]
    rtt: Option<Duration>,
    #[serde(rename = "retransmitted_part")]
    retransmitted: Option<f64>,
}

impl Trigger {
    /// What the quantity was, where it crossed the bound.
    fn crossed(&self, step: &LookStep) -> Option<Bound> {
        let (value, order) = match self.bound {
            Bound::Goodput(bound) => (Bound::Goodput(step.goodput), step.goodput.cmp(&bound)),
            Bound::Rtt(bound) => (Bound::Rtt(step.rtt?), step.rtt?.cmp(&bound)),
            Bound::Retransmitted(bound) => {
                let part = Probability::new(step.retransmitted?.min(1.0))?;
                (Bound::Retransmitted(part), part.cmp(&bound))
            }
        };
        let is_crossed = if self.is_above { order.is_gt() } else { order.is_lt() };
        is_crossed.then_some(value)
    }
}

/// Counters at the last look, and for how many looks each condition has held.
#[derive(Debug, Clone)]
struct HeldLooks {
    segments: Option<(u32, u32)>,
    looks: Vec<u32>,
}

/// Looks whether one of several conditions holds for a connection.
pub struct TriggerWatch {
    watch: Watch,
    triggers: Vec<Trigger>,
    filter: PacketFilter,
    held: HashMap<SocketKey, HeldLooks>,
    due: Instant,
}

impl TriggerWatch {
    /// Watches the connections of the caller's network namespace whose packets `filter` takes.
    ///
    /// # Errors
    /// This kernel has no `sock_diag`.
    pub fn open(triggers: Vec<Trigger>, filter: PacketFilter) -> Result<TriggerWatch, Refused> {
        let watch = Watch::open(Namespaces::Own)?;
        Ok(TriggerWatch { watch, triggers, filter, held: HashMap::new(), due: clock::now() })
    }

    /// Takes a look if one is due; returns the connection that a condition has held for, if there
    /// is one.
    ///
    /// # Errors
    /// The kernel refuses to list its connections.
    pub fn look(&mut self) -> Result<Option<Triggered>, Refused> {
        let now = clock::now();
        if now < self.due {
            return Ok(None);
        }
        self.due = now + STEP;
        self.watch.look()?;
        let mut found = None;
        let mut held = HashMap::new();
        for socket in self.watch.busy() {
            if !self.filter.takes([socket.local, socket.remote]) {
                continue;
            }
            let before = self.held.remove(&socket.key);
            let (state, triggered) = step(&self.triggers, socket, before);
            found = found.or(triggered);
            held.insert(socket.key, state);
        }
        self.held = held;
        Ok(found)
    }

    /// How long nothing is due.
    pub fn idle(&self) -> Duration {
        self.due.since(clock::now())
    }
}

/// What a connection's look adds to what was before.
fn step(
    triggers: &[Trigger],
    socket: &WatchedSocket,
    before: Option<HeldLooks>,
) -> (HeldLooks, Option<Triggered>) {
    let sample = socket.sample();
    let info = sample.and_then(|sample| sample.info.as_ref());
    let segments = info.and_then(|info| Some((info.data_segs_out?, info.total_retrans)));
    let mut looks = before.as_ref().map_or(vec![0; triggers.len()], |held| held.looks.clone());
    let goodput = socket.rate();
    let waits = sample.is_some_and(|sample| sample.wqueue > Bytes::ZERO);
    let is_wanted = before.is_some() && (goodput > Rate::ZERO || waits);
    let retransmitted = sent_again(before.and_then(|held| held.segments), segments);
    let step = LookStep { goodput, rtt: info.and_then(smoothed), retransmitted };
    let mut found = None;
    for (trigger, count) in triggers.iter().zip(&mut looks) {
        let crossed = trigger.crossed(&step).filter(|_| is_wanted);
        *count = if crossed.is_some() { *count + 1 } else { 0 };
        if let Some(value) = crossed.filter(|_| *count >= LOOKS) {
            let (local, remote) = (socket.local, socket.remote);
            let (condition, value) = (trigger.to_string(), value.to_string());
            found.get_or_insert(Triggered { condition, local, remote, step, value });
        }
    }
    (HeldLooks { segments, looks }, found)
}

/// A round trip that was measured.
fn smoothed(info: &TcpInfo) -> Option<Duration> {
    (info.rtt > Duration::ZERO).then_some(info.rtt)
}

/// What part of the segments since the last look was sent again; `None` where none was sent.
fn sent_again(before: Option<(u32, u32)>, now: Option<(u32, u32)>) -> Option<f64> {
    let ((sent, again), (sent_now, again_now)) = before.zip(now)?;
    let sent = f64::from(sent_now.wrapping_sub(sent));
    let again = f64::from(again_now.wrapping_sub(again));
    (sent > 0.0).then(|| again / sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_kernel::network::packet_filter::Keep;
    use proptest::prelude::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_can_be_typed_is_read_and_shown() {
        for text in ["goodput < 10Mbit", "rtt > 200ms", "retransmitted > 1%", "goodput > 1Gbit"] {
            let trigger: Trigger = text.parse().unwrap();
            assert_eq!(trigger.to_string().parse::<Trigger>().unwrap(), trigger, "{text}");
        }
        assert_eq!("rtt>200ms".parse::<Trigger>(), "  rtt  >  0.2s ".parse());
        for (text, told) in [
            ("", "compares nothing"),
            ("goodput", "compares nothing"),
            ("speed < 1mbit", "'speed' is none of"),
            ("rtt > 10mbit", "10mbit"),
            ("goodput < ", "rate"),
            ("retransmitted > 1", "1"),
        ] {
            let error = text.parse::<Trigger>().unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("e.g."), "{text}: {error}");
        }
    }

    #[test]
    fn a_bound_is_crossed_on_its_side_only() {
        let step = LookStep {
            goodput: Rate::from_bits_per_sec(5_000_000),
            rtt: Some(Duration::from_millis(80)),
            retransmitted: Some(0.02),
        };
        for (text, value) in [
            ("goodput < 10mbit", Some("5 Mbit/s")),
            ("goodput > 10mbit", None),
            ("goodput < 5mbit", None),
            ("rtt > 79ms", Some("80 ms")),
            ("rtt < 80ms", None),
            ("retransmitted > 1%", Some("2%")),
            ("retransmitted > 2%", None),
        ] {
            let crossed = text.parse::<Trigger>().unwrap().crossed(&step);
            assert_eq!(crossed.map(|bound| bound.to_string()).as_deref(), value, "{text}");
        }
        let unknown = LookStep { rtt: None, retransmitted: None, ..step };
        assert!("rtt > 0s".parse::<Trigger>().unwrap().crossed(&unknown).is_none());
        assert_eq!(sent_again(Some((u32::MAX, 0)), Some((9, 1))), Some(0.1));
        assert_eq!(sent_again(Some((7, 0)), Some((7, 1))), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(goodput|rtt|retransmitted|<|>|=| |[0-9]{1,12}|mbit|ms|%|\\PC){0,8}") {
            if let Ok(trigger) = text.parse::<Trigger>() {
                prop_assert_eq!(trigger.to_string().parse::<Trigger>().unwrap(), trigger);
            }
        }
    }

    /// A transfer that its reader slows down is found; one that nobody wants is not.
    #[test]
    fn a_slow_connection_is_found_and_an_idle_one_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let trigger = "goodput < 1mbit".parse().unwrap();
        let filter = PacketFilter::tcp_between(&[], &[port], Keep::Headers).unwrap();
        let mut watch = TriggerWatch::open(vec![trigger], filter).unwrap();
        let mut slow = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut sender, _) = listener.accept().unwrap();
        let _idle = TcpStream::connect(("127.0.0.1", port)).unwrap();
        sender.set_nonblocking(true).unwrap();
        let mut found = None;
        let limit = clock::now() + Duration::from_secs(30);
        while found.is_none() {
            assert!(clock::now() < limit, "it was not found");
            // More than the buffers take, read a byte at a time.
            while sender.write(&[0; 4096]).is_ok() {}
            slow.read_exact(&mut [0]).unwrap();
            found = watch.look().unwrap();
            std::thread::park_timeout(watch.idle().into());
        }
        let found = found.unwrap();
        assert_eq!(found.condition.parse::<Trigger>().unwrap(), trigger);
        let ends = [found.local, found.remote];
        assert!(ends.contains(&slow.local_addr().unwrap()), "{found:?}");
    }
}
