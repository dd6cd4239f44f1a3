//! curl as the client, whose output pv passes on at a rate.

use super::{ProgramError, Received, client_failed, place, run_connected, spawn};
use fullpipe_kernel::host::clock;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::Bytes;
use fullpipe_transfer::Stop;
use std::process::{Command, Stdio};

const PROGRAM: &str = "pv";

/// Fetches `url`; the calling thread is in the client's host. The duration is that of pv.
pub fn receive(scenario: &Scenario, url: &str, stop: &Stop) -> Result<Received, ProgramError> {
    let mut curl = Command::new("curl");
    curl.args(["-q", "--silent", url]).stdin(Stdio::null()).stdout(Stdio::piped());
    curl.stderr(Stdio::null());
    place(&scenario.hosts.client, &mut curl)?;
    let mut source = spawn(&mut curl, "curl")?;
    let result = pass_on(scenario, source.stdout.take(), stop);
    // It ends with pv, or has lost its reader.
    let _ = source.kill();
    let _ = source.wait();
    result
}

fn pass_on(
    scenario: &Scenario,
    input: Option<std::process::ChildStdout>,
    stop: &Stop,
) -> Result<Received, ProgramError> {
    let mut pv = Command::new(PROGRAM);
    pv.stdin(input.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::null());
    // Numbers of bytes on standard error, one a second; nobody reads what it passes on.
    pv.args(["--numeric", "--bytes"]);
    if let Some(rate) = scenario.transfer.limit_rate {
        pv.args(["--rate-limit", &(rate.bits_per_sec() / 8).to_string()]);
    }
    let began = clock::now();
    let ended = run_connected(scenario, pv, PROGRAM, stop)?;
    let said = String::from_utf8_lossy(&ended.output.stderr);
    let passed = said.split_whitespace().next_back().and_then(|word| word.parse().ok());
    match passed.map(Bytes::new) {
        Some(body) if ended.output.status.success() => {
            let complete = body == scenario.transfer.size;
            let took = clock::now().since(began);
            Ok(ended.received(Received::untimed(body, complete, took)))
        }
        _ => Err(client_failed(PROGRAM, &ended.output)),
    }
}
