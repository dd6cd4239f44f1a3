//! Answers are in the language of the option or of the locale, and data is the same in each.

use std::path::Path;
use std::process::{Command, Output};

/// Analyzes a capture of a case of the guide, in a locale of nothing but `locale`.
fn analyzed(locale: &[(&str, &str)], arguments: &[&str]) -> Output {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/cases");
    let mut program = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    program.args(["analyze", "policer.pcap.gz"]).args(arguments).current_dir(captures);
    for name in ["LC_ALL", "LC_MESSAGES", "LC_CTYPE", "LANG"] {
        program.env_remove(name);
    }
    program.envs(locale.iter().copied()).output().unwrap()
}

fn text(locale: &[(&str, &str)], arguments: &[&str]) -> String {
    let ended = analyzed(locale, arguments);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

fn is_chinese(text: &str) -> bool {
    text.contains("由谁处理：")
}

#[test]
fn the_locale_names_the_language_and_the_option_outranks_it() {
    const CHINESE: &str = "zh_CN.UTF-8";
    for (locale, arguments, chinese) in [
        (&[][..], &[][..], false),
        (&[("LANG", CHINESE)], &[], true),
        (&[("LANG", "C.UTF-8"), ("LC_MESSAGES", CHINESE)], &[], true),
        (&[("LANG", CHINESE), ("LC_MESSAGES", "en_US.UTF-8")], &[], false),
        (&[("LC_ALL", CHINESE), ("LC_MESSAGES", "en_US.UTF-8")], &[], true),
        (&[("LC_ALL", ""), ("LANG", CHINESE)], &[], true),
        // What the terminal cannot show is not printed, unless it is asked for.
        (&[("LANG", "zh_CN.GB18030")], &[], false),
        (&[("LANG", "zh_CN.GB18030")], &["--language", "zh"], true),
        (&[("LANG", "fr_FR.UTF-8")], &[], false),
        (&[("LANG", CHINESE)], &["--language", "en"], false),
        (&[("LANG", "C")], &["--language", "zh-CN"], true),
    ] {
        let told = text(locale, arguments);
        assert_eq!(is_chinese(&told), chinese, "{locale:?} {arguments:?}: {told}");
        assert_eq!(told.contains("who must act: "), !chinese, "{locale:?} {arguments:?}: {told}");
    }
}

#[test]
fn data_is_the_same_in_each_language() {
    for form in ["--json", "--jsonl", "--csv"] {
        let [english, chinese] =
            ["en", "zh"].map(|language| text(&[], &[form, "--language", language]));
        assert_eq!(english, chinese, "{form}");
    }
}

#[test]
fn a_language_that_is_not_here_is_wrong_usage() {
    let ended = analyzed(&[], &["--language", "tlh"]);
    let complaint = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("answers are in en and zh-CN"), "{complaint}");
}
