//! The fields of a socket: what `ss -i` and `-m` print behind its ends.

use super::{ParseSsError, SsWords, shortened};
use crate::observe::{CongestionState, SocketMemory, TcpInfo, TcpState};
use crate::units::{Bytes, Duration, Rate, Window};

/// The latest of the fields that a log shows, by the Linux that has it first. ss prints each since
/// about the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum LatestField {
    /// Those of Linux 2.6.
    #[default]
    Base,
    /// Bytes and segments in each direction (4.2).
    Counts,
    /// What is not sent, least round trip, segments with data (4.6).
    Data,
    /// Rate of delivery (4.9).
    Delivery,
    /// Time busy and limited (4.10).
    Busy,
    /// Bytes sent and sent again (4.19).
    Sent,
    /// The peer's window, segments out of order (5.4).
    PeerWindow,
    /// The own window (6.2).
    OwnWindow,
}

/// What the lines of a socket say.
#[derive(Debug, Default)]
pub(super) struct SsFields {
    info: TcpInfo,
    known: LatestField,
    count: usize,
    memory: Option<SocketMemory>,
    /// The name of its congestion control.
    pub(super) congestion_control: Option<String>,
}

/// The largest number that is taken for a count of bytes.
const BYTES_MOST: u64 = 1 << 56;
/// The largest sizes and windows: the kernel's have 32 bits.
const SIZE_MOST: u64 = 1 << 32;
/// Segments are of 16 bits.
const SEGMENT_MOST: u64 = 1 << 16;
/// 36 years, in milliseconds.
const MILLIS_MOST: f64 = 1.15e12;
/// More than any rate, in bits a second.
const RATE_MOST: f64 = 1e16;

impl SsFields {
    /// Takes what a line says of the socket.
    pub(super) fn read(&mut self, text: &str) -> Result<(), ParseSsError> {
        let (before, after) = without_users(text);
        self.words(before)?;
        self.words(after)
    }

    fn words(&mut self, text: &str) -> Result<(), ParseSsError> {
        let mut words = SsWords(text);
        while let Some(word) = words.next() {
            let read = match word {
                "send" => words.next().map(|_| ()),
                "pacing_rate" => words.next().and_then(|rate| self.pacing(rate)),
                "delivery_rate" => words.next().and_then(|text| {
                    self.info.delivery_rate = Some(rate(text)?);
                    self.shows(LatestField::Delivery);
                    Some(())
                }),
                _ => match word.split_once(':') {
                    Some((name, value)) => self.field(name, value),
                    None => {
                        self.flag(word);
                        Some(())
                    }
                },
            };
            read.ok_or_else(|| ParseSsError::Value(shortened(word)))?;
        }
        Ok(())
    }

    /// The latest of its fields.
    pub(super) fn known(&self) -> LatestField {
        self.known
    }

    /// Whether `-i` printed anything of it.
    pub(super) fn has_details(&self) -> bool {
        self.count > 0
    }

    /// What `-m` printed.
    pub(super) fn memory(&self) -> Option<SocketMemory> {
        self.memory
    }

    fn shows(&mut self, known: LatestField) {
        self.known = self.known.max(known);
        self.count += 1;
    }

    fn flag(&mut self, word: &str) {
        match word {
            "ts" => self.info.options |= 1,
            "sack" => self.info.options |= 2,
            "ecn" => self.info.options |= 8,
            "ecnseen" => self.info.options |= 16,
            "fastopen" => self.info.options |= 32,
            "app_limited" => {
                self.info.delivery_rate_app_limited = true;
                self.shows(LatestField::Delivery);
            }
            // The name of the congestion control stands before every field with a value.
            _ if self.count == 0 && self.congestion_control.is_none() && is_name(word) => {
                self.congestion_control = Some(word.into());
            }
            _ => (),
        }
    }

    fn pacing(&mut self, text: &str) -> Option<()> {
        let (now, most) =
            text.split_once('/').map_or((text, None), |(now, most)| (now, Some(most)));
        self.info.pacing_rate = Some(rate(now)?);
        if let Some(most) = most {
            self.info.max_pacing_rate = Some(rate(most)?);
        }
        self.count += 1;
        Some(())
    }

    /// Takes a field with a value. One of another name is passed over.
    fn field(&mut self, name: &str, value: &str) -> Option<()> {
        let known = match name {
            "skmem" => {
                self.memory = Some(memory(value)?);
                return Some(());
            }
            "timer" => return self.timer(value),
            _ if self.size(name, value)?
                || self.segments(name, value)?
                || self.time(name, value)? =>
            {
                LatestField::Base
            }
            _ => self.later(name, value)?,
        };
        if known > LatestField::Base || is_base(name) {
            self.shows(known);
        }
        Some(())
    }

    /// `timer:(on,204ms,2)` of -o and -e says how often the oldest segment was repeated.
    fn timer(&mut self, value: &str) -> Option<()> {
        let inner = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        if let Some(rest) = inner.and_then(|inner| inner.strip_prefix("on,")) {
            let (_, times) = rest.rsplit_once(',')?;
            self.info.retransmits = times.parse().ok()?;
        }
        Some(())
    }

    fn size(&mut self, name: &str, value: &str) -> Option<bool> {
        let info = &mut self.info;
        match name {
            "mss" => info.snd_mss = bytes(value, SEGMENT_MOST)?,
            "rcvmss" => info.rcv_mss = bytes(value, SEGMENT_MOST)?,
            "advmss" => info.advmss = bytes(value, SEGMENT_MOST)?,
            "pmtu" => info.pmtu = bytes(value, SEGMENT_MOST)?,
            "rcv_space" => info.rcv_space = bytes(value, SIZE_MOST)?,
            "rcv_ssthresh" => info.rcv_ssthresh = Window::new(bytes(value, SIZE_MOST)?),
            "wscale" => {
                let (peer, own) = value.split_once(',')?;
                (info.snd_wscale, info.rcv_wscale) = (scale(peer)?, scale(own)?);
                info.options |= 4;
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn segments(&mut self, name: &str, value: &str) -> Option<bool> {
        let info = &mut self.info;
        match name {
            "cwnd" => info.snd_cwnd = value.parse().ok()?,
            "ssthresh" => info.snd_ssthresh = value.parse().ok()?,
            "unacked" => info.unacked = value.parse().ok()?,
            "sacked" => info.sacked = value.parse().ok()?,
            "lost" => info.lost = value.parse().ok()?,
            "fackets" => info.fackets = value.parse().ok()?,
            "reordering" => info.reordering = value.parse().ok()?,
            "backoff" => info.backoff = value.parse().ok()?,
            "retrans" => {
                let (now, all) = value.split_once('/')?;
                (info.retrans, info.total_retrans) = (now.parse().ok()?, all.parse().ok()?);
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn time(&mut self, name: &str, value: &str) -> Option<bool> {
        let info = &mut self.info;
        match name {
            "rto" => info.rto = millis(value)?,
            "ato" => info.ato = millis(value)?,
            "rcv_rtt" => info.rcv_rtt = millis(value)?,
            "lastsnd" => info.last_data_sent = millis(value)?,
            "lastrcv" => info.last_data_recv = millis(value)?,
            "lastack" => info.last_ack_recv = millis(value)?,
            "rtt" => {
                let (mean, deviation) = value.split_once('/')?;
                (info.rtt, info.rttvar) = (millis(mean)?, millis(deviation)?);
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// A field that not every Linux has: the first that has it.
    fn later(&mut self, name: &str, value: &str) -> Option<LatestField> {
        let info = &mut self.info;
        Some(match name {
            "bytes_acked" => {
                info.bytes_acked = Some(bytes(value, BYTES_MOST)?);
                LatestField::Counts
            }
            "bytes_received" => {
                info.bytes_received = Some(bytes(value, BYTES_MOST)?);
                LatestField::Counts
            }
            "segs_out" => number(&mut info.segs_out, value, LatestField::Counts)?,
            "segs_in" => number(&mut info.segs_in, value, LatestField::Counts)?,
            "notsent" => {
                info.notsent_bytes = Some(bytes(value, SIZE_MOST)?);
                LatestField::Data
            }
            "minrtt" => {
                info.min_rtt = Some(millis(value)?);
                LatestField::Data
            }
            "data_segs_in" => number(&mut info.data_segs_in, value, LatestField::Data)?,
            "data_segs_out" => number(&mut info.data_segs_out, value, LatestField::Data)?,
            "busy" => counted_time(&mut info.busy_time, value)?,
            "rwnd_limited" => counted_time(&mut info.rwnd_limited, value)?,
            "sndbuf_limited" => counted_time(&mut info.sndbuf_limited, value)?,
            _ => return self.latest(name, value),
        })
    }

    fn latest(&mut self, name: &str, value: &str) -> Option<LatestField> {
        let info = &mut self.info;
        Some(match name {
            "delivered" => number(&mut info.delivered, value, LatestField::Sent)?,
            "delivered_ce" => number(&mut info.delivered_ce, value, LatestField::Sent)?,
            "bytes_sent" => {
                info.bytes_sent = Some(bytes(value, BYTES_MOST)?);
                LatestField::Sent
            }
            "bytes_retrans" => {
                info.bytes_retrans = Some(bytes(value, BYTES_MOST)?);
                LatestField::Sent
            }
            "dsack_dups" => number(&mut info.dsack_dups, value, LatestField::Sent)?,
            "reord_seen" => number(&mut info.reord_seen, value, LatestField::Sent)?,
            "rcv_ooopack" => number(&mut info.rcv_ooopack, value, LatestField::PeerWindow)?,
            "snd_wnd" => {
                info.snd_wnd = Some(Window::new(bytes(value, SIZE_MOST)?));
                LatestField::PeerWindow
            }
            "rcv_wnd" => {
                info.rcv_wnd = Some(Window::new(bytes(value, SIZE_MOST)?));
                LatestField::OwnWindow
            }
            "rehash" => number(&mut info.rehash, value, LatestField::OwnWindow)?,
            _ => LatestField::Base,
        })
    }

    /// The kernel's own form, if the log knows the fields up to `known`.
    pub(super) fn info(&self, known: LatestField, state: TcpState) -> TcpInfo {
        let mut info = TcpInfo { state, ..self.info.clone() };
        info.ca_state = match () {
            () if info.retrans > 0 || info.lost > 0 => CongestionState::Recovery,
            () if info.sacked > 0 => CongestionState::Disorder,
            () => CongestionState::Open,
        };
        let zero = Bytes::ZERO;
        if known >= LatestField::Counts {
            or_zero(&mut info.bytes_acked, zero);
            or_zero(&mut info.bytes_received, zero);
            or_zero(&mut info.segs_out, 0);
            or_zero(&mut info.segs_in, 0);
        }
        if known >= LatestField::Data {
            or_zero(&mut info.notsent_bytes, zero);
            or_zero(&mut info.data_segs_in, 0);
            or_zero(&mut info.data_segs_out, 0);
        }
        if known >= LatestField::Busy {
            or_zero(&mut info.busy_time, Duration::ZERO);
            or_zero(&mut info.rwnd_limited, Duration::ZERO);
            or_zero(&mut info.sndbuf_limited, Duration::ZERO);
        }
        if known >= LatestField::Sent {
            or_zero(&mut info.delivered, 0);
            or_zero(&mut info.delivered_ce, 0);
            or_zero(&mut info.bytes_sent, zero);
            or_zero(&mut info.bytes_retrans, zero);
            or_zero(&mut info.dsack_dups, 0);
            or_zero(&mut info.reord_seen, 0);
        }
        if known >= LatestField::PeerWindow {
            or_zero(&mut info.rcv_ooopack, 0);
            or_zero(&mut info.snd_wnd, Window::new(zero));
        }
        if known >= LatestField::OwnWindow {
            or_zero(&mut info.rcv_wnd, Window::new(zero));
            or_zero(&mut info.rehash, 0);
        }
        info
    }
}

/// ss leaves out a zero.
fn or_zero<T>(field: &mut Option<T>, zero: T) {
    field.get_or_insert(zero);
}

/// Whether every Linux has a field of this name, and only `-i` prints it.
fn is_base(name: &str) -> bool {
    matches!(name, "rto" | "rtt" | "mss" | "cwnd" | "ato" | "wscale" | "lastsnd" | "lastrcv")
}

/// The name of a congestion control: a kernel's module.
fn is_name(word: &str) -> bool {
    const NAME_MOST: usize = 16;
    word.len() < NAME_MOST
        && word.starts_with(|one: char| one.is_ascii_lowercase())
        && word.chars().all(is_part_of_name)
}

fn is_part_of_name(one: char) -> bool {
    one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_'
}

/// A line before and after its processes: their names are foreign.
fn without_users(text: &str) -> (&str, &str) {
    let Some(from) = text.find("users:((") else { return (text, "") };
    let (before, rest) = text.split_at(from);
    (before, rest.find("))").map_or("", |end| &rest[end + 2..]))
}

fn number(field: &mut Option<u32>, value: &str, known: LatestField) -> Option<LatestField> {
    *field = Some(value.parse().ok()?);
    Some(known)
}

fn scale(value: &str) -> Option<u8> {
    value.parse().ok().filter(|scale| *scale < 16)
}

fn bytes(value: &str, most: u64) -> Option<Bytes> {
    value.parse().ok().filter(|count| *count <= most).map(Bytes::new)
}

/// Milliseconds, with a fraction in some fields.
fn millis(value: &str) -> Option<Duration> {
    let millis: f64 = value.parse().ok()?;
    (0.0..=MILLIS_MOST)
        .contains(&millis)
        .then(|| Duration::from_nanos((millis * 1e6).round() as u64))
}

/// `1200ms(40.0%)`, or without the percentage.
fn counted_time(field: &mut Option<Duration>, value: &str) -> Option<LatestField> {
    let (time, _) = value.split_once("ms")?;
    *field = Some(millis(time)?);
    Some(LatestField::Busy)
}

/// `26.4Gbps`.
fn rate(text: &str) -> Option<Rate> {
    let number = text.strip_suffix("bps")?;
    let scales = [('K', 1e3), ('M', 1e6), ('G', 1e9), ('T', 1e12)];
    let scaled =
        scales.iter().find_map(|(unit, scale)| Some((number.strip_suffix(*unit)?, *scale)));
    let (number, scale) = scaled.unwrap_or((number, 1.0));
    let rate = number.parse::<f64>().ok()? * scale;
    (0.0..=RATE_MOST).contains(&rate).then(|| Rate::from_bits_per_sec_f64(rate))
}

/// `(r0,rb131072,t0,tb87040,f0,w0,o0,bl0,d0)`.
fn memory(value: &str) -> Option<SocketMemory> {
    let inner = value.strip_prefix('(')?.strip_suffix(')')?;
    let mut memory = SocketMemory::default();
    for part in inner.split(',') {
        let digits = part.find(|one: char| one.is_ascii_digit())?;
        let (name, value) = part.split_at(digits);
        let size = bytes(value, SIZE_MOST);
        match name {
            "r" => memory.rmem_alloc = size?,
            "rb" => memory.rcvbuf = size?,
            "t" => memory.wmem_alloc = size?,
            "tb" => memory.sndbuf = size?,
            "f" => memory.fwd_alloc = size?,
            "w" => memory.wmem_queued = size?,
            "o" => memory.optmem = size?,
            "bl" => memory.backlog = size?,
            "d" => memory.drops = Some(value.parse().ok()?),
            _ => (),
        }
    }
    Some(memory)
}
