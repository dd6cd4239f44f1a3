//! `fullpipe doctor`: what works on this machine, what does not, and what would mend it.

mod here;
mod inside;

use crate::failure::Failure;
use crate::sentence::{Sentence, either, phrases};
use crate::terminal::{answer_layout, print, print_json};
use clap::Args;
use fullpipe_agent::AgentError;
use fullpipe_kernel::Refused;
use fullpipe_kernel::host::Host;
use fullpipe_kernel::run::sandbox::{Privilege, SandboxError, SandboxOptions, run};
use fullpipe_report::table::{Column, Table, paragraph};
use serde::Serialize;

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
    commands: Sentence,
    works: bool,
    /// What was found, or why it does not work.
    found: Sentence,
    /// What would mend it, where something would.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<Sentence>,
    /// Its name in Chinese.
    #[serde(skip)]
    chinese: &'static str,
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

/// What an ability is called, in data and in Chinese.
type Names = (&'static str, &'static str);

impl Ability {
    /// It works, as `found` shows.
    fn works((name, chinese): Names, commands: Sentence, found: Sentence) -> Ability {
        Ability { name, commands, works: true, found, advice: None, chinese }
    }

    /// It works, or something is in the way.
    fn of(names: Names, commands: Sentence, answer: Result<Sentence, Obstacle>) -> Ability {
        match answer {
            Ok(found) => Ability::works(names, commands, found),
            Err(Obstacle { found, advice }) => {
                Ability { works: false, advice, ..Ability::works(names, commands, found) }
            }
        }
    }

    fn shown_name(&self) -> String {
        either(self.name.replace('_', " "), self.chinese.into())
    }
}

/// What is in the way.
#[derive(Debug)]
struct Obstacle {
    /// What was tried, and what the system said.
    found: Sentence,
    /// What would mend it.
    advice: Option<Sentence>,
}

impl Obstacle {
    fn new(found: Sentence, advice: Sentence) -> Obstacle {
        Obstacle { found, advice: Some(advice) }
    }

    /// Of an error that says itself what to try, if anything.
    fn whole(error: impl Into<Sentence>) -> Obstacle {
        Obstacle { found: error.into(), advice: None }
    }
}

impl From<Refused> for Obstacle {
    fn from(refused: Refused) -> Obstacle {
        let hint = Some(phrases::sentence(&refused.hint)).filter(|hint| !hint.english().is_empty());
        let found = Sentence::from(&Refused { hint: "".into(), ..refused });
        Obstacle { found, advice: hint }
    }
}

impl From<AgentError> for Obstacle {
    fn from(error: AgentError) -> Obstacle {
        match error {
            AgentError::NotPermitted { operation, cause } => Obstacle::new(
                phrases::sentence(operation).with(&cause),
                Sentence::new(
                    "run it as root (sudo), or with CAP_BPF and CAP_NET_ADMIN; the kernel's lockdown \
                     must allow BPF (/sys/kernel/security/lockdown)",
                    "请以 root 运行（sudo），或赋予 CAP_BPF 和 CAP_NET_ADMIN；内核的 lockdown 须允许 \
                     BPF（/sys/kernel/security/lockdown）",
                ),
            ),
            AgentError::Refused { operation, cause } => Obstacle::new(
                phrases::sentence(operation).with(&cause),
                Sentence::new(
                    "it needs Linux 6.6 or later with cgroup v2",
                    "需要 Linux 6.6 或更新版本，并有 cgroup v2",
                ),
            ),
            AgentError::NoBtf => Obstacle::new(
                Sentence::new(
                    "this kernel does not describe its structures (BTF)",
                    "此内核不带结构描述（BTF）",
                ),
                Sentence::new(
                    "boot one with CONFIG_DEBUG_INFO_BTF: Debian's, Ubuntu's, Fedora's and RHEL's \
                     have it",
                    "请启动带 CONFIG_DEBUG_INFO_BTF 的内核：Debian、Ubuntu、Fedora 和 RHEL 的都有",
                ),
            ),
            error @ AgentError::Cgroup { .. } => Obstacle::whole(&error),
        }
    }
}

impl From<SandboxError> for Obstacle {
    fn from(error: SandboxError) -> Obstacle {
        match error {
            SandboxError::NoPrivilege { cause, limits } => Obstacle::new(
                phrases::sentence("make namespaces").with(&cause),
                Sentence::from(&limits),
            ),
            error => Obstacle::whole(&error),
        }
    }
}

const NAMESPACES: Names = ("namespaces", "命名空间");

impl Doctor {
    pub fn run(self) -> Result<u8, Failure> {
        // Of the machine itself, so before this process leaves it.
        let here = here::abilities();
        let exit = run(&SandboxOptions::default(), |inside| {
            let found = match inside.privilege() {
                Privilege::Root => Sentence::new("made directly", "已直接创建"),
                Privilege::UserNamespace => {
                    Sentence::new("made in a user namespace", "已在用户命名空间中创建")
                }
            };
            let mut all = vec![Ability::works(NAMESPACES, inside::commands(), found)];
            all.extend(inside::abilities());
            all.extend_from_slice(&here);
            // The run is another process by now, so that one prints.
            i32::from(self.show(&all).unwrap_or_else(|failure| failure.report()))
        });
        match exit {
            Ok(exit) => Ok(u8::try_from(exit.code()).unwrap_or(1)),
            Err(error) => {
                let namespaces = Err(error.into());
                let mut all = vec![Ability::of(NAMESPACES, inside::commands(), namespaces)];
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
        let layout = answer_layout();
        let mut table = Table::new([
            Column::text(either("what", "项目")),
            Column::text(either("works", "可用")),
            Column::text(either("what was found", "结果")),
        ]);
        for ability in self.abilities {
            let works = if ability.works { either("yes", "是") } else { either("no", "否") };
            table.row([ability.shown_name(), works.into(), ability.found.here().into()]);
        }
        let first = either(
            format!(
                "fullpipe {} on Linux {}, {}, {} CPU{}",
                self.version,
                self.kernel,
                self.architecture,
                self.cpus,
                if self.cpus == 1 { "" } else { "s" }
            ),
            format!(
                "fullpipe {}，Linux {}，{}，{} 个 CPU",
                self.version, self.kernel, self.architecture, self.cpus
            ),
        );
        let mut text = format!("{first}\n\n{}", table.render(layout));
        let missing: Vec<&Ability> = self.abilities.iter().filter(|one| !one.works).collect();
        if missing.is_empty() {
            text += either("\nEverything works here.\n", "\n这里一切可用。\n");
            return text;
        }
        text += either(
            "\nWhat does not work here, and what it takes:\n\n",
            "\n这里不可用的，以及需要什么：\n\n",
        );
        for ability in missing {
            let advice = ability.advice.as_ref().map(Sentence::here);
            let advice = advice.unwrap_or(either("see what was found", "见上面的结果"));
            let (name, commands) = (ability.shown_name(), ability.commands.here());
            let line = either(
                format!("{name} ({commands}): {advice}"),
                format!("{name}（{commands}）：{advice}"),
            );
            text += &paragraph::fill("  ", &line, layout.width);
            text.push('\n');
        }
        text
    }
}
