//! `fullpipe view`: a page into which anybody drops a capture.

use super::report::not_written;
use crate::failure::{Failure, Kind};
use crate::sentence::either;
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
        write_into(&file, page::program(PROGRAM).as_bytes())
            .map_err(|cause| Failure::new(Kind::Run, not_written(&file, &cause)))?;
        let file = file.display();
        remark(&either(
            format!("Page: {file}; open it in any browser and drop a capture on it"),
            format!("页面：{file}；请用任何浏览器打开，并把抓包拖到上面"),
        ));
        Ok(0)
    }
}
