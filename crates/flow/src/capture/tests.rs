use super::*;
use proptest::prelude::*;

/// Time, kept bytes and original length of a packet.
type Found = (u64, Vec<u8>, usize);

fn packets(bytes: &[u8], chunk: usize) -> (Vec<Found>, Result<Summary, String>) {
    let mut reader = Reader::new();
    let mut found = Vec::new();
    for piece in bytes.chunks(chunk.max(1)) {
        reader.feed(piece);
        loop {
            match reader.next_packet() {
                Ok(Some(packet)) => {
                    found.push((packet.at.as_nanos(), packet.data.to_vec(), packet.original_length))
                }
                Ok(None) => break,
                Err(error) => return (found, Err(error.to_string())),
            }
        }
    }
    (found, Ok(reader.finish()))
}

fn pcap_file() -> Vec<u8> {
    let mut file = write::file_header(96).to_vec();
    for (at, data, original) in
        [(1_000_000_007, &[1, 2, 3][..], 3), (4_000_000_000, &[4; 96], 1500)]
    {
        file.extend(write::record_header(Instant::from_nanos(at), data.len() as u32, original));
        file.extend(data);
    }
    file
}

/// A little-endian block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes(), &length[..], body, &length].concat()
}

/// A section header, an interface with nanoseconds, and one packet; little-endian.
fn pcapng_file() -> Vec<u8> {
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let interface = [&[101, 0, 0, 0][..], &[0; 4], &[9, 0, 1, 0, 9, 0, 0, 0], &[0; 4]].concat();
    let at = 5_000_000_001_u64;
    let packet = [
        &[0; 4][..],
        &((at >> 32) as u32).to_le_bytes(),
        &(at as u32).to_le_bytes(),
        &3_u32.to_le_bytes(),
        &60_u32.to_le_bytes(),
        &[7, 8, 9, 0],
    ]
    .concat();
    [
        block(0x0a0d_0d0a, &section),
        block(1, &interface),
        block(0x0bad, &[1; 4000]),
        block(6, &packet),
    ]
    .concat()
}

#[test]
fn what_was_written_is_read() {
    let (found, summary) = packets(&pcap_file(), usize::MAX);
    assert_eq!(found, [(1_000_000_007, vec![1, 2, 3], 3), (4_000_000_000, vec![4; 96], 1500)]);
    assert_eq!(summary, Ok(Summary { packets: 2, cut: 0, recognised: true, dropped: None }));
}

#[test]
fn pcapng_keeps_its_resolution_and_unknown_blocks_are_passed() {
    let (found, summary) = packets(&pcapng_file(), usize::MAX);
    assert_eq!(found, [(5_000_000_001, vec![7, 8, 9], 60)]);
    assert_eq!(summary, Ok(Summary { packets: 1, cut: 0, recognised: true, dropped: None }));
}

#[test]
fn every_byte_order_and_precision_is_told_by_the_magic() {
    let words = |magic: u32, big: bool| {
        let order = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
        let mut file = [magic, 0, 0, 0, 100, 101].map(order).concat();
        let version = if big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
        file[4..8].copy_from_slice(&version);
        file.extend([3, 5, 1, 1].map(order).concat());
        file.push(0x45);
        packets(&file, 7).0
    };
    for big in [false, true] {
        assert_eq!(words(0xa1b2_c3d4, big), [(3_000_005_000, vec![0x45], 1)]);
        assert_eq!(words(0xa1b2_3c4d, big), [(3_000_000_005, vec![0x45], 1)]);
    }
}

#[test]
fn snoop_is_read_and_its_padding_passed() {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let header = [&b"snoop\0\0\0"[..], &words(&[2, 4])].concat();
    let record = [&words(&[60, 3, 28, 0, 5, 7])[..], &[1, 2, 3, 0]].concat();
    let (found, summary) = packets(&[&header[..], &record, &record[..20]].concat(), 3);
    assert_eq!(found, [(5_000_007_000, vec![1, 2, 3], 60)]);
    assert_eq!(summary, Ok(Summary { packets: 1, cut: 20, recognised: true, dropped: None }));
    let endless = [&header[..], &[0; 48]].concat();
    assert!(packets(&endless, 100).1.unwrap_err().contains("record at byte 16 holds less"));
    let lies = [&header[..], &words(&[60, 3, 24, 0, 5, 7]), &[0; 9]].concat();
    assert!(packets(&lies, 100).1.unwrap_err().contains("record at byte 16 holds less"));
}

#[test]
fn what_is_no_capture_is_refused_with_its_first_bytes() {
    let (found, summary) = packets(b"PK\x03\x04 not a capture", 5);
    assert!(found.is_empty());
    assert!(summary.unwrap_err().contains("neither pcap, pcapng nor snoop"));
    // Bytes are shown as the text that they mostly are, and never obeyed.
    for (magic, shown) in [(*b"GET ", "'GET '"), ([0x1b, b'[', 0xef, b'\n'], r"'\x1b[\xef\n'")] {
        let told = ReadError::Format { magic }.to_string();
        assert!(told.contains(&format!("begins with {shown},")), "{told}");
    }
    let (_, summary) = packets(b"", 5);
    assert_eq!(summary, Ok(Summary { packets: 0, cut: 0, recognised: false, dropped: None }));
}

proptest! {
    /// However the bytes arrive and wherever they end, the answer is a prefix of the whole file's.
    #[test]
    fn a_cut_gives_a_prefix(ng: bool, cut: prop::sample::Index, chunk in 1_usize..200) {
        let file = if ng { pcapng_file() } else { pcap_file() };
        let (whole, _) = packets(&file, usize::MAX);
        let end = cut.index(file.len() + 1);
        let (found, summary) = packets(&file[..end], chunk);
        prop_assert_eq!(&whole[..found.len()], &found[..]);
        let summary = summary.unwrap();
        prop_assert_eq!(summary.packets as usize, found.len());
        if end == file.len() {
            prop_assert_eq!(found.len(), whole.len());
            prop_assert_eq!(summary.cut, 0);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(ng: bool, at: prop::sample::Index, junk: Vec<u8>, chunk in 1_usize..200) {
        let mut file = if ng { pcapng_file() } else { pcap_file() };
        let at = at.index(file.len());
        file.splice(at..(at + junk.len()).min(file.len()), junk);
        let (found, _) = packets(&file, chunk);
        prop_assert!(found.iter().map(|(_, data, _)| data.len()).sum::<usize>() <= file.len());
    }
}

/// Statistics of the first interface, which count from its start.
fn statistics(received: u64, dropped_there: u64, dropped_here: u64) -> Vec<u8> {
    let option = |code: u16, value: u64| {
        [&code.to_le_bytes()[..], &8_u16.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    let options = [option(4, received), option(5, dropped_there), option(7, dropped_here)].concat();
    block(5, &[&[0; 12][..], &options, &[0; 4]].concat())
}

#[test]
fn the_counters_of_a_capture_tell_what_it_dropped() {
    let file = [pcapng_file(), statistics(10, 1, 0), statistics(2000, 1200, 34)].concat();
    for chunk in [1, 7, file.len()] {
        assert_eq!(packets(&file, chunk).1.unwrap().dropped, Some(1234), "the last ones count");
    }
    let twice = [file.clone(), pcapng_file(), statistics(10, 0, 6)].concat();
    assert_eq!(packets(&twice, 4096).1.unwrap().dropped, Some(1240), "two sections");
    let none = [pcapng_file(), statistics(10, 0, 0)].concat();
    assert_eq!(packets(&none, 4096).1.unwrap().dropped, Some(0));
    let short = [pcapng_file(), block(5, &[0, 0, 0, 0, 9, 9, 9, 9])].concat();
    assert_eq!(packets(&short, 4096).1.unwrap().dropped, None, "a block without counters");
}

#[test]
fn the_counters_of_a_big_endian_capture_are_read_too() {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_be_bytes();
        [&kind.to_be_bytes(), &length[..], body, &length].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_be_bytes()[..], &[0, 1, 0, 0], &[0xff; 8]].concat();
    let option = [&[0, 5, 0, 8][..], &1234_u64.to_be_bytes(), &[0; 4]].concat();
    let file = [
        block(0x0a0d_0d0a, &section),
        block(1, &[0, 101, 0, 0, 0, 0, 0, 0]),
        block(5, &[&[0; 12][..], &option].concat()),
    ]
    .concat();
    assert_eq!(packets(&file, 4096).1.unwrap().dropped, Some(1234));
}
