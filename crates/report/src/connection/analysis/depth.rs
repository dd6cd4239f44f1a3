//! All details of one connection: both directions side by side, what limited the transfer and when,
//! and what would change it.

use super::table::arrow;
use crate::{
    Column, Layout, Table, Tone,
    connection::{account, http2, spoken},
    labels, plan,
    table::{figure, paragraph},
};
use fullpipe_flow::Language;
use fullpipe_flow::connection::{Connection, Direction, DirectionFacts, Label, Warning};
use fullpipe_flow::diagnosis::{DiagnosedConnection, OfDirection};
use fullpipe_flow::finding::Finding;
use fullpipe_flow::limit::{Interval, Limit, Verdict};
use fullpipe_model::units::{Bytes, Duration, Instant};

/// Shown for a missing figure.
const NONE: &str = "-";
/// The most spans in a table; nobody would read more.
const MOST_SPANS: usize = 24;

/// All details of one connection.
pub fn depth(explained: &DiagnosedConnection, layout: Layout) -> String {
    let connection = &explained.connection;
    let title = format!(
        "#{} {} {} {}",
        connection.id,
        connection.client,
        arrow(connection, layout),
        connection.server
    );
    let mut text = format!("{}\n", layout.paint(Tone::Heading, &title));
    if let Some(spoken) = spoken(connection, layout.language) {
        text += &format!("{}\n", paragraph::fill("", &spoken, layout.width));
    }
    for line in http2(connection, layout.language) {
        text += &format!("{}\n", paragraph::fill("", &line, layout.width));
    }
    text += &format!("{}\n\n", length(connection, layout.language));
    text.insert_str(text.len() - 1, &capture(connection, layout));
    let account = explained.account();
    let answer =
        account.as_ref().and_then(|account| account::answer(explained, account, layout.language));
    if let Some(account) = &account {
        text += &account::text(connection, account, answer.as_ref(), layout);
    }
    text += &facts(connection, layout);
    let explanations = explained.explanations();
    // What the answer advises is not repeated.
    let is_said = |direction, remedy, changes: &[_]| {
        answer.as_ref().is_some_and(|answer| answer.says(direction, remedy, changes))
    };
    for OfDirection { direction, what: finding } in explained.findings().iter() {
        text += &finding_text(*direction, finding, layout);
        if !is_said(*direction, finding.remedy, &finding.changes) {
            let is_below = explanations.iter().any(|one| one.what.remedy == finding.remedy);
            text += &advice(finding, !is_below, layout);
        }
    }
    for OfDirection { direction, what } in explanations {
        let way = of_way(layout.language, direction);
        text.push('\n');
        text += &paragraph::fill(&way, &layout.language.sub_cause(&what.sub_cause), layout.width);
        text.push('\n');
        if !is_said(direction, what.remedy, &[]) {
            text += &paragraph::fill(
                layout.labels().to_change,
                layout.language.remedy(what.remedy),
                layout.width,
            );
            text.push('\n');
        }
    }
    text + &course(explained, layout)
}

/// A finding, with what else would fit.
fn finding_text(direction: Direction, finding: &Finding, layout: Layout) -> String {
    let (labels, language) = (layout.labels(), layout.language);
    let way = of_way(language, direction);
    let mut text = String::from("\n");
    let mut line = |start: &str, what: &str| {
        text += &paragraph::fill(start, what, layout.width);
        text.push('\n');
    };
    line(&way, &language.claim(finding));
    if let Some(doubt) = &finding.doubt {
        line(labels.how_sure, &language.doubt(doubt));
    }
    if !finding.reasons.is_empty() {
        let reasons = finding.reasons.iter().map(|reason| reason.words(language));
        line(labels.what_decided, &reasons.collect::<Vec<_>>().join(labels.next));
    }
    if !finding.rivals.is_empty() {
        let rivals = finding.rivals.iter().map(|rival| language.rival(rival));
        line(labels.would_fit, &rivals.collect::<Vec<_>>().join(labels.joins));
    }
    text
}

/// What a finding advises: its settings, and its remedy where that is told here.
fn advice(finding: &Finding, tells_remedy: bool, layout: Layout) -> String {
    let mut text = String::new();
    if tells_remedy {
        text += &paragraph::fill(
            layout.labels().to_change,
            layout.language.remedy(finding.remedy),
            layout.width,
        );
        text.push('\n');
    }
    for change in &finding.changes {
        text += &plan::advice_lines(change, layout);
    }
    text
}

/// What limited most of the data, and when. Where nothing is to be said of it, this would only
/// repeat what was waited for.
fn course(explained: &DiagnosedConnection, layout: Layout) -> String {
    let connection = &explained.connection;
    let is_told = explained.findings().iter().any(|one| one.direction == connection.bulk());
    let Some(diagnosis) = explained.bulk().filter(|_| is_told) else { return String::new() };
    let spans = spans(&diagnosis.verdict, connection.start, layout);
    let way = labels::direction(layout.language, connection.bulk());
    match layout.language {
        Language::English => format!("\nWhat limited the data from {way}, and when:\n{spans}"),
        Language::Chinese => format!("\n{way}的数据在各时段受限于：\n{spans}"),
    }
}

/// Where and how it was captured, and how it ended.
fn capture(connection: &Connection, layout: Layout) -> String {
    let parts: Vec<&str> = connection.parts_seen().collect();
    let parts = if parts.is_empty() { layout.term("nothing").into() } else { parts.join(", ") };
    let language = layout.language;
    let place = labels::place(language, connection.vantage.place);
    let vantage = labels::vantage(language, connection.vantage);
    let close = labels::close(language, connection.close);
    let mut text = match (language, is_sampled(connection)) {
        (Language::English, true) => format!("at the socket {place}"),
        (Language::English, false) => format!("{vantage}; {close}; captured: {parts}"),
        (Language::Chinese, true) => format!("{place}的套接字采样"),
        (Language::Chinese, false) => format!("{vantage}；{close}；抓到：{parts}"),
    };
    text = paragraph::fill("", &text, layout.width) + "\n";
    for warning in &connection.warnings {
        text += &paragraph::fill(
            layout.labels().but,
            labels::warning(language, *warning),
            layout.width,
        );
        text.push('\n');
    }
    text
}

/// Whether samples of its sockets are all that is known of it.
fn is_sampled(connection: &Connection) -> bool {
    connection.warnings.contains(&Warning::NoPackets)
}

/// Which direction a sentence is about, before it.
fn of_way(language: Language, direction: Direction) -> String {
    let way = labels::direction(language, direction);
    match language {
        Language::English => format!("{way}: "),
        Language::Chinese => format!("{way}："),
    }
}

/// How long it was, and its round trip.
fn length(connection: &Connection, language: Language) -> String {
    let time = connection.duration;
    match (language, connection.handshake_rtt) {
        (Language::English, Some(rtt)) => format!("{time} long, round trip of the handshake {rtt}"),
        (Language::English, None) if is_sampled(connection) => format!("sampled for {time}"),
        (Language::English, None) => format!("{time} long"),
        (Language::Chinese, Some(rtt)) => format!("时长 {time}，握手的往返时间 {rtt}"),
        (Language::Chinese, None) if is_sampled(connection) => format!("采样 {time}"),
        (Language::Chinese, None) => format!("时长 {time}"),
    }
}

/// A line of the table: its name, and how to show it for a direction.
type FactLine = (&'static str, fn(&DirectionFacts) -> String);

/// Lines in every table.
const ALWAYS: [FactLine; 14] = [
    ("packets", |facts| facts.packets.to_string()),
    ("bytes on the wire", |facts| facts.wire.to_string()),
    ("payload", |facts| facts.payload.max(facts.unique_payload).to_string()),
    ("payload sent again", |facts| facts.payload.saturating_sub(facts.unique_payload).to_string()),
    ("goodput", |facts| or_none(facts.goodput)),
    ("  peak in an interval", |facts| or_none(facts.goodput_peak)),
    ("RTT of its data: minimum", |facts| or_none(facts.rtt.min)),
    ("  median", |facts| or_none(facts.rtt.p50)),
    ("  95th percentile", |facts| or_none(facts.rtt.p95)),
    ("  99th percentile", |facts| or_none(facts.rtt.p99)),
    ("in flight, maximum", |facts| facts.in_flight_max.to_string()),
    ("advertised window: minimum", |facts| or_none(facts.window.min)),
    ("  median", |facts| or_none(facts.window.p50)),
    ("  maximum", |facts| or_none(facts.window.max)),
];

/// Lines that are left out if they are zero in both directions.
const WHERE_ANY: [FactLine; 15] = [
    ("lost segments", |facts| facts.loss.lost_segments.to_string()),
    ("spurious retransmissions", |facts| facts.loss.spurious_retransmissions.to_string()),
    ("reordered segments", |facts| facts.loss.reordered_segments.to_string()),
    ("duplicated by the network", |facts| facts.loss.duplicate_packets.to_string()),
    ("ECN marks (CE)", |facts| facts.loss.congestion_experienced.to_string()),
    ("ECN echoes (ECE)", |facts| facts.manner.ecn_echo.to_string()),
    ("window reductions (CWR)", |facts| facts.manner.congestion_window_reduced.to_string()),
    ("largest burst, packets", |facts| facts.manner.burst_max_packets.to_string()),
    ("longest silence", |facts| facts.manner.silence_max.to_string()),
    ("resets", |facts| facts.manner.resets.to_string()),
    ("ACKs of new data", |facts| facts.manner.advancing_acks.to_string()),
    ("  of more than two segments", |facts| facts.manner.stretch_acks.to_string()),
    ("  delayed", |facts| facts.manner.delayed_acks.to_string()),
    ("  mean delay", |facts| facts.manner.delayed_ack_mean.to_string()),
    ("  maximum delay", |facts| facts.manner.delayed_ack_max.to_string()),
];

fn facts(connection: &Connection, layout: Layout) -> String {
    let mut table = Table::new([
        Column::text(""),
        Column::count("client to server"),
        Column::count("server to client"),
    ]);
    let directions = [&connection.client_to_server, &connection.server_to_client];
    for (name, show) in ALWAYS {
        let [client, server] = directions.map(show);
        table.row([layout.term(name).into(), client, server]);
    }
    for label in Label::ALL {
        let counts = directions.map(|facts| facts.labels.of(label));
        if counts != [0, 0] {
            let [client, server] = counts.map(|count| count.to_string());
            let name = label.name().replace('_', " ");
            table.row([layout.term(&name).into(), client, server]);
        }
    }
    for (name, show) in WHERE_ANY {
        let cells = directions.map(show);
        if !cells.iter().all(|cell| is_nothing(cell)) {
            let [client, server] = cells;
            table.row([layout.term(name).into(), client, server]);
        }
    }
    let [client, server] = directions.map(options);
    table.row([layout.term("options of its SYN").into(), client, server]);
    table.render(layout)
}

fn or_none(figure: Option<impl ToString>) -> String {
    figure.map_or_else(|| NONE.into(), |figure| figure.to_string())
}

fn is_nothing(cell: &str) -> bool {
    cell == "0" || cell == Duration::ZERO.to_string()
}

/// The options of a SYN.
fn options(facts: &DirectionFacts) -> String {
    let manner = &facts.manner;
    let Some(mss) = manner.mss else { return NONE.into() };
    let scale = facts.window.scale.map_or_else(|| "scale".into(), |shift| format!("scale {shift}"));
    let offered = [
        (manner.window_scale_offered, scale.as_str()),
        (manner.sack_permitted, "SACK"),
        (manner.timestamps, "timestamps"),
        (manner.fast_open, "TFO"),
        (manner.multipath, "MPTCP"),
    ];
    let names = offered.iter().filter(|(offers, _)| *offers).map(|(_, name)| *name);
    names.fold(format!("MSS {mss}"), |text, name| format!("{text} {name}"))
}

/// Adjacent intervals with the same limit.
struct LimitSpan {
    limit: Limit,
    /// Other limits that would explain it: time by limit.
    rivals: Vec<(Limit, Duration)>,
    from: Instant,
    length: Duration,
    carried: Bytes,
    in_flight: Bytes,
}

impl LimitSpan {
    fn note_rivals(&mut self, interval: &Interval) {
        for rival in interval.candidates.iter().skip(1) {
            match self.rivals.iter_mut().find(|(limit, _)| *limit == rival.limit) {
                Some((_, time)) => *time = time.saturating_add(interval.length),
                None => self.rivals.push((rival.limit, interval.length)),
            }
        }
    }

    /// The limit, and those that would also explain more than half of the span, in the order of the
    /// rules.
    fn limited_by(&self, language: Language) -> String {
        let rivals = self.rivals.iter().filter(|(_, time)| time.saturating_mul(2) > self.length);
        let names: Vec<&str> = rivals.map(|(limit, _)| language.limit(*limit)).collect();
        let limit = language.limit(self.limit);
        match language {
            _ if names.is_empty() => limit.into(),
            Language::English => format!("{limit} (or {})", names.join(", ")),
            Language::Chinese => format!("{limit}（或{}）", names.join("、")),
        }
    }
}

fn spans(verdict: &Verdict, start: Instant, layout: Layout) -> String {
    let mut spans = Vec::<LimitSpan>::new();
    for interval in verdict.shown() {
        let carried = interval.evidence.goodput.over(interval.length);
        match spans.last_mut().filter(|span| span.limit == interval.limit()) {
            Some(span) => {
                span.note_rivals(interval);
                span.length = span.length.saturating_add(interval.length);
                span.carried = span.carried.saturating_add(carried);
                span.in_flight = span.in_flight.max(interval.evidence.in_flight);
            }
            None => {
                let mut span = LimitSpan {
                    limit: interval.limit(),
                    rivals: Vec::new(),
                    from: interval.start,
                    length: interval.length,
                    carried,
                    in_flight: interval.evidence.in_flight,
                };
                span.note_rivals(interval);
                spans.push(span);
            }
        }
    }
    let mut table = Table::new([
        Column::figure("from", "s"),
        Column::figure("for", "s"),
        Column::figure("goodput", "Mbit/s"),
        Column::figure("in flight", "kB"),
        Column::text("limited by"),
    ]);
    for span in spans.iter().take(MOST_SPANS) {
        table.row([
            seconds(span.from.since(start)),
            seconds(span.length),
            span.carried.per(span.length).map_or_else(|| NONE.into(), figure::mbit_per_s),
            format!("{:.1}", span.in_flight.as_f64() / 1e3),
            span.limited_by(layout.language),
        ]);
    }
    let mut text = table.render(layout);
    if spans.len() > MOST_SPANS {
        let more = spans.len() - MOST_SPANS;
        text += &match layout.language {
            Language::English => format!("and {more} more spans; --json has them all\n"),
            Language::Chinese => format!("另有 {more} 段；--json 给出全部\n"),
        };
    }
    text
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}
