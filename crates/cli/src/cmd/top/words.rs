//! What the screen says, in each language.

use super::row::{Hidden, Snapshot};
use super::view::Sort;
use crate::cmd::past::calendar;
use fullpipe_flow::Language;
use fullpipe_model::limit::{Cause, End, Limit};
use fullpipe_model::units::{Duration, Instant, Rate};
use ratatui_core::text::Span;

/// What stands on the screen without numbers.
pub struct Words {
    pub help_title: &'static str,
    /// The keys of the list, those that a newcomer needs most first.
    pub list_keys: [&'static str; 6],
    pub details_keys: [&'static str; 4],
    pub help_keys: [&'static str; 1],
    /// Each key, and what it does.
    pub keys: [(&'static str, &'static str); 8],
    pub bar_means: &'static str,
    pub lost_means: [&'static str; 2],
    /// The headings: the time lost, the bar of limits, the longest limit, rate, history.
    pub headings: [&'static str; 5],
    pub nothing_busy: &'static str,
    pub is_gone: &'static str,
    pub paused: &'static str,
}

const ENGLISH: Words = Words {
    help_title: "Keys and letters",
    list_keys: [
        "q: quit",
        "?: help",
        "Enter: details",
        "/: filter",
        "l r t n a: order",
        "p: pause",
    ],
    details_keys: ["Esc: back", "p: pause", "q: quit", "?: help"],
    help_keys: ["any key: back"],
    keys: [
        ("up, down, j, k", "select a connection; PgUp, PgDn, Home, End go further"),
        ("Enter", "show the graphs of the selected one; Esc goes back"),
        ("l r t n a", "order by lost time, rate, retransmitted, process name, address"),
        ("/", "filter: 443, 10.0.0.2, nginx; and, or, not, port N, pid N"),
        ("Esc", "remove the filter"),
        ("p, blank", "hold the picture; sampling goes on"),
        ("q, Ctrl-C", "end"),
        ("Ctrl-Z", "stop; the shell's fg goes on"),
    ],
    bar_means: "A bar has a letter for each share of the time:",
    lost_means: [
        "LOST is the time that something other than the path and the sending",
        "application held the data, over the time that the connection was busy.",
    ],
    headings: ["LOST", "LIMITS", "LONGEST", "RATE", "HISTORY"],
    nothing_busy: "No connection moves data, or waits to.",
    is_gone: "This connection is closed or idle; Esc goes back to the list.",
    paused: ", PAUSED",
};

const CHINESE: Words = Words {
    help_title: "按键与字母",
    list_keys: ["q: 退出", "?: 帮助", "Enter: 详情", "/: 过滤", "l r t n a: 排序", "p: 暂停"],
    details_keys: ["Esc: 返回", "p: 暂停", "q: 退出", "?: 帮助"],
    help_keys: ["任意键: 返回"],
    keys: [
        ("up, down, j, k", "选择连接；PgUp、PgDn、Home、End 移动更远"),
        ("Enter", "显示所选连接的图表；Esc 返回"),
        ("l r t n a", "按损失时间、速率、重传、进程名、地址排序"),
        ("/", "过滤：443、10.0.0.2、nginx；and、or、not、port N、pid N"),
        ("Esc", "去掉过滤"),
        ("p, 空格", "画面暂停；采样继续"),
        ("q, Ctrl-C", "退出"),
        ("Ctrl-Z", "挂起；在 shell 中用 fg 继续"),
    ],
    bar_means: "条形中每个字母代表一份时间：",
    lost_means: ["“损失”是数据被路径和发送端应用之外的因素", "限制的时间，占连接繁忙时间的比例。"],
    headings: ["损失", "限制", "最长的限制", "速率", "历史"],
    nothing_busy: "没有连接在传输数据，也没有连接在等待传输。",
    is_gone: "此连接已关闭或空闲；按 Esc 返回列表。",
    paused: "，已暂停",
};

/// The words of a language.
pub const fn of(language: Language) -> &'static Words {
    match language {
        Language::English => &ENGLISH,
        Language::Chinese => &CHINESE,
    }
}

/// How many connections there are.
pub fn counted(language: Language, snapshot: &Snapshot) -> String {
    let Snapshot { connections: all, namespaces, .. } = *snapshot;
    let busy = snapshot.rows.len();
    match language {
        Language::English if namespaces > 1 => {
            format!("{busy} busy of {all} connections in {namespaces} namespaces")
        }
        Language::English => format!("{busy} busy of {all} connections"),
        Language::Chinese if namespaces > 1 => {
            format!("{namespaces} 个命名空间的 {all} 个连接中 {busy} 个繁忙")
        }
        Language::Chinese => format!("{all} 个连接中 {busy} 个繁忙"),
    }
}

/// How often it looks.
pub fn every(language: Language, interval: Duration) -> String {
    match language {
        Language::English => format!(", every {interval}"),
        Language::Chinese => format!("，每 {interval}"),
    }
}

/// Of which time it is.
pub fn then(language: Language, from: Instant, span: Duration) -> String {
    let from = calendar(from);
    match language {
        Language::English => format!("{span} from {from}: "),
        Language::Chinese => format!("{from} 起的 {span}："),
    }
}

/// The order of the list.
pub fn ordered(language: Language, sort: Sort) -> String {
    match language {
        Language::English => format!(", by {}", sort.word()),
        Language::Chinese => {
            let by = match sort {
                Sort::Lost => "损失",
                Sort::Rate => "速率",
                Sort::Retransmitted => "重传",
                Sort::Process => "进程",
                Sort::Address => "地址",
            };
            format!("，按{by}排序")
        }
    }
}

/// What the list is restricted to.
pub fn only(language: Language, filter: &str) -> String {
    match language {
        Language::English => format!(", only {filter}"),
        Language::Chinese => format!("，仅 {filter}"),
    }
}

/// The filter while it is typed.
pub fn typing(language: Language, text: &str) -> String {
    match language {
        Language::English => {
            format!("filter: {text}_  (443, address, process; and, or, not; Enter, Esc)")
        }
        Language::Chinese => {
            format!("过滤：{text}_  （443、地址、进程；and、or、not；Enter、Esc）")
        }
    }
}

/// No connection fits the filter.
pub fn none_fits(language: Language, busy: usize) -> String {
    match language {
        Language::English => {
            format!("None of {busy} busy connections fits the filter; Esc removes it.")
        }
        Language::Chinese => format!("{busy} 个繁忙的连接都不符合过滤条件；按 Esc 去掉它。"),
    }
}

/// What only root sees; `None` where everything is seen.
pub fn hidden(language: Language, hidden: Hidden) -> Option<String> {
    let Hidden { namespaces, has_processes } = hidden;
    let mut parts = Vec::new();
    match (language, namespaces) {
        (_, 0) => {}
        (Language::English, 1) => parts.push("one more network namespace".into()),
        (Language::English, count) => parts.push(format!("{count} more network namespaces")),
        (Language::Chinese, count) => parts.push(format!("另外 {count} 个网络命名空间")),
    }
    match (language, has_processes) {
        (_, false) => {}
        (Language::English, true) => parts.push("the processes of other users".into()),
        (Language::Chinese, true) => parts.push("其他用户的进程".into()),
    }
    (!parts.is_empty()).then(|| match language {
        Language::English => format!("Only root sees {}.", parts.join(" and ")),
        Language::Chinese => format!("只有 root 能看到{}。", parts.join("和")),
    })
}

/// The rate now, and the highest of the moments that are shown.
pub fn rates(language: Language, now: Rate, most: Rate, moments: usize, each: Duration) -> String {
    match language {
        Language::English => {
            format!("{now:#} now, {most:#} at most in {moments} moments of {each}")
        }
        Language::Chinese => format!("现在 {now:#}，{moments} 个 {each} 中最高 {most:#}"),
    }
}

/// Which end this host is.
pub fn role(language: Language, role: End) -> &'static str {
    match (language, role) {
        (Language::English, End::Sender) => "sender",
        (Language::English, End::Receiver) => "receiver",
        (Language::Chinese, End::Sender) => "发送方",
        (Language::Chinese, End::Receiver) => "接收方",
    }
}

/// A name of at most 14 cells.
pub fn short_name(language: Language, limit: Limit) -> &'static str {
    match (language, limit) {
        (Language::English, Limit::ReceiverApplication) => "receiver app",
        (Language::English, Limit::SenderApplication) => "sender app",
        (Language::English, Limit::ApplicationWindow) => "app window",
        (Language::English, Limit::CongestionWindow(Cause::SlowStart)) => "slow start",
        (Language::English, Limit::CongestionWindow(Cause::Loss)) => "loss",
        (Language::Chinese, Limit::CongestionWindow(Cause::SlowStart)) => "慢启动",
        (Language::Chinese, Limit::CongestionWindow(Cause::Loss)) => "丢包",
        (language, other) => language.limit(other),
    }
}

/// A limit's name, and whether its time is lost.
pub fn with_loss(language: Language, limit: Limit) -> String {
    let name = language.limit(limit);
    match language {
        _ if !limit.loses_time() => name.into(),
        Language::English => format!("{name} (lost)"),
        Language::Chinese => format!("{name}（损失）"),
    }
}

/// The name of a figure of the details. Names of the kernel and of ss stay.
pub fn fact(language: Language, english: &'static str) -> &'static str {
    match (language, english) {
        (Language::English, english) => english,
        (Language::Chinese, "sent") => "已发送",
        (Language::Chinese, "received") => "已接收",
        (Language::Chinese, "sent again") => "重传",
        (Language::Chinese, "namespace") => "命名空间",
        (Language::Chinese, "cgroup") => "控制组",
        (Language::Chinese, "container") => "容器",
        (Language::Chinese, "pod") => "Pod",
        (Language::Chinese, "congestion control") => "拥塞控制",
        (Language::Chinese, "round trip") => "往返时间",
        (Language::Chinese, "congestion window") => "拥塞窗口",
        (Language::Chinese, "unacknowledged") => "未确认",
        (Language::Chinese, "segment") => "报文段",
        (Language::Chinese, "least round trip") => "最短往返",
        (Language::Chinese, "peer's window") => "对端窗口",
        (Language::Chinese, "pacing rate") => "pacing 速率",
        (Language::Chinese, "delivery rate") => "交付速率",
        (Language::Chinese, other) => other,
    }
}

/// How many cells a text takes.
pub fn cells(text: &str) -> usize {
    Span::raw(text).width()
}

/// `text` with blanks behind it, so that it takes `width` cells.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(cells(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_fit_in_each_language() {
        for language in Language::ALL {
            for limit in Limit::ALL {
                let name = short_name(language, limit);
                assert!(cells(name) <= 14, "{name}");
            }
        }
        assert_eq!(padded("丢包", 6), "丢包  ");
    }
}
