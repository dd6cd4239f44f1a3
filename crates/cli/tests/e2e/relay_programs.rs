//! Programs that people use, through `fullpipe relay`: their own checks say whether it is whole.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use crate::Case;
use crate::need::Need;
use crate::program::{Program, Running, until};
use crate::relay::{PATIENCE, Pair, content, pair};

const GIT: &[Need] = &[Need::Program("git")];
const RSYNC: &[Need] = &[Need::Program("rsync")];
const SSH: &[Need] = &[Need::Program("sshd"), Need::Program("ssh"), Need::Program("bash")];

pub const CASES: &[Case] = &[
    ("git_clones_and_pushes", GIT, git),
    ("rsync_copies_a_tree_and_then_only_what_changed", RSYNC, rsync),
    ("ssh_goes_through_its_proxy_command", SSH, ssh),
];

/// A port that is free now: these servers cannot be asked which one they chose.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A server that listens, and a relay to it.
fn served(program: &Program, words: &[&str], address: SocketAddr) -> (Running, Pair) {
    let server = program.start(&mut program.command_by(words));
    until("the server listens", PATIENCE, || TcpStream::connect(address).is_ok());
    (server, pair(program, address, &["--carriers", "4"]))
}

/// Runs a program to its end, which must be a success.
fn succeeds(program: &Program, words: &[&str], pair: &Pair) -> String {
    let done = program.start(&mut program.command_by(words)).end();
    assert_eq!(done.code, Some(0), "{words:?}: {done:?} {}", pair.near.err());
    done.out
}

/// Files of all sizes, `megabytes` of the largest.
fn tree(root: &Path, megabytes: usize) {
    std::fs::create_dir_all(root.join("folder")).unwrap();
    for (name, length) in [("empty", 0), ("one", 1), ("folder/large", megabytes << 20)] {
        std::fs::write(root.join(name), content(length)).unwrap();
    }
}

fn git() {
    let program = Program::new();
    let (work, address) = (program.work(), free());
    let (base, port) = (format!("--base-path={}", work.display()), address.port().to_string());
    let port = format!("--port={port}");
    let (source, target) = (work.join("source"), work.join("clone"));
    let (source, target) = (source.to_str().unwrap(), target.to_str().unwrap());
    let settings = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-C", source];
    tree(Path::new(source), 12);
    // Not `git daemon`, whose child it would be and outlive it.
    let daemon = format!("{}/git-daemon", succeeds_alone(&program, &["git", "--exec-path"]).trim());
    let words = [daemon.as_str(), &base, "--export-all", "--enable=receive-pack"];
    let words = [&words[..], &["--listen=127.0.0.1", "--reuseaddr", &port]].concat();
    let (_server, pair) = served(&program, &words, address);
    for words in [&["init", "-q", "-b", "first"][..], &["add", "."], &["commit", "-qm", "x"]] {
        succeeds(&program, &[&["git"], &settings[..], words].concat(), &pair);
    }
    let url = format!("git://{}/source", pair.address);
    succeeds(&program, &["git", "clone", "-q", &url, target], &pair);
    let got = std::fs::read(Path::new(target).join("folder/large")).unwrap();
    assert!(got == content(12 << 20), "{} bytes, or others", got.len());
    succeeds(&program, &["git", "-C", target, "push", "-q", "origin", "HEAD:second"], &pair);
    let heads = succeeds(&program, &["git", "-C", source, "branch"], &pair);
    assert!(heads.contains("second"), "{heads}");
    succeeds(&program, &["git", "-C", target, "fsck", "--full"], &pair);
}

fn rsync() {
    let program = Program::new();
    let (work, address) = (program.work(), free());
    tree(&work.join("source"), 16);
    let root = nix::unistd::geteuid().is_root();
    let user = if root { "uid = 0\ngid = 0\n" } else { "" };
    let configuration = format!(
        "use chroot = no\n{user}[tree]\npath = {}\nread only = yes\n",
        work.join("source").display()
    );
    program.file("rsyncd.conf", configuration);
    let (configuration, port) = (work.join("rsyncd.conf"), address.port().to_string());
    let words = ["rsync", "--daemon", "--no-detach", "--address=127.0.0.1", "--port", &port];
    let words = [&words[..], &["--config", configuration.to_str().unwrap()]].concat();
    let (_server, pair) = served(&program, &words, address);
    let from = format!("rsync://{}/tree/", pair.address);
    let target = work.join("copy");
    let copy = ["rsync", "-a", "--timeout=30", "--stats", &from, target.to_str().unwrap()];
    succeeds(&program, &copy, &pair);
    let same = |name: &str| {
        let [source, got] =
            ["source", "copy"].map(|root| std::fs::read(work.join(root).join(name)));
        assert!(source.unwrap() == got.unwrap(), "{name} differs");
    };
    ["empty", "one", "folder/large"].into_iter().for_each(same);
    // Both directions are busy now: checksums there, and what differs back.
    let mut changed = content(16 << 20);
    changed[5_000_000] ^= 1;
    std::fs::write(work.join("source/folder/large"), changed).unwrap();
    let again = [&copy[..4], &["--ignore-times"], &copy[4..]].concat();
    let said = succeeds(&program, &again, &pair);
    same("folder/large");
    let literal = said.lines().find_map(|line| line.strip_prefix("Literal data: "));
    let literal: String = literal.unwrap().chars().filter(char::is_ascii_digit).collect();
    assert!(literal.parse::<u64>().unwrap() < 1 << 20, "{said}");
}

fn ssh() {
    let program = Program::new();
    let (work, address) = (program.work(), free());
    let path = |name: &str| work.join(name).display().to_string();
    let sent = content(20 << 20);
    program.file("large", &sent);
    // What the service's start makes otherwise.
    if nix::unistd::geteuid().is_root() {
        std::fs::create_dir_all("/run/sshd").unwrap();
    }
    for name in ["host", "user"] {
        let made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &path(name)];
        let made = program.start(&mut program.command_by(&made)).end();
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    let configuration = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
         PermitRootLogin prohibit-password\nListenAddress {address}\n",
        path("host"),
        path("user.pub")
    );
    program.file("sshd.conf", configuration);
    let found = succeeds_alone(&program, &["sh", "-c", "command -v sshd"]);
    let configuration = path("sshd.conf");
    let words = [found.trim(), "-D", "-e", "-f", &configuration];
    let (server, pair) = served(&program, &words, address);
    let (host, port) = (pair.address.ip(), pair.address.port());
    let command =
        format!("ProxyCommand=bash -c 'exec 3<>/dev/tcp/{host}/{port}; cat <&3 & exec cat >&3'");
    let (identity, remote) = (path("user"), format!("cat {}", path("large")));
    let user = succeeds_alone(&program, &["id", "-un"]);
    let login = format!("{}@far.example", user.trim());
    // The trials keep output as text, and this is none.
    let words = ["bash", "-c", "exec \"$@\" > got", "x", "ssh", "-F", "none", "-i", &identity];
    let options = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", &command];
    let rest = ["-o", "UserKnownHostsFile=/dev/null", &login, &remote];
    let words = [&words[..], &options[..], &rest[..]].concat();
    let done = program.start(&mut program.command_by(&words)).end();
    let got = std::fs::read(work.join("got")).unwrap();
    assert!(got == sent, "{} bytes: {done:?} {} {}", got.len(), server.err(), pair.near.err());
    assert_eq!(done.code, Some(0), "{done:?}");
}

/// What a program says that needs no relay.
fn succeeds_alone(program: &Program, words: &[&str]) -> String {
    let done = program.start(&mut program.command_by(words)).end();
    assert_eq!(done.code, Some(0), "{words:?}: {done:?}");
    done.out
}
