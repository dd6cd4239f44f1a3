//! `fullpipe record --sockets --upload`: parts of the recording in a store, whatever that does.
//!
//! The store is one of the test's own: it keeps objects and misbehaves on purpose. That requests
//! are signed as others sign them is held by a unit test of `fullpipe_transfer::Store`, against
//! AWS's own library.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration as StdDuration;

use fullpipe_model::units::Duration;
use nix::sys::signal::Signal;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, until};

pub const CASES: &[Case] = &[
    ("parts_arrive_whatever_the_store_does", &[Need::Root], parts_arrive),
    ("a_store_that_is_away_holds_nothing_up", &[Need::Root], a_store_that_is_away),
    ("an_upload_that_cannot_be_is_refused", &[], what_cannot_be_is_refused),
];

const PATIENCE: Duration = Duration::from_secs(60);
const TO: &str = "s3://flight/fleet/host=a/";

/// What the store does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Takes,
    /// "Come back later", after it has read everything.
    Busy,
    /// It ends the connection in the middle of the object.
    BreaksOff,
    /// It keeps the object, and ends the connection before it says so.
    Silent,
    /// It never answers.
    Sleeps,
}

#[derive(Default)]
struct Objects {
    /// What each has, and how often it was put.
    all: BTreeMap<String, (Vec<u8>, usize)>,
    asked: usize,
}

/// A store on loopback, with a mood for each request and then another for all others.
struct TestStore {
    endpoint: String,
    objects: Arc<Mutex<Objects>>,
}

impl TestStore {
    fn new(moods: &'static [Mood], later: Mood) -> TestStore {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let objects = Arc::new(Mutex::new(Objects::default()));
        let kept = Arc::clone(&objects);
        // It ends with the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, kept) = (stream.unwrap(), Arc::clone(&kept));
                std::thread::spawn(move || serve(stream, &kept, moods, later));
            }
        });
        TestStore { endpoint, objects }
    }

    fn asked(&self) -> usize {
        self.objects.lock().unwrap().asked
    }

    fn names(&self) -> Vec<String> {
        self.objects.lock().unwrap().all.keys().cloned().collect()
    }
}

/// Serves a connection until it ends.
fn serve(mut stream: TcpStream, kept: &Mutex<Objects>, moods: &[Mood], later: Mood) {
    stream.set_read_timeout(Some(StdDuration::from_secs(30))).unwrap();
    let mut bytes = Vec::new();
    loop {
        let mut more = [0; 4096];
        while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut more) {
                Ok(length) if length > 0 => bytes.extend(&more[..length]),
                _ => return,
            }
        }
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
        let head = String::from_utf8(bytes.drain(..end).collect()).unwrap();
        let length = head.to_ascii_lowercase();
        let length = length.split_once("content-length: ").unwrap().1;
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        let mood = {
            let mut objects = kept.lock().unwrap();
            objects.asked += 1;
            moods.get(objects.asked - 1).copied().unwrap_or(later)
        };
        let wanted = if mood == Mood::BreaksOff { length / 2 } else { length };
        while bytes.len() < wanted {
            match stream.read(&mut more) {
                Ok(read) if read > 0 => bytes.extend(&more[..read]),
                _ => return,
            }
        }
        let body: Vec<u8> = bytes.drain(..wanted).collect();
        match mood {
            Mood::BreaksOff => return,
            Mood::Sleeps => std::thread::sleep(StdDuration::from_secs(600)),
            Mood::Busy => {
                let told = "<Error><Code>SlowDown</Code></Error>";
                let length = told.len();
                write!(stream, "HTTP/1.1 503 Slow\r\nContent-Length: {length}\r\n\r\n{told}")
                    .unwrap();
            }
            Mood::Takes | Mood::Silent => {
                let path = head.strip_prefix("PUT /flight/").unwrap_or_else(|| panic!("{head}"));
                let (path, query) = path.split_once('?').unwrap();
                assert!(query.contains("X-Amz-Signature="), "{head}");
                let mut objects = kept.lock().unwrap();
                let object = objects.all.entry(path.to_string()).or_default();
                (object.0, object.1) = (body, object.1 + 1);
                drop(objects);
                if mood == Mood::Silent {
                    return;
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            }
        }
    }
}

fn record(program: &Program, store: &str, words: &[&str]) -> Command {
    let all = ["record", "--sockets", "--ring", "ring", "--size", "5MB", "--upload", TO];
    let mut command = program.command(&[&all[..], words].concat());
    let key = [("AWS_ACCESS_KEY_ID", "AK"), ("AWS_SECRET_ACCESS_KEY", "secret/of+two")];
    command.envs(key).env("AWS_ENDPOINT_URL", store);
    command
}

fn recorded(program: &Program, store: &str, span: &str) -> Finished {
    let finished = program.start(&mut record(program, store, &["--for", span, "--json"])).end();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        !finished.err.contains("secret") && !finished.err.contains("Signature"),
        "{finished:?}"
    );
    finished
}

fn ring(program: &Program) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(program.work().join("ring")).unwrap().map(|file| file.unwrap());
    let named = files.map(|file| (file.file_name().into_string().unwrap(), file.path()));
    named
        .filter(|(name, _)| name.starts_with("sockets-"))
        .map(|(name, path)| (name, fs::read(path).unwrap()))
        .collect()
}

/// A store that is busy, that breaks off, that says nothing although it has the object: at the end
/// it has every part, byte by byte; what it had before is not sent again; and a folder of what it
/// has answers as the ring does.
fn parts_arrive() {
    const MOODS: &[Mood] = &[Mood::Busy, Mood::BreaksOff, Mood::Silent];
    let store = TestStore::new(MOODS, Mood::Takes);
    let program = Program::new();
    // Parts of a run that was too short to send them; a dead port refuses at once.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for _ in 0..2 {
        let away = recorded(&program, &format!("http://{dead}"), "2s");
        let told = &away.json()["upload"];
        assert_eq!((&told["sent"], &told["missed"]), (&0.into(), &0.into()), "{away:?}");
        assert!(away.err.contains("the recording goes on"), "{away:?}");
    }
    let first = ring(&program);
    assert_eq!(first.len(), 2);
    let running = program.start(&mut record(&program, &store.endpoint, &[]));
    until("the earlier parts are there", PATIENCE, || store.names().len() == 2);
    running.signal(Signal::SIGTERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.err.matches("the store answers 503").count(), 1, "{ended:?}");
    assert_eq!(ended.err.matches("takes parts again").count(), 1, "{ended:?}");
    let last = recorded(&program, &store.endpoint, "2s");
    let told = &last.json()["upload"];
    assert_eq!((&told["sent"], &told["waiting"]), (&1.into(), &0.into()), "{last:?}");
    let parts = ring(&program);
    let objects = store.objects.lock().unwrap();
    let there = objects.all.iter().map(|(path, (bytes, _))| {
        let name = path.strip_prefix("fleet/host%3Da/").unwrap_or_else(|| panic!("{path}"));
        (name.to_string(), bytes.clone())
    });
    let there: BTreeMap<String, Vec<u8>> = there.collect();
    assert!(there == parts, "{:?} {:?}", there.keys(), parts.keys());
    // The one that the store was silent about, and no other, was sent twice.
    let puts: Vec<usize> = objects.all.values().map(|(_, puts)| *puts).collect();
    assert_eq!(puts.iter().sum::<usize>(), parts.len() + 1, "{puts:?}");
    drop(objects);
    let folder = program.work().join("downloaded");
    fs::create_dir(&folder).unwrap();
    for (name, bytes) in &there {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let asked = |ring: &str| {
        let words = ["why", "--at", "-2m", "--for", "2m", "--ring", ring, "--json"];
        let mut told = program.run(&words).json();
        // Each call has its own "now".
        told["recorded"]
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key == "first_ns" || key == "last_ns");
        (told["recorded"].clone(), told["host"].clone())
    };
    assert_eq!(asked("downloaded"), asked("ring"));
}

/// A store that never answers: the recording ends when it should, its parts are there, and the next
/// run knows what was not sent.
fn a_store_that_is_away() {
    let store = TestStore::new(&[], Mood::Sleeps);
    let program = Program::new();
    let first = recorded(&program, &store.endpoint, "2s");
    assert_eq!(first.json()["upload"]["waiting"], 1, "{first:?}");
    assert!(first.took < Duration::from_secs(40), "{first:?}");
    assert!(first.err.contains("not sent yet"), "{first:?}");
    let mut running: Running = program.start(&mut record(&program, &store.endpoint, &[]));
    until("it is asked again", PATIENCE, || store.asked() >= 2);
    running.kill_9();
    assert_eq!(ring(&program).len(), 1);
    // Gone before it was sent: the next run says nothing was kept from it.
    let well = TestStore::new(&[], Mood::Takes);
    let last = recorded(&program, &well.endpoint, "2s");
    assert_eq!(last.json()["upload"]["sent"], 2, "{last:?}");
    assert_eq!(well.names().len(), 2);
}

fn what_cannot_be_is_refused() {
    let program = Program::new();
    let none = program.work().join("none");
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = program.command(words);
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_PROFILE"] {
            command.env_remove(name);
        }
        command.env_remove("AWS_ENDPOINT_URL").env("AWS_SHARED_CREDENTIALS_FILE", &none);
        program.start(command.envs(variables.iter().copied())).end()
    };
    let ring = ["record", "--sockets", "--ring", "ring", "--upload"];
    let key = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")];
    for (words, variables, told) in [
        (&["record", "--sockets", "--upload", TO][..], &key[..], "--ring"),
        (&["record", "--ring", "ring", "--upload", TO], &key, "--sockets"),
        (&[&ring[..], &["http://bucket/"]].concat(), &key, "must begin with s3://"),
        (&[&ring[..], &["s3://b/"]].concat(), &key, "names no bucket"),
        (&[&ring[..], &[TO]].concat(), &key, "set AWS_REGION"),
        (&[&ring[..], &[TO]].concat(), &[("AWS_REGION", "x")], "AWS_ACCESS_KEY_ID"),
        (
            &[&ring[..], &[TO]].concat(),
            &[("AWS_ENDPOINT_URL", "host:9"), key[0], key[1]],
            "is none",
        ),
    ] {
        let refused = run(words, variables);
        assert_eq!(refused.code, Some(2), "{words:?}: {refused:?}");
        assert!(refused.err.contains(told) && refused.out.is_empty(), "{told}: {refused:?}");
    }
}
