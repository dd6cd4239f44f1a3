//! A captured connection with what limited each of its directions.

mod others;

pub use others::note_others;

use super::consistent::{consistent, excludes};
use super::subcause::{DataSeen, Explanation, NoAnswer, PacketCause, Sharing};
use super::{Diagnosis, KnownHosts, SeenAt, Subject};
use crate::account::{Account, AccountSpan, Behind, Cause, spans, spent_on};
use crate::connection::{Connection, Direction};
use crate::finding::{Finding, KnownPath};
use crate::limit::{Candidate, Interval, Verdict};
use crate::trace::{SocketSeries, Trace};
use fullpipe_model::tune::MeasuredPath;
use fullpipe_model::units::Duration;
use serde::Serialize;
use std::borrow::Cow;
use std::cmp::Reverse;

/// Who waited for so long when the capture ended hangs.
const HANGS_FROM: Duration = Duration::from_secs(1);

/// A captured connection: its facts, and a diagnosis for each direction that carried data. It
/// serialises as the JSON of `fullpipe analyze`: the facts, then `limits`, `findings`, `sub_causes`
/// and, if requested, `intervals`.
#[derive(Debug, Clone)]
pub struct DiagnosedConnection {
    /// The facts.
    pub connection: Connection,
    /// The diagnosis of the client's data, then that of the server's.
    diagnoses: [Option<Diagnosis>; 2],
    /// What the diagnoses mean, where that has been computed already.
    findings: Option<Vec<OfDirection<Finding>>>,
    /// What other connections of the capture show of the direction that carried more.
    sharing: Option<Sharing>,
    /// Whether its programs were silent because other connections of theirs moved data meanwhile.
    accompanies: bool,
    shows_intervals: bool,
    /// The points of its graphs, if they were recorded.
    trace: Option<Box<Trace>>,
    /// What only its sockets show, where it was seen by them and not in a capture.
    sampled: Option<Box<Sampled>>,
}

/// What the samples of a connection's sockets show beside its facts and its verdict.
#[derive(Debug, Clone)]
pub(crate) struct Sampled {
    /// The direction that the diagnosis is about.
    pub direction: Direction,
    /// What lies behind the limit.
    pub causes: Vec<Explanation>,
    /// The path as the sockets measured it.
    pub path: Option<MeasuredPath>,
    /// The samples as columns, for the graphs.
    pub sockets: Vec<SocketSeries>,
}

/// A connection's place among others: [`DiagnosedConnection::rank`].
pub type Rank = Reverse<(bool, Duration, u64)>;

/// A value that belongs to one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfDirection<T> {
    /// The direction of the data.
    pub direction: Direction,
    /// The value.
    #[serde(flatten)]
    pub what: T,
}

impl DiagnosedConnection {
    /// Combines the facts with the verdicts: the client's data first, then the server's. A verdict
    /// is `None` for a direction without data.
    pub fn from_capture(connection: Connection, verdicts: [Option<Verdict>; 2]) -> Self {
        let [client, server] = verdicts;
        let diagnoses = [
            client.map(|verdict| diagnosis(&connection, Direction::ClientToServer, verdict)),
            server.map(|verdict| diagnosis(&connection, Direction::ServerToClient, verdict)),
        ];
        DiagnosedConnection {
            connection,
            diagnoses,
            findings: None,
            sharing: None,
            accompanies: false,
            shows_intervals: false,
            trace: None,
            sampled: None,
        }
    }

    /// Combines what the samples of a connection's sockets say.
    pub(crate) fn from_samples(
        connection: Connection,
        mut diagnosis: Diagnosis,
        sampled: Sampled,
        trace: Option<Trace>,
    ) -> Self {
        diagnosis.subject.connection = Some(connection.id);
        diagnosis.subject.direction = Some(sampled.direction);
        let diagnoses = match sampled.direction {
            Direction::ClientToServer => [Some(diagnosis), None],
            Direction::ServerToClient => [None, Some(diagnosis)],
        };
        DiagnosedConnection {
            diagnoses,
            trace: trace.map(Box::new),
            sampled: Some(Box::new(sampled)),
            ..DiagnosedConnection::from_capture(connection, [None, None])
        }
    }

    /// The samples of the sockets at its ends; empty unless it was seen by them.
    pub fn sockets(&self) -> &[SocketSeries] {
        self.sampled.as_ref().map_or(&[], |sampled| &sampled.sockets)
    }

    /// The path as its sockets measured it; `None` of a capture.
    pub(super) fn sampled_path(&self, direction: Direction) -> Option<MeasuredPath> {
        let sampled = self.sampled.as_ref().filter(|sampled| sampled.direction == direction)?;
        sampled.path.clone()
    }

    /// Adds the points of the connection's graphs.
    pub(crate) fn with_trace(self, trace: Option<Box<Trace>>) -> Self {
        DiagnosedConnection { trace, ..self }
    }

    /// Drops the points of the connection's graphs, which are most of its memory.
    pub fn without_trace(mut self) -> Self {
        if let Some(sampled) = &mut self.sampled {
            sampled.sockets = Vec::new();
        }
        let Connection { client_to_server, server_to_client, .. } = &mut self.connection;
        for frames in
            [client_to_server, server_to_client].into_iter().filter_map(|one| one.http2.as_mut())
        {
            frames.lines = None;
        }
        DiagnosedConnection { trace: None, ..self }
    }

    /// The points of the connection's graphs, where [`crate::Config::trace`] asked for them. They
    /// are not part of its JSON.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_deref()
    }

    /// The points of the connection's graphs, to keep fewer of them.
    pub fn trace_mut(&mut self) -> Option<&mut Trace> {
        self.trace.as_deref_mut()
    }

    /// Computes the findings now, unless that is done, on the calling thread, for whoever
    /// serialises them later.
    pub fn with_findings(mut self) -> Self {
        if self.findings.is_none() {
            self.findings = Some(self.own_findings());
        }
        self
    }

    /// Gives the connection another number.
    pub fn renumber(&mut self, id: u64) {
        self.connection.id = id;
        for diagnosis in self.diagnoses.iter_mut().flatten() {
            diagnosis.subject.connection = Some(id);
        }
    }

    /// Adds to the JSON what limited the connection in each interval.
    pub fn with_intervals(self) -> Self {
        DiagnosedConnection { shows_intervals: true, ..self }
    }

    /// The diagnosis of a direction's data; `None` where there was none.
    pub fn diagnosis(&self, direction: Direction) -> Option<&Diagnosis> {
        match direction {
            Direction::ClientToServer => self.diagnoses[0].as_ref(),
            Direction::ServerToClient => self.diagnoses[1].as_ref(),
        }
    }

    /// The diagnosis of the direction that carried more.
    pub fn bulk(&self) -> Option<&Diagnosis> {
        self.diagnosis(self.connection.bulk())
    }

    /// The shares of every limit, first for the direction that carried more.
    pub fn limits(&self) -> Vec<OfDirection<Candidate>> {
        self.by_direction(|diagnosis| diagnosis.verdict.shares.clone())
    }

    /// The findings, first for the direction that carried more.
    pub fn findings(&self) -> Cow<'_, [OfDirection<Finding>]> {
        match &self.findings {
            Some(findings) => Cow::Borrowed(findings),
            None => Cow::Owned(self.own_findings()),
        }
    }

    /// The findings, without those about time that the account explains otherwise.
    fn own_findings(&self) -> Vec<OfDirection<Finding>> {
        let mut findings = self.by_direction(Diagnosis::findings);
        for OfDirection { direction, what } in &mut findings {
            let mut causes = self.sub_causes(*direction);
            if let Some(remedy) = causes.find_map(|cause| cause.remedy_of(what.limit)) {
                (what.remedy, what.changes) = (remedy, Vec::new());
            }
        }
        if let Some(account) = self.account() {
            findings.retain(|OfDirection { direction, what }| {
                let whole =
                    self.diagnosis(*direction).map_or(0.0, |one| one.verdict.time.as_secs_f64());
                account.agrees(*direction, what.limit, Duration::from_secs_f64(whole * what.share))
            });
        }
        findings
    }

    /// The sub-causes behind a direction's limits, where the capture shows them. None are known of
    /// samples, which show no packets.
    pub fn sub_causes(&self, direction: Direction) -> impl Iterator<Item = PacketCause> {
        let verdict = self.diagnosis(direction).map(|diagnosis| &diagnosis.verdict);
        let sharing = self.sharing.filter(|_| direction == self.connection.bulk());
        let seen = DataSeen { connection: &self.connection, direction, verdict, sharing };
        let all = self.sampled.is_none().then(|| seen.sub_causes()).into_iter().flatten();
        let timeouts = spent_on(&self.connection.counted, Cause::Timeouts);
        let is_by_size = seen.behind().loses_by_size;
        all.filter(move |cause| match cause {
            // Timers that ran for a peer that is gone are no loss, and those for segments that the
            // path cannot carry are explained.
            PacketCause::Timeouts(cause) => !is_by_size && timeouts.saturating_mul(2) >= cause.time,
            cause => !verdict.is_some_and(|verdict| excludes(*cause, verdict)),
        })
    }

    /// The names of what lies behind a direction's limits.
    pub(crate) fn sub_cause_names(&self, direction: Direction) -> Vec<&'static str> {
        let sampled = self.sampled.iter().filter(|sampled| sampled.direction == direction);
        let by_sockets =
            sampled.flat_map(|sampled| sampled.causes.iter().map(|cause| cause.sub_cause.name()));
        self.sub_causes(direction).map(PacketCause::name).chain(by_sockets).collect()
    }

    /// The sub-causes with what is advised on them, first for the direction that carried more.
    pub fn explanations(&self) -> Vec<OfDirection<Explanation>> {
        let by_sockets = self.sampled.iter().flat_map(|sampled| {
            let direction = sampled.direction;
            sampled.causes.iter().cloned().map(move |what| OfDirection { direction, what })
        });
        let by_packets = self.directions().into_iter().flat_map(|way| self.explained(way));
        by_packets.chain(by_sockets).collect()
    }

    /// The sub-causes of one direction that its packets show, with what is advised on them.
    fn explained(&self, direction: Direction) -> impl Iterator<Item = OfDirection<Explanation>> {
        let headline = self.diagnosis(direction).map(Diagnosis::headline);
        self.sub_causes(direction).map(move |cause| {
            let own = Explanation::from(cause);
            let what = match &headline {
                Some(headline) if !cause.is_of_the_path() => {
                    Explanation { remedy: headline.advise_behind(own.remedy), ..own }
                }
                _ => own,
            };
            OfDirection { direction, what }
        })
    }

    /// Whether samples of its sockets are all that is known of it.
    pub(crate) fn is_sampled(&self) -> bool {
        self.sampled.is_some()
    }

    /// Where all its time went; `None` of samples, which show no packets.
    pub fn account(&self) -> Option<Account> {
        let (verdicts, behind) = self.accounted();
        self.sampled.is_none().then(|| Account::new(&self.connection.counted, verdicts, behind))
    }

    /// The same in the order of time; empty where neither [`crate::Config::spans`] nor graphs asked
    /// for it.
    pub fn spans(&self) -> Vec<AccountSpan> {
        let (verdicts, behind) = self.accounted();
        spans(&self.connection.counted, self.connection.start, verdicts, behind)
    }

    /// What held each direction's data, and what lies behind that.
    fn accounted(&self) -> ([Option<&Verdict>; 2], [Behind; 2]) {
        let seen = [Direction::ClientToServer, Direction::ServerToClient].map(|direction| {
            let verdict = self.diagnosis(direction).map(|diagnosis| &diagnosis.verdict);
            DataSeen { connection: &self.connection, direction, verdict, sharing: None }
        });
        let mut behind = seen.map(|one| Behind { accompanies: self.accompanies, ..one.behind() });
        for (data, grants) in [(0, 1), (1, 0)] {
            let is_held = seen[data].granted_window().is_some();
            if is_held && seen[grants].granted_window().is_none() {
                let window_is_the_clients = behind[data].window_is_the_clients;
                behind[grants] = Behind { window_is_the_clients, grants: true, ..behind[grants] };
            }
        }
        (seen.map(|one| one.verdict), behind)
    }

    /// The time that remedies give back: of its account or, of samples, of the time in which data
    /// was held by anything but the path and its own application.
    pub fn lost(&self) -> Duration {
        match self.account() {
            Some(account) => account.lost,
            None => self.bulk().map_or(Duration::ZERO, Diagnosis::lost),
        }
    }

    /// Its place among others: those where somebody still waits come first, then those that lost
    /// most time and, of equals, those with more payload.
    pub fn rank(&self) -> Rank {
        let connection = &self.connection;
        let payload =
            connection.client_to_server.payload.get() + connection.server_to_client.payload.get();
        let account = self.account();
        let waited = account.as_ref().and_then(|account| account.last_wait);
        let hangs = waited.is_some_and(|waited| waited >= HANGS_FROM);
        let lost = match account {
            // The others are what is waited for.
            _ if self.accompanies => Duration::ZERO,
            Some(account) => account.lost,
            None => self.lost(),
        };
        Reverse((hangs, lost, payload))
    }

    /// Whether nobody answered.
    pub fn is_unanswered(&self) -> bool {
        self.unanswered().is_some()
    }

    /// The sub-cause that nobody answered, if so.
    fn unanswered(&self) -> Option<NoAnswer> {
        let mut causes = self.directions().into_iter().flat_map(|one| self.sub_causes(one));
        causes.find_map(|cause| match cause {
            PacketCause::NoAnswer(cause) => Some(cause),
            _ => None,
        })
    }

    /// Both directions, the one that carried more first.
    fn directions(&self) -> [Direction; 2] {
        match self.connection.bulk() {
            Direction::ClientToServer => [Direction::ClientToServer, Direction::ServerToClient],
            Direction::ServerToClient => [Direction::ServerToClient, Direction::ClientToServer],
        }
    }

    /// What limited the connection in each interval: the client's data, then the server's.
    pub fn intervals(&self) -> Vec<OfDirection<&Interval>> {
        let mut all = Vec::new();
        for direction in [Direction::ClientToServer, Direction::ServerToClient] {
            let intervals =
                self.diagnosis(direction).into_iter().flat_map(|one| one.verdict.shown());
            all.extend(intervals.map(|what| OfDirection { direction, what }));
        }
        all
    }

    fn by_direction<T>(&self, of: impl Fn(&Diagnosis) -> Vec<T>) -> Vec<OfDirection<T>> {
        let mut all = Vec::new();
        for direction in self.directions() {
            let found = self.diagnosis(direction).map(&of).unwrap_or_default();
            all.extend(found.into_iter().map(|what| OfDirection { direction, what }));
        }
        all
    }
}

/// Sorts connections by [`DiagnosedConnection::rank`].
pub fn worst_first(connections: &mut [DiagnosedConnection]) {
    connections.sort_by_cached_key(DiagnosedConnection::rank);
}

fn diagnosis(connection: &Connection, direction: Direction, verdict: Verdict) -> Diagnosis {
    let (sender, receiver) = match direction {
        Direction::ClientToServer => (connection.client, connection.server),
        Direction::ServerToClient => (connection.server, connection.client),
    };
    let subject = Subject {
        connection: Some(connection.id),
        direction: Some(direction),
        sender,
        receiver,
        seen_at: SeenAt::Capture(connection.vantage.place),
    };
    let verdict = consistent(connection, direction, verdict);
    let hosts = KnownHosts::captured(connection, direction, &verdict);
    Diagnosis {
        subject,
        hosts,
        verdict,
        path: KnownPath { rtt: connection.handshake_rtt, goodput_max: None },
    }
}

/// The serialised form of a diagnosed connection, in this order.
#[derive(Serialize)]
struct WrittenConnection<'a> {
    #[serde(flatten)]
    connection: &'a Connection,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
    limits: Vec<OfDirection<Candidate>>,
    findings: Cow<'a, [OfDirection<Finding>]>,
    sub_causes: Vec<OfDirection<Explanation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<Vec<OfDirection<&'a Interval>>>,
}

impl Serialize for DiagnosedConnection {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        WrittenConnection {
            connection: &self.connection,
            account: self.account(),
            limits: self.limits(),
            findings: self.findings(),
            sub_causes: self.explanations(),
            intervals: self.shows_intervals.then(|| self.intervals()),
        }
        .serialize(s)
    }
}
