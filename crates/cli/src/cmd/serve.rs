//! `fullpipe serve`: the far end of tests.

use super::peer_keys::{HostSampler, allowed_keys, private_key};
use crate::failure::{Failure, Kind};
use crate::terminal::remark;
use clap::Args;
use fullpipe_kernel::sandbox::Interrupt;
use fullpipe_model::units::Duration;
use fullpipe_transfer::Stop;
use fullpipe_transfer::path_test::{Responder, ResponderLimits};
use fullpipe_transfer::peer::{AcceptError, DEFAULT_PORT, Daemon, Limits};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Be the far end of `fullpipe test`: one daemon, one port.
///
/// Without keys it listens on loopback alone. On any other address it needs --key and --allow-key:
/// control connections are TLS 1.3, and both ends must have the key that the other one was told.
/// Test data itself is not encrypted, so that a test measures the path and the kernel. On SIGTERM
/// or Ctrl-C it lets running tests end, for 30 s at most.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe serve
  fullpipe keygen serve.key
  fullpipe serve --listen 0.0.0.0:5606 --key serve.key --allow-key clients.keys
  fullpipe serve --listen 127.0.0.1:0 --tests 2

contrib/systemd has a unit.")]
pub struct Serve {
    /// Address and port to listen on; with port 0 a free one, which is printed.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = default_address())]
    listen: SocketAddr,
    /// The file with this daemon's private key, as `fullpipe keygen` makes it.
    #[arg(long, value_name = "FILE", requires = "allow_key")]
    key: Option<PathBuf>,
    /// A file with the public keys of those who may connect, one a line.
    #[arg(long, value_name = "FILE", requires = "key")]
    allow_key: Option<PathBuf>,
    /// How many tests may run at once; more than one measure each other.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64))]
    tests: u16,
    /// The longest run that a client may ask for.
    #[arg(long, value_name = "TIME", default_value = "1h")]
    longest: Duration,
}

fn default_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, DEFAULT_PORT).into()
}

impl Serve {
    pub fn run(self) -> Result<u8, Failure> {
        let keys = match (&self.key, &self.allow_key) {
            (Some(key), Some(allowed)) => Some((private_key(key)?, allowed_keys(allowed)?)),
            _ => None,
        };
        let interrupt = Interrupt::on_signals().map_err(super::why::failed)?;
        let sampler = HostSampler::new()?;
        let pair = keys.as_ref().map(|(own, allowed)| (own, allowed.clone()));
        let daemon = Daemon::bind(self.listen, pair, Limits::default(), remark)
            .map_err(|error| Failure::new(kind_of(&error), format!("serve: {error}")))?;
        remark(&format!("serving tests on {}", daemon.local_addr()));
        if let Some(public) = keys.and_then(|(own, _)| own.public()) {
            remark(&format!("clients need --server-key {public}"));
        }
        let limits = ResponderLimits { runs: self.tests.into(), longest: self.longest };
        let (responder, stop) = (Responder::new(sampler, limits), Stop::new());
        let ended = std::thread::scope(|scope| {
            let (signal, stop_on_signal) = (&interrupt, &stop);
            scope.spawn(move || {
                // An error would mean that the descriptor is gone, and we hold it.
                let _ = signal.wait(None);
                stop_on_signal.stop();
            });
            let ended = daemon.run(&responder, &stop);
            // The thread that waits for a signal ends, too.
            interrupt.set();
            ended
        });
        ended.map_err(|error| Failure::new(Kind::Run, format!("serve: {error}")))?;
        remark("stopped");
        Ok(Failure::code(Kind::Interrupted))
    }
}

fn kind_of(error: &AcceptError) -> Kind {
    match error {
        AcceptError::NeedsKeys(_) => Kind::Usage,
        AcceptError::Keys(_) => Kind::Input,
        AcceptError::Bind { .. } | AcceptError::Wait { .. } => Kind::Run,
    }
}
