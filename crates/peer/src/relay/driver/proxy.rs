//! What a user of a proxy asks for before its stream begins: SOCKS5 (RFC 1928, without
//! authentication, CONNECT only) and HTTP's CONNECT (RFC 9110 section 9.3.6).
//!
//! [`ProxyHandshake`] is sans-IO: [`ProxyHandshake::push`] what the user sends, then do what
//! [`ProxyHandshake::poll`] says until it opens; when the destination is connected, or not, send
//! [`ProxyHandshake::answer`]. What the user sent beyond its request is the stream's first bytes
//! ([`ProxyHandshake::into_rest`]). At most [`REQUEST_MOST`] bytes are kept.

use super::super::frame::Refusal;
use super::allow::Destination;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The longest request.
const REQUEST_MOST: usize = 16 << 10;
/// The most fields of an HTTP request. They are not used.
const FIELDS_MOST: usize = 64;

/// Which protocol users speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    /// SOCKS version 5.
    Socks5,
    /// CONNECT of HTTP/1.1.
    HttpConnect,
}

/// What has to be done for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyStep {
    /// Read more.
    More,
    /// Send this, and poll again.
    Send(Vec<u8>),
    /// Connect to this destination, and answer.
    Open(String),
    /// Send this and close: the request is not served.
    Refuse(Vec<u8>),
}

/// A user that has not said yet, or not had its answer, where it wants to go.
#[derive(Debug)]
pub struct ProxyHandshake {
    kind: ProxyKind,
    has_greeted: bool,
    bytes: Vec<u8>,
}

/// A field of a SOCKS reply (RFC 1928 section 6).
const SUCCEEDED: u8 = 0;
const FAILED: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const NETWORK_UNREACHABLE: u8 = 3;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
/// "TTL expired": the nearest to a timeout.
const EXPIRED: u8 = 6;
const COMMAND_UNKNOWN: u8 = 7;
const ADDRESS_UNKNOWN: u8 = 8;

/// Why bytes are no request.
enum Bad {
    /// More are needed.
    Short,
    /// They never will be; what to answer.
    Wrong(Vec<u8>),
}

impl ProxyHandshake {
    /// A user that has sent nothing yet.
    pub fn new(kind: ProxyKind) -> ProxyHandshake {
        ProxyHandshake { kind, has_greeted: false, bytes: Vec::new() }
    }

    /// Adds what the user sent.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// What to do next.
    pub fn poll(&mut self) -> ProxyStep {
        let read = match self.kind {
            ProxyKind::Socks5 if !self.has_greeted => self.greeting(),
            ProxyKind::Socks5 => self.socks_request(),
            ProxyKind::HttpConnect => self.http_request(),
        };
        match read {
            Ok(step) => step,
            Err(Bad::Short) if self.bytes.len() < REQUEST_MOST => ProxyStep::More,
            Err(Bad::Short) => ProxyStep::Refuse(self.wrong()),
            Err(Bad::Wrong(answer)) => ProxyStep::Refuse(answer),
        }
    }

    /// What the user sent behind its request.
    pub fn into_rest(self) -> Vec<u8> {
        self.bytes
    }

    /// The answer to a destination that was connected, or not; `Err(None)`: the relay failed.
    pub fn answer(&self, result: Result<(), Option<Refusal>>) -> Vec<u8> {
        match self.kind {
            ProxyKind::Socks5 => socks_reply(match result {
                Ok(()) => SUCCEEDED,
                Err(Some(Refusal::Refused)) => REFUSED,
                Err(Some(Refusal::Unreachable)) => NETWORK_UNREACHABLE,
                Err(Some(Refusal::TimedOut)) => EXPIRED,
                Err(Some(Refusal::UnknownHost)) => HOST_UNREACHABLE,
                Err(Some(Refusal::NotAllowed)) => NOT_ALLOWED,
                Err(Some(Refusal::TooMany | Refusal::Failed) | None) => FAILED,
            }),
            ProxyKind::HttpConnect => match result {
                Ok(()) => b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
                Err(Some(Refusal::Refused)) => http_reply("502 Bad Gateway", "connection refused"),
                Err(Some(Refusal::Unreachable)) => http_reply("502 Bad Gateway", "no route to it"),
                Err(Some(Refusal::TimedOut)) => http_reply("504 Gateway Timeout", "no answer"),
                Err(Some(Refusal::UnknownHost)) => http_reply("502 Bad Gateway", "unknown host"),
                Err(Some(Refusal::NotAllowed)) => {
                    http_reply("403 Forbidden", "the far end does not allow it")
                }
                Err(Some(Refusal::TooMany)) => {
                    http_reply("503 Service Unavailable", "too many streams")
                }
                Err(Some(Refusal::Failed) | None) => {
                    http_reply("502 Bad Gateway", "the far end could not connect")
                }
            },
        }
    }

    fn wrong(&self) -> Vec<u8> {
        match self.kind {
            ProxyKind::Socks5 => socks_reply(FAILED),
            ProxyKind::HttpConnect => http_reply("400 Bad Request", "this is no CONNECT"),
        }
    }

    /// RFC 1928 section 3: version, number of methods, methods. Method 0 is "no authentication".
    fn greeting(&mut self) -> Result<ProxyStep, Bad> {
        let (&version, rest) = self.bytes.split_first().ok_or(Bad::Short)?;
        if version != 5 {
            return Err(Bad::Wrong(vec![5, 0xff]));
        }
        let (&count, rest) = rest.split_first().ok_or(Bad::Short)?;
        let methods = rest.get(..usize::from(count)).ok_or(Bad::Short)?;
        if !methods.contains(&0) {
            return Err(Bad::Wrong(vec![5, 0xff]));
        }
        self.bytes.drain(..2 + usize::from(count));
        self.has_greeted = true;
        Ok(ProxyStep::Send(vec![5, 0]))
    }

    /// RFC 1928 section 4: version, command, reserved, kind of address, address, port.
    fn socks_request(&mut self) -> Result<ProxyStep, Bad> {
        let (&[version, command, _, kind], rest) =
            self.bytes.split_first_chunk::<4>().ok_or(Bad::Short)?;
        if version != 5 {
            return Err(refused(FAILED));
        }
        if command != 1 {
            return Err(refused(COMMAND_UNKNOWN));
        }
        let (host, rest) = match kind {
            1 => {
                let (address, rest) = rest.split_first_chunk::<4>().ok_or(Bad::Short)?;
                (Ipv4Addr::from(*address).to_string(), rest)
            }
            3 => {
                let (&length, rest) = rest.split_first().ok_or(Bad::Short)?;
                let (name, rest) = rest.split_at_checked(length.into()).ok_or(Bad::Short)?;
                let name = std::str::from_utf8(name).map_err(|_| refused(ADDRESS_UNKNOWN))?;
                let host = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
                (host, rest)
            }
            4 => {
                let (address, rest) = rest.split_first_chunk::<16>().ok_or(Bad::Short)?;
                (format!("[{}]", Ipv6Addr::from(*address)), rest)
            }
            _ => return Err(refused(ADDRESS_UNKNOWN)),
        };
        let (port, rest) = rest.split_first_chunk::<2>().ok_or(Bad::Short)?;
        let destination = format!("{host}:{}", u16::from_be_bytes(*port));
        let used = self.bytes.len() - rest.len();
        if Destination::parse(&destination).is_none() {
            return Err(refused(ADDRESS_UNKNOWN));
        }
        self.bytes.drain(..used);
        Ok(ProxyStep::Open(destination))
    }

    fn http_request(&mut self) -> Result<ProxyStep, Bad> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MOST];
        let mut request = httparse::Request::new(&mut fields);
        let used = match request.parse(&self.bytes) {
            Ok(httparse::Status::Complete(used)) => used,
            Ok(httparse::Status::Partial) => return Err(Bad::Short),
            Err(_) => return Err(Bad::Wrong(self.wrong())),
        };
        if request.method != Some("CONNECT") {
            let why = "this proxy serves CONNECT alone";
            return Err(Bad::Wrong(http_reply("405 Method Not Allowed", why)));
        }
        let destination = request.path.filter(|path| Destination::parse(path).is_some());
        let destination = destination.ok_or_else(|| Bad::Wrong(self.wrong()))?.to_owned();
        self.bytes.drain(..used);
        Ok(ProxyStep::Open(destination))
    }
}

fn refused(code: u8) -> Bad {
    Bad::Wrong(socks_reply(code))
}

/// A reply without an address: nothing here has one that the user could use.
fn socks_reply(code: u8) -> Vec<u8> {
    vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

fn http_reply(status: &str, why: &str) -> Vec<u8> {
    let length = why.len() + 1;
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{why}\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Everything that a handshake says to bytes that come in pieces.
    fn steps(kind: ProxyKind, bytes: &[u8], piece: usize) -> (Vec<ProxyStep>, Vec<u8>) {
        let mut handshake = ProxyHandshake::new(kind);
        let (mut steps, mut pieces) = (Vec::new(), bytes.chunks(piece.max(1)));
        loop {
            match handshake.poll() {
                ProxyStep::More => match pieces.next() {
                    Some(piece) => handshake.push(piece),
                    None => break,
                },
                step => {
                    let is_last = !matches!(step, ProxyStep::Send(_));
                    steps.push(step);
                    if is_last {
                        break;
                    }
                }
            }
        }
        let rest = [&handshake.into_rest()[..], &pieces.collect::<Vec<_>>().concat()].concat();
        (steps, rest)
    }

    #[test]
    fn socks_as_rfc_1928_has_it() {
        let name = [&[5, 2, 2, 0, 5, 1, 0, 3, 9][..], b"a.example", &[1, 187], b"GET"].concat();
        let v4 = [5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80];
        let v6 = [&[5, 1, 0, 5, 1, 0, 4][..], &Ipv6Addr::LOCALHOST.octets(), &[0, 80]].concat();
        for (bytes, expected, rest) in [
            (&name[..], "a.example:443", &b"GET"[..]),
            (&v4, "192.0.2.1:80", b""),
            (&v6, "[::1]:80", b""),
        ] {
            for piece in [1, 3, 100] {
                let (steps, left) = steps(ProxyKind::Socks5, bytes, piece);
                let open = ProxyStep::Open(expected.into());
                assert_eq!(steps, [ProxyStep::Send(vec![5, 0]), open], "{piece}");
                assert_eq!(left, rest);
            }
        }
    }

    #[test]
    fn what_is_not_served_is_told() {
        let password_only = [5, 1, 2];
        let bind = [5, 1, 0, 5, 2, 0, 1, 192, 0, 2, 1, 0, 80];
        let no_port = [5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 0];
        for (bytes, code) in [(&password_only[..], 0xff), (&bind, 7), (&no_port, 8), (b"GET", 0xff)]
        {
            let (steps, _) = steps(ProxyKind::Socks5, bytes, 4);
            let Some(ProxyStep::Refuse(answer)) = steps.last() else { panic!("{steps:?}") };
            assert_eq!(answer[1], code);
        }
        for (request, status) in [
            ("GET http://a/ HTTP/1.1\r\n\r\n", "405"),
            ("CONNECT a HTTP/1.1\r\n\r\n", "400"),
            ("\u{1}\u{2}\r\n", "400"),
        ] {
            let (steps, _) = steps(ProxyKind::HttpConnect, request.as_bytes(), 4);
            let [ProxyStep::Refuse(answer)] = &steps[..] else { panic!("{request}: {steps:?}") };
            assert!(String::from_utf8_lossy(answer).starts_with(&format!("HTTP/1.1 {status}")));
        }
        let endless = vec![b'a'; 2 * REQUEST_MOST];
        assert!(matches!(
            steps(ProxyKind::HttpConnect, &endless, 999).0[..],
            [ProxyStep::Refuse(_)]
        ));
    }

    #[test]
    fn connect_as_curl_sends_it() {
        let request = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n\x16\x03";
        let (steps, rest) = steps(ProxyKind::HttpConnect, request, 7);
        assert_eq!(steps, [ProxyStep::Open("a.example:443".into())]);
        assert_eq!(rest, b"\x16\x03");
    }

    proptest! {
        /// However the bytes are cut, the steps are the same, and nothing is lost.
        #[test]
        fn pieces_change_nothing(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            is_socks: bool,
            piece in 1usize..50,
        ) {
            let kind = if is_socks { ProxyKind::Socks5 } else { ProxyKind::HttpConnect };
            let bytes = if is_socks { [&[5, 1, 0, 5, 1, 0][..], &bytes].concat() } else { bytes };
            prop_assert_eq!(steps(kind, &bytes, piece).0, steps(kind, &bytes, 1000).0);
        }
    }
}
