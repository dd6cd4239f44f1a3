//! Sub-causes: what lies behind a limit, with the numbers as evidence.
//!
//! A [`Limit`](crate::limit::Limit) says what the sender waited for. Some limits have different
//! causes with different remedies: a link may be a policer, and slow start may begin again after
//! each pause. Packets, a socket and its machine show different ones ([`SubCause`]). Each that
//! packets show has a file here with one function, which takes what was seen and returns the
//! sub-cause or nothing. None of them changes the verdict.

mod ack_path;
mod application_window;
mod delayed_ack;
mod granter;
mod host_reordering;
mod idle_restart;
mod machine;
mod no_answer;
mod path_mtu;
mod policer;
mod protocol_window;
mod reordering;
mod sharing;
mod socket;
mod timeouts;
mod waited_window;
mod window_scale;

pub use ack_path::AckPath;
pub use application_window::ApplicationWindow;
pub(super) use application_window::WindowHolds;
pub use delayed_ack::DelayedAck;
pub use granter::Granter;
pub use host_reordering::HostReordering;
pub use idle_restart::IdleRestart;
pub use machine::{CountedEvent, FlowCapRule, MachineCause};
pub use no_answer::NoAnswer;
pub use path_mtu::PathMtu;
pub use policer::Policer;
pub use protocol_window::{HTTP2_INITIAL, ProtocolWindow, SFTP_BLOCK, SSH_CHANNEL};
pub use reordering::Reordering;
pub use sharing::Sharing;
pub(super) use sharing::{may_share, sharing};
pub(crate) use socket::Site;
pub use socket::{Allowed, SocketCause};
pub use timeouts::Timeouts;
pub use waited_window::{NeededWindow, WaitedWindow};
pub use window_scale::{ScaleSign, WindowScale};

use crate::account::Behind;
use crate::connection::{Connection, Direction, DirectionFacts};
use crate::finding::{PacketRemedy, Remedy};
use crate::frames::FlowControl;
use crate::limit::{Cause, Limit, Verdict};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// A wait that takes less than this share of a transfer's time is not worth reporting.
const LEAST_PART: f64 = 0.05;

/// The largest segment on Ethernet: packets in a host's capture may be several segments merged.
const LARGEST: u64 = 1460;

/// What lies behind a limit, by the evidence that shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum SubCause {
    /// By packets.
    Packets(PacketCause),
    /// By a socket.
    Socket(SocketCause),
    /// By the machine itself.
    Machine(MachineCause),
}

/// What packets show behind a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PacketCause {
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
    /// The sender's own host let segments out in the wrong order.
    HostReordering(HostReordering),
    /// Packets overtake each other on the path.
    Reordering(Reordering),
}

/// A sub-cause, and what is advised on it. It serialises as its name, its claim, its remedy and its
/// numbers ([`crate::finding::words`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// What lies behind the limit.
    pub sub_cause: SubCause,
    /// What would change it, or what evidence to take first.
    pub remedy: Remedy,
}

/// The numbers of a sub-cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Numbers {
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

impl SubCause {
    /// The stable name in results.
    pub const fn name(&self) -> &'static str {
        match self {
            SubCause::Packets(cause) => cause.name(),
            SubCause::Socket(cause) => cause.name(),
            SubCause::Machine(cause) => cause.name(),
        }
    }

    /// Its numbers.
    pub fn numbers(&self) -> Numbers {
        match self {
            SubCause::Packets(cause) => cause.numbers(),
            SubCause::Socket(cause) => cause.numbers(),
            SubCause::Machine(cause) => cause.numbers(),
        }
    }

    /// Where its remedy has to be applied, if it explains `limit`; `None` of what packets show,
    /// behind which nobody is named.
    pub(crate) fn site(&self, limit: Limit) -> Option<Site> {
        match self {
            SubCause::Packets(_) => None,
            SubCause::Socket(cause) => cause.site(limit),
            SubCause::Machine(cause) => cause.site(limit),
        }
    }

    fn remedy(&self) -> Remedy {
        match self {
            SubCause::Packets(cause) => Remedy::Packets(cause.remedy()),
            SubCause::Socket(cause) => cause.remedy(),
            SubCause::Machine(cause) => cause.remedy(),
        }
    }
}

/// With its own remedy.
impl From<SubCause> for Explanation {
    fn from(sub_cause: SubCause) -> Self {
        let remedy = sub_cause.remedy();
        Explanation { sub_cause, remedy }
    }
}

impl From<PacketCause> for Explanation {
    fn from(cause: PacketCause) -> Self {
        SubCause::Packets(cause).into()
    }
}

impl From<SocketCause> for Explanation {
    fn from(cause: SocketCause) -> Self {
        SubCause::Socket(cause).into()
    }
}

impl From<MachineCause> for Explanation {
    fn from(cause: MachineCause) -> Self {
        SubCause::Machine(cause).into()
    }
}

/// What was seen of one direction's data.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataSeen<'a> {
    pub connection: &'a Connection,
    pub direction: Direction,
    /// What limited the data; `None` where there was none.
    pub verdict: Option<&'a Verdict>,
    /// What other connections of the capture show.
    pub sharing: Option<Sharing>,
}

impl<'a> DataSeen<'a> {
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

    /// The largest segment that was sent.
    fn segment(self) -> u64 {
        self.facts().payload_max.get().min(LARGEST)
    }

    /// The largest segment that may be sent, as far as the receiver's SYN says it.
    fn mss(self) -> u64 {
        self.receiver_facts().manner.mss.map_or(self.segment(), u64::from)
    }

    /// This time as a fraction of the transfer's time.
    fn part(self, time: Duration) -> f64 {
        let whole = self.verdict.map_or(0.0, |verdict| verdict.time.as_secs_f64());
        if whole > 0.0 { time.as_secs_f64() / whole } else { 0.0 }
    }

    /// What lies behind the limits of the data, where packets show it.
    pub fn behind(self) -> Behind {
        Behind {
            loses_by_size: PathMtu::of(self).is_some_and(|one| !one.is_missing),
            shrinks_window: self.window_taken().is_some(),
            window_is_the_clients: ApplicationWindow::of(self)
                .is_some_and(|one| one.protocol.is_the_clients()),
            ..Behind::default()
        }
    }

    /// The window that the sender takes the receiver's for, where a device spoils its scale.
    pub fn window_taken(self) -> Option<Bytes> {
        let scale = WindowScale::of(self)?;
        (scale.sign != ScaleSign::Dropped).then_some(scale.taken)
    }

    /// The flow control of the data, where it is HTTP/2 and its frames could be read.
    pub fn frames(self) -> Option<&'a FlowControl> {
        self.facts().http2.as_deref()
    }

    /// The window above TCP that holds the data, where frames or messages of the peer show it.
    pub fn granted_window(self) -> Option<ApplicationWindow> {
        ApplicationWindow::granted(self)
    }

    /// The sub-causes that were seen, most important first.
    pub fn sub_causes(self) -> impl Iterator<Item = PacketCause> {
        [
            NoAnswer::of(self).map(PacketCause::NoAnswer),
            PathMtu::of(self).map(PacketCause::PathMtu),
            WindowScale::of(self).map(PacketCause::WindowScale),
            Policer::of(self).map(PacketCause::Policer),
            self.sharing.map(PacketCause::Sharing),
            Timeouts::of(self).map(PacketCause::Timeouts),
            IdleRestart::of(self).map(PacketCause::IdleRestart),
            DelayedAck::of(self).map(PacketCause::DelayedAck),
            ApplicationWindow::of(self).map(PacketCause::ApplicationWindow),
            AckPath::of(self).map(PacketCause::AckPath),
            HostReordering::of(self).map(PacketCause::HostReordering),
            Reordering::of(self).map(PacketCause::Reordering),
        ]
        .into_iter()
        .flatten()
    }
}

impl PacketCause {
    /// Every name, in the order of the type.
    pub const NAMES: [&'static str; 12] = [
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
        "host_reordering",
        "reordering",
    ];

    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        Self::NAMES[match self {
            PacketCause::NoAnswer(_) => 0,
            PacketCause::PathMtu(_) => 1,
            PacketCause::WindowScale(_) => 2,
            PacketCause::Policer(_) => 3,
            PacketCause::Sharing(_) => 4,
            PacketCause::Timeouts(_) => 5,
            PacketCause::IdleRestart(_) => 6,
            PacketCause::DelayedAck(_) => 7,
            PacketCause::ApplicationWindow(_) => 8,
            PacketCause::AckPath(_) => 9,
            PacketCause::HostReordering(_) => 10,
            PacketCause::Reordering(_) => 11,
        }]
    }

    /// Whether it is a fault of a device, which the packets show whatever limits the transfer.
    pub(super) fn is_of_the_path(self) -> bool {
        matches!(self, PacketCause::PathMtu(_) | PacketCause::WindowScale(_))
    }

    /// What changes this limit, where the sub-cause lies behind it and is nothing that the limit's
    /// own remedy would change.
    pub(super) fn remedy_of(self, limit: Limit) -> Option<Remedy> {
        let is_behind = match self {
            PacketCause::PathMtu(_) | PacketCause::Reordering(_) => {
                limit == Limit::CongestionWindow(Cause::Loss)
            }
            PacketCause::AckPath(_) => limit == Limit::Link,
            PacketCause::WindowScale(_) => limit == Limit::ReceiveWindow,
            PacketCause::ApplicationWindow(_) => limit == Limit::ApplicationWindow,
            _ => false,
        };
        is_behind.then(|| Remedy::Packets(self.remedy()))
    }

    fn numbers(self) -> Numbers {
        let (count, time, rate, amount) = match self {
            PacketCause::NoAnswer(one) => (Some(one.attempts), Some(one.time), None, None),
            PacketCause::PathMtu(one) => {
                let time = Some(one.time).filter(|time| *time > Duration::ZERO);
                (Some(one.count), time, None, Some(one.passed))
            }
            PacketCause::WindowScale(one) => (None, None, None, Some(one.taken)),
            PacketCause::Policer(one) => {
                (None, None, Some(one.rate), Some(one.bucket).filter(|size| *size > Bytes::ZERO))
            }
            PacketCause::Sharing(one) => (Some(one.connections), None, Some(one.total), None),
            PacketCause::Timeouts(one) => (Some(one.count), Some(one.time), None, None),
            PacketCause::IdleRestart(one) => {
                (Some(one.count), Some(one.time), None, Some(one.before))
            }
            PacketCause::DelayedAck(one) => (Some(one.count), Some(one.time), None, None),
            PacketCause::ApplicationWindow(one) => {
                (Some(one.count), Some(one.time), None, Some(one.bound))
            }
            PacketCause::AckPath(one) => (Some(one.count), Some(one.wait), None, None),
            PacketCause::HostReordering(one) => (Some(one.count), None, None, None),
            PacketCause::Reordering(one) => (Some(one.needless), None, None, None),
        };
        Numbers { count, time, rate, amount }
    }

    const fn remedy(self) -> PacketRemedy {
        match self {
            PacketCause::NoAnswer(one) if one.is_half_open => PacketRemedy::LetSynAckPass,
            PacketCause::NoAnswer(_) => PacketRemedy::LetSynPass,
            PacketCause::PathMtu(_) => PacketRemedy::LetMtuBeKnown,
            PacketCause::WindowScale(_) => PacketRemedy::LetScalePass,
            PacketCause::Policer(_) => PacketRemedy::LiftPolicer,
            PacketCause::Sharing(_) => PacketRemedy::ShareLess,
            PacketCause::Timeouts(_) => PacketRemedy::NoticeLossSooner,
            PacketCause::IdleRestart(_) => PacketRemedy::KeepWindowOverPauses,
            PacketCause::DelayedAck(_) => PacketRemedy::WriteWholeMessages,
            PacketCause::ApplicationWindow(one) => match one.protocol {
                ProtocolWindow::SshChannel(_) => PacketRemedy::LeaveSshChannel,
                ProtocolWindow::SftpRequests(_) => PacketRemedy::AskMoreOfSftp,
                ProtocolWindow::Http2 => PacketRemedy::GrowHttp2Window,
                ProtocolWindow::Of(protocol) => match PacketRemedy::ask_more_of(protocol) {
                    Some(remedy) => remedy,
                    None => PacketRemedy::GrowApplicationWindow,
                },
                ProtocolWindow::Unknown => PacketRemedy::GrowApplicationWindow,
            },
            PacketCause::AckPath(_) => PacketRemedy::MakeRoomForAcks,
            PacketCause::HostReordering(_) => PacketRemedy::SendInOrder,
            PacketCause::Reordering(_) => PacketRemedy::KeepOrder,
        }
    }
}
