//! Applications that hold TCP although neither window closes and something is always in flight,
//! beside what looks like them.

use crate::subcauses::connection;
use fullpipe_flow::account::Cause as Part;
use fullpipe_flow::finding::words;
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::Duration;
use std::path::Path;

#[test]
fn a_writer_s_clock_and_a_reader_that_acknowledges_late_are_told_from_what_looks_like_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/captures/applications");
    for (case, limit, application) in [
        ("writer", Limit::SenderApplication, Some(10e6)),
        ("buffer", Limit::SendBuffer, None),
        ("reader", Limit::ReceiverApplication, Some(14e6)),
        ("link", Limit::Link, None),
    ] {
        for end in ["server", "client"] {
            let connection = connection(&folder.join(case), end);
            let what = &connection.findings()[0].what;
            let words = words::event(what);
            assert_eq!(what.limit, limit, "{case} at the {end}: {words}");
            assert_eq!(what.evidence.idle.is_some(), application.is_some(), "{case}: {words}");
            // The law: it carries what the application moves.
            if let Some(rate) = application {
                let of_rate = what.evidence.goodput.as_f64() / rate;
                assert!((0.9..1.1).contains(&of_rate), "{case} at the {end}: {of_rate}");
            }
            if limit == Limit::SenderApplication {
                // Each block is carried before the next, so slow start cost nothing.
                let account = connection.account().expect("an account");
                let first = account.first().expect("a part");
                assert_eq!(first.cause, Part::Transfer(limit), "{end}: {account:?}");
                let others = account.parts.iter().filter(|one| one.direction.is_some());
                assert!(others.clone().count() > 1, "slow start took time: {account:?}");
                assert!(others.clone().all(|one| one.lost == Duration::ZERO), "{account:?}");
                let period = what.evidence.period.expect("a clock").as_secs_f64();
                let of_period = period / (131_072.0 * 8.0 / 10e6);
                assert!((0.98..1.02).contains(&of_period), "{period} s at the {end}");
            }
        }
    }
}
