//! Queueing disciplines: which packets a queue drops or marks to signal congestion.
//!
//! Every discipline except drop-tail and the policer marks a packet that is ECN-capable where it
//! would drop another (RFC 3168), unless it has `noecn`. tc's codel and red mark only with `ecn`;
//! ours mark unless told otherwise.

use super::grammar::{Reader, WordsError, words_serde};
use super::limit::QueueLimit;
use crate::units::{Bytes, Duration, Probability};
use std::num::NonZeroU32;

/// A queueing discipline.
///
/// Text: `droptail`, `police`, `mark LIMIT`,
/// `codel [target T] [interval T] [ce_threshold T] [noecn]`,
/// `fq_codel [flows N] [quantum SIZE] [target T] [interval T] [ce_threshold T] [noecn]` or
/// `red [min SIZE] [max SIZE] [probability P] [burst N] [noecn]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Discipline {
    /// Accepts packets while there is room.
    #[default]
    DropTail,
    /// A token bucket (RFC 2697's committed rate and burst): packets that find no tokens are
    /// dropped, the others pass without waiting. The link's rate fills the bucket, and the queue's
    /// size is its size.
    Police,
    /// Drop-tail that marks ECN-capable packets if more than this is waiting (the step of DCTCP,
    /// RFC 8257).
    Mark(QueueLimit),
    /// RFC 8289.
    Codel(Codel),
    /// RFC 8290.
    FqCodel(FqCodel),
    /// Floyd and Jacobson's random early detection (RFC 2309).
    Red(Red),
}

/// Controlled delay (RFC 8289): drops at the head once packets have waited for longer than the
/// target for an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codel {
    /// Acceptable standing queue.
    pub target: Duration,
    /// A worst-case round trip.
    pub interval: Duration,
    /// Marks every ECN-capable packet that waited for longer than this.
    pub ce_threshold: Option<Duration>,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Codel {
    fn default() -> Self {
        Codel {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ce_threshold: None,
            ecn: true,
        }
    }
}

/// A CoDel queue for each flow, served in turn by deficit round robin, new flows first (RFC 8290).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqCodel {
    /// Queues that flows are hashed into.
    pub flows: NonZeroU32,
    /// Bytes that a queue may send in its turn.
    pub quantum: Bytes,
    /// The CoDel parameters of each queue.
    pub codel: Codel,
}

impl Default for FqCodel {
    fn default() -> Self {
        FqCodel {
            flows: NonZeroU32::MIN.saturating_add(1023),
            quantum: Bytes::new(1514),
            codel: Codel::default(),
        }
    }
}

/// Random early detection: the averaged queue between `min` and `max` gives the probability of a
/// drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Red {
    /// Averaged bytes below which nothing is dropped; `None`: a third of `max`.
    pub min: Option<Bytes>,
    /// Averaged bytes from which everything is dropped; `None`: a quarter of the queue's room.
    pub max: Option<Bytes>,
    /// Probability of a drop just below `max`.
    pub probability: Probability,
    /// Packets of a burst that passes; `None`: (2 min + max) / 3 in packets of 1000 bytes.
    pub burst: Option<NonZeroU32>,
    /// Marks ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Red {
    fn default() -> Self {
        Red {
            min: None,
            max: None,
            probability: Probability::new(0.02).unwrap_or_default(),
            burst: None,
            ecn: true,
        }
    }
}

impl Discipline {
    /// Its name, as in its text.
    pub fn name(&self) -> &'static str {
        match self {
            Discipline::DropTail => "droptail",
            Discipline::Police => "police",
            Discipline::Mark(_) => "mark",
            Discipline::Codel(_) => "codel",
            Discipline::FqCodel(_) => "fq_codel",
            Discipline::Red(_) => "red",
        }
    }
}

/// Reads one of CoDel's words into `codel`; false if the next word is not one.
fn codel_word(words: &mut Reader<'_>, codel: &mut Codel) -> Result<bool, WordsError> {
    if let Some(target) = words.after("target")? {
        codel.target = target;
    } else if let Some(interval) = words.after("interval")? {
        codel.interval = interval;
    } else if let Some(threshold) = words.after("ce_threshold")? {
        codel.ce_threshold = Some(threshold);
    } else {
        return ecn_word(words, &mut codel.ecn);
    }
    Ok(true)
}

fn ecn_word(words: &mut Reader<'_>, ecn: &mut bool) -> Result<bool, WordsError> {
    if words.keyword("ecn") {
        *ecn = true;
    } else if words.keyword("noecn") {
        *ecn = false;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn fq_codel_word(words: &mut Reader<'_>, fq: &mut FqCodel) -> Result<bool, WordsError> {
    if let Some(flows) = words.after("flows")? {
        fq.flows = flows;
    } else if let Some(quantum) = words.after("quantum")? {
        fq.quantum = quantum;
    } else {
        return codel_word(words, &mut fq.codel);
    }
    Ok(true)
}

fn red_word(words: &mut Reader<'_>, red: &mut Red) -> Result<bool, WordsError> {
    if let Some(min) = words.after("min")? {
        red.min = Some(min);
    } else if let Some(max) = words.after("max")? {
        red.max = Some(max);
    } else if let Some(probability) = words.after("probability")? {
        red.probability = probability;
    } else if let Some(burst) = words.after("burst")? {
        red.burst = Some(burst);
    } else {
        return ecn_word(words, &mut red.ecn);
    }
    Ok(true)
}

impl std::fmt::Display for Codel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, " target {} interval {}", self.target.to_exact(), self.interval.to_exact())?;
        if let Some(threshold) = self.ce_threshold {
            write!(f, " ce_threshold {}", threshold.to_exact())?;
        }
        if self.ecn { Ok(()) } else { f.write_str(" noecn") }
    }
}

impl std::fmt::Display for Discipline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())?;
        match self {
            Discipline::DropTail | Discipline::Police => Ok(()),
            Discipline::Mark(limit) => write!(f, " {limit}"),
            Discipline::Codel(codel) => codel.fmt(f),
            Discipline::FqCodel(fq) => {
                write!(f, " flows {} quantum {}{}", fq.flows, fq.quantum.to_exact(), fq.codel)
            }
            Discipline::Red(red) => {
                if let Some(min) = red.min {
                    write!(f, " min {}", min.to_exact())?;
                }
                if let Some(max) = red.max {
                    write!(f, " max {}", max.to_exact())?;
                }
                write!(f, " probability {}", red.probability)?;
                if let Some(burst) = red.burst {
                    write!(f, " burst {burst}")?;
                }
                if red.ecn { Ok(()) } else { f.write_str(" noecn") }
            }
        }
    }
}

impl std::str::FromStr for Discipline {
    type Err = WordsError;

    fn from_str(text: &str) -> Result<Self, WordsError> {
        let example = "droptail, police, mark 30kB, codel target 5ms, fq_codel, or red min 30kB max 90kB probability 10%";
        let mut words = Reader::new("discipline", example, text);
        let discipline = match words.next() {
            Some("droptail") => Discipline::DropTail,
            Some("police") => Discipline::Police,
            Some("mark") => Discipline::Mark(words.value("threshold")?),
            Some("codel") => {
                let mut codel = Codel::default();
                while codel_word(&mut words, &mut codel)? {}
                Discipline::Codel(codel)
            }
            Some("fq_codel") => {
                let mut fq = FqCodel::default();
                while fq_codel_word(&mut words, &mut fq)? {}
                Discipline::FqCodel(fq)
            }
            Some("red") => {
                let mut red = Red::default();
                while red_word(&mut words, &mut red)? {}
                Discipline::Red(red)
            }
            _ => {
                return Err(
                    words.error("there are droptail, police, mark, codel, fq_codel and red")
                );
            }
        };
        words.end()?;
        Ok(discipline)
    }
}

words_serde!(Discipline);
