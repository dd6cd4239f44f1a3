//! Packet loss: at random, or by one of netem's two state machines, which lose packets in bursts.

use super::chance::Chance;
use super::grammar::{Reader, WordsError, words_serde};
use super::random::{Correlated, Purpose};
use crate::units::Probability;

/// How packets are lost, and whether ECN-capable ones are marked instead.
///
/// Text: `[random] P [CORRELATION]`, `state P13 [P31 [P32 [P23 [P14]]]]` or
/// `gemodel P [R [1-H [1-K]]]`, each optionally followed by `ecn`. The defaults are those of tc(8):
/// P31 = 1 - P13, P32 = 0, P23 = 1, P14 = 0; R = 1 - P, 1-H = 1, 1-K = 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Loss {
    /// Which packets are lost.
    pub model: LossModel,
    /// ECN-capable packets are marked instead of lost.
    pub ecn: bool,
}

/// Which packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossModel {
    /// Each packet by its own draw.
    Random(Chance),
    /// Four states (Salsano and others, "Definition of a general and intuitive loss model"): 1
    /// good, 2 good within a burst, 3 lost within a burst, 4 lost alone. `p13` is the probability
    /// to go from 1 to 3.
    State {
        /// From good into a burst (1 to 3).
        p13: Probability,
        /// From a burst back to good.
        p31: Probability,
        /// From lost to good within a burst.
        p32: Probability,
        /// From good to lost within a burst.
        p23: Probability,
        /// From good to a single loss.
        p14: Probability,
    },
    /// Gilbert and Elliott: two states, each with its own probability of loss.
    GilbertElliott {
        /// From good to bad.
        p: Probability,
        /// From bad to good.
        r: Probability,
        /// Loss in the bad state (1-h).
        bad: Probability,
        /// Loss in the good state (1-k).
        good: Probability,
    },
}

impl Default for LossModel {
    fn default() -> Self {
        LossModel::Random(Chance::NEVER)
    }
}

impl Loss {
    /// No packet is lost.
    pub const NEVER: Loss = Loss { model: LossModel::Random(Chance::NEVER), ecn: false };

    /// Each packet with `probability`, independently.
    pub const fn random(probability: Probability) -> Self {
        Loss {
            model: LossModel::Random(Chance { probability, correlation: Probability::ZERO }),
            ecn: false,
        }
    }

    /// Whether no packet is ever lost.
    pub fn is_never(&self) -> bool {
        match self.model {
            LossModel::Random(chance) => chance.is_never(),
            LossModel::State { p13, p14, .. } => {
                p13 == Probability::ZERO && p14 == Probability::ZERO
            }
            LossModel::GilbertElliott { p, bad, good, .. } => {
                good == Probability::ZERO && (p == Probability::ZERO || bad == Probability::ZERO)
            }
        }
    }
}

/// The present state of the loss model.
#[derive(Debug)]
pub(super) struct LossState {
    draws: Correlated,
    state: State,
}

/// The states of netem's models; Gilbert and Elliott's has only the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    LostInBurst,
    GoodInBurst,
    LostAlone,
}

impl LossState {
    pub fn new(seed: u64) -> Self {
        LossState { draws: Correlated::new(seed, Purpose::Loss), state: State::Good }
    }

    /// Whether the next packet is lost.
    pub fn next(&mut self, model: &LossModel) -> bool {
        match *model {
            LossModel::Random(chance) => self.draws.happens(chance),
            LossModel::State { p13, p31, p32, p23, p14 } => {
                let random = self.draws.next(Probability::ZERO);
                self.state = match self.state {
                    State::Good => of_two(
                        random,
                        Transition { probability: p14, to: State::LostAlone },
                        Transition { probability: p13, to: State::LostInBurst },
                        State::Good,
                    ),
                    State::GoodInBurst if p23.happens(random) => State::LostInBurst,
                    State::GoodInBurst => State::GoodInBurst,
                    State::LostInBurst => of_two(
                        random,
                        Transition { probability: p32, to: State::GoodInBurst },
                        Transition { probability: p31, to: State::Good },
                        State::LostInBurst,
                    ),
                    State::LostAlone => State::Good,
                };
                matches!(self.state, State::LostInBurst | State::LostAlone)
            }
            LossModel::GilbertElliott { p, r, bad, good } => {
                let was_good = self.state == State::Good;
                let (moves, loses) =
                    (self.draws.next(Probability::ZERO), self.draws.next(Probability::ZERO));
                self.state = match was_good {
                    true if p.happens(moves) => State::LostInBurst,
                    false if r.happens(moves) => State::Good,
                    true => State::Good,
                    false => State::LostInBurst,
                };
                // As in netem, the state before the transition decides about the packet, not the
                // state after it.
                if was_good { good.happens(loses) } else { bad.happens(loses) }
            }
        }
    }
}

/// A change of state, and its probability.
struct Transition {
    probability: Probability,
    to: State,
}

/// One draw chooses between two transitions and staying.
fn of_two(random: u64, first: Transition, second: Transition, stay: State) -> State {
    let sum = first.probability.get() + second.probability.get();
    let either = Probability::new(sum.min(1.0)).unwrap_or(Probability::ONE);
    if first.probability.happens(random) {
        first.to
    } else if either.happens(random) {
        second.to
    } else {
        stay
    }
}

fn complement(probability: Probability) -> Probability {
    Probability::new(1.0 - probability.get()).unwrap_or_default()
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.model {
            LossModel::Random(chance) => write!(f, "{chance}")?,
            LossModel::State { p13, p31, p32, p23, p14 } => {
                write!(f, "state {p13} {p31} {p32} {p23} {p14}")?
            }
            LossModel::GilbertElliott { p, r, bad, good } => {
                write!(f, "gemodel {p} {r} {bad} {good}")?
            }
        }
        if self.ecn { f.write_str(" ecn") } else { Ok(()) }
    }
}

impl std::str::FromStr for Loss {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let mut words = Reader::new("loss", "1%, state 1% 10% or gemodel 1% 10% 70% 0.1%", text);
        let model = if words.keyword("state") {
            let p13 = words.value("p13")?;
            LossModel::State {
                p13,
                p31: words.optional("p31")?.unwrap_or(complement(p13)),
                p32: words.optional("p32")?.unwrap_or_default(),
                p23: words.optional("p23")?.unwrap_or(Probability::ONE),
                p14: words.optional("p14")?.unwrap_or_default(),
            }
        } else if words.keyword("gemodel") {
            let p = words.value("p")?;
            LossModel::GilbertElliott {
                p,
                r: words.optional("r")?.unwrap_or(complement(p)),
                bad: words.optional("1-h")?.unwrap_or(Probability::ONE),
                good: words.optional("1-k")?.unwrap_or_default(),
            }
        } else {
            words.keyword("random");
            LossModel::Random(Chance::read(&mut words)?)
        };
        let ecn = words.keyword("ecn");
        words.end()?;
        Ok(Loss { model, ecn })
    }
}

words_serde!(Loss);

#[cfg(test)]
mod tests {
    use super::super::tests::{binomial, evenly, link, run};
    use super::super::{DropCause, Ecn, Packet};
    use super::*;
    use crate::units::{Bytes, Duration};

    /// Which of `count` packets are lost.
    fn losses(loss: &str, seed: u64, count: usize) -> Vec<bool> {
        let outcome = run(
            &mut link(&format!("loss = '{loss}'"), seed),
            evenly(count, Duration::from_micros(10)),
        );
        let mut lost = vec![false; count];
        for (index, cause) in outcome.refused {
            assert_eq!(cause, DropCause::Loss);
            lost[index] = true;
        }
        lost
    }

    /// (share lost, mean length of a burst)
    fn bursts(lost: &[bool]) -> (f64, f64) {
        let total = lost.iter().filter(|lost| **lost).count() as f64;
        let starts =
            lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(lost[0]);
        (total / lost.len() as f64, total / starts as f64)
    }

    #[test]
    fn random_loss_is_within_its_binomial_interval() {
        for seed in 1..=5 {
            for (text, probability) in [("0.01%", 0.0001), ("1%", 0.01), ("random 50%", 0.5)] {
                let lost = losses(text, seed, 200_000).iter().filter(|lost| **lost).count();
                assert!(binomial(lost, 200_000, probability), "{lost} lost at {text}, seed {seed}");
            }
        }
    }

    /// Gilbert and Elliott: the share of packets that find the bad state is p / (p + r); with
    /// certain loss there and none in the good state a burst ends with probability r after each
    /// packet.
    #[test]
    fn gemodel_has_its_stationary_loss_and_its_bursts() {
        const COUNT: usize = 1_000_000;
        for (p, r, bad, good) in
            [(0.01, 0.1, 1.0, 0.0), (0.01, 0.1, 0.7, 0.001), (0.2, 0.5, 0.9, 0.05)]
        {
            let percents = [p, r, bad, good].map(|share| format!("{}%", share * 100.0)).join(" ");
            let text = format!("gemodel {percents}");
            let lost = losses(&text, 11, COUNT);
            let (share, burst) = bursts(&lost);
            let in_bad = p / (p + r);
            let asked = in_bad * bad + (1.0 - in_bad) * good;
            // The states' memory, (1 + m) / (1 - m) with m = 1 - p - r, makes fewer independent
            // draws of them.
            let memory = (2.0 - p - r) / (p + r);
            let sigma = (asked * (1.0 - asked) * memory / COUNT as f64).sqrt();
            assert!((share - asked).abs() < 4.0 * sigma, "{text}: {share} lost, {asked} asked");
            if (bad, good) == (1.0, 0.0) {
                assert!((burst - 1.0 / r).abs() < 0.05 / r, "{text}: bursts of {burst}");
            }
        }
    }

    /// The four states' stationary shares, solved by hand: pi1 p13 = pi3 p31, pi3 p32 = pi2 p23,
    /// pi4 = pi1 p14.
    #[test]
    fn four_states_have_their_stationary_loss() {
        let (p13, p31, p32, p23, p14) = (0.01, 0.2, 0.3, 0.4, 0.02);
        let lost = losses(&format!("state {p13} {p31} {p32} {p23} {p14}"), 5, 1_000_000);
        let share = bursts(&lost).0;
        let (pi1, pi3) = (1.0, p13 / p31);
        let (pi2, pi4) = (pi3 * p32 / p23, p14);
        let asked = (pi3 + pi4) / (pi1 + pi2 + pi3 + pi4);
        assert!((share - asked).abs() < 0.02 * asked, "{share} lost, {asked} asked");
    }

    #[test]
    fn what_is_left_out_is_what_tc_takes() {
        assert_eq!("state 1%".parse::<Loss>(), "state 1% 99% 0% 100% 0%".parse());
        assert_eq!("gemodel 1%".parse::<Loss>(), "gemodel 1% 99% 100% 0%".parse());
        assert_eq!("random 1%".parse::<Loss>(), "0.01".parse());
    }

    /// netem's correlation (see `random`): the draw is less spread, so a rare event is rarer.
    #[test]
    fn correlated_losses_come_together() {
        let lost = losses("30% 60%", 9, 200_000);
        let (share, burst) = bursts(&lost);
        let (alone, alone_burst) = bursts(&losses("30%", 9, 200_000));
        assert!(share < alone && share > 0.01, "{share}");
        assert!(burst > alone_burst * 1.1, "{burst} against {alone_burst}");
    }

    #[test]
    fn with_ecn_a_packet_that_can_be_marked_is() {
        let capable = Packet { ecn: Ecn::Ect0, ..Bytes::new(1500).into() };
        let packets = evenly(100, Duration::from_micros(10)).map(|(now, _)| (now, capable));
        let outcome = run(&mut link("loss = '100% ecn'", 1), packets);
        assert!(
            outcome.refused.is_empty() && outcome.departures.iter().all(|departure| departure.mark)
        );
        let outcome =
            run(&mut link("loss = '100% ecn'", 1), evenly(100, Duration::from_micros(10)));
        assert_eq!(outcome.refused.len(), 100);
    }
}
