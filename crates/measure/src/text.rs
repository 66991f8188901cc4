//! Results for a terminal: tables and text that fit 100 columns, numbers of three digits or so.

use std::fmt;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::schema::SizeClass;
use crate::stats::Estimate;

/// Columns of a terminal that everything fits.
pub const WIDTH: usize = 100;

/// An empty table; all columns but the first are aligned to the right.
#[must_use]
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH as u16);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A table whose rows are of schedulers, made a column at a time.
pub struct SchedulerTable<'a, S> {
    schedulers: &'a [S],
    header: Vec<String>,
    /// A row for each of `schedulers`.
    rows: Vec<Vec<String>>,
}

impl<'a, S> SchedulerTable<'a, S> {
    /// The first column: the name of each row's scheduler, a parameter a line.
    pub fn new(schedulers: &'a [S], name: impl Fn(&S) -> &str) -> Self {
        let name = |s: &S| name(s).replace(':', ":\n").replace(',', ",\n");
        let rows = vec![Vec::new(); schedulers.len()];
        Self { schedulers, header: Vec::new(), rows }.column("scheduler", name)
    }

    /// One more column.
    #[must_use]
    pub fn column(mut self, title: impl Into<String>, cell: impl Fn(&S) -> String) -> Self {
        self.header.push(title.into());
        for (row, scheduler) in self.rows.iter_mut().zip(self.schedulers) {
            row.push(cell(scheduler));
        }
        self
    }

    /// A column for each size class that any of the schedulers has a cell for.
    #[must_use]
    pub fn classes(
        self,
        title: impl Fn(SizeClass) -> String,
        cell: impl Fn(&S, SizeClass) -> Option<String>,
    ) -> Self {
        SizeClass::ALL.into_iter().fold(self, |table, class| {
            let occurs = table.schedulers.iter().any(|s| cell(s, class).is_some());
            let cell = |s: &S| cell(s, class).unwrap_or_else(|| "-".into());
            if occurs { table.column(title(class), cell) } else { table }
        })
    }
}

impl<S> fmt::Display for SchedulerTable<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header: Vec<&str> = self.header.iter().map(String::as_str).collect();
        let mut table = table(&header);
        table.add_rows(&self.rows);
        table.fmt(f)
    }
}

/// Breaks a text into lines that fit a terminal; those after the first are indented.
#[must_use]
pub fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            lines.push("    ".to_owned());
            width = 4;
        } else if width > 0 {
            lines.last_mut().expect("never empty").push(' ');
            width += 1;
        }
        lines.last_mut().expect("never empty").push_str(word);
        width += length;
    }
    lines.join("\n")
}

/// Three digits or so.
#[must_use]
pub fn decimals(value: f64) -> String {
    if value.abs() >= 100.0 {
        format!("{value:.0}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// The estimate alone, or a dash.
#[must_use]
pub fn value(estimate: Option<Estimate>) -> String {
    estimate.map_or("-".into(), |e| decimals(e.value))
}

/// The estimate and its interval, or a dash.
#[must_use]
pub fn interval(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { value, interval: Some((low, high)), .. }) => {
            format!("{} [{}, {}]", decimals(value), decimals(low), decimals(high))
        }
        other => value(other),
    }
}

/// The ratio of a scheduler to another one, which may be itself, or a dash.
#[must_use]
pub fn against(estimate: Option<Estimate>, is_reference: bool) -> String {
    match estimate {
        Some(_) if is_reference => "the reference".into(),
        Some(estimate) => ratio(estimate),
        None => "-".into(),
    }
}

/// The begin of a sentence on what a scheduler does for short transfers, with ratios to others.
#[must_use]
pub fn verdict(scheduler: &str, short: &[(Estimate, &str)]) -> String {
    let ratios: Vec<String> = short
        .iter()
        .map(|(estimate, other)| format!("{} {other}'s time", ratio(*estimate)))
        .collect();
    format!("{scheduler}: transfers of <= 20 packets take {}", ratios.join(", "))
}

/// A ratio with its interval.
#[must_use]
pub fn ratio(estimate: Estimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.2} x [{low:.2}, {high:.2}]", estimate.value),
        None => format!("{:.2} x", estimate.value),
    }
}
