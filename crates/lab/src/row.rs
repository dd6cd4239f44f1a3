//! Makes a run's row from its outcome: figures, the laws' prediction, and whether to trust them.

use crate::carrier;
use crate::experiment::Outcome;
use crate::path_for::path_for;
use crate::prediction::{self, Ground};
use crate::program::Received;
use fullpipe_flow::connection::{Connection, Label};
use fullpipe_flow::diagnosis::Diagnosis;
use fullpipe_flow::finding::words;
use fullpipe_flow::limit::{Candidate, Verdict};
use fullpipe_flow::schema::Version;
use fullpipe_flow::schema::{Clock, RunRow};
use fullpipe_link::{Lateness, LinkReport};
use fullpipe_model::law::ETHERNET_HEADER;
use fullpipe_model::limit::Limit;
use fullpipe_model::scenario::{Client, LinkEngine, Scenario};
use fullpipe_model::tune::Prediction;
use fullpipe_model::units::{Bytes, Duration, Rate, Window};

/// Which run it was, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran<'a> {
    pub(crate) repetition: u32,
    pub(crate) clock: Clock,
    /// Release of the kernel.
    pub(crate) kernel: &'a str,
}

/// The row of a successful run.
pub(crate) fn of_outcome(scenario: &Scenario, ran: Ran<'_>, outcome: &Outcome) -> RunRow {
    let (way, seen) = (outcome.direction, &outcome.at_client);
    let sent = outcome.at_server.connection.facts(way);
    let (data, acks) = (seen.facts(way), seen.facts(way.reversed()));
    let window_max = acks.window.max;
    let law = law(scenario, ran, outcome.link_engine, window_max);
    let verdict = outcome.by_capture().map(|diagnosis| &diagnosis.verdict);
    let limited_by = verdict.map(|verdict| verdict.limited_by());
    let headline = outcome.by_capture().map(Diagnosis::headline);
    let by_sockets = outcome.by_sockets.as_ref().map(Diagnosis::limited_by);
    let congestion_control =
        outcome.server_samples.iter().find_map(|sample| sample.congestion_control.clone());
    let troubles = troubles(outcome, ran.clock);
    let quiet = troubles.is_empty();
    let doubts = [
        other_control(scenario, congestion_control.as_deref()),
        disagreement(limited_by, by_sockets),
    ];
    let row = RunRow {
        schema: Version::default(),
        link_engine: outcome.link_engine,
        congestion_control,
        handshake_rtt: seen.handshake_rtt,
        rtt_min: sent.rtt.min,
        rtt_p50: sent.rtt.p50,
        rtt_p99: sent.rtt.p99,
        window_max,
        in_flight_max: sent.in_flight_max,
        in_flight_mean: verdict.and_then(|verdict| verdict.in_flight_mean()),
        receive_queue_mean: outcome.receive_queue.map(|queue| queue.mean.queue),
        receive_queue_max: outcome.receive_queue.map(|queue| queue.most.queue),
        receive_memory_mean: outcome.receive_queue.map(|queue| queue.mean.memory),
        receive_memory_max: outcome.receive_queue.map(|queue| queue.most.memory),
        steady_goodput: verdict.and_then(Verdict::steady_goodput),
        frames: frames(&outcome.at_client),
        law: law.map(|law| law.goodput),
        law_term: law.map(|law| law.limited_by),
        packets: seen.client_to_server.packets + seen.server_to_client.packets,
        // At the sender's own edge nothing can arrive out of order: a segment that goes backwards
        // there was retransmitted, even if the label's rule, which must suit any capture point,
        // calls it out of order because it came within the round trip.
        retransmission: sent.labels.of(Label::Retransmission) + sent.labels.of(Label::OutOfOrder),
        duplicate_ack: acks.labels.of(Label::DuplicateAck),
        out_of_order: data.labels.of(Label::OutOfOrder),
        window_full: sent.labels.of(Label::WindowFull),
        zero_window: acks.labels.of(Label::ZeroWindow),
        limited_by: limited_by.map_or(Limit::Unknown, |candidate| candidate.limit),
        limit_share: limited_by.map_or(0.0, |candidate| candidate.share),
        limit_confidence: headline.and_then(|headline| headline.sure()),
        headline: headline.map(|headline| headline.to_string()),
        limits: verdict.map(|verdict| verdict.shares.clone()).unwrap_or_default(),
        finding: outcome.by_capture().and_then(finding),
        limited_by_sockets: by_sockets.map(|candidate| candidate.limit),
        limit_share_sockets: by_sockets.map(|candidate| candidate.share),
        quiet,
        notes: outcome
            .notes
            .iter()
            .cloned()
            .chain(troubles)
            .chain(doubts.into_iter().flatten())
            .collect(),
        ..as_asked(scenario, ran.repetition, ran.clock, ran.kernel)
    };
    beside_reference(as_received(as_carried(row, &outcome.link), &outcome.received), scenario)
}

/// Adds what the link did to the packets, and how late it was.
fn as_carried(row: RunRow, link: &LinkReport) -> RunRow {
    let lateness = link.lateness();
    let (to_client, to_server) = (&link.to_client.link, &link.to_server.link);
    RunRow {
        queue_dropped: to_client.queue_dropped_packets + to_server.queue_dropped_packets,
        lost: to_client.lost_packets + to_server.lost_packets,
        link_late_p50: lateness.quantile(0.5),
        link_late_p99: lateness.quantile(0.99),
        link_late_max: lateness.max(),
        ..row
    }
}

/// Adds what the client received, and when.
fn as_received(row: RunRow, received: &Received) -> RunRow {
    let (body, duration) = (Bytes::new(received.body), received.duration);
    let timing = received.timing;
    RunRow {
        body,
        duration,
        complete: received.complete,
        goodput: body.per(duration).unwrap_or_default(),
        connect: timing.map(|timing| timing.connect),
        starttransfer: timing.map(|timing| timing.starttransfer),
        total: timing.map(|timing| timing.total),
        ..row
    }
}

/// The row of a failed run. The caller adds the reason.
pub(crate) fn of_failure(
    scenario: &Scenario,
    repetition: u32,
    engine: Clock,
    kernel: &str,
) -> RunRow {
    as_asked(scenario, repetition, engine, kernel)
}

/// What is known about a run before it begins.
fn as_asked(scenario: &Scenario, repetition: u32, engine: Clock, kernel: &str) -> RunRow {
    let path = path_for(scenario);
    RunRow {
        name: scenario.name.clone(),
        repetition,
        engine,
        link_engine: carrier::engine(scenario, engine == Clock::Virtual),
        kernel: kernel.into(),
        rtt_nominal: path.rtt(),
        rate_nominal: path.to_client.mean_rate(),
        ..RunRow::default()
    }
}

/// Adds the published figures.
fn beside_reference(row: RunRow, scenario: &Scenario) -> RunRow {
    let reference = &scenario.reference;
    // A reference covers a whole transfer, in which the start hardly counts.
    let goodput =
        if row.complete { row.goodput } else { row.steady_goodput.unwrap_or(row.goodput) };
    let ratio =
        |ours: Rate, theirs: Option<Rate>| theirs.map(|theirs| ours.as_f64() / theirs.as_f64());
    let of_frames = row.frames.and_then(|ours| ratio(ours, reference.frames));
    RunRow {
        reference_goodput: reference.goodput,
        reference_frames: reference.frames,
        reference_ratio: of_frames.or_else(|| ratio(goodput, reference.goodput)),
        reference_note: reference.note.clone(),
        reference_cause: reference.cause.clone(),
        ..row
    }
}

/// A note if the sender used another congestion control than requested.
fn other_control(scenario: &Scenario, used: Option<&str>) -> Option<String> {
    let (asked, used) = (scenario.hosts.server.congestion_control.as_deref()?, used?);
    (asked != used).then(|| format!("congestion control was {used}, not {asked} as asked"))
}

/// A note if capture and sockets name different limits.
fn disagreement(by_capture: Option<Candidate>, by_sockets: Option<Candidate>) -> Option<String> {
    let (capture, sockets) = (by_capture?, by_sockets?);
    (capture.limit.name() != sockets.limit.name()).then(|| {
        format!(
            "capture and sockets disagree: {} {:.0} % against {} {:.0} %",
            capture.limit,
            capture.share * 100.0,
            sockets.limit,
            sockets.share * 100.0
        )
    })
}

/// What a sniffer on Ethernet would have counted, by the time from the first frame to the last. The
/// lab's captures contain IP packets, so each lacks its header.
fn frames(seen: &Connection) -> Option<Rate> {
    let ways = [&seen.client_to_server, &seen.server_to_client];
    let bytes = ways.map(|way| way.wire.get() + way.packets * ETHERNET_HEADER.get()).iter().sum();
    Bytes::new(bytes).per(seen.duration)
}

/// The first finding as text.
fn finding(diagnosis: &Diagnosis) -> Option<String> {
    let finding = diagnosis.findings().into_iter().next()?;
    Some(format!("{}; {}", words::claim(&finding), words::remedy(finding.remedy)))
}

/// What the laws predict; `None` where nothing limits, where several connections share the
/// transfer, where the window agent decides the window, or where the kernel's release says nothing.
fn law(
    scenario: &Scenario,
    ran: Ran<'_>,
    link_engine: LinkEngine,
    window_seen: Option<Window>,
) -> Option<Prediction> {
    let kernel = ran.kernel.parse().ok()?;
    let transfer = &scenario.transfer;
    let has_agent = scenario.hosts.client.window_agent || scenario.hosts.server.window_agent;
    if transfer.client == Client::Relay || has_agent || !transfer.readers.is_empty() {
        return None;
    }
    prediction::of(scenario, Ground { kernel, clock: ran.clock, link_engine }, window_seen)
}

/// The share of a transfer that its writer or its reader may wait for a CPU, where the transfer
/// waited for it.
const CPU_WAIT_MAX: f64 = 0.05;

/// Says so if the transfer waited for an application that waited for a CPU. One that keeps up all
/// the same did no harm, however often it had to wait for a moment.
fn crowded_out(who: &str, waited: Duration, whole: Duration, share: f64) -> Option<String> {
    let most = whole.as_secs_f64() * CPU_WAIT_MAX;
    (waited.as_secs_f64() > most && share > CPU_WAIT_MAX).then(|| {
        format!(
            "not quiet: the {who} waited {waited} of {whole} for a CPU, and the transfer waited for \
             the {who} in {:.0} % of its time (other work on this machine, or too much for it)",
            share * 100.0
        )
    })
}

/// The time that is given to a limit, by the capture or by the sockets, whichever says more.
fn share_of(limit: Limit, outcome: &Outcome) -> f64 {
    let diagnoses = outcome.by_capture().into_iter().chain(&outcome.by_sockets);
    let shares = diagnoses.flat_map(|diagnosis| &diagnosis.verdict.shares);
    shares.filter(|one| one.limit == limit).map(|one| one.share).fold(0.0, f64::max)
}

/// Why the figures do not depend on the path alone; empty on a quiet machine.
fn troubles(outcome: &Outcome, clock: Clock) -> Vec<String> {
    let link = &outcome.link;
    let mut troubles = Vec::new();
    let late = link.lateness().quantile(0.99);
    if late > Lateness::QUIET_MAX {
        troubles.push(format!(
            "not quiet: 1 % of the packets left the link more than {late} late (other work on this machine, or too much for it)"
        ));
    }
    if clock == Clock::Real {
        let limits = [Limit::SenderApplication, Limit::ReceiverApplication];
        let whose = ["writer", "reader"].into_iter().zip(limits).zip(outcome.waited_for_cpu);
        troubles.extend(whose.filter_map(|((who, limit), waited)| {
            crowded_out(who, waited?, outcome.received.duration, share_of(limit, outcome))
        }));
    }
    let full = link.to_client.driver.ring_full + link.to_server.driver.ring_full;
    if full > 0 {
        troubles.push(format!(
            "packets waited {full} times outside of the link's own queue: the emulator was too slow"
        ));
    }
    if link.port_drops > 0 {
        troubles.push(format!(
            "{} packets were lost between hosts and emulator, not by the link",
            link.port_drops
        ));
    }
    let crowded = link.to_client.driver.ring_dropped + link.to_server.driver.ring_dropped;
    if crowded > 0 {
        troubles
            .push(format!("{crowded} packets were dropped for want of memory, not by the link"));
    }
    let refused = link.to_client.driver.write_errors + link.to_server.driver.write_errors;
    if refused > 0 {
        troubles.push(format!("{refused} packets were refused by a host's device"));
    }
    if link.capture_dropped > 0 {
        troubles.push(format!(
            "the captures miss {} packets: the disk was too slow",
            link.capture_dropped
        ));
    }
    if link.log_dropped > 0 {
        troubles.push(format!(
            "the link's log misses {} packets: the disk was too slow",
            link.log_dropped
        ));
    }
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both have to be: an application that waits for a CPU, and a transfer that waits for it.
    #[test]
    fn a_wait_that_nobody_waited_for_is_no_trouble() {
        let (short, long, whole) =
            (Duration::from_millis(90), Duration::from_millis(600), Duration::from_secs(2));
        assert_eq!(crowded_out("reader", long, whole, 0.0), None);
        assert_eq!(crowded_out("reader", short, whole, 1.0), None);
        let said = crowded_out("reader", long, whole, 0.25).unwrap();
        assert!(
            said.contains("the reader waited 600 ms of 2 s") && said.contains("25 %"),
            "{said}"
        );
    }
}
