//! Short terms of tables in Chinese: headings, and the names of lines.

use crate::Layout;
use fullpipe_flow::Language;

impl Layout {
    /// A heading or the name of a line. What has no term of its own, such as `RTT`, stays.
    pub(crate) fn term(self, english: &str) -> &str {
        match self.language {
            Language::English => english,
            Language::Chinese => chinese(english),
        }
    }
}

fn chinese(english: &str) -> &str {
    TERMS.iter().find(|(known, _)| *known == english).map_or(english, |(_, chinese)| chinese)
}

const TERMS: [(&str, &str); 150] = [
    ("direction", "方向"),
    ("segments", "报文段"),
    ("lost between", "两处之间丢失"),
    ("lost before", "之前丢失"),
    ("lost after", "之后丢失"),
    ("again for nothing", "多余重传"),
    ("queue, median", "排队中位数"),
    ("queue, 95 %", "排队 95 %"),
    ("queue, most", "排队最长"),
    ("busy", "繁忙"),
    ("to the client", "发往客户端"),
    ("to the server", "发往服务器"),
    ("process", "进程"),
    ("this end", "本端"),
    ("peer", "对端"),
    ("rate", "速率"),
    ("limited by", "受限于"),
    ("sure", "把握"),
    ("time", "时间"),
    ("lost", "损失"),
    ("who must act", "由谁处理"),
    ("client", "客户端"),
    ("server", "服务器"),
    ("payload", "数据"),
    ("goodput", "有效吞吐"),
    ("retrans", "重传"),
    ("for", "时长"),
    ("of it", "占比"),
    ("who", "归属"),
    ("what", "内容"),
    ("from", "从"),
    ("in flight", "在途"),
    ("client to server", "客户端到服务器"),
    ("server to client", "服务器到客户端"),
    ("packets", "数据包"),
    ("bytes on the wire", "线上字节"),
    ("payload sent again", "重传的数据"),
    ("  peak in an interval", "  单个时段最高"),
    ("RTT of its data: minimum", "数据的 RTT：最小"),
    ("  median", "  中位数"),
    ("  95th percentile", "  第 95 百分位"),
    ("  99th percentile", "  第 99 百分位"),
    ("in flight, maximum", "在途，最大"),
    ("advertised window: minimum", "通告窗口：最小"),
    ("  maximum", "  最大"),
    ("lost segments", "丢失的报文段"),
    ("spurious retransmissions", "虚假重传"),
    ("reordered segments", "乱序的报文段"),
    ("duplicated by the network", "被网络复制"),
    ("ECN marks (CE)", "ECN 标记（CE）"),
    ("ECN echoes (ECE)", "ECN 回显（ECE）"),
    ("window reductions (CWR)", "窗口缩减（CWR）"),
    ("largest burst, packets", "最大突发，数据包"),
    ("longest silence", "最长静默"),
    ("resets", "重置"),
    ("ACKs of new data", "新数据的 ACK"),
    ("  of more than two segments", "  确认两个以上报文段"),
    ("  delayed", "  被推迟"),
    ("  mean delay", "  平均推迟"),
    ("  maximum delay", "  最长推迟"),
    ("options of its SYN", "SYN 的选项"),
    ("retransmission", "重传"),
    ("fast retransmission", "快速重传"),
    ("spurious retransmission", "虚假重传"),
    ("rto", "超时重传"),
    ("out of order", "乱序"),
    ("duplicate ack", "重复 ACK"),
    ("zero window", "零窗口"),
    ("zero window probe", "零窗口探测"),
    ("zero window probe ack", "零窗口探测的应答"),
    ("window full", "窗口已满"),
    ("window update", "窗口更新"),
    ("keep alive", "保活"),
    ("keep alive ack", "保活应答"),
    ("lost segment", "抓包缺口"),
    ("ack lost segment", "确认了未抓到的数据"),
    ("reused ports", "端口重用"),
    ("tfo syn", "TFO SYN"),
    ("tfo ack", "TFO ACK"),
    ("tfo ignored", "TFO 被忽略"),
    ("duplicate packet", "重复的包"),
    ("nothing", "无"),
    ("data", "数据方向"),
    ("connections", "连接数"),
    ("steady", "稳定"),
    ("base RTT", "空载 RTT"),
    ("loaded RTT", "负载 RTT"),
    ("to it", "发往它"),
    ("from it", "来自它"),
    ("to it, both at once", "发往它，双向同时"),
    ("from it, both at once", "来自它，双向同时"),
    ("metrics of RFC 6349", "RFC 6349 的指标"),
    ("bottleneck", "瓶颈"),
    ("ideal", "理想"),
    ("actual", "实际"),
    ("baseline RTT", "基线 RTT"),
    ("average RTT", "平均 RTT"),
    ("not TCP", "非 TCP"),
    ("fragments", "IP 分片"),
    ("cut inside the TCP header", "在 TCP 头内被截断"),
    ("filtered", "被过滤"),
    ("of connections beyond the limit", "属于超出上限的连接"),
    ("before", "之前"),
    ("after", "之后"),
    ("share of the link's rate", "占链路速率"),
    ("the prediction", "预测"),
    ("largest receive window", "最大接收窗口"),
    ("most in flight", "最多在途"),
    ("round-trip time, median", "往返时间，中位数"),
    ("transferred", "传输量"),
    ("retransmissions", "重传"),
    ("dropped at the link's queue", "链路队列丢弃"),
    ("link late, p50 / p99 / max", "链路延后，p50 / p99 / 最大"),
    ("bandwidth-delay product", "带宽时延积"),
    ("for the buffers", "缓冲区目标"),
    ("goodput at most", "最大有效吞吐"),
    ("slow start", "慢启动"),
    ("1 GB takes", "1 GB 需要"),
    ("receive window by", "接收窗口依据"),
    ("tcp_rmem max", "tcp_rmem 最大"),
    ("tcp_wmem max", "tcp_wmem 最大"),
    ("default", "默认"),
    ("it is", "现为"),
    ("window scale", "窗口缩放"),
    ("as", "用作"),
    ("window", "窗口"),
    ("fills it up to", "可填满至"),
    ("receive buffer", "接收缓冲区"),
    ("send buffer", "发送缓冲区"),
    ("without overhead", "不计开销"),
    ("congestion control", "拥塞控制"),
    ("connections that fill the path", "填满路径的连接数"),
    ("reno with timeouts (Padhye)", "含超时的 reno（Padhye）"),
    ("mean", "平均"),
    ("connecting, slow start", "建立连接、慢启动"),
    ("the receiver", "接收方"),
    ("the sender", "发送方"),
    ("receiving", "接收"),
    ("sending", "发送"),
    ("each", "每个"),
    ("together", "合计"),
    ("each, sharing it", "每个，共享时"),
    ("loss", "丢包"),
    ("path", "路径"),
    ("with timeouts", "含超时"),
    ("at most", "最多"),
    ("fills", "填满"),
    ("full", "填满"),
    ("unit", "单位"),
    ("where one meets it", "在哪里见到"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::connection::Label;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// The sources below `folder`, without this one.
    fn sources(folder: &Path) -> String {
        let mut text = String::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                text += &sources(&path);
            } else if !path.ends_with("terms.rs") {
                text += &std::fs::read_to_string(&path).unwrap_or_default();
            }
        }
        text
    }

    #[test]
    fn each_term_stands_once_and_is_used() {
        let known: BTreeSet<&str> = TERMS.iter().map(|(english, _)| *english).collect();
        assert_eq!(known.len(), TERMS.len(), "a term has one translation");
        let source = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let labels: Vec<String> = Label::ALL.map(|one| one.name().replace('_', " ")).into();
        for english in known {
            let is_used = source.contains(&format!("\"{english}\""))
                || labels.iter().any(|label| label == english);
            assert!(is_used, "nothing shows `{english}`");
        }
        for label in labels {
            assert_ne!(chinese(&label), label, "{label} has no Chinese term");
        }
    }
}
