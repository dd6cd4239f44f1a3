//! Captures of the same connections from two places and more.

use super::{Analyze, TOP_OF_BOTH, input};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::{answer_layout, print, print_json, remark};
use fullpipe_analyze::{Capture, Error};
use fullpipe_flow::capture::Packet;
use fullpipe_flow::capture::segment::Segment;
use fullpipe_flow::connection::pair::{PairedCaptures, Pairing, Tap};
use fullpipe_flow::diagnosis::{AnsweredPair, DiagnosedConnection, answered};
use fullpipe_flow::{Analysis, Analyzer, Config, Intake};
use fullpipe_report::connection::analysis::Report;
use fullpipe_report::connection::both::{BothReport, both_page};
use serde::Serialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A place with the files of its capture.
#[derive(Debug, Clone)]
pub struct NamedPoint {
    name: String,
    files: Vec<PathBuf>,
}

/// Parses `NAME=FILE[,FILE]..`.
pub fn named_point(text: &str) -> Result<NamedPoint, Sentence> {
    let (name, files) = text.split_once('=').unwrap_or_default();
    if name.is_empty() || files.is_empty() {
        return Err(Sentence::new(
            "write NAME=FILE, or NAME=FILE,FILE for the files of a ring",
            "请写 NAME=FILE，或用 NAME=FILE,FILE 给出一组循环文件",
        ));
    }
    let files = files.split(',').filter(|file| !file.is_empty()).map(PathBuf::from).collect();
    Ok(NamedPoint { name: name.into(), files })
}

/// The JSON of two neighbouring places.
#[derive(Serialize)]
struct BothDocument<'a> {
    a: &'a str,
    b: &'a str,
    paired: &'a PairedCaptures<AnsweredPair>,
}

pub fn run(analyze: &Analyze) -> Result<u8, Failure> {
    let seen = SeenFromAll::read(points(analyze)?, &analyze.config(), false)?;
    if analyze.json {
        print_json(&seen.documents())?;
    } else {
        print(&seen.text(analyze.top.unwrap_or(TOP_OF_BOTH)))?;
    }
    seen.code("analyze --both")
}

/// What the captures of several places say together as one page, and the exit code: two files, or
/// the places that are named. There is no page where a capture that could not be read, which was
/// said, leaves nothing to show.
///
/// # Errors
/// There are too few captures, they cannot be read, or no connection is in two neighbours.
pub fn page(
    files: &[PathBuf],
    places: &[NamedPoint],
    config: &Config,
) -> Result<(Option<String>, u8), Failure> {
    let command = if places.is_empty() { "report --both" } else { "report --point" };
    let places = match places {
        [] => two(files, command)?,
        _ => named(places, command)?,
    };
    let seen = SeenFromAll::read(places, config, true)?;
    let code = seen.code(command)?;
    let names = in_short(&seen.names);
    let parts = seen.parts(&names, TOP_OF_BOTH);
    let has_any = seen.pairs.iter().any(|pair| !pair.connections.is_empty());
    Ok((has_any.then(|| both_page(&parts, answer_layout().language)), code))
}

/// What the captures of several places say, each with the next.
struct SeenFromAll {
    names: Vec<String>,
    pairs: Vec<PairedCaptures<AnsweredPair>>,
    /// Whether each was read to its end.
    is_whole: bool,
}

impl SeenFromAll {
    /// Reads the captures, with what is to be drawn if it `is_drawn`.
    fn read(
        points: Vec<(String, Capture)>,
        config: &Config,
        is_drawn: bool,
    ) -> Result<SeenFromAll, Failure> {
        let (mut names, mut pairings) = (Vec::new(), Vec::<Pairing>::new());
        let mut seen: Vec<Vec<DiagnosedConnection>> = Vec::new();
        let (mut is_whole, last) = (true, points.len() - 1);
        for (number, (name, capture)) in points.into_iter().enumerate() {
            names.push(name);
            if number < last {
                let pairing = Pairing::new();
                pairings.push(if is_drawn { pairing.drawn() } else { pairing });
            }
            let mut alone = SeenAlone::new(config, &capture);
            let read = capture.for_each_packet(|packet| {
                alone.push(packet, |segment| {
                    // It is the second place of the pair before it, and the first of the next one.
                    if let Some(before) = number.checked_sub(1).and_then(|at| pairings.get_mut(at))
                    {
                        before.push(Tap::B, packet.at, segment);
                    }
                    if let Some(next) = pairings.get_mut(number) {
                        next.push(Tap::A, packet.at, segment);
                    }
                });
                Ok::<(), Error>(())
            });
            seen.push(alone.finish());
            for problem in input::problems(read.err().into_iter().collect())? {
                remark(&format!("fullpipe: {}", Sentence::from(&problem).here()));
                is_whole = false;
            }
        }
        let pairs: Vec<PairedCaptures<AnsweredPair>> = pairings
            .into_iter()
            .enumerate()
            .map(|(at, pairing)| {
                answered(pairing.finish(), [at, at + 1].map(|at| seen[at].clone()))
            })
            .collect();
        Ok(SeenFromAll { names, pairs, is_whole })
    }

    /// Each two neighbours, for programs.
    fn documents(&self) -> Vec<BothDocument<'_>> {
        let named = self.names.windows(2).zip(&self.pairs);
        named.map(|(names, paired)| BothDocument { a: &names[0], b: &names[1], paired }).collect()
    }

    /// The same for people.
    fn text(&self, top: usize) -> String {
        let names = in_short(&self.names);
        let parts = self.parts(&names, top);
        let text = parts.iter().map(|part| part.render(answer_layout()));
        text.collect::<Vec<_>>().join("\n")
    }

    /// Each two neighbours, of which as many connections are explained; `names` are those of the
    /// places.
    fn parts<'a>(&'a self, names: &'a [String], top: usize) -> Vec<BothReport<'a>> {
        let named = names.windows(2).zip(&self.pairs);
        let parts =
            named.map(|(names, paired)| BothReport { names: [&names[0], &names[1]], paired, top });
        parts.collect()
    }

    /// The exit code of the command that was called.
    fn code(&self, command: &str) -> Result<u8, Failure> {
        let SeenFromAll { names, pairs, is_whole } = self;
        // Of a file that was not read, its own problem was said.
        let apart = pairs.iter().position(|pair| pair.connections.is_empty()).filter(|_| *is_whole);
        apart.map_or(Ok(Analyze::code(*is_whole)), |at| {
            let (a, b) = (&names[at], &names[at + 1]);
            let problem = Sentence::new(
                format!(
                    "{command}: no connection is in both {a} and {b}; were both taken at the same \
                     time, and do both have TCP headers?"
                ),
                format!(
                    "{command}：没有连接同时出现在 {a} 和 {b} 中；两者是否同时抓取，是否都有 TCP 头？"
                ),
            );
            Err(Failure::new(Kind::Run, problem))
        })
    }
}

/// What two captures say together, as `analyze --both` has it without any other option: for the
/// command that has just made them.
pub struct BothAnswer(SeenFromAll);

impl BothAnswer {
    /// Reads them, for the command that was called.
    ///
    /// # Errors
    /// They cannot be read, or no connection is in both.
    pub fn of(files: &[PathBuf], command: &str) -> Result<BothAnswer, Failure> {
        let seen = SeenFromAll::read(two(files, command)?, &Config::default(), false)?;
        seen.code(command)?;
        Ok(BothAnswer(seen))
    }

    /// For people.
    pub fn text(&self) -> String {
        self.0.text(TOP_OF_BOTH)
    }

    /// For programs.
    pub fn documents(&self) -> impl Serialize {
        self.0.documents()
    }
}

/// The names of files without their folders, where that tells them apart.
fn in_short(names: &[String]) -> Vec<String> {
    let files = names.iter().map(|name| Path::new(name).file_name()?.to_str());
    let files: HashSet<&str> = files.flatten().collect();
    if files.len() < names.len() {
        return names.to_vec();
    }
    let file = names.iter().filter_map(|name| Path::new(name).file_name());
    file.map(|file| file.to_string_lossy().into_owned()).collect()
}

/// What the capture of one place says without the others.
struct SeenAlone {
    /// Reads each packet once, for the analyzer and for the pairs.
    intake: Intake,
    analyzer: Analyzer,
    /// Of very many connections, those that lost most.
    kept: Report,
    packets: u64,
}

impl SeenAlone {
    /// Connections that have ended are taken after so many packets.
    const PORTION: u64 = 1 << 14;

    fn new(config: &Config, capture: &Capture) -> Self {
        let kept = Report::new(capture.name(), Analysis::default());
        let (intake, analyzer) = (Intake::new(config), Analyzer::new(config.clone()));
        SeenAlone { intake, analyzer, kept, packets: 0 }
    }

    /// The next packet. `see` is given its segment, if it has one that is meant.
    fn push(&mut self, packet: &Packet<'_>, see: impl FnOnce(Option<&Segment>)) {
        if let Some(now) = self.intake.tick(packet.at) {
            self.analyzer.retire(now);
        }
        let read = self.intake.open(packet);
        see(read.as_ref().map(|(arrival, _)| &arrival.segment));
        if let Some((arrival, words)) = read {
            self.analyzer.track(&arrival, words);
        }
        self.packets += 1;
        if self.packets.is_multiple_of(Self::PORTION) {
            self.analyzer.drain().into_iter().for_each(|one| self.kept.add(one));
        }
    }

    fn finish(self) -> Vec<DiagnosedConnection> {
        let SeenAlone { intake, mut analyzer, mut kept, .. } = self;
        analyzer.ends_at(intake.now());
        analyzer.finish().connections.into_iter().for_each(|one| kept.add(one));
        kept.finish();
        kept.connections
    }
}

fn points(analyze: &Analyze) -> Result<Vec<(String, Capture)>, Failure> {
    match analyze.both {
        true => two(&analyze.files, "analyze --both"),
        false => named(&analyze.point, "analyze --point"),
    }
}

/// The captures of the places that are named, for the command that was called.
fn named(places: &[NamedPoint], command: &str) -> Result<Vec<(String, Capture)>, Failure> {
    if places.len() < 2 {
        let problem = Sentence::new(
            format!("{command}: one place is compared with none; name two and more"),
            format!("{command}：只有一处，无从比较；请给出两处或更多"),
        );
        return Err(Failure::new(Kind::Usage, problem));
    }
    let opened = places.iter().map(|place| {
        let capture = input::captures(&place.files, true)?.into_iter().next();
        let problem = Sentence::new(
            format!("{command}: {} has no files", place.name),
            format!("{command}：{} 没有文件", place.name),
        );
        let capture = capture.ok_or_else(|| Failure::new(Kind::Usage, problem))?;
        Ok((place.name.clone(), capture))
    });
    opened.collect()
}

/// The captures of two places, for the command that was called.
fn two(files: &[PathBuf], command: &str) -> Result<Vec<(String, Capture)>, Failure> {
    let count = files.len();
    if count != 2 {
        let named = if command.starts_with("report") { "report" } else { "analyze" };
        let problem = Sentence::new(
            format!(
                "{command}: it compares two captures, and {count} are named; for more places, or \
                 several files of one: {named} --point NAME=FILE,FILE --point NAME=FILE .."
            ),
            format!(
                "{command}：它比较两个抓包，而给出了 {count} 个；更多处或一处的多个文件请用：{named} --point \
                 NAME=FILE,FILE --point NAME=FILE .."
            ),
        );
        return Err(Failure::new(Kind::Usage, problem));
    }
    let captures = input::captures(files, false)?;
    Ok(captures.into_iter().map(|capture| (capture.name().to_owned(), capture)).collect())
}
