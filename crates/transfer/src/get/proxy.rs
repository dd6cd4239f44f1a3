//! The way by a proxy: HTTP `CONNECT` (RFC 9110 section 9.3.6), or SOCKS5 (RFC 1928).

use super::socket::{Io, Socket};
use super::{GetError, GetOptions};
use crate::causes::chain;
use bytes::Bytes as Buffer;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use std::net::IpAddr;
use tokio_socks::tcp::Socks5Stream;
use url::Url;

/// A proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    /// As written.
    name: String,
    pub(super) host: String,
    pub(super) port: u16,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Http,
    /// The name is looked up by the proxy (`socks5h`), as curl does with `socks5` only in part; a
    /// proxy that takes names takes addresses, too.
    Socks {
        password: Option<(String, String)>,
    },
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
        let refuse = |must: &str| GetError::Option {
            option: "--proxy",
            value: name.into(),
            must: format!("{must}; write http://HOST:PORT or socks5h://HOST:PORT"),
        };
        let whole = if name.contains("://") { name.into() } else { format!("http://{name}") };
        let url = Url::parse(&whole).map_err(|error| refuse(&error.to_string()))?;
        let host = url.host_str().ok_or_else(|| refuse("no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let (kind, usual) = match url.scheme() {
            "http" if url.username().is_empty() => (Kind::Http, 80),
            "http" => return Err(refuse("an HTTP proxy with a password is not supported")),
            "socks5" | "socks5h" => {
                let password = url.password().unwrap_or_default().to_string();
                let user = url.username().to_string();
                let password = (!user.is_empty()).then_some((user, password));
                (Kind::Socks { password }, 1080)
            }
            _ => return Err(refuse("no such kind of proxy")),
        };
        let port = url.port().unwrap_or(usual);
        Ok(Proxy { name: name.into(), host, port, kind })
    }

    pub(super) fn is_socks(&self) -> bool {
        self.kind != Kind::Http
    }
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
    let failed = |problem: String| GetError::Proxy {
        host: format!("{host}:{port}"),
        proxy: proxy.name.clone(),
        problem,
    };
    match &proxy.kind {
        Kind::Http => by_connect(socket, host, port).await.map_err(failed),
        Kind::Socks { password: None } => {
            let stream = Socks5Stream::connect_with_socket(socket, (host, port)).await;
            Ok(Box::new(stream.map_err(|error| failed(error.to_string()))?))
        }
        Kind::Socks { password: Some((user, password)) } => {
            let target = (host, port);
            let stream =
                Socks5Stream::connect_with_password_and_socket(socket, target, user, password);
            Ok(Box::new(stream.await.map_err(|error| failed(error.to_string()))?))
        }
    }
}

async fn by_connect(socket: Socket, host: &str, port: u16) -> Result<Box<dyn Io>, String> {
    let place =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let request = Request::builder()
        .method(Method::CONNECT)
        .uri(&place)
        .header(hyper::header::HOST, &place)
        .body(Empty::<Buffer>::new())
        .map_err(|error| error.to_string())?;
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
        assert!(of("http://u:p@a").unwrap_err().to_string().contains("password"));
    }
}
