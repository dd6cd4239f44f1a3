//! A change to a host: what can be set ([`Knob`]), to which value ([`Value`]), and why
//! ([`Change`]).
//!
//! Plans make changes, findings carry them, the lab tries them, and `host::tune` applies them and
//! puts them back. A value is read from text once, by its knob ([`Knob::read`] what a kernel shows,
//! [`Knob::checked`] what somebody asks for), and every command that is printed, written into JSON
//! or copied from a report's page is [`Change::command`].

mod knob;
mod raise;
mod reason;
mod sysctl;
mod value;

pub use knob::{Knob, ParseKnobError, RouteMetric, RouteName, ValueError};
pub use reason::{ChangeReason, MemoryShort, ShortBuffer, SlowByLoss};
pub use sysctl::{Scope, Shape, Sysctl};
pub use value::{MemTriple, ParseMemTripleError, Value};

use crate::limit::End;

/// One setting of one host to change. It serialises with its [`Change::command`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "WrittenChange")]
pub struct Change {
    /// The host; `None`: the machine that the plan is for.
    pub end: Option<End>,
    /// What.
    pub knob: Knob,
    /// Its present value; `None` where the host does not show it.
    pub from: Option<Value>,
    /// Its new value.
    pub to: Value,
    /// Why, with the numbers.
    pub reason: ChangeReason,
}

/// A change as a plan for two hosts writes it; the knob decides the type of its values. No key may
/// be missing: a change without its host must not become one of another.
#[derive(serde::Deserialize)]
struct WrittenChange {
    host: End,
    setting: Knob,
    #[serde(deserialize_with = "serde::Deserialize::deserialize")]
    from: Option<String>,
    to: String,
    reason: ChangeReason,
}

impl TryFrom<WrittenChange> for Change {
    type Error = ValueError;

    fn try_from(written: WrittenChange) -> Result<Self, ValueError> {
        let WrittenChange { host, setting: knob, from, to, reason } = written;
        let from = from.map(|from| knob.read(&from)).transpose()?;
        let to = knob.read(&to)?;
        Ok(Change { end: Some(host), knob, from, to, reason })
    }
}

impl Change {
    /// The command that makes the change: one line to paste into a shell. A size that is larger
    /// already where it runs stays as it is.
    pub fn command(&self) -> String {
        self.knob.command(self.from.as_ref(), &self.to)
    }

    /// The change in words: `net.ipv4.tcp_wmem at least 4096 16384 11534336`.
    pub fn words(&self) -> String {
        let least = if self.knob.is_size() { "at least " } else { "" };
        format!("{} {least}{}", self.knob, self.to)
    }
}

impl serde::Serialize for Change {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut row = s.serialize_struct("Change", 5 + usize::from(self.end.is_some()))?;
        match &self.end {
            Some(end) => row.serialize_field("host", end)?,
            None => row.skip_field("host")?,
        }
        row.serialize_field("setting", &self.knob)?;
        row.serialize_field("from", &self.from)?;
        row.serialize_field("to", &self.to)?;
        row.serialize_field("command", &self.command())?;
        row.serialize_field("reason", &self.reason)?;
        row.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let change = |end, knob: &str, from: Option<&str>, to: &str| {
            let knob: Knob = knob.parse().unwrap();
            let from = from.map(|from| knob.read(from).unwrap());
            let to = knob.checked(to).unwrap();
            Change { end, knob, from, to, reason: "it is less than the path holds".into() }
        };
        for change in [
            change(
                Some(End::Receiver),
                "net.ipv4.tcp_rmem",
                Some("4096 131072 6291456"),
                "4096 131072 33554432",
            ),
            change(Some(End::Sender), "net.ipv4.tcp_congestion_control", Some("cubic"), "bbr"),
            change(Some(End::Sender), "route default dev eth0 initcwnd", None, "32"),
        ] {
            let text = serde_json::to_string(&change).unwrap();
            assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), change, "{text}");
        }
        let good =
            r#"{"host":"sender","setting":"net.ipv4.tcp_sack","from":null,"to":"1","reason":""}"#;
        assert!(serde_json::from_str::<Change>(good).is_ok());
        for (right, wrong, named) in [
            ("\"1\"", "\"yes\"", "'yes'"),
            ("\"host\":\"sender\",", "", "host"),
            ("\"from\":null,", "", "from"),
            ("tcp_sack", "tcp_sock", "tcp_sock"),
        ] {
            let bad = good.replace(right, wrong);
            let error = serde_json::from_str::<Change>(&bad).unwrap_err().to_string();
            assert!(error.contains(named), "{bad}: {error}");
        }
    }
}
