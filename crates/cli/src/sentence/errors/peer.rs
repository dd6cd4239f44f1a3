//! Other fullpipes that cannot be reached, and keys and destinations that are none.

use super::{Sentence, told, within};
use crate::sentence::phrases::chinese as phrase;
use fullpipe_peer::path_test::TestError;
use fullpipe_peer::record::FarRecordError;
use fullpipe_peer::relay::{ParseAllowError, RelayError};
use fullpipe_peer::{AcceptError, ParseKeyError, PeerError};
use std::error::Error;

/// Of an option's value.
pub fn of_value(cause: &(dyn Error + 'static)) -> Option<Sentence> {
    let of = cause.downcast_ref::<ParseKeyError>().map(Sentence::from);
    of.or_else(|| cause.downcast_ref::<ParseAllowError>().map(Sentence::from))
}

const NEEDS_KEYS: &str = "请用 `fullpipe keygen FILE` 生成";

impl From<&PeerError> for Sentence {
    fn from(error: &PeerError) -> Sentence {
        let chinese = match error {
            PeerError::Resolve { host, source } => {
                format!("解析 {host}：{source}；请检查名字，或直接给出地址")
            }
            PeerError::Connect { addr, source, hint } => {
                format!("连接 {addr}：{source}；{}", phrase(hint))
            }
            PeerError::NeedsKeys(addr) => format!(
                "连接 {addr}：另一台主机需要密钥：{NEEDS_KEYS}，并给出 --key FILE 和 --server-key KEY"
            ),
            PeerError::Authenticate { addr, cause, hint } => {
                format!("向 {addr} 认证：{}；{}", phrase(cause), phrase(hint))
            }
            PeerError::Broken { addr, source, hint } => {
                format!("与 {addr} 通信：{source}；{}", phrase(hint))
            }
            PeerError::Protocol { addr, cause } => format!("与 {addr} 通信：{cause}"),
            PeerError::Keys(cause) => format!("准备密钥：{cause}"),
        };
        told(error, chinese)
    }
}

impl From<&AcceptError> for Sentence {
    fn from(error: &AcceptError) -> Sentence {
        let chinese = match error {
            AcceptError::Bind { addr, source, hint } => {
                format!("监听 {addr}：{source}；{}", phrase(hint))
            }
            AcceptError::NeedsKeys(addr) => format!(
                "监听 {addr}：其他主机能到达的地址需要密钥：{NEEDS_KEYS}，并给出 --key FILE 和 --allow-key FILE"
            ),
            AcceptError::Keys(cause) => format!("准备密钥：{cause}"),
            AcceptError::Wait { addr, source } => {
                format!("等待 {addr} 上的连接：{source}；请重新启动")
            }
        };
        told(error, chinese)
    }
}

impl From<&TestError> for Sentence {
    fn from(error: &TestError) -> Sentence {
        let chinese = match error {
            TestError::Peer(error) => within(error),
            TestError::Refused { addr, why } => format!("与 {addr} 测试：对方拒绝：{why}"),
            TestError::Version { addr, theirs, ours } => format!(
                "与 {addr} 测试：对方协议版本为 {theirs}，本程序为 {ours}；请在两端安装相同的 fullpipe"
            ),
            TestError::Confused { addr } => {
                format!("与 {addr} 测试：对方的应答与所问不符；两端是否为同一版本？")
            }
            TestError::Early { addr, after, why } => {
                format!("与 {addr} 测试：数据在 {after} 后结束：{why}；对端或路径可能已中断")
            }
            TestError::Probe { addr, source } => {
                format!("用 UDP 探测到 {addr} 的路径 MTU：{source}；请不带 --rfc6349 测试")
            }
            TestError::Sample(cause) => format!("采样套接字：{cause}"),
            TestError::Congestion { name, source } => format!(
                "使用拥塞控制算法 {name}：{source}；net.ipv4.tcp_available_congestion_control 列出可用的\
                 （modprobe tcp_{name} 可能添加它；普通用户只能用 tcp_allowed_congestion_control 中的）"
            ),
            TestError::Samples(cause) => format!("读取采样：{cause}"),
            TestError::Spec(what) => what.clone(),
            TestError::Interrupted => "已中断".into(),
        };
        told(error, chinese)
    }
}

impl From<&FarRecordError> for Sentence {
    fn from(error: &FarRecordError) -> Sentence {
        let chinese = match error {
            FarRecordError::Peer(error) => within(error),
            FarRecordError::Refused(why) => format!("远端拒绝：{why}"),
            FarRecordError::Keep(cause) => format!("保存远端的记录：{cause}"),
        };
        told(error, chinese)
    }
}

impl From<&RelayError> for Sentence {
    fn from(error: &RelayError) -> Sentence {
        let chinese = match error {
            RelayError::Bind { addr, source } => {
                format!("监听 {addr}：{source}；请用 --listen 换一个地址或端口")
            }
            RelayError::Destination(text) => {
                format!("中继到 '{text}'：这不是目的地；请给出 HOST:PORT，IPv6 地址写在 [] 中")
            }
            RelayError::Peer(error) => within(error),
            RelayError::Runtime(cause) => {
                format!("准备等待套接字：{cause}；描述符是否有上限？")
            }
        };
        told(error, chinese)
    }
}

impl From<&ParseKeyError> for Sentence {
    fn from(error: &ParseKeyError) -> Sentence {
        let chinese = match error {
            ParseKeyError::Public(text) => format!(
                "'{text}' 不是公钥：公钥是 ed25519: 加 64 位十六进制数，如 `fullpipe keygen` 所示"
            ),
            ParseKeyError::Private => "这不是私钥：请用 `fullpipe keygen FILE` 生成".into(),
        };
        told(error, chinese)
    }
}

impl From<&ParseAllowError> for Sentence {
    fn from(error: &ParseAllowError) -> Sentence {
        let chinese = match error {
            ParseAllowError::Form(text) => format!(
                "'{text}' 不是可以允许的目的地：应为 HOST:PORT，其中 HOST 是名字、地址、网络（如 10.0.0.0/8）\
                 或 *，PORT 是数字、范围（如 8000-8999）或 *"
            ),
            ParseAllowError::Brackets(text) => format!(
                "'{text}' 不是可以允许的目的地：HOST:PORT 中的 IPv6 地址或网络要写在方括号中，如 \
                 [2001:db8::1]:443 或 [::/0]:443"
            ),
        };
        told(error, chinese)
    }
}
