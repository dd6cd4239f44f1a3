//! A download through a relay whose ends are killed and started again, by turns. What a killed end
//! held is lost to its streams, which are reset; `fullpipe get` continues, and every byte is right.
//! FULLPIPE_RELAY_SOAK=20GB makes the download as long.

use std::io::Read;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::{ServerOptions, content};

use crate::Case;
use crate::get::Serving;
use crate::program::{Program, until};
use crate::relay::{far_end, near_end_at};

pub const CASES: &[Case] =
    &[("a_download_outlives_both_ends_of_its_relay", &[], a_download_outlives_both_ends)];

/// Without the variable.
const SIZE: u64 = 120_000_000;
/// What arrives between two kills, at least.
const BETWEEN: u64 = 20_000_000;

/// Reads `size` bytes of generated content, and nothing more, and says how far it is.
fn reads_content(mut from: ChildStdout, size: u64, arrived: &AtomicU64) {
    let (mut at, mut bytes) = (0, vec![0; 1 << 20]);
    while let count @ 1.. = from.read(&mut bytes).unwrap() {
        let mut got = &bytes[..count];
        while !got.is_empty() {
            assert!(at < size, "more than {size} bytes");
            let right = content::at(Bytes::new(at), Bytes::new(got.len() as u64));
            assert!(got[..right.len()] == right[..], "other bytes after {at}");
            (at, got) = (at + right.len() as u64, &got[right.len()..]);
        }
        arrived.store(at, Ordering::Relaxed);
    }
    assert_eq!(at, size, "ended early");
}

/// A download, which ends with its trial.
struct Download(Child);

impl Drop for Download {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// Names of the sockets by which relays are observed.
fn status_sockets() -> impl Iterator<Item = String> {
    let own = format!("/tmp/fullpipe-{}", nix::unistd::geteuid());
    let folders = ["/run/fullpipe".to_owned(), own];
    let files = folders.into_iter().flat_map(std::fs::read_dir).flatten().flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned())
}

fn a_download_outlives_both_ends() {
    let soak = std::env::var("FULLPIPE_RELAY_SOAK").ok().map(|text| text.parse::<Bytes>());
    let size = soak.transpose().unwrap().map_or(SIZE, Bytes::get);
    let between = BETWEEN.max(size / 40);
    let program = Program::new();
    let served = Serving::start(ServerOptions {
        // Each connection: so that a kill meets a transfer, however quick the machine.
        write_rate: Some(if size > SIZE { "400MB/s" } else { "50MB/s" }.parse().unwrap()),
        ..Default::default()
    });
    let origin = served.url("").trim_start_matches("http://").parse().unwrap();

    let allow = ["--allow", "127.0.0.1:*"];
    let (mut far, server) = far_end(&program, "127.0.0.1:0", &allow);
    let carriers = ["--carriers", "4"];
    let (mut near, users) = near_end_at("127.0.0.1:0", &program, server, origin, &carriers);
    let url = format!("http://{users}/bytes/{size}");
    let mut command =
        program.command(&["get", "-s", "--retry", "99", "--retry-connrefused", "-o", "-", &url]);
    command.stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut download = Download(command.spawn().unwrap());
    let arrived = Arc::new(AtomicU64::new(0));
    let reader = std::thread::spawn({
        let (out, arrived) = (download.0.stdout.take().unwrap(), Arc::clone(&arrived));
        move || reads_content(out, size, &arrived)
    });

    let (mut kills, mut due) = (0u32, between);
    let mut killed: Vec<u32> = Vec::new();
    let longest = Duration::from_secs(60 + size / 10_000_000);
    until("the download ends", longest, || {
        let arrived = arrived.load(Ordering::Relaxed);
        if arrived >= due {
            (kills, due) = (kills + 1, arrived + between);
            if kills.is_multiple_of(2) {
                killed.push(far.id());
                far.kill_9();
                far = far_end(&program, &server.to_string(), &allow).0;
            } else {
                killed.push(near.id());
                near.kill_9();
                let again = users.to_string();
                near = near_end_at(&again, &program, server, origin, &carriers).0;
            }
        }
        reader.is_finished()
    });
    reader.join().unwrap();
    assert!(download.0.wait().unwrap().success(), "{} {}", near.err(), far.err());
    assert!(u64::from(kills) >= size / between / 3, "{kills} kills");
    // The end that was started after each took its status socket away.
    let mut left = status_sockets()
        .filter(|name| killed.iter().any(|id| name.ends_with(&format!("-{id}.relay.sock"))));
    assert_eq!(left.next(), None);
}
