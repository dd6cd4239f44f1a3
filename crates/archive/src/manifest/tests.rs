use super::*;
use proptest::prelude::*;
use std::fs;

fn settings() -> RowSettings {
    RowSettings {
        fullpipe: "0.1.0".into(),
        schema: 2,
        rows: "connections".into(),
        options: "--labels sack".into(),
    }
}

fn capture(file: &str, rows: u64, problem: Option<&str>) -> Capture {
    let (bytes, modified_ns) = (100, -5);
    Capture { file: file.into(), bytes, modified_ns, rows, problem: problem.map(str::to_owned) }
}

fn commit(captures: Vec<Capture>, part: Option<&str>) -> Commit {
    let rows = captures.iter().map(|capture| capture.rows).sum();
    let part = part.map(|path| RowsPart { path: path.into(), rows, bytes: 7 });
    Commit { captures, parts: part.into_iter().collect() }
}

/// Three groups: the second has problems, and the third tries one of them again.
fn written(folder: &Path) -> Manifest {
    let mut manifest = Manifest::begin(folder, &settings()).unwrap();
    manifest.commit(commit(vec![capture("a", 2, None)], Some("p0"))).unwrap();
    let bad = vec![capture("b", 0, Some("missing")), capture("c", 1, Some("cut"))];
    manifest.commit(commit(bad, Some("p1"))).unwrap();
    manifest.commit(commit(vec![capture("b", 4, None)], Some("p2"))).unwrap();
    manifest
}

#[test]
fn what_is_committed_is_read_again_and_counted_once() {
    let place = tempfile::tempdir().unwrap();
    let mut manifest = written(place.path());
    let totals = Totals { captures: 3, problems: 1, rows: 7 };
    assert_eq!(manifest.close().unwrap(), totals);
    assert_eq!(manifest.close().unwrap(), totals, "said once, true twice");
    let problems = manifest.problems().unwrap();
    assert_eq!(problems.into_iter().collect::<Vec<_>>(), [("c".into(), ("cut".into(), 1))]);
    let busy = Manifest::resume(place.path(), &settings()).unwrap_err();
    assert!(matches!(busy, ManifestError::Busy), "{busy}");
    drop(manifest);
    let (_manifest, done) = Manifest::resume(place.path(), &settings()).unwrap().unwrap();
    assert_eq!(done.parts.len(), 3);
    assert!(done.captures["a"].is_same(100, -5) && !done.captures["a"].is_same(101, -5));
    assert!(!done.captures["b"].is_to_be_tried_again(), "it was, with success");
    assert!(!done.captures["c"].is_to_be_tried_again(), "a row of it is stored");
    assert_eq!(done.captures["c"].rows, 1);
}

#[test]
fn rows_of_two_kinds_do_not_mix_and_nothing_is_begun_twice() {
    let place = tempfile::tempdir().unwrap();
    assert!(Manifest::resume(place.path(), &settings()).unwrap().is_none());
    drop(written(place.path()));
    let twice = Manifest::begin(place.path(), &settings()).unwrap_err();
    assert!(matches!(twice, ManifestError::Exists), "{twice}");
    let packets = RowSettings { rows: "packets".into(), ..settings() };
    let other = Manifest::resume(place.path(), &packets).unwrap_err().to_string();
    assert!(other.contains("of connections with --labels sack"), "{other}");
}

#[test]
fn a_line_that_is_no_line_of_ours_is_told() {
    let place = tempfile::tempdir().unwrap();
    drop(written(place.path()));
    let path = place.path().join(NAME);
    let text = fs::read_to_string(&path).unwrap().replacen("\"committed\"", "\"comitted\"", 1);
    fs::write(&path, text).unwrap();
    let error = Manifest::resume(place.path(), &settings()).unwrap_err().to_string();
    assert!(error.contains("_manifest.jsonl, line 2"), "{error}");
}

proptest! {
    /// Wherever a killed run stopped writing: complete lines count, and the next one follows them.
    #[test]
    fn an_unfinished_line_is_cut_off(kept in 0_usize..1000) {
        let place = tempfile::tempdir().unwrap();
        drop(written(place.path()));
        let path = place.path().join(NAME);
        let text = fs::read(&path).unwrap();
        let kept = kept.min(text.len());
        fs::write(&path, &text[..kept]).unwrap();
        let lines = text[..kept].iter().filter(|byte| **byte == b'\n').count();
        let (mut manifest, done) = Manifest::resume(place.path(), &settings()).unwrap().unwrap();
        prop_assert_eq!(done.parts.len(), lines.saturating_sub(1));
        manifest.commit(commit(vec![capture("z", 1, None)], Some("pz"))).unwrap();
        drop(manifest);
        let (_manifest, again) = Manifest::resume(place.path(), &settings()).unwrap().unwrap();
        prop_assert_eq!(again.parts.len(), lines.saturating_sub(1) + 1);
        prop_assert_eq!(again.captures["z"].rows, 1);
    }
}
