//! What a field of a row is as a column: its kind, its cell, and how it is read back.

use super::{Cell, Clock, Kind};
use fullpipe_model::limit::Limit;
use fullpipe_model::limit::term::optional as term;
use fullpipe_model::scenario::LinkEngine;
use fullpipe_model::units::{Bytes, Duration, Rate, Window, column};
use serde::{Deserialize, Deserializer};

/// A type whose values are cells of a column.
pub trait Stored: Sized {
    /// What its cells are.
    const KIND: Kind;
    /// As a cell.
    fn cell(&self) -> Cell<'_>;
    /// From what the cell is in JSON.
    fn read<'de, D: Deserializer<'de>>(d: D) -> Result<Self, D::Error>;
}

macro_rules! stored {
    ($($type:ty: $kind:ident, $read:path, |$value:ident| $cell:expr;)*) => {
        $(impl Stored for $type {
            const KIND: Kind = Kind::$kind;

            fn cell(&self) -> Cell<'_> {
                let $value = self;
                $cell
            }

            fn read<'de, D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                $read(d)
            }
        })*
    };
}

stored! {
    String: Text, Deserialize::deserialize, |text| Cell::text(text.as_str());
    Option<String>: Text, Deserialize::deserialize, |text| Cell::word(text.as_deref());
    Clock: Text, Deserialize::deserialize, |clock| Cell::text(clock.name());
    LinkEngine: Text, Deserialize::deserialize, |engine| Cell::text(engine.name());
    Option<Limit>: Text, term::deserialize, |term| Cell::word(term.map(Limit::name));
    bool: Boolean, Deserialize::deserialize, |is| Cell::Boolean(Some(*is));
    u32: Number, Deserialize::deserialize, |count| Cell::number(*count);
    u64: Number, Deserialize::deserialize, |count| Cell::number(*count);
    f64: Fraction, Deserialize::deserialize, |fraction| Cell::fraction(*fraction);
    Option<f64>: Fraction, Deserialize::deserialize, |fraction| Cell::fraction(*fraction);
    Duration: Number, column::micros::deserialize, |time| Cell::micros(*time);
    Option<Duration>: Number, column::micros_optional::deserialize, |time| Cell::micros(*time);
    Bytes: Number, column::bytes::deserialize, |amount| Cell::bytes(*amount);
    Option<Bytes>: Number, column::bytes_optional::deserialize, |amount| Cell::bytes(*amount);
    Option<Window>: Number, column::window_optional::deserialize, |window| Cell::window(*window);
    Rate: Number, column::rate::deserialize, |rate| Cell::rate(*rate);
    Option<Rate>: Number, column::rate_optional::deserialize, |rate| Cell::rate(*rate);
    Vec<String>: Texts, Deserialize::deserialize, |texts| Cell::Texts(texts);
}
