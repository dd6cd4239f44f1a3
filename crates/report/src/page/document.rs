//! The HTML file.

use super::shown::{Page, ShownConnection};
use flate2::read::GzDecoder;
use std::fmt;
use std::io::Read;

/// The page that `web/` builds, `assets/page.html`, compressed: it is a third as large.
const PAGE: &[u8] = include_bytes!("../../assets/page.html.gz");
/// Where the data goes in it.
const DATA: &str = "<!--fullpipe-data-->";
/// Where the program goes in it.
const WASM: &str = "<!--fullpipe-wasm-->";

/// The page and its data do not fit the promised size; how many connections are shown without
/// graphs for that reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge(pub usize);

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections are shown without graphs, to keep the file small", self.0)
    }
}

/// Bytes of a report's data, at most: a browser opens it in a second, and it can be mailed.
const DATA_MAX: usize = 9_000_000;
/// Of them, bytes of connections without their graphs.
const FACTS_MAX: usize = 4_000_000;

/// What the page shows, as JSON. Connections beyond the bound on the size lose their graphs, the
/// last first; the second value says so.
pub fn data(page: &mut Page) -> (String, Option<TooLarge>) {
    let graphs: Vec<usize> = page.connections.iter().map(graphs).collect();
    let mut facts = 0;
    let listed = page.connections.iter().zip(&graphs).take_while(|(shown, graphs)| {
        facts += size(shown).saturating_sub(**graphs);
        facts <= FACTS_MAX
    });
    let listed = listed.count().max(1);
    page.connections.truncate(listed);
    let (mut room, mut left_out) = (DATA_MAX.saturating_sub(facts), 0);
    let all =
        std::mem::take(&mut page.connections).into_iter().zip(graphs).map(|(shown, graphs)| {
            if graphs <= room {
                room -= graphs;
                return shown;
            }
            left_out += 1;
            shown.without_graphs()
        });
    page.connections = all.collect();
    let json = serde_json::to_string(&page).unwrap_or_default();
    (json, (left_out > 0).then_some(TooLarge(left_out)))
}

/// Bytes of a connection's graphs.
fn graphs(shown: &ShownConnection) -> usize {
    if shown.connection.trace().is_none() {
        return 0;
    }
    size(&shown.connection.trace())
        + size(&shown.sockets)
        + size(&shown.link_queue)
        + size(&shown.intervals())
        + size(&shown.granted())
}

/// The report as an HTML file that loads nothing.
pub fn html(page: &mut Page) -> (String, Option<TooLarge>) {
    let (json, left_out) = data(page);
    (put_into_page(&json), left_out)
}

/// The page as a program: without data, with the analysis in it. `wasm` is the WebAssembly program
/// of `crates/view`, packed with gzip. It stands there as its length and its bytes in Z85, which
/// is a twentieth shorter than Base64.
pub fn program(wasm: &[u8]) -> String {
    // A number of bytes that is no multiple of four would end in a tail of the crate's own.
    let mut padded = wasm.to_vec();
    padded.resize(wasm.len().next_multiple_of(4), 0);
    // In place of `<`, which could end the element, stands a letter that Z85 does not use.
    let text = z85::encode(padded).replace('<', ",");
    page().replacen(WASM, &format!("{} {text}", wasm.len()), 1)
}

fn page() -> String {
    let mut page = String::new();
    // A test unpacks it.
    let _ = GzDecoder::new(PAGE).read_to_string(&mut page);
    page
}

/// Within a script element only `<` could end the element or begin a comment.
fn put_into_page(json: &str) -> String {
    page().replacen(DATA, &json.replace('<', "\\u003c"), 1)
}

fn size(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail, and a value that does not serialise is met again by the caller.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_is_the_page() {
        let built = include_str!("../../assets/page.html");
        assert!(page() == built, "`cargo xtask page` compresses it anew");
    }
}
