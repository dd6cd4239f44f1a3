//! `fullpipe export`: time and bytes by limit for Prometheus.

mod exposition;

use super::open_metrics::{self, Text};
use crate::failure::{Failure, Kind};
use crate::terminal::{print, remark};
use clap::Args;
use exposition::{Exposition, FIXED_SERIES};
use fullpipe_host::totals::Totals;
use fullpipe_host::watch::{Namespaces, Watch};
use fullpipe_kernel::clock;
use fullpipe_kernel::sandbox::Interrupt;
use fullpipe_model::units::Duration;
use std::net::SocketAddr;
use std::rc::Rc;

/// Serve what limits the host's TCP connections as OpenMetrics, for Prometheus.
///
/// Time and bytes by limit are counted by process, control group and low port, and summed as
/// "other" beyond --series-max. Reads only; as root it counts the connections of all users and
/// namespaces.
/// The files in contrib/ have alerts, a dashboard for Grafana and a systemd unit.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe export                                  http://127.0.0.1:9090/metrics
  fullpipe export --listen 127.0.0.1:9101 --interval 5s
  fullpipe export --once                           look three times, print the metrics, and end")]
pub struct Export {
    /// Address and port to listen on; with port 0 a free one, which is printed.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9090")]
    listen: SocketAddr,
    /// Allow an address that other machines reach: the metrics name processes and control groups,
    /// and there is neither TLS nor a password.
    #[arg(long)]
    expose: bool,
    /// Time between two looks, 100ms to 60s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = super::top::interval)]
    interval: Duration,
    /// The most series; what does not fit is summed as "other".
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = series)]
    series_max: usize,
    /// Look three times, print the metrics, and end.
    #[arg(long, conflicts_with_all = ["listen", "expose"])]
    once: bool,
}

/// Below this there is no room for a group beside the rest.
const SERIES_MIN: usize = FIXED_SERIES + 2 * Totals::OTHER_SERIES;

fn series(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (SERIES_MIN..=1_000_000).contains(&count) => Ok(count),
        _ => Err(format!("'{text}' must be a whole number between {SERIES_MIN} and 1000000")),
    }
}

impl Export {
    pub fn run(self) -> Result<u8, Failure> {
        if !self.listen.ip().to_canonical().is_loopback() && !self.expose {
            return Err(Failure::new(
                Kind::Usage,
                format!(
                    "export: other machines may reach {}, and the metrics name processes; listen \
                     on 127.0.0.1, or add --expose",
                    self.listen
                ),
            ));
        }
        let interrupt = Interrupt::on_signals().map_err(run_failed)?;
        let watch = Watch::open(Namespaces::All)
            .map_err(|refused| Failure::new(Kind::Missing, format!("export: {refused}")))?;
        let mut sampler = Sampler { watch, exposition: Rc::new(Exposition::new(self.series_max)) };
        sampler.look()?;
        if self.once {
            // The second look says which connections are busy, the third what they do.
            for _ in 0..2 {
                if interrupt.wait(Some(self.interval))? {
                    return Ok(Failure::code(Kind::Interrupted));
                }
                sampler.look()?;
            }
            print(&sampler.exposition.text())?;
            return Ok(0);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.serve(sampler, &interrupt))
    }

    async fn serve(&self, mut sampler: Sampler, interrupt: &Interrupt) -> Result<u8, Failure> {
        let listener = tokio::net::TcpListener::bind(self.listen).await.map_err(|error| {
            let hint = "choose another with --listen 127.0.0.1:PORT; port 0 is any free one";
            Failure::new(Kind::Run, format!("export: listen on {}: {error}; {hint}", self.listen))
        })?;
        remark(&format!("serving http://{}/metrics", listener.local_addr()?));
        let signal = interrupt.clone();
        let ended = tokio::task::spawn_blocking(move || signal.wait(None));
        let exposition = Rc::clone(&sampler.exposition);
        let looking = async {
            let mut ticks = tokio::time::interval(self.interval.into());
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Err(failure) = sampler.look() {
                    return failure;
                }
            }
        };
        let text: Text = Rc::new(move || {
            let exposition = Rc::clone(&exposition);
            Box::pin(async move { exposition.text() })
        });
        let serving = open_metrics::serve(listener, text, async {
            // An error would mean that the descriptor is gone, and we hold it.
            let _ = ended.await;
        });
        tokio::select! {
            failure = looking => {
                // The thread that waits for a signal ends, too.
                interrupt.set();
                Err(failure)
            }
            () = serving => Ok(Failure::code(Kind::Interrupted)),
        }
    }
}

/// Looks, and counts what it finds.
struct Sampler {
    watch: Watch,
    exposition: Rc<Exposition>,
}

impl Sampler {
    fn look(&mut self) -> Result<(), Failure> {
        let before = clock::now();
        self.watch.look().map_err(run_failed)?;
        let now = clock::now();
        let watch = &self.watch;
        self.exposition
            .note(watch.connections(), now.since(before), |totals| totals.look(watch, now));
        Ok(())
    }
}

fn run_failed(refused: fullpipe_kernel::Refused) -> Failure {
    Failure::new(Kind::Run, format!("export: {refused}"))
}
