//! The help in another language than English.
//!
//! English stands where the command line is defined. The other texts are in a file a language: a
//! line for each, which begins with the digest of the English text that was translated; `¶` parts
//! paragraphs. So an English text that changes has no translation until somebody writes one, and a
//! test says so. The program has the file compressed.

use crate::terminal;
use clap::{Arg, ArgAction, Command};
use flate2::read::GzDecoder;
use fullpipe_flow::Language;
use fullpipe_report::table::paragraph;
use std::collections::HashMap;
use std::io::Read;
use std::sync::LazyLock;

const CHINESE: &[u8] = include_bytes!("help/zh.txt.gz");
/// As clap's own, but for the words in it.
const TEMPLATE: &str = "{before-help}{about-with-newline}\n用法：{usage}\n\n{all-args}{after-help}";

/// Texts by the digests of the English ones.
static TEXTS: LazyLock<HashMap<u32, String>> = LazyLock::new(texts);

/// The language in which help was asked for, before the command line is parsed.
pub fn asked() -> Language {
    let mut args = std::env::args().skip(1).take_while(|arg| arg != "--");
    let by_option = args.find_map(|arg| arg.strip_prefix("--language").map(str::to_owned));
    let name = by_option.and_then(|rest| match rest.strip_prefix('=') {
        Some(name) => Some(name.to_owned()),
        None => args.next(),
    });
    name.and_then(|name| Language::of(&name)).unwrap_or_else(terminal::language)
}

/// How wide help is without a terminal, as clap has it.
const WIDTH: u16 = 100;
/// How far clap indents the help of an option that stands below it.
const INDENT: u16 = 10;

/// The command line with its help in this language, for the terminal.
pub fn in_language(command: Command, language: Language) -> Command {
    let width = terminal::layout().width.map_or(WIDTH, |width| width.min(WIDTH));
    in_lines(command, language, Some(width))
}

/// The same with paragraphs in one line, for pages that are set by another program.
pub fn in_paragraphs(command: Command, language: Language) -> Command {
    in_lines(command, language, None)
}

/// clap breaks lines at spaces only, and Chinese has none: so the lines come broken.
fn in_lines(command: Command, language: Language, width: Option<u16>) -> Command {
    if language == Language::English {
        return command;
    }
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version);
    let command = command
        .disable_version_flag(true)
        .propagate_version(false)
        .arg(version.help("显示版本").help_heading("选项"));
    let mut command = translated(command, width);
    // clap adds the help of its own subcommand as it builds.
    command.build();
    with_help_of_help(command)
}

/// The help of the subcommand `help`, wherever there is one.
fn with_help_of_help(mut command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(&name, |one| match name.as_str() {
            "help" => one.about("显示本消息，或子命令的帮助"),
            _ => with_help_of_help(one),
        });
    }
    command
}

fn texts() -> HashMap<u32, String> {
    let mut file = String::new();
    // A test unpacks it.
    let _ = GzDecoder::new(CHINESE).read_to_string(&mut file);
    let lines = file.lines().filter_map(|line| line.split_once(' '));
    let known = lines.filter_map(|(digest, text)| {
        Some((u32::from_str_radix(digest, 16).ok()?, text.replace('¶', "\n\n")))
    });
    known.collect()
}

/// FNV-1a.
fn digest(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The translation of an English text.
fn of(english: &impl ToString) -> Option<&'static str> {
    TEXTS.get(&digest(&english.to_string())).map(String::as_str)
}

/// A text in lines that are `indent` narrower than `width`.
fn broken(text: &str, width: Option<u16>, indent: u16) -> String {
    let Some(width) = width else { return text.to_owned() };
    let width = Some(width.saturating_sub(indent));
    let paragraphs = text.split("\n\n").map(|one| paragraph::fill("", one, width));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn translated(command: Command, width: Option<u16>) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    let about = command.get_long_about().or(command.get_about());
    let about = about.and_then(of);
    let mut command = command
        .help_template(TEMPLATE)
        .disable_help_flag(true)
        .next_line_help(true)
        .subcommand_help_heading("命令")
        .arg(help.help("显示帮助").help_heading("选项"));
    if let Some(about) = about {
        let first = about.split("\n\n").next().unwrap_or_default().trim_end_matches('。');
        command = command.about(broken(first, width, INDENT)).long_about(broken(about, width, 0));
    }
    let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    for id in ids {
        command = command.mut_arg(&id, |arg| of_arg(arg, width));
    }
    let names: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |command| translated(command, width))
    })
}

/// One option, with what clap would say of its values in English.
fn of_arg(arg: Arg, width: Option<u16>) -> Arg {
    let usual = if arg.is_positional() { "参数" } else { "选项" };
    let heading = arg.get_help_heading().and_then(|heading| of(&heading)).unwrap_or(usual);
    let arg = arg.help_heading(heading);
    let english = arg.get_long_help().or(arg.get_help());
    let Some(mut help) = english.and_then(of).map(str::to_owned) else { return arg };
    if !arg.get_action().takes_values() {
        return arg.help(broken(&help, width, INDENT)).long_help(None);
    }
    let shown = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let shown = shown.map(|value| {
        let meaning = value.get_help().and_then(of);
        let meaning = meaning.map_or_else(String::new, |meaning| format!("（{meaning}）"));
        format!("{}{meaning}", value.get_name())
    });
    let values: Vec<String> = shown.collect();
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        help += &format!("。可选：{}", values.join("、"));
    }
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let defaults: Vec<_> = defaults.collect();
    if !defaults.is_empty() && !arg.is_hide_default_value_set() {
        help += &format!("。默认：{}", defaults.join(" "));
    }
    let help = broken(&help, width, INDENT);
    arg.help(help).long_help(None).hide_possible_values(true).hide_default_value(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use console::measure_text_width;
    use flate2::{Compression, GzBuilder};
    use std::io::Write;

    const FILE: &str = include_str!("help/zh.txt");

    /// Each text of the command line, in its order.
    fn english(command: &Command, found: &mut Vec<String>) {
        if command.is_hide_set() {
            return;
        }
        let about = command.get_long_about().or(command.get_about());
        found.extend(about.map(ToString::to_string));
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let help = arg.get_long_help().or(arg.get_help());
            found.extend(help.map(ToString::to_string));
            found.extend(arg.get_help_heading().map(ToString::to_string));
            for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
                found.extend(value.get_help().map(ToString::to_string));
            }
        }
        command.get_subcommands().for_each(|one| english(one, found));
    }

    #[test]
    fn each_text_of_the_help_is_translated_and_none_is_left_over() {
        let mut wanted = Vec::new();
        english(&crate::cmd::Cli::command(), &mut wanted);
        let digests: Vec<u32> = wanted.iter().map(|text| digest(text)).collect();
        let known: HashMap<u32, &str> = FILE
            .lines()
            .map(|line| line.split_once(' ').expect(line))
            .map(|(digest, text)| (u32::from_str_radix(digest, 16).expect(digest), text))
            .collect();
        for (digest, text) in digests.iter().zip(&wanted) {
            assert!(
                known.contains_key(digest),
                "help/zh.txt has no line `{digest:08x} ..` of: {text}"
            );
        }
        for (digest, text) in known {
            assert!(digests.contains(&digest), "{digest:08x} {text}: of no English text any more");
        }
    }

    #[test]
    fn the_program_has_the_file_compressed() {
        if std::env::var_os("FULLPIPE_FIGURES").is_some() {
            let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
            packed.write_all(FILE.as_bytes()).unwrap();
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/help/zh.txt.gz");
            std::fs::write(path, packed.finish().unwrap()).unwrap();
            return;
        }
        let mut unpacked = String::new();
        GzDecoder::new(CHINESE).read_to_string(&mut unpacked).unwrap();
        assert!(
            unpacked == FILE,
            "FULLPIPE_FIGURES=1 cargo test -p fullpipe-cli help writes it anew"
        );
    }

    #[test]
    fn help_in_chinese_has_no_english_sentence_and_parses_the_same() {
        let mut command = in_language(crate::cmd::Cli::command(), Language::Chinese);
        for name in ["analyze", "tune", "link", "relay"] {
            let sub = command.find_subcommand_mut(name).unwrap();
            let help = sub.render_long_help().to_string();
            let (before, _) = help.split_once("Examples:").unwrap_or((&help, ""));
            let wide = before.lines().find(|line| measure_text_width(line) > usize::from(WIDTH));
            assert_eq!(wide, None, "{name}");
            for part in ["用法：", "选项", "显示帮助"] {
                assert!(before.contains(part), "{name}: {part}: {before}");
            }
            for word in [" the ", "Options:", "Print ", "[default", "[possible"] {
                assert!(!before.contains(word), "{name}: {word}: {before}");
            }
        }
        let asked = ["fullpipe", "analyze", "x.pcap", "--labels", "wireshark", "--top", "3"];
        assert!(command.clone().try_get_matches_from(asked).is_ok());
        let wrong = ["fullpipe", "analyze", "--no-such-option"];
        assert!(command.try_get_matches_from(wrong).is_err());
    }
}
