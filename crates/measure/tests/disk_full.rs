//! A disk that fills up while results are written.
//!
//! The test runs itself again in a mount namespace of its own, where a file system of 256 kB is
//! mounted; nothing of it is left when that process ends.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use measure::{Format, Key, Probe, Results, TableWriter, WriteError};
use tempfile::TempDir;

const MOUNTED: &str = "SHORTLANE_TEST_SMALL_DISK";

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    if let Some(disk) = env::var_os(MOUNTED) {
        return on_a_small_disk(Path::new(&disk));
    }
    let mount_point = TempDir::new().unwrap();
    let script = "mount -t tmpfs -o size=256k none \"$0\" && exec \"$@\"";
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    unshare.arg(mount_point.path()).arg(env::current_exe().unwrap());
    unshare.args(["--exact", "a_full_disk_is_an_error_and_leaves_nothing", "--nocapture"]);
    let output = unshare.env(MOUNTED, mount_point.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn on_a_small_disk(disk: &Path) {
    for format in [Format::Parquet, Format::Csv] {
        let path = disk.join(format!("probes.{}", format.extension()));
        fs::write(&path, "of an earlier run").unwrap();
        let error = fill(&path, format).unwrap_err();
        assert_eq!(error.path, path);
        assert_eq!(error.source.raw_os_error(), Some(28), "{error}");
        let expected = "No space left on device (os error 28)";
        assert_eq!(error.to_string(), format!("cannot write {}: {expected}", path.display()));
        assert_eq!(fs::read_to_string(&path).unwrap(), "of an earlier run");
        assert_eq!(fs::read_dir(disk).unwrap().count(), 1);
        fs::remove_file(&path).unwrap();
        results(disk, format);
    }
}

fn fill(path: &Path, format: Format) -> Result<(), WriteError> {
    let mut writer = TableWriter::create(path, format)?;
    (0..200_000).try_for_each(|i| writer.push(&probe(i)))?;
    writer.finish()
}

/// One table of seven does not fit: none appears.
fn results(disk: &Path, format: Format) {
    let directory = disk.join("results");
    let mut results = Results::create(&directory, format).unwrap();
    results.flows.push(&measure::Flow::default()).unwrap();
    let pushed = (0..200_000).try_for_each(|i| results.probes.push(&probe(i)));
    let error = match pushed {
        Ok(()) => results.finish(&info()).unwrap_err(),
        Err(error) => {
            drop(results);
            error
        }
    };
    assert_eq!(error.source.raw_os_error(), Some(28), "{error}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
    fs::remove_dir(&directory).unwrap();
}

/// A row that does not compress: 200,000 of them take more than a megabyte.
fn probe(i: u64) -> Probe {
    let noise = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Probe {
        key: Key::default(),
        sent_ns: noise,
        delay_ns: Some(noise.rotate_left(29)),
        ..Probe::default()
    }
}

fn info() -> measure::RunInfo {
    measure::RunInfo {
        run: "full".into(),
        schema: measure::SCHEMA_VERSION,
        command: Vec::new(),
        version: String::new(),
        started: Some(String::new()),
        ended_early: None,
        machine: Some(measure::Machine::here()),
        seed: 0,
        scenario: serde_json::Value::Null,
        engine: None,
    }
}
