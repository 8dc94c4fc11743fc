//! Measured values and their bars.

use std::fmt::Write as _;

/// The bar of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bar {
    /// Lower is worse.
    AtLeast(f64),
    /// Higher is worse.
    AtMost(f64),
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Figure {
    /// The name of the measure.
    pub(crate) what: String,
    /// The measured value.
    pub(crate) seen: f64,
    /// Of both numbers; empty for ratios.
    pub(crate) unit: &'static str,
    /// The bar.
    pub(crate) bar: Bar,
    /// How sure it is, and what else was seen.
    pub(crate) note: String,
}

impl Figure {
    /// Is it good enough?
    pub(crate) fn is_held(&self) -> bool {
        match self.bar {
            Bar::AtLeast(bar) => self.seen >= bar,
            Bar::AtMost(bar) => self.seen <= bar,
        }
    }

    /// The line of the table.
    fn line(&self) -> String {
        let number = |value: f64| {
            let digits = if value.abs() < 10.0 { 2 } else { 0 };
            let unit = self.unit;
            let space = if unit.is_empty() { "" } else { " " };
            format!("{value:.digits$}{space}{unit}")
        };
        let (sign, bar) = match self.bar {
            Bar::AtLeast(bar) => ('≥', bar),
            Bar::AtMost(bar) => ('≤', bar),
        };
        let held = if self.is_held() { "HELD" } else { "NOT HELD" };
        let mut line = format!(
            "{:<60} {:>10}  {:>11}  {held:<8}",
            self.what,
            number(self.seen),
            format!("{sign} {}", number(bar))
        );
        if !self.note.is_empty() {
            let _ = write!(line, "  {}", self.note);
        }
        line
    }
}

/// The figures of a run, printed as they come.
#[derive(Debug, Default)]
pub(crate) struct Table {
    figures: Vec<Figure>,
}

impl Table {
    /// Prints the head.
    pub(crate) fn new() -> Self {
        println!("{:<60} {:>10}  {:>11}", "figure", "seen", "bar");
        Self::default()
    }

    /// Prints a line.
    pub(crate) fn add(&mut self, figure: Figure) {
        println!("{}", figure.line());
        self.figures.push(figure);
    }

    /// Prints what all of it comes to. True if every bar was held.
    pub(crate) fn close(&self) -> bool {
        let missed: Vec<&str> = self
            .figures
            .iter()
            .filter(|figure| !figure.is_held())
            .map(|figure| figure.what.as_str())
            .collect();
        let held = self.figures.len() - missed.len();
        println!("{held} of {} bars held", self.figures.len());
        for what in &missed {
            println!("NOT HELD: {what}");
        }
        missed.is_empty()
    }
}

/// The values of several rounds.
pub(crate) struct Spread {
    pub(crate) median: f64,
    /// Between which the middle half of them lies.
    pub(crate) half: (f64, f64),
    /// Between which all of them lie.
    all: (f64, f64),
}

impl Spread {
    /// Of a value for each round. Their order is changed.
    pub(crate) fn of(values: &mut [f64]) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self {
            median: at(values.len() / 2),
            half: (at(last.div_ceil(4)), at(last - last.div_ceil(4))),
            all: (at(0), at(last)),
        }
    }

    /// For the note of a figure.
    pub(crate) fn text(&self) -> String {
        let Self { half, all, .. } = self;
        format!(
            "half of the rounds {:.2} to {:.2}, all {:.2} to {:.2}",
            half.0, half.1, all.0, all.1
        )
    }
}

/// A count, to be reckoned with.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(crate) fn number(count: usize) -> f64 {
    count as f64
}

/// The share of each of so many.
pub(crate) fn each(total: f64, count: usize) -> f64 {
    total / number(count)
}
