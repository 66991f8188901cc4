//! The reference of scenario files, from the definitions of their keys.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::key::{Default, KeyDef, Section};
use crate::sections;

/// Every section and key, as Markdown: what stands in the documentation.
#[must_use]
pub fn reference_markdown() -> String {
    sections::ALL.iter().map(|section| of_section(section)).collect::<Vec<_>>().join("\n")
}

/// The same as data: every section with its keys, each with the kind of what it takes (a table's
/// section by its place in the list), what it takes in words, the default and the meaning.
#[must_use]
pub fn reference() -> Value {
    sections::ALL.iter().map(|section| data_of(section)).collect()
}

fn data_of(section: &Section) -> Value {
    let keys = section.defs().map(|def| {
        json!({
            "name": def.name,
            "kind": def.takes.kind(),
            "words": def.takes.words(),
            "section": def.takes.section().and_then(place),
            "takes": def.takes.to_string(),
            "needed": def.default == Default::Needed,
            "default": match def.default {
                Default::Needed => "",
                Default::Is(text) | Default::Words(text) => text,
            },
            "meaning": def.meaning,
        })
    });
    json!({
        "title": section.title,
        "about": section.about,
        "keys": keys.collect::<Vec<_>>(),
    })
}

/// Where a section stands in the list.
fn place(section: &Section) -> Option<usize> {
    sections::ALL.iter().position(|other| std::ptr::eq(*other, section))
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
