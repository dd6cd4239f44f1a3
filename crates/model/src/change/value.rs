//! The value of a setting: a number, three numbers, or a name.

use crate::units::Bytes;

/// The three values of `tcp_rmem` or `tcp_wmem`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct MemTriple {
    /// The size that a socket keeps even under memory pressure.
    pub min: Bytes,
    /// The initial size.
    pub default: Bytes,
    /// The bound of autotuning.
    pub max: Bytes,
}

impl MemTriple {
    /// The three values in bytes.
    pub const fn new(min: u64, default: u64, max: u64) -> Self {
        MemTriple { min: Bytes::new(min), default: Bytes::new(default), max: Bytes::new(max) }
    }
}

/// As in the sysctl: `4096 131072 6291456`.
impl std::fmt::Display for MemTriple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.min.get(), self.default.get(), self.max.get())
    }
}

/// Why a text is not a `tcp_rmem` or `tcp_wmem` value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "memory triple '{text}': not three whole numbers of bytes; write for example 4096 131072 6291456"
)]
pub struct ParseMemTripleError {
    /// The given text.
    pub text: String,
}

impl std::str::FromStr for MemTriple {
    type Err = ParseMemTripleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[min, default, max]) => Ok(MemTriple::new(min, default, max)),
            _ => Err(ParseMemTripleError { text: text.into() }),
        }
    }
}

/// The value of a setting. It is displayed and serialised as the kernel shows it; only its
/// [`Knob`](super::Knob) reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// A whole number; a switch is 1 or 0.
    Number(i64),
    /// Three whole numbers.
    Triple([i64; 3]),
    /// A name.
    Name(String),
}

impl Value {
    /// A switch.
    pub const fn flag(on: bool) -> Value {
        Value::Number(on as i64)
    }

    /// Its number, if it is one.
    pub const fn number(&self) -> Option<i64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Triple(_) | Value::Name(_) => None,
        }
    }

    /// Whether all its numbers are from `least` to `most`.
    pub(super) fn is_within(&self, least: i64, most: i64) -> bool {
        self.numbers().iter().all(|number| (least..=most).contains(number))
    }

    /// Its numbers: none of a name.
    pub const fn numbers(&self) -> &[i64] {
        match self {
            Value::Number(number) => std::slice::from_ref(number),
            Value::Triple(numbers) => numbers,
            Value::Name(_) => &[],
        }
    }

    /// Its size in bytes, if it is one.
    pub fn bytes(&self) -> Option<Bytes> {
        self.number()?.try_into().ok().map(Bytes::new)
    }

    /// Its three sizes in bytes, if it has them.
    pub fn triple(&self) -> Option<MemTriple> {
        let Value::Triple(numbers) = self else { return None };
        let [min, default, max] = numbers.map(|number| u64::try_from(number).ok());
        Some(MemTriple::new(min?, default?, max?))
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Value {
        Value::Number(signed(bytes))
    }
}

impl From<MemTriple> for Value {
    fn from(triple: MemTriple) -> Value {
        Value::Triple([triple.min, triple.default, triple.max].map(signed))
    }
}

/// No sysctl holds more.
fn signed(bytes: Bytes) -> i64 {
    i64::try_from(bytes.get()).unwrap_or(i64::MAX)
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Number(number) => number.fmt(f),
            Value::Triple([least, middle, most]) => write!(f, "{least} {middle} {most}"),
            Value::Name(name) => f.write_str(name),
        }
    }
}

impl serde::Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_read_what_proc_shows() {
        assert_eq!("4096\t131072\t6291456\n".parse(), Ok(MemTriple::new(4096, 131_072, 6_291_456)));
        assert_eq!(MemTriple::new(4096, 131_072, 6_291_456).to_string(), "4096 131072 6291456");
        for bad in ["", "4096", "4096 1 2 3", "4096 -1 3", "a b c", "99999999999999999999 1 1"] {
            assert!(bad.parse::<MemTriple>().unwrap_err().to_string().contains(bad), "{bad}");
        }
    }

    #[test]
    fn sizes_survive() {
        let triple = MemTriple::new(4096, 131_072, 6_291_456);
        assert_eq!(Value::from(triple).triple(), Some(triple));
        assert_eq!(Value::from(Bytes::new(7)).bytes(), Some(Bytes::new(7)));
        assert_eq!((Value::Number(-1).bytes(), Value::Triple([1, 2, -3]).triple()), (None, None));
        assert_eq!(Value::from(Bytes::MAX), Value::Number(i64::MAX));
    }
}
