//! The command line, one file for each subcommand. `--help`, the man pages and the completions are
//! made from the definitions here.

mod analyze;
mod anonymize;
mod calc;
mod completions;
mod control;
mod demo;
mod doctor;
mod export;
mod get;
mod guest;
mod input;
mod keygen;
mod lab;
mod link;
mod man;
mod mcp;
mod open_metrics;
mod past;
mod pauses;
mod peer_keys;
mod prefixes;
mod program;
mod prove;
mod record;
mod relay;
mod report;
mod samples;
mod schema;
mod serve;
mod stored;
mod test;
mod top;
mod tune;
mod view;
mod waits;
mod why;
mod window;

use crate::failure::Failure;
use crate::sentence::Sentence;
use crate::{help, terminal};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use fullpipe_flow::Language;
use fullpipe_flow::schema::SCHEMA_VERSION;
use std::sync::LazyLock;

/// What `--version` prints behind the version: what a report of a fault begins with.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\ncommit: {}\ntarget: {}-linux-{}\nschema: {SCHEMA_VERSION}",
        env!("CARGO_PKG_VERSION"),
        // `cargo xtask dist` says it.
        option_env!("FULLPIPE_COMMIT").unwrap_or("not said to this build"),
        std::env::consts::ARCH,
        if cfg!(target_env = "musl") { "musl" } else { "gnu" },
    )
});

/// Finds out why a TCP transfer does not fill its path, proves it in a lab, and fixes it.
#[derive(Parser)]
#[command(name = "fullpipe", version, long_version = LONG_VERSION.as_str())]
#[command(propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  fullpipe demo                                   a slow transfer, the reason, the fix, the proof
  fullpipe why                                    what limits this host's connections, now
  fullpipe analyze capture.pcapng                 what limited each connection, and what would change it
  fullpipe report capture.pcapng                  the same with graphs, as one HTML file
  fullpipe record --port 443 --for 30s            the packets of this host's connections, and the answer
  fullpipe anonymize capture.pcapng -o shared.pcapng  the same capture without what it carried, to share
  fullpipe prove capture.pcapng                   what each change would give, tried in the lab
  fullpipe calc --rate 1gbit --rtt 146ms          what a path needs, and what a buffer allows
  fullpipe top                                    the host's connections, by what is lost to limits
  fullpipe get https://example.org/large.iso      a download that says what limited it
  fullpipe tune plan --rate 1gbit --rtt 146ms     what to change on this machine for a path, and why
  fullpipe test HOST                              what the path to a host carries, and why no more
  fullpipe relay --server HOST ..                 a TCP service over several connections, without root
  fullpipe lab run articles/a1-rtt                an experiment with real transfers over an emulated path
  fullpipe lab run my.toml --json --output results/  your own scenario, for other programs
  fullpipe window run -- CMD                      receive windows that follow the reader
  fullpipe link --rtt 80ms --loss 0.1% -- CMD     any program behind an emulated path
  fullpipe mcp                                    answers for an assistant, by the Model Context Protocol
  fullpipe doctor                                 what works on this machine, and what would mend it

Exit codes: 0 success; 1 the run failed, or it found the problem that it was asked to look for; 2 wrong usage; 3 a privilege or tool \
is missing; 4 bad input; 130 interrupted.")]
pub struct Cli {
    /// The language of answers, errors and the help: en or zh. Without it, the one that LC_ALL,
    /// LC_MESSAGES or LANG names. JSON, CSV and Parquet never change.
    #[arg(long, global = true, value_name = "LANGUAGE", value_parser = language)]
    language: Option<Language>,
    #[command(subcommand)]
    command: Command,
}

fn language(name: &str) -> Result<Language, Sentence> {
    Language::of(name).ok_or_else(|| {
        let [a, b] = Language::ALL.map(Language::name);
        Sentence::new(format!("answers are in {a} and {b}"), format!("可用的语言是 {a} 和 {b}"))
    })
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Demo),
    #[command(subcommand)]
    Lab(lab::Lab),
    Link(Box<link::Link>),
    Analyze(analyze::Analyze),
    Report(report::Report),
    Record(Box<record::RecordCommand>),
    Anonymize(anonymize::Anonymize),
    View(view::View),
    Why(why::Why),
    Prove(Box<prove::Prove>),
    Calc(calc::Calc),
    Top(top::Top),
    Export(export::Export),
    Serve(serve::Serve),
    Test(Box<test::Test>),
    Keygen(keygen::Keygen),
    Relay(Box<relay::Relay>),
    Get(Box<get::Get>),
    #[command(subcommand)]
    Tune(Box<tune::Tune>),
    #[command(subcommand)]
    Window(Box<window::WindowCommand>),
    Mcp(mcp::Mcp),
    Doctor(doctor::Doctor),
    Schema(schema::Schema),
    Man(man::Man),
    Completions(completions::Completions),
    #[command(hide = true)]
    Guest(guest::Guest),
}

impl Cli {
    /// Parses the program's arguments, with the help in this language.
    pub fn try_parse_in(language: Language) -> Result<Cli, clap::Error> {
        let command = help::in_language(Cli::command(), language);
        Cli::from_arg_matches_mut(&mut command.try_get_matches()?)
    }

    /// Runs the subcommand; the exit code is 0 unless it found the problem that it was asked to
    /// look for.
    pub fn run(self) -> Result<u8, Failure> {
        if let Some(language) = self.language {
            terminal::speak(language);
        }
        match self.command {
            Command::Demo(demo) => demo.run(),
            Command::Lab(lab) => lab.run(),
            Command::Link(link) => link.run(),
            Command::Analyze(analyze) => analyze.run(),
            Command::Report(report) => report.run(),
            Command::Record(record) => record.run(),
            Command::Anonymize(anonymize) => anonymize.run(),
            Command::View(view) => view.run(),
            Command::Why(why) => why.run(),
            Command::Prove(prove) => prove.run(),
            Command::Calc(calc) => calc.run(),
            Command::Top(top) => top.run(),
            Command::Export(export) => export.run(),
            Command::Serve(serve) => serve.run(),
            Command::Test(test) => test.run(),
            Command::Keygen(keygen) => keygen.run(),
            Command::Relay(relay) => relay.run(),
            Command::Get(get) => get.run(),
            Command::Tune(tune) => tune.run(),
            Command::Window(window) => window.run(),
            Command::Mcp(mcp) => mcp.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Schema(schema) => schema.run(),
            Command::Man(man) => man.run(),
            Command::Completions(completions) => completions.run(),
            Command::Guest(guest) => guest.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn walk(command: &clap::Command, visit: &mut dyn FnMut(&clap::Command)) {
        visit(command);
        for sub in command.get_subcommands() {
            walk(sub, visit);
        }
    }

    #[test]
    fn the_command_line_is_sound_and_every_word_of_it_is_explained() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        walk(&command, &mut |sub| {
            assert!(sub.get_about().is_some(), "{} has no help", sub.get_name());
            for argument in sub.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{} {} has no help",
                    sub.get_name(),
                    argument.get_id()
                );
                if argument.get_action().takes_values() && argument.get_long().is_some() {
                    assert!(
                        argument.get_value_names().is_some(),
                        "{} names no value",
                        argument.get_id()
                    );
                }
            }
        });
    }

    /// How long is `--for`, where to is `-o` or `--output`; what they were called before still
    /// works.
    #[test]
    fn the_same_thing_has_the_same_name_in_every_command() {
        let mut command = Cli::command();
        command.build();
        let mut outputs = 0;
        walk(&command, &mut |sub| {
            for argument in sub.get_arguments() {
                let place = format!("{} {}", sub.get_name(), argument.get_id());
                let long = argument.get_long().unwrap_or_default();
                let others = ["out", "outfile", "time", "duration", "seconds", "dir"];
                assert!(!others.contains(&long), "{place}: --{long}");
                if long == "output" {
                    assert_eq!(argument.get_short(), Some('o'), "{place}");
                    outputs += 1;
                }
            }
        });
        assert!(outputs >= 10, "{outputs}");
        for words in [
            &["fullpipe", "test", "host", "--time", "5s"][..],
            &["fullpipe", "test", "host", "-t", "5s"],
            &["fullpipe", "lab", "run", "quick", "--out", "results"],
            &["fullpipe", "demo", "--out", "tour"],
        ] {
            assert!(Cli::try_parse_from(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn what_runs_has_examples() {
        let command = Cli::command();
        for path in [
            &["demo"][..],
            &["analyze"],
            &["report"],
            &["record"],
            &["anonymize"],
            &["view"],
            &["prove"],
            &["calc"],
            &["tune"],
            &["tune", "plan"],
            &["tune", "apply"],
            &["tune", "undo"],
            &["tune", "confirm"],
            &["tune", "status"],
            &["tune", "verify"],
            &["tune", "settings"],
            &["why"],
            &["top"],
            &["export"],
            &["serve"],
            &["test"],
            &["keygen"],
            &["relay"],
            &["get"],
            &["mcp"],
            &["doctor"],
            &["lab", "run"],
            &["link"],
            &["lab", "compare"],
            &["window"],
            &["window", "run"],
            &["window", "watch"],
        ] {
            let sub =
                path.iter().fold(&command, |above, name| above.find_subcommand(name).unwrap());
            assert!(
                sub.get_after_help().is_some_and(|help| help.to_string().contains("Example")),
                "{path:?}"
            );
        }
    }
}
