//! `fullpipe doctor`: what works on this machine, what does not, and what would mend it.

mod here;
mod inside;

use crate::failure::Failure;
use crate::terminal::{layout, print, print_json};
use clap::Args;
use fullpipe_agent::AgentError;
use fullpipe_kernel::Refused;
use fullpipe_kernel::host::Host;
use fullpipe_kernel::run::sandbox::{Privilege, SandboxError, SandboxOptions, run};
use fullpipe_report::table::{Column, Table, paragraph};
use serde::Serialize;
use std::fmt::Display;

/// Say what works on this machine, what does not, and what would mend it.
///
/// Tries each thing that the other commands need: namespaces, devices, the kernel's tables of
/// sockets, BPF, settings, guest kernels. It changes nothing: what it makes lives in namespaces of
/// its own, which end with it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe doctor
  sudo fullpipe doctor                             the same with every privilege
  fullpipe doctor --json | jq -r '.abilities[] | select(.works | not) | .name'")]
pub struct Doctor {
    /// Print JSON: {"kernel": .., "abilities": [{"name", "works", "found", ..}]}.
    #[arg(long)]
    json: bool,
}

/// One thing that commands need of a machine.
#[derive(Debug, Clone, Serialize)]
struct Ability {
    /// Its name, which stays.
    name: &'static str,
    /// What needs it.
    commands: &'static str,
    works: bool,
    /// What was found, or why it does not work.
    found: String,
    /// What would mend it, where something would.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// The JSON of `fullpipe doctor`.
#[derive(Serialize)]
struct DoctorDocument<'a> {
    version: &'static str,
    kernel: String,
    architecture: &'static str,
    cpus: usize,
    abilities: &'a [Ability],
}

impl Ability {
    /// It works, as `found` shows.
    fn works(name: &'static str, commands: &'static str, found: impl Into<String>) -> Ability {
        Ability { name, commands, works: true, found: found.into(), advice: None }
    }

    /// It works, or something is in the way.
    fn of(
        name: &'static str,
        commands: &'static str,
        answer: Result<impl Into<String>, Obstacle>,
    ) -> Ability {
        match answer {
            Ok(found) => Ability::works(name, commands, found),
            Err(Obstacle { found, advice }) => {
                Ability { name, commands, works: false, found, advice }
            }
        }
    }
}

/// What is in the way.
#[derive(Debug)]
struct Obstacle {
    /// What was tried, and what the system said.
    found: String,
    /// What would mend it.
    advice: Option<String>,
}

impl Obstacle {
    fn new(found: impl Display, advice: impl Display) -> Obstacle {
        Obstacle { found: found.to_string(), advice: Some(advice.to_string()) }
    }

    /// Of an error that says itself what to try, if anything.
    fn whole(error: impl Display) -> Obstacle {
        Obstacle { found: error.to_string(), advice: None }
    }
}

impl From<Refused> for Obstacle {
    fn from(Refused { operation, subject, cause, hint }: Refused) -> Obstacle {
        let advice = Some(hint.into_owned()).filter(|hint| !hint.is_empty());
        Obstacle { found: format!("{operation}: {subject}: {cause}"), advice }
    }
}

impl From<AgentError> for Obstacle {
    fn from(error: AgentError) -> Obstacle {
        match error {
            AgentError::NotPermitted { operation, cause } => Obstacle::new(
                format!("{operation}: {cause}"),
                "run it as root (sudo), or with CAP_BPF and CAP_NET_ADMIN; the kernel's lockdown \
                 must allow BPF (/sys/kernel/security/lockdown)",
            ),
            AgentError::Refused { operation, cause } => Obstacle::new(
                format!("{operation}: {cause}"),
                "it needs Linux 6.6 or later with cgroup v2",
            ),
            AgentError::NoBtf => Obstacle::new(
                "this kernel does not describe its structures (BTF)",
                "boot one with CONFIG_DEBUG_INFO_BTF: Debian's, Ubuntu's, Fedora's and RHEL's have \
                 it",
            ),
            error @ AgentError::Cgroup { .. } => Obstacle::whole(error),
        }
    }
}

impl From<SandboxError> for Obstacle {
    fn from(error: SandboxError) -> Obstacle {
        match error {
            SandboxError::NoPrivilege { cause, limits } => {
                Obstacle::new(format!("make namespaces: {cause}"), limits)
            }
            error => Obstacle::whole(error),
        }
    }
}

impl Doctor {
    pub fn run(self) -> Result<u8, Failure> {
        // Of the machine itself, so before this process leaves it.
        let here = here::abilities();
        let exit = run(&SandboxOptions::default(), |inside| {
            let found = match inside.privilege() {
                Privilege::Root => "made directly",
                Privilege::UserNamespace => "made in a user namespace",
            };
            let mut all = vec![Ability::works("namespaces", inside::COMMANDS, found)];
            all.extend(inside::abilities());
            all.extend_from_slice(&here);
            // The run is another process by now, so that one prints.
            i32::from(self.show(&all).unwrap_or_else(|failure| failure.report()))
        });
        match exit {
            Ok(exit) => Ok(u8::try_from(exit.code()).unwrap_or(1)),
            Err(error) => {
                let namespaces = Err::<String, _>(error.into());
                let mut all = vec![Ability::of("namespaces", inside::COMMANDS, namespaces)];
                all.extend(here);
                self.show(&all)
            }
        }
    }

    fn show(&self, abilities: &[Ability]) -> Result<u8, Failure> {
        let Host { kernel, cpus, .. } = Host::read();
        let document = DoctorDocument {
            version: env!("CARGO_PKG_VERSION"),
            kernel,
            architecture: std::env::consts::ARCH,
            cpus,
            abilities,
        };
        if self.json {
            print_json(&document)?;
        } else {
            print(&document.text())?;
        }
        Ok(0)
    }
}

impl DoctorDocument<'_> {
    fn text(&self) -> String {
        let layout = layout();
        let mut table = Table::new([
            Column::text("what"),
            Column::text("works"),
            Column::text("what was found"),
        ]);
        for Ability { name, works, found, .. } in self.abilities {
            let works = if *works { "yes" } else { "no" };
            table.row([name.replace('_', " "), works.into(), found.clone()]);
        }
        let mut text = format!(
            "fullpipe {} on Linux {}, {}, {} CPU{}\n\n{}",
            self.version,
            self.kernel,
            self.architecture,
            self.cpus,
            if self.cpus == 1 { "" } else { "s" },
            table.render(layout)
        );
        let missing: Vec<&Ability> = self.abilities.iter().filter(|one| !one.works).collect();
        if missing.is_empty() {
            text += "\nEverything works here.\n";
            return text;
        }
        text += "\nWhat does not work here, and what it takes:\n\n";
        for Ability { name, commands, advice, .. } in missing {
            let advice = advice.as_deref().unwrap_or("see what was found");
            let line = format!("{} ({commands}): {advice}", name.replace('_', " "));
            text += &paragraph::fill("  ", &line, layout.width);
            text.push('\n');
        }
        text
    }
}
