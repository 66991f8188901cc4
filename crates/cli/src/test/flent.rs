//! A data file of flent's, version 4, as its test `rrul_be` has series.

use std::path::Path;
use std::time::SystemTime;

use humantime::format_rfc3339_micros;
use measure::write_json;
use responsiveness::{Interval, quantile};
use serde_json::{Value, json};

use super::result::TestResult;
use crate::Failure;

/// Writes the seconds of all phases, one after the other.
pub(super) fn write(path: &Path, result: &TestResult) -> Result<(), Failure> {
    if path.extension().is_none_or(|extension| extension != "flent") {
        let text =
            format!("--flent {}: flent opens files whose names end in .flent", path.display());
        return Err(Failure::Usage(text));
    }
    let document = document(path, result, SystemTime::now());
    write_json(path, &document).map_err(|error| Failure::Failed(error.to_string()))
}

fn document(path: &Path, result: &TestResult, end: SystemTime) -> Value {
    let seconds: Vec<&Interval> = result.phases.iter().flat_map(|phase| &phase.intervals).collect();
    let x: Vec<f64> = (1..=seconds.len()).map(|second| second as f64).collect();
    let series = |of: &dyn Fn(&Interval) -> Option<f64>| -> Vec<Option<f64>> {
        seconds.iter().map(|second| of(second)).collect()
    };
    let mbit = |bytes: u64| (bytes > 0).then(|| bytes as f64 * 8.0 / 1e6);
    let delay =
        |second: &Interval| quantile(&second.delays, 0.5).map(|delay| delay.as_secs_f64() * 1e3);
    let time = format_rfc3339_micros(end).to_string();
    json!({
        "metadata": {
            "NAME": "rrul_be",
            "TITLE": "shortlane test",
            "HOST": result.server,
            "HOSTS": [result.server],
            "TIME": time,
            "T0": time,
            "LENGTH": seconds.len(),
            "TOTAL_LENGTH": seconds.len(),
            "STEP_SIZE": 1.0,
            "DATA_FILENAME": path.file_name().map(|name| name.to_string_lossy()),
            "NOTE": "idle, down, up, both; pings are TCP handshakes",
            "TEST_PARAMETERS": {},
            "SERIES_META": {},
        },
        "version": 4,
        "x_values": x,
        "results": {
            "TCP download BE": series(&|second| mbit(second.down_bytes)),
            "TCP upload BE": series(&|second| mbit(second.up_bytes)),
            "Ping (ms) ICMP": series(&delay),
        },
        "raw_values": {},
    })
}
