//! Connections in a table, worst first.

use super::{Report, remarks};
use crate::cells::{NONE, optional, sure};
use crate::{
    Column, Layout, Table,
    connection::account,
    labels,
    table::{escape, figure, paragraph},
};
use fullpipe_flow::Language;
use fullpipe_flow::connection::{Connection, Direction, Label, Place, Warning};
use fullpipe_flow::diagnosis::{DiagnosedConnection, Diagnosis, Explanation};
use fullpipe_model::units::Duration;

/// What there was of evidence, and what is to be known of the capture as a whole.
pub fn head(report: &Report, layout: Layout) -> String {
    titled(report, &labels::evidence(&report.counts, layout.language), layout)
}

/// The file's name before `what`, and remarks on the capture below.
fn titled(report: &Report, what: &str, layout: Layout) -> String {
    let mut text = format!("{}: {what}\n", escape::in_line(&report.file));
    for remark in remarks(&report.counts, layout.language) {
        text += &paragraph::fill(layout.labels().but, &remark, layout.width);
        text.push('\n');
    }
    text
}

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
    for explained in report.connections.iter().take(top) {
        let connection = &explained.connection;
        let facts = connection.facts(connection.bulk());
        // What took the time outside the transfer is counted, not judged.
        let elsewhere =
            explained.account().and_then(|account| account::in_short(&account, layout.language));
        let judged = explained.bulk().filter(|_| elsewhere.is_none());
        table.row([
            connection.id.to_string(),
            connection.client.to_string(),
            arrow(connection, layout).into(),
            connection.server.to_string(),
            figure::megabytes(facts.payload.max(facts.unique_payload)),
            figure::s(connection.duration),
            optional(facts.goodput, figure::mbit_per_s),
            optional(connection.handshake_rtt.or(facts.rtt.min), figure::ms),
            facts.labels.of(Label::Retransmission).to_string(),
            figure::s(explained.lost()),
            elsewhere.clone().unwrap_or_else(|| limited_by(explained, layout)),
            sure(judged.and_then(|diagnosis| diagnosis.headline().sure())),
        ]);
    }
    let mut text = titled(report, &counted(report, top, layout), layout);
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
    let (language, within) = (layout.language, layout.labels().to_change_within);
    let number = format!("#{}: ", first.connection.id);
    let mut text = String::new();
    let account = first.account();
    let answer =
        account.as_ref().and_then(|account| account::answer(first, account, layout.language));
    let answer = answer.filter(|answer| answer.held.is_none());
    if let Some((answer, remedy)) = answer.and_then(|one| one.remedy.map(|remedy| (one, remedy))) {
        let claim = format!("{}{within}{remedy}", answer.claim);
        return format!("\n{}\n", paragraph::fill(&number, &claim, layout.width));
    }
    let worst = first.bulk().and_then(Diagnosis::worst_finding);
    let of_row = first.bulk().and_then(|diagnosis| diagnosis.findings().into_iter().next());
    let of_row =
        of_row.filter(|finding| worst.as_ref().is_none_or(|worst| worst.limit != finding.limit));
    for finding in of_row.iter().chain(&worst) {
        let (said, remedy) = (language.claim(finding), language.remedy(finding.remedy));
        let mut claim = format!("{said}{within}{remedy}");
        if let Some(doubt) = &finding.doubt {
            claim += &match language {
                Language::English => format!(" ({})", language.doubt(doubt)),
                Language::Chinese => format!("（{}）", language.doubt(doubt)),
            };
        }
        text += &format!("\n{}\n", paragraph::fill(&number, &claim, layout.width));
    }
    let bulk = first.connection.bulk();
    for explanation in
        first.explanations().iter().filter(|one| one.direction == bulk || first.bulk().is_none())
    {
        let Explanation { sub_cause, remedy } = &explanation.what;
        let (claim, remedy) = (language.sub_cause(sub_cause), language.remedy(*remedy));
        let claim = format!("{claim}{within}{remedy}");
        text += &format!("\n{}\n", paragraph::fill(&number, &claim, layout.width));
    }
    text
}

/// Where the connections were captured, and what that and the quality of the capture put into
/// doubt.
fn doubts(report: &Report, layout: Layout) -> String {
    let (language, labels) = (layout.language, layout.labels());
    let places = [Place::Client, Place::Server, Place::Between, Place::Unknown].map(|place| {
        let count = report.at(place);
        (count > 0).then(|| format!("{} {count}", labels::place(language, place)))
    });
    let seen = match (language, report.counts.samples > 0) {
        (Language::English, true) => "sampled ",
        (Language::English, false) => "captured ",
        (Language::Chinese, true) => "采样位置：",
        (Language::Chinese, false) => "抓包位置：",
    };
    let places = places.into_iter().flatten().collect::<Vec<_>>().join(labels.joins);
    let mut text = format!("\n{}\n", paragraph::fill(seen, &places, layout.width));
    for warning in Warning::ALL {
        let count = report.with(warning);
        if count > 0 {
            let first = match language {
                Language::English => format!("in {count}: "),
                Language::Chinese => format!("{count} 个连接："),
            };
            let warning = labels::warning(language, warning);
            text += &format!("{}\n", paragraph::fill(&first, warning, layout.width));
        }
    }
    if report.counts.forced_out > 0 {
        let first = format!("{} ", report.counts.forced_out);
        text += &format!("{}\n", paragraph::fill(&first, labels.forced_out, layout.width));
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

fn limited_by(explained: &DiagnosedConnection, layout: Layout) -> String {
    let headline = explained.bulk().map(Diagnosis::headline).filter(|most| most.share > 0.0);
    match headline {
        Some(headline) => layout.language.headline_with_share(&headline),
        None if explained.is_unanswered() => layout.labels().no_answer.into(),
        None => NONE.into(),
    }
}

/// How many connections there are, and how many are not in the table.
fn counted(report: &Report, top: usize, layout: Layout) -> String {
    let language = layout.language;
    let (all, shown) = (report.total(), report.connections.len().min(top));
    let is_cut = all > shown as u64;
    let counts = &report.counts;
    let rest: Vec<String> = [
        (counts.not_tcp, "not TCP"),
        (counts.fragments, "fragments"),
        (counts.cut, "cut inside the TCP header"),
        (counts.filtered, "filtered"),
        (counts.untracked, "of connections beyond the limit"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {}", layout.term(what)))
    .collect();
    let mut text = labels::evidence(counts, language);
    text += &match language {
        Language::English => format!(", {all} TCP connection{}", if all == 1 { "" } else { "s" }),
        Language::Chinese => format!("，{all} 个 TCP 连接"),
    };
    if is_cut {
        text += &match language {
            Language::English => format!(", the {shown} that lost most shown"),
            Language::Chinese => format!("，显示损失时间最多的 {shown} 个"),
        };
    }
    if !rest.is_empty() {
        text += &match language {
            Language::English => format!(" ({} packets)", rest.join(", ")),
            Language::Chinese => format!("（数据包：{}）", rest.join("，")),
        };
    }
    text
}
