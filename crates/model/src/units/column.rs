//! Quantities as plain numbers, for fields whose name says the unit: `.._bytes`, `.._bps`, `.._us`,
//! `.._ns`.
//!
//! A scenario file is written by people and says `50ms`; a result is read by programs and says
//! `"rtt_us": 50000`. Every room's results use these helpers, as
//! `#[serde(with = "column::bytes")]`, and the `.._optional` one beside it where the quantity may
//! not be known (`null`).

macro_rules! column {
    ($(#[$doc:meta])* $name:ident, $optional:ident, $quantity:ty, $to:expr, $from:expr) => {
        $(#[$doc])*
        pub mod $name {
            use crate::units::*;
            use serde::{Deserialize, Deserializer, Serializer};

            /// Writes the number.
            pub fn serialize<S: Serializer>(quantity: &$quantity, s: S) -> Result<S::Ok, S::Error> {
                let to: fn($quantity) -> u64 = $to;
                s.serialize_u64(to(*quantity))
            }

            /// Reads the number.
            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<$quantity, D::Error> {
                let from: fn(u64) -> $quantity = $from;
                u64::deserialize(d).map(from)
            }
        }

        $(#[$doc])*
        /// `null` where the quantity is not known.
        pub mod $optional {
            use crate::units::*;
            use serde::{Deserialize, Deserializer, Serializer};

            /// Writes the number, or that there is none.
            pub fn serialize<S: Serializer>(
                quantity: &Option<$quantity>,
                s: S,
            ) -> Result<S::Ok, S::Error> {
                let to: fn($quantity) -> u64 = $to;
                match quantity {
                    Some(quantity) => s.serialize_some(&to(*quantity)),
                    None => s.serialize_none(),
                }
            }

            /// Reads the number, or that there is none.
            pub fn deserialize<'de, D: Deserializer<'de>>(
                d: D,
            ) -> Result<Option<$quantity>, D::Error> {
                let from: fn(u64) -> $quantity = $from;
                Ok(Option::<u64>::deserialize(d)?.map(from))
            }
        }
    };
}

column!(
    /// A moment in nanoseconds, for `.._ns`.
    instant, instant_optional, Instant, Instant::as_nanos, Instant::from_nanos
);
column!(
    /// Whole microseconds, for `.._us`.
    micros, micros_optional, Duration, Duration::as_micros, Duration::from_micros
);
column!(
    /// Whole bytes, for `.._bytes`.
    bytes, bytes_optional, Bytes, Bytes::get, Bytes::new
);
column!(
    /// A window in whole bytes, for `.._bytes`.
    window, window_optional, Window, |window| window.bytes().get(), |bytes| Window::new(Bytes::new(bytes))
);
column!(
    /// Bits per second, for `.._bps`.
    rate, rate_optional, Rate, Rate::bits_per_sec, Rate::from_bits_per_sec
);
