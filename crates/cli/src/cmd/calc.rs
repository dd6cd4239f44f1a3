//! `fullpipe calc`: what a path needs and what a buffer allows.

use crate::failure::Failure;
use crate::terminal::{layout, print, print_json};
use clap::{Args, Subcommand};
use fullpipe_model::law::KernelVersion;
use fullpipe_model::tune::{Path, Question, sheet};
use fullpipe_model::units::{Bytes, Duration, Probability, Rate};
use fullpipe_report::convert::{Conversion, rate_or_curls};

/// Calculate what a path needs and what a buffer allows.
///
/// Measures nothing and changes nothing: buffers, windows and times follow from the rate and the
/// round-trip time, by the rules of the given kernel (of both families of kernels without
/// --kernel).
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  fullpipe calc --rate 1gbit --rtt 50ms
  fullpipe calc convert 38.7M
  fullpipe calc --rate 1gbit --rtt 146ms --buffer 6MiB --kernel 6.1
  fullpipe calc --rate 1gbit --rtt 146ms --loss 0.01%
  fullpipe calc --rate 125MB/s --rtt 146ms --json")]
pub struct Calc {
    #[command(subcommand)]
    action: Option<Action>,
    /// Rate of the bottleneck: 1gbit, 100mbit, 125MB/s.
    #[arg(long, value_name = "RATE", value_parser = rate, required = true)]
    rate: Option<Rate>,
    /// Round-trip time without queues: 146ms, 50us.
    #[arg(long, value_name = "TIME", required = true)]
    rtt: Option<Duration>,
    /// A buffer to judge, both as receive and as send buffer: 6MiB, 4194304.
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Bytes>,
    /// Kernel whose rules apply: 6.1, 6.12.8-amd64.
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelVersion>,
    /// Random loss: what one connection carries by congestion control, and how many would fill the
    /// path: 0.1%, 0.001.
    #[arg(long, value_name = "SHARE")]
    loss: Option<Probability>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What else to calculate.
#[derive(Subcommand)]
enum Action {
    Convert(Convert),
}

/// Show a rate in the units of links, of programs and of curl.
///
/// Links are sold in bits, programs count bytes, and curl counts 2^20 bytes: 1gbit is 125 MB/s, and
/// curl prints 119.2M.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe calc convert 1gbit
  fullpipe calc convert 38.7M        what curl prints
  fullpipe calc convert 125MB/s --json")]
struct Convert {
    /// A rate: 1gbit, 100mbit, 125MB/s, or as curl prints it: 38.7M.
    #[arg(value_name = "RATE", value_parser = rate_or_curls)]
    rate: Rate,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Convert {
    fn run(self) -> Result<u8, Failure> {
        let conversion = Conversion::new(self.rate);
        if self.json {
            print_json(&conversion)?
        } else {
            print(&conversion.render(layout()))?
        }
        Ok(0)
    }
}

/// The highest rate that the laws are tested for.
const RATE_MAX: Rate = Rate::from_bits_per_sec(1_000_000_000_000);

fn rate(text: &str) -> Result<Rate, String> {
    let rate: Rate =
        text.parse().map_err(|error: fullpipe_model::units::ParseError| error.to_string())?;
    if !(Rate::from_bits_per_sec(1_000)..=RATE_MAX).contains(&rate) {
        return Err(format!("{rate} must be between 1 kbit/s and {RATE_MAX}"));
    }
    Ok(rate)
}

impl Calc {
    pub fn run(self) -> Result<u8, Failure> {
        if let Some(Action::Convert(convert)) = self.action {
            return convert.run();
        }
        // clap demands both where there is no subcommand.
        let (rate, rtt) = (self.rate.unwrap_or_default(), self.rtt.unwrap_or_default());
        let question = Question {
            path: Path::new(rate, rtt),
            buffer: self.buffer,
            kernel: self.kernel,
            loss: self.loss,
        };
        let sheet = sheet(&question);
        if self.json {
            print_json(&sheet)?
        } else {
            print(&fullpipe_report::calc::render(&sheet, layout()))?
        }
        Ok(0)
    }
}
