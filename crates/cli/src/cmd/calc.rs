//! `fullpipe calc`: what a path needs and what a buffer allows.

use crate::failure::Failure;
use crate::terminal::{layout, print, print_json};
use clap::Args;
use fullpipe_model::law::KernelVersion;
use fullpipe_model::tune::{Path, Question, sheet};
use fullpipe_model::units::{Bytes, Duration, Rate};

/// Calculate what a path needs and what a buffer allows.
///
/// Measures nothing and changes nothing: buffers, windows and times follow from the rate and the
/// round-trip time, by the rules of the given kernel (of both families of kernels without
/// --kernel).
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe calc --rate 1gbit --rtt 50ms
  fullpipe calc --rate 1gbit --rtt 146ms --buffer 6MiB --kernel 6.1
  fullpipe calc --rate 125MB/s --rtt 146ms --json")]
pub struct Calc {
    /// Rate of the bottleneck: 1gbit, 100mbit, 125MB/s.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Rate,
    /// Round-trip time without queues: 146ms, 50us.
    #[arg(long, value_name = "TIME")]
    rtt: Duration,
    /// A buffer to judge, both as receive and as send buffer: 6MiB, 4194304.
    #[arg(long, value_name = "SIZE")]
    buffer: Option<Bytes>,
    /// Kernel whose rules apply: 6.1, 6.12.8-amd64.
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelVersion>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
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
        let question = Question {
            path: Path::new(self.rate, self.rtt),
            buffer: self.buffer,
            kernel: self.kernel,
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
