//! The schema as a document.

use std::fmt::Write;

use crate::events::PacketEvent;
use crate::schema::{Advance, Block, DropCount, Flow, Key, LinkUse, Probe, Sample};
use crate::table::{Column, Kind, Row};

/// The tables and their columns in Markdown: what `docs/results.md` holds below its marker.
#[must_use]
pub fn schema_markdown() -> String {
    let mut out = String::from("## Columns of every table\n\n");
    describe(&mut out, Key::OWN_COLUMNS);
    section::<Block>(&mut out);
    section::<LinkUse>(&mut out);
    section::<Flow>(&mut out);
    section::<Advance>(&mut out);
    section::<Probe>(&mut out);
    section::<Sample>(&mut out);
    section::<DropCount>(&mut out);
    out.push_str("\n# The file of `--events`\n\n");
    let _ = write!(out, "{}\n\n", joined(PacketEvent::ABOUT));
    describe(&mut out, &PacketEvent::columns());
    out
}

fn section<R: Row>(out: &mut String) {
    let _ = write!(out, "\n## `{}`\n\n{}\n\n", R::TABLE, joined(R::ABOUT));
    describe(out, &R::columns()[Key::OWN_COLUMNS.len()..]);
}

fn describe(out: &mut String, columns: &[Column]) {
    out.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
    for column in columns {
        let kind = match column.kind {
            Kind::Boolean => "boolean",
            Kind::Integer => "integer",
            Kind::Float => "float",
            Kind::Text => "text",
        };
        let or_empty = if column.nullable { " or empty" } else { "" };
        let (name, unit, meaning) = (column.name, column.unit, joined(column.meaning));
        let _ = writeln!(out, "| `{name}` | {kind}{or_empty} | {unit} | {meaning} |");
    }
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
