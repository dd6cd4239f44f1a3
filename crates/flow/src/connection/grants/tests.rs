use super::*;
use fullpipe_model::units::Duration;
use proptest::prelude::*;
use std::collections::VecDeque;

const SEGMENT: u32 = 1448;
/// The simulation's step.
const TICK: Duration = Duration::from_micros(50);

/// What holds the sender.
#[derive(Debug, Clone, Copy)]
enum SenderLaw {
    /// A window of the applications.
    Granted(u32),
    /// A fixed amount in flight, which every ACK makes room in.
    InFlight(u32),
}

/// A transfer over a path without a queue.
#[derive(Debug, Clone)]
struct Transfer {
    held: SenderLaw,
    /// Half of the round trip, in ticks.
    way: u64,
    /// Segments that leave in a tick.
    at_once: u32,
    /// What the receiving application takes before it says so, one after another.
    steps: Vec<u32>,
    /// Messages that it sends.
    grants: usize,
}

/// What the capture sees.
#[derive(Debug, Clone, Copy)]
enum SeenPacket {
    Data { next: u32 },
    Ack,
    Message { ack: u32 },
}

impl Transfer {
    /// The facts, captured at the sender or at the receiver.
    fn facts(&self, at_sender: bool) -> GrantFacts {
        let lag = if at_sender { Duration::ZERO } else { TICK.saturating_mul(2 * self.way) };
        let mut grants = Grants::default();
        let start = SequenceNumber(u32::MAX - 100_000);
        for (tick, packet) in self.packets(at_sender) {
            let at = Instant::ZERO + TICK.saturating_mul(tick);
            match packet {
                SeenPacket::Data { next } => {
                    let rtt = TICK.saturating_mul(2 * self.way);
                    grants.sent(Granted { at, next: start + next, lag, rtt });
                }
                SeenPacket::Ack => grants.acknowledged(at),
                SeenPacket::Message { ack } => grants.message(at, start + ack),
            }
        }
        grants.facts()
    }

    fn packets(&self, at_sender: bool) -> Vec<(u64, SeenPacket)> {
        let mut seen = Vec::new();
        let mut to_receiver: VecDeque<(u64, u32)> = VecDeque::new();
        let mut to_sender: VecDeque<(u64, SeenPacket, u32)> = VecDeque::new();
        let (mut sent, mut acked, mut granted, mut arrived, mut taken) = (0, 0, 0, 0, 0);
        let mut said = 0;
        let mut tick = 0;
        while said < self.grants {
            tick += 1;
            while let Some((_, packet, ack)) = to_sender.pop_front_if(|one| one.0 <= tick) {
                acked = ack;
                if let SeenPacket::Message { ack } = packet {
                    granted = ack;
                }
                if at_sender {
                    seen.push((tick, packet));
                }
            }
            for _ in 0..self.at_once {
                let room = match self.held {
                    SenderLaw::Granted(window) => granted + window - sent,
                    SenderLaw::InFlight(most) => acked + most - sent,
                };
                if room < SEGMENT {
                    break;
                }
                if at_sender {
                    seen.push((tick, SeenPacket::Data { next: sent }));
                }
                sent += SEGMENT;
                to_receiver.push_back((tick + self.way, sent));
            }
            while let Some((_, end)) = to_receiver.pop_front_if(|one| one.0 <= tick) {
                if !at_sender {
                    seen.push((tick, SeenPacket::Data { next: arrived }));
                }
                arrived = end;
                let step = self.steps[said % self.steps.len()];
                let packet = if arrived - taken >= step {
                    (taken, said) = (arrived, said + 1);
                    SeenPacket::Message { ack: arrived }
                } else if (arrived / SEGMENT).is_multiple_of(2) {
                    SeenPacket::Ack
                } else {
                    continue;
                };
                to_sender.push_back((tick + self.way, packet, arrived));
                if !at_sender {
                    seen.push((tick, packet));
                }
            }
        }
        seen
    }
}

fn transfers(held: fn(u32) -> SenderLaw) -> impl Strategy<Value = Transfer> {
    let steps = prop::collection::vec(8_u32..24, 3..8);
    (80_u32..400, 20_u64..400, 1_u32..8, steps, 30_usize..700).prop_map(
        move |(window, way, at_once, steps, grants)| Transfer {
            held: held(window * SEGMENT),
            way,
            at_once,
            steps: steps.iter().map(|step| step * SEGMENT).collect(),
            grants,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The bound is the window, wherever it is captured.
    #[test]
    fn a_window_of_the_applications_is_found_at_both_ends(
        transfer in transfers(SenderLaw::Granted),
        at_sender in any::<bool>(),
    ) {
        let SenderLaw::Granted(window) = transfer.held else { unreachable!() };
        // Where a round trip carries more than the window allows, the sender waits for grants.
        prop_assume!(u64::from(transfer.at_once * SEGMENT) * transfer.way > u64::from(window));
        let facts = transfer.facts(at_sender);
        // What a grant released may still be leaving when the next one comes.
        let step = transfer.steps.iter().max().copied().unwrap_or(0) + SEGMENT;
        let bound = facts.bound.get();
        let is_near = bound <= u64::from(window) && bound + u64::from(step) >= u64::from(window);
        prop_assert!(facts.count < 16 || is_near, "{facts:?} for {window}");
    }

    /// Where TCP holds the data, the extent varies no less than what is in flight.
    #[test]
    fn a_fixed_amount_in_flight_is_no_window_of_the_applications(
        transfer in transfers(SenderLaw::InFlight),
        at_sender in any::<bool>(),
    ) {
        let SenderLaw::InFlight(most) = transfer.held else { unreachable!() };
        prop_assume!(u64::from(transfer.at_once * SEGMENT) * transfer.way > u64::from(most));
        let facts = transfer.facts(at_sender);
        let [extents, flights] = [facts.spread.extents, facts.spread.flights].map(Bytes::as_f64);
        let varies = facts.at_bound >= 16 && flights >= f64::from(8 * SEGMENT);
        prop_assert!(!varies || extents > 0.75 * flights, "{facts:?}");
        let releases = facts.at_bound >= 8 && facts.releasing >= 0.5;
        prop_assert!(!releases || extents > 1.05 * flights, "{facts:?}");
    }

    #[test]
    fn any_order_of_packets_is_read(
        packets in prop::collection::vec((0_u8..3, any::<u32>(), any::<u32>()), 0..2000),
        lag in 0_u64..1_000_000_000,
    ) {
        let mut grants = Grants::default();
        for (kind, at, number) in packets {
            let at = Instant::from_nanos(u64::from(at));
            let number = SequenceNumber(number);
            let [lag, rtt] = [lag, lag / 2].map(Duration::from_nanos);
            match kind {
                0 => grants.sent(Granted { at, next: number, lag, rtt }),
                1 => grants.acknowledged(at),
                _ => grants.message(at, number),
            }
        }
        let facts = grants.facts();
        prop_assert!(facts.at_bound <= facts.count && (0.0..=1.0).contains(&facts.releasing));
        prop_assert!(grants.kept.len() <= MAX_KEPT);
        prop_assert!(grants.on_their_way.len() <= MAX_ON_THEIR_WAY);
    }
}
