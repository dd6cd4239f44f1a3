//! Values as people write them in TOML and JSON: a number means the same bare or as a text.

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use std::str::FromStr;

/// A number or a text, as text: `1500` and `"1500"` are the same. The type that parses the text
/// decides what it means and whether it needs a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NumberOrText(String);

impl<'de> serde::Deserialize<'de> for NumberOrText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Written { expecting: "a number or a text", whole: false })
    }
}

/// A value that is parsed from a number or a text.
pub(crate) fn parsed<'de, T, D>(d: D) -> Result<T, D::Error>
where
    T: FromStr<Err: fmt::Display>,
    D: Deserializer<'de>,
{
    let text = <NumberOrText as serde::Deserialize>::deserialize(d)?;
    text.0.parse().map_err(D::Error::custom)
}

/// Visits a number or text; `whole` refuses fractions.
struct Written {
    expecting: &'static str,
    whole: bool,
}

impl<'de> Visitor<'de> for Written {
    type Value = NumberOrText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NumberOrText, E> {
        Ok(NumberOrText(text.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<NumberOrText, E> {
        Ok(NumberOrText(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<NumberOrText, E> {
        Ok(NumberOrText(number.to_string()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<NumberOrText, E> {
        if self.whole {
            return Err(E::invalid_type(serde::de::Unexpected::Float(number), &self));
        }
        Ok(NumberOrText(number.to_string()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NumberOrText, A::Error> {
        drop(map);
        Err(A::Error::custom(format!(
            "a table where {} belongs; a name with dots in it is one key only in quotes, such as \
             \"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\"",
            self.expecting
        )))
    }
}

/// The text of a sysctl's value, without fractions.
pub(crate) fn whole_or_text<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    const EXPECTING: &str = "a whole number or a text such as \"4096 131072 6291456\"";
    d.deserialize_any(Written { expecting: EXPECTING, whole: true }).map(|written| written.0)
}

/// A whole number, bare or as a text.
pub(crate) fn count<'de, T: FromStr, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    let NumberOrText(text) = serde::Deserialize::deserialize(d)?;
    text.trim().parse().map_err(|_| {
        D::Error::custom(format!("'{text}' is no whole number that fits; write for example 10"))
    })
}

/// The same for an optional key.
pub(crate) fn count_optional<'de, T: FromStr, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    count(d).map(Some)
}

/// A time for which a bare number is seconds, as in `iperf3 -t 10`.
pub(crate) fn seconds_optional<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<super::Duration>, D::Error> {
    let NumberOrText(text) = serde::Deserialize::deserialize(d)?;
    let is_bare = text.trim().ends_with(|c: char| c.is_ascii_digit() || c == '.');
    let text = if is_bare { format!("{}s", text.trim()) } else { text };
    text.parse().map(Some).map_err(D::Error::custom)
}

/// A text that looks like a number: `kernel = 6.10` would mean 6.1.
pub(crate) fn quoted_optional<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    struct Quoted;
    impl Visitor<'_> for Quoted {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text in quotes such as \"6.1\" (without them 6.10 would be 6.1)")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Option<String>, E> {
            Ok(Some(text.into()))
        }
    }
    d.deserialize_any(Quoted)
}
