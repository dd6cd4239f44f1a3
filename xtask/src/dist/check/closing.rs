//! What a check found: said at once, and again at the end, where a reader looks for it.

use anyhow::ensure;
use std::time::Instant;

/// What is measured, and how it is written.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Bytes, shown in millions.
    Bytes,
    /// Of a clock.
    Seconds,
    /// A part of something else.
    Times,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::Bytes => format!("{:.2} MB", value / 1e6),
            Unit::Seconds => format!("{value:.1} s"),
            Unit::Times => format!("{value:.3} times"),
        }
    }
}

/// Everything that the closing lines say.
pub struct ClosingLines {
    began: Instant,
    checked: Vec<String>,
    /// Each with its limit.
    figures: Vec<String>,
    /// What could not be had or seen here, with what to do.
    missing: Vec<String>,
}

impl ClosingLines {
    /// Nothing is checked yet.
    pub fn new() -> ClosingLines {
        ClosingLines {
            began: crate::ci::now(),
            checked: Vec::new(),
            figures: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Something holds.
    pub fn checked(&mut self, what: impl Into<String>) {
        let what = what.into();
        let minutes = self.began.elapsed().as_secs_f64() / 60.0;
        eprintln!("check: {minutes:.1} min: {what}");
        self.checked.push(what);
    }

    /// Something is not seen here.
    pub fn missing(&mut self, what: impl Into<String>) {
        let what = what.into();
        eprintln!("NOT CHECKED: {what}");
        self.missing.push(what);
    }

    /// A figure may have at most `limit`; more is a failure.
    pub fn at_most(
        &mut self,
        what: impl Into<String>,
        unit: Unit,
        value: f64,
        limit: f64,
    ) -> anyhow::Result<()> {
        let (what, shown, most) = (what.into(), unit.show(value), unit.show(limit));
        ensure!(value <= limit, "{what}: {shown}, more than {most}");
        eprintln!("check: {what}: {shown}, at most {most}");
        self.figures.push(format!("{shown:>12}  of at most {most:<12} {what}"));
        Ok(())
    }

    /// Says all of it again.
    pub fn say(&self) {
        for (heading, lines) in [
            ("Checked:", &self.checked),
            ("Figures, each beside its limit:", &self.figures),
            ("Not checked here:", &self.missing),
        ] {
            eprintln!("\n{heading}");
            for line in lines {
                eprintln!("  {line}");
            }
            if lines.is_empty() {
                eprintln!("  nothing");
            }
        }
        let minutes = self.began.elapsed().as_secs_f64() / 60.0;
        eprintln!(
            "\ncheck: {} checks and {} figures hold, {} things were not checked; it took \
             {minutes:.0} minutes",
            self.checked.len(),
            self.figures.len(),
            self.missing.len()
        );
    }
}
