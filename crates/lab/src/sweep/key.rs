//! What a run depends on, as one digest.
//!
//! In virtual time a result depends only on the scenario with its seed, the guest kernel and this
//! program (which is also the guest's whole userland). The key is a SHA-256 of all of that, so
//! equal keys mean equal results, and such a run need not be repeated ([`crate::cache`]). The whole
//! program file counts: nobody could say which parts have no influence, and a row from an older
//! build must not pass for one of this build.
//!
//! In real time the machine and the moment are part of a result, and no key can contain them. There
//! the key only identifies the request, which is enough to resume a sweep
//! ([`crate::results::Manifest`]), but not to replace a run.

use super::Run;
use crate::Engine;
use crate::guest;
use fullpipe_model::scenario::{Client, Scenario, Server};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

/// Increased when the meaning of a result changes although program and scenario could be the same.
const FORMAT: u32 = 1;

/// The digest of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Key {
    /// The digest of `bytes`.
    fn of(bytes: &[u8]) -> Key {
        Key(hexadecimal(&Sha256::digest(bytes)))
    }

    /// Parses a key; `None` if the text is not a digest.
    pub fn parse(text: &str) -> Option<Key> {
        let digits =
            text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        (text.len() == 64 && digits).then(|| Key(text.into()))
    }
}

/// Makes the keys of one sweep's runs; the program and the kernels are read once.
#[derive(Debug, Clone)]
pub struct Keys {
    program: Option<String>,
    kernels: BTreeMap<PathBuf, String>,
    engine: Engine,
    keep_captures: bool,
}

#[derive(serde::Serialize)]
struct Parts<'a> {
    format: u32,
    version: &'static str,
    program: Option<&'a str>,
    engine: &'static str,
    kernel: Option<&'a str>,
    keep_captures: bool,
    repetition: u32,
    scenario: &'a Scenario,
}

impl Keys {
    /// Keys for runs by `engine`.
    ///
    /// # Errors
    /// This program or a kernel cannot be read.
    pub fn new(engine: &Engine, keep_captures: bool) -> io::Result<Keys> {
        let mut keys =
            Keys { program: None, kernels: BTreeMap::new(), engine: engine.clone(), keep_captures };
        if let Engine::Virtual(kernels) = engine {
            keys.program = Some(digest(&std::env::current_exe()?)?);
            for kernel in kernels {
                keys.kernels.insert(kernel.path.clone(), digest(&kernel.executable())?);
            }
        }
        Ok(keys)
    }

    /// The key of `run`.
    pub fn of(&self, run: &Run) -> Key {
        let kernel = self.kernel(&run.scenario);
        let parts = Parts {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            program: self.program.as_deref(),
            engine: if kernel.is_some() { "virtual" } else { "real" },
            kernel,
            keep_captures: self.keep_captures,
            repetition: run.repetition,
            scenario: &run.scenario,
        };
        Key::of(
            &serde_json::to_vec(&parts).expect("a scenario is written as JSON beside every result"),
        )
    }

    /// The key of `run` if it determines the result: in virtual time, between our own two ends.
    /// nginx, Python, curl and iperf3 belong to the host, and so do their libraries and settings,
    /// which the key does not cover.
    pub(crate) fn repeatable(&self, run: &Run) -> Option<Key> {
        let own = run.scenario.transfer.server == Server::Builtin
            && run.scenario.transfer.client == Client::Builtin;
        (own && self.kernel(&run.scenario).is_some()).then(|| self.of(run))
    }

    /// Digest of the guest kernel for `scenario`; `None` in real time.
    fn kernel(&self, scenario: &Scenario) -> Option<&str> {
        match &self.engine {
            Engine::Virtual(kernels) if guest::unsuited_to_virtual_time(scenario).is_none() => {
                let kernel = guest::choose_kernel(kernels, scenario).ok()?;
                self.kernels.get(&kernel.path).map(String::as_str)
            }
            _ => None,
        }
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = io::BufReader::with_capacity(1 << 20, File::open(path)?);
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            break;
        }
        hash.update(part);
        let length = part.len();
        file.consume(length);
    }
    Ok(hexadecimal(&hash.finalize()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::Kernel;
    use crate::preset;
    use std::sync::Arc;

    fn run() -> Run {
        Run { scenario: preset::load("articles/b2").unwrap().remove(0), repetition: 1 }
    }

    fn keys(program: &str, kernel: &str) -> Keys {
        let path = PathBuf::from("/k/linux");
        let (key, release) = ("6.12.1-a".into(), "6.12.1".into());
        let file = Arc::new(File::open("/dev/null").unwrap());
        let kernels = vec![Kernel { key, release, path: path.clone(), program: file }];
        Keys {
            program: Some(program.into()),
            kernels: BTreeMap::from([(path, kernel.into())]),
            engine: Engine::Virtual(kernels),
            keep_captures: false,
        }
    }

    #[test]
    fn the_digest_is_sha_256() {
        // FIPS 180-4's example.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Key::of(b"abc").to_string(), abc);
        assert_eq!(Key::parse(abc), Some(Key::of(b"abc")));
        for foreign in ["", "..", "abc", &abc[1..], &abc.to_uppercase()] {
            assert_eq!(Key::parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn whatever_a_result_depends_on_changes_its_key() {
        let key = keys("p", "k").of(&run());
        assert_eq!(keys("p", "k").of(&run()), key);
        let mut seed = run();
        seed.scenario.path.seed += 1;
        let mut name = run();
        name.scenario.name += "x";
        let mut keys_with_captures = keys("p", "k");
        keys_with_captures.keep_captures = true;
        let others = [
            keys("q", "k").of(&run()),
            keys("p", "l").of(&run()),
            keys("p", "k").of(&seed),
            keys("p", "k").of(&name),
            keys("p", "k").of(&Run { repetition: 2, ..run() }),
            keys_with_captures.of(&run()),
        ];
        for (index, other) in others.iter().enumerate() {
            assert!(*other != key && !others[..index].contains(other), "{index}");
        }
    }

    #[test]
    fn only_what_is_a_function_of_its_key_is_repeatable() {
        assert!(keys("p", "k").repeatable(&run()).is_some());
        let mut curl = run();
        curl.scenario.transfer.client = Client::Curl;
        assert_eq!(keys("p", "k").repeatable(&curl), None);
        let mut hog = run();
        hog.scenario.hosts.client.cpu = Some(0);
        hog.scenario.hosts.client.cpu_hog_nice = Some(0);
        assert_eq!(keys("p", "k").repeatable(&hog), None);
        let real = Keys::new(&Engine::Real, false).unwrap();
        assert_eq!(real.repeatable(&run()), None);
    }
}
