//! Keys of peers from files, their addresses, this host as its peers sample it, and the end by a
//! signal: what `serve`, `test`, `relay` and `keygen` share.

use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use fullpipe_host::SocketSampler;
use fullpipe_host::settings::ThisHost;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_peer::path_test::{Ends, HostFacts, Sampler, Sampling};
use fullpipe_peer::{DEFAULT_PORT, ParseKeyError, PrivateKey, PublicKey};
use fullpipe_transfer::Stop;
use std::io::Read;
use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// No file of keys is longer.
const LONGEST: u64 = 1 << 20;

fn read(path: &Path, what: &Sentence) -> Result<(String, std::fs::Metadata), Failure> {
    let input = |cause: Sentence| {
        let advice = Sentence::new("`fullpipe keygen` makes one", "`fullpipe keygen` 可生成");
        Failure::new(Kind::Input, Sentence::joined(&[what.and(&cause), advice]))
    };
    let file = std::fs::File::open(path).map_err(|error| input(Sentence::as_is(error)))?;
    let metadata = file.metadata().map_err(|error| input(Sentence::as_is(error)))?;
    let mut text = String::new();
    let read = file.take(LONGEST + 1).read_to_string(&mut text);
    if read.map_err(|error| input(Sentence::as_is(error)))? as u64 > LONGEST {
        return Err(input(Sentence::new("it is longer than 1 MiB", "它超过 1 MiB")));
    }
    Ok((text, metadata))
}

/// The private key in a file that only its owner may read.
pub fn private_key(path: &Path) -> Result<PrivateKey, Failure> {
    let name = path.display();
    let what = format!("read private key {name}");
    let what = Sentence::new(what, format!("读取私钥 {name}"));
    let (text, metadata) = read(path, &what)?;
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        let why = Sentence::new(
            format!("other users may read it; chmod 600 {name}"),
            format!("其他用户可以读取它；chmod 600 {name}"),
        );
        return Err(Failure::new(Kind::Input, what.and(&why)));
    }
    text.parse().map_err(|error: ParseKeyError| {
        Failure::new(Kind::Input, what.and(&Sentence::from(&error)))
    })
}

/// The public keys in a file, one a line.
pub fn allowed_keys(path: &Path) -> Result<Vec<PublicKey>, Failure> {
    let name = path.display();
    let what = format!("read allowed keys {name}");
    let what = Sentence::new(what, format!("读取允许的密钥 {name}"));
    let (text, _) = read(path, &what)?;
    let why = match PublicKey::list(&text) {
        Ok(keys) if keys.is_empty() => Sentence::new(
            "it has no key, so nobody could connect; add a line of `fullpipe keygen`",
            "其中没有密钥，因此谁也不能连接；请加入 `fullpipe keygen` 显示的一行",
        ),
        Ok(keys) => return Ok(keys),
        Err(error) => Sentence::from(&error),
    };
    Err(Failure::new(Kind::Input, what.and(&why)))
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
    let first = Interrupt::on_signals().map_err(Failure::of_kernel)?;
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
        let host = ThisHost::read().map_err(Failure::of_kernel)?;
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
