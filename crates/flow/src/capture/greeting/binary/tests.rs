use super::*;
use proptest::prelude::*;

fn words(token: Option<Token>) -> String {
    token.map_or(String::new(), |token| token.to_string())
}

#[test]
fn postgresql_says_program_and_version() {
    let start = b"\0\0\0\x3d\0\x03\0\0user\0me\0application_name\0psql\0database\0db\0\0";
    let (version, program) = postgresql_start(start);
    assert_eq!((words(version), words(program)), ("3.0".into(), "psql".into()));
    // A request for TLS.
    assert_eq!(postgresql_start(&[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f]), (None, None));
    let answer = b"R\0\0\0\x08\0\0\0\0S\0\0\0\x16client_encoding\0x\0S\0\0\0\x2aserver_version\x0015.14 (Debian 15.14-1)\0";
    assert_eq!(words(postgresql_answer(answer)), "15.14");
    assert_eq!(postgresql_answer(&answer[..60]), None);
}

#[test]
fn mysql_and_mariadb_say_their_version() {
    assert_eq!(words(mysql(b"\x4a\0\0\0\x0a8.0.36\0\x0b\0\0\0")), "8.0.36");
    let mariadb = b"\x4a\0\0\0\x0a5.5.5-10.11.6-MariaDB-0+deb12u1\0\x0b\0\0\0";
    assert_eq!(words(mysql(mariadb)), "10.11.6-MariaDB-0+deb12u1");
    assert_eq!(mysql(b"\x4a\0\0\0\x0a8.0"), None);
}

/// An SMB 2 message (MS-SMB2 section 2.2.1.2): command, flags, and the fields of an answer to a
/// negotiation.
fn smb2(command: u8, flags: u8, dialect: [u8; 2]) -> Vec<u8> {
    let mut message = vec![0, 0, 0, 0x80, 0xfe, b'S', b'M', b'B', 64, 0];
    message.resize(4 + 64, 0);
    message[4 + 12] = command;
    message[4 + 16] = flags;
    message.extend([65, 0, 1, 0, dialect[0], dialect[1], 0, 0]);
    message
}

#[test]
fn smb_says_the_dialect_in_the_answer_alone() {
    assert_eq!(words(smb(&smb2(0, 1, [0x11, 3]))), "3.1.1");
    assert_eq!(words(smb(&smb2(0, 1, [2, 2]))), "2.0.2");
    assert_eq!(smb(&smb2(0, 1, [0xff, 2])), None, "a server that wants to be asked again");
    assert_eq!(smb(&smb2(0, 0, [0x11, 3])), None, "a question");
    assert_eq!(smb(&smb2(1, 1, [0x11, 3])), None, "another command");
    let old = b"\0\0\0\x55\xffSMBr\0\0\0\0\x80";
    assert_eq!(words(smb(old)), "1");
}

#[test]
fn nfs_says_its_versions() {
    let head = |version: u8, procedure: u8| {
        let mut call = vec![0x80, 0, 0, 0x80, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2];
        call.extend([0, 1, 0x86, 0xa3, 0, 0, 0, version, 0, 0, 0, procedure]);
        call
    };
    assert_eq!(words(nfs(&head(3, 1))), "3");
    // AUTH_UNIX of five bytes (padded), no verifier, the tag "abc", minor version 2.
    let rest = [0, 0, 0, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let rest = [&rest[..], &[0, 0, 0, 3, b'a', b'b', b'c', 0, 0, 0, 0, 2]].concat();
    assert_eq!(words(nfs(&[head(4, 1), rest.clone()].concat())), "4.2");
    assert_eq!(words(nfs(&[head(4, 0), rest].concat())), "4");
    assert_eq!(nfs(&head(9, 0)), None);
}

#[test]
fn iscsi_mqtt_and_kafka_say_what_they_are() {
    let mut login = vec![0; 48];
    login.extend(b"InitiatorName=iqn.a:b\0TargetName=iqn.2003-01.org:disk\0");
    assert_eq!(iscsi(&login).as_deref(), Some("iqn.2003-01.org:disk"));
    assert_eq!(words(mqtt(b"\x10\x10\0\x04MQTT\x05\x02")), "5.0");
    assert_eq!(words(mqtt(b"\x10\x90\x01\0\x06MQIsdp\x03")), "3.1");
    // Version 3, correlation, the client's name, no tags, name and version of the software.
    let ask = b"\0\0\0\x24\0\x12\0\x03\0\0\0\x01\0\x07rdkafka\0\x0blibrdkafka\x062.3.0\0";
    assert_eq!(words(kafka(ask)), "librdkafka/2.3.0");
    assert_eq!(kafka(b"\0\0\0\x0e\0\x12\0\0\0\0\0\x01\0\x04test"), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        postgresql_start(&bytes);
        postgresql_answer(&bytes);
        mysql(&bytes);
        smb(&bytes);
        nfs(&bytes);
        iscsi(&bytes);
        mqtt(&bytes);
        kafka(&bytes);
    }

    #[test]
    fn any_damage_is_read(at in 0_usize..80, value: u8) {
        let mut call = vec![0x80, 0, 0, 0x80, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3];
        call.extend([0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 0, 0]);
        let mut answer = b"R\0\0\0\x08\0\0\0\0S\0\0\0\x19server_version\x0015.14\0".to_vec();
        for bytes in [&mut call, &mut answer] {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        nfs(&call);
        postgresql_answer(&answer);
    }
}
