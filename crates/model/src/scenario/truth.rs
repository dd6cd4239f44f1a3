//! The limit of a scenario that is known before it runs.

/// The cause that a scenario was built to have.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The path carries no more.
    Link,
    /// The path drops what exceeds a token bucket.
    Policer,
    /// The receive buffer, or a window without scaling.
    ReceiveWindow,
    /// The receiving application reads slowly.
    ReceiverApplication,
    /// The send buffer.
    SendBuffer,
    /// The sending application writes slowly, or in pieces.
    SenderApplication,
    /// Random loss keeps the congestion window small.
    Loss,
    /// The transfer ends before its congestion window has grown to the path.
    SlowStart,
}

impl Cause {
    /// Every value.
    pub const ALL: [Cause; 8] = [
        Cause::Link,
        Cause::Policer,
        Cause::ReceiveWindow,
        Cause::ReceiverApplication,
        Cause::SendBuffer,
        Cause::SenderApplication,
        Cause::Loss,
        Cause::SlowStart,
    ];

    /// The name, as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Link => "link",
            Cause::Policer => "policer",
            Cause::ReceiveWindow => "receive_window",
            Cause::ReceiverApplication => "receiver_application",
            Cause::SendBuffer => "send_buffer",
            Cause::SenderApplication => "sender_application",
            Cause::Loss => "loss",
            Cause::SlowStart => "slow_start",
        }
    }

    /// The limit that a verdict should name, and its cause if it has one, by their names in
    /// results.
    pub const fn limit(self) -> (&'static str, Option<&'static str>) {
        match self {
            Cause::Link | Cause::Policer => ("link", None),
            Cause::Loss => ("congestion_window", Some("loss")),
            Cause::SlowStart => ("congestion_window", Some("slow_start")),
            _ => (self.name(), None),
        }
    }
}

/// `[truth]`: the limit that a scenario was built to have. The analysis never reads it; the scoring
/// of the analysis does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truth {
    /// What limits the transfer, or most of its time.
    pub cause: Cause,
    /// What limits the rest of the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<Cause>,
}
