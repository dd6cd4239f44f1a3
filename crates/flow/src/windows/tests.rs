use super::*;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;

const DATA: &str = include_str!("windows.toml");

/// The table as the file makes it.
fn table(entries: &[KnownWindow]) -> String {
    let mut text = String::from(
        "//! Made of `windows.toml`: `FULLPIPE_FIGURES=1 cargo test -p fullpipe-flow windows`.\n\n\
         use super::{KnownWindow, Version};\n\
         use crate::capture::segment::ApplicationProtocol::{self, *};\n\
         use fullpipe_model::units::Bytes;\n\n\
         /// What programs grant, by protocol and size.\n\
         #[rustfmt::skip]\n",
    );
    writeln!(text, "pub const KNOWN_WINDOWS: [KnownWindow; {}] = [", entries.len()).unwrap();
    for one in entries {
        let KnownWindow { protocol, window, program, banner, from, before, setting, .. } = *one;
        let (window, source, read) = (window.get(), one.source, one.read);
        writeln!(text, "    known({protocol:?}, {window}, {program:?}, {banner:?}, {from:?}, {before:?}, {setting:?}, {source:?}, {read:?}),").unwrap();
    }
    text += "];\n\n\
        #[rustfmt::skip]\n\
        #[cfg_attr(target_arch = \"wasm32\", allow(unused_variables, reason = \"sources are left out\"))]\n\
        #[allow(clippy::too_many_arguments, reason = \"a row of the table\")]\n\
        const fn known(\n    \
            protocol: ApplicationProtocol,\n    \
            window: u64,\n    \
            program: &'static str,\n    \
            banner: Option<&'static str>,\n    \
            from: Option<Version>,\n    \
            before: Option<Version>,\n    \
            setting: Option<&'static str>,\n    \
            source: &'static str,\n    \
            read: &'static str,\n\
        ) -> KnownWindow {\n    \
            KnownWindow {\n        \
                protocol,\n        \
                window: Bytes::new(window),\n        \
                program,\n        \
                banner,\n        \
                from,\n        \
                before,\n        \
                setting,\n        \
                is_own: false,\n        \
                #[cfg(not(target_arch = \"wasm32\"))]\n        \
                source,\n        \
                #[cfg(not(target_arch = \"wasm32\"))]\n        \
                read,\n    \
            }\n\
        }\n";
    text
}

#[test]
fn the_table_is_the_files() {
    let entries = file::parse(DATA, false).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/windows/table.rs");
    if std::env::var_os("FULLPIPE_FIGURES").is_some() {
        std::fs::write(path, table(&entries)).unwrap();
        return;
    }
    assert_eq!(KNOWN_WINDOWS[..], entries[..], "FULLPIPE_FIGURES=1 makes the table anew");
}

#[test]
fn every_built_in_entry_says_where_and_when_it_was_read() {
    for known in KNOWN_WINDOWS {
        assert!(!known.source.is_empty(), "{}", known.program);
        let (year, month) = known.read.split_once('-').unwrap();
        assert!(year.parse::<u16>().unwrap() >= 2026, "{}", known.program);
        assert!((1..=12).contains(&month.parse::<u8>().unwrap()), "{}", known.program);
    }
}

fn entry(lines: &str) -> String {
    format!("[[window]]\nprotocol = \"http2\"\nwindow = \"3MiB\"\nprogram = \"our proxy\"\n{lines}")
}

#[test]
fn a_users_entry_wins_over_the_same_program() {
    let own = entry("setting = \"window_size\"\n")
        + "[[window]]\nprotocol = \"http2\"\nwindow = \"9MiB\"\nprogram = \"Jetty\"\n";
    let own = OwnWindows::parse(&own).unwrap();
    let protocol = ApplicationProtocol::Http2;
    let like =
        |bound| own.like(protocol, Bytes::new(bound)).map(KnownWindow::named).collect::<Vec<_>>();
    assert_eq!(like(3 << 20), ["our proxy: window_size"]);
    assert_eq!(like(9 << 20), ["Jetty"], "without the built-in setting");
    assert_eq!(like(512 << 10), Vec::<String>::new(), "Jetty's built-in entry is replaced");
    assert_eq!(OwnWindows::default().like(protocol, Bytes::new(512 << 10)).count(), 1);
    assert!(own.entries().iter().all(|own| own.is_own));
}

#[test]
fn a_program_is_told_by_its_name_and_version() {
    let of = |name: &str, bound| {
        let known =
            OwnWindows::default().default_of(ApplicationProtocol::Http2, name, Bytes::new(bound));
        known.map(|known| known.window.get())
    };
    assert_eq!(of("curl/7.88.1", 0), Some(32 << 20));
    assert_eq!(of("curl/8.5.0", 0), Some(10 << 20));
    assert_eq!(of("Chrome/120.0.0.0", 15 << 20), Some(15 << 20));
    assert_eq!(of("curl", 0), None);
    assert_eq!(of("nobody/1.0", 0), None);
    let ssh =
        |name: &str| OwnWindows::default().default_of(ApplicationProtocol::Ssh, name, Bytes::ZERO);
    assert_eq!(ssh("OpenSSH_9.2p1").unwrap().window, Bytes::new(2 << 20));
    assert_eq!(ssh("OpenSSH_9.8_hpn18.4.1"), None);
    assert_eq!(ssh("dropbear_2022.83").unwrap().program, "Dropbear");
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    for (text, says) in [
        ("", "no [[window]] in it"),
        ("[[window]]\nprotocol = \"http2\"\n", "line 1: missing field `window`"),
        ("\n[[window]\n", "line 2: "),
        (&entry("colour = \"red\"\n"), "line 5: unknown field `colour`"),
        (&entry("from = \"9.2\"\n"), "line 5: versions are read behind"),
        (&entry("banner = \"x/\"\nbefore = \"new\"\n"), "line 6: 'new' is no version"),
        (&entry("setting = \"a\\u001b[2Jb\"\n"), "line 5: `setting` is empty, too long"),
        (&entry("").replace("3MiB", "3M"), "line 3: "),
        (&entry("").replace("3MiB", "3B"), "line 3: a window is of 512 B"),
        (&entry("").replace("http2", "htp2"), "line 2: no protocol 'htp2'; there are grpc, http1"),
    ] {
        let error = OwnWindows::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}\n{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}", line in 0_usize..6, value in "\\PC{0,20}") {
        let _ = file::parse(&text, true);
        let whole = entry("banner = \"x/\"\nfrom = \"1.0\"\n");
        let damaged: Vec<String> = whole
            .lines()
            .enumerate()
            .map(|(at, text)| if at == line { value.clone() } else { text.to_owned() })
            .collect();
        let _ = file::parse(&damaged.join("\n"), true);
    }

    #[test]
    fn any_version_is_read(text in "\\PC{0,20}") {
        version_in(&text);
    }
}
