//! The words of a path and the files that they name: any bytes are read or refused with a reason,
//! and what is read is written and read again the same.
#![no_main]

use fullpipe_model::link::rule::Match;
use fullpipe_model::link::{
    Chance, Changes, Delay, Discipline, Loss, QueueLimit, RateWords, Reorder, Slot, Table, Trace,
};
use libfuzzer_sys::fuzz_target;
use std::fmt::{Debug, Display};
use std::str::FromStr;

fn reads_back<T: FromStr<Err: Display> + Display + PartialEq + Debug>(text: &str) {
    match text.parse::<T>() {
        Ok(read) => {
            let written = read.to_string();
            let again = written
                .parse::<T>()
                .unwrap_or_else(|error| panic!("'{written}' of '{text}': {error}"));
            assert_eq!(again, read, "'{written}' of '{text}'");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&which, rest)) = bytes.split_first() else { return };
    match which {
        b't' => match Trace::parse(rest) {
            // A lap that takes no time would have a transmitter search for ever.
            Ok(trace) => assert!(trace.period().as_nanos() > 0),
            Err(error) => assert!(!error.to_string().is_empty()),
        },
        b'd' => match Table::parse(rest) {
            Ok(table) => assert!(!table.values().is_empty()),
            Err(error) => assert!(!error.to_string().is_empty()),
        },
        _ => {
            let Ok(text) = std::str::from_utf8(rest) else { return };
            match which {
                b'0' => reads_back::<Delay>(text),
                b'1' => reads_back::<Loss>(text),
                b'2' => reads_back::<Chance>(text),
                b'3' => reads_back::<Reorder>(text),
                b'4' => reads_back::<Slot>(text),
                b'5' => reads_back::<Discipline>(text),
                b'6' => reads_back::<QueueLimit>(text),
                b'7' => reads_back::<Match>(text),
                b'8' => reads_back::<RateWords>(text),
                _ => reads_back::<Changes>(text),
            }
        }
    }
});
