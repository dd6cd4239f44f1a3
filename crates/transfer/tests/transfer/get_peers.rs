//! Our downloader against nginx (TLS, HTTP/2) and by proxies.

use crate::fixture::{PATIENCE, Serving, generated, read_head};
use crate::peers::{installed, start_nginx};
use fullpipe_model::units::{Duration, Rate};
use fullpipe_transfer::{
    Connections, Diagnosis, GetError, GetOptions, GetRequest, Got, LimiterKind, ServerOptions,
    Stop, Target, get,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

const SIZE: u64 = 2_000_000;

fn fetch_into(file: &Path, url: &str, options: GetOptions) -> Result<Got, GetError> {
    let target = Target::File(file.into());
    let request = GetRequest { url: url.into(), target, options };
    get(&request, &Diagnosis::default(), &Stop::new(), &mut |_| {})
}

fn fetch(url: &str, options: GetOptions) -> Result<Got, GetError> {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    let got = fetch_into(&file, url, options)?;
    assert!(std::fs::read(&file).unwrap() == generated(0, SIZE), "wrong bytes from {url}");
    Ok(got)
}

/// A certificate for 127.0.0.1 and its key, in `folder`.
fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success(), "openssl makes a certificate");
}

#[test]
fn nginx_serves_files_by_tls_and_http_2() {
    const TEST: &str = "nginx_serves_files_by_tls_and_http_2";
    let Some(nginx) = installed(TEST, "nginx") else { return };
    if installed(TEST, "openssl").is_none() {
        return;
    }
    let site = tempfile::tempdir().unwrap();
    certificate(site.path());
    std::fs::write(site.path().join("file"), generated(0, SIZE)).unwrap();
    let at = |name: &str| site.path().join(name).display().to_string();
    let tls = format!("ssl_certificate {}; ssl_certificate_key {};", at("cert.pem"), at("key.pem"));
    let started = (0..5).find_map(|_| start_nginx(nginx, site.path(), "ssl http2", &tls));
    let (_running, addr) = started.expect("nginx starts on one of five free ports");
    let url = format!("https://{addr}/file");

    let cacert = Some(site.path().join("cert.pem"));
    let trusting = || GetOptions { cacert: cacert.clone(), ..GetOptions::default() };
    let got = fetch(&url, trusting()).unwrap();
    assert_eq!((got.version.as_str(), got.status), ("HTTP/2.0", 200));
    assert!(got.timing.appconnect > got.timing.connect, "{:?}", got.timing);
    let one = fetch(&url, GetOptions { http1_only: true, ..trusting() }).unwrap();
    assert_eq!(one.version, "HTTP/1.1");
    let four = GetOptions { connections: Connections::Fixed(4), ..trusting() };
    fetch(&url, four).unwrap();
    let anyone = GetOptions { insecure: true, ..GetOptions::default() };
    fetch(&url, anyone).unwrap();
    let error = fetch(&url, GetOptions::default()).unwrap_err().to_string();
    assert!(error.contains("TLS with 127.0.0.1") && error.contains("--cacert"), "{error}");
    let error = fetch(&format!("http://{addr}/file"), trusting()).unwrap_err().to_string();
    assert!(error.contains("400 Bad Request") || error.contains("no valid HTTP"), "{error}");
}

/// Passes bytes on in both directions until one side ends.
fn splice(client: TcpStream, server: TcpStream) {
    let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let back = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let (mut from, mut to) = (client, server);
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Both);
    back.join().unwrap();
}

/// A proxy for one connection, that does `greet` to learn where it leads.
fn proxy(greet: fn(&mut TcpStream) -> SocketAddr) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let server = TcpStream::connect(greet(&mut client)).unwrap();
        splice(client, server);
    });
    (addr, thread)
}

/// SOCKS5 without a password (RFC 1928), for an IPv4 address.
fn socks(client: &mut TcpStream) -> SocketAddr {
    let mut head = [0; 2];
    client.read_exact(&mut head).unwrap();
    client.read_exact(&mut vec![0; head[1].into()]).unwrap();
    client.write_all(&[5, 0]).unwrap();
    let (mut request, mut address, mut port) = ([0; 4], [0; 4], [0; 2]);
    client.read_exact(&mut request).unwrap();
    assert_eq!(request, [5, 1, 0, 1], "to connect to an IPv4 address");
    client.read_exact(&mut address).unwrap();
    client.read_exact(&mut port).unwrap();
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    SocketAddr::from((address, u16::from_be_bytes(port)))
}

#[test]
fn proxies_lead_to_the_server() {
    let server = Serving::start(ServerOptions::default());
    let url = server.url(&format!("/bytes/{SIZE}"));
    let by = |proxy: String| GetOptions { http_proxy: Some(proxy), ..GetOptions::default() };
    let (addr, ended) = proxy(socks);
    assert_eq!(fetch(&url, by(format!("socks5h://{addr}"))).unwrap().peer, addr);
    ended.join().unwrap();

    // An HTTP proxy is asked for whole URLs.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let whole = url.clone();
    let proxy = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let head = read_head(&mut client);
        assert!(head.starts_with(&format!("GET {whole} HTTP/1.1\r\n")), "{head}");
        // RFC 7617: `user:p@ss`.
        let asked = head.to_ascii_lowercase().contains("proxy-authorization: basic dxnlcjpwqhnz");
        assert!(asked, "{head}");
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
        client.write_all(answer.as_bytes()).unwrap();
        client.write_all(&generated(0, SIZE)).unwrap();
    });
    fetch(&url, by(format!("http://user:p%40ss@{addr}"))).unwrap();
    proxy.join().unwrap();

    // One that is excepted is not asked.
    let excepted = GetOptions { no_proxy: vec!["127.0.0.1".into()], ..by(addr.to_string()) };
    assert_eq!(fetch(&url, excepted).unwrap().peer, server.addr);
}

#[test]
fn a_proxy_that_refuses_is_told_from_a_server_that_does() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let proxy = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let head = read_head(&mut client);
        assert!(head.starts_with("CONNECT nowhere.invalid:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Basic dXNlcjpwQHNz"), "{head}");
        client.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let https_proxy = Some(format!("http://user:p%40ss@{addr}"));
    let options = GetOptions { https_proxy, retries: 0, ..GetOptions::default() };
    let error = fetch("https://nowhere.invalid/file", options).unwrap_err();
    assert!(matches!(error, GetError::Proxy { .. }), "{error}");
    assert!(error.to_string().contains("403 Forbidden"), "{error}");
    assert!(!error.to_string().contains("p%40ss"), "{error}");
    proxy.join().unwrap();
}

/// Both limiters keep the mean, ours over a second and a half; how smooth they are is measured by
/// bench/limiter.sh. curl's lets pass at once what the limit carries in a second.
#[test]
fn a_limit_holds_for_all_connections_together() {
    let server = Serving::start(ServerOptions::default());
    let url = server.url(&format!("/bytes/{SIZE}"));
    let limit_rate: Option<Rate> = Some("10mbit".parse().unwrap());
    // 2 MB at 10 Mbit/s are 1.6 s; a debt of a quarter of a second may be paid back.
    for (limiter, connections, least) in [
        (LimiterKind::Smooth, 1, Duration::from_millis(1_400)),
        (LimiterKind::Smooth, 3, Duration::from_millis(1_400)),
        (LimiterKind::Sleep, 1, Duration::from_millis(600)),
    ] {
        let connections = Connections::Fixed(connections);
        let options = GetOptions { limit_rate, limiter, connections, ..GetOptions::default() };
        let got = fetch(&url, options).unwrap();
        assert!(got.timing.total >= least, "{limiter:?}: {}", got.timing.total);
    }
}
