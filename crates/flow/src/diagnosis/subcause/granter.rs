//! Whose program grants a window above TCP: as it says itself, or as the size and the protocol let
//! one guess, and what is known of its defaults.

use super::{DataSeen, ProtocolWindow};
use crate::capture::segment::ApplicationProtocol;
use crate::connection::{Direction, Greeting, Token};
use crate::windows::{KnownWindow, OwnWindows};
use fullpipe_model::units::Bytes;

/// The program at the end that sets the window, as far as the connection shows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Granter {
    /// Its name and version, in its own words.
    pub program: Option<Token>,
    /// What it says in clear text that it grants a stream of HTTP/2.
    pub says: Option<Bytes>,
    /// Nothing but the server's port tells the protocol.
    pub is_by_port: bool,
    /// TLS hides what is spoken.
    pub is_hidden: bool,
    /// The user's own entries of what programs grant.
    pub own: OwnWindows,
}

impl Granter {
    /// The one that sets this window.
    pub(super) fn of(seen: DataSeen<'_>, protocol: ProtocolWindow) -> Self {
        let connection = seen.connection;
        let data_to_client = seen.direction == Direction::ServerToClient;
        // The client that asks, or the end that receives.
        let is_client = protocol.is_the_clients() || data_to_client;
        let greeting = connection.greeting.as_deref();
        Granter {
            program: greeting.and_then(|greeting| greeting.program(is_client)),
            says: greeting.and_then(|greeting| greeting.stream_windows[usize::from(!is_client)]),
            is_hidden: connection.protocol == Some(ApplicationProtocol::Tls)
                && !greeting.is_some_and(Greeting::chose_http2),
            is_by_port: connection.protocol.is_some() && !connection.says_protocol(),
            own: connection.windows,
        }
    }

    /// The default of the program that says its name.
    pub fn default(&self, protocol: ProtocolWindow, bound: Bytes) -> Option<KnownWindow> {
        let name = self.program?;
        self.own.default_of(spoken(protocol)?, name.as_str(), bound)
    }

    /// Defaults that are as large, of whatever program.
    pub fn like(
        &self,
        protocol: ProtocolWindow,
        bound: Bytes,
    ) -> impl Iterator<Item = KnownWindow> + use<> {
        let own = self.own;
        spoken(protocol).into_iter().flat_map(move |protocol| own.like(protocol, bound))
    }
}

/// The protocol under which such windows stand in the table.
fn spoken(protocol: ProtocolWindow) -> Option<ApplicationProtocol> {
    match protocol {
        ProtocolWindow::SshChannel(_) | ProtocolWindow::SftpRequests(_) => {
            Some(ApplicationProtocol::Ssh)
        }
        ProtocolWindow::Http2 => Some(ApplicationProtocol::Http2),
        ProtocolWindow::Of(protocol) => Some(protocol),
        ProtocolWindow::Unknown => None,
    }
}
