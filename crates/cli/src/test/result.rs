//! What a test found, as a table and as a document.

use std::time::Duration;

use engine::status::Heading;
use measure::text;
use responsiveness::{Class, Confidence, Interval, Load, Measured, grade, quantile};
use serde_json::{Value, json};

use super::queue::{Carried, Whose, whose};

pub(super) struct TestResult {
    pub(super) server: String,
    pub(super) tls: bool,
    pub(super) phases: Vec<Phase>,
}

/// What a phase found, in the units of documents.
pub(super) struct Phase {
    pub(super) load: Load,
    rpm: f64,
    confidence: Confidence,
    pub(super) delay_median: Duration,
    delay_p95: Duration,
    /// What load adds to the idle delay, at the median; none without load.
    extra: Option<Duration>,
    down_bps: f64,
    up_bps: f64,
    carried: Vec<Carried>,
    whose: Option<Whose>,
    pub(super) intervals: Vec<Interval>,
}

impl Phase {
    /// `idle` is the median of the idle phase; none in that one.
    pub(super) fn new(measured: &Measured, idle: Option<Duration>, carried: Vec<Carried>) -> Self {
        let delay = |part| quantile(&measured.delays, part).unwrap_or_default();
        let extra = idle.map(|idle| delay(0.5).saturating_sub(idle));
        let loaded = measured.load != Load::Idle;
        Self {
            load: measured.load,
            rpm: measured.samples.round_trips_per_minute(loaded).unwrap_or_default(),
            confidence: measured.confidence,
            delay_median: delay(0.5),
            delay_p95: delay(0.95),
            extra,
            down_bps: measured.down_bps,
            up_bps: measured.up_bps,
            whose: extra.and_then(|extra| whose(extra, &carried)),
            carried,
            intervals: measured.intervals.clone(),
        }
    }

    fn row(&self) -> [String; 8] {
        let ms = |time: Duration| text::decimals(time.as_secs_f64() * 1e3);
        let mbit = |bps: f64| if bps > 0.0 { text::decimals(bps / 1e6) } else { "-".into() };
        let dash = || "-".to_owned();
        [
            self.load.name().into(),
            format!("{:.0} ({})", self.rpm, Class::of(self.rpm)),
            ms(self.delay_median),
            ms(self.delay_p95),
            self.extra.map_or_else(dash, ms),
            self.extra.map_or("-", grade).into(),
            mbit(self.down_bps),
            mbit(self.up_bps),
        ]
    }

    /// Whose queue it was, in a sentence.
    fn verdict(&self) -> Option<String> {
        let (whose, extra) = (self.whose?, self.extra?);
        let names: Vec<String> = self.carried.iter().map(name).collect();
        let names = names.join(" and ");
        let ours: Duration = self.carried.iter().map(|queue| queue.wait).sum();
        let ms = |time: Duration| format!("{} ms", text::decimals(time.as_secs_f64() * 1e3));
        let of = format!("{} of the {} extra were in {names}", ms(ours), ms(extra));
        Some(
            format!("{}: ", self.load.name())
                + &match whose {
                    Whose::Nobodys => {
                        format!("nobody waits: {names} holds the queue, and short flows pass it")
                    }
                    Whose::Ours => format!("the queue is ours: {of}"),
                    Whose::FurtherOut => format!(
                        "the queue is further out: {of}; the link is slower than its rate says, lower it{}",
                        self.rates()
                    ),
                    Whose::WiFi => format!(
                        "the queue is Wi-Fi's: {of}; below the rate of the radio it would be ours"
                    ),
                },
        )
    }

    fn rates(&self) -> String {
        let rates = self.carried.iter().map(|queue| queue.rate).filter(|rate| !rate.is_unlimited());
        let rates: Vec<String> = rates.map(|rate| rate.to_string()).collect();
        if rates.is_empty() { String::new() } else { format!(" (now {})", rates.join(", ")) }
    }

    fn json(&self) -> Value {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let queues: Vec<Value> = self
            .carried
            .iter()
            .map(|queue| {
                json!({
                    "device": queue.device,
                    "direction": queue.heading,
                    "rate_bps": queue.rate.limit(),
                    "short_wait_ms": ms(queue.wait),
                })
            })
            .collect();
        json!({
            "load": self.load,
            "round_trips_per_minute": self.rpm,
            "class": Class::of(self.rpm),
            "confidence": self.confidence,
            "delay_median_ms": ms(self.delay_median),
            "delay_p95_ms": ms(self.delay_p95),
            "extra_delay_ms": self.extra.map(ms),
            "grade": self.extra.map(grade),
            "down_bps": self.down_bps,
            "up_bps": self.up_bps,
            "queue": self.whose,
            "attached": queues,
        })
    }
}

fn name(queue: &Carried) -> String {
    match queue.heading {
        Heading::Egress => queue.device.clone(),
        Heading::Ingress => format!("{} ingress", queue.device),
    }
}

impl TestResult {
    pub(super) fn json(&self) -> Value {
        let phases: Vec<Value> = self.phases.iter().map(Phase::json).collect();
        json!({ "server": self.server, "tls": self.tls, "phases": phases })
    }

    pub(super) fn text(&self) -> String {
        let header =
            ["load", "round trips/min", "delay ms", "p95", "extra", "grade", "down Mbit/s", "up"];
        let mut table = text::table(&header);
        for phase in &self.phases {
            table.add_row(phase.row());
        }
        let mut text = format!("{table}\n");
        for phase in &self.phases {
            if phase.confidence != Confidence::High {
                let why = match phase.confidence {
                    Confidence::Low => "it was short",
                    _ => "it was not stable",
                };
                text += &format!("{}: take it with care, {why}\n", phase.load.name());
            }
        }
        for verdict in self.phases.iter().filter_map(Phase::verdict) {
            text += &format!("{}\n", text::wrap(&verdict));
        }
        text
    }
}
