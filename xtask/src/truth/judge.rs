//! What the analysis says of a run, seen from several places.

use super::Run;
use anyhow::Context;
use fullpipe_flow::capture::{Packet, Unpack, read};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::{Limit, PathHint, Verdict, from_samples};
use fullpipe_flow::recapture::{Change, Recapture, Record, as_host};
use fullpipe_flow::sample::Sample;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::scenario::Cause;
use fullpipe_model::units::Duration;
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

/// Addresses of the lab's hosts.
pub(super) const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 1));
pub(super) const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 77, 0, 2));
/// Packets that a capture without its start lacks, and what must be left to be judged.
const CUT: u64 = 400;
const LEFT_MIN: usize = 800;
/// What each interval of samples spans at least.
const INTERVAL: Duration = Duration::from_millis(50);

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
    /// Only what that host sent.
    ServerSent,
    /// One packet in a hundred is not in the capture.
    ServerGaps,
    /// Each packet twice, with two hop limits.
    ServerTwice,
    /// The clock was set back while the capture ran.
    ServerClock,
}

impl Vantage {
    /// In tables.
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
        }
    }
}

/// One verdict on a run.
#[derive(Debug)]
pub struct Answer {
    pub vantage: Vantage,
    /// The limit that it names first, with the confidence that it has in it.
    pub limit: Limit,
    pub confidence: f64,
    /// The part of the steady time to which it gives the right limit.
    pub time: f64,
    /// What the judge looked at.
    pub traits: Vec<f32>,
}

impl Answer {
    /// It rests on samples, not on packets.
    pub fn is_of_sockets(&self) -> bool {
        self.vantage == Vantage::Sockets
    }
}

/// How else a capture can be poor, as `Change::parse` reads it.
const POOR: [(Vantage, &str); 4] = [
    (Vantage::ServerSent, "sent"),
    (Vantage::ServerGaps, "drop=1%"),
    (Vantage::ServerTwice, "twice"),
    (Vantage::ServerClock, "clock=500ms-200ms"),
];

/// Every answer there is to a run; of poor captures, too, where they are asked for.
pub fn answers(run: &Run, poor: bool) -> anyhow::Result<Vec<Answer>> {
    let mut answers = Vec::new();
    let edges = [
        ("server.pcap", SERVER, [Vantage::Server, Vantage::ServerMerged, Vantage::ServerCut]),
        ("client.pcap", CLIENT, [Vantage::Client, Vantage::ClientMerged, Vantage::ClientCut]),
    ];
    for (file, host, [plain, merged, cut]) in edges {
        let records = records(&run.folder.join(file))?;
        answers.extend(answer(run, plain, of_capture(&records, &[])));
        answers.extend(answer(run, merged, of_capture(&records, &as_host(host))));
        // A transfer in slow start is its start.
        if run.cause != Cause::SlowStart && records.len() >= CUT as usize + LEFT_MIN {
            answers.extend(answer(
                run,
                cut,
                of_capture(&records, &[Change::Start { packets: CUT }]),
            ));
        }
        for (vantage, word) in POOR.into_iter().filter(|_| poor && host == SERVER) {
            let change = Change::parse(word, Some(host))?;
            answers.extend(answer(run, vantage, of_capture(&records, &[change])));
        }
    }
    let [sender, receiver] = ["server", "client"].map(|host| samples(run, host));
    let by_sockets = from_samples(&sender?, &receiver?, INTERVAL, PathHint::default());
    answers.extend(answer(run, Vantage::Sockets, Some(by_sockets)));
    Ok(answers)
}

/// The limit that is right.
pub fn right(cause: Cause) -> Limit {
    let (name, cause) = cause.limit();
    Limit::from_names(name, cause).unwrap_or(Limit::Unknown)
}

fn answer(run: &Run, vantage: Vantage, verdict: Option<Verdict>) -> Option<Answer> {
    let verdict = verdict?;
    let first = verdict.limited_by();
    let shares = if run.cause == Cause::SlowStart { &verdict.shares } else { &verdict.steady };
    let right = right(run.cause);
    let time = shares.iter().find(|share| share.limit == right).map_or(0.0, |share| share.share);
    Some(Answer {
        vantage,
        limit: first.limit,
        confidence: verdict.confidence,
        time,
        traits: verdict.traits.values().to_vec(),
    })
}

pub(super) fn records(path: &Path) -> anyhow::Result<Vec<Record>> {
    let file = File::open(path).with_context(|| format!("open {}", path.display()))?;
    let source = Unpack::new(file).with_context(|| format!("read {}", path.display()))?;
    let mut records = Vec::new();
    read(source, |packet| records.push(Record::from(packet)))
        .with_context(|| format!("read {}", path.display()))?;
    Ok(records)
}

/// The verdict on the direction that carried most, as `fullpipe analyze` gives it.
pub(super) fn of_capture(records: &[Record], changes: &[Change]) -> Option<Verdict> {
    let mut analyzer = Analyzer::new(Config::default());
    let mut recapture = Recapture::new(changes);
    let mut out = Vec::new();
    let mut see = |out: &mut Vec<Record>| {
        for record in out.drain(..) {
            let Record { at, link_type, ref data, original_length } = record;
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
        directions.max_by_key(|(one, way)| one.connection.facts(*way).payload)?;
    Some(one.diagnosis(direction)?.verdict.clone())
}

fn samples(run: &Run, host: &str) -> anyhow::Result<Vec<Sample>> {
    let path = run.folder.join(format!("{host}.samples.jsonl"));
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().with_context(|| format!("read {}", path.display()))
}
