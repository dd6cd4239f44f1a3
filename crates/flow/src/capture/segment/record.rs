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
    ClientHello,
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
/// The longest identification of SSH.
const LONGEST_BANNER: usize = 255;

impl PayloadStart {
    /// Reads what was captured of a payload.
    #[inline]
    pub(crate) fn of(payload: &[u8]) -> Self {
        match *payload {
            // The version of a record is 3.1 to 3.4, whatever is spoken; 3.0 is SSL.
            [HANDSHAKE, 3, 0..=4, high, low, message, ..]
                if RECORD_LENGTHS.contains(&u16::from_be_bytes([high, low])) =>
            {
                if message == CLIENT_HELLO { Self::ClientHello } else { Self::Handshake }
            }
            [b'S', b'S', b'H', b'-', ..] => Self::Ssh(SshSoftware::of(payload)),
            [b'P', b'R', b'I', b' ', ..] if payload.starts_with(b"PRI * HTTP/2.0\r\n") => {
                Self::Http2Preface
            }
            // The first bytes of all others.
            [0 | 0x10 | b'*' | b'@' | b'C'..=b'T', ..]
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
            Self::ClientHello | Self::Handshake => Some(ApplicationProtocol::Tls),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_handshake_is_told_from_what_looks_like_it() {
        let hello = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
        let plain = PayloadStart::ClientHello;
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
        fn any_bytes_are_read(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            PayloadStart::of(&bytes);
        }
    }
}
