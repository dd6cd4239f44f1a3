//! The connections of a capture as an iterator.

use crate::drive::{Drive, End};
use crate::error::Error;
use crate::numbers::Numbers;
use crate::options::Options;
use crate::rounds::{Findings, Finishing, put_together};
use crate::stream::PacketStream;
use fullpipe_flow::diagnosis::DiagnosedConnection;
use fullpipe_flow::{Config, Counts, Ended};

/// The most connections that [`Connections::next_round`] gives. A round may have a hundred
/// thousand, and those of one packet take five times the memory once they are diagnosed.
const PORTION: usize = 1 << 12;

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
    Captured(Box<Captured>),
    /// Samples of sockets, all of which are one round.
    Recorded { round: Option<Vec<DiagnosedConnection>>, end: End },
}

/// An analysis of packets as it runs.
struct Captured {
    drive: Drive<Finishing>,
    numbers: Numbers,
    /// The rest of the present round, which is diagnosed in portions.
    ended: std::vec::IntoIter<Ended>,
    config: Config,
    findings: Findings,
}

impl Captured {
    /// The next connections that ended, perhaps none; `None` at the end of the capture.
    fn next(&mut self) -> Option<Vec<DiagnosedConnection>> {
        if self.ended.len() == 0 {
            self.ended = put_together(&mut self.numbers, self.drive.next()?).into_iter();
        }
        let portion = self.ended.by_ref().take(PORTION);
        let diagnosed = portion.map(|ended| ended.diagnosed(&self.config));
        Some(match self.findings {
            Findings::AtOnce => diagnosed.map(DiagnosedConnection::with_findings).collect(),
            Findings::Later => diagnosed.collect(),
        })
    }
}

impl Evidence {
    fn end(&mut self) -> &mut End {
        match self {
            Evidence::Captured(captured) => captured.drive.end(),
            Evidence::Recorded { end, .. } => end,
        }
    }
}

impl Connections {
    pub(crate) fn captured(stream: PacketStream, options: &Options, findings: Findings) -> Self {
        let drive = Drive::new(stream, options, |config| Finishing::new(config, findings));
        let captured = Captured {
            drive,
            numbers: Numbers::new(options.threads.get()),
            ended: Vec::new().into_iter(),
            config: options.config.clone(),
            findings,
        };
        let evidence = Evidence::Captured(Box::new(captured));
        Connections { evidence, round: Vec::new().into_iter() }
    }

    pub(crate) fn recorded(
        (connections, end): (Vec<DiagnosedConnection>, End),
        findings: Findings,
    ) -> Self {
        let round = match findings {
            Findings::AtOnce => {
                connections.into_iter().map(DiagnosedConnection::with_findings).collect()
            }
            Findings::Later => connections,
        };
        let evidence = Evidence::Recorded { round: Some(round), end };
        Connections { evidence, round: Vec::new().into_iter() }
    }

    /// The next connections of the present round or, after its last, of the next, perhaps none;
    /// `None` at the end of the capture. For callers that write many at once.
    pub fn next_round(&mut self) -> Option<Vec<DiagnosedConnection>> {
        match &mut self.evidence {
            Evidence::Captured(captured) => captured.next(),
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
