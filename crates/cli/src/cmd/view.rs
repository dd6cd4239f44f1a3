//! `fullpipe view`: a page into which anybody drops a capture.

use crate::failure::{Failure, Kind};
use crate::terminal::remark;
use clap::Args;
use fullpipe_kernel::file::folder::write_into;
use fullpipe_report::page;
use std::path::PathBuf;

/// The analysis as a WebAssembly program, packed with gzip: `cargo xtask page` makes it.
const PROGRAM: &[u8] = include_bytes!("../../assets/view.wasm.gz");

/// Write a page that analyses captures in the browser: drop a capture on it and read the report.
///
/// One HTML file for any intranet or disk. It reads pcap, pcapng and snoop, plain or packed, with
/// the same analysis as `report`; nothing is uploaded and nothing is installed. It also has the
/// calculator: what a path needs, with a curve that follows the sliders.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe view
  fullpipe view -o /srv/www/captures.html")]
pub struct View {
    /// The file to write; one that exists is replaced.
    #[arg(short, long, value_name = "FILE", default_value = "view.html")]
    output: PathBuf,
}

impl View {
    pub fn run(self) -> Result<u8, Failure> {
        let file = self.output;
        write_into(&file, page::program(PROGRAM).as_bytes()).map_err(|cause| {
            let problem = format!(
                "write {}: {cause}; give -o a file that can be written, on a disk with free space",
                file.display()
            );
            Failure::new(Kind::Run, problem)
        })?;
        remark(&format!(
            "Page: {}; open it in any browser and drop a capture on it",
            file.display()
        ));
        Ok(0)
    }
}
