//! The program of the page that `fullpipe view` writes. It reads standard input, writes JSON to
//! standard output and stops; the page runs it once for each capture and for each question.
//!
//! * `report NAME`: a capture comes in, what a report shows comes out (`PageData` of
//!   `web/src/data.ts`), as `fullpipe report --data` prints it.
//! * `law`: a question of the calculator comes in, its answer comes out ([`law`]).
//!
//! It is built for `wasm32-wasip1`, whose standard library has standard input and output, so that
//! nothing here is special to a browser: no bindings, no unsafe code, and the same program can be
//! tried in a shell.
#![forbid(unsafe_code)]

mod capture;
mod law;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = match words[..] {
        ["report", name] => capture::report(name, std::io::stdin()),
        ["law"] => law::answer(std::io::stdin().lock()),
        _ => Err("run view: give `report NAME` or `law`".into()),
    };
    let (text, code) = match answer {
        Ok(json) => (json, ExitCode::SUCCESS),
        Err(problem) => (problem, ExitCode::FAILURE),
    };
    // The page reads both; where nobody reads, nothing can be said.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    code
}
