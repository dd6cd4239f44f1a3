//! A comparison as text.

use super::{Change, Comparison, LimitChange, Missing, Side};
use crate::runs::compare::noise::Noise;
use crate::{
    Column, Layout, Table, Tone,
    table::{escape, paragraph},
};

/// How much of a comparison to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Lines of the table, the largest changes first.
    pub top: usize,
    /// Also show changes that noise explains.
    pub noise: bool,
    /// Also show how late the emulator was, which depends on the machine.
    pub lateness: bool,
}

impl Extent {
    fn has(&self, change: &Change) -> bool {
        self.lateness || !change.figure.is_lateness()
    }
}

impl Comparison {
    /// The changes as a table, goodput first and then the largest, with the differences that are
    /// not figures.
    pub fn render(&self, extent: Extent, layout: Layout) -> String {
        let [a, b] = [&self.a, &self.b].map(|one| side(one, layout));
        let mut text = format!("A: {a}\nB: {b}\n\n");
        let meant: Vec<&Change> = self.changes.iter().filter(|change| extent.has(change)).collect();
        let told: Vec<&Change> = meant
            .iter()
            .copied()
            .filter(|change| extent.noise || change.noise != Noise::Within)
            .collect();
        if !told.is_empty() {
            text += &table(&told[..told.len().min(extent.top)], layout).render(layout);
            text.push('\n');
        }
        if told.len() > extent.top {
            let more = told.len() - extent.top;
            text += &layout.either(
                format!("{more} more changes are left out (--top)\n"),
                format!("略去了另外 {more} 项变化（--top）\n"),
            );
        }
        text += &layout.either(self.summary(&meant, &told), self.summary_zh(&meant, &told));
        let lists = [
            (layout.either("Only in A: ", "仅在 A 中："), &self.only_in_a),
            (layout.either("Only in B: ", "仅在 B 中："), &self.only_in_b),
            (layout.either("Failed in A: ", "在 A 中失败："), &self.failed_in_a),
            (layout.either("Failed in B: ", "在 B 中失败："), &self.failed_in_b),
        ];
        for (lead, names) in lists {
            if !names.is_empty() {
                text += &paragraph::fill(lead, &names.join(", "), layout.width);
                text.push('\n');
            }
        }
        for (side, key) in [("A", "a"), ("B", "b")] {
            let missing: Vec<&Missing> =
                self.not_compared.iter().filter(|missing| missing.only_in == key).collect();
            if !missing.is_empty() {
                let what: Vec<String> = missing
                    .iter()
                    .map(|Missing { figure, name, .. }| {
                        layout.either(
                            format!("{} of {name}", figure.short()),
                            format!("{name} 的 {}", figure.short()),
                        )
                    })
                    .collect();
                let lead = layout.either(
                    format!("Not compared, as only {side} has it: "),
                    format!("未比较，因为只有 {side} 有："),
                );
                text += &paragraph::fill(&lead, &what.join(", "), layout.width);
                text.push('\n');
            }
        }
        text + &self.judged(layout)
    }

    /// What limits the rows otherwise, and what is worse than it may be.
    fn judged(&self, layout: Layout) -> String {
        let mut text = String::new();
        for LimitChange { name, a, b } in &self.limits {
            let name = escape::in_line(name);
            text += &layout.either(
                format!("{name}: limited by {a} in A, {b} in B\n"),
                format!("{name}：A 中受限于 {a}，B 中受限于 {b}\n"),
            );
        }
        for exceeded in &self.exceeded {
            let (bound, name) = (&exceeded.bound, &exceeded.name);
            let line = layout
                .either(format!("Worse than {bound}: {name}"), format!("差于 {bound}：{name}"));
            text += &format!("{}\n", layout.paint(Tone::Bad, &escape::in_line(&line)));
        }
        for name in &self.newly_failed {
            let line = layout.either(
                format!("Worse than any bound, as it fails in B only: {name}"),
                format!("差于任何界限，因为只在 B 中失败：{name}"),
            );
            text += &format!("{}\n", layout.paint(Tone::Bad, &escape::in_line(&line)));
        }
        text
    }

    fn summary(&self, meant: &[&Change], told: &[&Change]) -> String {
        let mut names: Vec<&str> = told.iter().map(|change| change.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let within = meant.iter().filter(|change| change.noise == Noise::Within).count();
        let unknown = told.iter().filter(|change| change.noise == Noise::Unknown).count();
        let mut text = format!("{} rows compared, {} changed", self.compared, names.len());
        if within > 0 {
            text += &format!("; {within} figures differ within noise");
        }
        if unknown > 0 {
            text += &format!(
                "; of {unknown} changes the noise is not known: repeat runs in real time (--repeat)"
            );
        }
        text + "\n"
    }

    fn summary_zh(&self, meant: &[&Change], told: &[&Change]) -> String {
        let mut names: Vec<&str> = told.iter().map(|change| change.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let within = meant.iter().filter(|change| change.noise == Noise::Within).count();
        let unknown = told.iter().filter(|change| change.noise == Noise::Unknown).count();
        let mut text = format!("比较了 {} 行，{} 行有变化", self.compared, names.len());
        if within > 0 {
            text += &format!("；{within} 个数值的差异在噪声之内");
        }
        if unknown > 0 {
            text += &format!("；其中 {unknown} 项变化的噪声未知：请在实时中重复运行（--repeat）");
        }
        text + "\n"
    }
}

fn side(side: &Side, layout: Layout) -> String {
    let rows = if side.rows == 1 { "row" } else { "rows" };
    let (engines, kernels) = (side.engines.join("+"), side.kernels.join(", "));
    let (source, count) = (&side.source, side.rows);
    let text = layout.either(
        format!("{source} ({count} {rows}, {engines}, Linux {kernels})"),
        format!("{source}（{count} 行，{engines}，Linux {kernels}）"),
    );
    escape::in_line(&text).into_owned()
}

fn table(changes: &[&Change], layout: Layout) -> Table<7> {
    let mut table = Table::new([
        Column::text(layout.either("run", "运行")),
        Column::text(layout.either("figure", "数值")),
        Column::count("A").leaves(2),
        Column::count("B"),
        Column::count(layout.either("change", "变化")),
        Column::count("%").leaves(1),
        Column::text(""),
    ]);
    for change in changes {
        let figure = change.figure;
        let sign = if change.change < 0.0 { '-' } else { '+' };
        table.row([
            change.name.clone(),
            figure.short().into(),
            figure.show(change.a),
            figure.show(change.b),
            format!("{sign}{}", figure.show(change.change.abs())),
            change.relative.map_or("-".into(), |relative| format!("{:+.1}", relative * 100.0)),
            judged(change, layout).into(),
        ]);
    }
    table
}

fn judged(change: &Change, layout: Layout) -> &'static str {
    match (change.noise, change.worse) {
        (Noise::Within, _) => layout.either("within noise", "噪声之内"),
        (Noise::Unknown, Some(true)) => layout.either("worse?", "变差？"),
        (Noise::Unknown, Some(false)) => layout.either("better?", "变好？"),
        (_, Some(true)) => layout.either("worse", "变差"),
        (_, Some(false)) => layout.either("better", "变好"),
        (_, None) => "",
    }
}
