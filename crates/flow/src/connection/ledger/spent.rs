//! What time is spent on, and the sums of it.

use fullpipe_model::units::Duration;

/// What time was spent on. An end is 0 or 1, as in the tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    /// The handshake's own round trip.
    Connect,
    /// Until a SYN or SYN-ACK was sent again.
    SynRepeated,
    /// Until a SYN was sent again that had met an older connection.
    SynMetOldConnection,
    /// Until a SYN was refused.
    Refused,
    /// The end has everything that was sent to it, and its application does not answer yet.
    Thinks(u8),
    /// The way of a message to the end, and of the first byte of its answer back.
    Turn(u8),
    /// The same in the handshake of TLS.
    Tls,
    /// The end's kernel delays an ACK for which the other end holds data back.
    DelayedAck(u8),
    /// The end's data, from the first byte to the last.
    Transfer(u8),
    /// Until a retransmission timer expired.
    Timeout,
    /// Until data was sent again for another reason.
    Recovery,
    /// The end's window was shut.
    WindowShut(u8),
    /// The end's application paused in the middle of what it sent.
    Paused(u8),
    /// Nobody had anything to send.
    Idle,
    /// The last acknowledgement, FIN and RST.
    Closing,
    /// Packets are missing.
    NotCaptured,
    /// The end did not answer any more.
    Gone(u8),
    /// Nobody answered the SYN.
    SynUnanswered,
}

impl Spent {
    /// Codes with this bit are of an end, whose number is their lowest bit.
    const OF_AN_END: u64 = 16;

    const fn code(self) -> u64 {
        match self {
            Spent::Connect => 0,
            Spent::SynRepeated => 1,
            Spent::SynMetOldConnection => 2,
            Spent::Refused => 3,
            Spent::Timeout => 4,
            Spent::Recovery => 5,
            Spent::Idle => 6,
            Spent::Closing => 7,
            Spent::NotCaptured => 8,
            Spent::SynUnanswered => 9,
            Spent::Tls => 10,
            Spent::Thinks(end) => 16 + end as u64,
            Spent::Turn(end) => 18 + end as u64,
            Spent::DelayedAck(end) => 20 + end as u64,
            Spent::Transfer(end) => 22 + end as u64,
            Spent::WindowShut(end) => 24 + end as u64,
            Spent::Paused(end) => 26 + end as u64,
            Spent::Gone(end) => 28 + end as u64,
        }
    }

    /// The same of the other end, where it is of an end.
    pub(super) const fn of_other_end(self) -> Spent {
        let code = self.code();
        Spent::of(if code & Self::OF_AN_END != 0 { code ^ 1 } else { code })
    }

    const fn of(code: u64) -> Spent {
        let end = (code & 1) as u8;
        match code {
            0 => Spent::Connect,
            1 => Spent::SynRepeated,
            2 => Spent::SynMetOldConnection,
            3 => Spent::Refused,
            4 => Spent::Timeout,
            5 => Spent::Recovery,
            6 => Spent::Idle,
            7 => Spent::Closing,
            8 => Spent::NotCaptured,
            9 => Spent::SynUnanswered,
            10 => Spent::Tls,
            16 | 17 => Spent::Thinks(end),
            18 | 19 => Spent::Turn(end),
            20 | 21 => Spent::DelayedAck(end),
            22 | 23 => Spent::Transfer(end),
            24 | 25 => Spent::WindowShut(end),
            26 | 27 => Spent::Paused(end),
            _ => Spent::Gone(end),
        }
    }
}

/// One sum: what the time was spent on in the lowest 5 bits, nanoseconds above them. A connection
/// has four or five of them, and many connections are open at once.
#[derive(Debug, Clone, Copy)]
struct Sum(u64);

impl Sum {
    const BITS: u32 = 5;

    fn what(self) -> Spent {
        Spent::of(self.0 & ((1 << Self::BITS) - 1))
    }

    fn time(self) -> Duration {
        Duration::from_nanos(self.0 >> Self::BITS)
    }

    fn new(what: Spent, time: Duration) -> Self {
        Sum(time.as_nanos().min(u64::MAX >> Self::BITS) << Self::BITS | what.code())
    }
}

/// The sums of a connection's time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums(Box<[Sum]>);

impl Sums {
    /// Adds time.
    pub fn add(&mut self, what: Spent, time: Duration) {
        if time == Duration::ZERO {
            return;
        }
        match self.0.iter_mut().find(|sum| sum.what() == what) {
            Some(sum) => *sum = Sum::new(what, sum.time().saturating_add(time)),
            None => {
                let mut sums = std::mem::take(&mut self.0).into_vec();
                sums.reserve_exact(1);
                sums.push(Sum::new(what, time));
                self.0 = sums.into_boxed_slice();
            }
        }
    }

    /// Moves up to this much time from one sum to another.
    pub fn shift(&mut self, from: Spent, to: Spent, most: Duration) {
        let Some(sum) = self.0.iter_mut().find(|sum| sum.what() == from) else { return };
        let moved = sum.time().min(most);
        *sum = Sum::new(from, sum.time().saturating_sub(moved));
        self.add(to, moved);
    }

    /// The time that was spent on this.
    pub fn of(&self, what: Spent) -> Duration {
        self.iter().find(|(one, _)| *one == what).map_or(Duration::ZERO, |(_, time)| time)
    }

    /// All the time.
    pub fn total(&self) -> Duration {
        self.iter().fold(Duration::ZERO, |total, (_, time)| total.saturating_add(time))
    }

    /// Takes the other end for the client.
    pub fn swap_ends(&mut self) {
        for sum in &mut self.0 {
            let of_an_end = sum.0 & Spent::OF_AN_END != 0;
            sum.0 ^= u64::from(of_an_end);
        }
    }

    /// The sums that are not zero.
    pub fn iter(&self) -> impl Iterator<Item = (Spent, Duration)> {
        self.0.iter().map(|sum| (sum.what(), sum.time())).filter(|(_, time)| *time > Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_says_what_it_was_made_of_and_of_which_end() {
        let codes = (0..=9).chain(16..=29);
        for code in codes {
            assert_eq!(Spent::of(code).code(), code);
            let sum = Sum::new(Spent::of(code), Duration::from_secs(7));
            assert_eq!((sum.what().code(), sum.time()), (code, Duration::from_secs(7)));
        }
        let mut sums = Sums::default();
        sums.add(Spent::Thinks(0), Duration::from_secs(1));
        sums.add(Spent::Idle, Duration::from_secs(2));
        sums.swap_ends();
        assert_eq!(sums.of(Spent::Thinks(1)), Duration::from_secs(1));
        assert_eq!(sums.of(Spent::Idle), Duration::from_secs(2));
    }
}
