//! A window above TCP, named by a user's own table.

#[path = "../../../flow/tests/trace/mod.rs"]
mod trace;

use super::{Folder, analyze};
use fullpipe_flow::capture::write;
use std::fmt::Write;
use std::path::Path;

/// An upload over 50 ms by a client of HTTP/2 in clear text: 60 kB, then nothing until the server
/// says something.
fn upload() -> Vec<u8> {
    let mut text = String::from(
        "0.000 > S  0:0         win 65535 <mss 1000,wscale 7,sackOK>\n\
         0.050 < S. 0:0   ack 1 win 65535 <mss 1000,wscale 7,sackOK>\n\
         0.050 > .  1:1   ack 1 win 2000\n",
    );
    let (mut at, mut next, mut reply) = (0.1, 1, 1);
    for _ in 0..40 {
        let first = next;
        for number in 0..60 {
            let when = at + 0.00002 * f64::from(number);
            writeln!(text, "{when:.5} > . {next}:{} ack {reply} win 2000", next + 1000).unwrap();
            next += 1000;
        }
        let mut back = at + 0.05;
        for acked in (first + 2000..next).step_by(2000) {
            writeln!(text, "{back:.5} < . {reply}:{reply} ack {acked} win 2000").unwrap();
            back += 0.00004;
        }
        writeln!(text, "{back:.5} < P. {reply}:{} ack {next} win 2000", reply + 13).unwrap();
        (at, reply) = (back + 0.0002, reply + 13);
    }
    let mut file = write::file_header(65_535).to_vec();
    let mut is_first = true;
    for mut line in trace::parse(&text) {
        if line.payload > 0 && std::mem::take(&mut is_first) {
            line.begins = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        }
        let packet = line.packet();
        let length = packet.len() as u32;
        file.extend(write::record_header(line.at, length, length));
        file.extend(packet);
    }
    file
}

/// The TOML that the guide shows.
fn of_the_guide() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/limits.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```toml\n[[window]]").unwrap();
    format!("[[window]]{}", rest.split_once("```").unwrap().0)
}

#[test]
fn the_guides_entry_names_our_own_program() {
    let folder = Folder::new("windows");
    let capture = folder.file("upload.pcap", &upload());
    let table = folder.file("windows.toml", of_the_guide().as_bytes());
    let unknown = analyze(&[&capture]);
    assert!(unknown.out.contains("http2"), "{}", unknown.out);
    assert!(unknown.out.contains("unknown implementation"), "{}", unknown.out);
    let named = analyze(&[&capture, "--windows", &table]);
    assert_eq!((named.code, named.err.as_str()), (0, ""));
    let words = named.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = "as large as the default of our proxy: max_stream_window in proxy.conf (an entry of your own)";
    assert!(words.contains(says), "{words}");
    let verdicts = |out: &str| out.matches("application window").count();
    assert_eq!(verdicts(&named.out), verdicts(&unknown.out), "the names change, not the verdict");
}

#[test]
fn a_table_that_is_wrong_is_refused_with_its_line() {
    let folder = Folder::new("wrong-windows");
    let capture = folder.file("upload.pcap", &upload());
    let wrong = folder.file("wrong.toml", of_the_guide().replace("http2", "htp2").as_bytes());
    let refused = analyze(&[&capture, "--windows", &wrong]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("line 2: no protocol 'htp2'"), "{}", refused.err);
    let missing = analyze(&[&capture, "--windows", "/nowhere/windows.toml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("read /nowhere/windows.toml: No such file"), "{}", missing.err);
}
