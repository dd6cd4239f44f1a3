//! What is said at packets, in each language, and the names behind it.

use super::place::PacketKind;
use crate::connection::account::in_words;
use fullpipe_flow::Language;
use fullpipe_flow::account::{AccountPart, AccountSpan, Cause, Owner};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::Duration;

/// The sentences of a language.
pub(super) trait CommentWords {
    /// The capture's head: how many connections it has.
    fn connections(&self, count: u64) -> String;
    /// The same of those that are not told there.
    fn more(&self, count: u64) -> String;
    /// A connection's answer and who must act; nothing where nothing held it up.
    fn verdict(&self, answer: Option<(&str, &str)>) -> String;
    /// Whose time it was, as a subject.
    fn owner(&self, owner: Owner) -> String;
    /// What was waited for.
    fn wait(&self, span: &AccountSpan) -> String;
    /// A wait that ends at this packet.
    fn until_here(&self, length: Duration, told: &str) -> String;
    /// A wait that the capture's end cuts.
    fn unended(&self, length: Duration, told: &str) -> String;
    /// Where the first data is sent again.
    fn first_loss(&self) -> String;
    /// The request that is answered late.
    fn is_asked(&self, owner: &str, length: Duration) -> String;
    /// Where a window is shut.
    fn is_shut(&self, owner: &str, length: Duration) -> String;
    /// What holds data from here on.
    fn held_now(&self, span: &AccountSpan, limit: Limit, direction: Direction) -> String;
}

/// What was waited for, in the few words of a table.
pub(super) fn in_short(span: &AccountSpan, language: Language) -> &'static str {
    let (owner, cause, direction) = (span.owner, span.cause, span.direction);
    let (time, lost) = (Duration::ZERO, Duration::ZERO);
    in_words(&AccountPart { owner, cause, direction, time, lost }, language).1
}

/// Whose the time was, in the same words.
pub(super) fn owner_in_short(owner: Owner, language: Language) -> &'static str {
    let (cause, direction) = (Cause::Idle, None);
    let (time, lost) = (Duration::ZERO, Duration::ZERO);
    in_words(&AccountPart { owner, cause, direction, time, lost }, language).0
}

/// What kind of packet ends a wait, and who sends it; `None` where the wait is not worth a comment.
pub(super) fn ends_with(span: &AccountSpan) -> Option<(PacketKind, Option<Direction>)> {
    let by_owner = sent_by(span.owner);
    Some(match span.cause {
        Cause::SynRepeated | Cause::SynUnanswered | Cause::SynMetOldConnection => {
            (PacketKind::Syn, None)
        }
        Cause::Refused => (PacketKind::Any, None),
        Cause::ServerThinks | Cause::ClientThinks | Cause::Paused => {
            (PacketKind::Data, Some(by_owner))
        }
        Cause::WindowShut | Cause::DelayedAck => (PacketKind::Data, Some(by_owner.reversed())),
        Cause::Timeouts | Cause::Recovery | Cause::PathMtu | Cause::PeerGone => {
            (PacketKind::Sequence, None)
        }
        Cause::Idle | Cause::NotCaptured => (PacketKind::Any, None),
        Cause::Connect | Cause::Tls | Cause::Turns | Cause::Closing | Cause::Transfer(_) => {
            return None;
        }
    })
}

/// The direction of what an end sends.
pub(super) fn sent_by(owner: Owner) -> Direction {
    match owner {
        Owner::ServerApplication | Owner::ServerHost => Direction::ServerToClient,
        _ => Direction::ClientToServer,
    }
}

/// The names for programs.
pub(super) fn names(span: &AccountSpan) -> String {
    let kind = if matches!(span.cause, Cause::Transfer(_)) { "limit" } else { "finding" };
    format!("[{kind}={} owner={}]", span.cause.name(), span.owner.name())
}
