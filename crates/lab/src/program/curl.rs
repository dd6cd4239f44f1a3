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
    command.args(["-q", "--silent", "--show-error", "--write-out", &write_out()]);
    command.args(["--max-time", &scenario.transfer.duration.as_secs_f64().to_string()]);
    if let Some(connections) = scenario.transfer.connections {
        command.args(["--parallel", "--parallel-immediate"]);
        command.args(["--parallel-max", &connections.to_string()]);
    }
    let transfer = &scenario.transfer;
    if let Some(rate) = transfer.limit_rate {
        command.args(["--limit-rate", &(rate.bits_per_sec() / 8).to_string()]);
    }
    if let Some(idle) = transfer.keepalive {
        command.args(["--keepalive-time", &idle.as_secs_f64().to_string()]);
    }
    for _ in 0..transfer.requests.or(transfer.connections).unwrap_or(1) {
        command.args(["--output", "/dev/null", url]);
    }
    let ended = run_client(scenario, command, PROGRAM, stop)?;
    let output = &ended.output;
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let answers: Option<Vec<CurlLine>> =
        lines.map(|line| serde_json::from_slice(line).ok()).collect();
    let answer = answers.and_then(|answers| {
        let sum = if transfer.connections.is_some() { CurlLine::beside } else { CurlLine::after };
        answers.into_iter().reduce(sum)
    });
    match (output.status.code(), answer) {
        (Some(code @ (0 | TIMEOUT)), Some(answer)) => {
            Ok(ended.received(answer.received(code == 0)))
        }
        _ => Err(client_failed(PROGRAM, output)),
    }
}

/// What curl prints of each download: one line of JSON. `%{json}` has these fields too, and so many
/// others that a hundred lines do not fit into a pipe that nobody reads before curl ends.
fn write_out() -> String {
    let fields = [
        "size_download",
        "time_namelookup",
        "time_connect",
        "time_appconnect",
        "time_pretransfer",
        "time_redirect",
        "time_starttransfer",
        "time_total",
    ];
    let fields = fields.map(|field| format!("\"{field}\":%{{{field}}}"));
    format!("{{{}}}\\n", fields.join(","))
}

/// A line of the output.
#[derive(serde::Deserialize)]
struct CurlLine {
    size_download: f64,
    time_namelookup: f64,
    time_connect: f64,
    time_appconnect: f64,
    time_pretransfer: f64,
    time_redirect: f64,
    time_starttransfer: f64,
    time_total: f64,
}

impl CurlLine {
    /// Both, where `next` was requested once this one was there.
    fn after(self, next: CurlLine) -> CurlLine {
        CurlLine {
            size_download: self.size_download + next.size_download,
            time_total: self.time_total + next.time_total,
            ..self
        }
    }

    /// Both, where they were requested at the same time.
    fn beside(self, other: CurlLine) -> CurlLine {
        CurlLine {
            size_download: self.size_download + other.size_download,
            time_starttransfer: self.time_starttransfer.min(other.time_starttransfer),
            time_total: self.time_total.max(other.time_total),
            ..self
        }
    }

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
