//! Sub-causes: what lies behind a limit, where a capture shows it, with the numbers as evidence.
//!
//! A [`Limit`](crate::limit::Limit) says what the sender waited for. Some limits have different
//! causes with different remedies: a link may be a policer, and slow start may begin again after
//! each pause. Each sub-cause has a file here with one function, which takes what was seen and
//! returns the sub-cause or nothing. None of them changes the verdict.

mod ack_path;
mod application_window;
mod delayed_ack;
mod idle_restart;
mod no_answer;
mod path_mtu;
mod policer;
mod sharing;
mod timeouts;
mod window_scale;

pub use ack_path::AckPath;
pub use application_window::ApplicationWindow;
pub use delayed_ack::DelayedAck;
pub use idle_restart::IdleRestart;
pub use no_answer::NoAnswer;
pub use path_mtu::PathMtu;
pub use policer::Policer;
pub use sharing::Sharing;
pub(super) use sharing::{may_share, sharing};
pub use timeouts::Timeouts;
pub use window_scale::{ScaleSign, WindowScale};

use crate::account::PathFaults;
use crate::connection::{Connection, Direction, DirectionFacts};
use crate::limit::{Cause, Limit, Verdict};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// A wait that takes less than this share of a transfer's time is not worth reporting.
const LEAST_PART: f64 = 0.05;

/// What lies behind a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SubCause {
    /// Nobody answered.
    NoAnswer(NoAnswer),
    /// Segments above a size never arrive.
    PathMtu(PathMtu),
    /// A device between the ends spoils the window scale.
    WindowScale(WindowScale),
    /// The link is a token bucket that drops.
    Policer(Policer),
    /// Other connections of the capture use the rest of the link.
    Sharing(Sharing),
    /// The sender waited for its retransmission timer.
    Timeouts(Timeouts),
    /// The congestion window was reduced after pauses and had to grow again.
    IdleRestart(IdleRestart),
    /// Small writes waited for a delayed ACK.
    DelayedAck(DelayedAck),
    /// A protocol's own window held the data.
    ApplicationWindow(ApplicationWindow),
    /// ACKs waited on their way back.
    AckPath(AckPath),
}

/// A sub-cause in its serialised form.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Explanation {
    /// Its stable name.
    #[serde(rename = "sub_cause")]
    pub name: &'static str,
    /// One sentence for people.
    pub claim: String,
    /// What would change it.
    pub remedy: &'static str,
    /// How often it happened.
    pub count: Option<u64>,
    /// The time that it took: of an ACK path, the mean wait of an ACK.
    #[serde(rename = "time_us", with = "fullpipe_model::units::column::micros_optional")]
    pub time: Option<Duration>,
    /// The rate to which it limits data.
    #[serde(rename = "rate_bps", with = "fullpipe_model::units::column::rate_optional")]
    pub rate: Option<Rate>,
    /// An amount of data: a policer's bucket, what was in flight before a pause, or an
    /// application's window.
    #[serde(rename = "amount_bytes", with = "fullpipe_model::units::column::bytes_optional")]
    pub amount: Option<Bytes>,
}

/// What was seen of one direction's data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub connection: &'a Connection,
    pub direction: Direction,
    /// What limited the data; `None` where there was none.
    pub verdict: Option<&'a Verdict>,
    /// What other connections of the capture show.
    pub sharing: Option<Sharing>,
}

impl<'a> Seen<'a> {
    fn facts(self) -> &'a DirectionFacts {
        self.connection.facts(self.direction)
    }

    /// The facts of what the receiver of the data sent.
    fn receiver_facts(self) -> &'a DirectionFacts {
        self.connection.facts(match self.direction {
            Direction::ClientToServer => Direction::ServerToClient,
            Direction::ServerToClient => Direction::ClientToServer,
        })
    }

    /// This time as a fraction of the transfer's time.
    fn part(self, time: Duration) -> f64 {
        let whole = self.verdict.map_or(0.0, |verdict| verdict.time.as_secs_f64());
        if whole > 0.0 { time.as_secs_f64() / whole } else { 0.0 }
    }

    /// What a device on the path does to the data, where what was sent shows it.
    pub fn path_faults(self) -> PathFaults {
        PathFaults {
            loses_by_size: PathMtu::of(self).is_some_and(|one| !one.is_missing),
            shrinks_window: self.window_taken().is_some(),
        }
    }

    /// The window that the sender takes the receiver's for, where a device spoils its scale.
    pub fn window_taken(self) -> Option<Bytes> {
        let scale = WindowScale::of(self)?;
        (scale.sign != ScaleSign::Dropped).then_some(scale.taken)
    }

    /// The sub-causes that were seen, most important first.
    pub fn sub_causes(self) -> impl Iterator<Item = SubCause> {
        [
            NoAnswer::of(self).map(SubCause::NoAnswer),
            PathMtu::of(self).map(SubCause::PathMtu),
            WindowScale::of(self).map(SubCause::WindowScale),
            Policer::of(self).map(SubCause::Policer),
            self.sharing.map(SubCause::Sharing),
            Timeouts::of(self).map(SubCause::Timeouts),
            IdleRestart::of(self).map(SubCause::IdleRestart),
            DelayedAck::of(self).map(SubCause::DelayedAck),
            ApplicationWindow::of(self).map(SubCause::ApplicationWindow),
            AckPath::of(self).map(SubCause::AckPath),
        ]
        .into_iter()
        .flatten()
    }
}

impl SubCause {
    /// Every name, in the order of the type.
    pub const NAMES: [&'static str; 10] = [
        "no_answer",
        "path_mtu",
        "window_scale",
        "policer",
        "sharing",
        "timeouts",
        "idle_restart",
        "delayed_ack",
        "application_window",
        "ack_path",
    ];

    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        Self::NAMES[match self {
            SubCause::NoAnswer(_) => 0,
            SubCause::PathMtu(_) => 1,
            SubCause::WindowScale(_) => 2,
            SubCause::Policer(_) => 3,
            SubCause::Sharing(_) => 4,
            SubCause::Timeouts(_) => 5,
            SubCause::IdleRestart(_) => 6,
            SubCause::DelayedAck(_) => 7,
            SubCause::ApplicationWindow(_) => 8,
            SubCause::AckPath(_) => 9,
        }]
    }

    /// Whether it is a fault of a device, which the packets show whatever limits the transfer.
    pub(super) fn is_of_the_path(self) -> bool {
        matches!(self, SubCause::PathMtu(_) | SubCause::WindowScale(_))
    }

    /// What changes this limit, where the sub-cause lies behind it and is nothing that the limit's
    /// own remedy would change.
    pub(super) fn remedy_of(self, limit: Limit) -> Option<&'static str> {
        match (self, limit) {
            (SubCause::PathMtu(_), Limit::CongestionWindow(Cause::Loss)) => Some(PathMtu::REMEDY),
            (SubCause::WindowScale(_), Limit::ReceiveWindow) => Some(WindowScale::REMEDY),
            _ => None,
        }
    }

    /// The sub-cause in its serialised form.
    pub fn explanation(self) -> Explanation {
        let (count, time, rate, amount) = match self {
            SubCause::NoAnswer(one) => (Some(one.attempts), Some(one.time), None, None),
            SubCause::PathMtu(one) => {
                let time = Some(one.time).filter(|time| *time > Duration::ZERO);
                (Some(one.count), time, None, Some(one.passed))
            }
            SubCause::WindowScale(one) => (None, None, None, Some(one.taken)),
            SubCause::Policer(one) => (None, None, Some(one.rate), Some(one.bucket)),
            SubCause::Sharing(one) => (Some(one.connections), None, Some(one.total), None),
            SubCause::Timeouts(one) => (Some(one.count), Some(one.time), None, None),
            SubCause::IdleRestart(one) => (Some(one.count), Some(one.time), None, Some(one.before)),
            SubCause::DelayedAck(one) => (Some(one.count), Some(one.time), None, None),
            SubCause::ApplicationWindow(one) => {
                (Some(one.count), Some(one.time), None, Some(one.bound))
            }
            SubCause::AckPath(one) => (Some(one.count), Some(one.wait), None, None),
        };
        let (claim, remedy) = match self {
            SubCause::NoAnswer(one) => (one.to_string(), one.remedy()),
            SubCause::PathMtu(one) => (one.to_string(), PathMtu::REMEDY),
            SubCause::WindowScale(one) => (one.to_string(), WindowScale::REMEDY),
            SubCause::Policer(one) => (one.to_string(), Policer::REMEDY),
            SubCause::Sharing(one) => (one.to_string(), Sharing::REMEDY),
            SubCause::Timeouts(one) => (one.to_string(), Timeouts::REMEDY),
            SubCause::IdleRestart(one) => (one.to_string(), IdleRestart::REMEDY),
            SubCause::DelayedAck(one) => (one.to_string(), DelayedAck::REMEDY),
            SubCause::ApplicationWindow(one) => (one.to_string(), ApplicationWindow::REMEDY),
            SubCause::AckPath(one) => (one.to_string(), AckPath::REMEDY),
        };
        Explanation { name: self.name(), claim, remedy, count, time, rate, amount }
    }
}
