//! What would change a limit, and as which entries of a tuning plan.
//!
//! A capture shows the path (its round trip, what it carried) and what bounded the transfer. It
//! does not show the settings of the hosts. The plan therefore assumes hosts whose buffers are just
//! as large as was seen, and a path as fast as in other intervals. Where the limit held throughout,
//! nothing is known of the path beyond it. The plan is then for twice what was allowed, and the
//! next capture shows more.

use super::Typical;
use crate::capture::segment::ApplicationProtocol;
use crate::limit::{Cause, Limit};
use fullpipe_model::change::Change;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::limit::End;
use fullpipe_model::tune::{HostSettings, Path, plan};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};
use std::ops::RangeInclusive;
use strum::{EnumIter, IntoEnumIterator, IntoStaticStr};

/// What would change what was found. A catalogue of a language ([`crate::finding::words`]) says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum Remedy {
    /// Let the receiver's buffer grow.
    GrowReceiveBuffer,
    /// The same, or scale its window, which stands at the largest that 16 bits can say.
    ScaleOrGrowReceiveBuffer,
    /// Switch window scaling on, which a SYN does not offer.
    ScaleWindow,
    /// Let the receiving application read faster.
    ReadFaster,
    /// Let the sender's buffer grow.
    GrowSendBuffer,
    /// Let the application leave the size of its send buffer alone.
    FreeSendBuffer,
    /// Let the sending application produce faster.
    WriteFaster,
    /// Raise the rate at which the sender spaces its data.
    RaisePacing,
    /// Keep connections, whose windows have grown.
    KeepConnections,
    /// Remove the loss, or use another congestion control.
    #[strum(transparent)]
    RemoveLoss(OnLoss),
    /// There is none: the path carries no more.
    NoneAtTheHosts,
    /// Send evenly, not in bursts.
    SendEvenly,
    /// Grow back sooner after a full link's drops.
    GrowBackSooner,
    /// Pay fewer round trips.
    FewerRoundTrips,
    /// Capture more: what was captured does not say what it was.
    CaptureTheStart,
    /// Capture more, before anything is set.
    CaptureBothEnds,
    /// Watch for longer, before anything is set.
    WatchLonger,
    /// Of what packets show behind a limit.
    #[strum(transparent)]
    Packets(PacketRemedy),
    /// Of what a socket and its host's settings show.
    #[strum(transparent)]
    Socket(SocketRemedy),
    /// Of what the machine itself drops or holds back.
    #[strum(transparent)]
    Machine(MachineRemedy),
}

/// What would change a [`PacketCause`](crate::diagnosis::PacketCause).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum PacketRemedy {
    /// Find out what drops SYNs.
    #[default]
    LetSynPass,
    /// Find out what drops their answers.
    LetSynAckPass,
    /// Let the path say which size of segment fits, or find it out.
    LetMtuBeKnown,
    /// Let the window scale pass as it is.
    LetScalePass,
    /// Ask for another rate, or send below it.
    LiftPolicer,
    /// Let fewer connections share the link, or more fairly.
    ShareLess,
    /// Remove the loss, or let it be noticed before the timer runs out.
    NoticeLossSooner,
    /// Let a pause leave the congestion window as it was.
    KeepWindowOverPauses,
    /// Write a whole message at once.
    WriteWholeMessages,
    /// Enlarge the window that the applications grant each other.
    GrowApplicationWindow,
    /// Use something that SSH's channel does not bound.
    LeaveSshChannel,
    /// Have more requests of SFTP under way.
    AskMoreOfSftp,
    /// Enlarge the windows of HTTP/2.
    GrowHttp2Window,
    /// Have more requests of HTTP/1 under way.
    AskMoreOfHttp1,
    /// Have more commands of iSCSI under way, and larger bursts.
    AskMoreOfIscsi,
    /// Ask MySQL for more at a time.
    AskMoreOfMysql,
    /// Have more calls of NFS under way, and larger ones.
    AskMoreOfNfs,
    /// Ask PostgreSQL for more at a time.
    AskMoreOfPostgresql,
    /// Send Redis several commands at a time.
    AskMoreOfRedis,
    /// Have more requests of SMB under way, and larger ones.
    AskMoreOfSmb,
    /// Make room for ACKs on their way back.
    MakeRoomForAcks,
    /// Let the sender's host send a connection's segments in their order.
    SendInOrder,
    /// Find what reorders packets.
    KeepOrder,
}

/// What would change a [`SocketCause`](crate::diagnosis::SocketCause).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum SocketRemedy {
    /// Switch window scaling on at the end whose SYN lacks it.
    #[default]
    ScaleWindowAtSyn,
    /// Let the application leave `SO_RCVBUF` alone, or raise `net.core.rmem_max`.
    FreeReceiveBufferOrRaiseMax,
    /// Let the application leave `SO_RCVBUF` alone.
    FreeReceiveBuffer,
    /// Let the application leave `TCP_WINDOW_CLAMP` alone.
    FreeWindow,
    /// Raise the third value of `net.ipv4.tcp_rmem`.
    RaiseReceiveMax,
    /// Let the reading process read.
    ReadMore,
    /// Let the application leave `SO_SNDBUF` alone, or raise `net.core.wmem_max`.
    FreeSendBufferOrRaiseMax,
    /// Let the application ask for no or a larger `SO_SNDBUF`.
    RaiseSendBuffer,
    /// Raise the third value of `net.ipv4.tcp_wmem`.
    RaiseSendMax,
    /// Let the application pace less.
    PaceLess,
    /// Write a whole message at once, or without Nagle's algorithm.
    WriteWholeOrNoDelay,
    /// Let more wait unsent.
    RaiseUnsentMark,
    /// Remove the loss, or switch SACK on.
    RemoveLossOrUseSack,
    /// Keep the congestion window of a connection that is used in bursts.
    KeepWindowOfBursts,
    /// Find the small MTU.
    FindSmallMtu,
    /// Let the application read, or let its memory grow.
    ReadOrGrowMemory,
}

/// What would change a [`MachineCause`](crate::diagnosis::MachineCause).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub enum MachineRemedy {
    /// Give TCP more memory.
    #[default]
    RaiseTcpMemory,
    /// The same, where windows shrink meanwhile.
    RaiseTcpMemoryOrFindHolder,
    /// Let the process that holds the memory give it back.
    FreeTcpMemory,
    /// Let a control group hold more.
    RaiseGroupMemory,
    /// Let the application read, or let its buffer grow.
    ReadOrRaiseReceiveMax,
    /// Let it read in smaller pieces.
    ReadSmallerPieces,
    /// Accept faster, or let more wait.
    AcceptFaster,
    /// Let the buffer grow, or remove what fills it.
    RaiseReceiveMaxOrKeepOrder,
    /// Use more of the cloud.
    LargerInstance,
    /// Enlarge a device's ring.
    LargerRing,
    /// Change what damages frames.
    ChangeCable,
    /// Look at the queueing discipline.
    LookAtQdisc,
    /// Let more packets wait for a CPU.
    RaiseBacklog,
    /// Let a CPU take more packets at a time.
    RaiseBudget,
    /// Switch an offload on.
    SwitchOffloadOn,
    /// Use several connections, or other hosts.
    SeveralConnections,
    /// Change a shaper of this host.
    ChangeShaper,
    /// Give a queue of this host more room.
    LargerQueue,
}

/// How congestion control reacts to loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr, EnumIter)]
pub enum OnLoss {
    /// The socket's congestion control is bbr.
    #[strum(serialize = "remove_loss_beside_bbr")]
    RunsBbr,
    /// The socket's congestion control is cubic or reno. Or a capture shows that the data in flight
    /// falls after loss, as with these two.
    #[strum(serialize = "remove_loss_or_use_bbr")]
    SlowsDown,
    /// The data in flight does not fall after loss.
    #[strum(serialize = "remove_loss_and_look_for_bbr")]
    GoesOn,
    /// The reaction is not known.
    #[default]
    #[strum(serialize = "remove_loss_or_try_bbr")]
    Unknown,
}

impl Remedy {
    /// What would change `limit`. `window` is the receive window that was seen.
    pub(super) fn of(limit: Limit, window: Option<Window>) -> Self {
        match limit {
            Limit::ReceiveWindow if window.is_some_and(|window| UNSCALED.contains(&window)) => {
                Remedy::ScaleOrGrowReceiveBuffer
            }
            Limit::ReceiveWindow => Remedy::GrowReceiveBuffer,
            Limit::ReceiverApplication => Remedy::ReadFaster,
            Limit::SendBuffer => Remedy::GrowSendBuffer,
            Limit::SenderApplication => Remedy::WriteFaster,
            Limit::CongestionWindow(Cause::SlowStart) => Remedy::KeepConnections,
            Limit::CongestionWindow(Cause::Loss) => Remedy::RemoveLoss(OnLoss::Unknown),
            Limit::Link => Remedy::NoneAtTheHosts,
            Limit::ApplicationWindow => Remedy::Packets(PacketRemedy::GrowApplicationWindow),
            Limit::Unknown => Remedy::CaptureTheStart,
        }
    }

    /// Every remedy.
    pub fn all() -> Vec<Remedy> {
        let all = Remedy::iter().flat_map(|one| -> Vec<Remedy> {
            match one {
                Remedy::RemoveLoss(_) => OnLoss::iter().map(Remedy::RemoveLoss).collect(),
                Remedy::Packets(_) => PacketRemedy::iter().map(Remedy::Packets).collect(),
                Remedy::Socket(_) => SocketRemedy::iter().map(Remedy::Socket).collect(),
                Remedy::Machine(_) => MachineRemedy::iter().map(Remedy::Machine).collect(),
                one => vec![one],
            }
        });
        all.collect()
    }

    /// The stable name in results.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it asks for better evidence in place of a change, so that nobody has to act yet.
    pub const fn is_evidence(self) -> bool {
        matches!(self, Remedy::CaptureTheStart | Remedy::CaptureBothEnds | Remedy::WatchLonger)
    }

    /// Whether it tells somebody to change a setting of a host or of a socket, for which an answer
    /// has to be surer than for anything else.
    pub const fn is_setting(self) -> bool {
        match self {
            Remedy::GrowReceiveBuffer
            | Remedy::ScaleOrGrowReceiveBuffer
            | Remedy::ScaleWindow
            | Remedy::GrowSendBuffer
            | Remedy::FreeSendBuffer
            | Remedy::KeepConnections
            | Remedy::SendEvenly
            | Remedy::GrowBackSooner
            | Remedy::RaisePacing => true,
            Remedy::RemoveLoss(on_loss) => !matches!(on_loss, OnLoss::RunsBbr),
            Remedy::ReadFaster
            | Remedy::WriteFaster
            | Remedy::NoneAtTheHosts
            | Remedy::FewerRoundTrips
            | Remedy::CaptureTheStart
            | Remedy::CaptureBothEnds
            | Remedy::WatchLonger => false,
            Remedy::Packets(remedy) => !matches!(
                remedy,
                PacketRemedy::LetSynPass
                    | PacketRemedy::LetSynAckPass
                    | PacketRemedy::ShareLess
                    | PacketRemedy::GrowApplicationWindow
                    | PacketRemedy::LeaveSshChannel
                    | PacketRemedy::AskMoreOfSftp
                    | PacketRemedy::GrowHttp2Window
                    | PacketRemedy::AskMoreOfHttp1
                    | PacketRemedy::AskMoreOfIscsi
                    | PacketRemedy::AskMoreOfMysql
                    | PacketRemedy::AskMoreOfNfs
                    | PacketRemedy::AskMoreOfPostgresql
                    | PacketRemedy::AskMoreOfRedis
                    | PacketRemedy::AskMoreOfSmb
                    | PacketRemedy::MakeRoomForAcks
                    | PacketRemedy::SendInOrder
                    | PacketRemedy::KeepOrder
            ),
            Remedy::Socket(remedy) => !matches!(remedy, SocketRemedy::ReadMore),
            // They are counted, whatever the limit is.
            Remedy::Machine(_) => false,
        }
    }
}

impl PacketRemedy {
    /// What has more asked for, or under way, at a time, where a protocol has settings for it.
    pub const fn ask_more_of(protocol: ApplicationProtocol) -> Option<Self> {
        match protocol {
            ApplicationProtocol::Http1 => Some(PacketRemedy::AskMoreOfHttp1),
            ApplicationProtocol::Iscsi => Some(PacketRemedy::AskMoreOfIscsi),
            ApplicationProtocol::Mysql => Some(PacketRemedy::AskMoreOfMysql),
            ApplicationProtocol::Nfs => Some(PacketRemedy::AskMoreOfNfs),
            ApplicationProtocol::Postgresql => Some(PacketRemedy::AskMoreOfPostgresql),
            ApplicationProtocol::Redis => Some(PacketRemedy::AskMoreOfRedis),
            ApplicationProtocol::Smb => Some(PacketRemedy::AskMoreOfSmb),
            ApplicationProtocol::Grpc
            | ApplicationProtocol::Http2
            | ApplicationProtocol::Kafka
            | ApplicationProtocol::Mqtt
            | ApplicationProtocol::Rsync
            | ApplicationProtocol::Ssh
            | ApplicationProtocol::Tls => None,
        }
    }
}

/// The rate of the plan where nothing is known of the path beyond the limit, as a multiple of what
/// was allowed.
const BEYOND: f64 = 2.0;
/// The kernel whose laws turn buffers into windows: the current one. The plan uses their cautious
/// form.
const KERNEL: KernelVersion = KernelVersion::new(6, 18);

/// The sysctls to set against `limit`. There are none if it is not a buffer or its numbers are not
/// known.
pub(super) fn changes(limit: Limit, typical: &Typical, rtt: Option<Duration>) -> Vec<Change> {
    let Some(rtt) = rtt.filter(|rtt| *rtt > Duration::ZERO) else { return Vec::new() };
    let mut receiver = HostSettings::defaults(KERNEL);
    let mut sender = HostSettings::defaults(KERNEL);
    let (end, bound) = match limit {
        Limit::ReceiveWindow => {
            let Some(window) = typical.window else { return Vec::new() };
            receiver.tcp_rmem.max = receiver.window_law().cautious().rcvbuf_for(window);
            sender.tcp_wmem.max = ENOUGH;
            (End::Receiver, window.bytes())
        }
        Limit::SendBuffer => {
            sender.tcp_wmem.max = typical.in_flight;
            receiver.tcp_rmem.max = ENOUGH;
            (End::Sender, typical.in_flight)
        }
        _ => return Vec::new(),
    };
    // A maximum below the default means that the application asked for a smaller buffer (SO_RCVBUF,
    // SO_SNDBUF), and no sysctl helps.
    if receiver.tcp_rmem.max < receiver.tcp_rmem.default
        || sender.tcp_wmem.max < sender.tcp_wmem.default
    {
        return Vec::new();
    }
    let allowed = bound.per(rtt).unwrap_or(Rate::ZERO).as_f64();
    let rate = typical.elsewhere.map_or(0.0, Rate::as_f64).max(BEYOND * allowed);
    if rate < 1.0 {
        return Vec::new();
    }
    let planned = plan(Path::new(Rate::from_bits_per_sec(rate as u64), rtt), &sender, &receiver);
    planned.changes.into_iter().filter(|change| change.end == Some(end)).collect()
}

/// More than any plan asks for.
const ENOUGH: Bytes = Bytes::new(i32::MAX as u64);

/// The largest windows that fit into 16 bits, down to one segment less: a receiver rounds them to
/// whole segments (`__tcp_select_window`, net/ipv4/tcp_output.c).
const UNSCALED: RangeInclusive<Window> =
    Window::new(Bytes::new(65_535 - 1460))..=Window::new(Bytes::new(65_535));
