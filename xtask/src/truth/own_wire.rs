//! What one end's own packets show of a conversation, without any analysis: one request is one
//! packet, and the capture is at that end.

use anyhow::Context;
use fullpipe_flow::capture::segment::{Flags, Parsed, Segment, SequenceNumber};
use fullpipe_flow::capture::{Packet, Unpack, read as read_packets};
use fullpipe_model::units::{Duration, Instant};
use std::net::SocketAddr;
use std::path::Path;

/// Data that was sent so often without hearing anything shows that the other end is gone.
const TRIES: u32 = 3;

/// What the packets of one end show.
#[derive(Debug, Default)]
pub struct OwnWire {
    client: Option<SocketAddr>,
    begun: Option<Instant>,
    end: Option<Instant>,
    syn: Option<Instant>,
    /// Time between SYNs, where they were sent again.
    pub syn_repeated: Duration,
    opened: Option<Instant>,
    next: Option<SequenceNumber>,
    /// How often the client asked.
    pub requests: u64,
    asked: Option<Instant>,
    answered: Option<Instant>,
    /// From the requests to the first bytes of their answers.
    pub answering: Duration,
    /// From the last bytes of answers to the next requests.
    pub asking: Duration,
    shut: Option<Instant>,
    /// The shift of the client's windows, the largest of them, and the largest segment.
    scale: u8,
    window_most: u64,
    segment: u64,
    /// The number after the server's last byte.
    sent: Option<SequenceNumber>,
    /// What each end sent since the other was heard: how often, and since when.
    unheard: [Option<(u32, Instant)>; 2],
}

impl OwnWire {
    /// Reads a capture.
    pub fn read(file: &Path) -> anyhow::Result<OwnWire> {
        let mut wire = OwnWire::default();
        each_packet(file, |packet| {
            // Guests capture IP.
            if let Parsed::Tcp(segment) = Segment::from_ip(packet.data, packet.original_length) {
                wire.sees(packet.at, &segment);
            }
        })?;
        Ok(wire)
    }

    fn sees(&mut self, at: Instant, segment: &Segment) {
        self.begun.get_or_insert(at);
        self.end = Some(at);
        if segment.flags.any(Flags::SYN) {
            let client = *self.client.get_or_insert(segment.source);
            if segment.source == client {
                let before = self.syn.replace(at).unwrap_or(at);
                self.syn_repeated = self.syn_repeated.saturating_add(at.since(before));
                self.scale = segment.options.window_scale.unwrap_or(0);
            }
            self.segment = segment.options.mss.map_or(self.segment, |mss| mss.get());
            return;
        }
        let by_client = self.client == Some(segment.source);
        if by_client {
            self.opened.get_or_insert(at);
            let closes = segment.flags.any(Flags::RST) || segment.flags.any(Flags::FIN);
            if !closes {
                self.shut = self.shuts(segment).then(|| self.shut.unwrap_or(at));
            }
        } else {
            // A probe of the window repeats a number.
            let end = segment.seq + segment.payload_len();
            self.sent = Some(self.sent.filter(|sent| sent.after(end) > 0).unwrap_or(end));
        }
        let [here, there] = if by_client { [0, 1] } else { [1, 0] };
        self.unheard[there] = None;
        if segment.payload_len() == 0 {
            return;
        }
        let (tries, since) = self.unheard[here].unwrap_or((0, at));
        self.unheard[here] = Some((tries + 1, since));
        if by_client {
            self.asks(at, segment);
        } else {
            let asked = self.asked.take();
            let answering = asked.map_or(Duration::ZERO, |asked| at.since(asked));
            self.answering = self.answering.saturating_add(answering);
            self.answered = Some(at);
        }
    }

    /// Whether the client's window has no room: none, or none for a segment or half of the largest
    /// window, with nothing in flight (RFC 9293 section 3.8.6.2.1).
    fn shuts(&mut self, segment: &Segment) -> bool {
        let window = u64::from(segment.window) << self.scale;
        self.window_most = self.window_most.max(window);
        let has_all = self.sent.is_none_or(|sent| sent.after(segment.ack) <= 0);
        window == 0 || (has_all && window < self.segment.min(self.window_most / 2))
    }

    fn asks(&mut self, at: Instant, segment: &Segment) {
        let end = segment.seq + segment.payload_len();
        if self.next.is_some_and(|next| end.after(next) <= 0) {
            return;
        }
        self.next = Some(end);
        self.requests += 1;
        let asking = self.answered.take().map_or(Duration::ZERO, |answered| at.since(answered));
        self.asking = self.asking.saturating_add(asking);
        self.asked = Some(at);
    }

    /// From the first packet to the last.
    pub fn time(&self) -> Duration {
        self.begun.zip(self.end).map_or(Duration::ZERO, |(begun, end)| end.since(begun))
    }

    /// From the first packet to the first that opens the connection.
    pub fn connecting(&self) -> Option<Duration> {
        Some(self.opened?.since(self.begun?))
    }

    /// How long the client had not read when the capture ended.
    pub fn shut(&self) -> Option<Duration> {
        Some(self.end?.since(self.shut?))
    }

    /// How long an end (0 is the client) had sent again and again without hearing anything when the
    /// capture ended.
    pub fn unheard(&self, end: usize) -> Option<Duration> {
        let (_, since) = self.unheard[end].filter(|(tries, _)| *tries >= TRIES)?;
        Some(self.end?.since(since))
    }
}

/// Calls `see` with each packet of a capture.
pub fn each_packet(file: &Path, see: impl FnMut(Packet<'_>)) -> anyhow::Result<()> {
    let opened = std::fs::File::open(file).map_err(anyhow::Error::from).and_then(|file| {
        read_packets(Unpack::new(file)?, see)?;
        Ok(())
    });
    opened.with_context(|| format!("read {}", file.display()))
}
