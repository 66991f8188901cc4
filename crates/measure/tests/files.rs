//! Tables on disk: what was pushed is what is read, and files appear whole or not at all.

use std::fs::{self, File};
use std::path::Path;

use measure::{
    Advance, Block, DropCount, Flow, FlowKind, Format, Key, LinkUse, Machine, Probe, Results, Row,
    RunInfo, SCHEMA_VERSION, Sample, SizeClass, TableWriter, Value,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use tempfile::TempDir;

fn key(round: u64) -> Key {
    Key {
        run: "lab-1".into(),
        scheduler: "efd:limit=300packets,threshold=20packets".into(),
        seed: u64::MAX,
        round,
        block: round * 2,
    }
}

fn flow(i: u64) -> Flow {
    let complete = !i.is_multiple_of(3);
    Flow {
        key: key(i / 100),
        index: i,
        kind: [FlowKind::Transfer, FlowKind::Upload, FlowKind::Stream][i as usize % 3],
        flow: (!i.is_multiple_of(5))
            .then(|| format!("10.0.0.1:{i} > 10.0.1.1:80 \"tcp\", é").into()),
        size_bytes: Some(i * 1460),
        size_class: Some(SizeClass::of_packets(i)),
        start_ns: i * 1_000_003,
        end_ns: complete.then_some(i * 2_000_003),
        completion_ns: complete.then_some(i * 1_000_000),
        slowdown: complete.then_some(1.0 + i as f64 / 7.0),
        complete,
        failure: (!complete).then(|| "reset".into()),
        ..Flow::default()
    }
}

fn write<R: Row>(path: &Path, format: Format, rows: &[R]) {
    let mut writer = TableWriter::create(path, format).unwrap();
    rows.iter().for_each(|row| writer.push(row).unwrap());
    assert_eq!(writer.rows(), rows.len() as u64);
    writer.finish().unwrap();
}

fn cells(row: &impl Row) -> Vec<Value> {
    let mut cells = Vec::new();
    row.cells(&mut |value| cells.push(value));
    cells
}

fn names<R: Row>() -> Vec<String> {
    R::columns().iter().map(|column| column.name.to_string()).collect()
}

/// Reads a table with Parquet's own reader.
fn read_parquet(path: &Path) -> (Vec<String>, Vec<Vec<Value>>) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema();
    let names = schema.get_fields().iter().map(|field| field.name().to_string()).collect();
    let value = |field: &Field| match field {
        Field::Null => Value::Null,
        Field::Bool(value) => Value::Boolean(*value),
        Field::Long(value) => Value::Integer(*value),
        Field::Double(value) => Value::Float(*value),
        Field::Str(value) => Value::Text(value.as_str().into()),
        other => panic!("{other:?} is of no kind that tables have"),
    };
    let rows = reader.get_row_iter(None).unwrap();
    let rows = rows.map(|row| row.unwrap().get_column_iter().map(|(_, f)| value(f)).collect());
    (names, rows.collect())
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_written_as_parquet_is_what_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("flows.parquet");
    // Two row groups of 65,536 rows, and a last one that is not full.
    let rows: Vec<Flow> = (0..135_000).map(flow).collect();
    write(&path, Format::Parquet, &rows);
    let (columns, values) = read_parquet(&path);
    assert_eq!(columns, names::<Flow>());
    assert_eq!(values.len(), rows.len());
    for (row, values) in rows.iter().zip(values) {
        assert_eq!(cells(row), values);
    }
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let groups = reader.metadata().row_groups().iter();
    assert_eq!(groups.map(|group| group.num_rows()).collect::<Vec<_>>(), [65_536, 65_536, 3928]);
    assert_eq!(entries(directory.path()), ["flows.parquet"]);
}

#[test]
fn tables_of_one_row_and_of_none_are_tables() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("flows.parquet");
    for rows in [vec![], vec![flow(0)]] {
        write(&path, Format::Parquet, &rows);
        let (columns, values) = read_parquet(&path);
        assert_eq!(columns, names::<Flow>());
        assert_eq!(values, rows.iter().map(cells).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_written_as_csv_is_what_is_read() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("flows.csv");
    let rows: Vec<Flow> = (0..100).map(flow).collect();
    write(&path, Format::Csv, &rows);
    let mut reader = csv::Reader::from_path(&path).unwrap();
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), names::<Flow>());
    let read: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(read.len(), rows.len());
    for (row, record) in rows.iter().zip(&read) {
        for (cell, text) in cells(row).into_iter().zip(record) {
            match cell {
                Value::Null => assert_eq!(text, ""),
                Value::Boolean(value) => assert_eq!(text.parse(), Ok(value)),
                Value::Integer(value) => assert_eq!(text.parse(), Ok(value)),
                Value::Float(value) => assert_eq!(text.parse(), Ok(value)),
                Value::Text(value) => assert_eq!(text, &*value),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_probe_survives(
        probes in prop::collection::vec((".{0,12}", any::<u64>(), any::<Option<u64>>()), 0..50)
    ) {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("probes.parquet");
        let row = |(stream, sent_ns, delay_ns): (String, u64, Option<u64>)| {
            Probe { stream: stream.into(), sent_ns, delay_ns, ..Probe::default() }
        };
        let rows: Vec<Probe> = probes.into_iter().map(row).collect();
        write(&path, Format::Parquet, &rows);
        let (_, values) = read_parquet(&path);
        prop_assert_eq!(values, rows.iter().map(cells).collect::<Vec<_>>());
    }
}

fn info() -> RunInfo {
    RunInfo {
        run: "lab-1".into(),
        engine: None,
        schema: SCHEMA_VERSION,
        command: vec!["shortlane".into(), "lab".into()],
        version: "0.1.0".into(),
        started: Some("2026-01-01T00:00:00Z".into()),
        ended_early: None,
        machine: Some(Machine::here()),
        seed: 1,
        scenario: serde_json::json!({ "rate": "10mbit" }),
    }
}

#[test]
fn a_directory_of_results_appears_when_it_is_complete() {
    for format in [Format::Parquet, Format::Csv] {
        let parent = TempDir::new().unwrap();
        let directory = parent.path().join("a/b");
        let mut results = Results::create(&directory, format).unwrap();
        results.flows.push(&flow(1)).unwrap();
        results.blocks.push(&Block { key: key(1), ..Block::default() }).unwrap();
        results.links.push(&LinkUse { link: "down".into(), ..LinkUse::default() }).unwrap();
        results.progress.push(&Advance { received_bytes: 1460, ..Advance::default() }).unwrap();
        results.probes.push(&Probe { stream: "voice".into(), ..Probe::default() }).unwrap();
        results.samples.push(&Sample { t_ns: 5, ..Sample::default() }).unwrap();
        results.drops.push(&DropCount { reason: "full".into(), ..DropCount::default() }).unwrap();
        assert!(entries(&directory).iter().all(|name| name.ends_with(".tmp")));
        results.finish(&info()).unwrap();
        let tables = ["blocks", "drops", "flows", "links", "probes", "progress", "run", "samples"];
        let extension = |table| if table == "run" { "json" } else { format.extension() };
        let expected = tables.map(|table| format!("{table}.{}", extension(table)));
        assert_eq!(entries(&directory), expected);
        let text = fs::read_to_string(directory.join("run.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["scenario"]["rate"], "10mbit");
        assert_eq!(json["machine"]["processors"], Machine::here().processors);
    }
}

#[test]
fn a_run_given_up_leaves_what_was_there_before() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("flows.parquet"), "of an earlier run").unwrap();
    let mut results = Results::create(directory.path(), Format::Parquet).unwrap();
    results.flows.push(&flow(1)).unwrap();
    drop(results);
    assert_eq!(entries(directory.path()), ["flows.parquet"]);
    let kept = fs::read_to_string(directory.path().join("flows.parquet")).unwrap();
    assert_eq!(kept, "of an earlier run");
}

#[test]
fn files_may_be_read_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    let mode = |name: &str| {
        fs::metadata(directory.path().join(name)).unwrap().permissions().mode() & 0o777
    };
    File::create(directory.path().join("plain")).unwrap();
    write(&directory.path().join("table.csv"), Format::Csv, &[flow(1)]);
    assert_eq!(mode("table.csv"), mode("plain"));
}

#[test]
fn errors_name_the_file_and_the_reason() {
    let directory = TempDir::new().unwrap();
    let missing = directory.path().join("none/flows.csv");
    let error = TableWriter::<Flow>::create(&missing, Format::Csv).err().unwrap();
    let expected =
        format!("cannot write {}: No such file or directory (os error 2)", missing.display());
    assert_eq!(error.to_string(), expected);
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Results::create(&file, Format::Csv).err().unwrap();
    assert_eq!(
        error.to_string(),
        format!("cannot write {}: File exists (os error 17)", file.display())
    );
    let taken = directory.path().join("taken");
    fs::create_dir(&taken).unwrap();
    let error = measure::write_json(&taken, &1).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot write {}", taken.display())), "{error}");
    assert_eq!(entries(directory.path()), ["file", "taken"]);
}

#[test]
fn the_name_says_the_format() {
    let of = |name: &str| Format::of_path(Path::new(name));
    assert_eq!(of("a/events.parquet"), Some(Format::Parquet));
    assert_eq!(of("events.csv"), Some(Format::Csv));
    assert_eq!(of("events.json"), None);
    assert_eq!(of("parquet"), None);
}
