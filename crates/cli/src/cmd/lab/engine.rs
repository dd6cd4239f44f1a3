//! `--engine` and `--kernel`: what carries the runs.

use crate::failure::{Failure, Kind};
use clap::{Args, ValueEnum};
use fullpipe_lab::Engine;
use fullpipe_lab::guest::{self, kernel};
use fullpipe_model::scenario::Scenario;

/// What carries the runs.
#[derive(Args)]
pub struct Choice {
    /// Whose clock runs go by: this machine's, or that of guest kernels, which stands still while anything computes: exact
    /// on any machine and the same every time (build a kernel first: `fullpipe lab kernel build`).
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Name::Real)]
    engine: Name,
    /// Release of the guest kernel, or how it begins, such as 6.1; it stands above the scenarios' own `kernel`.
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Real time, under the kernel of this machine.
    Real,
    /// Virtual time, in a guest kernel.
    Virtual,
    /// Virtual where a guest kernel is built, else real.
    Auto,
}

impl Choice {
    /// The engine; the kernel that was asked for is put into the scenarios.
    pub fn settle(&self, scenarios: &mut [Scenario]) -> Result<Engine, Failure> {
        if self.engine == Name::Real && self.kernel.is_some() {
            return Err(Failure::new(Kind::Usage, "choose kernel: --kernel works with --engine virtual only"));
        }
        let kernels = if self.engine == Name::Real { Vec::new() } else { kernel::cached() };
        if let Some(release) = &self.kernel {
            for scenario in scenarios.iter_mut() {
                scenario.kernel = Some(release.clone());
            }
        }
        let real =
            self.engine == Name::Real || (self.engine == Name::Auto && kernels.is_empty() && self.kernel.is_none());
        if real {
            return Ok(Engine::Real);
        }
        // All of them now, rather than one of them in an hour.
        for scenario in scenarios.iter().filter(|scenario| guest::unsuited(scenario).is_none()) {
            guest::choose(&kernels, scenario)?;
        }
        Ok(Engine::Virtual(kernels))
    }
}
