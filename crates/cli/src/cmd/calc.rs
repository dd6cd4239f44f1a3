//! `fullpipe calc`: what a path needs and what a buffer allows.

mod convert;

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::{Args, Subcommand};
use fullpipe_host::settings::ThisHost;
use fullpipe_model::change::Sysctl;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::tune::{
    ConnectionsSheet, FileSheet, HostSettings, HostSheet, Path, Question, Sheet, grid, sheet_for,
};
use fullpipe_model::units::{Bytes, Duration, ParseError, Probability, Rate};
use fullpipe_report::plan::calc as report;
use serde::Serialize;
use std::collections::BTreeMap;

/// Calculate what a path needs and what a buffer allows.
///
/// Measures nothing and changes nothing: buffers, windows and times follow from the rate and the
/// round-trip time, by the rules of the given kernel (of both families of kernels without
/// --kernel), or by this host's settings (--this-host).
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  fullpipe calc --rate 1gbit --rtt 50ms
  fullpipe calc convert 38.7M
  fullpipe calc --rate 1gbit --rtt 146ms --buffer 6MiB --kernel 6.1
  fullpipe calc --rate 1gbit --rtt 146ms --loss 0.01%
  fullpipe calc --rate 1gbit --rtt 1ms,20ms,146ms --loss 0.01%,0.1% --file 1GB
  fullpipe calc --rate 1gbit --rtt 146ms --connections 500 --memory 16GiB
  fullpipe calc --this-host                                what its settings fill at usual paths
  fullpipe calc --this-host --rate 1gbit --rtt 146ms       and on this one
  fullpipe calc --rate 125MB/s --rtt 146ms --json")]
pub struct Calc {
    #[command(subcommand)]
    action: Option<CalcAction>,
    /// Rate of the bottleneck: 1gbit, 100mbit, 125MB/s.
    #[arg(long, value_name = "RATE", value_parser = rate, required_unless_present = "this_host")]
    rate: Option<Rate>,
    /// Round-trip time without queues: 146ms, 50us; several, separated by commas, give a row each.
    #[arg(long, value_name = "TIME", value_delimiter = ',', required_unless_present = "this_host")]
    rtt: Vec<Duration>,
    /// A buffer to judge, both as receive and as send buffer: 6MiB, 4194304.
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Bytes>,
    /// Kernel whose rules apply: 6.1, 6.12.8-amd64.
    #[arg(long, value_name = "VERSION", conflicts_with = "this_host")]
    kernel: Option<KernelVersion>,
    /// Random loss: what one connection carries by congestion control, and how many would fill the
    /// path: 0.1%, 0.001; several, separated by commas, give a row each.
    #[arg(long, value_name = "SHARE", value_delimiter = ',')]
    loss: Vec<Probability>,
    /// A file: how long it takes at least.
    #[arg(long, visible_alias = "bytes", value_name = "SIZE")]
    file: Option<Bytes>,
    /// Connections: the memory that they may take, and the tcp_mem that this needs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    connections: Option<u64>,
    /// Memory of the machine: which share of it the connections take, and whether that fits
    /// (--this-host: this machine's, unless given).
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Take this host's kernel and settings, and say what they fill; without --rate or --rtt at
    /// usual ones.
    #[arg(long)]
    this_host: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What else to calculate.
#[derive(Subcommand)]
enum CalcAction {
    Convert(convert::Convert),
}

/// The highest rate that the laws are tested for.
const RATE_MAX: Rate = Rate::from_bits_per_sec(1_000_000_000_000);

/// A rate that the laws are tested for.
pub(super) fn rate(text: &str) -> Result<Rate, Sentence> {
    let rate: Rate = text.parse().map_err(|error: ParseError| Sentence::from(&error))?;
    if !(Rate::from_bits_per_sec(1_000)..=RATE_MAX).contains(&rate) {
        return Err(Sentence::new(
            format!("{rate} must be between 1 kbit/s and {RATE_MAX}"),
            format!("{rate} 须在 1 kbit/s 与 {RATE_MAX} 之间"),
        ));
    }
    Ok(rate)
}

/// The rates of links and the round trips that --this-host shows where none is given: from a data
/// centre (0.2 ms) over a country (20 ms) and an ocean (80 and 150 ms) to the other side (300 ms).
const USUAL_RATES_MBIT: [u64; 4] = [100, 1_000, 10_000, 100_000];
const USUAL_RTTS_US: [u64; 8] = [200, 1_000, 5_000, 20_000, 50_000, 80_000, 150_000, 300_000];

/// The answer for one path.
#[derive(Serialize)]
struct PathAnswer {
    #[serde(flatten)]
    sheet: Sheet,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<FileSheet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<ConnectionsSheet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    this_host: Option<HostAnswer>,
}

/// What --this-host adds.
#[derive(Serialize)]
struct HostAnswer {
    kernel: KernelVersion,
    /// By sysctl name, as it prints them.
    settings: BTreeMap<&'static str, String>,
    /// Those that the namespace does not show.
    assumed: Vec<&'static str>,
    /// What they fill: on the given path, or at usual rates and round trips.
    fills: Vec<HostSheet>,
}

impl Calc {
    pub fn run(self) -> Result<u8, Failure> {
        if let Some(CalcAction::Convert(convert)) = self.action {
            return convert.run();
        }
        let host = match self.this_host {
            true => Some(ThisHost::read().map_err(|error| Failure::new(Kind::Missing, &error))?),
            false => None,
        };
        match (self.rate, &self.rtt[..], &self.loss[..]) {
            (Some(rate), &[rtt], [] | [_]) => self.one_path(Path::new(rate, rtt), host),
            (rate, rtts, losses) => {
                self.refuse_for_lists()?;
                match (host, rate) {
                    (Some(host), rate) if losses.is_empty() => self.fills(&host, rate),
                    (None, Some(rate)) => self.grid(rate, rtts),
                    _ => Err(usage(
                        "--this-host knows no loss: leave out --loss, or give one --rate and one --rtt",
                        "--this-host 不涉及丢包：请去掉 --loss，或给出一个 --rate 和一个 --rtt",
                    )),
                }
            }
        }
    }

    /// What belongs to one path alone.
    fn refuse_for_lists(&self) -> Result<(), Failure> {
        let given = [
            ("--buffer", self.buffer.is_some()),
            ("--kernel", self.kernel.is_some()),
            ("--connections", self.connections.is_some()),
            ("--memory", self.memory.is_some()),
            ("--file", self.file.is_some() && self.this_host),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(usage(
                &format!(
                    "{option} needs one path: give one --rate, one --rtt and at most one --loss"
                ),
                &format!("{option} 需要单一路径：请给出一个 --rate、一个 --rtt 和至多一个 --loss"),
            )),
            None => Ok(()),
        }
    }

    fn grid(&self, rate: Rate, rtts: &[Duration]) -> Result<u8, Failure> {
        let grid = grid(rate, rtts, &self.loss, self.file);
        if self.json {
            print_json(&grid)?
        } else {
            print(&report::render_grid(&grid, answer_layout()))?
        }
        Ok(0)
    }

    /// What this host fills at several paths.
    fn fills(&self, host: &ThisHost, rate: Option<Rate>) -> Result<u8, Failure> {
        let usual = USUAL_RATES_MBIT.map(|mbit| Rate::from_bits_per_sec(mbit * 1_000_000));
        let rates = rate.map_or_else(|| usual.to_vec(), |rate| vec![rate]);
        let rtts = match &self.rtt[..] {
            [] => USUAL_RTTS_US.map(Duration::from_micros).to_vec(),
            given => given.to_vec(),
        };
        let fills = rates.iter().flat_map(|&rate| {
            rtts.iter().map(move |&rtt| HostSheet::new(Path::new(rate, rtt), &host.settings))
        });
        let answer = HostAnswer::new(host, fills.collect());
        if self.json {
            print_json(&answer)?;
            return Ok(0);
        }
        print(&report::render_settings(&host.settings, answer_layout()))?;
        print("\n")?;
        print(&report::render_fills(&answer.fills, answer_layout()))?;
        tell_assumed(&answer);
        Ok(0)
    }

    fn one_path(&self, path: Path, host: Option<ThisHost>) -> Result<u8, Failure> {
        let question = Question {
            path,
            buffer: self.buffer,
            kernel: self.kernel,
            loss: self.loss.first().copied(),
        };
        let settings = match &host {
            Some(host) => vec![host.settings.clone()],
            None => question.kernels().into_iter().map(HostSettings::defaults).collect::<Vec<_>>(),
        };
        let sheet = sheet_for(&question, &settings);
        let answer = PathAnswer {
            file: self.file.map(|amount| FileSheet::new(&sheet, amount)),
            memory: self.memory_sheet(path, &settings),
            this_host: host
                .as_ref()
                .map(|host| HostAnswer::new(host, vec![HostSheet::new(path, &host.settings)])),
            sheet,
        };
        if self.json {
            print_json(&answer)?;
        } else {
            print(&answer.render(host.as_ref()))?;
            answer.this_host.iter().for_each(tell_assumed);
        }
        Ok(0)
    }

    fn memory_sheet(&self, path: Path, hosts: &[HostSettings]) -> Option<ConnectionsSheet> {
        let asked = self.connections.is_some() || self.memory.is_some();
        asked.then(|| {
            let memory = self
                .memory
                .or_else(|| self.this_host.then(fullpipe_kernel::host::memory_total).flatten());
            ConnectionsSheet::new(path, hosts, self.connections.unwrap_or(1), memory)
        })
    }
}

impl PathAnswer {
    fn render(&self, host: Option<&ThisHost>) -> String {
        let layout = answer_layout();
        let mut parts = Vec::new();
        if let (Some(host), Some(answer)) = (host, &self.this_host) {
            parts.push(report::render_settings(&host.settings, layout));
            parts.extend(answer.fills.iter().map(|fill| report::render_host(fill, layout)));
        }
        parts.extend(self.file.iter().map(|file| report::render_file(file, layout)));
        parts.extend(self.memory.iter().map(|sheet| report::render_connections(sheet, layout)));
        let settings = host.map_or(report::Settings::Defaults, |_| report::Settings::ThisHost);
        parts.push(report::render(&self.sheet, settings, layout));
        parts.join("\n")
    }
}

impl HostAnswer {
    fn new(host: &ThisHost, fills: Vec<HostSheet>) -> Self {
        let ThisHost { settings, assumed } = host;
        let values = Sysctl::OF_WINDOWS
            .into_iter()
            .filter_map(|sysctl| Some((sysctl.name(), settings.get(sysctl)?.to_string())));
        HostAnswer {
            kernel: settings.kernel,
            settings: values.collect(),
            assumed: assumed.clone(),
            fills,
        }
    }
}

fn tell_assumed(answer: &HostAnswer) {
    if !answer.assumed.is_empty() {
        let names = answer.assumed.join(", ");
        remark(&either(
            format!(
                "not shown here, so the kernel's default is assumed: {names} (a container may not see \
                 what belongs to the machine)"
            ),
            format!("这里看不到，因此取内核的默认值：{names}（容器可能看不到属于机器的设置）"),
        ));
    }
}

fn usage(english: &str, chinese: &str) -> Failure {
    Failure::new(Kind::Usage, Sentence::new(english, chinese).of("calc"))
}
