//! `--engine` and `--kernel`: what runs the scenarios.

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use clap::{Args, ValueEnum};
use fullpipe_kernel::host::Host;
use fullpipe_lab::{Engine, Kernel, choose_kernel, unsuited_to_virtual_time};
use fullpipe_model::scenario::{LinkEngine, Scenario};

/// What runs the scenarios.
#[derive(Args)]
pub struct Choice {
    /// Whose clock runs use: this machine's, or that of guest kernels, which stands still while
    /// anything computes. Virtual time is exact on any machine and repeats byte for byte (build a
    /// kernel first: `fullpipe lab kernel build`).
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Name::Real)]
    engine: Name,
    /// Release of the guest kernel, or the beginning of one, such as 6.1; overrides `kernel` in the
    /// scenarios.
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// What carries the packets: our own link or the kernel's netem; overrides `link.engine` in the
    /// scenarios [default: netem in virtual time, own in real time].
    #[arg(long, value_name = "ENGINE", value_enum)]
    link_engine: Option<LinkName>,
    /// Write truth.jsonl: for each interval between samples, what the sender waited for, as its
    /// kernel counted it (virtual time; build such a kernel first: `fullpipe lab kernel build
    /// --truth`).
    #[arg(long)]
    truth: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LinkName {
    /// Our own link, on any kernel.
    Own,
    /// The kernel's netem, if it has one; the guest kernels do.
    Netem,
}

/// The engines by name.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Real time, under the kernel of this machine.
    Real,
    /// Virtual time, in a guest kernel.
    Virtual,
    /// Virtual if a guest kernel is built, else real.
    Auto,
}

impl Choice {
    /// A choice made without these options.
    pub fn new(engine: Name, kernel: Option<String>) -> Choice {
        Choice { engine, kernel, link_engine: None, truth: false }
    }

    /// Of `kernels` those that fit `--truth`: where it is asked for, those that count reasons.
    fn fitting(&self, mut kernels: Vec<Kernel>) -> Result<Vec<Kernel>, Failure> {
        kernels.retain(|kernel| kernel.counts_reasons() == self.truth);
        if self.truth && kernels.is_empty() {
            return Err(Failure::new(
                Kind::Missing,
                Sentence::new(
                    "choose kernel: none counts why its sockets do not send; build one with \
                     `fullpipe lab kernel build --truth`",
                    "选择内核：没有一个统计其套接字为什么不发送；请用 `fullpipe lab kernel build --truth` 构建",
                ),
            ));
        }
        Ok(kernels)
    }

    /// Refuses what needs a guest kernel where there is none.
    fn check(&self) -> Result<(), Failure> {
        if self.engine == Name::Real && self.truth {
            return Err(Failure::new(
                Kind::Usage,
                Sentence::new(
                    "choose kernel: --truth works with --engine virtual only",
                    "选择内核：--truth 只能与 --engine virtual 同用",
                ),
            ));
        }
        if self.engine == Name::Real && self.kernel.is_some() {
            return Err(Failure::new(
                Kind::Usage,
                Sentence::new(
                    "choose kernel: --kernel needs --engine virtual",
                    "选择内核：--kernel 需要 --engine virtual",
                ),
            ));
        }
        Ok(())
    }

    /// Decides the engine and puts the requested kernel into the scenarios. Takes out rows that
    /// only explain another row's difference and cannot run here.
    pub fn settle(&self, scenarios: &mut Vec<Scenario>) -> Result<Engine, Failure> {
        if let Some(name) = self.link_engine {
            for scenario in scenarios.iter_mut() {
                scenario.link_engine = Some(match name {
                    LinkName::Own => LinkEngine::Own,
                    LinkName::Netem => LinkEngine::Netem,
                });
            }
        }
        self.check()?;
        let kernels = match (self.engine, Kernel::cached()) {
            (Name::Real, _) => Vec::new(),
            (_, Ok(kernels)) => kernels,
            (Name::Auto, Err(error)) => {
                let why = Sentence::from(&error);
                remark(&either(
                    format!(
                        "fullpipe: runs in real time, without a guest kernel: {}",
                        why.english()
                    ),
                    format!("fullpipe: 实时运行，不用客户机内核：{}", why.chinese()),
                ));
                Vec::new()
            }
            (Name::Virtual, Err(error)) => return Err(error.into()),
        };
        let kernels = self.fitting(kernels)?;
        if let Some(release) = &self.kernel {
            let why = either("--kernel overrides theirs", "--kernel 优先于它们的");
            leave_out(scenarios, why, |asked| asked == release);
            for scenario in scenarios.iter_mut() {
                scenario.kernel = Some(release.clone());
            }
        }
        let real = self.engine == Name::Real
            || (self.engine == Name::Auto && kernels.is_empty() && self.kernel.is_none());
        if real {
            let running = Host::read().kernel;
            let why = either(
                "this machine runs another; use --engine virtual",
                "本机运行的是另一个；请用 --engine virtual",
            );
            leave_out(scenarios, why, |asked| Kernel::is_release(&running, asked));
            // Many kernels have no netem; any other row that needs it fails with a message of its
            // own.
            let left_out = scenarios.extract_if(.., |row| {
                row.reference.cause.is_some() && row.link_engine == Some(LinkEngine::Netem)
            });
            for row in left_out {
                let name = &row.name;
                remark(&either(
                    format!("left out: {name}, which shows a cause by netem: use --engine virtual"),
                    format!("略去：{name}，它用 netem 显示原因：请用 --engine virtual"),
                ));
            }
            return Ok(Engine::Real);
        }
        let why = either(
            "it is not built: `fullpipe lab kernel build`",
            "它尚未构建：`fullpipe lab kernel build`",
        );
        leave_out(scenarios, why, |asked| Kernel::find(&kernels, Some(asked)).is_some());
        // Check all kernels now, rather than fail after an hour.
        for scenario in
            scenarios.iter().filter(|scenario| unsuited_to_virtual_time(scenario).is_none())
        {
            choose_kernel(&kernels, scenario)?;
        }
        Ok(Engine::Virtual(kernels))
    }
}

/// Takes out, with a message, the rows that explain a difference by a kernel for which `had` is
/// false.
fn leave_out(scenarios: &mut Vec<Scenario>, why: &str, had: impl Fn(&str) -> bool) {
    let left_out = scenarios.extract_if(.., |scenario| {
        let asked = scenario.kernel.as_deref();
        scenario.reference.cause.is_some() && asked.is_some_and(|asked| !had(asked))
    });
    for scenario in left_out {
        let asked = scenario.kernel.as_deref().unwrap_or_default();
        let name = &scenario.name;
        remark(&either(
            format!("left out: {name}, which shows a cause under Linux {asked}: {why}"),
            format!("略去：{name}，它在 Linux {asked} 上显示原因：{why}"),
        ));
    }
}
