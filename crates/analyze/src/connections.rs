//! The connections of a capture as an iterator.

use crate::drive::{Drive, End};
use crate::error::Error;
use crate::numbers::Numbers;
use crate::options::Options;
use crate::rounds::{Findings, Finishing, put_together};
use crate::stream::Stream;
use fullpipe_flow::Counts;
use fullpipe_flow::diagnosis::DiagnosedConnection;

/// The TCP connections of a capture, as they finish: in rounds of one second of the capture or 65
/// 536 packets, and within a round in the order of their first packets, by which they are numbered
/// from 0. If the capture could not be read to its end, the error comes last.
///
/// Dropping this early stops reading.
pub struct Connections {
    evidence: Evidence,
    /// The rest of the present round.
    round: std::vec::IntoIter<DiagnosedConnection>,
}

/// What the connections were seen by.
enum Evidence {
    /// Packets.
    Captured { drive: Box<Drive<Finishing>>, numbers: Numbers },
    /// Samples of sockets, all of which are one round.
    Recorded { round: Option<Vec<DiagnosedConnection>>, end: End },
}

impl Evidence {
    fn end(&mut self) -> &mut End {
        match self {
            Evidence::Captured { drive, .. } => drive.end(),
            Evidence::Recorded { end, .. } => end,
        }
    }
}

impl Connections {
    pub(crate) fn captured(stream: Stream, options: &Options, findings: Findings) -> Self {
        let drive = Drive::new(stream, options, |config| Finishing::new(config, findings));
        let numbers = Numbers::new(options.threads.get());
        let evidence = Evidence::Captured { drive: Box::new(drive), numbers };
        Connections { evidence, round: Vec::new().into_iter() }
    }

    pub(crate) fn recorded(
        (connections, end): (Vec<DiagnosedConnection>, End),
        findings: Findings,
    ) -> Self {
        let evidence = Evidence::Recorded { round: Some(findings.of(connections)), end };
        Connections { evidence, round: Vec::new().into_iter() }
    }

    /// The connections that finished in the next round, perhaps none; `None` at the end of the
    /// capture. For callers that write many at once.
    pub fn next_round(&mut self) -> Option<Vec<DiagnosedConnection>> {
        match &mut self.evidence {
            Evidence::Captured { drive, numbers } => {
                drive.next().map(|rounds| put_together(numbers, rounds))
            }
            Evidence::Recorded { round, .. } => round.take(),
        }
    }

    /// Counts of the capture's packets, and why it was not read to its end. Discards the remaining
    /// connections.
    pub fn finish(mut self) -> (Counts, Vec<Error>) {
        while self.next_round().is_some() {}
        let end = std::mem::take(self.evidence.end());
        (end.counts, end.errors)
    }
}

impl Iterator for Connections {
    type Item = Result<DiagnosedConnection, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(connection) = self.round.next() {
                return Some(Ok(connection));
            }
            let Some(round) = self.next_round() else {
                let errors = &mut self.evidence.end().errors;
                return (!errors.is_empty()).then(|| Err(errors.remove(0)));
            };
            self.round = round.into_iter();
        }
    }
}
