//! Columns as bare numbers, the unit in the column's name: quantities of the model serialise as text (`50ms`), which is
//! right for scenario files and wrong for rows.

macro_rules! column {
    ($name:ident, $optional:ident, $type:ty, $to:expr, $from:expr) => {
        pub mod $name {
            use fullpipe_model::units::*;
            use serde::{Deserialize, Deserializer, Serializer};

            pub fn serialize<S: Serializer>(value: &$type, s: S) -> Result<S::Ok, S::Error> {
                let to: fn($type) -> u64 = $to;
                s.serialize_u64(to(*value))
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<$type, D::Error> {
                let from: fn(u64) -> $type = $from;
                u64::deserialize(d).map(from)
            }
        }

        #[allow(dead_code, reason = "one pair per unit; not every unit has an optional column yet")]
        pub mod $optional {
            use fullpipe_model::units::*;
            use serde::{Deserialize, Deserializer, Serializer};

            pub fn serialize<S: Serializer>(value: &Option<$type>, s: S) -> Result<S::Ok, S::Error> {
                let to: fn($type) -> u64 = $to;
                match value {
                    Some(value) => s.serialize_some(&to(*value)),
                    None => s.serialize_none(),
                }
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<$type>, D::Error> {
                let from: fn(u64) -> $type = $from;
                Ok(Option::<u64>::deserialize(d)?.map(from))
            }
        }
    };
}

column!(instant, instant_optional, Instant, Instant::as_nanos, Instant::from_nanos);
column!(micros, micros_optional, Duration, Duration::as_micros, Duration::from_micros);
column!(bytes, bytes_optional, Bytes, Bytes::get, Bytes::new);
column!(window, window_optional, Window, |w| w.bytes().get(), |n| Window::new(Bytes::new(n)));
column!(rate, rate_optional, Rate, Rate::bits_per_sec, Rate::from_bits_per_sec);
