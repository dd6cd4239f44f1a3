use super::super::history::tests::{OFFSET, part, second};
use super::*;
use crate::limit::Limit;
use proptest::prelude::*;

/// A history of all that these lines have.
fn all(lines: &[String]) -> History {
    let mut history = History::new(Instant::ZERO, Instant::from_nanos(u64::MAX));
    lines.iter().for_each(|line| history.line(line).unwrap());
    history
}

fn sums(parts: &[Vec<String>]) -> BTreeMap<WorkloadHour, WorkloadSum> {
    let prefixes = Prefixes::parse("192.0.2.0/24,lab").unwrap();
    let mut hours = WorkloadHours::new(Arc::new(prefixes));
    let added: u64 = parts.iter().map(|lines| hours.add(&all(lines))).sum();
    assert_eq!(added, hours.len() as u64);
    hours.take()
}

#[test]
fn a_part_is_summed_by_what_took_the_time() {
    let found = sums(&[part("a", 100..160, Some("nginx"))]);
    let begins = OFFSET.calendar(second(100)).as_nanos();
    assert!(found.keys().all(|key| key.hour.as_nanos() == begins - begins % HOUR));
    let whole = &found
        [&WorkloadHour { host: None, hour: Instant::from_nanos(begins - begins % HOUR), of: None }];
    assert_eq!((whole.watched, whole.time), (Duration::from_secs(60), Duration::ZERO));
    let of: Vec<(&WorkloadPart, &WorkloadSum)> =
        found.iter().filter_map(|(key, sum)| Some((key.of.as_ref()?, sum))).collect();
    assert!(
        of.iter().all(|(part, _)| {
            let named = (part.process.as_deref(), part.workload.as_deref(), part.port);
            let site = part.site.as_ref().map(|site| site.site.as_str());
            named == (Some("nginx"), Some("host"), Some(80))
                && (site, part.role) == (Some("lab"), "sender")
        }),
        "{of:?}"
    );
    // 59 s between 60 samples, in which 1.3 MB a second were acknowledged.
    let time: Duration = of.iter().map(|(_, sum)| sum.time).sum();
    let bytes: u64 = of.iter().map(|(_, sum)| sum.bytes.get()).sum();
    assert_eq!((time, bytes), (Duration::from_secs(59), 59 * 1_300_000), "{of:?}");
    let held = of.iter().find(|(part, _)| part.cause == Limit::ReceiveWindow.name()).unwrap();
    assert!(held.1.lost >= Duration::from_secs(50) && held.1.lost == held.1.time, "{of:?}");
}

#[test]
fn what_was_not_kept_is_the_whole_hosts() {
    let mut lines = part("a", 100..130, None);
    let look = LookNote {
        at: second(130),
        length: Duration::from_secs(1),
        lost_unkept: Duration::from_secs(7),
        ..LookNote::default()
    };
    lines.push(look.to_string());
    let found = sums(&[lines]);
    let whole = found.iter().find(|(key, _)| key.of.is_none()).unwrap().1;
    assert_eq!((whole.lost, whole.watched), (Duration::from_secs(7), Duration::from_secs(31)));
    let hidden = found.keys().filter_map(|key| key.of.as_ref());
    assert!(hidden.clone().all(|part| part.workload.is_none() && part.process.is_none()));
    assert!(hidden.count() > 0);
}

#[test]
fn a_part_without_its_host_gives_nothing() {
    assert!(sums(&[part("a", 0..9, None).split_off(1)]).is_empty());
}

proptest! {
    /// In whichever groups parts are read, the sums of all are the same.
    #[test]
    fn parts_add_up_in_any_groups(
        lengths in proptest::collection::vec(2_u64..90, 1..6),
        groups in proptest::collection::vec(0_usize..3, 6),
    ) {
        let mut begin = 3_500;
        let parts: Vec<Vec<String>> = lengths.iter().map(|length| {
            // A part begins with the last sample of the one before it.
            let range = begin..begin + length;
            begin += length - 1;
            part("a", range, Some("nginx"))
        }).collect();
        let together = sums(&parts);
        let mut apart: BTreeMap<WorkloadHour, WorkloadSum> = BTreeMap::new();
        for group in 0..3 {
            let its = parts.iter().zip(&groups).filter(|(_, of)| **of == group);
            for (key, sum) in sums(&its.map(|(lines, _)| lines.clone()).collect::<Vec<_>>()) {
                let whole = apart.entry(key).or_default();
                whole.time = whole.time.saturating_add(sum.time);
                whole.lost = whole.lost.saturating_add(sum.lost);
                whole.bytes = whole.bytes.saturating_add(sum.bytes);
                whole.watched = whole.watched.saturating_add(sum.watched);
            }
        }
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn every_byte_is_given_to_one_part(bytes in 0_u64.., times in proptest::collection::vec((any::<bool>(), 0_u64..1 << 60), 1..8)) {
        let parts: Vec<AccountPart> = times.iter().map(|(moves, time)| AccountPart {
            owner: crate::account::Owner::Path,
            cause: if *moves { Cause::Transfer(Limit::Link) } else { Cause::Idle },
            direction: None,
            time: Duration::from_nanos(*time),
            lost: Duration::ZERO,
        }).collect();
        let given = shared(Bytes::new(bytes), &parts);
        let sum: u128 = given.iter().map(|one| u128::from(one.get())).sum();
        let has_time = times.iter().any(|(_, time)| *time > 0);
        prop_assert_eq!(sum, if has_time { u128::from(bytes) } else { 0 });
    }
}
