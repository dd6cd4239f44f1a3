//! What limits a transfer, in one vocabulary for laws, verdicts, plans, rows and text.
//!
//! A sender always waits for something. [`Limit`] names it, [`Cause`] says why a congestion window
//! was not larger, and [`End`] says at which end something is to be set. A law predicts a [`Limit`]
//! and a verdict finds one: because both use this type, they can be compared.

/// What limited the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Limit {
    /// The peer's receive window, although its application reads as fast as data arrives.
    ReceiveWindow,
    /// The receiving application: it reads more slowly than data arrives, so the window closes.
    ReceiverApplication,
    /// The send buffer.
    SendBuffer,
    /// The sending application.
    SenderApplication,
    /// Congestion control.
    CongestionWindow(Cause),
    /// The path.
    Link,
    /// A window of the applications' own protocol, above TCP: the peer's application grants what
    /// may be sent (SSH's channels, HTTP/2's streams, requests under way).
    ApplicationWindow,
    /// The evidence does not decide.
    #[default]
    Unknown,
}

/// Why the congestion window was not larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It is growing towards the path for the first time since the start or an idle period.
    SlowStart,
    /// It was reduced by loss and has not recovered.
    Loss,
}

/// An end of the transfer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Sends the data: the server of a download.
    Sender,
    /// Receives the data: the client of a download.
    Receiver,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            End::Sender => "sender",
            End::Receiver => "receiver",
        })
    }
}

impl Cause {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::SlowStart => "slow_start",
            Cause::Loss => "loss",
        }
    }
}

impl Limit {
    /// Every value, in the order of the type.
    pub const ALL: [Limit; 9] = [
        Limit::ReceiveWindow,
        Limit::ReceiverApplication,
        Limit::SendBuffer,
        Limit::SenderApplication,
        Limit::CongestionWindow(Cause::SlowStart),
        Limit::CongestionWindow(Cause::Loss),
        Limit::Link,
        Limit::ApplicationWindow,
        Limit::Unknown,
    ];

    /// The stable name in results; [`Limit::cause`] has the cause of a congestion window.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::ReceiveWindow => "receive_window",
            Limit::ReceiverApplication => "receiver_application",
            Limit::SendBuffer => "send_buffer",
            Limit::SenderApplication => "sender_application",
            Limit::CongestionWindow(_) => "congestion_window",
            Limit::Link => "link",
            Limit::ApplicationWindow => "application_window",
            Limit::Unknown => "unknown",
        }
    }

    /// The stable name of the cause.
    pub const fn cause(self) -> Option<&'static str> {
        match self {
            Limit::CongestionWindow(cause) => Some(cause.name()),
            _ => None,
        }
    }

    /// The limit with these names.
    pub fn from_names(name: &str, cause: Option<&str>) -> Option<Self> {
        Limit::ALL.into_iter().find(|limit| limit.name() == name && limit.cause() == cause)
    }

    /// Whether time under this limit is lost: the limit is neither the path nor the sending
    /// application, so that a setting, a receiver or congestion control held the data.
    pub const fn loses_time(self) -> bool {
        !matches!(self, Limit::Link | Limit::SenderApplication | Limit::Unknown)
    }

    /// A text for people.
    pub const fn words(self) -> &'static str {
        match self {
            Limit::ReceiveWindow => "receive window",
            Limit::ReceiverApplication => "receiver application",
            Limit::SendBuffer => "send buffer",
            Limit::SenderApplication => "sender application",
            Limit::CongestionWindow(Cause::SlowStart) => "congestion window (slow start)",
            Limit::CongestionWindow(Cause::Loss) => "congestion window (loss)",
            Limit::Link => "link",
            Limit::ApplicationWindow => "window of the application",
            Limit::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.words())
    }
}

/// As `{"limit": name, "cause": cause}`, without the cause if there is none; flatten it into a row.
impl serde::Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut row = s.serialize_struct("Limit", 1 + usize::from(self.cause().is_some()))?;
        row.serialize_field("limit", self.name())?;
        match self.cause() {
            Some(cause) => row.serialize_field("cause", cause)?,
            None => row.skip_field("cause")?,
        }
        row.end()
    }
}

impl<'de> serde::Deserialize<'de> for Limit {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Names {
            limit: String,
            #[serde(default)]
            cause: Option<String>,
        }
        let names = Names::deserialize(d)?;
        Limit::from_names(&names.limit, names.cause.as_deref()).ok_or_else(|| {
            serde::de::Error::custom(format!("reading a limit: '{}' is not one", names.limit))
        })
    }
}

/// The limit that a law gives for a steady transfer, as its bare name: `"send_buffer"`. A
/// congestion window that bounds a steady transfer is kept small by loss ([`crate::law::mathis`]),
/// so the name needs no cause.
pub mod term {
    use super::{Cause, Limit};
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes the name.
    pub fn serialize<S: Serializer>(limit: &Limit, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(limit.name())
    }

    /// Reads the name.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Limit, D::Error> {
        named(&String::deserialize(d)?)
    }

    fn named<E: de::Error>(name: &str) -> Result<Limit, E> {
        Limit::from_names(name, None)
            .or_else(|| Limit::from_names(name, Some(Cause::Loss.name())))
            .ok_or_else(|| E::custom(format!("reading a limit: '{name}' is not one")))
    }

    /// The same for transfers that no law may bound: `null`.
    pub mod optional {
        use super::*;

        /// Writes the name, or `null`.
        pub fn serialize<S: Serializer>(limit: &Option<Limit>, s: S) -> Result<S::Ok, S::Error> {
            match limit {
                Some(limit) => s.serialize_some(limit.name()),
                None => s.serialize_none(),
            }
        }

        /// Reads the name, or `null`.
        pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Limit>, D::Error> {
            Option::<String>::deserialize(d)?.map(|name| named(&name)).transpose()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_bijection() {
        for limit in Limit::ALL {
            assert_eq!(Limit::from_names(limit.name(), limit.cause()), Some(limit));
            let json = serde_json::to_string(&limit).unwrap();
            assert_eq!(serde_json::from_str::<Limit>(&json).unwrap(), limit);
        }
        let json = serde_json::to_value(Limit::CongestionWindow(Cause::Loss)).unwrap();
        assert_eq!(json, serde_json::json!({"limit": "congestion_window", "cause": "loss"}));
        assert!(serde_json::from_str::<Limit>(r#"{"limit": "congestion_window"}"#).is_err());
    }

    #[test]
    fn the_term_of_a_law_is_its_name() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Row {
            #[serde(with = "term")]
            by: Limit,
            #[serde(with = "term::optional")]
            law: Option<Limit>,
        }
        let text = r#"{"by":"congestion_window","law":"send_buffer"}"#;
        let row: Row = serde_json::from_str(text).unwrap();
        assert_eq!(
            (row.by, row.law),
            (Limit::CongestionWindow(Cause::Loss), Some(Limit::SendBuffer))
        );
        assert_eq!(serde_json::to_string(&row).unwrap(), text);
        assert!(serde_json::from_str::<Row>(r#"{"by":"much","law":null}"#).is_err());
    }
}
