//! How a payload begins: what the applications speak, as far as it is said in clear text.

use super::ApplicationProtocol;
use strum::{EnumIter, IntoStaticStr};

/// What a segment's payload begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PayloadStart {
    /// Anything else, or it was not captured.
    #[default]
    Other,
    /// A TLS record with a ClientHello.
    ClientHello {
        /// It offers HTTP/2 (ALPN, RFC 7301); `None` where too little of it was captured.
        offers_http2: Option<bool>,
    },
    /// A TLS record with another message of a handshake, in clear text.
    Handshake,
    /// The identification of SSH (RFC 4253 section 4.2).
    Ssh(SshSoftware),
    /// What a client of HTTP/2 says first (RFC 9113 section 3.4).
    Http2Preface,
    /// Another protocol's first words.
    Says(ApplicationProtocol),
}

/// Who speaks SSH, as its identification says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, EnumIter, IntoStaticStr)]
pub enum SshSoftware {
    /// Any other.
    #[default]
    Other,
    /// OpenSSH.
    #[strum(serialize = "OpenSSH")]
    OpenSsh,
    /// OpenSSH with HPN-SSH's windows.
    #[strum(serialize = "HPN-SSH")]
    Hpn,
    /// The library of Go (golang.org/x/crypto/ssh).
    Go,
    /// The library libssh2, which curl uses.
    #[strum(serialize = "libssh2")]
    Libssh2,
    /// Python's paramiko.
    #[strum(serialize = "paramiko")]
    Paramiko,
}

/// The record type of a handshake's messages, and the message type of a ClientHello (RFC 8446
/// sections 5.1 and 4).
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// The largest record (RFC 8446 section 5.2), and the smallest that has a message's header.
const RECORD_LENGTHS: std::ops::RangeInclusive<u16> = 4..=(1 << 14) + 256;
/// What comes in a ClientHello before the session's identifier: the headers of record and message,
/// a version, and 32 random bytes.
const BEFORE_SESSION: usize = 5 + 4 + 2 + 32;
/// The extension that names application protocols (RFC 7301 section 3.1), and HTTP/2 in it.
const ALPN: u16 = 16;
const HTTP2: &[u8] = b"\x02h2";
/// The longest identification of SSH.
const LONGEST_BANNER: usize = 255;

impl PayloadStart {
    /// Reads what was captured of a payload.
    #[inline]
    pub(in crate::capture) fn of(payload: &[u8]) -> Self {
        match *payload {
            // The version of a record is 3.1 to 3.4, whatever is spoken; 3.0 is SSL.
            [HANDSHAKE, 3, 0..=4, high, low, message, ..]
                if RECORD_LENGTHS.contains(&u16::from_be_bytes([high, low])) =>
            {
                if message == CLIENT_HELLO {
                    Self::ClientHello { offers_http2: offers_http2(payload) }
                } else {
                    Self::Handshake
                }
            }
            [b'S', b'S', b'H', b'-', ..] => Self::Ssh(SshSoftware::of(payload)),
            [b'P', b'R', b'I', b' ', ..] if payload.starts_with(b"PRI * HTTP/2.0\r\n") => {
                Self::Http2Preface
            }
            // The first bytes of all others.
            [0 | b'*' | b'@' | b'C'..=b'T', ..]
            | [_, _, 0, 0, 10, ..]
            | [0x80..=0xff, _, _, _, _, _, _, _, 0, 0, 0, 0, ..] => {
                ApplicationProtocol::of(payload).map_or(Self::Other, Self::Says)
            }
            _ => Self::Other,
        }
    }

    /// The protocol that it says.
    pub const fn protocol(self) -> Option<ApplicationProtocol> {
        match self {
            Self::Other => None,
            Self::ClientHello { .. } | Self::Handshake => Some(ApplicationProtocol::Tls),
            Self::Ssh(_) => Some(ApplicationProtocol::Ssh),
            Self::Http2Preface => Some(ApplicationProtocol::Http2),
            Self::Says(protocol) => Some(protocol),
        }
    }
}

impl SshSoftware {
    #[cold]
    fn of(payload: &[u8]) -> Self {
        let banner = &payload[..payload.len().min(LONGEST_BANNER)];
        let line = banner.split(|byte| *byte == b'\n').next().unwrap_or_default();
        // `SSH-2.0-software_version comments`
        let software = line.splitn(3, |byte| *byte == b'-').nth(2).unwrap_or_default();
        match () {
            () if software.windows(3).any(|part| part == b"hpn") => SshSoftware::Hpn,
            () if software.starts_with(b"OpenSSH") => SshSoftware::OpenSsh,
            () if software.starts_with(b"Go") => SshSoftware::Go,
            () if software.starts_with(b"libssh2") => SshSoftware::Libssh2,
            () if software.starts_with(b"paramiko") => SshSoftware::Paramiko,
            () => SshSoftware::Other,
        }
    }

    /// Whether no program and no setting changes what it grants a channel.
    pub const fn fixes_window(self) -> bool {
        matches!(self, SshSoftware::OpenSsh | SshSoftware::Go)
    }

    /// Its name.
    pub fn name(self) -> Option<&'static str> {
        (self != SshSoftware::Other).then(|| self.into())
    }
}

/// Whether a ClientHello names HTTP/2 among what the client speaks; `None` where the capture cut
/// it, or the rest is in another segment.
#[cold]
fn offers_http2(hello: &[u8]) -> Option<bool> {
    let mut names = protocol_names(hello).unwrap_or_default();
    while !names.is_empty() {
        if names.starts_with(HTTP2) {
            return Some(true);
        }
        names = after_block::<1>(names).unwrap_or_default();
    }
    let is_whole = hello.get(3..).is_some_and(|record| after_block::<2>(record).is_some());
    is_whole.then_some(false)
}

/// The list of application protocols in a ClientHello: each name begins with its length.
fn protocol_names(hello: &[u8]) -> Option<&[u8]> {
    let session = hello.get(BEFORE_SESSION..)?;
    let ciphers = after_block::<1>(session)?;
    let compression = after_block::<2>(ciphers)?;
    let mut extensions = after_block::<1>(compression)?.get(2..)?;
    loop {
        let kind = u16::from_be_bytes(*extensions.first_chunk::<2>()?);
        extensions = &extensions[2..];
        let after = after_block::<2>(extensions);
        if kind == ALPN {
            let whole = extensions.len() - after.map_or(0, <[u8]>::len);
            return extensions.get(4..whole);
        }
        extensions = after?;
    }
}

/// What follows a block that begins with its length in `N` bytes.
fn after_block<const N: usize>(bytes: &[u8]) -> Option<&[u8]> {
    let length =
        bytes.first_chunk::<N>()?.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    bytes.get(N + length..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A ClientHello with these extensions.
    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([2, 0xaa, 0xbb, 0, 4, 0x13, 1, 0x13, 2, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let mut hello = vec![HANDSHAKE, 3, 1];
        hello.extend((body.len() as u16 + 4).to_be_bytes());
        hello.extend([CLIENT_HELLO, 0]);
        hello.extend((body.len() as u16).to_be_bytes());
        hello.extend(body);
        hello
    }

    #[test]
    fn a_handshake_is_told_from_what_looks_like_it() {
        let hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
        let plain = PayloadStart::ClientHello { offers_http2: None };
        assert_eq!(PayloadStart::of(&hello), plain);
        assert_eq!(PayloadStart::of(&hello[..6]), plain);
        let key_exchange = [22, 3, 3, 0, 37, 16, 0, 0, 33];
        assert_eq!(PayloadStart::of(&key_exchange), PayloadStart::Handshake);
        for other in [
            &hello[..5],
            &[],
            // Application data, a change of cipher, a record that is too long or has no message.
            &[23, 3, 3, 2, 0, 1],
            &[20, 3, 3, 0, 1, 1],
            &[22, 3, 1, 65, 1, 1],
            &[22, 3, 1, 0, 3, 1],
            &[22, 2, 1, 2, 0, 1],
            b"PRI * HTTP/1.0",
            b"SSL",
        ] {
            assert_eq!(PayloadStart::of(other), PayloadStart::Other, "{other:?}");
        }
    }

    fn offers(payload: &[u8]) -> Option<bool> {
        match PayloadStart::of(payload) {
            PayloadStart::ClientHello { offers_http2 } => offers_http2,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn http2_is_found_among_what_a_client_offers() {
        // A server name, then `http/1.1` and `h2`.
        let name = [0, 0, 0, 3, 1, 2, 3];
        let both = b"\x00\x10\x00\x0e\x00\x0c\x08http/1.1\x02h2".as_slice();
        let one = b"\x00\x10\x00\x0b\x00\x09\x08http/1.1".as_slice();
        assert_eq!(offers(&hello(&[&name, both].concat())), Some(true));
        assert_eq!(offers(&hello(&[both, &name].concat())), Some(true));
        assert_eq!(offers(&hello(&[&name, one].concat())), Some(false));
        assert_eq!(offers(&hello(&name)), Some(false));
        // Cut where the name begins, within it, and behind it.
        let whole = hello(&[both, &name].concat());
        let all = whole.len();
        let cut = [3, 1, 0].map(|more| offers(&whole[..all - name.len() - more]));
        assert_eq!(cut, [None, None, Some(true)]);
    }

    fn of(banner: &str) -> Option<&'static str> {
        match PayloadStart::of(banner.as_bytes()) {
            PayloadStart::Ssh(software) => software.name(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ssh_says_who_speaks() {
        assert_eq!(of("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u6\r\n"), Some("OpenSSH"));
        assert_eq!(of("SSH-2.0-OpenSSH_9.8_hpn18.4.1\r\n"), Some("HPN-SSH"));
        assert_eq!(of("SSH-2.0-Go\r\n"), Some("Go"));
        assert_eq!(of("SSH-2.0-libssh2_1.10.0\r\n"), Some("libssh2"));
        assert_eq!(of("SSH-2.0-paramiko_3.4.0\r\n"), Some("paramiko"));
        assert_eq!(of("SSH-2.0-dropbear_2022.83\r\nhpn"), None);
        assert_eq!(of("SSH-"), None);
        assert_eq!(PayloadStart::of(b"PRI * HTTP/2.0\r\n\r\nSM"), PayloadStart::Http2Preface);
    }

    proptest! {
        #[test]
        fn any_bytes_and_any_damage_are_read(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            at in 0_usize..120,
            value in any::<u8>(),
        ) {
            PayloadStart::of(&bytes);
            let mut damaged = hello(b"\x00\x10\x00\x05\x00\x03\x02h2");
            if let Some(byte) = damaged.get_mut(at) {
                *byte = value;
            }
            PayloadStart::of(&damaged);
        }
    }
}
