//! Quantities as plain numbers, for fields with the unit in their names: `.._bytes`, `.._bps`,
//! `.._us`, `.._ns`.
//!
//! People write scenario files, which say `50ms`; programs read results, which say
//! `"rtt_us": 50000`. The results of every crate use these helpers, as
//! `#[serde(with = "column::bytes")]`, and the `.._optional` variant if the quantity may be unknown
//! (`null`).

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
        /// `null` if the quantity is unknown.
        pub mod $optional {
            use crate::units::*;
            use serde::{Deserialize, Deserializer, Serializer};

            /// Writes the number, or `null`.
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

            /// Reads the number, or `null`.
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
    window, window_optional, Window,
    |window| window.bytes().get(), |bytes| Window::new(Bytes::new(bytes))
);
column!(
    /// Bits per second, for `.._bps`.
    rate, rate_optional, Rate, Rate::bits_per_sec, Rate::from_bits_per_sec
);
