use super::*;
use crate::capture::segment::Parsed;
use proptest::prelude::*;

/// A segment that was read from a packet with this payload, of which `kept` bytes were captured.
fn segment(seq: u32, payload: &[u8], kept: usize) -> Segment {
    let mut ip = vec![0x45, 0];
    ip.extend((40 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2, 0x9c, 0x40, 1, 0xbb]);
    ip.extend(seq.to_be_bytes());
    ip.extend([0, 0, 0, 1, 0x50, 0x18, 2, 0, 0, 0, 0, 0]);
    ip.extend(payload);
    let Parsed::Tcp(segment) = Segment::from_ip(&ip[..40 + kept], ip.len()) else {
        panic!("it is TCP")
    };
    segment
}

/// What ends say, each message in pieces of `size` bytes one after another.
fn heard(messages: &[(usize, &[u8])], size: usize) -> Greeting {
    let mut introduction = Introduction::default();
    let mut sent = [0_usize; 2];
    for (from, message) in messages {
        for piece in message.chunks(size) {
            let before = &mut sent[*from];
            let segment = segment(u32::MAX.wrapping_add(*before as u32), piece, piece.len());
            let payload = &piece[..piece.len().min(WORDS_MOST)];
            let words =
                FirstWords { from: *from, segment: &segment, payload, before: *before as u64 };
            if Introduction::wants(Some(&introduction), &words) {
                introduction.hear(words);
            }
            *before += piece.len();
        }
    }
    introduction.finish(0)
}

/// A ClientHello of 1.3 that asks for `example.com` and offers `h2`, with `padding` bytes before
/// that.
fn hello(padding: u16) -> Vec<u8> {
    let mut extensions = [&[0, 21][..], &padding.to_be_bytes()].concat();
    extensions.resize(4 + usize::from(padding), 0);
    extensions.extend(b"\0\0\0\x10\0\x0e\0\0\x0bexample.com\0\x10\0\x05\0\x03\x02h2");
    extensions.extend(b"\0\x2b\0\x03\x02\x03\x04");
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend((extensions.len() as u16).to_be_bytes());
    body.extend(extensions);
    let mut record = vec![22, 3, 1];
    record.extend((body.len() as u16 + 4).to_be_bytes());
    record.extend([1, 0]);
    record.extend((body.len() as u16).to_be_bytes());
    [record, body].concat()
}

#[test]
fn a_client_hello_of_two_segments_is_read_whole() {
    for size in [4096, 1460, 536] {
        let greeting = heard(&[(0, &hello(1400))], size);
        assert_eq!(greeting.server_name.as_deref(), Some("example.com"), "{size}");
        assert_eq!(greeting.offers_http2, Some(true), "{size}");
        assert_eq!(greeting.tls_offered, Token::of(b"1.3"), "{size}");
    }
    let cut = heard(&[(0, &hello(1400)[..1460])], 1460);
    assert_eq!((cut.offers_http2, cut.server_name), (None, None), "the rest was not captured");
}

#[test]
fn postgresql_that_asks_for_tls_first_is_both() {
    let ask: &[u8] = &[0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
    let greeting = heard(&[(0, ask), (1, b"S"), (0, &hello(0))], 1460);
    assert_eq!(greeting.server_name.as_deref(), Some("example.com"));
    assert!(greeting.has_tls());
}

#[test]
fn programs_are_told_by_who_is_the_client() {
    let both: [(usize, &[u8]); 2] =
        [(1, b"SSH-2.0-OpenSSH_8.4p1 Debian\r\n"), (0, b"SSH-2.0-OpenSSH_9.2p1\r\n")];
    let greeting = heard(&both, 1460);
    assert_eq!(greeting.client_program, Token::of(b"OpenSSH_9.2p1"));
    assert_eq!(greeting.server_program, Token::of(b"OpenSSH_8.4p1"));
    assert_eq!(greeting.protocol_version, Token::of(b"2.0"));
}

#[test]
fn redis_gives_its_library_in_two_commands() {
    let name = b"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$8\r\nredis-py\r\n";
    let version = b"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$7\r\nLIB-VER\r\n$5\r\n5.0.1\r\n";
    let greeting = heard(&[(0, name), (1, b"+OK\r\n"), (0, version)], 1460);
    assert_eq!(greeting.client_program, Token::of(b"redis-py/5.0.1"));
}

#[test]
fn late_data_introduces_nobody() {
    let data = vec![b'x'; LATEST as usize];
    let greeting = heard(&[(0, &data), (0, b"SSH-2.0-late\r\n")], 1460);
    assert_eq!(greeting, Greeting::default());
}

proptest! {
    /// However the words are cut into segments, the same is heard of a ClientHello, and no more is
    /// kept than may be.
    #[test]
    fn cuts_change_nothing(padding in 0_u16..2000, size in 100_usize..5000) {
        prop_assert_eq!(heard(&[(0, &hello(padding))], size), heard(&[(0, &hello(padding))], 5000));
    }

    #[test]
    fn any_words_are_heard(
        messages in prop::collection::vec((0_usize..2, any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..200)), 1..12),
        size in 1_usize..300,
    ) {
        let starts: [&[u8]; 8] = [
            b"", b"SSH-2.0-", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3],
            &[22, 3, 3, 0, 80, 2, 0, 0, 76, 3, 3], b"HTTP/1.1 200 OK\r\n", b"@RSYNCD: ", b"\0\0\x0c\x04\0\0\0\0\0",
        ];
        let all: Vec<(usize, Vec<u8>)> = messages
            .into_iter()
            .map(|(from, start, bytes)| (from, [starts[start.index(8)], &bytes].concat()))
            .collect();
        let borrowed: Vec<(usize, &[u8])> = all.iter().map(|(from, bytes)| (*from, &bytes[..])).collect();
        heard(&borrowed, size);
    }
}
