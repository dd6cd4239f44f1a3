//! What a handshake of TLS says in clear text: the name of the server, the protocols that a client
//! offers and a server of TLS 1.2 chooses, and versions (RFC 8446 sections 4.1 and 4.2, RFC 6066
//! section 3, RFC 7301 section 3.1).

use super::fields::Fields;
use super::token::{self, Token};

const SERVER_NAME: usize = 0;
const ALPN: usize = 16;
const SUPPORTED_VERSIONS: usize = 43;
const SERVER_HELLO: usize = 2;
/// The headers of record and message.
const RECORD_HEADER: usize = 5;

/// What a ClientHello says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClientHello {
    pub server_name: Option<Box<str>>,
    /// The names that it offers, with commas between them.
    pub offered: Option<Token>,
    /// Whether HTTP/2 is among them; `None` where too little of it was captured.
    pub offers_http2: Option<bool>,
    /// The highest version that it offers.
    pub version: Option<&'static str>,
}

/// What a ServerHello says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ServerHello {
    pub version: Option<&'static str>,
    pub chosen: Option<Token>,
}

/// How many bytes of the first record are missing.
pub(super) fn missing(payload: &[u8]) -> usize {
    let mut fields = Fields(payload);
    let length = fields.take(3).and_then(|_| fields.number::<2>()).unwrap_or(0);
    (RECORD_HEADER + length).saturating_sub(payload.len())
}

/// The message in the first record, as far as it is there: its type and its body.
fn message(payload: &[u8]) -> Option<(usize, Fields<'_>)> {
    let mut record = Fields(payload);
    record.take(3)?;
    let mut record = Fields(record.part_of_block::<2>()?);
    let kind = record.number::<1>()?;
    Some((kind, Fields(record.part_of_block::<3>()?)))
}

/// Reads a record that begins with a ClientHello.
pub(super) fn client_hello(payload: &[u8]) -> ClientHello {
    let mut hello = ClientHello::default();
    let whole = read_client_hello(payload, &mut hello);
    if whole.is_some() {
        hello.offers_http2.get_or_insert(false);
    }
    hello
}

/// `None` where something is missing.
fn read_client_hello(payload: &[u8], hello: &mut ClientHello) -> Option<()> {
    let (_, mut body) = message(payload)?;
    let legacy = body.number::<2>()?;
    body.take(32)?;
    body.block::<1>()?;
    body.block::<2>()?;
    body.block::<1>()?;
    hello.version = version(legacy);
    if body.0.is_empty() {
        // A client without extensions; a record that was cut here says how long it is.
        return (missing(payload) == 0).then_some(());
    }
    let length = body.number::<2>()?;
    let mut extensions = body;
    let is_whole = extensions.0.len() >= length;
    while !extensions.0.is_empty() {
        let kind = extensions.number::<2>()?;
        let is_cut = is_cut(extensions);
        let mut said = Fields(extensions.part_of_block::<2>()?);
        match kind {
            SERVER_NAME => hello.server_name = said_name(said),
            ALPN => note_offer(said, is_cut, hello),
            SUPPORTED_VERSIONS => {
                let versions = said.part_of_block::<1>()?;
                let known = versions.chunks_exact(2).filter_map(|one| {
                    let number = usize::from(one[0]) << 8 | usize::from(one[1]);
                    version(number).map(|name| (number, name))
                });
                if let Some((_, highest)) = known.max() {
                    hello.version = Some(highest);
                }
            }
            _ => {}
        }
    }
    is_whole.then_some(())
}

/// Whether less is there of the block that comes next than it says.
fn is_cut(mut fields: Fields<'_>) -> bool {
    fields.number::<2>().is_none_or(|length| fields.0.len() < length)
}

/// The name of a host among the names of a server (RFC 6066 section 3).
fn said_name(mut said: Fields<'_>) -> Option<Box<str>> {
    const HOST: usize = 0;
    let mut names = Fields(said.block::<2>()?);
    while let Some(kind) = names.number::<1>() {
        let one = names.block::<2>()?;
        if kind == HOST {
            return token::name(one);
        }
    }
    None
}

fn note_offer(mut said: Fields<'_>, is_cut: bool, hello: &mut ClientHello) {
    let mut names = Fields(said.part_of_block::<2>().unwrap_or_default());
    let mut offered = Vec::new();
    let mut has_http2 = false;
    while let Some(one) = names.block::<1>() {
        has_http2 |= one == b"h2";
        if !offered.is_empty() {
            offered.push(b',');
        }
        offered.extend_from_slice(one);
    }
    hello.offered = Token::of(&offered).filter(|_| !is_cut);
    hello.offers_http2 = (has_http2 || !is_cut).then_some(has_http2);
}

/// Reads a record that begins with another message than a ClientHello. `None` if it is no
/// ServerHello.
pub(super) fn server_hello(payload: &[u8]) -> Option<ServerHello> {
    let (kind, mut body) = message(payload)?;
    if kind != SERVER_HELLO {
        return None;
    }
    let legacy = body.number::<2>()?;
    body.take(32)?;
    body.block::<1>()?;
    body.take(3)?;
    let mut hello = ServerHello { version: version(legacy), chosen: None };
    // TLS 1.3 says so in an extension: without it the version is not known where that is cut.
    let length = body.number::<2>();
    let is_cut = length.map_or(missing(payload) > 0, |length| body.0.len() < length);
    let mut extensions = Fields(&body.0[..body.0.len().min(length.unwrap_or(0))]);
    while let (Some(kind), Some(said)) = (extensions.number::<2>(), extensions.block::<2>()) {
        let mut said = Fields(said);
        match kind {
            SUPPORTED_VERSIONS => hello.version = said.number::<2>().and_then(version),
            ALPN => {
                let mut names = Fields(said.block::<2>().unwrap_or_default());
                hello.chosen = names.block::<1>().and_then(Token::of);
            }
            _ => {}
        }
    }
    if is_cut && hello.version == Some("1.2") {
        hello.version = None;
    }
    Some(hello)
}

/// A version by its number.
fn version(number: usize) -> Option<&'static str> {
    Some(match number {
        0x0300 => "SSL 3.0",
        0x0301 => "1.0",
        0x0302 => "1.1",
        0x0303 => "1.2",
        0x0304 => "1.3",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
