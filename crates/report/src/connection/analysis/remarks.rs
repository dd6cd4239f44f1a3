//! What is to be known of a capture as a whole before its connections are read.

use fullpipe_flow::Counts;
use fullpipe_flow::Language;

/// Sentences about what a capture tells of itself: packets that it dropped, and times that go back.
pub fn remarks(counts: &Counts, language: Language) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(dropped @ 1..) = counts.dropped {
        remarks.push(match language {
            Language::English => format!(
                "{dropped} packets were dropped while this was captured, by its own counters \
                 (isb_ifdrop, isb_osdrop): some of what looks lost may have been missed; raise the \
                 sniffer's buffer (dumpcap -B, tcpdump -B) or cut packets (-s 128)"
            ),
            Language::Chinese => format!(
                "抓包时丢弃了 {dropped} 个数据包（据抓包文件自带的计数 isb_ifdrop、isb_osdrop）：\
                 看似丢失的数据可能只是没有抓到；请增大抓包缓冲区（dumpcap -B、tcpdump -B），或\
                 缩短每个数据包的长度（-s 128）"
            ),
        });
    }
    if counts.backwards > 0 {
        remarks.push(backwards(counts, language));
    }
    remarks
}

/// That times go back, and what was done about it.
fn backwards(counts: &Counts, language: Language) -> String {
    let Counts { backwards, unsorted, .. } = *counts;
    match language {
        Language::English => {
            let what = match unsorted {
                0 => "they were sorted by time, and numbered after that".into(),
                _ if unsorted == backwards => "they were taken as they came".into(),
                _ => format!(
                    "they were sorted by time, and numbered after that, but for {unsorted}, which \
                     came too late for it"
                ),
            };
            format!(
                "the times of {backwards} packets go back, as they do where several interfaces or \
                 clocks write one file: {what}"
            )
        }
        Language::Chinese => {
            let what = match unsorted {
                0 => "已按时间排序，并据此编号".into(),
                _ if unsorted == backwards => "已按文件中的顺序读取".into(),
                _ => format!("已按时间排序，并据此编号，其中 {unsorted} 个来得太晚，未能排序"),
            };
            format!(
                "有 {backwards} 个数据包的时间倒退，多个网卡或多个时钟写入同一文件时会这样：{what}"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_to_be_known_is_told() {
        let told = |dropped, backwards, unsorted| {
            remarks(
                &Counts { dropped, backwards, unsorted, ..Counts::default() },
                Language::English,
            )
        };
        assert!(told(None, 0, 0).is_empty() && told(Some(0), 0, 0).is_empty());
        assert!(told(Some(1234), 0, 0)[0].starts_with("1234 packets were dropped"));
        assert!(told(None, 7, 0)[0].ends_with("sorted by time, and numbered after that"));
        assert!(told(None, 7, 7)[0].ends_with("as they came"));
        assert!(told(None, 7, 1)[0].contains("but for 1,"));
    }
}
