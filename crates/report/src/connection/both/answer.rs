//! What held a connection, by the capture that is placed best to say it.

use super::BothReport;
use crate::Layout;
use crate::connection::account::{self, WaitAnswer, rounded};
use crate::table::{escape, figure, paragraph};
use fullpipe_flow::Language;
use fullpipe_flow::connection::pair::Tap;
use fullpipe_flow::diagnosis::{Diagnosis, LinkProof, PairAnswer, RoundTripParts};
use fullpipe_flow::finding::Remedy;

impl BothReport<'_> {
    /// The answer, whose capture gives it, and where the round trip is spent.
    pub(super) fn answer(&self, answer: &PairAnswer, layout: Layout) -> String {
        let (language, seen) = (layout.language, &answer.seen);
        let account = answer.account.as_ref();
        let told = match answer.proof {
            Some(proof) => Some(self.proven(proof, language)),
            None => account.and_then(|account| account::answer(seen, account, language)),
        };
        let diagnosis = seen.diagnosis(answer.direction);
        let mut text = match told {
            Some(told) => account::answer_lines(&without_captures(told), "  ", layout),
            None => diagnosis.map(Diagnosis::headline).map_or_else(String::new, |headline| {
                line("  ", &language.headline_with_share(&headline), layout)
            }),
        };
        let seen_at = answer.proof.is_none().then(|| self.seen_at(answer, language));
        let round_trip = answer.round_trip.map(|parts| self.round_trip(parts, language));
        for sentence in seen_at.into_iter().chain(round_trip) {
            text += &line("  ", &sentence, layout);
        }
        text
    }

    /// The answer that only both captures give: what is between them was full.
    fn proven(&self, proof: LinkProof, language: Language) -> WaitAnswer {
        let [a, b] = [Tap::A, Tap::B].map(|tap| escape::in_line(self.name(tap)));
        let claim = match (language, proof) {
            (Language::English, LinkProof::Busy(part)) => format!(
                "the link between {a} and {b} was full: for {} % of the time from the first data \
                 to the last, data waited there",
                figure::percent(part)
            ),
            (Language::Chinese, LinkProof::Busy(part)) => format!(
                "{a} 与 {b} 之间的链路已满：从第一份数据到最后一份，有 {} % 的时间数据在那里排队",
                figure::percent(part)
            ),
            (Language::English, LinkProof::Policed(policed)) => format!(
                "a policer between {a} and {b} lets {} of data pass, and dropped what came above",
                policed.rate
            ),
            (Language::Chinese, LinkProof::Policed(policed)) => {
                format!("{a} 与 {b} 之间有限速：只放行 {} 的数据，超出的部分被丢弃", policed.rate)
            }
        };
        match proof {
            LinkProof::Busy(_) => account::path_is_full(claim, language),
            LinkProof::Policed(_) => account::path_is_policed(claim, language),
        }
    }

    /// Whose capture says so, and whether the other one alone says it, too.
    fn seen_at(&self, answer: &PairAnswer, language: Language) -> String {
        let [here, there] = [answer.seen_at, answer.seen_at.other()].map(|tap| self.name(tap));
        let limit = answer.limited_by.map(|seen| seen.candidate.limit);
        let other = answer.other.map(|seen| (seen.candidate.limit, seen.is_guess));
        let shows = match language {
            Language::English => format!("this is what {here} shows"),
            Language::Chinese => format!("以上依据 {here}"),
        };
        let alone = match (language, other) {
            (_, None) => return shows,
            (Language::English, Some((_, true))) => format!("; {there} alone can only guess"),
            (Language::Chinese, Some((_, true))) => format!("；单看 {there} 只能猜测"),
            (Language::English, Some((other, false))) if limit == Some(other) => {
                format!("; {there} alone shows the same limit")
            }
            (Language::Chinese, Some((other, false))) if limit == Some(other) => {
                format!("；单看 {there}，限制相同")
            }
            (Language::English, Some((other, false))) => {
                format!(", the better place; {there} alone shows: {}", language.limit(other))
            }
            (Language::Chinese, Some((other, false))) => {
                format!("，位置更好；单看 {there} 则是：{}", language.limit(other))
            }
        };
        shows + &alone
    }

    fn round_trip(&self, parts: RoundTripParts, language: Language) -> String {
        let [a, b] = [Tap::A, Tap::B].map(|tap| self.name(tap));
        let far = self.name(parts.far);
        let [whole, between, beyond] = [parts.whole, parts.between(), parts.beyond].map(rounded);
        if parts.beyond.saturating_mul(NEARLY_NOTHING) <= parts.whole {
            return match language {
                Language::English => {
                    format!("the least round trip, {whole}, is all between {a} and {b}")
                }
                Language::Chinese => format!("最短往返时间 {whole} 全在 {a} 与 {b} 之间"),
            };
        }
        match language {
            Language::English => format!(
                "of the least round trip of {whole}, {between} are between {a} and {b}, and {beyond} \
                 beyond {far}"
            ),
            Language::Chinese => format!(
                "最短往返时间 {whole} 中，{between} 在 {a} 与 {b} 之间，{beyond} 在 {far} 之后"
            ),
        }
    }
}

/// A part of a round trip is not worth telling where it is less than one in so many.
const NEARLY_NOTHING: u64 = 100;

/// A sentence on lines of its own.
fn line(before: &str, sentence: &str, layout: Layout) -> String {
    paragraph::fill(before, &escape::in_line(sentence), layout.width) + "\n"
}

/// Without the advice to capture at both ends: that was done.
fn without_captures(answer: WaitAnswer) -> WaitAnswer {
    let advised = answer.held.and_then(|held| held.remedy);
    let is_done = advised == Some(Remedy::CaptureBothEnds);
    WaitAnswer { remedy: answer.remedy.filter(|_| !is_done), ..answer }
}
