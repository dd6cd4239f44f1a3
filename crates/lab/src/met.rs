//! Which path the transfer of a scenario meets: that of the first rule that matches it, or the one for the rest.
//!
//! Laws, verdicts and what a row calls nominal are about this path.

use crate::hosts::{CLIENT_ADDRESS, SERVER_ADDRESS};
use crate::program::port;
use fullpipe_model::link::Config;
use fullpipe_model::link::rule::{PacketKey, Protocol};
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::Duration;

/// Both directions of it.
#[derive(Debug, Clone, Copy)]
pub struct Met<'a> {
    /// Way of the data.
    pub to_client: &'a Config,
    /// Way of the acknowledgements.
    pub to_server: &'a Config,
}

impl<'a> Met<'a> {
    /// What the transfer of `scenario` meets. The client's port is not known before; a rule that names one is not met.
    pub fn by(scenario: &'a Scenario) -> Met<'a> {
        let path = &scenario.path;
        let key = PacketKey {
            source: CLIENT_ADDRESS,
            destination: SERVER_ADDRESS,
            protocol: Protocol::TCP,
            ports: Some((0, port(scenario))),
        };
        match path.rules.iter().find(|rule| rule.matches.matches(&key)) {
            Some(rule) => Met { to_client: &rule.to_client, to_server: &rule.to_server },
            None => Met { to_client: &path.to_client, to_server: &path.to_server },
        }
    }

    /// The round-trip time that its delays add up to.
    pub fn rtt(&self) -> Duration {
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
            let scenario = File::parse(&text).unwrap().scenarios(&text, "test").unwrap().remove(0);
            Met::by(&scenario).rtt()
        };
        assert_eq!(rtt("port = 443"), Duration::from_millis(17));
        assert_eq!(rtt("port = 444"), Duration::from_millis(5));
        assert_eq!(rtt("port = 80"), Duration::from_millis(2));
        assert_eq!(rtt(""), Duration::from_millis(2));
    }
}
