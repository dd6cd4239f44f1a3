//! Loopback connections of our own, as the watch sees them.

use super::*;
use fullpipe_flow::limit::Limit;
use fullpipe_model::limit::End;
use std::io::Write;
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
