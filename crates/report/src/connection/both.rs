//! Two captures of the same connections, for `fullpipe analyze --both`: where segments were lost,
//! how long each direction took, and what the path changed.

mod answer;
mod changed;
mod losses;
mod page;

pub use page::both_page;

use crate::table::{escape, figure, paragraph};
use crate::{Column, Layout, Table, Tone};
use fullpipe_flow::Language;
use fullpipe_flow::connection::pair::{
    ClockPiece, PairedCaptures, PairedConnection, Tap, WayBetween,
};
use fullpipe_flow::diagnosis::AnsweredPair;
use fullpipe_model::units::Duration;

/// What is said of two captures.
#[derive(Debug, Clone, Copy)]
pub struct BothReport<'a> {
    /// The names of the captures.
    pub names: [&'a str; 2],
    /// What they say together.
    pub paired: &'a PairedCaptures<AnsweredPair>,
    /// How many connections are explained.
    pub top: usize,
}

/// A direction of a connection, with the names of the places in the order in which packets pass
/// them.
struct NamedWay<'a> {
    way: &'a WayBetween,
    near: &'a str,
    far: &'a str,
    to_client: bool,
}

impl BothReport<'_> {
    /// The report as text: the answer of each connection first, then its numbers.
    pub fn render(&self, layout: Layout) -> String {
        let head = self.head(layout.language);
        let mut text = String::new();
        for line in head {
            text += &paragraph::fill("", &line, layout.width);
            text.push('\n');
        }
        for one in self.worst() {
            text.push('\n');
            let [client, server] = [one.paired.client[0], one.paired.server[0]];
            text += &(layout.paint(Tone::Heading, &format!("{client} → {server}")) + "\n");
            text += &one.answer.as_ref().map_or_else(String::new, |it| self.answer(it, layout));
            text += &self.connection(&one.paired, layout);
        }
        if let Some(more) = self.left_out(layout.language) {
            text += &format!("\n{more}: --top\n");
        }
        text
    }

    /// The connections that are explained: those that lost most.
    fn worst(&self) -> Vec<&AnsweredPair> {
        let mut worst: Vec<&AnsweredPair> = self.paired.connections.iter().collect();
        worst.sort_by_key(|one| std::cmp::Reverse(lost_in_all(&one.paired)));
        worst.truncate(self.top);
        worst
    }

    /// How many are not.
    fn left_out(&self, language: Language) -> Option<String> {
        let count = self.paired.connections.len().saturating_sub(self.top);
        (count > 0).then(|| match language {
            Language::English => format!("{count} more lost no more than these"),
            Language::Chinese => format!("另有 {count} 个连接丢失不多于以上各个"),
        })
    }

    fn head(&self, language: Language) -> Vec<String> {
        let PairedCaptures { packets, left_out, unmatched, set_back, clocks, connections } =
            self.paired;
        let [a, b] = self.names.map(escape::in_line);
        let count = connections.len();
        let plural = if count == 1 { "" } else { "s" };
        let mut lines = vec![match language {
            Language::English => format!(
                "{a} ({} packets) and {b} ({}): {count} connection{plural} passed both; {} only in \
                 {a}, {} only in {b}",
                packets[0], packets[1], unmatched[0], unmatched[1]
            ),
            Language::Chinese => format!(
                "{a}（{} 个数据包）与 {b}（{} 个）：{count} 个连接经过两处；仅 {a} 有的 {} 个，\
                 仅 {b} 有的 {} 个",
                packets[0], packets[1], unmatched[0], unmatched[1]
            ),
        }];
        let named = |of: usize| if of == 0 { &a } else { &b };
        for of in [0, 1] {
            let (name, back) = (named(of), set_back[of]);
            if left_out[of] > 0 {
                lines.push(match language {
                    Language::English => {
                        format!("{name}: {} packets were left out: too many", left_out[of])
                    }
                    Language::Chinese => format!("{name}：数据包太多，略去 {} 个", left_out[of]),
                });
            }
            if back > Duration::ZERO {
                lines.push(match language {
                    Language::English => format!("{name}'s clock was set back by {back}"),
                    Language::Chinese => format!("{name} 的时钟被往回调了 {back}"),
                });
            }
        }
        lines.extend(
            clocks
                .pieces
                .iter()
                .enumerate()
                .map(|(number, piece)| clock(piece, number > 0, [&a, &b], language)),
        );
        lines
    }

    fn connection(&self, one: &PairedConnection, layout: Layout) -> String {
        let language = layout.language;
        let mut text = String::new();
        let ways = self.ways(one);
        let mut sentences: Vec<String> = ways.iter().flat_map(|way| way.losses(language)).collect();
        if one.near_client.is_none() {
            sentences.push(match language {
                Language::English => {
                    "which place is nearer to the client cannot be told: that takes packets of both \
                     directions, and a delay between the two"
                        .into()
                }
                Language::Chinese => {
                    "无法判断哪一处离客户端更近：需要两个方向的数据包，且两处之间有时延".into()
                }
            });
        } else if sentences.is_empty() {
            sentences.push(match language {
                Language::English => {
                    "no data was lost, before, between or after the two, as far as they show".into()
                }
                Language::Chinese => "就两个抓包所见，两处之前、之间与之后都没有丢失数据".into(),
            });
        }
        sentences.extend(ways.iter().flat_map(|way| way.remarks(language)));
        sentences.extend(queues(&ways, language));
        sentences.extend(one.changes.iter().map(|change| self.changed(one, change, language)));
        for sentence in sentences {
            text += &paragraph::fill("  ", &escape::in_line(&sentence), layout.width);
            text.push('\n');
        }
        if !ways.is_empty() {
            text.push('\n');
            text += &table(&ways, layout).render(layout);
        }
        text
    }

    fn ways<'a>(&'a self, one: &'a PairedConnection) -> Vec<NamedWay<'a>> {
        let Some(near_client) = one.near_client else { return Vec::new() };
        let ways = [(&one.to_client, near_client.other()), (&one.to_server, near_client)];
        let named = ways.into_iter().filter_map(|(way, near)| {
            let to_client = near != near_client;
            let (near, far) = (self.name(near), self.name(near.other()));
            Some(NamedWay { way: way.as_ref()?, near, far, to_client })
        });
        named.collect()
    }

    fn name(&self, tap: Tap) -> &str {
        self.names[tap as usize]
    }
}

/// Segments of either direction.
fn lost_between(one: &PairedConnection) -> u64 {
    one.to_client.iter().chain(&one.to_server).map(|way| way.lost.segments).sum()
}

fn lost_in_all(one: &PairedConnection) -> u64 {
    let ways = one.to_client.iter().chain(&one.to_server);
    ways.map(|way| way.lost.segments + way.lost_before.segments + way.lost_after.segments).sum()
}

fn clock(piece: &ClockPiece, is_set: bool, [other, name]: [&str; 2], language: Language) -> String {
    if let Some(error) =
        piece.error.filter(|error| error.as_nanos() >= piece.ahead_ns.unsigned_abs())
        && piece.drift == 0.0
        && !is_set
    {
        return match language {
            Language::English => {
                format!("the clocks of {other} and {name} agree, as far as can be told (± {error})")
            }
            Language::Chinese => {
                format!("{other} 与 {name} 的时钟在可判断的范围内一致（± {error}）")
            }
        };
    }
    let ahead = Duration::from_nanos(piece.ahead_ns.unsigned_abs());
    let is_ahead = piece.ahead_ns >= 0;
    let micros = piece.drift * 1e6;
    let gains = micros != 0.0;
    match language {
        Language::English => {
            let since = if is_set { "a clock was set; since then " } else { "" };
            let side = if is_ahead { "ahead" } else { "behind" };
            let error = piece.error.map_or("by an unknown error".into(), |one| format!("± {one}"));
            let gain = format!(", and gains {micros:.1} us a second");
            let gain = if gains { gain.as_str() } else { "" };
            format!("{since}{name}'s clock is {ahead} {side} ({error}){gain}")
        }
        Language::Chinese => {
            let since = if is_set { "时钟被调过；此后 " } else { "" };
            let side = if is_ahead { "快" } else { "慢" };
            let error = piece.error.map_or("误差未知".into(), |one| format!("± {one}"));
            let gain = format!("，每秒多走 {micros:.1} us");
            let gain = if gains { gain.as_str() } else { "" };
            format!("{since}{name} 的时钟{side} {ahead}（{error}）{gain}")
        }
    }
}

/// In which direction packets waited, where one waited much longer.
fn queues(ways: &[NamedWay<'_>], language: Language) -> Option<String> {
    let waited = |to_client: bool| {
        let way = ways.iter().find(|way| way.to_client == to_client)?;
        Some((way, way.way.queue?.p95))
    };
    let (there, back) = (waited(true)?, waited(false)?);
    let (more, less) = if there.1 >= back.1 { (there, back) } else { (back, there) };
    let matters = more.1 >= Duration::from_millis(2) && more.1 >= less.1.saturating_mul(3);
    matters.then(|| {
        let (to, from) = (more.0.to(language), less.0.to(language));
        let (long, short) = (more.1, less.1);
        match language {
            Language::English => format!(
                "packets wait on the way {to}: 95 of 100 up to {long}, {from} up to {short}"
            ),
            Language::Chinese => {
                format!("排队发生在{to}的方向：95 % 的数据包不超过 {long}，{from}不超过 {short}")
            }
        }
    })
}

fn table(ways: &[NamedWay<'_>], layout: Layout) -> Table<10> {
    let mut table = Table::new([
        Column::text("direction"),
        Column::count("segments"),
        Column::count("lost between"),
        Column::count("lost before"),
        Column::count("lost after"),
        Column::count("again for nothing").leaves(1),
        Column::figure("queue, median", "ms").leaves(2),
        Column::figure("queue, 95 %", "ms"),
        Column::figure("queue, most", "ms").leaves(3),
        Column::figure("busy", "%").leaves(2),
    ]);
    for NamedWay { way, to_client, .. } in ways {
        let queue = |of: fn(&fullpipe_flow::connection::pair::QueueDelay) -> Duration| {
            way.queue.as_ref().map_or_else(|| "-".into(), |queue| figure::ms(of(queue)))
        };
        table.row([
            layout.term(if *to_client { "to the client" } else { "to the server" }).into(),
            way.sent.segments.to_string(),
            way.lost.segments.to_string(),
            way.lost_before.segments.to_string(),
            way.lost_after.segments.to_string(),
            way.needless.segments.to_string(),
            queue(|queue| queue.median),
            queue(|queue| queue.p95),
            queue(|queue| queue.most),
            way.busy.map_or_else(|| "-".into(), figure::percent),
        ]);
    }
    table
}

#[cfg(test)]
mod tests;
