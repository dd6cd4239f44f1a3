//! Two captures of the same connections, from two places.

use super::{Analyze, TOP_OF_BOTH, input};
use crate::failure::{Failure, Kind};
use crate::terminal::{answer_layout, print, print_json, remark};
use fullpipe_analyze::Error;
use fullpipe_flow::connection::pair::{PairedCaptures, Pairing, Tap};
use fullpipe_report::connection::both::BothReport;
use serde::Serialize;

/// The JSON of `analyze --both`.
#[derive(Serialize)]
struct BothDocument<'a> {
    a: &'a str,
    b: &'a str,
    #[serde(flatten)]
    paired: &'a PairedCaptures,
}

pub fn run(analyze: &Analyze) -> Result<u8, Failure> {
    let count = analyze.files.len();
    if count != 2 {
        let problem = format!(
            "analyze --both: it compares two captures, and {count} are named; merge those of one \
             place before (mergecap -w PLACE.pcapng ..)"
        );
        return Err(Failure::new(Kind::Usage, problem));
    }
    let captures = input::captures(&analyze.files, false)?;
    let config = analyze.config();
    let mut pairing = Pairing::new(config.layer, config.filter);
    let (mut names, mut is_whole) = (Vec::new(), true);
    for (tap, capture) in Tap::ALL.into_iter().zip(captures) {
        names.push(capture.name().to_owned());
        let read = capture.for_each_packet(|packet| {
            pairing.push(tap, packet);
            Ok::<(), Error>(())
        });
        for problem in input::problems(read.err().into_iter().collect())? {
            remark(&format!("fullpipe: {problem}"));
            is_whole = false;
        }
    }
    let [a, b] = &names[..] else { return Ok(Analyze::code(is_whole)) };
    let paired = pairing.finish();
    if analyze.json {
        print_json(&BothDocument { a, b, paired: &paired })?;
    } else {
        let top = analyze.top.unwrap_or(TOP_OF_BOTH);
        print(&BothReport { names: [a, b], paired: &paired, top }.render(answer_layout()))?;
    }
    // Of a file that was not read, its own problem was said.
    if paired.connections.is_empty() && is_whole {
        let problem = format!(
            "analyze --both: no connection is in both {a} and {b}; were both taken at the same \
             time, and do both have TCP headers?"
        );
        return Err(Failure::new(Kind::Run, problem));
    }
    Ok(Analyze::code(is_whole))
}
