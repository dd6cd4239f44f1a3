//! Relays in operation: their status, their metrics, and files that are read again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Running, until};
use crate::relay::{PATIENCE, connect, echo, far_end, near_end, server};

pub const CASES: &[Case] = &[
    ("status_and_metrics_tell_what_a_relay_does", &[], observed),
    ("a_hangup_reads_destinations_again_and_keeps_streams", &[], reload),
    ("status_of_nobody_is_a_clear_answer", &[], nobody),
    ("each_end_has_the_congestion_control_it_was_told", &[Need::Program("ss")], congestion),
];

/// Reno is allowed to every user of every Linux, and the default of none.
fn congestion() {
    let program = Program::new();
    let wanted = ["--congestion", "reno"];
    let far_options = [&["--allow", "127.0.0.1:*"], &wanted[..]].concat();
    let (_far, far) = far_end(&program, "127.0.0.1:0", &far_options);
    let near_options = [&["--carriers", "1"], &wanted[..]].concat();
    let (_near, users) = near_end(&program, far, server(echo), &near_options);
    let mut user = connect(users);
    user.write_all(b"x").unwrap();
    user.read_exact(&mut [0]).unwrap();
    for end in ["sport", "dport"] {
        let filter = format!("{end} = :{}", far.port());
        let mut words = program.command_by(&["ss", "-Htin", "state", "established", &filter]);
        let said = program.start(&mut words).end();
        assert!(said.out.contains(" reno "), "{end}: {said:?}");
    }
    let near = ["--server", "127.0.0.1", "--listen", "127.0.0.1:0", "--socks5"];
    let wrong = program.run(&[&["relay"], &near[..], &["--congestion", "none such"]].concat());
    assert_eq!(wrong.code, Some(3), "{wrong:?}");
    for part in ["'none such' on carriers", "tcp_available_congestion_control"] {
        assert!(wrong.err.contains(part), "{part}: {wrong:?}");
    }
}

/// The page of metrics at `address`.
fn metrics(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let asked = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\
        Connection: close\r\n\r\n";
    stream.write_all(asked).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// Where a relay says that it serves its metrics.
fn metrics_address(relay: &Running) -> SocketAddr {
    let mut found = None;
    until("metrics are served", PATIENCE, || {
        let said = relay.err();
        let address = said.lines().find_map(|line| line.strip_prefix("metrics at http://"));
        found = address.and_then(|rest| rest.strip_suffix("/metrics")?.parse().ok());
        found.is_some()
    });
    found.unwrap()
}

fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
}

fn observed() {
    let program = Program::new();
    let endless = server(|mut stream| while stream.write_all(&[7; 64 << 10]).is_ok() {});
    let control = |name: &str| program.tmp().join(name).to_str().unwrap().to_owned();
    let (near_socket, far_socket) = (control("near.sock"), control("far.sock"));
    let listen = ["--metrics", "127.0.0.1:0"];
    let far_options = ["--allow", "127.0.0.1:*", "--control", &far_socket, listen[0], listen[1]];
    let (far, address) = far_end(&program, "127.0.0.1:0", &far_options);
    let near_options = ["--carriers", "3", "--control", &near_socket, listen[0], listen[1]];
    let (near, users) = near_end(&program, address, endless, &near_options);
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (is_over, mut user) = (Arc::clone(&is_over), connect(users));
        move || {
            let mut bytes = vec![0; 64 << 10];
            while !is_over.load(Ordering::Relaxed) && user.read(&mut bytes).is_ok_and(|n| n > 0) {}
        }
    });
    for (relay, socket, moved) in
        [(&near, &near_socket, "received_bytes"), (&far, &far_socket, "delivered_bytes")]
    {
        let page = metrics_address(relay);
        until("all carriers carry", PATIENCE, || {
            let page = metrics(page);
            value(&page, "fullpipe_relay_carriers") == 3.0
                && value(&page, &format!("fullpipe_relay_{moved}_total")) > 0.0
        });
        let asked = ["relay", "status", "--for", "500ms", "--json", "--control", socket];
        let shown = program.run(&asked).json();
        let [relay] = &shown.as_array().unwrap()[..] else { panic!("{shown}") };
        let session = &relay["sessions"][0];
        assert_eq!(session["streams"], 1, "{shown}");
        let before = session[moved].as_f64().unwrap();
        let carriers = relay["carriers"][0].as_array().unwrap();
        assert_eq!(carriers.len(), 3, "{shown}");
        let rates = carriers.iter().map(|carrier| carrier["goodput_bps"].as_f64().unwrap());
        let rate: f64 = rates.sum();
        assert!(rate > 1e6, "{shown}");
        // What was moved when it was asked is no more than what was moved later.
        let later = value(&metrics(page), &format!("fullpipe_relay_{moved}_total"));
        assert!(later >= before && before > 0.0, "{before} {later}");
        assert!(metrics(page).trim_end().ends_with("# EOF"));
        let table = program.run(&["relay", "status", "--for", "200ms", "--control", socket]);
        let table = table.out;
        assert!(table.contains("streams: 1;") && table.contains("limited by"), "{table}");
    }
    is_over.store(true, Ordering::Relaxed);
    reader.join().unwrap();
    // An end that ends takes its socket with it.
    for (relay, socket) in [(near, near_socket), (far, far_socket)] {
        relay.signal(Signal::SIGTERM);
        assert_eq!(relay.end().code, Some(130));
        assert!(!std::path::Path::new(&socket).exists());
    }
}

/// Whether a user gets an answer through the relay.
fn is_let_through(users: SocketAddr) -> bool {
    let Ok(mut user) = TcpStream::connect(users) else { return false };
    let mut answer = [0; 4];
    user.write_all(b"ping").is_ok() && user.read_exact(&mut answer).is_ok()
}

fn reload() {
    let program = Program::new();
    let to = server(echo);
    let file = program.tmp().join("allowed");
    std::fs::write(&file, format!("# first\n{to}\n")).unwrap();
    let options = ["--allow-from", file.to_str().unwrap()];
    let (far, address) = far_end(&program, "127.0.0.1:0", &options);
    let (_near, users) = near_end(&program, address, to, &["--carriers", "2"]);
    let mut stays = connect(users);
    let mut answer = [0; 4];
    stays.write_all(b"ping").unwrap();
    stays.read_exact(&mut answer).unwrap();
    let hang_up = |says: &str| {
        let before = far.err().matches(says).count();
        far.signal(Signal::SIGHUP);
        until("it says so", PATIENCE, || far.err().matches(says).count() > before);
    };
    // What is wrong changes nothing.
    std::fs::write(&file, "no destination\n").unwrap();
    hang_up("nothing changed: read allowed destinations");
    assert!(is_let_through(users));
    std::fs::write(&file, "192.0.2.1:1\n").unwrap();
    hang_up("read keys and destinations again");
    assert!(!is_let_through(users));
    stays.write_all(b"pong").unwrap();
    stays.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"pong", "a stream that was there stays");
    std::fs::write(&file, format!("{to}\n")).unwrap();
    hang_up("read keys and destinations again");
    assert!(is_let_through(users));
}

fn nobody() {
    let program = Program::new();
    let missing = program.tmp().join("nobody.sock");
    let asked = ["relay", "status", "--control", missing.to_str().unwrap()];
    let finished = program.run(&asked);
    let said = &finished.err;
    assert_eq!(finished.code, Some(1), "{said}");
    assert!(said.contains("ask relay at") && said.contains("does it run"), "{said}");
}
