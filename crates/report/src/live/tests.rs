use super::*;
use fullpipe_flow::limit::Candidate;
use fullpipe_flow::live::{Answer, Process};
use fullpipe_model::units::Rate;

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
            time: Duration::from_secs(3),
            held: Duration::from_secs(3),
            lost: Duration::from_millis(2700),
            goodput: Rate::from_bits_per_sec(20_000_000),
            lifetime: None,
            acts,
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
        }),
        uid: 0,
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
