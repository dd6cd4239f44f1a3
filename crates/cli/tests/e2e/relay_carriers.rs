//! `fullpipe relay --carriers auto` on carriers that are held, each and together; and streams that
//! leave nothing behind.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use fullpipe_model::units::Duration;

use crate::Case;
use crate::program::{Program, Running, until};
use crate::relay::{PATIENCE, connect, echo, far_end, near_end, pair, server};

pub const CASES: &[Case] = &[
    ("auto_takes_as_many_carriers_as_pay_and_says_so", &[], auto),
    ("five_thousand_streams_leave_nothing", &[], streams),
];

/// Bytes a second that a carrier gets, and that all of them get.
const EACH: f64 = 1e6;
const ALL: f64 = 10e6;

/// A TCP proxy that holds what comes back to [`EACH`] and [`ALL`].
fn throttle(to: SocketAddr) -> SocketAddr {
    let (total, started) = (AtomicU64::new(0), Instant::now());
    server(move |mut user| {
        let Ok(mut onward) = TcpStream::connect(to) else { return };
        let (mut up, mut there) = (user.try_clone().unwrap(), onward.try_clone().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _ = std::io::copy(&mut up, &mut there);
                let _ = there.shutdown(Shutdown::Both);
            });
            let (mut bytes, mut own, mut began) = ([0; 16 << 10], 0.0, started.elapsed());
            while let Ok(count @ 1..) = onward.read(&mut bytes) {
                own += count as f64;
                let all = total.fetch_add(count as u64, Ordering::Relaxed) as f64;
                let now = started.elapsed();
                // Whoever was idle has no right to what it did not use.
                let late = now.saturating_sub(began).as_secs_f64() - own / EACH;
                if late > 0.5 {
                    (own, began) = (0.0, now);
                }
                let idle = (now.as_secs_f64() - all / ALL).max(0.0);
                if idle > 0.5 {
                    total.fetch_add((idle * ALL) as u64, Ordering::Relaxed);
                }
                let wait = (-late).max(all / ALL - now.as_secs_f64());
                std::thread::sleep(std::time::Duration::from_secs_f64(wait.max(0.0)));
                if user.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = (user.shutdown(Shutdown::Both), onward.shutdown(Shutdown::Both));
        });
    })
}

fn auto() {
    let program = Program::new();
    let endless = server(|mut stream| while stream.write_all(&[7; 64 << 10]).is_ok() {});
    let (_far, server) = far_end(&program, "127.0.0.1:0", &["--allow", "127.0.0.1:*"]);
    let carriers = throttle(server);
    let (near, address) = near_end(&program, carriers, endless, &["--carriers", "auto"]);
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (is_over, mut user) = (Arc::clone(&is_over), connect(address));
        move || {
            let mut bytes = vec![0; 64 << 10];
            while !is_over.load(Ordering::Relaxed) && user.read(&mut bytes).is_ok_and(|n| n > 0) {}
        }
    });
    let mut found = None;
    until("a number of carriers is found", PATIENCE, || {
        let said = near.err();
        let line = said.lines().find(|line| line.starts_with("carriers: 1 carried "));
        found = line.and_then(|line| {
            let (_, end) = line.rsplit_once("; ")?;
            Some((end.split(' ').next()?.parse::<usize>().ok()?, line.to_owned()))
        });
        found.is_some()
    });
    is_over.store(true, Ordering::Relaxed);
    reader.join().unwrap();
    // Ten fill it. Each trial of a number must bring a fifth of its share, and the machine may be
    // busy.
    let (count, line) = found.unwrap();
    assert!((4..=20).contains(&count), "{line}");
}

/// Descriptors that a process has open.
fn descriptors(running: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", running.id())).unwrap().count()
}

/// Resident memory.
fn memory(running: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

fn streams() {
    let program = Program::new();
    let pair = pair(&program, server(echo), &["--carriers", "4"]);
    let ends = [&pair.near, &pair.far];
    let round = |count: usize| {
        let each = count / 10;
        std::thread::scope(|scope| {
            (0..10).for_each(|_| {
                scope.spawn(|| (0..each).for_each(|number| one(pair.address, number)));
            });
        });
    };
    // What is allocated once is allocated by then.
    round(1000);
    until("streams are gone", PATIENCE, || ends.iter().all(|end| descriptors(end) < 60));
    let before = ends.map(|end| (descriptors(end), memory(end)));
    round(5000);
    until("as few descriptors as before", Duration::from_secs(10), || {
        ends.iter().zip(before).all(|(end, (open, _))| descriptors(end) <= open)
    });
    for (end, (_, before)) in ends.iter().zip(before) {
        let now = memory(end);
        // 5,000 streams that kept even their smallest window would be 320 MiB.
        assert!(now <= before + (8 << 20), "{now} of {before} bytes");
    }
}

/// A stream with some bytes each way; every third is reset.
fn one(address: SocketAddr, number: usize) {
    let mut stream = connect(address);
    stream.write_all(&[5; 3000]).unwrap();
    let mut answer = [0; 3000];
    stream.read_exact(&mut answer).unwrap();
    if number % 3 == 0 {
        return crate::relay::reset(stream);
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut answer).unwrap(), 0);
}
