//! A tuning plan as text: each change as a line to paste, with its reason below, then what to know.

pub mod calc;
pub mod convert;
pub mod host_plan;

use crate::table::paragraph::fill;
use crate::{Layout, Tone};
use fullpipe_flow::Language;
use fullpipe_model::change::Change;
use fullpipe_model::limit::{End, Limit};
use fullpipe_model::tune::{Plan, Prediction};

/// The plan as lines, each with its line break.
pub fn render(plan: &Plan, layout: Layout) -> String {
    let mut text = String::new();
    if plan.changes.is_empty() {
        text += &fill("", &format!("Nothing to set: {}.", expected(&plan.before)), layout.width);
    } else {
        let (before, after) = (expected(&plan.before), expected(&plan.after));
        text += &fill("", &format!("Expected: {before} {} {after}.", layout.arrow()), layout.width);
    }
    text.push('\n');
    for change in &plan.changes {
        text += "\n";
        text += &change_lines(change, layout);
    }
    if !plan.notes.is_empty() {
        text += "\nTo know:\n";
    }
    for note in &plan.notes {
        let host = note.end.map_or_else(|| "path".into(), |end| end.to_string());
        text += &fill("  - ", &format!("{host}: {}", note.text), layout.width);
        text.push('\n');
    }
    text
}

/// What the plan sets, a line for each change.
pub fn in_short(plan: &Plan, layout: Layout) -> String {
    let line = |change: &Change| {
        let Change { knob, to, .. } = change;
        let label = format!("  {}: ", host_of(change));
        let text = format!("{knob} {} {} {to}", from_of(change), layout.arrow());
        format!("{}\n", fill(&label, &text, layout.width))
    };
    plan.changes.iter().map(line).collect()
}

/// `442.9 Mbit/s (55.36 MB/s), limited by the send buffer`, without colour.
pub fn expected(prediction: &Prediction) -> String {
    let Prediction { goodput, limited_by, .. } = prediction;
    match limited_by {
        Limit::Link => format!("{goodput} ({goodput:#}), a full link"),
        other => format!("{goodput} ({goodput:#}), limited by the {other}"),
    }
}

/// Whose setting it is.
fn host_of(change: &Change) -> String {
    change.end.map_or_else(|| "host".into(), |end| end.to_string())
}

/// A setting to change against a limit, and the command that does.
pub(crate) fn advice_lines(change: &Change, layout: Layout) -> String {
    let (start, what) = match layout.language {
        Language::English => {
            let what = format!("{} ({})", change.words(), change.reason);
            (format!("  on the {}: ", host_of(change)), what)
        }
        Language::Chinese => {
            let host = match change.end {
                Some(End::Sender) => "在发送方",
                Some(End::Receiver) => "在接收方",
                None => "在主机上",
            };
            (format!("  {host}："), {
                let least = if change.knob.is_size() { "至少 " } else { "" };
                format!("{} {least}{}", change.knob, change.to)
            })
        }
    };
    let why = fill(&start, &what, layout.width);
    // One line, however long, because people paste it.
    format!("{why}\n    {}\n", change.command())
}

fn from_of(change: &Change) -> String {
    change.from.as_ref().map_or_else(|| "unknown".into(), ToString::to_string)
}

fn change_lines(change: &Change, layout: Layout) -> String {
    let Change { to, reason, .. } = change;
    // One line, however long, because people paste it.
    let host = format!("{}:", host_of(change));
    let mut text = format!("{host:<9} {}", layout.paint(Tone::Heading, &change.command()));
    text.push('\n');
    let values = format!("was {}, becomes {to}", from_of(change));
    text += &fill("          ", &values, layout.width);
    text.push('\n');
    text += &fill("          ", &format!("because {reason}"), layout.width);
    text.push('\n');
    text
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
