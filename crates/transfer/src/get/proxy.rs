//! The way by a proxy: HTTP `CONNECT` (RFC 9110 section 9.3.6), or SOCKS5 (RFC 1928).

use super::socket::{Io, Socket};
use super::{GetError, GetOptions};
use crate::causes::chain;
use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use bytes::Bytes as Buffer;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use std::net::IpAddr;
use tokio_socks::tcp::Socks5Stream;
use url::Url;

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    /// As written, without its password.
    name: String,
    pub(super) host: String,
    pub(super) port: u16,
    kind: ProxyKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProxyKind {
    /// With the value of `Proxy-Authorization`, where it has a password.
    Http { authorization: Option<HeaderValue> },
    /// The name is looked up by the proxy (`socks5h`), as curl does with `socks5` only in part; a
    /// proxy that takes names takes addresses, too.
    Socks { password: Option<(String, String)> },
}

impl Proxy {
    /// The proxy for `url`, if there is one.
    pub(super) fn of(options: &GetOptions, url: &Url) -> Result<Option<Proxy>, GetError> {
        let name = match url.scheme() {
            "https" => &options.https_proxy,
            _ => &options.http_proxy,
        };
        let host = url.host_str().unwrap_or_default();
        match name {
            Some(name) if !is_excepted(host, &options.no_proxy) => Proxy::parse(name).map(Some),
            _ => Ok(None),
        }
    }

    fn parse(name: &str) -> Result<Proxy, GetError> {
        Proxy::try_parse(name).map_err(|must| GetError::Option {
            option: "--proxy",
            value: without_password(name),
            must: format!("{must}; write http://HOST:PORT or socks5h://HOST:PORT"),
        })
    }

    fn try_parse(name: &str) -> Result<Proxy, String> {
        let whole = if name.contains("://") { name.into() } else { format!("http://{name}") };
        let url = Url::parse(&whole).map_err(|error| error.to_string())?;
        let host = url.host_str().ok_or("no host")?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let (kind, usual) = match url.scheme() {
            "http" => (ProxyKind::Http { authorization: password(&url).map(basic) }, 80),
            "socks5" | "socks5h" => (ProxyKind::Socks { password: password(&url) }, 1080),
            _ => return Err("no such kind of proxy".into()),
        };
        let port = url.port().unwrap_or(usual);
        Ok(Proxy { name: without_password(name), host, port, kind })
    }

    pub(super) fn is_socks(&self) -> bool {
        matches!(self.kind, ProxyKind::Socks { .. })
    }

    /// The value of `Proxy-Authorization`, where it wants one.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        match &self.kind {
            ProxyKind::Http { authorization } => authorization.as_ref(),
            ProxyKind::Socks { .. } => None,
        }
    }
}

/// Whatever stands before the last `@` may be a password, and is not shown.
fn without_password(name: &str) -> String {
    let (scheme, rest) = name.split_once("://").map_or(("", name), |(one, rest)| (one, rest));
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    if scheme.is_empty() { place.into() } else { format!("{scheme}://{place}") }
}

/// User and password of a URL, decoded.
fn password(url: &Url) -> Option<(String, String)> {
    let user = url.username();
    (!user.is_empty()).then(|| (decoded(user), decoded(url.password().unwrap_or_default())))
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// `Basic` (RFC 7617). It is marked as sensitive, so that no log shows it.
fn basic((user, password): (String, String)) -> HeaderValue {
    let text = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    // Base64 is always a valid value.
    let mut value = HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// Whether `host` is reached without a proxy: `no_proxy` has it, or a domain that it is in.
fn is_excepted(host: &str, no_proxy: &[String]) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    no_proxy.iter().any(|one| {
        let one = one.trim().trim_start_matches('.').to_ascii_lowercase();
        let domain = !one.is_empty() && host.parse::<IpAddr>().is_err();
        one == "*" || host == one || domain && host.ends_with(&format!(".{one}"))
    })
}

/// A connection through the proxy to `host` and `port`.
pub(super) async fn tunnel(
    proxy: &Proxy,
    socket: Socket,
    host: &str,
    port: u16,
) -> Result<Box<dyn Io>, GetError> {
    let led = match &proxy.kind {
        ProxyKind::Http { authorization } => {
            by_connect(socket, host, port, authorization.as_ref()).await
        }
        ProxyKind::Socks { password } => by_socks(socket, host, port, password.as_ref()).await,
    };
    led.map_err(|problem| GetError::Proxy {
        host: format!("{host}:{port}"),
        proxy: proxy.name.clone(),
        problem,
    })
}

async fn by_socks(
    socket: Socket,
    host: &str,
    port: u16,
    password: Option<&(String, String)>,
) -> Result<Box<dyn Io>, String> {
    let target = (host, port);
    let stream = match password {
        None => Socks5Stream::connect_with_socket(socket, target).await,
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(socket, target, user, password).await
        }
    };
    Ok(Box::new(stream.map_err(|error| error.to_string())?))
}

async fn by_connect(
    socket: Socket,
    host: &str,
    port: u16,
    authorization: Option<&HeaderValue>,
) -> Result<Box<dyn Io>, String> {
    let place =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let mut request =
        Request::builder().method(Method::CONNECT).uri(&place).header(header::HOST, &place);
    if let Some(authorization) = authorization {
        request = request.header(header::PROXY_AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Buffer>::new()).map_err(|error| error.to_string())?;
    let (mut send, driver) =
        http1::handshake(TokioIo::new(socket)).await.map_err(|error| chain(&error))?;
    tokio::spawn(driver.with_upgrades());
    let answer = send.send_request(request).await.map_err(|error| chain(&error))?;
    if !answer.status().is_success() {
        return Err(format!("it says {}", answer.status()));
    }
    let upgraded = hyper::upgrade::on(answer).await.map_err(|error| chain(&error))?;
    Ok(Box::new(TokioIo::new(upgraded)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_domains_are_excepted_as_curl_does() {
        let no: Vec<String> = [".local", "example.org", "10.0.0.1", "::1"].map(Into::into).into();
        for (host, excepted) in [
            ("a.local", true),
            ("example.org", true),
            ("www.Example.org", true),
            ("notexample.org", false),
            ("10.0.0.1", true),
            ("110.0.0.1", false),
            ("[::1]", true),
        ] {
            assert_eq!(is_excepted(host, &no), excepted, "{host}");
        }
        assert!(is_excepted("anything", &["*".into()]));
    }

    #[test]
    fn proxies_are_read_as_written_elsewhere() {
        let of = |name: &str| Proxy::parse(name).map(|p| (p.host.clone(), p.port, p.is_socks()));
        assert_eq!(of("127.0.0.1:3128").unwrap(), ("127.0.0.1".into(), 3128, false));
        assert_eq!(of("socks5h://u:p@[::1]").unwrap(), ("::1".into(), 1080, true));
        assert!(of("ftp://a").unwrap_err().to_string().contains("no such kind"));
        assert_eq!(of("http://u:p@a").unwrap(), ("a".into(), 80, false));
    }

    #[test]
    fn a_password_is_sent_and_never_shown() {
        let proxy = Proxy::parse("http://Aladdin:open%20sesame@a:3128").unwrap();
        // RFC 7617 section 2.
        let value = proxy.authorization().unwrap();
        assert_eq!(value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(value.is_sensitive());
        assert_eq!(proxy.name, "http://a:3128");
        for name in ["ftp://u:secret@a", "http://u:sec@ret@a:wrong", "u:secret@[::"] {
            let said = Proxy::parse(name).unwrap_err().to_string();
            assert!(!said.contains("sec"), "{said}");
        }
    }
}
