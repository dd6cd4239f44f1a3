//! What the machine itself drops or holds back.

use crate::diagnosis::{CountedEvent, FlowCapRule, MachineCause};
use crate::finding::path_test::{MachineLimit, OwnLimit};
use fullpipe_model::limit::End;

pub fn claim(cause: &MachineCause) -> String {
    match cause {
        MachineCause::Counted { event, count, at: Some(at) } => {
            format!("{}：{count} 次（{at}）", counted(*event))
        }
        MachineCause::Counted { event, count, at: None } => {
            format!("{}：{count} 次", counted(*event))
        }
        MachineCause::OffloadOff { device, offload } => {
            format!("{device} 关闭了 {offload}：每个报文段都单独经过协议栈")
        }
        MachineCause::TcpMemory { held, bound, holder } => {
            let who = holder.as_ref().map_or(String::new(), |(process, memory)| {
                format!("；其中 {process} 的繁忙套接字占用 {memory:#}")
            });
            format!(
                "TCP 占用内存 {held:#}，达到 {bound:#}（net.ipv4.tcp_mem 的第二个值）后内核不再\
                 增大任何窗口{who}"
            )
        }
        MachineCause::GroupMemory { group, used, bound, sockets } => format!(
            "控制组 {group} 已用内存 {used:#}（上限 {bound:#}），其中套接字占 {sockets:#}：其窗口\
             被压小"
        ),
        MachineCause::FlowCap { rule, goodput } => {
            format!("{}，此连接传输 {goodput}", cap(*rule))
        }
        MachineCause::ShapedHere { kind, class, device, rate, waited, drops } => {
            let of = class.as_ref().map_or(String::new(), |class| format!("（类 {class}）"));
            let to = rate.map_or(String::new(), |rate| format!("到 {rate}"));
            let dropped = match drops {
                0 => String::new(),
                drops => format!("，并丢弃了 {drops} 个"),
            };
            format!(
                "{device} 上的 {kind}{of}对本机发出的流量整形{to}：期间数据包等待了 {waited} \
                 次{dropped}"
            )
        }
        MachineCause::DroppedBeforeSending { kind, device, drops, on_purpose } => {
            let how = match on_purpose {
                true => "这是有意设置的丢包",
                false => "因为队列已满",
            };
            format!("期间 {device} 上的 {kind} 丢弃了本机的 {drops} 个数据包，{how}")
        }
    }
}

pub fn machine_limit(limit: &MachineLimit) -> String {
    let MachineLimit { end, cpu, by } = limit;
    let percent = format!("占用一个核的 {:.0} %", 100.0 * cpu);
    let how = match by {
        OwnLimit::DidNotWrite => format!("本程序写入不够快（{percent}）"),
        OwnLimit::DidNotRead => format!("本程序读取不够快（{percent}）"),
        OwnLimit::BusyThread => format!("本程序有一个线程{percent}"),
    };
    let end = match end {
        End::Sender => "发送方",
        End::Receiver => "接收方",
    };
    format!("瓶颈是{end}的机器，而不是路径：{how}")
}

const fn counted(event: CountedEvent) -> &'static str {
    match event {
        CountedEvent::MemoryPressure => "全部 TCP 套接字合计进入内存紧张状态",
        CountedEvent::ReceiveQueuePruned => "接收缓冲区已满，接收队列被压缩",
        CountedEvent::ReceiveQueueDropped => "接收队列已满，丢弃数据",
        CountedEvent::ReceiveQueueFull => "接收队列已满，丢弃到达的报文段",
        CountedEvent::BacklogFull => "应用持有锁期间套接字的积压队列已满，丢弃报文段",
        CountedEvent::AbortedForMemory => "TCP 内存耗尽，中止连接",
        CountedEvent::AcceptQueueFull => "监听队列已满，拒绝连接",
        CountedEvent::OutOfOrderDropped => "缓冲区不足，丢弃乱序的报文段",
        CountedEvent::SoftnetDropped => "CPU 的积压队列已满，丢弃数据包",
        CountedEvent::SoftnetSqueezed => "接收处理在仍有数据包时用完配额",
        CountedEvent::CloudAllowanceExceeded => "实例超出云配额，数据包被延迟或丢弃",
        CountedEvent::RingFull => "网卡接收环已满，丢弃数据包",
        CountedEvent::DeviceBufferFull => "网卡接收缓冲区已满，丢弃数据包",
        CountedEvent::DriverBufferMissing => "驱动没有接收缓冲区，丢弃数据包",
        CountedEvent::DamagedFrames => "收到损坏的帧",
        CountedEvent::DroppedOnSending => "发送时被网卡或排队规则丢弃数据包",
    }
}

const fn cap(rule: FlowCapRule) -> &'static str {
    match rule {
        FlowCapRule::AmazonOutsideGroup => "Amazon EC2 在集群置放群组之外限制单个连接为 5 Gbit/s",
        FlowCapRule::AmazonInGroup => "Amazon EC2 在集群置放群组之内限制单个连接为 10 Gbit/s",
        FlowCapRule::AmazonEnaExpress => "Amazon EC2 启用 ENA Express 时限制单个连接为 25 Gbit/s",
    }
}
