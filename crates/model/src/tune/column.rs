//! Quantities as plain numbers, for fields whose name says the unit: `.._bytes`, `.._bps`, `.._us`.
//!
//! A scenario file is written by people and says `50ms`; a result is read by programs and says `"rtt_us": 50000`. Used
//! as `#[serde(with = "column::bytes")]`.

macro_rules! column {
    ($(#[$doc:meta])* $module:ident, $quantity:ty, $get:path, $new:path) => {
        $(#[$doc])*
        pub mod $module {
            /// Writes the number.
            pub fn serialize<S: serde::Serializer>(quantity: &$quantity, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_u64($get(*quantity))
            }

            /// Reads the number.
            pub fn deserialize<'de, D: serde::Deserializer<'de>>(d: D) -> Result<$quantity, D::Error> {
                <u64 as serde::Deserialize>::deserialize(d).map($new)
            }
        }
    };
}

column!(
    /// Whole bytes, for `.._bytes`.
    bytes,
    crate::units::Bytes,
    crate::units::Bytes::get,
    crate::units::Bytes::new
);
column!(
    /// Bits per second, for `.._bps`.
    bps,
    crate::units::Rate,
    crate::units::Rate::bits_per_sec,
    crate::units::Rate::from_bits_per_sec
);
column!(
    /// Whole microseconds, for `.._us`.
    us,
    crate::units::Duration,
    crate::units::Duration::as_micros,
    crate::units::Duration::from_micros
);
