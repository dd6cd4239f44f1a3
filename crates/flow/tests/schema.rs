//! The pages that show the schema's tables are held to them: `FULLPIPE_FIGURES=1`
//! (`cargo xtask figures`) writes them anew.

use fullpipe_flow::KNOWN_WINDOWS;
use fullpipe_flow::diagnosis::HTTP2_INITIAL;
use fullpipe_flow::schema::{
    CAPTURE_PROBLEMS, CONNECTIONS, FINDINGS, INTERVALS, LIVE_CONNECTIONS, PACKETS, RENAMED, RUNS,
    SAMPLES, SCENARIOS, SCHEMA_VERSION, SPANS, SUB_CAUSES, TRUTH_INTERVALS, WHOLES, WORKLOADS,
    markdown,
};
use std::path::Path;

/// The page's text between `<!-- SECTION -->` and `<!-- /SECTION -->` is `text`, or becomes it.
fn hold(page: &str, section: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let before = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- /{section} -->"));
    let (head, rest) = before.split_once(&begin).unwrap_or_else(|| panic!("{page}: no {begin}"));
    let (shown, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("{page}: no {end}"));
    if std::env::var_os("FULLPIPE_FIGURES").is_some() {
        std::fs::write(&path, format!("{head}{begin}{text}{end}{tail}")).unwrap();
    } else {
        assert_eq!(shown, text, "{page}: `cargo xtask figures` writes it anew");
    }
}

/// One test, as the sections of a page are written one after another.
#[test]
fn the_pages_show_the_tables() {
    let page = "docs/src/schema.md";
    hold(page, "version", &format!("This build writes version {SCHEMA_VERSION}.\n"));
    hold(page, "runs", &markdown(RUNS));
    hold(page, "scenarios", &markdown(SCENARIOS));
    hold(page, "connections", &markdown(CONNECTIONS));
    hold(page, "packets", &markdown(PACKETS));
    hold(page, "wholes", &markdown(WHOLES));
    hold(page, "intervals", &markdown(INTERVALS));
    hold(page, "spans", &markdown(SPANS));
    hold(page, "findings", &markdown(FINDINGS));
    hold(page, "sub-causes", &markdown(SUB_CAUSES));
    hold(page, "live-connections", &markdown(LIVE_CONNECTIONS));
    hold(page, "workloads", &markdown(WORKLOADS));
    hold(page, "samples", &markdown(SAMPLES));
    hold(page, "truth", &markdown(TRUTH_INTERVALS));
    hold(page, "capture-problems", &markdown(CAPTURE_PROBLEMS));
    let mut changes = "| version | row | before | now |\n|---|---|---|---|\n".to_owned();
    for change in RENAMED {
        changes += &format!(
            "| {} | {} | {} | {} |\n",
            change.version, change.of, change.before, change.after
        );
    }
    hold(page, "changes", &changes);
    let mut windows =
        "| protocol | window | program | what changes it | read in | when |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for known in KNOWN_WINDOWS {
        let setting =
            known.setting.map_or("nothing is known".to_owned(), |setting| format!("`{setting}`"));
        windows += &format!(
            "| {} | {} | {} | {setting} | {} | {} |\n",
            known.protocol.words(),
            if known.window == HTTP2_INITIAL {
                format!("{} B", known.window.get())
            } else {
                format!("{:#}", known.window)
            },
            known.program,
            known.source,
            known.read
        );
    }
    hold("docs/src/limits.md", "known-windows", &windows);
}
