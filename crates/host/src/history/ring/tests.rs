use super::*;
use fullpipe_model::units::Duration;
use proptest::prelude::*;
use std::os::unix::fs::{MetadataExt, symlink};

fn at(second: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(1_796_000_000 + second)
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_name_says_when_a_part_begins_and_nothing_else_is_a_part() {
    // By `date -u -d @1796000000`.
    assert_eq!(name(at(0)), "sockets-2026-11-30T00-53-20.000Z.jsonl.gz");
    for text in ["sockets-.jsonl.gz", "sockets-2026-11-30T00:53:20.000Z.jsonl.gz", "notes", ""] {
        assert_eq!(start(text), None, "{text}");
    }
}

#[test]
fn one_recorder_holds_a_folder_and_what_a_killed_one_left_goes() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("ring");
    let mut ring = HistoryRing::begin(&path, Bytes::new(1000)).unwrap();
    assert!(matches!(HistoryRing::begin(&path, Bytes::new(1000)), Err(HistoryError::Held(_))));
    assert!(ring.add(at(0), b"part").is_none());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join(name(at(0))))), (0o700, 0o600));
    drop(ring);
    let left = format!(".{}.7-0.part", name(at(1)));
    for file in [left.as_str(), ".other.7-0.part", "notes"] {
        std::fs::write(path.join(file), "x").unwrap();
    }
    let victim = place.path().join("victim");
    std::fs::write(&victim, "kept").unwrap();
    symlink(&victim, path.join(name(at(5)))).unwrap();
    let mut ring = HistoryRing::begin(&path, Bytes::new(1000)).unwrap();
    assert_eq!(ring.parts(), (1, Some(at(0))), "a link is no part");
    // What has a link's name replaces the link, and does not follow it.
    assert!(ring.add(at(5), b"new").is_none());
    assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
    let there = [".other.7-0.part".into(), "notes".into(), name(at(0)), name(at(5))];
    assert_eq!(names(&path), there);
}

#[test]
fn a_folder_that_others_can_write_to_or_a_link_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("ring");
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
    let refused = HistoryRing::begin(&path, Bytes::new(10)).unwrap_err().to_string();
    assert!(refused.contains("others can write to it"), "{refused}");
    symlink(place.path(), place.path().join("link")).unwrap();
    assert!(HistoryRing::begin(&place.path().join("link"), Bytes::new(10)).is_err());
}

#[test]
fn a_part_that_is_too_large_is_lost_and_others_stay() {
    let place = tempfile::tempdir().unwrap();
    let mut ring = HistoryRing::begin(&place.path().join("ring"), Bytes::new(10)).unwrap();
    assert!(ring.add(at(0), &[0; 6]).is_none());
    assert!(matches!(ring.add(at(1), &[0; 11]), Some(RingTrouble::Lost(_))));
    assert_eq!(ring.size(), Bytes::new(6));
    // A folder that somebody removed is told, and asked for again with the next part.
    std::fs::remove_dir_all(place.path().join("ring")).unwrap();
    assert!(matches!(ring.add(at(2), &[0; 3]), Some(RingTrouble::Lost(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// The newest parts are there, in order, within the bound; times that go back change nothing.
    #[test]
    fn a_ring_keeps_the_newest_within_its_size(
        parts in proptest::collection::vec((0_u64..50, 1_usize..300), 0..40),
        again in any::<bool>(),
    ) {
        const MOST: u64 = 1000;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ring");
        let mut ring = HistoryRing::begin(&path, Bytes::new(MOST)).unwrap();
        let mut written: Vec<u64> = Vec::new();
        for (number, (second, size)) in parts.iter().enumerate() {
            if again && number == parts.len() / 2 {
                drop(ring);
                ring = HistoryRing::begin(&path, Bytes::new(MOST)).unwrap();
            }
            prop_assert!(ring.add(at(*second), &vec![7; *size]).is_none());
            written.push(*size as u64);
            let sizes: Vec<u64> = names(&path)
                .iter()
                .map(|name| std::fs::metadata(path.join(name)).unwrap().len())
                .collect();
            prop_assert!(sizes.iter().sum::<u64>() <= MOST);
            prop_assert!(written.ends_with(&sizes), "names sort as parts were written");
            let next = written.len().checked_sub(sizes.len() + 1).map(|at| written[at]);
            prop_assert!(next.is_none_or(|next| next + sizes.iter().sum::<u64>() > MOST - 300));
        }
    }

    #[test]
    fn a_time_is_read_from_its_name(milli in 0_u64..4_102_444_800_000) {
        let at = Instant::from_nanos(milli * 1_000_000);
        prop_assert_eq!(start(&name(at)), Some(at));
    }

    #[test]
    fn any_name_is_read_or_passed_over(text in "(sockets-)?[0-9TZ:.-]{0,30}(.jsonl.gz)?|\\PC{0,40}") {
        if let Some(at) = start(&text) {
            prop_assert_eq!(name(at), text);
        }
    }
}
