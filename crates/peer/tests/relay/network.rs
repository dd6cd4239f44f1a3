//! Carriers in virtual time: a simple TCP over a path.
//!
//! One direction of a carrier takes frames while less than `NOTSENT` waits (as with
//! `TCP_NOTSENT_LOWAT`), sends within its window, at the rate of its own path and of a link that it
//! shares, and delivers in order. A lost packet costs a round trip, during which everything behind
//! it waits, and 30 % of the window (CUBIC, RFC 9438, section 4.6). The window doubles each round
//! trip up to the first loss and grows by a packet a round trip afterwards (RFC 5681). That is far
//! simpler than a kernel, but it has what matters to the relay: a rate that follows from window,
//! round trip and loss, and stalls that hold back what was taken.

use fullpipe_model::units::{Duration, Instant};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;

/// What may wait unsent before a carrier takes no more, bytes.
const NOTSENT: u64 = 32 * 1024;

const PACKET: f64 = 1448.0;

/// A carrier's path.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// Bytes a second.
    pub rate: f64,
    pub rtt: Duration,
    /// Of a packet.
    pub loss: f64,
    /// The receiver's, in bytes.
    pub window: f64,
}

/// A link that carriers share, one direction.
#[derive(Debug, Clone, Copy)]
pub struct SharedLink {
    /// Bytes a second.
    pub rate: f64,
    /// When all that was sent has left.
    busy_until: Instant,
}

impl SharedLink {
    pub fn new(rate: f64) -> Self {
        SharedLink { rate, busy_until: Instant::ZERO }
    }
}

fn time(bytes: f64, rate: f64) -> Duration {
    Duration::from_secs_f64(bytes / rate)
}

/// One direction of a carrier. `T` is what it carries.
pub struct Direction<T> {
    pub path: Path,
    congestion: f64,
    slow_start: bool,
    /// Sent and not acknowledged by the other kernel: when that comes, and how much.
    in_flight: VecDeque<(Instant, f64)>,
    flying: f64,
    unsent: VecDeque<(T, f64)>,
    unsent_bytes: f64,
    busy_until: Instant,
    last_arrival: Instant,
    /// Nothing arrives before this.
    pub outage_until: Instant,
    random: Pcg64Mcg,
}

impl<T> Direction<T> {
    pub fn new(path: Path, seed: u64) -> Self {
        Direction {
            path,
            congestion: 10.0 * PACKET,
            slow_start: true,
            in_flight: VecDeque::new(),
            flying: 0.0,
            unsent: Default::default(),
            unsent_bytes: 0.0,
            busy_until: Instant::ZERO,
            last_arrival: Instant::ZERO,
            outage_until: Instant::ZERO,
            random: Pcg64Mcg::seed_from_u64(seed),
        }
    }

    /// Whether the socket is writable.
    pub fn has_room(&self) -> bool {
        self.unsent_bytes < NOTSENT as f64
    }

    pub fn put(&mut self, item: T, bytes: usize) {
        self.unsent_bytes += bytes as f64;
        self.unsent.push_back((item, bytes as f64));
    }

    /// Takes acknowledgements, sends what the window allows. Returns what will arrive, and when.
    pub fn run(&mut self, now: Instant, link: &mut SharedLink) -> Vec<(Instant, T)> {
        self.acknowledge(now);
        let mut arrivals = Vec::new();
        let window = |this: &Self| this.congestion.min(this.path.window);
        while let Some((_, bytes)) = self.unsent.front() {
            if self.flying > 0.0 && self.flying + bytes > window(self) {
                break;
            }
            let (item, bytes) = self.unsent.pop_front().unwrap();
            self.unsent_bytes -= bytes;
            let own = now.max(self.busy_until) + time(bytes, self.path.rate);
            let shared = now.max(link.busy_until) + time(bytes, link.rate);
            (self.busy_until, link.busy_until) = (own, shared);
            let mut arrival = own.max(shared) + Duration::from_nanos(self.path.rtt.as_nanos() / 2);
            let packets = (bytes / PACKET).ceil();
            if self.chance() > (1.0 - self.path.loss).powf(packets) {
                arrival = arrival + self.path.rtt;
                self.congestion = (self.congestion * 0.7).max(2.0 * PACKET);
                self.slow_start = false;
            }
            arrival = arrival.max(self.outage_until).max(self.last_arrival);
            self.last_arrival = arrival;
            let back = Duration::from_nanos(self.path.rtt.as_nanos() / 2);
            self.in_flight.push_back((arrival + back, bytes));
            self.flying += bytes;
            arrivals.push((arrival, item));
        }
        arrivals
    }

    /// When [`Direction::run`] may do more.
    pub fn next(&self) -> Option<Instant> {
        self.in_flight.front().map(|(at, _)| *at)
    }

    fn acknowledge(&mut self, now: Instant) {
        while let Some((at, bytes)) = self.in_flight.front().copied()
            && at <= now
        {
            self.in_flight.pop_front();
            // What is left of sums and differences is no reason to wait.
            self.flying = if self.in_flight.is_empty() { 0.0 } else { self.flying - bytes };
            self.congestion +=
                if self.slow_start { bytes } else { PACKET * bytes / self.congestion };
            self.congestion = self.congestion.min(self.path.window);
        }
    }

    fn chance(&mut self) -> f64 {
        self.random.next_u64() as f64 / u64::MAX as f64
    }
}
