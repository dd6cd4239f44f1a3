//! Results directories: names, resuming, and who may reach them.

use super::*;
use fullpipe_flow::schema::RunRow;
use fullpipe_kernel::run::sandbox::Privilege;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn manifest(names: &[&str]) -> Manifest {
    let planned = |name: &&str| Planned { name: name.to_string(), repetition: 1, key: "k".into() };
    Manifest { shard: None, runs: names.iter().map(planned).collect() }
}

fn environment() -> Environment {
    Environment::read(Privilege::Root)
}

fn row_named(name: &str) -> RunRow {
    RunRow { name: name.into(), ..RunRow::default() }
}

fn run(results: &mut Results, index: usize, name: &str) {
    let part = results.begin(index, name).unwrap();
    part.complete(results.directory(), &row_named(name)).unwrap();
}

#[test]
fn whatever_a_scenario_is_called_its_results_outlive_a_resume() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let long = "ä".repeat(300);
    let names = ["x.part", "part-1-x", ".a.1-2.part", "a\nb/c", "..", &long, "waiting"];
    let manifest = manifest(&names);
    let mut results = Results::create(&out, &environment(), &manifest).unwrap();
    for (index, name) in names[..6].iter().enumerate() {
        run(&mut results, index, name);
    }
    let half = results.begin(6, "waiting").unwrap();
    fs::write(half.path().join("row.json.1"), "half").unwrap();
    fs::write(out.join(".sweep.json.1-1.part"), "half").unwrap();
    let (_, done) = Results::resume(&out, &environment(), &manifest).unwrap();
    let told: Vec<_> = done.iter().map(|row| row.as_ref().map(|row| row.name.as_str())).collect();
    let expected: Vec<_> = names.iter().map(|&name| (name != "waiting").then_some(name)).collect();
    assert_eq!(told, expected);
    assert!(!out.join("part-007-waiting").exists() && !out.join(".sweep.json.1-1.part").exists());
}

#[test]
fn links_in_the_directory_lead_nowhere() {
    let place = tempfile::tempdir().unwrap();
    let (out, victim) = (place.path().join("out"), place.path().join("victim"));
    fs::write(&victim, "kept").unwrap();
    let manifest = manifest(&["a", "b"]);
    let mut results = Results::create(&out, &environment(), &manifest).unwrap();
    run(&mut results, 0, "a");
    for name in ["rows.jsonl", "environment.json"] {
        fs::remove_file(out.join(name)).unwrap();
        symlink(&victim, out.join(name)).unwrap();
    }
    symlink(place.path(), out.join("part-002-b")).unwrap();
    let (mut results, _) = Results::resume(&out, &environment(), &manifest).unwrap();
    results.append(&row_named("a")).unwrap();
    run(&mut results, 1, "b");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    symlink(&out, place.path().join("link")).unwrap();
    let refused =
        Results::resume(&place.path().join("link"), &environment(), &manifest).unwrap_err();
    assert!(refused.to_string().contains("symbolic link"), "{refused}");
}

#[test]
fn a_directory_where_others_can_write_is_made_for_us_alone_and_names_are_free() {
    let place = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let parent = place.path().join("fullpipe-results");
    let claimed: Vec<_> = (0..3).map(|_| claim_results_folder(&parent, "now").unwrap()).collect();
    assert_eq!(claimed, ["now", "now-2", "now-3"].map(|name| parent.join(name)));
    assert_eq!(mode(&parent), 0o700);
    Results::create(&place.path().join("out"), &environment(), &manifest(&["a"])).unwrap();
    assert_eq!(mode(&place.path().join("out")), 0o700);
}

#[test]
#[allow(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
fn another_users_directory_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    fs::create_dir(&out).unwrap();
    if std::os::unix::fs::chown(&out, Some(1000), Some(1000)).is_err() {
        eprintln!("SKIPPED: giving a directory to another user takes root");
        return;
    }
    for error in [
        Results::create(&out, &environment(), &manifest(&["a"])).unwrap_err(),
        Results::resume(&out, &environment(), &manifest(&["a"])).unwrap_err(),
        claim_results_folder(&out, "now").unwrap_err(),
    ] {
        assert!(error.is_choice() && error.to_string().contains("another user"), "{error}");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
}
