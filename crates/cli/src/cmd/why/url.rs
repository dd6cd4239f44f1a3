//! `fullpipe why URL`: a download of our own, followed from its first byte, by the samples of its
//! socket and, where that is permitted, by its packets.

use super::super::get::{of_environment, of_get};
use crate::failure::Failure;
use fullpipe_host::watch::Watch;
use fullpipe_host::{Captured, Found, Packets, why_one};
use fullpipe_kernel::Refused;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::units::Duration;
use fullpipe_transfer::{Diagnosis, GetEvent, GetOptions, GetRequest, Stop, Target, Timing, get};
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
#[derive(Default)]
pub struct Looked {
    /// By its socket; nothing where it was over before it could be followed.
    pub found: Found,
    /// By the times of its steps, until the first byte where it was stopped; `None` before an
    /// answer.
    pub timing: Option<Timing>,
    /// By its packets.
    pub packets: Option<Captured>,
    /// Why its packets were not looked at.
    pub refused: Option<Refused>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

impl Looked {
    /// Whether anything was found out.
    pub fn is_empty(&self) -> bool {
        self.found.followed.is_empty() && self.timing.is_none() && self.packets.is_none()
    }
}

/// What the download tells.
enum Told {
    /// A connection from here to there was made.
    Connected(SocketAddr, SocketAddr),
    /// The first byte is there.
    Began(Timing),
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
    let request = request(url, trust, span);
    let stop = Stop::new();
    // Set when the first byte is there, or none will be.
    let begun = Interrupt::new().map_err(Failure::of_kernel)?;
    let (send, receive) = mpsc::channel::<Told>();
    let (mut looked, ends) = std::thread::scope(|scope| {
        let (request, stopped, begins) = (&request, &stop, &begun);
        let downloading = scope.spawn(move || {
            // Whoever listens may have left.
            let tell = |told| drop(send.send(told));
            let got = get(request, &Diagnosis::default(), stopped, &mut |event| match event {
                GetEvent::Connected { local, peer } => tell(Told::Connected(local, peer)),
                GetEvent::Started { timing, .. } => {
                    tell(Told::Began(timing));
                    begins.set();
                }
                GetEvent::Progress { .. } | GetEvent::Notice(_) => {}
            });
            begins.set();
            got
        });
        // Who presses Ctrl-C meanwhile gets what was seen until then.
        let is_interrupted = interrupt.wait_beside(&begun).unwrap_or(true);
        let mut looked = Looked::default();
        let mut ends = None;
        for told in receive.try_iter() {
            match told {
                Told::Connected(local, remote) => ends = Some((local, remote)),
                Told::Began(timing) => looked.timing = Some(timing),
            }
        }
        let began = ends.filter(|_| looked.timing.is_some() && !is_interrupted);
        let followed = began.map(|(local, remote)| {
            why_one(watch, local, remote, span, interrupt, tick).map_err(Failure::of_kernel)
        });
        stop.stop();
        let got = downloading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        looked.found = followed.transpose()?.unwrap_or_default();
        match got {
            Ok(got) => looked.timing = Some(got.timing),
            Err(error) if error.is_stop() => {}
            Err(error) => looked.failure = Some(of_get(error)),
        }
        Ok::<_, Failure>((looked, ends))
    })?;
    match (packets, ends) {
        (Ok(packets), Some((local, remote))) => match packets.finish(local, remote) {
            Ok(captured) => looked.packets = captured,
            Err(refused) => looked.refused = Some(refused),
        },
        (Ok(_), None) => {}
        (Err(refused), _) => looked.refused = Some(refused),
    }
    Ok(looked)
}

fn request(url: &str, trust: Trust, span: Duration) -> GetRequest {
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
    GetRequest { url: url.into(), target, options }
}
