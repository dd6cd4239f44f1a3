//! What held a transfer, interval by interval.
//!
//! A sender is always waiting for something. Which of six things it is decides what would make the transfer faster:
//!
//! * [`Limit::ReceiveWindow`]: the peer allows no more in flight (RFC 9293 SND.WND), and reads as fast as data comes;
//! * [`Limit::ReceiverApplication`]: the window closed because the receiving application does not read;
//! * [`Limit::SendBuffer`]: the kernel may hold no more unacknowledged data (`SO_SNDBUF`), the application waits;
//! * [`Limit::SenderApplication`]: the application gives nothing to send;
//! * [`Limit::CongestionWindow`]: congestion control allows no more, because it has not grown yet or because of loss;
//! * [`Limit::Link`]: the path carries no more: more in flight would only stand in a queue.
//!
//! The answer, a [`Verdict`], is the same type whether it comes from a capture ([`crate::Analyzer`]) or from samples of
//! sockets ([`from_samples`]); when the two disagree about one transfer, one of them is wrong. Each [`Interval`] keeps the
//! numbers it was decided by and what else it could have been.
//!
//! Ideas are from T-RAT (Zhang, Breslau, Paxson, Shenker, SIGCOMM 2002), Siekkinen, Urvoy-Keller, Biersack and En-Najjary
//! (Computer Networks 52, 2008) and the chronographs of the Linux kernel (commit efd901741675).

mod decide;
mod samples;
mod verdict;

pub use samples::from_samples;
pub use verdict::{Candidate, Evidence, Interval, Source, Verdict};

pub(crate) use decide::{Features, decide};

use fullpipe_model::units::{Duration, Rate};

/// What held the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// The peer's receive window, at the size that the peer is willing to give.
    ReceiveWindow,
    /// The receiving application: it reads slower than data comes, so the window closes.
    ReceiverApplication,
    /// The send buffer.
    SendBuffer,
    /// The sending application.
    SenderApplication,
    /// Congestion control.
    CongestionWindow(CongestionCause),
    /// The path.
    Link,
    /// The evidence does not decide.
    Unknown,
}

/// Why the congestion window was not larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CongestionCause {
    /// It is being grown towards the path for the first time since the start or since an idle period.
    SlowStart,
    /// It was reduced by loss and has not recovered.
    Loss,
}

impl Limit {
    /// Every value, in the order of the type.
    pub const ALL: [Limit; 8] = [
        Limit::ReceiveWindow,
        Limit::ReceiverApplication,
        Limit::SendBuffer,
        Limit::SenderApplication,
        Limit::CongestionWindow(CongestionCause::SlowStart),
        Limit::CongestionWindow(CongestionCause::Loss),
        Limit::Link,
        Limit::Unknown,
    ];

    /// The stable name in results; the cause of a congestion window apart, in [`Limit::cause`].
    pub const fn name(self) -> &'static str {
        match self {
            Limit::ReceiveWindow => "receive_window",
            Limit::ReceiverApplication => "receiver_application",
            Limit::SendBuffer => "send_buffer",
            Limit::SenderApplication => "sender_application",
            Limit::CongestionWindow(_) => "congestion_window",
            Limit::Link => "link",
            Limit::Unknown => "unknown",
        }
    }

    /// The stable name of the cause.
    pub const fn cause(self) -> Option<&'static str> {
        match self {
            Limit::CongestionWindow(CongestionCause::SlowStart) => Some("slow_start"),
            Limit::CongestionWindow(CongestionCause::Loss) => Some("loss"),
            _ => None,
        }
    }

    /// The limit with these names.
    pub fn from_names(name: &str, cause: Option<&str>) -> Option<Self> {
        Limit::ALL.into_iter().find(|limit| limit.name() == name && limit.cause() == cause)
    }

    /// In words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Limit::ReceiveWindow => "receive window",
            Limit::ReceiverApplication => "receiver application",
            Limit::SendBuffer => "send buffer",
            Limit::SenderApplication => "sender application",
            Limit::CongestionWindow(CongestionCause::SlowStart) => "congestion window (slow start)",
            Limit::CongestionWindow(CongestionCause::Loss) => "congestion window (loss)",
            Limit::Link => "link",
            Limit::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.words())
    }
}

/// As `{"limit": name, "cause": cause}`, the cause left out where there is none: flatten it into a row.
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
        Limit::from_names(&names.limit, names.cause.as_deref())
            .ok_or_else(|| serde::de::Error::custom(format!("reading a limit: '{}' is not one", names.limit)))
    }
}

/// Where the capture was taken. It decides what "in flight" means: near the receiver, data that is on the way is not yet
/// seen and ACKs are seen before the sender knows of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapturePoint {
    /// At the sender of the data: data is stamped as it leaves, ACKs as they arrive.
    SenderEdge,
    /// At the receiver of the data.
    ReceiverEdge,
    /// Not known: derived from the handshake's timing where there is one.
    #[default]
    Unknown,
}

/// What is known of the path from elsewhere; used as evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathHint {
    /// Rate of the bottleneck, headers included.
    pub rate: Option<Rate>,
    /// Round-trip time without queues.
    pub rtt: Option<Duration>,
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
        let json = serde_json::to_value(Limit::CongestionWindow(CongestionCause::Loss)).unwrap();
        assert_eq!(json, serde_json::json!({"limit": "congestion_window", "cause": "loss"}));
        assert!(serde_json::from_str::<Limit>(r#"{"limit": "congestion_window"}"#).is_err());
    }
}
