//! wget as the client.

use super::{ProgramError, Received, client_failed, run_client};
use fullpipe_kernel::host::clock;
use fullpipe_model::scenario::Scenario;
use fullpipe_transfer::Stop;
use std::process::Command;

const PROGRAM: &str = "wget";

/// Fetches `url`; the calling thread is in the client's host. wget tells no times: the duration is
/// that of the program.
pub fn receive(scenario: &Scenario, url: &str, stop: &Stop) -> Result<Received, ProgramError> {
    let mut command = Command::new(PROGRAM);
    // Its configuration could change anything, and a second try would be a second transfer.
    command.args(["--no-config", "--quiet", "--tries=1", "--no-proxy"]);
    if let Some(rate) = scenario.transfer.limit_rate {
        command.arg(format!("--limit-rate={}", rate.bits_per_sec() / 8));
    }
    command.args(["--output-document=/dev/null", url]);
    let began = clock::now();
    let ended = run_client(scenario, command, PROGRAM, stop)?;
    // It fails if the body is shorter than announced.
    if !ended.output.status.success() {
        return Err(client_failed(PROGRAM, &ended.output));
    }
    let took = clock::now().since(began);
    Ok(ended.received(Received::untimed(scenario.transfer.size, true, took)))
}
