//! Keys of peers from files, their addresses, this host as its peers sample it, and the end by a
//! signal: what `serve`, `test`, `relay` and `keygen` share.

use crate::failure::{Failure, Kind};
use fullpipe_host::SocketSampler;
use fullpipe_host::settings::ThisHost;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_peer::path_test::{Ends, HostFacts, Sampler, Sampling};
use fullpipe_peer::{DEFAULT_PORT, PrivateKey, PublicKey};
use fullpipe_transfer::Stop;
use std::io::Read;
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// No file of keys is longer.
const LONGEST: u64 = 1 << 20;

fn read(path: &Path, what: &str) -> Result<(String, std::fs::Metadata), Failure> {
    let input = |cause: &dyn std::fmt::Display| {
        let name = path.display();
        Failure::new(
            Kind::Input,
            format!("read {what} {name}: {cause}; `fullpipe keygen` makes one"),
        )
    };
    let file = std::fs::File::open(path).map_err(|error| input(&error))?;
    let metadata = file.metadata().map_err(|error| input(&error))?;
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| input(&error))?;
    if read as u64 > LONGEST {
        return Err(input(&"it is longer than 1 MiB"));
    }
    Ok((text, metadata))
}

/// The private key in a file that only its owner may read.
pub fn private_key(path: &Path) -> Result<PrivateKey, Failure> {
    let (text, metadata) = read(path, "private key")?;
    let name = path.display();
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        let why = format!("read private key {name}: other users may read it; chmod 600 {name}");
        return Err(Failure::new(Kind::Input, why));
    }
    text.parse()
        .map_err(|error| Failure::new(Kind::Input, format!("read private key {name}: {error}")))
}

/// The public keys in a file, one a line.
pub fn allowed_keys(path: &Path) -> Result<Vec<PublicKey>, Failure> {
    let (text, _) = read(path, "allowed keys")?;
    let why = match PublicKey::list(&text) {
        Ok(keys) if keys.is_empty() => {
            "it has no key, so nobody could connect; add a line of `fullpipe keygen`".into()
        }
        Ok(keys) => return Ok(keys),
        Err(error) => error.to_string(),
    };
    Err(Failure::new(Kind::Input, format!("read allowed keys {}: {why}", path.display())))
}

/// A daemon's host with a port: the usual one unless it has one.
pub fn with_port(host: &str) -> String {
    if host.parse::<Ipv6Addr>().is_ok() {
        return format!("[{host}]:{DEFAULT_PORT}");
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    if has_port { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") }
}

/// Two stops: the first signal from now on makes the first one, and the second the second one.
pub fn stops_on_signals() -> Result<(Stop, Stop), Failure> {
    let first = Interrupt::on_signals().map_err(super::why::failed)?;
    let (stop, abort) = (Stop::new(), Stop::new());
    let stops = (stop.clone(), abort.clone());
    // It waits for as long as the process lives.
    std::thread::spawn(move || {
        // An error would mean that a descriptor is gone, and we hold it.
        let _ = first.wait(None);
        let second = Interrupt::on_signals();
        stop.stop();
        match second {
            Ok(second) => drop(second.wait(None)),
            Err(_) => return,
        }
        abort.stop();
    });
    Ok(stops)
}

/// Samples this host's sockets for a test.
pub struct HostSampler {
    facts: HostFacts,
}

impl HostSampler {
    /// Reads this host's settings.
    pub fn new() -> Result<HostSampler, Failure> {
        let host = ThisHost::read().map_err(super::why::failed)?;
        Ok(HostSampler { facts: HostFacts::of(&host.settings) })
    }
}

impl Sampler for HostSampler {
    fn start(&self, sockets: Vec<Ends>) -> Result<Box<dyn Sampling>, String> {
        let sockets = sockets.into_iter().map(|ends| (ends.local, ends.remote)).collect();
        let sampler = SocketSampler::start(sockets).map_err(|refused| refused.to_string())?;
        Ok(Box::new(HostSampling(sampler)))
    }

    fn facts(&self) -> HostFacts {
        self.facts.clone()
    }
}

struct HostSampling(SocketSampler);

impl Sampling for HostSampling {
    fn latest(&self) -> Vec<Option<fullpipe_model::observe::Sample>> {
        self.0.latest()
    }

    fn stop(self: Box<Self>) -> Vec<Vec<fullpipe_model::observe::Sample>> {
        self.0.stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_without_a_port_gets_the_usual_one() {
        for (host, expected) in [
            ("far.example", "far.example:5606"),
            ("far.example:1", "far.example:1"),
            ("192.0.2.1", "192.0.2.1:5606"),
            ("::1", "[::1]:5606"),
            ("[::1]", "[::1]:5606"),
            ("[::1]:1", "[::1]:1"),
        ] {
            assert_eq!(with_port(host), expected);
        }
    }
}
