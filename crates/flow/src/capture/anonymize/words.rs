//! The first words that stand in for those of a payload.
//!
//! The analysis reads of a payload what its first bytes say of the protocol ([`PayloadStart`]), and
//! nothing else. So each answer that it can give has words of its own here, the same for everybody:
//! no name, address, version, length or random byte of the payload is among them.

use crate::capture::greeting::{chooses_http2, offers_http2};
use crate::capture::segment::{ApplicationProtocol, PayloadStart, SshSoftware};

/// A ClientHello without extensions, and otherwise zeroes.
const HELLO: [u8; 47] = {
    let mut hello = [0; 47];
    (hello[0], hello[1], hello[2]) = (22, 3, 1);
    (hello[4], hello[5], hello[8]) = (42, 1, 38);
    hello
};
/// The same with a record that is longer than what was captured of any hello that is cut.
const HELLO_CUT: &[u8] = &[22, 3, 1, 0x41, 0, 1];
/// A message of a handshake, in clear text.
const HANDSHAKE: &[u8] = &[22, 3, 3, 0, 4, 2];
/// A ClientHello with an extension that offers HTTP/2, and otherwise zeroes; its record ends with
/// it.
const HELLO_HTTP2: [u8; 58] = {
    let mut hello = [0; 58];
    (hello[0], hello[1], hello[2]) = (22, 3, 1);
    (hello[4], hello[5], hello[8]) = (53, 1, 49);
    // The headers of record and message, a version, random bytes, and no session, ciphers or
    // compressions come before the extensions: their length, a kind, a length, and the list.
    (hello[48], hello[50], hello[52], hello[54]) = (9, 16, 5, 3);
    (hello[55], hello[56], hello[57]) = (2, b'h', b'2');
    hello
};
/// A ServerHello that chooses HTTP/2, and one that chooses HTTP/1: they have an extension where a
/// ClientHello has it.
const CHOOSES_HTTP2: [u8; 58] = {
    let mut hello = HELLO_HTTP2;
    (hello[2], hello[5]) = (3, 2);
    hello
};
const CHOOSES_HTTP1: [u8; 64] = {
    let (mut hello, name) = ([0; 64], b"http/1.1");
    (hello[0], hello[1], hello[2]) = (22, 3, 3);
    (hello[4], hello[5], hello[8]) = (59, 2, 55);
    (hello[48], hello[50], hello[52], hello[54], hello[55]) = (15, 16, 11, 9, 8);
    let mut at = 0;
    while at < name.len() {
        hello[56 + at] = name[at];
        at += 1;
    }
    hello
};
/// A login to a target, whose initiator has no name.
const ISCSI: [u8; 62] = {
    let (mut login, name) = ([0; 62], b"InitiatorName=");
    login[0] = 0x43;
    let mut at = 0;
    while at < name.len() {
        login[48 + at] = name[at];
        at += 1;
    }
    login
};
/// A call of NFS's program, for its procedure that does nothing.
const NFS: &[u8] = &[0x80, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3];
const RESPONSE: &[u8] = b"HTTP/1.";
const REQUEST: &[u8] = b"GET /";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";
/// The length, the first packet, version 10, a server's version of one digit.
const MYSQL: &[u8] = b"\x03\0\0\0\x0a8\0";
/// A request for the versions of a broker, of the least length.
pub(super) const KAFKA: &[u8] = &[0, 0, 0, 4, 0, 18, 0, 0];
const MQTT: &[u8] = b"\x10\x0a\0\x04MQTT";
/// A server's settings of HTTP/2: none.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const RSYNC: &[u8] = b"@RSYNCD: ";
const SMB: &[u8] = b"\0\0\0\0\xfeSMB";
/// An identification of SSH, and the shortest that says the same: of any program, OpenSSH, HPN-SSH,
/// Go, libssh2 and paramiko.
const BANNERS: [[&[u8]; 2]; 6] = [
    [b"SSH-2.0-", b"SSH-"],
    [b"SSH-2.0-OpenSSH", b"SSH--OpenSSH"],
    [b"SSH-2.0-hpn", b"SSH--hpn"],
    [b"SSH-2.0-Go", b"SSH--Go"],
    [b"SSH-2.0-libssh2", b"SSH--libssh2"],
    [b"SSH-2.0-paramiko", b"SSH--paramiko"],
];

/// All that may stand in for a payload: whoever looks for the payload's bytes passes over these.
pub(super) const ALL_WORDS: [&[u8]; 29] = [
    &HELLO,
    &CHOOSES_HTTP2,
    &CHOOSES_HTTP1,
    KAFKA,
    MQTT,
    SETTINGS,
    HELLO_CUT,
    &HELLO_HTTP2,
    HANDSHAKE,
    PREFACE,
    RESPONSE,
    REQUEST,
    &ISCSI,
    MYSQL,
    NFS,
    RSYNC,
    SMB,
    BANNERS[0][0],
    BANNERS[0][1],
    BANNERS[1][0],
    BANNERS[1][1],
    BANNERS[2][0],
    BANNERS[2][1],
    BANNERS[3][0],
    BANNERS[3][1],
    BANNERS[4][0],
    BANNERS[4][1],
    BANNERS[5][0],
    BANNERS[5][1],
];

/// The words for a payload of which this was captured; never longer than it. Zeroes may follow.
pub(super) fn words(payload: &[u8]) -> &'static [u8] {
    match PayloadStart::of(payload) {
        PayloadStart::Other => &[],
        PayloadStart::ClientHello => match offers_http2(payload) {
            Some(true) => &HELLO_HTTP2,
            Some(false) => &HELLO,
            None => HELLO_CUT,
        },
        PayloadStart::Handshake => match chooses_http2(payload) {
            Some(true) => &CHOOSES_HTTP2,
            Some(false) if payload.len() >= CHOOSES_HTTP1.len() => &CHOOSES_HTTP1,
            _ => HANDSHAKE,
        },
        PayloadStart::Http2Preface => PREFACE,
        PayloadStart::Ssh(software) => {
            let [long, short] = banners(software);
            if long.len() <= payload.len() { long } else { short }
        }
        PayloadStart::Says(protocol) => match protocol {
            ApplicationProtocol::Http1 if payload.starts_with(RESPONSE) => RESPONSE,
            ApplicationProtocol::Http1 => REQUEST,
            ApplicationProtocol::Iscsi => &ISCSI,
            ApplicationProtocol::Kafka => KAFKA,
            ApplicationProtocol::Mqtt => MQTT,
            ApplicationProtocol::Mysql => MYSQL,
            ApplicationProtocol::Nfs => NFS,
            ApplicationProtocol::Postgresql => b"\0\0\0\x08\0\x03\0\0",
            ApplicationProtocol::Redis => b"*1\r\n$1",
            ApplicationProtocol::Rsync => RSYNC,
            ApplicationProtocol::Smb => SMB,
            ApplicationProtocol::Http2 => SETTINGS,
            // These say more than their names, and have their own words above; gRPC is told by
            // what follows.
            ApplicationProtocol::Grpc | ApplicationProtocol::Ssh | ApplicationProtocol::Tls => &[],
        },
    }
}

/// Which of [`BANNERS`] a program has.
fn banners(software: SshSoftware) -> [&'static [u8]; 2] {
    BANNERS[match software {
        SshSoftware::Other => 0,
        SshSoftware::OpenSsh => 1,
        SshSoftware::Hpn => 2,
        SshSoftware::Go => 3,
        SshSoftware::Libssh2 => 4,
        SshSoftware::Paramiko => 5,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([2, 0xaa, 0xbb, 0, 4, 0x13, 1, 0x13, 2, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let mut hello = vec![22, 3, 1];
        hello.extend((body.len() as u16 + 4).to_be_bytes());
        hello.extend([1, 0]);
        hello.extend((body.len() as u16).to_be_bytes());
        hello.extend(body);
        hello
    }

    /// A ServerHello of TLS 1.2 that chooses this protocol.
    fn server_hello(chosen: &[u8]) -> Vec<u8> {
        let length = chosen.len() as u8;
        let mut hello = vec![22, 3, 3, 0, 58 + length, 2, 0, 0, 54 + length, 3, 3];
        hello.extend([7; 32]);
        hello.extend([0, 0xc0, 0x2f, 0]);
        hello.extend([0, 14 + length, 0xff, 1, 0, 1, 0, 0, 16, 0, length + 3, 0, length + 1]);
        hello.push(length);
        hello.extend(chosen);
        hello.extend([0, 23, 0, 0]);
        hello
    }

    /// Payloads that say something, with what may follow.
    fn payload() -> impl Strategy<Value = Vec<u8>> {
        let greeting = b"\x4a\0\0\0\x0a8.0.36-secret\0\x0b\0\0\0abcdefgh";
        let call =
            [0x80, 0, 0, 0x28, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 4];
        let mut login = ISCSI.to_vec();
        login.extend(b"iqn.1993-08.org.debian:01:0\0");
        let starts: Vec<Vec<u8>> = vec![
            hello(b"\x00\x10\x00\x0e\x00\x0c\x08http/1.1\x02h2\x00\x00\x00\x03\x01\x02\x03"),
            hello(b"\x00\x00\x00\x03\x01\x02\x03"),
            vec![22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3],
            vec![22, 3, 3, 0, 37, 16, 0, 0, 33],
            server_hello(b"h2"),
            server_hello(b"http/1.1"),
            b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64".to_vec(),
            b"\x10\x90\x01\0\x06MQIsdp\x03".to_vec(),
            b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n".to_vec(),
            b"SSH-2.0-OpenSSH_9.8_hpn18.4.1\r\n".to_vec(),
            b"SSH-2.0-Go\r\n".to_vec(),
            b"SSH--libssh2".to_vec(),
            b"SSH-2.0-paramiko_3.4.0\r\n".to_vec(),
            b"SSH-2.0-dropbear\r\n".to_vec(),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            b"GET /secret HTTP/1.1\r\nHost: example\r\n".to_vec(),
            b"CONNECT example.org:443 HTTP/1.1\r\n".to_vec(),
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            greeting.to_vec(),
            call.to_vec(),
            login,
            b"\0\0\0\x23\0\x03\0\0user\0postgres\0database\0db\0\0".to_vec(),
            b"*12\r\n$4\r\nMSET\r\n".to_vec(),
            b"@RSYNCD: 31.0 sha512\n".to_vec(),
            b"\0\0\0\x9a\xfeSMB\x40\0".to_vec(),
            vec![],
        ];
        (
            prop::sample::select(starts),
            any::<prop::sample::Index>(),
            any::<bool>(),
            any::<Vec<u8>>(),
        )
            .prop_map(|(mut start, cut, is_cut, more)| {
                if is_cut {
                    start.truncate(cut.index(start.len() + 1));
                } else {
                    start.extend(more);
                }
                start
            })
    }

    proptest! {
        #[test]
        fn what_stands_in_says_the_same_alone_and_with_zeroes(payload in payload()) {
            let words = words(&payload);
            prop_assert!(words.len() <= payload.len());
            let said = PayloadStart::of(&payload);
            prop_assert_eq!(PayloadStart::of(words), said);
            if said == PayloadStart::ClientHello {
                prop_assert_eq!(offers_http2(words), offers_http2(&payload));
            } else {
                prop_assert_eq!(chooses_http2(words), chooses_http2(&payload));
            }
            let mut zeroed = vec![0; payload.len()];
            zeroed[..words.len()].copy_from_slice(words);
            prop_assert_eq!(PayloadStart::of(&zeroed), said);
        }
    }
}
