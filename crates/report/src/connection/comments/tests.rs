use super::*;
use crate::connection::analysis::tests::trace;
use fullpipe_flow::capture::{LinkType, Packet};
use fullpipe_flow::{Analyzer, Config, Intake};
use proptest::prelude::*;

type Comments = (Vec<(u64, String)>, String, PlacedComments);

/// The comments at the packets of a trace, and the one about it.
fn comments(text: &str) -> Comments {
    of_packets(trace::parse(text).iter().map(|line| (line.at, line.packet())).collect())
}

fn of_packets(packets: Vec<(Instant, Vec<u8>)>) -> Comments {
    in_language(packets, Language::English)
}

fn in_language(packets: Vec<(Instant, Vec<u8>)>, language: Language) -> Comments {
    let config = Config { spans: true, ..Config::default() };
    let (mut analyzer, mut intake) = (Analyzer::new(config.clone()), Intake::new(&config));
    for (at, packet) in &packets {
        analyzer.push(*at, LinkType::RAW, packet, packet.len());
    }
    let mut plan = CommentPlan::in_language(language);
    analyzer.finish().connections.iter().for_each(|one| plan.add(one));
    let about = plan.about();
    let mut placer = plan.placer();
    for (at, packet) in &packets {
        let (at, data, original_length) = (*at, &packet[..], packet.len());
        let packet = Packet { at, link_type: LinkType::RAW, data, original_length };
        if let Some((arrival, _)) = intake.open(&packet) {
            placer.see(arrival.number, at, &arrival.segment);
        }
    }
    let placed = placer.finish();
    let numbers = 1..=packets.len() as u64;
    let all = numbers
        .flat_map(|number| placed.of(number).iter().map(move |one| (number, one.text.clone())));
    (all.collect(), about, placed)
}

/// A server whose SYN-ACK is lost once, which thinks, and whose client stops reading.
const COURSE: &str = "
    0.000 > S  0:0         win 65535 <mss 1460,wscale 7,sackOK>
    1.000 > S  0:0         win 65535 <mss 1460,wscale 7,sackOK>
    1.040 < S. 0:0 ack 1   win 65535 <mss 1460,wscale 7,sackOK>
    1.040 > .  1:1 ack 1   win 512
    1.041 > P. 1:101 ack 1 win 512
    1.081 < .  1:1 ack 101 win 512
    4.081 < .  1:1449 ack 101 win 512
    4.082 > .  101:101 ack 1449 win 0
    6.081 > .  101:101 ack 1449 win 512
    6.121 < P. 1449:2897 ack 101 win 512
    6.121 > .  101:101 ack 2897 win 512";

#[test]
fn each_wait_is_told_at_its_packets() {
    let (all, about, placed) = comments(COURSE);
    let told: Vec<_> = all.iter().map(|(number, text)| (*number, text.as_str())).collect();
    for (number, words) in [
        (2, "fullpipe #0: 1 s until here: the SYN or its answer was lost"),
        (5, "the server's program has this request, and does not answer for 3"),
        (7, "s until here: the server's program had the request and did not answer"),
        (8, "the window is shut here, and stays so for 2"),
        (10, "s until here: the client's program did not read: its receive window was shut"),
    ] {
        let here = told.iter().filter(|(at, _)| *at == number);
        assert_eq!(here.filter(|(_, text)| text.contains(words)).count(), 1, "{words}: {told:#?}");
    }
    for (number, names) in [
        (2, "[finding=syn_repeated owner=path]"),
        (7, "[finding=server_thinks owner=server_application]"),
        (10, "[finding=window_shut owner=client_application]"),
    ] {
        assert!(told.iter().any(|(at, text)| *at == number && text.ends_with(names)), "{told:#?}");
    }
    assert_eq!((placed.count, placed.left_out), (told.len() as u64, 0), "{told:#?}");
    assert!(about.starts_with("fullpipe: 1 TCP connection\n#0 "), "{about}");
    assert!(about.contains("the server took"), "{about}");
}

/// The same is said at the same packets, with the same names and lengths, and in no other language.
#[test]
fn a_language_changes_the_sentences_alone() {
    let half = COURSE.lines().take(7).collect::<Vec<_>>().join("\n");
    for course in [COURSE, &half] {
        let packets = || trace::parse(course).iter().map(|line| (line.at, line.packet())).collect();
        let (english, ..) = in_language(packets(), Language::English);
        let (chinese, about, placed) = in_language(packets(), Language::Chinese);
        assert!(!english.is_empty() && english.len() == chinese.len());
        for ((at, english), (also_at, chinese)) in english.iter().zip(&chinese) {
            let of_program = |text: &str| text.rsplit_once(" [").unwrap().1.to_owned();
            assert_eq!((at, of_program(english)), (also_at, of_program(chinese)));
        }
        for (_, comment) in placed.all() {
            // Names of the field stay as they are.
            let said = ["SYN", "TCP", "ACK", "ms", "s"]
                .iter()
                .fold(comment.sentence().to_owned(), |said, name| said.replace(name, ""));
            assert!(!said.contains(|c: char| c.is_ascii_alphabetic()), "{said}");
            assert!(!comment.sentence().is_empty() && !comment.sentence().contains('['));
        }
        assert!(about.starts_with("fullpipe: 1 个 TCP 连接\n#0 "), "{about}");
    }
}

#[test]
fn a_wait_without_an_end_is_told_at_the_last_packet() {
    let text = COURSE.lines().take(7).collect::<Vec<_>>().join("\n");
    let mut packets: Vec<_> =
        trace::parse(&text).iter().map(|line| (line.at, line.packet())).collect();
    let last = packets.len() as u64;
    // Another connection ends the capture later.
    let late = trace::parse("9.000 > S 0:0 win 65535").remove(0);
    let mut packet = late.packet();
    packet[21] ^= 1;
    packets.push((late.at, packet));
    let (_, _, placed) = of_packets(packets);
    let told: Vec<_> = placed.of(last).iter().map(|one| one.text.as_str()).collect();
    let told = told.join("; ");
    assert!(
        told.contains("by the end of the capture, with no end in sight: the server's"),
        "{told}"
    );
}

#[test]
fn who_gives_up_ends_the_wait_as_well() {
    let text = COURSE.lines().take(7).collect::<Vec<_>>().join("\n");
    let (all, ..) = comments(&format!("{text}\n4.500 > F. 101:101 ack 1 win 512"));
    let told = all.iter().filter(|(_, text)| text.contains("until here: the server's program had"));
    assert_eq!(told.map(|(number, _)| *number).collect::<Vec<_>>(), [7], "{all:#?}");
}

#[test]
fn the_longest_of_many_stay() {
    let mut text = String::from(
        "0.000 > S  0:0         win 65535 <mss 1460,wscale 7,sackOK>
         0.040 < S. 0:0 ack 1   win 65535 <mss 1460,wscale 7,sackOK>
         0.040 > .  1:1 ack 1   win 512\n",
    );
    // Each answer takes a millisecond longer than the one before.
    let mut at = 0.041;
    for number in 0..300 {
        let (ask, say) = (1 + number * 10, 1 + number * 100);
        text += &format!("{at:.6} > P. {ask}:{} ack {say} win 512\n", ask + 10);
        at += 0.300 + f64::from(number) / 1000.0;
        text += &format!("{at:.6} < P. {say}:{} ack {} win 512\n", say + 100, ask + 10);
        at += 0.001;
    }
    let (all, _, placed) = comments(&text);
    assert!(placed.count <= OF_ONE as u64 && placed.left_out >= 300, "{placed:?}");
    let first = all.iter().map(|(number, _)| number).min().unwrap();
    assert!(*first > 300, "the later ones are longer, and stay: {first}");
}

/// A time, an end, flags, sequence numbers, payload, window.
fn any_line() -> impl Strategy<Value = (u32, bool, usize, u32, u32, u32, u16)> {
    (0u32..3_000_000, any::<bool>(), 0usize..6, 0u32..6000, 0u32..3000, 0u32..6000, any::<u16>())
}

proptest! {
    #[test]
    fn any_trace_has_comments_at_its_packets_in_plain_characters(
        lines in prop::collection::vec(any_line(), 1..60)
    ) {
        let (mut text, mut at) = (String::new(), 0);
        for (gap, from_client, flags, seq, payload, ack, window) in lines {
            at += gap;
            let arrow = if from_client { '>' } else { '<' };
            let flags = ["S", "S.", ".", "P.", "F.", "R."][flags];
            let window = if window % 3 == 0 { 0 } else { window };
            let end = seq + payload;
            text += &format!(
                "{}.{:06} {arrow} {flags} {seq}:{end} ack {ack} win {window}\n",
                at / 1_000_000,
                at % 1_000_000
            );
        }
        let (all, about, placed) = comments(&text);
        prop_assert_eq!(all.len() as u64, placed.count);
        for (_, text) in &all {
            prop_assert!(text.starts_with(PACKET_MARK) && text.ends_with(']'), "{}", text);
            prop_assert!(!text.contains(char::is_control), "{:?}", text);
        }
        prop_assert!(about.lines().all(|line| !line.contains(char::is_control)));
    }
}
