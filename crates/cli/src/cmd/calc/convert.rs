//! `fullpipe calc convert`: a rate in every unit.

use crate::failure::Failure;
use crate::terminal::{answer_layout, print, print_json};
use clap::Args;
use fullpipe_model::units::Rate;
use fullpipe_report::plan::convert::{Conversion, rate_or_curls};

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
pub struct Convert {
    /// A rate: 1gbit, 100mbit, 125MB/s, or as curl prints it: 38.7M.
    #[arg(value_name = "RATE", value_parser = rate_or_curls)]
    rate: Rate,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Convert {
    pub fn run(self) -> Result<u8, Failure> {
        let conversion = Conversion::new(self.rate);
        if self.json {
            print_json(&conversion)?
        } else {
            print(&conversion.render(answer_layout()))?
        }
        Ok(0)
    }
}
