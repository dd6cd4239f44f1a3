//! `fullpipe report` and `view` from the command line: what they write, and that it says the same
//! as `analyze`.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../flow/tests/lab/captures/limits")
}

fn fullpipe(folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    program.args(arguments).current_dir(folder).env("LC_ALL", "C.UTF-8").output().unwrap()
}

/// What the command printed as JSON.
fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = fullpipe(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Says that a part of a test needs something that is not here; in CI everything must be.
#[allow(clippy::print_stderr, reason = "whoever runs the tests must see it")]
fn skip(what: &str) {
    eprintln!("SKIPPED: {what}");
    assert!(std::env::var_os("FULLPIPE_NO_SKIP").is_none(), "{what}");
}

/// What stands in a report for the page's script.
fn data(html: &str) -> Value {
    let data = html.split("id=\"fullpipe-data\">").nth(1).unwrap();
    serde_json::from_str(data.split("</script>").next().unwrap()).unwrap()
}

/// The page of two captures says what `analyze --both` does.
#[test]
fn two_captures_are_one_page() {
    let folder = tempfile::tempdir().unwrap();
    let [client, server] = ["client.pcap.gz", "server.pcap.gz"]
        .map(|end| captures().join("congestion_window_loss").join(end));
    let [client, server] = [client.to_str().unwrap(), server.to_str().unwrap()];
    let file = folder.path().join("both.html");
    let written = fullpipe(
        folder.path(),
        &["report", "--both", client, server, "-o", file.to_str().unwrap()],
    );
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let page = std::fs::read_to_string(&file).unwrap();
    let said = fullpipe(folder.path(), &["analyze", "--both", client, server]).stdout;
    let said = String::from_utf8(said).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page_words = words(&page);
    // The table at the end is broken to fit.
    for line in said.lines().take_while(|line| !line.starts_with("direction")) {
        assert!(page_words.contains(words(line).trim()), "{line}: {page}");
    }
    assert!(page.contains("lost between") && page.matches("<svg").count() == 2, "{page}");
    assert!(page.len() < 400_000, "{}", page.len());
    let refused = fullpipe(folder.path(), &["report", "--both", client, "-o", "one.html"]);
    assert_eq!(refused.status.code(), Some(2));
    let refused = fullpipe(folder.path(), &["report", "--both", client, "none", "-o", "one.html"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(!folder.path().join("one.html").exists());
}

/// The page of three places says what `analyze --point` does: the two teams of the guide.
#[test]
fn three_places_are_one_page() {
    let folder = tempfile::tempdir().unwrap();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/cases");
    let points = ["server", "gateway", "client"].map(|place| {
        let file = cases.join(format!("two-teams-{place}.pcap.gz"));
        format!("{place}={}", file.to_str().unwrap())
    });
    let points: Vec<&str> = points.iter().flat_map(|point| ["--point", point.as_str()]).collect();
    let file = folder.path().join("three.html");
    let named = [&["report"][..], &points, &["-o", file.to_str().unwrap()]].concat();
    let written = fullpipe(folder.path(), &named);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let page = std::fs::read_to_string(&file).unwrap();
    let said = fullpipe(folder.path(), &[&["analyze"][..], &points].concat()).stdout;
    let said = String::from_utf8(said).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page_words = words(&page);
    // The tables are broken to fit.
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let mut compared = 0;
    while let Some(line) = lines.next() {
        if line.starts_with("direction") {
            lines.by_ref().take(3).for_each(drop);
            continue;
        }
        let line = words(line).replace('>', "&gt;");
        assert!(page_words.contains(&line), "{line}: {page}");
        compared += 1;
    }
    assert!(compared > 10, "{said}");
    // The losses are the gateway's other side's, and each side has its pictures.
    assert!(page.contains("15 segments were lost between the two"), "{page}");
    assert!(page.contains("no segment was lost between the two"), "{page}");
    assert_eq!(page.matches("<svg").count(), 4);
    let one = [&["report"][..], &points[..2], &["-o", "one.html"]].concat();
    assert_eq!(fullpipe(folder.path(), &one).status.code(), Some(2));
    let both = [&["report", "--both"][..], &points, &["-o", "one.html"]].concat();
    assert_eq!(fullpipe(folder.path(), &both).status.code(), Some(2));
    assert!(!folder.path().join("one.html").exists());
}

#[test]
fn a_report_says_what_analyze_says() {
    let cases: Vec<_> = std::fs::read_dir(captures()).unwrap().flatten().collect();
    assert!(cases.len() > 3, "captures");
    for case in cases {
        let file = case.path().join("server.pcap.gz");
        let file = file.to_str().unwrap();
        let report = json(&captures(), &["report", file, "--data"]);
        let analysis = json(&captures(), &["analyze", file, "--json"]);
        let facts = &report["connections"][0]["facts"];
        let connection = &analysis["connections"][0];
        for key in ["limits", "findings", "sub_causes", "server_to_client", "close"] {
            assert_eq!(facts[key], connection[key], "{file}: {key}");
        }
        assert_eq!(report["sources"][0]["packets"], analysis["packets"], "{file}");
        // What was sent is in the bins of the throughput graph, to the byte.
        let trace = &report["connections"][0]["trace"]["server_to_client"];
        let bins = trace["rate"]["payload_bytes"].as_array().unwrap();
        let sum: u64 = bins.iter().map(|bin| bin.as_u64().unwrap()).sum();
        assert_eq!(
            sum,
            connection["server_to_client"]["payload_bytes"].as_u64().unwrap(),
            "{file}"
        );
    }
}

#[test]
fn the_file_is_complete_and_says_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let capture = captures().join("link/server.pcap.gz");
    let hostile = folder.path().join("<img src=x onerror=alert(1)>.pcap.gz");
    std::fs::copy(capture, &hostile).unwrap();
    let hostile = hostile.to_str().unwrap();
    let output = fullpipe(folder.path(), &["report", hostile, "-o", "out.html"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "Report: out.html\n");
    let html = std::fs::read_to_string(folder.path().join("out.html")).unwrap();
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    assert!(!html.contains("<img src=x"));
    assert_eq!(data(&html)["sources"][0]["name"], hostile);
    // Nothing is loaded from anywhere, and the page's policy would forbid it.
    assert!(html.contains("default-src 'none'"));
    for loader in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(loader), "{loader}");
    }
    // Nothing half-written stays beside it.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn pictures_are_drawn_for_each_graph() {
    let folder = tempfile::tempdir().unwrap();
    let capture = captures().join("send_buffer/server.pcap.gz");
    let capture = capture.to_str().unwrap();
    let output =
        fullpipe(folder.path(), &["report", capture, "--svg", "pictures", "--theme", "dark"]);
    assert!(output.status.success(), "{output:?}");
    for graph in ["sequence", "throughput", "window", "rtt"] {
        let file = folder.path().join(format!("pictures/{graph}.svg"));
        let picture = std::fs::read_to_string(&file).unwrap();
        assert!(picture.starts_with("<svg ") && picture.len() < 200_000, "{graph}");
    }
    let output = fullpipe(folder.path(), &["report", capture, "--png", "png"]);
    if output.status.code() == Some(3) {
        assert!(String::from_utf8_lossy(&output.stderr).contains("librsvg2-bin"));
        skip("pictures as PNG: there is no rsvg-convert (librsvg2-bin)");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let picture = std::fs::read(folder.path().join("png/throughput.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
    // Width and height of the header: twice the picture's own.
    let number = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert_eq!((number(16), number(20)), (1920, 720));
}

#[test]
fn what_cannot_be_read_is_said_with_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty.pcap"), b"").unwrap();
    std::fs::create_dir(folder.path().join("results")).unwrap();
    let capture = captures().join("link/server.pcap.gz");
    let capture = capture.to_str().unwrap();
    for (arguments, code, told) in [
        (&["report", "missing.pcap"][..], 4, "missing.pcap"),
        (&["report", "empty.pcap"], 4, "empty.pcap"),
        (&["report", "results"], 4, "there is no run in it"),
        (&["report", "results", capture], 2, "make one report for each kind"),
        (&["report", capture, "-o", "nowhere/out.html"], 1, "nowhere/out.html"),
        (&["view", "-o", "nowhere/out.html"], 1, "nowhere/out.html"),
    ] {
        let output = fullpipe(folder.path(), arguments);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {complaint}");
        assert!(complaint.contains(told), "{arguments:?}: {complaint}");
    }
    assert!(!folder.path().join("report.html").exists());
    // One that ends early is shown as far as it goes, and the exit code says so.
    let bytes = std::fs::read(capture).unwrap();
    std::fs::write(folder.path().join("cut.pcap.gz"), &bytes[..bytes.len() / 2]).unwrap();
    let output = fullpipe(folder.path(), &["report", "cut.pcap.gz"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(data(&html)["sources"][0]["problem"].is_string());
}

#[test]
fn the_page_as_a_program_has_the_analysis_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = fullpipe(folder.path(), &["view"]);
    assert!(output.status.success(), "{output:?}");
    let html = std::fs::read_to_string(folder.path().join("view.html")).unwrap();
    let program = html.split("id=\"fullpipe-wasm\">").nth(1).unwrap();
    let program = program.split("</script>").next().unwrap();
    let (length, text) = program.split_once(' ').unwrap();
    let length: usize = length.parse().unwrap();
    assert!(length > 100_000 && text.len() == length.div_ceil(4) * 5, "{length}");
    assert!(html.len() <= 2_000_000, "{} bytes", html.len());
}
