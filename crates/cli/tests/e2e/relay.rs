//! `fullpipe relay` and `fullpipe serve --relay`: real programs through them byte for byte, ends
//! and errors as they are, carriers and ends that are killed, and peers that are not let in.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket};

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Running, until, until_told};

pub const CASES: &[Case] = &[
    ("nginx_to_curl_byte_for_byte", &[Need::Program("nginx"), Need::Program("curl")], nginx_curl),
    ("half_closed_streams_stay_open_the_other_way", &[], half_close),
    ("refused_and_reset_stay_what_they_are", &[], refused_and_reset),
    ("carriers_that_are_cut_lose_nothing", &[], carriers_cut),
    ("an_end_that_is_killed_resets_its_streams", &[], ends_killed),
    ("two_hundred_streams_at_once", &[], many_streams),
    ("destinations_need_a_rule", &[], allow_list),
    ("proxies_connect_where_their_users_say", &[], proxies),
    ("keys_are_needed_and_checked", &[], keys),
    ("a_signal_drains_and_a_second_one_ends", &[], signals),
    ("a_peer_that_breaks_the_protocol_is_cut", &[], violation),
];

pub const PATIENCE: Duration = Duration::from_secs(30);

/// The address that a program said on standard error after `words`.
pub fn said_address(running: &Running, words: &str) -> SocketAddr {
    let mut address = None;
    until_told(
        words,
        PATIENCE,
        || running.err(),
        || {
            let said = running.err();
            let mut lines = said.lines();
            let word = lines.find_map(|line| line.strip_prefix(words));
            address = word.and_then(|word| word.trim().parse().ok());
            address.is_some()
        },
    );
    address.unwrap()
}

pub fn far_end(program: &Program, listen: &str, words: &[&str]) -> (Running, SocketAddr) {
    let all = [&["serve", "--listen", listen, "--relay"], words].concat();
    let daemon = program.start(&mut program.command(&all));
    let address = said_address(&daemon, "serving tests on ");
    (daemon, address)
}

pub fn near_end(
    program: &Program,
    server: SocketAddr,
    to: SocketAddr,
    words: &[&str],
) -> (Running, SocketAddr) {
    near_end_at("127.0.0.1:0", program, server, to, words)
}

/// The same at an address that users know.
pub fn near_end_at(
    listen: &str,
    program: &Program,
    server: SocketAddr,
    to: SocketAddr,
    words: &[&str],
) -> (Running, SocketAddr) {
    let (server, to) = (server.to_string(), to.to_string());
    let fixed = ["relay", "--server", &server, "--listen", listen, "--to", &to];
    let near = program.start(&mut program.command(&[&fixed[..], words].concat()));
    let address = said_address(&near, "listening on ");
    (near, address)
}

/// Both ends on loopback, and where users connect to.
pub struct Pair {
    pub near: Running,
    pub far: Running,
    pub address: SocketAddr,
}

pub fn pair(program: &Program, to: SocketAddr, words: &[&str]) -> Pair {
    let (far, server) = far_end(program, "127.0.0.1:0", &["--allow", "127.0.0.1:*"]);
    let (near, address) = near_end(program, server, to, words);
    Pair { near, far, address }
}

/// Bytes that tell their place.
pub fn content(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let word = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(word).collect();
    bytes.truncate(length);
    bytes
}

/// A server that does `serve` with each connection, on a thread of its own. It lives as long as the
/// trials' process.
pub fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE.into())).unwrap();
    stream.set_write_timeout(Some(PATIENCE.into())).unwrap();
    stream
}

/// The next close of this socket is a reset.
pub fn reset(stream: TcpStream) {
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
}

/// Everything up to the end, or up to an error.
fn read_all(stream: &mut TcpStream) -> (Vec<u8>, std::io::Result<()>) {
    let mut all = Vec::new();
    let end = stream.read_to_end(&mut all).map(drop);
    (all, end)
}

/// An address that refuses connections for as long as its socket lives: bound, so that nobody else
/// gets the port, and not listening.
pub fn refusing() -> (OwnedFd, SocketAddr) {
    let held = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(held.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    let port = getsockname::<SockaddrIn>(held.as_raw_fd()).unwrap().port();
    (held, SocketAddr::from(([127, 0, 0, 1], port)))
}

/// Echoes until the end, and then ends.
pub fn echo(mut stream: TcpStream) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

fn nginx_curl() {
    let program = Program::new();
    let file = content(60_000_007);
    program.file("large.bin", &file);
    // A port that is free now; nginx cannot be asked which one it chose.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let root = program.work().display().to_string();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.iter().fold(String::new(), |mut text, kind| {
        let _ = writeln!(text, "{kind}_temp_path {root}/{kind};");
        text
    });
    let user = if nix::unistd::geteuid().is_root() { "user root;" } else { "" };
    program.file(
        "nginx.conf",
        format!(
            "daemon off; master_process off; {user} pid {root}/pid; error_log {root}/errors;
             events {{}}
             http {{ access_log off; {temporary}
             server {{ listen 127.0.0.1:{port}; root {root}; }} }}"
        ),
    );
    let configuration = format!("{root}/nginx.conf");
    let _nginx = program.start(&mut program.command_by(&["nginx", "-c", &configuration]));
    let origin = SocketAddr::from(([127, 0, 0, 1], port));
    until("nginx listens", PATIENCE, || TcpStream::connect(origin).is_ok());
    for carriers in ["1", "5"] {
        let pair = pair(&program, origin, &["--carriers", carriers]);
        let url = format!("http://{}/large.bin", pair.address);
        let fetch = ["curl", "-sS", "--max-time", "60", "-o", "got.bin", &url];
        let fetched = program.start(&mut program.command_by(&fetch)).end();
        assert_eq!(fetched.code, Some(0), "{fetched:?} {}", pair.near.err());
        let got = std::fs::read(program.work().join("got.bin")).unwrap();
        assert!(got == file, "{} of {} bytes, or others", got.len(), file.len());
    }
}

fn half_close() {
    let program = Program::new();
    // It answers when it has everything, with the same backwards.
    let to = server(|mut stream| {
        let (mut all, end) = read_all(&mut stream);
        end.unwrap();
        all.reverse();
        stream.write_all(&all).unwrap();
    });
    let pair = pair(&program, to, &["--carriers", "3"]);
    let sent = content(3_000_000);
    let mut user = connect(pair.address);
    user.write_all(&sent).unwrap();
    user.shutdown(Shutdown::Write).unwrap();
    let (mut got, end) = read_all(&mut user);
    end.unwrap();
    got.reverse();
    assert!(got == sent, "{} of {} bytes", got.len(), sent.len());
    // The other way: the server ends first, and still hears the user.
    let (sender, heard) = std::sync::mpsc::channel();
    let sender = Mutex::new(sender);
    let to = server(move |mut stream| {
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let (all, end) = read_all(&mut stream);
        sender.lock().unwrap().send((all, end.is_ok())).unwrap();
    });
    let pair = self::pair(&program, to, &[]);
    let mut user = connect(pair.address);
    let (got, end) = read_all(&mut user);
    assert_eq!((got.as_slice(), end.is_ok()), (&b"bye"[..], true));
    user.write_all(&sent).unwrap();
    drop(user);
    let (all, has_ended) = heard.recv_timeout(PATIENCE.into()).unwrap();
    assert!(has_ended && all == sent, "{} of {} bytes", all.len(), sent.len());
}

fn refused_and_reset() {
    let program = Program::new();
    let (_held, closed) = refusing();
    let pair = pair(&program, closed, &[]);
    let (got, end) = read_all(&mut connect(pair.address));
    assert_eq!((got.len(), end.unwrap_err().kind()), (0, ErrorKind::ConnectionReset));
    until("the log says why", PATIENCE, || pair.near.err().contains("connection refused"));
    // A server that resets in the middle of its answer.
    let to = server(|mut stream| {
        stream.write_all(b"part").unwrap();
        let _ = stream.read(&mut [0]);
        reset(stream);
    });
    let pair = self::pair(&program, to, &[]);
    let mut user = connect(pair.address);
    let mut part = [0; 4];
    user.read_exact(&mut part).unwrap();
    user.write_all(b"x").unwrap();
    let (got, end) = read_all(&mut user);
    assert_eq!((got.len(), end.unwrap_err().kind()), (0, ErrorKind::ConnectionReset));
    // A user that resets: the server hears of it, whether it reads or writes.
    let (sender, heard) = std::sync::mpsc::channel();
    let sender = Mutex::new(sender);
    let to = server(move |mut stream| {
        let (all, end) = read_all(&mut stream);
        sender.lock().unwrap().send((all, end.map_err(|error| error.kind()))).unwrap();
    });
    let pair = self::pair(&program, to, &[]);
    let mut user = connect(pair.address);
    user.write_all(b"begun").unwrap();
    // The stream is open once its bytes are there: what is reset before that is not heard of.
    std::thread::scope(|scope| {
        scope.spawn(|| reset(user));
        let (_, end) = heard.recv_timeout(PATIENCE.into()).unwrap();
        assert_eq!(end, Err(ErrorKind::ConnectionReset));
    });
}

/// A TCP proxy whose connections can be cut.
pub struct Cutter {
    pub address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
    passed: Arc<AtomicUsize>,
}

pub fn cutter(to: SocketAddr) -> Cutter {
    let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let passed: Arc<AtomicUsize> = Arc::default();
    let (kept, counted) = (Arc::clone(&open), Arc::clone(&passed));
    let address = server(move |stream| {
        let Ok(onward) = TcpStream::connect(to) else { return };
        let clones = [stream.try_clone().unwrap(), onward.try_clone().unwrap()];
        kept.lock().unwrap().extend(clones);
        let pass = |mut from: TcpStream, mut to: TcpStream| {
            let mut bytes = [0; 16 << 10];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                counted.fetch_add(count, Ordering::Relaxed);
                if to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        };
        std::thread::scope(|scope| {
            let (from, to) = (stream.try_clone().unwrap(), onward.try_clone().unwrap());
            scope.spawn(|| pass(from, to));
            pass(onward, stream);
        });
    });
    Cutter { address, open, passed }
}

impl Cutter {
    /// Bytes that went through it, both ways.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }

    /// Cuts the first `count` connections.
    pub fn cut(&self, count: usize) {
        let mut open = self.open.lock().unwrap();
        let end = open.len().min(2 * count);
        for stream in open.drain(..end) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn carriers_cut() {
    let program = Program::new();
    let sent = Arc::new(content(60_000_000));
    let answer = Arc::clone(&sent);
    let to = server(move |mut stream| {
        let _ = stream.write_all(&answer);
    });
    let (far, server) = far_end(&program, "127.0.0.1:0", &["--allow", "127.0.0.1:*"]);
    let cutter = cutter(server);
    let (near, address) = near_end(&program, cutter.address, to, &["--carriers", "4"]);
    let mut user = connect(address);
    let mut got = vec![0; sent.len()];
    let (mut at, mut cuts) = (0, 0);
    while at < got.len() {
        let end = (at + (256 << 10)).min(got.len());
        match user.read(&mut got[at..end]) {
            Ok(0) => panic!("ended after {at} bytes and {cuts} cuts: {}", near.err()),
            Ok(count) => at += count,
            Err(error) => panic!("{error} after {at} bytes and {cuts} cuts: {}", near.err()),
        }
        // One carrier at a time, and twice all of them.
        let due = at / (5 << 20);
        if due > cuts {
            cuts = due;
            cutter.cut(if cuts.is_multiple_of(4) { usize::MAX / 2 } else { 1 });
        }
    }
    assert_eq!(user.read(&mut [0]).unwrap(), 0);
    assert!(got == *sent && cuts >= 8, "{cuts} cuts");
    assert!(cutter.passed() > sent.len());
    drop((near, far));
}

fn ends_killed() {
    let program = Program::new();
    let to = server(|mut stream| {
        // More than anything between holds: it is still writing when an end is killed.
        let bytes = vec![7; 1 << 20];
        while stream.write_all(&bytes).is_ok() {}
    });
    let allow = ["--allow", "127.0.0.1:*"];
    let (mut far, server) = far_end(&program, "127.0.0.1:0", &allow);
    let (mut near, address) = near_end(&program, server, to, &["--carriers", "2"]);
    let mut user = connect(address);
    user.read_exact(&mut [0; 100_000]).unwrap();
    far.kill_9();
    assert!(far.end().code.is_none());
    let (far, _) = far_end(&program, &server.to_string(), &allow);
    let (_, end) = read_all(&mut user);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset, "{}", near.err());
    // The same near end serves again.
    let mut user = connect(address);
    user.read_exact(&mut [0; 100_000]).unwrap();
    near.kill_9();
    let (_, end) = read_all(&mut user);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    drop(far);
}

fn many_streams() {
    let program = Program::new();
    let pair = pair(&program, server(echo), &["--carriers", "4"]);
    let failed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..200 {
            let (failed, address) = (&failed, pair.address);
            scope.spawn(move || {
                let sent = content(20_000 + 500 * number);
                let mut user = connect(address);
                let mut writer = user.try_clone().unwrap();
                let is_whole = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        let _ = writer.write_all(&sent);
                        let _ = writer.shutdown(Shutdown::Write);
                    });
                    let (got, end) = read_all(&mut user);
                    end.is_ok() && got == sent
                });
                failed.fetch_add(usize::from(!is_whole), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(failed.into_inner(), 0, "{} {}", pair.near.err(), pair.far.err());
}

fn allow_list() {
    let program = Program::new();
    let was_reached = Arc::new(AtomicBool::new(false));
    let reached = Arc::clone(&was_reached);
    let to = server(move |_| reached.store(true, Ordering::Relaxed));
    // Neither any name nor a wide network means the far host itself.
    let words = ["--allow", "*:*", "--allow", "0.0.0.0/0:*", "--allow", "10.0.0.1:1"];
    let (far, server) = far_end(&program, "127.0.0.1:0", &words);
    let (near, address) = near_end(&program, server, to, &[]);
    let (got, end) = read_all(&mut connect(address));
    assert_eq!((got.len(), end.unwrap_err().kind()), (0, ErrorKind::ConnectionReset));
    until("the near end says why", PATIENCE, || near.err().contains("needs --allow for it"));
    assert!(far.err().contains("no --allow permits it"), "{}", far.err());
    assert!(!was_reached.load(Ordering::Relaxed));
    for (words, code, why) in [
        (&["serve", "--relay"][..], 2, "--allow"),
        (&["serve", "--relay", "--allow", "nowhere"], 2, "HOST:PORT"),
        (&["relay", "--server", "::1", "--listen", "127.0.0.1:0", "--to", "x"], 2, "HOST:PORT"),
    ] {
        let refused = program.run(words);
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.err.contains(why), "{refused:?}");
    }
}

fn proxies() {
    let program = Program::new();
    let to = server(echo);
    let (_held, closed) = refusing();
    let (far, address) = far_end(&program, "127.0.0.1:0", &["--allow", "127.0.0.1:*"]);
    let server = address.to_string();
    let proxy = |kind: &str| {
        let words = ["relay", "--server", &server, "--listen", "127.0.0.1:0", kind];
        let near = program.start(&mut program.command(&words));
        let address = said_address(&near, "listening on ");
        (near, address)
    };
    let (_socks, socks) = proxy("--socks5");
    let (_http, http) = proxy("--http-connect");
    // The stream's first bytes come with the request, and are not lost.
    for (address, is_socks) in [(socks, true), (http, false)] {
        for (to, is_open) in [(to, true), (closed, false)] {
            let request = match is_socks {
                true => {
                    let name = to.ip().to_string();
                    let head = [5, 1, 0, 5, 1, 0, 3, name.len() as u8];
                    [&head[..], name.as_bytes(), &to.port().to_be_bytes()].concat()
                }
                false => format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").into_bytes(),
            };
            let mut user = connect(address);
            user.write_all(&[&request[..], b"early"].concat()).unwrap();
            user.shutdown(Shutdown::Write).unwrap();
            let (got, _) = read_all(&mut user);
            let got = String::from_utf8_lossy(&got).into_owned();
            let expected = match (is_socks, is_open) {
                (true, true) => "\u{5}\0\u{5}\0\0\u{1}",
                (true, false) => "\u{5}\0\u{5}\u{5}\0\u{1}",
                (false, true) => "HTTP/1.1 200 ",
                (false, false) => "HTTP/1.1 502 ",
            };
            assert!(got.starts_with(expected), "{got:?}, not {expected:?}");
            assert_eq!(got.ends_with("early"), is_open, "{got:?}");
        }
    }
    drop(far);
}

fn keys() {
    let program = Program::new();
    let key = |file: &str| {
        let made = program.run(&["keygen", file, "--json"]);
        made.json()["public_key"].as_str().unwrap().to_owned()
    };
    let (server_key, client) = (key("server.key"), key("client.key"));
    let stranger = key("stranger.key");
    program.file("clients", format!("{client}\n"));
    let far = ["--key", "server.key", "--allow-key", "clients", "--allow", "127.0.0.1:*"];
    let (far, address) = far_end(&program, "127.0.0.1:0", &far);
    let to = server(echo);
    let by = |key: &str, server: &str| {
        near_end(&program, address, to, &["--key", key, "--server-key", server])
    };
    let sent = content(5_000_000);
    let (near, users) = by("client.key", &server_key);
    let mut user = connect(users);
    let mut writer = user.try_clone().unwrap();
    let (got, end) = std::thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&sent).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        read_all(&mut user)
    });
    assert!(end.is_ok() && got == sent, "{} bytes, {}", got.len(), near.err());
    for (key, server, why) in
        [("stranger.key", &server_key, "--allow-key"), ("client.key", &stranger, "--server-key")]
    {
        let (near, _) = by(key, server);
        until("the near end says what to compare", PATIENCE, || near.err().contains(why));
    }
    let (plain, _) = near_end(&program, address, to, &[]);
    until("a carrier without keys is not let in", PATIENCE, || plain.err().contains("no session"));
    drop(far);
    for words in [
        &["serve", "--relay", "--allow", "a.example:1", "--listen", "0.0.0.0:0"][..],
        &["relay", "--server", "192.0.2.1", "--listen", "127.0.0.1:0", "--to", "a.example:1"],
    ] {
        let refused = program.run(words);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("fullpipe keygen"), "{refused:?}");
    }
}

fn signals() {
    let program = Program::new();
    let Pair { near, far, address } = pair(&program, server(echo), &[]);
    let mut user = connect(address);
    let mut told = [0; 5];
    user.write_all(b"hello").unwrap();
    user.read_exact(&mut told).unwrap();
    near.signal(Signal::SIGTERM);
    until("it listens no more", PATIENCE, || TcpStream::connect(address).is_err());
    // The stream goes on, and ends in order.
    user.write_all(b"again").unwrap();
    user.shutdown(Shutdown::Write).unwrap();
    let (got, end) = read_all(&mut user);
    assert_eq!((got.as_slice(), end.is_ok()), (&b"again"[..], true));
    let ended = near.end();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(ended.err.ends_with("stopped\n"), "{ended:?}");
    far.signal(Signal::SIGTERM);
    assert_eq!(far.end().code, Some(130));
    // A second signal does not wait for streams, and resets them.
    let Pair { near, far, address } = pair(&program, server(echo), &[]);
    let mut user = connect(address);
    user.write_all(b"hello").unwrap();
    user.read_exact(&mut told).unwrap();
    far.signal(Signal::SIGTERM);
    until("the far end drains", PATIENCE, || far.err().contains("no new streams"));
    near.signal(Signal::SIGTERM);
    until("it listens no more", PATIENCE, || TcpStream::connect(address).is_err());
    far.signal(Signal::SIGINT);
    assert_eq!(far.end().code, Some(130));
    assert_eq!(read_all(&mut user).1.unwrap_err().kind(), ErrorKind::ConnectionReset);
    near.signal(Signal::SIGINT);
    assert_eq!(near.end().code, Some(130));
}

fn violation() {
    let program = Program::new();
    let (far, address) = far_end(&program, "127.0.0.1:0", &["--allow", "127.0.0.1:*"]);
    let header = |kind: u8, length: u8, stream: u8| [kind, 0, 0, length, 0, 0, 0, stream];
    let hello = [&header(0, 19, 0)[..], &[0, 1], &[9; 16], &[0]].concat();
    // HELLO of another version; no frame at all; a stream that was never opened; a chunk that
    // begins where the credit ends.
    let data = [&header(8, 9, 7)[..], &[0; 8], b"x"].concat();
    let open = [&header(5, 19, 1)[..], &[0, 0, 0, 0, 0, 1, 0, 0], b"127.0.0.1:1"].concat();
    let beyond = [&header(8, 9, 1)[..], &[1, 0, 0, 0, 0, 0, 0, 0], b"x"].concat();
    for (bytes, why) in [
        ([&header(0, 19, 0)[..], &[0, 9], &[9; 16], &[0]].concat(), "version"),
        ([&hello[..], &[99; 8]].concat(), "kind 99 does not exist"),
        ([&hello[..], &data].concat(), "never opened"),
        ([&hello[..], &open, &beyond].concat(), "beyond the credit"),
    ] {
        let mut peer = connect(address);
        peer.write_all(&[b"R", &bytes[..]].concat()).unwrap();
        let (answer, _) = read_all(&mut peer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.contains(why), "{why}: {answer:?}");
    }
    until("the log says why", PATIENCE, || far.err().matches("was cut").count() == 3);
    // Whoever says nothing, or nonsense, gets nothing, and others are served.
    let mut silent = connect(address);
    silent.write_all(b"R").unwrap();
    let pair = pair(&program, server(echo), &[]);
    let mut user = connect(pair.address);
    user.write_all(b"hello").unwrap();
    user.read_exact(&mut [0; 5]).unwrap();
}
