//! What a link does, in text for people: one line while it runs, a summary at its end.

use super::shared::Status;
use crate::sentence::either;
use crate::terminal::error_width;
use fullpipe_link::{DirectionStatistics, GatewayCounts, RuleStatistics, Statistics};
use fullpipe_model::link::Counters;
use fullpipe_model::units::Bytes;
use std::fmt::Write as _;
use std::io::Write;

/// A line on standard error that is drawn over itself.
#[derive(Debug, Default)]
pub struct Line {
    earlier: Option<Statistics>,
    drawn: bool,
}

impl Line {
    /// Redraws the line.
    pub fn show(&mut self, now: &Statistics) {
        if let Some([down, up]) = self.earlier.as_ref().and_then(|earlier| now.rates_since(earlier))
        {
            let late = now.to_client.late_p99.max(now.to_server.late_p99);
            let (up, down) = (
                now_in(either("up", "上行"), up.to_string(), &now.to_server),
                now_in(either("down", "下行"), down.to_string(), &now.to_client),
            );
            let line = format!("{up} | {down} | {} {late}", either("late", "延后"));
            // A longer line would wrap and stay each time.
            let width = error_width().unwrap_or(usize::MAX).saturating_sub(1);
            // A terminal that has gone away must not stop the link.
            let _ =
                write!(std::io::stderr(), "\r\x1b[K{}", console::truncate_str(&line, width, ""));
            self.drawn = true;
        }
        self.earlier = Some(now.clone());
    }

    /// Erases the line.
    pub fn clear(&mut self) {
        if self.drawn {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// A direction as it is now.
fn now_in(name: &str, rate: String, way: &DirectionStatistics) -> String {
    let (queue, dropped) = (way.queue.to_string(), dropped(&way.link));
    either(
        format!("{name} {rate:>12}  queue {queue:>9}  dropped {dropped:>5}"),
        format!("{name} {rate:>12}  队列 {queue:>9}  丢弃 {dropped:>5}"),
    )
}

/// Packets that did not arrive, for any reason.
pub fn dropped(counters: &Counters) -> u64 {
    counters.lost_packets + counters.queue_dropped_packets + counters.discipline_dropped_packets
}

/// What the gateway could not carry, one sentence each.
pub fn gateway_losses(status: &Status) -> Vec<String> {
    let GatewayCounts { refused_connections, evicted_flows, dropped_datagrams } =
        status.gateway.unwrap_or_default();
    let connections = either(
        format!(
            "the gateway refused {refused_connections} connections, as it had as many at once as it takes"
        ),
        format!("网关拒绝了 {refused_connections} 个连接，因为同时的连接已达上限"),
    );
    let datagrams = either(
        format!(
            "the gateway gave up {evicted_flows} silent UDP flows for newer ones, and could not pass {dropped_datagrams} \
             datagrams on"
        ),
        format!(
            "网关为较新的 UDP 流放弃了 {evicted_flows} 个静默的流，并有 {dropped_datagrams} 个数据报未能转发"
        ),
    );
    let told = [
        (refused_connections > 0, connections),
        (evicted_flows + dropped_datagrams > 0, datagrams),
    ];
    told.into_iter().filter_map(|(happened, sentence)| happened.then_some(sentence)).collect()
}

fn all_in_both(up: &Counters, down: &Counters) -> String {
    let [up, down] = [all_in(either("up", "上行"), up), all_in(either("down", "下行"), down)];
    format!("{up}{}{down}", either("; ", "；"))
}

/// All that the link did in a direction.
fn all_in(name: &str, counters: &Counters) -> String {
    let (packets, bytes) = (counters.departed_packets, Bytes::new(counters.departed_bytes));
    let mut text = either(
        format!("{name} {packets} packets, {bytes}"),
        format!("{name} {packets} 个数据包，{bytes}"),
    );
    for (count, english, chinese) in [
        (counters.lost_packets, "lost", "丢失"),
        (counters.queue_dropped_packets, "dropped by the full queue", "因队列满被丢弃"),
        (counters.discipline_dropped_packets, "dropped by the discipline", "被队列规则丢弃"),
        (counters.marked_packets, "marked", "被标记"),
        (counters.duplicated_packets, "duplicated", "被复制"),
        (counters.corrupted_packets, "corrupted", "被损坏"),
        (counters.reordered_packets, "reordered", "乱序"),
    ] {
        if count > 0 {
            text += &either(format!(", {count} {english}"), format!("，{count} 个{chinese}"));
        }
    }
    text
}

/// What the link did, one sentence for each direction, and how late it was; then one line for each
/// rule.
pub fn summary(status: &Status) -> String {
    let Some(Statistics { to_client, to_server, .. }) = &status.statistics else {
        return either("netem reports only at its end", "netem 只在结束时报告").into();
    };
    let late = to_client.late_p99.max(to_server.late_p99);
    let all = all_in_both(&to_server.link, &to_client.link);
    let mut text = either(
        format!("{all}; 99 % of them at most {late} late"),
        format!("{all}；其中 99 % 至多延后 {late}"),
    );
    for (RuleStatistics { matches, link: up, .. }, down) in
        to_server.rules.iter().zip(&to_client.rules)
    {
        let _ = write!(text, "\n  {matches}: {}", all_in_both(up, &down.link));
    }
    text
}
