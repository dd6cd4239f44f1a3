//! Protocols that say in clear text what they are.

use strum::{EnumIter, IntoStaticStr};

/// What two applications speak above TCP, as the first data of either says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumIter, IntoStaticStr, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ApplicationProtocol {
    /// HTTP/1.0 or 1.1 (RFC 9112 section 2.1).
    Http1,
    /// HTTP/2 in clear text (RFC 9113 section 3.4).
    Http2,
    /// iSCSI's login (RFC 7143 section 11.12).
    Iscsi,
    /// MySQL's or MariaDB's greeting (`Protocol::HandshakeV10`).
    Mysql,
    /// NFS, by a call of its program (RFC 5531 section 9, RFC 7530 section 1.1).
    Nfs,
    /// PostgreSQL's start, or its request for encryption (protocol 3, `StartupMessage`).
    Postgresql,
    /// Redis's or Valkey's commands (RESP, an array of bulk strings).
    Redis,
    /// The rsync daemon's greeting.
    Rsync,
    /// SMB 1 to 3, straight over TCP (MS-SMB2 section 2.1).
    Smb,
    /// SSH (RFC 4253 section 4.2).
    Ssh,
    /// TLS (RFC 8446 section 5.1), whatever is spoken in it.
    Tls,
}

/// What a client of PostgreSQL says after its length: version 3.0 or 3.2, or a request for TLS or
/// GSSAPI.
const POSTGRESQL: [u32; 4] = [3 << 16, (3 << 16) + 2, 80_877_103, 80_877_104];
/// The longest start packet that its server reads.
const POSTGRESQL_LONGEST: u16 = 10_000;
/// NFS's number among the programs of remote procedure calls.
const NFS_PROGRAM: u32 = 100_003;
/// A login of iSCSI that is sent at once, and where the text behind its header begins.
const ISCSI_LOGIN: u8 = 0x43;
const ISCSI_HEADER: usize = 48;
const METHODS: [&[u8]; 8] =
    [b"GET ", b"PUT ", b"POST ", b"HEAD ", b"PATCH ", b"TRACE ", b"DELETE ", b"OPTIONS "];

/// Ports that are registered for one (IANA's Service Name and Transport Protocol Port Number
/// Registry), and little else uses.
const PORTS: [(u16, ApplicationProtocol); 8] = [
    (22, ApplicationProtocol::Ssh),
    (445, ApplicationProtocol::Smb),
    (873, ApplicationProtocol::Rsync),
    (2049, ApplicationProtocol::Nfs),
    (3260, ApplicationProtocol::Iscsi),
    (3306, ApplicationProtocol::Mysql),
    (5432, ApplicationProtocol::Postgresql),
    (6379, ApplicationProtocol::Redis),
];

impl ApplicationProtocol {
    /// The stable name in results.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Its name as people write it, in every language.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1",
            Self::Http2 => "HTTP/2",
            Self::Iscsi => "iSCSI",
            Self::Mysql => "MySQL",
            Self::Nfs => "NFS",
            Self::Postgresql => "PostgreSQL",
            Self::Redis => "Redis",
            Self::Rsync => "rsync",
            Self::Smb => "SMB",
            Self::Ssh => "SSH",
            Self::Tls => "TLS",
        }
    }

    /// The one that a server's port is registered for, where the data does not say.
    pub fn of_port(port: u16) -> Option<Self> {
        PORTS
            .into_iter()
            .find_map(|(registered, protocol)| (registered == port).then_some(protocol))
    }

    /// The same where it is not known which of the two ends is the server: the other one's port may
    /// be a client's, from 1024 on. (A client of NFS takes one below, so that its server believes
    /// it.)
    pub fn of_ports([one, other]: [u16; 2]) -> Option<Self> {
        [(one, other), (other, one)].into_iter().find_map(|(server, client)| {
            let told = Self::of_port(server)?;
            let may_be_client = client >= 1024 || told == Self::Nfs;
            (may_be_client && Self::of_port(client).is_none()).then_some(told)
        })
    }

    /// Reads what was captured of an end's first data. SSH, TLS and HTTP/2 say more than their
    /// names, and are read elsewhere.
    #[cold]
    pub(super) fn of(payload: &[u8]) -> Option<Self> {
        match *payload {
            [0, 0, high, low, a, b, c, d, ..]
                if (8..=POSTGRESQL_LONGEST).contains(&u16::from_be_bytes([high, low]))
                    && POSTGRESQL.contains(&u32::from_be_bytes([a, b, c, d])) =>
            {
                Some(Self::Postgresql)
            }
            // Its length is of three bytes; version 1 says 0xff.
            [0, _, _, _, 0xfe | 0xff, b'S', b'M', b'B', ..] => Some(Self::Smb),
            // The record's length, an identifier, a call (0), the calls' version (2), the program.
            [length, _, _, _, _, _, _, _, 0, 0, 0, 0, 0, 0, 0, 2, a, b, c, d, ..]
                if length & 0x80 != 0 && u32::from_be_bytes([a, b, c, d]) == NFS_PROGRAM =>
            {
                Some(Self::Nfs)
            }
            // The length, the first of a packet's numbers, version 10, and the server's in text.
            [low, high, 0, 0, 10, b'0'..=b'9', ..]
                if is_greeting(payload, u16::from_le_bytes([low, high])) =>
            {
                Some(Self::Mysql)
            }
            [b'*', b'1'..=b'9', ..] if is_command(payload) => Some(Self::Redis),
            [ISCSI_LOGIN, ..] if payload.get(ISCSI_HEADER..)?.starts_with(b"InitiatorName=") => {
                Some(Self::Iscsi)
            }
            _ if payload.starts_with(b"@RSYNCD: ") => Some(Self::Rsync),
            _ if payload.starts_with(b"HTTP/1.") || is_request(payload) => Some(Self::Http1),
            _ => None,
        }
    }
}

/// Whether it is a method and the beginning of a target (RFC 9112 section 3.2). RTSP and SIP have
/// methods of the same names, and targets of their own.
fn is_request(payload: &[u8]) -> bool {
    let target = METHODS.iter().find_map(|method| payload.strip_prefix(*method));
    target.is_some_and(|target| target.starts_with(b"/") || target.starts_with(b"http"))
        || payload.starts_with(b"OPTIONS * HTTP/1")
        || payload.starts_with(b"CONNECT ")
}

/// Whether a server's version ends within a packet of this length.
fn is_greeting(payload: &[u8], length: u16) -> bool {
    let version = &payload[5..payload.len().min(usize::from(length) + 4)];
    let end = version.iter().position(|byte| *byte == 0);
    end.is_some_and(|end| version[..end].iter().all(u8::is_ascii_graphic))
}

/// Whether it is `*`, how many strings, `$`, the length of the first.
fn is_command(payload: &[u8]) -> bool {
    let digits = payload[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    matches!(payload[1 + digits..], [b'\r', b'\n', b'$', b'0'..=b'9', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> Vec<u8> {
        let mut login = vec![0; ISCSI_HEADER];
        login[0] = ISCSI_LOGIN;
        login.extend(b"InitiatorName=iqn.1993-08.org.debian:01:0\0");
        login
    }

    #[test]
    fn each_is_told_by_what_it_says_first_and_not_by_less() {
        let call =
            [0x80, 0, 0, 0x28, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 4];
        let start = b"\0\0\0\x23\0\x03\0\0user\0postgres\0database\0db\0\0";
        let greeting = b"\x4a\0\0\0\x0a8.0.36\0\x0b\0\0\0abcdefgh\0\xff\xff";
        let login = login();
        let told: [(&[u8], _, usize); 12] = [
            (start, ApplicationProtocol::Postgresql, 8),
            (&[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f], ApplicationProtocol::Postgresql, 8),
            (&[0, 0, 0, 8, 4, 0xd2, 0x16, 0x30], ApplicationProtocol::Postgresql, 8),
            (greeting, ApplicationProtocol::Mysql, 12),
            (b"*3\r\n$3\r\nSET\r\n", ApplicationProtocol::Redis, 6),
            (b"*12\r\n$4\r\nMSET\r\n", ApplicationProtocol::Redis, 7),
            (b"\0\0\0\x9a\xfeSMB\x40\0", ApplicationProtocol::Smb, 8),
            (b"\0\0\0\x85\xffSMBr\0", ApplicationProtocol::Smb, 8),
            (&call, ApplicationProtocol::Nfs, 20),
            (&login, ApplicationProtocol::Iscsi, 62),
            (b"@RSYNCD: 31.0 sha512\n", ApplicationProtocol::Rsync, 9),
            (b"GET /file HTTP/1.1\r\n", ApplicationProtocol::Http1, 5),
        ];
        for (payload, protocol, least) in told {
            assert_eq!(ApplicationProtocol::of(payload), Some(protocol), "{payload:?}");
            assert_eq!(ApplicationProtocol::of(&payload[..least]), Some(protocol), "{payload:?}");
            assert_eq!(ApplicationProtocol::of(&payload[..least - 1]), None, "{payload:?}");
        }
    }

    #[test]
    fn a_client_on_a_registered_port_is_no_server() {
        use ApplicationProtocol::{Mysql, Nfs, Ssh};
        for (ports, told) in [
            ([22, 40_000], Some(Ssh)),
            ([40_000, 22], Some(Ssh)),
            ([2049, 700], Some(Nfs)),
            ([700, 2049], Some(Nfs)),
            ([3306, 50_000], Some(Mysql)),
            // Old systems gave clients ports from 1025 on.
            ([3306, 80], None),
            ([3306, 5432], None),
            // Many hosts give clients ports from 1024 on today.
            ([22, 2000], Some(Ssh)),
            ([80, 50_000], None),
        ] {
            assert_eq!(ApplicationProtocol::of_ports(ports), told, "{ports:?}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        for other in [
            &b""[..],
            // PostgreSQL: too short, too long, version 2, a cancellation's neighbour.
            &[0, 0, 0, 7, 0, 3, 0, 0],
            &[0, 0, 0x27, 0x11, 0, 3, 0, 0],
            &[0, 0, 0, 40, 0, 2, 0, 0],
            // MySQL: a packet that is not the first, an older greeting, a version that never ends.
            b"\x4a\0\0\x01\x0a8.0.36\0",
            b"\x4a\0\0\0\x098.0.36\0",
            b"\x05\0\0\0\x0a8.0.36\0",
            b"\x4a\0\0\0\x0a8\n0\0",
            // Calls of another program, an answer, a record that goes on.
            &[0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa0],
            &[0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0x86, 0xa3],
            &[0, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3],
            b"*\r\n$3",
            b"*3\r\n+OK",
            b"GETS x",
            b"OPTIONS rtsp://host/stream RTSP/1.0",
            b"OPTIONS sip:host SIP/2.0",
            b"OPTIONS * RTSP/1.0",
            b"HTTP/2",
            b"C",
        ] {
            assert_eq!(ApplicationProtocol::of(other), None, "{other:?}");
        }
    }
}
