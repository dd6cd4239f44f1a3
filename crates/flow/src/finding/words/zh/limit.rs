//! What limited a transfer.

use crate::finding::words::limit::passes_at_once;
use crate::finding::{Doubt, Finding, FindingEvidence, Headline};
use crate::limit::{Candidate, Cause, Coverage, Limit};
use fullpipe_model::units::{Duration, Rate};

pub const fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::ReceiveWindow => "接收窗口",
        Limit::ReceiverApplication => "接收端应用",
        Limit::SendBuffer => "发送缓冲区",
        Limit::SenderApplication => "发送端应用",
        Limit::CongestionWindow(Cause::SlowStart) => "拥塞窗口（慢启动）",
        Limit::CongestionWindow(Cause::Loss) => "拥塞窗口（丢包）",
        Limit::Link => "链路",
        Limit::ApplicationWindow => "应用层窗口",
        Limit::Unknown => "未知",
    }
}

const NOTHING: &str = "无瓶颈";

pub fn claim(finding: &Finding) -> String {
    let named = finding.evidence.flights.map_or(name(finding.limit), |_| NOTHING);
    format!("{named}：在 {:.0} % 的时间里，{}", finding.share * 100.0, event(finding))
}

pub fn event(finding: &Finding) -> String {
    let FindingEvidence { allowed, burst, elsewhere, flights, .. } = finding.evidence;
    let mut event = match (burst, flights) {
        (Some(burst), _) => dropped_bursts(burst, &finding.evidence),
        (None, Some(flights)) => nothing_held(flights),
        (None, None) => what_happened(finding.limit, &finding.evidence),
    };
    let bound = finding.evidence.bound(finding.limit).zip(finding.evidence.rtt);
    if let (Some(rate), Some((bound, rtt))) = (allowed, bound) {
        event += &format!("（{bound}、往返 {rtt} 时最高 {rate}）");
    }
    if let Some(elsewhere) = elsewhere {
        event += &format!("；其他时段同一路径曾达到 {elsewhere}");
    }
    event
}

fn dropped_bursts(burst: Rate, evidence: &FindingEvidence) -> String {
    let carried = evidence.goodput;
    let at_once = passes_at_once(burst, carried);
    let how = if at_once { "可瞬间通过".into() } else { format!("以 {burst} 通过") };
    let each_time = match evidence.drops_after {
        Some(after) => format!("，每次都在约 {after} 之后"),
        None => String::new(),
    };
    format!("路径丢弃突发数据，而之前没有排队{each_time}：平均传输 {carried}，突发{how}")
}

fn nothing_held(flights: u32) -> String {
    match flights {
        0 | 1 => "数据一批就发完，没有受到任何限制：所用时间就是路径的往返时间".into(),
        _ => format!("数据分 {flights} 批发完，没有长时间受限：任何设置都无法使其快十分之一"),
    }
}

fn what_happened(limit: Limit, evidence: &FindingEvidence) -> String {
    let FindingEvidence { goodput, in_flight, retransmissions, .. } = *evidence;
    let FindingEvidence { idle, period, paced, .. } = *evidence;
    match limit {
        Limit::ReceiveWindow => "发送方已填满接收窗口".into(),
        Limit::ReceiverApplication => match idle {
            Some(late) => format!(
                "应用的读取速度只有 {goodput}：数据等待读取时，接收方的 TCP 推迟确认，占 {:.0} % 的时间",
                late * 100.0
            ),
            None => format!("应用的读取速度只有 {goodput}，接收窗口因此关闭"),
        },
        Limit::SendBuffer => {
            format!("发送缓冲区装满了等待确认的数据（在途最多 {in_flight}，{goodput}）")
        }
        Limit::SenderApplication => match (idle, paced) {
            (Some(idle), _) => sets_the_pace(idle, period),
            (None, Some(rate)) => {
                format!("发送方以 {rate} 匀速发出数据：路径上没有排队，因此速度由发送方自己决定")
            }
            (None, None) => "发送端应用没有数据可发".into(),
        },
        Limit::CongestionWindow(Cause::SlowStart) => "拥塞窗口仍在增长".into(),
        Limit::CongestionWindow(Cause::Loss) if goodput == Rate::ZERO => {
            format!("发出的数据无一到达，发送方等待重传（重传了 {retransmissions} 个报文段）")
        }
        Limit::CongestionWindow(Cause::Loss) => {
            format!("丢包使拥塞窗口变小（重传了 {retransmissions} 个报文段）")
        }
        Limit::Link => full_link(evidence),
        Limit::ApplicationWindow => {
            "对端应用在 TCP 之上没有授予更多额度，而 TCP 自身的窗口仍有余量".into()
        }
        Limit::Unknown => "现有证据不足以判断发送方受什么限制".into(),
    }
}

fn full_link(evidence: &FindingEvidence) -> String {
    let FindingEvidence { goodput, retransmissions, .. } = *evidence;
    if let Some(full) = evidence.carries {
        return format!(
            "链路已满，队列容纳不下的报文段被丢弃（重传了 {retransmissions} 个），此后拥塞窗口变小：\
             链路可承载 {full}，实际传输 {goodput}"
        );
    }
    if let Some(after) = evidence.drops_after {
        return format!(
            "路径上某处已满，每次都在约 {after} 之后丢包，随机丢包不会如此（重传了 {retransmissions} \
             个）：传输 {goodput}"
        );
    }
    let mut words = match evidence.beside {
        None => format!("链路已满：传输 {goodput}"),
        Some(beside) => format!(
            "链路已满：传输 {}，其中 {beside} 属于同样两台主机之间的其他连接",
            goodput.saturating_add(beside)
        ),
    };
    if let Some(queue) = evidence.queue() {
        words += &format!("，链路前排队 {queue}");
    }
    words
}

fn sets_the_pace(idle: f64, period: Option<Duration>) -> String {
    let idle = format!("有 {:.0} % 的时间没有数据可发", idle * 100.0);
    match period {
        Some(period) => {
            format!("速度由发送端应用决定：它每隔 {period} 写一次，{idle}，每块都在下一块之前传完")
        }
        None => format!("速度由发送端应用决定：它一再停顿，{idle}"),
    }
}

pub fn doubt(doubt: &Doubt) -> String {
    let Doubt { right, judged, other, coverage } = *doubt;
    let help = what_would_help(coverage);
    let Some(right) = right else { return help.unwrap_or_default().into() };
    let mut words = format!("仅为猜测：此类判断的正确率为 {:.0} %", right * 100.0);
    if let Some(Candidate { limit, share }) = judged {
        words += &format!("；训练所得的判别器认为{}的可能性为 {:.0} %", name(limit), share * 100.0);
    } else if let Some(other) = other {
        words += &format!("；也可能是{}", name(other));
    }
    if let Some(help) = help {
        words += &format!("；{help}");
    }
    words
}

const fn what_would_help(coverage: Coverage) -> Option<&'static str> {
    match coverage {
        Coverage::FromStart => None,
        Coverage::MiddleAtSender => Some("从连接建立之前开始抓包会更有说服力"),
        Coverage::MiddleElsewhere => Some("在发送方从连接建立之前开始抓包会更有说服力"),
    }
}

pub fn headline(headline: &Headline) -> String {
    match headline.or {
        _ if headline.is_nothing() => NOTHING.into(),
        _ if !headline.is_guess() => name(headline.limit).into(),
        Some(or) => format!("可能是{}或{}", name(headline.limit), name(or)),
        None => format!("或许是{}", name(headline.limit)),
    }
}
