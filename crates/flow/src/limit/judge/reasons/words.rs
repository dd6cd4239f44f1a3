//! What a trait means, in words with quantities.

use super::chinese;
use crate::language::Language;
use fullpipe_model::units::Duration;

/// What a trait is about. Traits with the same subject say the same about a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Rules,
    Rate,
    Pace,
    Queue,
    Loss,
    LossPattern,
    Timer,
    Window,
    WindowCourse,
    Unread,
    InFlight,
    InFlightCourse,
    Congestion,
    Buffer,
    Idle,
    Writes,
    Acks,
    Length,
    Course,
    Start,
}

/// How a trait's value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A fraction of something.
    Percent,
    /// A multiple of something.
    Times,
    /// The delay of a round trip beyond the path's. The trait is the round trip as a multiple of
    /// the path's.
    QueueingDelay,
    /// A count. The trait is its binary logarithm.
    Count,
    /// Yes (1) or no (0). The argument holds the words for no.
    Holds(&'static str),
}

/// A trait's name and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meaning {
    pub name: &'static str,
    pub subject: Subject,
    form: Form,
    /// `{}` stands for the value.
    says: &'static str,
    /// Words for a source that does not have the number; empty where that says nothing.
    absent: &'static str,
}

impl Meaning {
    pub const fn new(name: &'static str, subject: Subject, form: Form, says: &'static str) -> Self {
        Meaning { name, subject, form, says, absent: "" }
    }

    /// Everything that it may say, with `{}` where the value stands.
    #[cfg(test)]
    pub fn sentences(&self) -> Vec<&'static str> {
        let not = if let Form::Holds(not) = self.form { not } else { "" };
        vec![self.says, self.absent, not]
    }

    /// Adds words for a source that does not have the number.
    pub const fn or(self, absent: &'static str) -> Self {
        Meaning { absent, ..self }
    }

    /// Whether the value says something: a number that a source does not have may say nothing.
    pub fn speaks(&self, value: f64) -> bool {
        self.is_known(value) || !self.absent.is_empty()
    }

    /// A number that a source does not have is negative, and so is a ratio of such a number.
    fn is_known(&self, value: f64) -> bool {
        value >= 0.0 || matches!(self.form, Form::Count | Form::Holds(_))
    }

    /// The value in words, compared with a typical one; nothing where it says nothing. `rtt` is the
    /// round trip of which queueing delays are multiples.
    pub fn words(
        &self,
        value: f64,
        typical: f64,
        rtt: Option<Duration>,
        language: Language,
    ) -> String {
        if let Form::Holds(not) = self.form {
            let [now, typical] =
                [value, typical].map(|value| if value > 0.5 { self.says } else { not });
            let (now, typical) = (in_language(now, language), in_language(typical, language));
            return compared(now, typical, language);
        }
        if !self.is_known(value) {
            return in_language(self.absent, language).into();
        }
        let now = self.written(value, rtt, language);
        let says = in_language(self.says, language).replacen("{}", &now, 1);
        let typical = match (self.is_known(typical), language) {
            (true, _) => self.written(typical, rtt, language),
            (false, Language::English) => "none".into(),
            (false, Language::Chinese) => "无".into(),
        };
        compared(&says, &typical, language)
    }

    fn written(&self, value: f64, rtt: Option<Duration>, language: Language) -> String {
        match self.form {
            Form::Percent if value <= 0.0 => "0 %".into(),
            Form::Percent if value < 0.1 => format!("{:.2} %", value * 100.0),
            Form::Percent => format!("{:.0} %", value * 100.0),
            Form::QueueingDelay => match rtt {
                Some(rtt) => {
                    let delay = rtt.as_secs_f64() * (value - 1.0).max(0.0);
                    let delay = Duration::from_secs_f64(delay);
                    match language {
                        Language::English => format!("{delay} on a path of {rtt}"),
                        Language::Chinese => format!("{delay}（路径往返 {rtt}）"),
                    }
                }
                None => {
                    let part = (value - 1.0).max(0.0);
                    match language {
                        Language::English => format!("{part:.2} of the path's round trip"),
                        Language::Chinese => format!("路径往返时间的 {part:.2}"),
                    }
                }
            },
            Form::Times => format!("{value:.2}"),
            Form::Count => format!("{:.0}", value.exp2()),
            Form::Holds(_) => String::new(),
        }
    }
}

fn in_language(english: &'static str, language: Language) -> &'static str {
    match language {
        Language::English => english,
        Language::Chinese => chinese::says(english),
    }
}

fn compared(says: &str, typical: &str, language: Language) -> String {
    match language {
        Language::English => format!("{says} (typical: {typical})"),
        Language::Chinese => format!("{says}（通常：{typical}）"),
    }
}
