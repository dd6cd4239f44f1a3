//! What the lab says of a measured path: whether it repeats the measurement, what each change
//! gives, and what was assumed.

mod chinese;

use crate::table::paragraph::fill;
use crate::{Column, Layout, Table, table::figure};
use fullpipe_flow::Language;
use fullpipe_flow::finding::proof::{AGREES_WITHIN, Proof, TrialResult};
use fullpipe_model::limit::End;
use fullpipe_model::tune::MeasuredPath;
use fullpipe_model::tune::prove::{Assumption, Remedy};

/// The proof as text, ending with a line break.
pub fn render(proof: &Proof, layout: Layout) -> String {
    let (first, sentences, assumed) = match layout.language {
        Language::English => (
            measured(&proof.measured),
            [agreement(proof), conclusion(proof)],
            "\nAssumed, as it was not measured:\n",
        ),
        Language::Chinese => (
            chinese::measured(&proof.measured),
            [chinese::agreement(proof), chinese::conclusion(proof)],
            "\n未测量而作的假定：\n",
        ),
    };
    let mut text = fill("", &first, layout.width);
    text += "\n\n";
    text += &table(proof, layout.language).render(layout);
    for sentence in sentences {
        text.push('\n');
        text += &fill("", &sentence, layout.width);
        text.push('\n');
    }
    if !proof.assumptions.is_empty() {
        text += assumed;
    }
    for assumption in &proof.assumptions {
        text += &fill("  - ", &self::assumption(layout.language, assumption), layout.width);
        text.push('\n');
    }
    text
}

/// What is assumed, as a sentence.
fn assumption(language: Language, assumption: &Assumption) -> String {
    match language {
        Language::English => assumption.to_string(),
        Language::Chinese => chinese::assumption(assumption),
    }
}

/// A change with its end: `receiver: net.ipv4.tcp_rmem at least 4096 131072 8388608`.
pub fn remedy(language: Language, change: &Remedy) -> String {
    match language {
        Language::English => change.to_string(),
        Language::Chinese => {
            format!("{}：{}", chinese::end(change.end()), chinese::remedy(change))
        }
    }
}

/// `Measured: 80 Mbit/s (10 MB/s), limited by the receive window, over 50 ms and 1 Gbit/s.`
fn measured(path: &MeasuredPath) -> String {
    let goodput = path.goodput;
    let link = match (path.rate, path.policer) {
        (None, _) => "a link of unknown rate".into(),
        (Some(rate), None) => format!("a link of {rate}"),
        (Some(rate), Some(_)) if path.drops_tails => {
            format!("a policer whose bucket lets {rate} pass")
        }
        (Some(rate), Some(_)) => format!("a policer of {rate}"),
    };
    let loss = match path.loss {
        Some(loss) if loss.get() > 0.0 => {
            format!(", with {:.3} % of segments lost", loss.get() * 100.0)
        }
        _ => String::new(),
    };
    format!(
        "Measured: {goodput} ({goodput:#}), limited by: {}; round trip {}, {link}{loss}.",
        path.limited_by, path.rtt
    )
}

fn table(proof: &Proof, language: Language) -> Table<5> {
    let [transfer, who, gain, as_measured, in_the_lab, all] = match language {
        Language::English => {
            ["transfer", "who acts", "gain", "as measured", "the same in the lab", "all of these"]
        }
        Language::Chinese => ["传输", "由谁更改", "增益", "测量时", "在实验室中重现", "以上全部"],
    };
    let mut table = Table::new([
        Column::text(transfer),
        Column::text(who).leaves(1),
        Column::figure("goodput", "Mbit/s"),
        Column::figure(gain, "x"),
        Column::text("limited by"),
    ]);
    let measured = &proof.measured;
    table.row([
        as_measured.into(),
        String::new(),
        figure::mbit_per_s(measured.goodput),
        String::new(),
        language.limit(measured.limited_by).into(),
    ]);
    table.row(row(in_the_lab.into(), &proof.before, false, language));
    for trial in &proof.trials {
        let what = match (&trial.changes[..], language) {
            ([change], Language::English) => change.words(),
            ([change], Language::Chinese) => chinese::remedy(change),
            _ => all.into(),
        };
        table.row(row(what, trial, true, language));
    }
    table
}

fn row(what: String, trial: &TrialResult, gains: bool, language: Language) -> [String; 5] {
    let gain = if gains { format!("{:.2}", trial.gain) } else { String::new() };
    let limit = language.limit(trial.limited_by).to_string();
    let who = who(&trial.changes, language).to_string();
    [what, who, figure::mbit_per_s(trial.goodput), gain, limit]
}

/// The ends that have to change something.
fn who(changes: &[Remedy], language: Language) -> &'static str {
    let [both, sender, receiver] = match language {
        Language::English => ["both", "sender", "receiver"],
        Language::Chinese => ["两端", chinese::end(End::Sender), chinese::end(End::Receiver)],
    };
    let ends = [End::Sender, End::Receiver];
    match ends.map(|end| changes.iter().any(|change| change.end() == end)) {
        [true, true] => both,
        [true, false] => sender,
        [false, true] => receiver,
        [false, false] => "",
    }
}

/// How well the lab repeats the measurement.
fn agreement(proof: &Proof) -> String {
    let agreement = proof.agreement;
    let off = (agreement.ratio - 1.0) * 100.0;
    let within = AGREES_WITHIN * 100.0;
    if agreement.agrees {
        return format!(
            "The lab agrees with the measurement: its goodput is {off:+.1} % off (at most {within:.0} %), with the same limit."
        );
    }
    let (limit, seen) = (proof.before.limited_by, proof.measured.limited_by);
    let why = if agreement.same_limit {
        format!("its goodput is {off:+.1} % off (more than {within:.0} %)")
    } else {
        format!("its goodput is {off:+.1} % off, and its limit is the {limit}, not the {seen}")
    };
    format!(
        "The lab does not agree with the measurement: {why}. So this is no promise: something about the path or its ends is \
         not as assumed below."
    )
}

/// What to do, and what to expect of it.
fn conclusion(proof: &Proof) -> String {
    let Some(best) = proof.best() else {
        return if proof.measured.drops_tails {
            format!(
                "The lab cannot say what would help: the path drops the tails of bursts, and this measurement shows only \
                 what its bucket lets pass ({}), not its own rate. Try bbr, or pacing (SO_MAX_PACING_RATE, tc fq with \
                 maxrate), on the path itself: at that rate, and then at more.",
                proof.measured.goodput
            )
        } else if proof.trials.is_empty() {
            format!(
                "Nothing to try: no setting of the hosts changes the limit, the {}.",
                proof.measured.limited_by
            )
        } else {
            "No change that was tried gains a twentieth or more.".into()
        };
    };
    let changes: Vec<String> = best.changes.iter().map(ToString::to_string).collect();
    let changes = changes.join("; ");
    match best.expected {
        Some(expected) => format!(
            "Expect about {expected} ({expected:#}) instead of {} with: {changes}.",
            proof.measured.goodput
        ),
        None => format!(
            "In the lab, the most is gained ({:.2} times as much) with: {changes}.",
            best.gain
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::schema::RunRow;
    use fullpipe_model::limit::Limit;
    use fullpipe_model::scenario::LinkEngine;
    use fullpipe_model::tune::prove::{Experiment, Lab};
    use fullpipe_model::units::{Bytes, Window};
    use unicode_width::UnicodeWidthStr;

    fn proof(before: &str) -> Proof {
        let (rtt, goodput) = ("50ms".parse().unwrap(), "80mbit".parse().unwrap());
        let mut measured = MeasuredPath::new(rtt, goodput, Limit::ReceiveWindow);
        measured.rate = Some("1gbit".parse().unwrap());
        measured.receiver.window = Some(Window::new(Bytes::new(500_000)));
        let lab = Lab { kernel: "6.12".parse().unwrap(), link_engine: LinkEngine::Netem };
        let row = |rate: &str, limited_by| RunRow {
            name: "prove".into(),
            steady_goodput: rate.parse().ok(),
            limited_by,
            limit_share: 0.9,
            ..RunRow::default()
        };
        let rows = [row(before, Limit::ReceiveWindow), row("640mbit", Limit::Link)];
        Proof::new(Experiment::new(measured, lab).unwrap(), &rows).unwrap()
    }

    #[test]
    fn a_proof_says_who_acts_and_what_to_expect() {
        let text = render(&proof("80mbit"), Layout::default());
        for part in [
            "Measured: 80 Mbit/s (10 MB/s), limited by: receive window; round trip 50 ms, a link of 1 Gbit/s.",
            "The lab agrees with the measurement: its goodput is +0.0 % off",
            "Expect about 640 Mbit/s (80 MB/s) instead of 80 Mbit/s with: receiver: net.ipv4.tcp_rmem",
            "Assumed, as it was not measured:",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let change = text.lines().find(|line| line.starts_with("net.ipv4.tcp_rmem")).unwrap();
        assert!(change.contains("receiver") && change.contains("8.00"), "{change}");
    }

    #[test]
    fn a_policer_that_drops_the_tails_of_bursts_has_no_known_rate() {
        let mut proof = proof("80mbit");
        proof.measured.policer = Some(Bytes::new(64_000));
        proof.trials.clear();
        let text = render(&proof, Layout::default());
        assert!(
            text.contains("a policer of 1 Gbit/s") && text.contains("Nothing to try"),
            "{text}"
        );
        proof.measured.drops_tails = true;
        let text = render(&proof, Layout::default());
        assert!(
            text.contains("lets 1 Gbit/s pass") && text.contains("Try bbr, or pacing"),
            "{text}"
        );
        assert!(!text.contains("Nothing to try"), "{text}");
    }

    #[test]
    fn a_lab_that_does_not_agree_promises_nothing() {
        let text = render(&proof("60mbit"), Layout::default());
        assert!(
            text.contains("does not agree with the measurement: its goodput is -25.0 % off"),
            "{text}"
        );
        assert!(text.contains("no promise") && !text.contains("Expect"), "{text}");
    }

    #[test]
    fn the_width_is_kept_in_each_language() {
        for (width, language) in (60..120).flat_map(|width| Language::ALL.map(|one| (width, one))) {
            let layout = Layout { width: Some(width), language, ..Layout::default() };
            let text = render(&proof("60mbit"), layout);
            let longest = text.lines().map(UnicodeWidthStr::width).max();
            assert!(longest.unwrap() <= usize::from(width), "{width}:\n{text}");
        }
    }
}
