//! What the terminal is like, asked once: the reports take it as an argument.

use fullpipe_report::{Charset, Layout};
use std::io::Write;

/// Narrower than this a table of rows is not readable: better let the terminal break its lines.
const WIDTH_MIN: u16 = 60;

/// How to lay out text on standard output: as wide as the terminal, plain and unbounded where it is none.
pub fn layout() -> Layout {
    let width = console::Term::stdout().size_checked().map(|(_, columns)| columns.max(WIDTH_MIN));
    Layout { width, charset: charset(), colour: width.is_some() && console::colors_enabled() }
}

/// What the locale says, as every program asks it.
fn charset() -> Charset {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    if locale.contains("utf-8") || locale.contains("utf8") { Charset::Utf8 } else { Charset::Ascii }
}

/// Writes to standard output; a closed pipe is an error of its own kind.
pub fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a value as one JSON document, and nothing else, to standard output.
pub fn print_json(value: &impl serde::Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

/// Tells a person something beside the result, on standard error.
pub fn remark(text: &str) {
    // A remark that nobody can read is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{text}");
}
