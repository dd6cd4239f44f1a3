//! `fullpipe get` as the client, without its process: the same library, on the calling thread.

use super::{ProgramError, Received};
use fullpipe_kernel::host::clock;
use fullpipe_model::scenario::Scenario;
use fullpipe_transfer::{Diagnosis, GetError, GetEvent, GetOptions, GetRequest, Stop, Target, get};

/// Fetches `url`; the calling thread is in the client's host.
pub fn receive(scenario: &Scenario, url: &str, stop: &Stop) -> Result<Received, ProgramError> {
    let options = GetOptions {
        limit_rate: scenario.transfer.limit_rate,
        max_time: Some(scenario.transfer.duration),
        ..GetOptions::default()
    };
    let request = GetRequest { url: url.into(), target: Target::File("/dev/null".into()), options };
    let mut began = clock::now();
    let got = get(&request, &Diagnosis::default(), stop, &mut |event| {
        if let GetEvent::Started { .. } = event {
            began = clock::now();
        }
    });
    match got {
        Ok(got) => Ok(Received::timed(got.fetched, true, got.timing, None)),
        Err(GetError::OutOfTime { received, .. } | GetError::Stopped { received, .. }) => {
            Ok(Received::untimed(received, false, clock::now().since(began)))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_without_a_server_fails_with_its_cause() {
        let file = fullpipe_model::scenario::File::parse(
            "[transfer]\nclient = \"get\"\nduration = \"1s\"\n",
        );
        let scenario = file.unwrap().scenarios("none").unwrap().remove(0);
        let error = receive(&scenario, "ftp://127.0.0.1/", &Stop::new()).unwrap_err();
        assert!(error.to_string().contains("neither http nor https"), "{error}");
    }
}
