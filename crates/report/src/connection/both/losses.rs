//! What became of the packets of one direction, in sentences.

use super::NamedWay;
use fullpipe_flow::Language;
use fullpipe_flow::connection::pair::SegmentCount;
use fullpipe_model::units::{Bytes, Duration};

impl NamedWay<'_> {
    /// What was lost, the most first.
    pub(super) fn losses(&self, language: Language) -> Vec<String> {
        let way = self.way;
        let mut found = vec![
            (way.lost.segments, self.between(language)),
            (way.lost_before.segments, self.outside(&way.lost_before, true, language)),
            (way.lost_after.segments, self.outside(&way.lost_after, false, language)),
        ];
        found.retain(|(lost, _)| *lost > 0);
        found.sort_by_key(|(lost, _)| std::cmp::Reverse(*lost));
        found.into_iter().map(|(_, sentence)| sentence).collect()
    }

    /// That so much was lost, on this direction's way.
    fn amount(&self, lost: &SegmentCount, language: Language) -> String {
        let judged = self.way.judged();
        let (of, part) = (judged.segments, 100.0 * lost.part_of(&judged));
        let (to, lost) = (self.to(language), lost.segments);
        match language {
            Language::English => format!("{to}, {lost} of {of} segments ({part:.2} %) were lost"),
            Language::Chinese => format!("{to}，{of} 个报文段中有 {lost} 个（{part:.2} %）"),
        }
    }

    /// That it was lost before the first place, or after the second.
    fn outside(&self, lost: &SegmentCount, is_before: bool, language: Language) -> String {
        let NamedWay { near, far, .. } = self;
        let amount = self.amount(lost, language);
        match (language, is_before) {
            (Language::English, true) => {
                format!("{amount} before {near}: in the sender's host or between it and that place")
            }
            (Language::English, false) => {
                format!("{amount} after {far}: between that place and the receiver, or in its host")
            }
            (Language::Chinese, true) => {
                format!("{amount}在到达 {near} 之前丢失：在发送方主机内，或在它与该处之间")
            }
            (Language::Chinese, false) => {
                format!("{amount}在经过 {far} 之后丢失：在该处与接收方之间，或在其主机内")
            }
        }
    }

    pub(super) fn to(&self, language: Language) -> &'static str {
        match (language, self.to_client) {
            (Language::English, true) => "to the client",
            (Language::English, false) => "to the server",
            (Language::Chinese, true) => "发往客户端",
            (Language::Chinese, false) => "发往服务器",
        }
    }

    fn between(&self, language: Language) -> String {
        let NamedWay { way, near, far, .. } = self;
        let (amount, why) = (self.amount(&way.lost, language), self.why(language));
        let (runs, longest) = (way.runs, way.longest_run);
        let often = if runs == 1 { "once, ".to_owned() } else { format!("{runs} times, ") };
        match language {
            Language::English => format!(
                "{amount} between {near} and {far}, {often}at most {longest} in a row; {why}"
            ),
            Language::Chinese => format!(
                "{amount}在 {near} 与 {far} 之间丢失，共 {runs} 次，每次最多连续 {longest} 个；{why}"
            ),
        }
    }

    /// What the packets around the losses say of their reason.
    fn why(&self, language: Language) -> String {
        if let Some(size) = self.way.nothing_above.map(Bytes::get) {
            return match language {
                Language::English => format!(
                    "each had more than {size} bytes, and nothing larger arrived: packets of that \
                     size do not pass (path MTU)"
                ),
                Language::Chinese => format!(
                    "丢失的都超过 {size} 字节，而没有更大的到达：这样大的数据包过不去（路径 MTU）"
                ),
            };
        }
        let Some((at, queue)) = self.way.queue_at_loss.zip(self.way.queue) else {
            return match language {
                Language::English => "no delay says by what".into(),
                Language::Chinese => "原因无法从时延看出".into(),
            };
        };
        if let Some(words) = self.without_queue(queue.most, language) {
            return words;
        }
        // Where a queue is full, what comes just before a loss has waited nearly the longest.
        let waited_long = at.saturating_mul(2) >= queue.most;
        match (language, waited_long && at >= SHORT_QUEUE, waited_long && at >= JITTER) {
            (Language::English, true, _) => format!(
                "what came just before had queued for {at} (median): a queue between the two was full"
            ),
            (Language::English, false, true) => format!(
                "what came just before had queued for {at} (median), hardly more than ever: a \
                 short queue was full, or something drops by itself"
            ),
            (Language::English, false, false) if at < JITTER => {
                "what came just before had not queued: no full queue dropped them".into()
            }
            (Language::Chinese, false, false) if at < JITTER => {
                "紧挨在前的数据包没有排队：不是队列已满造成的".into()
            }
            (Language::English, false, false) => format!(
                "what came just before had queued for {at} (median) of {} at most: no full queue \
                 dropped them",
                queue.most
            ),
            (Language::Chinese, true, _) => {
                format!("紧挨在前的数据包排队 {at}（中位数）：两处之间有队列已满")
            }
            (Language::Chinese, false, true) => format!(
                "紧挨在前的数据包排队 {at}（中位数），与最长的相差无几：短队列已满，或设备自行丢弃"
            ),
            (Language::Chinese, false, false) => format!(
                "紧挨在前的数据包排队 {at}（中位数），最长为 {}：不是队列已满造成的",
                queue.most
            ),
        }
    }

    /// What drops where nothing queues, unless it may be chance.
    fn without_queue(&self, most: Duration, language: Language) -> Option<String> {
        if let Some(policed) = self.way.policed {
            return Some(match language {
                Language::English => format!(
                    "nothing queued there, and from one drop to the next {} of data passed: a \
                     policer drops what comes above that",
                    policed.rate
                ),
                Language::Chinese => format!(
                    "那里没有排队，每两次丢弃之间通过的数据都是 {}：限速丢弃超出的部分",
                    policed.rate
                ),
            });
        }
        // Of 60 policers of generated runs 57 are like that, and of 4 links without a queue that
        // lost by chance the one whose losses come in bursts.
        let in_runs =
            self.way.longest_run >= RUN_LEAST && self.way.lost.segments * 4 >= self.way.runs * 5;
        (most < SHORT_QUEUE && in_runs).then(|| match language {
            Language::English => "nothing queued there, and several were lost in a row: what \
                                  drops has no queue (a policer), or loses in bursts"
                .into(),
            Language::Chinese => {
                "那里没有排队，却连续丢失多个：丢弃者没有队列（限速），或成批丢失".into()
            }
        })
    }

    /// What is to be known beside what was lost.
    pub(super) fn remarks(&self, language: Language) -> Vec<String> {
        let NamedWay { way, near, far, .. } = self;
        let to = self.to(language);
        let left = way.not_judged.part_of(&way.sent) >= MANY;
        let of_count = [
            (if left { way.not_judged.segments } else { 0 }, Remark::NotJudged(far)),
            (way.missed_at_near.segments, Remark::Missed(near)),
            (way.missed_at_far.segments, Remark::Missed(far)),
            (way.needless.segments, Remark::Needless),
            (way.duplicated.segments, Remark::Duplicated),
            (way.reordered, Remark::Reordered),
            (way.reordered_before.segments, Remark::ReorderedBefore(near)),
            (way.acknowledgements_lost, Remark::AcknowledgementsLost(way.acknowledgements)),
            (
                way.acknowledgements_missed,
                Remark::AcknowledgementsMissed(far, way.acknowledgements),
            ),
        ];
        let said = of_count.into_iter().filter(|(count, _)| *count > 0);
        said.map(|(count, remark)| remark.words(to, count, language)).collect()
    }
}

/// Chance hardly loses so many in a row.
const RUN_LEAST: u64 = 4;
/// A queue that is this long when it is full can be told from chance.
const SHORT_QUEUE: Duration = Duration::from_millis(1);
/// Delays differ by this without a queue.
const JITTER: Duration = Duration::from_micros(50);

/// From this part on, what was not judged is told: the last packets are under way as a capture
/// ends.
const MANY: f64 = 0.01;

/// So many segments, with a verb for one and for several.
fn segments(count: u64, of_one: &str, of_several: &str) -> String {
    match count {
        1 => format!("1 segment {of_one}"),
        _ => format!("{count} segments {of_several}"),
    }
}

/// A number that is no loss of data.
enum Remark<'a> {
    NotJudged(&'a str),
    Missed(&'a str),
    Needless,
    Duplicated,
    Reordered,
    ReorderedBefore(&'a str),
    AcknowledgementsLost(u64),
    AcknowledgementsMissed(&'a str, u64),
}

impl Remark<'_> {
    fn words(&self, to: &str, count: u64, language: Language) -> String {
        match (language, self) {
            (Language::English, Remark::NotJudged(name)) => format!(
                "{to}, {} not judged: when sent, {name} had not begun or has no more packets",
                segments(count, "is", "are")
            ),
            (Language::Chinese, Remark::NotJudged(name)) => {
                format!(
                    "{to}，有 {count} 个报文段未作判断：发送时 {name} 尚未开始，或已没有更多数据包"
                )
            }
            (Language::English, Remark::Missed(name)) => format!(
                "{to}, {} missed by {name}: the sniffer dropped what passed there, the path did not",
                segments(count, "was", "were")
            ),
            (Language::English, Remark::Needless) => format!(
                "{to}, {} sent again although already acknowledged by the receiver",
                segments(count, "was", "were")
            ),
            (Language::English, Remark::Duplicated) => {
                format!("{to}, {} duplicated by the path", segments(count, "was", "were"))
            }
            (Language::English, Remark::Reordered) => {
                format!("{to}, {} overtaken between the two", segments(count, "was", "were"))
            }
            (Language::English, Remark::ReorderedBefore(name)) => format!(
                "{to}, {} overtaken before {name}: by the sender's host, its card, or what lies \
                 between",
                segments(count, "was", "were")
            ),
            (Language::English, Remark::AcknowledgementsLost(of)) => {
                format!("{to}, {count} of {of} acknowledgements were lost between the two")
            }
            (Language::English, Remark::AcknowledgementsMissed(name, of)) => format!(
                "{to}, {count} of {of} acknowledgements are not in {name}, which misses packets: \
                 whether they were lost cannot be told"
            ),
            (Language::Chinese, Remark::AcknowledgementsMissed(name, of)) => format!(
                "{to}，{of} 个确认中有 {count} 个不在 {name} 中，而该抓包有遗漏：是否丢失无法判断"
            ),
            (Language::Chinese, Remark::Missed(name)) => format!(
                "{to}，有 {count} 个报文段经过了 {name} 却不在其抓包中：是抓包程序漏掉的，不是路径丢的"
            ),
            (Language::Chinese, Remark::Needless) => {
                format!("{to}，有 {count} 个报文段在接收方确认之后又被重传")
            }
            (Language::Chinese, Remark::Duplicated) => {
                format!("{to}，有 {count} 个报文段到达两次：路径复制了它们")
            }
            (Language::Chinese, Remark::Reordered) => {
                format!("{to}，有 {count} 个报文段在两处之间被后发的超过")
            }
            (Language::Chinese, Remark::ReorderedBefore(name)) => format!(
                "{to}，有 {count} 个报文段在到达 {name} 之前被后发的超过：由发送方主机、其网卡或途中设备造成"
            ),
            (Language::Chinese, Remark::AcknowledgementsLost(of)) => {
                format!("{to}，{of} 个确认中有 {count} 个在两处之间丢失")
            }
        }
    }
}
