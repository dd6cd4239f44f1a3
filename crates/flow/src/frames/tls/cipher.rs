//! The keys of TLS's records, and their opening: RustCrypto's AEADs, HKDF and HMAC, called as RFC
//! 8446 (TLS 1.3, sections 5 and 7) and RFC 5246 (TLS 1.2, sections 5 and 6.3, with RFC 5288 and
//! RFC 7905) say.

use super::super::keys::Secret;
use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aead::{AeadInOut, KeyInit, Nonce, Tag};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::ChaCha20Poly1305;
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha384};

/// The length of a tag, of a nonce, and of a record's header.
pub(super) const TAG: usize = 16;
const NONCE: usize = 12;
pub(super) const HEADER: usize = 5;
/// TLS 1.2 with AES-GCM: the part of the nonce that the keys give, and that a record has.
const SALT: usize = 4;
const EXPLICIT: usize = 8;
/// The longest key.
const KEY_MOST: usize = 32;

/// A cipher suite that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suite {
    cipher: Cipher,
    hash: Hash,
    pub is_tls13: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cipher {
    Aes128,
    Aes256,
    ChaCha,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
}

impl Suite {
    /// The suite of this number; `None` where it is not read: those without an AEAD, and CCM.
    pub fn of(number: u16) -> Option<Self> {
        let (cipher, hash, is_tls13) = match number {
            0x1301 => (Cipher::Aes128, Hash::Sha256, true),
            0x1302 => (Cipher::Aes256, Hash::Sha384, true),
            0x1303 => (Cipher::ChaCha, Hash::Sha256, true),
            // RSA, DHE, and ECDHE with either signature.
            0x009c | 0x009e | 0xc02b | 0xc02f => (Cipher::Aes128, Hash::Sha256, false),
            0x009d | 0x009f | 0xc02c | 0xc030 => (Cipher::Aes256, Hash::Sha384, false),
            0xcca8..=0xccaa => (Cipher::ChaCha, Hash::Sha256, false),
            _ => return None,
        };
        Some(Suite { cipher, hash, is_tls13 })
    }

    const fn key(self) -> usize {
        match self.cipher {
            Cipher::Aes128 => 16,
            Cipher::Aes256 | Cipher::ChaCha => KEY_MOST,
        }
    }

    /// The length of what a nonce is made of.
    const fn nonce(self) -> usize {
        match self.cipher {
            Cipher::ChaCha => NONCE,
            _ if self.is_tls13 => NONCE,
            _ => SALT,
        }
    }

    /// The keys that follow from a traffic secret of TLS 1.3; `None` where it is none of this
    /// suite.
    pub fn keys(self, secret: &Secret) -> Option<RecordKeys> {
        let (mut key, mut iv) = ([0; KEY_MOST], [0; NONCE]);
        self.expand(secret, b"key", &mut key[..self.key()])?;
        self.expand(secret, b"iv", &mut iv)?;
        RecordKeys::new(self, &key[..self.key()], iv)
    }

    /// The traffic secret after this one (RFC 8446 section 7.2).
    pub fn updated(self, secret: &Secret) -> Option<Secret> {
        let mut next = [0; 48];
        let length = secret.bytes().len();
        self.expand(secret, b"traffic upd", next.get_mut(..length)?)?;
        Secret::new(&next[..length])
    }

    /// HKDF-Expand-Label without a context (RFC 8446 section 7.1).
    fn expand(self, secret: &Secret, label: &[u8], into: &mut [u8]) -> Option<()> {
        const PREFIX: &[u8] = b"tls13 ";
        let length = (into.len() as u16).to_be_bytes();
        let label_length = (PREFIX.len() + label.len()) as u8;
        let info: [&[u8]; 5] = [&length, &[label_length], PREFIX, label, &[0]];
        let secret = secret.bytes();
        match self.hash {
            Hash::Sha256 if secret.len() == 32 => {
                Hkdf::<Sha256>::from_prk(secret).ok()?.expand_multi_info(&info, into).ok()
            }
            Hash::Sha384 if secret.len() == 48 => {
                Hkdf::<Sha384>::from_prk(secret).ok()?.expand_multi_info(&info, into).ok()
            }
            _ => None,
        }
    }

    /// The keys of client and server that follow from a master secret of TLS 1.2, and from the
    /// random numbers of both.
    pub fn keys_of_master(self, master: &Secret, randoms: [&[u8]; 2]) -> Option<[RecordKeys; 2]> {
        let [client, server] = randoms;
        let seed = [b"key expansion", server, client].concat();
        let mut block = [0; 2 * (KEY_MOST + NONCE)];
        match self.hash {
            Hash::Sha256 => stretch::<Hmac<Sha256>>(master.bytes(), &seed, &mut block)?,
            Hash::Sha384 => stretch::<Hmac<Sha384>>(master.bytes(), &seed, &mut block)?,
        }
        let (keys, ivs) = block.split_at(2 * self.key());
        let mut keys = keys.chunks_exact(self.key());
        let mut ivs = ivs.chunks_exact(self.nonce());
        Some([self.keys_of(keys.next()?, ivs.next()?)?, self.keys_of(keys.next()?, ivs.next()?)?])
    }

    /// The keys of a direction, with what its nonces are made of.
    fn keys_of(self, key: &[u8], salt: &[u8]) -> Option<RecordKeys> {
        let mut iv = [0; NONCE];
        iv.get_mut(..salt.len())?.copy_from_slice(salt);
        RecordKeys::new(self, key, iv)
    }
}

/// P_hash (RFC 5246 section 5).
fn stretch<M: Mac + KeyInit>(key: &[u8], seed: &[u8], into: &mut [u8]) -> Option<()> {
    let mut number = seed.to_vec();
    let mut rest = into;
    while !rest.is_empty() {
        number = hash::<M>(key, &[&number])?;
        let block = hash::<M>(key, &[&number, seed])?;
        let length = block.len().min(rest.len());
        let (own, others) = rest.split_at_mut(length);
        own.copy_from_slice(&block[..length]);
        rest = others;
    }
    Some(())
}

fn hash<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Option<Vec<u8>> {
    let mut mac = <M as KeyInit>::new_from_slice(key).ok()?;
    parts.iter().for_each(|part| mac.update(part));
    Some(mac.finalize().into_bytes().to_vec())
}

/// The keys of one direction's records, in their order.
pub(super) struct RecordKeys {
    suite: Suite,
    aead: Aead,
    iv: [u8; NONCE],
    sequence: u64,
}

enum Aead {
    Aes128(Box<Aes128Gcm>),
    Aes256(Box<Aes256Gcm>),
    ChaCha(Box<ChaCha20Poly1305>),
}

/// No key is printed.
impl std::fmt::Debug for RecordKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RecordKeys(record {})", self.sequence)
    }
}

impl RecordKeys {
    fn new(suite: Suite, key: &[u8], iv: [u8; NONCE]) -> Option<Self> {
        let aead = match suite.cipher {
            Cipher::Aes128 => Aead::Aes128(Box::new(Aes128Gcm::new_from_slice(key).ok()?)),
            Cipher::Aes256 => Aead::Aes256(Box::new(Aes256Gcm::new_from_slice(key).ok()?)),
            Cipher::ChaCha => Aead::ChaCha(Box::new(ChaCha20Poly1305::new_from_slice(key).ok()?)),
        };
        Some(RecordKeys { suite, aead, iv, sequence: 0 })
    }

    /// Opens the next record in place, and gives what was in it; `None`, and nothing changed, where
    /// it is not authentic.
    pub fn open<'a>(&mut self, header: [u8; HEADER], body: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let is_explicit = !self.suite.is_tls13 && self.suite.cipher != Cipher::ChaCha;
        let (explicit, sealed) =
            body.split_at_mut_checked(if is_explicit { EXPLICIT } else { 0 })?;
        let (content, tag) = sealed.split_at_mut_checked(sealed.len().checked_sub(TAG)?)?;
        let mut nonce = self.iv;
        if is_explicit {
            nonce[SALT..].copy_from_slice(explicit);
        } else {
            let number = self.sequence.to_be_bytes();
            nonce[SALT..].iter_mut().zip(number).for_each(|(byte, other)| *byte ^= other);
        }
        // What is authenticated beside the contents: the record's header, or with TLS 1.2 its
        // number, its type, its version and the length of the contents.
        let mut beside = [0; 8 + HEADER];
        beside[..8].copy_from_slice(&self.sequence.to_be_bytes());
        beside[8..].copy_from_slice(&header);
        beside[11..].copy_from_slice(&(content.len() as u16).to_be_bytes());
        let beside = if self.suite.is_tls13 { &header[..] } else { &beside[..] };
        let is_open = match &self.aead {
            Aead::Aes128(aead) => open(&**aead, &nonce, beside, content, tag),
            Aead::Aes256(aead) => open(&**aead, &nonce, beside, content, tag),
            Aead::ChaCha(aead) => open(&**aead, &nonce, beside, content, tag),
        };
        is_open.then(|| {
            self.sequence += 1;
            content
        })
    }
}

/// Opens in place; nothing is changed where the tag is wrong.
fn open<A: AeadInOut>(
    aead: &A,
    nonce: &[u8; NONCE],
    beside: &[u8],
    content: &mut [u8],
    tag: &[u8],
) -> bool {
    let (Ok(nonce), Ok(tag)) = (<&Nonce<A>>::try_from(&nonce[..]), <&Tag<A>>::try_from(tag)) else {
        return false;
    };
    aead.decrypt_inout_detached(nonce, beside, InOutBuf::from(content), tag).is_ok()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    impl RecordKeys {
        /// Closes the next record: its header and its body.
        pub fn close(&mut self, header: [u8; HEADER], contents: &[u8]) -> Vec<u8> {
            let mut nonce = self.iv;
            let number = self.sequence.to_be_bytes();
            nonce[SALT..].iter_mut().zip(number).for_each(|(byte, other)| *byte ^= other);
            let mut sealed = contents.to_vec();
            let tag = match &self.aead {
                Aead::Aes128(aead) => close(&**aead, &nonce, &header, &mut sealed),
                Aead::Aes256(aead) => close(&**aead, &nonce, &header, &mut sealed),
                Aead::ChaCha(aead) => close(&**aead, &nonce, &header, &mut sealed),
            };
            self.sequence += 1;
            [&header[..], &sealed, &tag].concat()
        }
    }

    fn close<A: AeadInOut>(aead: &A, nonce: &[u8], beside: &[u8], contents: &mut [u8]) -> Vec<u8> {
        let nonce = <&Nonce<A>>::try_from(nonce).unwrap();
        aead.encrypt_inout_detached(nonce, beside, InOutBuf::from(contents)).unwrap().to_vec()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    /// The server's application traffic secret of RFC 8448 section 3, and what follows from it.
    #[test]
    fn keys_are_those_of_the_example_in_rfc_8448() {
        let secret = bytes("a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643");
        let suite = Suite::of(0x1301).unwrap();
        let secret = Secret::new(&secret).unwrap();
        let (mut key, mut iv) = ([0; 16], [0; NONCE]);
        suite.expand(&secret, b"key", &mut key).unwrap();
        suite.expand(&secret, b"iv", &mut iv).unwrap();
        assert_eq!(key[..], bytes("9f02283b6c9c07efc26bb9f2ac92e356")[..]);
        assert_eq!(iv[..], bytes("cf782b88dd83549aadf1e984")[..]);
        // The server's first record under them: a ticket is not in it, but the data is.
        let mut keys = suite.keys(&secret).unwrap();
        let record = keys.close([23, 3, 3, 0, 67], &[1; 51]);
        let mut other = suite.keys(&secret).unwrap();
        let mut body = record[HEADER..].to_vec();
        assert!(other.open([23, 3, 3, 0, 66], &mut body).is_none(), "another header");
        assert_eq!(
            other.open([23, 3, 3, 0, 67], &mut body).map(|one| one.to_vec()),
            Some(vec![1; 51])
        );
        assert!(suite.keys(&Secret::new(&[1; 48]).unwrap()).is_none(), "of another hash");
    }

    /// The example of the PRF with SHA-256 that the working group of TLS published
    /// (`mailarchive.ietf.org/arch/msg/tls/fzVCzk-z3FShgGJ6DOXqM1ydxms`).
    #[test]
    fn the_stretched_secret_is_that_of_the_published_example() {
        let secret = bytes("9bbe436ba940f017b17652849a71db35");
        let seed = [&b"test label"[..], &bytes("a0ba9f936cda311827a6f796ffd5198c")].concat();
        let mut block = [0; 100];
        stretch::<Hmac<Sha256>>(&secret, &seed, &mut block).unwrap();
        let expected = bytes(
            "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a6b301791e90d35c9c9a46b4e\
             14baf9af0fa022f7077def17abfd3797c0564bab4fbc91666e9def9b97fce34f796789baa48082d122ee42c5\
             a72e5a5110fff70187347b66",
        );
        assert_eq!(block[..], expected[..]);
    }
}
