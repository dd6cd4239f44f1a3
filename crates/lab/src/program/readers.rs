//! Many connections at the same time, whose readers differ.

use super::{ProgramError, Received};
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::{
    DownloadOptions, DownloadOutcome, DownloadRequest, Resource, Stop, Timing, download_all,
};

/// Fetches `resource` on each connection; the calling thread is in the client's host.
pub fn receive(
    scenario: &Scenario,
    resource: &Resource,
    stop: &Stop,
) -> Result<Received, ProgramError> {
    let requests = scenario.transfer.readers.iter().flat_map(|readers| {
        let options = DownloadOptions {
            max_duration: Some(scenario.transfer.duration),
            read_rate: readers.read_rate,
            ..DownloadOptions::default()
        };
        let request = DownloadRequest { resource: resource.clone(), options };
        vec![request; readers.connections as usize]
    });
    let downloads = download_all(requests.collect(), stop)?;
    let body = downloads.iter().map(|one| one.body).sum::<Bytes>();
    let complete = downloads.iter().all(|one| one.outcome == DownloadOutcome::Complete);
    let timings = downloads.iter().map(|one| one.timing);
    // From the first byte of the first one to the end of the last one.
    let first = timings.clone().min_by_key(|timing| timing.starttransfer);
    let total = timings.map(|timing| timing.total).max().unwrap_or(Duration::ZERO);
    let timing = Timing { total, ..first.unwrap_or_default() };
    Ok(Received::timed(body, complete, timing, None))
}
