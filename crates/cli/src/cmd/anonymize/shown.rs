//! What is said of a capture that was anonymised.

use super::check::Checked;
use super::{Anonymize, Work};
use crate::sentence::{Sentence, either};
use fullpipe_flow::capture::anonymize::{AnonymizedCounts, Dropped, Find, FindKind};
use fullpipe_flow::schema::Version;
use fullpipe_model::units::Bytes;
use fullpipe_report::table::escape::in_line;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The JSON of `fullpipe anonymize`.
#[derive(Serialize)]
pub struct Anonymized {
    schema: Version,
    /// The file that was written.
    output: PathBuf,
    size_bytes: u64,
    /// Packets that came; each has a record in the output.
    packets: u64,
    /// Records without content, by what the packet was.
    dropped: BTreeMap<&'static str, u64>,
    /// IP addresses that were replaced.
    addresses: u64,
    /// Cards' addresses.
    macs: u64,
    /// What the output was held to; null with --no-check.
    check: Option<Checked>,
    #[serde(skip)]
    all_dropped: u64,
    /// Whether the user named the key.
    #[serde(skip)]
    is_key_given: bool,
}

impl Anonymized {
    pub fn new(asked: &Anonymize, work: &mut Work, check: Option<Checked>) -> Anonymized {
        let counts: AnonymizedCounts = work.anonymizer.counts();
        let map = work.anonymizer.addresses();
        let (addresses, macs) = (map.seen().count() as u64, map.seen_macs().count() as u64);
        let dropped = Dropped::all().map(|why| (why.name(), counts.dropped(why)));
        Anonymized {
            schema: Version::default(),
            output: asked.output.clone(),
            size_bytes: work.bytes,
            packets: counts.packets,
            dropped: dropped.filter(|(_, count)| *count > 0).collect(),
            addresses,
            macs,
            check,
            all_dropped: counts.all_dropped(),
            is_key_given: asked.key_file.is_some(),
        }
    }

    /// Whether it may be shared.
    pub fn is_clean(&self) -> bool {
        self.check.as_ref().is_none_or(Checked::is_clean)
    }

    /// Whether it may be under another key.
    pub fn may_be_the_key(&self) -> bool {
        self.check.as_ref().is_some_and(Checked::may_be_the_key)
    }

    /// What the user is told.
    pub fn text(&self) -> String {
        let (output, size) =
            (in_line(&self.output.display().to_string()).into_owned(), Bytes::new(self.size_bytes));
        let Anonymized { packets, all_dropped, addresses, macs, .. } = self;
        let mut lines = vec![either(
            format!(
                "{output}: {packets} packets, {size}; replaced: IP addresses {addresses}, addresses of cards {macs}"
            ),
            format!(
                "{output}：{packets} 个数据包，{size}；替换了 {addresses} 个 IP 地址和 {macs} 个网卡地址"
            ),
        )];
        if *all_dropped > 0 {
            let kinds: Vec<_> =
                self.dropped.iter().map(|(why, count)| format!("{why} {count}")).collect();
            let kinds = kinds.join(", ");
            lines.push(either(
                format!("{all_dropped} of them are empty records, as they carry no TCP: {kinds}"),
                format!("其中 {all_dropped} 个是空记录，因为它们不承载 TCP：{kinds}"),
            ));
        }
        lines.push(match &self.check {
            Some(check) => checked(check),
            None => {
                either("Not checked, as --no-check asks.".into(), "按 --no-check 未作检查。".into())
            }
        });
        lines.push(either(
            "Still visible: ports, sizes and times of packets, sequence numbers, TCP's options and time stamps, \
             hop limits, VLANs, and which addresses share a network. Whoever has another record of this traffic \
             can recognise it."
                .into(),
            "仍然可见：端口、数据包的大小和时间、序列号、TCP 选项和时间戳、跳数限制、VLAN，以及哪些地址同属一个网络。\
             持有这些流量其他记录的人可以认出它。"
                .into(),
        ));
        lines.join("\n") + "\n"
    }

    /// Why nothing is left of the output.
    pub fn refusal(&self) -> Sentence {
        let Some(check) = &self.check else { return Sentence::as_is("") };
        let numbers: Vec<_> = check.other_answers.iter().map(|id| format!("#{id}")).collect();
        let numbers = numbers.join(", ");
        let (found, places) = (check.found, Sentence::joined(&places(&check.finds)));
        let (english, chinese) = (places.english(), places.chinese());
        let output = in_line(&self.output.display().to_string()).into_owned();
        if self.is_key_given && check.may_be_the_key() {
            return Sentence::new(
                format!(
                    "anonymize: {found} addresses of the input are in the output, which is not written to {output}: {english}; a key can make them of others: try another one of fullpipe keygen, and if it is so with that one, too, please report this"
                ),
                format!(
                    "anonymize：输出中有输入的 {found} 个地址，因此没有写入 {output}：{chinese}；密钥可能把其他地址变成了它们：请换一个由 fullpipe keygen 生成的密钥，若仍然如此，请报告此问题"
                ),
            );
        }
        if found > 0 {
            return Sentence::new(
                format!(
                    "anonymize: {found} parts of the input are in the output, which is not written to {output}: {english}; please report this"
                ),
                format!(
                    "anonymize：输出中有输入的 {found} 处内容，因此没有写入 {output}：{chinese}；请报告此问题"
                ),
            );
        }
        Sentence::new(
            format!(
                "anonymize: another answer would be given for {numbers}, so {output} is not written; please report this, --no-check writes it"
            ),
            format!(
                "anonymize：连接 {numbers} 的结论会不同，因此没有写入 {output}；请报告此问题，--no-check 仍会写出"
            ),
        )
    }
}

/// Where in the output something of the input ends.
fn places(finds: &[Find]) -> Vec<Sentence> {
    let places = finds.iter().map(|find| {
        let at = find.offset;
        match find.kind {
            FindKind::Payload => {
                Sentence::new(format!("payload at byte {at}"), format!("第 {at} 字节处的载荷"))
            }
            FindKind::Address => {
                Sentence::new(format!("an address at byte {at}"), format!("第 {at} 字节处的地址"))
            }
            FindKind::Mac => Sentence::new(
                format!("a card's address at byte {at}"),
                format!("第 {at} 字节处的网卡地址"),
            ),
        }
    });
    places.collect()
}

/// What the output was held to, and stood.
fn checked(check: &Checked) -> String {
    let Checked { connections, searched_one_of, .. } = check;
    let share = if *searched_one_of == 1 {
        either("every part of the payloads".into(), "载荷的每个部分".into())
    } else {
        either(
            format!("one of {searched_one_of} parts of the payloads"),
            format!("载荷中每 {searched_one_of} 个部分取一个"),
        )
    };
    let plural = if *connections == 1 { "" } else { "s" };
    let count = format!("{connections} connection{plural}");
    either(
        format!(
            "Checked: the same answer as before for {count}; {share}, and every address, was looked \
             for in the output, and none is there."
        ),
        format!(
            "已检查：{connections} 个连接的结论与之前相同；在输出中查找了{share}、地址和网卡地址，均不存在。"
        ),
    )
}
