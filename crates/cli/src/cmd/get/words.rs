//! What a download says, in each language.

use fullpipe_flow::Language;
use fullpipe_model::limit::{Cause, Limit};
use fullpipe_model::units::{Bytes, Duration, Rate};
use fullpipe_transfer::{Got, Reason};

/// Who holds a download back, in words for somebody who downloads.
pub fn held_by(language: Language, limit: Limit, limited: bool) -> &'static str {
    let by_option = matches!(limit, Limit::ReceiverApplication | Limit::ReceiveWindow) && limited;
    match (language, limit) {
        _ if by_option => "--limit-rate",
        (Language::English, Limit::ReceiveWindow) => "this host's receive window",
        (Language::English, Limit::ReceiverApplication) => "this program or its disk",
        (Language::English, Limit::SendBuffer) => "the server's send buffer",
        (Language::English, Limit::SenderApplication) => "the server",
        (Language::English, Limit::CongestionWindow(Cause::SlowStart)) => "slow start",
        (Language::English, Limit::CongestionWindow(Cause::Loss)) => "loss on the path",
        (Language::English, Limit::Link) => "the link",
        (Language::English, Limit::ApplicationWindow) => "a window of the protocol",
        (Language::English, Limit::Unknown) => "not clear",
        (Language::Chinese, Limit::ReceiveWindow) => "本机的接收窗口",
        (Language::Chinese, Limit::ReceiverApplication) => "本程序或其磁盘",
        (Language::Chinese, Limit::SendBuffer) => "服务器的发送缓冲区",
        (Language::Chinese, Limit::SenderApplication) => "服务器",
        (Language::Chinese, Limit::CongestionWindow(Cause::SlowStart)) => "慢启动",
        (Language::Chinese, Limit::CongestionWindow(Cause::Loss)) => "路径上的丢包",
        (Language::Chinese, Limit::Link) => "链路",
        (Language::Chinese, Limit::ApplicationWindow) => "协议自身的窗口",
        (Language::Chinese, Limit::Unknown) => "不明确",
    }
}

/// What the bar says beside the rate: the time left, how many connections, the limit.
pub fn meanwhile(
    language: Language,
    left: Option<Duration>,
    connections: usize,
    limit: Option<&str>,
) -> String {
    let mut text = String::new();
    if let Some(left) = left {
        let seconds = left.as_secs_f64().ceil();
        text += &match language {
            Language::English => format!(", {seconds:.0} s left"),
            Language::Chinese => format!("，剩余 {seconds:.0} s"),
        };
    }
    if connections > 1 {
        text += &match language {
            Language::English => format!(", {connections} connections"),
            Language::Chinese => format!("，{connections} 个连接"),
        };
    }
    if let Some(limit) = limit {
        text += &match language {
            Language::English => format!(", limit: {limit}"),
            Language::Chinese => format!("，受限于：{limit}"),
        };
    }
    text
}

/// What was fetched, in a line.
pub fn fetched(language: Language, name: &str, got: &Got, rate: &str) -> String {
    let Got { fetched, version, peer, timing, .. } = got;
    let time = timing.total;
    match language {
        Language::English => {
            format!("{name}: {fetched} in {time}, {rate}, {version} from {peer}\n")
        }
        Language::Chinese => {
            format!("{name}：{time} 内 {fetched}，{rate}，{version}，来自 {peer}\n")
        }
    }
}

/// How much was there already.
pub fn continued(language: Language, there: Bytes, all: Bytes) -> String {
    match language {
        Language::English => format!("  continued: {there} were there of {all}\n"),
        Language::Chinese => format!("  续传：{all} 中已有 {there}\n"),
    }
}

/// When each step was done, and the rate from the first byte on.
pub fn since_start(language: Language, times: &str, rate: Option<&str>) -> String {
    match language {
        Language::English => {
            format!("  since the start: {times}; from it on {}\n", rate.unwrap_or("no time"))
        }
        Language::Chinese => {
            format!("  自开始以来：{times}；此后 {}\n", rate.unwrap_or("没有时间"))
        }
    }
}

/// What held it at last.
pub fn limited_by(language: Language, held_by: &str) -> String {
    match language {
        Language::English => format!("  limited by: {held_by}\n"),
        Language::Chinese => format!("  受限于：{held_by}\n"),
    }
}

/// A step in the number of connections.
pub fn step(
    language: Language,
    at: Duration,
    connections: usize,
    rate: Option<Rate>,
    reason: Reason,
) -> String {
    let (at, why) = (at.as_secs_f64(), because(language, reason));
    match language {
        Language::English => {
            let rate = rate.map_or_else(String::new, |rate| format!(" {rate},"));
            let plural = if connections == 1 { "" } else { "s" };
            format!("  after {at:.1} s: {connections} connection{plural}:{rate} {why}\n")
        }
        Language::Chinese => {
            let rate = rate.map_or_else(String::new, |rate| format!("{rate}，"));
            format!("  {at:.1} s 后：{connections} 个连接：{rate}{why}\n")
        }
    }
}

const fn because(language: Language, reason: Reason) -> &'static str {
    match (language, reason) {
        (Language::English, Reason::Start) => "more may help",
        (Language::English, Reason::Pays) => "that pays",
        (Language::English, Reason::BringsTooLittle) => "brings too little, so back to fewer",
        (Language::English, Reason::Worse) => "less than before, so back to fewer",
        (Language::English, Reason::Diagnosis) => {
            "the limit is one that more connections do not lift"
        }
        (Language::English, Reason::Refused) => "the server refused more",
        (Language::Chinese, Reason::Start) => "更多可能有帮助",
        (Language::Chinese, Reason::Pays) => "有收益",
        (Language::Chinese, Reason::BringsTooLittle) => "收益太小，减少连接",
        (Language::Chinese, Reason::Worse) => "比之前更慢，减少连接",
        (Language::Chinese, Reason::Diagnosis) => "增加连接无法解除这一限制",
        (Language::Chinese, Reason::Refused) => "服务器拒绝了更多连接",
    }
}

/// The file is the one that was asked for.
pub const fn as_expected(language: Language) -> &'static str {
    match language {
        Language::English => "  SHA-256: as expected\n",
        Language::Chinese => "  SHA-256：与预期一致\n",
    }
}
