//! Two captures as one HTML page: the answers, and both places' packets over one clock.

use super::BothReport;
use crate::graph::{Theme, escaped, pair_graphs, svg};
use crate::table::escape;
use crate::{Charset, Layout};
use fullpipe_flow::Language;
use std::fmt::Write;

/// Columns of the text below the pictures.
const COLUMNS: u16 = 118;

/// What the browser is told of its looks. The pictures have colours of their own.
const STYLE: &str = "body{max-width:60rem;margin:1.5rem auto;padding:0 1rem;font-family:system-ui,\
sans-serif;color:#1f2430;background:#fff}pre{font-size:.8rem;line-height:1.35;overflow-x:auto;\
white-space:pre-wrap}svg{max-width:100%;height:auto}h2{font-size:1.1rem;margin-top:2rem}";

impl BothReport<'_> {
    /// The page. It loads nothing; it has pictures of the connections whose courses were kept
    /// ([`Pairing::drawn`](fullpipe_flow::connection::pair::Pairing::drawn)).
    pub fn html(&self, language: Language) -> String {
        let layout =
            Layout { width: Some(COLUMNS), charset: Charset::Utf8, colour: false, language };
        let [a, b] = self.names.map(|name| escaped(&escape::in_line(name)));
        let code = match language {
            Language::English => "en",
            Language::Chinese => "zh-CN",
        };
        let mut page = format!(
            "<!doctype html>\n<html lang=\"{code}\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>fullpipe: {a}, {b}</title>\n<style>{STYLE}</style>\n<h1>{a}, {b}</h1>\n"
        );
        for line in self.head(language) {
            let _ = writeln!(page, "<p>{}</p>", escaped(&line));
        }
        for one in self.worst() {
            let [client, server] = [one.paired.client[0], one.paired.server[0]];
            let ends = format!("{client} → {server}");
            let _ = writeln!(page, "<h2>{}</h2>", escaped(&ends));
            if let Some(answer) = &one.answer {
                page += &preformatted(&self.answer(answer, layout));
            }
            for graph in pair_graphs(&one.paired, language) {
                page += &svg(&graph, &ends, Theme::Light);
            }
            page += &preformatted(&self.connection(&one.paired, layout));
        }
        if let Some(more) = self.left_out(language) {
            let _ = writeln!(page, "<p>{more}</p>");
        }
        page
    }
}

/// A text of several lines as it is.
fn preformatted(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escaped).collect();
    format!("<pre>{}</pre>\n", lines.join("\n"))
}
