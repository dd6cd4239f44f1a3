//! The analysis of a run, from several vantages.

mod followed;

use super::TruthRun;
use super::runs::right;
use anyhow::Context;
use fullpipe_flow::capture::recapture::{CaptureChange, CapturedRecord, Recapture, as_host};
use fullpipe_flow::capture::{Packet, Unpack, read};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::Traits;
use fullpipe_flow::limit::{LIMITS, Limit, PathHint, Source, Verdict, from_receiver, from_samples};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model as model;
use fullpipe_model::link::Changes;
use fullpipe_model::observe::Sample;
use fullpipe_model::scenario::Cause;
use fullpipe_model::units::{Bytes, Duration, Instant};
use std::fs::File;
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;

/// Addresses of the lab's hosts.
pub(super) const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1));
pub(super) const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 2));
/// Packets that a capture without its start lacks, and the minimum that must remain to be judged.
pub(super) const CUT: u64 = 400;
const LEFT_MIN: usize = 800;
/// The minimum length of an interval of samples.
pub(super) const INTERVAL: Duration = Duration::from_millis(50);

/// Where the evidence was gathered, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vantage {
    Server,
    Client,
    Sockets,
    ServerMerged,
    ClientMerged,
    ServerCut,
    ClientCut,
    /// Only what the server sent.
    ServerSent,
    /// One packet in a hundred is not in the capture.
    ServerGaps,
    /// Each packet twice, with two hop limits.
    ServerTwice,
    /// The clock was set back while the capture ran.
    ServerClock,
    /// The first 64 bytes of each Ethernet frame were kept: no whole timestamps option.
    ServerSnap64,
    ClientSnap64,
    /// The first 96 bytes of each Ethernet frame were kept.
    ServerSnap96,
    ClientSnap96,
    ClientGaps,
    /// Samples of the sender's socket alone.
    Sender,
    /// Samples of the receiver's socket alone.
    Receiver,
    /// Three seconds of the sender's socket alone, as `fullpipe why` follows it.
    SenderFollowed,
    /// Three seconds of the receiver's socket alone, as `fullpipe why` follows it.
    ReceiverFollowed,
}

impl Vantage {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Vantage::Server => "server",
            Vantage::Client => "client",
            Vantage::Sockets => "sockets",
            Vantage::ServerMerged => "server, merged",
            Vantage::ClientMerged => "client, merged",
            Vantage::ServerCut => "server, cut",
            Vantage::ClientCut => "client, cut",
            Vantage::ServerSent => "server, one way",
            Vantage::ServerGaps => "server, 1 % missing",
            Vantage::ServerTwice => "server, twice",
            Vantage::ServerClock => "server, clock set",
            Vantage::ServerSnap64 => "server, 64 bytes",
            Vantage::ClientSnap64 => "client, 64 bytes",
            Vantage::ServerSnap96 => "server, 96 bytes",
            Vantage::ClientSnap96 => "client, 96 bytes",
            Vantage::ClientGaps => "client, 1 % missing",
            Vantage::Sender => "sender's socket",
            Vantage::Receiver => "receiver's socket",
            Vantage::SenderFollowed => "sender's socket, 3 s",
            Vantage::ReceiverFollowed => "receiver's socket, 3 s",
        }
    }

    /// Whether its answers are lessons. Captures of fewer bytes show nearly the same as whole ones,
    /// and a table that saw them, too, would be larger. Three seconds of the sender's socket taught
    /// nothing that its parts do not.
    pub fn teaches(self) -> bool {
        use Vantage::{ClientGaps, ClientSnap64, ClientSnap96, ServerSnap64, ServerSnap96};
        self != Vantage::SenderFollowed
            && ![ServerSnap64, ClientSnap64, ServerSnap96, ClientSnap96, ClientGaps].contains(&self)
    }

    /// Whether it saw three seconds.
    pub fn is_followed(self) -> bool {
        matches!(self, Vantage::SenderFollowed | Vantage::ReceiverFollowed)
    }
}

/// One verdict on a run.
#[derive(Debug)]
pub struct RunVerdict {
    pub vantage: Vantage,
    /// The limit that it names first, with its confidence.
    pub limit: Limit,
    pub confidence: f64,
    /// The fraction of the steady time to which it gives the right limit.
    pub time: f64,
    /// Whether it saw any data. A transfer may be over before its socket is first sampled.
    pub saw_data: bool,
    /// The traits that the judge weighed.
    pub traits: Vec<f32>,
    /// The traits of each part of a long transfer that one cause holds, with the right answers.
    pub parts: Vec<(Vec<Cause>, Vec<f32>)>,
}

impl RunVerdict {
    /// What kind of evidence it rests on.
    pub fn source(&self) -> Source {
        match self.vantage {
            Vantage::Sockets | Vantage::Sender | Vantage::SenderFollowed => Source::Samples,
            Vantage::Receiver | Vantage::ReceiverFollowed => Source::ReceiverSamples,
            _ => Source::Capture,
        }
    }
}

/// Other kinds of poor captures, each at its host, as `CaptureChange::parse` reads them. The lab's
/// packets have no Ethernet header, which takes 14 of the bytes that a capture keeps.
const POOR: [(Vantage, IpAddr, &str); 9] = [
    (Vantage::ServerSent, SERVER, "sent"),
    (Vantage::ServerGaps, SERVER, "drop=1%"),
    (Vantage::ServerTwice, SERVER, "twice"),
    (Vantage::ServerClock, SERVER, "clock=500ms-200ms"),
    (Vantage::ServerSnap64, SERVER, "snap=50"),
    (Vantage::ServerSnap96, SERVER, "snap=82"),
    (Vantage::ClientSnap64, CLIENT, "snap=50"),
    (Vantage::ClientSnap96, CLIENT, "snap=82"),
    (Vantage::ClientGaps, CLIENT, "drop=1%"),
];

/// What answers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be scored.
    Score,
    /// To be scored, poor captures and single sockets, too.
    ScorePoor,
    /// To be learnt from.
    Lessons,
}

/// Every answer for a run.
pub fn answers(run: &TruthRun, purpose: Purpose) -> anyhow::Result<Vec<RunVerdict>> {
    let poor = purpose != Purpose::Score;
    let mut answers = Vec::new();
    let sequence = sequence(run)?;
    let answer = |vantage, verdict| answer(run, sequence.as_ref(), vantage, verdict);
    let edges = [
        ("server.pcap", SERVER, [Vantage::Server, Vantage::ServerMerged, Vantage::ServerCut]),
        ("client.pcap", CLIENT, [Vantage::Client, Vantage::ClientMerged, Vantage::ClientCut]),
    ];
    for (file, host, [plain, merged, cut]) in edges {
        let records = records(&run.folder.join(file))?;
        answers.extend(answer(plain, of_capture(&records, &[])));
        answers.extend(answer(merged, of_capture(&records, &as_host(host))));
        // Without its start, nothing is left of a transfer in slow start.
        if run.cause != Cause::SlowStart && records.len() >= CUT as usize + LEFT_MIN {
            answers.extend(answer(
                cut,
                of_capture(&records, &[CaptureChange::Start { packets: CUT }]),
            ));
        }
        for (vantage, _, word) in POOR.into_iter().filter(|(_, at, _)| poor && *at == host) {
            let change = CaptureChange::parse(word, Some(host))?;
            answers.extend(answer(vantage, of_capture(&records, &[change])));
        }
    }
    let [sender, receiver] = ["server", "client"].map(|host| samples(run, host));
    let (sender, receiver) = (sender?, receiver?);
    let by_sockets = from_samples(&sender, &receiver, INTERVAL, PathHint::default());
    answers.extend(answer(Vantage::Sockets, Some(by_sockets)));
    if poor {
        let by_sender = from_samples(&sender, &[], INTERVAL, PathHint::default());
        answers.extend(answer(Vantage::Sender, Some(by_sender)));
        let by_receiver = from_receiver(&receiver, INTERVAL, PathHint::default());
        answers.extend(answer(Vantage::Receiver, Some(by_receiver)));
        let ends = [&sender[..], &receiver[..]];
        answers.extend(match purpose {
            Purpose::Lessons => followed::lessons(run, sequence.as_ref(), ends),
            _ => followed::answers(run, sequence.as_ref(), ends),
        });
    }
    Ok(answers)
}

/// When the first of two causes ends and the second begins, on the captures' clock. The first is
/// always the link.
pub(super) struct Sequence {
    then: Limit,
    pub(super) at: Instant,
    /// The time of the first packet. The samples' clock is compared with it.
    pub(super) start: Instant,
}

impl Sequence {
    /// When the second cause begins, on the verdict's clock.
    fn at(&self, verdict: &Verdict, has_own_clock: bool) -> Instant {
        let first = verdict.intervals.first().map_or(self.start, |interval| interval.start);
        if has_own_clock { first + self.at.since(self.start) } else { self.at }
    }

    /// The fraction of the time to which a verdict gives the right limit.
    fn time_right(&self, verdict: &Verdict, has_own_clock: bool) -> f64 {
        let at = self.at(verdict, has_own_clock);
        let (mut right, mut all) = (0.0, 0.0);
        for interval in &verdict.intervals {
            let limit = if interval.start < at { Limit::Link } else { self.then };
            let shares = interval.candidates.iter().filter(|one| one.limit == limit);
            let length = interval.length.as_secs_f64();
            right += length * shares.map(|one| one.share).sum::<f64>();
            all += length;
        }
        if all > 0.0 { right / all } else { 0.0 }
    }
}

/// A run's sequence of two causes, if it is one.
fn sequence(run: &TruthRun) -> anyhow::Result<Option<Sequence>> {
    let Some(also) = run.also else { return Ok(None) };
    let then = if run.cause == Cause::Link { also } else { run.cause };
    let records = records(&run.folder.join("server.pcap"))?;
    let start = records.first().with_context(|| format!("{} has no packets", run.name))?.at;
    let at = match (&run.scenario.path.to_client.changes, run.scenario.transfer.write_rate_after) {
        (Some(Changes::Steps(steps)), _) => {
            start + steps.steps.last().map_or(Duration::ZERO, |step| step.at)
        }
        (_, Some(bulk)) => time_of(bulk, &records),
        _ => start,
    };
    Ok(Some(Sequence { then: right(then), at, start }))
}

/// When `bulk` bytes had been delivered.
fn time_of(bulk: Bytes, records: &[CapturedRecord]) -> Instant {
    let verdict = of_capture(records, &[]);
    let mut carried = 0.0;
    let intervals = verdict.iter().flat_map(|verdict| &verdict.intervals);
    let reached = intervals.into_iter().find(|interval| {
        carried += interval.evidence.goodput.over(interval.length).as_f64();
        carried >= bulk.as_f64()
    });
    reached.map_or(Instant::ZERO, |interval| interval.start)
}

pub(super) fn answer(
    run: &TruthRun,
    sequence: Option<&Sequence>,
    vantage: Vantage,
    verdict: Option<Verdict>,
) -> Option<RunVerdict> {
    let verdict = verdict?;
    let first = verdict.limited_by();
    let shares = if run.cause == Cause::SlowStart { &verdict.shares } else { &verdict.steady };
    let of_right = shares.iter().filter(|share| run.right.contains(&share.limit));
    let steady = of_right.fold(0.0, |sum, share| sum + share.share);
    use Vantage::{Receiver, Sender, ServerClock, Sockets};
    // The clock of samples has another zero, and a clock that was set cannot be compared.
    let has_own_clock = matches!(vantage, Sockets | Sender | Receiver | ServerClock);
    let time = sequence.map_or(steady, |sequence| sequence.time_right(&verdict, has_own_clock));
    Some(RunVerdict {
        vantage,
        limit: first.limit,
        confidence: verdict.confidence,
        time,
        saw_data: !verdict.intervals.is_empty(),
        traits: verdict.traits.values().to_vec(),
        parts: parts(run, sequence, &verdict, has_own_clock),
    })
}

/// The parts of a verdict that one cause holds, as lessons. A part that is mostly slow start is
/// left out, unless slow start is the cause.
fn parts(
    run: &TruthRun,
    sequence: Option<&Sequence>,
    verdict: &Verdict,
    has_own_clock: bool,
) -> Vec<(Vec<Cause>, Vec<f32>)> {
    const START: Limit = Limit::CongestionWindow(model::limit::Cause::SlowStart);
    let at = sequence.map(|sequence| sequence.at(verdict, has_own_clock));
    let then = if run.cause == Cause::Link { run.also } else { Some(run.cause) };
    let lesson = |(part, traits): &(Range<usize>, Traits)| {
        let intervals = &verdict.intervals[part.clone()];
        // What the rules said: the judge that stands must not choose the next one's lessons.
        let starts = LIMITS.iter().zip(traits.values()).find(|(limit, _)| **limit == START);
        if run.cause != Cause::SlowStart && starts.is_some_and(|(_, part)| *part > 0.34) {
            return None;
        }
        let cause = match (at, intervals.first(), intervals.last()) {
            (Some(at), _, Some(last)) if last.start + last.length <= at => Cause::Link,
            (Some(at), Some(first), _) if first.start >= at => then?,
            (Some(_), ..) => return None,
            _ => return Some((run.causes.clone(), traits.values().to_vec())),
        };
        Some((vec![cause], traits.values().to_vec()))
    };
    verdict.part_traits.iter().filter_map(lesson).collect()
}

pub(super) fn records(path: &Path) -> anyhow::Result<Vec<CapturedRecord>> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let source = Unpack::new(file).with_context(|| format!("read {}", path.display()))?;
    let mut records = Vec::new();
    read(source, |packet| records.push(CapturedRecord::from(packet)))
        .with_context(|| format!("read {}", path.display()))?;
    Ok(records)
}

/// The verdict on the direction that carried most, as `fullpipe analyze` gives it.
pub(super) fn of_capture(records: &[CapturedRecord], changes: &[CaptureChange]) -> Option<Verdict> {
    let mut analyzer = Analyzer::new(Config::default());
    let mut recapture = Recapture::new(changes);
    let mut out = Vec::new();
    let mut see = |out: &mut Vec<CapturedRecord>| {
        for record in out.drain(..) {
            let CapturedRecord { at, link_type, ref data, original_length } = record;
            analyzer.push_packet(&Packet { at, link_type, data, original_length });
        }
    };
    for record in records {
        recapture.push(record.clone(), &mut out);
        see(&mut out);
    }
    recapture.finish(&mut out);
    see(&mut out);
    let connections = analyzer.finish().connections;
    let directions = connections.iter().flat_map(|one| {
        [Direction::ServerToClient, Direction::ClientToServer].map(|direction| (one, direction))
    });
    let (one, direction) =
        directions.max_by_key(|(one, direction)| one.connection.facts(*direction).payload)?;
    Some(one.diagnosis(direction)?.verdict.clone())
}

pub(super) fn samples(run: &TruthRun, host: &str) -> anyhow::Result<Vec<Sample>> {
    let path = run.folder.join(format!("{host}.samples.jsonl"));
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().with_context(|| format!("read {}", path.display()))
}
