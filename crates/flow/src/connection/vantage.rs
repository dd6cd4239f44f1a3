//! Where the capture was taken, and what this makes doubtful.
//!
//! The capture point divides the round trip of the handshake: SYN to SYN-ACK is the path to the
//! server and back, SYN-ACK to ACK the path to the client and back. If one end answers within a
//! small fraction of the whole, the capture was taken at that end. Without a handshake, the least
//! times from data to its ACK show the same with less confidence, since an ACK may be delayed.

use crate::frames::FrameStop;
use fullpipe_model::units::Duration;

/// Where a capture was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// At the client, or near it.
    Client,
    /// At the server, or near it.
    Server,
    /// Between the two.
    Between,
    /// The evidence does not say.
    Unknown,
}

/// An estimate of where the capture was taken.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Vantage {
    /// The place.
    pub place: Place,
    /// How sure the place is, 0 to 1.
    pub confidence: f64,
}

/// For example `captured at the server (97 % sure)`.
impl std::fmt::Display for Vantage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.place {
            Place::Unknown => f.write_str("captured in a place that its times do not tell"),
            place => {
                write!(f, "captured {} ({:.0} % sure)", place.words(), self.confidence * 100.0)
            }
        }
    }
}

impl Place {
    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Client => "client",
            Place::Server => "server",
            Place::Between => "between",
            Place::Unknown => "unknown",
        }
    }

    /// The place in words, to follow "captured".
    pub const fn words(self) -> &'static str {
        match self {
            Place::Client => "at the client",
            Place::Server => "at the server",
            Place::Between => "between the ends",
            Place::Unknown => "in a place that times do not tell",
        }
    }
}

/// A round trip shorter than this is no evidence: both ends may be in one machine.
const TOO_SHORT: Duration = Duration::from_micros(200);
/// If an end is nearer than this fraction of the whole, the capture was taken at that end.
const NEAR: f64 = 0.10;
/// The confidence of the best evidence of each kind.
const BY_HANDSHAKE: f64 = 0.99;
const BY_DATA: f64 = 0.80;

/// Estimates the place from two round trips: between the capture point and the client, and between
/// the capture point and the server. The handshake's are preferred to those of data.
pub(super) fn guess(
    handshake: Option<(Duration, Duration)>,
    data: Option<(Duration, Duration)>,
) -> Vantage {
    handshake
        .and_then(|parts| by_parts(parts, BY_HANDSHAKE))
        .or_else(|| data.and_then(|parts| by_parts(parts, BY_DATA)))
        .unwrap_or(Vantage { place: Place::Unknown, confidence: 0.0 })
}

/// The place by the two parts of a round trip, the client's and the server's, with a confidence of
/// at most `most`. `None` where the whole is too short.
fn by_parts((client, server): (Duration, Duration), most: f64) -> Option<Vantage> {
    let whole = client.saturating_add(server);
    if whole < TOO_SHORT {
        return None;
    }
    let part = client.as_secs_f64() / whole.as_secs_f64();
    // The nearer to the border between two answers, the lower the confidence.
    let at_an_end = most * (1.0 - 0.5 * part.min(1.0 - part) / NEAR);
    Some(match part {
        part if part <= NEAR => Vantage { place: Place::Client, confidence: at_an_end },
        part if part >= 1.0 - NEAR => Vantage { place: Place::Server, confidence: at_an_end },
        part => Vantage {
            place: Place::Between,
            confidence: most * (0.5 + (0.5 - (part - 0.5).abs())).min(1.0),
        },
    })
}

/// What a reader of the facts must know about the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// Packets are larger than the segments on the wire, because segmentation or receive offload
    /// (TSO, GSO, GRO) stood between the wire and the capture. Packet counts, losses of single
    /// segments and times within a packet are hidden.
    OffloadSuperPackets,
    /// Data is acknowledged that the capture does not have: the sniffer dropped packets, or they
    /// took another path.
    CaptureDropped,
    /// Many packets are in the capture twice: it was taken on several interfaces at once, or by a
    /// mirror of both directions of a port. The copies are left out.
    CapturedTwice,
    /// Only one direction was captured.
    OneSided,
    /// The handshake was not captured: windows may be too small, because their scale is missing.
    HandshakeMissing,
    /// The client offered window scaling and the answer did not, so no window is above 64 KiB. If
    /// the server supports scaling, a middlebox removed the option.
    WindowScaleRefused,
    /// The capture's snap length cut packets within their TCP headers. SACK blocks and timestamps
    /// are missing, so losses are counted from less evidence.
    HeadersCut,
    /// Nothing was captured: samples of its sockets are all that is known. What takes packets is
    /// not known, and counts of it are zero.
    NoPackets,
    /// The samples are looks at a socket that somebody logged (`ss -tin`): far apart, and without
    /// what its application asked for and its host's settings.
    SocketLog,
    /// There is one look at the socket, so shares are of the time that it was busy.
    OneLook,
    /// The log has no counters of the time that the window and the send buffer held the sender.
    NoCounters,
    /// The log is of the socket that receives: it does not show what held the sender.
    ReceiverLog,
    /// The log has nothing of the socket's memory: a full send buffer and an application that
    /// pauses look alike.
    NoSocketMemory,
    /// The samples are those of a server of ndt7.
    Ndt7Result,
    /// The samples are what iperf3 printed of its intervals.
    Iperf3Result,
    /// The frames of HTTP/2 were not read to the end: the capture misses some of their data.
    FramesGap,
    /// The frames of HTTP/2 were not read: the capture has only the beginning of packets.
    FramesCut,
    /// The frames of HTTP/2 were not read: too many connections are read at a time.
    FramesTooMany,
    /// The frames inside TLS were not read: its cipher suite is none that is known.
    FramesCipher,
    /// The frames inside TLS were not read, or not to the end: a record does not open with the
    /// keys of its connection.
    FramesUndecrypted,
    /// The frames of HTTP/2 were not read to the end: they contradict its rules.
    FramesMalformed,
}

impl Warning {
    /// Every warning, in the order of the type.
    pub const ALL: [Warning; 21] = [
        Warning::OffloadSuperPackets,
        Warning::CaptureDropped,
        Warning::CapturedTwice,
        Warning::OneSided,
        Warning::HandshakeMissing,
        Warning::WindowScaleRefused,
        Warning::HeadersCut,
        Warning::NoPackets,
        Warning::SocketLog,
        Warning::OneLook,
        Warning::NoCounters,
        Warning::ReceiverLog,
        Warning::NoSocketMemory,
        Warning::Ndt7Result,
        Warning::Iperf3Result,
        Warning::FramesGap,
        Warning::FramesCut,
        Warning::FramesTooMany,
        Warning::FramesCipher,
        Warning::FramesUndecrypted,
        Warning::FramesMalformed,
    ];

    /// Why frames were not read, or not to the end. `None` of what is no HTTP/2.
    pub(crate) const fn of_frames(stop: FrameStop) -> Option<Self> {
        Some(match stop {
            FrameStop::NotHttp2 => return None,
            FrameStop::Gap => Warning::FramesGap,
            FrameStop::Cut => Warning::FramesCut,
            FrameStop::TooMany => Warning::FramesTooMany,
            FrameStop::Cipher => Warning::FramesCipher,
            FrameStop::Undecrypted => Warning::FramesUndecrypted,
            FrameStop::Malformed => Warning::FramesMalformed,
        })
    }

    /// Whether it says why frames were not read.
    pub const fn is_of_frames(self) -> bool {
        matches!(
            self,
            Warning::FramesGap
                | Warning::FramesCut
                | Warning::FramesTooMany
                | Warning::FramesCipher
                | Warning::FramesUndecrypted
                | Warning::FramesMalformed
        )
    }

    /// The stable name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Warning::OffloadSuperPackets => "offload_super_packets",
            Warning::CaptureDropped => "capture_dropped",
            Warning::CapturedTwice => "captured_twice",
            Warning::OneSided => "one_sided",
            Warning::HandshakeMissing => "handshake_missing",
            Warning::WindowScaleRefused => "window_scale_refused",
            Warning::HeadersCut => "headers_cut",
            Warning::NoPackets => "no_packets",
            Warning::SocketLog => "socket_log",
            Warning::OneLook => "one_look",
            Warning::NoCounters => "no_counters",
            Warning::ReceiverLog => "receiver_log",
            Warning::NoSocketMemory => "no_socket_memory",
            Warning::Ndt7Result => "ndt7_result",
            Warning::Iperf3Result => "iperf3_result",
            Warning::FramesGap => "frames_gap",
            Warning::FramesCut => "frames_cut",
            Warning::FramesTooMany => "frames_too_many",
            Warning::FramesCipher => "frames_cipher",
            Warning::FramesUndecrypted => "frames_undecrypted",
            Warning::FramesMalformed => "frames_malformed",
        }
    }

    /// The warning in words.
    pub const fn words(self) -> &'static str {
        match self {
            Warning::OffloadSuperPackets => {
                "packets are larger than the segments on the wire (TSO, GSO or GRO): turn offloads off with ethtool -K, or \
                 capture elsewhere, to see single segments"
            }
            Warning::CaptureDropped => {
                "data is acknowledged that was not captured: raise the sniffer's buffer (tcpdump -B) or cut packets (-s 128)"
            }
            Warning::CapturedTwice => {
                "packets were captured twice, on several interfaces (tcpdump -i any) or by a mirror port: the copies are \
                 left out of everything but the counts of packets and bytes on the wire"
            }
            Warning::OneSided => {
                "only one direction was captured: round trips, windows and limits cannot be told"
            }
            Warning::HandshakeMissing => {
                "the handshake was not captured: windows may be too small by their scale"
            }
            Warning::WindowScaleRefused => {
                "window scaling was offered and not answered: no window above 64 KiB; a middlebox may have taken it out"
            }
            Warning::HeadersCut => {
                "packets were cut within their TCP headers: SACK blocks and timestamps are missing, so lost and repeated \
                 segments are miscounted; keep more of each packet (tcpdump -s 128, -s 256 with tunnels)"
            }
            Warning::NoPackets => {
                "samples of a socket are no packets: a point of the sequence graph is a sample, bytes on the wire are \
                 estimated, and labels and losses are not counted; a capture has them"
            }
            Warning::SocketLog => {
                "a log of ss has looks that are far apart, and neither what the application asked of its socket nor its \
                 host's settings: shares follow from the kernel's counters, what they leave open from several looks \
                 together, and causes are not told; fullpipe why has them"
            }
            Warning::OneLook => {
                "there is one look at this socket: shares are of all the time that it was busy since it was opened, and \
                 pauses of its application are not known; log several looks with a line of date before each"
            }
            Warning::NoCounters => {
                "the log has no busy, rwnd_limited and sndbuf_limited (Linux 4.10 and its ss print them): for how long the \
                 receive window or the send buffer held the sender is not known"
            }
            Warning::ReceiverLog => {
                "this is the receiver's socket, which does not count what holds the sender: log ss -tinm at the sender, or \
                 take the sender's own result (iperf3 --json at the sender, or --get-server-output)"
            }
            Warning::NoSocketMemory => {
                "the log has no skmem: a full send buffer and an application that pauses look alike, unless the kernel \
                 counted the buffer; log ss -tinm"
            }
            Warning::Ndt7Result => {
                "a result of ndt7 has some four looks a second at the server's socket, without its memory and without the \
                 client's: shares follow from the kernel's counters, what they leave open from several looks together, \
                 and causes are not told"
            }
            Warning::Iperf3Result => {
                "iperf3 prints the mean of each interval and not for how long the receive window or the send buffer held \
                 the sender, nor what waited to be sent: the answer is a guess; log ss -tinm at the sender beside it, or \
                 run fullpipe why there"
            }
            _ => self.words_of_frames(),
        }
    }

    /// Why frames of HTTP/2 were not read, in words.
    const fn words_of_frames(self) -> &'static str {
        match self {
            Warning::FramesGap => {
                "HTTP/2's windows are known up to a gap only: the capture misses data there; raise the sniffer's buffer \
                 (tcpdump -B)"
            }
            Warning::FramesCut => {
                "HTTP/2's windows are not known: packets were captured in part; capture them whole (tcpdump -s 0)"
            }
            Warning::FramesTooMany => {
                "HTTP/2's windows are not known: more than 128 connections were read at a time; select this one (--filter)"
            }
            Warning::FramesCipher => {
                "HTTP/2's windows are not known: the cipher suite of TLS is not read, only AES-GCM and \
                 ChaCha20-Poly1305 of TLS 1.2 and 1.3 are"
            }
            Warning::FramesUndecrypted => {
                "HTTP/2's windows are not known, or not to the end: a record of TLS does not open with the keys of this \
                 connection, which are not complete, or the client sent data before the handshake (0-RTT)"
            }
            // Of frames that contradict the rules.
            _ => {
                "HTTP/2's windows are known up to a frame only that contradicts the rules of HTTP/2"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_end_that_answers_at_once_is_where_the_sniffer_stood() {
        let at = |client, server| guess(Some((client, server)), None);
        assert_eq!(at(Duration::from_micros(30), millis(40)).place, Place::Client);
        assert_eq!(at(millis(40), Duration::from_micros(30)).place, Place::Server);
        assert_eq!(at(millis(20), millis(20)).place, Place::Between);
        assert!(at(Duration::from_micros(30), millis(40)).confidence > 0.95);
        assert!(at(millis(4), millis(40)).confidence < 0.6, "near the border it is not sure");
    }

    #[test]
    fn data_says_it_less_surely_and_one_machine_says_nothing() {
        let data = Some((Duration::from_micros(10), millis(10)));
        let found = guess(None, data);
        assert_eq!(found.place, Place::Client);
        assert!(found.confidence <= BY_DATA);
        let loopback = Some((Duration::from_micros(20), Duration::from_micros(30)));
        assert_eq!(guess(loopback, None).place, Place::Unknown);
        assert_eq!(guess(None, None), Vantage { place: Place::Unknown, confidence: 0.0 });
    }

    #[test]
    fn both_ends_are_treated_alike() {
        for (client, server) in [(1, 99), (8, 92), (30, 70), (50, 50)] {
            let (one, other) =
                (Some((millis(client), millis(server))), Some((millis(server), millis(client))));
            let (one, other) = (guess(one, None), guess(other, None));
            assert!((one.confidence - other.confidence).abs() < 1e-9);
            assert_eq!(one.place == Place::Client, other.place == Place::Server);
        }
    }
}
