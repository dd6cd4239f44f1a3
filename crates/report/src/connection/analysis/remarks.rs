//! What is to be known of a capture as a whole before its connections are read.

use fullpipe_flow::Counts;

/// Sentences about what a capture tells of itself: packets that it dropped, and times that go back.
pub fn remarks(counts: &Counts) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(dropped @ 1..) = counts.dropped {
        remarks.push(format!(
            "{dropped} packets were dropped while this was captured, by its own counters \
             (isb_ifdrop, isb_osdrop): some of what looks lost may have been missed; raise the \
             sniffer's buffer (dumpcap -B, tcpdump -B) or cut packets (-s 128)"
        ));
    }
    let (backwards, unsorted) = (counts.backwards, counts.unsorted);
    let back = format!(
        "the times of {backwards} packets go back, as they do where several interfaces or clocks \
         write one file"
    );
    match (backwards, unsorted) {
        (0, _) => {}
        (_, 0) => {
            remarks.push(format!("{back}: they were sorted by time, and numbered after that"))
        }
        (_, unsorted) if unsorted == backwards => {
            remarks.push(format!("{back}: they were taken as they came"));
        }
        (_, unsorted) => remarks.push(format!(
            "{back}: they were sorted by time, and numbered after that, but for {unsorted}, which \
             came too late for it"
        )),
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_to_be_known_is_told() {
        let told = |dropped, backwards, unsorted| {
            remarks(&Counts { dropped, backwards, unsorted, ..Counts::default() })
        };
        assert!(told(None, 0, 0).is_empty() && told(Some(0), 0, 0).is_empty());
        assert!(told(Some(1234), 0, 0)[0].starts_with("1234 packets were dropped"));
        assert!(told(None, 7, 0)[0].ends_with("sorted by time, and numbered after that"));
        assert!(told(None, 7, 7)[0].ends_with("as they came"));
        assert!(told(None, 7, 1)[0].contains("but for 1,"));
    }
}
