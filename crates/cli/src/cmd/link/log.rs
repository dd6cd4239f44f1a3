//! `fullpipe link log`: reads the log of what a link did to each packet.

use crate::failure::{Failure, Kind};
use crate::sentence::either;
use crate::terminal::{print, print_json};
use clap::Args;
use fullpipe_link::{Fates, JsonRecord, LogFile, LogFileError};
use fullpipe_model::link::log::Direction;
use serde::Serialize;
use std::path::PathBuf;

/// Show what a link did to each packet, from the file that --log wrote.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe link log link.log                          packets by fate, each direction
  fullpipe link log link.log --pcapng link.pcapng     for Wireshark: each packet's fate is its comment
  fullpipe link log link.log --json | jq '.records[] | select(.fate != \"departed\")'")]
pub struct Log {
    /// The file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the packets' headers as pcapng, with the fate of each as its comment.
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
    /// Print JSON: {"to_client": .., "to_server": .., "records": [..]}.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct LogReport {
    to_client: Fates,
    to_server: Fates,
    records: Vec<JsonRecord>,
}

impl Log {
    pub fn run(self) -> Result<u8, Failure> {
        let log = LogFile::read(&self.file)?;
        let [to_client, to_server] =
            [Direction::ToClient, Direction::ToServer].map(|way| log.count(way));
        if let Some(path) = &self.pcapng {
            log.write_pcapng(path)?;
        }
        if self.json {
            print_json(&LogReport {
                to_client,
                to_server,
                records: log.records.iter().map(JsonRecord::from).collect(),
            })?;
        } else {
            for (name, fates) in [
                (either("to client:", "发往客户端："), to_client),
                (either("to server:", "发往服务器："), to_server),
            ] {
                let counts = serde_json::to_value(fates).map_err(std::io::Error::from)?;
                print(&format!("{name}\n"))?;
                for (what, count) in counts.as_object().into_iter().flatten() {
                    print(&format!("  {:<28} {:>10}\n", what.replace('_', " "), count))?;
                }
            }
        }
        Ok(0)
    }
}

impl From<LogFileError> for Failure {
    fn from(error: LogFileError) -> Self {
        let kind =
            if matches!(error, LogFileError::Content { .. }) { Kind::Input } else { Kind::Run };
        Failure::new(kind, &error)
    }
}
