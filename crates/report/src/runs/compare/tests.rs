use super::table::Extent;
use super::*;
use crate::Layout;
use fullpipe_model::limit::{Cause, Limit};
use proptest::prelude::*;

const ALL: Extent = Extent { top: usize::MAX, noise: true, lateness: true };

fn row(name: &str, engine: Clock, goodput: u64) -> RunRow {
    let goodput = fullpipe_model::units::Rate::from_bits_per_sec(goodput);
    RunRow {
        name: name.into(),
        repetition: 1,
        engine,
        kernel: "6.12".into(),
        goodput,
        ..RunRow::default()
    }
}

fn compare(a: &[RunRow], b: &[RunRow], bounds: &[&str]) -> Comparison {
    let bounds: Vec<Bound> = bounds.iter().map(|bound| bound.parse().unwrap()).collect();
    Comparison::new(
        ComparedRows { source: "a", rows: a },
        ComparedRows { source: "b", rows: b },
        &bounds,
    )
}

#[test]
fn rows_belong_together_by_name_whatever_their_order() {
    let a =
        [row("x", Clock::Virtual, 100), row("y", Clock::Virtual, 200), row("z", Clock::Virtual, 1)];
    let b =
        [row("w", Clock::Virtual, 1), row("y", Clock::Virtual, 200), row("x", Clock::Virtual, 90)];
    let found = compare(&a, &b, &["goodput:-5%"]);
    assert_eq!((found.compared(), found.changes.len()), (2, 1));
    assert_eq!(
        (&found.only_in_a[..], &found.only_in_b[..]),
        (&["z".to_string()][..], &["w".to_string()][..])
    );
    let change = &found.changes[0];
    assert_eq!(
        (change.name.as_str(), change.relative, change.worse),
        ("x", Some(-0.1), Some(true))
    );
    assert!(found.is_worse() && !compare(&a, &b, &["goodput:-15%"]).is_worse());
    let text = found.render(ALL, Layout::default());
    assert!(text.contains("Only in A: z") && text.contains("Worse than goodput:-5%: x"), "{text}");
    assert!(text.contains("2 rows compared, 1 changed"), "{text}");
}

#[test]
fn a_failed_run_is_no_figure_of_zero_and_passes_no_bound() {
    let failed = |name: &str| RunRow { error: Some("no room".into()), ..row(name, Clock::Real, 0) };
    let a = [
        row("x", Clock::Real, 100),
        row("y", Clock::Real, 100),
        failed("z"),
        row("w", Clock::Real, 1),
    ];
    let b = [row("x", Clock::Real, 100), failed("x"), failed("y"), failed("y"), failed("z")];
    let found = compare(&a, &b, &["goodput:-5%"]);
    assert!(found.changes.is_empty() && found.not_compared.is_empty(), "{found:?}");
    assert_eq!((found.compared(), found.failed()), (1, 3));
    assert_eq!(
        (&found.failed_in_a, &found.failed_in_b),
        (&vec!["z".into()], &vec!["y".into(), "z".into()])
    );
    assert_eq!((&found.only_in_a, &found.only_in_b), (&vec!["w".to_string()], &Vec::new()));
    assert!(found.is_worse() && !compare(&a, &b, &[]).is_worse());
    assert!(
        !compare(&a[..1], &b[..2], &["goodput:-5%"]).is_worse(),
        "a repetition that was done is there"
    );
    let text = found.render(ALL, Layout::default());
    assert!(
        text.contains("Failed in B: y, z") && text.contains("as it fails in B only: y"),
        "{text}"
    );
}

#[test]
fn the_largest_change_comes_first() {
    let a = [
        row("small", Clock::Virtual, 100),
        row("large", Clock::Virtual, 100),
        row("new", Clock::Virtual, 0),
    ];
    let b = [
        row("small", Clock::Virtual, 101),
        row("large", Clock::Virtual, 20),
        row("new", Clock::Virtual, 5),
    ];
    let found = compare(&a, &b, &[]);
    let order: Vec<&str> = found.changes.iter().map(|change| change.name.as_str()).collect();
    assert_eq!(order, ["new", "large", "small"]);
    let text = found.render(Extent { top: 1, noise: false, lateness: false }, Layout::default());
    assert!(text.contains("2 more changes are left out") && !text.contains("-80.0"), "{text}");
}

#[test]
fn goodput_comes_first_and_the_emulators_lateness_only_when_asked() {
    let late = |micros| fullpipe_model::units::Duration::from_micros(micros);
    let a = RunRow { retransmission: 1, link_late_p99: late(10), ..row("x", Clock::Virtual, 100) };
    let b = RunRow { retransmission: 9, link_late_p99: late(90), ..row("x", Clock::Virtual, 99) };
    let found = compare(&[a], &[b], &[]);
    let names: Vec<&str> = found.changes.iter().map(|change| change.figure.short()).collect();
    assert_eq!(names, ["goodput", "retransmission", "link_late_p99"]);
    let text = found.render(Extent { lateness: false, ..ALL }, Layout::default());
    assert!(text.contains("retransmission") && !text.contains("link_late"), "{text}");
    assert!(found.render(ALL, Layout::default()).contains("link_late_p99"));
}

#[test]
fn shares_of_different_limits_are_not_compared() {
    let held =
        |limited_by, limit_share| RunRow { limited_by, limit_share, ..row("x", Clock::Virtual, 1) };
    let another = compare(&[held(Limit::SendBuffer, 0.9)], &[held(Limit::Link, 0.5)], &[]);
    assert!(another.changes.is_empty() && another.limits.len() == 1);
    let same = compare(&[held(Limit::Link, 0.9)], &[held(Limit::Link, 0.5)], &[]);
    assert_eq!(same.changes[0].figure.name(), "limit_share");
}

#[test]
fn in_real_time_repetitions_decide() {
    let sample = |values: [u64; 3]| values.map(|value| row("x", Clock::Real, value)).to_vec();
    let noisy = compare(&sample([90, 100, 110]), &sample([85, 95, 105]), &["goodput:-1%"]);
    assert_eq!((noisy.changes[0].noise, noisy.is_worse()), (Noise::Within, false));
    let text = noisy.render(Extent { top: 9, noise: false, lateness: false }, Layout::default());
    assert!(!text.contains("goodput") && text.contains("1 figures differ within noise"), "{text}");
    let clear = compare(&sample([99, 100, 101]), &sample([89, 90, 91]), &["goodput:-1%"]);
    assert_eq!((clear.changes[0].noise, clear.is_worse()), (Noise::Beyond, true));
    let single = compare(&[row("x", Clock::Real, 100)], &[row("x", Clock::Real, 99)], &[]);
    assert_eq!(single.changes[0].noise, Noise::Unknown);
    // The same numbers in virtual time are a difference.
    let exact =
        compare(&[row("x", Clock::Virtual, 100)], &[row("x", Clock::Virtual, 99)], &["goodput:0%"]);
    assert_eq!((exact.changes[0].noise, exact.is_worse()), (Noise::None, true));
}

#[test]
fn another_limit_is_told() {
    let held = |limited_by: Limit| RunRow { limited_by, ..row("x", Clock::Virtual, 1) };
    let found =
        compare(&[held(Limit::SendBuffer)], &[held(Limit::CongestionWindow(Cause::Loss))], &[]);
    let text = found.render(ALL, Layout::default());
    assert!(
        text.contains("x: limited by send buffer in A, congestion window (loss) in B"),
        "{text}"
    );
}

#[test]
fn a_figure_that_one_side_lacks_is_told() {
    let timed = RunRow {
        total: Some(fullpipe_model::units::Duration::from_secs(1)),
        ..row("x", Clock::Virtual, 1)
    };
    let found = compare(&[timed], &[row("x", Clock::Virtual, 1)], &["total:+1%"]);
    assert_eq!((found.changes.len(), found.is_worse()), (0, false));
    let text = found.render(ALL, Layout::default());
    assert!(text.contains("Not compared, as only A has it: total of x"), "{text}");
    let same = compare(&[row("x", Clock::Virtual, 1)], &[row("x", Clock::Virtual, 1)], &[]);
    assert!(!same.render(ALL, Layout::default()).contains("Not compared"));
}

fn some_rows() -> impl Strategy<Value = Vec<RunRow>> {
    let one =
        ("[a-e]", prop::sample::select(vec![Clock::Real, Clock::Virtual]), 0..1000u64, 0..5u64);
    prop::collection::vec(one, 0..12).prop_map(|rows| {
        let made = rows.into_iter().map(|(name, engine, goodput, retransmission)| RunRow {
            retransmission,
            ..row(&name, engine, goodput)
        });
        made.collect()
    })
}

proptest! {
    #[test]
    fn the_same_results_have_no_change(rows in some_rows()) {
        let found = compare(&rows, &rows, &["goodput:0%", "retransmission:0"]);
        prop_assert!(found.changes.is_empty() && !found.is_worse() && found.limits.is_empty());
        prop_assert!(found.only_in_a.is_empty() && found.only_in_b.is_empty());
    }

    #[test]
    fn turned_round_every_change_turns_round(a in some_rows(), b in some_rows()) {
        let (there, back) = (compare(&a, &b, &[]), compare(&b, &a, &[]));
        prop_assert_eq!(there.changes.len(), back.changes.len());
        for change in &there.changes {
            let other = back.changes.iter().find(|other| other.name == change.name && other.figure == change.figure).unwrap();
            prop_assert_eq!(other.change, -change.change);
            prop_assert_eq!(other.noise, change.noise);
            prop_assert_eq!(other.worse, change.worse.map(|worse| !worse));
        }
        prop_assert_eq!(there.only_in_a, back.only_in_b);
    }

    #[test]
    fn every_row_is_compared_or_said_to_be_missing(a in some_rows(), b in some_rows()) {
        let found = compare(&a, &b, &[]);
        let names: std::collections::BTreeSet<&str> = a.iter().chain(&b).map(|row| row.name.as_str()).collect();
        prop_assert_eq!(found.compared() + found.only_in_a.len() + found.only_in_b.len(), names.len());
        let _ = found.render(ALL, Layout::default());
    }
}
