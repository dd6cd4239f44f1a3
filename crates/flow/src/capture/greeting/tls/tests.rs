use super::*;
use proptest::prelude::*;

/// A message of a handshake in a record.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut record = vec![22, 3, 1];
    record.extend((body.len() as u16 + 4).to_be_bytes());
    record.extend([kind, 0]);
    record.extend((body.len() as u16).to_be_bytes());
    record.extend(body);
    record
}

fn with_extensions(mut body: Vec<u8>, extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let all: Vec<u8> = extensions
        .iter()
        .flat_map(|(kind, said)| {
            [&kind.to_be_bytes()[..], &(said.len() as u16).to_be_bytes(), said].concat()
        })
        .collect();
    body.extend((all.len() as u16).to_be_bytes());
    body.extend(all);
    body
}

fn hello(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([2, 0xaa, 0xbb, 0, 4, 0x13, 1, 0x13, 2, 1, 0]);
    record(1, &with_extensions(body, extensions))
}

fn answer(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0x13, 1, 0]);
    record(2, &with_extensions(body, extensions))
}

const NAME: (u16, &[u8]) = (0, b"\0\x0e\0\0\x0bexample.com");
const BOTH: (u16, &[u8]) = (16, b"\0\x0c\x08http/1.1\x02h2");
const ONE: (u16, &[u8]) = (16, b"\0\x09\x08http/1.1");
/// GREASE (RFC 8701), 1.3, 1.2.
const VERSIONS: (u16, &[u8]) = (43, b"\x06\x8a\x8a\x03\x04\x03\x03");

#[test]
fn a_client_says_name_offer_and_version() {
    let said = client_hello(&hello(&[NAME, BOTH, VERSIONS]));
    assert_eq!(said.server_name.as_deref(), Some("example.com"));
    assert_eq!(said.offered.unwrap().as_str(), "http/1.1,h2");
    assert_eq!((said.offers_http2, said.version), (Some(true), Some("1.3")));
    let old = client_hello(&hello(&[ONE]));
    assert_eq!((old.offers_http2, old.version), (Some(false), Some("1.2")));
    assert_eq!(client_hello(&hello(&[NAME])).offers_http2, Some(false));
}

#[test]
fn what_is_cut_is_not_claimed() {
    let whole = hello(&[NAME, BOTH, VERSIONS]);
    for end in 0..whole.len() {
        let said = client_hello(&whole[..end]);
        assert_ne!(said.offers_http2, Some(false), "{end}: HTTP/2 stands behind the cut");
        assert!(said.server_name.is_none_or(|name| &*name == "example.com"));
        assert_eq!(missing(&whole[..end]), if end < 5 { 5 - end } else { whole.len() - end });
    }
}

#[test]
fn a_server_says_its_choice_where_that_is_clear() {
    let chosen = |bytes: &[u8]| server_hello(bytes).unwrap();
    let new = chosen(&answer(&[(51, &[0; 8]), (43, &[3, 4])]));
    assert_eq!((new.version, new.chosen), (Some("1.3"), None));
    let old = chosen(&answer(&[(16, b"\0\x03\x02h2")]));
    assert_eq!((old.version, old.chosen), (Some("1.2"), Token::of(b"h2")));
    // Cut before the extension that would say 1.3.
    let whole = answer(&[(51, &[0; 8]), (43, &[3, 4])]);
    for end in 47..whole.len() - 1 {
        assert_eq!(chosen(&whole[..end]).version, None, "{end}");
    }
    assert_eq!(server_hello(&record(11, &[0; 40])), None);
}

proptest! {
    #[test]
    fn any_bytes_and_any_damage_are_read(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        at in 0_usize..160,
        value in any::<u8>(),
    ) {
        for whole in [hello(&[NAME, BOTH, VERSIONS]), answer(&[BOTH, VERSIONS]), bytes] {
            let mut damaged = whole;
            if let Some(byte) = damaged.get_mut(at) {
                *byte = value;
            }
            client_hello(&damaged);
            server_hello(&damaged);
            missing(&damaged);
        }
    }
}
