//! `fullpipe link -- CMD`: a connection that is refused, reset, unreachable or unanswered ends for
//! the command as it does without the link.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use fullpipe_model::units::Duration;
use nix::sys::socket::{setsockopt, sockopt};

use crate::Case;
use crate::attach::World;
use crate::need::Need;
use crate::program::{Program, User};

const CURL: Need = Need::Program("curl");
const NFT: Need = Need::Program("nft");
const PYTHON: Need = Need::Program("python3");

pub const CASES: &[Case] = &[
    ("a_reset_server_is_no_good_end", &[CURL, NFT], a_reset_server_is_no_good_end),
    ("a_reset_client_is_no_good_end", &[NFT, PYTHON], a_reset_client_is_no_good_end),
    ("a_killed_upload_is_no_good_end", &[NFT, PYTHON], a_killed_upload_is_no_good_end),
    ("a_refusal_is_a_refusal", &[CURL, NFT, PYTHON], a_refusal_is_a_refusal),
    (
        "what_is_unreachable_is_unreachable",
        &[Need::Root, NFT, PYTHON],
        what_is_unreachable_is_unreachable,
    ),
];

/// curl's codes (`curl.1`, exit codes).
const COULD_NOT_CONNECT: i32 = 7;
const FAILED_TO_RECEIVE: i32 = 56;
const SOON: std::time::Duration = std::time::Duration::from_secs(20);

/// Has `stream` end by a reset when it is closed.
fn reset_at_close(stream: &TcpStream) {
    let now = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(&stream.as_fd(), sockopt::Linger, &now).unwrap();
}

/// A web server that answers every request with `head` and some of its body, and resets the
/// connection; its port.
fn resetting_server(head: &'static [u8], body: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(head);
            let _ = stream.write_all(&vec![b'x'; body]);
            reset_at_close(&stream);
        }
    });
    port
}

fn a_reset_server_is_no_good_end() {
    let program = Program::new();
    let half_a_file = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    // Without a promised length, only the reset distinguishes half a file from a whole one.
    let half_of_something = b"HTTP/1.0 200 OK\r\n\r\n";
    for port in
        [resetting_server(half_a_file, 500_000), resetting_server(half_of_something, 50_000)]
    {
        let get = ["curl", "-q", "-sS", "-o/dev/null", "--max-time", "30"];
        let direct = Command::new(get[0])
            .args(&get[1..])
            .arg(format!("http://127.0.0.1:{port}/"))
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(direct.code(), Some(FAILED_TO_RECEIVE), "without a link");
        let there = format!("http://{{server}}:{port}/");
        let words = ["link", "-q", "--rtt", "10ms", "--rate", "50mbit", "--"];
        let finished = program.run(&[&words[..], &get[..], &[&there]].concat());
        assert_eq!(finished.code, Some(FAILED_TO_RECEIVE), "{finished:?}");
    }
}

/// The server sees a reset as it would without the link, after the data before it.
fn a_reset_client_is_no_good_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, ends) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut start = [0; 5];
            let read = stream.read_exact(&mut start).and_then(|()| {
                stream.write_all(b"!")?;
                stream.read(&mut [0; 1])
            });
            let _ = sender.send((start, read.map_err(|error| error.kind())));
        }
    });
    let line = format!(
        "import os, socket, struct
s = socket.create_connection((os.environ.get('FULLPIPE_SERVER', '127.0.0.1'), {port}), 20)
s.sendall(b'start')
assert s.recv(1) == b'!'
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.close()
"
    );
    let as_without = (*b"start", Err(std::io::ErrorKind::ConnectionReset));
    assert!(Command::new("python3").args(["-c", &line]).status().unwrap().success());
    assert_eq!(ends.recv_timeout(SOON).unwrap(), as_without, "without a link");
    let program = Program::new();
    let finished = program.run(&["link", "-q", "--rtt", "10ms", "--", "python3", "-c", &line]);
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(ends.recv_timeout(SOON).unwrap(), as_without, "behind the link");
}

/// Killed in the middle of an upload, the link resets it: half of it must not look like all of it.
/// What was whole before stays whole.
fn a_killed_upload_is_no_good_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, ends) = channel();
    let (begins, begun) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (sender, begins) = (sender.clone(), begins.clone());
            std::thread::spawn(move || {
                let (mut kind, mut buffer, mut got) = ([0; 1], vec![0; 65_536], 0);
                let whole = stream.read_exact(&mut kind).and_then(|()| {
                    begins.send(()).unwrap();
                    loop {
                        match stream.read(&mut buffer)? {
                            0 => return Ok(got),
                            length => got += length,
                        }
                    }
                });
                let _ = begins.send(());
                sender.send((kind[0], whole.map_err(|error| error.kind()))).unwrap();
                // It stays open: the command waits for an answer when the link is killed.
                let _ = stream.read(&mut buffer);
            });
        }
    });
    let line = format!(
        "import os, socket
where = (os.environ['FULLPIPE_SERVER'], {port})
whole = socket.create_connection(where, 20)
whole.sendall(b'w' + b'.' * 300000)
whole.shutdown(socket.SHUT_WR)
half = socket.create_connection(where, 20)
half.sendall(b'h')
while True: half.sendall(b'.' * 65536)
"
    );
    let program = Program::new();
    let words = ["link", "-q", "--rtt", "10ms", "--rate", "50mbit", "--", "python3", "-c", &line];
    let mut running = program.start(&mut program.command(&words));
    // Both began, and the first has ended.
    (0..3).for_each(|_| begun.recv_timeout(SOON).unwrap());
    assert_eq!(ends.recv_timeout(SOON).unwrap(), (b'w', Ok(300_000)));
    running.kill_9();
    let end = ends.recv_timeout(SOON).unwrap();
    assert_eq!(end, (b'h', Err(std::io::ErrorKind::ConnectionReset)));
    running.end();
}

/// A connection to each address, and how it ends.
fn attempts(addresses: &[&str], port: u16) -> String {
    format!(
        "import errno, socket
for address in {addresses:?}:
    try:
        socket.create_connection((address, {port}), 30)
        print('connected')
    except OSError as error:
        print(errno.errorcode.get(error.errno, error))
"
    )
}

fn a_refusal_is_a_refusal() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let line = attempts(&["{server}", "fd46:7069:7065::1"], free);
    for user in [User::Own, User::Ordinary] {
        let program = Program::of(user);
        let done = program.run(&["link", "-q", "--rtt", "10ms", "--", "python3", "-c", &line]);
        assert_eq!(
            (done.code, done.out.as_str()),
            (Some(0), "ECONNREFUSED\nECONNREFUSED\n"),
            "{done:?}"
        );
        let there = format!("http://{{server}}:{free}/");
        let words =
            ["link", "-q", "--rtt", "10ms", "--", "curl", "-q", "-sS", "--max-time", "30", &there];
        let done = program.run(&words);
        assert_eq!(done.code, Some(COULD_NOT_CONNECT), "{done:?}");
    }
}

/// From a machine with a neighbour and no other way: no network, a neighbour that does not answer,
/// and one that does.
fn what_is_unreachable_is_unreachable() {
    let (world, program) = (World::new(), Program::new());
    let line = attempts(&["192.0.2.1", "10.99.0.77", "10.99.0.2"], world.ports[0]);
    let mut direct = Command::new("python3");
    direct.args(["-c", &line]);
    world.here.start_in(&mut direct).unwrap();
    let direct = String::from_utf8(direct.output().unwrap().stdout).unwrap();
    assert_eq!(direct, "ENETUNREACH\nEHOSTUNREACH\nconnected\n", "without a link");
    let linked = world.run(&program, &["-q", "--rtt", "10ms", "--", "python3", "-c", &line]);
    assert_eq!((linked.code, linked.out.as_str()), (Some(0), direct.as_str()), "{linked:?}");
    assert!(linked.took < Duration::from_secs(25), "nobody waits for a timeout: {linked:?}");
}
