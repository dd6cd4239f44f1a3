//! What a language has to say of where the time went.

use fullpipe_flow::account::{Account, AccountPart, Cause, Owner};
use fullpipe_flow::connection::{Connection, Direction};
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::{Bytes, Duration};

/// What is said of one part.
pub(super) struct Part<'a> {
    pub connection: &'a Connection,
    pub account: &'a Account,
    pub part: &'a AccountPart,
}

impl Part<'_> {
    /// Whether the client's end is whose time it was.
    pub(super) fn is_client(&self) -> bool {
        matches!(self.part.owner, Owner::ClientApplication | Owner::ClientHost)
    }

    /// How much was asked each time.
    pub(super) fn asked(&self) -> Bytes {
        let payload = self.connection.client_to_server.unique_payload.get();
        Bytes::new(payload / self.account.requests.max(1))
    }
}

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhoActs {
    ClientProgram,
    ClientSystem,
    ServerProgram,
    ServerSystem,
    /// Fewer questions are asked by who asks them.
    Asker,
    /// Both ends: how TLS is set.
    BothOfTls,
    Path,
    /// Who sends without pause, or who runs the path.
    EvenSender,
    /// Whose congestion control is slowed down by drops of a full link, or who runs that.
    SlowedSender,
    SilentEnd,
    /// The path is full.
    NobodyOfPath,
    /// A short transfer that nothing held.
    NobodyOfShort,
    Nobody,
    NotKnown,
}

impl WhoActs {
    /// Against what took a part of the time.
    pub(super) const fn against(part: &AccountPart) -> WhoActs {
        match (part.cause, part.owner) {
            (Cause::Transfer(Limit::Link), _) => WhoActs::NobodyOfPath,
            (Cause::Transfer(Limit::Unknown), _) => WhoActs::NotKnown,
            (Cause::Turns, _) => WhoActs::Asker,
            (Cause::Tls, _) => WhoActs::BothOfTls,
            // The ACK is delayed at one end; the other can write so that it need not wait for it.
            (Cause::DelayedAck, Owner::ServerHost) => WhoActs::ClientProgram,
            (Cause::DelayedAck, _) => WhoActs::ServerProgram,
            (_, Owner::ClientApplication) => WhoActs::ClientProgram,
            (_, Owner::ClientHost) => WhoActs::ClientSystem,
            (_, Owner::ServerApplication) => WhoActs::ServerProgram,
            (_, Owner::ServerHost) => WhoActs::ServerSystem,
            (_, Owner::Path) => WhoActs::Path,
            (_, Owner::PeerGone) => WhoActs::SilentEnd,
            (_, Owner::NotCaptured | Owner::Nobody) => WhoActs::Nobody,
        }
    }
}

/// A language's sentences.
pub(super) trait Sentences {
    /// `4 s of 4.01 s`.
    fn share(&self, part: Duration, all: Duration) -> String;
    /// What took the time.
    fn claim(&self, part: &Part<'_>) -> String;
    /// The same in a row of the table.
    fn row(&self, part: &Part<'_>) -> String;
    /// The same in a cell.
    fn short(&self, cause: Cause) -> &'static str;
    /// What would change it; `None` where nothing is known of that.
    fn remedy(&self, cause: Cause) -> Option<&'static str>;
    /// Who has to act.
    fn who(&self, who: WhoActs) -> &'static str;
    /// Whose time it was, in a cell.
    fn owner(&self, owner: Owner) -> &'static str;
    /// The data of a direction, held by a limit.
    fn data(&self, direction: Option<Direction>, limit: Limit) -> String;
    /// The data of a direction, where what held it is a guess.
    fn guessed(&self, direction: Option<Direction>, headline: &str) -> String;
    /// An application took the time.
    fn no_network(&self) -> &'static str;
}
