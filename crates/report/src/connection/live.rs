//! Live connections with what limits them, for `fullpipe why`: a table, and sentences about those
//! that lose time.

use super::account;
use crate::cells::sure;
use crate::{
    Column, Layout, Table, Tone, labels,
    table::{figure, paragraph},
};
use fullpipe_flow::Language;
use fullpipe_flow::diagnosis::live::{Acts, LiveConnection};
use fullpipe_flow::diagnosis::{DiagnosedConnection, Explanation};
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
        let wait = account::longest_wait(answer);
        let [time, lost] = wait.map_or([answer.share, share(answer.lost, answer.time)], |wait| {
            [wait.time, wait.lost].map(|time| account::share_of_all(answer, time))
        });
        table.row([
            process(connection),
            answer.local.to_string(),
            direction(answer.role, layout).into(),
            peer(connection),
            figure::mbit_per_s(answer.goodput),
            account::waited(answer, layout.language)
                .unwrap_or_else(|| layout.language.headline(&answer.headline)),
            sure(answer.headline.sure().filter(|_| wait.is_none())),
            figure::percent(time),
            figure::percent(lost),
            account::against_wait(answer, layout.language)
                .map_or_else(|| labels::acts(layout.language, answer.acts), |(_, who)| who)
                .into(),
        ]);
    }
    let (labels, language) = (layout.labels(), layout.language);
    let mut text = table.render(layout);
    let worst = connections.iter().filter(|one| {
        one.answer.limit != Limit::Unknown || account::longest_wait(&one.answer).is_some()
    });
    for connection in worst.take(EXPLAINED) {
        text.push('\n');
        text += &explain(connection, layout);
    }
    if !machine.is_empty() {
        text.push('\n');
        text += &layout.paint(Tone::Heading, labels.on_this_host);
        text.push('\n');
        for one in machine {
            text += &paragraph::fill("  ", &language.sub_cause(&one.sub_cause), layout.width);
            text.push('\n');
            let remedy = language.remedy(one.remedy);
            text += &paragraph::fill(labels.to_change_machine, remedy, layout.width);
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
    let (labels, language) = (layout.labels(), layout.language);
    let mut text = layout.paint(Tone::Heading, labels.by_packets) + "\n";
    let mut line = |first: &str, words: &str| {
        text += &paragraph::fill(first, words, layout.width);
        text.push('\n');
    };
    let bulk = seen.connection.bulk();
    let found = seen.findings();
    let mut findings = found.iter().filter(|one| one.direction == bulk).map(|one| &one.what);
    for finding in findings.clone().take(2) {
        line("  ", &language.claim(finding));
    }
    for cause in seen.explanations() {
        line(labels.cause, &language.sub_cause(&cause.what.sub_cause));
    }
    let Some(first) = findings.next() else {
        line("  ", labels.data_took_no_time);
        return text;
    };
    if let Some(doubt) = &first.doubt {
        line(labels.how_sure, &language.doubt(doubt));
    }
    match by_socket.filter(|limit| *limit != Limit::Unknown) {
        None => {}
        Some(limit) if limit.name() == first.limit.name() => {
            line("  ", labels.same_limit);
        }
        Some(limit) => {
            let [by_socket, by_packets] = [limit, first.limit].map(|limit| language.limit(limit));
            let words = match language {
                Language::English => format!(
                    "the socket says {by_socket}, the packets {by_packets}: two kinds of evidence \
                     that disagree make neither certain"
                ),
                Language::Chinese => format!(
                    "套接字指出{by_socket}，数据包指出{by_packets}：两种证据不一致，都不能算确定"
                ),
            };
            line("  ", &words);
        }
    }
    text
}

/// Why one connection is as fast as it is: claims, causes, remedies, and which end must act.
fn explain(connection: &LiveConnection, layout: Layout) -> String {
    let answer = &connection.answer;
    let (labels, language) = (layout.labels(), layout.language);
    let way = direction(answer.role, layout);
    let (peer, process) = (peer(connection), process(connection));
    let pod = connection.process.as_ref().and_then(|process| process.pod.as_ref());
    let pod = pod.map(|pod| format!(", {pod}")).unwrap_or_default();
    let title = format!("{} {way} {peer} ({process}{pod})", answer.local);
    let mut lines = vec![layout.paint(Tone::Heading, &crate::table::escape::in_line(&title))];
    let mut line =
        |first: &str, words: &str| lines.push(paragraph::fill(first, words, layout.width));
    // Where something else took most of the time, what held a moment's data is no answer.
    let is_told = answer.limit == Limit::Unknown || account::longest_wait(answer).is_none();
    for finding in answer.findings.iter().filter(|_| is_told).take(2) {
        line("  ", &language.claim(finding));
        if let Some(doubt) = &finding.doubt {
            line(labels.how_sure_within, &language.doubt(doubt));
        }
    }
    if let Some(words) = account::live(&answer.account, language) {
        line(labels.time, &words);
    }
    for cause in &answer.causes {
        line(labels.cause, &language.sub_cause(&cause.sub_cause));
    }
    let remedy = answer.remedy.map(|remedy| language.remedy(remedy));
    // A receiver that has to act against what its own kernel does not show.
    let is_receiver = answer.role == End::Sender
        && !matches!(answer.limit, Limit::ReceiveWindow | Limit::ReceiverApplication);
    let acts = match answer.acts {
        Acts::Peer if is_receiver => labels::acts(language, Acts::Peer),
        acts => labels::acts_against(language, acts, answer.limit),
    };
    let (remedy, acts) = account::against_wait(answer, language).unwrap_or((remedy, acts));
    if let Some(remedy) = remedy {
        line(labels.to_change, remedy);
    }
    line(labels.who_acts, acts);
    if let Some(lifetime) = answer.lifetime.filter(|life| life.busy > Duration::ZERO) {
        let busy = lifetime.busy;
        let [window, buffer] = [lifetime.rwnd_limited, lifetime.sndbuf_limited]
            .map(|time| figure::percent(share(time, busy)));
        let since = match language {
            Language::English => format!(
                "busy for {busy}, of which {window} % waited for the receive window and {buffer} % \
                 for the send buffer"
            ),
            Language::Chinese => {
                format!("繁忙 {busy}，其中 {window} % 在等待接收窗口，{buffer} % 在等待发送缓冲区")
            }
        };
        line(labels.since_start, &since);
    }
    lines.push(String::new());
    lines.join("\n")
}

fn process(connection: &LiveConnection) -> String {
    match &connection.process {
        Some(process) => format!("{} {}", process.name, process.pid),
        None => "-".into(),
    }
}

/// The other end's address, with its site where that is known.
fn peer(connection: &LiveConnection) -> String {
    let address = connection.answer.remote;
    match &connection.peer_site {
        Some(place) => format!("{address} {}", place.site),
        None => address.to_string(),
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
