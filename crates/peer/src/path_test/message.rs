//! What the two ends of a test say to each other.

use fullpipe_model::units::{Bytes, Duration, Instant, column};
use std::collections::BTreeMap;

/// The version of these messages. Two ends of different versions do not test.
pub(super) const VERSION: u16 = 2;
/// The most connections of a run, each way.
pub(super) const CONNECTIONS_MOST: u16 = 64;
/// The longest name of a congestion control in Linux, without its end (`TCP_CA_NAME_MAX`).
const CONGESTION_MOST: usize = 15;

/// Which way data goes, as the near end (who asked for the test) sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestDirection {
    /// From the near end to the far end.
    Forward,
    /// From the far end to the near end.
    Reverse,
    /// Both at once, each over connections of its own.
    Both,
}

/// How much each connection carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// For this long.
    #[serde(rename = "time_us", with = "column::micros")]
    Time(Duration),
    /// This much.
    #[serde(rename = "bytes", with = "column::bytes")]
    Bytes(Bytes),
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Which way data goes.
    pub direction: TestDirection,
    /// How many connections carry it each way.
    pub connections: u16,
    /// How much each of them carries.
    pub amount: Amount,
    /// The senders' congestion control; the host's own where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

impl Spec {
    /// The way that connection `index` carries data: the first half forward, where both are.
    pub(super) fn direction_of(&self, index: u16) -> TestDirection {
        match self.direction {
            TestDirection::Both if index < self.connections => TestDirection::Forward,
            TestDirection::Both => TestDirection::Reverse,
            one => one,
        }
    }

    /// How many connections there are in all.
    pub(super) fn total(&self) -> u16 {
        let ways = if self.direction == TestDirection::Both { 2 } else { 1 };
        self.connections.saturating_mul(ways)
    }

    /// What is wrong with it, if runs may last for `longest`.
    pub(super) fn fault(&self, longest: Duration) -> Option<String> {
        if !(1..=CONNECTIONS_MOST).contains(&self.connections) {
            return Some(format!(
                "{} connections: between 1 and {CONNECTIONS_MOST} are possible",
                self.connections
            ));
        }
        if let Amount::Time(time) = self.amount
            && !(Duration::from_millis(100)..=longest).contains(&time)
        {
            return Some(format!("a run of {time}: between 100 ms and {longest} are possible"));
        }
        if self.amount == Amount::Bytes(Bytes::ZERO) {
            return Some("a run of no bytes measures nothing".into());
        }
        let wrong = self.congestion.as_ref().filter(|name| !is_name(name))?;
        Some(format!("'{}' is no name of a congestion control", wrong.escape_debug()))
    }
}

/// Whether a congestion control can have this name.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= CONGESTION_MOST
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// What the near end asks.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask", deny_unknown_fields)]
pub enum TestRequest {
    /// First of all.
    Hello {
        /// The version of the messages.
        version: u16,
    },
    /// What the far end's clock shows.
    Clock {},
    /// Answer probes of the path MTU, until the next run.
    Mtu {},
    /// Prepare a run, and say how to open its data connections.
    Prepare {
        /// The run.
        spec: Spec,
    },
    /// All data connections are open: begin.
    Start {},
    /// The near end is done: end, and say what was seen.
    Finish {},
    /// A piece of the samples of the last run.
    Samples {
        /// Of this connection.
        connection: u16,
        /// From this sample on.
        from: u32,
    },
}

/// What the far end saw of a connection.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Account {
    /// What it wrote, or read.
    #[serde(rename = "bytes", with = "column::bytes")]
    pub moved: Bytes,
    /// From its first data to its last.
    #[serde(rename = "time_us", with = "column::micros")]
    pub time: Duration,
    /// The share of a core that its thread took, 0 to 1.
    pub cpu: f64,
    /// How many samples there are of its socket.
    pub samples: u32,
    /// Why it ended too early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What the far end answers.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Response {
    /// To `hello`.
    Welcome {
        /// The version of the messages.
        version: u16,
        /// Linux's version there.
        kernel: String,
        /// The settings there, by their sysctl names.
        sysctls: BTreeMap<String, String>,
    },
    /// To `clock`.
    Clock {
        /// The far end's monotonic clock.
        #[serde(rename = "now_ns", with = "column::instant")]
        now: Instant,
    },
    /// To `mtu`.
    Probed {
        /// The UDP port that answers.
        port: u16,
        /// What probes must have.
        token: [u8; 16],
    },
    /// To `prepare`.
    Prepared {
        /// Names the run in tickets.
        id: String,
        /// What signs them.
        key: String,
    },
    /// To `start`.
    Started {},
    /// To `finish`.
    Report {
        /// Of each connection, in order.
        connections: Vec<Account>,
    },
    /// To anything: it is not done, and why.
    Refused {
        /// For the user.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(connections: u16, amount: Amount, congestion: Option<&str>) -> Spec {
        let congestion = congestion.map(String::from);
        Spec { direction: TestDirection::Both, connections, amount, congestion }
    }

    #[test]
    fn a_run_that_makes_no_sense_is_refused_with_its_bounds() {
        let (longest, time) = (Duration::from_secs(60), Amount::Time(Duration::from_secs(5)));
        assert_eq!(spec(4, time, Some("bbr")).fault(longest), None);
        for (wrong, part) in [
            (spec(0, time, None), "between 1 and 64"),
            (spec(65, time, None), "between 1 and 64"),
            (spec(1, Amount::Time(Duration::from_secs(61)), None), "between 100 ms and"),
            (spec(1, Amount::Bytes(Bytes::ZERO), None), "no bytes"),
            (spec(1, time, Some("a name that is too long")), "no name"),
            (spec(1, time, Some("")), "no name"),
        ] {
            let said = wrong.fault(longest).unwrap();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn both_ways_take_connections_of_their_own() {
        let both = spec(2, Amount::Bytes(Bytes::new(1)), None);
        let ways = (0..both.total()).map(|index| both.direction_of(index));
        use TestDirection::{Forward, Reverse};
        assert_eq!(ways.collect::<Vec<_>>(), [Forward, Forward, Reverse, Reverse]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_refused(bytes: Vec<u8>) {
            let _ = serde_json::from_slice::<TestRequest>(&bytes);
            let _ = serde_json::from_slice::<Response>(&bytes);
        }

        #[test]
        fn a_request_survives_the_wire(connections: u16, bytes: u64, from: u32) {
            let spec = spec(connections, Amount::Bytes(Bytes::new(bytes)), Some("cubic"));
            for request in [
                TestRequest::Prepare { spec },
                TestRequest::Samples { connection: connections, from },
                TestRequest::Start {},
            ] {
                let text = serde_json::to_vec(&request).unwrap();
                prop_assert_eq!(serde_json::from_slice::<TestRequest>(&text).unwrap(), request);
            }
        }
    }
}
