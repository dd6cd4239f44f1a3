//! `fullpipe why URL`: a download of our own, followed from its first byte, by the samples of its
//! socket and, where that is permitted, by its packets.

use super::super::get::{of_environment, of_get};
use super::failed;
use crate::failure::{Failure, Kind};
use fullpipe_host::watch::Watch;
use fullpipe_host::{Captured, Found, Packets, why_one};
use fullpipe_kernel::Refused;
use fullpipe_kernel::sandbox::Interrupt;
use fullpipe_model::units::Duration;
use fullpipe_transfer::{Diagnosis, GetEvent, GetOptions, GetRequest, Stop, Target, get};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;

/// How long a server may take until the first data arrives.
const PATIENCE: Duration = Duration::from_secs(15);
/// Redirects that are followed.
const REDIRECTS: u32 = 10;

/// Whom to trust behind `https://`.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Certificates in PEM, instead of the machine's.
    pub cacert: Option<PathBuf>,
    /// Anybody.
    pub insecure: bool,
}

/// What was found out about a download.
pub struct Looked {
    /// By its socket.
    pub found: Found,
    /// By its packets; why not, where that is not permitted.
    pub packets: Result<Option<Captured>, Refused>,
}

/// Downloads `url` for `span` as `fullpipe get` does, and finds out what limits that.
pub fn why(
    url: &str,
    trust: Trust,
    span: Duration,
    watch: &mut Watch,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<Looked, Failure> {
    // Before the download, so that the handshake is seen.
    let packets = Packets::start();
    let found = by_socket(url, trust, span, watch, interrupt, tick)?;
    let ends = found.followed.first().map(|one| &one.connection.answer);
    let packets = match (packets, ends) {
        (Ok(packets), Some(answer)) => packets.finish(answer.local, answer.remote),
        (Ok(_), None) => Ok(None),
        (Err(refused), _) => Err(refused),
    };
    Ok(Looked { found, packets })
}

fn by_socket(
    url: &str,
    trust: Trust,
    span: Duration,
    watch: &mut Watch,
    interrupt: &Interrupt,
    tick: &mut dyn FnMut(Duration),
) -> Result<Found, Failure> {
    let options = GetOptions {
        redirects: REDIRECTS,
        retries: 0,
        connect_timeout: PATIENCE,
        read_timeout: PATIENCE,
        max_time: Some(span.saturating_add(PATIENCE)),
        cacert: trust.cacert,
        insecure: trust.insecure,
        ..of_environment()
    };
    let target = Target::File("/dev/null".into());
    let request = GetRequest { url: url.into(), target, options };
    let (send, receive) = mpsc::channel::<(SocketAddr, SocketAddr)>();
    let stop = Stop::new();
    std::thread::scope(|scope| {
        // The sender goes with the download, so that the end of a failed one is noticed at once.
        let (request, stopped) = (&request, &stop);
        let downloading = scope.spawn(move || {
            let mut connected = None;
            get(request, &Diagnosis::default(), stopped, &mut |event| match event {
                GetEvent::Connected { local, peer } => connected = Some((local, peer)),
                // Whoever listens may have left.
                GetEvent::Started { .. } => drop(connected.map(|ends| send.send(ends))),
                GetEvent::Progress { .. } | GetEvent::Notice(_) => {}
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
            (Ok(_), Err(error)) => Err(of_get(error)),
            (Ok(_), Ok(got)) => Err(Failure::new(
                Kind::Run,
                format!(
                    "why {url}: {} arrived in {}, too little to tell what limits it; name a larger file",
                    got.file, got.timing.total
                ),
            )),
            (Err(failure), _) => Err(failure),
        }
    })
}
