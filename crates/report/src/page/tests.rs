use super::program as program_page;
use super::*;
use fullpipe_flow::capture::LinkType;
use fullpipe_flow::connection::Direction;
use fullpipe_flow::schema::Version;
use fullpipe_flow::trace::TraceBounds;
use fullpipe_flow::{Analyzer, Config};
use fullpipe_model::units::Instant;

/// An IPv4 packet: who sends it, its numbers, its flags and its payload's length.
fn packet(port: u16, from_client: bool, seq: u32, ack: u32, flags: u8, length: usize) -> Vec<u8> {
    let total = (40 + length) as u16;
    let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (from, to, source, destination) =
        if from_client { (client, server, port, 80) } else { (server, client, 80, port) };
    ip.extend(from.into_iter().chain(to));
    ip.extend(u16::to_be_bytes(source).into_iter().chain(u16::to_be_bytes(destination)));
    ip.extend(seq.to_be_bytes().into_iter().chain(ack.to_be_bytes()));
    ip.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    ip.resize(40 + length, 0);
    ip
}

/// A capture of `connections`, each a little longer than the one before.
fn analysed(connections: u16) -> Shortlist {
    let mut analyzer =
        Analyzer::new(Config { trace: Some(TraceBounds::default()), ..Config::default() });
    let mut shortlist = Shortlist::default();
    for number in 0..connections {
        let port = 10_000 + number;
        let mut at = u64::from(number) * 1_000_000;
        let mut push = |packet: Vec<u8>| {
            at += 10_000_000;
            analyzer.push(Instant::from_nanos(at), LinkType::RAW, &packet, packet.len());
        };
        push(packet(port, true, 1, 0, 2, 0));
        push(packet(port, false, 100, 2, 0x12, 0));
        for step in 0..3 + u32::from(number % 7) {
            push(packet(port, false, 101 + step * 1000, 2, 0x10, 1000));
            push(packet(port, true, 2, 1101 + step * 1000, 0x10, 0));
        }
    }
    shortlist.add(analyzer.finish().connections);
    shortlist
}

fn page(shortlist: Shortlist) -> Page {
    Page {
        schema: Version::default(),
        program: "fullpipe".into(),
        title: "</script><script>alert(1)</script>".into(),
        kind: InputKind::Capture,
        sources: vec![Source { name: "<!--".into(), packets: Some(1), ..Source::default() }],
        connections_total: shortlist.total(),
        connections: shortlist.finish(0),
        lab: None,
    }
}

#[test]
fn the_file_holds_the_data_and_foreign_names_end_nothing_in_it() {
    let mut page = page(analysed(3));
    let (json, left_out) = data(&mut page);
    assert_eq!(left_out, None);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let shown = &value["connections"][0];
    assert_eq!(shown["facts"]["client"].as_str().unwrap().split(':').next(), Some("10.0.0.1"));
    assert!(!shown["facts"]["intervals"].as_array().unwrap().is_empty());
    assert!(shown["trace"]["server_to_client"]["segments"]["time_us"].is_array());
    let (html, _) = html(&mut page);
    let data = html.split("id=\"fullpipe-data\"").nth(1).unwrap();
    let data = data.split_once('>').unwrap().1.split("</script>").next().unwrap();
    assert!(!data.contains('<'), "{data}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(data).unwrap(), value);
}

#[test]
fn of_many_connections_the_worst_are_listed_and_the_worst_of_those_are_drawn() {
    let shortlist = analysed(2_500);
    assert_eq!(shortlist.total(), 2_500);
    let shown = shortlist.finish(0);
    assert_eq!(shown.len(), 1_000);
    let drawn = shown.iter().filter(|shown| shown.connection.trace().is_some()).count();
    assert_eq!(drawn, 60);
    assert!(shown[..60].iter().all(|shown| shown.connection.trace().is_some()));
    let payload = |shown: &ShownConnection| {
        shown.connection.connection.facts(Direction::ServerToClient).payload
    };
    assert!(
        shown
            .is_sorted_by_key(|shown| std::cmp::Reverse((shown.connection.lost(), payload(shown))))
    );
}

#[test]
fn the_page_as_a_program_has_the_program_in_it() {
    let program = b"\x1f\x8ba program";
    let html = program_page(program);
    let text = html.split("id=\"fullpipe-wasm\">").nth(1).unwrap();
    let text = text.split("</script>").next().unwrap();
    let (length, text) = text.split_once(' ').unwrap();
    let bytes = z85::decode(text.replace(',', "<")).unwrap();
    assert_eq!(&bytes[..length.parse().unwrap()], program);
}

#[test]
fn the_page_loads_nothing_and_leads_nowhere() {
    let (html, _) = html(&mut page(analysed(1)));
    let policy = html.split("http-equiv=\"Content-Security-Policy\" content=\"").nth(1).unwrap();
    let policy = &policy[..policy.find('"').unwrap()];
    // The last two are not covered by the first.
    for rule in ["default-src 'none'", "base-uri 'none'", "form-action 'none'"] {
        assert!(policy.split("; ").any(|one| one == rule), "{rule} is not in {policy}");
    }
}
