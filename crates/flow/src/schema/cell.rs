//! A value in a row, and how CSV and JSON write it.

use crate::account::AccountPart;
use crate::limit::{Candidate, Reason};
use fullpipe_model::change::Change;
use fullpipe_model::observe::Wait;
use fullpipe_model::units::{Bytes, Duration, Rate, Window};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Write;

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word, a name or a sentence.
    Text,
    /// A count, or a quantity in the unit that the column's name says: an unsigned 64-bit integer.
    Number,
    /// A fraction or a ratio: a double.
    Fraction,
    /// True or false.
    Boolean,
    /// Several words: an array in JSON, with spaces between them elsewhere.
    Words,
    /// Several sentences: an array in JSON, with `; ` between them elsewhere.
    Texts,
    /// An array of objects: the same as the text of JSON in Parquet and Arrow.
    Objects,
}

impl Kind {
    /// In words, for tables of columns.
    pub const fn words(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Number => "integer",
            Kind::Fraction => "double",
            Kind::Boolean => "boolean",
            Kind::Words => "words",
            Kind::Texts => "texts",
            Kind::Objects => "objects",
        }
    }
}

/// A value in a row. What the evidence does not tell is absent: `null` in JSON and Parquet, empty
/// in CSV.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'r> {
    /// Of [`Kind::Text`].
    Text(Option<Cow<'r, str>>),
    /// Of [`Kind::Number`].
    Number(Option<u64>),
    /// Of [`Kind::Fraction`].
    Fraction(Option<f64>),
    /// Of [`Kind::Boolean`].
    Boolean(Option<bool>),
    /// Of [`Kind::Words`].
    Words(Vec<&'static str>),
    /// Of [`Kind::Texts`].
    Texts(&'r [String]),
    /// Of [`Kind::Objects`].
    Candidates(&'r [Candidate]),
    /// Of [`Kind::Objects`].
    Reasons(&'r [Reason]),
    /// Of [`Kind::Objects`].
    Changes(&'r [Change]),
    /// Of [`Kind::Objects`].
    Waits(&'r [Wait]),
    /// Of [`Kind::Objects`].
    Parts(&'r [AccountPart]),
}

impl<'r> Cell<'r> {
    /// A word that is there.
    pub fn text(text: impl Into<Cow<'r, str>>) -> Self {
        Cell::Text(Some(text.into()))
    }

    /// A word that may not be there.
    pub fn word(text: Option<impl Into<Cow<'r, str>>>) -> Self {
        Cell::Text(text.map(Into::into))
    }

    /// What a row of a flat format has where there is nothing to say.
    pub const fn absent(kind: Kind) -> Self {
        match kind {
            Kind::Number => Cell::Number(None),
            Kind::Fraction => Cell::Fraction(None),
            Kind::Boolean => Cell::Boolean(None),
            Kind::Text | Kind::Words | Kind::Texts | Kind::Objects => Cell::Text(None),
        }
    }

    /// A count.
    pub fn number(number: impl Into<u64>) -> Self {
        Cell::Number(Some(number.into()))
    }

    /// Microseconds.
    pub fn micros(time: impl Into<Option<Duration>>) -> Self {
        Cell::Number(time.into().map(Duration::as_micros))
    }

    /// Bytes.
    pub fn bytes(amount: impl Into<Option<Bytes>>) -> Self {
        Cell::Number(amount.into().map(Bytes::get))
    }

    /// Bytes of a window.
    pub fn window(window: impl Into<Option<Window>>) -> Self {
        Cell::Number(window.into().map(|window| window.bytes().get()))
    }

    /// Bits a second.
    pub fn rate(rate: impl Into<Option<Rate>>) -> Self {
        Cell::Number(rate.into().map(Rate::bits_per_sec))
    }

    /// A fraction.
    pub fn fraction(fraction: impl Into<Option<f64>>) -> Self {
        Cell::Fraction(fraction.into())
    }

    /// What the cells of its column are.
    pub const fn kind(&self) -> Kind {
        match self {
            Cell::Text(_) => Kind::Text,
            Cell::Number(_) => Kind::Number,
            Cell::Fraction(_) => Kind::Fraction,
            Cell::Boolean(_) => Kind::Boolean,
            Cell::Words(_) => Kind::Words,
            Cell::Texts(_) => Kind::Texts,
            Cell::Candidates(_)
            | Cell::Reasons(_)
            | Cell::Changes(_)
            | Cell::Waits(_)
            | Cell::Parts(_) => Kind::Objects,
        }
    }

    /// A cell of words, sentences or objects as the one text that rows have; others as they are.
    pub fn joined(self) -> Self {
        match self {
            Cell::Words(words) => Cell::text(words.join(" ")),
            Cell::Texts(texts) => Cell::text(texts.join("; ")),
            Cell::Candidates(_)
            | Cell::Reasons(_)
            | Cell::Changes(_)
            | Cell::Waits(_)
            | Cell::Parts(_) => Cell::Text(serde_json::to_string(&self).ok().map(Cow::Owned)),
            other => other,
        }
    }

    /// Appends the cell as CSV has it (RFC 4180): quoted where it must be, empty where absent.
    pub fn push_csv(&self, line: &mut String) {
        match self {
            // Nearly all cells of very many rows: formatting is most of what a short connection
            // costs.
            Cell::Number(Some(number)) => push_digits(*number, line),
            Cell::Number(None) | Cell::Fraction(None) | Cell::Text(None) | Cell::Boolean(None) => {}
            // Exact, where formatting falls back to arbitrary precision.
            Cell::Fraction(Some(0.0)) => line.push_str("0.0000"),
            Cell::Fraction(Some(1.0)) => line.push_str("1.0000"),
            Cell::Fraction(Some(fraction)) => {
                // A string takes whatever is written.
                let _ = write!(line, "{fraction:.4}");
            }
            Cell::Boolean(Some(is)) => line.push_str(if *is { "true" } else { "false" }),
            Cell::Text(Some(text)) => push_quoted(text, line),
            Cell::Words(words) => push_quoted(&words.join(" "), line),
            Cell::Texts(texts) => push_quoted(&texts.join("; "), line),
            Cell::Candidates(_)
            | Cell::Reasons(_)
            | Cell::Changes(_)
            | Cell::Waits(_)
            | Cell::Parts(_) => {}
        }
    }
}

fn push_quoted(text: &str, line: &mut String) {
    if text.contains(['"', ',', '\n', '\r']) {
        line.push('"');
        line.push_str(&text.replace('"', "\"\""));
        line.push('"');
    } else {
        line.push_str(text);
    }
}

fn push_digits(mut number: u64, line: &mut String) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    line.extend(digits[start..].iter().map(|digit| char::from(*digit)));
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Text(text) => text.serialize(s),
            Cell::Number(number) => number.serialize(s),
            Cell::Parts(parts) => parts.serialize(s),
            Cell::Fraction(fraction) => fraction.serialize(s),
            Cell::Boolean(is) => is.serialize(s),
            Cell::Words(words) => words.serialize(s),
            Cell::Texts(texts) => texts.serialize(s),
            Cell::Candidates(candidates) => candidates.serialize(s),
            Cell::Reasons(reasons) => reasons.serialize(s),
            Cell::Changes(changes) => changes.serialize(s),
            Cell::Waits(waits) => waits.serialize(s),
        }
    }
}
