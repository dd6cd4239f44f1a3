//! How much worse a figure may get: `goodput:-2%`, `rtt_p99:+2ms`, `retransmission:+10`.

use super::Change;
use super::figure::{FIGURES, Figure, Worse, number};
use super::noise::Noise;
use std::fmt;
use std::str::FromStr;

/// A bound on the change of a figure from A to B.
///
/// The sign gives the direction; without a sign it is the direction that is worse for the figure. A
/// change that noise explains is within every bound; if the noise is unknown, the change counts.
///
/// ```
/// use fullpipe_report::runs::compare::Bound;
/// let bound: Bound = "goodput:-2%".parse().unwrap();
/// assert_eq!(bound.to_string(), "goodput:-2%");
/// let wrong = "goodput:+2%".parse::<Bound>().unwrap_err();
/// assert!(wrong.to_string().contains("less is worse"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    text: String,
    figure: &'static Figure,
    /// Whether it bounds an increase.
    up: bool,
    most: Most,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Most {
    /// As a fraction of A.
    Relative(f64),
    /// In the figure's unit.
    Absolute(f64),
}

/// Why a text is not a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundError(String);

impl fmt::Display for BoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BoundError {}

impl FromStr for Bound {
    type Err = BoundError;

    fn from_str(text: &str) -> Result<Bound, BoundError> {
        let wrong = |problem: String| BoundError(format!("bound '{text}': {problem}"));
        let (name, rest) = text.split_once(':').ok_or_else(|| {
            wrong("write FIGURE:CHANGE, for example goodput:-2% or rtt_p99:+2ms".into())
        })?;
        let figure = Figure::named(name.trim()).ok_or_else(|| {
            let names: Vec<_> = FIGURES.iter().map(Figure::short).collect();
            wrong(format!("no figure '{name}'; there are {}", names.join(", ")))
        })?;
        let rest = rest.trim();
        let (sign, amount) = match rest.as_bytes() {
            [b'+', ..] => (Some(true), &rest[1..]),
            [b'-', ..] => (Some(false), &rest[1..]),
            _ => (None, rest),
        };
        let up = match (figure.worse(), sign) {
            (Worse::Less, None | Some(false)) => false,
            (Worse::More, None | Some(true)) => true,
            (Worse::Neither, Some(up)) => up,
            (Worse::Neither, None) => {
                return Err(wrong(
                    "neither more nor less of it is worse: say which by + or -".into(),
                ));
            }
            (Worse::Less, _) => return Err(wrong("of this figure less is worse: write -".into())),
            (Worse::More, _) => return Err(wrong("of this figure more is worse: write +".into())),
        };
        let most = match amount.strip_suffix('%') {
            Some(percent) => {
                let percent =
                    number(percent.trim()).ok_or_else(|| wrong("no number before the %".into()))?;
                Most::Relative(percent / 100.0)
            }
            None => {
                Most::Absolute(figure.amount(amount).map_err(|error| wrong(error.to_string()))?)
            }
        };
        Ok(Bound { text: text.into(), figure, up, most })
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Bound {
    /// Whether `change` exceeds it.
    pub fn is_exceeded(&self, change: &Change) -> bool {
        let towards = if self.up { change.change } else { -change.change };
        let beyond = match self.most {
            Most::Absolute(most) => towards > most,
            // Any amount is more than any share of nothing.
            Most::Relative(most) => {
                change.relative.map_or(towards > 0.0, |part| part.abs() > most && towards > 0.0)
            }
        };
        *change.figure == *self.figure && change.noise != Noise::Within && beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn change(figure: &str, a: f64, b: f64, noise: Noise) -> Change {
        Change::new("row".into(), Figure::named(figure).unwrap(), &[a], &[b], noise)
    }

    fn exceeded(bound: &str, figure: &str, a: f64, b: f64) -> bool {
        bound.parse::<Bound>().unwrap().is_exceeded(&change(figure, a, b, Noise::None))
    }

    #[test]
    fn a_bound_is_exceeded_the_worse_way_only() {
        assert!(exceeded("goodput:-2%", "goodput", 100.0, 97.0));
        assert!(
            !exceeded("goodput:-2%", "goodput", 100.0, 98.0)
                && !exceeded("goodput:-2%", "goodput", 100.0, 150.0)
        );
        assert!(exceeded("goodput:2%", "goodput", 100.0, 97.0));
        assert!(exceeded("rtt_p99_us:+1ms", "rtt_p99", 1000.0, 2001.0));
        assert!(!exceeded("rtt_p99:+1ms", "rtt_p99", 1000.0, 2000.0));
        assert!(exceeded("retransmission:+10%", "retransmission", 0.0, 1.0), "from nothing");
        assert!(!exceeded("retransmission:+10", "retransmission", 0.0, 1.0));
        assert!(exceeded("window_max:-1KiB", "window_max", 4096.0, 2048.0));
        assert!(!exceeded("goodput:-2%", "body", 100.0, 1.0), "another figure");
    }

    #[test]
    fn noise_excuses_and_its_absence_does_not() {
        let bound: Bound = "goodput:-2%".parse().unwrap();
        for (noise, is_exceeded) in [
            (Noise::Within, false),
            (Noise::Beyond, true),
            (Noise::Unknown, true),
            (Noise::None, true),
        ] {
            assert_eq!(
                bound.is_exceeded(&change("goodput", 100.0, 50.0, noise)),
                is_exceeded,
                "{noise:?}"
            );
        }
    }

    #[test]
    fn what_is_no_bound_says_what_to_write() {
        for (text, hint) in [
            ("goodput", "FIGURE:CHANGE"),
            ("speed:-2%", "goodput"),
            ("goodput:+2%", "less is worse"),
            ("rtt_p50:-2%", "more is worse"),
            ("window_max:2%", "+ or -"),
            ("goodput:-%", "no number"),
            ("goodput:-2", "no unit"),
            ("retransmission:+x", "10"),
        ] {
            let error = text.parse::<Bound>().unwrap_err().to_string();
            assert!(error.contains(hint) && error.contains(text), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_bound_or_an_error(text in ".{0,40}") {
            let _ = text.parse::<Bound>();
        }

        #[test]
        fn a_wider_bound_is_never_stricter(a in 0.0..1e9f64, b in 0.0..1e9f64, narrow in 0u32..100, more in 0u32..100) {
            let wide = format!("goodput:-{}%", narrow + more);
            let narrow = format!("goodput:-{narrow}%");
            prop_assert!(!exceeded(&wide, "goodput", a, b) || exceeded(&narrow, "goodput", a, b));
        }
    }
}
