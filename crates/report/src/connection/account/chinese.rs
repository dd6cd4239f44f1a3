//! Where the time went, in Chinese.

use super::sentences::{Part, Sentences, WhoActs};
use super::{each, rounded};
use fullpipe_flow::Language;
use fullpipe_flow::account::{Account, Cause, Owner};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::Duration;

/// Chinese.
pub(super) struct Chinese;

impl Sentences for Chinese {
    fn share(&self, part: Duration, all: Duration) -> String {
        format!("{} 中有 {}", rounded(all), rounded(part))
    }

    fn claim(&self, part: &Part<'_>) -> String {
        let Account { requests, turns, syn_retransmissions: repeated, .. } = *part.account;
        let time = rounded(part.part.time);
        let end = end_of(part);
        let waits_still = part.account.last_wait.is_some();
        match part.part.cause {
            Cause::ServerThinks if requests == 0 && waits_still => {
                "服务器已收到客户端的第一条消息，到抓包结束时仍未应答".into()
            }
            Cause::ServerThinks if requests <= 1 && waits_still => {
                "服务器已收到请求，到抓包结束时仍未应答".into()
            }
            Cause::ServerThinks if requests <= 1 && turns == 0 => {
                "服务器已收到请求，但没有应答".into()
            }
            Cause::ServerThinks if requests <= 1 => format!("服务器用了 {time} 才开始应答"),
            Cause::ServerThinks => format!(
                "服务器共用了 {time} 才开始其 {requests} 次应答，平均每次 {}",
                rounded(each(part.part.time, requests))
            ),
            Cause::ClientThinks if requests <= 1 => format!("客户端程序用了 {time} 才发出请求"),
            Cause::ClientThinks => format!(
                "客户端程序共用了 {time} 才发出 {requests} 次请求，平均每次 {}",
                rounded(each(part.part.time, requests))
            ),
            Cause::Turns => format!(
                "{requests} 次各 {} 的询问，一次接一次，共 {turns} 个往返，每个 {}",
                part.asked(),
                rounded(each(part.part.time, turns))
            ),
            Cause::Tls => tls(part),
            Cause::SynRepeated => format!("SYN 或其应答丢失了 {repeated} 次，重新发送"),
            Cause::SynUnanswered => match repeated {
                0 => "SYN 无人应答".into(),
                _ => format!("SYN 发送了 {} 次，无人应答", repeated + 1),
            },
            Cause::SynMetOldConnection => "SYN 遇到相同端口上的旧连接".into(),
            Cause::DelayedAck => {
                format!("小写入被（Nagle 算法）扣住，等待{end}内核推迟的 ACK")
            }
            Cause::Timeouts => "发送方在等待重传定时器".into(),
            Cause::Recovery => "等待丢失的数据重传".into(),
            Cause::PathMtu => "超过路径 MTU 的报文段反复重传，而较小的能到达：路径 MTU 黑洞".into(),
            Cause::PeerGone => "一端不再应答，无论尝试多少次".into(),
            Cause::WindowShut => format!("{end}程序没有读取：其接收窗口已关闭"),
            Cause::Paused => format!("{end}程序在发送中途停顿"),
            Cause::Transfer(limit) => self.data(part.part.direction, limit),
            Cause::Connect | Cause::Refused | Cause::Idle | Cause::Closing | Cause::NotCaptured => {
                self.row(part)
            }
        }
    }

    fn row(&self, part: &Part<'_>) -> String {
        let Account { requests, turns, syn_retransmissions: repeated, .. } = *part.account;
        match part.part.cause {
            Cause::Connect => "握手的往返".into(),
            Cause::SynRepeated => format!("重发了 {repeated} 个 SYN 或 SYN-ACK"),
            Cause::SynUnanswered => "SYN 无人应答".into(),
            Cause::Refused => "SYN 被拒绝".into(),
            Cause::SynMetOldConnection => "SYN 遇到旧连接".into(),
            Cause::Tls => format!("TLS 握手的往返（{}）", part.account.tls_turns),
            Cause::ClientThinks => "尚未发出请求".into(),
            Cause::ServerThinks if requests == 0 => "尚未应答".into(),
            Cause::ServerThinks => format!("尚未应答（{requests} 次请求）"),
            Cause::Turns => format!("一问一答的往返（{turns}）"),
            Cause::DelayedAck => "推迟了小数据所等待的 ACK".into(),
            Cause::Transfer(limit) => self.data(part.part.direction, limit),
            Cause::Timeouts => "重传定时器".into(),
            Cause::Recovery => "等待丢失的数据重传".into(),
            Cause::PathMtu => "报文段超过路径 MTU".into(),
            Cause::PeerGone => "不再应答".into(),
            Cause::WindowShut => "没有读取：窗口关闭".into(),
            Cause::Paused => "发送中途停顿".into(),
            Cause::Idle => "无事可做".into(),
            Cause::Closing => "最后的 ACK、FIN、RST".into(),
            Cause::NotCaptured => "缺少数据包".into(),
        }
    }

    fn short(&self, cause: Cause) -> &'static str {
        match cause {
            Cause::Connect => "建立连接",
            Cause::SynRepeated => "SYN 重发",
            Cause::SynUnanswered => "无应答",
            Cause::Refused => "被拒绝",
            Cause::SynMetOldConnection => "旧连接",
            Cause::Tls => "TLS 握手",
            Cause::ClientThinks => "客户端未请求",
            Cause::ServerThinks => "服务器未应答",
            Cause::Turns => "往返",
            Cause::DelayedAck => "延迟 ACK",
            Cause::Transfer(limit) => Language::Chinese.limit(limit),
            Cause::Timeouts => "超时",
            Cause::Recovery => "丢包恢复",
            Cause::PathMtu => "路径 MTU",
            Cause::PeerGone => "对端失联",
            Cause::WindowShut => "窗口关闭",
            Cause::Paused => "停顿",
            Cause::Idle => "空闲",
            Cause::Closing => "关闭连接",
            Cause::NotCaptured => "未抓到",
        }
    }

    fn remedy(&self, cause: Cause) -> Option<&'static str> {
        Some(match cause {
            Cause::ServerThinks => {
                "找出服务器程序在等什么：它自己的请求、锁、磁盘，或排在前面的请求"
            }
            Cause::ClientThinks => {
                "找出客户端程序在一次应答与下一次请求之间做什么；既没有等待网络，也没有等待服务器"
            }
            Cause::Turns => {
                "一次请求更多（更大的 fetch size、批处理、流水线、同时多个请求），或让两端更近"
            }
            Cause::Tls => "保持连接，或恢复会话；TLS 1.3 只需一个往返，而 1.2 需要两个",
            Cause::SynRepeated => {
                "找出是什么丢弃了 SYN：服务器的 accept 队列已满（nstat TcpExtListenOverflows；\
                 listen 的 backlog 与 net.core.somaxconn）、连接跟踪、防火墙，或有丢包的路径"
            }
            Cause::SynUnanswered => "地址是否正确，服务器是否在监听，防火墙是否丢弃了它？",
            Cause::SynMetOldConnection => {
                "保持连接而不是新建，或给客户端更多本地端口（net.ipv4.ip_local_port_range）"
            }
            Cause::DelayedAck => {
                "一次写入完整消息（writev、带缓冲的写入），或在写入端设置 TCP_NODELAY"
            }
            Cause::Timeouts | Cause::Recovery => {
                "找出何处丢包：在两端同时抓包，看数据包最后出现在哪里"
            }
            Cause::PathMtu => {
                "放行告知可用大小的 ICMP，或在隧道入口钳制 MSS，或降低主机的 MTU；发送方的 \
                 net.ipv4.tcp_mtu_probing=1 可自行探测"
            }
            Cause::PeerGone => {
                "那台主机是否在运行，路径上（NAT、防火墙、VPN）是否仍保有此连接？保活与 \
                 TCP_USER_TIMEOUT 可更早结束这种等待"
            }
            Cause::WindowShut => "找出是什么使该程序没有读取",
            Cause::Paused => "找出是什么使该程序没有继续发送",
            _ => return None,
        })
    }

    fn who(&self, who: WhoActs) -> &'static str {
        match who {
            WhoActs::ClientProgram => "客户端：其程序",
            WhoActs::ClientSystem => "客户端：其系统",
            WhoActs::ServerProgram => "服务器：其程序",
            WhoActs::ServerSystem => "服务器：其系统",
            WhoActs::Asker => "客户端：其程序一次只问一件事",
            WhoActs::BothOfTls => "服务器和客户端：各自的 TLS 设置",
            WhoActs::Path => "路径",
            WhoActs::EvenSender => "发送方（请均匀发送），或路径的运营者",
            WhoActs::SlowedSender => "发送方（其拥塞控制），或链路的运营者",
            WhoActs::SilentEnd => "沉默那一端的运营者，或通往它的路径的运营者",
            WhoActs::NobodyOfPath => "无人：路径的承载能力就是如此",
            WhoActs::NobodyOfShort => "无人：任何设置都无法使其快十分之一",
            WhoActs::Nobody => "无人",
            WhoActs::NotKnown => "尚不清楚",
        }
    }

    fn owner(&self, owner: Owner) -> &'static str {
        match owner {
            Owner::ClientApplication => "客户端程序",
            Owner::ClientHost => "客户端系统",
            Owner::Path => "路径",
            Owner::ServerHost => "服务器系统",
            Owner::ServerApplication => "服务器程序",
            Owner::PeerGone => "失联的一端",
            Owner::NotCaptured => "未抓到",
            Owner::Nobody => "无",
        }
    }

    fn data(&self, direction: Option<Direction>, limit: Limit) -> String {
        let way = way(direction);
        match limit {
            Limit::Unknown => format!("{way}的数据"),
            limit => format!("{way}的数据受限于{}", Language::Chinese.limit(limit)),
        }
    }

    fn guessed(&self, direction: Option<Direction>, headline: &str) -> String {
        format!("{}的数据；受何限制仅为猜测：{headline}", way(direction))
    }

    fn no_network(&self) -> &'static str {
        "；网络中没有缓慢之处"
    }
}

fn tls(part: &Part<'_>) -> String {
    match part.account.tls_turns {
        0 | 1 => "TLS 握手的一个往返".into(),
        turns => {
            format!("TLS 握手的 {turns} 个往返，每个 {}", rounded(each(part.part.time, turns)))
        }
    }
}

fn end_of(part: &Part<'_>) -> &'static str {
    if part.is_client() { "客户端" } else { "服务器" }
}

const fn way(direction: Option<Direction>) -> &'static str {
    match direction {
        Some(Direction::ClientToServer) => "客户端到服务器",
        _ => "服务器到客户端",
    }
}
