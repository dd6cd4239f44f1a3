//! Conversations whose times are known: what the account says of them, at both ends, beside what
//! was built in. How long the server took is what its own wire shows, where nothing was lost: its
//! timers and its own work add to what it was told.

use super::Truth;
use super::runs::{Wanted, is_of, place, read, run_missing};
use anyhow::{Context, ensure};
use fullpipe_flow::account::{Account, Cause};
use fullpipe_flow::capture::segment::{Flags, Parsed, Segment};
use fullpipe_flow::capture::{Packet, Unpack, read as read_packets};
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::scenario::{self, Conversation, conversation};
use fullpipe_model::units::Duration;
use std::path::Path;

/// A time is right within this, or within one of so many parts of a round trip, for each request.
const WITHIN: Duration = Duration::from_millis(1);
const PARTS_OF_A_ROUND_TRIP: u64 = 50;
/// A cause that is built in to give back this share of the time is the first that is told.
const MOST: f64 = 0.5;

/// What an account says that was built in.
#[derive(Debug, Default, Clone, Copy)]
struct ConversationScore {
    accounts: u32,
    requests: u32,
    /// Those in which nothing was lost, and of them those whose times are right.
    lossless: u32,
    thinks: u32,
    connects: u32,
    /// Those in which one cause outweighs all others, and of them those that are told so.
    clear: u32,
    first: u32,
}

/// Runs what is missing of the set, and prints how many accounts are right, and which are not.
pub fn run(options: &Truth) -> anyhow::Result<()> {
    let (scores, wrong) = scores(options)?;
    wrong.iter().for_each(|wrong| println!("{wrong}"));
    println!("\n| at | requests | server's time | connecting | first owner |");
    println!("|---|---|---|---|---|");
    for (score, end) in scores.iter().zip(["the server", "the client"]) {
        let ConversationScore { accounts, requests, lossless, thinks, connects, clear, first } =
            *score;
        let cells =
            [(requests, accounts), (thinks, lossless), (connects, lossless), (first, clear)]
                .map(|(right, all)| format!("{right} of {all}"));
        println!("| {end} | {} |", cells.join(" | "));
    }
    Ok(())
}

/// A few conversations, in all of which requests and first owners are right, and at the server its
/// time.
///
/// # Errors
/// If a run failed, or an account is wrong.
pub fn smoke(options: &Truth) -> anyhow::Result<()> {
    let (scores, wrong) = scores(options)?;
    for score in &scores {
        let ConversationScore { accounts, requests, clear, first, .. } = *score;
        ensure!(accounts == options.count, "conversations: {accounts} of {} ran", options.count);
        ensure!(requests == accounts && first == clear, "conversations: {wrong:?}");
    }
    let [at_server, _] = scores;
    ensure!(at_server.thinks == at_server.lossless, "conversations: {wrong:?}");
    Ok(())
}

/// Runs what is missing of the set; the scores at the server and at the client, and what is wrong.
fn scores(options: &Truth) -> anyhow::Result<([ConversationScore; 2], Vec<String>)> {
    let set = options.runs.join(format!("conversations-{}", options.seed));
    let drawn: Vec<Conversation> =
        (0..options.count).map(|index| conversation(options.seed, index)).collect();
    if !options.no_run {
        let all: Vec<Wanted> = drawn.iter().map(wanted).collect();
        for (name, why) in run_missing(options, &set, &all)? {
            eprintln!("truth: {name} failed: {why}");
        }
    }
    let mut scores = [ConversationScore::default(); 2];
    let mut all_wrong = Vec::new();
    for one in &drawn {
        let wanted = wanted(one);
        let place = place(&set, &wanted);
        if !is_of(&place, &wanted, options) {
            continue;
        }
        let run = read(wanted, &place)?;
        let taken = (!one.is_lossy)
            .then(|| taken_at_server(&run.folder.join("server.pcap")))
            .transpose()?;
        for (score, end) in scores.iter_mut().zip(["server", "client"]) {
            let account = account_of(&run.folder.join(format!("{end}.pcap")))?;
            let wrong = score.add(one, taken, &account).into_iter();
            all_wrong.extend(wrong.map(|wrong| format!("{} at the {end}: {wrong}", one.name)));
        }
    }
    Ok((scores, all_wrong))
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

/// Calls `see` with each packet of a capture.
fn each_packet(file: &Path, see: impl FnMut(Packet<'_>)) -> anyhow::Result<()> {
    let opened = std::fs::File::open(file).map_err(anyhow::Error::from).and_then(|file| {
        read_packets(Unpack::new(file)?, see)?;
        Ok(())
    });
    opened.with_context(|| format!("read {}", file.display()))
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

/// How long the server's host took from each request to the first byte of its answer, by a capture
/// there in which nothing is sent again.
fn taken_at_server(file: &Path) -> anyhow::Result<Duration> {
    let (mut taken, mut asked, mut client) = (Duration::ZERO, None, None);
    each_packet(file, |packet| {
        // Guests capture IP.
        let parsed = Segment::from_ip(packet.data, packet.original_length);
        let Parsed::Tcp(segment) = parsed else { return };
        if segment.flags.any(Flags::SYN) {
            client = client.or(Some(segment.source));
        } else if segment.payload_len() > 0 && client == Some(segment.source) {
            asked = Some(packet.at);
        } else if segment.payload_len() > 0
            && let Some(asked) = asked.take()
        {
            taken = taken.saturating_add(packet.at.since(asked));
        }
    })?;
    Ok(taken)
}

impl ConversationScore {
    /// Adds an account; returns what is wrong in it.
    fn add(
        &mut self,
        one: &Conversation,
        taken: Option<Duration>,
        account: &Account,
    ) -> Vec<String> {
        self.accounts += 1;
        let mut wrong = Vec::new();
        let each = WITHIN.max(Duration::from_nanos(one.rtt.as_nanos() / PARTS_OF_A_ROUND_TRIP));
        let requests = u64::from(one.requests);
        self.requests += is_right(
            &mut wrong,
            "requests",
            account.requests.to_string(),
            requests.to_string(),
            account.requests == requests,
        );
        if let Some(taken) = taken {
            self.lossless += 1;
            let thinks = account.spent_on(Cause::ServerThinks);
            self.thinks += is_right(
                &mut wrong,
                "the server's time",
                thinks.to_string(),
                taken.to_string(),
                thinks.abs_diff(taken) <= each.saturating_mul(requests),
            );
            let connect = account.spent_on(Cause::Connect);
            self.connects += is_right(
                &mut wrong,
                "connecting",
                connect.to_string(),
                one.rtt.to_string(),
                connect.abs_diff(one.rtt) <= each.saturating_mul(2),
            );
        }
        if let Some(cause) = first_cause(one, account) {
            self.clear += 1;
            let first = account.first().map(|part| part.cause);
            self.first += is_right(
                &mut wrong,
                "first",
                first.map_or("nothing", Cause::name).to_owned(),
                cause.name().to_owned(),
                first == Some(cause),
            );
        }
        wrong
    }
}

/// 1 where it is so; otherwise 0, and what was said for what was built in is noted.
fn is_right(
    wrong: &mut Vec<String>,
    what: &str,
    said: String,
    built_in: String,
    is_so: bool,
) -> u32 {
    if !is_so {
        wrong.push(format!("{what} {said} for {built_in}"));
    }
    u32::from(is_so)
}

/// The cause that was built in to give back most of the time; `None` where none outweighs all.
fn first_cause(one: &Conversation, account: &Account) -> Option<Cause> {
    let requests = u64::from(one.requests);
    let built_in = [
        (Cause::ServerThinks, one.answer_after.saturating_mul(requests)),
        (Cause::Turns, one.rtt.saturating_mul(requests - 1)),
    ];
    let most = account.time.as_secs_f64() * MOST;
    built_in.into_iter().find(|(_, time)| time.as_secs_f64() > most).map(|(cause, _)| cause)
}
