//! Where the time of a connection went, in sentences and as a table.

use crate::{
    Column, Layout, Table, plan,
    table::{figure, paragraph},
};
use fullpipe_flow::account::{Account, AccountPart, Cause, Owner};
use fullpipe_flow::connection::{Connection, Direction};
use fullpipe_flow::diagnosis::{DiagnosedConnection, OfDirection, PacketCause};
use fullpipe_flow::finding::words;
use fullpipe_flow::finding::{Finding, Remedy};
use fullpipe_flow::limit::Limit;
use fullpipe_model::change::Change;
use fullpipe_model::units::{Bytes, Duration};

/// Below this share of the time, what the network took is not worth naming.
const SMALL: f64 = 0.05;

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
        let is_same = |held: HeldData| held.direction == direction && held.remedy == Some(remedy);
        let has_changes = changes.is_empty() || self.changes == changes;
        self.held.is_some_and(is_same) && has_changes
    }
}

/// The first sentence about a connection; `None` where nothing is to be said but that it was.
pub fn answer(explained: &DiagnosedConnection, account: &Account) -> Option<WaitAnswer> {
    let is_data = |part: &AccountPart| matches!(part.cause, Cause::Transfer(_));
    let first = account.first().filter(|part| part.lost > Duration::ZERO || is_data(part))?;
    let share = format!("{} of {}", rounded(first.time), rounded(account.time));
    if let Some(answer) = of_transfer(explained, first, &share) {
        return Some(answer);
    }
    let words = AccountWords { connection: &explained.connection, account, part: first };
    let mut claim = format!("{share}: {}", words.claim());
    let repairs =
        [Cause::SynRepeated, Cause::Timeouts, Cause::Recovery, Cause::PathMtu, Cause::PeerGone];
    let network = repairs.map(|cause| account.spent_on(cause)).into_iter();
    let network = network.fold(Duration::ZERO, Duration::saturating_add);
    let is_application =
        matches!(first.cause, Cause::ServerThinks | Cause::ClientThinks | Cause::Paused);
    if is_application && network.as_secs_f64() < SMALL * account.time.as_secs_f64() {
        claim += "; nothing in the network is slow";
    }
    let (remedy, who) = (words.remedy(), who(first));
    let held = match first.cause {
        Cause::Transfer(limit) => {
            first.direction.map(|direction| HeldData { direction, limit, remedy: None })
        }
        _ => None,
    };
    Some(WaitAnswer { claim, remedy, changes: Vec::new(), who, held })
}

/// The answer where data under a limit took the time: what the finding about that limit says.
fn of_transfer(
    explained: &DiagnosedConnection,
    part: &AccountPart,
    share: &str,
) -> Option<WaitAnswer> {
    let (Cause::Transfer(limit), Some(direction)) = (part.cause, part.direction) else {
        return None;
    };
    let findings = explained.findings();
    let meant = |one: &&OfDirection<Finding>| one.direction == direction && one.what.limit == limit;
    let finding = &findings.iter().find(meant)?.what;
    let headline = explained.diagnosis(direction)?.headline();
    let data = format!("data from {}", direction_words(part.direction));
    let (claim, who) = if headline.is_guess() {
        (format!("{share}: {data}; what held it is a guess: {headline}"), "not known yet")
    } else {
        let claim = format!("{share}: {data}{}: {}", held_by(limit), words::event(finding));
        (claim, who_acts(explained, finding, part))
    };
    let (remedy, changes) = (Some(words::remedy(finding.remedy)), finding.changes.clone());
    let held = Some(HeldData { direction, limit, remedy: Some(finding.remedy) });
    Some(WaitAnswer { claim, remedy, changes, who, held })
}

/// Who has to act against a limit of the data.
fn who_acts(
    explained: &DiagnosedConnection,
    finding: &Finding,
    part: &AccountPart,
) -> &'static str {
    let is_policer = |cause: PacketCause| matches!(cause, PacketCause::Policer(_));
    let mut causes = part.direction.into_iter().flat_map(|way| explained.sub_causes(way));
    if finding.evidence.burst.is_some() || causes.any(is_policer) {
        return "the sender, by sending evenly, or whoever runs the path";
    }
    if finding.evidence.flights.is_some() {
        return "nobody: no setting makes it a tenth faster";
    }
    who(part)
}

/// What took most of a connection's time, in a few words for a table; `None` where that is a limit
/// of its data, or nothing was lost.
pub fn in_short(account: &Account) -> Option<String> {
    let first = account.first().filter(|part| part.lost > Duration::ZERO)?;
    if matches!(first.cause, Cause::Transfer(_)) {
        return None;
    }
    let share = first.time.as_secs_f64() / account.time.as_secs_f64().max(f64::MIN_POSITIVE);
    Some(format!("{} {:.0} %", short(first.cause), share * 100.0))
}

const fn short(cause: Cause) -> &'static str {
    match cause {
        Cause::Connect => "connecting",
        Cause::SynRepeated => "SYN repeated",
        Cause::SynUnanswered => "no answer",
        Cause::Refused => "refused",
        Cause::SynMetOldConnection => "old connection",
        Cause::Tls => "TLS handshake",
        Cause::ClientThinks => "client thinks",
        Cause::ServerThinks => "server thinks",
        Cause::Turns => "round trips",
        Cause::DelayedAck => "delayed ACK",
        Cause::Transfer(limit) => limit.words(),
        Cause::Timeouts => "timeouts",
        Cause::Recovery => "recovery",
        Cause::PathMtu => "path MTU",
        Cause::PeerGone => "peer gone",
        Cause::WindowShut => "window shut",
        Cause::Paused => "paused",
        Cause::Idle => "idle",
        Cause::Closing => "closing",
        Cause::NotCaptured => "not captured",
    }
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
    let all = account.time.as_secs_f64().max(f64::MIN_POSITIVE);
    for part in &account.parts {
        let share = part.time.as_secs_f64() / all;
        if share >= 0.001 {
            table.row([
                format!("{:.3}", part.time.as_secs_f64()),
                figure::percent(share),
                format!("{:.3}", part.lost.as_secs_f64()),
                owner(part.owner).into(),
                AccountWords { connection, account, part }.row(),
            ]);
        }
    }
    table.render(layout)
}

/// Where the time of a connection went: the answer, and the table below it. Nothing is told of
/// samples, which show no packets.
pub fn of(explained: &DiagnosedConnection, layout: Layout) -> String {
    let Some(account) = explained.account() else { return String::new() };
    let answer = answer(explained, &account);
    text(&explained.connection, &account, answer.as_ref(), layout)
}

/// Whether something other than a limit of its data took most of its time.
pub fn is_wait(explained: &DiagnosedConnection) -> bool {
    let account = explained.account();
    let answer = account.and_then(|account| answer(explained, &account));
    answer.is_some_and(|answer| answer.held.is_none())
}

/// The answer, if there is one, and the table of the parts below it.
pub fn text(
    connection: &Connection,
    account: &Account,
    answer: Option<&WaitAnswer>,
    layout: Layout,
) -> String {
    let mut text = String::new();
    if let Some(answer) = answer {
        text += &paragraph::fill("", &answer.claim, layout.width);
        text.push('\n');
        if let Some(remedy) = answer.remedy {
            text += &paragraph::fill("  to change it: ", remedy, layout.width);
            text.push('\n');
        }
        for change in &answer.changes {
            text += &plan::advice_lines(change, layout);
        }
        text += &paragraph::fill("  who must act: ", answer.who, layout.width);
        text += "\n\n";
    }
    if !account.from_handshake && !account.parts.is_empty() {
        text += "The capture begins in the middle: what was before is not known.\n";
    }
    if !account.parts.is_empty() {
        text += &format!("Where the time went:\n{}\n", table(connection, account, layout));
    }
    text
}

const fn owner(owner: Owner) -> &'static str {
    match owner {
        Owner::ClientApplication => "client's program",
        Owner::ClientHost => "client's system",
        Owner::Path => "path",
        Owner::ServerHost => "server's system",
        Owner::ServerApplication => "server's program",
        Owner::PeerGone => "peer, gone",
        Owner::NotCaptured => "not captured",
        Owner::Nobody => "nobody",
    }
}

const fn who(part: &AccountPart) -> &'static str {
    match (part.cause, part.owner) {
        (Cause::Transfer(Limit::Link), _) => "nobody: the path carries no more",
        (Cause::Transfer(Limit::Unknown), _) => "not known yet",
        // Fewer questions are asked by who asks them.
        (Cause::Turns, _) => "the client: its program asks one thing after another",
        (Cause::Tls, _) => "the server and the client: their settings of TLS",
        // The ACK is delayed at one end; the other can write so that it need not wait for it.
        (Cause::DelayedAck, Owner::ServerHost) => "the client: its program",
        (Cause::DelayedAck, _) => "the server: its program",
        (_, Owner::ClientApplication) => "the client: its program",
        (_, Owner::ClientHost) => "the client: its system",
        (_, Owner::ServerApplication) => "the server: its program",
        (_, Owner::ServerHost) => "the server: its system",
        (_, Owner::Path) => "the path",
        (_, Owner::PeerGone) => "whoever runs the end that is silent, or the path to it",
        (_, Owner::NotCaptured | Owner::Nobody) => "nobody",
    }
}

/// What is said of one part.
struct AccountWords<'a> {
    connection: &'a Connection,
    account: &'a Account,
    part: &'a AccountPart,
}

impl AccountWords<'_> {
    fn claim(&self) -> String {
        let Account { requests, turns, syn_retransmissions: repeated, .. } = *self.account;
        let time = rounded(self.part.time);
        let end = self.end();
        let waits_still = self.account.last_wait.is_some();
        match self.part.cause {
            Cause::ServerThinks if requests == 0 && waits_still => {
                "the server has the client's first message, and had not answered when the capture \
                 ended"
                    .into()
            }
            Cause::ServerThinks if requests <= 1 && waits_still => {
                "the server has the request, and had not answered when the capture ended".into()
            }
            Cause::ServerThinks if requests <= 1 && turns == 0 => {
                "the server had the request and did not answer".into()
            }
            Cause::ServerThinks if requests <= 1 => {
                format!("the server took {time} to begin its answer")
            }
            Cause::ServerThinks => format!(
                "the server took {time} to begin its {requests} answers, {} each",
                rounded(each(self.part.time, requests))
            ),
            Cause::ClientThinks if requests <= 1 => {
                format!("the client's program took {time} to ask")
            }
            Cause::ClientThinks => format!(
                "the client's program took {time} before it asked, {} for each of {requests} requests",
                rounded(each(self.part.time, requests))
            ),
            Cause::Turns => format!(
                "{turns} round trips of {}, one after another, for {requests} questions of {}",
                rounded(each(self.part.time, turns)),
                self.asked()
            ),
            Cause::Tls => self.tls(),
            Cause::SynRepeated => match repeated {
                1 => "the SYN or its answer was lost once and sent again".into(),
                2 => "the SYN or its answer was lost twice and sent again".into(),
                _ => format!("the SYN or its answer was lost {repeated} times and sent again"),
            },
            Cause::SynUnanswered => match repeated {
                0 => "nobody answered the SYN".into(),
                _ => format!("nobody answered the SYN, which was sent {} times", repeated + 1),
            },
            Cause::SynMetOldConnection => {
                "the SYN met an older connection on the same ports".into()
            }
            Cause::DelayedAck => format!(
                "small writes were held back (Nagle) for ACKs that the {end}'s kernel delayed"
            ),
            Cause::Timeouts => "the sender waited for its retransmission timer".into(),
            Cause::Recovery => "lost data was waited for until it was sent again".into(),
            Cause::PathMtu => "segments too large for the path were sent again and again, and smaller ones arrive: a path MTU black hole".into(),
            Cause::PeerGone => "one end did not answer any more, however often it was tried".into(),
            Cause::WindowShut => {
                format!("the {end}'s program did not read: its receive window was shut")
            }
            Cause::Paused => {
                format!("the {end}'s program paused in the middle of what it sent")
            }
            Cause::Transfer(limit) => {
                format!("the data from {} was on its way{}", self.direction(), held_by(limit))
            }
            Cause::Connect | Cause::Refused | Cause::Idle | Cause::Closing | Cause::NotCaptured => {
                self.row()
            }
        }
    }

    fn remedy(&self) -> Option<&'static str> {
        Some(match self.part.cause {
            Cause::ServerThinks => {
                "find what the server's program waits for: its own requests, locks, disks, a queue \
                 of requests before this one"
            }
            Cause::ClientThinks => {
                "find what the client's program does between an answer and its next request; \
                 neither the network nor the server was waited for"
            }
            Cause::Turns => {
                "ask for more at a time (a larger fetch size, batches, pipelining, several \
                 requests at once), or move the two ends nearer"
            }
            Cause::Tls => {
                "keep connections open, or resume sessions; TLS 1.3 needs one round trip where 1.2 \
                 needs two"
            }
            Cause::SynRepeated => {
                "find what drops SYNs: a full accept queue at the server (nstat \
                 TcpExtListenOverflows; listen's backlog and net.core.somaxconn), connection \
                 tracking, a firewall, a lossy path"
            }
            Cause::SynUnanswered => {
                "is the address right, does the server listen there, and does a firewall drop it?"
            }
            Cause::SynMetOldConnection => {
                "keep connections open in place of new ones, or give the client more local ports \
                 (net.ipv4.ip_local_port_range)"
            }
            Cause::DelayedAck => {
                "write each message at once (writev, a buffered writer), or set TCP_NODELAY where \
                 it is written"
            }
            Cause::Timeouts | Cause::Recovery => {
                "find what loses packets: where they were last seen, by a capture at both ends"
            }
            Cause::PathMtu => {
                "let ICMP pass that says what fits, or clamp the MSS where the tunnel begins, or lower \
                 the hosts' MTU; net.ipv4.tcp_mtu_probing=1 at the sender finds the size by itself"
            }
            Cause::PeerGone => {
                "is that host up, and does the path still know the connection (NAT, firewall, \
                 VPN)? Keep-alives and TCP_USER_TIMEOUT end such a wait sooner"
            }
            Cause::WindowShut => "find what keeps that program from reading",
            Cause::Paused => "find what keeps that program from sending on",
            _ => return None,
        })
    }

    /// The part in a row of the table.
    fn row(&self) -> String {
        let Account { requests, turns, syn_retransmissions: repeated, .. } = *self.account;
        match self.part.cause {
            Cause::Connect => "the handshake's round trip".into(),
            Cause::SynRepeated => format!("{repeated} SYN or SYN-ACK sent again"),
            Cause::SynUnanswered => "SYN not answered".into(),
            Cause::Refused => "SYN refused".into(),
            Cause::SynMetOldConnection => "SYN met an older connection".into(),
            Cause::Tls => {
                format!("round trips of the handshake of TLS ({})", self.account.tls_turns)
            }
            Cause::ClientThinks => "does not ask yet".into(),
            Cause::ServerThinks if requests == 0 => "does not answer yet".into(),
            Cause::ServerThinks => format!("does not answer yet ({requests} requests)"),
            Cause::Turns => format!("round trips of questions and answers ({turns})"),
            Cause::DelayedAck => "delays ACKs for which small data waits".into(),
            Cause::Transfer(limit) => format!("data from {}{}", self.direction(), held_by(limit)),
            Cause::Timeouts => "retransmission timers".into(),
            Cause::Recovery => "until lost data was sent again".into(),
            Cause::PathMtu => "segments too large for it".into(),
            Cause::PeerGone => "does not answer any more".into(),
            Cause::WindowShut => "does not read: window shut".into(),
            Cause::Paused => "pauses in what it sends".into(),
            Cause::Idle => "nothing to do".into(),
            Cause::Closing => "last ACK, FIN, RST".into(),
            Cause::NotCaptured => "packets are missing".into(),
        }
    }

    fn tls(&self) -> String {
        match self.account.tls_turns {
            0 | 1 => "the round trip of the handshake of TLS".into(),
            turns => format!(
                "{turns} round trips of {} for the handshake of TLS",
                rounded(each(self.part.time, turns))
            ),
        }
    }

    /// The end whose time it was.
    fn end(&self) -> &'static str {
        match self.part.owner {
            Owner::ClientApplication | Owner::ClientHost => "client",
            _ => "server",
        }
    }

    fn direction(&self) -> &'static str {
        direction_words(self.part.direction)
    }

    /// How much was asked each time.
    fn asked(&self) -> Bytes {
        let payload = self.connection.client_to_server.unique_payload.get();
        Bytes::new(payload / self.account.requests.max(1))
    }
}

const fn direction_words(direction: Option<Direction>) -> &'static str {
    match direction {
        Some(Direction::ClientToServer) => "client to server",
        _ => "server to client",
    }
}

fn held_by(limit: Limit) -> String {
    match limit {
        Limit::Unknown => String::new(),
        limit => format!(", held by the {}", limit.words()),
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

    #[test]
    fn three_digits_are_enough() {
        for (nanos, shown) in [(16_320_100_000, "16.3 s"), (999_600, "1 ms"), (41, "41 ns")] {
            assert_eq!(rounded(Duration::from_nanos(nanos)).to_string(), shown);
        }
    }
}
