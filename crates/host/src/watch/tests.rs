//! Loopback connections of our own, as the watch sees them.

use super::*;
use fullpipe_flow::account::Owner;
use fullpipe_flow::limit::Limit;
use fullpipe_model::limit::End;
use fullpipe_model::units::Duration;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A connection over loopback: the two ends.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    (near, far)
}

fn of<'w>(watch: &'w Watch, end: &TcpStream) -> Option<&'w WatchedSocket> {
    let (local, remote) = (end.local_addr().unwrap(), end.peer_addr().unwrap());
    watch.busy().into_iter().find(|socket| (socket.local, socket.remote) == (local, remote))
}

/// A listener at a port that no system gives to clients: ports tell which end is the server.
fn server() -> TcpListener {
    let mut ports = 20_000..30_000_u16;
    ports.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).unwrap()
}

#[test]
fn a_server_that_does_not_answer_has_the_time_at_both_ends() {
    let listener = server();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    let mut watch = Watch::open(Namespaces::Own).unwrap();
    watch.look().unwrap();
    near.write_all(b"how much?").unwrap();
    far.read_exact(&mut [0; 9]).unwrap();
    for _ in 0..10 {
        std::thread::park_timeout(std::time::Duration::from_millis(60));
        watch.look().unwrap();
    }
    for end in [&near, &far] {
        let parts = of(&watch, end).unwrap().account();
        let all: Duration = parts.iter().map(|part| part.time).sum();
        let first = parts[0];
        assert_eq!(first.owner, Owner::ServerApplication, "{parts:?}");
        assert!(first.time.saturating_mul(10) > all.saturating_mul(8), "{parts:?}");
    }
}

#[test]
fn a_connection_in_a_pause_between_two_bursts_is_busy_at_the_first_look() {
    let listener = server();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    let mut watch = Watch::open(Namespaces::Own).unwrap();
    watch.look().unwrap();
    assert!(of(&watch, &near).is_none(), "nothing has moved");
    // The server's data is the last: no client waits for an answer.
    far.write_all(b"a burst").unwrap();
    near.read_exact(&mut [0; 7]).unwrap();
    let mut watch = Watch::open(Namespaces::Own).unwrap();
    watch.look().unwrap();
    assert!(of(&watch, &near).is_some() && of(&watch, &far).is_some());
}

#[test]
fn a_reader_that_does_not_read_is_found_from_both_ends() {
    let (mut near, far) = connection();
    near.set_nonblocking(true).unwrap();
    let mut watch = Watch::open(Namespaces::Own).unwrap();
    watch.look().unwrap();
    assert!(of(&watch, &near).is_none(), "nothing has moved");
    for _ in 0..30 {
        // Nobody reads: it fills both buffers, and then waits.
        while near.write(&[0; 65_536]).is_ok() {}
        std::thread::park_timeout(std::time::Duration::from_millis(60));
        watch.look().unwrap();
    }
    let sender = of(&watch, &near).unwrap();
    assert_eq!(sender.role(), End::Sender);
    assert!(sender.lost() > Duration::from_millis(800), "{:?}", sender.times());
    let receiver = of(&watch, &far).unwrap();
    assert_eq!(receiver.role(), End::Receiver);
    let first = receiver.times().shares()[0];
    assert_eq!(first.limit, Limit::ReceiverApplication, "{:?}", receiver.times().shares());
    let process = sender.process.as_ref().unwrap();
    assert_eq!(process.pid, std::process::id());
    let descriptor = watch.descriptor(sender.key).unwrap();
    assert_eq!(descriptor.pid, std::process::id());
    drop((near, far));
    watch.look().unwrap();
    watch.look().unwrap();
}
