//! Conversations whose times are known: what the account says of them, at both ends, beside what
//! was built in. How long an end took is what its own wire shows, where nothing was lost: its
//! timers and its own work add to what it was told.

use super::Truth;
use super::own_wire::{OwnWire, each_packet};
use super::runs::{Wanted, is_of, place, read, run_missing};
use anyhow::{Context, ensure};
use fullpipe_flow::account::{Account, Cause};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::scenario::{self, Conversation, Hindrance, conversation};
use fullpipe_model::units::Duration;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A time is right within this, or within one of so many parts of a round trip, for each request;
/// a hang and all that is lost within this share of it.
const WITHIN: Duration = Duration::from_millis(1);
const PARTS_OF_A_ROUND_TRIP: u64 = 50;
const OF_A_HANG: f64 = 0.02;
const OF_THE_LOST: f64 = 0.02;
/// A wait that has lasted so long when the capture ends is a hang.
const HANG: Duration = Duration::from_secs(5);
/// A cause that is built in to give back this share of the time is the first that is told.
const MOST: f64 = 0.5;

/// How many of those in which something is known are told so.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    right: u32,
    all: u32,
}

/// What accounts say that was built in.
#[derive(Debug, Default, Clone, Copy)]
struct ConversationScore {
    requests: Tally,
    answering: Tally,
    asking: Tally,
    connecting: Tally,
    lost: Tally,
    hang: Tally,
    first: Tally,
}

impl ConversationScore {
    const COLUMNS: [&'static str; 7] =
        ["requests", "server's time", "client's time", "connecting", "lost", "hang", "first owner"];

    fn tallies(self) -> [Tally; 7] {
        let ConversationScore { requests, answering, asking, connecting, lost, hang, first } = self;
        [requests, answering, asking, connecting, lost, hang, first]
    }
}

/// Runs what is missing of the set, and prints how many accounts are right, and which are not.
pub fn run(options: &Truth) -> anyhow::Result<()> {
    let (scores, wrong) = scores(options)?;
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    println!("\n| at | {} |", ConversationScore::COLUMNS.join(" | "));
    println!("|---|{}", "---|".repeat(ConversationScore::COLUMNS.len()));
    for (score, end) in scores.iter().zip(["the server", "the client"]) {
        let cells = score.tallies().map(|Tally { right, all }| format!("{right} of {all}"));
        println!("| {end} | {} |", cells.join(" | "));
    }
    Ok(())
}

/// A few conversations, in all of which requests, hangs and first owners are right, and at the
/// server its time.
///
/// # Errors
/// If a run failed, or an account is wrong.
pub fn smoke(options: &Truth) -> anyhow::Result<()> {
    let (scores, wrong) = scores(options)?;
    for score in &scores {
        let ConversationScore { requests, hang, first, .. } = *score;
        let ran = requests.all;
        ensure!(ran == options.count, "conversations: {ran} of {} ran", options.count);
        for tally in [requests, hang, first] {
            ensure!(tally.right == tally.all, "conversations: {wrong:?}");
        }
    }
    let [at_server, _] = scores;
    ensure!(at_server.answering.right == at_server.answering.all, "conversations: {wrong:?}");
    Ok(())
}

/// Runs what is missing of the set; the scores at the server and at the client, and what is wrong.
fn scores(options: &Truth) -> anyhow::Result<([ConversationScore; 2], Vec<String>)> {
    let mut scores = [ConversationScore::default(); 2];
    let mut all_wrong = Vec::new();
    for ConversationRun { one, captures, wires } in all(options)? {
        for (score, end) in scores.iter_mut().zip(ENDS) {
            let account = account_of(&captures[end.at])?;
            let known = known(&one, &wires, end);
            let wrong = SeenConversation { known, account: &account }.score(score).into_iter();
            let name = end.name;
            all_wrong.extend(wrong.map(|wrong| format!("{} at the {name}: {wrong}", one.name)));
        }
    }
    Ok((scores, all_wrong))
}

/// An end of a conversation.
#[derive(Clone, Copy)]
struct ConversationEnd {
    name: &'static str,
    /// Its place among the captures of a run.
    at: usize,
    /// Its place among ends of which 0 is the client.
    here: usize,
}

/// Both ends, in the order of a run's captures.
const ENDS: [ConversationEnd; 2] = [
    ConversationEnd { name: "server", at: 0, here: 1 },
    ConversationEnd { name: "client", at: 1, here: 0 },
];

/// A conversation that ran: its captures and what they show, the server's first.
struct ConversationRun {
    one: Conversation,
    captures: [PathBuf; 2],
    wires: [OwnWire; 2],
}

/// Runs what is missing of the set; all that is there.
fn all(options: &Truth) -> anyhow::Result<Vec<ConversationRun>> {
    let set = options.runs.join(format!("conversations-{}", options.seed));
    let drawn: Vec<Conversation> =
        options.numbers().map(|index| conversation(options.seed, index)).collect();
    if !options.no_run {
        let all: Vec<Wanted> = drawn.iter().map(wanted).collect();
        for (name, why) in run_missing(options, &set, &all)? {
            eprintln!("truth: {name} failed: {why}");
        }
    }
    let mut runs = Vec::new();
    for one in drawn {
        let wanted = wanted(&one);
        let place = place(&set, &wanted);
        if !is_of(&place, &wanted, options) {
            continue;
        }
        let run = read(wanted, &place)?;
        let captures = ENDS.map(|end| run.folder.join(format!("{}.pcap", end.name)));
        let wires = [OwnWire::read(&captures[0])?, OwnWire::read(&captures[1])?];
        runs.push(ConversationRun { one, captures, wires });
    }
    Ok(runs)
}

fn known<'a>(
    one: &'a Conversation,
    wires: &'a [OwnWire; 2],
    end: ConversationEnd,
) -> KnownConversation<'a> {
    let [server, client] = wires;
    let taken = [client.asking, server.answering];
    KnownConversation { one, taken, wire: &wires[end.at], here: end.here }
}

/// What took most of each conversation's time, as each end's capture can know it.
pub fn labels(options: &Truth) -> anyhow::Result<Vec<ConversationLabel>> {
    let mut labels = Vec::new();
    for ConversationRun { one, captures, wires } in all(options)? {
        for end in ENDS {
            let known = known(&one, &wires, end);
            labels.push(ConversationLabel {
                name: one.name.clone(),
                end: end.name,
                capture: captures[end.at].clone(),
                cause: known.first_cause(known.wire.time()),
                hindrance: one.hindrance,
            });
        }
    }
    Ok(labels)
}

/// What is right for one capture of a conversation.
pub struct ConversationLabel {
    pub name: String,
    pub end: &'static str,
    pub capture: PathBuf,
    /// What took more than half of the time; `None` where nothing did.
    pub cause: Option<Cause>,
    pub hindrance: Hindrance,
}

fn wanted(one: &Conversation) -> Wanted {
    Wanted {
        name: one.name.clone(),
        cause: scenario::Cause::SenderApplication,
        also: None,
        text: one.text.clone(),
        is_relaxed: false,
    }
}

/// The account of the longest connection of a capture.
fn account_of(file: &Path) -> anyhow::Result<Account> {
    let mut analyzer = Analyzer::new(Config::default());
    each_packet(file, |packet| {
        analyzer.push_packet(&packet);
    })?;
    let found = analyzer.finish().connections;
    let longest = found.iter().max_by_key(|one| one.connection.duration);
    longest.and_then(|one| one.account()).with_context(|| format!("{}: no account", file.display()))
}

/// What is known of a conversation without any analysis, at the end of one capture.
struct KnownConversation<'a> {
    one: &'a Conversation,
    /// How long the client and the server took, by their own wires.
    taken: [Duration; 2],
    /// The packets of this capture.
    wire: &'a OwnWire,
    /// The end at which it was taken: 0 is the client.
    here: usize,
}

/// A conversation as the account of one end's capture has it.
struct SeenConversation<'a> {
    known: KnownConversation<'a>,
    account: &'a Account,
}

impl KnownConversation<'_> {
    /// What somebody waited for when the capture ended, and since when.
    fn hang(&self) -> Option<(Cause, Duration)> {
        let shut = self.wire.shut().map(|time| (Cause::WindowShut, time));
        let gone = self.wire.unheard(self.here).map(|time| (Cause::PeerGone, time));
        shut.or(gone).filter(|(_, time)| *time >= HANG)
    }

    /// The cause that took most of `time`, all of the conversation's; `None` where none outweighs
    /// all.
    fn first_cause(&self, time: Duration) -> Option<Cause> {
        let KnownConversation { one, wire, .. } = *self;
        let [asking, answering] = if one.hindrance.is_harmless() {
            self.taken
        } else {
            let between = wire.requests.saturating_sub(1);
            [one.ask_after.saturating_mul(between), one.answer_after.saturating_mul(wire.requests)]
        };
        let turns = one.rtt.saturating_mul(wire.requests.saturating_sub(1));
        let built_in = [
            (Cause::ServerThinks, answering),
            (Cause::ClientThinks, asking),
            (Cause::Turns, turns),
            (Cause::SynRepeated, wire.syn_repeated),
        ];
        let most = time.as_secs_f64() * MOST;
        let mut all = built_in.into_iter().chain(self.hang());
        all.find(|(_, time)| time.as_secs_f64() > most).map(|(cause, _)| cause)
    }
}

impl SeenConversation<'_> {
    /// Adds it to the score; returns what is wrong in it.
    fn score(&self, score: &mut ConversationScore) -> Vec<String> {
        let SeenConversation { known, account } = self;
        let KnownConversation { one, wire, taken, .. } = *known;
        let mut wrong = WrongAccounts::default();
        let (said, truth) = (account.requests, wire.requests);
        wrong.check(&mut score.requests, "requests", said, truth, said == truth);
        let each = WITHIN.max(Duration::from_nanos(one.rtt.as_nanos() / PARTS_OF_A_ROUND_TRIP));
        let within = each.saturating_mul(wire.requests.max(2));
        if one.hindrance.is_harmless() {
            let [asking, answering] = taken;
            let thinks = account.spent_on(Cause::ServerThinks);
            wrong.time(&mut score.answering, "the server's time", thinks, answering, within);
            let asks = account.spent_on(Cause::ClientThinks);
            wrong.time(&mut score.asking, "the client's time", asks, asking, within);
            let (said, truth) = self.lost();
            let share = Duration::from_secs_f64(truth.as_secs_f64() * OF_THE_LOST);
            wrong.time(&mut score.lost, "lost", said, truth, within.max(share));
        }
        if let Some(truth) = wire.connecting() {
            let said = account.spent_on(Cause::Connect) + account.spent_on(Cause::SynRepeated);
            let within = each.saturating_mul(2);
            wrong.time(&mut score.connecting, "connecting", said, truth, within);
        }
        if let Some((cause, truth)) = known.hang() {
            let within = each.max(Duration::from_secs_f64(truth.as_secs_f64() * OF_A_HANG));
            wrong.time(&mut score.hang, cause.name(), account.spent_on(cause), truth, within);
        }
        if let Some(cause) = known.first_cause(account.time) {
            let said = account.first().map(|part| part.cause);
            let name = said.map_or("nothing", Cause::name);
            wrong.check(&mut score.first, "first", name, cause.name(), said == Some(cause));
        }
        let WrongAccounts(wrong) = wrong;
        wrong
    }

    /// What is lost outside the data, as the account says it and as it was built in.
    fn lost(&self) -> (Duration, Duration) {
        let said = self.account.parts.iter().filter(|part| is_built_in(part.cause));
        let said = said.map(|part| part.lost).sum();
        let KnownConversation { one, wire, taken: [asking, answering], .. } = self.known;
        let turns = one.rtt.saturating_mul(wire.requests.saturating_sub(1));
        let hang = wire.shut().unwrap_or_default();
        let parts = [asking, answering, turns, wire.syn_repeated, hang];
        (said, parts.into_iter().sum())
    }
}

/// Whether a set has built in what is lost for this.
fn is_built_in(cause: Cause) -> bool {
    let waits = matches!(cause, Cause::ServerThinks | Cause::ClientThinks);
    let hangs = matches!(cause, Cause::WindowShut | Cause::PeerGone);
    waits || hangs || matches!(cause, Cause::Turns | Cause::SynRepeated)
}

/// What was said for what was built in, where they differ.
#[derive(Default)]
struct WrongAccounts(Vec<String>);

impl WrongAccounts {
    fn check(
        &mut self,
        tally: &mut Tally,
        what: &str,
        said: impl Display,
        truth: impl Display,
        is_so: bool,
    ) {
        tally.all += 1;
        tally.right += u32::from(is_so);
        if !is_so {
            self.0.push(format!("{what} {said} for {truth}"));
        }
    }

    fn time(
        &mut self,
        tally: &mut Tally,
        what: &str,
        said: Duration,
        truth: Duration,
        within: Duration,
    ) {
        self.check(tally, what, said, truth, said.abs_diff(truth) <= within);
    }
}
