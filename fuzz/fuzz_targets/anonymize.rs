//! An arbitrary capture as it may be shared: the output is read to its end, with as many packets as
//! the input, and is searched for what the input had. A find is no fault here: a capture that is made
//! up may repeat an address in a field that stays. The first byte says what is asked for.
#![no_main]

use fullpipe_flow::capture::Reader;
use fullpipe_flow::capture::anonymize::{Anonymizer, Key, InputMarks, AnonymizeOptions, Search, SharedFile};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((asked, capture)) = bytes.split_first() else { return };
    let options =
        AnonymizeOptions { ports: asked & 1 != 0, shift_time: asked & 2 != 0, zeroes: asked & 4 != 0 };
    let mut anonymizer = Anonymizer::new(&Key([*asked; 32]), options);
    let (mut reader, mut out, mut marks) = (Reader::new(), Vec::new(), InputMarks::default());
    let mut file = SharedFile::begin(&mut out);
    let mut packets = 0;
    reader.feed(capture);
    while let Ok(Some((packet, interfaces))) = reader.next_with_interfaces() {
        let shared = file.packet(&packet, interfaces, &mut anonymizer, &mut out);
        assert!(shared.data.len() <= packet.data.len());
        marks.packet(packet.data, shared.payload);
        packets += 1;
    }
    file.end(&reader.finish(), &mut out);
    marks.finish(anonymizer.addresses());
    let mut search = Search::new(&marks);
    search.look(&out);
    let (count, finds) = search.finish();
    assert!(finds.len() as u64 <= count && finds.iter().all(|find| find.offset <= out.len() as u64));
    let mut reader = Reader::new();
    reader.feed(&out);
    while reader.next_packet().expect("what we write is read").is_some() {}
    let summary = reader.finish();
    assert_eq!((summary.packets, summary.cut), (packets, 0));
});
