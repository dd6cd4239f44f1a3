//! Protocols whose first words are numbers: databases, file systems, disks, and messages.

use super::fields::Fields;
use super::token::{self, Token};

/// The protocol's version and the program that a client of PostgreSQL begins with
/// (`StartupMessage`).
pub(super) fn postgresql_start(payload: &[u8]) -> (Option<Token>, Option<Token>) {
    const START: usize = 3;
    let mut fields = Fields(payload);
    let (_, major, minor) = (fields.take(4), fields.number::<2>(), fields.number::<2>());
    // Others ask for encryption.
    let (Some(START), Some(minor)) = (major, minor) else { return (None, None) };
    let mut program = None;
    while let Some(name) = fields.text().filter(|name| !name.is_empty()) {
        let Some(value) = fields.text() else { break };
        if name == b"application_name" {
            program = Token::of(value);
        }
    }
    (Token::of(format!("{START}.{minor}").as_bytes()), program)
}

/// The version of a server of PostgreSQL, which follows what it says of the client's password
/// (`ParameterStatus`).
pub(super) fn postgresql_answer(payload: &[u8]) -> Option<Token> {
    let mut fields = Fields(payload);
    loop {
        let kind = fields.number::<1>()?;
        let length = fields.number::<4>()?.checked_sub(4)?;
        let mut body = Fields(fields.take(length)?);
        if kind == usize::from(b'S') && body.text()? == b"server_version" {
            // A distribution's name may follow in brackets.
            return body.text()?.split(|byte| *byte == b' ').next().and_then(Token::of);
        }
    }
}

/// The version of a server of MySQL or MariaDB (`Protocol::HandshakeV10`).
pub(super) fn mysql(payload: &[u8]) -> Option<Token> {
    let version = Fields(payload.get(5..)?).text()?;
    // MariaDB says that it is an old MySQL first, for the sake of old replicas.
    let is_mariadb = version.windows(7).any(|part| part == b"MariaDB");
    Token::of(version.strip_prefix(b"5.5.5-").filter(|_| is_mariadb).unwrap_or(version))
}

/// The dialect that a server of SMB chose (MS-SMB2 section 2.2.4), or `1` (MS-CIFS section
/// 2.2.4.52).
pub(super) fn smb(payload: &[u8]) -> Option<Token> {
    const ANSWER: u8 = 1;
    const NEGOTIATE_1: u8 = 0x72;
    const ANSWER_1: u8 = 0x80;
    if payload.get(4) == Some(&0xff) {
        let is_answer = payload.get(8) == Some(&NEGOTIATE_1)
            && payload.get(13).is_some_and(|flags| flags & ANSWER_1 != 0);
        return is_answer.then(|| Token::of(b"1")).flatten();
    }
    let is_negotiation = payload.get(16..18)? == [0, 0] && payload.get(20)? & ANSWER != 0;
    let dialect = payload.get(72..74).filter(|_| is_negotiation)?;
    let name: &[u8] = match u16::from_le_bytes([dialect[0], dialect[1]]) {
        0x0202 => b"2.0.2",
        0x0210 => b"2.1",
        0x0300 => b"3.0",
        0x0302 => b"3.0.2",
        0x0311 => b"3.1.1",
        _ => return None,
    };
    Token::of(name)
}

/// The version of NFS that a call speaks; of version 4 with its minor one (RFC 5531 section 9, RFC
/// 7530 section 16.2.1).
pub(super) fn nfs(payload: &[u8]) -> Option<Token> {
    const COMPOUND: usize = 1;
    let mut fields = Fields(payload);
    // The record's length, an identifier, a call, the calls' version, the program.
    fields.take(20)?;
    let version = fields.number::<4>().filter(|version| (2..=4).contains(version))?;
    let minor = if version == 4 { minor_version(fields, COMPOUND) } else { None };
    match minor {
        Some(minor) => Token::of(format!("{version}.{minor}").as_bytes()),
        None => Token::of(version.to_string().as_bytes()),
    }
}

fn minor_version(mut fields: Fields<'_>, compound: usize) -> Option<usize> {
    if fields.number::<4>()? != compound {
        return None;
    }
    // Credentials, a verifier, and the call's tag: each is padded to four bytes.
    for has_kind in [true, true, false] {
        if has_kind {
            fields.take(4)?;
        }
        let length = fields.number::<4>()?;
        fields.take(length.checked_next_multiple_of(4)?)?;
    }
    fields.number::<4>().filter(|minor| *minor <= 2)
}

/// The target that a login of iSCSI names (RFC 7143 sections 11.12 and 13.4).
pub(super) fn iscsi(payload: &[u8]) -> Option<Box<str>> {
    const HEADER: usize = 48;
    let text = payload.get(HEADER..)?;
    let mut keys = Fields(text);
    while let Some(pair) = keys.text() {
        if let Some(target) = pair.strip_prefix(b"TargetName=") {
            return token::name(target);
        }
    }
    None
}

/// The version of MQTT in a client's first packet (MQTT 3.1.1 and 5.0, section 3.1).
pub(super) fn mqtt(payload: &[u8]) -> Option<Token> {
    let level = match *mqtt_name(payload)? {
        [0, 4, b'M', b'Q', b'T', b'T', level, ..] => level,
        [0, 6, b'M', b'Q', b'I', b's', b'd', b'p', level, ..] => level,
        _ => return None,
    };
    let name: &[u8] = match level {
        3 => b"3.1",
        4 => b"3.1.1",
        5 => b"5.0",
        _ => return None,
    };
    Token::of(name)
}

/// What follows the length of such a packet: up to four bytes of it say that more follow.
fn mqtt_name(payload: &[u8]) -> Option<&[u8]> {
    let length = payload.get(1..5)?;
    let more = length.iter().take_while(|byte| **byte & 0x80 != 0).count();
    payload.get(2 + more..)
}

/// The software of a client of Kafka that asks which versions the broker speaks (`ApiVersions`,
/// from version 3 of the request on: KIP-511).
pub(super) fn kafka(payload: &[u8]) -> Option<Token> {
    let mut fields = Fields(payload);
    // Length, the request's number.
    fields.take(6)?;
    if fields.number::<2>()? < 3 {
        return None;
    }
    // What correlates it, the client's own name, tagged fields.
    fields.take(4)?;
    const NO_NAME: usize = 0xffff;
    let length = fields.number::<2>()?;
    fields.take(if length == NO_NAME { 0 } else { length })?;
    if fields.number::<1>()? != 0 {
        return None;
    }
    let [name, version] = [compact(&mut fields)?, compact(&mut fields)?];
    Token::of(&[name, b"/", version].concat())
}

/// A string whose length and one stand in one byte, as short ones have it.
fn compact<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let length = fields.number::<1>().filter(|length| (1..0x80).contains(length))?;
    fields.take(length - 1)
}

#[cfg(test)]
mod tests;
