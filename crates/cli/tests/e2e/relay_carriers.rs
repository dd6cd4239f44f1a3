//! `fullpipe relay --carriers auto` on carriers that are held, each and together; streams that leave
//! nothing behind; and one that is longer than its carriers live. FULLPIPE_RELAY_SOAK=20GB makes
//! that one as long.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Bytes, Duration};

use crate::Case;
use crate::program::{Program, Running, until};
use crate::relay::{PATIENCE, connect, content, cutter, echo, far_end, near_end, pair, server};

pub const CASES: &[Case] = &[
    ("auto_takes_as_many_carriers_as_pay_and_says_so", &[], auto),
    ("five_thousand_streams_leave_nothing", &[], streams),
    ("a_long_stream_outlives_its_carriers", &[], soak),
];

/// Bytes a second that a carrier gets, and that all of them get.
const EACH: f64 = 1e6;
const ALL: f64 = 10e6;

/// A TCP proxy that holds what comes back to [`EACH`] and [`ALL`].
fn throttle(to: SocketAddr) -> SocketAddr {
    let (total, started) = (AtomicU64::new(0), clock::now());
    server(move |mut user| {
        let Ok(mut onward) = TcpStream::connect(to) else { return };
        let (mut up, mut there) = (user.try_clone().unwrap(), onward.try_clone().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _ = std::io::copy(&mut up, &mut there);
                let _ = there.shutdown(Shutdown::Both);
            });
            let (mut bytes, mut own, mut began) = ([0; 16 << 10], 0.0, clock::now().since(started));
            while let Ok(count @ 1..) = onward.read(&mut bytes) {
                own += count as f64;
                let all = total.fetch_add(count as u64, Ordering::Relaxed) as f64;
                let now = clock::now().since(started);
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
                std::thread::sleep(Duration::from_secs_f64(wait.max(0.0)).into());
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
    // Ten fill it; where the knee is found is the controller's own tests' matter, as a busy machine
    // shifts it.
    let (count, line) = found.unwrap();
    assert!(count >= 4, "{line}");
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
    if number.is_multiple_of(3) {
        return crate::relay::reset(stream);
    }
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut answer).unwrap(), 0);
}

/// Each way at once, with a carrier cut at every 32 MB, and all of them now and then.
fn soak() {
    let length = std::env::var("FULLPIPE_RELAY_SOAK").ok().map(|text| text.parse::<Bytes>());
    let length = length.transpose().unwrap().unwrap_or(Bytes::new(300_000_000)).get() as usize;
    let program = Program::new();
    let block = Arc::new(content(1_000_003));
    let has_all = Arc::new(AtomicBool::new(false));
    let (served, tells) = (Arc::clone(&block), Arc::clone(&has_all));
    let to = server(move |stream| {
        exchange(stream, &served, length, |_| {});
        tells.store(true, Ordering::Relaxed);
    });
    let (far, server) = far_end(&program, "127.0.0.1:0", &["--allow", "127.0.0.1:*"]);
    let cutter = cutter(server);
    let (near, address) = near_end(&program, cutter.address, to, &["--carriers", "4"]);
    let mut cuts = 0;
    exchange(connect(address), &block, length, |at| {
        let due = at / 32_000_000;
        if due > cuts {
            cuts = due;
            cutter.cut(if cuts.is_multiple_of(5) { usize::MAX / 2 } else { 1 });
        }
    });
    until("the server has everything too", PATIENCE, || has_all.load(Ordering::Relaxed));
    assert!(cuts >= length / 40_000_000, "{cuts} cuts");
    let lost = near.err().lines().filter(|line| line.contains("a carrier is gone")).count();
    assert!(lost >= cuts / 2, "{lost} carriers were lost: {}", far.err());
}

/// Writes `length` bytes of `block` again and again, and reads and compares as many.
fn exchange(stream: TcpStream, block: &[u8], length: usize, mut at: impl FnMut(usize)) {
    let (mut writer, mut reader) = (stream.try_clone().unwrap(), stream);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut rest = length;
            while rest > 0 {
                let part = &block[..block.len().min(rest)];
                writer.write_all(part).unwrap();
                rest -= part.len();
            }
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let (mut bytes, mut read) = (vec![0; 256 << 10], 0);
        while let count @ 1.. = reader.read(&mut bytes).unwrap() {
            let from = read % block.len();
            let (got, again) = bytes[..count].split_at(count.min(block.len() - from));
            assert!(got == &block[from..from + got.len()], "other bytes after {read}");
            assert!(again == &block[..again.len()], "other bytes after {read}");
            read += count;
            at(read);
        }
        assert_eq!(read, length, "ended early");
    });
}
