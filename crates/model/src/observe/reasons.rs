//! Why a socket does not send, as counted by a guest's kernel that was built for it (`fullpipe lab
//! kernel build --truth`).
//!
//! Such a kernel appends to `struct tcp_info`, all as native-endian `u64`: the time with unread
//! data, a time for each reason and phase, and a magic number. They are found from the end, because
//! `tcp_info` grows with the versions of Linux. The kernel's side is `lab`'s `guest/kernel/truth`.

use crate::units::Duration;

/// `TCP_TRUTH_MAGIC`: "fullpipe" in ASCII.
const MAGIC: u64 = 0x6675_6c6c_7069_7065;
const SLOTS: usize = Reason::ALL.len() * Phase::ALL.len();
const WORD: usize = size_of::<u64>();
/// Unread time, slots, magic number.
const LENGTH: usize = (1 + SLOTS + 1) * WORD;

/// What ended the kernel's last attempt to send (`enum tcp_truth`, in its order).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Any other reason, such as a packet that the device refused.
    Other,
    /// The application has written nothing more, or less than a segment (RFC 896).
    Application,
    /// The application waits for room in the send buffer.
    SendBuffer,
    /// The peer's receive window.
    ReceiveWindow,
    /// The congestion window.
    CongestionWindow,
    /// The pacing rate.
    Pacing,
    /// Enough of its packets are in queues of this host (TCP small queues).
    SmallQueue,
    /// Everything is sent and the application has closed.
    Tail,
    /// The pacing rate, where the application held within the last round trip.
    PacedApplication,
    /// The pacing rate, where the send buffer held within the last round trip.
    PacedSendBuffer,
    /// The pacing rate, where the receive window held within the last round trip.
    PacedReceiveWindow,
}

impl Reason {
    const ALL: [Reason; 11] = [
        Reason::Other,
        Reason::Application,
        Reason::SendBuffer,
        Reason::ReceiveWindow,
        Reason::CongestionWindow,
        Reason::Pacing,
        Reason::SmallQueue,
        Reason::Tail,
        Reason::PacedApplication,
        Reason::PacedSendBuffer,
        Reason::PacedReceiveWindow,
    ];
}

/// The phase of congestion control meanwhile, in the kernel's order.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Slow start, or BBR's startup: nothing has ended it yet.
    Growing,
    /// Slow start has ended without a loss; BBR has filled the path.
    Settled,
    /// Something was retransmitted since the start, and slow start is over.
    AfterLoss,
    /// A loss is being repaired.
    Repair,
}

impl Phase {
    const ALL: [Phase; 4] = [Phase::Growing, Phase::Settled, Phase::AfterLoss, Phase::Repair];
}

/// For how long a socket did not send, why and in what phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Wait {
    /// Why.
    pub reason: Reason,
    /// In what phase.
    pub phase: Phase,
    /// For how long.
    #[serde(rename = "time_ns", with = "nanos")]
    pub time: Duration,
}

/// A duration as its nanoseconds.
mod nanos {
    use crate::units::Duration;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, s: S) -> Result<S::Ok, S::Error> {
        time.as_nanos().serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        u64::deserialize(d).map(Duration::from_nanos)
    }
}

/// What a socket has counted since its connection first sent data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reasons {
    /// As a receiver: for how long data waited for the application.
    unread: Duration,
    /// As a sender: by reason and, within it, by phase.
    slots: Box<[u64; SLOTS]>,
}

impl Reasons {
    /// Splits what the kernel returned as `struct tcp_info` into that struct, as a plain kernel of
    /// its version has it, and the reasons after it; `None` if the kernel does not count them.
    pub fn split(tcp_info: &[u8]) -> (&[u8], Option<Reasons>) {
        let length = tcp_info.len().saturating_sub(LENGTH);
        match Reasons::parse(&tcp_info[length..]) {
            Some(reasons) => (&tcp_info[..length], Some(reasons)),
            None => (tcp_info, None),
        }
    }

    fn parse(end: &[u8]) -> Option<Reasons> {
        if end.len() != LENGTH {
            return None;
        }
        let mut words = end
            .chunks_exact(WORD)
            .map(|word| u64::from_ne_bytes(std::array::from_fn(|at| word[at])));
        let unread = Duration::from_nanos(words.next()?);
        let mut slots = Box::new([0; SLOTS]);
        slots.iter_mut().zip(&mut words).for_each(|(slot, word)| *slot = word);
        (words.next()? == MAGIC).then_some(Reasons { unread, slots })
    }

    /// As a receiver: for how long data waited for the application since `earlier`.
    pub fn unread_since(&self, earlier: &Reasons) -> Duration {
        self.unread.saturating_sub(earlier.unread)
    }

    /// As a sender: what it waited for since `earlier`, in the order of the type; reasons without
    /// time are left out.
    pub fn waits_since(&self, earlier: &Reasons) -> Vec<Wait> {
        let both = self.slots.iter().zip(earlier.slots.iter());
        let times = both.map(|(now, then)| Duration::from_nanos(now.saturating_sub(*then)));
        let names =
            Reason::ALL.into_iter().flat_map(|reason| Phase::ALL.map(|phase| (reason, phase)));
        names
            .zip(times)
            .filter(|(_, time)| *time > Duration::ZERO)
            .map(|((reason, phase), time)| Wait { reason, phase, time })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As long as the part that Linux 6.12 has anyway.
    const OWN: usize = 248;

    fn counted(unread: u64, slots: &[u64]) -> Reasons {
        let bytes = appended(unread, slots, MAGIC);
        let (own, reasons) = Reasons::split(&bytes);
        assert_eq!(own, [9; OWN]);
        reasons.unwrap()
    }

    fn appended(unread: u64, slots: &[u64], magic: u64) -> Vec<u8> {
        let words = std::iter::once(unread).chain(slots.iter().copied()).chain([magic]);
        std::iter::repeat_n(9, OWN).chain(words.flat_map(u64::to_ne_bytes)).collect()
    }

    #[test]
    fn slots_are_read_by_reason_and_phase_and_a_plain_kernel_has_none() {
        let nothing = counted(0, &[0; SLOTS]);
        let mut slots = [0; SLOTS];
        (slots[0], slots[4 * 4 + 2], slots[43]) = (1, 2, 3);
        let reasons = counted(7, &slots);
        let wait = |reason, phase, time| Wait { reason, phase, time: Duration::from_nanos(time) };
        let expected = [
            wait(Reason::Other, Phase::Growing, 1),
            wait(Reason::CongestionWindow, Phase::AfterLoss, 2),
            wait(Reason::PacedReceiveWindow, Phase::Repair, 3),
        ];
        assert_eq!(reasons.waits_since(&nothing), expected);
        assert_eq!(reasons.unread_since(&nothing), Duration::from_nanos(7));
        assert_eq!(reasons.waits_since(&reasons), []);
        let plain = appended(7, &slots, 0);
        assert_eq!(Reasons::split(&plain), (&plain[..], None));
        let cut = &appended(7, &slots, MAGIC)[OWN + 1..];
        assert_eq!(Reasons::split(cut), (cut, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes: Vec<u8>, unread: u64, slots in prop::collection::vec(any::<u32>(), SLOTS)) {
            let (own, reasons) = Reasons::split(&bytes);
            prop_assert!(bytes.starts_with(own) && (reasons.is_some() || own.len() == bytes.len()));
            let slots: Vec<u64> = slots.into_iter().map(u64::from).collect();
            let (nothing, reasons) = (counted(0, &[0; SLOTS]), counted(unread, &slots));
            let sum: u64 = reasons.waits_since(&nothing).iter().map(|wait| wait.time.as_nanos()).sum();
            prop_assert_eq!(sum, slots.iter().sum::<u64>());
            prop_assert_eq!(reasons.unread_since(&nothing).as_nanos(), unread);
            // A counter that went back is no time.
            prop_assert_eq!(nothing.waits_since(&reasons), []);
        }
    }
}
