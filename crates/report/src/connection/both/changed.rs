//! What the path changed in headers, in words.

use super::BothReport;
use fullpipe_flow::Language;
use fullpipe_flow::connection::pair::{HeaderChange, HeaderField, PairedConnection, Tap};

impl BothReport<'_> {
    /// A change as a sentence.
    pub(super) fn changed(
        &self,
        one: &PairedConnection,
        change: &HeaderChange,
        language: Language,
    ) -> String {
        let near_client = one.near_client.unwrap_or(Tap::A);
        let near = if change.from_client { near_client } else { near_client.other() };
        let (near, far) = (self.name(near), self.name(near.other()));
        let whose = match (language, change.from_client) {
            (Language::English, true) => "the client's",
            (Language::English, false) => "the server's",
            (Language::Chinese, true) => "客户端的",
            (Language::Chinese, false) => "服务器的",
        };
        let what = field(change.field, language);
        if change.field == HeaderField::Address {
            let [client, server] = [one.client, one.server].map(|ends| (ends[0], ends[1]));
            let [a, b] = self.names;
            return match language {
                Language::English => format!(
                    "addresses are translated between the two: {} and {} at {a}, {} and {} at {b}",
                    client.0, server.0, client.1, server.1
                ),
                Language::Chinese => format!(
                    "两处之间有地址转换：在 {a} 为 {} 与 {}，在 {b} 为 {} 与 {}",
                    client.0, server.0, client.1, server.1
                ),
            };
        }
        if let (HeaderField::Hops, Some(from), Some(to)) = (change.field, change.near, change.far)
            && from > to
        {
            let hops = from - to;
            return match language {
                Language::English if hops == 1 => {
                    format!("{whose} packets pass one hop between the two")
                }
                Language::English => format!("{whose} packets pass {hops} hops between the two"),
                Language::Chinese => format!("{whose}数据包在两处之间经过 {hops} 跳"),
            };
        }
        let HeaderChange { packets, of, .. } = change;
        let often = match language {
            _ if of == &1 => String::new(),
            Language::English => format!(", in {packets} of {of} packets"),
            Language::Chinese => format!("（{of} 个数据包中的 {packets} 个）"),
        };
        if change.near.is_none() && change.far.is_none() {
            return match language {
                Language::English => format!("{whose} {what} were changed on the way{often}"),
                Language::Chinese => format!("{whose}{what}在途中被改写{often}"),
            };
        }
        let [from, to] = [change.near, change.far].map(|value| match (value, language) {
            (Some(value), _) => value.to_string(),
            (None, Language::English) => "none".into(),
            (None, Language::Chinese) => "无".into(),
        });
        match language {
            Language::English => {
                format!("{whose} {what}: {from} at {near}, {to} at {far}{often}")
            }
            Language::Chinese => {
                format!("{whose}{what}：在 {near} 为 {from}，在 {far} 为 {to}{often}")
            }
        }
    }
}

fn field(field: HeaderField, language: Language) -> &'static str {
    let (english, chinese) = match field {
        HeaderField::Address => ("addresses", "地址"),
        HeaderField::SequenceNumbers => ("sequence numbers", "序列号"),
        HeaderField::MaximumSegmentSize => ("MSS in its SYN", "SYN 中的 MSS"),
        HeaderField::WindowScale => ("window scale in its SYN", "SYN 中的窗口缩放"),
        HeaderField::SackPermitted => ("permission of SACK in its SYN", "SYN 中的 SACK 许可"),
        HeaderField::Timestamps => ("time stamps in its SYN", "SYN 中的时间戳"),
        HeaderField::TimestampValue => ("time stamps", "时间戳"),
        HeaderField::EcnRequest => ("request for ECN in its SYN", "SYN 中的 ECN 请求"),
        HeaderField::Ecn => ("ECN field", "ECN 字段"),
        HeaderField::CongestionMark => ("marks of congestion (ECN field)", "拥塞标记（ECN 字段）"),
        HeaderField::Dscp => ("DSCP", "DSCP"),
        HeaderField::Identification => ("IP identification", "IP 标识"),
        HeaderField::Window => ("windows", "窗口"),
        HeaderField::Hops => ("time to live", "TTL"),
    };
    match language {
        Language::English => english,
        Language::Chinese => chinese,
    }
}
