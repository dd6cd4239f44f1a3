//! What every language must have, and the page's file of remedies: `FULLPIPE_FIGURES=1`
//! (`cargo xtask figures`) writes it anew.

use fullpipe_flow::Language;
use fullpipe_flow::finding::Remedy;
use fullpipe_flow::limit::Limit;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What stands for itself in any language: settings, options, commands, protocols.
fn names(sentence: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
    let names = sentence.split(|letter| !is_part(letter)).map(|name| name.trim_matches('.'));
    names.filter(|name| name.contains('_') || name.starts_with("net.")).collect()
}

fn is_chinese(letter: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&letter)
}

#[test]
fn each_language_advises_the_same_settings() {
    for remedy in Remedy::all() {
        let [english, chinese] = Language::ALL.map(|language| language.remedy(remedy));
        assert_eq!(names(english), names(chinese), "{remedy:?}: {chinese}");
        assert!(chinese.chars().any(is_chinese) && !chinese.ends_with('。'), "{chinese}");
    }
    let all = Remedy::all();
    let different: BTreeSet<&str> = all.iter().map(|one| Language::Chinese.remedy(*one)).collect();
    // Two pairs that differ in English by a word or two may be one sentence in Chinese.
    assert_eq!(different.len(), all.len(), "each has a sentence of its own");
}

#[test]
fn each_limit_has_a_name_of_its_own_in_each_language() {
    for language in Language::ALL {
        let names: BTreeSet<&str> = Limit::ALL.iter().map(|limit| language.limit(*limit)).collect();
        assert_eq!(names.len(), Limit::ALL.len(), "{}", language.name());
    }
}

#[test]
fn locales_name_a_language() {
    for (name, language) in [
        ("zh", Some(Language::Chinese)),
        ("zh-CN", Some(Language::Chinese)),
        ("zh_CN.UTF-8", Some(Language::Chinese)),
        ("zh_TW.UTF-8@pinyin", Some(Language::Chinese)),
        ("C", Some(Language::English)),
        ("POSIX", Some(Language::English)),
        ("en_GB.UTF-8", Some(Language::English)),
        ("zha", None),
        ("de_DE.UTF-8", None),
        ("", None),
        ("_", None),
    ] {
        assert_eq!(Language::of(name), language, "{name}");
    }
}

#[test]
fn the_page_has_the_remedies() {
    let chinese = |remedy: &Remedy| format!("{}。", Language::Chinese.remedy(*remedy));
    let remedies: BTreeMap<&str, String> =
        Remedy::all().iter().map(|remedy| (remedy.name(), chinese(remedy))).collect();
    let text = serde_json::to_string_pretty(&remedies).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/words/remedies-zh.json");
    if std::env::var_os("FULLPIPE_FIGURES").is_some() {
        std::fs::write(&path, text).unwrap();
    } else {
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(there, text, "{}: `cargo xtask figures` writes it anew", path.display());
    }
}
