//! Where the time of a connection went, in sentences and as a table.

mod chinese;
mod english;
mod sentences;

use crate::{
    Column, Layout, Table, plan,
    table::{figure, paragraph},
};
use chinese::Chinese;
use english::English;
use fullpipe_flow::Language;
use fullpipe_flow::account::{Account, AccountPart, Cause};
use fullpipe_flow::capture::segment::ApplicationProtocol;
use fullpipe_flow::connection::{Connection, Direction};
use fullpipe_flow::diagnosis::live::Answer;
use fullpipe_flow::diagnosis::{DiagnosedConnection, PacketCause, SubCause};
use fullpipe_flow::finding::{Finding, PacketRemedy, Remedy};
use fullpipe_flow::limit::Limit;
use fullpipe_model::change::Change;
use fullpipe_model::units::Duration;
use sentences::{Part, Sentences, WhoActs};

/// Below this share of the time, what the network took is not worth naming.
const SMALL: f64 = 0.05;
/// Below this share of the time, what a live connection waited for is not told.
const WORTH_TELLING: f64 = 0.05;

/// The answer to "what was waited for".
#[derive(Debug, Clone, PartialEq)]
pub struct WaitAnswer {
    /// What took the time: `4.0 s of 4.01 s: the server took 4.0 s to begin its answer`.
    pub claim: String,
    /// What would change it; `None` where nothing is known of that.
    pub remedy: Option<&'static str>,
    /// The remedy as settings.
    pub changes: Vec<Change>,
    /// Who has to act.
    pub who: &'static str,
    /// The data that a limit held, where that took the time.
    pub held: Option<HeldData>,
}

/// Data that a limit held, and what is advised on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldData {
    /// Whose data.
    pub direction: Direction,
    /// What held it.
    pub limit: Limit,
    /// The remedy of the finding about it; `None` where there is none.
    pub remedy: Option<Remedy>,
}

impl WaitAnswer {
    /// Whether it advises all this about a direction's data.
    pub(crate) fn says(&self, direction: Direction, remedy: Remedy, changes: &[Change]) -> bool {
        let has_changes = changes.is_empty() || self.changes == changes;
        let held = self.held.filter(|held| held.direction == direction);
        held.is_some_and(|held| held.remedy == Some(remedy)) && has_changes
    }
}

/// The first sentence about a connection; `None` where nothing is to be said but that it was.
pub fn answer(
    explained: &DiagnosedConnection,
    account: &Account,
    language: Language,
) -> Option<WaitAnswer> {
    let words = sentences(language);
    if let Some(missing) = missing_to_the_end(explained) {
        return Some(WaitAnswer {
            claim: language.sub_cause(&SubCause::Packets(missing)),
            remedy: words.remedy(Cause::PathMtu),
            changes: Vec::new(),
            who: words.who(WhoActs::Path),
            held: None,
        });
    }
    let first = &account
        .first()
        .filter(|part| part.lost > Duration::ZERO || matches!(part.cause, Cause::Transfer(_)))?;
    let share = words.share(first.time, account.time);
    if let Some(answer) = of_transfer(explained, first, &share, language) {
        return Some(answer);
    }
    let part = Part { connection: &explained.connection, account, part: first };
    let mut claim = told(language, &share, &words.claim(&part));
    let is_application =
        matches!(first.cause, Cause::ServerThinks | Cause::ClientThinks | Cause::Paused);
    if is_application && is_network_quick(account, first) {
        claim += words.no_network();
    }
    let remedy = against(first.cause, explained.connection.protocol, language);
    let who = words.who(WhoActs::against(first));
    let held = match first.cause {
        Cause::Transfer(limit) => {
            first.direction.map(|direction| HeldData { direction, limit, remedy: None })
        }
        _ => None,
    };
    Some(WaitAnswer { claim, remedy, changes: Vec::new(), who, held })
}

/// The answer that the path is full, where something else than the connection's account says so.
pub(super) fn path_is_full(claim: String, language: Language) -> WaitAnswer {
    of_path(claim, Remedy::NoneAtTheHosts, WhoActs::NobodyOfPath, language)
}

/// The same for a path that is policed.
pub(super) fn path_is_policed(claim: String, language: Language) -> WaitAnswer {
    let lift = Remedy::Packets(PacketRemedy::LiftPolicer);
    of_path(claim, lift, WhoActs::EvenSender, language)
}

fn of_path(claim: String, remedy: Remedy, who: WhoActs, language: Language) -> WaitAnswer {
    let (remedy, who) = (Some(language.remedy(remedy)), sentences(language).who(who));
    WaitAnswer { claim, remedy, changes: Vec::new(), who, held: None }
}

/// Large segments that had not arrived when the capture ended, while smaller ones did: somebody
/// waits for them, and no packet of the wait is there to be counted.
fn missing_to_the_end(explained: &DiagnosedConnection) -> Option<PacketCause> {
    let ways = [Direction::ClientToServer, Direction::ServerToClient].into_iter();
    ways.flat_map(|way| explained.sub_causes(way))
        .find(|cause| matches!(cause, PacketCause::PathMtu(one) if one.is_missing))
}

/// The answer where data under a limit took the time: what the finding about that limit says.
fn of_transfer(
    explained: &DiagnosedConnection,
    part: &AccountPart,
    share: &str,
    language: Language,
) -> Option<WaitAnswer> {
    let (Cause::Transfer(limit), Some(direction)) = (part.cause, part.direction) else {
        return None;
    };
    let findings = explained.findings();
    let mut of_limit = findings.iter().filter(|one| one.what.limit == limit);
    let finding = &of_limit.find(|one| one.direction == direction)?.what;
    let headline = explained.diagnosis(direction)?.headline();
    let words = sentences(language);
    let (what, who) = if headline.is_guess() {
        (words.guessed(part.direction, &language.headline(&headline)), WhoActs::NotKnown)
    } else {
        let data = words.data(part.direction, limit);
        let event = told(language, &data, &language.event(finding));
        (event, who_acts(explained, finding, part))
    };
    let claim = told(language, share, &what);
    let (remedy, changes) = (Some(language.remedy(finding.remedy)), finding.changes.clone());
    let held = Some(HeldData { direction, limit, remedy: Some(finding.remedy) });
    Some(WaitAnswer { claim, remedy, changes, who: words.who(who), held })
}

/// Whether the network took little of the time: next to nothing was repaired, and round trips took
/// no more than half of what the longest part did.
fn is_network_quick(account: &Account, longest: &AccountPart) -> bool {
    const REPAIRS: [Cause; 5] =
        [Cause::SynRepeated, Cause::Timeouts, Cause::Recovery, Cause::PathMtu, Cause::PeerGone];
    const ROUND_TRIPS: [Cause; 3] = [Cause::Connect, Cause::Tls, Cause::Turns];
    spent_on(account, &REPAIRS) < SMALL * account.time.as_secs_f64()
        && 2.0 * spent_on(account, &ROUND_TRIPS) <= longest.time.as_secs_f64()
}

/// The seconds that went on any of these.
fn spent_on(account: &Account, causes: &[Cause]) -> f64 {
    causes.iter().map(|cause| account.spent_on(*cause).as_secs_f64()).sum()
}

/// Who has to act against a limit of the data.
fn who_acts(explained: &DiagnosedConnection, finding: &Finding, part: &AccountPart) -> WhoActs {
    let mut causes = part.direction.into_iter().flat_map(|way| explained.sub_causes(way));
    let is_policed = causes.any(|cause| matches!(cause, PacketCause::Policer(_)));
    if finding.evidence.burst.is_some() || is_policed {
        return WhoActs::EvenSender;
    }
    if finding.remedy == Remedy::GrowBackSooner {
        return WhoActs::SlowedSender;
    }
    if finding.evidence.flights.is_some() {
        return WhoActs::NobodyOfShort;
    }
    if finding.remedy.is_evidence() {
        return WhoActs::NotKnown;
    }
    // Not on the data's way, which carries what it can: on the way back.
    if finding.remedy == Remedy::Packets(PacketRemedy::MakeRoomForAcks) {
        return WhoActs::Path;
    }
    WhoActs::against(part)
}

/// What took most of a connection's time, in a few words for a table; `None` where that is a limit
/// of its data, or nothing was lost.
pub fn in_short(account: &Account, language: Language) -> Option<String> {
    let first = account.first().filter(|part| part.lost > Duration::ZERO)?;
    if matches!(first.cause, Cause::Transfer(_)) {
        return None;
    }
    let share = first.time.as_secs_f64() / account.time.as_secs_f64().max(f64::MIN_POSITIVE);
    let what = sentences(language).short(first.cause);
    Some(format!("{what} {:.0} %", share * 100.0))
}

/// Whose the time of a part was, and what for, in a few words each.
pub fn in_words(part: &AccountPart, language: Language) -> (&'static str, &'static str) {
    let words = sentences(language);
    (words.owner(part.owner), words.short(part.cause))
}

/// Where the time of a live connection went: `71 % server's program (server thinks), 29 % path
/// (link)`. `None` where next to all of it is data on its way, of which the limits tell.
pub fn live(parts: &[AccountPart], language: Language) -> Option<String> {
    let all = all_of(parts).as_secs_f64();
    let shares = parts.iter().map(|part| (part, part.time.as_secs_f64() / all));
    let data = shares.clone().filter(|(part, _)| matches!(part.cause, Cause::Transfer(_)));
    if all == 0.0 || data.map(|(_, share)| share).sum::<f64>() > 1.0 - WORTH_TELLING {
        return None;
    }
    let told = shares.filter(|(_, share)| *share >= WORTH_TELLING).map(|(part, share)| {
        let (owner, what) = in_words(part, language);
        let share = figure::percent(share);
        match language {
            Language::English => format!("{share} % {owner} ({what})"),
            Language::Chinese => format!("{share} % {owner}（{what}）"),
        }
    });
    Some(told.collect::<Vec<_>>().join(match language {
        Language::English => ", ",
        Language::Chinese => "，",
    }))
}

/// What a live connection waited for where no limit held its data, or where nothing was to be sent
/// for most of the time: the longest part. `None` where a limit did, or nobody waited.
pub(super) fn longest_wait(answer: &Answer) -> Option<&AccountPart> {
    let first = answer.account.first()?;
    let is_held = answer.limit != Limit::Unknown;
    let is_wait = match first.cause {
        Cause::Transfer(_) | Cause::NotCaptured => false,
        Cause::Idle => is_held && first.time.saturating_mul(2) > all_of(&answer.account),
        _ => !is_held,
    };
    is_wait.then_some(first)
}

/// All the time of these parts.
fn all_of(parts: &[AccountPart]) -> Duration {
    parts.iter().map(|part| part.time).sum()
}

/// A time as a fraction of all that a live connection was looked at, by its account.
pub(super) fn share_of_all(answer: &Answer, time: Duration) -> f64 {
    time.as_secs_f64() / all_of(&answer.account).as_secs_f64().max(f64::MIN_POSITIVE)
}

/// The same in a few words, with its share of the time.
pub(super) fn waited(answer: &Answer, language: Language) -> Option<String> {
    let wait = longest_wait(answer)?;
    let share = share_of_all(answer, wait.time);
    Some(format!("{} {:.0} %", in_words(wait, language).1, share * 100.0))
}

/// What changes what a live connection waited for, and who has to act.
pub(super) fn against_wait(
    answer: &Answer,
    language: Language,
) -> Option<(Option<&'static str>, &'static str)> {
    let wait = longest_wait(answer)?;
    let protocol =
        ApplicationProtocol::of_ports([answer.remote, answer.local].map(|end| end.port()));
    let remedy = against(wait.cause, protocol, language);
    Some((remedy, sentences(language).who(WhoActs::against(wait))))
}

/// What changes what took the time; where the two ends wait for each other, with the settings of
/// the protocol that they speak.
fn against(
    cause: Cause,
    protocol: Option<ApplicationProtocol>,
    language: Language,
) -> Option<&'static str> {
    let asks = protocol.filter(|_| cause == Cause::Turns).and_then(PacketRemedy::ask_more_of);
    asks.map(|remedy| language.remedy(Remedy::Packets(remedy)))
        .or_else(|| sentences(language).remedy(cause))
}

/// All parts that took a thousandth of the time or more, as a table.
pub fn table(connection: &Connection, account: &Account, layout: Layout) -> String {
    let mut table = Table::new([
        Column::figure("for", "s"),
        Column::figure("of it", "%"),
        Column::figure("lost", "s").leaves(1),
        Column::text("who"),
        Column::text("what"),
    ]);
    let words = sentences(layout.language);
    let all = account.time.as_secs_f64().max(f64::MIN_POSITIVE);
    for part in &account.parts {
        let share = part.time.as_secs_f64() / all;
        if share >= 0.001 {
            table.row([
                format!("{:.3}", part.time.as_secs_f64()),
                figure::percent(share),
                format!("{:.3}", part.lost.as_secs_f64()),
                words.owner(part.owner).into(),
                words.row(&Part { connection, account, part }),
            ]);
        }
    }
    table.render(layout)
}

/// Where the time of a connection went: the answer, and the table below it. Nothing is told of
/// samples, which show no packets.
pub fn of(explained: &DiagnosedConnection, layout: Layout) -> String {
    let Some(account) = explained.account() else { return String::new() };
    let answer = answer(explained, &account, layout.language);
    text(&explained.connection, &account, answer.as_ref(), layout)
}

/// Whether something other than a limit of its data took most of its time.
pub fn is_wait(explained: &DiagnosedConnection) -> bool {
    let account = explained.account();
    let answer = account.and_then(|account| answer(explained, &account, Language::English));
    answer.is_some_and(|answer| answer.held.is_none())
}

/// The answer, if there is one, and the table of the parts below it.
pub fn text(
    connection: &Connection,
    account: &Account,
    answer: Option<&WaitAnswer>,
    layout: Layout,
) -> String {
    let labels = layout.labels();
    let mut text = String::new();
    if let Some(answer) = answer {
        text += &answer_lines(answer, "", layout);
        text.push('\n');
    }
    if !account.from_handshake && !account.parts.is_empty() {
        text += &format!("{}\n", labels.begins_in_middle);
    }
    if !account.parts.is_empty() {
        let title = labels.where_time_went;
        text += &format!("{title}\n{}\n", table(connection, account, layout));
    }
    text
}

/// The answer: what took the time, what would change that, and who must act. `indent` stands before
/// its first line.
pub(super) fn answer_lines(answer: &WaitAnswer, indent: &str, layout: Layout) -> String {
    let labels = layout.labels();
    let mut text = paragraph::fill(indent, &answer.claim, layout.width) + "\n";
    if let Some(remedy) = answer.remedy {
        text += &paragraph::fill(labels.to_change, remedy, layout.width);
        text.push('\n');
    }
    for change in &answer.changes {
        text += &plan::advice_lines(change, layout);
    }
    text + &paragraph::fill(labels.who_acts, answer.who, layout.width) + "\n"
}

fn sentences(language: Language) -> &'static dyn Sentences {
    match language {
        Language::English => &English,
        Language::Chinese => &Chinese,
    }
}

/// A sentence about `what`: with a colon between.
fn told(language: Language, what: &str, sentence: &str) -> String {
    match language {
        Language::English => format!("{what}: {sentence}"),
        Language::Chinese => format!("{what}：{sentence}"),
    }
}

fn each(time: Duration, count: u64) -> Duration {
    Duration::from_nanos(time.as_nanos() / count.max(1))
}

/// A time with three digits: nobody compares more in a sentence.
pub fn rounded(time: Duration) -> Duration {
    let nanos = time.as_nanos();
    let unit = 10_u64.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
    Duration::from_nanos(nanos.saturating_add(unit / 2) / unit * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::account::Owner;

    #[test]
    fn an_answer_advises_about_its_own_direction_and_settings_only() {
        let (down, up) = (Direction::ServerToClient, Direction::ClientToServer);
        let answer = WaitAnswer {
            claim: String::new(),
            remedy: Some("let it grow"),
            changes: Vec::new(),
            who: "",
            held: Some(HeldData {
                direction: down,
                limit: Limit::ReceiveWindow,
                remedy: Some(Remedy::GrowReceiveBuffer),
            }),
        };
        let change = r#"{"host": "receiver", "setting": "net.ipv4.tcp_rmem", "from": null,
            "to": "4096 131072 6291456", "reason": ""}"#;
        let change: Change = serde_json::from_str(change).unwrap();
        let grow = Remedy::GrowReceiveBuffer;
        assert!(answer.says(down, grow, &[]) && !answer.says(down, Remedy::ReadFaster, &[]));
        assert!(!answer.says(up, grow, &[]), "the other end has to act there");
        assert!(!answer.says(down, grow, &[change]), "a command that is not told above");
    }

    /// Milliseconds of an answer that the server was slow to begin.
    fn quick(connect: u64, turns: u64, repairs: u64, thinks: u64) -> bool {
        let part = |(cause, millis)| {
            let (owner, time) = (Owner::ServerApplication, Duration::from_millis(millis));
            AccountPart { owner, cause, direction: None, time, lost: Duration::ZERO }
        };
        let parts = [
            (Cause::ServerThinks, thinks),
            (Cause::Connect, connect),
            (Cause::Turns, turns),
            (Cause::Timeouts, repairs),
        ];
        let account = Account {
            time: Duration::from_millis(connect + turns + repairs + thinks),
            lost: Duration::ZERO,
            last_wait: None,
            from_handshake: true,
            syn_retransmissions: 0,
            requests: 1,
            turns: 1,
            tls_turns: 0,
            parts: parts.map(part).to_vec(),
        };
        is_network_quick(&account, &account.parts[0])
    }

    /// Beside a round trip of 0.88 s, nobody says that nothing in the network is slow.
    #[test]
    fn a_network_is_quick_that_takes_little_beside_the_application() {
        assert!(quick(1, 1, 0, 500) && quick(100, 100, 20, 500));
        assert!(!quick(900, 880, 0, 293) && !quick(200, 200, 0, 500));
        assert!(!quick(10, 10, 100, 500), "timeouts");
    }

    #[test]
    fn three_digits_are_enough() {
        for (nanos, shown) in [(16_320_100_000, "16.3 s"), (999_600, "1 ms"), (41, "41 ns")] {
            assert_eq!(rounded(Duration::from_nanos(nanos)).to_string(), shown);
        }
    }
}
