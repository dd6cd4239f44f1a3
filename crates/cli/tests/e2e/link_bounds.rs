//! `fullpipe link -- CMD`: how much the gateway carries at once. Finished connections free their
//! places, excess ones are refused and reported, and nothing waits forever.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use fullpipe_model::units::Duration;
use nix::sys::socket::{Backlog, listen};

use crate::Case;
use crate::need::Need;
use crate::program::Program;

const NFT: Need = Need::Program("nft");
const PYTHON: Need = Need::Program("python3");

pub const CASES: &[Case] = &[
    ("a_black_hole_gives_its_places_back", &[NFT, PYTHON], a_black_hole_gives_its_places_back),
    (
        "few_descriptors_refuse_and_hang_nothing",
        &[NFT, PYTHON],
        few_descriptors_refuse_and_hang_nothing,
    ),
    ("the_command_has_its_own_limit_of_descriptors", &[NFT], the_command_has_its_own_limit),
];

/// A service that sends back what it gets.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::Builder::new()
                .stack_size(64 << 10)
                .spawn(move || {
                    let mut buffer = [0; 16];
                    while let Ok(length @ 1..) = stream.read(&mut buffer) {
                        let _ = stream.write_all(&buffer[..length]);
                    }
                })
                .unwrap();
        }
    });
    port
}

/// A port whose queue of connections is full, so that the kernel answers no SYN; and what fills it.
fn black_hole() -> (u16, TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listen(&listener, Backlog::new(0).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = |address: &SocketAddr| {
        TcpStream::connect_timeout(address, std::time::Duration::from_millis(500))
    };
    let mut filling = Vec::new();
    while let Ok(stream) = connect(&address) {
        filling.push(stream);
    }
    (address.port(), listener, filling)
}

/// More connections than there are places, each given up at once: a good server is still reached
/// within seconds.
fn a_black_hole_gives_its_places_back() {
    let (hole, _listener, _filling) = black_hole();
    let line = format!(
        "import os, socket, time
server = os.environ['FULLPIPE_SERVER']
for batch in range(9):
    tries = []
    for number in range(250):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex((server, {hole}))
        tries.append(s)
    time.sleep(0.2)
    for s in tries: s.close()
start = time.monotonic()
while True:
    try:
        s = socket.create_connection((server, {good}), 20)
        break
    except ConnectionRefusedError:
        assert time.monotonic() < start + 20
        time.sleep(0.1)
s.settimeout(20)
s.sendall(b'x')
assert s.recv(1) == b'x'
print('reached')
",
        good = echo()
    );
    let program = Program::new();
    let words = ["link", "--json", "--linger", "1s", "--rtt", "1ms", "--", "python3", "-c", &line];
    let done = program.run(&words);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "reached\n"), "{done:?}");
    assert!(done.took < Duration::from_secs(90), "{done:?}");
}

/// With 1024 descriptors and no way to get more, each of 700 connections works or is refused, and
/// the link reports that; when they have ended there is room again.
fn few_descriptors_refuse_and_hang_nothing() {
    let line = format!(
        "import os, socket, time
server = os.environ['FULLPIPE_SERVER']
def connect():
    s = socket.create_connection((server, {port}), 30)
    s.settimeout(30)
    s.sendall(b'x')
    assert s.recv(1) == b'x'
    return s
works, refused = [], 0
for number in range(700):
    try: works.append(connect())
    except ConnectionRefusedError: refused += 1
print(len(works), refused)
for s in works: s.close()
start = time.monotonic()
while True:
    try: connect(); break
    except ConnectionRefusedError:
        assert time.monotonic() < start + 20
        time.sleep(0.1)
",
        port = echo()
    );
    let program = Program::new();
    let binary = program.binary().to_str().unwrap();
    let limited = ["sh", "-c", "ulimit -n 1024 && exec \"$@\"", "sh", binary];
    let words = [
        "link",
        "--report",
        "report.json",
        "--linger",
        "1s",
        "--rtt",
        "1ms",
        "--",
        "python3",
        "-c",
        &line,
    ];
    let done = program.start(&mut program.command_by(&[&limited[..], &words].concat())).end();
    assert_eq!(done.code, Some(0), "{done:?}");
    let counts: Vec<u64> =
        done.out.split_whitespace().map(|count| count.parse().unwrap()).collect();
    let &[works, refused] = &counts[..] else { panic!("{done:?}") };
    assert_eq!(works + refused, 700, "{done:?}");
    assert!(works >= 300 && refused > 0, "{done:?}");
    assert!(done.took < Duration::from_secs(60), "{done:?}");
    assert!(
        done.err.contains("the gateway has as many connections as it takes at once"),
        "{done:?}"
    );
    let report = std::fs::read_to_string(program.work().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["gateway"]["refused_connections"].as_u64().unwrap() >= refused, "{report:#}");
}

/// The link raises its own limit, and a program that had a low limit keeps it.
fn the_command_has_its_own_limit() {
    let program = Program::new();
    let binary = program.binary().to_str().unwrap();
    let limited = ["sh", "-c", "ulimit -Sn 512 && exec \"$@\"", "sh", binary, "link", "-q", "--"];
    let done = program
        .start(&mut program.command_by(&[&limited[..], &["sh", "-c", "ulimit -Sn"]].concat()))
        .end();
    assert_eq!((done.code, done.out.as_str()), (Some(0), "512\n"), "{done:?}");
}
