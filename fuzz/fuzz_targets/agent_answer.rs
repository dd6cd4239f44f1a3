//! What two ends say, in segments, as the answer that a program that reads language gets: it fits,
//! and what others wrote stands under its mark, in plain characters. Each record is a direction, a
//! pause and a length in two bytes, and the payload.
#![no_main]

use fullpipe_flow::capture::LinkType;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Instant;
use fullpipe_report::agent::{ANSWER_MAX, Asked, QuotedFrom, analysis, captures};
use fullpipe_report::connection::analysis::Report;
use serde_json::Value;

/// A segment of a connection between two documentation addresses.
fn packet(from_client: bool, flags: u8, sent: [u32; 2], payload: &[u8]) -> Vec<u8> {
    let ends = [([192, 0, 2, 1], 40_000_u16), ([198, 51, 100, 2], 443)];
    let [from, to] = if from_client { ends } else { [ends[1], ends[0]] };
    let mut ip = vec![0x45, 0];
    ip.extend((40 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(from.0);
    ip.extend(to.0);
    ip.extend(from.1.to_be_bytes());
    ip.extend(to.1.to_be_bytes());
    ip.extend(sent[usize::from(!from_client)].to_be_bytes());
    ip.extend(sent[usize::from(from_client)].to_be_bytes());
    ip.extend([0x50, flags, 2, 0, 0, 0, 0, 0]);
    ip.extend(payload);
    ip
}

/// Whether a string is of the characters that a quotation has.
fn is_quoted(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || " _-./:,;=+@%()\\{}".contains(c))
}

/// The words that a capture may bring, without those that everybody says.
fn check(value: &Value, is_marked: bool, said: &[String]) {
    match value {
        Value::String(text) if is_marked => assert!(is_quoted(text), "{text:?}"),
        Value::String(text) => {
            assert!(!text.contains(char::is_control), "{text:?}");
            let theirs = said.iter().find(|said| text.contains(said.as_str()));
            assert!(theirs.is_none(), "{text:?} has {theirs:?}");
        }
        Value::Array(values) => values.iter().for_each(|one| check(one, false, said)),
        Value::Object(fields) => {
            for (key, value) in fields {
                check(value, QuotedFrom::ALL.iter().any(|origin| origin.key() == key), said);
            }
        }
        _ => {}
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut analyzer = Analyzer::new(Config::default());
    let (mut rest, mut sent, mut nanos) = (bytes, [1_u32; 2], 0);
    while let [high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([high & 0x0f, *low]));
        let (payload, tail) = tail.split_at(length.min(tail.len()));
        let from_client = high & 0x80 == 0;
        nanos += if high & 0x40 == 0 { 1_000_000 } else { 700_000_000 };
        let flags = if high & 0x20 == 0 { 0x18 } else { 0x02 };
        let data = packet(from_client, flags, sent, payload);
        let seq = &mut sent[usize::from(!from_client)];
        *seq = seq.wrapping_add(payload.len() as u32);
        analyzer.push(Instant::from_nanos(nanos), LinkType::RAW, &data, data.len());
        rest = tail;
    }
    let mut report = Report::new("", analyzer.finish());
    report.finish();
    // Long words that the ends said of themselves: none of ours is among them.
    let greetings = report.connections.iter().filter_map(|one| one.connection.greeting.as_deref());
    let said = greetings.flat_map(|greeting| {
        let tokens = [greeting.client_program, greeting.server_program, greeting.alpn_offered];
        let tokens = tokens.into_iter().flatten().map(|token| token.as_str().to_owned());
        tokens.chain(greeting.server_name.as_deref().map(str::to_owned)).collect::<Vec<_>>()
    });
    let said: Vec<String> = said.filter(|word| word.len() > 40).collect();
    let asked = [None, Some(0)].map(|connection| Asked { connection, skip: 0 });
    let answers = asked.into_iter().filter_map(|asked| analysis(&report, asked));
    for answer in answers.chain(captures([(&report, None), (&report, None)])) {
        let length = answer.to_string().len();
        assert!(length <= ANSWER_MAX, "{length}: {answer}");
        check(&answer, false, &said);
    }
});
