//! Tables back to the files that the command writes.

use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use measure::{AnyResults, Format, RunInfo, Table, Value, WriteError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::errors::{InputError, RunError};

/// Writes tables, by name, and `run.json` to a directory.
#[pyfunction]
pub fn write(
    py: Python<'_>,
    directory: PathBuf,
    format: &str,
    info: &str,
    tables: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let format = match format {
        "parquet" => Format::Parquet,
        "csv" => Format::Csv,
        _ => {
            let error = format!("format {format} is not accepted: it takes parquet, csv");
            return Err(InputError::new_err(error));
        }
    };
    let info: RunInfo = serde_json::from_str(info)
        .map_err(|error| InputError::new_err(format!("info is not that of a run: {error}")))?;
    let mut found = Vec::new();
    for table in measure::tables() {
        if let Some(given) = tables.get_item(table.name)? {
            let batches = batches(&given, &table)?;
            found.push((table, batches));
        }
    }
    let written = py.detach(|| {
        let mut results = AnyResults::create(&directory, format)?;
        for (table, batches) in &found {
            results.add(table, |writer| {
                batches.iter().try_for_each(|batch| {
                    (0..batch.num_rows()).try_for_each(|row| {
                        writer.push(|put| {
                            batch.columns().iter().for_each(|column| put(cell(column, row)));
                        })
                    })
                })
            })?;
        }
        results.finish(&info)
    });
    written.map_err(|error: WriteError| RunError::new_err(format!("results not written: {error}")))
}

/// What an object exports through the Arrow PyCapsule interface, as rows of this table.
fn batches(given: &Bound<'_, PyAny>, table: &Table) -> PyResult<Vec<RecordBatch>> {
    let refused = |what: String| InputError::new_err(format!("table {}: {what}", table.name));
    let capsule = given.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast();
    // SAFETY: by the PyCapsule interface, a capsule of this name points to such a stream, which its
    // consumer takes over; the capsule lives until the end of this function.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    let read = reader.and_then(Iterator::collect::<Result<Vec<RecordBatch>, _>>);
    let read = read.map_err(|error| refused(error.to_string()))?;
    for batch in &read {
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name().as_str());
        if !names.eq(table.columns.iter().map(|column| column.name)) {
            return Err(refused("its columns are not those of the schema".into()));
        }
        for (column, array) in table.columns.iter().zip(batch.columns()) {
            let fits = match column.kind {
                measure::Kind::Boolean => *array.data_type() == DataType::Boolean,
                measure::Kind::Integer => *array.data_type() == DataType::Int64,
                measure::Kind::Float => *array.data_type() == DataType::Float64,
                measure::Kind::Text => {
                    matches!(array.data_type(), DataType::Utf8View | DataType::LargeUtf8)
                }
            };
            if !fits || (!column.nullable && array.null_count() > 0) {
                let (name, kind) = (column.name, column.kind.name());
                let found = array.data_type();
                return Err(refused(format!("column {name} is {found}; it takes {kind}")));
            }
        }
    }
    Ok(read)
}

/// One cell of a column that [`batches`] has looked at.
fn cell(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Boolean => Value::Boolean(column.as_boolean().value(row)),
        DataType::Int64 => Value::Integer(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float64 => Value::Float(column.as_primitive::<Float64Type>().value(row)),
        DataType::LargeUtf8 => Value::Text(column.as_string::<i64>().value(row).into()),
        _ => Value::Text(column.as_string_view().value(row).into()),
    }
}
