//! iperf3 as both ends, because it works only with itself.
//!
//! Its client requests the reverse direction, so the server sends, like every server here. Two
//! connections go to the server's port, one for control and one for the data. The client's end of
//! the data connection has a fixed port, by which samplers find it. The client reports what it
//! read, and the time from the first byte that it could read to the last.
//!
//! It does not upload here: its client polls the clock while it sends, so in virtual time, which
//! passes only while everything waits, it never ends.

use super::{ProgramError, Received, client_failed, run_client};
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::Stop;
use std::net::SocketAddr;
use std::process::Command;

pub const PROGRAM: &str = "iperf3";
/// The client's port of the data connection.
pub const DATA_PORT: u16 = 5210;

/// The server, for one test after another.
pub fn server(address: SocketAddr) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args([
        "--server",
        "--bind",
        &address.ip().to_string(),
        "--port",
        &address.port().to_string(),
    ]);
    command
}

/// Receives from `server`; the calling thread is in the client's host.
pub fn receive(
    scenario: &Scenario,
    server: SocketAddr,
    stop: &Stop,
) -> Result<Received, ProgramError> {
    let mut command = Command::new(PROGRAM);
    command.args(["--client", &server.ip().to_string(), "--port", &server.port().to_string()]);
    command.args(["--reverse", "--json", "--cport", &DATA_PORT.to_string()]);
    command.args(["--time", &scenario.transfer.duration.as_secs_f64().to_string()]);
    let ended = run_client(scenario, command, PROGRAM, stop)?;
    let output = &ended.output;
    let answer: Iperf3Output =
        serde_json::from_slice(&output.stdout).map_err(|_| client_failed(PROGRAM, output))?;
    match (answer.error, answer.end) {
        (None, Some(Iperf3End { sum_received })) => {
            let (body, took) = (Bytes::new(sum_received.bytes), sum_received.seconds);
            // It always runs until the end of the duration.
            Ok(ended.received(Received::untimed(body, false, Duration::from_secs_f64(took))))
        }
        (error, _) => Err(ProgramError::Failed {
            program: PROGRAM,
            status: output.status.to_string(),
            output: error.unwrap_or_else(|| "no result in what it printed".into()),
        }),
    }
}

/// The used part of the output of `--json`.
#[derive(serde::Deserialize)]
struct Iperf3Output {
    /// Present instead of results.
    error: Option<String>,
    end: Option<Iperf3End>,
}

#[derive(serde::Deserialize)]
struct Iperf3End {
    sum_received: Sum,
}

#[derive(serde::Deserialize)]
struct Sum {
    bytes: u64,
    seconds: f64,
}
