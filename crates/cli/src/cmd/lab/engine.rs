//! `--engine` and `--kernel`: what carries the runs.

use crate::failure::{Failure, Kind};
use crate::terminal::remark;
use clap::{Args, ValueEnum};
use fullpipe_kernel::host::Host;
use fullpipe_lab::Engine;
use fullpipe_lab::guest::{self, kernel};
use fullpipe_model::scenario::{LinkEngine, Scenario};

/// What carries the runs.
#[derive(Args)]
pub struct Choice {
    /// Whose clock runs go by: this machine's, or that of guest kernels, which stands still while
    /// anything computes: exact on any machine and the same every time (build a kernel first:
    /// `fullpipe lab kernel build`).
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Name::Real)]
    engine: Name,
    /// Release of the guest kernel, or how it begins, such as 6.1; it stands above the scenarios'
    /// own `kernel`.
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// What carries the packets: our own link, or the kernel's netem; it stands above the
    /// scenarios' own `link.engine` [default: netem in virtual time, own in real time].
    #[arg(long, value_name = "ENGINE", value_enum)]
    link_engine: Option<LinkName>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LinkName {
    /// Our own link, on any kernel.
    Own,
    /// netem, where the kernel has it; the guest kernels do.
    Netem,
}

/// The engines by name.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Real time, under the kernel of this machine.
    Real,
    /// Virtual time, in a guest kernel.
    Virtual,
    /// Virtual where a guest kernel is built, else real.
    Auto,
}

impl Choice {
    /// What was chosen otherwise than by these options.
    pub fn new(engine: Name, kernel: Option<String>) -> Choice {
        Choice { engine, kernel, link_engine: None }
    }

    /// The engine; the kernel that was asked for is put into the scenarios. Rows that only show the
    /// cause of another one's difference are taken out where they cannot run.
    pub fn settle(&self, scenarios: &mut Vec<Scenario>) -> Result<Engine, Failure> {
        if let Some(name) = self.link_engine {
            for scenario in scenarios.iter_mut() {
                scenario.link_engine = Some(match name {
                    LinkName::Own => LinkEngine::Own,
                    LinkName::Netem => LinkEngine::Netem,
                });
            }
        }
        if self.engine == Name::Real && self.kernel.is_some() {
            return Err(Failure::new(
                Kind::Usage,
                "choose kernel: --kernel works with --engine virtual only",
            ));
        }
        let kernels = match (self.engine, kernel::cached()) {
            (Name::Real, _) => Vec::new(),
            (_, Ok(kernels)) => kernels,
            (Name::Auto, Err(error)) => {
                remark(&format!("fullpipe: no guest kernel is used: {error}"));
                Vec::new()
            }
            (Name::Virtual, Err(error)) => return Err(error.into()),
        };
        if let Some(release) = &self.kernel {
            leave_out(scenarios, "--kernel stands above theirs", |asked| asked == release);
            for scenario in scenarios.iter_mut() {
                scenario.kernel = Some(release.clone());
            }
        }
        let real = self.engine == Name::Real
            || (self.engine == Name::Auto && kernels.is_empty() && self.kernel.is_none());
        if real {
            let running = Host::read().kernel;
            let why = "this machine runs another; use --engine virtual";
            leave_out(scenarios, why, |asked| kernel::is_release(&running, asked));
            // Many a kernel has no netem; a row of its own right says so when it fails.
            let netem = |row: &Scenario| {
                row.reference.cause.is_some() && row.link_engine == Some(LinkEngine::Netem)
            };
            for row in scenarios.iter().filter(|row| netem(row)) {
                remark(&format!(
                    "left out: {}, which shows a cause by netem: use --engine virtual",
                    row.name
                ));
            }
            scenarios.retain(|row| !netem(row));
            return Ok(Engine::Real);
        }
        let why = "it is not built: `fullpipe lab kernel build`";
        leave_out(scenarios, why, |asked| kernel::find(&kernels, Some(asked)).is_some());
        // All of them now, rather than one of them in an hour.
        for scenario in scenarios.iter().filter(|scenario| guest::unsuited(scenario).is_none()) {
            guest::choose(&kernels, scenario)?;
        }
        Ok(Engine::Virtual(kernels))
    }
}

/// Takes out the rows that show a cause by a kernel that is not to be `had`, and says so.
fn leave_out(scenarios: &mut Vec<Scenario>, why: &str, had: impl Fn(&str) -> bool) {
    let fits = |scenario: &Scenario| {
        scenario.reference.cause.is_none() || scenario.kernel.as_deref().is_none_or(&had)
    };
    for scenario in scenarios.iter().filter(|scenario| !fits(scenario)) {
        let asked = scenario.kernel.as_deref().unwrap_or_default();
        remark(&format!(
            "left out: {}, which shows a cause under Linux {asked}: {why}",
            scenario.name
        ));
    }
    scenarios.retain(fits);
}
