//! What a lab was and what it found: for a terminal, and for `run.json`.

use lab::{Config, Summary, Transfers};
use serde_json::json;

/// The experiment and its results for a terminal.
pub(super) fn report(config: &Config, summary: &Summary, void: u64) -> String {
    let what = measure::text::wrap(&describe(config, summary));
    let mut text = format!("{what}\n{}", lab::text::report(summary));
    if void > 0 {
        text += &format!("Void and repeated: {}.\n", count(void, "block"));
    }
    text
}

/// The experiment in one line.
fn describe(config: &Config, summary: &Summary) -> String {
    let (link, traffic) = (&config.link, &config.traffic);
    let bulk = match (traffic.downloads, traffic.uploads) {
        (0, 0) => "nothing long".to_owned(),
        (downloads, 0) => count(u64::from(downloads), "long download"),
        (downloads, uploads) => format!(
            "{} and {}",
            count(u64::from(downloads), "long download"),
            count(u64::from(uploads), "long upload")
        ),
    };
    let tcp: Vec<&str> = traffic.tcp.iter().map(|tcp| tcp.name()).collect();
    format!(
        "{}{}, {}, RTT {}; {}; {bulk} beside the transfers; {} of {:.1} s, disciplines side by side: {}",
        if link.engine == lab::Engine::Kernel { "Qdiscs of this kernel; " } else { "" },
        link.rate,
        link.limit,
        link.rtt,
        tcp.join(", "),
        count(summary.rounds, "round"),
        config.timing.block().0 as f64 / 1e9,
        config.timing.jobs,
    )
}

pub(super) fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Adds what a scenario says of itself; what really ran goes before it.
pub(super) fn merge(document: &mut serde_json::Value, of_file: serde_json::Value) {
    if let (Some(document), serde_json::Value::Object(of_file)) =
        (document.as_object_mut(), of_file)
    {
        for (key, value) in of_file {
            document.entry(key).or_insert(value);
        }
    }
}

/// What was run, as `run.json` keeps it.
pub(super) fn scenario(config: &Config) -> serde_json::Value {
    let traffic = &config.traffic;
    let transfers = match &traffic.transfers {
        Transfers::Drawn { law, load } => json!({ "sizes": law.to_string(), "load": load }),
        Transfers::Listed(list) => json!({ "listed": list.transfers().len() }),
    };
    json!({
        "schedulers": config.schedulers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "rate_bps": config.link.rate.0,
        "up_rate_bps": config.link.up_rate.0,
        "limit": config.link.limit.to_string(),
        "rtt_ns": config.link.rtt.0,
        "engine": config.link.engine.name(),
        "edge": config.link.edge.as_ref().map(ToString::to_string),
        "ecn": config.link.ecn,
        "local_sender": config.link.local_sender,
        "transfers": transfers,
        "tcp": traffic.tcp,
        "downloads": traffic.downloads,
        "uploads": traffic.uploads,
        "interactive": traffic.interactive,
        "timing": config.timing,
        "seed": config.seed,
    })
}
