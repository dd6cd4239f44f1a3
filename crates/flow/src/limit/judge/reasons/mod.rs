//! Why the judge named a limit: the few numbers of the transfer that decided, in words.
//!
//! Each trait in turn is set to its typical value. The named limit then becomes less likely, and
//! the difference is the trait's weight. Some traits say the same about a transfer (percentiles of
//! the round trip). They count once, by the one with the most weight.

mod captures;
mod chinese;
mod receiver;
mod rules;
mod samples;
mod shared_meanings;
mod words;

use super::{Case, Opinion, Possible, Source, Traits, table};
use crate::language::Language;
use fullpipe_model::units::Duration;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use words::Meaning;

/// The most reasons: nobody weighs more of them against each other.
const MOST: usize = 3;
/// A trait with less weight is no reason.
const LEAST_WEIGHT: f64 = 0.001;
/// Nor is a trait with less than this fraction of the first reason's weight.
const LEAST_OF_FIRST: f64 = 0.1;

/// A number that influenced the decision, and how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reason {
    meaning: &'static Meaning,
    /// Its value. The judge compares it between transfers, so it is a fraction or a ratio and not a
    /// quantity.
    pub value: f64,
    /// Its median over all transfers with which the judge was trained.
    pub typical: f64,
    /// How much less likely the limit would be if the number were typical, 0 to 1.
    pub weight: f64,
    /// The round trip of which some values are multiples.
    round_trip: Option<Duration>,
}

impl Reason {
    /// The stable name of the number.
    pub fn name(&self) -> &'static str {
        self.meaning.name
    }

    /// The reason in words, with quantities.
    pub fn words(&self, language: Language) -> String {
        self.meaning.words(self.value, self.typical, self.round_trip, language)
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Reason { value, typical, weight, .. } = self;
        let mut fields = serializer.serialize_struct("Reason", 5)?;
        fields.serialize_field("trait", self.name())?;
        fields.serialize_field("value", value)?;
        fields.serialize_field("typical", typical)?;
        fields.serialize_field("weight", weight)?;
        fields.serialize_field("words", &self.words(Language::English))?;
        fields.end()
    }
}

/// The result of weighing a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The probability of each limit.
    pub opinion: Opinion,
    /// The limits that the evidence allowed.
    possible: Possible,
}

impl Judged {
    /// Whether the evidence allows a link.
    pub fn allows_link(&self) -> bool {
        self.possible.link
    }

    /// Weighs a transfer; `None` where the judge was not trained for such traits.
    pub fn of(source: Source, case: &Case) -> Option<Self> {
        let opinion = Opinion::of(source, &case.traits, case.possible)?;
        Some(Judged { opinion, possible: case.possible })
    }
}

/// The numbers that decided for the limit that the judge named, most important first. `traits` are
/// those of `judged`. Round trips are multiples of `rtt`.
pub fn reasons(
    source: Source,
    judged: &Judged,
    traits: &Traits,
    rtt: Option<Duration>,
) -> Vec<Reason> {
    let (limit, likely) = judged.opinion.first();
    let Some(trees) = table(source) else { return Vec::new() };
    let meanings = meanings(source);
    let Some(without) = trees.weigh_without_each(traits.values()) else { return Vec::new() };
    if without.len() != meanings.len() {
        return Vec::new();
    }
    let weights = without.into_iter().map(|classes| {
        let opinion = Opinion::of_classes(classes, judged.possible);
        opinion.map_or(0.0, |opinion| likely - opinion.likely(limit))
    });
    let mut weights: Vec<(usize, f64)> = weights.enumerate().collect();
    weights.sort_by(|a, b| b.1.total_cmp(&a.1));
    let least = LEAST_WEIGHT.max(weights.first().map_or(0.0, |first| LEAST_OF_FIRST * first.1));
    let mut subjects = Vec::new();
    let mut reasons = Vec::new();
    for (at, weight) in weights.into_iter().take_while(|(_, weight)| *weight >= least) {
        let meaning = meanings[at];
        let (value, typical) = (traits.values()[at].into(), trees.typical()[at].into());
        if reasons.len() < MOST && !subjects.contains(&meaning.subject) && meaning.speaks(value) {
            subjects.push(meaning.subject);
            reasons.push(Reason { meaning, value, typical, weight, round_trip: rtt });
        }
    }
    reasons
}

/// The meanings of the traits of this kind of evidence, in their order.
fn meanings(source: Source) -> Vec<&'static Meaning> {
    let further: &[Meaning] = match source {
        Source::Capture => &captures::MEANINGS,
        Source::Samples => &samples::MEANINGS,
        Source::ReceiverSamples => &receiver::MEANINGS,
    };
    rules::MEANINGS.iter().chain(further).collect()
}

#[cfg(test)]
mod tests {
    use super::super::LinkEvidence;
    use super::*;

    #[test]
    fn every_trait_has_a_name_of_its_own_and_words() {
        for source in [Source::Capture, Source::Samples, Source::ReceiverSamples] {
            let meanings = meanings(source);
            let trees = table(source).unwrap();
            assert_eq!(trees.traits(), meanings.len(), "{source:?}");
            let mut names: Vec<&str> = meanings.iter().map(|meaning| meaning.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), meanings.len(), "{source:?}");
            for meaning in meanings {
                // Known, the other answer of a question, and not known.
                for value in [0.5, 1.0, -1.0] {
                    let told = Language::ALL.map(|one| meaning.words(value, 0.25, None, one));
                    let [english, chinese] = told;
                    assert_eq!(english.is_empty(), !meaning.speaks(value), "{}", meaning.name);
                    if english.is_empty() {
                        assert!(chinese.is_empty(), "{}", meaning.name);
                        continue;
                    }
                    let says = chinese.split("（通常：").next().unwrap();
                    let has_letters = says.chars().any(|letter| letter > '\u{4e00}');
                    assert!(has_letters && !says.contains(" the "), "{english}: {chinese}");
                    assert!(!english.contains("{}") && !chinese.contains("{}"), "{chinese}");
                }
            }
        }
    }

    #[test]
    fn each_chinese_sentence_is_of_a_trait() {
        let sources = [Source::Capture, Source::Samples, Source::ReceiverSamples];
        let said: Vec<&str> =
            sources.into_iter().flat_map(meanings).flat_map(Meaning::sentences).collect();
        for (english, _) in chinese::SENTENCES {
            assert!(said.contains(&english), "no trait says `{english}`");
        }
    }

    fn judge(traits: &Traits) -> Judged {
        let (possible, link) = (Possible::ALL, LinkEvidence::None);
        let case = Case { traits: traits.clone(), possible, link, judges_parts: true };
        Judged::of(Source::Capture, &case).unwrap()
    }

    #[test]
    fn what_decided_is_what_the_limit_would_not_be_without() {
        // A transfer that is typical except for its repairs.
        let trees = table(Source::Capture).unwrap();
        let mut values: Vec<f64> = trees.typical().iter().map(|value| (*value).into()).collect();
        let at = |name| meanings(Source::Capture).iter().position(|one| one.name == name).unwrap();
        for (name, value) in [
            ("rules_congestion_window_loss", 1.0),
            ("rules_link", 0.0),
            ("retransmissions", 0.02),
            ("intervals_with_retransmissions", 0.3),
            ("in_flight_by_root_loss", 1.2),
        ] {
            values[at(name)] = value;
        }
        let mut traits = Traits::default();
        traits.extend(values);
        let judged = judge(&traits);
        let found = reasons(Source::Capture, &judged, &traits, None);
        assert!((1..=MOST).contains(&found.len()), "{found:?}");
        let changed = ["rules", "retransmissions", "intervals_with", "in_flight_by"];
        for reason in &found {
            assert!(changed.iter().any(|start| reason.name().starts_with(start)), "{found:?}");
            assert!(reason.weight > 0.0 && reason.weight <= 1.0, "{found:?}");
        }
        assert!(found.is_sorted_by(|a, b| a.weight >= b.weight));
        // For a typical transfer, no trait decides.
        let mut traits = Traits::default();
        traits.extend(trees.typical().iter().map(|value| f64::from(*value)));
        let judged = judge(&traits);
        assert_eq!(reasons(Source::Capture, &judged, &traits, None), []);
    }
}
