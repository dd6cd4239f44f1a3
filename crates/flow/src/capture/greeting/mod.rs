//! What the two ends of a connection say of themselves before their data: protocol and version,
//! server's name, and programs, as far as that is in clear text.
//!
//! [`Introduction`] hears the first data of both ends: whatever [`PayloadStart`] takes for a
//! protocol's first words, and what goes on from there ([`goes_on`]). Only what was said is kept;
//! bytes are kept while a message is incomplete, at most [`WORDS_MOST`] of each direction. Each
//! protocol has a function here that takes any bytes and returns what they say.

mod binary;
pub(crate) mod fields;
mod http2;
mod text;
mod tls;
mod token;

pub use token::Token;

use crate::capture::segment::{ApplicationProtocol, PayloadStart, Segment, SequenceNumber};
use fullpipe_model::units::Bytes;

/// The most bytes of a direction's first message that are read: a ClientHello with keys that
/// quantum computers do not break has 1,800.
pub(crate) const WORDS_MOST: usize = 4096;
/// How many bytes of HTTP/2's first frames are waited for.
const FRAMES_MOST: usize = 2048;
/// HTTP/2's name in TLS (RFC 9113 section 3.2).
const HTTP2: &str = "h2";
/// What an end says after so many bytes is data.
const LATEST: u64 = 1 << 14;

/// What the ends of a connection say of themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Greeting {
    /// The version of the protocol that they speak, where it is not TLS.
    pub protocol_version: Option<Token>,
    /// The version of TLS that the server chose.
    pub tls_version: Option<Token>,
    /// The highest version of TLS that the client offers.
    pub tls_offered: Option<Token>,
    /// Whom the client asks for: TLS's server name, HTTP's host, iSCSI's target.
    pub server_name: Option<Box<str>>,
    /// The protocols that a client of TLS offers to speak in it (ALPN), with commas between them.
    pub alpn_offered: Option<Token>,
    /// The one that the server chose, where TLS does not encrypt that (up to 1.2).
    pub alpn_chosen: Option<Token>,
    /// The client's program, as it says itself.
    pub client_program: Option<Token>,
    /// The server's program.
    pub server_program: Option<Token>,
    /// The method of an HTTP/1 client's first request.
    #[serde(skip)]
    pub method: Option<Token>,
    /// Whether a client of TLS offers HTTP/2; `None` where that was not captured.
    #[serde(skip)]
    pub offers_http2: Option<bool>,
    /// The client of HTTP/2 in clear text asks for gRPC.
    #[serde(skip)]
    pub is_grpc: bool,
    /// What client and server grant each stream of HTTP/2 in clear text.
    #[serde(skip)]
    pub stream_windows: [Option<Bytes>; 2],
}

impl Greeting {
    /// Whether TLS was heard.
    pub fn has_tls(&self) -> bool {
        self.tls_offered.is_some() || self.tls_version.is_some()
    }

    /// Whether HTTP/2 may be spoken inside TLS: the server chose it, or the client offers it, or
    /// too little was captured to tell.
    pub fn may_have_http2(&self) -> bool {
        self.chose_http2() || (self.alpn_chosen.is_none() && self.offers_http2 != Some(false))
    }

    /// Whether the server is seen to choose HTTP/2 inside TLS.
    pub fn chose_http2(&self) -> bool {
        self.alpn_chosen.is_some_and(|chosen| chosen.as_str() == HTTP2)
    }

    /// The program of one end.
    pub fn program(&self, of_client: bool) -> Option<Token> {
        if of_client { self.client_program } else { self.server_program }
    }
}

/// How many bytes of what begins so are expected in the segments that follow.
pub(crate) fn goes_on(start: PayloadStart, payload: &[u8]) -> usize {
    match start {
        PayloadStart::ClientHello => tls::missing(payload).min(WORDS_MOST),
        PayloadStart::Http2Preface if http2::first_frames(payload).is_grpc.is_none() => {
            FRAMES_MOST.saturating_sub(payload.len())
        }
        _ => 0,
    }
}

/// Whether the ClientHello that this payload begins with offers HTTP/2; `None` where too little of
/// it was captured.
pub(super) fn offers_http2(payload: &[u8]) -> Option<bool> {
    tls::client_hello(payload).offers_http2
}

/// Whether the ServerHello that this payload begins with chooses HTTP/2; `None` where it does not
/// say.
pub(super) fn chooses_http2(payload: &[u8]) -> Option<bool> {
    tls::server_hello(payload)?.chosen.map(|chosen| chosen.as_str() == HTTP2)
}

/// A segment with words of an end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstWords<'a> {
    /// The end, by its number.
    pub from: usize,
    pub segment: &'a Segment,
    /// Its payload, as far as it was captured and up to [`WORDS_MOST`].
    pub payload: &'a [u8],
    /// How many bytes the end had sent before.
    pub before: u64,
}

/// A message that goes on in the next segment.
#[derive(Debug)]
struct Unfinished {
    start: PayloadStart,
    next: SequenceNumber,
    missing: usize,
    bytes: Vec<u8>,
}

/// Hears what two ends say. They are numbered, and which of them is the client is known later.
#[derive(Debug, Default)]
pub(crate) struct Introduction {
    greeting: Greeting,
    programs: [Option<Token>; 2],
    windows: [Option<Bytes>; 2],
    unfinished: [Option<Unfinished>; 2],
}

impl Introduction {
    /// Whether this segment says something, or may go on with what was said.
    pub fn wants(heard: Option<&Self>, words: &FirstWords<'_>) -> bool {
        let Segment { payload_start, seq, .. } = *words.segment;
        let is_first = payload_start != PayloadStart::Other && words.before < LATEST;
        let goes_on = heard.and_then(|heard| heard.unfinished[words.from].as_ref());
        !words.payload.is_empty() && (is_first || goes_on.is_some_and(|one| one.next == seq))
    }

    /// Hears a segment that it [wants](Self::wants).
    #[cold]
    pub fn hear(&mut self, words: FirstWords<'_>) {
        let FirstWords { from, segment, payload, .. } = words;
        let start = segment.payload_start;
        let goes_on = self.unfinished[from].take_if(|one| one.next == segment.seq);
        let (start, bytes, missing) = match goes_on {
            Some(mut one) => {
                let room = WORDS_MOST.saturating_sub(one.bytes.len());
                one.bytes.extend_from_slice(&payload[..payload.len().min(room)]);
                (one.start, one.bytes, one.missing.saturating_sub(payload.len()))
            }
            None => (start, payload.to_vec(), self::goes_on(start, payload)),
        };
        self.read(from, start, &bytes);
        // What the capture cut cannot be put together.
        let is_whole = segment.payload_len() as usize == payload.len();
        let is_done = self.greeting.is_grpc && start == PayloadStart::Http2Preface;
        if missing > 0 && is_whole && !is_done && bytes.len() < WORDS_MOST {
            let next = segment.end();
            self.unfinished[from] = Some(Unfinished { start, next, missing, bytes });
        }
    }

    /// What was heard, now that the client is known.
    pub fn finish(self, client: usize) -> Greeting {
        let [client_program, server_program] = [client, 1 - client].map(|end| self.programs[end]);
        let stream_windows = [client, 1 - client].map(|end| self.windows[end]);
        Greeting { client_program, server_program, stream_windows, ..self.greeting }
    }

    fn read(&mut self, from: usize, start: PayloadStart, bytes: &[u8]) {
        match start {
            PayloadStart::Other => {}
            PayloadStart::ClientHello => self.client_hello(bytes),
            PayloadStart::Handshake => {
                if let Some(hello) = tls::server_hello(bytes) {
                    let version = hello.version.and_then(|version| Token::of(version.as_bytes()));
                    self.greeting.tls_version = version.or(self.greeting.tls_version);
                    self.greeting.alpn_chosen = hello.chosen.or(self.greeting.alpn_chosen);
                }
            }
            PayloadStart::Ssh(_) => {
                let (version, software) = text::ssh(bytes);
                set(&mut self.greeting.protocol_version, version);
                set(&mut self.programs[from], software);
            }
            PayloadStart::Http2Preface => self.http2(from, bytes),
            PayloadStart::Says(protocol) => self.says(from, protocol, bytes),
        }
    }

    fn client_hello(&mut self, bytes: &[u8]) {
        let hello = tls::client_hello(bytes);
        let greeting = &mut self.greeting;
        let version = hello.version.and_then(|version| Token::of(version.as_bytes()));
        greeting.tls_offered = version.or(greeting.tls_offered);
        greeting.offers_http2 = hello.offers_http2.or(greeting.offers_http2);
        greeting.alpn_offered = hello.offered.or(greeting.alpn_offered);
        greeting.server_name = hello.server_name.or(greeting.server_name.take());
    }

    fn http2(&mut self, from: usize, bytes: &[u8]) {
        let said = http2::first_frames(bytes);
        self.greeting.is_grpc |= said.is_grpc == Some(true);
        self.windows[from] = said.grants.or(self.windows[from]);
    }

    fn says(&mut self, from: usize, protocol: ApplicationProtocol, bytes: &[u8]) {
        let greeting = &mut self.greeting;
        let (version, program) = match protocol {
            ApplicationProtocol::Http1 => {
                let head = text::http(bytes);
                set(&mut greeting.method, head.method);
                greeting.server_name = greeting.server_name.take().or(head.host);
                (head.version, head.program)
            }
            ApplicationProtocol::Http2 => return self.http2(from, bytes),
            ApplicationProtocol::Iscsi => {
                greeting.server_name = greeting.server_name.take().or(binary::iscsi(bytes));
                (None, None)
            }
            ApplicationProtocol::Kafka => (None, binary::kafka(bytes)),
            ApplicationProtocol::Mqtt => (binary::mqtt(bytes), None),
            ApplicationProtocol::Mysql => (None, binary::mysql(bytes)),
            ApplicationProtocol::Nfs => (binary::nfs(bytes), None),
            ApplicationProtocol::Postgresql if bytes.first() == Some(&b'R') => {
                (None, binary::postgresql_answer(bytes))
            }
            ApplicationProtocol::Postgresql => binary::postgresql_start(bytes),
            ApplicationProtocol::Redis => (None, self.redis(from, bytes)),
            ApplicationProtocol::Rsync => (text::rsync(bytes), None),
            ApplicationProtocol::Smb => {
                // A server may first answer in an older dialect.
                let dialect = binary::smb(bytes);
                self.greeting.protocol_version = dialect.or(self.greeting.protocol_version);
                (None, None)
            }
            ApplicationProtocol::Grpc | ApplicationProtocol::Ssh | ApplicationProtocol::Tls => {
                (None, None)
            }
        };
        set(&mut self.greeting.protocol_version, version);
        set(&mut self.programs[from], program);
    }

    /// The library of a client of Redis, whose version may come with the next command.
    fn redis(&mut self, from: usize, bytes: &[u8]) -> Option<Token> {
        let (name, version) = text::redis(bytes);
        let name = name.or(self.programs[from])?;
        let Some(version) = version else { return Some(name) };
        if !name.as_str().contains('/') {
            self.programs[from] = Token::of(format!("{name}/{version}").as_bytes());
        }
        self.programs[from]
    }
}

/// Sets what was not set before.
fn set(one: &mut Option<Token>, said: Option<Token>) {
    *one = one.take().or(said);
}

#[cfg(test)]
mod tests;
