//! Results for a terminal: tables and text that fit 100 columns, numbers of three digits or so.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table};

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

/// A scheduler's name for a narrow column: a parameter a line.
#[must_use]
pub fn scheduler(name: &str) -> String {
    name.replace(':', ":\n").replace(',', ",\n")
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

/// A ratio with its interval.
#[must_use]
pub fn ratio(estimate: Estimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.2} x [{low:.2}, {high:.2}]", estimate.value),
        None => format!("{:.2} x", estimate.value),
    }
}
