//! What a proof says, in Chinese.

use fullpipe_flow::Language;
use fullpipe_flow::finding::proof::{AGREES_WITHIN, Proof};
use fullpipe_model::limit::{End, Limit};
use fullpipe_model::tune::MeasuredPath;
use fullpipe_model::tune::prove::{Assumption, Remedy};

pub(super) const fn end(end: End) -> &'static str {
    match end {
        End::Sender => "发送方",
        End::Receiver => "接收方",
    }
}

const fn name(limit: Limit) -> &'static str {
    Language::Chinese.limit(limit)
}

/// A change without its end.
pub(super) fn remedy(change: &Remedy) -> String {
    match change {
        Remedy::Sysctl(change) => {
            let least = if change.knob.is_size() { "至少 " } else { "" };
            format!("{} {least}{}", change.knob, change.to)
        }
        Remedy::Autotuning { end: End::Sender, .. } => "应用不设置 SO_SNDBUF".into(),
        Remedy::Autotuning { end: End::Receiver, .. } => "应用不设置 SO_RCVBUF".into(),
        Remedy::CongestionControl(name) => format!("拥塞控制算法 {name}"),
        Remedy::InitialWindow(segments) => format!("initcwnd {segments}（ip route）"),
        Remedy::ApplicationWindow { window, .. } => format!("程序自身的窗口至少 {window:#}"),
    }
}

pub(super) fn measured(path: &MeasuredPath) -> String {
    let MeasuredPath { goodput, rtt, .. } = path;
    let link = match (path.rate, path.policer) {
        (None, _) => "链路速率未知".into(),
        (Some(rate), None) => format!("链路 {rate}"),
        (Some(rate), Some(_)) if path.drops_tails => {
            format!("限速器的令牌桶放行 {rate}")
        }
        (Some(rate), Some(_)) => format!("限速器 {rate}"),
    };
    let loss = match path.loss {
        Some(loss) if loss.get() > 0.0 => {
            format!("，{:.3} % 的报文段丢失", loss.get() * 100.0)
        }
        _ => String::new(),
    };
    let limit = name(path.limited_by);
    format!("测得：{goodput}（{goodput:#}），受限于{limit}；往返 {rtt}，{link}{loss}。")
}

/// How well the lab repeats the measurement.
pub(super) fn agreement(proof: &Proof) -> String {
    let agreement = proof.agreement;
    let off = (agreement.ratio - 1.0) * 100.0;
    let within = AGREES_WITHIN * 100.0;
    if agreement.agrees {
        return format!(
            "实验室与测量一致：有效吞吐相差 {off:+.1} %（不超过 {within:.0} %），限制相同。"
        );
    }
    let (limit, seen) = (name(proof.before.limited_by), name(proof.measured.limited_by));
    let why = if agreement.same_limit {
        format!("有效吞吐相差 {off:+.1} %（超过 {within:.0} %）")
    } else {
        format!("有效吞吐相差 {off:+.1} %，限制是{limit}，而不是{seen}")
    };
    format!("实验室与测量不一致：{why}。因此这不是承诺：路径或其两端有与下列假定不符之处。")
}

/// What to do, and what to expect of it.
pub(super) fn conclusion(proof: &Proof) -> String {
    let measured = proof.measured.goodput;
    let Some(best) = proof.best() else {
        return if proof.measured.drops_tails {
            format!(
                "实验室无法判断什么有帮助：路径丢弃突发的尾部，而这次测量只显示其令牌桶放行的（{measured}），\
                 不是路径自身的速率。请在路径上试用 bbr 或 pacing（SO_MAX_PACING_RATE，带 maxrate 的 tc fq）：\
                 先用这个速率，再用更高的。"
            )
        } else if proof.trials.is_empty() {
            format!(
                "没有可尝试的：主机的任何设置都不改变这个限制（{}）。",
                name(proof.measured.limited_by)
            )
        } else {
            "尝试过的更改都没有带来二十分之一以上的增益。".into()
        };
    };
    let changes: Vec<String> =
        best.changes.iter().map(|one| super::remedy(Language::Chinese, one)).collect();
    let changes = changes.join("；");
    match best.expected {
        Some(expected) => {
            format!("预期约 {expected}（{expected:#}），而不是 {measured}，更改为：{changes}。")
        }
        None => format!("在实验室中增益最大的（{:.2} 倍）是：{changes}。", best.gain),
    }
}

/// What is assumed of the path.
pub(super) fn assumption(assumption: &Assumption) -> String {
    match assumption {
        Assumption::Ipv4 => "实验室的路径是 IPv4，数据包比 IPv6 的短 20 字节".into(),
        Assumption::Rate { seen, lab } => {
            format!("看不出路径在 {seen} 之外还能传多少：实验室的链路为 {lab}")
        }
        Assumption::LongerQueue { stood, lab } => {
            format!("路径队列中最多排了 {stood}，它可能容纳更多：实验室的容纳 {lab}")
        }
        Assumption::Queue(lab) => format!("没有看到路径的队列：实验室的容纳 {lab}"),
        Assumption::HarmlessLoss(seen) => {
            format!("丢失的报文段（{seen}）没有限制传输：实验室只有队列满时才丢包")
        }
        Assumption::LossWithinRate(seen) => format!(
            "丢失的报文段（{seen}）没有限制传输，它传得比随机丢包允许的更多：实验室只有队列满时才丢包"
        ),
        Assumption::Loss(seen) => format!("每个报文段的丢失概率相同，为 {seen}"),
        Assumption::LossInRuns(seen, run) => {
            format!("{seen} 的报文段随机丢失，每次连续 {run:.1} 个")
        }
        Assumption::Grants(step) => format!("没有看到接收程序每次授予多少：假定为 {step}"),
        Assumption::CongestionControl(name) => {
            format!("没有看到发送方的拥塞控制算法：假定为 {name}")
        }
        Assumption::OfTheMachine(knob, of) => {
            format!("{}的 {knob} 属于整台机器，因此实验室不尝试它", end(*of))
        }
        Assumption::BestControl(name) => {
            format!("没有看到发送方的拥塞控制算法：在常用的之中，{name} 最能重现测量")
        }
        Assumption::BestDiscipline(queue) => format!(
            "队列在达到它曾有的长度之前就丢包：{}最能重现测量",
            queue.as_ref().map_or("普通队列".into(), |queue| format!("{queue} "))
        ),
        Assumption::BestBucket(bucket) => {
            format!("限速器的令牌桶只显示用掉的部分：{bucket} 的桶最能重现测量")
        }
        Assumption::BestLoss(lost, share) => format!(
            "丢失的 {lost} 个报文段只能粗略说明路径的丢包：在它们允许的比例中，{share} 最能重现测量"
        ),
        other => of_buffers(other),
    }
}

fn of_buffers(assumption: &Assumption) -> String {
    match assumption {
        Assumption::BufferAsked(of) => {
            let option = if *of == End::Sender { "SO_SNDBUF" } else { "SO_RCVBUF" };
            format!(
                "没有看到应用是否设置 {option}：若设置，则在它把缓冲区交给内核之前，任何 sysctl 都无济于事"
            )
        }
        Assumption::SendBuffer(buffer) => format!(
            "没有看到发送缓冲区：按定律，{buffer:#} 得到测得的有效吞吐，因此实验室的一致不能说明其大小"
        ),
        Assumption::ReceiveWindow(window) => format!(
            "没有看到接收窗口：按定律，{window} 得到测得的有效吞吐，因此实验室的一致不能说明其大小"
        ),
        Assumption::LargeBuffer(of) => {
            format!("没有看到{}的缓冲区：实验室的足够大", end(*of))
        }
        Assumption::Write(write) => format!("没有看到应用每次写入多少：按定律为 {write:#}"),
        Assumption::OtherWindow { kernel, buffer } => format!(
            "接收方的内核由缓冲区得出的窗口与实验室的 {kernel} 不同：实验室 {buffer:#} 的缓冲区通告同样的窗口"
        ),
        Assumption::ProgramWindow => {
            "没有看到其程序是否允许设置该窗口：HTTP/2 的接收方和 `sftp -R` 允许；\
                                      OpenSSH 的通道是固定的，可用几个并行的传输或 HPN-SSH 代替"
                .into()
        }
        // A sentence that was read; the others are told above.
        told => told.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::facts;
    use fullpipe_model::units::{Bytes, Window};

    fn all() -> Vec<Assumption> {
        let (rate, size) = ("80mbit".parse().unwrap(), Bytes::new(6_250_000));
        let loss = "0.1%".parse().unwrap();
        let ends = [End::Sender, End::Receiver];
        let mut all = vec![
            Assumption::Ipv4,
            Assumption::Rate { seen: rate, lab: "160mbit".parse().unwrap() },
            Assumption::LongerQueue { stood: Bytes::new(3_000), lab: size },
            Assumption::Queue(size),
            Assumption::HarmlessLoss(loss),
            Assumption::LossWithinRate(loss),
            Assumption::Loss(loss),
            Assumption::LossInRuns(loss, 2.5),
            Assumption::Grants(size),
            Assumption::CongestionControl("cubic2".into()),
            Assumption::SendBuffer(size),
            Assumption::ReceiveWindow(Window::new(size)),
            Assumption::Write(size),
            Assumption::OtherWindow { kernel: "6.12".parse().unwrap(), buffer: size },
            Assumption::OfTheMachine("net.core.rmem_max".parse().unwrap(), End::Receiver),
            Assumption::ProgramWindow,
            Assumption::BestControl("bbr3".into()),
            Assumption::BestDiscipline(Some("fq_codel".into())),
            Assumption::BestDiscipline(None),
            Assumption::BestBucket(size),
            Assumption::BestLoss(12, loss),
        ];
        all.extend(ends.map(Assumption::BufferAsked));
        all.extend(ends.map(Assumption::LargeBuffer));
        all
    }

    #[test]
    fn each_assumption_names_the_same_numbers_in_each_language() {
        for one in all() {
            let [english, chinese] =
                Language::ALL.map(|language| super::super::assumption(language, &one));
            assert!(!english.is_empty(), "{one:?}");
            assert_eq!(facts(&english), facts(&chinese), "{english}\n{chinese}");
            assert!(!chinese.contains(" the ") && !chinese.is_ascii(), "{chinese}");
        }
    }
}
