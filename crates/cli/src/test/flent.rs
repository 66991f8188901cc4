//! A data file of flent's, version 4, as its test `rrul_be` has series.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use humantime::format_rfc3339_micros;
use measure::write_json;
use nix::unistd::gethostname;
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
    let seconds: Vec<&Interval> = result.phases.iter().flat_map(|phase| &phase.intervals).collect();
    let document = document(path, &result.server, &seconds, SystemTime::now());
    write_json(path, &document).map_err(|error| Failure::Failed(error.to_string()))
}

/// Every delay by itself, at the end of its second.
fn raw_delays(seconds: &[&Interval], start: SystemTime) -> Vec<Value> {
    let start = start.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let of_second = |(place, second): (usize, &&Interval)| -> Vec<Value> {
        let time = start + (place + 1) as f64;
        second.delays.iter().map(|delay| json!({ "t": time, "val": millis(*delay) })).collect()
    };
    seconds.iter().enumerate().flat_map(of_second).collect()
}

fn millis(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}

fn document(path: &Path, server: &str, seconds: &[&Interval], end: SystemTime) -> Value {
    let x: Vec<f64> = (1..=seconds.len()).map(|second| second as f64).collect();
    let series = |of: &dyn Fn(&Interval) -> Option<f64>| -> Vec<Option<f64>> {
        seconds.iter().map(|second| of(second)).collect()
    };
    let mbit = |bytes: u64| (bytes > 0).then(|| bytes as f64 * 8.0 / 1e6);
    let delay = |second: &Interval| quantile(&second.delays, 0.5).map(millis);
    let start = end - Duration::from_secs(seconds.len() as u64);
    let time = format_rfc3339_micros(start).to_string();
    json!({
        "metadata": {
            "NAME": "rrul_be",
            "TITLE": "shortlane test",
            "LOCAL_HOST": gethostname().unwrap_or_default().to_string_lossy(),
            "HOST": server,
            "HOSTS": [server],
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
        // Flent draws nothing of a file without any.
        "raw_values": { "Ping (ms) ICMP": raw_delays(seconds, start) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_when_the_test_began_and_has_each_delay() {
        let (mut first, second) = (Interval::default(), Interval::default());
        first.delays = [10, 30, 20].map(Duration::from_millis).to_vec();
        let end = UNIX_EPOCH + Duration::from_secs(102);
        let document = document(Path::new("a.flent"), "router", &[&first, &second], end);
        assert_eq!(document["metadata"]["T0"], "1970-01-01T00:01:40.000000Z");
        assert_eq!(document["results"]["Ping (ms) ICMP"], json!([20.0, null]));
        let raw = [10.0, 30.0, 20.0].map(|delay| json!({ "t": 101.0, "val": delay }));
        assert_eq!(document["raw_values"]["Ping (ms) ICMP"], json!(raw));
    }
}
