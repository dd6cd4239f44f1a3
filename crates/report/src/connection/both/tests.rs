use super::*;
use crate::Charset;
use fullpipe_flow::connection::pair::{
    Clocks, CourseSpan, HeaderChange, HeaderField, QueueDelay, SegmentCount, WayCourse,
};
use fullpipe_model::units::{Bytes, Instant};
use std::net::SocketAddr;

fn count(segments: u64) -> SegmentCount {
    SegmentCount { segments, bytes: Bytes::new(segments * 1448) }
}

/// A download of 16,726 segments, of which 54 met a full queue on the way.
fn paired(of: impl FnOnce(&mut WayBetween)) -> PairedCaptures {
    let queue = |ms: u64| QueueDelay {
        median: Duration::from_millis(ms / 2),
        p95: Duration::from_millis(ms),
        most: Duration::from_millis(ms + 2),
    };
    let mut to_client =
        WayBetween { sent: count(16_726), queue: Some(queue(178)), ..WayBetween::default() };
    of(&mut to_client);
    let to_server = WayBetween {
        sent: count(3),
        acknowledgements: 9_000,
        queue: Some(queue(0)),
        ..WayBetween::default()
    };
    let end = |last: u8, port: u16| SocketAddr::from(([10, 0, 0, last], port));
    let translated = SocketAddr::from(([203, 0, 113, 9], 61_000));
    let change =
        |field, near, far| HeaderChange { field, from_client: true, near, far, packets: 1, of: 1 };
    PairedCaptures {
        packets: [26_688, 26_944],
        left_out: [0, 0],
        unmatched: [0, 2],
        set_back: [Duration::ZERO; 2],
        clocks: Clocks {
            pieces: vec![ClockPiece {
                from: Instant::ZERO,
                ahead_ns: -4_998_000_000,
                drift: 12.3e-6,
                error: Some(Duration::from_micros(21_250)),
                round_trip: Some(Duration::from_micros(42_500)),
            }],
        },
        connections: vec![PairedConnection {
            client: [end(2, 41_892), translated],
            server: [end(1, 443); 2],
            began: [Instant::ZERO; 2],
            near_client: Some(Tap::A),
            to_server: Some(to_server),
            to_client: Some(to_client),
            changes: vec![
                change(HeaderField::Address, None, None),
                change(HeaderField::MaximumSegmentSize, Some(1460), Some(1380)),
                change(HeaderField::WindowScale, Some(7), None),
                change(HeaderField::Hops, Some(64), Some(57)),
            ],
        }],
    }
}

fn said(paired: &PairedCaptures, language: Language) -> String {
    let alone = |paired| AnsweredPair { paired, answer: None };
    let paired = &paired.clone().with(alone);
    let report = BothReport { names: ["client.pcap", "server.pcap"], paired, top: 5 };
    report.render(Layout { charset: Charset::Utf8, language, ..Layout::default() })
}

#[test]
fn the_answer_says_where_and_in_which_direction() {
    let paired = paired(|way| {
        way.lost = count(54);
        (way.runs, way.longest_run) = (33, 2);
        way.queue_at_loss = Some(Duration::from_millis(177));
    });
    let text = said(&paired, Language::English);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "client.pcap (26688 packets) and server.pcap (26944): 1 connection passed both; 0 only \
             in client.pcap, 2 only in server.pcap",
            "server.pcap's clock is 4.998 s behind (± 21.25 ms), and gains 12.3 us a second"
        ]
    );
    assert_eq!(
        lines[4],
        "  to the client, 54 of 16726 segments (0.32 %) were lost between server.pcap and \
         client.pcap, 33 times, at most 2 in a row; what came just before had queued for 177 ms \
         (median): a queue between the two was full"
    );
    for part in [
        "packets wait on the way to the client: 95 of 100 up to 178 ms, to the server up to 0 ns",
        "10.0.0.2:41892 and 10.0.0.1:443 at client.pcap, 203.0.113.9:61000 and",
        "the client's MSS in its SYN: 1460 at client.pcap, 1380 at server.pcap",
        "the client's window scale in its SYN: 7 at client.pcap, none at server.pcap",
        "the client's packets pass 7 hops between the two",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_page_has_the_answer_the_pictures_and_nothing_of_a_foreign_text_as_markup() {
    let ms = Duration::from_millis;
    let spans = |least: i64| -> Vec<CourseSpan> {
        (0..9).map(|at| CourseSpan { at: ms(at), least, most: least + 1448 }).collect()
    };
    let course = WayCourse {
        sent: spans(0),
        arrived: spans(0),
        lost: spans(5)[..2].to_vec(),
        waited: spans(1000),
        ends: ms(9),
    };
    let paired = paired(|way| way.course = Some(course))
        .with(|paired| AnsweredPair { paired, answer: None });
    let names = ["<script>alert(1)</script>", "b\u{1b}[31m.pcap"];
    let report = BothReport { names, paired: &paired, top: 5 };
    for (language, words) in
        [(Language::English, "lost between"), (Language::Chinese, "两处之间丢失")]
    {
        let page = both_page(&[report], language);
        assert_eq!(page.matches("<svg").count(), 2, "sequence numbers, and what waited");
        assert!(page.contains(words) && page.contains("203.0.113.9:61000"), "{page}");
        assert!(!page.contains("<script") && !page.contains('\u{1b}'), "{page}");
        // Nothing is loaded.
        assert!(!page.contains("src=") && !page.contains("href=") && !page.contains("@import"));
    }
    let few = both_page(&[BothReport { top: 0, ..report }], Language::English);
    assert!(few.contains("1 more lost no more than these") && !few.contains("<svg"), "{few}");
}

/// Three places are two parts, in the order of the places, and the head says in which of them
/// segments were lost.
#[test]
fn several_places_are_one_page() {
    let alone =
        |paired: PairedCaptures| paired.with(|paired| AnsweredPair { paired, answer: None });
    let [none, some] = [0, 54].map(|lost| alone(paired(|way| way.lost = count(lost))));
    let parts = [
        BothReport { names: ["<i>server", "gate"], paired: &none, top: 5 },
        BothReport { names: ["gate", "client"], paired: &some, top: 5 },
    ];
    for (language, words) in [
        (Language::English, "54 segments were lost between the two"),
        (Language::Chinese, "两处之间丢失 54 个报文段"),
    ] {
        let page = both_page(&parts, language);
        let title = "<h1>&lt;i&gt;server, gate, client</h1>";
        assert!(page.contains(title) && !page.contains("<i>"), "{page}");
        let (contents, rest) = page.split_once("</ul>").unwrap();
        let list: Vec<&str> = contents.lines().filter(|line| line.starts_with("<li>")).collect();
        assert_eq!(list.len(), 2, "{page}");
        assert!(list[1].contains(words) && !list[0].contains("54"), "{page}");
        // Each link leads to a part, and nothing else is linked.
        for (number, item) in list.iter().enumerate() {
            assert!(item.contains(&format!("href=\"#part-{number}\"")), "{page}");
            assert_eq!(rest.matches(&format!("id=\"part-{number}\"")).count(), 1, "{page}");
        }
        assert_eq!(page.matches("href=").count(), 2);
        assert_eq!(page.matches("<h3>").count(), 2, "a connection in each part");
    }
}

/// The reason follows from what came just before the losses, and from their sizes.
#[test]
fn why_it_was_lost_is_said_as_far_as_that_can_be_told() {
    let ms = Duration::from_millis;
    let us = Duration::from_micros;
    for (at, most, words) in [
        (Some(ms(177)), ms(180), "a queue between the two was full"),
        (Some(ms(2)), ms(180), "no full queue dropped them"),
        (Some(us(400)), us(500), "a short queue was full, or something drops by itself"),
        (Some(Duration::ZERO), Duration::ZERO, "no full queue dropped them"),
        (None, ms(180), "no delay says by what"),
    ] {
        let paired = paired(|way| {
            (way.lost, way.queue_at_loss) = (count(54), at);
            way.queue = Some(QueueDelay { median: at.unwrap_or_default(), p95: most, most });
        });
        let text = said(&paired, Language::English);
        assert!(text.contains(words), "{text}");
    }
    let policed = paired(|way| {
        (way.lost, way.runs, way.longest_run) = (count(281), 12, 52);
        way.queue_at_loss = Some(Duration::ZERO);
        way.queue = Some(QueueDelay { median: Duration::ZERO, p95: us(1), most: us(1) });
    });
    assert!(said(&policed, Language::English).contains("has no queue (a policer)"));
    let black_hole = paired(|way| {
        (way.lost, way.nothing_above) = (count(10), Some(Bytes::new(1200)));
    });
    let text = said(&black_hole, Language::English);
    assert!(text.contains("more than 1200 bytes, and nothing larger arrived"), "{text}");
}

#[test]
fn what_is_lost_outside_is_said_of_that_side() {
    let before = paired(|way| way.lost_before = count(12));
    let text = said(&before, Language::English);
    assert!(text.contains("12 of 16726 segments (0.07 %) were lost before server.pcap"), "{text}");
    let after = paired(|way| way.lost_after = count(12));
    assert!(said(&after, Language::English).contains("were lost after client.pcap"));
    let none = paired(|_| ());
    assert!(said(&none, Language::English).contains("no data was lost"));
    assert!(!said(&after, Language::English).contains("no data was lost"));
}

/// Whatever the numbers are: both languages say the same ones, and Chinese has no English left.
#[test]
fn both_languages_say_the_same_numbers() {
    let paired = paired(|way| {
        way.lost = count(54);
        (way.lost_before, way.lost_after, way.needless) = (count(5), count(6), count(7));
        (way.missed_at_near, way.missed_at_far) = (count(8), count(9));
        (way.duplicated, way.reordered_before, way.reordered) = (count(11), count(13), 14);
        way.not_judged = count(1_000);
        (way.acknowledgements_lost, way.acknowledgements_missed) = (15, 16);
        way.queue_at_loss = Some(Duration::from_millis(177));
    });
    let [english, chinese] = Language::ALL.map(|language| said(&paired, language));
    let numbers = |text: &str| {
        let of = |part: &str| part.chars().any(|one| one.is_ascii_digit()).then(|| part.to_owned());
        let is_other = |one: char| !(one.is_ascii_digit() || one == '.');
        let mut all: Vec<String> = text.split(is_other).filter_map(of).collect();
        // `95 of 100` is `95 %`.
        all.retain(|one| one != "100" && one != "95");
        all.iter_mut().for_each(|one| *one = one.trim_matches('.').to_owned());
        all.sort();
        all
    };
    assert_eq!(numbers(&english), numbers(&chinese), "{english}\n{chinese}");
    for word in [" the ", " lost", " were ", "client ", "server "] {
        assert!(!chinese.contains(word), "{word}: {chinese}");
    }
}

/// Where nothing tells which place comes first, nothing is said of losses.
#[test]
fn an_unknown_order_is_said() {
    let mut paired = paired(|way| way.lost = count(54));
    let one = &mut paired.connections[0];
    (one.near_client, one.to_client, one.to_server) = (None, None, None);
    let text = said(&paired, Language::English);
    assert!(text.contains("cannot be told") && !text.contains("lost between"), "{text}");
}
