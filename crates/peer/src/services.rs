//! What a daemon does for its peers: tests of the path, and recordings of their packets.

use crate::path_test::{Responder, Sampler, TestRequest};
use crate::record::{PacketSource, RecordRequest, RecordService};
use crate::{Channel, PeerError, Service, Session};
use fullpipe_model::units::Duration;

/// How long a peer may take to ask for something.
const FIRST: Duration = Duration::from_secs(60);

/// Both services of one daemon: what a peer asks first decides.
pub struct Services<'a, S, P> {
    /// Tests of the path.
    pub tests: &'a Responder<S>,
    /// Recordings.
    pub recordings: &'a RecordService<P>,
}

/// What a peer may ask first.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum FirstRequest {
    Test(TestRequest),
    Record(RecordRequest),
}

impl<S: Sampler, P: PacketSource> Service for Services<'_, S, P> {
    fn serve(&self, mut channel: Channel, session: &Session<'_>) -> Result<(), String> {
        match channel.receive::<FirstRequest>(FIRST) {
            Ok(FirstRequest::Test(first)) => self.tests.serve_from(Some(first), channel, session),
            Ok(FirstRequest::Record(first)) => self.recordings.serve(first, channel, session),
            // It has asked for nothing, and leaves.
            Err(PeerError::Broken { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
