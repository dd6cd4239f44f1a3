//! What lies behind the limit of a live connection, as its host alone can know it: what its
//! application asked of the socket, what a setting caps, what the other end left out.

use super::Numbers;
use crate::finding::{PacketRemedy, Remedy, SocketRemedy};
use crate::limit::{Cause, Limit};
use fullpipe_model::limit::End;
use fullpipe_model::units::{Bytes, Duration, Rate};

/// What a window or a buffer carries at most over the path's round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// The rate.
    pub rate: Rate,
    /// The round trip.
    pub rtt: Duration,
}

/// What a socket shows, with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketCause {
    /// A SYN offered no window scale.
    WindowScaleMissing {
        /// What the largest window then carries.
        allowed: Option<Allowed>,
    },
    /// The application set a receive buffer as large as the machine lets it.
    ReceiveBufferCapped {
        /// `net.core.rmem_max`.
        max: Bytes,
        /// The buffer that came of it.
        buffer: Bytes,
        /// What its window carries.
        allowed: Option<Allowed>,
    },
    /// The application set a receive buffer.
    ReceiveBufferFrozen {
        /// How large it stays.
        buffer: Bytes,
        /// What its window carries.
        allowed: Option<Allowed>,
    },
    /// The application bounded the window.
    WindowClamped {
        /// The bound.
        clamp: Bytes,
        /// What it carries.
        allowed: Option<Allowed>,
    },
    /// The receive buffer grew to the most that the host allows.
    ReceiveBufferAtItsLargest {
        /// The third value of `net.ipv4.tcp_rmem`.
        largest: Bytes,
        /// The buffer.
        buffer: Bytes,
        /// What its window carries.
        allowed: Option<Allowed>,
    },
    /// Data waits for the application to read it.
    ApplicationDoesNotRead {
        /// The most that waited.
        most: Bytes,
    },
    /// The application set a send buffer as large as the machine lets it.
    SendBufferCapped {
        /// `net.core.wmem_max`.
        max: Bytes,
        /// The buffer that came of it.
        buffer: Bytes,
        /// What it carries.
        allowed: Option<Allowed>,
    },
    /// The application set a send buffer.
    SendBufferFrozen {
        /// How large it stays.
        buffer: Bytes,
        /// What it carries.
        allowed: Option<Allowed>,
    },
    /// The send buffer grew to the most that the host allows.
    SendBufferAtItsLargest {
        /// The third value of `net.ipv4.tcp_wmem`.
        largest: Bytes,
        /// The buffer.
        buffer: Bytes,
        /// What it carries.
        allowed: Option<Allowed>,
    },
    /// The application asked the socket to send no faster.
    PacedByApplication {
        /// `SO_MAX_PACING_RATE`.
        bound: Rate,
        /// What the socket sends.
        rate: Rate,
    },
    /// The window of SSH's channel holds the data: as much is under way as it has.
    SshChannelWindow {
        /// What is under way.
        under_way: Bytes,
        /// Messages of the end that grants, while it was watched.
        grants: u32,
        /// What the window carries.
        allowed: Option<Allowed>,
    },
    /// Small writes wait for ACKs that the receiver delays.
    DelayedAck {
        /// The round trip.
        rtt: Duration,
        /// The path's.
        path_rtt: Duration,
    },
    /// The writer is woken late.
    NotsentLowat {
        /// `TCP_NOTSENT_LOWAT`.
        lowat: Bytes,
        /// What is in flight.
        in_flight: Bytes,
    },
    /// Retransmissions were not needed: packets overtook each other.
    Reordering {
        /// How many were not.
        needless: u32,
        /// Of how many.
        again: u32,
    },
    /// The sender waits for its retransmission timer.
    Timeouts {
        /// How often.
        count: u16,
        /// What the timer is at.
        rto: Duration,
    },
    /// The congestion window starts anew after each pause.
    IdleRestart {
        /// How often.
        count: u64,
        /// The largest window, in segments.
        most: u32,
    },
    /// Segments are small.
    SmallSegments {
        /// The most that one carries.
        size: Bytes,
        /// The path's MTU, where it is the bound; the receiver's own word otherwise.
        path_mtu: Option<Bytes>,
    },
    /// The kernel dropped data that had arrived.
    DroppedOnArrival {
        /// How many segments.
        count: u32,
    },
}

/// Where a remedy has to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// At this end of the data.
    End(End),
    /// On the path.
    Path,
}

impl SocketCause {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            SocketCause::WindowScaleMissing { .. } => "window_scale_missing",
            SocketCause::ReceiveBufferCapped { .. } => "receive_buffer_capped",
            SocketCause::ReceiveBufferFrozen { .. } => "receive_buffer_frozen",
            SocketCause::WindowClamped { .. } => "window_clamped",
            SocketCause::ReceiveBufferAtItsLargest { .. } => "receive_buffer_at_its_largest",
            SocketCause::ApplicationDoesNotRead { .. } => "application_does_not_read",
            SocketCause::SendBufferCapped { .. } => "send_buffer_capped",
            SocketCause::SendBufferFrozen { .. } => "send_buffer_frozen",
            SocketCause::SendBufferAtItsLargest { .. } => "send_buffer_at_its_largest",
            SocketCause::PacedByApplication { .. } => "paced_by_application",
            SocketCause::SshChannelWindow { .. } => "ssh_channel_window",
            SocketCause::DelayedAck { .. } => "delayed_ack",
            SocketCause::NotsentLowat { .. } => "notsent_lowat",
            SocketCause::Reordering { .. } => "reordering",
            SocketCause::Timeouts { .. } => "timeouts",
            SocketCause::IdleRestart { .. } => "idle_restart",
            SocketCause::SmallSegments { .. } => "small_segments",
            SocketCause::DroppedOnArrival { .. } => "dropped_on_arrival",
        }
    }

    pub(super) fn numbers(self) -> Numbers {
        let none = Numbers::default();
        match self {
            SocketCause::WindowScaleMissing { .. } => none,
            SocketCause::ReceiveBufferCapped { buffer: amount, .. }
            | SocketCause::ReceiveBufferFrozen { buffer: amount, .. }
            | SocketCause::WindowClamped { clamp: amount, .. }
            | SocketCause::ReceiveBufferAtItsLargest { buffer: amount, .. }
            | SocketCause::ApplicationDoesNotRead { most: amount }
            | SocketCause::SendBufferCapped { buffer: amount, .. }
            | SocketCause::SendBufferFrozen { buffer: amount, .. }
            | SocketCause::SendBufferAtItsLargest { buffer: amount, .. }
            | SocketCause::NotsentLowat { lowat: amount, .. }
            | SocketCause::SmallSegments { size: amount, .. } => {
                Numbers { amount: Some(amount), ..none }
            }
            SocketCause::PacedByApplication { bound, .. } => Numbers { rate: Some(bound), ..none },
            SocketCause::SshChannelWindow { under_way, grants, .. } => {
                Numbers { amount: Some(under_way), count: Some(grants.into()), ..none }
            }
            SocketCause::DelayedAck { rtt, path_rtt } => {
                Numbers { time: Some(rtt.saturating_sub(path_rtt)), ..none }
            }
            SocketCause::Reordering { needless: count, .. }
            | SocketCause::DroppedOnArrival { count } => {
                Numbers { count: Some(count.into()), ..none }
            }
            // How long it waited is not known: the timer's value is no time that it took.
            SocketCause::Timeouts { count, .. } => Numbers { count: Some(count.into()), ..none },
            SocketCause::IdleRestart { count, .. } => Numbers { count: Some(count), ..none },
        }
    }

    pub(super) const fn remedy(self) -> Remedy {
        Remedy::Socket(match self {
            SocketCause::SshChannelWindow { .. } => {
                return Remedy::Packets(PacketRemedy::LeaveSshChannel);
            }
            SocketCause::Reordering { .. } => return Remedy::Packets(PacketRemedy::KeepOrder),
            SocketCause::WindowScaleMissing { .. } => SocketRemedy::ScaleWindowAtSyn,
            SocketCause::ReceiveBufferCapped { .. } => SocketRemedy::FreeReceiveBufferOrRaiseMax,
            SocketCause::ReceiveBufferFrozen { .. } => SocketRemedy::FreeReceiveBuffer,
            SocketCause::WindowClamped { .. } => SocketRemedy::FreeWindow,
            SocketCause::ReceiveBufferAtItsLargest { .. } => SocketRemedy::RaiseReceiveMax,
            SocketCause::ApplicationDoesNotRead { .. } => SocketRemedy::ReadMore,
            SocketCause::SendBufferCapped { .. } => SocketRemedy::FreeSendBufferOrRaiseMax,
            SocketCause::SendBufferFrozen { .. } => SocketRemedy::RaiseSendBuffer,
            SocketCause::SendBufferAtItsLargest { .. } => SocketRemedy::RaiseSendMax,
            SocketCause::PacedByApplication { .. } => SocketRemedy::PaceLess,
            SocketCause::DelayedAck { .. } => SocketRemedy::WriteWholeOrNoDelay,
            SocketCause::NotsentLowat { .. } => SocketRemedy::RaiseUnsentMark,
            SocketCause::Timeouts { .. } => SocketRemedy::RemoveLossOrUseSack,
            SocketCause::IdleRestart { .. } => SocketRemedy::KeepWindowOfBursts,
            SocketCause::SmallSegments { .. } => SocketRemedy::FindSmallMtu,
            SocketCause::DroppedOnArrival { .. } => SocketRemedy::ReadOrGrowMemory,
        })
    }

    /// Where its remedy has to be applied, if it explains `limit`.
    pub(super) fn site(self, limit: Limit) -> Option<Site> {
        const LOSS: Limit = Limit::CongestionWindow(Cause::Loss);
        const START: Limit = Limit::CongestionWindow(Cause::SlowStart);
        let (site, of): (Site, &[Limit]) = match self {
            // Which SYN lacks the option is not known: the window is the receiver's.
            SocketCause::WindowScaleMissing { .. }
            | SocketCause::ReceiveBufferCapped { .. }
            | SocketCause::ReceiveBufferFrozen { .. }
            | SocketCause::WindowClamped { .. }
            | SocketCause::ReceiveBufferAtItsLargest { .. } => {
                (Site::End(End::Receiver), &[Limit::ReceiveWindow])
            }
            SocketCause::ApplicationDoesNotRead { .. } => {
                (Site::End(End::Receiver), &[Limit::ReceiverApplication])
            }
            SocketCause::SendBufferCapped { .. }
            | SocketCause::SendBufferFrozen { .. }
            | SocketCause::SendBufferAtItsLargest { .. } => {
                (Site::End(End::Sender), &[Limit::SendBuffer])
            }
            SocketCause::PacedByApplication { .. } => {
                (Site::End(End::Sender), &[Limit::SenderApplication, Limit::Link])
            }
            // It is granted by the end that receives.
            SocketCause::SshChannelWindow { .. } => {
                (Site::End(End::Receiver), &[Limit::ApplicationWindow])
            }
            SocketCause::DelayedAck { .. } => (Site::End(End::Sender), &[Limit::SenderApplication]),
            SocketCause::NotsentLowat { .. } => {
                (Site::End(End::Sender), &[Limit::SendBuffer, Limit::SenderApplication])
            }
            SocketCause::IdleRestart { .. } => (Site::End(End::Sender), &[START]),
            SocketCause::Reordering { .. }
            | SocketCause::Timeouts { .. }
            | SocketCause::SmallSegments { .. } => (Site::Path, &[LOSS]),
            SocketCause::DroppedOnArrival { .. } => return None,
        };
        of.contains(&limit).then_some(site)
    }
}
