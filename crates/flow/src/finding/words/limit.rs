//! What limited a transfer.

use crate::finding::{Doubt, Finding, FindingEvidence, Headline};
use crate::limit::{Candidate, Cause, Coverage, Limit};
use fullpipe_model::units::{Duration, Rate};

/// The answer for a short transfer that nothing held.
const NOTHING: &str = "nothing";
/// Bursts that pass so many times as fast as the mean pass at once.
const AT_ONCE: f64 = 100.0;

/// What was found, in one sentence: the limit, its share of the time, and what happened meanwhile.
pub fn claim(finding: &Finding) -> String {
    let limit = finding.limit.to_string();
    let named = finding.evidence.flights.map_or(limit.as_str(), |_| NOTHING);
    format!("{named}: {:.0} % of the time {}", finding.share * 100.0, event(finding))
}

/// What happened while the limit held: the claim without its name and share.
pub fn event(finding: &Finding) -> String {
    let FindingEvidence { allowed, burst, elsewhere, flights, .. } = finding.evidence;
    let mut event = match (burst, flights) {
        (Some(burst), _) => dropped_bursts(burst, &finding.evidence),
        (None, Some(flights)) => nothing_held(flights),
        (None, None) => what_happened(finding.limit, &finding.evidence),
    };
    let bound = finding.evidence.bound(finding.limit).zip(finding.evidence.rtt);
    if let (Some(rate), Some((bound, rtt))) = (allowed, bound) {
        event += &format!(" ({bound} at {rtt} allows {rate})");
    }
    if let Some(elsewhere) = elsewhere {
        event += &format!("; the path carried up to {elsewhere} in other intervals");
    }
    event
}

/// Whether bursts pass so fast that how fast is not worth telling.
pub(super) fn passes_at_once(burst: Rate, carried: Rate) -> bool {
    burst.as_f64() > AT_ONCE * carried.as_f64()
}

fn dropped_bursts(burst: Rate, evidence: &FindingEvidence) -> String {
    let carried = evidence.goodput;
    let how = if passes_at_once(burst, carried) { "at once".into() } else { format!("at {burst}") };
    let each_time = match evidence.drops_after {
        Some(after) => format!(", after some {after} each time"),
        None => String::new(),
    };
    format!(
        "the path dropped from bursts, with no queue before it{each_time}: it carried {carried}, \
         and bursts passed {how}"
    )
}

fn nothing_held(flights: u32) -> String {
    match flights {
        0 | 1 => {
            "it left in one flight, and nothing held it: what it took is the path's round trip"
                .into()
        }
        _ => format!(
            "it left in {flights} flights, and nothing held it for long: no setting makes it a \
             tenth faster"
        ),
    }
}

fn what_happened(limit: Limit, evidence: &FindingEvidence) -> String {
    let FindingEvidence { goodput, in_flight, retransmissions, .. } = *evidence;
    let FindingEvidence { idle, period, paced, .. } = *evidence;
    match limit {
        Limit::ReceiveWindow => "the sender had the receive window full".into(),
        Limit::ReceiverApplication => match idle {
            Some(late) => format!(
                "the application read only {goodput}: while data waited for it, its TCP kept ACKs \
                 back, for {:.0} % of the time",
                late * 100.0
            ),
            None => {
                format!("the receive window was closed because the application read only {goodput}")
            }
        },
        Limit::SendBuffer => format!(
            "the sender's buffer was full of data that waited for its acknowledgement (at most \
             {in_flight} in flight, {goodput})"
        ),
        Limit::SenderApplication => match (idle, paced) {
            (Some(idle), _) => sets_the_pace(idle, period),
            (None, Some(rate)) => format!(
                "the sender let its data go evenly, at {rate}: nothing waited on the path, so what \
                 spaced it is the sender's own"
            ),
            (None, None) => "the sending application had nothing to send".into(),
        },
        Limit::CongestionWindow(Cause::SlowStart) => {
            "the congestion window was still growing".into()
        }
        Limit::CongestionWindow(Cause::Loss) if goodput == Rate::ZERO => format!(
            "nothing that was sent arrived, and the sender waited to send it again \
             ({retransmissions} segments were)"
        ),
        Limit::CongestionWindow(Cause::Loss) => format!(
            "the congestion window was small after loss ({retransmissions} segments sent again)"
        ),
        Limit::Link => full_link(evidence),
        Limit::ApplicationWindow => {
            "the peer's application had granted no more, above TCP, whose own windows had room"
                .into()
        }
        Limit::Unknown => "the evidence does not say what held the sender".into(),
    }
}

fn full_link(evidence: &FindingEvidence) -> String {
    let FindingEvidence { goodput, retransmissions, .. } = *evidence;
    if let Some(full) = evidence.carries {
        return format!(
            "the full link dropped what its queue had no room for ({retransmissions} segments sent \
             again), and the congestion window was smaller after that: it carried {goodput} of \
             {full}"
        );
    }
    if let Some(after) = evidence.drops_after {
        return format!(
            "something on the path was full, and dropped after some {after} each time, which \
             chance does not ({retransmissions} segments sent again): it carried {goodput}"
        );
    }
    let mut words = match evidence.beside {
        None => format!("the link was full: it carried {goodput}"),
        Some(beside) => format!(
            "the link was full: it carried {}, of which other connections of the same \
             hosts had {beside}",
            goodput.saturating_add(beside)
        ),
    };
    if let Some(queue) = evidence.queue() {
        words += &format!(", with {queue} of queue before it");
    }
    words
}

fn sets_the_pace(idle: f64, period: Option<Duration>) -> String {
    let idle = format!("had nothing to send for {:.0} % of the time", idle * 100.0);
    match period {
        Some(period) => format!(
            "the sending application set the pace: it wrote every {period} and {idle}, so each \
             block was carried before the next"
        ),
        None => format!("the sending application set the pace: again and again it {idle}"),
    }
}

/// Why a verdict is no more than a guess, and what would help.
pub fn doubt(doubt: &Doubt) -> String {
    let Doubt { right, judged, other, coverage } = *doubt;
    let help = what_would_help(coverage);
    let Some(right) = right else { return help.unwrap_or_default().into() };
    let mut words = format!("a guess: {:.0} % of such verdicts are right", right * 100.0);
    if let Some(Candidate { limit, share }) = judged {
        words += &format!("; the trained judge gives {:.0} % to the {limit}", share * 100.0);
    } else if let Some(other) = other {
        words += &format!("; it may be the {other}");
    }
    if let Some(help) = help {
        words += &format!("; {help}");
    }
    words
}

/// Which capture would give a better verdict, where one would.
const fn what_would_help(coverage: Coverage) -> Option<&'static str> {
    match coverage {
        Coverage::FromStart => None,
        Coverage::MiddleAtSender => {
            Some("a capture that begins before the connection would say more")
        }
        Coverage::MiddleElsewhere => {
            Some("a capture at the sender that begins before the connection would say more")
        }
    }
}

/// `send buffer`, or `probably send buffer or link` where it is a guess; `nothing` where nothing
/// held a short transfer.
impl std::fmt::Display for Headline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.or {
            _ if self.is_nothing() => f.write_str(NOTHING),
            _ if !self.is_guess() => write!(f, "{}", self.limit),
            Some(or) => write!(f, "probably {} or {or}", self.limit),
            None => write!(f, "perhaps {}", self.limit),
        }
    }
}

impl Headline {
    /// The share of the time, where it is told beside the answer. A guess has no share, and neither
    /// has `nothing`.
    pub fn shown_share(&self) -> Option<f64> {
        (!self.is_guess() && !self.is_nothing()).then_some(self.share)
    }

    /// The answer with the share of the time, for a cell of a table: `send buffer 97 %`.
    pub fn with_share(&self) -> String {
        crate::language::Language::English.headline_with_share(self)
    }
}
