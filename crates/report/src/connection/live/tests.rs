use super::*;
use fullpipe_flow::account::{AccountPart, Cause, Owner};
use fullpipe_flow::diagnosis::live::Acts;
use fullpipe_flow::diagnosis::live::Answer;
use fullpipe_flow::finding::{Headline, Remedy};
use fullpipe_flow::limit::{Candidate, Evidence, Interval, Source, Verdict};
use fullpipe_model::observe::{PeerSite, Process};
use fullpipe_model::units::{Instant, Rate};

/// A verdict of this confidence.
fn headline(limit: Limit, confidence: f64) -> Headline {
    let interval = Interval {
        start: Instant::ZERO,
        length: Duration::from_secs(3),
        candidates: vec![Candidate { limit, share: 1.0 }],
        evidence: Evidence::default(),
    };
    let mut verdict = Verdict::new(Source::Samples, vec![interval]);
    verdict.confidence = confidence;
    Headline::of(&verdict)
}

fn connection(acts: Acts, role: End) -> LiveConnection {
    let limit = Limit::ReceiveWindow;
    LiveConnection {
        answer: Answer {
            local: "[2001:db8:1111:2222:3333:4444:5555:6666]:50000".parse().unwrap(),
            remote: "192.0.2.1:443".parse().unwrap(),
            role,
            limit,
            share: 0.9,
            confidence: 0.97,
            limits: vec![Candidate { limit, share: 0.9 }],
            account: Vec::new(),
            time: Duration::from_secs(3),
            held: Duration::from_secs(3),
            lost: Duration::from_millis(2700),
            goodput: Rate::from_bits_per_sec(20_000_000),
            lifetime: None,
            headline: headline(limit, 0.97),
            acts,
            remedy: Some(Remedy::ReadFaster),
            causes: Vec::new(),
            findings: Vec::new(),
            path: None,
        },
        namespace: "host".into(),
        process: Some(Process {
            pid: 7,
            name: "cu\u{1b}[31mrl".into(),
            command: String::new(),
            cgroup: None,
            container: None,
            pod: None,
        }),
        uid: 0,
        peer_site: None,
    }
}

#[test]
fn the_peer_is_told_from_this_host_and_nothing_is_obeyed() {
    let text = render(&[connection(Acts::Peer, End::Sender)], &[], Layout::default());
    assert!(text.contains("its tcp_rmem or SO_RCVBUF"), "{text}");
    assert!(text.contains("20.0") && text.contains("90.0"), "{text}");
    assert!(!text.contains('\u{1b}'), "a process's name is shown, not obeyed: {text}");
    let here = render(&[connection(Acts::Here, End::Receiver)], &[], Layout::default());
    assert!(here.contains("who must act: this host"), "{here}");
}

#[test]
fn the_peer_has_its_site_beside_its_address_and_that_is_not_obeyed_either() {
    let mut known = connection(Acts::Peer, End::Sender);
    let site = PeerSite { site: "fra\u{9b}1".into(), provider: None, region: None };
    known.peer_site = Some(site);
    let text = render(&[known], &[], Layout::default());
    assert_eq!(text.matches("192.0.2.1:443 fra").count(), 2, "table and reasons: {text}");
    assert!(!text.contains('\u{9b}'), "{text}");
}

#[test]
fn the_table_says_how_sure_an_answer_is_and_a_guess_is_no_answer() {
    let sure = render(&[connection(Acts::Peer, End::Sender)], &[], Layout::default());
    let row = sure.lines().find(|line| line.contains("20.0")).unwrap();
    assert!(row.contains("receive window") && row.contains(" 97 "), "{sure}");
    let mut guess = connection(Acts::Unknown, End::Sender);
    guess.answer.headline = headline(Limit::ReceiveWindow, 0.3);
    let text = render(&[guess], &[], Layout::default());
    let row = text.lines().find(|line| line.contains("20.0")).unwrap();
    assert!(row.contains("perhaps receive window") && row.contains(" 30 "), "{text}");
    assert!(row.trim_end().ends_with("not known"), "{text}");
}

#[test]
fn a_server_that_is_waited_for_is_the_answer_where_nothing_moved() {
    let mut waiting = connection(Acts::Unknown, End::Sender);
    waiting.answer.limit = Limit::Unknown;
    waiting.answer.headline = headline(Limit::Unknown, 0.0);
    waiting.answer.account = vec![AccountPart {
        owner: Owner::ServerApplication,
        cause: Cause::ServerThinks,
        direction: None,
        time: Duration::from_secs(3),
        lost: Duration::from_secs(3),
    }];
    let text = render(&[waiting.clone()], &[], Layout::default());
    for part in [
        "server thinks 100 %",
        "the time: 100.0 % server's program (server thinks)",
        "to change it: find what the server's program waits for",
        "who must act: the server: its program",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A limit of the data that is known is the answer, whatever else was waited for.
    waiting.answer.limit = Limit::ReceiveWindow;
    let text = render(&[waiting], &[], Layout::default());
    assert!(!text.contains("server thinks 100 %"), "{text}");
}

/// What held the data of a moment is no answer where nobody wanted anything for the rest.
#[test]
fn a_connection_that_idles_is_not_held_by_what_it_did_before() {
    let part = |cause, millis| AccountPart {
        owner: Owner::Nobody,
        cause,
        direction: None,
        time: Duration::from_millis(millis),
        lost: Duration::ZERO,
    };
    let mut idle = connection(Acts::Peer, End::Sender);
    idle.answer.account =
        vec![part(Cause::Idle, 2_850), part(Cause::Transfer(Limit::ReceiveWindow), 150)];
    let row_of = |one: &LiveConnection| {
        let text = render(std::slice::from_ref(one), &[], Layout::default());
        text.lines().find(|line| line.contains("20.0")).unwrap().to_owned()
    };
    let row = row_of(&idle);
    assert!(row.contains("idle 95 %") && row.trim_end().ends_with("nobody"), "{row}");
    assert!(row.contains(" 95.0 ") && row.contains(" 0.0 "), "{row}");
    assert!(!row.contains("receive window"), "{row}");
    idle.answer.account[0].time = Duration::from_millis(140);
    assert!(row_of(&idle).contains("receive window"), "for less than half of the time");
}

#[test]
fn in_chinese_nothing_stays_english_and_the_width_is_kept_in_cells() {
    use crate::table::escape;
    use fullpipe_flow::Language;
    use unicode_width::UnicodeWidthStr;
    for width in 60..130u16 {
        let layout =
            Layout { width: Some(width), language: Language::Chinese, ..Layout::default() };
        let text = render(&[connection(Acts::Peer, End::Sender)], &[], layout);
        assert!(text.contains("接收窗口") && text.contains("由谁处理：对端"), "{text}");
        for line in text.lines() {
            // An address is never broken.
            assert!(line.width() <= usize::from(width) || line.contains("[2001"), "{line}");
        }
        let process = escape::in_line("cu\u{1b}[31mrl");
        let rest = text.replace(&*process, "");
        let words = rest.split(|letter: char| !letter.is_ascii_alphabetic() && letter != '_');
        for word in words.filter(|word| word.len() > 3 && word.chars().all(char::is_lowercase)) {
            assert!(["json", "less"].contains(&word), "{word}: {rest}");
        }
    }
}
