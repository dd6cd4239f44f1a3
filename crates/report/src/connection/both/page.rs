//! Captures of two places and more as one HTML page: the answers, and of each two neighbours the
//! packets of both over one clock.

use super::{BothReport, lost_between};
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
white-space:pre-wrap}svg{max-width:100%;height:auto}h2{font-size:1.1rem;margin-top:2rem}h3{font-size:1rem;margin-top:1.5rem}";

/// The page of places that packets pass one after another: a part for each two neighbours, in the
/// order of the places. It loads nothing; it has pictures of the connections whose courses were
/// kept ([`Pairing::drawn`](fullpipe_flow::connection::pair::Pairing::drawn)).
pub fn both_page(parts: &[BothReport<'_>], language: Language) -> String {
    let code = match language {
        Language::English => "en",
        Language::Chinese => "zh-CN",
    };
    let first = parts.iter().take(1).map(|part| part.names[0]);
    let places = first.chain(parts.iter().map(|part| part.names[1])).map(in_page);
    let title = places.collect::<Vec<_>>().join(", ");
    let mut page = format!(
        "<!doctype html>\n<html lang=\"{code}\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>fullpipe: {title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n"
    );
    match parts {
        [only] => page += &only.part(language, Heading::Second),
        several => {
            page += &contents(several, language);
            for (number, part) in several.iter().enumerate() {
                let _ = writeln!(page, "<h2 id=\"part-{number}\">{}</h2>", part.places());
                page += &part.part(language, Heading::Third);
            }
        }
    }
    page
}

/// Where each part is, and how much was lost there of the connections that it has.
fn contents(parts: &[BothReport<'_>], language: Language) -> String {
    let mut list = String::from("<ul>\n");
    for (number, part) in parts.iter().enumerate() {
        let connections = part.paired.connections.iter();
        let lost: u64 = connections.map(|one| lost_between(&one.paired)).sum();
        let said = match (language, lost) {
            (Language::English, 0) => "no segment was lost between the two".into(),
            (Language::English, 1) => "1 segment was lost between the two".into(),
            (Language::English, _) => format!("{lost} segments were lost between the two"),
            (Language::Chinese, 0) => "两处之间没有丢失报文段".into(),
            (Language::Chinese, _) => format!("两处之间丢失 {lost} 个报文段"),
        };
        let colon = if language == Language::Chinese { "：" } else { ": " };
        let places = part.places();
        let _ = writeln!(list, "<li><a href=\"#part-{number}\">{places}</a>{colon}{said}</li>");
    }
    list + "</ul>\n"
}

fn in_page(name: &str) -> String {
    escaped(&escape::in_line(name))
}

/// How deep the heading of a connection is.
#[derive(Clone, Copy)]
enum Heading {
    Second = 2,
    Third,
}

impl BothReport<'_> {
    /// The two places, as a heading has them.
    fn places(&self) -> String {
        self.names.map(in_page).join(" – ")
    }

    /// What is said of the two places.
    fn part(&self, language: Language, heading: Heading) -> String {
        let layout =
            Layout { width: Some(COLUMNS), charset: Charset::Utf8, colour: false, language };
        let level = heading as u8;
        let mut page = String::new();
        for line in self.head(language) {
            let _ = writeln!(page, "<p>{}</p>", escaped(&line));
        }
        for one in self.worst() {
            let [client, server] = [one.paired.client[0], one.paired.server[0]];
            let ends = format!("{client} → {server}");
            let _ = writeln!(page, "<h{level}>{}</h{level}>", escaped(&ends));
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
