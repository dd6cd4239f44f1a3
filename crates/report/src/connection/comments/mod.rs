//! What is said of a connection at its packets, for whoever reads the capture in Wireshark: each
//! wait at the packet that ended it, and each limit where it begins.
//!
//! A [`CommentPlan`] takes connections with their [spans](DiagnosedConnection::spans) and knows
//! what is to be said and when. A [`Placer`] looks at the packets of the same capture once more and
//! finds where. What is kept is bounded: of a connection the longest waits, and of all connections
//! the longest.
//!
//! Each comment ends with names for programs: `[finding=window_shut owner=client_application]`, or
//! `limit=` where data was on its way.

mod chinese;
mod english;
mod place;
mod sentences;

pub use place::{PlacedComment, PlacedComments, Placer};

use super::account::{answer, rounded};
use super::spoken;
use crate::table::escape::in_line;
use chinese::Chinese;
use english::English;
use fullpipe_flow::Language;
use fullpipe_flow::account::{AccountSpan, Cause};
use fullpipe_flow::capture::commented::{PACKET_MARK, SECTION_MARK};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::diagnosis::{DiagnosedConnection, Rank};
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::{Duration, Instant};
use place::{CommentPlace, PacketKind, When};
use sentences::CommentWords;
use std::net::SocketAddr;

/// Comments of one connection.
const OF_ONE: usize = 200;
/// Comments of all connections.
const OF_ALL: usize = 1 << 16;
/// Connections that the section's comment tells of.
const VERDICTS: usize = 20;
/// Shorter waits and limits are not worth a comment, but for the first loss.
const WORTH_TELLING: Duration = Duration::from_millis(10);

/// What is to be said at a packet.
#[derive(Debug, Clone)]
struct PlannedComment {
    /// The client, then the server.
    ends: [SocketAddr; 2],
    place: CommentPlace,
    text: String,
    /// What it is about.
    span: AccountSpan,
    /// What is said at the connection's last packet where no packet ended the wait.
    unended: Option<String>,
    /// The first packet that came when it was time, where that was of another kind.
    first_of_any: Option<u64>,
    /// How long it is about: the longest stay.
    length: Duration,
}

/// What is to be said of a capture, in one language.
#[derive(Debug, Default)]
pub struct CommentPlan {
    language: Language,
    comments: Vec<PlannedComment>,
    /// The sentences about the connections that lost most, in each language, each with its place
    /// among them.
    verdicts: Vec<(Rank, u64, [String; 2])>,
    connections: u64,
    left_out: u64,
}

impl CommentPlan {
    /// A plan in this language. The names for programs are the same in each.
    pub fn in_language(language: Language) -> CommentPlan {
        CommentPlan { language, ..CommentPlan::default() }
    }

    /// Adds a connection. It needs its spans: see [`fullpipe_flow::Config::spans`].
    pub fn add(&mut self, explained: &DiagnosedConnection) {
        self.connections += 1;
        let place = (explained.rank(), explained.connection.id);
        let last = self.verdicts.last().filter(|_| self.verdicts.len() >= VERDICTS);
        if last.is_none_or(|(rank, id, _)| place < (*rank, *id)) {
            let told = Language::ALL.map(|language| verdict(explained, language));
            self.verdicts.push((place.0, place.1, told));
            self.verdicts.sort();
            self.verdicts.truncate(VERDICTS);
        }
        let mut own = Said::new(explained, self.language);
        explained.spans().iter().for_each(|span| own.span(span));
        self.left_out += own.left_out + keep_longest(&mut own.comments, OF_ONE);
        self.comments.append(&mut own.comments);
        if self.comments.len() >= 2 * OF_ALL {
            self.left_out += keep_longest(&mut self.comments, OF_ALL);
        }
    }

    /// The comment about the whole capture: the verdict of each connection, those first that lost
    /// most.
    pub fn about(&self) -> String {
        self.about_in(self.language)
    }

    /// The same in another language.
    pub fn about_in(&self, language: Language) -> String {
        let count = self.connections;
        let words = words(language);
        let mut lines = vec![format!("{SECTION_MARK}{}", words.connections(count))];
        let own = Language::ALL.into_iter().position(|one| one == language).unwrap_or_default();
        lines.extend(self.verdicts.iter().map(|(_, _, texts)| texts[own].clone()));
        let more = count - self.verdicts.len() as u64;
        if more > 0 {
            lines.push(words.more(more));
        }
        lines.join("\n")
    }

    /// Finds the packets for what is to be said.
    pub fn placer(mut self) -> Placer {
        self.left_out += keep_longest(&mut self.comments, OF_ALL);
        Placer::new(self.comments, self.left_out)
    }
}

/// Keeps so many comments, the longest; gives how many it dropped.
fn keep_longest(comments: &mut Vec<PlannedComment>, most: usize) -> u64 {
    let dropped = comments.len().saturating_sub(most);
    if dropped > 0 {
        comments.sort_by_key(|one| std::cmp::Reverse(one.length));
        comments.truncate(most);
    }
    dropped as u64
}

/// The sentences of a language.
fn words(language: Language) -> &'static dyn CommentWords {
    match language {
        Language::English => &English,
        Language::Chinese => &Chinese,
    }
}

/// What is said of one connection, in a line.
fn verdict(explained: &DiagnosedConnection, language: Language) -> String {
    let connection = &explained.connection;
    let (id, client, server) = (connection.id, connection.client, connection.server);
    let spoken = spoken(connection, language);
    let spoken = spoken.map(|spoken| format!(" ({spoken})")).unwrap_or_default();
    let account = explained.account();
    let answer = account.and_then(|account| answer(explained, &account, language));
    let answer = answer.as_ref().map(|answer| (answer.claim.as_str(), answer.who));
    let told = words(language).verdict(answer);
    in_line(&format!("#{id} {client} > {server}{spoken}: {told}")).into_owned()
}

/// What is said of a connection at its packets.
struct Said<'a> {
    explained: &'a DiagnosedConnection,
    words: &'static dyn CommentWords,
    comments: Vec<PlannedComment>,
    left_out: u64,
    /// What holds each direction's data.
    limits: [Option<Limit>; 2],
    had_loss: bool,
    /// When the last span ends, if somebody still waits then.
    waits_until: Option<Instant>,
}

impl<'a> Said<'a> {
    fn new(explained: &'a DiagnosedConnection, language: Language) -> Said<'a> {
        let words = words(language);
        let account = explained.account();
        let waits = account.filter(|account| account.last_wait.is_some());
        let waits_until = waits.map(|account| explained.connection.start + account.time);
        let (comments, limits) = (Vec::new(), [None; 2]);
        Said { explained, words, comments, left_out: 0, limits, had_loss: false, waits_until }
    }

    fn span(&mut self, span: &AccountSpan) {
        if let Cause::Transfer(limit) = span.cause {
            return self.limit(span, limit);
        }
        let is_loss = matches!(span.cause, Cause::Recovery | Cause::Timeouts | Cause::PathMtu);
        if is_loss && !std::mem::replace(&mut self.had_loss, true) {
            self.first_loss(span);
        }
        if span.length < WORTH_TELLING {
            return;
        }
        let Some((kind, by)) = sentences::ends_with(span) else { return };
        let until = span.start + span.length;
        let is_unended = self.waits_until.is_some_and(|end| until >= end);
        let told = self.words.wait(span);
        let text = self.words.until_here(span.length, &told);
        let unended = is_unended.then(|| self.words.unended(span.length, &told));
        let place = CommentPlace { when: When::Ended(until), by, kind };
        self.say(span, place, text, unended);
        self.beginning(span);
    }

    /// The first packet that was sent again. The span begins with the last new data, and data that
    /// is sent again does not end it.
    fn first_loss(&mut self, span: &AccountSpan) {
        let from = span.start + Duration::from_nanos(1);
        let when = When::Within(from, span.start + span.length);
        let place = CommentPlace { when, by: None, kind: PacketKind::Data };
        let text = self.words.first_loss();
        self.say(span, place, text, None);
    }

    /// The packet with which a wait begins, where that tells something.
    fn beginning(&mut self, span: &AccountSpan) {
        let until = span.start + span.length;
        let (length, owner) = (span.length, self.words.owner(span.owner));
        match span.cause {
            Cause::ServerThinks => {
                let place = CommentPlace {
                    when: When::Last(span.start),
                    by: Some(Direction::ClientToServer),
                    kind: PacketKind::Data,
                };
                let text = self.words.is_asked(&owner, length);
                self.say(span, place, text, None);
            }
            Cause::WindowShut => {
                let place = CommentPlace {
                    when: When::Within(span.start, until),
                    by: Some(sentences::sent_by(span.owner)),
                    kind: PacketKind::ZeroWindow,
                };
                let text = self.words.is_shut(&owner, length);
                self.say(span, place, text, None);
            }
            _ => {}
        }
    }

    /// Where another limit begins.
    fn limit(&mut self, span: &AccountSpan, limit: Limit) {
        let Some(direction) = span.direction else { return };
        let held = &mut self.limits[usize::from(direction == Direction::ServerToClient)];
        let is_another = *held != Some(limit);
        if limit == Limit::Unknown || !is_another || span.length < WORTH_TELLING {
            return;
        }
        *held = Some(limit);
        let place = CommentPlace {
            when: When::First(span.start),
            by: Some(direction),
            kind: PacketKind::Data,
        };
        let text = self.words.held_now(span, limit, direction);
        self.say(span, place, text, None);
    }

    fn say(
        &mut self,
        span: &AccountSpan,
        place: CommentPlace,
        text: String,
        unended: Option<String>,
    ) {
        let connection = &self.explained.connection;
        let id = connection.id;
        let names = sentences::names(span);
        let [text, unended] = [Some(text), unended].map(|text| {
            text.map(|text| in_line(&format!("{PACKET_MARK}{id}: {text} {names}")).into_owned())
        });
        let Some(text) = text else { return };
        let ends = [connection.client, connection.server];
        let (span, first_of_any, length) = (*span, None, span.length);
        let comment = PlannedComment { ends, place, text, span, unended, first_of_any, length };
        self.comments.push(comment);
        if self.comments.len() >= 4 * OF_ONE {
            self.left_out += keep_longest(&mut self.comments, 2 * OF_ONE);
        }
    }
}

#[cfg(test)]
mod tests;
