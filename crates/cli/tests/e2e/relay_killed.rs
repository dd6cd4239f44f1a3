//! A download through a relay whose ends are killed and started again, by turns. What a killed end
//! held is lost to its streams, which are reset; `fullpipe get` continues, and every byte is right.
//! FULLPIPE_RELAY_SOAK=20GB makes the file as long, and the kills as many.

use std::fs::{File, metadata};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use fullpipe_model::units::{Bytes, Duration};
use fullpipe_transfer::{ServerOptions, content};

use crate::Case;
use crate::get::Serving;
use crate::program::{Program, until};
use crate::relay::{far_end, near_end_at};

pub const CASES: &[Case] =
    &[("a_download_outlives_both_ends_of_its_relay", &[], a_download_outlives_both_ends)];

/// What arrives between two kills, at least.
const BETWEEN: u64 = 20_000_000;
const PIECE: u64 = 1 << 20;

/// Generated content, a piece at a time: a file of 20 GB does not fit into memory.
fn pieces(size: u64) -> impl Iterator<Item = Vec<u8>> {
    (0..size.div_ceil(PIECE)).map(move |piece| {
        let (from, end) = (piece * PIECE, size.min((piece + 1) * PIECE));
        let mut all = Vec::new();
        while from + (all.len() as u64) < end {
            let done = from + all.len() as u64;
            all.extend_from_slice(&content::at(Bytes::new(done), Bytes::new(end - done)));
        }
        all
    })
}

/// That the file has that content, and nothing more.
fn assert_content(file: &Path, size: u64) {
    assert_eq!(metadata(file).unwrap().len(), size);
    let mut file = BufReader::new(File::open(file).unwrap());
    for (number, piece) in pieces(size).enumerate() {
        let mut got = vec![0; piece.len()];
        file.read_exact(&mut got).unwrap();
        assert!(got == piece, "other bytes in MiB {number}");
    }
}

fn a_download_outlives_both_ends() {
    let size = std::env::var("FULLPIPE_RELAY_SOAK").ok().map(|text| text.parse::<Bytes>());
    let size = size.transpose().unwrap().unwrap_or(Bytes::new(120_000_000)).get();
    let (folder, program) = (tempfile::tempdir().unwrap(), Program::new());
    let mut file = BufWriter::new(File::create(folder.path().join("file")).unwrap());
    pieces(size).for_each(|piece| file.write_all(&piece).unwrap());
    file.flush().unwrap();
    let served = Serving::start(ServerOptions {
        directory: Some(folder.path().into()),
        // Each connection: so that a kill meets a transfer, however quick the machine.
        write_rate: Some("50MB/s".parse().unwrap()),
        ..Default::default()
    });
    let origin = served.url("").trim_start_matches("http://").parse().unwrap();

    let allow = ["--allow", "127.0.0.1:*"];
    let (mut far, server) = far_end(&program, "127.0.0.1:0", &allow);
    let carriers = ["--carriers", "4"];
    let (mut near, users) = near_end_at("127.0.0.1:0", &program, server, origin, &carriers);
    let words = ["get", "-s", "--retry", "1000", &format!("http://{users}/file")];
    let mut download = program.start(&mut program.command(&words));

    let part = program.work().join("file.part");
    let (mut kills, mut due) = (0u32, BETWEEN);
    let longest = Duration::from_secs(60 + size / 10_000_000);
    until("the download ends", longest, || {
        let arrived = metadata(&part).map_or(0, |part| part.len());
        if arrived >= due {
            (kills, due) = (kills + 1, arrived + BETWEEN);
            if kills.is_multiple_of(2) {
                far.kill_9();
                far = far_end(&program, &server.to_string(), &allow).0;
            } else {
                near.kill_9();
                let again = users.to_string();
                near = near_end_at(&again, &program, server, origin, &carriers).0;
            }
        }
        download.has_ended()
    });
    let ended = download.end();
    assert_eq!(ended.code, Some(0), "{ended:?} {} {}", near.err(), far.err());
    assert!(u64::from(kills) >= size / BETWEEN / 3, "{kills} kills");
    assert_content(&program.work().join("file"), size);
}
