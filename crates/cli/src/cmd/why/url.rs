//! `fullpipe why URL`: a download of our own, followed from its first byte.

use super::failed;
use crate::failure::{Failure, Kind};
use fullpipe_host::watch::Watch;
use fullpipe_host::{Found, Options, Selection, why_one};
use fullpipe_kernel::sandbox::Interrupt;
use fullpipe_model::units::Duration;
use fullpipe_transfer::{DownloadError, DownloadOptions, Event, Request, Stop, download};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// How long a server may take until the first data arrives.
const PATIENCE: Duration = Duration::from_secs(15);
/// Redirects that are followed.
const REDIRECTS: u32 = 10;

/// Downloads `url` for `span`, and finds out what limits that.
pub fn why(
    url: &str,
    span: Duration,
    watch: &mut Watch,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<Found, Failure> {
    match url.split_once("://") {
        Some(("http", _)) => plain(url, span, watch, interrupt, tick),
        Some(("https", _)) => by_curl(url, span, watch, interrupt, tick),
        _ => Err(Failure::new(
            Kind::Usage,
            format!(
                "why '{url}': not a URL to download; write http://HOST/PATH or https://HOST/PATH"
            ),
        )),
    }
}

/// With our own client, which says over which connection the body comes.
fn plain(
    url: &str,
    span: Duration,
    watch: &mut Watch,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<Found, Failure> {
    let (send, receive) = mpsc::channel::<(SocketAddr, SocketAddr)>();
    let options = DownloadOptions {
        max_duration: Some(span.saturating_add(PATIENCE)),
        redirects: REDIRECTS,
        ..DownloadOptions::default()
    };
    let (request, stop) = (Request { url: url.into(), options }, Stop::new());
    std::thread::scope(|scope| {
        let downloading = scope.spawn(|| {
            let mut connected = None;
            download(&request, &stop, &mut |event| match event {
                Event::Connected(ends) => connected = Some((ends.local, ends.peer)),
                // Whoever listens may have left.
                Event::Headers { .. } => drop(connected.map(|ends| send.send(ends))),
                Event::Interval(_) => {}
            })
        });
        let found = match receive.recv_timeout(PATIENCE.into()) {
            Ok((local, remote)) => {
                why_one(watch, local, remote, span, interrupt, tick).map_err(failed)
            }
            Err(_) => Ok(Found::default()),
        };
        stop.stop();
        let got = downloading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (found, got) {
            (Ok(found), _) if !found.followed.is_empty() => Ok(found),
            (Ok(_), Err(error)) => Err(of_download(error)),
            (Ok(_), Ok(got)) => Err(Failure::new(
                Kind::Run,
                format!(
                    "why {url}: {} arrived in {}, too little to tell what limits it; name a larger file",
                    got.body, got.timing.total
                ),
            )),
            (Err(failure), _) => Err(failure),
        }
    })
}

fn of_download(error: DownloadError) -> Failure {
    Failure::new(Kind::Run, error)
}

/// With curl, which ends with this value.
struct Curl(Child);

impl Drop for Curl {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn by_curl(
    url: &str,
    span: Duration,
    watch: &mut Watch,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<Found, Failure> {
    let most = span.saturating_add(PATIENCE).as_secs_f64().ceil().to_string();
    let child = Command::new("curl")
        .args(["--silent", "--show-error", "--location", "--fail", "--max-time", &most])
        .args(["--output", "/dev/null", "--", url])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let message = format!(
                "why {url}: start curl: {error}; install curl (apt install curl), or use http://"
            );
            Failure::new(Kind::Missing, message)
        })?;
    let mut curl = Curl(child);
    let selection = Selection { pid: Some(curl.0.id()), loopback: true, ..Selection::default() };
    let options = Options { span, most: 1 };
    loop {
        let found =
            fullpipe_host::why(watch, &selection, options, interrupt, tick).map_err(failed)?;
        if !found.followed.is_empty() || interrupt.is_set() {
            return Ok(found);
        }
        if let Some(status) = curl.0.try_wait()? {
            return Err(Failure::new(
                Kind::Run,
                format!("why {url}: {}", ended(&mut curl, status)),
            ));
        }
    }
}

/// What curl said, or that the file was too small.
fn ended(curl: &mut Curl, status: std::process::ExitStatus) -> String {
    let mut said = String::new();
    if let Some(mut pipe) = curl.0.stderr.take() {
        let _ = std::io::Read::read_to_string(&mut pipe, &mut said);
    }
    match said.trim() {
        "" if status.success() => {
            "it arrived before anything could be told; name a larger file".into()
        }
        "" => format!("curl ended with {status}"),
        said => said.into(),
    }
}
