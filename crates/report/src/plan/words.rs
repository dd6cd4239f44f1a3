//! What a plan says, in each language.

use fullpipe_flow::Language;
use fullpipe_model::change::{ChangeReason, MemoryShort, ShortBuffer, SlowByLoss, Sysctl};
use fullpipe_model::limit::{End, Limit};
use fullpipe_model::tune::{PlanNote, Prediction, connections_under};

/// `442.9 Mbit/s (55.36 MB/s), limited by the send buffer`, without colour.
pub fn expected(language: Language, prediction: &Prediction) -> String {
    let Prediction { goodput, limited_by, .. } = prediction;
    match (language, limited_by) {
        (Language::English, Limit::Link) => format!("{goodput} ({goodput:#}), a full link"),
        (Language::English, other) => format!("{goodput} ({goodput:#}), limited by the {other}"),
        (Language::Chinese, Limit::Link) => format!("{goodput}（{goodput:#}），链路已满"),
        (Language::Chinese, other) => {
            format!("{goodput}（{goodput:#}），受限于{}", language.limit(*other))
        }
    }
}

/// Whose setting or note it is.
pub(super) fn end(language: Language, end: Option<End>, without: &'static str) -> String {
    match (language, end) {
        (Language::English, Some(end)) => end.to_string(),
        (Language::Chinese, Some(End::Sender)) => "发送方".into(),
        (Language::Chinese, Some(End::Receiver)) => "接收方".into(),
        (Language::English, None) => without.into(),
        (Language::Chinese, None) if without == "path" => "路径".into(),
        (Language::Chinese, None) => "主机".into(),
    }
}

/// What a sysctl is, in a table.
pub(super) const fn what(language: Language, sysctl: Sysctl) -> &'static str {
    match (language, sysctl) {
        (Language::English, _) => sysctl.what(),
        (Language::Chinese, Sysctl::TcpRmem) => "接收缓冲区：最小、初始、最大",
        (Language::Chinese, Sysctl::TcpWmem) => "发送缓冲区：最小、初始、最大",
        (Language::Chinese, Sysctl::RmemMax) => "SO_RCVBUF 的上限",
        (Language::Chinese, Sysctl::WmemMax) => "SO_SNDBUF 的上限",
        (Language::Chinese, Sysctl::TcpMem) => "所有 TCP 套接字的页数：低、压力、上限",
        (Language::Chinese, Sysctl::TcpWindowScaling) => "65535 字节以上的窗口",
        (Language::Chinese, Sysctl::TcpModerateRcvbuf) => "接收缓冲区的自动调整",
        (Language::Chinese, Sysctl::TcpAdvWinScale) => "缓冲区中用作窗口的部分，6.6 之前",
        (Language::Chinese, Sysctl::TcpSlowStartAfterIdle) => "停顿之后重新慢启动",
        (Language::Chinese, Sysctl::TcpMtuProbing) => "用探测寻找路径 MTU",
        (Language::Chinese, Sysctl::TcpCongestionControl) => "新套接字的拥塞控制算法",
        (Language::Chinese, Sysctl::TcpNotsentLowat) => "未发送数据超过它时套接字不再接受数据",
        (Language::Chinese, Sysctl::TcpSack) => "选择确认",
        (Language::Chinese, Sysctl::TcpTimestamps) => "时间戳",
        (Language::Chinese, Sysctl::DefaultQdisc) => "新设备的队列规则",
    }
}

/// Why a setting is changed.
pub fn reason(language: Language, reason: &ChangeReason) -> String {
    match language {
        Language::English => reason.to_string(),
        Language::Chinese => reason_zh(reason),
    }
}

/// What is to be known beside the changes.
pub fn note(language: Language, note: &PlanNote) -> String {
    match language {
        Language::English => note.to_string(),
        Language::Chinese => note_zh(note),
    }
}

fn reason_zh(reason: &ChangeReason) -> String {
    match reason {
        ChangeReason::SendBuffer(short) => {
            let ShortBuffer { buffer, window, percent, .. } = short;
            let kept = format!("{buffer:#} 的发送缓冲区保持 {window} 在途（其 {percent} %）");
            short_zh(short, &kept, "SO_SNDBUF，其上限是 wmem_max")
        }
        ChangeReason::ReceiveBuffer(short, law) => {
            let ShortBuffer { buffer, window, percent, .. } = short;
            let kept = format!("{buffer:#} 的接收缓冲区通告 {window}（其 {percent} %，{law}）");
            short_zh(short, &kept, "SO_RCVBUF，其上限是 rmem_max")
        }
        ChangeReason::NoAutotuning { initial } => {
            format!("没有自动调整，接收缓冲区停留在 tcp_rmem 的初始值 {initial:#}")
        }
        ChangeReason::NoWindowScaling { bdp } => {
            format!("两端没有都启用窗口缩放时，窗口不超过 65535 字节；路径容纳 {bdp}")
        }
        ChangeReason::SmallShare(share) => {
            format!("接收缓冲区只有 1/{share} 用于通告；设为 1 时是一半")
        }
        ChangeReason::Fits(reason, MemoryShort { connections, wanted, budget }) => format!(
            "{}；{connections} 个连接若都按所需占用，共要 {wanted:#}，而可用的是 {budget:#}，因此取放得下的值",
            reason_zh(reason)
        ),
        ChangeReason::SocketMemory { connections, total, pressure } => format!(
            "{connections} 个连接可能占用 {total:#}，而所有套接字合计到 {pressure:#} 就会进入内存压力状态"
        ),
        ChangeReason::NoSack { rtt } => format!(
            "没有选择确认，一个窗口里每个丢失的报文段都要单独花一个往返，此处为 {rtt}（RFC 2018）"
        ),
        ChangeReason::NoTimestamps { rate, wrap } => format!(
            "在 {rate} 下序列号 {wrap} 后就会回绕，那时旧的报文段尚未消失；只有时间戳能区分它们（RFC 7323 第 5 节）"
        ),
        ChangeReason::LateWakeUp { late, rate, carried } => format!(
            "应用晚 {late} 被唤醒就会让套接字变空：{rate} 在此期间可传 {carried}，而它在上限剩一半时才被唤醒"
        ),
        ChangeReason::SlowStartAfterPauses => {
            "停顿后的连接从 10 个报文段重新开始；设为 0 时从停顿前的状态继续".into()
        }
        ChangeReason::MtuBlackHole => {
            "大数据包无声地消失；设为 1 时，报文段消失的连接会尝试更小的（RFC 4821）".into()
        }
        ChangeReason::SlowByLoss(slow) => slow_zh(slow),
        ChangeReason::PacingNeedsFq => "Linux 4.13 之前 bbr 需要 fq 来拉开数据包".into(),
        ChangeReason::AskedFor => "按要求设置".into(),
        ChangeReason::Told(told) => told.clone(),
    }
}

fn short_zh(short: &ShortBuffer, kept: &str, by: &str) -> String {
    let ShortBuffer { carries, rtt, bdp, queue, is_of_application, .. } = short;
    let carried = match carries {
        Some(rate) => format!("往返 {rtt} 时约为 {rate}"),
        None => format!("往返 {rtt} 时填不满路径"),
    };
    let bounded =
        if *is_of_application { format!("。应用设置了 {by}") } else { String::new() };
    format!("{kept}，{carried}；路径容纳 {bdp}，其队列 {queue}{bounded}")
}

fn slow_zh(slow: &SlowByLoss) -> String {
    let SlowByLoss { loss, algorithm, carries, full } = slow;
    format!(
        "随机丢包为 {loss} 时，一个 {algorithm} 连接只能传 {carries}，路径可传 {full}；bbr 不因这种丢包而减速"
    )
}

fn note_zh(note: &PlanNote) -> String {
    match note {
        PlanNote::SeveralConnections { bdp, largest, connections } => format!(
            "路径容纳 {bdp}，超过一个连接在途的上限 {largest:#}：需要 {connections} 个连接才能填满"
        ),
        PlanNote::NewConnections { from, to } => {
            format!("只对新连接有效：窗口缩放因子（{from}，之后为 {to}）在握手时确定")
        }
        PlanNote::Memory { end, buffer, pressure } => {
            let direction = if *end == End::Sender { "发送" } else { "接收" };
            let each = format!("每个连接的{direction}最多占用 {buffer:#} 内存");
            match (pressure, connections_under(*pressure, *buffer)) {
                (Some(total), Some(connections)) => format!(
                    "{each}；net.ipv4.tcp_mem 在内存压力之前允许 {total:#}，即 {connections} 个这样的连接"
                ),
                _ => each,
            }
        }
        PlanNote::Frozen { end, asked, window, ask } => {
            let (option, leaves) = match end {
                End::Receiver => ("SO_RCVBUF", format!("窗口只有 {window}")),
                End::Sender => ("SO_SNDBUF", format!("在途只有 {window}")),
            };
            format!(
                "应用把 {option} 设为 {asked:#}，自动调整因此停止，{leaves}；请不要设置 {option}，或改为请求 {} 字节",
                ask.get()
            )
        }
        PlanNote::WouldFreeze { end: End::Receiver, most, max } => format!(
            "设置 SO_RCVBUF 的应用会停止自动调整，窗口最多为 {most}，因为 net.core.rmem_max 是 {max:#}"
        ),
        PlanNote::WouldFreeze { end: End::Sender, most, max } => format!(
            "设置 SO_SNDBUF 的应用会停止自动调整，在途最多为 {most}，因为 net.core.wmem_max 是 {max:#}"
        ),
        PlanNote::SlowStartAfterIdle { round_trips, time } => format!(
            "net.ipv4.tcp_slow_start_after_idle 为 1：停顿后的连接从 10 个报文段重新开始，需要 {round_trips} 个\
             往返（{time}）才能填满路径；对会停顿的长连接请设为 0"
        ),
        PlanNote::MemoryShort { short, goodput } => {
            let MemoryShort { connections, wanted, budget } = short;
            format!(
                "{connections} 个各自填满路径的连接需要 {wanted:#} 内存，而可用的是 {budget:#}：一个连接可望得到 \
                 {goodput}；请减小 --connections 或增大 --memory"
            )
        }
        PlanNote::NoBbr(slow) => {
            format!("{}，但此内核没有加载它：modprobe tcp_bbr", slow_zh(slow))
        }
        PlanNote::BbrIsUnfair => {
            "在短队列中 bbr 会占用比 cubic 连接更多的份额：对与他人共用的路径，使用多个连接更公平"
                .into()
        }
        PlanNote::LowersNothing { knob, stays, asked } => {
            format!("{knob} 保持 {stays}：{asked} 会把它调低，而方案不调低任何设置")
        }
        PlanNote::Told(told) => told.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::facts;
    use fullpipe_model::tune::HostSettings;
    use fullpipe_model::units::{Bytes, Duration, Window};

    fn short(is_of_application: bool) -> ShortBuffer {
        ShortBuffer {
            buffer: Bytes::new(4 << 20),
            window: Window::new(Bytes::new(2_768_000)),
            percent: 66,
            carries: Some("442.9mbit".parse().unwrap()),
            rtt: Duration::from_millis(50),
            bdp: Bytes::new(6_250_000),
            queue: Bytes::new(7_250_000),
            is_of_application,
        }
    }

    fn reasons() -> Vec<ChangeReason> {
        let memory = MemoryShort {
            connections: 500,
            wanted: Bytes::new(20 << 30),
            budget: Bytes::new(8 << 30),
        };
        let law = HostSettings::defaults("6.12".parse().unwrap()).window_law();
        let rate = "10gbit".parse().unwrap();
        let rtt = Duration::from_millis(80);
        vec![
            ChangeReason::SendBuffer(short(false)),
            ChangeReason::SendBuffer(ShortBuffer { carries: None, ..short(true) }),
            ChangeReason::ReceiveBuffer(short(true), law),
            ChangeReason::NoAutotuning { initial: Bytes::new(131_072) },
            ChangeReason::NoWindowScaling { bdp: Bytes::new(6_250_000) },
            ChangeReason::SmallShare(4),
            ChangeReason::Fits(Box::new(ChangeReason::SendBuffer(short(false))), memory),
            ChangeReason::SocketMemory {
                connections: 500,
                total: Bytes::new(20 << 30),
                pressure: Bytes::new(1 << 30),
            },
            ChangeReason::NoSack { rtt },
            ChangeReason::NoTimestamps { rate, wrap: Duration::from_millis(3436) },
            ChangeReason::LateWakeUp { late: rtt, rate, carried: Bytes::new(625_000) },
            ChangeReason::SlowStartAfterPauses,
            ChangeReason::MtuBlackHole,
            ChangeReason::SlowByLoss(slow()),
            ChangeReason::PacingNeedsFq,
            ChangeReason::AskedFor,
        ]
    }

    fn slow() -> SlowByLoss {
        SlowByLoss {
            loss: "0.1%".parse().unwrap(),
            algorithm: "cubic".into(),
            carries: "12mbit".parse().unwrap(),
            full: "957mbit".parse().unwrap(),
        }
    }

    fn notes() -> Vec<PlanNote> {
        let (large, most) = (Bytes::new(12 << 30), Window::new(Bytes::new(212_992)));
        let memory = MemoryShort { connections: 500, wanted: large, budget: Bytes::new(8 << 30) };
        let ends = |end| {
            [
                PlanNote::Memory { end, buffer: Bytes::new(32 << 20), pressure: Some(large) },
                PlanNote::Memory { end, buffer: Bytes::new(32 << 20), pressure: None },
                PlanNote::Frozen { end, asked: large, window: most, ask: Bytes::new(777) },
                PlanNote::WouldFreeze { end, most, max: large },
            ]
        };
        let mut notes = vec![
            PlanNote::SeveralConnections {
                bdp: large,
                largest: Bytes::new(1 << 30),
                connections: 12,
            },
            PlanNote::NewConnections { from: 7, to: 10 },
            PlanNote::SlowStartAfterIdle { round_trips: 9, time: Duration::from_millis(450) },
            PlanNote::MemoryShort { short: memory, goodput: "500mbit".parse().unwrap() },
            PlanNote::NoBbr(slow()),
            PlanNote::BbrIsUnfair,
            PlanNote::LowersNothing { knob: "a.b".into(), stays: "5".into(), asked: "3".into() },
        ];
        notes.extend(ends(End::Sender));
        notes.extend(ends(End::Receiver));
        notes
    }

    #[test]
    fn each_language_names_the_same_numbers_and_settings() {
        let reasons = reasons();
        let reasons = reasons.iter().map(|one| Language::ALL.map(|language| reason(language, one)));
        let notes = notes();
        let notes = notes.iter().map(|one| Language::ALL.map(|language| note(language, one)));
        for [english, chinese] in reasons.chain(notes) {
            assert_eq!(facts(&english), facts(&chinese), "{english}\n{chinese}");
            assert!(!chinese.contains(" the ") && !chinese.is_ascii(), "{chinese}");
        }
    }
}
