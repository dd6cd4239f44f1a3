//! A path that changes over time: steps, outages, satellite handovers, and recorded traces.
//!
//! Time 0 is the link's start (see [`super::Link::starting_at`]), or the last [`super::Link::set`].

use super::grammar::{Reader, WordsError, words_serde};
use super::trace::Trace;
use crate::units::{Duration, Rate};

/// How rate and delay change over time.
///
/// Text, one of:
/// * steps: `5s rate 1mbit, 10s rate 10mbit delay 30ms, 12s down, 13s up`, with `, every 20s` from
///   the start again;
/// * `outage 200ms every 15s`: the last 200 ms of each 15 s nothing is sent;
/// * `handover 15s delay 20ms 40ms outage 30ms`: every 15 s another satellite with a delay between
///   the two, drawn from the seed, after an outage;
/// * `trace file:PATH` or `trace 0,4,4,9`: a mahimahi trace: milliseconds at which 1500 bytes may
///   leave, over and over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// Changes at given times.
    Steps(Steps),
    /// Regular handovers, each to a randomly drawn delay.
    Handover(Handover),
    /// A recorded rate.
    Trace(Trace),
    /// A trace in a file that has not been read yet: [`super::Config::resolved`] reads it.
    TraceFile(String),
}

/// Changes at given times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steps {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// After this time, everything is as configured again and the steps repeat.
    pub every: Option<Duration>,
}

/// One change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// Time since the link's start.
    pub at: Duration,
    /// A new rate.
    pub rate: Option<Rate>,
    /// A new delay.
    pub delay: Option<Duration>,
    /// Whether the transmitter sends from now on. While it does not, packets wait in the queue.
    pub up: Option<bool>,
}

/// A path through satellites in low orbit: another satellite every `interval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handover {
    /// Time between two handovers.
    pub interval: Duration,
    /// Shortest delay.
    pub delay_min: Duration,
    /// Longest delay.
    pub delay_max: Duration,
    /// How long nothing is sent at the end of each interval.
    pub outage: Duration,
}

fn steps(text: &str) -> Result<Steps, WordsError> {
    let example = "5s rate 1mbit, 10s rate 10mbit delay 30ms, 12s down, 13s up, every 20s";
    let mut found = Steps { steps: Vec::new(), every: None };
    for part in text.split(',') {
        let mut words = Reader::new("changes", example, part);
        if found.every.is_some() {
            return Err(words.error("nothing may follow `every`"));
        }
        if words.keyword("every") {
            if found.steps.is_empty() {
                return Err(words.error("`every` repeats the changes before it, and there is none"));
            }
            found.every = Some(words.value("period")?);
            words.end()?;
            continue;
        }
        let mut step = Step { at: words.value("time of the change")?, ..Step::default() };
        loop {
            if let Some(rate) = words.after("rate")? {
                step.rate = Some(rate);
            } else if let Some(delay) = words.after("delay")? {
                step.delay = Some(delay);
            } else if words.keyword("down") {
                step.up = Some(false);
            } else if words.keyword("up") {
                step.up = Some(true);
            } else {
                break;
            }
        }
        if (step.rate, step.delay, step.up) == (None, None, None) {
            return Err(words.error("says no rate, delay, down or up"));
        }
        words.end()?;
        found.steps.push(step);
    }
    Ok(found)
}

impl std::fmt::Display for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Changes::Steps(Steps { steps, every }) => {
                for (index, step) in steps.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", step.at.to_exact())?;
                    if let Some(rate) = step.rate {
                        write!(f, " rate {}", rate.to_exact())?;
                    }
                    if let Some(delay) = step.delay {
                        write!(f, " delay {}", delay.to_exact())?;
                    }
                    if let Some(up) = step.up {
                        f.write_str(if up { " up" } else { " down" })?;
                    }
                }
                every.map_or(Ok(()), |every| write!(f, ", every {}", every.to_exact()))
            }
            Changes::Handover(Handover { interval, delay_min, delay_max, outage }) => {
                let [interval, min, max, outage] =
                    [interval, delay_min, delay_max, outage].map(|time| time.to_exact());
                write!(f, "handover {interval} delay {min} {max} outage {outage}")
            }
            Changes::Trace(trace) => write!(f, "trace {trace}"),
            Changes::TraceFile(path) => write!(f, "trace file:{path}"),
        }
    }
}

impl std::str::FromStr for Changes {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let example = "5s rate 1mbit, 10s rate 10mbit; outage 200ms every 15s; handover 15s delay 20ms 40ms outage \
                       30ms; or trace file:PATH";
        let mut words = Reader::new("changes", example, text);
        let changes = if words.keyword("outage") {
            let outage: Duration = words.value("length of the outage")?;
            let Some(every) = words.after::<Duration>("every")? else {
                return Err(words.error("`every` and a time must follow"));
            };
            let step =
                Step { at: every.saturating_sub(outage), up: Some(false), ..Step::default() };
            Changes::Steps(Steps { steps: vec![step], every: Some(every) })
        } else if words.keyword("handover") {
            let interval = words.value("interval")?;
            if !words.keyword("delay") {
                return Err(words.error("`delay` with its shortest and longest must follow"));
            }
            let delay_min = words.value("shortest delay")?;
            let delay_max = words.optional("longest delay")?.unwrap_or(delay_min);
            let outage = words.after("outage")?.unwrap_or_default();
            Changes::Handover(Handover { interval, delay_min, delay_max, outage })
        } else if words.keyword("trace") {
            let source: String = words.value("trace")?;
            match source.strip_prefix("file:").filter(|path| !path.is_empty()) {
                Some(path) => Changes::TraceFile(path.into()),
                None => Changes::Trace(
                    source
                        .parse()
                        .map_err(|error: super::TraceError| words.error(error.to_string()))?,
                ),
            }
        } else {
            return Ok(Changes::Steps(steps(text)?));
        };
        words.end()?;
        Ok(changes)
    }
}

words_serde!(Changes);

impl Changes {
    /// Whether the changes give the path a delay at some time.
    pub(super) fn delays(&self) -> bool {
        match self {
            Changes::Steps(steps) => steps
                .steps
                .iter()
                .any(|step| step.delay.is_some_and(|delay| delay > Duration::ZERO)),
            Changes::Handover(handover) => handover.delay_max > Duration::ZERO,
            Changes::Trace(_) | Changes::TraceFile(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{evenly, link, refused, run};
    use super::super::{Link, Packet};
    use crate::units::{Bytes, Duration, Instant};

    /// Bytes that depart in each second from a queue that is never empty.
    fn each_second(words: &str, seconds: usize) -> Vec<u64> {
        let mut link: Link<usize> = link(words, 1);
        let packets =
            (0..seconds as u64 * 2000).map(|_| (Instant::ZERO, Packet::from(Bytes::new(1250))));
        let mut bytes = vec![0; seconds];
        for departure in run(&mut link, packets).departures {
            if let Some(second) =
                bytes.get_mut((departure.at.as_nanos().saturating_sub(1) / 1_000_000_000) as usize)
            {
                *second += 1250;
            }
        }
        bytes
    }

    #[test]
    fn steps_change_the_rate_when_they_say() {
        let words =
            "rate = '8mbit'\nqueue = '1GB'\nchanges = '1s rate 4mbit, 2s down, 3s up, every 4s'";
        assert_eq!(
            each_second(words, 9),
            [1_000_000, 500_000, 0, 500_000, 1_000_000, 500_000, 0, 500_000, 1_000_000]
        );
    }

    #[test]
    fn an_outage_holds_packets_and_loses_none() {
        let words = "rate = '8mbit'\nqueue = '1GB'\nchanges = 'outage 200ms every 1s'";
        assert_eq!(each_second(words, 4), [800_000; 4]);
        let outcome = run(&mut link(words, 1), evenly(500, Duration::from_millis(10)));
        assert_eq!(outcome.departures.len(), 500);
    }

    #[test]
    fn a_trace_carries_its_packets_at_its_times_again_and_again() {
        // 1500 bytes at 1 ms, 1500 at 4 ms and twice at 10 ms: 6000 bytes in 10 ms.
        let words = "queue = '1GB'\nchanges = 'trace 1,4,10,10'";
        let mut link: Link<usize> = link(words, 1);
        let outcome =
            run(&mut link, (0..8).map(|_| (Instant::ZERO, Packet::from(Bytes::new(1500)))));
        let at: Vec<u64> =
            outcome.departures.iter().map(|one| one.at.as_nanos() / 1_000_000).collect();
        assert_eq!(at, [1, 4, 10, 10, 11, 14, 20, 20]);
        assert_eq!(link.rate(), Some("4.8mbit".parse().unwrap()));
    }

    #[test]
    fn handovers_change_the_delay_within_its_bounds() {
        let words = "rate = '10mbit'\nchanges = 'handover 1s delay 20ms 40ms outage 50ms'";
        let outcome = run(&mut link(words, 4), evenly(10_000, Duration::from_millis(2)));
        let delay = |one: &super::super::Departure<usize>| {
            one.at
                .since(Instant::ZERO + Duration::from_millis(2 * (one.item as u64 + 1)))
                .saturating_sub(one.queued)
        };
        let mut delays: Vec<u64> =
            outcome.departures.iter().map(|one| delay(one).as_nanos() / 1000).collect();
        assert!(
            delays.iter().all(|micros| (20_000..=41_201).contains(micros)),
            "{:?}",
            delays.iter().max()
        );
        delays.sort_unstable();
        delays.dedup();
        assert!(delays.len() >= 15, "a delay for each of 20 intervals: {}", delays.len());
    }

    #[test]
    fn changes_that_cannot_be_are_refused() {
        for (words, says) in [
            ("changes = 'every 5s'", "there is none"),
            ("changes = '5s rate 1mbit'", "need a `rate`"),
            (
                "rate = '1mbit'\nchanges = '5s rate 1mbit, 5s rate 2mbit'",
                "later than the one before",
            ),
            ("rate = '1mbit'\nchanges = '5s'", "says no rate"),
            ("rate = '1mbit'\nchanges = '0s down, every 5s'", "down all the time"),
            ("rate = '1mbit'\nchanges = '5s down, every 2s'", "later than the last"),
            ("rate = '1mbit'\nchanges = 'trace 1,2'", "the trace is the rate"),
            ("changes = 'trace 5,2'", "earlier than the line before"),
            ("changes = 'trace 0,0'", "at least 1 ms"),
            ("changes = 'trace file:x'", "no x here"),
            ("rate = '1mbit'\nchanges = 'handover 1s delay 5ms 2ms'", "longer than the longest"),
            ("rate = '1mbit'\nchanges = 'outage 5s'", "`every`"),
        ] {
            let error = refused(words);
            assert!(error.contains(says), "{words}: {error}");
        }
    }
}
