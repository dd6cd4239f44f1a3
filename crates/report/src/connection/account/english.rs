//! Where the time went, in English.

use super::sentences::{Part, Sentences, WhoActs};
use super::{each, rounded};
use fullpipe_flow::account::{Account, Cause, Owner};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::Duration;

/// English.
pub(super) struct English;

impl Sentences for English {
    fn share(&self, part: Duration, all: Duration) -> String {
        format!("{} of {}", rounded(part), rounded(all))
    }

    fn claim(&self, part: &Part<'_>) -> String {
        let Account { requests, turns, syn_retransmissions: repeated, .. } = *part.account;
        let time = rounded(part.part.time);
        let end = end_of(part);
        let waits_still = part.account.last_wait.is_some();
        match part.part.cause {
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
                rounded(each(part.part.time, requests))
            ),
            Cause::ClientThinks if requests <= 1 => {
                format!("the client's program took {time} to ask")
            }
            Cause::ClientThinks => format!(
                "the client's program took {time} before it asked, {} for each of {requests} requests",
                rounded(each(part.part.time, requests))
            ),
            Cause::Turns => format!(
                "{turns} round trips of {}, one after another, for {requests} questions of {}",
                rounded(each(part.part.time, turns)),
                part.asked()
            ),
            Cause::Tls => tls(part),
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
                format!("the data from {} was on its way{}", direction_words(part.part.direction), held_by(limit))
            }
            Cause::Connect | Cause::Refused | Cause::Idle | Cause::Closing | Cause::NotCaptured => {
                self.row(part)
            }
        }
    }

    fn row(&self, part: &Part<'_>) -> String {
        let Account { requests, turns, syn_retransmissions: repeated, .. } = *part.account;
        match part.part.cause {
            Cause::Connect => "the handshake's round trip".into(),
            Cause::SynRepeated => format!("{repeated} SYN or SYN-ACK sent again"),
            Cause::SynUnanswered => "SYN not answered".into(),
            Cause::Refused => "SYN refused".into(),
            Cause::SynMetOldConnection => "SYN met an older connection".into(),
            Cause::Tls => {
                format!("round trips of the handshake of TLS ({})", part.account.tls_turns)
            }
            Cause::ClientThinks => "does not ask yet".into(),
            Cause::ServerThinks if requests == 0 => "does not answer yet".into(),
            Cause::ServerThinks => format!("does not answer yet ({requests} requests)"),
            Cause::Turns => format!("round trips of questions and answers ({turns})"),
            Cause::DelayedAck => "delays ACKs for which small data waits".into(),
            Cause::Transfer(limit) => {
                format!("data from {}{}", direction_words(part.part.direction), held_by(limit))
            }
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

    fn short(&self, cause: Cause) -> &'static str {
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

    fn remedy(&self, cause: Cause) -> Option<&'static str> {
        Some(match cause {
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

    fn who(&self, who: WhoActs) -> &'static str {
        match who {
            WhoActs::ClientProgram => "the client: its program",
            WhoActs::ClientSystem => "the client: its system",
            WhoActs::ServerProgram => "the server: its program",
            WhoActs::ServerSystem => "the server: its system",
            WhoActs::Asker => "the client: its program asks one thing after another",
            WhoActs::BothOfTls => "the server and the client: their settings of TLS",
            WhoActs::Path => "the path",
            WhoActs::EvenSender => "the sender, by sending evenly, or whoever runs the path",
            WhoActs::SlowedSender => {
                "the sender, by its congestion control, or whoever runs the link"
            }
            WhoActs::SilentEnd => "whoever runs the end that is silent, or the path to it",
            WhoActs::NobodyOfPath => "nobody: the path carries no more",
            WhoActs::NobodyOfShort => "nobody: no setting makes it a tenth faster",
            WhoActs::Nobody => "nobody",
            WhoActs::NotKnown => "not known yet",
        }
    }

    fn owner(&self, owner: Owner) -> &'static str {
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

    fn data(&self, direction: Option<Direction>, limit: Limit) -> String {
        format!("data from {}{}", direction_words(direction), held_by(limit))
    }

    fn guessed(&self, direction: Option<Direction>, headline: &str) -> String {
        let data = format!("data from {}", direction_words(direction));
        format!("{data}; what held it is a guess: {headline}")
    }

    fn no_network(&self) -> &'static str {
        "; nothing in the network is slow"
    }
}

fn tls(part: &Part<'_>) -> String {
    match part.account.tls_turns {
        0 | 1 => "the round trip of the handshake of TLS".into(),
        turns => format!(
            "{turns} round trips of {} for the handshake of TLS",
            rounded(each(part.part.time, turns))
        ),
    }
}

/// The end whose time it was.
fn end_of(part: &Part<'_>) -> &'static str {
    if part.is_client() { "client" } else { "server" }
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
