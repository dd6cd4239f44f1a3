//! What is said at packets, in Chinese.

use super::rounded;
use super::sentences::{CommentWords, in_short, owner_in_short};
use fullpipe_flow::Language;
use fullpipe_flow::account::{AccountSpan, Cause, Owner};
use fullpipe_flow::connection::Direction;
use fullpipe_flow::limit::Limit;
use fullpipe_model::units::Duration;

/// Chinese.
pub(super) struct Chinese;

impl CommentWords for Chinese {
    fn connections(&self, count: u64) -> String {
        format!("{count} 个 TCP 连接")
    }

    fn more(&self, count: u64) -> String {
        format!("另有 {count} 个")
    }

    fn verdict(&self, answer: Option<(&str, &str)>) -> String {
        match answer {
            Some((claim, who)) => format!("{claim}；由谁处理：{who}"),
            None => "没有什么使它变慢".into(),
        }
    }

    fn owner(&self, owner: Owner) -> String {
        match owner {
            Owner::NotCaptured => "未抓到的部分".into(),
            Owner::Nobody => "无人".into(),
            owner => owner_in_short(owner, Language::Chinese).into(),
        }
    }

    fn wait(&self, span: &AccountSpan) -> String {
        let by = self.owner(span.owner);
        match span.cause {
            Cause::SynRepeated => "SYN 或其应答丢失后重新发送；时间花在路径上".into(),
            Cause::SynUnanswered => "SYN 无人应答".into(),
            Cause::SynMetOldConnection => {
                format!("SYN 遇到相同端口上的旧连接；时间花在{by}")
            }
            Cause::Refused => format!("{by}拒绝了 SYN"),
            Cause::ServerThinks => format!("{by}已收到请求，但没有应答"),
            Cause::ClientThinks => format!("{by}已收到应答，但没有再次请求"),
            Cause::DelayedAck => format!("{by}推迟了小数据（Nagle）所等待的 ACK"),
            Cause::Timeouts => "发送方在等待重传定时器；数据在路径上丢失".into(),
            Cause::Recovery => "等待丢失的数据重传；丢在路径上".into(),
            Cause::PathMtu => "超过路径 MTU 的报文段反复重传".into(),
            Cause::PeerGone => "一端不再应答，无论尝试多少次".into(),
            Cause::WindowShut => format!("{by}没有读取：其接收窗口已关闭"),
            Cause::Paused => format!("{by}在发送中途停顿"),
            Cause::Idle => "双方都没有要发送的数据".into(),
            Cause::NotCaptured => "抓包中缺少数据包".into(),
            Cause::Connect | Cause::Tls | Cause::Turns | Cause::Closing | Cause::Transfer(_) => {
                in_short(span, Language::Chinese).into()
            }
        }
    }

    fn until_here(&self, length: Duration, told: &str) -> String {
        format!("到此为止 {}：{told}", rounded(length))
    }

    fn unended(&self, length: Duration, told: &str) -> String {
        format!("到抓包结束时已 {}，仍未结束：{told}", rounded(length))
    }

    fn first_loss(&self) -> String {
        "最先丢失的数据在此重传".into()
    }

    fn is_asked(&self, owner: &str, length: Duration) -> String {
        format!("{owner}收到此请求，之后 {} 没有应答", rounded(length))
    }

    fn is_shut(&self, owner: &str, length: Duration) -> String {
        format!("窗口在此关闭，持续 {}：{owner}没有读取", rounded(length))
    }

    fn held_now(&self, span: &AccountSpan, limit: Limit, direction: Direction) -> String {
        let way = match direction {
            Direction::ClientToServer => "客户端到服务器",
            Direction::ServerToClient => "服务器到客户端",
        };
        let (limit, owner) = (Language::Chinese.limit(limit), self.owner(span.owner));
        format!("从这里起，{way}的数据受限于{limit}：{owner}")
    }
}
