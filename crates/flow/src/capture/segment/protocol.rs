//! Protocols that say in clear text what they are.

use strum::{EnumIter, IntoStaticStr};

/// What two applications speak above TCP, as the first data of either says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumIter, IntoStaticStr, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ApplicationProtocol {
    /// gRPC over HTTP/2 in clear text, by its first request.
    Grpc,
    /// HTTP/1.0 or 1.1 (RFC 9112 section 2.1).
    Http1,
    /// HTTP/2 in clear text (RFC 9113 section 3.4).
    Http2,
    /// iSCSI's login (RFC 7143 section 11.12).
    Iscsi,
    /// Kafka's question which versions a broker speaks (`ApiVersions`).
    Kafka,
    /// MQTT (version 3.1 to 5.0, section 3.1).
    Mqtt,
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
/// Kafka's number of `ApiVersions`, and the newest version of that request.
const KAFKA_VERSIONS: u8 = 18;
const KAFKA_NEWEST: u8 = 4;
/// It has no more than so many times 256 bytes: names of programs.
const KAFKA_LONGEST: u8 = 3;
/// The first packet of a client of MQTT.
const MQTT_CONNECT: u8 = 0x10;
const METHODS: [&[u8]; 8] =
    [b"GET ", b"PUT ", b"POST ", b"HEAD ", b"PATCH ", b"TRACE ", b"DELETE ", b"OPTIONS "];

/// Ports that are registered for one (IANA's Service Name and Transport Protocol Port Number
/// Registry), and little else uses.
const PORTS: [(u16, ApplicationProtocol); 9] = [
    (22, ApplicationProtocol::Ssh),
    (445, ApplicationProtocol::Smb),
    (873, ApplicationProtocol::Rsync),
    (1883, ApplicationProtocol::Mqtt),
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
            Self::Grpc => "gRPC",
            Self::Http1 => "HTTP/1",
            Self::Http2 => "HTTP/2",
            Self::Iscsi => "iSCSI",
            Self::Kafka => "Kafka",
            Self::Mqtt => "MQTT",
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
            // Its server is content with the client (0), or ends SASL (12), and goes on.
            [b'R', 0, 0, _, 8, 0, 0, 0, 0, b'S', ..] | [b'R', 0, 0, _, _, 0, 0, 0, 12, ..] => {
                Some(Self::Postgresql)
            }
            // Settings of six bytes each, of the whole connection.
            [0, 0, length, 4, 0, 0, 0, 0, 0, ..] if length % 6 == 0 => Some(Self::Http2),
            // Its length is of three bytes; version 1 says 0xff.
            [0, _, _, _, 0xfe | 0xff, b'S', b'M', b'B', ..] => Some(Self::Smb),
            // The record's length, an identifier, a call (0), the calls' version (2), the program.
            [length, _, _, _, _, _, _, _, 0, 0, 0, 0, 0, 0, 0, 2, a, b, c, d, ..]
                if length & 0x80 != 0 && u32::from_be_bytes([a, b, c, d]) == NFS_PROGRAM =>
            {
                Some(Self::Nfs)
            }
            [0, 0, high @ 0..=KAFKA_LONGEST, low, 0, KAFKA_VERSIONS, 0, 0..=KAFKA_NEWEST, ..]
                if payload.len() == 4 + usize::from(u16::from_be_bytes([high, low])) =>
            {
                Some(Self::Kafka)
            }
            // Its first packet, a length of one to four bytes, and a name.
            [MQTT_CONNECT, ..] if is_mqtt(payload) => Some(Self::Mqtt),
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
    let packet = &payload[..payload.len().min(usize::from(length) + 4)];
    let version = packet.get(5..).unwrap_or_default();
    let end = version.iter().position(|byte| *byte == 0);
    end.is_some_and(|end| version[..end].iter().all(u8::is_ascii_graphic))
}

/// Whether the name of MQTT follows a length of one to four bytes, of which all but the last say
/// that more follow.
fn is_mqtt(payload: &[u8]) -> bool {
    let more = payload[1..].iter().take_while(|byte| **byte & 0x80 != 0).count();
    let name = payload.get(2 + more..).unwrap_or_default();
    more < 4 && (name.starts_with(b"\0\x04MQTT") || name.starts_with(b"\0\x06MQIsdp"))
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

    /// First data, what it tells, and how much of it tells that.
    fn examples() -> Vec<(Vec<u8>, ApplicationProtocol, usize)> {
        let call =
            [0x80, 0, 0, 0x28, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 4];
        let start = b"\0\0\0\x23\0\x03\0\0user\0postgres\0database\0db\0\0";
        let greeting = b"\x4a\0\0\0\x0a8.0.36\0\x0b\0\0\0abcdefgh\0\xff\xff";
        let login = login();
        let versions = b"\0\0\0\x0e\0\x12\0\0\0\0\0\x01\0\x04test";
        let examples: [(&[u8], _, usize); 18] = [
            (b"R\0\0\0\x08\0\0\0\0S\0\0\0\x19", ApplicationProtocol::Postgresql, 10),
            (b"R\0\0\0\x36\0\0\0\x0cv=", ApplicationProtocol::Postgresql, 9),
            (b"\0\0\x0c\x04\0\0\0\0\0\0\x03", ApplicationProtocol::Http2, 9),
            (versions, ApplicationProtocol::Kafka, versions.len()),
            (b"\x10\x10\0\x04MQTT\x04", ApplicationProtocol::Mqtt, 8),
            (b"\x10\x90\x01\0\x06MQIsdp\x03", ApplicationProtocol::Mqtt, 11),
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
        examples.map(|(payload, protocol, least)| (payload.to_vec(), protocol, least)).into()
    }

    #[test]
    fn each_is_told_by_what_it_says_first_and_not_by_less() {
        for (payload, protocol, least) in examples() {
            assert_eq!(ApplicationProtocol::of(&payload), Some(protocol), "{payload:?}");
            assert_eq!(ApplicationProtocol::of(&payload[..least]), Some(protocol), "{payload:?}");
            assert_eq!(ApplicationProtocol::of(&payload[..least - 1]), None, "{payload:?}");
        }
    }

    /// A length that a peer tells may be any: below what it counts, above what was captured.
    #[test]
    fn no_changed_byte_and_no_cut_ends_the_reader() {
        for (payload, ..) in examples() {
            for at in 0..payload.len() {
                for byte in [0, 1, 4, 0x7f, 0x80, 0xff] {
                    let mut changed = payload.clone();
                    changed[at] = byte;
                    for end in 0..=changed.len() {
                        ApplicationProtocol::of(&changed[..end]);
                    }
                }
            }
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
            // One that ends before its version begins.
            b"\0\0\0\0\x0a8.0.36\0",
            b"\x01\0\0\0\x0a8\0",
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
            // Frames of HTTP/2 that are no settings, or not of the connection.
            b"\0\0\x05\x04\0\0\0\0\0",
            b"\0\0\x0c\x04\0\0\0\0\x01",
            b"\x10\xff\xff\xff\xff\0\x04MQTT",
            b"\x10\x10\0\x04MQTP",
        ] {
            assert_eq!(ApplicationProtocol::of(other), None, "{other:?}");
        }
    }
}
