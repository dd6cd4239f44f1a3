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
    fn who(&self, part: &AccountPart) -> &'static str;
    /// Whose time it was, in a cell.
    fn owner(&self, owner: Owner) -> &'static str;
    /// The data of a direction, held by a limit.
    fn data(&self, direction: Option<Direction>, limit: Limit) -> String;
    /// The data of a direction, where what held it is a guess.
    fn guessed(&self, direction: Option<Direction>, headline: &str) -> String;
    /// An application took the time.
    fn no_network(&self) -> &'static str;
    /// Who acts where the answer is a guess.
    fn nobody_yet(&self) -> &'static str;
    /// Who acts against a path that drops from bursts.
    fn sends_evenly(&self) -> &'static str;
    /// Who acts where nothing held a short transfer.
    fn nobody_for_short(&self) -> &'static str;
}
