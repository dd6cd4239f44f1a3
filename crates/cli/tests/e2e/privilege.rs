//! Root and another user: nothing that the other user can write may control or feed a run of
//! root's.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use crate::Case;
use crate::need::Need;
use crate::program::{Program, scenario};

/// The other user.
const OTHER: Option<u32> = Some(1000);

pub const CASES: &[Case] = &[
    ("results_of_another_user_are_refused", &[Need::Root], results_of_another_user_are_refused),
    ("another_users_kernel_is_not_booted", &[Need::Root], another_users_kernel_is_not_booted),
    (
        "results_where_others_write_are_private",
        &[Need::Root],
        results_where_others_write_are_private,
    ),
];

/// A kernel in a cache that the other user owns, as `sudo -E` leaves it to root, says that it ran.
fn another_users_kernel_is_not_booted() {
    let program = Program::new();
    let scenario = program.file("x.toml", short());
    let home = program.work().join("home");
    let kernel = home.join(".cache/fullpipe/kernels/6.12.0-planted/linux");
    fs::create_dir_all(kernel.parent().unwrap()).unwrap();
    fs::write(kernel.with_file_name("release"), "6.12.0\n").unwrap();
    fs::write(&kernel, format!("#!/bin/sh\nid -u > {}\n", program.tmp().join("booted").display()))
        .unwrap();
    fs::set_permissions(&kernel, fs::Permissions::from_mode(0o755)).unwrap();
    let boot = || {
        let mut command = program.command(&["lab", "run", scenario, "--engine", "virtual"]);
        program.start(command.env("HOME", &home).env_remove("XDG_CACHE_HOME")).end()
    };
    // From the program up: each of them alone is enough to be refused.
    for place in kernel.ancestors().take(4) {
        chown(place, OTHER, OTHER).unwrap();
        let refused = boot();
        assert_eq!(refused.code, Some(3), "{}: {refused:?}", place.display());
        assert!(
            refused.err.contains("another user") && refused.err.contains("XDG_CACHE_HOME"),
            "{refused:?}"
        );
        chown(place, Some(0), Some(0)).unwrap();
    }
    assert!(!program.tmp().join("booted").exists());
    assert_eq!(boot().code, Some(1), "root's own is booted, and is no kernel");
    assert_eq!(fs::read_to_string(program.tmp().join("booted")).unwrap(), "0\n");
}

/// A run of a moment.
fn short() -> String {
    scenario("x", ["50mbit", "5ms"], "size = \"100kB\"", "")
}

fn results_of_another_user_are_refused() {
    let program = Program::new();
    let scenario = program.file("x.toml", short());
    let victim = program.work().join("victim");
    fs::write(&victim, "kept").unwrap();
    let out = program.work().join("out");
    fs::create_dir(&out).unwrap();
    chown(&out, OTHER, OTHER).unwrap();
    let refused = program.run(&["lab", "run", scenario, "--out", "out"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("another user") && refused.err.contains("--out"), "{refused:?}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
    // The directory was root's when the sweep began; what it is gone on with are links.
    fs::remove_dir(&out).unwrap();
    let run = |more: &[&str]| {
        program.run(&[&["lab", "run", scenario, "--json", "--out", "out"], more].concat())
    };
    assert_eq!(run(&[]).code, Some(0));
    for name in ["rows.jsonl", "environment.json"] {
        fs::remove_file(out.join(name)).unwrap();
        symlink(&victim, out.join(name)).unwrap();
    }
    let resumed = run(&["--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
}

fn results_where_others_write_are_private() {
    let program = Program::new();
    let scenario = program.file("x.toml", short());
    fs::set_permissions(program.work(), fs::Permissions::from_mode(0o1777)).unwrap();
    let finished = program.run(&["lab", "run", scenario, "--json"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        fs::metadata(program.work().join("fullpipe-results")).unwrap().mode() & 0o777,
        0o700
    );
    fs::remove_dir_all(program.work().join("fullpipe-results")).unwrap();
    symlink("/root", program.work().join("fullpipe-results")).unwrap();
    let refused = program.run(&["lab", "run", scenario, "--json"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.err.contains("symbolic link"), "{refused:?}");
}
