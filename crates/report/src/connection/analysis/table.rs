//! Connections in a table, worst first.

use super::{Report, remarks};
use crate::cells::sure;
use crate::{
    Column, Layout, Table,
    connection::account,
    table::{escape, figure, paragraph},
};
use fullpipe_flow::connection::{Connection, Direction, Label, Place, Warning};
use fullpipe_flow::diagnosis::{DiagnosedConnection, Diagnosis, Explanation};
use fullpipe_flow::finding::words;
use fullpipe_model::units::Duration;

/// Shown for a missing figure.
const NONE: &str = "-";

/// The report's first `top` connections in order, the finding for the first of them, and what was
/// not analysed.
pub fn table(report: &Report, top: usize, layout: Layout) -> String {
    let mut table = Table::new([
        Column::count("#"),
        Column::text("client"),
        Column::text(""),
        Column::text("server"),
        Column::figure("payload", "MB").leaves(2),
        Column::figure("time", "s").leaves(1),
        Column::figure("goodput", "Mbit/s").leaves(5),
        Column::figure("RTT", "ms").leaves(4),
        Column::count("retrans").leaves(3),
        Column::figure("lost", "s"),
        Column::text("limited by"),
        Column::figure("sure", "%"),
    ]);
    let optional = |time: Option<Duration>| time.map_or_else(|| NONE.into(), figure::ms);
    for explained in report.connections.iter().take(top) {
        let connection = &explained.connection;
        let facts = connection.facts(connection.bulk());
        // What took the time outside the transfer is counted, not judged.
        let elsewhere = explained.account().and_then(|account| account::in_short(&account));
        let judged = explained.bulk().filter(|_| elsewhere.is_none());
        table.row([
            connection.id.to_string(),
            connection.client.to_string(),
            arrow(connection, layout).into(),
            connection.server.to_string(),
            figure::megabytes(facts.payload.max(facts.unique_payload)),
            figure::s(connection.duration),
            facts.goodput.map_or_else(|| NONE.into(), figure::mbit_per_s),
            optional(connection.handshake_rtt.or(facts.rtt.min)),
            facts.labels.of(Label::Retransmission).to_string(),
            figure::s(explained.lost()),
            elsewhere.clone().unwrap_or_else(|| limited_by(explained)),
            sure(judged.and_then(|diagnosis| diagnosis.headline().sure())),
        ]);
    }
    let mut text = format!("{}: {}\n", escape::in_line(&report.file), counted(report, top));
    for remark in remarks(&report.counts) {
        text += &format!("{}\n", paragraph::fill("but ", &remark, layout.width));
    }
    if !table.is_empty() {
        text += &format!("\n{}", table.render(layout));
        text += &worst(report, layout);
        text += &doubts(report, layout);
    }
    text
}

/// The findings of the connection that lost most time: of its first limit, as its row names it, and
/// of the first that lost time where that is another.
fn worst(report: &Report, layout: Layout) -> String {
    let Some(first) = report.connections.first().filter(|first| first.lost() > Duration::ZERO)
    else {
        return String::new();
    };
    let number = format!("#{}: ", first.connection.id);
    let mut text = String::new();
    let account = first.account();
    let answer = account.as_ref().and_then(|account| account::answer(first, account));
    let answer = answer.filter(|answer| answer.held.is_none());
    if let Some((answer, remedy)) = answer.and_then(|one| one.remedy.map(|remedy| (one, remedy))) {
        let claim = format!("{}; to change it, {remedy}", answer.claim);
        return format!("\n{}\n", paragraph::fill(&number, &claim, layout.width));
    }
    let worst = first.bulk().and_then(Diagnosis::worst_finding);
    let of_row = first.bulk().and_then(|diagnosis| diagnosis.findings().into_iter().next());
    let of_row =
        of_row.filter(|finding| worst.as_ref().is_none_or(|worst| worst.limit != finding.limit));
    for finding in of_row.iter().chain(&worst) {
        let mut claim =
            format!("{}; to change it, {}", words::claim(finding), words::remedy(finding.remedy));
        if let Some(doubt) = &finding.doubt {
            claim += &format!(" ({})", words::doubt(doubt));
        }
        text += &format!("\n{}\n", paragraph::fill(&number, &claim, layout.width));
    }
    let bulk = first.connection.bulk();
    for explanation in
        first.explanations().iter().filter(|one| one.direction == bulk || first.bulk().is_none())
    {
        let Explanation { sub_cause, remedy } = &explanation.what;
        let (claim, remedy) = (words::sub_cause(sub_cause), words::remedy(*remedy));
        let claim = format!("{claim}; to change it, {remedy}");
        text += &format!("\n{}\n", paragraph::fill(&number, &claim, layout.width));
    }
    text
}

/// Where the connections were captured, and what that and the quality of the capture put into
/// doubt.
fn doubts(report: &Report, layout: Layout) -> String {
    let places = [Place::Client, Place::Server, Place::Between, Place::Unknown].map(|place| {
        let count = report.at(place);
        (count > 0).then(|| format!("{} {count}", place.words()))
    });
    let seen = if report.counts.samples > 0 { "sampled" } else { "captured" };
    let places = places.into_iter().flatten().collect::<Vec<_>>();
    let places = paragraph::fill(&format!("{seen} "), &places.join(", "), layout.width);
    let mut text = format!("\n{places}\n");
    for warning in Warning::ALL {
        let count = report.with(warning);
        if count > 0 {
            text += &format!(
                "{}\n",
                paragraph::fill(&format!("in {count}: "), warning.words(), layout.width)
            );
        }
    }
    if report.counts.forced_out > 0 {
        let many = "connections were ended early because too many were open at a time; what came later of them is told as \
                    another connection";
        text += &format!(
            "{}\n",
            paragraph::fill(&format!("{} ", report.counts.forced_out), many, layout.width)
        );
    }
    text
}

/// The direction of the data that the row describes.
pub(super) fn arrow(connection: &Connection, layout: Layout) -> &'static str {
    match connection.bulk() {
        Direction::ClientToServer => layout.arrow(),
        Direction::ServerToClient => layout.arrow_back(),
    }
}

fn limited_by(explained: &DiagnosedConnection) -> String {
    let headline = explained.bulk().map(Diagnosis::headline).filter(|most| most.share > 0.0);
    match headline {
        Some(headline) => headline.with_share(),
        None if explained.is_unanswered() => "no answer".into(),
        None => NONE.into(),
    }
}

/// How many connections there are, and how many are not in the table.
fn counted(report: &Report, top: usize) -> String {
    let (all, shown) = (report.total(), report.connections.len().min(top));
    let mut text =
        format!("{}, {all} TCP connection{}", report.counts.of(), if all == 1 { "" } else { "s" });
    if all > shown as u64 {
        text += &format!(", the {shown} that lost most shown");
    }
    let rest = [
        (report.counts.not_tcp, "not TCP"),
        (report.counts.fragments, "fragments"),
        (report.counts.cut, "cut inside the TCP header"),
        (report.counts.filtered, "filtered"),
        (report.counts.untracked, "of connections beyond the limit"),
    ];
    let rest: Vec<_> =
        rest.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !rest.is_empty() {
        text += &format!(" ({} packets)", rest.join(", "));
    }
    text
}
