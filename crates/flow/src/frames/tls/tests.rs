use super::*;
use proptest::prelude::*;

/// A ServerHello that chooses TLS 1.3 with this suite.
fn server_hello(suite: u16) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([5; RANDOM]);
    body.push(0);
    body.extend(suite.to_be_bytes());
    body.extend([0, 0, 6, 0, 43, 0, 2, 3, 4]);
    let message = [&[2, 0, 0, body.len() as u8][..], &body].concat();
    [&[22, 3, 3, 0, message.len() as u8][..], &message].concat()
}

/// One end's sender of TLS 1.3, with keys of its handshake first.
struct Sealer {
    suite: Suite,
    secret: Secret,
    keys: RecordKeys,
}

impl Sealer {
    fn new(suite: u16, secret: &[u8]) -> Self {
        let suite = Suite::of(suite).unwrap();
        let secret = Secret::new(secret).unwrap();
        Sealer { suite, secret, keys: suite.keys(&secret).unwrap() }
    }

    fn seal(&mut self, kind: u8, contents: &[u8], zeroes: usize) -> Vec<u8> {
        let inner = [contents, &[kind], &vec![0; zeroes]].concat();
        let length = ((inner.len() + cipher::TAG) as u16).to_be_bytes();
        self.keys.close([23, 3, 3, length[0], length[1]], &inner)
    }

    fn update(&mut self) -> Vec<u8> {
        let sealed = self.seal(HANDSHAKE, &[KEY_UPDATE, 0, 0, 1, 0], 0);
        self.secret = self.suite.updated(&self.secret).unwrap();
        self.keys = self.suite.keys(&self.secret).unwrap();
        sealed
    }
}

const RANDOM_OF_CLIENT: [u8; RANDOM] = [1; RANDOM];

fn tls(secret: &[u8]) -> Tls {
    let secret = Secret::new(secret);
    let secrets = SessionSecrets { traffic: [secret, secret], master: None };
    Tls::new(secrets, RANDOM_OF_CLIENT)
}

fn read(tls: &mut Tls, end: usize, bytes: &[u8]) -> Result<Vec<u8>, FrameStop> {
    let mut said = Vec::new();
    tls.read(end, bytes, |more| {
        said.extend_from_slice(more);
        Ok(())
    })?;
    Ok(said)
}

#[test]
fn data_is_found_behind_the_handshake_and_over_updates_of_the_key() {
    for (suite, length) in [(0x1301, 32), (0x1302, 48), (0x1303, 32)] {
        let secret = vec![7; length];
        let mut tls = tls(&secret);
        let mut of_handshake = Sealer::new(suite, &vec![8; length]);
        let mut sender = Sealer::new(suite, &secret);
        let mut said = read(&mut tls, 1, &server_hello(suite)).unwrap();
        let records = [
            vec![20, 3, 3, 0, 1, 1],
            of_handshake.seal(HANDSHAKE, &[8, 0, 0, 2, 0, 0], 0),
            of_handshake.seal(HANDSHAKE, &[20; 40], 0),
            sender.seal(HANDSHAKE, &[4, 0, 0, 4, 24, 0, 0, 1], 0),
            sender.seal(APPLICATION, b"one ", 0),
            sender.update(),
            sender.seal(APPLICATION, b"two ", 100),
            sender.update(),
            sender.seal(APPLICATION, b"three", 1),
            sender.seal(ALERT, &[1, 0], 0),
        ];
        said.extend(read(&mut tls, 1, &records.concat()).unwrap());
        assert_eq!(said, b"one two three", "{suite:x}");
        assert!(tls.ends[1].record.is_empty(), "nothing stays");
    }
}

#[test]
fn a_record_that_is_missing_or_changed_ends_it() {
    let secret = [7; 32];
    let begin = || {
        let (mut tls, mut sender) = (tls(&secret), Sealer::new(0x1301, &secret));
        read(&mut tls, 1, &server_hello(0x1301)).unwrap();
        read(&mut tls, 1, &sender.seal(APPLICATION, b"one", 0)).unwrap();
        (tls, sender)
    };
    let (mut one, mut sender) = begin();
    sender.seal(APPLICATION, b"not captured", 0);
    let after = sender.seal(APPLICATION, b"three", 0);
    assert_eq!(read(&mut one, 1, &after), Err(FrameStop::Undecrypted));
    let (mut one, mut sender) = begin();
    let mut changed = sender.seal(APPLICATION, b"two", 0);
    changed[7] ^= 1;
    assert_eq!(read(&mut one, 1, &changed), Err(FrameStop::Undecrypted));
    let (mut one, _) = begin();
    assert_eq!(read(&mut one, 1, b"GET / HTTP"), Err(FrameStop::Malformed));
}

#[test]
fn other_suites_missing_secrets_and_data_before_the_choice_are_told() {
    assert_eq!(read(&mut tls(&[7; 32]), 1, &server_hello(0x1304)), Err(FrameStop::Cipher));
    let short = read(&mut tls(&[7; 32]), 1, &server_hello(0x1302));
    assert_eq!(short, Err(FrameStop::Undecrypted), "a secret of another hash");
    let mut early = Sealer::new(0x1301, &[9; 32]);
    let early = early.seal(APPLICATION, b"early", 0);
    assert_eq!(read(&mut tls(&[7; 32]), 0, &early), Err(FrameStop::Undecrypted));
    let mut never = tls(&[7; 32]);
    read(&mut never, 1, &server_hello(0x1301)).unwrap();
    let mut others = Sealer::new(0x1301, &[9; 32]);
    let refused = (0..100).find_map(|_| read(&mut never, 1, &others.seal(23, b"x", 0)).err());
    assert_eq!(refused, Some(FrameStop::Undecrypted), "keys that never fit");
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400), end in 0_usize..2) {
        let mut tls = tls(&[7; 32]);
        let _ = read(&mut tls, end, &bytes);
        let mut tls = self::tls(&[7; 32]);
        read(&mut tls, 1, &server_hello(0x1303)).unwrap();
        let _ = read(&mut tls, end, &bytes);
    }

    #[test]
    fn pieces_of_any_length_give_the_same_data(
        contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..8),
        piece in 1_usize..50,
    ) {
        let secret = [7; 32];
        let (mut tls, mut sender) = (tls(&secret), Sealer::new(0x1303, &secret));
        let mut bytes = server_hello(0x1303);
        contents.iter().for_each(|one| bytes.extend(sender.seal(APPLICATION, one, one.len() % 3)));
        let mut said = Vec::new();
        for piece in bytes.chunks(piece) {
            said.extend(read(&mut tls, 1, piece).unwrap());
        }
        prop_assert_eq!(said, contents.concat());
    }
}
