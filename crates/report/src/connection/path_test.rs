//! The runs of a test between two hosts, for `fullpipe test`: a page to paste into a ticket.

use super::account;
use crate::cells::sure;
use crate::{
    Column, Layout, Table, Tone,
    table::{escape, figure, paragraph},
};
use fullpipe_flow::Language;
use fullpipe_flow::diagnosis::live::{Acts, Answer};
use fullpipe_flow::finding::path_test::{Loss, Measured, Rfc6349};
use fullpipe_model::limit::End;
use fullpipe_model::units::{Bytes, Duration};

/// A run of the test.
#[derive(Debug, Clone, Copy)]
pub struct TestedRun<'a> {
    /// Whether the other direction carried data at the same time.
    pub at_once: bool,
    /// What it measured.
    pub measured: &'a Measured,
    /// The same in the terms of RFC 6349, if asked for.
    pub rfc6349: Option<&'a Rfc6349>,
}

/// What was tested.
#[derive(Debug, Clone, Copy)]
pub struct TestedHosts<'a> {
    /// The far host, as the user named it.
    pub far: &'a str,
    /// The least round trip of messages before the load.
    pub idle_rtt: Duration,
}

/// The page: a table of the runs, the metrics of RFC 6349 if asked for, and what limited each run.
pub fn render(hosts: TestedHosts<'_>, runs: &[TestedRun<'_>], layout: Layout) -> String {
    let far = escape::in_line(hosts.far);
    let title = match layout.language {
        Language::English => format!("test with {far}, {} without load", hosts.idle_rtt),
        Language::Chinese => format!("与 {far} 之间的测试，空载往返 {}", hosts.idle_rtt),
    };
    let mut text = layout.paint(Tone::Heading, &title) + "\n";
    text += &table(runs, layout).render(layout);
    let metrics: Vec<_> = runs.iter().filter(|run| run.rfc6349.is_some()).collect();
    if !metrics.is_empty() {
        text += "\n";
        text += &layout.paint(Tone::Heading, layout.term("metrics of RFC 6349"));
        text += "\n";
        text += &rfc6349(&metrics, layout).render(layout);
    }
    for run in runs {
        text += "\n";
        text += &explain(run, layout);
    }
    text
}

fn name(run: &TestedRun<'_>) -> &'static str {
    match (run.measured.role, run.at_once) {
        (End::Sender, false) => "to it",
        (End::Receiver, false) => "from it",
        (End::Sender, true) => "to it, both at once",
        (End::Receiver, true) => "from it, both at once",
    }
}

fn optional<T>(value: Option<T>, show: fn(T) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

fn table(runs: &[TestedRun<'_>], layout: Layout) -> Table<11> {
    let mut table = Table::new([
        Column::text("data"),
        Column::count("connections"),
        Column::figure("rate", "Mbit/s"),
        Column::figure("steady", "Mbit/s").leaves(2),
        Column::figure("base RTT", "ms"),
        Column::figure("loaded RTT", "ms").leaves(4),
        Column::figure("lost", "%"),
        Column::figure("MTU", "bytes").leaves(1),
        Column::text("limited by"),
        Column::figure("sure", "%"),
        Column::figure("time", "%").leaves(3),
    ]);
    for run in runs {
        let measured = run.measured;
        let answer = measured.answer.as_ref();
        let limit = match (&measured.machine, answer) {
            (Some(machine), _) => own_machine(machine.end, layout.language),
            (None, Some(answer)) => layout.language.headline(&answer.headline),
            (None, None) => "-".into(),
        };
        table.row([
            layout.term(name(run)).into(),
            measured.connections.len().to_string(),
            figure::mbit_per_s(measured.goodput),
            figure::mbit_per_s(measured.steady),
            optional(measured.base_rtt, figure::ms),
            optional(measured.loaded_rtt, figure::ms),
            optional(measured.loss, |loss| format!("{:.3}", 100.0 * loss.share)),
            optional(measured.mtu, |mtu| mtu.get().to_string()),
            limit,
            sure(answer.and_then(|answer| answer.headline.sure())),
            optional(answer.map(|answer| answer.share), figure::percent),
        ]);
    }
    table
}

fn rfc6349(runs: &[&TestedRun<'_>], layout: Layout) -> Table<11> {
    let mut table = Table::new([
        Column::text("data"),
        Column::count("connections"),
        Column::figure("bottleneck", "Mbit/s"),
        Column::figure("BDP", "bytes").leaves(1),
        Column::figure("ideal", "Mbit/s").leaves(2),
        Column::figure("actual", "Mbit/s"),
        Column::figure("Transfer Time Ratio", ""),
        Column::figure("Efficiency", "%"),
        Column::figure("baseline RTT", "ms").leaves(4),
        Column::figure("average RTT", "ms").leaves(3),
        Column::figure("Buffer Delay", "%"),
    ]);
    for run in runs {
        let Some(metrics) = run.rfc6349 else { continue };
        table.row([
            layout.term(name(run)).into(),
            run.measured.connections.len().to_string(),
            figure::mbit_per_s(metrics.bottleneck),
            metrics.bdp.get().to_string(),
            figure::mbit_per_s(metrics.ideal),
            figure::mbit_per_s(metrics.actual),
            optional(metrics.transfer_time_ratio, |ratio| format!("{ratio:.3}")),
            optional(metrics.efficiency_percent, |part| format!("{part:.2}")),
            figure::ms(metrics.baseline),
            optional(metrics.average, figure::ms),
            optional(metrics.buffer_delay_percent, |part| format!("{part:.1}")),
        ]);
    }
    table
}

/// Why a run was as fast as it was.
fn explain(run: &TestedRun<'_>, layout: Layout) -> String {
    let measured = run.measured;
    let count = measured.connections.len();
    let plural = if count == 1 { "" } else { "s" };
    let language = layout.language;
    let name = layout.term(name(run));
    let title = match language {
        Language::English => format!("{name}, {count} connection{plural}"),
        Language::Chinese => format!("{name}，{count} 个连接"),
    };
    let mut lines = vec![layout.paint(Tone::Heading, &title)];
    let mut line = |first: &str, words: &str| {
        lines.push(paragraph::fill(first, &escape::in_line(words), layout.width));
    };
    line("  ", &carried(measured, language));
    let labels = layout.labels();
    if let Some(words) = queue(measured, language) {
        line(labels.queue, &words);
    }
    if let Some(loss) = measured.loss {
        line(labels.loss, &lost(loss, language));
    }
    if let Some(rate) = measured.policer {
        let words = match language {
            Language::English => format!("something on the path drops what exceeds {rate}"),
            Language::Chinese => format!("路径上有设备丢弃超过 {rate} 的部分"),
        };
        line(labels.policer, &words);
    }
    if let Some(machine) = &measured.machine {
        line(labels.limit, &language.machine_limit(machine));
        line(labels.to_change, labels.faster_machine);
    } else if let Some(answer) = &measured.answer {
        findings(answer, layout, &mut line);
    }
    if let Some(metrics) = run.rfc6349 {
        line("  RFC 6349: ", &needed(metrics, language));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// That an end's machine was the limit, for a cell.
fn own_machine(end: End, language: Language) -> String {
    match (language, end) {
        (Language::English, end) => format!("the {end}'s machine"),
        (Language::Chinese, End::Sender) => "发送方的机器".into(),
        (Language::Chinese, End::Receiver) => "接收方的机器".into(),
    }
}

fn carried(measured: &Measured, language: Language) -> String {
    let Measured { received, time, .. } = measured;
    let mut words = match language {
        Language::English => format!("{received:#} in {time}"),
        Language::Chinese => format!("{time} 内传输 {received:#}"),
    };
    if let Some(rate) = measured.bottleneck {
        words += &match language {
            Language::English => {
                format!("; the path was full: its bottleneck carries {rate} of IP packets")
            }
            Language::Chinese => format!("；路径已满：其瓶颈处的 IP 速率为 {rate}"),
        };
    }
    if let Some(name) = &measured.congestion_control {
        words += &match language {
            Language::English => format!("; congestion control {name}"),
            Language::Chinese => format!("；拥塞控制 {name}"),
        };
    }
    words
}

fn queue(measured: &Measured, language: Language) -> Option<String> {
    let (queue, longest) = measured.queue.zip(measured.longest_rtt)?;
    let held: Bytes = measured.steady.over(queue);
    let [queue, longest] = [queue, longest].map(milliseconds);
    Some(match language {
        Language::English => {
            format!("{queue} on average ({held:#}), the longest round trip {longest}")
        }
        Language::Chinese => format!("平均 {queue}（{held:#}），最长往返 {longest}"),
    })
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_millis_f64())
}

fn lost(loss: Loss, language: Language) -> String {
    let [share, least, most] =
        [loss.share, loss.share_least, loss.share_most].map(|part| format!("{:.4}", 100.0 * part));
    let (lost, sent, needless) = (loss.lost_segments, loss.sent_segments, loss.spurious_segments);
    let mut words = match language {
        Language::English => {
            format!("{lost} of {sent} segments, {share} % (95 %: {least} to {most} %)")
        }
        Language::Chinese => format!(
            "{sent} 个报文段中丢失 {lost} 个，{share} %（95 % 置信区间：{least} 至 {most} %）"
        ),
    };
    if needless > 0 {
        words += &match language {
            Language::English => format!("; {needless} more were sent again needlessly"),
            Language::Chinese => format!("；另有 {needless} 个属于不必要的重传"),
        };
    }
    words
}

fn findings(answer: &Answer, layout: Layout, line: &mut dyn FnMut(&str, &str)) {
    let (labels, language) = (layout.labels(), layout.language);
    for finding in answer.findings.iter().take(2) {
        line(labels.limit, &language.claim(finding));
        if let Some(doubt) = &finding.doubt {
            line(labels.how_sure_within, &language.doubt(doubt));
        }
    }
    if let Some(words) = account::live(&answer.account, language) {
        line(labels.time, &words);
    }
    for cause in &answer.causes {
        line(labels.cause, &language.sub_cause(&cause.sub_cause));
    }
    if let Some(remedy) = answer.remedy {
        line(labels.to_change, language.remedy(remedy));
    }
    line(labels.who_acts, tester_acts(answer.acts, language));
}

/// Who must act, as the one who tests sees it.
const fn tester_acts(acts: Acts, language: Language) -> &'static str {
    match (language, acts) {
        (Language::English, Acts::Here) => "this host",
        (Language::English, Acts::Peer) => "the far host",
        (Language::English, Acts::Path) => {
            "whoever runs the path; a setting at the hosts can only soften it"
        }
        (Language::English, Acts::Nobody) => "nobody: the path is full",
        (Language::English, Acts::Unknown) => "not known: test for longer (--for)",
        (Language::Chinese, Acts::Here) => "本机",
        (Language::Chinese, Acts::Peer) => "远端主机",
        (Language::Chinese, Acts::Path) => "路径的运营者；主机上的设置只能缓解",
        (Language::Chinese, Acts::Nobody) => "无人：路径已满",
        (Language::Chinese, Acts::Unknown) => "未知：请测试更长时间（--for）",
    }
}

fn needed(metrics: &Rfc6349, language: Language) -> String {
    let (rate, baseline) = (metrics.bottleneck, milliseconds(metrics.baseline));
    let bdp = metrics.bdp;
    let mut words = match language {
        Language::English => format!(
            "{rate} at {baseline} needs a receive window and a send buffer of {bdp:#} in all"
        ),
        Language::Chinese => {
            format!("{rate}、往返 {baseline} 合计需要 {bdp:#} 的接收窗口和发送缓冲区")
        }
    };
    let window = metrics.window.map(|window| window.bytes());
    let had = [
        (["window of a connection", "单个连接的窗口"], window),
        (["send buffer", "发送缓冲区"], metrics.send_buffer),
    ];
    for (name, bytes) in had.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))) {
        words += &match language {
            Language::English => format!("; the largest {} was {bytes:#}", name[0]),
            Language::Chinese => format!("；{}最大为 {bytes:#}", name[1]),
        };
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_flow::finding::path_test::{MachineLimit, MeasuredConnection, OwnLimit};
    use fullpipe_model::limit::Limit;
    use fullpipe_model::units::Rate;

    fn measured() -> Measured {
        let rate = Rate::from_bits_per_sec;
        Measured {
            role: End::Sender,
            received: Bytes::new(12_000_000),
            time: Duration::from_secs(1),
            goodput: rate(96_000_000),
            steady: rate(96_500_000),
            bottleneck: Some(rate(100_000_000)),
            base_rtt: Some(Duration::from_millis(20)),
            loaded_rtt: Some(Duration::from_millis(35)),
            longest_rtt: Some(Duration::from_millis(41)),
            queue: Some(Duration::from_millis(15)),
            mtu: Some(Bytes::new(1500)),
            mss: Some(Bytes::new(1448)),
            congestion_control: Some("cu\u{1b}[31mbic".into()),
            window: None,
            loss: None,
            policer: None,
            machine: None,
            answer: None,
            connections: vec![MeasuredConnection {
                received: Bytes::new(12_000_000),
                goodput: rate(96_000_000),
                retransmitted_segments: 0,
                limit: Limit::Link,
                share: 0.9,
            }],
        }
    }

    fn page(measured: &Measured) -> String {
        let hosts = TestedHosts { far: "far\u{1b}.example", idle_rtt: Duration::from_millis(20) };
        let run = TestedRun { at_once: false, measured, rfc6349: None };
        render(hosts, &[run], Layout::default())
    }

    #[test]
    fn the_page_has_the_figures_and_obeys_nothing() {
        let text = page(&measured());
        for part in ["to it", "96.0", "96.5", "20.0", "35.0", "1500", "15.0 ms on average"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(text.contains("bottleneck carries 100"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_machine_that_was_the_limit_stands_in_the_place_of_the_limit() {
        let by = OwnLimit::BusyThread;
        let machine = Some(MachineLimit { end: End::Sender, cpu: 0.98, by });
        let text = page(&Measured { machine, ..measured() });
        assert!(text.contains("the sender's machine") && text.contains("--parallel"), "{text}");
    }

    #[test]
    fn in_chinese_nothing_stays_english() {
        let loss = Loss {
            lost_segments: 3,
            sent_segments: 1000,
            spurious_segments: 1,
            share: 0.003,
            share_least: 0.001,
            share_most: 0.01,
        };
        let policer = Some(Rate::from_bits_per_sec(50_000_000));
        let by = OwnLimit::DidNotRead;
        let machine = Some(MachineLimit { end: End::Receiver, cpu: 0.98, by });
        let congestion_control = Some("cubic".into());
        let measured =
            Measured { loss: Some(loss), policer, machine, congestion_control, ..measured() };
        let hosts = TestedHosts { far: "B", idle_rtt: Duration::from_millis(20) };
        let run = TestedRun { at_once: false, measured: &measured, rfc6349: None };
        let layout = Layout { language: Language::Chinese, ..Layout::default() };
        let text = render(hosts, &[run], layout);
        let words = text.split(|letter: char| !letter.is_ascii_alphabetic());
        let words = words.filter(|word| word.len() > 3 && word.chars().all(char::is_lowercase));
        let english: Vec<&str> =
            words.filter(|word| !["cubic", "bytes", "parallel"].contains(word)).collect();
        assert!(english.is_empty(), "{english:?}: {text}");
    }
}
