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
fn the_json_of_the_other_commands_is_the_same_in_each_language() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [
        &["tune", "settings"][..],
        &["tune", "plan", "--rate", "10gbit", "--rtt", "146ms", "--memory", "2GiB"],
        &["tune", "apply", "--rate", "10gbit", "--rtt", "146ms", "--memory", "2GiB"],
        &["tune", "status"],
        &["calc", "--rate", "1gbit", "--rtt", "1ms,2ms"],
        &["lab", "run", "quick", "--dry-run"],
        &["link", "list"],
        &["schema"],
    ] {
        let [english, chinese] = ["en", "zh"].map(|language| {
            let asked = [arguments, &["--json", "--language", language]].concat();
            in_chinese(home.path(), &asked).stdout
        });
        let english = String::from_utf8(english).unwrap();
        assert!(english.starts_with(['{', '[']), "{arguments:?}: {english}");
        assert_eq!(english, String::from_utf8(chinese).unwrap(), "{arguments:?}");
    }
}

#[test]
fn a_language_that_is_not_here_is_wrong_usage() {
    let ended = analyzed(&[], &["--language", "tlh"]);
    let complaint = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("answers are in en and zh-CN"), "{complaint}");
}

/// Runs the program in Chinese, with the state of a user of its own.
fn in_chinese(home: &Path, arguments: &[&str]) -> Output {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/cases");
    let mut program = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    for name in ["HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
        program.env(name, home);
    }
    program.args(arguments).current_dir(captures).env("LC_ALL", "zh_CN.UTF-8").output().unwrap()
}

/// What Linux says, in its own words.
const OF_THE_SYSTEM: [&str; 6] = [
    "No such file or directory",
    "Operation not permitted",
    "Permission denied",
    "Connection refused",
    "Is a directory",
    "Read-only file system",
];

/// Three words of English in a row, which are no command, option, setting or path. What stands
/// between backticks is a command.
fn english(line: &str) -> Option<String> {
    let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" , ");
    let plain = OF_THE_SYSTEM.iter().fold(plain, |text, said| text.replace(said, ","));
    let words: Vec<&str> =
        plain.split([' ', '(', ')', '（', '）', '：', '；', '，', '。']).collect();
    let is_word = |word: &&str| {
        let word = word.trim_end_matches([',', ';', ':', '.']);
        word.len() > 1 && word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '\'')
    };
    words.windows(3).find(|three| three.iter().all(is_word)).map(|three| three.join(" "))
}

/// The commands and mistakes that people meet, and what is English in their answers: names in a row,
/// and what comes from below as a text.
const MET: [(&[&str], &[&str]); 61] = [
    (&["doctor"], &["on device", "reno", "netem", "prove, lab run"]),
    (&["calc", "--rate", "1gbit", "--rtt", "50ms", "--buffer", "6MiB"], &[]),
    (&["calc", "--rate", "1gbit", "--rtt", "1ms,20ms", "--loss", "0.1%"], &[]),
    (&["calc", "--this-host"], &[]),
    (&["calc", "--rate", "1gbit", "--rtt", "1ms,2ms", "--buffer", "6MiB"], &[]),
    (&["calc", "--rate", "1bit", "--rtt", "1ms"], &[]),
    (&["calc", "--rate", "100M", "--rtt", "1ms"], &[]),
    (&["calc", "--rtt", "1ms"], &[]),
    (&["calc", "convert", "38.7M"], &[]),
    (&["tune", "plan", "--rate", "10gbit", "--rtt", "146ms"], &[]),
    (&["tune", "apply", "--rate", "10gbit", "--rtt", "146ms"], &[]),
    (&["tune", "apply", "--rate", "1gbit", "--rtt", "1ms", "--yes", "--for", "0s"], &[]),
    (&["tune", "plan", "--from", "nowhere.json"], &[]),
    (&["tune", "status"], &[]),
    (&["tune", "undo"], &[]),
    (&["tune", "undo", "7"], &[]),
    (&["tune", "confirm"], &[]),
    (&["tune", "settings"], &[]),
    (&["tune", "verify"], &[]),
    (
        &["tune", "plan", "--rate", "1gbit", "--rtt", "1ms", "--set", "x=1"],
        &["nothing that can be tuned"],
    ),
    (&["analyze", "policer.pcap.gz"], &[]),
    (&["analyze", "nowhere.pcap"], &[]),
    (&["analyze", "."], &[]),
    (&["analyze", "../SUMMARY.md"], &[]),
    (&["analyze", "policer.pcap.gz", "--connection", "77"], &[]),
    (&["analyze", "policer.pcap.gz", "--filter", "prot 1"], &["'prot' is none"]),
    (&["analyze", "--both", "policer.pcap.gz"], &[]),
    (&["analyze", "-", "-"], &[]),
    (&["analyze"], &[]),
    (&["report", "policer.pcap.gz", "..", "-o", "/dev/null"], &[]),
    (&["report", "..", "-o", "/dev/null"], &[]),
    (&["report", "policer.pcap.gz", "-o", "/nowhere/r.html"], &[]),
    (&["record", "--until", "speed < 3mbit"], &[]),
    (&["record", "--for", "0s"], &[]),
    (&["record", "--size", "12"], &[]),
    (&["record", "--device", "nowhere0", "--for", "1s"], &["in this network"]),
    (&["prove", "--from", "nowhere.json"], &[]),
    (&["prove", "policer.pcap.gz", "--connection", "77"], &[]),
    (&["lab", "run", "no-such-preset"], &[]),
    (&["lab", "run", "quick", "--kernel", "6.1"], &[]),
    (&["lab", "cache", "list"], &[]),
    (&["lab", "cache", "clean"], &[]),
    (&["lab", "kernel", "list"], &[]),
    (&["lab", "kernel", "path", "9.9"], &[]),
    (&["lab", "compare", "policer.pcap.gz", "nowhere"], &["no JSON: expected value"]),
    (&["lab", "merge", "nowhere", "-o", "/nowhere"], &[]),
    (&["link", "list"], &[]),
    (&["link", "status"], &[]),
    (&["link", "set", "--link", "x", "--delay", "1ms"], &[]),
    (&["link", "set"], &[]),
    (&["link", "--rtt", "1ms", "--", "no-such-program"], &[]),
    (&["window", "status"], &[]),
    (&["relay", "status"], &[]),
    (&["relay"], &[]),
    (&["serve", "--relay"], &[]),
    (&["get", "http://127.0.0.1:1/f", "-o", "/dev/null"], &[]),
    (&["get", "ftp://h/f", "-o", "/dev/null"], &["is neither http nor https"]),
    (&["test", "127.0.0.1:1"], &[]),
    (&["why", "--for", "1h"], &[]),
    (&["no-such-command"], &[]),
    (&["analyze", "x.pcap", "--labels", "none", "--no-such-option"], &[]),
];

#[test]
fn nothing_that_people_read_is_an_english_sentence_where_chinese_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, exceptions) in MET {
        let ended = in_chinese(home.path(), arguments);
        let told = [ended.stdout, ended.stderr].concat();
        let told = String::from_utf8(told).unwrap();
        assert!(!told.is_empty(), "{arguments:?}");
        let excepted = |line: &&str| exceptions.iter().any(|known| line.contains(known));
        for line in told.lines().filter(|line| !excepted(line)) {
            assert_eq!(english(line), None, "{arguments:?}: {line}\n{told}");
        }
    }
}

#[test]
fn an_english_sentence_is_found() {
    for line in ["打开 x：it is not there", "no such thing 没有", "名字: the first one"] {
        assert!(english(line).is_some(), "{line}");
    }
    for line in
        ["见 `fullpipe lab kernel build`", "net.ipv4.tcp_rmem 4096 131072", "cubic bbr 可用"]
    {
        assert_eq!(english(line), None, "{line}");
    }
}

#[test]
fn a_mistake_has_the_same_exit_code_in_each_language() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&["analyze", "nowhere.pcap"][..], 4),
        (&["analyze", "--no-such-option"], 2),
        (&["lab", "run", "no-such-preset"], 2),
        (&["tune", "undo", "7"], 2),
    ] {
        for language in ["en", "zh"] {
            let asked = [arguments, &["--language", language]].concat();
            let ended = in_chinese(home.path(), &asked);
            let told = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.code(), Some(code), "{asked:?}: {told}");
            assert_eq!(told.is_ascii(), language == "en", "{asked:?}: {told}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }
}
