//! What stands before a sentence, and sentences without numbers, in each language.

use crate::Layout;
use fullpipe_flow::Counts;
use fullpipe_flow::Language;
use fullpipe_flow::connection::{Close, Direction, Place, Vantage, Warning};
use fullpipe_flow::diagnosis::live::Acts;
use fullpipe_flow::limit::Limit;

/// The labels of a language.
pub(crate) struct Labels {
    pub to_change: &'static str,
    pub to_change_machine: &'static str,
    pub to_change_within: &'static str,
    pub who_acts: &'static str,
    pub how_sure: &'static str,
    pub how_sure_within: &'static str,
    pub what_decided: &'static str,
    pub would_fit: &'static str,
    pub cause: &'static str,
    pub but: &'static str,
    pub begins_in_middle: &'static str,
    pub where_time_went: &'static str,
    pub time: &'static str,
    pub to_know: &'static str,
    pub nothing_to_set: &'static str,
    pub on_the_machine_itself: &'static str,
    pub on_this_host: &'static str,
    pub by_packets: &'static str,
    pub data_took_no_time: &'static str,
    pub same_limit: &'static str,
    pub since_start: &'static str,
    pub no_answer: &'static str,
    pub not_shown: &'static str,
    pub see_hidden: &'static str,
    pub joins: &'static str,
    pub next: &'static str,
    pub forced_out: &'static str,
    pub queue: &'static str,
    pub loss: &'static str,
    pub policer: &'static str,
    pub limit: &'static str,
    pub faster_machine: &'static str,
}

const ENGLISH: Labels = Labels {
    to_change: "  to change it: ",
    to_change_machine: "    to change it: ",
    to_change_within: "; to change it, ",
    who_acts: "  who must act: ",
    how_sure: "  how sure: ",
    how_sure_within: "    how sure: ",
    what_decided: "  what decided: ",
    would_fit: "  would fit as well: ",
    cause: "  cause: ",
    but: "but ",
    begins_in_middle: "The capture begins in the middle: what was before is not known.",
    where_time_went: "Where the time went:",
    time: "  the time: ",
    to_know: "To know:",
    nothing_to_set: "Nothing to set here.",
    on_the_machine_itself: "On the machine itself: this network namespace does not have these, or \
                            not to be written. Set them outside of the container.",
    on_this_host: "on this host meanwhile",
    by_packets: "by its packets",
    data_took_no_time: "its data was not what took the time",
    same_limit: "packets and socket name the same limit",
    since_start: "  since its start: ",
    no_answer: "no answer",
    not_shown: "not shown: ",
    see_hidden: "; a wider terminal, `| less -S` or --json shows them",
    joins: ", ",
    next: "; ",
    forced_out: "connections were ended early because too many were open at a time; what came later \
                 of them is told as another connection",
    queue: "  queue: ",
    loss: "  loss: ",
    policer: "  policer: ",
    limit: "  limit: ",
    faster_machine: "test with fewer other programs, a faster machine, or --parallel for more \
                     threads",
};

const CHINESE: Labels = Labels {
    to_change: "  如何改进：",
    to_change_machine: "    如何改进：",
    to_change_within: "；如何改进：",
    who_acts: "  由谁处理：",
    how_sure: "  把握：",
    how_sure_within: "    把握：",
    what_decided: "  判断依据：",
    would_fit: "  同样符合：",
    cause: "  原因：",
    but: "注意：",
    begins_in_middle: "抓包从连接中途开始：之前的情况未知。",
    where_time_went: "时间花在哪里：",
    time: "  时间：",
    to_know: "须知：",
    nothing_to_set: "此处无需设置。",
    on_the_machine_itself: "在机器本身上：此网络命名空间没有这些设置，或不允许写入。请在容器之外设置。",
    on_this_host: "期间本机的情况",
    by_packets: "从数据包看",
    data_took_no_time: "时间并非花在数据传输上",
    same_limit: "数据包与套接字指出同一限制",
    since_start: "  自建立以来：",
    no_answer: "无应答",
    not_shown: "未显示：",
    see_hidden: "；使用更宽的终端、`| less -S` 或 --json 可见",
    joins: "、",
    next: "；",
    forced_out: "个连接因同时打开的太多而提前结束，其后续部分作为另一个连接给出",
    queue: "  排队：",
    loss: "  丢包：",
    policer: "  限速器：",
    limit: "  瓶颈：",
    faster_machine: "测试时减少其他程序，使用更快的机器，或用 --parallel 增加线程",
};

impl Layout {
    pub(crate) const fn labels(self) -> &'static Labels {
        match self.language {
            Language::English => &ENGLISH,
            Language::Chinese => &CHINESE,
        }
    }
}

/// What there was of evidence: `1200 packets`.
pub(crate) fn evidence(counts: &Counts, language: Language) -> String {
    match language {
        Language::English => counts.of(),
        Language::Chinese if counts.samples > 0 => format!("{} 次采样", counts.samples),
        Language::Chinese => format!("{} 个数据包", counts.packets),
    }
}

/// Who sends the data of a direction.
pub(crate) const fn direction(language: Language, direction: Direction) -> &'static str {
    match (language, direction) {
        (Language::English, Direction::ClientToServer) => "client to server",
        (Language::English, Direction::ServerToClient) => "server to client",
        (Language::Chinese, Direction::ClientToServer) => "客户端到服务器",
        (Language::Chinese, Direction::ServerToClient) => "服务器到客户端",
    }
}

/// Where it was captured: `at the client`.
pub(crate) const fn place(language: Language, place: Place) -> &'static str {
    match (language, place) {
        (Language::English, place) => place.words(),
        (Language::Chinese, Place::Client) => "在客户端",
        (Language::Chinese, Place::Server) => "在服务器端",
        (Language::Chinese, Place::Between) => "在两端之间",
        (Language::Chinese, Place::Unknown) => "在无法从时间判断的位置",
    }
}

/// Where it was captured, and how sure that is.
pub(crate) fn vantage(language: Language, vantage: Vantage) -> String {
    match (language, vantage.place) {
        (Language::English, _) => vantage.to_string(),
        (Language::Chinese, Place::Unknown) => "抓包位置无法从时间判断".into(),
        (Language::Chinese, at) => {
            format!("{}抓包（把握 {:.0} %）", place(language, at), vantage.confidence * 100.0)
        }
    }
}

/// How it ended.
pub(crate) const fn close(language: Language, close: Close) -> &'static str {
    match (language, close) {
        (Language::English, close) => close.words(),
        (Language::Chinese, Close::Open) => "抓包结束时连接仍然打开",
        (Language::Chinese, Close::HalfClosed) => "只有一端关闭",
        (Language::Chinese, Close::Finished) => "两端都已关闭",
        (Language::Chinese, Close::ResetByClient) => "被客户端重置",
        (Language::Chinese, Close::ResetByServer) => "被服务器重置",
    }
}

/// What puts an analysis into doubt.
pub(crate) const fn warning(language: Language, warning: Warning) -> &'static str {
    match (language, warning) {
        (Language::English, warning) => warning.words(),
        (Language::Chinese, Warning::OffloadSuperPackets) => {
            "包大于线上的报文段（TSO、GSO 或 GRO）：用 ethtool -K 关闭卸载，或换一处抓包，以看到\
             单个报文段"
        }
        (Language::Chinese, Warning::CaptureDropped) => {
            "有些被确认的数据没有抓到：请加大抓包缓冲区（tcpdump -B）或截短数据包（-s 128）"
        }
        (Language::Chinese, Warning::CapturedTwice) => {
            "同一个包抓到了两次（tcpdump -i any 的多个网卡，或镜像端口）：除包数和线上字节数外，\
             副本都不计入"
        }
        (Language::Chinese, Warning::OneSided) => "只抓到一个方向：无法判断往返时间、窗口和限制",
        (Language::Chinese, Warning::HandshakeMissing) => {
            "没有抓到握手：由于缺少缩放因子，窗口可能偏小"
        }
        (Language::Chinese, Warning::WindowScaleRefused) => {
            "窗口缩放已提出但未得到应答：窗口不超过 64 KiB；可能被中间设备去除"
        }
        (Language::Chinese, Warning::HeadersCut) => {
            "包在 TCP 头内被截断：缺少 SACK 块和时间戳，丢失与重传的计数不准；请保留更多字节\
             （tcpdump -s 128，有隧道时 -s 256）"
        }
        (Language::Chinese, Warning::NoPackets) => {
            "这些是套接字采样，不是数据包：时序图中的一点是一次采样，线上字节数为估计值，标签与\
             丢包无从得知；抓包才有这些"
        }
        (Language::Chinese, Warning::SocketLog) => {
            "ss 日志的各次查看相隔较远，也没有应用对套接字的设置和主机的设置：占比来自内核的计数，\
             其余部分由多次查看一起判断，原因无从得知；fullpipe why 有这些"
        }
        (Language::Chinese, Warning::OneLook) => {
            "对此套接字只有一次查看：占比是它打开以来所有忙碌时间的占比，应用的停顿无从得知；请记录\
             多次查看，每次之前有一行 date"
        }
        (Language::Chinese, Warning::NoCounters) => {
            "日志中没有 busy、rwnd_limited 和 sndbuf_limited（Linux 4.10 及其 ss 才有）：接收窗口或\
             发送缓冲区限制发送端多久无从得知"
        }
        (Language::Chinese, Warning::ReceiverLog) => {
            "这是接收端的套接字，它不计数是什么限制发送端：请在发送端记录 ss -tinm，或使用发送端自己的\
             结果（在发送端用 iperf3 --json，或 --get-server-output）"
        }
        (Language::Chinese, Warning::NoSocketMemory) => {
            "日志中没有 skmem：除非内核计数了发送缓冲区，写满的发送缓冲区与停顿的应用看起来一样；\
             请记录 ss -tinm"
        }
        (Language::Chinese, Warning::Ndt7Result) => {
            "ndt7 的结果对服务器的套接字每秒约有四次查看，没有其内存，也没有客户端的套接字：占比来自\
             内核的计数，其余部分由多次查看一起判断，原因无从得知"
        }
        (Language::Chinese, Warning::Iperf3Result) => {
            "iperf3 只输出每个时段的平均值，没有接收窗口或发送缓冲区限制发送端多久，也没有等待发送的\
             数据：答案是猜测；请在发送端同时记录 ss -tinm，或在那里运行 fullpipe why"
        }
        (Language::Chinese, warning) => of_frames(warning),
    }
}

/// Why frames of HTTP/2 were not read, in Chinese.
const fn of_frames(warning: Warning) -> &'static str {
    match warning {
        Warning::FramesGap => {
            "HTTP/2 的窗口只读到一处缺口为止：抓包在那里漏掉了数据；请加大抓包缓冲区（tcpdump -B）"
        }
        Warning::FramesCut => "HTTP/2 的窗口未知：数据包只抓了一部分；请完整抓包（tcpdump -s 0）",
        Warning::FramesTooMany => {
            "HTTP/2 的窗口未知：同时读取的连接超过 128 个；请用 --filter 选出这一个"
        }
        Warning::FramesCipher => {
            "HTTP/2 的窗口未知：不支持这个 TLS 密码套件，只支持 TLS 1.2 和 1.3 的 AES-GCM 与 \
             ChaCha20-Poly1305"
        }
        Warning::FramesUndecrypted => {
            "HTTP/2 的窗口未知，或只读到中途：有 TLS 记录不能用这个连接的密钥打开；密钥不全，或\
             客户端在握手之前就发了数据（0-RTT）"
        }
        // Of frames that contradict the rules.
        _ => "HTTP/2 的窗口只读到一个违反其规则的帧为止",
    }
}

/// Who must act, in a cell.
pub(crate) const fn acts(language: Language, acts: Acts) -> &'static str {
    match (language, acts) {
        (Language::English, acts) => acts.words(),
        (Language::Chinese, Acts::Here) => "本机",
        (Language::Chinese, Acts::Peer) => "对端",
        (Language::Chinese, Acts::Path) => "路径",
        (Language::Chinese, Acts::Nobody) => "无人",
        (Language::Chinese, Acts::Unknown) => "未知",
    }
}

/// Who must act against a limit, and by what.
pub(crate) const fn acts_against(language: Language, acts: Acts, limit: Limit) -> &'static str {
    match language {
        Language::English => match (acts, limit) {
            (Acts::Here, _) => "this host",
            (Acts::Peer, Limit::ReceiveWindow) => {
                "the peer: its receive buffer (its tcp_rmem or SO_RCVBUF) is the fix, not a setting \
                 here"
            }
            (Acts::Peer, Limit::ReceiverApplication) => {
                "the peer: its application has to read faster"
            }
            (Acts::Peer, Limit::SendBuffer) => {
                "the peer: its send buffer (its tcp_wmem or SO_SNDBUF) is the fix, not a setting \
                 here"
            }
            (Acts::Peer, _) => "the peer: it sends no faster",
            (Acts::Path, _) => "whoever runs the path; a setting here can only soften it",
            (Acts::Nobody, _) => "nobody: the path is full",
            (Acts::Unknown, _) => "not known: watch for longer (--for)",
        },
        Language::Chinese => match (acts, limit) {
            (Acts::Here, _) => "本机",
            (Acts::Peer, Limit::ReceiveWindow) => {
                "对端：要改的是它的接收缓冲区（tcp_rmem 或 SO_RCVBUF），而不是本机的设置"
            }
            (Acts::Peer, Limit::ReceiverApplication) => "对端：它的应用需要读得更快",
            (Acts::Peer, Limit::SendBuffer) => {
                "对端：要改的是它的发送缓冲区（tcp_wmem 或 SO_SNDBUF），而不是本机的设置"
            }
            (Acts::Peer, _) => "对端：它没有发送得更快",
            (Acts::Path, _) => "路径的运营者；本机的设置只能缓解",
            (Acts::Nobody, _) => "无人：路径已满",
            (Acts::Unknown, _) => "未知：请观察更长时间（--for）",
        },
    }
}
