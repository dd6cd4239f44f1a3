//! `fullpipe man`: the man pages, generated from the definition of the command line.

use crate::failure::Failure;
use crate::help;
use clap::{Args, CommandFactory};
use std::path::PathBuf;

/// Write the man pages: one for the program, one for each subcommand.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe man | man -l -
  fullpipe man --output /usr/local/share/man/man1")]
pub struct Man {
    /// Folder to write them to; without it the program's own page is printed.
    #[arg(short, long = "output", alias = "out", value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub fn run(self) -> Result<u8, Failure> {
        let command = help::in_paragraphs(super::Cli::command(), help::asked());
        match self.out {
            Some(folder) => {
                std::fs::create_dir_all(&folder)?;
                clap_mangen::generate_to(command, folder)?;
            }
            None => {
                let mut page = Vec::new();
                clap_mangen::Man::new(command).render(&mut page)?;
                crate::terminal::print(&String::from_utf8_lossy(&page))?;
            }
        }
        Ok(0)
    }
}
