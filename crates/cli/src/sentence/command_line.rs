//! What is wrong with a command line, in one line.

use super::{Sentence, errors};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error;

/// What clap found.
pub fn sentence(error: &clap::Error) -> Sentence {
    Sentence::new(english(error), chinese(error))
}

/// clap's own text. Its paragraphs are the problem, tips, the usage and where to find help.
fn english(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let told = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("For more"));
    let message = told.collect::<Vec<_>>().join("; ").replace(":; ", ": ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    format!("{message}; `fullpipe --help` and `fullpipe SUBCOMMAND --help` say more")
}

/// The same of clap's parts: what kind of problem it is, and with what.
fn chinese(error: &clap::Error) -> String {
    let mut parts = vec![problem(error)];
    parts.extend(possible(error));
    parts.extend(similar(error));
    if let Some(usage) = error.get(ContextKind::Usage) {
        let usage = usage.to_string();
        let usage = usage.split_whitespace().collect::<Vec<_>>().join(" ");
        parts.push(format!("用法：{}", usage.trim_start_matches("Usage: ")));
    }
    parts.push("详见 `fullpipe --help` 和 `fullpipe SUBCOMMAND --help`".into());
    parts.join("；")
}

/// A part of what clap tells of the problem.
fn part(error: &clap::Error, kind: ContextKind) -> String {
    error.get(kind).map_or_else(String::new, |value| match value {
        ContextValue::Strings(all) => {
            all.iter().map(|one| format!("'{one}'")).collect::<Vec<_>>().join("、")
        }
        value => format!("'{value}'"),
    })
}

fn problem(error: &clap::Error) -> String {
    use ContextKind::{ActualNumValues, ExpectedNumValues, InvalidSubcommand, MinValues, PriorArg};
    let [argument, value] =
        [ContextKind::InvalidArg, ContextKind::InvalidValue].map(|kind| part(error, kind));
    match error.kind() {
        ErrorKind::ArgumentConflict if argument == part(error, PriorArg) => {
            format!("参数 {argument} 只能给出一次")
        }
        ErrorKind::ArgumentConflict => {
            format!("参数 {argument} 不能与 {} 同时使用", part(error, PriorArg))
        }
        ErrorKind::NoEquals => format!("{argument} 的值之前需要等号"),
        ErrorKind::InvalidValue if value == "''" => format!("{argument} 需要一个值，但没有给出"),
        ErrorKind::InvalidValue => format!("{argument} 的值 {value} 无效"),
        ErrorKind::ValueValidation => match error.source() {
            Some(cause) => format!("{argument} 的值 {value} 无效：{}", why(cause)),
            None => format!("{argument} 的值 {value} 无效"),
        },
        ErrorKind::InvalidSubcommand => {
            format!("没有子命令 {}", part(error, InvalidSubcommand))
        }
        ErrorKind::UnknownArgument => format!("没有参数 {argument}"),
        ErrorKind::MissingRequiredArgument => format!("缺少必需的参数 {argument}"),
        ErrorKind::MissingSubcommand => {
            format!("{} 需要一个子命令", part(error, InvalidSubcommand))
        }
        ErrorKind::TooManyValues => format!("{argument} 不再接受更多的值，多出的是 {value}"),
        ErrorKind::TooFewValues => {
            let [wanted, given] = [MinValues, ActualNumValues].map(|kind| part(error, kind));
            format!("{argument} 至少还需要 {wanted} 个值，给出了 {given} 个")
        }
        ErrorKind::WrongNumberOfValues => {
            let [wanted, given] =
                [ExpectedNumValues, ActualNumValues].map(|kind| part(error, kind));
            format!("{argument} 需要 {wanted} 个值，给出了 {given} 个")
        }
        ErrorKind::InvalidUtf8 => "参数不是有效的 UTF-8".into(),
        other => other.to_string(),
    }
}

/// Why a value is refused, by the type of the error.
fn why(cause: &(dyn Error + 'static)) -> String {
    errors::of_value(cause).map_or_else(|| cause.to_string(), |told| told.chinese().into())
}

fn possible(error: &clap::Error) -> Option<String> {
    let kind = match error.kind() {
        ErrorKind::MissingSubcommand => ContextKind::ValidSubcommand,
        _ => ContextKind::ValidValue,
    };
    let values = error.get(kind)?.to_string();
    (!values.is_empty()).then(|| format!("可用的是：{values}"))
}

fn similar(error: &clap::Error) -> Option<String> {
    let kinds =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let found = kinds.map(|kind| part(error, kind)).into_iter().find(|part| !part.is_empty())?;
    Some(format!("相近的是 {found}"))
}
