//! What two ends say first, in segments: each record is a direction and a length in two bytes, and
//! the payload. Read by the thread that reads the capture, and handed over to another.
#![no_main]

use fullpipe_flow::capture::{LinkType, Packet};
use fullpipe_flow::connection::Greeting;
use fullpipe_flow::{Analyzer, Config, Intake, Sorted};
use fullpipe_model::units::Instant;

/// A segment of a connection between two documentation addresses.
fn packet(from_client: bool, seq: u32, payload: &[u8]) -> Vec<u8> {
    let ends = [([192, 0, 2, 1], 40_000_u16), ([198, 51, 100, 2], 443)];
    let [from, to] = if from_client { ends } else { [ends[1], ends[0]] };
    let mut ip = vec![0x45, 0];
    ip.extend((40 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    ip.extend(from.0);
    ip.extend(to.0);
    ip.extend(from.1.to_be_bytes());
    ip.extend(to.1.to_be_bytes());
    ip.extend(seq.to_be_bytes());
    ip.extend([0, 0, 0, 1, 0x50, 0x18, 2, 0, 0, 0, 0, 0]);
    ip.extend(payload);
    ip
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

fn check(greeting: &Greeting) {
    let tokens = [
        &greeting.protocol_version,
        &greeting.tls_version,
        &greeting.tls_offered,
        &greeting.alpn_offered,
        &greeting.alpn_chosen,
        &greeting.client_program,
        &greeting.server_program,
        &greeting.method,
    ];
    assert!(tokens.into_iter().flatten().all(|token| is_plain(token.as_str())));
    assert!(greeting.server_name.as_deref().is_none_or(is_plain));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut packets = Vec::new();
    let (mut rest, mut sent) = (bytes, [1_u32; 2]);
    while let [high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([high & 0x1f, *low]));
        let (payload, tail) = tail.split_at(length.min(tail.len()));
        let from_client = high & 0x80 == 0;
        let seq = &mut sent[usize::from(from_client)];
        packets.push(packet(from_client, *seq, payload));
        *seq = seq.wrapping_add(payload.len() as u32);
        rest = tail;
    }
    let config = Config::default();
    let (mut one, mut other) = (Analyzer::new(config.clone()), Analyzer::new(config.clone()));
    let mut intake = Intake::new(&config);
    for (number, data) in packets.iter().enumerate() {
        let at = Instant::from_nanos(number as u64 * 1_000_000);
        let packet = Packet { at, link_type: LinkType::RAW, data, original_length: data.len() };
        one.push_packet(&packet);
        match intake.sort(&packet) {
            Some(Sorted::Headers(headers, bytes, _)) => {
                let (arrival, words) = headers.read(bytes).expect("what is plain can be read");
                other.track(&arrival, words);
            }
            Some(Sorted::Segment(arrival, words)) => _ = other.track(&arrival, words),
            None => {}
        }
    }
    let [one, other] = [one, other].map(|analyzer| {
        let all = analyzer.finish().connections.into_iter();
        all.map(|found| found.connection.greeting).collect::<Vec<_>>()
    });
    one.iter().flatten().for_each(|greeting| check(greeting));
    assert_eq!(one, other);
});
