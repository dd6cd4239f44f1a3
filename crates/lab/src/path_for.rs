//! The path that a scenario's transfer takes: that of the first rule that matches it, or the
//! default one.
//!
//! Laws, verdicts and the nominal values of a row refer to this path.

use crate::hosts::{CLIENT_ADDRESS, SERVER_ADDRESS};
use crate::program::listener;
use fullpipe_model::link::Config;
use fullpipe_model::link::rule::{PacketKey, Protocol};
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::Duration;

/// Both directions of that path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransferPath<'a> {
    /// The direction of the data.
    pub(crate) to_client: &'a Config,
    /// The direction of the acknowledgements.
    pub(crate) to_server: &'a Config,
}

/// The path of the transfer of `scenario`. The client's port is not known in advance, so a rule
/// that names one does not match.
pub(crate) fn path_for(scenario: &Scenario) -> TransferPath<'_> {
    let path = &scenario.path;
    let listener = listener(scenario);
    let source = if listener.ip() == SERVER_ADDRESS { CLIENT_ADDRESS } else { SERVER_ADDRESS };
    let key = PacketKey {
        source,
        destination: listener.ip(),
        protocol: Protocol::TCP,
        ports: Some((0, listener.port())),
    };
    match path.rules.iter().find(|rule| rule.matches.matches(&key)) {
        Some(rule) => TransferPath { to_client: &rule.to_client, to_server: &rule.to_server },
        None => TransferPath { to_client: &path.to_client, to_server: &path.to_server },
    }
}

impl TransferPath<'_> {
    /// The round-trip time that its delays add up to.
    pub(crate) fn rtt(&self) -> Duration {
        self.to_client.delay.base.saturating_add(self.to_server.delay.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::scenario::File;

    #[test]
    fn the_first_rule_that_matches_the_servers_port() {
        let rtt = |port: &str| {
            let text = format!(
                "[link]\nrtt = \"2ms\"\n[[link.rules]]\nto = \"10.77.0.1:443\"\nrtt = \"17ms\"\n\
                 [[link.rules]]\nto = \":440-450\"\nrtt = \"5ms\"\n[transfer]\n{port}"
            );
            let scenario = File::parse(&text).unwrap().scenarios("test").unwrap().remove(0);
            path_for(&scenario).rtt()
        };
        assert_eq!(rtt("port = 443"), Duration::from_millis(17));
        assert_eq!(rtt("port = 444"), Duration::from_millis(5));
        assert_eq!(rtt("port = 80"), Duration::from_millis(2));
        assert_eq!(rtt(""), Duration::from_millis(2));
    }
}
