//! `--write-out`: a line about each file, in curl's words.
//!
//! A [`Template`] is checked before anything is downloaded, and then filled by what arrived. The
//! variables and their units are curl's: times in seconds with six digits, rates in bytes a second.

use super::show::Fetched;
use crate::sentence::Sentence;
use fullpipe_model::units::Duration;

/// The names that may stand in `%{..}`.
const NAMES: [&str; 18] = [
    "filename_effective",
    "http_code",
    "http_version",
    "num_redirects",
    "num_retries",
    "remote_ip",
    "remote_port",
    "response_code",
    "size_download",
    "speed_download",
    "time_appconnect",
    "time_connect",
    "time_namelookup",
    "time_pretransfer",
    "time_redirect",
    "time_starttransfer",
    "time_total",
    "url_effective",
];

/// A format of `--write-out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Name(&'static str),
}

impl std::str::FromStr for Template {
    type Err = Sentence;

    fn from_str(text: &str) -> Result<Template, Sentence> {
        if text.starts_with('@') {
            return Err(Sentence::new(
                "a format from a file (@FILE) is curl's alone; give the format here",
                "来自文件的格式（@FILE）只有 curl 支持；请在这里直接给出格式",
            ));
        }
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(c) = rest.chars().next() {
            let after = &rest[c.len_utf8()..];
            if c == '%' && after.starts_with('{') {
                let (name, end) = after[1..].split_once('}').ok_or_else(|| {
                    let what = format!("'%{after}' has no closing brace");
                    Sentence::new(what, format!("'%{after}' 没有右花括号"))
                })?;
                let known = NAMES.iter().find(|known| **known == name).ok_or_else(|| {
                    let known = NAMES.join(", ");
                    Sentence::new(
                        format!("'%{{{name}}}' is unknown here; known are {known}"),
                        format!("这里没有 '%{{{name}}}'；可用的是 {known}"),
                    )
                })?;
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Name(known));
                rest = end;
                continue;
            }
            let (letter, taken) = escape(c, after);
            plain.push(letter);
            rest = &after[taken..];
        }
        pieces.push(Piece::Text(plain));
        Ok(Template(pieces))
    }
}

/// What a character stands for, and how many of the bytes after it belong to it.
fn escape(c: char, after: &str) -> (char, usize) {
    match (c, after.chars().next()) {
        ('%', Some('%')) => ('%', 1),
        ('\\', Some('n')) => ('\n', 1),
        ('\\', Some('r')) => ('\r', 1),
        ('\\', Some('t')) => ('\t', 1),
        _ => (c, 0),
    }
}

impl Template {
    /// The line for a file. It ends as the format does: without a line break unless it has one.
    pub fn fill(&self, fetched: &Fetched) -> String {
        let texts = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Name(name) => value(name, fetched),
        });
        texts.collect()
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.6}", time.as_secs_f64())
}

fn value(name: &str, fetched: &Fetched) -> String {
    let (got, timing) = (&fetched.got, &fetched.got.timing);
    match name {
        "filename_effective" => fetched.file.clone().unwrap_or_default(),
        "http_code" | "response_code" => format!("{:03}", got.status),
        // curl names HTTP/2 by its first number.
        "http_version" => {
            let number = got.version.trim_start_matches("HTTP/");
            if number == "2.0" { "2".into() } else { number.into() }
        }
        "num_redirects" => got.redirects.to_string(),
        "num_retries" => got.retries.to_string(),
        "remote_ip" => got.peer.ip().to_string(),
        "remote_port" => got.peer.port().to_string(),
        "size_download" => got.fetched.get().to_string(),
        // Over the whole time, as curl has it, and not from the first byte on.
        "speed_download" => {
            let speed = got.fetched.per(timing.total).map_or(0, |rate| rate.bits_per_sec() / 8);
            speed.to_string()
        }
        "time_appconnect" => seconds(timing.appconnect),
        "time_connect" => seconds(timing.connect),
        "time_namelookup" => seconds(timing.namelookup),
        "time_pretransfer" => seconds(timing.pretransfer),
        "time_redirect" => seconds(timing.redirect),
        "time_starttransfer" => seconds(timing.starttransfer),
        "time_total" => seconds(timing.total),
        "url_effective" => got.url.clone(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_and_names_alternate_and_escapes_are_curls() {
        let template: Template = "a%%\\n%{time_total}\\t%{http_code}%x".parse().unwrap();
        let (text, name) = (|text: &str| Piece::Text(text.into()), Piece::Name);
        let pieces =
            vec![text("a%\n"), name("time_total"), text("\t"), name("http_code"), text("%x")];
        assert_eq!(template, Template(pieces));
    }

    #[test]
    fn what_is_unknown_is_refused_before_anything_is_downloaded() {
        for (format, why) in
            [("%{speed}", "unknown here"), ("%{time_total", "closing brace"), ("@file", "@FILE")]
        {
            let problem = format.parse::<Template>().unwrap_err();
            assert!(problem.english().contains(why), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_format_or_refused(text in "\\PC*") {
            let _ = text.parse::<Template>();
        }
    }
}
