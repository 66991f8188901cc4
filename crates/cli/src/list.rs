//! `shortlane list`: the registry, for people and for programs.

use clap::Args;
use sched::Info;
use sched::{Spec, registry};
use serde_json::{Value, json};

use crate::{Failure, print};

#[derive(Args)]
#[command(after_help = names())]
pub(crate) struct Options {
    /// Show only this discipline
    name: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// All disciplines by name, for the help and the man page.
fn names() -> String {
    let names: Vec<&str> = registry::ALL.iter().map(|info| info.name).collect();
    format!("Disciplines: {}", names.join(", "))
}

pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let infos: Vec<&'static Info> = match &options.name {
        None => registry::ALL.to_vec(),
        Some(name) => {
            let spec = Spec::named(name).map_err(|error| Failure::Usage(error.to_string()))?;
            vec![spec.info()]
        }
    };
    if options.json {
        print(&format!("{:#}\n", documents(&infos)))
    } else {
        print(&infos.into_iter().map(as_text).collect::<String>())
    }
}

/// The disciplines as one JSON document.
fn documents(infos: &[&'static Info]) -> Value {
    infos.iter().map(|info| as_json(info)).collect()
}

/// Every discipline as one JSON document: what `list --json` prints.
#[must_use]
pub fn disciplines() -> Value {
    documents(registry::ALL)
}

fn needs(info: &Info) -> Vec<&'static str> {
    let all = [
        (info.needs.flow_size, "flow-size"),
        (info.needs.offset, "offset"),
        (info.needs.hosts, "hosts"),
    ];
    all.iter().filter(|(needed, _)| *needed).map(|(_, name)| *name).collect()
}

fn as_json(info: &'static Info) -> Value {
    let defaults = info.defaults();
    let params = defaults.iter().map(|(def, default)| {
        json!({
            "name": def.name,
            "unit": def.kind.unit(),
            "default": default,
            "range": def.kind.to_string(),
            "effect": def.effect,
            "source": def.source,
            "live": def.live,
        })
    });
    let parts = info.parts_in_words().map(|[accounting, service, buffer]| {
        json!({ "accounting": accounting, "service": service, "buffer": buffer })
    });
    json!({
        "name": info.name,
        "summary": info.summary,
        "source": info.source,
        "parts": parts,
        "needs": needs(info),
        "keeps_order": (info.keeps_order)(&defaults),
        "params": params.collect::<Vec<_>>(),
    })
}

fn as_text(info: &'static Info) -> String {
    let mut text = String::new();
    text += &format!("{}: {}\n", info.name, info.summary);
    text += &format!("    source: {}\n", info.source);
    if let Some([accounting, service, buffer]) = info.parts_in_words() {
        text += &format!("    accounting: {accounting}\n");
        text += &format!("    service:    {service}\n");
        text += &format!("    buffer:     {buffer}\n");
    }
    let needs = needs(info);
    if !needs.is_empty() {
        let barred = info.needs.of_no_link().map_or("", |_| " (so not on a live link)");
        text += &format!("    needs: {}{barred}\n", needs.join(", "));
    }
    for (def, default) in info.defaults().iter() {
        text += &format!("    {}={default}  [{}]\n", def.name, def.kind);
        text += &format!("        {}\n", def.effect);
    }
    text.push('\n');
    text
}
