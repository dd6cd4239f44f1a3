//! `fullpipe relay` between the client and the server, without its processes: both ends on threads,
//! each in its host.
//!
//! The far end has the scenario's address, so that what is captured and sampled are the carriers.
//! The server is at loopback behind it, and the client fetches from the near end at its own.

use super::{ProgramError, Received, downloaded, listener};
use fullpipe_kernel::host::clock;
use fullpipe_kernel::network::netns::NetNs;
use fullpipe_kernel::socket::pacing::pace;
use fullpipe_model::scenario::Scenario;
use fullpipe_model::units::Duration;
use fullpipe_peer::relay::{
    CarrierSockets, Carriers, Entry, FarEnd, FarEndOptions, Observer, Relay, RelayOptions,
};
use fullpipe_peer::{Channel, Daemon, Keys, Limits, PrivateKey, Service, Session, Transport};
use fullpipe_transfer::{DownloadOptions, DownloadRequest, Resource, Stop};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicU64;

/// As many carriers as `fullpipe relay` has where nobody says.
const CARRIERS: u16 = 8;
/// How long carriers may take to connect: some round trips each.
const CONNECTED_WITHIN: Duration = Duration::from_secs(30);
/// How often it is asked whether they are.
const LOOK: Duration = Duration::from_millis(20);

/// Where the server of a far end with this address listens.
pub fn behind(far_end: SocketAddr) -> SocketAddr {
    let port = far_end.port().checked_add(1).unwrap_or(far_end.port() - 1);
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The far end serves relays and no tests.
struct NoTests;

impl Service for NoTests {
    fn serve(&self, _: Channel, _: &Session<'_>) -> Result<(), String> {
        Err("there are no tests here".into())
    }
}

/// What both ends prove to each other.
struct RelayIdentity {
    near: PrivateKey,
    far: PrivateKey,
}

impl RelayIdentity {
    fn new() -> Result<RelayIdentity, ProgramError> {
        Ok(RelayIdentity { near: new_key()?, far: new_key()? })
    }

    fn near_keys(&self) -> Option<Keys> {
        Some(Keys { own: self.near.clone(), server: self.far.public()? })
    }
}

fn new_key() -> Result<PrivateKey, ProgramError> {
    PrivateKey::generate().ok_or_else(|| failed("no random numbers"))
}

/// Fetches `resource` through a relay whose far end is in `server`; the calling thread is in the
/// client's host.
pub fn receive(
    scenario: &Scenario,
    server: &NetNs,
    resource: &Resource,
    stop: &Stop,
    progress: &AtomicU64,
) -> Result<Received, ProgramError> {
    let identity = RelayIdentity::new()?;
    let (over, address) = (Stop::new(), listener(scenario));
    let origin = behind(address);
    let options = FarEndOptions {
        allow: origin.to_string().parse().map_err(|_| failed("no destination"))?,
        resume_for: Duration::ZERO,
        drain: Duration::ZERO,
        sockets: paced(),
    };
    let far_end = FarEnd::new(options);
    std::thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (far_end, identity, over) = (&far_end, &identity, &over);
        let daemon = scope.spawn(move || -> Result<(), ProgramError> {
            server.enter()?;
            let allowed = identity.near.public().into_iter().collect();
            let keys = Some((&identity.far, allowed));
            let daemon = Daemon::bind(address, Transport::Tcp, keys, Limits::default(), |_| {})?;
            let daemon = daemon.with_carriers(far_end.sink(), None)?;
            // Whoever waits for it may have gone.
            let _ = ready.send(());
            Ok(daemon.run(&NoTests, over, over)?)
        });
        let relaying = scope.spawn(move || -> Result<(), ProgramError> {
            server.enter()?;
            let ended = far_end.run(over, over, |_| {});
            ended.map_err(|error| failed(&error.to_string()))
        });
        let got = match is_ready.recv() {
            Ok(()) => through(scenario, identity, resource, (stop, over), progress),
            Err(_) => Err(failed("its far end ended")),
        };
        over.stop();
        let ended = [daemon.join(), relaying.join()].map(|end| end.unwrap_or(Ok(())));
        // Why an end ended says more than that it did.
        ended.into_iter().collect::<Result<Vec<()>, _>>()?;
        got
    })
}

/// The near end, and the download through it.
fn through(
    scenario: &Scenario,
    identity: &RelayIdentity,
    resource: &Resource,
    (stop, over): (&Stop, &Stop),
    progress: &AtomicU64,
) -> Result<Received, ProgramError> {
    let transfer = &scenario.transfer;
    let carriers = transfer.carriers.unwrap_or(CARRIERS);
    let far_end = listener(scenario);
    let near = Relay::bind(RelayOptions {
        server: far_end.to_string(),
        keys: identity.near_keys(),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        entry: Entry::To(behind(far_end).to_string()),
        carriers: Carriers::Fixed(carriers.into()),
        receive_buffer: None,
        resume_for: Duration::ZERO,
        drain: Duration::ZERO,
        sockets: paced(),
    })?;
    let (observer, address) = (near.observer(), near.local_addr());
    std::thread::scope(|scope| {
        let relaying = scope.spawn(move || near.run(over, over, |_| {}));
        let until = clock::now() + CONNECTED_WITHIN;
        while !has_connected(&observer, carriers) && clock::now() < until && !stop.is_stopped() {
            std::thread::sleep(LOOK.into());
        }
        let options =
            DownloadOptions { max_duration: Some(transfer.duration), ..DownloadOptions::default() };
        let resource = Resource { server: address, path: resource.path.clone() };
        let request = DownloadRequest { resource, options };
        let first = transfer.warm.then(|| downloaded(&request, stop, &AtomicU64::new(0)));
        let got = match first {
            Some(Err(error)) => Err(error),
            _ => downloaded(&request, stop, progress),
        };
        over.stop();
        match relaying.join() {
            Ok(Err(error)) => Err(error.into()),
            _ => got,
        }
    })
}

/// Whether a session has as many as these `carriers`.
fn has_connected(observer: &Observer, carriers: u16) -> bool {
    let status = observer.wait_for_status();
    let sessions = status.map_or(Vec::new(), |status| status.sessions);
    sessions.iter().any(|session| session.carriers.len() >= carriers.into())
}

/// As the programs have them; the congestion control is the host's.
fn paced() -> CarrierSockets {
    CarrierSockets { set_up: Some(pace), ..CarrierSockets::default() }
}

fn failed(output: &str) -> ProgramError {
    ProgramError::Failed { program: "relay", status: "ended".into(), output: output.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_has_a_port_beside_the_far_end() {
        for (port, beside) in [(5201, 5202), (u16::MAX, u16::MAX - 1)] {
            let far_end = SocketAddr::from(([10, 77, 0, 1], port));
            assert_eq!(behind(far_end), SocketAddr::from(([127, 0, 0, 1], beside)));
        }
    }
}
