//! A PostgreSQL server through `fullpipe relay`: COPY both ways byte for byte, and a COPY whose
//! relay dies fails and leaves nothing.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::chown;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use nix::unistd::User;
use tempfile::TempDir;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Running, until};
use crate::relay::{PATIENCE, content, cutter, far_end, near_end, pair};

pub const CASES: &[Case] = &[
    ("copy_goes_in_and_out_while_carriers_are_cut", &[Need::PostgreSql], copy),
    ("a_copy_whose_relay_dies_fails_and_leaves_no_row", &[Need::PostgreSql], dies),
];

/// The folder of the newest server's programs, where Debian has them.
pub fn server_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    folders.filter(|folder| folder.join("initdb").is_file()).max()
}

/// The user of Debian's package. The server refuses to be run by root.
pub fn server_user() -> Option<User> {
    User::from_name("postgres").ok().flatten()
}

/// A server with a database of its own.
pub struct Server {
    running: Running,
    pub address: SocketAddr,
    _data: TempDir,
}

/// Runs one of the server's programs.
fn start(program: &Program, name: &str, words: &[&str]) -> Running {
    let path = server_programs().unwrap().join(name);
    let root = nix::unistd::geteuid().is_root();
    let become_it = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"];
    let before: &[&str] = if root { &become_it } else { &[] };
    let mut command = program.command_by(&[before, &[path.to_str().unwrap()], words].concat());
    // The trial's folder is not for that user.
    program.start(command.current_dir("/"))
}

impl Server {
    pub fn new(program: &Program) -> Server {
        let data = tempfile::Builder::new().prefix("fullpipe-e2e-").tempdir().unwrap();
        if nix::unistd::geteuid().is_root() {
            let user = server_user().unwrap();
            chown(data.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
        }
        let folder = data.path().to_str().unwrap();
        let words = ["-D", folder, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C"];
        let made = start(program, "initdb", &words).end();
        assert_eq!(made.code, Some(0), "{made:?}");
        // A port that is free now.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let port = address.port().to_string();
        let words = ["-D", folder, "-h", "127.0.0.1", "-p", &port, "-k", "", "-F"];
        let running = start(program, "postgres", &words);
        until("the server answers", PATIENCE, || {
            program.start(&mut sql(program, address, &["select 1"])).end().code == Some(0)
        });
        Server { running, address, _data: data }
    }

    /// What a statement says, without the relay.
    fn says(&self, program: &Program, statement: &str) -> String {
        done(program, self.address, &[statement], "the server itself")
    }

    /// An orderly end, which leaves no process.
    pub fn end(self) {
        self.running.signal(Signal::SIGINT);
        let ended = self.running.end();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

fn sql(program: &Program, at: SocketAddr, statements: &[&str]) -> std::process::Command {
    let (host, port) = (at.ip().to_string(), at.port().to_string());
    let fixed = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "postgres"];
    let words = [&fixed[..], &["-h", &host, "-p", &port]].concat();
    let mut command = program.command_by(&words);
    statements.iter().for_each(|statement| {
        command.args(["-c", statement]);
    });
    command
}

/// Runs statements, which must succeed.
fn done(program: &Program, at: SocketAddr, statements: &[&str], beside: &str) -> String {
    let done = program.start(&mut sql(program, at, statements)).end();
    assert_eq!(done.code, Some(0), "{done:?} {beside}");
    done.out
}

/// Rows as COPY writes them: a number and a word, `count` times.
fn rows(count: usize) -> String {
    let words = content(count * 48);
    let mut text = String::new();
    for (number, word) in words.chunks(48).enumerate() {
        let _ = write!(text, "{number}\t");
        word.iter().for_each(|byte| {
            let _ = write!(text, "{byte:02x}");
        });
        text.push('\n');
    }
    text
}

fn copy() {
    let program = Program::new();
    let server = Server::new(&program);
    let (far, relay) = far_end(&program, "127.0.0.1:0", &["--allow", "127.0.0.1:*"]);
    let cutter = cutter(relay);
    let carriers = ["--carriers", "4"];
    let (near, address) = near_end(&program, cutter.address, server.address, &carriers);
    let text = rows(200_000);
    program.file("in", &text);
    let table = "create table words (number bigint, word text)";
    for statements in [
        &[table, r"\copy words from 'in'"][..],
        &[r"\copy (select * from words order by number) to 'out'"],
    ] {
        let mut session = program.start(&mut sql(&program, address, statements));
        let before = cutter.passed();
        // One carrier is cut at each 4 MB, for as long as the session lives.
        let mut cuts = 0;
        until("the session ends", PATIENCE, || {
            let due = (cutter.passed() - before) / 4_000_000;
            if due > cuts {
                cuts = due;
                cutter.cut(1);
            }
            session.has_ended()
        });
        let ended = session.end();
        assert_eq!(ended.code, Some(0), "{ended:?} {} {}", near.err(), far.err());
        assert!(cuts >= 3, "{cuts} cuts, {} MB", text.len() / 1_000_000);
    }
    assert_eq!(server.says(&program, "select count(*) from words").trim(), "200000");
    let got = std::fs::read(program.work().join("out")).unwrap();
    assert!(got == text.as_bytes(), "{} of {} bytes, or others", got.len(), text.len());
    server.end();
}

fn dies() {
    let program = Program::new();
    let server = Server::new(&program);
    // Out of the server, a row a millisecond: what has come is no whole answer.
    let mut relay = pair(&program, server.address, &["--carriers", "2"]);
    let endless = "copy (select repeat('x', 1000), pg_sleep(0.001) from \
                   generate_series(1, 1000000)) to stdout";
    let session = program.start(&mut sql(&program, relay.address, &[endless]));
    until("rows arrive", PATIENCE, || session.out().len() > 100_000);
    relay.far.kill_9();
    let ended = session.end();
    assert!(ended.code.is_some_and(|code| code != 0), "{:?} {}", ended.code, ended.err);
    // Into it.
    let mut relay = pair(&program, server.address, &["--carriers", "2"]);
    server.says(&program, "create table numbers (number bigint)");
    let port = relay.address.port().to_string();
    let endless = "yes 1 | psql -Xq -U postgres -d postgres -h 127.0.0.1 -p \"$0\" \
                   -c 'copy numbers from stdin'";
    let session = program.start(&mut program.command_by(&["sh", "-c", endless, &port]));
    let arrived = "select coalesce(max(tuples_processed), 0) from pg_stat_progress_copy";
    until("the server has taken rows", PATIENCE, || {
        server.says(&program, arrived).trim().parse::<u64>().unwrap() > 1000
    });
    relay.near.kill_9();
    let ended = session.end();
    assert!(ended.code.is_some_and(|code| code != 0), "{:?} {}", ended.code, ended.err);
    until("the server has given it up", PATIENCE, || {
        server.says(&program, "select count(*) from pg_stat_progress_copy").trim() == "0"
    });
    assert_eq!(server.says(&program, "select count(*) from numbers").trim(), "0");
    server.end();
}
