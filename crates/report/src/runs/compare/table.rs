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
        let mut text = format!("A: {}\nB: {}\n\n", side(&self.a), side(&self.b));
        let meant: Vec<&Change> = self.changes.iter().filter(|change| extent.has(change)).collect();
        let told: Vec<&Change> = meant
            .iter()
            .copied()
            .filter(|change| extent.noise || change.noise != Noise::Within)
            .collect();
        if !told.is_empty() {
            text += &table(&told[..told.len().min(extent.top)]).render(layout);
            text.push('\n');
        }
        if told.len() > extent.top {
            text += &format!("{} more changes are left out (--top)\n", told.len() - extent.top);
        }
        text += &self.summary(&meant, &told);
        let lists = [
            ("Only in A: ", &self.only_in_a),
            ("Only in B: ", &self.only_in_b),
            ("Failed in A: ", &self.failed_in_a),
            ("Failed in B: ", &self.failed_in_b),
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
                    .map(|missing| format!("{} of {}", missing.figure.short(), missing.name))
                    .collect();
                let lead = format!("Not compared, as only {side} has it: ");
                text += &paragraph::fill(&lead, &what.join(", "), layout.width);
                text.push('\n');
            }
        }
        for LimitChange { name, a, b } in &self.limits {
            text += &format!("{}: limited by {a} in A, {b} in B\n", escape::in_line(name));
        }
        for exceeded in &self.exceeded {
            let line = format!("Worse than {}: {}", exceeded.bound, exceeded.name);
            text += &format!("{}\n", layout.paint(Tone::Bad, &escape::in_line(&line)));
        }
        for name in &self.newly_failed {
            let line = format!("Worse than any bound, as it fails in B only: {name}");
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
}

fn side(side: &Side) -> String {
    let rows = if side.rows == 1 { "row" } else { "rows" };
    let (engines, kernels) = (side.engines.join("+"), side.kernels.join(", "));
    let text = format!("{} ({} {rows}, {engines}, Linux {kernels})", side.source, side.rows);
    escape::in_line(&text).into_owned()
}

fn table(changes: &[&Change]) -> Table<7> {
    let mut table = Table::new([
        Column::text("run"),
        Column::text("figure"),
        Column::count("A").leaves(2),
        Column::count("B"),
        Column::count("change"),
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
            judged(change).into(),
        ]);
    }
    table
}

fn judged(change: &Change) -> &'static str {
    match (change.noise, change.worse) {
        (Noise::Within, _) => "within noise",
        (Noise::Unknown, Some(true)) => "worse?",
        (Noise::Unknown, Some(false)) => "better?",
        (_, Some(true)) => "worse",
        (_, Some(false)) => "better",
        (_, None) => "",
    }
}
