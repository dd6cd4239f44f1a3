//! `fullpipe tune plan`.

use super::path::Goal;
use crate::failure::Failure;
use crate::terminal::{answer_layout, print, print_json};
use clap::{Args, ValueEnum};
use fullpipe_host::tune::ThisMachine;
use fullpipe_report::plan::host_plan::{Form, render};

/// Say what falls short of a path on this machine, and why.
///
/// Reads the settings of this network namespace. It changes only what falls short, lowers no size,
/// and keeps within the memory. Changes nothing; needs no privilege.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe tune plan --rate 1gbit --rtt 146ms
  fullpipe tune plan --rate 10gbit --rtt 80ms --role receiver --connections 500
  fullpipe tune plan --from why.json --role sender
  fullpipe tune plan --rate 1gbit --rtt 146ms --format kubernetes")]
pub struct Plan {
    #[command(flatten)]
    goal: Goal,
    /// The form of the answer: to read, or to paste.
    #[arg(long, value_name = "FORM", value_enum, default_value = "text")]
    format: FormWord,
    /// Print JSON: the same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormWord {
    Text,
    Sysctl,
    Kubernetes,
    Docker,
    Systemd,
    Ansible,
    Json,
}

impl Plan {
    pub fn run(self) -> Result<u8, Failure> {
        let plan = self.goal.plan(&mut ThisMachine::to_read()?)?;
        let form = match self.format {
            _ if self.json => None,
            FormWord::Json => None,
            FormWord::Text => Some(Form::Text),
            FormWord::Sysctl => Some(Form::Sysctl),
            FormWord::Kubernetes => Some(Form::Kubernetes),
            FormWord::Docker => Some(Form::Docker),
            FormWord::Systemd => Some(Form::Systemd),
            FormWord::Ansible => Some(Form::Ansible),
        };
        match form {
            None => print_json(&plan)?,
            Some(form) => print(&render(&plan, form, answer_layout()))?,
        }
        Ok(0)
    }
}
