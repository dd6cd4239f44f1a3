//! What decided, in Chinese: each English sentence about a number of the judge has one.

/// The sentence, with `{}` where the number stands; the English one where there is none, which a
/// test forbids.
pub(super) fn says(english: &'static str) -> &'static str {
    SENTENCES.iter().find(|(known, _)| *known == english).map_or(english, |(_, chinese)| chinese)
}

pub(super) const SENTENCES: [(&str, &str); 112] = [
    (
        "a round trip carries {} of the 90th percentile of the windows",
        "每个往返传输窗口第 90 百分位的 {}",
    ),
    ("a round trip carries {} of the median window", "每个往返传输窗口中位数的 {}"),
    ("a round trip carries {} segments", "每个往返传输 {} 个报文段"),
    (
        "a round trip, with its queueing delay, carries {} of the window in the 90th percentile",
        "每个往返（含排队延迟）传输窗口的 {}（第 90 百分位）",
    ),
    (
        "a round trip, with its queueing delay, carries {} of the window in the median",
        "每个往返（含排队延迟）传输窗口的 {}（中位数）",
    ),
    (
        "a silence of 200 ms or more ended with a repair in {} of the intervals",
        "{} 的时段中有 200 ms 以上的静默以重传结束",
    ),
    ("bursts come every {} round trips", "每 {} 个往返到达一次突发"),
    (
        "congestion control was repairing loss in {} of the samples",
        "{} 的采样中拥塞控制正在恢复丢包",
    ),
    ("data came without bursts", "数据到达时没有突发"),
    ("data not yet sent fills {} of the send buffer", "尚未发送的数据占发送缓冲区的 {}"),
    (
        "from one loss to the next the rate varies by {} of its mean (standard deviation)",
        "两次丢包之间速率的标准差为均值的 {}",
    ),
    (
        "from sample to sample, the median rate is {} of the 95th percentile",
        "逐次采样的速率，中位数为第 95 百分位的 {}",
    ),
    (
        "in {} of the intervals nothing was in flight for a tenth of it or more",
        "{} 的时段中有十分之一以上的时间没有在途数据",
    ),
    (
        "in {} of the intervals the data in flight came to within 5 % of its most",
        "{} 的时段中在途数据与其最大值相差不到 5 %",
    ),
    (
        "interval by interval the rules name loss for {} of the time",
        "逐时段的规则认为 {} 的时间受限于丢包",
    ),
    (
        "interval by interval the rules name slow start for {} of the time",
        "逐时段的规则认为 {} 的时间受限于慢启动",
    ),
    (
        "interval by interval the rules name the link for {} of the time",
        "逐时段的规则认为 {} 的时间受限于链路",
    ),
    (
        "interval by interval the rules name the receive window for {} of the time",
        "逐时段的规则认为 {} 的时间受限于接收窗口",
    ),
    (
        "interval by interval the rules name the receiver's application for {} of the time",
        "逐时段的规则认为 {} 的时间受限于接收端应用",
    ),
    (
        "interval by interval the rules name the send buffer for {} of the time",
        "逐时段的规则认为 {} 的时间受限于发送缓冲区",
    ),
    (
        "interval by interval the rules name the sender's application for {} of the time",
        "逐时段的规则认为 {} 的时间受限于发送端应用",
    ),
    ("no queue stood for three round trips", "没有持续三个往返的排队"),
    ("no round trip was measured", "没有测到往返时间"),
    ("no round trip was measured before a loss", "丢包之前没有测到往返时间"),
    ("no stretch was long enough to be timed", "没有足够长的连续数据可供计时"),
    ("nothing came between samples for {} of the time", "{} 的时间里两次采样之间没有数据到达"),
    ("nothing came for {} of the time, in pauses", "{} 的时间处于没有数据到达的停顿"),
    ("nothing came out of order", "没有乱序"),
    ("nothing was in flight for {} of the time", "{} 的时间没有在途数据"),
    ("nothing was sent again", "没有重传"),
    (
        "over four intervals the 10th percentile of the rates is {} of the 90th",
        "以四个时段计，速率的第 10 百分位为第 90 百分位的 {}",
    ),
    (
        "over four intervals the rate varies by {} of its mean (standard deviation)",
        "以四个时段计，速率的标准差为均值的 {}",
    ),
    (
        "over nine intervals the 10th percentile of the rates is {} of the 90th",
        "以九个时段计，速率的第 10 百分位为第 90 百分位的 {}",
    ),
    (
        "over nine intervals the rate varies by {} of its mean (standard deviation)",
        "以九个时段计，速率的标准差为均值的 {}",
    ),
    (
        "over the intervals the 20th percentile of the mean in flight is {} of the 80th",
        "各时段平均在途数据的第 20 百分位为第 80 百分位的 {}",
    ),
    ("segments held for lost are {} of the congestion window", "视为丢失的报文段占拥塞窗口的 {}"),
    (
        "segments in flight times the root of the loss rate are {} (loss alone keeps it near 1.2)",
        "在途报文段数乘以丢包率的平方根为 {}（仅受丢包限制时约为 1.2）",
    ),
    ("slow start has not ended", "慢启动尚未结束"),
    ("something came out of order in {} of the intervals", "{} 的时段中有乱序"),
    ("something was sent again in {} of the intervals", "{} 的时段中有重传"),
    (
        "the 10th percentile of the congestion windows is {} of the 90th",
        "拥塞窗口的第 10 百分位为第 90 百分位的 {}",
    ),
    (
        "the 10th percentile of the data in flight is {} of the 90th",
        "在途数据的第 10 百分位为第 90 百分位的 {}",
    ),
    (
        "the 10th percentile of the intervals' rates is {} of the 90th",
        "各时段速率的第 10 百分位为第 90 百分位的 {}",
    ),
    ("the 10th percentile of the queueing delay is {}", "排队延迟的第 10 百分位为 {}"),
    (
        "the 10th percentile of the queueing delay, as the receiver measures it, is {}",
        "接收方测得的排队延迟的第 10 百分位为 {}",
    ),
    (
        "the 10th percentile of the segments' sizes is {} of a full one",
        "报文段大小的第 10 百分位为满段的 {}",
    ),
    (
        "the 10th percentile of the times from burst to burst is {} of the 90th",
        "突发间隔的第 10 百分位为第 90 百分位的 {}",
    ),
    ("the 10th percentile of the windows is {} of the median", "窗口的第 10 百分位为中位数的 {}"),
    (
        "the 10th percentile of what round trips carry is {} of the 90th",
        "每个往返传输量的第 10 百分位为第 90 百分位的 {}",
    ),
    (
        "the 90th percentile of the data in flight is {} of the median window",
        "在途数据的第 90 百分位为窗口中位数的 {}",
    ),
    (
        "the 90th percentile of the data in flight is {} segments",
        "在途数据的第 90 百分位为 {} 个报文段",
    ),
    ("the 90th percentile of the queueing delay is {}", "排队延迟的第 90 百分位为 {}"),
    (
        "the 90th percentile of the queueing delay, as the receiver measures it, is {}",
        "接收方测得的排队延迟的第 90 百分位为 {}",
    ),
    (
        "the 90th percentile of the rates at a stretch is {} times their median",
        "连续数据速率的第 90 百分位为中位数的 {} 倍",
    ),
    (
        "the 98th percentile of the intervals' rates is {} times the mean",
        "各时段速率的第 98 百分位为均值的 {} 倍",
    ),
    (
        "the data in flight fills {} of the congestion window in the mean",
        "在途数据平均占拥塞窗口的 {}",
    ),
    (
        "the data in flight fills {} of the receive window in the mean",
        "在途数据平均占接收窗口的 {}",
    ),
    (
        "the data in flight fills {} or more of the congestion window in one of ten samples",
        "十分之一的采样中在途数据占拥塞窗口的 {} 以上",
    ),
    (
        "the data in flight is {} times the rate by the path's round trip",
        "在途数据为速率与路径往返时间之积的 {} 倍",
    ),
    ("the handshake was captured", "抓到了握手"),
    ("the handshake was not captured", "没有抓到握手"),
    (
        "the kernel counts the receive window as the limit for {} of the time",
        "内核统计 {} 的时间受限于接收窗口",
    ),
    (
        "the kernel counts the send buffer as the limit for {} of the time",
        "内核统计 {} 的时间受限于发送缓冲区",
    ),
    ("the kernel counts the sender busy for {} of the time", "内核统计发送方 {} 的时间繁忙"),
    (
        "the kernel marks the delivery rate as limited by the application in {} of the samples",
        "{} 的采样中内核把交付速率标为受应用限制",
    ),
    ("the kernel's delivery rate is {} times the mean rate", "内核的交付速率为平均速率的 {} 倍"),
    (
        "the mean of the data in flight is {} of its 90th percentile",
        "在途数据的均值为其第 90 百分位的 {}",
    ),
    (
        "the mean rate is {} of the 95th percentile of the intervals'",
        "平均速率为各时段速率第 95 百分位的 {}",
    ),
    ("the mean rate is {} of the rate at a stretch", "平均速率为连续数据速率的 {}"),
    ("the mean rate is {} of what passed while a queue stood", "平均速率为有排队时速率的 {}"),
    (
        "the median congestion window is {} of the 98th percentile",
        "拥塞窗口的中位数为第 98 百分位的 {}",
    ),
    ("the median congestion window is {} segments", "拥塞窗口的中位数为 {} 个报文段"),
    (
        "the median of the data in flight is {} of the 95th percentile",
        "在途数据的中位数为第 95 百分位的 {}",
    ),
    (
        "the median of the most in flight is {} of the 95th percentile",
        "各时段最大在途数据的中位数为第 95 百分位的 {}",
    ),
    (
        "the median of what round trips carry is {} of the 98th percentile",
        "每个往返传输量的中位数为第 98 百分位的 {}",
    ),
    ("the median queueing delay is {}", "排队延迟的中位数为 {}"),
    (
        "the median queueing delay, as the receiver measures it, is {}",
        "接收方测得的排队延迟的中位数为 {}",
    ),
    (
        "the median rate of the intervals is {} of the 98th percentile",
        "各时段速率的中位数为第 98 百分位的 {}",
    ),
    ("the median segment is {} of a full one", "报文段大小的中位数为满段的 {}"),
    ("the median window is {} of the widest", "窗口的中位数为最大值的 {}"),
    (
        "the next segment did not fit into the window for {} of the time",
        "{} 的时间里窗口容不下下一个报文段",
    ),
    ("the path's round trip is not known", "路径的往返时间未知"),
    ("the path's round trip is {} ms", "路径的往返时间为 {} ms"),
    ("the rate is {} of the pacing rate", "速率为 pacing 速率的 {}"),
    ("the receive buffer is filled to {} in the mean", "接收缓冲区平均占用 {}"),
    ("the receive window is not known", "接收窗口未知"),
    ("the receiver's socket was not sampled", "没有采样接收方的套接字"),
    ("the receiver's socket was sampled", "采样了接收方的套接字"),
    ("the round trip before a loss is {} times the median", "丢包之前的往返时间为中位数的 {} 倍"),
    (
        "the second half of the intervals had {} times as much in flight as the first",
        "后一半时段的在途数据为前一半的 {} 倍",
    ),
    (
        "the second half of the intervals was {} times as fast as the first",
        "后一半时段的速率为前一半的 {} 倍",
    ),
    ("the send buffer is filled to {} in the mean", "发送缓冲区平均占用 {}"),
    (
        "the send buffer is filled to {} or more for a fifth of the time",
        "五分之一的时间里发送缓冲区占用 {} 以上",
    ),
    ("the slow start threshold is {} times the congestion window", "慢启动阈值为拥塞窗口的 {} 倍"),
    ("the socket's memory was not sampled", "没有采样套接字的内存"),
    ("the transfer has {} intervals", "传输共有 {} 个时段"),
    ("the window closed by {} of what was acknowledged", "窗口缩小的量为已确认数据的 {}"),
    ("there was nothing unsent in {} of the samples", "{} 的采样中没有待发送的数据"),
    ("there was unread data in {} of the samples", "{} 的采样中有未读取的数据"),
    ("there were not four episodes of loss to compare", "丢包不足四次，无法比较"),
    ("there were {} ACKs for each segment", "每个报文段有 {} 个 ACK"),
    (
        "unread data is {} of unread data and the window together",
        "未读取的数据占未读数据与窗口之和的 {}",
    ),
    (
        "what a round trip carries varies by {} of its mean (standard deviation)",
        "每个往返传输量的标准差为均值的 {}",
    ),
    (
        "what came out of order by intervals varies by {} of its mean (standard deviation)",
        "各时段乱序量的标准差为均值的 {}",
    ),
    (
        "what the application reads in a round trip is {} of the window",
        "应用在一个往返内读取的数据为窗口的 {}",
    ),
    (
        "what was sent again by intervals varies by {} of its mean (standard deviation)",
        "各时段重传量的标准差为均值的 {}",
    ),
    ("{} ACKs or segments an interval came at a stretch", "每个时段有 {} 个 ACK 或报文段连续到达"),
    ("{} of the data left without an ACK that made room", "{} 的数据不是因 ACK 腾出空间而发出的"),
    ("{} of the new segments were not full", "{} 的新报文段未装满"),
    ("{} of the segments came out of order", "{} 的报文段乱序到达"),
    ("{} of the segments were sent again", "{} 的报文段被重传"),
    ("{} of what came out of order did so in one interval", "{} 的乱序集中在一个时段"),
];
