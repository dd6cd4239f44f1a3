//! `fullpipe completions`: completions for a shell, generated from the definition of the command
//! line.

use crate::failure::Failure;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print completions for a shell.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe completions bash > /etc/bash_completion.d/fullpipe
  fullpipe completions fish > ~/.config/fish/completions/fullpipe.fish")]
pub struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub fn run(self) -> Result<u8, Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "fullpipe", &mut text);
        crate::terminal::print(&String::from_utf8_lossy(&text))?;
        Ok(0)
    }
}
