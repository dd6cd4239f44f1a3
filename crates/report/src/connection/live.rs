//! Live connections with what limits them, for `fullpipe why`: a table, and sentences about those
//! that lose time.

use crate::cells::sure;
use crate::{
    Column, Layout, Table, Tone,
    table::{figure, paragraph},
};
use fullpipe_flow::diagnosis::live::{Acts, LiveConnection};
use fullpipe_flow::diagnosis::{DiagnosedConnection, Explanation};
use fullpipe_flow::finding::words;
use fullpipe_flow::limit::Limit;
use fullpipe_model::limit::End;
use fullpipe_model::units::Duration;

/// How many connections get sentences beside their row.
const EXPLAINED: usize = 3;

/// A table of the connections, worst first, the reasons of those that lose time, and what the
/// machine itself dropped or held back.
pub fn render(connections: &[LiveConnection], machine: &[Explanation], layout: Layout) -> String {
    let mut table = Table::new([
        Column::text("process"),
        Column::text("this end").leaves(3),
        Column::text(""),
        Column::text("peer"),
        Column::figure("rate", "Mbit/s"),
        Column::text("limited by"),
        Column::figure("sure", "%"),
        Column::figure("time", "%").leaves(1),
        Column::figure("lost", "%").leaves(2),
        Column::text("who must act"),
    ]);
    for connection in connections {
        let answer = &connection.answer;
        table.row([
            process(connection),
            answer.local.to_string(),
            direction(answer.role, layout).into(),
            answer.remote.to_string(),
            figure::mbit_per_s(answer.goodput),
            answer.headline.to_string(),
            sure(answer.headline.sure()),
            figure::percent(answer.share),
            figure::percent(share(answer.lost, answer.time)),
            answer.acts.words().into(),
        ]);
    }
    let mut text = table.render(layout);
    let worst = connections.iter().filter(|one| one.answer.limit != Limit::Unknown);
    for connection in worst.take(EXPLAINED) {
        text.push('\n');
        text += &explain(connection, layout);
    }
    if !machine.is_empty() {
        text.push('\n');
        text += &layout.paint(Tone::Heading, "on this host meanwhile");
        text.push('\n');
        for one in machine {
            text += &paragraph::fill("  ", &words::sub_cause(&one.sub_cause), layout.width);
            text.push('\n');
            text += &paragraph::fill("    to change it: ", words::remedy(one.remedy), layout.width);
            text.push('\n');
        }
    }
    text
}

/// What the packets of a connection say of its data, beside what its socket said: `by_socket`, if
/// that was followed.
pub fn render_packets(
    seen: &DiagnosedConnection,
    by_socket: Option<Limit>,
    layout: Layout,
) -> String {
    let mut text = layout.paint(Tone::Heading, "by its packets") + "\n";
    let mut line = |first: &str, words: &str| {
        text += &paragraph::fill(first, words, layout.width);
        text.push('\n');
    };
    let bulk = seen.connection.bulk();
    let findings = seen.findings();
    let findings = || findings.iter().filter(|one| one.direction == bulk).map(|one| &one.what);
    for finding in findings().take(2) {
        line("  ", &words::claim(finding));
    }
    for cause in seen.explanations() {
        line("  cause: ", &words::sub_cause(&cause.what.sub_cause));
    }
    let Some(first) = findings().next() else {
        line("  ", "its data was not what took the time");
        return text;
    };
    if let Some(doubt) = &first.doubt {
        line("  how sure: ", &words::doubt(doubt));
    }
    match by_socket.filter(|limit| *limit != Limit::Unknown) {
        None => {}
        Some(limit) if limit.name() == first.limit.name() => {
            line("  ", "packets and socket name the same limit");
        }
        Some(limit) => {
            let words = format!(
                "the socket says {limit}, the packets {}: two kinds of evidence that disagree make neither certain",
                first.limit
            );
            line("  ", &words);
        }
    }
    text
}

/// Why one connection is as fast as it is: claims, causes, remedies, and which end must act.
fn explain(connection: &LiveConnection, layout: Layout) -> String {
    let answer = &connection.answer;
    let way = direction(answer.role, layout);
    let title = format!("{} {way} {} ({})", answer.local, answer.remote, process(connection));
    let mut lines = vec![layout.paint(Tone::Heading, &crate::table::escape::in_line(&title))];
    let mut line =
        |first: &str, words: &str| lines.push(paragraph::fill(first, words, layout.width));
    for finding in answer.findings.iter().take(2) {
        line("  ", &words::claim(finding));
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
    line("  who must act: ", &acts(answer.acts, answer.limit));
    if let Some(lifetime) = answer.lifetime.filter(|life| life.busy > Duration::ZERO) {
        let part = |time| figure::percent(share(time, lifetime.busy));
        line(
            "  since its start: ",
            &format!(
                "busy for {}, of which {} % waited for the receive window and {} % for the send buffer",
                lifetime.busy,
                part(lifetime.rwnd_limited),
                part(lifetime.sndbuf_limited)
            ),
        );
    }
    lines.push(String::new());
    lines.join("\n")
}

fn acts(acts: Acts, limit: Limit) -> String {
    match (acts, limit) {
        (Acts::Here, _) => "this host".into(),
        (Acts::Peer, Limit::ReceiveWindow) => {
            "the peer: its receive buffer (its tcp_rmem or SO_RCVBUF) is the fix, not a setting here".into()
        }
        (Acts::Peer, Limit::ReceiverApplication) => {
            "the peer: its application has to read faster".into()
        }
        (Acts::Peer, Limit::SendBuffer) => {
            "the peer: its send buffer (its tcp_wmem or SO_SNDBUF) is the fix, not a setting here".into()
        }
        (Acts::Peer, _) => "the peer: it sends no faster".into(),
        (Acts::Path, _) => "whoever runs the path; a setting here can only soften it".into(),
        (Acts::Nobody, _) => "nobody: the path is full".into(),
        (Acts::Unknown, _) => "not known: watch for longer (--for)".into(),
    }
}

fn process(connection: &LiveConnection) -> String {
    match &connection.process {
        Some(process) => format!("{} {}", process.name, process.pid),
        None => "-".into(),
    }
}

fn direction(role: End, layout: Layout) -> &'static str {
    match role {
        End::Sender => layout.arrow(),
        End::Receiver => layout.arrow_back(),
    }
}

fn share(part: Duration, whole: Duration) -> f64 {
    if whole > Duration::ZERO { part.as_secs_f64() / whole.as_secs_f64() } else { 0.0 }
}

#[cfg(test)]
mod tests;
