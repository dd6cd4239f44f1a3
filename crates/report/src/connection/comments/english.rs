//! What is said at packets, in English.

use super::rounded;
use super::sentences::{CommentWords, in_short, owner_in_short};
use fullpipe_flow::Language;
use fullpipe_flow::account::{AccountSpan, Cause, Owner};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::Duration;

/// English.
pub(super) struct English;

impl CommentWords for English {
    fn connections(&self, count: u64) -> String {
        match count {
            1 => "1 TCP connection".into(),
            _ => format!("{count} TCP connections"),
        }
    }

    fn more(&self, count: u64) -> String {
        format!("{count} more")
    }

    fn verdict(&self, answer: Option<(&str, &str)>) -> String {
        match answer {
            Some((claim, who)) => format!("{claim}; who must act: {who}"),
            None => "nothing held it up".into(),
        }
    }

    fn owner(&self, owner: Owner) -> String {
        match owner {
            Owner::PeerGone => "an end that is gone".into(),
            Owner::NotCaptured => "what was not captured".into(),
            Owner::Nobody => "nobody".into(),
            owner => format!("the {}", owner_in_short(owner, Language::English)),
        }
    }

    fn wait(&self, span: &AccountSpan) -> String {
        let by = self.owner(span.owner);
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
            Cause::Connect | Cause::Tls | Cause::Turns | Cause::Closing | Cause::Transfer(_) => {
                in_short(span, Language::English).into()
            }
        }
    }

    fn until_here(&self, length: Duration, told: &str) -> String {
        format!("{} until here: {told}", rounded(length))
    }

    fn unended(&self, length: Duration, told: &str) -> String {
        format!("{} by the end of the capture, with no end in sight: {told}", rounded(length))
    }

    fn first_loss(&self) -> String {
        "the first data that was lost is sent again here".into()
    }

    fn is_asked(&self, owner: &str, length: Duration) -> String {
        format!("{owner} has this request, and does not answer for {}", rounded(length))
    }

    fn is_shut(&self, owner: &str, length: Duration) -> String {
        format!(
            "the window is shut here, and stays so for {}: {owner} does not read",
            rounded(length)
        )
    }

    fn held_now(&self, span: &AccountSpan, limit: Limit, direction: Direction) -> String {
        let way = match direction {
            Direction::ClientToServer => "client to server",
            Direction::ServerToClient => "server to client",
        };
        let (limit, owner) = (limit.words(), self.owner(span.owner));
        format!("from here on, data from {way} is held by the {limit}: {owner}")
    }
}
