//! The runs of a test between two hosts, for `fullpipe test`: a page to paste into a ticket.

use crate::cells::sure;
use crate::{
    Column, Layout, Table, Tone,
    table::{escape, figure, paragraph},
};
use fullpipe_flow::diagnosis::live::{Acts, Answer};
use fullpipe_flow::finding::path_test::{Loss, Measured, Rfc6349};
use fullpipe_flow::finding::words;
use fullpipe_model::limit::End;
use fullpipe_model::units::{Bytes, Duration};

/// A run of the test.
#[derive(Debug, Clone, Copy)]
pub struct TestedRun<'a> {
    /// Whether the other direction carried data at the same time.
    pub at_once: bool,
    /// What it measured.
    pub measured: &'a Measured,
    /// The same in the terms of RFC 6349, if asked for.
    pub rfc6349: Option<&'a Rfc6349>,
}

/// What was tested.
#[derive(Debug, Clone, Copy)]
pub struct TestedHosts<'a> {
    /// The far host, as the user named it.
    pub far: &'a str,
    /// The least round trip of messages before the load.
    pub idle_rtt: Duration,
}

/// The page: a table of the runs, the metrics of RFC 6349 if asked for, and what limited each run.
pub fn render(hosts: TestedHosts<'_>, runs: &[TestedRun<'_>], layout: Layout) -> String {
    let far = escape::in_line(hosts.far);
    let title = format!("test with {far}, {} without load", hosts.idle_rtt);
    let mut text = layout.paint(Tone::Heading, &title) + "\n";
    text += &table(runs).render(layout);
    let metrics: Vec<_> = runs.iter().filter(|run| run.rfc6349.is_some()).collect();
    if !metrics.is_empty() {
        text += "\n";
        text += &layout.paint(Tone::Heading, "metrics of RFC 6349");
        text += "\n";
        text += &rfc6349(&metrics).render(layout);
    }
    for run in runs {
        text += "\n";
        text += &explain(run, layout);
    }
    text
}

fn name(run: &TestedRun<'_>) -> &'static str {
    match (run.measured.role, run.at_once) {
        (End::Sender, false) => "to it",
        (End::Receiver, false) => "from it",
        (End::Sender, true) => "to it, both at once",
        (End::Receiver, true) => "from it, both at once",
    }
}

fn optional<T>(value: Option<T>, show: fn(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

fn table(runs: &[TestedRun<'_>]) -> Table<11> {
    let mut table = Table::new([
        Column::text("data"),
        Column::count("connections"),
        Column::figure("rate", "Mbit/s"),
        Column::figure("steady", "Mbit/s").leaves(2),
        Column::figure("base RTT", "ms"),
        Column::figure("loaded RTT", "ms").leaves(4),
        Column::figure("lost", "%"),
        Column::figure("MTU", "bytes").leaves(1),
        Column::text("limited by"),
        Column::figure("sure", "%"),
        Column::figure("time", "%").leaves(3),
    ]);
    for run in runs {
        let measured = run.measured;
        let answer = measured.answer.as_ref();
        let limit = match (&measured.machine, answer) {
            (Some(machine), _) => format!("the {}'s machine", machine.end),
            (None, Some(answer)) => answer.headline.to_string(),
            (None, None) => "-".into(),
        };
        table.row([
            name(run).into(),
            measured.connections.len().to_string(),
            figure::mbit_per_s(measured.goodput),
            figure::mbit_per_s(measured.steady),
            optional(measured.base_rtt, figure::ms),
            optional(measured.loaded_rtt, figure::ms),
            optional(measured.loss, |loss| format!("{:.3}", 100.0 * loss.share)),
            optional(measured.mtu, |mtu| mtu.get().to_string()),
            limit,
            sure(answer.and_then(|answer| answer.headline.sure())),
            optional(answer.map(|answer| answer.share), figure::percent),
        ]);
    }
    table
}

fn rfc6349(runs: &[&TestedRun<'_>]) -> Table<11> {
    let mut table = Table::new([
        Column::text("data"),
        Column::count("connections"),
        Column::figure("bottleneck", "Mbit/s"),
        Column::figure("BDP", "bytes").leaves(1),
        Column::figure("ideal", "Mbit/s").leaves(2),
        Column::figure("actual", "Mbit/s"),
        Column::figure("Transfer Time Ratio", ""),
        Column::figure("Efficiency", "%"),
        Column::figure("baseline RTT", "ms").leaves(4),
        Column::figure("average RTT", "ms").leaves(3),
        Column::figure("Buffer Delay", "%"),
    ]);
    for run in runs {
        let Some(metrics) = run.rfc6349 else { continue };
        table.row([
            name(run).into(),
            run.measured.connections.len().to_string(),
            figure::mbit_per_s(metrics.bottleneck),
            metrics.bdp.get().to_string(),
            figure::mbit_per_s(metrics.ideal),
            figure::mbit_per_s(metrics.actual),
            optional(metrics.transfer_time_ratio, |ratio| format!("{ratio:.3}")),
            optional(metrics.efficiency_percent, |part| format!("{part:.2}")),
            figure::ms(metrics.baseline),
            optional(metrics.average, figure::ms),
            optional(metrics.buffer_delay_percent, |part| format!("{part:.1}")),
        ]);
    }
    table
}

/// Why a run was as fast as it was.
fn explain(run: &TestedRun<'_>, layout: Layout) -> String {
    let measured = run.measured;
    let count = measured.connections.len();
    let plural = if count == 1 { "" } else { "s" };
    let title = format!("{}, {count} connection{plural}", name(run));
    let mut lines = vec![layout.paint(Tone::Heading, &title)];
    let mut line = |first: &str, words: &str| {
        lines.push(paragraph::fill(first, &escape::in_line(words), layout.width));
    };
    line("  ", &carried(measured));
    if let Some(words) = queue(measured) {
        line("  queue: ", &words);
    }
    if let Some(loss) = measured.loss {
        line("  loss: ", &lost(loss));
    }
    if let Some(rate) = measured.policer {
        line("  policer: ", &format!("something on the path drops what exceeds {rate}"));
    }
    if let Some(machine) = &measured.machine {
        line("  limit: ", &words::machine_limit(machine));
        line(
            "  to change it: ",
            "test with fewer other programs, a faster machine, or --parallel for more threads",
        );
    } else if let Some(answer) = &measured.answer {
        findings(answer, &mut line);
    }
    if let Some(metrics) = run.rfc6349 {
        line("  RFC 6349: ", &needed(metrics));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn carried(measured: &Measured) -> String {
    let mut words = format!("{:#} in {}", measured.received, measured.time);
    if let Some(rate) = measured.bottleneck {
        words += &format!("; the path was full: its bottleneck carries {rate} of IP packets");
    }
    if let Some(name) = &measured.congestion_control {
        words += &format!("; congestion control {name}");
    }
    words
}

fn queue(measured: &Measured) -> Option<String> {
    let (queue, longest) = measured.queue.zip(measured.longest_rtt)?;
    let held: Bytes = measured.steady.over(queue);
    Some(format!(
        "{} on average ({held:#}), the longest round trip {}",
        milliseconds(queue),
        milliseconds(longest)
    ))
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_millis_f64())
}

fn lost(loss: Loss) -> String {
    let mut words = format!(
        "{} of {} segments, {:.4} % (95 %: {:.4} to {:.4} %)",
        loss.lost_segments,
        loss.sent_segments,
        100.0 * loss.share,
        100.0 * loss.share_least,
        100.0 * loss.share_most
    );
    if loss.spurious_segments > 0 {
        words += &format!("; {} more were sent again needlessly", loss.spurious_segments);
    }
    words
}

fn findings(answer: &Answer, line: &mut dyn FnMut(&str, &str)) {
    for finding in answer.findings.iter().take(2) {
        line("  limit: ", &words::claim(finding));
        if let Some(doubt) = &finding.doubt {
            line("    how sure: ", &words::doubt(doubt));
        }
    }
    for cause in &answer.causes {
        line("  cause: ", &words::sub_cause(&cause.sub_cause));
    }
    if let Some(remedy) = answer.remedy {
        line("  to change it: ", words::remedy(remedy));
    }
    let acts = match answer.acts {
        Acts::Here => "this host",
        Acts::Peer => "the far host",
        Acts::Path => "whoever runs the path; a setting at the hosts can only soften it",
        Acts::Nobody => "nobody: the path is full",
        Acts::Unknown => "not known: test for longer (--for)",
    };
    line("  who must act: ", acts);
}

fn needed(metrics: &Rfc6349) -> String {
    let had = |name: &str, bytes: Option<Bytes>| {
        bytes.map_or_else(String::new, |bytes| format!("; the largest {name} was {bytes:#}"))
    };
    let window = metrics.window.map(|window| window.bytes());
    format!(
        "{} at {} needs a receive window and a send buffer of {:#} in all{}{}",
        metrics.bottleneck,
        milliseconds(metrics.baseline),
        metrics.bdp,
        had("window of a connection", window),
        had("send buffer", metrics.send_buffer)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::finding::path_test::{MachineLimit, MeasuredConnection, OwnLimit};
    use fullpipe_model::limit::Limit;
    use fullpipe_model::units::Rate;

    fn measured() -> Measured {
        let rate = Rate::from_bits_per_sec;
        Measured {
            role: End::Sender,
            received: Bytes::new(12_000_000),
            time: Duration::from_secs(1),
            goodput: rate(96_000_000),
            steady: rate(96_500_000),
            bottleneck: Some(rate(100_000_000)),
            base_rtt: Some(Duration::from_millis(20)),
            loaded_rtt: Some(Duration::from_millis(35)),
            longest_rtt: Some(Duration::from_millis(41)),
            queue: Some(Duration::from_millis(15)),
            mtu: Some(Bytes::new(1500)),
            mss: Some(Bytes::new(1448)),
            congestion_control: Some("cu\u{1b}[31mbic".into()),
            window: None,
            loss: None,
            policer: None,
            machine: None,
            answer: None,
            connections: vec![MeasuredConnection {
                received: Bytes::new(12_000_000),
                goodput: rate(96_000_000),
                retransmitted_segments: 0,
                limit: Limit::Link,
                share: 0.9,
            }],
        }
    }

    fn page(measured: &Measured) -> String {
        let hosts = TestedHosts { far: "far\u{1b}.example", idle_rtt: Duration::from_millis(20) };
        let run = TestedRun { at_once: false, measured, rfc6349: None };
        render(hosts, &[run], Layout::default())
    }

    #[test]
    fn the_page_has_the_figures_and_obeys_nothing() {
        let text = page(&measured());
        for part in ["to it", "96.0", "96.5", "20.0", "35.0", "1500", "15.0 ms on average"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(text.contains("bottleneck carries 100"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_machine_that_was_the_limit_stands_in_the_place_of_the_limit() {
        let by = OwnLimit::BusyThread;
        let machine = Some(MachineLimit { end: End::Sender, cpu: 0.98, by });
        let text = page(&Measured { machine, ..measured() });
        assert!(text.contains("the sender's machine") && text.contains("--parallel"), "{text}");
    }
}
