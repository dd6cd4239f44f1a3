//! Quantities as types: no public signature of this workspace has a number without its unit.
//!
//! Parsing is strict where people are careless. `1gbit` and `125MB/s` are rates; `1gb` is an error
//! that says what to write instead, because half of its readers mean bits. `kB` and `MB` are powers
//! of 1000, `KiB` and `MiB` of 1024. Display uses SI units and says bit or byte.
//!
//! ```
//! use fullpipe_model::units::{Bytes, Duration, Rate};
//! let rate: Rate = "1gbit".parse().unwrap();
//! assert_eq!(rate, "125MB/s".parse().unwrap());
//! assert_eq!("6.25MB".parse::<Bytes>().unwrap(), Bytes::new(6_250_000));
//! assert_eq!("146ms".parse::<Duration>().unwrap().to_string(), "146 ms");
//! assert!("1gb".parse::<Rate>().unwrap_err().to_string().contains("gbit"));
//! ```

mod bytes;
pub mod column;
mod number;
mod probability;
mod rate;
mod time;
mod window;
pub(crate) mod written;

pub use bytes::Bytes;
pub use number::ParseError;
pub use probability::Probability;
pub use rate::Rate;
pub use time::{Duration, Instant};
pub use window::Window;

/// Serialises a quantity as the text that parses back to it, for scenario files; deserialises it
/// from a text or a number.
macro_rules! text_serde {
    ($t:ty) => {
        impl serde::Serialize for $t {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.to_exact())
            }
        }
        impl<'de> serde::Deserialize<'de> for $t {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                $crate::units::written::parsed(d)
            }
        }
    };
}
pub(crate) use text_serde;
