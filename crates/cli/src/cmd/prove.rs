//! `fullpipe prove`: rebuilds a measured path in the lab and tries every change there.

use super::input::{self, Reading};
use super::lab::{EngineChoice, EngineName, in_sandbox, of_runs, run_all};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::Args;
use fullpipe_flow::diagnosis::{DiagnosedConnection, worst_first};
use fullpipe_flow::finding::proof::Proof;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::host::Host;
use fullpipe_kernel::run::sandbox::Inside;
use fullpipe_lab::{Engine, GuestLimits, Kernel, Options, choose_kernel, plan};
use fullpipe_model::law::KernelVersion;
use fullpipe_model::scenario::{LinkEngine, Scenario};
use fullpipe_model::tune::MeasuredPath;
use fullpipe_model::tune::prove::{Assumption, Experiment, Lab, hypotheses, refit};
use fullpipe_model::units::Rate;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Rebuild a measured path in the lab, and show what each change would give.
///
/// Takes the path (rate, round trip, queue, loss, buffers, congestion control) from `why --json` or
/// from a capture, and repeats the transfer in the lab: as it was measured, with each change alone,
/// and with all of them. Where the lab does not repeat what was measured, it says so, promises
/// nothing, and the exit code is 1. What was not measured is assumed, and listed.
/// Nothing on this machine is changed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe why --json > why.json; fullpipe prove --from why.json
  fullpipe prove capture.pcap
  fullpipe prove capture.pcap --connection 3 --rate 1gbit
  fullpipe prove --from why.json --json | jq '.trials[] | {changes, gain}'
  fullpipe prove capture.pcap --engine real

Virtual time, the default, needs a guest kernel, once: `fullpipe lab kernel build`, or `install` of a
release's.")]
pub struct Prove {
    /// Capture of the transfer; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "from", conflicts_with = "from")]
    capture: Option<PathBuf>,
    /// JSON with the measured path: of `why --json`; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Number of the connection [default: of a capture the one that lost most time, of JSON the
    /// first].
    #[arg(long, value_name = "N")]
    connection: Option<u64>,
    /// Rate of the bottleneck, if you know it: 1gbit, 100mbit. It replaces the measured one.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Whose clock the lab uses: that of guest kernels (virtual), or this machine's (real).
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = EngineName::Virtual)]
    engine: EngineName,
    /// Release of the guest kernel, or the beginning of one [default: the newest, or one with the
    /// receive buffer's law of the measured receiver].
    #[arg(long, value_name = "RELEASE")]
    kernel: Option<String>,
    /// Transfers at once in virtual time, if there is enough memory [default: one for each CPU].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Run everything, even what the cache has.
    #[arg(long)]
    no_cache: bool,
    /// Keep the results in this folder, new or empty [default: none are kept].
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reading: Reading,
}

impl Prove {
    pub fn run(self) -> Result<u8, Failure> {
        let mut measured = self.measured()?;
        measured.rate = self.rate.or(measured.rate);
        let (engine, lab, release) = self.lab(&measured)?;
        let possible = hypotheses(&measured).into_iter().map(|path| Experiment::new(path, lab));
        let possible: Vec<Experiment> = possible
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::new(Kind::Input, &error))?;
        if let (Engine::Virtual(kernels), Some(first)) = (&engine, possible.first()) {
            let scenario = Scenario { kernel: release.clone(), ..first.before.clone() };
            choose_kernel(kernels, &scenario)?;
        }
        let options = Options {
            out: self.out.clone(),
            cache: if self.no_cache { None } else { of_runs(&engine) },
            jobs: self.jobs,
            limits: GuestLimits { memory: None, stalled_after: GuestLimits::STALLED_AFTER },
            engine,
            ..Options::default()
        };
        in_sandbox(|inside| {
            let runs = Runs { inside, options: &options, release: release.as_deref() };
            let proof = runs.prove(possible, lab)?;
            if self.json {
                print_json(&proof)?;
            } else {
                print(&fullpipe_report::runs::proof::render(&proof, answer_layout()))?;
            }
            Ok(u8::from(!proof.agreement.agrees))
        })
    }

    fn measured(&self) -> Result<MeasuredPath, Failure> {
        match (&self.from, &self.capture) {
            (Some(file), _) => {
                let text = text_of(file)?;
                MeasuredPath::find(&text, self.connection)
                    .map_err(|error| Failure::new(Kind::Input, &error))
            }
            (None, Some(capture)) => self.captured(capture),
            // clap demands one of the two.
            (None, None) => {
                let what = "prove: give a capture or --from FILE";
                let told = Sentence::new(what, "prove：请给出抓包或 --from FILE");
                Err(Failure::new(Kind::Usage, told))
            }
        }
    }

    /// The path of the connection that is meant in a capture.
    fn captured(&self, file: &Path) -> Result<MeasuredPath, Failure> {
        let options = fullpipe_analyze::Options {
            config: self.reading.config(),
            threads: self.reading.threads,
        };
        let capture = input::captures(&[file.into()], false)?.remove(0);
        let name = capture.name().to_owned();
        let mut connections = capture.connections_without_findings(&options);
        let mut all: Vec<DiagnosedConnection> = Vec::new();
        while let Some(round) = connections.next_round() {
            all.extend(round);
        }
        let (_, errors) = connections.finish();
        for problem in input::problems(errors)?.iter().map(Sentence::from) {
            remark(&format!("fullpipe: {}", problem.here()));
        }
        let found = all.len();
        if let Some(number) = self.connection {
            all.retain(|one| one.connection.id == number);
        }
        worst_first(&mut all);
        let path = all.iter().find_map(|one| one.measured_path(one.connection.bulk()));
        path.ok_or_else(|| {
            let which = self.connection.map_or(String::new(), |number| format!(" number {number}"));
            let which_zh = self.connection.map_or(String::new(), |number| format!("编号 {number}、"));
            Failure::new(
                Kind::Input,
                Sentence::new(
                    format!(
                        "prove {name}: there is no connection{which} with data and a round trip among its {found}; \
                         `fullpipe analyze` shows them"
                    ),
                    format!(
                        "验证 {name}：其 {found} 个连接中没有{which_zh}有数据和往返时间的连接；`fullpipe analyze` 列出它们"
                    ),
                ),
            )
        })
    }

    /// The engine, the hosts that it has, and the release of their kernel.
    fn lab(&self, measured: &MeasuredPath) -> Result<(Engine, Lab, Option<String>), Failure> {
        let choice = EngineChoice::new(self.engine, self.kernel.clone());
        let engine = choice.settle(&mut Vec::new())?;
        let (release, link_engine) = match &engine {
            Engine::Virtual(kernels) => {
                let release = match &self.kernel {
                    Some(asked) => asked.clone(),
                    None => {
                        suited(kernels, measured).map_or("6.12".into(), |one| one.release.clone())
                    }
                };
                let kernel = Kernel::find(kernels, Some(&release));
                (kernel.map_or(release, |kernel| kernel.release.clone()), LinkEngine::Netem)
            }
            _ => (Host::read().kernel, LinkEngine::Own),
        };
        let kernel = release.parse::<KernelVersion>();
        let kernel = kernel.map_err(|error| Failure::new(Kind::Run, &error))?;
        let asked = matches!(engine, Engine::Virtual(_)).then_some(release);
        Ok((engine, Lab { kernel, link_engine }, asked))
    }
}

/// Runs experiments.
struct Runs<'a> {
    inside: &'a Inside,
    options: &'a Options,
    /// The release of the guests' kernel.
    release: Option<&'a str>,
}

impl Runs<'_> {
    /// Finds the experiment that repeats the measurement best, and runs all of it.
    fn prove(&self, possible: Vec<Experiment>, lab: Lab) -> Result<Proof, Failure> {
        let (experiment, mut chosen) = self.nearest(possible)?;
        let (mut experiment, refitted) = self.refitted(experiment, lab)?;
        chosen.extend(refitted);
        experiment.assumptions.extend(chosen);
        let scenarios = experiment.trials().into_iter().map(|trial| trial.scenario).collect();
        let rows = self.rows(scenarios, self.options)?;
        Proof::new(experiment, &rows)
            .map_err(|error| Failure::new(Kind::Run, Sentence::as_is(error)))
    }

    /// The experiment whose first transfer is nearest to what was measured, and what was chosen by
    /// that.
    fn nearest(
        &self,
        mut possible: Vec<Experiment>,
    ) -> Result<(Experiment, Vec<Assumption>), Failure> {
        let tried = possible.len();
        if tried <= 1 {
            return Ok((possible.swap_remove(0), Vec::new()));
        }
        let befores: Vec<Scenario> = possible.iter().map(|one| one.before.clone()).collect();
        let rows = self.rows(befores, &self.without_results())?;
        let each = (rows.len() / tried).max(1);
        let errors = possible.iter().zip(rows.chunks(each));
        let errors = errors.map(|(one, rows)| Proof::distance(one, rows)).enumerate();
        let best = errors.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(number, _)| number);
        let first = possible[0].measured.clone();
        let differ = |of: fn(&MeasuredPath, &MeasuredPath) -> bool| {
            possible.iter().any(|one| of(&one.measured, &first))
        };
        let controls = differ(|a, b| a.sender.congestion_control != b.sender.congestion_control);
        let disciplines = differ(|a, b| a.discipline != b.discipline);
        let buckets = differ(|a, b| a.policer != b.policer);
        let experiment = possible.swap_remove(best);
        let measured = &experiment.measured;
        let mut said = Vec::new();
        if let (true, Some(name)) = (controls, &measured.sender.congestion_control) {
            said.push(Assumption::BestControl(name.clone()));
        }
        if disciplines {
            said.push(Assumption::BestDiscipline(measured.discipline.clone()));
        }
        if let (true, Some(bucket)) = (buckets, measured.policer) {
            said.push(Assumption::BestBucket(bucket));
        }
        Ok((experiment, said))
    }

    /// The experiment with a share of loss that the losses counted allow, and that repeats the
    /// measurement better, if there is one.
    fn refitted(
        &self,
        counted: Experiment,
        lab: Lab,
    ) -> Result<(Experiment, Option<Assumption>), Failure> {
        let mut best: Option<(f64, Experiment)> = None;
        let mut tried = counted.clone();
        for _ in 0..REFITS {
            let rows = self.rows(vec![tried.before.clone()], &self.without_results())?;
            let error = Proof::distance(&tried, &rows);
            let ratio = Proof::agreement(&tried, &rows).ratio;
            let next = refit(&counted.measured, &tried.measured, ratio);
            if best.as_ref().is_none_or(|(least, _)| error < *least) {
                best = Some((error, tried));
            }
            let Some(next) = next else { break };
            tried =
                Experiment::new(next, lab).map_err(|error| Failure::new(Kind::Input, &error))?;
        }
        let experiment = best.map_or(counted.clone(), |(_, experiment)| experiment);
        let said = experiment.measured.loss.filter(|loss| Some(*loss) != counted.measured.loss);
        let lost = counted.measured.lost_segments.unwrap_or_default();
        let said = said.map(|loss| Assumption::BestLoss(lost, loss));
        // What was measured stays what was measured.
        Ok((Experiment { measured: counted.measured, ..experiment }, said))
    }

    /// The options of trials whose results nobody asked for.
    fn without_results(&self) -> Options {
        Options { out: None, ..self.options.clone() }
    }

    /// The rows of scenarios, each as often as it says.
    fn rows(
        &self,
        mut scenarios: Vec<Scenario>,
        options: &Options,
    ) -> Result<Vec<RunRow>, Failure> {
        for scenario in &mut scenarios {
            scenario.kernel = self.release.map(str::to_string);
        }
        let mut sweep = run_all(self.inside, &plan(&scenarios, None), options)?;
        match sweep.failures.is_empty() {
            true => Ok(sweep.rows),
            false => Err(sweep.failures.remove(0).error.into()),
        }
    }
}

/// Trials of other shares of loss, at most.
const REFITS: usize = 3;

/// The newest kernel, or the newest with the window law of the measured receiver.
fn suited<'a>(kernels: &'a [Kernel], measured: &MeasuredPath) -> Option<&'a Kernel> {
    const RATIO: KernelVersion = KernelVersion::new(6, 6);
    let is_old = measured.receiver.kernel.map(|kernel| kernel < RATIO);
    let suited = kernels.iter().find(|kernel| {
        let version = kernel.release.parse::<KernelVersion>();
        is_old.is_none_or(|old| version.is_ok_and(|version| (version < RATIO) == old))
    });
    suited.or(kernels.first())
}

fn text_of(file: &Path) -> Result<String, Failure> {
    let read = if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|error| {
        let file = file.display();
        let what = format!("read measured path {file}");
        let told = Sentence::new(what, format!("读取测得的路径 {file}")).with(error);
        Failure::new(Kind::Input, told)
    })
}
