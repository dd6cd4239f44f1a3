//! For how much of the time what is between two places was busy.
//!
//! There are two kinds of evidence, and the greater one counts. Both are lower bounds. Only waits
//! say that the link held the data: it may be busy at nine tenths of its rate because a program
//! asks for so much.
//!
//! * **Waits.** A packet that waits is behind others; until it has left, what they wait for is
//!   busy. So that is busy from one packet to the next wherever the next one comes before the first
//!   has left. A wait tells a queue from what else delays packets only if it is long, and if those
//!   around it wait, too.
//! * **Service.** A packet that finds another one waiting leaves right behind it: the time between
//!   the two is what the link takes for one packet. If nearly all such times are alike, that is the
//!   link's rate, however short the queue was, and what passed took that rate its time. What delays
//!   packets by chance makes no two such times alike, nor does what passes them on by the batch.
//!
//! It is what one capture has to infer from acknowledgements, and two see.

use super::sorted::ranked;
use fullpipe_model::units::Duration;
use std::collections::VecDeque;

/// Data that passed both places.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentData {
    /// When it passed the first place, in nanoseconds.
    pub at: i64,
    /// How long it took to the second, beyond the fastest.
    pub waited: i64,
    /// Its length on the wire; 0 where the places do not agree, because a capture has merged some.
    pub length: i64,
}

/// Fewer segments of data say nothing of what they waited for.
const LEAST: usize = 20;
/// A packet counts as delayed if so many before it and after it were, too: what delays each packet
/// by itself lets some of them pass.
const AROUND: usize = 16;
/// Hosts delay a packet by up to so much, or by one part in so many of the round trip.
const NOISE: i64 = 200_000;
const NOISE_PART: u64 = 50;

/// Parts of the time, from the first data to the last: 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BusyParts {
    /// In which what they passed was busy.
    pub busy: f64,
    /// In which some waited there.
    pub waited: f64,
}

/// What is known of what they passed. `data` is in the order in which it passed the first place.
pub(super) fn busy_part(
    data: impl Iterator<Item = SentData>,
    round_trip: Duration,
) -> Option<BusyParts> {
    let noise = NOISE.max((round_trip.as_nanos() / NOISE_PART) as i64);
    let (mut waits, mut service) = (Waits::new(noise), Service::default());
    let (mut count, mut first, mut before) = (0, 0, None);
    for one in data {
        count += 1;
        first = if count == 1 { one.at } else { first };
        waits.push(one);
        if let Some(before) = before.replace(one) {
            service.push(before, one);
        }
    }
    let span = before.map_or(0, |last| last.at - first);
    if count < LEAST || span <= 0 {
        return None;
    }
    let [waited, took] =
        [waits.finish(), service.finish()].map(|time| (time as f64 / span as f64).min(1.0));
    Some(BusyParts { busy: took.max(waited), waited })
}

/// What is known by how long packets waited.
struct Waits {
    noise: i64,
    /// The number of the next packet.
    next: usize,
    /// When those came of which it is not known yet who is around, the first first.
    came: VecDeque<i64>,
    /// Those of the packets around that waited less than all after them, with their numbers.
    least: VecDeque<(usize, i64)>,
    covered: i64,
}

impl Waits {
    fn new(noise: i64) -> Self {
        Waits { noise, next: 0, came: VecDeque::new(), least: VecDeque::new(), covered: 0 }
    }

    fn push(&mut self, one: SentData) {
        while self.least.back().is_some_and(|(_, waited)| *waited >= one.waited) {
            self.least.pop_back();
        }
        self.least.push_back((self.next, one.waited));
        self.came.push_back(one.at);
        self.next += 1;
        if self.came.len() > AROUND {
            self.judge();
        }
    }

    /// Judges the time from the first of those that came to the next one.
    fn judge(&mut self) {
        let Some(came) = self.came.pop_front() else { return };
        let number = self.next - 1 - self.came.len();
        while self.least.front().is_some_and(|(at, _)| *at + AROUND < number) {
            self.least.pop_front();
        }
        let waited = self.least.front().map_or(0, |(_, waited)| *waited);
        let until_next = self.came.front().map_or(0, |next| next - came);
        self.covered += until_next.clamp(0, (waited - self.noise).max(0));
    }

    /// Nanoseconds.
    fn finish(mut self) -> i64 {
        while !self.came.is_empty() {
            self.judge();
        }
        self.covered
    }
}

/// What is known by how long the link took for a packet.
#[derive(Default)]
struct Service {
    /// Picoseconds a byte, of packets that found another one waiting; of very many, some.
    each: Vec<i64>,
    /// One of so many is among them, and how many were not since the last one.
    one_of: usize,
    passed_over: usize,
    length: i64,
}

/// Times are kept of so many packets at most.
const MOST_KEPT: usize = 1 << 14;
/// The link's rate is known where, of the times that packets took, the quarters differ by at most
/// this factor.
const ALIKE: f64 = 1.25;

impl Service {
    fn push(&mut self, before: SentData, one: SentData) {
        self.length += one.length;
        let left = before.at + before.waited;
        if one.length == 0 || before.length == 0 || one.at > left {
            return;
        }
        self.passed_over += 1;
        if self.passed_over < self.one_of {
            return;
        }
        self.passed_over = 0;
        let took = (one.at + one.waited - left).clamp(0, i64::MAX / 1000);
        self.each.push(took * 1000 / one.length);
        if self.each.len() == MOST_KEPT {
            let mut number = 0;
            self.each.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.one_of = self.one_of.max(1) * 2;
        }
    }

    /// Nanoseconds; 0 if no rate is known.
    fn finish(mut self) -> i64 {
        let count = self.each.len();
        let [quarter, three] = [1, 3].map(|part| ranked(&mut self.each, count * part / 4));
        let Some((quarter, three)) = quarter.zip(three) else { return 0 };
        let is_known = count >= LEAST && quarter > 0 && three as f64 <= quarter as f64 * ALIKE;
        if is_known { (quarter as f64 * self.length as f64 / 1e3) as i64 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::link::{Config, Event, Link, Words};
    use fullpipe_model::units::{Bytes, Instant};
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;
    const ROUND_TRIP: Duration = Duration::from_millis(40);
    const PACKET: i64 = 1500;

    fn busy(data: &[SentData]) -> Option<f64> {
        busy_part(data.iter().copied(), ROUND_TRIP).map(|parts| parts.busy)
    }

    /// Bursts of `burst` packets, one every `period`, through a link that takes `each` for one; and
    /// the part of the time in which it was busy.
    fn through_link(burst: i64, period: i64, each: i64) -> (Vec<SentData>, f64) {
        let (mut free, mut busy, mut data) = (0_i64, 0, Vec::new());
        for number in 0..2000 {
            let at = number / burst * period;
            let leaves = free.max(at) + each;
            data.push(SentData { at, waited: leaves - at - each, length: PACKET });
            (free, busy) = (leaves, busy + each);
        }
        let last = data[data.len() - 1].at;
        (data, (busy as f64 / last as f64).min(1.0))
    }

    /// What a link of the lab makes of these packets, and the part of the time in which it was busy
    /// by its own counters.
    fn through_lab(
        megabits: u64,
        queue: u64,
        sent: &[i64],
        lost_thousandths: u32,
    ) -> (Vec<SentData>, f64) {
        let loss = format!("{}.{}%", lost_thousandths / 10, lost_thousandths % 10);
        let words =
            format!("rate = '{megabits}mbit'\ndelay = '20ms'\nqueue = '{queue}'\nloss = '{loss}'");
        let words: Words = toml::from_str(&words).unwrap();
        let config: Config = words.config(&mut |path| Err(format!("no {path} here"))).unwrap();
        let mut link: Link<i64> = Link::new(&config, ROUND_TRIP, 1);
        let mut left = Vec::new();
        let mut take = |link: &mut Link<i64>, until: Instant| {
            while let Some(at) = link.poll_at().filter(|at| *at <= until) {
                if let Some(Event::Departure(one)) = link.poll(at) {
                    left.push((one.item, one.at.as_nanos() as i64));
                }
            }
        };
        for at in sent {
            let now = Instant::from_nanos(*at as u64);
            take(&mut link, now);
            let _ = link.push(*at, Bytes::new(PACKET as u64).into(), now);
        }
        take(&mut link, Instant::from_nanos(u64::MAX));
        let least = left.iter().map(|(sent, left)| left - sent).min().unwrap();
        let data: Vec<SentData> = left
            .iter()
            .map(|(at, left)| SentData { at: *at, waited: left - at - least, length: PACKET })
            .collect();
        let took = link.counters().departed_bytes as f64 * 8e3 / megabits as f64;
        let span = data[data.len() - 1].at - data[0].at;
        (data, (took / span as f64).min(1.0))
    }

    proptest! {
        /// It is never more than the link was busy, and of a link that is always behind nearly all.
        #[test]
        fn a_link_was_busy_for_at_least_so_much(
            burst in 1_i64..200,
            period in 1_i64..100,
            load in 0.05_f64..3.0,
        ) {
            let period = period * MS;
            let each = ((period as f64 * load / burst as f64) as i64).max(1);
            let (data, truth) = through_link(burst, period, each);
            let found = busy(&data).unwrap_or(0.0);
            prop_assert!(found <= truth + 0.02, "{found} of {truth}");
            if load > 1.2 && data.len() as i64 / burst >= 50 {
                prop_assert!(found >= 0.8, "{found} of {truth}");
            }
        }

        /// A writer of blocks that a shallow queue takes: the link is busy for as long as its own
        /// counters say, however short the waits are.
        #[test]
        fn a_link_that_is_full_within_each_block_was_busy(
            megabits in 10_u64..1000,
            block in 4_i64..40,
            load in 0.05_f64..0.95,
            lost in 0_u32..20,
        ) {
            let each = PACKET * 8_000 / megabits as i64;
            let period = (each as f64 * block as f64 / load) as i64;
            // Behind one another, as a host's own link has them.
            let sent: Vec<i64> =
                (0..3000).map(|at| at / block * period + at % block * each / 10).collect();
            let queue = PACKET as u64 * block as u64;
            let (data, truth) = through_lab(megabits, queue, &sent, lost);
            let found = busy(&data).unwrap();
            prop_assert!((found - truth).abs() <= 0.03 * truth + 0.01, "{found} of {truth}");
        }

        /// A sender that paces itself below the link's rate finds no queue, and nothing is said to
        /// be busy.
        #[test]
        fn what_is_paced_below_the_rate_waits_for_nothing(
            megabits in 10_u64..1000,
            load in 0.1_f64..0.9,
        ) {
            let each = PACKET * 8_000 / megabits as i64;
            let sent: Vec<i64> =
                (0..2000).map(|at| (at as f64 * each as f64 / load) as i64).collect();
            let (data, _) = through_lab(megabits, 1 << 20, &sent, 0);
            prop_assert_eq!(busy(&data), Some(0.0));
        }

        /// What delays each packet by itself is no queue.
        #[test]
        fn jitter_is_not_busy(
            waits in prop::collection::vec(0_i64..10 * MS, 2000),
            gap in 10_000_i64..5 * MS,
        ) {
            let data = waits.iter().zip(0..);
            let data: Vec<SentData> = data
                .map(|(waited, at)| SentData { at: at * gap, waited: *waited, length: PACKET })
                .collect();
            prop_assert!(busy(&data).unwrap() < 0.5);
        }

        /// Nor is what keeps their order: it holds some back until an earlier one has left.
        #[test]
        fn jitter_in_order_has_no_rate(
            waits in prop::collection::vec(0_i64..10 * MS, 2000),
            gap in 10_000_i64..5 * MS,
        ) {
            let (mut service, mut left) = (Service::default(), 0);
            let mut before = None;
            for (waited, number) in waits.iter().zip(0..) {
                let at = number * gap;
                left = left.max(at + waited);
                let one = SentData { at, waited: left - at, length: PACKET };
                if let Some(before) = before.replace(one) {
                    service.push(before, one);
                }
            }
            prop_assert_eq!(service.finish(), 0);
        }
    }

    /// The sliding least is that of the definition.
    #[test]
    fn waits_are_those_around() {
        let data: Vec<SentData> = (0..500_i64)
            .map(|at| SentData {
                at: at * MS,
                waited: (at * 7919 % 101) * MS / 4 + if at % 50 < 40 { 9 * MS } else { 0 },
                length: 0,
            })
            .collect();
        let covered = data.windows(2).enumerate().map(|(at, pair)| {
            let around = &data[at.saturating_sub(AROUND)..(at + AROUND + 1).min(data.len())];
            let waited = around.iter().map(|one| one.waited).min().unwrap();
            (pair[1].at - pair[0].at).clamp(0, (waited - NOISE).max(0))
        });
        let mut waits = Waits::new(NOISE);
        data.iter().for_each(|one| waits.push(*one));
        let expected: i64 = covered.sum();
        assert!(expected > 0);
        assert_eq!(waits.finish(), expected);
    }
}
