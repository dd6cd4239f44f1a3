//! curl as the client.

use super::{ProgramError, Received, client_failed, run_client};
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::{Stop, Timing};
use std::process::Command;

const PROGRAM: &str = "curl";
/// Its exit code when the time limit is reached.
const TIMEOUT: i32 = 28;

/// Fetches `url`; the calling thread is in the client's host.
pub fn receive(scenario: &Scenario, url: &str, stop: &Stop) -> Result<Received, ProgramError> {
    let mut command = Command::new(PROGRAM);
    // -q: ignore .curlrc, which could change anything.
    command.args([
        "-q",
        "--silent",
        "--show-error",
        "--output",
        "/dev/null",
        "--write-out",
        "%{json}",
    ]);
    command.args(["--max-time", &scenario.transfer.duration.as_secs_f64().to_string(), url]);
    let output = run_client(scenario, command, PROGRAM, stop)?;
    let answer: Option<Answer> = serde_json::from_slice(&output.stdout).ok();
    match (output.status.code(), answer) {
        (Some(code @ (0 | TIMEOUT)), Some(answer)) => Ok(answer.received(code == 0)),
        _ => Err(client_failed(PROGRAM, &output)),
    }
}

/// The used part of the output of `--write-out '%{json}'`.
#[derive(serde::Deserialize)]
struct Answer {
    size_download: f64,
    time_namelookup: f64,
    time_connect: f64,
    time_appconnect: f64,
    time_pretransfer: f64,
    time_redirect: f64,
    time_starttransfer: f64,
    time_total: f64,
}

impl Answer {
    fn received(self, complete: bool) -> Received {
        let time = Duration::from_secs_f64;
        let timing = Timing {
            redirect: time(self.time_redirect),
            namelookup: time(self.time_namelookup),
            connect: time(self.time_connect),
            appconnect: time(self.time_appconnect),
            pretransfer: time(self.time_pretransfer),
            starttransfer: time(self.time_starttransfer),
            total: time(self.time_total),
        };
        Received::timed(Bytes::from_f64(self.size_download), complete, timing, None)
    }
}
