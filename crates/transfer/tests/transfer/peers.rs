//! The real programs are the judges: curl of our server, our client of nginx's and Python's.

use crate::fixture::{Serving, fetch, generated};
use fullpipe_transfer::{DownloadOptions, ServerOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output as Finished, Stdio};
use tempfile::TempDir;

/// `Some(program)` where it is installed; where not, says loudly that the test is skipped, or fails
/// it if `FULLPIPE_NO_SKIP=1`, as in CI.
pub fn installed(test: &str, program: &'static str) -> Option<&'static str> {
    let version = match program {
        "nginx" => "-v",
        "openssl" => "version",
        _ => "--version",
    };
    let found =
        Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    let strict = std::env::var_os("FULLPIPE_NO_SKIP").is_some_and(|value| value == "1");
    assert!(!strict, "{test} is not to be skipped here, but {program} is not installed");
    // Not eprintln!, which the test runner swallows.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {program} is not installed");
    None
}

/// Killed when the test is over, whatever its end; keeps what the program needs until then.
pub struct Running<Kept>(Child, Kept);

impl<Kept> Drop for Running<Kept> {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn site() -> (TempDir, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let all = generated(0, 5_000_000);
    std::fs::write(directory.path().join("file"), &all).unwrap();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    std::fs::write(directory.path().join("sub/index.html"), "index").unwrap();
    (directory, all)
}

fn curl(arguments: &[&str]) -> Finished {
    Command::new("curl")
        .args(["-q", "--silent", "--max-time", "20", "--noproxy", "*"])
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn curl_gets_what_is_served() {
    if installed("curl_gets_what_is_served", "curl").is_none() {
        return;
    }
    let (directory, all) = site();
    let server = Serving::start(ServerOptions {
        directory: Some(directory.path().into()),
        ..Default::default()
    });
    for url in [server.url("/file"), server.url("/bytes/5MB")] {
        assert_eq!(curl(&[&url]).stdout, all, "{url}");
        assert_eq!(curl(&["-r", "100-199", &url]).stdout, &all[100..200], "{url}");
        assert_eq!(curl(&["-r", "-7", &url]).stdout, &all[all.len() - 7..], "{url}");
        assert_eq!(curl(&["-r", "4999990-", &url]).stdout, &all[4_999_990..], "{url}");

        let status = |arguments: &[&str]| {
            let arguments =
                [&["-o", "/dev/null", "-w", "%{http_code} %{size_download}"], arguments].concat();
            String::from_utf8(curl(&arguments).stdout).unwrap()
        };
        assert_eq!(status(&["--head", &url]), "200 0");
        assert_eq!(status(&["-r", "5000000-", &url]), "416 0");
        assert_eq!(status(&["-d", "x", &url]).split(' ').next(), Some("405"));

        // Resumes what it has of the file.
        let part = directory.path().join("part");
        std::fs::write(&part, &all[..1_234_567]).unwrap();
        assert!(curl(&["-C", "-", "-o", part.to_str().unwrap(), &url]).status.success());
        assert!(std::fs::read(&part).unwrap() == all, "{url} resumed");
    }
    let missing = curl(&["--fail", &server.url("/nothing")]);
    assert_eq!(missing.status.code(), Some(22), "curl's exit code for a status of 400 or above");
    let climbing = curl(&[
        "--path-as-is",
        "-w",
        "%{http_code}",
        "-o",
        "/dev/null",
        &server.url("/../../etc/passwd"),
    ]);
    assert_eq!(climbing.stdout, b"403");
    let dates = curl(&["--head", &server.url("/file")]).stdout;
    assert!(String::from_utf8(dates).unwrap().contains("last-modified: "));
}

/// Our download of a file of `server`, and of one that is not there.
fn assert_downloads_from(server: SocketAddr, all: &[u8]) {
    let options = DownloadOptions { verify: true, ..Default::default() };
    let got = fetch(server, "/file", options).unwrap();
    assert_eq!((got.status, got.body.get()), (200, all.len() as u64));
    assert!(got.server.is_some());

    let error = fetch(server, "/nothing", Default::default()).unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
}

#[test]
fn python_serves_us() {
    let Some(python) = installed("python_serves_us", "python3") else { return };
    let (directory, all) = site();
    let mut child = Command::new(python)
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(|child| Running(child, ()))
        .unwrap();
    // "Serving HTTP on 127.0.0.1 port 43567 (http://127.0.0.1:43567/) ..."
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line
        .split("port ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next())
        .expect("python says its port");
    assert_downloads_from(format!("127.0.0.1:{port}").parse().unwrap(), &all);
}

#[test]
fn nginx_serves_us() {
    let Some(nginx) = installed("nginx_serves_us", "nginx") else { return };
    let (directory, all) = site();
    // nginx cannot choose a port itself; another process may take the one that was free a moment
    // ago.
    let started = (0..5).find_map(|_| start_nginx(nginx, directory.path(), "", ""));
    let (_running, addr) = started.expect("nginx starts on one of five free ports");
    assert_downloads_from(addr, &all);
}

/// nginx with its working directory and its log: a write to a log that nobody reads would kill it
/// (SIGPIPE).
pub type Nginx = Running<(TempDir, BufReader<ChildStderr>)>;

/// `listen` is what the directive has beside the address, `more` what the server has.
pub fn start_nginx(
    nginx: &str,
    directory: &Path,
    listen: &str,
    more: &str,
) -> Option<(Nginx, SocketAddr)> {
    let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let work = tempfile::tempdir().unwrap();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", work.path().display()))
        .concat();
    let configuration = format!(
        "daemon off; master_process off; pid {}/pid; error_log stderr notice;\n\
         events {{}}\n\
         http {{ access_log off; {temporary} server {{ listen {addr} {listen}; {more} root {}; }} }}\n",
        work.path().display(),
        directory.display()
    );
    let configured = work.path().join("nginx.conf");
    std::fs::write(&configured, configuration).unwrap();
    let mut child = Command::new(nginx)
        .args(["-e", "stderr", "-p"])
        .arg(work.path())
        .arg("-c")
        .arg(configured)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let mut running = Running(child, (work, log));
    // It writes its version once it listens; its standard error ends first where it could not.
    let listens =
        running.1.1.by_ref().lines().map_while(Result::ok).any(|line| line.contains(" nginx/"));
    listens.then_some((running, addr))
}

/// What a slow server does to curl, it does to us: the same steps, at the same times.
#[test]
fn our_time_breakdown_is_curls() {
    if installed("our_time_breakdown_is_curls", "curl").is_none() {
        return;
    }
    let write_rate = Some("80mbit".parse().unwrap());
    let server = Serving::start(ServerOptions { write_rate, ..Default::default() });
    let url = server.url("/bytes/3MB"); // 300 ms
    let format = "%{time_namelookup} %{time_connect} %{time_appconnect} %{time_pretransfer} %{time_starttransfer} %{time_total}";
    // A machine that is busy delays one of the two now and then: three attempts at agreeing within
    // 60 ms.
    let mut seen = Vec::new();
    for _ in 0..3 {
        let theirs =
            String::from_utf8(curl(&["-o", "/dev/null", "-w", format, &url]).stdout).unwrap();
        let theirs: Vec<f64> = theirs.split(' ').map(|time| time.parse().unwrap()).collect();
        let timing = fetch(server.addr, "/bytes/3MB", Default::default()).unwrap().timing;
        let ours = [
            timing.namelookup,
            timing.connect,
            timing.appconnect,
            timing.pretransfer,
            timing.starttransfer,
            timing.total,
        ];
        let ours: Vec<f64> = ours.iter().map(|time| time.as_secs_f64()).collect();
        if ours.iter().zip(&theirs).all(|(ours, theirs)| (ours - theirs).abs() < 0.06) {
            return;
        }
        seen.push((ours, theirs));
    }
    panic!("ours and curl's: {seen:?}");
}
