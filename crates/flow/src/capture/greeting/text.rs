//! Protocols whose first words are text: SSH, HTTP/1, rsync's daemon and Redis.

use super::token::{self, Token};

/// The longest identification of SSH (RFC 4253 section 4.2).
const LONGEST_BANNER: usize = 255;

/// SSH's version and the software that speaks it.
pub(super) fn ssh(payload: &[u8]) -> (Option<Token>, Option<Token>) {
    let banner = &payload[..payload.len().min(LONGEST_BANNER)];
    let line = first_line(banner).unwrap_or_default();
    let mut parts = line.splitn(3, |byte| *byte == b'-').skip(1);
    let version = parts.next().and_then(Token::of);
    // Comments follow after a space.
    let software = parts.next().unwrap_or_default().split(|byte| *byte == b' ').next();
    (version, software.and_then(Token::of))
}

/// The version that a daemon or a client of rsync greets with.
pub(super) fn rsync(payload: &[u8]) -> Option<Token> {
    let said = first_line(payload)?.strip_prefix(b"@RSYNCD: ")?;
    let version = said.split(|byte| *byte == b' ').next()?;
    version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.').then(|| Token::of(version))?
}

/// What the head of a request or an answer says (RFC 9110 sections 7.2, 10.1.5 and 10.2.4).
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HttpHead {
    pub version: Option<Token>,
    pub method: Option<Token>,
    pub host: Option<Box<str>>,
    pub program: Option<Token>,
}

/// Reads such a head, or what was captured of it.
pub(super) fn http(payload: &[u8]) -> HttpHead {
    let mut head = HttpHead::default();
    let is_answer = payload.starts_with(b"HTTP/");
    let mut lines = payload.split_inclusive(|byte| *byte == b'\n');
    let line = lines.next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    if is_answer {
        head.version = words.next().and_then(http_version);
    } else {
        head.method = words.next().and_then(Token::of);
        head.version = words.nth(1).filter(|_| line.ends_with(b"\n")).and_then(http_version);
    }
    // What the capture cut is no value.
    for line in lines.filter(|line| line.ends_with(b"\n")) {
        let line = line.trim_ascii();
        if line.is_empty() {
            break;
        }
        let Some(at) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..at], line[at + 1..].trim_ascii());
        match () {
            () if !is_answer && name.eq_ignore_ascii_case(b"host") => {
                head.host = token::name(value);
            }
            () if !is_answer && name.eq_ignore_ascii_case(b"user-agent") => {
                head.program = product(value);
            }
            () if is_answer && name.eq_ignore_ascii_case(b"server") => {
                head.program = product(value);
            }
            () => {}
        }
    }
    head
}

fn http_version(word: &[u8]) -> Option<Token> {
    word.strip_prefix(b"HTTP/").and_then(Token::of)
}

/// The product that tells programs apart: the first one, and for browsers, which all say `Mozilla`
/// first, the one that is theirs.
fn product(value: &[u8]) -> Option<Token> {
    const BROWSERS: [&[u8]; 5] = [b"Firefox/", b"Edg/", b"OPR/", b"Chrome/", b"Version/"];
    let first = products(value).next()?;
    if !first.starts_with(b"Mozilla/") {
        return Token::of(first);
    }
    let own = BROWSERS.iter().find_map(|name| products(value).find(|word| word.starts_with(name)));
    match own {
        // Safari gives its version by that name.
        Some(version) if version.starts_with(b"Version/") => {
            Token::of(&[b"Safari/", &version[b"Version/".len()..]].concat())
        }
        Some(own) => Token::of(own),
        None => Token::of(first),
    }
}

fn products(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

/// The library of a client of Redis, and its version, each where it says it (`CLIENT SETINFO`).
pub(super) fn redis(payload: &[u8]) -> (Option<Token>, Option<Token>) {
    (string_behind(payload, b"LIB-NAME"), string_behind(payload, b"LIB-VER"))
}

/// The bulk string behind that one.
fn string_behind(payload: &[u8], key: &[u8]) -> Option<Token> {
    let at = payload.windows(key.len()).position(|part| part.eq_ignore_ascii_case(key))?;
    let mut lines = payload[at + key.len()..].split_inclusive(|byte| *byte == b'\n');
    let is_next = lines.next()? == b"\r\n" && lines.next()?.starts_with(b"$");
    lines.next().filter(|line| is_next && line.ends_with(b"\n")).and_then(Token::of)
}

/// The first line, without what ends it; `None` where the capture cut it.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some(bytes[..end].trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(token: Option<Token>) -> String {
        token.map_or(String::new(), |token| token.to_string())
    }

    #[test]
    fn ssh_says_version_and_software() {
        for (said, version, software) in [
            ("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u6\r\n", "2.0", "OpenSSH_9.2p1"),
            ("SSH-2.0-OpenSSH_9.8_hpn18.4.1\r\n", "2.0", "OpenSSH_9.8_hpn18.4.1"),
            ("SSH-1.99-Cisco-1.25\n", "1.99", "Cisco-1.25"),
            ("SSH-2.0-\x1b]0;x\n", "2.0", "?]0;x"),
            ("SSH-2\n", "2", ""),
            ("SSH-\n", "", ""),
            // Cut by the capture.
            ("SSH-2.0-OpenSSH_9", "", ""),
        ] {
            let (told, by) = ssh(said.as_bytes());
            assert_eq!((words(told), words(by)), (version.into(), software.into()), "{said:?}");
        }
    }

    #[test]
    fn http_says_method_host_and_product() {
        let request = b"GET /f HTTP/1.1\r\nhost: example.com:8080\r\nUser-Agent: curl/7.88.1\r\n\r\nServer: x";
        let head = http(request);
        assert_eq!(words(head.method), "GET");
        assert_eq!(words(head.version), "1.1");
        assert_eq!(head.host.as_deref(), Some("example.com:8080"));
        assert_eq!(words(head.program), "curl/7.88.1");
        let answer = http(b"HTTP/1.0 200 OK\r\nHost: no\r\nServer: nginx/1.22.1 (x)\r\nX");
        assert_eq!(words(answer.program), "nginx/1.22.1");
        assert_eq!((words(answer.version), answer.host), ("1.0".into(), None));
        // The body is not read.
        assert_eq!(http(b"HTTP/1.1 200 OK\r\n\r\nServer: x").program, None);
    }

    #[test]
    fn what_the_capture_cut_is_no_value() {
        let request = b"GET /f HTTP/1.1\r\nHost: example.com\r\nUser-Agent: curl/7.88.1\r\n";
        for end in 0..request.len() {
            let head = http(&request[..end]);
            assert!(head.program.is_none(), "{end}");
            assert!(head.host.is_none_or(|host| &*host == "example.com"), "{end}");
        }
    }

    #[test]
    fn browsers_are_told_by_their_own_product() {
        let agent = |text: &str| words(product(text.as_bytes()));
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36";
        assert_eq!(agent(chrome), "Chrome/120.0.0.0");
        assert_eq!(agent(&format!("{chrome} Edg/120.0.1")), "Edg/120.0.1");
        assert_eq!(
            agent("Mozilla/5.0 (X11; rv:115.0) Gecko/20100101 Firefox/115.0"),
            "Firefox/115.0"
        );
        assert_eq!(agent("Mozilla/5.0 (Mac) Version/17.1 Safari/605.1.15"), "Safari/17.1");
        assert_eq!(agent("Mozilla/4.0"), "Mozilla/4.0");
    }

    #[test]
    fn rsync_and_redis_say_what_they_are() {
        assert_eq!(words(rsync(b"@RSYNCD: 31.0 sha512 md5\n")), "31.0");
        assert_eq!(rsync(b"@RSYNCD: OK\n"), None);
        let set = b"*4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$8\r\nredis-py\r\n";
        assert_eq!(words(redis(set).0), "redis-py");
        assert_eq!(redis(b"*1\r\n$8\r\nLIB-NAME\r\n"), (None, None));
    }

    proptest! {
        #[test]
        fn any_words_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            ssh(&bytes);
            rsync(&bytes);
            redis(&bytes);
            http(&bytes);
            http(&[b"GET / HTTP/1.1\r\nHost:", &bytes[..]].concat());
        }
    }
}
