//! SYN, SYN-ACK, ACK: a round trip that does not depend on the capture point.
//!
//! Every segment from SYN to the final ACK passes the capture point. Their time is therefore the
//! whole round trip, wherever the capture was taken, and its two parts show how far away the two
//! ends are.

use crate::capture::segment::{Flags, Segment, SequenceNumber};
use fullpipe_model::units::{Duration, Instant};

/// No end repeats a SYN sooner: one that comes sooner is a copy that the capture made. Many systems
/// send SYN-ACKs without an IP identification, by which other copies are known.
pub(super) const SYN_AGAIN_FROM: Duration = Duration::from_millis(50);

/// Times of the three-way handshake.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Handshake {
    /// Each time is meaningful where its segment was seen. Many connections are open at once, and
    /// optional times would be twice as large.
    syn: Instant,
    syn_ack: Instant,
    ack: Instant,
    /// The number that acknowledges the SYN-ACK.
    syn_ack_end: SequenceNumber,
    saw_syn: bool,
    saw_syn_ack: bool,
    saw_ack: bool,
    /// From the last SYN to the first ACK of either end, whatever it acknowledges: Wireshark's
    /// iRTT. Zero until then.
    irtt: Duration,
    /// A SYN or SYN-ACK was repeated: it is not known which one was answered (Karn's rule).
    repeated: bool,
}

impl Handshake {
    /// Notes a segment. `by_client` says whether the client sent it.
    pub fn see(&mut self, at: Instant, segment: &Segment, by_client: bool) {
        let plain_ack = segment.flags.any(Flags::ACK) && !segment.flags.any(Flags::SYN);
        if let Some(syn) = self.syn().filter(|_| plain_ack && self.irtt == Duration::ZERO) {
            self.irtt = at.since(syn);
        }
        match (segment.flags.any(Flags::SYN), by_client) {
            (true, true) if !self.saw_ack => {
                self.repeated |= self.saw_syn && at.since(self.syn) >= SYN_AGAIN_FROM;
                (self.syn, self.saw_syn) = (at, true);
            }
            (true, false) if !self.saw_ack => {
                self.repeated |= self.saw_syn_ack && at.since(self.syn_ack) >= SYN_AGAIN_FROM;
                (self.syn_ack, self.syn_ack_end, self.saw_syn_ack) = (at, segment.end(), true);
            }
            (false, true) if !self.saw_ack && segment.flags.any(Flags::ACK) => {
                let answers = self.saw_syn_ack && self.syn_ack_end == segment.ack;
                if answers && !segment.flags.any(Flags::RST) {
                    (self.ack, self.saw_ack) = (at, true);
                }
            }
            _ => {}
        }
    }

    /// Whether a SYN or SYN-ACK was captured.
    pub fn is_seen(&self) -> bool {
        self.saw_syn || self.saw_syn_ack
    }

    fn syn(&self) -> Option<Instant> {
        self.saw_syn.then_some(self.syn)
    }

    fn syn_ack(&self) -> Option<Instant> {
        self.saw_syn_ack.then_some(self.syn_ack)
    }

    fn ack(&self) -> Option<Instant> {
        self.saw_ack.then_some(self.ack)
    }

    /// SYN to final ACK; `None` where a part is missing.
    pub fn rtt(&self) -> Option<Duration> {
        Some(self.ack()?.since(self.syn()?))
    }

    /// Wireshark's initial round-trip time, by which it distinguishes reordering from
    /// retransmission.
    pub fn irtt(&self) -> Option<Duration> {
        Some(self.irtt).filter(|irtt| *irtt > Duration::ZERO)
    }

    /// SYN to final ACK, if none of the segments was sent twice.
    pub fn clean_rtt(&self) -> Option<Duration> {
        self.rtt().filter(|_| !self.repeated)
    }

    /// Round trip between the capture point and the client.
    pub fn client_side(&self) -> Option<Duration> {
        Some(self.ack()?.since(self.syn_ack()?)).filter(|_| !self.repeated)
    }

    /// Round trip between the capture point and the server.
    pub fn server_side(&self) -> Option<Duration> {
        Some(self.syn_ack()?.since(self.syn()?)).filter(|_| !self.repeated)
    }
}
