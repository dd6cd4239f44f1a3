//! `fullpipe lab`: experiments with real transfers over an emulated path.

mod cache;
mod compare;
mod dry_run;
mod engine;
mod generate;
mod kernel;
mod merge;
mod output;
mod run;

use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either, phrases};
use crate::terminal::{answer_layout, print, print_json, remark};
use clap::{Args, Subcommand};
use fullpipe_kernel::run::journal;
use fullpipe_kernel::run::sandbox::{self, Inside};
use fullpipe_lab::list_presets;
use fullpipe_report::{Column, Table, table::escape};
use serde::Serialize;

pub use cache::of_runs;
pub use engine::{Choice as EngineChoice, Name as EngineName};
pub use run::{default_folder, run_all, run_one};

/// Run experiments: real transfers between two real TCP stacks over an emulated path.
#[derive(Subcommand)]
pub enum Lab {
    Run(run::Run),
    Merge(merge::Merge),
    Compare(compare::Compare),
    List(List),
    Generate(generate::Generate),
    Clean(Clean),
    #[command(subcommand)]
    Kernel(kernel::Kernel),
    #[command(subcommand)]
    Cache(cache::Cache),
}

impl Lab {
    pub fn run(self) -> Result<u8, Failure> {
        match self {
            Lab::Run(run) => run.run(),
            Lab::Merge(merge) => merge.run(),
            Lab::Compare(compare) => compare.run(),
            Lab::List(list) => list.run(),
            Lab::Generate(generate) => generate.run(),
            Lab::Clean(clean) => clean.run(),
            Lab::Kernel(kernel) => kernel.run(),
            Lab::Cache(cache) => cache.run(),
        }
    }
}

/// Runs `work` inside namespaces that end with it, and returns its exit code.
pub fn in_sandbox(work: impl FnOnce(&Inside) -> Result<u8, Failure>) -> Result<u8, Failure> {
    let exit = sandbox::run(&sandbox::SandboxOptions::default(), |inside| {
        for action in inside.cleaned().iter().flat_map(|cleaned| &cleaned.actions) {
            let action = Sentence::from(action);
            remark(&either(
                format!("fullpipe: an earlier run was killed: {}", action.english()),
                format!("fullpipe: 早先的一次运行被终止：{}", action.chinese()),
            ));
        }
        i32::from(work(inside).unwrap_or_else(|failure| failure.report()))
    })?;
    Ok(u8::try_from(exit.code()).unwrap_or(1))
}

/// List the scenarios that come with the program.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab list
  fullpipe lab list --json | jq -r '.[].name'")]
pub struct List {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    fn run(self) -> Result<u8, Failure> {
        let listed = list_presets()?;
        if self.json {
            print_json(&listed)?;
            return Ok(0);
        }
        let mut table = Table::new([
            Column::text(either("preset", "预设")),
            Column::count(either("rows", "行数")),
            Column::text(either("what it shows", "展示什么")),
        ]);
        for preset in listed {
            let shows = preset.description.as_str();
            let shows = either(shows, phrases::chinese(shows));
            table.row([preset.name.into(), preset.rows.to_string(), shows.into()]);
        }
        print(&table.render(answer_layout()))?;
        Ok(0)
    }
}

/// Clean up after runs that were killed.
///
/// The next run does the same by itself. Namespaces, devices and sysctls need no cleaning: the
/// kernel removes them with the processes that held them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  fullpipe lab clean")]
pub struct Clean {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Clean {
    pub fn run(self) -> Result<u8, Failure> {
        self.run_after(Vec::new())
    }

    /// The same, with `cleaned` listing what has been cleaned before.
    pub fn run_after(self, mut cleaned: Vec<Cleaned>) -> Result<u8, Failure> {
        let runs = journal::clean_stale().map_err(|error| Failure::new(Kind::Run, &error))?;
        cleaned.extend(runs.iter().map(|run| Cleaned {
            journal: Some(run.journal.display().to_string()),
            complete: run.complete(),
            actions: run.actions.iter().map(Sentence::from).collect(),
        }));
        if self.json {
            print_json(&cleaned)?;
        } else {
            print(&cleaned_text(&cleaned))?;
        }
        // If something is still there, the journal stays and the exit code reports it.
        Ok(u8::from(cleaned.iter().any(|one| !one.complete)))
    }
}

/// What one run or link left behind, and what was done about it.
#[derive(Serialize)]
pub struct Cleaned {
    /// The journal that listed it; none for leftovers found otherwise, and those are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<String>,
    complete: bool,
    actions: Vec<Sentence>,
}

impl Cleaned {
    /// Something that was removed, described by one sentence.
    pub fn gone(action: Sentence) -> Cleaned {
        Cleaned { journal: None, complete: true, actions: vec![action] }
    }
}

fn cleaned_text(cleaned: &[Cleaned]) -> String {
    if cleaned.is_empty() {
        return either("Nothing to clean.\n", "没有要清理的。\n").into();
    }
    let mut text = String::new();
    for one in cleaned {
        let indent = one.journal.as_ref().map_or("", |_| "  ");
        text.extend(one.journal.iter().map(|journal| format!("{}:\n", escape::in_line(journal))));
        text.extend(
            one.actions
                .iter()
                .map(|action| format!("{indent}{}\n", escape::in_line(action.here()))),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_to_be_nothing_only_where_it_is() {
        assert_eq!(cleaned_text(&[]), "Nothing to clean.\n");
        let run = Cleaned {
            journal: Some("/run/1".into()),
            complete: true,
            actions: vec![Sentence::as_is("removed /tmp/x")],
        };
        assert_eq!(
            cleaned_text(&[Cleaned::gone(Sentence::as_is("Took it.")), run]),
            "Took it.\n/run/1:\n  removed /tmp/x\n"
        );
    }
}
