//! A tuning plan as text: each change as a line to paste, with its reason below, then what to know.

pub mod calc;
pub mod convert;
pub mod host_plan;
mod words;

pub use words::expected;

use crate::table::paragraph::fill;
use crate::{Layout, Tone};
use fullpipe_flow::Language;
use fullpipe_model::change::Change;
use fullpipe_model::tune::{Note, Plan};
use unicode_width::UnicodeWidthStr;

/// The plan as lines, each with its line break.
pub fn render(plan: &Plan, layout: Layout) -> String {
    let language = layout.language;
    let before = expected(language, &plan.before);
    let first = if plan.changes.is_empty() {
        match language {
            Language::English => format!("Nothing to set: {before}."),
            Language::Chinese => format!("无需设置：{before}。"),
        }
    } else {
        let (arrow, after) = (layout.arrow(), expected(language, &plan.after));
        match language {
            Language::English => format!("Expected: {before} {arrow} {after}."),
            Language::Chinese => format!("预期：{before} {arrow} {after}。"),
        }
    };
    let mut text = fill("", &first, layout.width);
    text.push('\n');
    for change in &plan.changes {
        text += "\n";
        text += &change_lines(change, layout);
    }
    if !plan.notes.is_empty() {
        text += &format!("\n{}\n", layout.labels().to_know);
    }
    for Note { end, note } in &plan.notes {
        let note = words::note(language, note);
        let line = of_host(language, &words::end(language, *end, "path"), &note);
        text += &fill("  - ", &line, layout.width);
        text.push('\n');
    }
    text
}

/// What the plan sets, a line for each change.
pub fn in_short(plan: &Plan, layout: Layout) -> String {
    let mut lines = String::new();
    for change in &plan.changes {
        let Change { knob, to, .. } = change;
        let host = words::end(layout.language, change.end, "host");
        let label = of_host(layout.language, &format!("  {host}"), "");
        let from = from_of(change, layout.language);
        let text = format!("{knob} {from} {} {to}", layout.arrow());
        lines += &fill(&label, &text, layout.width);
        lines.push('\n');
    }
    lines
}

/// What is said of a host.
fn of_host(language: Language, host: &str, what: &str) -> String {
    match language {
        Language::English => format!("{host}: {what}"),
        Language::Chinese => format!("{host}：{what}"),
    }
}

/// A setting to change against a limit, and the command that does.
pub(crate) fn advice_lines(change: &Change, layout: Layout) -> String {
    let language = layout.language;
    let host = words::end(language, change.end, "host");
    let reason = words::reason(language, &change.reason);
    let (start, what) = match language {
        Language::English => {
            (format!("  on the {host}: "), format!("{} ({reason})", change.words()))
        }
        Language::Chinese => {
            let least = if change.knob.is_size() { "至少 " } else { "" };
            let what = format!("{} {least}{}（{reason}）", change.knob, change.to);
            (format!("  在{host}："), what)
        }
    };
    let why = fill(&start, &what, layout.width);
    // One line, however long, because people paste it.
    format!("{why}\n    {}\n", change.command())
}

fn from_of(change: &Change, language: Language) -> String {
    let unknown = match language {
        Language::English => "unknown",
        Language::Chinese => "未知",
    };
    change.from.as_ref().map_or_else(|| unknown.into(), ToString::to_string)
}

/// What a change replaces, and why, below its command.
fn change_reason(change: &Change, indent: &str, layout: Layout) -> String {
    let (to, from) = (&change.to, from_of(change, layout.language));
    let reason = words::reason(layout.language, &change.reason);
    let [values, why] = match layout.language {
        Language::English => [format!("was {from}, becomes {to}"), format!("because {reason}")],
        Language::Chinese => [format!("原值 {from}，改为 {to}"), format!("原因：{reason}")],
    };
    let mut text = String::new();
    for line in [Some(values).filter(|_| change.from.is_some() || change.end.is_some()), Some(why)]
    {
        let Some(line) = line else { continue };
        text += &fill(indent, &line, layout.width);
        text.push('\n');
    }
    text
}

fn change_lines(change: &Change, layout: Layout) -> String {
    // One line, however long, because people paste it.
    let host = of_host(layout.language, &words::end(layout.language, change.end, "host"), "");
    let pad = " ".repeat(10_usize.saturating_sub(host.trim_end().width()));
    let command = layout.paint(Tone::Heading, &change.command());
    format!("{}{pad}{command}\n{}", host.trim_end(), change_reason(change, "          ", layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Charset;
    use fullpipe_model::tune::{HostSettings, Path, plan};

    fn planned(rtt: &str) -> Plan {
        let host = HostSettings::defaults("6.18".parse().unwrap());
        plan(Path::new("1gbit".parse().unwrap(), rtt.parse().unwrap()), &host, &host)
    }

    #[test]
    fn a_plan_reads_and_pastes() {
        let plan = planned("50ms");
        let text =
            render(&plan, Layout { width: Some(80), charset: Charset::Ascii, ..Layout::default() });
        let expected = "\
Expected: 440.4 Mbit/s (55.05 MB/s), limited by the send buffer -> 965.3 Mbit/s
(120.7 MB/s), a full link.

sender:   sysctl -w net.ipv4.tcp_wmem=\"$(sysctl -n net.ipv4.tcp_wmem | awk '{ if ($3 < 11534336) $3 = 11534336; print }')\"
          was 4096 16384 4194304, becomes 4096 16384 11534336
          because a send buffer of 4 MiB keeps 2.768 MB in flight (66 % of it),
          about 442.9 Mbit/s over 50 ms; the path holds 6.25 MB and its queue
          6.25 MB

To know:
  - receiver: each connection may use 32 MiB of memory to receive
  - sender: each connection may use 11 MiB of memory to send
";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_full_path_is_said_to_be_full() {
        let text = render(&planned("1ms"), Layout::default());
        assert!(
            text.starts_with("Nothing to set: 965.3 Mbit/s (120.7 MB/s), a full link.\n"),
            "{text}"
        );
    }

    #[test]
    fn the_width_is_kept_except_by_what_is_pasted() {
        for width in 40..120 {
            let text = render(&planned("50ms"), Layout { width: Some(width), ..Layout::default() });
            for line in text.lines().filter(|line| !line.contains("sysctl -w")) {
                assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
            }
        }
    }
}
