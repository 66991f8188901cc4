//! The schema as a document.

use std::fmt::Write;

use crate::any::tables;
use crate::events::PacketEvent;
use crate::schema::Key;
use crate::table::{Column, Row, joined};

/// The tables and their columns in Markdown: what `docs/results.md` holds below its marker.
#[must_use]
pub fn schema_markdown() -> String {
    let mut out = String::from("## Columns of every table\n\n");
    describe(&mut out, Key::OWN_COLUMNS);
    for table in tables() {
        let about = joined(table.about);
        if table.name == PacketEvent::TABLE {
            let _ = write!(out, "\n# The file of `--events`\n\n{about}\n\n");
            describe(&mut out, &table.columns);
        } else {
            let _ = write!(out, "\n## `{}`\n\n{about}\n\n", table.name);
            describe(&mut out, &table.columns[Key::OWN_COLUMNS.len()..]);
        }
    }
    out
}

fn describe(out: &mut String, columns: &[Column]) {
    out.push_str("| column | type | unit | meaning |\n|---|---|---|---|\n");
    for column in columns {
        let kind = column.kind.name();
        let or_empty = if column.nullable { " or empty" } else { "" };
        let (name, unit, meaning) = (column.name, column.unit, column.meaning());
        let _ = writeln!(out, "| `{name}` | {kind}{or_empty} | {unit} | {meaning} |");
    }
}
