//! Keys that make addresses of the input of others.

use super::*;
use fullpipe_flow::capture::anonymize::AddressMap;
use fullpipe_flow::capture::write::{file_header, record_header};
use fullpipe_model::units::Instant;
use std::path::Path;

/// Hosts of one network that all speak with each other.
const HOSTS: std::ops::Range<u8> = 1..7;

fn host(number: u8) -> [u8; 4] {
    [169, 254, 77, number]
}

/// A SYN of each host to each other one.
fn capture() -> Vec<u8> {
    let mut file = file_header(65_535).to_vec();
    for (source, destination) in HOSTS.flat_map(|one| HOSTS.map(move |other| (one, other))) {
        if source != destination {
            let at = Instant::from_nanos(u64::from(source) << 32 | u64::from(destination) << 16);
            let ip = [0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0];
            let tcp = [0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0];
            let packet = [&ip[..], &host(source), &host(destination), &tcp].concat();
            file.extend(record_header(at, packet.len() as u32, packet.len() as u32));
            file.extend(packet);
        }
    }
    file
}

fn key(number: u64) -> Key {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&number.to_be_bytes());
    Key(key)
}

/// Whether two of the hosts become two of them.
fn is_unlucky(key: &Key) -> bool {
    let mut map = AddressMap::new(key);
    let hosts = HOSTS.map(host);
    let is_host = |address: &[u8; 4]| hosts.clone().any(|host| host == *address);
    let [one, other] = map.pair(host(1), host(2));
    is_host(&one) && is_host(&other) && [one, other] != [host(1), host(2)]
}

fn asked(folder: &Path) -> (Anonymize, TwiceRead) {
    let [input, output] = ["in.pcap", "out.pcapng"].map(|name| folder.join(name));
    std::fs::write(&input, capture()).unwrap();
    let source = TwiceRead::open(&input, &output).unwrap();
    let asked = Anonymize {
        input,
        output,
        key_file: None,
        ports: false,
        shift_time: false,
        zeroes: false,
        no_check: false,
        json: false,
    };
    (asked, source)
}

#[test]
fn another_key_is_drawn_where_one_makes_addresses_of_the_input() {
    let unlucky = (0..).map(key).find(is_unlucky).unwrap();
    let lucky = (0..).map(key).find(|key| !is_unlucky(key)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (asked, source) = asked(folder.path());
    let code = asked.under([Ok(unlucky), Ok(lucky)].into_iter(), &source).unwrap();
    assert!(code == 0 && asked.output.exists());
    std::fs::remove_file(&asked.output).unwrap();
    let all = std::iter::repeat_with(|| Ok(unlucky)).take(MOST_KEYS);
    assert!(asked.under(all, &source).is_err() && !asked.output.exists());
    let said = asked.attempt(&unlucky, &source).unwrap().outcome.refusal();
    assert!(said.english().contains("please report"), "{said:?}");
    let given = Anonymize { key_file: Some("a.key".into()), ..asked };
    let said = given.attempt(&unlucky, &source).unwrap().outcome.refusal();
    assert!(said.english().contains("try another one"), "{said:?}");
}
