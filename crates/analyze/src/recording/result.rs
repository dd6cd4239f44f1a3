//! The result of another program's test as the input: JSON of iperf3 or ndt7.

use super::{Lines, Recorded};
use crate::drive::End;
use crate::error::Error;
use fullpipe_flow::capture::ReadError;
use fullpipe_flow::diagnosis::live::connections_of_results;
use fullpipe_flow::{Config, Counts};
use fullpipe_model::observe::tool_result::{self, ParseResultError};
use std::io::Read;

/// A result of a day of iperf3 with one stream has 30 MB.
const BYTES_MOST: u64 = 64 << 20;

/// Reads and diagnoses a result.
pub(super) fn read(name: String, lines: Lines, config: &Config) -> Recorded {
    let mut counts = Counts::default();
    let mut whole = Vec::new();
    if let Err(cause) = lines.take(BYTES_MOST + 1).read_to_end(&mut whole) {
        let errors = vec![Error::Read { name, cause: ReadError::Source(cause) }];
        return (Vec::new(), End { counts, errors });
    }
    let sockets = match () {
        () if whole.len() as u64 > BYTES_MOST => Err(ParseResultError::Long),
        () => tool_result::read(&String::from_utf8_lossy(&whole)),
    };
    let mut sockets = match sockets {
        Ok(sockets) => sockets,
        Err(cause) => {
            let errors = vec![Error::Result { name, cause }];
            return (Vec::new(), End { counts, errors });
        }
    };
    counts.samples = sockets.iter().map(|socket| socket.samples.len() as u64).sum();
    if let Some(filter) = &config.filter {
        sockets.retain(|socket| {
            let first = socket.samples.first();
            first.is_some_and(|sample| filter.matches(sample.local, sample.remote))
        });
    }
    let end = End { counts, errors: Vec::new() };
    (connections_of_results(sockets, config.trace), end)
}
