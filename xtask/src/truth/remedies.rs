//! Measures what the remedies of verdicts do. Each remedy that can be applied to a scenario is
//! applied in a second run, which differs in nothing else.
//!
//! The remedy of the first finding is applied. Sysctls are set to the finding's changes. Where the
//! finding has only words, the sysctl that they name is doubled. A buffer that the application
//! asked for is left to the kernel. An application is made twice as fast, a first window is
//! [`FIRST_WINDOW`] segments, and against loss the sender uses BBR. Nothing can be applied against
//! a full link, for an unknown limit, or where the remedy is in place already.

use super::judge::{Vantage, of_capture, records, samples};
use super::runs::{self, Other, PAYLOAD, TruthRun, right};
use super::{Truth, judge};
use anyhow::Context;
use fullpipe_flow::capture::recapture::CaptureChange;
use fullpipe_flow::finding::{Finding, KnownPath, Remedy, findings};
use fullpipe_flow::limit::{Cause, Limit, PathHint, Verdict, from_samples};
use fullpipe_model::limit::End;
use fullpipe_model::scenario;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The sysctl of window scaling. In some scenarios it is off at the receiver.
const SCALING: &str = "net.ipv4.tcp_window_scaling";
/// The first window, in segments, that stands for the advice "raise initcwnd".
const FIRST_WINDOW: i64 = 40;
/// Where nothing is known of the path, a number is meant for this multiple of what was carried.
const BEYOND: f64 = 2.0;
/// A number holds if at least this fraction of what it is meant for is carried.
const NEAR: f64 = 0.9;
/// A remedy harmed a transfer whose goodput fell below this fraction.
const HARMED: f64 = 0.95;
/// A remedy helped a transfer whose goodput rose above this multiple.
const HELPED: f64 = 1.05;

/// A remedy that a verdict gave.
struct GivenRemedy {
    run: usize,
    vantage: Vantage,
    limit: Limit,
    is_right: bool,
    /// Whether it says how large a sysctl should be.
    is_number: bool,
    /// The scenario with the remedy; `None` where it cannot be applied.
    text: Option<String>,
}

/// The effect of a remedy.
struct Effect {
    run: String,
    vantage: Vantage,
    limit: Limit,
    is_right: bool,
    /// Whether it says how large a sysctl should be.
    is_number: bool,
    /// Whether the number held: the transfer reached twice the goodput, or a full link.
    has_held: bool,
    /// Goodput after the remedy divided by goodput before; `None` where it could not be applied.
    ratio: Option<f64>,
}

/// Applies the remedies to `done` and prints what they did.
pub fn print(options: &Truth, done: &[TruthRun]) -> anyhow::Result<()> {
    let mut given = Vec::new();
    for (index, run) in done.iter().enumerate() {
        given.extend(of_run(index, run)?);
    }
    // Verdicts with the same remedy share a run.
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut others = Vec::new();
    for one in &given {
        let (Some(text), run) = (&one.text, &done[one.run]) else { continue };
        if !names.contains_key(text.as_str()) {
            let name = format!("{}.remedy-{}", run.name, one.vantage.name().replace(", ", "-"));
            names.insert(text, name.clone());
            others.push(Other { name, cause: run.cause, text: text.clone() });
        }
    }
    let after = runs::others(options, others)?;
    let after: BTreeMap<&str, &TruthRun> =
        after.iter().map(|run| (run.name.as_str(), run)).collect();
    let second = |one: &GivenRemedy| after.get(names.get(one.text.as_deref()?)?.as_str()).copied();
    let effects: Vec<Effect> =
        given.iter().filter_map(|one| effect(one, &done[one.run], second(one))).collect();
    println!("{}", table(&effects));
    Ok(())
}

/// The remedies from three vantages: the server, the sockets, and a capture at the client that
/// lacks its start. The last one is wrong most often.
fn of_run(index: usize, run: &TruthRun) -> anyhow::Result<Vec<GivenRemedy>> {
    let capture = |file: &str, changes: &[CaptureChange]| {
        let records = records(&run.folder.join(file))?;
        anyhow::Ok(of_capture(&records, changes))
    };
    let by_capture = capture("server.pcap", &[])?;
    let cut = capture("client.pcap", &[CaptureChange::Start { packets: judge::CUT }])?;
    // Without its start, nothing is left of a transfer in slow start.
    let cut = cut.filter(|_| run.cause != scenario::Cause::SlowStart);
    let [sender, receiver] = ["server", "client"].map(|host| samples(run, host));
    let by_sockets = from_samples(&sender?, &receiver?, judge::INTERVAL, PathHint::default());
    let text = runs::scenario_of(run)?;
    let verdicts = [
        (Vantage::Server, by_capture),
        (Vantage::Sockets, Some(by_sockets)),
        (Vantage::ClientCut, cut),
    ];
    let mut given = Vec::new();
    for (vantage, verdict) in verdicts {
        let Some(finding) = verdict.as_ref().and_then(first) else { continue };
        let table: Table =
            text.parse().with_context(|| format!("read the scenario {}", run.name))?;
        given.push(GivenRemedy {
            run: index,
            vantage,
            limit: finding.limit,
            is_right: finding.limit == right(run.cause),
            is_number: !finding.changes.is_empty(),
            text: applied(table, &finding).map(|table| table.to_string()),
        });
    }
    Ok(given)
}

fn first(verdict: &Verdict) -> Option<Finding> {
    findings(verdict, KnownPath::default()).into_iter().next()
}

/// The scenario with the advice of a finding; `None` if nothing can be applied.
fn applied(mut scenario: Table, finding: &Finding) -> Option<Table> {
    let before = scenario.clone();
    if matches!(finding.remedy, Remedy::ScaleWindow | Remedy::ScaleOrGrowReceiveBuffer) {
        without(&mut scenario, &["hosts", "client", "sysctl", SCALING]);
    }
    match finding.limit {
        Limit::ReceiveWindow => without(&mut scenario, &["transfer", "receive_buffer"]),
        Limit::SendBuffer => without(&mut scenario, &["transfer", "send_buffer"]),
        Limit::ReceiverApplication => twice(&mut scenario, "read_rate"),
        Limit::SenderApplication => twice(&mut scenario, "write_rate"),
        Limit::CongestionWindow(Cause::SlowStart) => {
            set(&mut scenario, &["hosts", "server", "initcwnd"], Value::Integer(FIRST_WINDOW));
        }
        Limit::CongestionWindow(Cause::Loss) => {
            set(&mut scenario, &["hosts", "server", "congestion_control"], "bbr".into());
        }
        Limit::Link | Limit::ApplicationWindow | Limit::Unknown => return None,
    }
    for change in &finding.changes {
        let host = if change.end == Some(End::Sender) { "server" } else { "client" };
        let knob = change.knob.to_string();
        let key = ["hosts", host, "sysctl", knob.as_str()];
        // The capture did not show what the host has. A sysctl that is larger already stays.
        if most(get(&scenario, &key)) < most(Some(&change.to.to_string().into())) {
            set(&mut scenario, &key, change.to.to_string().into());
        }
    }
    if finding.changes.is_empty() && scenario == before {
        match finding.limit {
            Limit::ReceiveWindow => double(&mut scenario, "client", "net.ipv4.tcp_rmem"),
            Limit::SendBuffer => double(&mut scenario, "server", "net.ipv4.tcp_wmem"),
            _ => {}
        }
    }
    (scenario != before).then_some(scenario)
}

/// Doubles the third value of a buffer's sysctl, if the scenario sets it.
fn double(scenario: &mut Table, host: &str, sysctl: &str) {
    let key = ["hosts", host, "sysctl", sysctl];
    let twice = 2 * most(get(scenario, &key));
    if twice > 0 {
        set(scenario, &key, format!("4096 131072 {twice}").into());
    }
}

/// The last number of a sysctl.
fn most(value: Option<&Value>) -> u64 {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().last().and_then(|last| last.parse().ok()).unwrap_or_default()
}

/// Makes an application twice as fast, if the scenario sets its rate.
fn twice(scenario: &mut Table, key: &str) {
    let rate = get(scenario, &["transfer", key]).and_then(Value::as_str);
    let kbits = rate.and_then(|rate| rate.strip_suffix("kbit")?.parse::<u64>().ok());
    if let Some(kbits) = kbits {
        set(scenario, &["transfer", key], format!("{}kbit", kbits * 2).into());
    }
}

fn get<'a>(table: &'a Table, key: &[&str]) -> Option<&'a Value> {
    let (first, rest) = key.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, name| value.get(name))
}

fn set(table: &mut Table, key: &[&str], value: Value) {
    if let Some((last, inner)) = inner(table, key) {
        inner.insert(last.into(), value);
    }
}

fn without(table: &mut Table, key: &[&str]) {
    if get(table, key).is_some()
        && let Some((last, inner)) = inner(table, key)
    {
        inner.remove(last);
    }
}

/// The table that holds a key, and the key's last name.
fn inner<'a, 'k>(mut table: &'a mut Table, key: &[&'k str]) -> Option<(&'k str, &'a mut Table)> {
    let (last, tables) = key.split_last()?;
    for name in tables {
        table = table.entry(*name).or_insert_with(|| Table::new().into()).as_table_mut()?;
    }
    Some((last, table))
}

/// The effect of one remedy; `None` if the second run failed.
fn effect(one: &GivenRemedy, before: &TruthRun, after: Option<&TruthRun>) -> Option<Effect> {
    let starts = before.cause == scenario::Cause::SlowStart
        || one.limit == Limit::CongestionWindow(Cause::SlowStart);
    let column = if starts { "goodput_bps" } else { "steady_goodput_bps" };
    let goodput = |run: &TruthRun| run.row[column].as_f64().filter(|rate| *rate > 0.0);
    let (mut ratio, mut has_held) = (None, false);
    if one.text.is_some() {
        let (after, before_it) = (goodput(after?)?, goodput(before)?);
        ratio = Some(after / before_it);
        let link = before.row["rate_nominal_bps"].as_f64().unwrap_or(f64::INFINITY);
        has_held = after >= NEAR * (BEYOND * before_it).min(link * PAYLOAD);
    }
    let GivenRemedy { vantage, limit, is_right, is_number, .. } = *one;
    let run = before.name.clone();
    Some(Effect { run, vantage, limit, is_right, is_number, has_held, ratio })
}

fn table(effects: &[Effect]) -> String {
    let mut text = String::from(
        "| evidence | verdict | limit | given | applied | helped | harmed | median | worst | \
         numbers that held |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for vantage in [Vantage::Server, Vantage::Sockets, Vantage::ClientCut] {
        for is_right in [true, false] {
            let chosen: Vec<&Effect> = effects
                .iter()
                .filter(|one| one.vantage == vantage && one.is_right == is_right)
                .collect();
            let verdict = if is_right { "right" } else { "wrong" };
            text += &line(&format!("{} | {verdict} | all", vantage.name()), &chosen);
            for limit in Limit::ALL {
                let of_limit: Vec<&Effect> =
                    chosen.iter().copied().filter(|one| one.limit == limit).collect();
                text += &line(&format!("{} | {verdict} | {limit}", vantage.name()), &of_limit);
            }
        }
    }
    for one in effects {
        let Some(ratio) = one.ratio.filter(|ratio| *ratio < HARMED) else { continue };
        let verdict = if one.is_right { "right" } else { "wrong" };
        let (run, vantage, limit) = (&one.run, one.vantage.name(), one.limit);
        text += &format!("\nharmed: {run} by {vantage}, {verdict}, {limit}: {ratio:.2}");
    }
    text
}

/// A line of the table; empty if there are no effects.
fn line(name: &str, effects: &[&Effect]) -> String {
    if effects.is_empty() {
        return String::new();
    }
    let mut ratios: Vec<f64> = effects.iter().filter_map(|one| one.ratio).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let helped = ratios.iter().filter(|ratio| **ratio > HELPED).count();
    let harmed = ratios.iter().filter(|ratio| **ratio < HARMED).count();
    let shown = |ratio: Option<&f64>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    format!(
        "| {name} | {} | {} | {helped} | {harmed} | {} | {} | {} |\n",
        effects.len(),
        ratios.len(),
        shown(ratios.get(ratios.len() / 2)),
        shown(ratios.first()),
        held(effects)
    )
}

/// How many of the applied numbers held.
fn held(effects: &[&Effect]) -> String {
    let numbers = effects.iter().filter(|one| one.is_number && one.ratio.is_some());
    let (mut total, mut held) = (0, 0);
    for one in numbers {
        total += 1;
        held += u32::from(one.has_held);
    }
    if total == 0 { String::new() } else { format!("{held} of {total}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::finding::FindingEvidence;

    fn finding(limit: Limit) -> Finding {
        Finding {
            limit,
            share: 1.0,
            confidence: None,
            headline: None,
            either: Vec::new(),
            doubt: None,
            evidence: FindingEvidence::default(),
            rivals: Vec::new(),
            remedy: Remedy::CaptureTheStart,
            reasons: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn after(text: &str, limit: Limit) -> Option<String> {
        applied(text.parse().unwrap(), &finding(limit)).map(|table| table.to_string())
    }

    #[test]
    fn each_remedy_changes_what_it_names_and_nothing_else() {
        let asked = "[transfer]\nread_rate = \"300kbit\"\nsend_buffer = \"9000\"\n";
        let faster = after(asked, Limit::ReceiverApplication).unwrap();
        assert_eq!(faster, asked.replace("300kbit", "600kbit"));
        let freed = after(asked, Limit::SendBuffer).unwrap();
        assert!(!freed.contains("send_buffer") && freed.contains("300kbit"), "{freed}");
        let loss = after(asked, Limit::CongestionWindow(Cause::Loss)).unwrap();
        assert!(loss.contains("congestion_control = \"bbr\""), "{loss}");
        assert_eq!(after(&loss, Limit::CongestionWindow(Cause::Loss)), None, "it is there already");
        assert_eq!(after(asked, Limit::SenderApplication), None, "nothing says how it writes");
        assert_eq!(after(asked, Limit::Link), None);
        let small = "[hosts.client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 30000 30000\"\n";
        let doubled = after(small, Limit::ReceiveWindow).unwrap();
        assert!(doubled.contains("4096 131072 60000"), "{doubled}");
    }

    #[test]
    fn a_number_that_held_is_counted_among_those_applied() {
        let effect = |ratio, has_held| Effect {
            run: "r".into(),
            vantage: Vantage::Server,
            limit: Limit::SendBuffer,
            is_right: true,
            is_number: true,
            has_held,
            ratio,
        };
        let effects = [effect(Some(2.0), true), effect(Some(0.9), false), effect(None, false)];
        let table = table(&effects);
        let all = "| server | right | all | 3 | 2 | 1 | 1 | 2.00 | 0.90 | 1 of 2 |";
        assert!(table.contains(all), "{table}");
        assert!(table.contains("harmed: r by server, right, send buffer: 0.90"), "{table}");
    }
}
