//! The reference of scenario files, from the definitions of their keys.

use std::fmt::Write;

use crate::key::{Default, KeyDef, Section};
use crate::sections;

/// Every section and key, as Markdown: what stands in the documentation.
#[must_use]
pub fn reference_markdown() -> String {
    sections::ALL.iter().map(|section| of_section(section)).collect::<Vec<_>>().join("\n")
}

fn of_section(section: &Section) -> String {
    let mut text = format!("## {}\n\n", section.title);
    if !section.about.is_empty() {
        text += &format!("{}\n\n", section.about);
    }
    text += "| key | takes | default | |\n|---|---|---|---|\n";
    // The word that chose the section needs no row.
    for def in section.defs().filter(|def| def.name != "kind") {
        let _ = writeln!(text, "{}", row(def));
    }
    text
}

fn row(def: &KeyDef) -> String {
    let default = match def.default {
        Default::Needed => "needed".to_owned(),
        Default::Is("") => "empty".to_owned(),
        Default::Is(value) => format!("`{value}`"),
        Default::Words("") => "-".to_owned(),
        Default::Words(words) => words.to_owned(),
    };
    let takes = def.takes.in_reference();
    // A bar would end the cell.
    format!("| `{}` | {takes} | {default} | {} |", def.name, def.meaning.replace('|', "\\|"))
}
