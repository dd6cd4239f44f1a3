//! Settings of this machine that cannot be changed or put back, and what is seen of them.

use super::{Sentence, told, within};
use crate::sentence::phrases::chinese as phrase;
use fullpipe_host::history::HistoryError;
use fullpipe_host::recording;
use fullpipe_host::trigger::TriggerError;
use fullpipe_host::tune::{ApplyError, Changed, Item, MachineError, RecordError, UndoError};
use fullpipe_host::verify::{Hidden, Open, Sign};

impl From<&MachineError> for Sentence {
    fn from(error: &MachineError) -> Sentence {
        let chinese = match error {
            MachineError::Sysctl(error) => within(error),
            MachineError::Refused(refused) => within(refused),
            MachineError::File { operation, path, cause } => format!(
                "{}：{}：{cause}；需要 root，以及可写的文件系统",
                phrase(operation),
                path.display()
            ),
            MachineError::Record(error) => within(error),
        };
        told(error, chinese)
    }
}

impl From<&RecordError> for Sentence {
    fn from(error: &RecordError) -> Sentence {
        told(error, format!("读取记录：文件有误（{error}）；若它不是 fullpipe 的，请移走"))
    }
}

/// A value in a sentence.
fn value(item: &Item, value: &Option<String>) -> String {
    match (item, value) {
        (_, None) => "不存在".into(),
        (Item::File(_), Some(text)) => format!("{} 行", text.lines().count()),
        (_, Some(text)) => text.clone(),
    }
}

impl From<&Item> for Sentence {
    fn from(item: &Item) -> Sentence {
        match item {
            Item::Knob(knob) => Sentence::as_is(knob),
            Item::File(path) => told(item, format!("文件 {}", path.display())),
        }
    }
}

impl From<&Changed> for Sentence {
    fn from(changed: &Changed) -> Sentence {
        let Changed { setting, found, expected, to } = changed;
        let [found, expected, to] = [found, expected, to].map(|one| value(setting, one));
        let chinese =
            format!("{} 现在是 {found}，而不是 {expected}；本应改为 {to}", within(setting));
        told(changed, chinese)
    }
}

impl From<&ApplyError<MachineError>> for Sentence {
    fn from(error: &ApplyError<MachineError>) -> Sentence {
        let chinese = match error {
            ApplyError::Changed(changed) => {
                format!("应用：{}；制定方案后有人改动了它，请重新制定方案", within(changed))
            }
            ApplyError::Refused(cause) => {
                format!("{}；没有改变任何东西：此前设置的已恢复", within(cause))
            }
            ApplyError::Stuck { cause, back } => format!(
                "{}；并且未能全部恢复（{}）：`fullpipe tune undo` 会再试，`fullpipe tune status` 显示已设置的内容",
                within(cause),
                within(back)
            ),
        };
        told(error, chinese)
    }
}

impl From<&UndoError<MachineError>> for Sentence {
    fn from(error: &UndoError<MachineError>) -> Sentence {
        let chinese = match error {
            UndoError::Changed(all) => {
                let all: Vec<String> = all.iter().map(within).collect();
                format!(
                    "撤销：{}；没有恢复任何东西：--force 仍恢复旧值，--skip-changed 保留这些而恢复其余",
                    all.join("；")
                )
            }
            UndoError::Refused(cause) => {
                format!("{}；请再次运行 undo，它从中断处继续", within(cause))
            }
        };
        told(error, chinese)
    }
}

impl From<&Sign> for Sentence {
    fn from(sign: &Sign) -> Sentence {
        told(sign, seen(sign))
    }
}

fn seen(sign: &Sign) -> String {
    match sign {
        Sign::AskedReceive(got) => format!("用 SO_RCVBUF 申请最大值的套接字得到 {got:#}"),
        Sign::AskedSend(got) => format!("用 SO_SNDBUF 申请最大值的套接字得到 {got:#}"),
        Sign::Control(name) => format!("新套接字使用 {name}"),
        Sign::Option(true) => "握手中启用了它".into(),
        Sign::Option(false) => "握手中没有启用它".into(),
        Sign::Grew(before, after) => {
            format!("{before:#} 的缓冲区填满又取空后成为 {after:#}")
        }
        Sign::Pause(before, after) => {
            format!("{before} 个报文段的拥塞窗口在停顿后为 {after}")
        }
        Sign::NewReceive(size) => format!("新套接字的接收缓冲区为 {size:#}"),
        Sign::Scale(offered, expected) => {
            format!("握手提出的窗口缩放因子为 {offered}，应为 {expected}")
        }
        Sign::Sizes(initial, largest, open) => {
            format!("新套接字为 {initial:#}，填满后增长到 {largest:#}{}", left_open(*open))
        }
        Sign::Unsent(unsent) => format!("不再接受数据的套接字有 {unsent:#} 未发送"),
        Sign::UnsentHidden(unsent) => {
            format!("发送缓冲区先已装满：不再接受数据的套接字有 {unsent:#} 未发送")
        }
        Sign::NoConnection(why) => format!("环回上没有连接（{why}）：lo 启用了吗？"),
        Sign::Hidden(why) => hidden(*why).into(),
        Sign::QueueTaken(device, kind) => format!("{device} 上的 {kind} 按它取队列长度"),
        Sign::QueueIgnored(device, kinds) => {
            let kinds = if kinds.is_empty() { "无".into() } else { kinds.join("、") };
            format!(
                "{device} 上是 {kinds}，它不读取此值：`tc qdisc replace dev {device} root pfifo_fast`，或给该\
                 队列规则设置自己的上限"
            )
        }
        Sign::NoRoute(peer) => format!("内核没有到 {peer} 的路由"),
        Sign::Route(peer, device, metric, got) => {
            format!("发往 {peer} 的数据包从 {device} 离开，{} 为 {got}", metric.name())
        }
    }
}

const fn left_open(open: Open) -> &'static str {
    match open {
        Open::Nothing => "",
        Open::TooMuchMemory => "；握手的窗口缩放因子是为其最大值设定的；要填满它，这里内存不够",
        Open::NotNeeded => "；环回不需要其最大值",
        Open::NeedsDelay => "；其最大值要在有时延的路径上才用得到：环回不需要更多",
    }
}

const fn hidden(why: Hidden) -> &'static str {
    match why {
        Hidden::NewDevices => "今后创建的设备才用它",
        Hidden::AllSockets => "它限制所有套接字的总和：见 /proc/net/sockstat",
        Hidden::LossyPaths => "它在丢失大数据包的路径上起作用",
        Hidden::NotRead => "自 6.6 起 Linux 不再读取它",
        Hidden::LoopbackWindows => "环回的窗口受限于其报文段",
        Hidden::NoGrowth => "缓冲区不能增长：tcp_rmem 的最大值就是其初始值",
        Hidden::NoWindowGrowth => "拥塞窗口在环回上没有增长",
        Hidden::NotSaid => "此内核不说明还有多少未发送",
        Hidden::Unknown => "对它一无所知",
    }
}

impl From<&recording::RecordError> for Sentence {
    fn from(error: &recording::RecordError) -> Sentence {
        let chinese = match error {
            recording::RecordError::Refused(refused) => within(refused),
            recording::RecordError::Write { place, cause } => {
                format!("写入记录 {place}：{cause}；请腾出空间，或换一个位置")
            }
        };
        told(error, chinese)
    }
}

impl From<&HistoryError> for Sentence {
    fn from(error: &HistoryError) -> Sentence {
        let chinese = match error {
            HistoryError::Refused(refused) => within(refused),
            HistoryError::Held(place) => {
                format!("把套接字记录到 {place}：另一个记录程序正在写入；请结束它，或换一个文件夹")
            }
            HistoryError::Empty { place } => {
                format!("读取 {place}：没有记录；`fullpipe record --sockets` 可以记录")
            }
            HistoryError::Unwritable { place, cause } => {
                format!("把套接字记录到 {place}：{cause}；请给出自己的、他人不能写入的文件夹")
            }
            HistoryError::Unreadable { place, cause } => {
                format!("读取记录 {place}：{cause}；请用 --ring 给出其文件夹，或以其用户运行")
            }
        };
        told(error, chinese)
    }
}

impl From<&TriggerError> for Sentence {
    fn from(error: &TriggerError) -> Sentence {
        let cause = match error {
            TriggerError::NoComparison(text) => format!("'{text}' 中没有用 < 或 > 比较什么"),
            TriggerError::NoQuantity(name) => {
                format!("'{name}' 不是 goodput、rtt 或 retransmitted")
            }
            TriggerError::Value(error) => within(error),
        };
        told(
            error,
            format!("{cause}；例如 'goodput < 10mbit'、'rtt > 200ms'、'retransmitted > 1%'"),
        )
    }
}

/// Of an option's value.
pub fn of_value(cause: &(dyn std::error::Error + 'static)) -> Option<Sentence> {
    cause.downcast_ref::<TriggerError>().map(Sentence::from)
}
