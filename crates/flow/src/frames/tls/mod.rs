//! TLS's records under keys that their user has: TLS 1.3 and 1.2 with AES-GCM and
//! ChaCha20-Poly1305.
//!
//! A log has the secrets of the application's data, and none of the handshake's: with TLS 1.3 the
//! first record of an end's data is the first that its key opens, which the tag makes certain. From
//! there on each record has to open, with the next number, or nothing more is read. What was in a
//! record is passed on and overwritten at once.

mod cipher;
mod hello;

use super::FrameStop;
use super::keys::{RANDOM, Secret, SessionSecrets};
use cipher::{HEADER, RecordKeys, Suite};
use hello::ServerHello;

/// The types of records.
const CHANGE_CIPHER: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION: u8 = 23;
/// The longest body of a record (RFC 5246 section 6.2.3).
const BODY_MOST: usize = (1 << 14) + 2048;
/// Records of a handshake that are tried with the key of the data.
const TRIED_MOST: u16 = 64;
/// A message of TLS 1.3 after which its sender uses the next key, and the header of a message.
const KEY_UPDATE: u8 = 24;
const MESSAGE_HEADER: usize = 4;

/// The random number that a ClientHello at the start of these bytes says.
pub(crate) fn client_random(payload: &[u8]) -> Option<[u8; RANDOM]> {
    const AT: usize = HEADER + MESSAGE_HEADER + 2;
    payload.get(AT..AT + RANDOM)?.try_into().ok()
}

/// The records of a connection whose secrets are known. Its ends are 0, the client, and 1.
#[derive(Debug)]
pub(super) struct Tls {
    secrets: SessionSecrets,
    client_random: [u8; RANDOM],
    suite: Option<Suite>,
    ends: [RecordReader; 2],
}

/// What an end sends.
#[derive(Debug, Default)]
struct RecordReader {
    /// The record that is being put together.
    record: Vec<u8>,
    keys: Option<RecordKeys>,
    /// With TLS 1.3, the secret that they follow from.
    secret: Option<Secret>,
    /// Whether all that follows is under the keys.
    is_open: bool,
    tried: u16,
    messages: Messages,
}

/// The messages of a handshake after it, which may be cut anywhere.
#[derive(Debug, Default)]
struct Messages {
    header: [u8; MESSAGE_HEADER],
    had: usize,
    left: usize,
}

/// No secret is printed.
impl std::fmt::Debug for SessionSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionSecrets")
    }
}

/// No secret is printed.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Tls {
    /// The connection whose client said this number.
    pub fn new(secrets: SessionSecrets, client_random: [u8; RANDOM]) -> Self {
        Tls { secrets, client_random, suite: None, ends: Default::default() }
    }

    /// How many bytes of an end's record that has begun are to come.
    pub fn rest_of_record(&self, end: usize) -> Option<usize> {
        let record = &self.ends[end].record;
        length_of_record(record).map(|whole| whole - record.len())
    }

    /// Reads what an end sends, and passes what its applications say to `said`.
    pub fn read(
        &mut self,
        end: usize,
        bytes: &[u8],
        mut said: impl FnMut(&[u8]) -> Result<(), FrameStop>,
    ) -> Result<(), FrameStop> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let record = &mut self.ends[end].record;
            let wanted = match record.first_chunk::<HEADER>() {
                None => HEADER,
                Some(header) => HEADER + body_length(header)?,
            };
            let length = (wanted - record.len()).min(rest.len());
            record.extend_from_slice(&rest[..length]);
            rest = &rest[length..];
            let is_whole = match record.first_chunk::<HEADER>() {
                Some(header) => record.len() == HEADER + body_length(header)?,
                None => false,
            };
            if is_whole {
                let mut record = std::mem::take(&mut self.ends[end].record);
                let read = self.record(end, &mut record, &mut said);
                // Nothing of what was said stays.
                record.fill(0);
                record.clear();
                self.ends[end].record = record;
                read?;
            }
        }
        Ok(())
    }

    /// Reads a whole record.
    fn record(
        &mut self,
        end: usize,
        record: &mut [u8],
        said: &mut impl FnMut(&[u8]) -> Result<(), FrameStop>,
    ) -> Result<(), FrameStop> {
        let Some((header, body)) = record.split_first_chunk_mut::<HEADER>() else { return Ok(()) };
        let is_tls13 = self.suite.is_some_and(|suite| suite.is_tls13);
        match (header[0], self.suite) {
            (HANDSHAKE, None) if end == 1 => self.chooses(body),
            (CHANGE_CIPHER, Some(_)) if !is_tls13 => {
                // A second one would begin another handshake.
                let reader = &mut self.ends[end];
                if std::mem::replace(&mut reader.is_open, true) {
                    return Err(FrameStop::Undecrypted);
                }
                Ok(())
            }
            (APPLICATION, None) => Err(FrameStop::Undecrypted),
            (APPLICATION, Some(suite)) if is_tls13 => {
                let Some(opened) = self.ends[end].open_tls13(*header, body)? else { return Ok(()) };
                self.ends[end].opened_tls13(suite, opened, said)
            }
            (kind, Some(_)) if !is_tls13 && self.ends[end].is_open => {
                let keys = self.ends[end].keys.as_mut().ok_or(FrameStop::Undecrypted)?;
                let opened = keys.open(*header, body).ok_or(FrameStop::Undecrypted)?;
                if kind == APPLICATION { said(opened) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Reads the server's choice.
    fn chooses(&mut self, body: &[u8]) -> Result<(), FrameStop> {
        let Some(hello) = ServerHello::read(body) else { return Ok(()) };
        let suite = Suite::of(hello.suite).filter(|suite| suite.is_tls13 == hello.is_tls13);
        let suite = suite.ok_or(FrameStop::Cipher)?;
        self.suite = Some(suite);
        let keys = if suite.is_tls13 {
            let [client, server] = self.secrets.traffic;
            for (end, secret) in [client, server].into_iter().enumerate() {
                self.ends[end].secret = secret;
            }
            client
                .zip(server)
                .and_then(|(client, server)| Some([suite.keys(&client)?, suite.keys(&server)?]))
        } else {
            let randoms = [&self.client_random[..], &hello.random[..]];
            self.secrets.master.and_then(|master| suite.keys_of_master(&master, randoms))
        };
        let keys = keys.ok_or(FrameStop::Undecrypted)?;
        self.ends.iter_mut().zip(keys).for_each(|(end, keys)| end.keys = Some(keys));
        Ok(())
    }
}

/// The length of the record that begins with these bytes, if they have its header.
pub(super) fn length_of_record(bytes: &[u8]) -> Option<usize> {
    Some(HEADER + body_length(bytes.first_chunk::<HEADER>()?).ok()?)
}

impl RecordReader {
    /// Opens a record of TLS 1.3; `None` of one that belongs to the handshake.
    fn open_tls13<'a>(
        &mut self,
        header: [u8; HEADER],
        body: &'a mut [u8],
    ) -> Result<Option<&'a mut [u8]>, FrameStop> {
        let keys = self.keys.as_mut().ok_or(FrameStop::Undecrypted)?;
        let opened = keys.open(header, body);
        if opened.is_none() {
            self.tried = self.tried.saturating_add(1);
            if self.is_open || self.tried > TRIED_MOST {
                return Err(FrameStop::Undecrypted);
            }
            return Ok(None);
        }
        self.is_open = true;
        Ok(opened)
    }

    /// What was in a record of TLS 1.3: its contents, their type, and zeroes.
    fn opened_tls13(
        &mut self,
        suite: Suite,
        opened: &[u8],
        said: &mut impl FnMut(&[u8]) -> Result<(), FrameStop>,
    ) -> Result<(), FrameStop> {
        let end = opened.iter().rposition(|byte| *byte != 0).ok_or(FrameStop::Malformed)?;
        let contents = &opened[..end];
        match opened[end] {
            APPLICATION => said(contents),
            HANDSHAKE if self.messages.updates_key(contents) => {
                let secret = self.secret.and_then(|secret| suite.updated(&secret));
                self.keys = secret.and_then(|secret| suite.keys(&secret));
                self.secret = secret;
                if self.keys.is_some() { Ok(()) } else { Err(FrameStop::Undecrypted) }
            }
            HANDSHAKE | ALERT => Ok(()),
            _ => Err(FrameStop::Malformed),
        }
    }
}

impl Messages {
    /// Reads on; whether the sender uses the next key from now on.
    fn updates_key(&mut self, bytes: &[u8]) -> bool {
        let mut updates = false;
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = if self.left > 0 {
                self.left.min(rest.len())
            } else {
                (MESSAGE_HEADER - self.had).min(rest.len())
            };
            let (own, others) = rest.split_at(length);
            rest = others;
            if self.left > 0 {
                self.left -= length;
                continue;
            }
            self.header[self.had..self.had + length].copy_from_slice(own);
            self.had += length;
            if self.had == MESSAGE_HEADER {
                let [kind, high, middle, low] = self.header;
                self.had = 0;
                self.left = u32::from_be_bytes([0, high, middle, low]) as usize;
                updates |= kind == KEY_UPDATE;
            }
        }
        updates
    }
}

/// The length of a record's body, if this may be the header of one.
fn body_length(header: &[u8; HEADER]) -> Result<usize, FrameStop> {
    let [kind, major, _, high, low] = *header;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let is_record = (CHANGE_CIPHER..=APPLICATION).contains(&kind) && major == 3;
    if is_record && length <= BODY_MOST { Ok(length) } else { Err(FrameStop::Malformed) }
}

#[cfg(test)]
mod tests;
