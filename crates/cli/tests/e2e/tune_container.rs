//! Tuning where nobody may: in a container, whose settings are given to it from outside.

use fullpipe_model::change::{Scope, Sysctl};

use crate::Case;
use crate::need::Need;
use crate::tune::{PATH, Place};

pub const CASES: &[Case] =
    &[("a_container_gets_its_text", &[Need::Root], a_container_gets_its_text)];

/// A container shows its settings and lets nobody in it change them.
fn a_container_gets_its_text() {
    let place = Place::new();
    let before = place.settings();
    place.shell("mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys");
    // Nor is there a place for records.
    place.shell("mount -o remount,ro /var/lib");
    let apply = |more: &[&str]| place.tune(&[&["apply", "--yes"], &PATH[..], more].concat());
    let refused = apply(&[]);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    for part in ["read-only", "container", "nothing is changed", "--format docker"] {
        assert!(refused.err.contains(part), "{part}: {refused:?}");
    }
    assert!(!refused.err.contains("os error"), "{refused:?}");
    assert!(refused.out.contains("\n  securityContext:\n    sysctls:\n"), "{refused:?}");
    assert!(refused.out.contains("    - name: net.ipv4.tcp_wmem\n"), "{refused:?}");
    // Only what a network namespace has of its own may be given so.
    let given: Vec<&str> = refused.out.split("--sysctl ").skip(1).collect();
    assert!(!given.is_empty(), "{refused:?}");
    for option in given {
        let name = option.split('=').next().unwrap();
        let scope = Sysctl::named(name).map(Sysctl::scope);
        assert_eq!(scope, Some(Scope::Namespace), "{name}: {refused:?}");
    }
    let document = apply(&["--json"]).json();
    assert_eq!(document["applied"], false, "{document:#}");
    assert!(document["container"]["docker"].as_str().unwrap().starts_with("docker run --sysctl"));
    assert_eq!(place.settings(), before);
    // A dry run changes nothing anyway, and says the whole plan.
    let dry = place.done(&[&["apply"], &PATH[..]].concat());
    assert!(dry.out.contains("sysctl -w net.ipv4.tcp_wmem"), "{dry:?}");
    // As soon as it can be written, it is.
    place.shell("mount -o remount,rw,bind /proc/sys && mount -o remount,rw /var/lib");
    place.apply(&[]);
}
