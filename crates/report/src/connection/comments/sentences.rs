//! The sentences at packets, and the names behind them.

use super::place::PacketKind;
use crate::connection::account::in_words;
use fullpipe_flow::Language;
use fullpipe_flow::account::{AccountPart, AccountSpan, Cause, Owner};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::Duration;

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

/// Whose time it was, as a subject.
pub(super) fn owner(owner: Owner) -> String {
    match owner {
        Owner::PeerGone => "an end that is gone".into(),
        Owner::NotCaptured => "what was not captured".into(),
        Owner::Nobody => "nobody".into(),
        owner => {
            let cause = Cause::Idle;
            let part = part(owner, cause, None);
            format!("the {}", in_words(&part, Language::English).0)
        }
    }
}

fn part(owner: Owner, cause: Cause, direction: Option<Direction>) -> AccountPart {
    AccountPart { owner, cause, direction, time: Duration::ZERO, lost: Duration::ZERO }
}

/// What was waited for.
pub(super) fn wait(span: &AccountSpan) -> String {
    let by = owner(span.owner);
    match span.cause {
        Cause::SynRepeated => {
            "the SYN or its answer was lost, and is sent again; the path had the time".into()
        }
        Cause::SynUnanswered => "nobody answers the SYN".into(),
        Cause::SynMetOldConnection => {
            format!("the SYN met an older connection on the same ports; {by} had the time")
        }
        Cause::Refused => format!("{by} refuses the SYN"),
        Cause::ServerThinks => format!("{by} had the request and did not answer"),
        Cause::ClientThinks => format!("{by} had its answer and did not ask"),
        Cause::DelayedAck => {
            format!("{by} delayed an ACK for which small data was held back (Nagle)")
        }
        Cause::Timeouts => {
            "the sender waited for its retransmission timer; the path had lost the data".into()
        }
        Cause::Recovery => "lost data was waited for until it was sent again; the path".into(),
        Cause::PathMtu => "segments too large for the path were sent again and again".into(),
        Cause::PeerGone => "an end does not answer any more, however often it is tried".into(),
        Cause::WindowShut => format!("{by} did not read: its receive window was shut"),
        Cause::Paused => format!("{by} paused in the middle of what it sent"),
        Cause::Idle => "nobody had anything to send".into(),
        Cause::NotCaptured => "packets are missing in the capture".into(),
        cause => in_words(&part(span.owner, cause, span.direction), Language::English).1.into(),
    }
}

/// What holds data.
pub(super) fn held(span: &AccountSpan, limit: Limit, direction: Direction) -> String {
    let way = match direction {
        Direction::ClientToServer => "client to server",
        Direction::ServerToClient => "server to client",
    };
    format!("data from {way} is held by the {}: {}", limit.words(), owner(span.owner))
}

/// The names for programs.
pub(super) fn names(span: &AccountSpan) -> String {
    let kind = if matches!(span.cause, Cause::Transfer(_)) { "limit" } else { "finding" };
    format!("[{kind}={} owner={}]", span.cause.name(), span.owner.name())
}
